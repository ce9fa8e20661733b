//! The savepoints of one transaction, by name and by age.
//!
//! # Cost
//! Each operation takes logarithmic time: a transaction may set thousands of savepoints.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

struct Savepoint {
    /// In lower case.
    name: String,
    /// Row changes of the transaction before it.
    changes: u32,
}

/// Names compare without case. A newer savepoint replaces an older one of the same name.
#[derive(Default)]
pub(crate) struct Savepoints {
    /// By number; numbers only grow.
    by_age: BTreeMap<u64, Savepoint>,
    by_name: FxHashMap<String, u64>,
    next: u64,
}

impl Savepoints {
    pub fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    pub fn clear(&mut self) {
        if !self.is_empty() {
            *self = Savepoints::default();
        }
    }

    /// SAVEPOINT
    pub fn set(&mut self, name: &str, changes: u32) {
        let name = name.to_ascii_lowercase();
        let number = self.next;
        self.next += 1;
        if let Some(older) = self.by_name.insert(name.clone(), number) {
            self.by_age.remove(&older);
        }
        self.by_age.insert(number, Savepoint { name, changes });
    }

    /// The number of row changes before the savepoint.
    pub fn changes_before(&self, name: &str) -> Option<u32> {
        let number = self.by_name.get(&name.to_ascii_lowercase())?;
        self.by_age.get(number).map(|s| s.changes)
    }

    /// ROLLBACK TO: removes the savepoints that are newer than `name`.
    pub fn remove_newer(&mut self, name: &str) {
        if let Some(number) = self.by_name.get(&name.to_ascii_lowercase()) {
            self.remove_from(number + 1);
        }
    }

    /// RELEASE: removes `name` and those that are newer; false if there is no such savepoint.
    pub fn release(&mut self, name: &str) -> bool {
        let number = self.by_name.get(&name.to_ascii_lowercase()).copied();
        number.map(|number| self.remove_from(number)).is_some()
    }

    fn remove_from(&mut self, number: u64) {
        for removed in self.by_age.split_off(&number).into_values() {
            self.by_name.remove(&removed.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_savepoint_replaces_one_of_its_name() {
        let mut s = Savepoints::default();
        s.set("a", 1);
        s.set("b", 2);
        s.set("A", 3);
        assert_eq!(s.changes_before("a"), Some(3));
        s.remove_newer("B");
        assert_eq!(s.changes_before("a"), None, "it is newer than b now");
        assert_eq!(s.changes_before("b"), Some(2));
    }

    #[test]
    fn release_removes_newer_savepoints() {
        let mut s = Savepoints::default();
        for (name, changes) in [("a", 1), ("b", 2), ("c", 3)] {
            s.set(name, changes);
        }
        assert!(s.release("b"));
        assert!(!s.release("c"));
        assert!(s.release("a") && s.is_empty());
        s.set("b", 7);
        assert_eq!(s.changes_before("b"), Some(7));
    }
}
