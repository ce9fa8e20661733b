//! Sessions, system variables, authentication, workers, system views, configuration.
