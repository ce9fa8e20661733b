//! The storage engine's facade: open, recover, tables, dictionary.
