//! Documents as trees, opaque values, and the counting of work: below everything else.

mod opaque;
mod value;
mod work;

pub use opaque::{FieldType, Opaque};
pub(crate) use opaque::{read_datetime, read_decimal, read_time};
pub use value::Json;
pub(crate) use value::{find_member, too_deep};
pub use work::Work;

/// Most levels of arrays and objects in a document.
pub const MAX_DEPTH: usize = 100;
