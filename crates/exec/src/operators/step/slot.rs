//! The sources of a block's row slots, and how their images are read.

use std::sync::Arc;

use nfold_catalog::{ColumnDef, TableDef};
use nfold_engine::{RowLock, Table};
use nfold_plan::expr::ExprType;
use nfold_plan::json_table::JsonTableShape;
use nfold_plan::query::{Access, AccessKind, Block, QueryPlan, TableSource};
use nfold_types::SqlError;
use nfold_types::row::RowLayout;

use super::row_lock;
use crate::expr::eval::tuple;
use crate::expr::eval::{ABSENT, RowRef};
use crate::expr::kernels::Images;
use crate::operators::row_out::RowOut;
use crate::runtime::Runtime;

/// The query of a derived table, with its operators. A trait, because the `query` folder lies above
/// the operators.
pub(crate) trait DerivedTable {
    /// Runs the query, and passes its rows to `out`.
    fn run(
        &self,
        rt: &Runtime<'_>,
        q: &QueryPlan,
        outer: &[&[RowRef<'_>]],
        out: &mut dyn RowOut,
    ) -> Result<(), SqlError>;

    /// Runs the query, and passes each row's image, in `layout`, to `push`.
    fn collect(
        &self,
        rt: &Runtime<'_>,
        q: &QueryPlan,
        outer: &[&[RowRef<'_>]],
        layout: &RowLayout,
        push: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError>;

    /// The memory that it keeps between executions, approximately, in bytes.
    fn memory(&self) -> usize;
}

/// The source of a slot's rows, opened.
pub(crate) enum Source {
    Table(Arc<Table>),
    Derived(Box<dyn DerivedTable>),
    Virtual(Arc<TableDef>),
    Json(Arc<JsonTableShape>),
}

/// Whether the statement changes the rows of a slot, so that their hidden row ids are read.
fn has_ids(block: &Block, table: usize) -> bool {
    let keyless = |def: &TableDef| !def.has_primary_key();
    block.changes(table)
        && matches!(&block.tables[table].source, TableSource::Table(def) if keyless(def))
}

/// Whether batches of joined rows keep hidden row ids.
pub(crate) fn keeps_ids(block: &Block) -> bool {
    block.changed != 0 && (0..block.tables.len()).any(|table| has_ids(block, table))
}

fn layout_of_columns(columns: &[ColumnDef]) -> RowLayout {
    let types = columns.iter().map(|c| ExprType::new(c.ty.clone(), true));
    tuple::layout_of(&types.collect::<Vec<_>>())
}

/// An opened row slot.
pub(crate) struct Slot {
    pub source: Source,
    /// The layout of computed rows. A table has its own.
    made: Option<RowLayout>,
    /// The index of a covering read, whose rows have the layout of the index.
    covering: Option<usize>,
    places: Option<Vec<u16>>,
    /// See [`has_ids`].
    pub has_ids: bool,
}

impl Slot {
    pub fn open(
        rt: &Runtime<'_>,
        block: &Block,
        table: usize,
        access: &Access,
        derived: fn() -> Box<dyn DerivedTable>,
    ) -> Result<Slot, SqlError> {
        let source = match &block.tables[table].source {
            TableSource::Table(def) => Source::Table(rt.table(def.id)?),
            TableSource::Derived(_) => Source::Derived(derived()),
            TableSource::Virtual(v) => Source::Virtual(v.clone()),
            TableSource::Json(table) => Source::Json(table.shape.clone()),
        };
        let access = match &access.kind {
            AccessKind::Hash { build, .. } => build,
            _ => access,
        };
        let (mut covering, mut places, mut made) = (None, None, None);
        if let TableSource::Derived(q) = &block.tables[table].source {
            made = Some(tuple::layout_of(&q.types));
        }
        match &source {
            Source::Table(t)
                if access.covering && row_lock(rt, block, table) != RowLock::Exclusive =>
            {
                covering = Some(access.index);
                let mut map = vec![ABSENT; t.def().columns.len()];
                for (place, &column) in t.index_columns(access.index).iter().enumerate() {
                    map[column] = place as u16;
                }
                places = Some(map);
            }
            Source::Table(_) | Source::Derived(_) => {}
            Source::Virtual(v) => made = Some(layout_of_columns(&v.columns)),
            Source::Json(shape) => made = Some(layout_of_columns(&shape.columns)),
        }
        Ok(Slot {
            source,
            made,
            covering,
            places,
            has_ids: has_ids(block, table),
        })
    }

    pub fn layout(&self) -> &RowLayout {
        match (&self.source, &self.made) {
            (_, Some(made)) => made,
            (Source::Table(t), None) => match self.covering {
                Some(i) => t.index_layout(i),
                None => t.layout(),
            },
            _ => unreachable!("derived rows have a layout of their own"),
        }
    }

    /// The position in the images of the table's column `column`; `None` if they lack it.
    pub fn ordinal(&self, column: usize) -> Option<usize> {
        match &self.places {
            None => Some(column),
            Some(places) => places
                .get(column)
                .filter(|&&p| p != ABSENT)
                .map(|&p| p.into()),
        }
    }

    /// The slot's images, for a kernel. `ordinal` is [`Self::ordinal`].
    pub fn images<'a>(
        &'a self,
        table: usize,
        ordinal: &'a dyn Fn(usize) -> Option<usize>,
    ) -> Images<'a> {
        Images {
            table,
            layout: self.layout(),
            ordinal,
        }
    }

    #[inline]
    pub fn row<'a>(&'a self, image: Option<&'a [u8]>) -> RowRef<'a> {
        RowRef {
            layout: self.layout(),
            image,
            places: self.places.as_deref(),
        }
    }
}
