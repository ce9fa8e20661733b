//! Disk trait, page layout, log, mini-transactions and buffer pool.
