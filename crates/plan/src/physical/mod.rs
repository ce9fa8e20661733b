//! The plan that the executor runs: the blocks of the logical tree, with access paths and a join
//! order. All sessions that run the same statement with other values share it.

pub mod access;
pub mod foreign;
pub mod plan;
mod print;
pub mod query;
pub mod reads;
mod size;

pub use access::{
    Access, AccessKind, HashKey, IndexMerge, MergeBranch, MergeKind, PointPart, RangePart,
    SkipRows, SkipScan,
};
pub use plan::*;
pub use query::*;

pub use crate::logical::query::{Extreme, OuterKey};

pub use crate::logical::clauses::*;
pub use crate::logical::window::{FrameBound, WindowCall, WindowFrame, WindowFunc, WindowPass};
