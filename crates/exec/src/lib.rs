//! Plans compiled to operators over batches; expressions; rows to the wire.
#![forbid(unsafe_code)]

pub mod env;
pub mod eval;
pub mod func;
pub mod params;

pub use env::{ExecCx, Interrupt, RowSink, SessionEnv, WireFormat};
pub use params::Params;
