//! Puts rows of derived tables and set operations together: columns are copied from the images
//! that hold them, other values are evaluated.
//!
//! # Cost
//! A copied column is neither decoded nor encoded.

use nfold_plan::expr::Expr;
use nfold_types::SqlError;
use nfold_types::row::{Field, FieldCopy, RawField, RowError, RowLayout};
use smallvec::SmallVec;

use crate::expr::eval::tuple::{self, Fitted};
use crate::expr::eval::{ABSENT, EvalCx, Val, row_error};

/// The source of a column.
#[derive(Clone, Copy)]
enum Column {
    Stored {
        table: usize,
        ordinal: usize,
        copy: FieldCopy,
    },
    Evaluated,
}

impl Column {
    /// Whether the row image that holds the column has fields on overflow pages.
    fn is_external(&self, cx: &EvalCx<'_>) -> bool {
        match self {
            Column::Stored { table, .. } => {
                cx.rows[*table].image.is_some_and(RowLayout::has_external)
            }
            Column::Evaluated => false,
        }
    }
}

/// Copies the rows that a list of expressions describes.
#[derive(Default)]
pub(crate) struct RowCopier {
    /// The address of the expressions for which the columns are prepared.
    prepared: Option<usize>,
    columns: SmallVec<[Column; 8]>,
    /// Whether a column is copied.
    copies: bool,
}

impl RowCopier {
    /// Appends the image in `layout` of the row of `select`. `value` evaluates the expression of a
    /// number. Returns false, without an effect, if all of the row has to be evaluated.
    pub fn append<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        select: &'a [Expr],
        layout: &RowLayout,
        value: impl Fn(usize) -> Result<Val<'a>, SqlError>,
        out: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        let address = select.as_ptr() as usize;
        if self.prepared != Some(address) {
            self.prepare(cx, select, layout);
            self.prepared = Some(address);
        }
        // A value on overflow pages has to be read. No value is evaluated before this is known, as
        // the caller evaluates them again.
        if !self.copies || self.columns.iter().any(|column| column.is_external(cx)) {
            return Ok(false);
        }
        let mut values: SmallVec<[Val<'a>; 4]> = SmallVec::new();
        for (n, column) in self.columns.iter().enumerate() {
            if let Column::Evaluated = column {
                values.push(value(n)?);
            }
        }
        let evaluated = |(_, column): &(usize, &Column)| matches!(column, Column::Evaluated);
        let places = self.columns.iter().enumerate().filter(evaluated);
        let mut fitted: SmallVec<[Fitted<'_>; 4]> = SmallVec::new();
        for (value, (n, _)) in values.iter().zip(places) {
            fitted.push(tuple::fit(value, &layout.columns()[n].ty)?);
        }
        let mut fitted = fitted.iter();
        let fields = self.columns.iter().map(|column| match *column {
            Column::Stored {
                table,
                ordinal,
                copy,
            } => {
                let row = &cx.rows[table];
                let field = match row.image {
                    Some(image) => row.layout.raw(image, ordinal)?,
                    None => RawField::Null,
                };
                Ok(Field::Stored(field, copy))
            }
            Column::Evaluated => match fitted.next() {
                Some(value) => Ok(Field::Value(value.as_ref())),
                None => Err(RowError::WrongCount),
            },
        });
        let done = layout.encode_fields(fields, out);
        done.map_err(|e| row_error(&e))?;
        Ok(true)
    }

    fn prepare(&mut self, cx: &EvalCx<'_>, select: &[Expr], layout: &RowLayout) {
        let stored = |(e, to): (&Expr, &nfold_types::row::RowColumn)| {
            let at = e.as_column()?;
            let (table, column) = (usize::from(at.table), usize::from(at.column));
            let row = cx.rows.get(table)?;
            let ordinal = match row.places {
                None => column,
                Some(places) => usize::from(*places.get(column).filter(|&&p| p != ABSENT)?),
            };
            let from = &row.layout.columns().get(ordinal)?.ty;
            Some(Column::Stored {
                table,
                ordinal,
                copy: FieldCopy::between(from, &to.ty)?,
            })
        };
        let columns = select.iter().zip(layout.columns());
        self.columns = columns
            .map(|column| stored(column).unwrap_or(Column::Evaluated))
            .collect();
        let copied = |column: &Column| matches!(column, Column::Stored { .. });
        self.copies = self.columns.iter().any(copied);
    }
}
