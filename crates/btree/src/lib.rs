//! B+trees over the buffer pool: descend, cursor, split and merge, get_many.
