//! INSERT and REPLACE.

use std::sync::Arc;

use nfold_catalog::{ColumnDef, ColumnDefault};
use nfold_engine::{DeleteOp, InsertOp, RowBatch, Table, UpdateOp, WriteOutcome};
use nfold_plan::expr::Expr;
use nfold_plan::query::{InsertPlan, InsertSource, QueryBody, QueryPlan, TableSource};
use nfold_types::convert::store::implicit_default;
use nfold_types::row::RowLayout;
use nfold_types::{CollationId, Level, SqlError, TypeKind, Value, ValueRef};

use crate::eval::{EvalCx, RowRef, convert, row_error};
use crate::modify::{self, Assigner};
use crate::query::KeptQuery;
use crate::runtime::Runtime;
use crate::spill::Spool;
use crate::statement::StatementResult;
use crate::store::{self, Storing};
use crate::subquery::{BlockSubqueries, KeptSubquery};
use crate::tuple;

/// One INSERT under way.
struct Inserting<'i, 's> {
    rt: &'i Runtime<'s>,
    plan: &'i InsertPlan,
    table: Arc<Table>,
    storing: Storing,
    insert: InsertOp,
    /// The row at hand, by column.
    row: Vec<Value>,
    given: Vec<bool>,
    rows: u64,
    affected: u64,
    duplicates: u64,
    /// First value that AUTO_INCREMENT made.
    generated: Option<u64>,
    /// What is left of the values taken from the table for this statement.
    taken: Taken,
    /// The last value made from `SET insert_id` in this statement.
    forced: Option<u64>,
    /// Last value of the AUTO_INCREMENT column that was given.
    explicit: Option<u64>,
    found: RowBatch,
}

/// Automatic values that a statement has taken from its table. As MySQL does it (`handler::update_auto_increment` and InnoDB's
/// `get_auto_increment`), as many as there are rows to come, or one where nobody knows; then twice as many each time. What is left at
/// the end is a gap.
#[derive(Default)]
struct Taken {
    next: u64,
    /// Behind the last one.
    end: u64,
    /// How often they were taken.
    times: u32,
    /// Rows that are still to come of those that values were taken for; 0: not known.
    rows: u64,
}

impl Taken {
    /// A row came with `value` of its own: the next ones are above it.
    fn observe(&mut self, value: u64, increment: u64) {
        if value >= self.next && self.next < self.end {
            let steps = (value - self.next) / increment + 1;
            self.next = self.next.saturating_add(steps.saturating_mul(increment));
        }
    }
}

/// `query`: the operators of the query whose rows are inserted.
pub(crate) fn run(
    rt: &Runtime<'_>,
    plan: &InsertPlan,
    query: &KeptQuery,
) -> Result<StatementResult, SqlError> {
    let table = rt.table(plan.table.id)?;
    let columns = table.def().columns.len();
    let rows = match &plan.source {
        InsertSource::Rows(rows) => rows.len(),
        InsertSource::Param(n) => {
            let (members, width) = rt.params.list(*n);
            members.len() / width.max(1)
        }
        InsertSource::Query(_) => 0,
    };
    let several = rows != 1;
    let mut given = vec![false; columns];
    plan.columns.iter().for_each(|&c| given[c] = true);
    let mut me = Inserting {
        rt,
        plan,
        storing: Storing::new(rt, plan.ignore, !several),
        insert: InsertOp::new(table.clone()),
        table,
        row: Vec::with_capacity(columns),
        given,
        rows: 0,
        affected: 0,
        duplicates: 0,
        generated: None,
        taken: Taken {
            rows: rows as u64,
            ..Taken::default()
        },
        forced: None,
        explicit: None,
        found: RowBatch::new(),
    };
    me.all(query)?;
    let warnings = rt.warnings.borrow().total();
    let info = if several {
        format!(
            "Records: {}  Duplicates: {}  Warnings: {warnings}",
            me.rows, me.duplicates
        )
    } else {
        String::new()
    };
    // A value that was given is told of the last row, if any row was inserted.
    let told = me.affected > 0 || !plan.on_duplicate.is_empty();
    let explicit = me.explicit.filter(|_| told);
    Ok(StatementResult {
        affected: me.affected,
        matched: me.affected,
        last_insert_id: me.generated.or(explicit).unwrap_or(0),
        generated_id: me.generated,
        info,
        ..StatementResult::default()
    })
}

impl<'i> Inserting<'i, '_> {
    fn all(&mut self, query: &KeptQuery) -> Result<(), SqlError> {
        let (rt, plan) = (self.rt, self.plan);
        match &plan.source {
            InsertSource::Rows(rows) => {
                let kept = KeptSubquery::of(&plan.subqueries);
                let subqueries = BlockSubqueries::new(rt, &plan.subqueries, &kept);
                let state = rt.state(&subqueries);
                let layout = made_layout(&self.table);
                for row in rows {
                    self.begin_row()?;
                    self.assign_exprs(row, &state, &layout)?;
                    self.finish_row()?;
                }
            }
            InsertSource::Param(n) => {
                let (members, width) = rt.params.list(*n);
                let from = rt.env.collation();
                let def = self.table.def().clone();
                for (i, value) in members.enumerate() {
                    if i % width == 0 {
                        self.begin_row()?;
                    }
                    let c = plan.columns[i % width];
                    let column = &def.columns[c];
                    let binary = rt.params.is_binary_member(*n, i);
                    self.row[c] = match value {
                        ValueRef::Bytes(b) if binary && column.ty.is_numeric() => {
                            let number = ValueRef::UInt(convert::bytes_as_number(b));
                            self.storing
                                .store_ref(rt, column, number, from, self.rows)?
                        }
                        _ if binary => self.storing.store_ref(
                            rt,
                            column,
                            value,
                            CollationId::BINARY,
                            self.rows,
                        )?,
                        _ => self.storing.store_ref(rt, column, value, from, self.rows)?,
                    };
                    self.not_null(c)?;
                    if (i + 1) % width == 0 {
                        self.finish_row()?;
                    }
                }
            }
            InsertSource::Query(q) => {
                let layout = tuple::layout_of(&q.types);
                if !reads(q, self.table.def().id) {
                    return query.collect(rt, q, &[], &layout, &mut |image| {
                        self.write_image(&layout, q, image)
                    });
                }
                // The table itself is read: all rows are read before the first is written.
                let mut spool = Spool::new(rt.env.work_memory());
                query.collect(rt, q, &[], &layout, &mut |image| spool.push(rt, 0, image))?;
                spool.each(rt, &mut |_, image| {
                    self.write_image(&layout, q, image).map(|()| true)
                })?;
            }
        }
        Ok(())
    }

    /// Inserts one row that a query gave.
    fn write_image(
        &mut self,
        layout: &RowLayout,
        q: &QueryPlan,
        image: &[u8],
    ) -> Result<(), SqlError> {
        let rt = self.rt;
        self.begin_row()?;
        let state = rt.state(&crate::eval::NoSubqueries);
        let cx = EvalCx {
            rows: &[],
            outer: &[],
            st: &state,
        };
        for (i, ty) in q.types.iter().enumerate() {
            let value = layout.get(image, i).map_err(|e| row_error(&e))?;
            let column = self.plan.columns[i];
            let def = &self.table.def().columns[column];
            let v = crate::eval::Val::from_ref(value);
            self.row[column] = self.storing.store(rt, &cx, def, v, ty, self.rows)?;
            self.not_null(column)?;
        }
        self.finish_row()
    }

    /// Fills the row with defaults of the columns that the statement does not name. One that has none is spoken of when the named
    /// ones have their values ([`Self::finish_row`]).
    fn begin_row(&mut self) -> Result<(), SqlError> {
        self.rows += 1;
        if self.rows.is_multiple_of(256) {
            self.rt.tick()?;
        }
        self.row.clear();
        let def = self.table.def().clone();
        for (c, column) in def.columns.iter().enumerate() {
            let value = if self.given[c] || lacks_default(column) {
                Value::Null
            } else {
                self.storing.default_value(self.rt, column)?
            };
            self.row.push(value);
        }
        Ok(())
    }

    fn assign_exprs(
        &mut self,
        exprs: &'i [Option<Expr>],
        state: &crate::eval::StmtState<'_>,
        layout: &RowLayout,
    ) -> Result<(), SqlError> {
        let rt = self.rt;
        let def = self.table.def().clone();
        // Expressions may name columns of the row so far, by themselves or in a subquery: those to their left have their new values,
        // the others their defaults.
        let looks_back = self.plan.subqueries.iter().any(|q| q.correlated)
            || exprs
                .iter()
                .flatten()
                .any(|e| e.any(&mut |e| matches!(e.kind, nfold_plan::expr::ExprKind::Column(_))));
        if looks_back {
            for (c, column) in def.columns.iter().enumerate() {
                if lacks_default(column) {
                    self.row[c] = implicit_default(&column.ty);
                } else if self.given[c] {
                    self.row[c] = self.storing.default_value(rt, column)?;
                }
            }
        }
        let mut image = Vec::new();
        for (i, e) in exprs.iter().enumerate() {
            let c = self.plan.columns[i];
            let column = &def.columns[c];
            self.row[c] = match e {
                None => self.storing.default_value(rt, column)?,
                Some(e) => {
                    image.clear();
                    if looks_back {
                        layout
                            .encode(self.row.iter().map(Value::as_ref), &mut image)
                            .map_err(|e| row_error(&e))?;
                    }
                    let rows = [RowRef {
                        layout,
                        image: looks_back.then_some(image.as_slice()),
                        places: None,
                    }];
                    let cx = EvalCx {
                        rows: &rows,
                        outer: &[],
                        st: state,
                    };
                    let v = cx.val(e)?;
                    self.storing.store(rt, &cx, column, v, &e.ty, self.rows)?
                }
            };
            self.not_null(c)?;
        }
        Ok(())
    }

    /// What becomes of a NULL that was given to column `c`; error 1048.
    fn not_null(&mut self, c: usize) -> Result<(), SqlError> {
        let column = &self.table.def().columns[c];
        if self.row[c].is_null() && !column.nullable && !column.auto_increment {
            self.row[c] = self.storing.null(self.rt, column)?;
        }
        Ok(())
    }

    /// Columns without a default, the automatic value, and the row itself.
    fn finish_row(&mut self) -> Result<(), SqlError> {
        let rt = self.rt;
        let def = self.table.def().clone();
        let auto = def.auto_increment_column();
        for (c, column) in def.columns.iter().enumerate() {
            if !self.given[c] && lacks_default(column) {
                // Said once.
                self.row[c] = if self.rows == 1 {
                    self.storing.default_value(rt, column)?
                } else {
                    implicit_default(&column.ty)
                };
            }
        }
        let mut made = None;
        if let Some(c) = auto {
            made = self.auto_increment(c)?;
        }
        let written = self.write()?;
        self.taken.rows = self.taken.rows.saturating_sub(1);
        // A value that no row was inserted with is not told, and goes to the next row.
        match made {
            Some(v) if !written && self.forced.is_none() && self.taken.next > v => {
                self.taken.next = v;
            }
            Some(v) if written && self.generated.is_none() => self.generated = Some(v),
            _ => {}
        }
        Ok(())
    }

    fn auto_increment(&mut self, c: usize) -> Result<Option<u64>, SqlError> {
        let rt = self.rt;
        let number = match &self.row[c] {
            Value::Null => None,
            Value::Int(v) => Some(i128::from(*v)),
            Value::UInt(v) => Some(i128::from(*v)),
            Value::Double(v) => Some(*v as i128),
            Value::Float(v) => Some(*v as i128),
            _ => return Ok(None),
        };
        let generate = match number {
            None => true,
            Some(0) => !self.storing.zero_is_a_value() || !self.given[c],
            Some(_) => false,
        };
        let ty = self.table.def().columns[c].ty.clone();
        if generate {
            let v = self.next_automatic()?;
            let max = ty.int_range().map_or(u64::MAX, |(_, max)| max as u64);
            if v == u64::MAX {
                return Err(SqlError::new(
                    nfold_types::ErrorCode::ER_AUTOINC_READ_FAILED,
                    &[],
                ));
            }
            // A column that is full meets its own last value again, and the error is that of a duplicate.
            let v = v.min(max);
            self.row[c] = match ty.kind {
                nfold_types::TypeKind::Double => Value::Double(v as f64),
                nfold_types::TypeKind::Float => Value::Float(v as f32),
                _ if ty.unsigned => Value::UInt(v),
                _ => Value::Int(v as i64),
            };
            return Ok(Some(v));
        }
        if let Some(v) = number {
            if let Ok(v) = u64::try_from(v) {
                let table = self.table.clone();
                rt.drive(|_| table.auto_increment_observe(v))?;
                self.taken.observe(v, rt.env.auto_increment().0.max(1));
            }
            self.explicit = Some(v as u64);
        }
        Ok(None)
    }

    /// The next automatic value: counted on from `SET insert_id` where that was given, else the table's own.
    fn next_automatic(&mut self) -> Result<u64, SqlError> {
        let rt = self.rt;
        let (increment, offset) = rt.env.auto_increment();
        let table = self.table.clone();
        let forced = match self.forced {
            Some(last) => last.checked_add(increment),
            None => rt.env.insert_id(),
        };
        let Some(v) = forced else {
            return self.next_taken(offset, increment.max(1));
        };
        rt.drive(|_| table.auto_increment_observe(v))?;
        self.forced = Some(v);
        Ok(v)
    }

    /// The next of the values taken from the table.
    fn next_taken(&mut self, offset: u64, increment: u64) -> Result<u64, SqlError> {
        /// Most values that are taken at once without knowing how many rows there are.
        const MOST_BITS: u32 = 16;
        if self.taken.next >= self.taken.end {
            if self.taken.rows == 0 {
                self.taken.rows = 1 << self.taken.times.min(MOST_BITS);
            }
            let n = self.taken.rows;
            let table = self.table.clone();
            let first = self
                .rt
                .drive(|_| table.auto_increment_reserve(n, offset, increment))?;
            self.taken.next = first;
            self.taken.end = first.saturating_add(n.saturating_mul(increment));
            self.taken.times += 1;
        }
        let v = self.taken.next;
        self.taken.next = v.saturating_add(increment);
        Ok(v)
    }

    /// Whether the row was inserted: not if another was changed in its place, or it was passed over.
    fn write(&mut self) -> Result<bool, SqlError> {
        let rt = self.rt;
        let table = self.table.clone();
        loop {
            let image = self.insert.row();
            table
                .layout()
                .encode(self.row.iter().map(Value::as_ref), image)
                .map_err(|e| row_error(&e))?;
            let op = &mut self.insert;
            match rt.drive(|session| session.insert(op))? {
                WriteOutcome::Done => {
                    self.affected += 1;
                    return Ok(true);
                }
                WriteOutcome::Duplicate { index } => {
                    if self.plan.replace {
                        let in_the_way = self.conflicting(index)?;
                        if in_the_way && self.replaces_itself(index) {
                            self.affected += 1;
                            return Ok(true);
                        }
                        self.duplicates += 1;
                        self.remove_found()?;
                        continue;
                    }
                    self.duplicates += 1;
                    if !self.plan.on_duplicate.is_empty() {
                        return self.update_instead(index);
                    }
                    let error = store::duplicate(rt, &table, index, self.insert.image());
                    if self.plan.ignore {
                        rt.warnings.borrow_mut().push_error(Level::Warning, &error);
                        return Ok(false);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Locks and reads the row that is in the way.
    fn conflicting(&mut self, index: usize) -> Result<bool, SqlError> {
        let mut key = Vec::new();
        modify::index_key(&self.table, index, self.insert.image(), &mut key)?;
        modify::read_locked(self.rt, &self.table, index, &key, &mut self.found)?;
        Ok(!self.found.is_empty())
    }

    /// REPLACE: whether the row in the way, which was found by index `index`, is the same. MySQL changes a row that the last of the unique keys finds in place, and
    /// does not count it twice where nothing changes.
    fn replaces_itself(&self, index: usize) -> bool {
        let later = &self.table.def().indexes[index + 1..];
        !later.iter().any(|i| i.is_unique())
            && self.found.len() == 1
            && self.found.row(0) == self.insert.image()
    }

    /// REPLACE: the rows in the way go.
    fn remove_found(&mut self) -> Result<(), SqlError> {
        let mut op = DeleteOp::new(self.table.clone());
        for i in 0..self.found.len() {
            op.row(self.found.row(i), self.found.row_id(i));
            self.rt.drive(|session| session.delete(&mut op))?;
            self.affected += 1;
        }
        Ok(())
    }

    /// ON DUPLICATE KEY UPDATE.
    fn update_instead(&mut self, index: usize) -> Result<bool, SqlError> {
        let rt = self.rt;
        if !self.conflicting(index)? {
            // It went away between the two: the next try finds room.
            return self.write();
        }
        let table = self.table.clone();
        let kept = KeptSubquery::of(&self.plan.subqueries);
        let subqueries = BlockSubqueries::new(rt, &self.plan.subqueries, &kept);
        let state = rt.state(&subqueries);
        let assigner = Assigner::new(&table, &self.plan.on_duplicate);
        let old = self.found.row(0);
        let new = self.insert.image();
        let extra = RowRef {
            layout: table.layout(),
            image: Some(new),
            places: None,
        };
        let mut op = UpdateOp::new(table.clone());
        let image = op.row(old, self.found.row_id(0));
        let around = [assigner.slot_of(None), extra];
        let changed = assigner.apply(rt, &self.storing, &state, old, &around, self.rows, image)?;
        if !changed {
            return Ok(false);
        }
        match rt.drive(|session| session.update(&mut op))? {
            WriteOutcome::Done => {
                self.affected += 2;
                let value = modify::observe(rt, &table, op.image())?;
                if let Some(v) = value {
                    self.taken.observe(v, rt.env.auto_increment().0.max(1));
                }
                self.explicit = value.or(self.explicit);
                Ok(false)
            }
            WriteOutcome::Duplicate { index } => {
                let error = store::duplicate(rt, &table, index, op.image());
                modify::fail_or_warn(rt, self.plan.ignore, error)?;
                Ok(false)
            }
        }
    }
}

/// Whether a column that is not named makes error 1364.
fn lacks_default(column: &ColumnDef) -> bool {
    matches!(column.default, ColumnDefault::None)
        && !column.nullable
        && !column.auto_increment
        && !matches!(column.ty.kind, TypeKind::Enum(_))
}

/// Layout of a row being made: any column may be NULL still.
fn made_layout(table: &Table) -> RowLayout {
    use nfold_types::row::RowColumn;
    RowLayout::new(
        0,
        table.def().columns.iter().map(|c| RowColumn {
            ty: c.ty.clone(),
            nullable: true,
        }),
    )
}

/// Whether a query reads table `id`, in a subquery or otherwise.
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
                    TableSource::Virtual(_) => false,
                })
        }
    }
}
