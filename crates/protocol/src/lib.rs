//! MySQL's client/server protocol: packets as bytes in, bytes out. No I/O, no clock, no state between calls.
//!
//! The server's workers feed received bytes to [`frame`] and get whole payloads, parse them with [`handshake`], [`command`]
//! and [`stmt`], and append answers to a buffer with [`frame::begin_packet`], [`frame::end_packet`] and [`response`].
//! [`scramble`] holds the arithmetic of both authentication plugins.
//!
//! Every malformed packet is a [`Malformed`] value; nothing here panics on bytes from the network.
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
