//! Tests of whole patterns.

mod bounds;
mod recorded;
mod syntax;
