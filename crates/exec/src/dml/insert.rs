//! INSERT and REPLACE: rows from VALUES, from a parameter list, from a query or from a file.

use std::borrow::Cow;
use std::sync::Arc;
use std::thread::LocalKey;

use nfold_catalog::{ColumnDef, ColumnDefault};
use nfold_engine::{RowBatch, Table};
use nfold_plan::expr::{Expr, ExprKind, ExprType};
use nfold_plan::query::{InsertPlan, InsertSource, QueryBody, QueryPlan, TableSource};
use nfold_plan::table_exprs::TableExprs;
use nfold_types::convert::store::implicit_default;
use nfold_types::row::{RowError, RowLayout};
use nfold_types::{CollationId, ErrorCode, SqlError, TypeKind, Value, ValueRef};
use smallvec::SmallVec;

use super::auto_increment::AutoIncrement;
use super::duplicate::fail_or_warn;
use super::later_inserts::LaterInserts;
use super::pipeline::{ROWS_PER_TICK, RowOutcome, TableChanges};
use super::row_exprs::CompletedRow;
use crate::env::FileSource;
use crate::env::scratch::{Memory, Pool, Pooled};
use crate::expr::documents;
use crate::expr::eval::constant_checks::check_time_points;
use crate::expr::eval::tuple;
use crate::expr::eval::{EvalCx, NoSubqueries, RowRef, StmtState, Val, convert, row_error};
use crate::operators::column_values::ColumnValues;
use crate::operators::row_out::RowOut;
use crate::query::CachedQuery;
use crate::query::subquery::{BlockSubqueries, CachedSubquery};
use crate::runtime::Runtime;
use crate::runtime::result::{ChangeSummary, StatementResult};
use crate::runtime::spill::Spool;

/// Inserts the rows of a query of plain columns ([`is_plain`]), without an image of each row:
/// copying a large text takes as long as reading it.
struct PlainRows<'p, 'i, 's> {
    inserting: &'p mut Inserting<'i, 's>,
    /// Whether all its tables are stored, so that each value fits its column's type.
    from_stored: bool,
}

impl RowOut for PlainRows<'_, '_, '_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        let inserting = &mut *self.inserting;
        inserting.begin_row()?;
        let rt = inserting.rt;
        let state = rt.state(&NoSubqueries);
        let to = EvalCx {
            rows: &[],
            outer: &[],
            st: &state,
        };
        let mut long = LongTexts::new();
        for (i, e) in select.iter().enumerate() {
            match cx.val(e)? {
                Val::Bytes(text) if self.from_stored && inserting.keeps(i, &text, &e.ty) => {
                    long.push((inserting.plan.columns[i], text));
                }
                value => inserting.store_column(&to, i, value, &e.ty)?,
            }
        }
        inserting.finish_row(&long)?;
        Ok(true)
    }
}

/// Long texts of the current row that are stored as they are, by column. The engine takes them
/// beside the row's image where it can; otherwise they are copied only once, into that image.
/// [`Inserting::row`] has NULL in their places.
type LongTexts<'a> = SmallVec<[(usize, Cow<'a, [u8]>); 1]>;

/// See [`nfold_engine::ValuesBeside`].
type Beside<'a> = SmallVec<[(usize, &'a [u8]); 1]>;

/// The least size of a long text in bytes. Shorter ones are cheap to copy.
const LONG_TEXT_BYTES: usize = 4096;

/// Whether a query returns columns of a type that its row images hold unchanged.
fn is_plain(q: &QueryPlan) -> bool {
    let QueryBody::Block(block) = &q.body else {
        return false;
    };
    block.select.len() == q.types.len()
        && block.select.iter().zip(&q.types).all(|(e, ty)| {
            let kind = &e.ty.col.kind;
            let number = e.ty.col.is_integer() && *kind != TypeKind::Year;
            let unchanged = matches!(
                kind,
                TypeKind::Decimal { .. }
                    | TypeKind::Float
                    | TypeKind::Double
                    | TypeKind::Date
                    | TypeKind::Time(_)
                    | TypeKind::DateTime(_)
            );
            let is_held = number || unchanged || e.ty.col.is_string();
            matches!(e.kind, ExprKind::Column(_)) && is_held && e.ty == *ty
        })
}

/// Whether a query reads stored tables alone.
fn is_from_stored(q: &QueryPlan) -> bool {
    let QueryBody::Block(block) = &q.body else {
        return false;
    };
    (block.tables.iter()).all(|t| matches!(t.source, TableSource::Table(_)))
}

/// The state of a running INSERT or REPLACE.
pub(super) struct Inserting<'i, 's> {
    pub rt: &'i Runtime<'s>,
    pub plan: &'i InsertPlan,
    /// The table. Borrowed, because sessions share its reference count.
    pub table: &'i Arc<Table>,
    pub changes: TableChanges,
    pub values: ColumnValues,
    pub automatic: AutoIncrement,
    /// The current row: one value for each column.
    pub row: Vec<Value>,
    /// For each column, whether the statement names it.
    pub named: Vec<bool>,
    /// The columns that it does not name.
    pub unnamed: Vec<usize>,
    /// The AUTO_INCREMENT column.
    auto_increment: Option<usize>,
    /// The layout and the current row of the query, if ON DUPLICATE KEY UPDATE names columns of its
    /// tables.
    pub source: Option<(RowLayout, Vec<u8>)>,
    /// The number of the current row, from 1.
    pub rows: u64,
    pub affected: u64,
    /// Rows that are in the table now.
    pub inserted: u64,
    /// The number of duplicates in the OK packet's text.
    pub duplicates: u64,
    /// The number of rows that ON DUPLICATE KEY UPDATE has found and not changed.
    pub unchanged: u64,
    /// The number of rows that a constraint rejected (IGNORE).
    pub refused: u64,
    /// How many of them the row numbers of warnings leave out.
    unnumbered: u64,
    /// The existing rows with a key of the current row.
    pub conflicting: RowBatch,
    pub later: LaterInserts,
}

/// Memory for the current row of an INSERT, for reuse by the next one on the thread.
#[derive(Default)]
struct RowMemory {
    /// See [`Inserting::row`].
    row: Vec<Value>,
    /// See [`Inserting::named`].
    named: Vec<bool>,
    /// See [`Inserting::unnamed`].
    unnamed: Vec<usize>,
    /// See [`ColumnValues::buffers`].
    buffers: Vec<Vec<u8>>,
}

thread_local! {
    static ROW_MEMORY: Pool<RowMemory> = const { Pool::new() };
}

impl Memory for RowMemory {
    fn pool() -> &'static LocalKey<Pool<RowMemory>> {
        &ROW_MEMORY
    }

    fn clear(&mut self) {
        self.row.clear();
        self.named.clear();
        self.unnamed.clear();
    }

    fn bytes(&self) -> usize {
        let values = self.row.capacity() * size_of::<Value>() + self.named.capacity();
        values + self.buffers.iter().map(Vec::capacity).sum::<usize>()
    }
}

/// Runs an INSERT or REPLACE, to the last row or to the first error; the caller then undoes the
/// statement. `query` holds the operators of INSERT ... SELECT, for reuse; `file` is what LOAD DATA
/// reads.
#[inline]
pub(crate) fn insert(
    rt: &Runtime<'_>,
    plan: &InsertPlan,
    query: &CachedQuery,
    file: Option<&mut dyn FileSource>,
) -> Result<StatementResult, SqlError> {
    let table = rt.table(plan.table.id)?;
    let columns = table.def().columns.len();
    let rows = match &plan.source {
        InsertSource::Rows(rows) => rows.len(),
        InsertSource::Param(n) => {
            let (members, width) = rt.params.list(*n);
            members.len() / width.max(1)
        }
        InsertSource::Query(_) | InsertSource::File(_) => 0,
    };
    let several = rows != 1;
    let mut memory = Pooled::<RowMemory>::take();
    let RowMemory {
        row,
        mut named,
        mut unnamed,
        buffers,
    } = std::mem::take(&mut *memory);
    named.resize(columns, false);
    plan.columns.iter().for_each(|&c| named[c] = true);
    unnamed.extend((0..columns).filter(|&c| !named[c]));
    let values = ColumnValues::new(rt, plan.ignore, !several);
    *values.buffers.borrow_mut() = buffers;
    let mut inserting = Inserting {
        rt,
        plan,
        table: &table,
        values,
        changes: TableChanges::new(
            rt,
            table.clone(),
            plan.exprs.as_ref(),
            plan.foreign.as_ref(),
            plan.ignore,
        ),
        automatic: AutoIncrement::new(rows as u64),
        row,
        named,
        unnamed,
        auto_increment: table.def().auto_increment_column(),
        source: None,
        rows: 0,
        affected: 0,
        inserted: 0,
        duplicates: 0,
        unchanged: 0,
        refused: 0,
        unnumbered: 0,
        conflicting: RowBatch::new(),
        later: LaterInserts::default(),
    };
    inserting.changes.set_view(plan.view.as_ref());
    let named = plan.columns.iter().copied();
    let assigned = plan.on_duplicate.iter().map(|a| a.column);
    let all = table.def().columns.iter().enumerate();
    let stamped = all.filter(|(_, c)| c.on_update_now.is_some() && !plan.on_duplicate.is_empty());
    let written = named.chain(assigned).chain(stamped.map(|(c, _)| c));
    inserting.changes.set_written(written);
    if several {
        let foreign = !inserting.changes.can_defer_inserts();
        inserting.later = LaterInserts::new(plan, foreign, rows > 1);
    }
    let mut done = inserting.all(query, file);
    if several {
        done = inserting.finish_later_rows(done);
    }
    inserting.values.reuse(&mut inserting.row);
    *memory = RowMemory {
        row: std::mem::take(&mut inserting.row),
        named: std::mem::take(&mut inserting.named),
        unnamed: std::mem::take(&mut inserting.unnamed),
        buffers: inserting.values.buffers.take(),
    };
    // As in MySQL, rows that an error takes back count here.
    if let (Err(_), Some(id)) = (&done, inserting.automatic.generated) {
        rt.env.set_last_insert_id(id);
    }
    match (done, &plan.view) {
        (Err(e), Some(view)) if e.code == ErrorCode::ER_NO_DEFAULT_FOR_FIELD => {
            let code = ErrorCode::ER_NO_DEFAULT_FOR_VIEW_FIELD;
            Err(SqlError::new(code, &[&view.schema, &view.name]))
        }
        (Err(e), _) => Err(e),
        (Ok(()), _) if matches!(plan.source, InsertSource::File(_)) => {
            Ok(inserting.result_of_load())
        }
        (Ok(()), _) => Ok(inserting.result(several)),
    }
}

impl<'i> Inserting<'i, '_> {
    /// The statement's result for the client and the session, after all rows. `several`: the client
    /// gets a text with the counts, as for any statement but INSERT of one row.
    fn result(&self, several: bool) -> StatementResult {
        let AutoIncrement {
            generated,
            explicit,
            ..
        } = self.automatic;
        // An explicit AUTO_INCREMENT value is reported only if a row was inserted.
        let counts = match (&self.plan.source, self.plan.on_duplicate.is_empty()) {
            (_, true) => self.affected > 0,
            (InsertSource::Query(_), false) => false,
            _ => true,
        };
        let explicit = explicit.filter(|_| counts);
        StatementResult {
            affected: self.affected,
            matched: self.affected + self.unchanged,
            last_insert_id: generated.or(explicit).unwrap_or(0),
            generated_id: generated,
            summary: several.then(|| ChangeSummary::Insert {
                records: self.rows - self.refused,
                duplicates: self.duplicates,
                unchanged: match &self.plan.source {
                    InsertSource::Query(_) => 0,
                    _ if self.plan.ignore => 0,
                    _ => self.unchanged,
                },
                warnings: self.rt.warnings.borrow().total(),
            }),
            ..StatementResult::default()
        }
    }

    /// Inserts the rows of VALUES.
    fn rows_of_values(
        &mut self,
        rows: &'i [Vec<Option<Expr>>],
        state: &StmtState<'_>,
    ) -> Result<(), SqlError> {
        let looks_back = self.looks_back(rows);
        let table = self.table;
        let incomplete = looks_back.then(|| row_layout(table));
        let layout = incomplete.as_ref().unwrap_or(table.layout());
        for row in rows {
            self.begin_row()?;
            self.assign_exprs(row, state, layout, looks_back)?;
            self.finish_row(&[])?;
        }
        Ok(())
    }

    /// Inserts all rows.
    fn all(
        &mut self,
        query: &CachedQuery,
        file: Option<&mut dyn FileSource>,
    ) -> Result<(), SqlError> {
        let (rt, plan) = (self.rt, self.plan);
        match &plan.source {
            InsertSource::Rows(_) | InsertSource::File(_) => {
                let kept = CachedSubquery::of(&plan.subqueries);
                let subqueries = BlockSubqueries::new(rt, &plan.subqueries, &kept);
                let state = rt.state(&subqueries);
                if !plan.constant_checks.is_empty() {
                    let cx = EvalCx {
                        rows: &[],
                        outer: &[],
                        st: &state,
                    };
                    check_time_points(&cx, &plan.constant_checks)?;
                }
                match (&plan.source, file) {
                    (InsertSource::Rows(rows), _) => self.rows_of_values(rows, &state)?,
                    (InsertSource::File(rows), Some(file)) => {
                        self.rows_of_file(rows, file, &state)?;
                    }
                    _ => return Err(SqlError::not_supported("LOAD DATA without a file")),
                }
            }
            InsertSource::Param(n) => {
                let (members, width) = rt.params.rows(*n);
                let from = rt.env.collation();
                let def = self.table.def();
                let (mut at, mut row) = (0, 0);
                for (value, binary) in members {
                    if at == 0 {
                        self.begin_row()?;
                        row = self.number();
                    }
                    let c = plan.columns[at];
                    let column = &def.columns[c];
                    let stored = match value {
                        ValueRef::Bytes(b) if binary && column.ty.is_numeric() => {
                            let number = binary_number(b, column.ty.is_integer());
                            self.values.store_ref(rt, column, number, from, row)
                        }
                        _ if binary => {
                            self.values
                                .store_ref(rt, column, value, CollationId::BINARY, row)
                        }
                        _ => self.values.store_ref(rt, column, value, from, row),
                    };
                    self.row[c] =
                        stored.map_err(|e| documents::with_table(e, &def.name, &column.name))?;
                    self.not_null(c)?;
                    at += 1;
                    if at == width {
                        at = 0;
                        self.finish_row(&[])?;
                    }
                }
            }
            InsertSource::Query(q) => {
                let layout = tuple::layout_of(&q.types);
                let named = q.types.len() > plan.columns.len();
                self.source = named.then(|| (tuple::layout_of(&q.types), Vec::new()));
                if !reads(q, self.table.def().id) {
                    if !named && is_plain(q) {
                        let mut rows = PlainRows {
                            from_stored: is_from_stored(q),
                            inserting: self,
                        };
                        return query.run(rt, q, &[], &mut rows);
                    }
                    return query.collect(rt, q, &[], &layout, &mut |image| {
                        self.write_image(&layout, q, image)
                    });
                }
                // The query reads the target table: all rows are read before the first one is
                // inserted.
                let mut spool = Spool::new(rt.env.work_memory());
                query.collect(rt, q, &[], &layout, &mut |image| spool.push(rt, 0, image))?;
                spool.each(rt, &mut |_, image| {
                    self.write_image(&layout, q, image).map(|()| true)
                })?;
            }
        }
        Ok(())
    }

    /// Inserts one row of the query's result.
    fn write_image(
        &mut self,
        layout: &RowLayout,
        q: &QueryPlan,
        image: &[u8],
    ) -> Result<(), SqlError> {
        let rt = self.rt;
        self.begin_row()?;
        let state = rt.state(&NoSubqueries);
        let cx = EvalCx {
            rows: &[],
            outer: &[],
            st: &state,
        };
        if let Some((_, row)) = &mut self.source {
            row.clear();
            row.extend_from_slice(image);
        }
        for (i, ty) in q.types.iter().enumerate().take(self.plan.columns.len()) {
            let value = layout.get(image, i).map_err(|e| row_error(&e))?;
            self.store_column(&cx, i, Val::from_ref(value), ty)?;
        }
        self.finish_row(&[])
    }

    /// Whether value `i` of a row of the query is a long text that its column stores unchanged, and
    /// that no expression of the table reads before the row's image is complete.
    fn keeps(&self, i: usize, text: &[u8], ty: &ExprType) -> bool {
        let column = &self.table.def().columns[self.plan.columns[i]];
        text.len() >= LONG_TEXT_BYTES
            && column.ty.is_blob()
            && column.ty == ty.col
            && self.plan.exprs.is_none()
    }

    /// Stores value `i` of a row of the query in its column.
    fn store_column(
        &mut self,
        cx: &EvalCx<'_>,
        i: usize,
        value: Val<'_>,
        ty: &ExprType,
    ) -> Result<(), SqlError> {
        let column = self.plan.columns[i];
        let def = &self.table.def().columns[column];
        let stored = self.values.store(cx, def, value, ty, self.number());
        let table = &self.table.def().name;
        self.row[column] = stored.map_err(|e| documents::with_table(e, table, &def.name))?;
        self.not_null(column)
    }

    /// Starts a row: columns that the statement does not name get their defaults. A missing default
    /// is reported after the errors of named columns, by [`Self::finish_row`].
    pub(super) fn begin_row(&mut self) -> Result<(), SqlError> {
        self.count_row()?;
        self.values.reuse(&mut self.row);
        let def = self.table.def();
        self.row.resize(def.columns.len(), Value::Null);
        for &c in &self.unnamed {
            let column = &def.columns[c];
            if !lacks_default(column) {
                self.row[c] = self.values.default_value(self.rt, column)?;
            }
        }
        Ok(())
    }

    /// The first part of [`Self::begin_row`], for a row that replaces all values of the one before.
    #[inline]
    pub(super) fn count_row(&mut self) -> Result<(), SqlError> {
        self.rows += 1;
        match self.rows.is_multiple_of(ROWS_PER_TICK) {
            true => self.rt.tick(),
            false => Ok(()),
        }
    }

    /// The number of the row at hand in the text of warnings.
    pub(super) fn number(&self) -> u64 {
        self.rows - self.unnumbered
    }

    /// Whether an expression, or a subquery in it, may name columns of the new row. It then sees
    /// the new values of columns to its left, and the defaults of the others.
    fn looks_back(&self, rows: &[Vec<Option<Expr>>]) -> bool {
        let names_column = |e: &Expr| e.any(&mut |e| matches!(e.kind, ExprKind::Column(_)));
        self.plan.subqueries.iter().any(|q| q.correlated)
            || (self.plan.exprs.as_deref()).is_some_and(|e| !e.defaults.is_empty())
            || rows.iter().flatten().flatten().any(names_column)
    }

    /// Evaluates the expressions of a row. `None` means DEFAULT.
    fn assign_exprs(
        &mut self,
        exprs: &'i [Option<Expr>],
        state: &StmtState<'_>,
        layout: &RowLayout,
        looks_back: bool,
    ) -> Result<(), SqlError> {
        if looks_back {
            self.begin_named()?;
        }
        let mut image = Vec::new();
        for (i, e) in exprs.iter().enumerate() {
            let at = (self.plan.columns[i], e.as_ref());
            self.assign(at, state, layout, looks_back.then_some(&mut image))?;
        }
        Ok(())
    }

    /// Stores their defaults in the columns that expressions may read before they are assigned.
    pub(super) fn begin_named(&mut self) -> Result<(), SqlError> {
        let def = self.table.def();
        for (c, column) in def.columns.iter().enumerate() {
            if lacks_default(column) {
                self.row[c] = implicit_default(&column.ty);
            } else if self.named[c] {
                self.row[c] = self.values.default_value(self.rt, column)?;
            }
        }
        Ok(())
    }

    /// Evaluates an expression and stores its value in column `c`; `None` is DEFAULT. `image`: for
    /// the row so far, if the expression may name its columns.
    #[inline(always)]
    pub(super) fn assign(
        &mut self,
        (c, e): (usize, Option<&'i Expr>),
        state: &StmtState<'_>,
        layout: &RowLayout,
        mut image: Option<&mut Vec<u8>>,
    ) -> Result<(), SqlError> {
        let rt = self.rt;
        let def = self.table.def();
        let column = &def.columns[c];
        self.row[c] = match e {
            None => match self.plan.exprs.as_deref().and_then(|e| e.default_of(c)) {
                Some(e) => self.default_expr(e, c, (state, layout))?,
                None => self.values.default_value(rt, column)?,
            },
            Some(e) => {
                if let Some(image) = &mut image {
                    image.clear();
                    layout
                        .encode(self.row.iter().map(Value::as_ref), image)
                        .map_err(|e| row_error(&e))?;
                }
                let rows = [RowRef {
                    layout,
                    image: image.as_deref().map(Vec::as_slice),
                    places: None,
                }];
                let cx = EvalCx {
                    rows: &rows,
                    outer: &[],
                    st: state,
                };
                let v = cx.val(e)?;
                let stored = self.values.store(&cx, column, v, &e.ty, self.number());
                stored.map_err(|e| documents::with_table(e, &def.name, &column.name))?
            }
        };
        self.not_null(c)
    }

    /// Replaces a NULL in the NOT NULL column `c` by the implicit default of its type, or fails
    /// with error 1048.
    #[inline(always)]
    pub(super) fn not_null(&mut self, c: usize) -> Result<(), SqlError> {
        match self.row[c].is_null() {
            true => self.replace_null(c),
            false => Ok(()),
        }
    }

    #[inline(never)]
    fn replace_null(&mut self, c: usize) -> Result<(), SqlError> {
        let column = &self.table.def().columns[c];
        if !column.nullable && !column.auto_increment {
            self.row[c] = self.values.null_once(self.rt.warnings, column)?;
        }
        Ok(())
    }

    /// Completes the row with the remaining defaults and the automatic value, and inserts it.
    /// `long`: see [`LongTexts`].
    pub(super) fn finish_row(&mut self, long: &[(usize, Cow<'_, [u8]>)]) -> Result<(), SqlError> {
        let rt = self.rt;
        let table = self.table;
        let def = table.def();
        for &c in &self.unnamed {
            let column = &def.columns[c];
            if lacks_default(column) {
                // One warning for each statement.
                self.row[c] = if self.rows == 1 {
                    self.values.default_value(rt, column)?
                } else {
                    implicit_default(&column.ty)
                };
            }
        }
        if let Some(exprs) = &self.plan.exprs
            && !exprs.defaults.is_empty()
        {
            self.default_exprs(table, exprs)?;
        }
        let mut made = None;
        if let Some(c) = self.auto_increment {
            let zero_generates = !self.values.zero_is_a_value() || !self.named[c];
            self.insert_rows_before_value(c, zero_generates)?;
            let (column, row) = ((table, &def.columns[c]), (&self.values, self.number()));
            let value = &mut self.row[c];
            made = self
                .automatic
                .assign(rt, column, row, zero_generates, value)?;
        }
        rt.counts.sent.set(self.rows);
        let before = self.refused;
        let written = self.write(table, long, made);
        let refused = match &written {
            Err(e) => is_constraint_error(e),
            Ok(_) => self.refused > before,
        };
        if refused {
            self.automatic.row_refused(table, made);
            // As in MySQL, rows of VALUES behind it have the numbers that they had without it.
            let is_values = !matches!(
                self.plan.source,
                InsertSource::Query(_) | InsertSource::File(_)
            );
            self.unnumbered += u64::from(is_values);
        }
        let inserted = written?;
        if !refused {
            let row = (self.rows, made);
            self.automatic.row_done((rt, table), row, inserted)?;
        }
        self.inserted += u64::from(inserted);
        Ok(())
    }

    /// Where MySQL does so, counts the AUTO_INCREMENT value `v` of a row that is a duplicate.
    #[cold]
    fn count_duplicate(&mut self, table: &Table, v: u64) -> Result<(), SqlError> {
        match self.plan.source {
            InsertSource::Query(_) => self.rt.drive(|_| table.auto_increment_observe(v)),
            _ => Ok(()),
        }
    }

    /// Computes the DEFAULT (expression) of columns that the statement does not name, from left to
    /// right.
    fn default_exprs(&mut self, table: &Table, exprs: &TableExprs) -> Result<(), SqlError> {
        let layout = row_layout(table);
        let state = self.rt.state(&NoSubqueries);
        for d in &exprs.defaults {
            if !self.named[d.column] {
                self.row[d.column] = self.default_expr(&d.expr, d.column, (&state, &layout))?;
            }
        }
        Ok(())
    }

    /// The value of a DEFAULT (expression) over the row as far as it is computed.
    pub(super) fn default_expr(
        &self,
        e: &Expr,
        column: usize,
        (state, layout): (&StmtState<'_>, &RowLayout),
    ) -> Result<Value, SqlError> {
        let mut image = Vec::new();
        layout
            .encode(self.row.iter().map(Value::as_ref), &mut image)
            .map_err(|e| row_error(&e))?;
        let row = CompletedRow {
            def: self.table.def(),
            layout,
            values: &self.values,
            state,
            number: self.number(),
        };
        row.value(e, column, &image)
    }

    /// Those long texts of the row that are not copied into its image.
    fn values_beside<'l>(&self, long: &'l [(usize, Cow<'_, [u8]>)]) -> Beside<'l> {
        let takes = |column, len| {
            self.plan.on_duplicate.is_empty() && self.changes.takes_beside(column, len)
        };
        let texts = long.iter().map(|(column, text)| (*column, &text[..]));
        texts.filter(|&(c, text)| takes(c, text.len())).collect()
    }

    /// Inserts the complete row. A row with a duplicate key is replaced, updated or ignored, as the
    /// statement says. Returns false if no new row is in the table: another row was updated
    /// instead, or this one was skipped.
    fn write(
        &mut self,
        table: &Table,
        long: &[(usize, Cow<'_, [u8]>)],
        made: Option<u64>,
    ) -> Result<bool, SqlError> {
        let changes_duplicates = self.plan.replace || !self.plan.on_duplicate.is_empty();
        let defers = long.is_empty() && self.may_defer(made);
        if self.changes.is_full() || !defers {
            self.insert_later_rows()?;
        }
        let beside = self.values_beside(long);
        loop {
            let image = self.changes.begin_insert(changes_duplicates);
            let encoded = match long.is_empty() {
                true => (table.layout()).encode(self.row.iter().map(Value::as_ref), image),
                false => encode_with(table.layout(), &self.row, (long, &beside), image),
            };
            encoded.map_err(|e| row_error(&e))?;
            let outcome = match defers {
                true => match self.insert_later()? {
                    Some(inserted) => return Ok(inserted),
                    None => self.changes.insert_completed(self.rt)?,
                },
                false if beside.is_empty() => self.changes.insert(self.rt)?,
                false => self.changes.insert_with(self.rt, &beside)?,
            };
            let index = match outcome {
                RowOutcome::Done => {
                    self.affected += 1;
                    let given = self.automatic.given;
                    self.automatic.observe_given(self.rt, table, given)?;
                    return Ok(true);
                }
                RowOutcome::Duplicate { index } => index,
                RowOutcome::Refused(error) => {
                    fail_or_warn(self.rt, self.plan.ignore, error)?;
                    self.refused += 1;
                    return Ok(false);
                }
                RowOutcome::Gone => return Ok(false),
            };
            if let Some(v) = self.automatic.given {
                self.count_duplicate(table, v)?;
            }
            if let Some(inserted) = self.resolve_conflict(index, made, &beside)? {
                return Ok(inserted);
            }
        }
    }
}

/// Encodes a row with its [`LongTexts`], but with empty values for those `beside` the image.
#[inline(never)]
fn encode_with(
    layout: &RowLayout,
    row: &[Value],
    (long, beside): (&[(usize, Cow<'_, [u8]>)], &Beside<'_>),
    image: &mut Vec<u8>,
) -> Result<(), RowError> {
    let values = row.iter().enumerate().map(|(c, value)| {
        if beside.iter().any(|(column, _)| *column == c) {
            return ValueRef::Bytes(&[]);
        }
        let text = long.iter().find(|(column, _)| *column == c);
        text.map_or(value.as_ref(), |(_, text)| ValueRef::Bytes(text))
    });
    layout.encode(values, image)
}

/// Whether a CHECK constraint, a foreign key or a view's CHECK OPTION refuses the row.
fn is_constraint_error(e: &SqlError) -> bool {
    matches!(
        e.code,
        ErrorCode::ER_CHECK_CONSTRAINT_VIOLATED
            | ErrorCode::ER_NO_REFERENCED_ROW_2
            | ErrorCode::ER_VIEW_CHECK_FAILED
    )
}

/// Whether a row without a value for this column fails with error 1364.
pub(super) fn lacks_default(column: &ColumnDef) -> bool {
    matches!(column.default, ColumnDefault::None)
        && !column.nullable
        && !column.auto_increment
        && column.generated.is_none()
        && !matches!(column.ty.kind, TypeKind::Enum(_))
}

/// The layout of an incomplete row, in which every column may be NULL.
pub(super) fn row_layout(table: &Table) -> RowLayout {
    use nfold_types::row::RowColumn;
    RowLayout::new(
        0,
        table.def().columns.iter().map(|c| RowColumn {
            ty: c.ty.clone(),
            nullable: true,
        }),
    )
}

/// Whether a query or one of its subqueries reads table `id`.
fn reads(q: &QueryPlan, id: nfold_catalog::TableId) -> bool {
    match &q.body {
        QueryBody::Rows(_) | QueryBody::Working(_) => false,
        QueryBody::Recursive(r) => r.queries().any(|q| reads(q, id)),
        QueryBody::Set { left, right, .. } => reads(left, id) || reads(right, id),
        QueryBody::Block(b) => {
            b.subqueries.iter().any(|s| reads(&s.plan, id))
                || b.tables.iter().any(|t| match &t.source {
                    TableSource::Table(def) => def.id == id,
                    TableSource::Derived(q) => reads(q, id),
                    TableSource::Virtual(_) | TableSource::Json(_) => false,
                })
        }
    }
}

/// A hexadecimal or bit literal as a number to be stored. One of more than eight bytes is out of
/// range, even if it begins with zeros: for an integer column it is larger than every value.
fn binary_number(bytes: &[u8], integer: bool) -> ValueRef<'static> {
    match bytes.len() {
        0..=8 => ValueRef::UInt(convert::bytes_as_number(bytes)),
        _ if integer => ValueRef::Double(f64::MAX),
        _ => ValueRef::UInt(i64::MAX as u64),
    }
}
