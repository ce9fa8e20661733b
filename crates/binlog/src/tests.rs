//! Tests over sets of GTIDs, and over files that a MySQL 9.7 wrote.

mod gtid_sets;
mod recorded;
mod written;
