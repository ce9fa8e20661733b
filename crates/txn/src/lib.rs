//! Snapshots, commit order, undo, purge and row locks.
