//! Binding of a key part that is not the first of its index, for skip scans.

use nfold_engine::{EqualityKeys, KeyRange, Table};
use nfold_plan::query::AccessKind;
use nfold_types::SqlError;

use super::range::PartBounds;
use super::{BoundAccess, product};
use crate::expr::eval::EvalCx;

/// The values of one key part.
#[derive(Default)]
pub(crate) struct Suffixes {
    keys: EqualityKeys,
    bounds: Option<PartBounds>,
    /// All values, which are then tested on the rows.
    all: bool,
}

impl Suffixes {
    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.bounds.is_none() && !self.all
    }

    /// Appends the ranges of keys that begin with `prefix` and go on with one of the values.
    pub fn under(&self, prefix: &[u8], out: &mut Vec<KeyRange>) {
        if self.all {
            out.push(KeyRange::prefix(prefix));
            return;
        }
        out.extend(self.bounds.iter().map(|bounds| bounds.under(prefix)));
        let mut key = prefix.to_vec();
        for suffix in self.keys.iter() {
            key.truncate(prefix.len());
            key.extend_from_slice(suffix);
            out.push(KeyRange::prefix(&key));
        }
    }
}

impl BoundAccess {
    /// The values of key part `at` by an equality or a range over this part alone.
    pub fn bind_suffix<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        table: &Table,
        (index, at): (usize, usize),
        kind: &'a AccessKind,
    ) -> Result<Suffixes, SqlError> {
        let layout = table.key_layout(index);
        let mut suffixes = Suffixes::default();
        match kind {
            AccessKind::Points(parts) if parts.len() == 1 => {
                self.points.clear();
                self.unkeyed = false;
                self.scratch.clear();
                self.encode_single(cx, layout, at, &parts[0])?;
                let s = &mut self.scratch;
                suffixes.all = !s.near.is_empty() || self.unkeyed;
                if !(suffixes.all || s.members.is_empty() && s.words.is_empty()) {
                    s.groups.push((0, s.members.len() as u32));
                    s.spell_out();
                    product(s, &mut suffixes.keys);
                    suffixes.keys.seal();
                }
            }
            AccessKind::Range { prefix, range } if prefix.is_empty() => {
                suffixes.bounds = self.range(cx, layout, at, range)?;
            }
            AccessKind::Empty => {}
            _ => suffixes.all = true,
        }
        Ok(suffixes)
    }
}
