//! FROM: tables become row slots, and joins become conditions.

use std::ops::Range;
use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, IndexDef, TableDef, ViewDef, Visibility};
use nfold_sql::ast::{
    BinaryOp, Ident, IndexHint, IndexHintKind, Join, JoinConstraint, JoinKind, ObjectName,
    Statement, TableFactor, TableRef,
};
use nfold_sql::lexer::LexMode;
use nfold_sql::parser::parse;
use nfold_types::{ErrorCode, SqlError, TypeKind};

use super::cast::cast_to;
use super::{BindCx, BlockBinder, Dependency, ScopeColumn, ScopeSlot, block};
use crate::logical::clauses::AggFunc;
use crate::logical::column_uses::{ColumnUses, ViewScope};
use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, ColumnAt, Expr, ExprKind};
use crate::logical::json_table::JsonTable;
use crate::logical::mode::SqlMode;
use crate::logical::query::{
    IndexHints, JoinType, MAX_TABLES, OuterJoin, Query, QueryBody, Source, SubqueryForm, Table,
};
use crate::logical::results::ResultColumn;
use crate::logical::walk::outer_columns;

/// The parts of FROM besides the slots.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct FromInfo {
    /// ON conditions of inner joins, which act like conditions of WHERE. As in MySQL, those of a
    /// join stand before those of the joins inside it.
    pub conditions: Vec<Expr>,
    /// As in [`Block`](crate::logical::query::Block).
    pub outer_joins: Vec<OuterJoin>,
    /// As in [`Block`](crate::logical::query::Block).
    pub straight_joins: Vec<(u64, u64)>,
    /// The columns of `*`.
    pub shown: Vec<ColumnAt>,
}

/// A table, or several joined tables.
struct Joined {
    slots: Range<usize>,
    /// The columns that `*` and unqualified names mean, in the order of `*`. Columns that USING or
    /// NATURAL make equal appear once.
    shown: Vec<ColumnAt>,
}

/// The columns of a table for name resolution. A hidden column has no name.
pub(super) fn scope_columns(def: &TableDef) -> Vec<ScopeColumn> {
    let column = |c: &ColumnDef| ScopeColumn {
        name: match c.visibility {
            Visibility::Hidden => "\0".into(),
            _ => c.name.clone(),
        },
        ty: c.ty.clone(),
        nullable: c.nullable,
        coercibility: None,
        made: false,
        visible: c.visibility == Visibility::Visible,
    };
    def.columns.iter().map(column).collect()
}

/// Whether a table reference has a LATERAL derived table, or with `json` a JSON_TABLE.
fn has_lateral(r: &TableRef, json: bool) -> bool {
    match r {
        TableRef::Table(_) => false,
        TableRef::Derived { lateral, .. } => *lateral,
        TableRef::JsonTable(_) => json,
        TableRef::Join(j) => has_lateral(&j.left, json) || has_lateral(&j.right, json),
    }
}

fn both(mut left: Vec<ColumnAt>, right: Vec<ColumnAt>) -> Vec<ColumnAt> {
    left.extend(right);
    left
}

impl BlockBinder<'_> {
    /// Binds FROM.
    pub(crate) fn from(&mut self, refs: &[TableRef]) -> Result<FromInfo, SqlError> {
        let mut info = FromInfo::default();
        for r in refs {
            let joined = self.table_ref(r, &mut info)?;
            info.shown.extend(joined.shown);
        }
        Ok(info)
    }

    /// Binds one table reference.
    fn table_ref(&mut self, r: &TableRef, info: &mut FromInfo) -> Result<Joined, SqlError> {
        let start = self.tables.len();
        match r {
            TableRef::Table(t) => self.base(t)?,
            TableRef::Derived {
                lateral,
                query,
                alias,
                columns,
            } => {
                let cx = BindCx {
                    creates_view: false,
                    derived: !self.cx.keeps_derived,
                    has_dependencies: true,
                    ..*self.cx
                };
                if *lateral && let Some((bound, reads)) = self.lateral(&cx, query)? {
                    self.derived(bound.query, alias, columns)?;
                    self.depends(bound.dependencies);
                    self.tables[start].lateral = reads;
                } else {
                    // It may name columns of enclosing queries, but none of the tables beside it.
                    let bound = block::bind_in(&cx, query, self.outer, SubqueryForm::Rows)?;
                    let bound = bound.described();
                    if bound.correlated {
                        self.correlated.set(true);
                    }
                    self.derived(bound.query, alias, columns)?;
                    self.depends(bound.dependencies);
                }
            }
            TableRef::JsonTable(t) => self.json_table(t)?,
            TableRef::Join(j) => return self.join(j, info),
        }
        Ok(Joined {
            slots: start..self.tables.len(),
            shown: self.shown_of(start),
        })
    }

    /// Binds a LATERAL derived table as a subquery of this block, with the slots that it reads.
    /// `None`: it reads none, and so is an ordinary derived table.
    fn lateral(
        &self,
        cx: &BindCx<'_>,
        query: &nfold_sql::ast::Query,
    ) -> Result<Option<(block::Bound, u64)>, SqlError> {
        if self.tables.is_empty() {
            return Ok(None);
        }
        let mut bound = block::bind_subquery(cx, query, self, SubqueryForm::Rows)?;
        let mut reads = 0;
        outer_columns(&mut bound.query, 1, &mut |at, _| {
            reads |= 1 << at.table.min(63);
            Ok::<(), SqlError>(())
        })?;
        Ok((reads != 0).then_some((bound, reads)))
    }

    fn base(&mut self, t: &TableFactor) -> Result<(), SqlError> {
        if !t.partitions.is_empty() {
            return Err(SqlError::not_supported("PARTITION selection"));
        }
        if let Some((query, columns, definition)) = self.common_table(&t.name)? {
            let alias = t.alias.as_ref().unwrap_or(&t.name.name);
            self.derived(query, alias, columns)?;
            if let Some(table) = self.tables.last_mut() {
                table.common = definition;
            }
            return Ok(());
        }
        let (schema, source) = self.find_table(&t.name)?;
        if let Source::Table(def) = &source
            && let Some(view) = def.view()
        {
            let alias = t.alias.as_ref().unwrap_or(&t.name.name);
            return self.view(def, view, alias);
        }
        let alias: Arc<str> = t
            .alias
            .as_ref()
            .unwrap_or(&t.name.name)
            .value
            .as_str()
            .into();
        self.check_unique(&alias, Some(&schema))?;
        let columns = match &source {
            Source::Table(def) | Source::Virtual(def) => scope_columns(def),
            Source::Derived(_) | Source::Json(_) => Vec::new(),
        };
        let object = match &source {
            Source::Table(def) => Some((def.schema.clone(), def.name.clone())),
            _ => None,
        };
        let hints = match &source {
            Source::Table(def) => {
                index_hints(def, &alias, &t.hints, self.cx.uses_invisible_indexes())?
            }
            _ => IndexHints::default(),
        };
        self.push_slot(Some(schema), alias, columns, source, hints)?;
        if let Some(slot) = self.scope.last_mut() {
            slot.object = object;
        }
        Ok(())
    }

    /// Adds the slot of a view, as a derived table of its query. The query is bound in the database
    /// and the SQL mode of the view's definition, and sees no enclosing query.
    ///
    /// # Errors
    /// 1356 if a table, column or function that the view names does not exist any more.
    fn view(&mut self, def: &TableDef, view: &ViewDef, alias: &Ident) -> Result<(), SqlError> {
        let bound = bind_valid_view(self.cx, def, view)?;
        let names = def.columns.iter().map(|c| Ident::new(&*c.name));
        let names = names.collect::<Vec<_>>();
        self.derived_in(Some(&def.schema), bound.query, alias, &names)?;
        if let Some(slot) = self.scope.last_mut() {
            slot.view_schema = Some(def.schema.clone());
            slot.object = Some((def.schema.clone(), def.name.clone()));
        }
        if let Some(table) = self.tables.last_mut() {
            // FOR UPDATE locks the rows of a view like those of a table.
            table.in_subquery = false;
        }
        self.depends(bound.dependencies);
        Ok(())
    }

    /// Records the functional dependencies between the columns of the last slot.
    fn depends(&mut self, dependencies: Vec<Dependency>) {
        if let Some(slot) = self.scope.last_mut() {
            slot.dependencies = dependencies;
        }
    }

    /// Finds the table `name` in the schema, or else among the system tables.
    pub(super) fn find_table(&self, name: &ObjectName) -> Result<(Arc<str>, Source), SqlError> {
        let schema = match (&name.schema, self.cx.db) {
            (Some(s), _) => s.value.as_str(),
            (None, Some(db)) => db,
            (None, None) => return Err(SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[])),
        };
        if let Some(table) = self.cx.snapshot.table(schema, &name.name.value) {
            return Ok((table.schema.clone(), Source::Table(table.clone())));
        }
        if let Some(view) = self.cx.info.virtual_table(schema, &name.name.value) {
            return Ok((view.schema.clone(), Source::Virtual(view)));
        }
        if schema.eq_ignore_ascii_case("information_schema") {
            let name = name.name.value.to_uppercase();
            return Err(SqlError::new(
                ErrorCode::ER_UNKNOWN_TABLE,
                &[&name, &"information_schema"],
            ));
        }
        if self.cx.snapshot.database(schema).is_none() && schema != "performance_schema" {
            return Err(SqlError::new(ErrorCode::ER_BAD_DB_ERROR, &[&schema]));
        }
        Err(SqlError::new(
            ErrorCode::ER_NO_SUCH_TABLE,
            &[&schema, &name.name.value],
        ))
    }

    /// Error 1066 if a table before it has the alias, and belongs to the same database. Derived
    /// tables belong to none.
    fn check_unique(&self, alias: &Arc<str>, schema: Option<&Arc<str>>) -> Result<(), SqlError> {
        let own = |s: &ScopeSlot| s.schema.as_ref().or(s.view_schema.as_ref()) == schema;
        match self.scope.iter().any(|s| s.alias == *alias && own(s)) {
            true => Err(SqlError::new(ErrorCode::ER_NONUNIQ_TABLE, &[alias])),
            false => Ok(()),
        }
    }

    fn derived(&mut self, query: Query, alias: &Ident, names: &[Ident]) -> Result<(), SqlError> {
        self.derived_in(None, query, alias, names)
    }

    /// Adds the row slot of a derived table, or of a view of the database `schema`.
    fn derived_in(
        &mut self,
        schema: Option<&Arc<str>>,
        mut query: Query,
        alias: &Ident,
        names: &[Ident],
    ) -> Result<(), SqlError> {
        if !names.is_empty() && names.len() != query.types.len() {
            return Err(SqlError::new(ErrorCode::ER_VIEW_WRONG_LIST, &[]));
        }
        let alias: Arc<str> = alias.value.as_str().into();
        self.check_unique(&alias, schema)?;
        let mut columns: Vec<ScopeColumn> = Vec::with_capacity(query.types.len());
        let merged = query.is_merged();
        if !merged {
            store_members(&mut query);
        }
        for (i, (meta, ty)) in query.columns.iter().zip(&query.types).enumerate() {
            let name = names
                .get(i)
                .map_or_else(|| meta.name.clone(), |n| n.value.as_str().into());
            if columns.iter().any(|c| eq_name(&c.name, &name)) {
                return Err(SqlError::new(ErrorCode::ER_DUP_FIELDNAME, &[&name]));
            }
            let kept = match &query.body {
                QueryBody::Rows(rows) => rows.len() == 1 || ty.col.kind == TypeKind::Null,
                _ if merged => false,
                QueryBody::Block(b) if b.group.is_some() => {
                    let constant =
                        matches!(b.select[i].kind, ExprKind::Const(_) | ExprKind::Param(_));
                    meta.made && constant
                }
                _ => meta.made,
            };
            let computed = match &query.body {
                QueryBody::Block(b) if !is_subquery(&query, i) => {
                    let column = matches!(b.select[i].kind, ExprKind::Outer { .. });
                    !column && (kept || is_any(&query, i))
                }
                _ => false,
            };
            columns.push(ScopeColumn {
                name,
                ty: match (kept, merged) {
                    (_, false) if computed || query.reads_rolled_up_key(i) => ty.stored_value().col,
                    (true, _) if is_subquery(&query, i) => ty.stored_subquery().col,
                    (true, _) => ty.kept().col,
                    (false, false) if ty.class() == Class::Null => ty.kept().col,
                    (false, true) => ty.col.clone(),
                    (false, false) => ty.column(),
                },
                nullable: ty.nullable,
                coercibility: (!is_aggregate(&query, i)).then_some(ty.coercibility),
                made: merged && meta.made,
                visible: true,
            });
        }
        self.push_slot(
            None,
            alias,
            columns,
            Source::Derived(Box::new(query)),
            IndexHints::default(),
        )
    }

    /// Adds the row slot of a JSON_TABLE.
    pub(super) fn json_slot(
        &mut self,
        alias: &Ident,
        columns: Vec<ScopeColumn>,
        table: JsonTable,
    ) -> Result<(), SqlError> {
        let alias: Arc<str> = alias.value.as_str().into();
        self.check_unique(&alias, None)?;
        let source = Source::Json(Box::new(table));
        self.push_slot(None, alias, columns, source, IndexHints::default())
    }

    /// Error 1109 if a JSON_TABLE on the outer side of a RIGHT JOIN reads the inner side.
    fn check_right_join(&self, left: &Range<usize>, right: &Range<usize>) -> Result<(), SqlError> {
        for table in &self.tables[right.clone()] {
            let Source::Json(json) = &table.source else {
                continue;
            };
            let mut read = None;
            json.document.any(&mut |e| {
                let slot = e.as_column().map(|at| usize::from(at.table));
                read = read.or(slot.filter(|slot| left.contains(slot)));
                read.is_some()
            });
            if let Some(slot) = read {
                let alias = &self.tables[slot].alias;
                return Err(SqlError::new(
                    ErrorCode::ER_UNKNOWN_TABLE,
                    &[alias, &"a table function argument"],
                ));
            }
        }
        Ok(())
    }

    fn push_slot(
        &mut self,
        schema: Option<Arc<str>>,
        alias: Arc<str>,
        columns: Vec<ScopeColumn>,
        source: Source,
        hints: IndexHints,
    ) -> Result<(), SqlError> {
        if self.tables.len() >= MAX_TABLES {
            return Err(SqlError::new(ErrorCode::ER_TOO_MANY_TABLES, &[&MAX_TABLES]));
        }
        self.used.borrow_mut().push(vec![false; columns.len()]);
        self.scope.push(ScopeSlot {
            object: None,
            schema,
            view_schema: None,
            alias: alias.clone(),
            columns,
            dependencies: Vec::new(),
        });
        self.tables.push(Table {
            in_subquery: matches!(source, Source::Derived(_)),
            source,
            alias,
            used: Vec::new(),
            documents: Vec::new(),
            merged: false,
            nullable: false,
            hints,
            lateral: 0,
            shared: None,
            common: None,
            unpushed: None,
        });
        Ok(())
    }

    /// The columns of a slot that `*` includes.
    pub(super) fn shown_of(&self, slot: usize) -> Vec<ColumnAt> {
        let columns = self.scope[slot].columns.iter().enumerate();
        let shown = columns.filter(|(_, c)| c.visible).map(|(c, _)| ColumnAt {
            table: slot as u16,
            column: c as u16,
        });
        shown.collect()
    }

    /// Makes a row of the table the first slot, to bind the table's stored expressions.
    pub(super) fn row_of(&mut self, def: &Arc<TableDef>) -> Result<(), SqlError> {
        let (schema, alias) = (def.schema.clone(), def.name.clone());
        let (columns, source) = (scope_columns(def), Source::Table(def.clone()));
        self.push_slot(Some(schema), alias, columns, source, IndexHints::default())
    }

    /// Binds the only table of a statement that changes rows, or the table of a view. `verb`: the
    /// statement.
    ///
    /// # Errors
    /// 1288 and 1471 for a view whose rows cannot be changed.
    pub(super) fn single(
        &mut self,
        t: &TableFactor,
        verb: &'static str,
    ) -> Result<FromInfo, SqlError> {
        let found = self.find_table(&t.name);
        match &found {
            Ok((_, Source::Table(def))) if def.is_view() => {
                self.open_view((def, t), verb)?;
            }
            _ => self.base(t)?,
        }
        Ok(FromInfo::default())
    }

    fn join(&mut self, j: &Join, info: &mut FromInfo) -> Result<Joined, SqlError> {
        let first = info.conditions.len();
        // The right side of a RIGHT JOIN is read first, so the left side may read its tables.
        let reads = has_lateral(&j.left, true) || has_lateral(&j.right, false);
        let backwards = j.kind == JoinKind::Right && reads;
        let (left, right, second);
        if backwards {
            right = self.table_ref(&j.right, info)?;
            second = info.conditions.len();
            left = self.table_ref(&j.left, info)?;
        } else {
            left = self.table_ref(&j.left, info)?;
            second = info.conditions.len();
            right = self.table_ref(&j.right, info)?;
        }
        let start = left.slots.start.min(right.slots.start);
        let slots = start..left.slots.end.max(right.slots.end);
        if j.kind == JoinKind::Right {
            self.check_right_join(&left.slots, &right.slots)?;
        }
        let mut on = Vec::new();
        let shown = match &j.constraint {
            JoinConstraint::None => both(left.shown, right.shown),
            JoinConstraint::On(e) => {
                let clause = std::mem::replace(&mut self.clause, "on clause");
                // ON may not name the tables before this join.
                let sight = std::mem::replace(&mut self.first_visible_slot, slots.start);
                let mut e = self.truth(e)?;
                let outer = matches!(j.kind, JoinKind::Left | JoinKind::Right);
                self.check_condition(&mut e, outer);
                self.first_visible_slot = sight;
                self.clause = clause;
                block::conjuncts(e, &mut on);
                both(left.shown, right.shown)
            }
            JoinConstraint::Using(names) => {
                let names = names.iter().map(|name| name.value.as_str().into());
                self.coalesce(names.collect(), &left.shown, &right.shown, j.kind, &mut on)?
            }
            JoinConstraint::Natural => {
                let names = self.common_names(&left.shown, &right.shown);
                self.coalesce(names, &left.shown, &right.shown, j.kind, &mut on)?
            }
        };
        let (left, right) = (left.slots, right.slots);
        let set_of = |side: Range<usize>| side.fold(0, |set, t| set | 1 << t);
        let (inner, outer) = match j.kind {
            JoinKind::Inner | JoinKind::Straight => {
                if j.kind == JoinKind::Straight {
                    info.straight_joins.push((set_of(left), set_of(right)));
                }
                info.conditions.splice(first..first, on);
                return Ok(Joined { slots, shown });
            }
            JoinKind::Left => {
                on.extend(info.conditions.drain(second..));
                (right, left)
            }
            JoinKind::Right => {
                let of_left = match backwards {
                    true => second..info.conditions.len(),
                    false => first..second,
                };
                on.extend(info.conditions.drain(of_left));
                (left, right)
            }
        };
        for slot in &mut self.tables[inner.clone()] {
            slot.nullable = true;
        }
        let [inner, outer] = [inner, outer].map(set_of);
        info.outer_joins.push(OuterJoin {
            kind: JoinType::Left,
            on,
            inner,
            outer,
        });
        Ok(Joined { slots, shown })
    }

    fn name_of(&self, at: ColumnAt) -> &Arc<str> {
        &self.scope[usize::from(at.table)].columns[usize::from(at.column)].name
    }

    /// The column names that both sides of a NATURAL join have.
    fn common_names(&self, left: &[ColumnAt], right: &[ColumnAt]) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = Vec::new();
        for name in left.iter().map(|at| self.name_of(*at)) {
            let common = right.iter().any(|at| eq_name(self.name_of(*at), name));
            // One side has the name twice, which is an error that is reported once.
            if common && !names.iter().any(|n| eq_name(n, name)) {
                names.push(name.clone());
            }
        }
        names
    }

    /// The columns of a join with USING or NATURAL: first the common columns, taken from the side
    /// whose rows are all preserved, then the other columns of that side, then those of the other
    /// side. Adds the equalities of the common columns to `on`.
    ///
    /// # Errors
    /// 1052 for a name that one side has twice, 1054 for a name that one side lacks.
    fn coalesce(
        &mut self,
        names: Vec<Arc<str>>,
        left: &[ColumnAt],
        right: &[ColumnAt],
        kind: JoinKind,
        on: &mut Vec<Expr>,
    ) -> Result<Vec<ColumnAt>, SqlError> {
        let mut equal = Vec::with_capacity(names.len());
        for name in &names {
            equal.push((self.only(left, name)?, self.only(right, name)?));
        }
        for &(l, r) in &equal {
            let (a, b) = (self.column_expr(l), self.column_expr(r));
            on.push(self.compare(BinaryOp::Eq, a, b)?);
        }
        let (kept, other) = match kind {
            JoinKind::Right => (right, left),
            JoinKind::Left | JoinKind::Inner | JoinKind::Straight => (left, right),
        };
        let common = |at: &ColumnAt| equal.iter().any(|(l, r)| at == l || at == r);
        let (mut shown, rest): (Vec<ColumnAt>, Vec<ColumnAt>) =
            kept.iter().partition(|at| common(at));
        let (gone, more): (Vec<ColumnAt>, Vec<ColumnAt>) = other.iter().partition(|at| common(at));
        let hidden = |at: ColumnAt| (usize::from(at.table), usize::from(at.column));
        self.hidden.extend(gone.into_iter().map(hidden));
        shown.extend(rest.into_iter().chain(more));
        Ok(shown)
    }

    /// The only one of `columns` that is called `name`.
    fn only(&self, columns: &[ColumnAt], name: &str) -> Result<ColumnAt, SqlError> {
        let error = |code| SqlError::new(code, &[&name, &"from clause"]);
        let mut found = columns
            .iter()
            .filter(|at| eq_name(self.name_of(**at), name));
        match (found.next(), found.next()) {
            (Some(at), None) => Ok(*at),
            (Some(_), Some(_)) => Err(error(ErrorCode::ER_NON_UNIQ_ERROR)),
            (None, _) => Err(error(ErrorCode::ER_BAD_FIELD_ERROR)),
        }
    }

    /// The slot that `name.*` or the target of a DELETE means.
    pub(super) fn slot_named(&self, name: &ObjectName) -> Option<usize> {
        self.slots_named(name).next()
    }

    /// The tables of this name: without a database there may be one of each database.
    pub(super) fn slots_named(&self, name: &ObjectName) -> impl Iterator<Item = usize> {
        let is_named = |s: &ScopeSlot| {
            let own = s.schema.as_ref().or(s.view_schema.as_ref());
            let schema = name.schema.as_ref();
            let same = |n: &Ident| own.is_none_or(|own| super::names::same_schema(own, &n.value));
            *s.alias == *name.name.value && schema.is_none_or(same)
        };
        (0..self.scope.len()).filter(move |t| is_named(&self.scope[*t]))
    }
}

/// Binds the query of a view. Without a definition the view is being created, and its columns are
/// named by the statement.
pub(super) fn bind_view(
    cx: &BindCx<'_>,
    (def, view): (Option<&TableDef>, &ViewDef),
) -> Result<block::Bound, SqlError> {
    let Statement::Query(query) = parse(&view.text, LexMode::from_bits(view.lexing))? else {
        return Err(SqlError::not_supported("this view"));
    };
    let cx = view_cx(cx, (def, view))?;
    Ok(block::bind_in(&cx, &query, None, SubqueryForm::Rows)?.described())
}

/// The context of the query of a view.
///
/// # Errors
/// 1473
pub(super) fn view_cx<'v>(
    cx: &BindCx<'v>,
    (def, view): (Option<&TableDef>, &'v ViewDef),
) -> Result<BindCx<'v>, SqlError> {
    let add = |uses: &ColumnUses, def: &TableDef| {
        uses.add_scope(|all| {
            let around = cx.view_scope.and_then(|n| all.get(n));
            ViewScope::of(&def.schema, &def.name, view, around.map(|v| &**v))
        })
    };
    Ok(BindCx {
        creates_view: def.is_none(),
        view_scope: cx.column_uses.zip(def).map(|(uses, def)| add(uses, def)),
        plan: PlanCx {
            snapshot: cx.stored,
            db: view.database.as_deref(),
            mode: SqlMode(view.mode),
            connection: view.collation,
            text: &view.text,
            params: &[],
            select_limit: None,
            ..cx.plan
        },
        ctes: None,
        derived: !cx.keeps_derived,
        has_dependencies: true,
        ..cx.deeper()?
    })
}

/// Binds the query of a view that exists.
///
/// # Errors
/// 1356 if a table, column or function that the view names does not exist any more.
fn bind_valid_view(
    cx: &BindCx<'_>,
    def: &TableDef,
    view: &ViewDef,
) -> Result<block::Bound, SqlError> {
    let invalid = || SqlError::new(ErrorCode::ER_VIEW_INVALID, &[&def.schema, &def.name]);
    let bound = bind_view(cx, (Some(def), view)).map_err(|e| match is_of_names(&e) {
        true => invalid(),
        false => e,
    })?;
    match bound.query.types.len() == def.columns.len() {
        true => Ok(bound),
        false => Err(invalid()),
    }
}

/// Checks whether the query of a view still has its tables, columns and functions.
///
/// # Errors
/// 1356, and other errors of binding the query.
pub fn check_view(cx: &PlanCx<'_>, def: &TableDef) -> Result<(), SqlError> {
    match def.view() {
        Some(view) => bind_valid_view(&BindCx::new(cx), def, view).map(|_| ()),
        None => Ok(()),
    }
}

/// The columns of a view's query.
///
/// # Errors
/// 1351 if the query names a variable, and the errors of binding it.
pub fn view_results(cx: &PlanCx<'_>, view: &ViewDef) -> Result<Vec<ResultColumn>, SqlError> {
    let mut query = bind_view(&BindCx::new(cx), (None, view))?.query;
    let mut variables = false;
    crate::logical::walk::each_expr(&mut query, 1, &mut |e, _| {
        use ExprKind::{AssignUserVar, SysVar, UserVar};
        variables |= matches!(e.kind, UserVar(_) | AssignUserVar(..) | SysVar { .. });
    });
    match variables {
        true => Err(SqlError::new(ErrorCode::ER_VIEW_SELECT_VARIABLE, &[])),
        false => Ok(query.result_columns(cx.funcs)),
    }
}

/// Whether an error says that a name does not exist.
pub(super) fn is_of_names(e: &SqlError) -> bool {
    matches!(
        e.code,
        ErrorCode::ER_BAD_FIELD_ERROR
            | ErrorCode::ER_NO_SUCH_TABLE
            | ErrorCode::ER_BAD_DB_ERROR
            | ErrorCode::ER_UNKNOWN_TABLE
            | ErrorCode::ER_SP_DOES_NOT_EXIST
            | ErrorCode::ER_VIEW_INVALID
    )
}

fn index_hints(
    def: &nfold_catalog::TableDef,
    alias: &str,
    hints: &[IndexHint],
    use_invisible: bool,
) -> Result<IndexHints, SqlError> {
    let mut out = IndexHints::default();
    let unusable = |i: &IndexDef| !i.visible && !use_invisible;
    let indexes = def.indexes.iter().enumerate();
    let ignored = indexes.filter(|(_, i)| unusable(i)).map(|(n, _)| n);
    out.ignore.extend(ignored);
    for hint in hints {
        let mut list = Vec::new();
        for name in &hint.indexes {
            let found = if name.is("PRIMARY") {
                def.has_primary_key().then_some(0)
            } else {
                def.index(&name.value)
                    .filter(|n| !unusable(&def.indexes[*n]))
            };
            list.push(found.ok_or_else(|| {
                SqlError::new(ErrorCode::ER_KEY_DOES_NOT_EXITS, &[&name.value, &alias])
            })?);
        }
        match hint.kind {
            IndexHintKind::Ignore => out.ignore.extend(list),
            kind => {
                out.only.get_or_insert_default().extend(list);
                out.force |= kind == IndexHintKind::Force;
            }
        }
    }
    Ok(out)
}

/// Whether a column of `query` is the value of a subquery.
fn is_subquery(query: &Query, column: usize) -> bool {
    match &query.body {
        QueryBody::Block(b) => matches!(b.select[column].kind, ExprKind::Subquery { .. }),
        _ => false,
    }
}

/// Whether a column of `query` is the value of an aggregate.
fn is_aggregate(query: &Query, column: usize) -> bool {
    aggregate_of(query, column).is_some_and(|func| func != AggFunc::Any)
}

/// Whether a column of `query` is a call of ANY_VALUE. The binder also puts one around a column
/// that is no key of the grouping; for MySQL that stays a table's column, with its name.
fn is_any(query: &Query, column: usize) -> bool {
    let written = query.columns[column].org_name.is_empty();
    written && aggregate_of(query, column) == Some(AggFunc::Any)
}

/// The aggregate whose value a column of `query` is.
fn aggregate_of(query: &Query, column: usize) -> Option<AggFunc> {
    let QueryBody::Block(b) = &query.body else {
        return None;
    };
    let group = b.group.as_ref()?;
    let at = b.select[column].as_column().filter(|at| at.table == 0)?;
    let place = usize::from(at.column).checked_sub(group.first_aggregate())?;
    group.aggregates.get(place).map(|aggregate| aggregate.func)
}

/// Converts computed members of ENUM and SET columns to texts, which a temporary table stores.
fn store_members(query: &mut Query) {
    for i in 0..query.types.len() {
        let computed = query.columns[i].made || is_any(query, i);
        if let QueryBody::Block(b) = &mut query.body
            && computed
            && query.types[i].col.is_enum_or_set()
        {
            let text = query.types[i].kept();
            let member = std::mem::replace(&mut b.select[i], Expr::null());
            b.select[i] = cast_to(member, text.clone());
            query.types[i] = text;
        }
    }
}
