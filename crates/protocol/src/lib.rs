//! MySQL's client/server protocol as pure functions from bytes to bytes. No I/O, no clock, no state
//! between calls.
//!
//! The server's workers pass received bytes to [`frame`], which returns whole payloads. They parse
//! these with [`handshake`], [`command`] and [`stmt`], and append responses to a buffer with
//! [`frame::begin_packet`], [`frame::end_packet`] and [`response`]. [`scramble`] contains the
//! computations of both authentication plugins.
//!
//! Every malformed packet is reported as a [`Malformed`] value. Nothing here panics on bytes from
//! the network.
//!
//! Source: MySQL source documentation, "Client/Server Protocol" (page_protocol_*).

#![forbid(unsafe_code)]

pub mod command;
pub mod consts;
pub mod frame;
pub mod handshake;
pub mod lenenc;
pub mod response;
pub mod scramble;
pub mod stmt;

pub use lenenc::{Malformed, Reader};
