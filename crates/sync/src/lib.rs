//! What threads share, and nothing else: page words, racy page bytes, epochs, the log's filled prefix.
//!
//! Every type here is tested under loom (`RUSTFLAGS="--cfg loom"`); [`prim`] is the one place that chooses
//! between `std`, `loom` and `shuttle`.

pub mod barrier;
pub mod epoch;
pub mod gathering;
pub mod left;
pub mod pad;
pub mod page_word;
pub mod planted;
pub mod prefix;
pub mod prim;
pub mod requests;
pub mod tenancy;
pub mod wakeup;
pub mod words;

pub use barrier::Barrier;
pub use gathering::{Gathering, HandOver};
pub use left::Left;
pub use pad::CachePadded;
pub use page_word::PageWord;
pub use prefix::FilledPrefix;
pub use requests::Requests;
pub use tenancy::Tenancy;
pub use wakeup::Wakeup;
