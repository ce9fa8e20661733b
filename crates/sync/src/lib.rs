//! The synchronisation types that threads share: page words, racy page bytes, epochs, and the
//! filled prefix of the log.
//!
//! Loom tests (`RUSTFLAGS="--cfg loom"`) cover the types here. [`prim`] is the one module that
//! chooses between `std`, `loom` and `shuttle`.

#[allow(unsafe_code)]
pub mod barrier;
pub mod coalescer;
pub mod deferred;
pub mod epoch;
pub mod pad;
#[allow(unsafe_code)]
pub mod page_word;
pub mod planted;
pub mod prefix;
pub mod prim;
pub mod target;
pub mod tenancy;
pub mod wakeup;
#[allow(unsafe_code)]
pub mod words;

pub use barrier::Barrier;
pub use coalescer::{RequestCoalescer, Submission};
pub use deferred::DeferredTarget;
pub use pad::CachePadded;
pub use page_word::PageWord;
pub use prefix::FilledPrefix;
pub use target::TargetRequests;
pub use tenancy::Tenancy;
pub use wakeup::Wakeup;
