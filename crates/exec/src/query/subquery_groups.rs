//! The groups of a correlated aggregate subquery: the value of each group, by its key. A statement
//! computes them once; each outer row looks up its value.

use nfold_types::Value;
use rustc_hash::FxHashMap;

/// The maximum memory of the groups, as a multiple of that of a sort. Beyond it the subquery runs
/// per row.
const MEMORY_FACTOR: usize = 4;
/// The memory of a group besides its key, in bytes.
const GROUP_BYTES: usize = 96;

/// The values of groups by their keys.
#[derive(Default)]
pub(super) struct Groups {
    values: FxHashMap<Box<[u8]>, Value>,
    bytes: usize,
    /// Whether the groups did not fit into memory.
    pub too_many: bool,
    /// The value of an empty group, once it is known.
    pub empty: Option<Value>,
}

impl Groups {
    /// Adds a group. Returns false if there are too many, and removes all of them.
    pub fn push(&mut self, key: &[u8], value: Value, memory: usize) -> bool {
        self.bytes += key.len() + GROUP_BYTES;
        if self.bytes > memory.saturating_mul(MEMORY_FACTOR) {
            self.values = FxHashMap::default();
            self.too_many = true;
            return false;
        }
        self.values.insert(key.into(), value);
        true
    }

    /// The value of a group; for a key without a group (`None`: no key), the value of an empty
    /// group.
    pub fn value(&self, key: Option<&[u8]>) -> Option<Value> {
        let found = key.and_then(|key| self.values.get(key));
        found.or(self.empty.as_ref()).cloned()
    }
}
