//! The keys of a row's entries in one secondary index. An ordinary index has one entry for a row. A
//! multi-valued index has one for each distinct element of the row's array, one with NULL where the
//! array is NULL, and none where it is empty.
//!
//! # Cost
//! One allocation for each key. Reads and writes of ordinary indexes make their only key in a
//! buffer of their own, by [`Table::secondary_key`].

use nfold_types::key::Elements;
use nfold_types::row::{RowError, RowLayout};
use nfold_types::{ValueRef, key::KeyError};

use crate::error::Stop;
use crate::table::Table;

impl Table {
    /// The keys (parts, then `primary`) of a row image's entries in index `ordinal`, in key order.
    pub fn entry_keys(
        &self,
        ordinal: usize,
        row: &[u8],
        primary: &[u8],
    ) -> Result<Vec<Vec<u8>>, Stop> {
        let mut keys = Vec::new();
        self.each_entry_key(ordinal, row, primary, &mut |key| {
            keys.push(key.to_vec());
            true
        })?;
        Ok(keys)
    }

    /// Whether a row image has an entry with this key in index `ordinal`.
    pub(crate) fn has_entry_key(
        &self,
        ordinal: usize,
        row: &[u8],
        (key, primary): (&[u8], &[u8]),
        buffer: &mut Vec<u8>,
    ) -> Result<bool, Stop> {
        if !self.index(ordinal).is_multi_valued() {
            buffer.clear();
            self.secondary_key(ordinal, row, primary, buffer)?;
            return Ok(buffer == key);
        }
        let mut found = false;
        self.each_entry_key(ordinal, row, primary, &mut |own| {
            found |= own == key;
            !found
        })?;
        Ok(found)
    }

    /// Calls `visit` with each key, until it returns false.
    fn each_entry_key(
        &self,
        ordinal: usize,
        row: &[u8],
        primary: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Stop> {
        let index = self.index(ordinal);
        let parts = index.key.parts();
        let external = |part: &nfold_types::key::KeyPart| {
            let field = self.layout().raw(row, part.ordinal);
            field.is_ok_and(|field| field.pointer().is_some())
        };
        let whole = match RowLayout::has_external(row) && parts.iter().any(external) {
            true => Some(self.row_of_index(ordinal, row)?),
            false => None,
        };
        let row = whole.as_deref().unwrap_or(row);
        let Some(array) = index.array_part() else {
            let mut key = Vec::new();
            self.secondary_key(ordinal, row, primary, &mut key)?;
            visit(&key);
            return Ok(());
        };
        let packed = self.layout().var_bytes(row, parts[array].ordinal);
        let packed = packed.map_err(|_: RowError| self.corrupt_row())?;
        let failed = |e: KeyError| self.key_error(ordinal, e);
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        for (n, part) in parts.iter().enumerate().filter(|(n, _)| *n != array) {
            let value = self.layout().get(row, part.ordinal);
            let value = value.map_err(|_| self.corrupt_row())?;
            let out = if n < array { &mut before } else { &mut behind };
            index.key.encode_part(n, value, out).map_err(failed)?;
        }
        behind.extend_from_slice(primary);
        let Some(packed) = packed else {
            index
                .key
                .encode_part(array, ValueRef::Null, &mut before)
                .map_err(failed)?;
            before.extend_from_slice(&behind);
            visit(&before);
            return Ok(());
        };
        let start = before.len();
        for element in Elements(packed) {
            before.truncate(start);
            before.extend_from_slice(element);
            before.extend_from_slice(&behind);
            if !visit(&before) {
                break;
            }
        }
        Ok(())
    }

    /// Whether a row has an entry in index `ordinal` whose key begins with one of `prefixes`. A
    /// reader that looks up several elements uses a row only for the first one that finds it.
    pub fn has_entry_below(
        &self,
        ordinal: usize,
        row: &[u8],
        prefixes: &[&[u8]],
    ) -> Result<bool, Stop> {
        let mut found = false;
        self.each_entry_key(ordinal, row, &[], &mut |key| {
            found = prefixes.iter().any(|prefix| key.starts_with(prefix));
            !found
        })?;
        Ok(found)
    }
}
