//! What a statement means: typed expressions with resolved names, and the context they are bound in.
//! It knows no access path and imports no other folder of the crate.

pub mod collate;
pub mod common_type;
pub mod context;
pub mod expr;
pub mod func;
pub mod mode;
pub mod types;
