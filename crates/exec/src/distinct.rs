//! Rows without their duplicates: keys seen so far in a hash set, and beyond its memory by sorting.
//!
//! # Invariants
//! D1. A row is given once: at once while its key finds room in the set, else from the sorted rest, whose keys the set does not hold
//!     (once a row was put off, the set takes no more keys).

use nfold_plan::expr::Expr;
use nfold_types::SqlError;
use rustc_hash::FxHashSet;

use crate::eval::Val;
use crate::runtime::Runtime;
use crate::sort::Sorter;
use crate::tuple::KeyMaker;

/// A key's cost in the set beyond its bytes.
pub(crate) const KEY_BYTES: usize = 48;

/// Rows seen so far; see the module.
pub(crate) struct Distinct {
    maker: KeyMaker,
    seen: FxHashSet<Vec<u8>>,
    bytes: usize,
    limit_bytes: usize,
    rest: Option<Sorter>,
}

impl Distinct {
    pub fn new(select: &[Expr], limit_bytes: usize) -> Distinct {
        Distinct {
            maker: KeyMaker::new(select.iter().map(|e| (&e.ty, false))),
            seen: FxHashSet::default(),
            bytes: 0,
            limit_bytes: limit_bytes.max(64 << 10),
            rest: None,
        }
    }

    /// Whether the row is known to be new. If that is not known yet, what `row` appends is kept for [`Distinct::put_off`].
    pub fn is_new(
        &mut self,
        rt: &Runtime<'_>,
        values: &[Val<'_>],
        row: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<bool, SqlError> {
        let mut key = Vec::new();
        self.maker.push_all(values, &mut key)?;
        if self.seen.contains(&key) {
            return Ok(false);
        }
        if self.rest.is_none() && self.bytes < self.limit_bytes {
            self.bytes += key.len() + KEY_BYTES;
            self.seen.insert(key);
            return Ok(true);
        }
        let limit = self.limit_bytes;
        let mut image = Vec::new();
        row(&mut image)?;
        self.rest
            .get_or_insert_with(|| Sorter::new(limit, 0))
            .push(rt, &key, &image)?;
        Ok(false)
    }

    /// Gives the rows that were put off, each once, until `f` wants no more.
    pub fn put_off(
        self,
        rt: &Runtime<'_>,
        f: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let Some(rest) = self.rest else {
            return Ok(());
        };
        drop(self.seen);
        let mut sorted = rest.finish(rt)?;
        let mut last: Option<Vec<u8>> = None;
        let mut n = 0u32;
        while let Some((key, row)) = sorted.next(rt)? {
            n = n.wrapping_add(1);
            if n.is_multiple_of(1024) {
                rt.tick()?;
            }
            if last.as_deref() == Some(key) {
                continue;
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            if !f(row)? {
                break;
            }
        }
        Ok(())
    }
}
