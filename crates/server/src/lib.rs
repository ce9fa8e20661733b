//! The server: sessions, system variables, authentication, workers, system tables, configuration.
//!
//! Imports go one way, from a folder to those below it:
//!
//! ```text
//! server, database, embedded   what is started
//! statement                    a command, from its text to its answer
//! introspection                SHOW, information_schema, performance_schema
//! replication                  the thread that applies a source's changes
//! ddl                          definitions: bind and run
//! session                      what a session holds, and what all of them share
//! net                          sockets, login, workers, fibers
//! config                       options and the data directory
//! ```

pub mod binlog;
pub mod config;
pub mod database;
pub mod ddl;
pub mod embedded;
mod general_log;
pub mod heavy;
pub mod introspection;
mod log_file;
pub mod net;
mod password_policy;
pub mod pool_list;
mod replication;
pub mod server;
pub mod session;
pub mod slow_log;
pub mod statement;
mod unix_time;
