//! The groups of a correlated aggregate: the value of each group by its key. A statement computes
//! them once; each outer row looks up its value.

use nfold_types::Value;
use rustc_hash::FxHashMap;

/// Groups take at most this many times the memory of a sort; beyond it the subquery runs per row.
const MEMORY_FACTOR: usize = 4;
/// Bytes of a group besides its key.
const GROUP_BYTES: usize = 96;

/// Values by the keys of their groups.
#[derive(Default)]
pub(super) struct Groups {
    values: FxHashMap<Box<[u8]>, Value>,
    bytes: usize,
    /// They did not fit into memory.
    pub too_many: bool,
    /// The value of no rows, once it is known.
    pub empty: Option<Value>,
}

impl Groups {
    /// Adds a group. False: there are too many, and all are forgotten.
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

    /// The value of a group, or of no rows where there is no such group (`None`: it has no key).
    pub fn value(&self, key: Option<&[u8]>) -> Option<Value> {
        let found = key.and_then(|key| self.values.get(key));
        found.or(self.empty.as_ref()).cloned()
    }
}
