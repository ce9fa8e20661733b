//! Schema, privilege and statistics snapshots; metadata locks by announcement.
