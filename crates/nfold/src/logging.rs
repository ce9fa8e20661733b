//! Log lines on standard error: time in UTC, level, message.

use tracing::level_filters::LevelFilter;

/// Begins to log. `verbosity` is `log_error_verbosity`: 1 errors, 2 and 3 what the server does as
/// well; `debug` adds everything.
pub fn start(verbosity: u64, debug: bool) {
    let level = match verbosity {
        _ if debug => LevelFilter::DEBUG,
        1 => LevelFilter::ERROR,
        _ => LevelFilter::INFO,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(false)
        .init();
}
