//! Reduces row images to the columns that the statement reads, so that less is sorted and stored.

use nfold_plan::expr::ExprType;
use nfold_types::row::{RowColumn, RowLayout};
use nfold_types::{ColumnType, SqlError};

use crate::expr::eval::{ABSENT, RowRef, row_error};
use crate::operators::step::Slot;

/// The minimum number of bytes that a reduction must save: building another image costs as much.
const WORTH_BYTES: u64 = 48;

/// The expected size of a column in bytes. Strings are mostly shorter than their maximum.
fn expected_bytes(ty: &ColumnType) -> u64 {
    match ty.is_string() {
        true => ExprType::new(ty.clone(), true).max_length() / 2,
        false => 8,
    }
}

/// See the module.
pub(super) struct Narrow {
    layout: RowLayout,
    /// For each column of the slot, its position in the reduced image.
    places: Vec<u16>,
    /// The columns in the reduced image.
    columns: Vec<u16>,
}

impl Narrow {
    /// `None` if the reduction does not pay. `used`: for each column of the slot, whether it is
    /// read.
    pub fn new(slot: &Slot, used: &[bool]) -> Option<Narrow> {
        let whole = slot.layout().columns();
        let mut places = vec![ABSENT; used.len()];
        let (mut columns, mut kept) = (Vec::new(), Vec::new());
        for (column, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            let own = slot.ordinal(column).and_then(|n| whole.get(n))?;
            places[column] = columns.len() as u16;
            columns.push(column as u16);
            kept.push(RowColumn {
                ty: own.ty.clone(),
                nullable: true,
            });
        }
        let unused = used.iter().enumerate().filter(|(_, used)| !**used);
        let spared = unused.filter_map(|(n, _)| whole.get(slot.ordinal(n)?));
        let spared: u64 = spared.map(|c| expected_bytes(&c.ty)).sum();
        (spared >= WORTH_BYTES).then(|| Narrow {
            layout: RowLayout::new(0, kept),
            places,
            columns,
        })
    }

    /// Writes the reduced image of a row to `out`; false: the row is NULL.
    pub fn encode(&self, row: &RowRef<'_>, out: &mut Vec<u8>) -> Result<bool, SqlError> {
        if row.image.is_none() {
            return Ok(false);
        }
        out.clear();
        let mut failed = None;
        let values = self.columns.iter().map_while(|c| match row.get(*c) {
            Ok(v) => Some(v),
            Err(e) => {
                failed = Some(e);
                None
            }
        });
        let done = self.layout.encode(values, out);
        match failed.or(done.err()) {
            None => Ok(true),
            Some(e) => Err(row_error(&e)),
        }
    }

    pub fn row<'a>(&'a self, image: Option<&'a [u8]>) -> RowRef<'a> {
        RowRef {
            layout: &self.layout,
            image,
            places: Some(&self.places),
        }
    }
}
