//! Views that INSERT, UPDATE, DELETE and LOAD DATA change: the table of the view takes the view's
//! place in the statement.
//!
//! # Picture
//! ```text
//!   v: SELECT a AS x, b, a + 1 AS t FROM base WHERE a < 9       UPDATE v SET x = 1 WHERE t > 2
//!      slot of v ─▶ base, with columns x (a), b, others without a name, and t behind them
//!      t         ─▶ a + 1   in every expression, once the statement is bound
//!      a < 9     ─▶ a condition of the statement
//! ```
//! A view over a view is bound from the table outwards, each view with the names of the one below.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{TableDef, ViewAlgorithm, ViewCheck, ViewDef};
use nfold_sql::ast::{self, ColumnRef, Ident, QueryBody as AstBody, TableFactor, TableRef};
use nfold_sql::lexer::LexMode;
use nfold_sql::parser::parse;
use nfold_types::{ErrorCode, SqlError};

use super::from::{FromInfo, bind_view, view_cx};
use super::names::display;
use super::{BindCx, BlockBinder, ScopeColumn, ScopeSlot, ViewTarget};
use crate::logical::changed_view::ChangedView;
use crate::logical::context::PlanCx;
use crate::logical::expr::{ColumnAt, Expr, ExprKind};
use crate::logical::query::{Query, QueryBody, Source, Subquery, Table};

/// A view with the slot of its table.
struct Opened {
    slot: ScopeSlot,
    table: Table,
    used: Vec<bool>,
    subqueries: Vec<Subquery>,
    target: ViewTarget,
}

impl BlockBinder<'_> {
    /// Binds the view that a statement changes rows of. `verb`: the statement.
    ///
    /// # Errors
    /// 1288 and 1471 if its rows cannot be changed; 1356.
    pub(super) fn open_view(
        &mut self,
        (def, t): (&TableDef, &TableFactor),
        verb: &'static str,
    ) -> Result<(), SqlError> {
        let alias = t.alias.as_ref().unwrap_or(&t.name.name);
        let refused = || match verb {
            "INSERT" => {
                let code = ErrorCode::ER_NON_INSERTABLE_TABLE;
                SqlError::new(code, &[alias, &verb])
            }
            _ => SqlError::new(ErrorCode::ER_NON_UPDATABLE_TABLE, &[alias, &verb]),
        };
        let opened = open(self.cx, def, (&refused, verb))?;
        self.install(opened, alias);
        Ok(())
    }

    fn install(&mut self, opened: Opened, alias: &Ident) {
        let alias: Arc<str> = alias.value.as_str().into();
        let Opened {
            mut slot,
            mut table,
            used,
            subqueries,
            target,
        } = opened;
        slot.alias = alias.clone();
        slot.schema = Some(target.schema.clone());
        slot.object = Some((target.schema.clone(), target.name.clone()));
        table.alias = alias;
        self.used.borrow_mut().push(used);
        self.scope.push(slot);
        self.tables.push(table);
        self.subqueries = subqueries;
        self.view = Some(Box::new(target));
    }

    /// The column of the table that the statement assigns to by the name `c`.
    ///
    /// # Errors
    /// 1054, and 1348 for a column that the view computes.
    pub(super) fn target_column(
        &self,
        table: &TableDef,
        c: &ColumnRef,
        clause: &str,
    ) -> Result<usize, SqlError> {
        let unknown = || SqlError::new(ErrorCode::ER_BAD_FIELD_ERROR, &[&display(c), &clause]);
        let Some(view) = &self.view else {
            return table.column(&c.name.value).ok_or_else(unknown);
        };
        let mut columns = view.columns.iter();
        let found = columns.find(|(name, _)| eq_name(name, &c.name.value));
        let (name, place) = found.ok_or_else(unknown)?;
        match view.column_at(*place) {
            Some(column) => Ok(column),
            None => Err(SqlError::new(ErrorCode::ER_NONUPDATEABLE_COLUMN, &[name])),
        }
    }

    /// The columns of the table that an INSERT without a list of columns gives values for, if it
    /// names a view.
    ///
    /// # Errors
    /// 1348 if the view computes a column.
    pub(super) fn view_columns(&self) -> Result<Option<Vec<usize>>, SqlError> {
        let Some(view) = &self.view else {
            return Ok(None);
        };
        let column = |(name, place): &(Arc<str>, usize)| {
            let computed = || SqlError::new(ErrorCode::ER_NONUPDATEABLE_COLUMN, &[name]);
            view.column_at(*place).ok_or_else(computed)
        };
        view.columns
            .iter()
            .map(column)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Error 1471 for a view that computes a column, or has one twice.
    pub(super) fn refuse_computed(&self) -> Result<(), SqlError> {
        let computes = |view: &ViewTarget| !view.computed.is_empty();
        match self.view.as_deref().is_some_and(computes) {
            true => Err(SqlError::new(
                ErrorCode::ER_NON_INSERTABLE_TABLE,
                &[&self.scope[0].alias, &"INSERT"],
            )),
            false => Ok(()),
        }
    }

    /// Puts what the view computes in the place of its columns.
    pub(super) fn put_computed<'e>(
        &self,
        exprs: impl IntoIterator<Item = &'e mut Expr>,
    ) -> Result<(), SqlError> {
        let Some(view) = &self.view else {
            return Ok(());
        };
        if view.computed.is_empty() {
            return Ok(());
        }
        refuse_correlated(&self.subqueries)?;
        exprs.into_iter().for_each(|e| view.put_computed(e));
        Ok(())
    }

    /// The view, for the plan.
    ///
    /// # Errors
    /// 1235 for WITH CHECK OPTION over a subquery.
    pub(super) fn changed_view(&self) -> Result<Option<Arc<ChangedView>>, SqlError> {
        let Some(view) = &self.view else {
            return Ok(None);
        };
        let has_subquery = |e: &Expr| e.any(&mut |e| matches!(e.kind, ExprKind::Subquery { .. }));
        if view.check.iter().any(has_subquery) {
            return Err(SqlError::not_supported("WITH CHECK OPTION over a subquery"));
        }
        Ok(Some(Arc::new(ChangedView {
            schema: view.schema.clone(),
            name: view.name.clone(),
            check: view.check.clone(),
        })))
    }
}

impl ViewTarget {
    /// The table's column at a place of the slot, or that a column behind them is.
    fn column_at(&self, place: usize) -> Option<usize> {
        match place.checked_sub(self.width) {
            None => Some(place),
            Some(n) => self.computed[n]
                .as_column()
                .map(|at| usize::from(at.column)),
        }
    }

    fn put_computed(&self, e: &mut Expr) {
        let place = e.as_column().filter(|at| at.table == 0);
        let computed = place.and_then(|at| usize::from(at.column).checked_sub(self.width));
        match computed.and_then(|n| self.computed.get(n)) {
            Some(computed) => e.kind = computed.kind.clone(),
            None => e.each_child_mut(&mut |child| self.put_computed(child)),
        }
    }
}

/// Subqueries name columns of the view by their place, where nothing can be put in.
fn refuse_correlated(subqueries: &[Subquery]) -> Result<(), SqlError> {
    match subqueries.iter().any(|s| s.correlated) {
        true => Err(SqlError::not_supported(
            "correlated subqueries beside a view with expressions that is changed",
        )),
        false => Ok(()),
    }
}

/// Binds a view whose rows are changed. `refused`: the error if they cannot be.
fn open(
    cx: &BindCx<'_>,
    def: &TableDef,
    (refused, verb): (&dyn Fn() -> SqlError, &str),
) -> Result<Opened, SqlError> {
    let view = def.view().map(|v| &**v).ok_or_else(refused)?;
    let invalid = || SqlError::new(ErrorCode::ER_VIEW_INVALID, &[&def.schema, &def.name]);
    let unchecked = BindCx {
        plan: PlanCx {
            column_uses: None,
            ..cx.plan
        },
        ..*cx
    };
    let bound =
        bind_view(&unchecked, (Some(def), view)).map_err(|e| {
            match super::from::is_of_names(&e) {
                true => invalid(),
                false => e,
            }
        })?;
    if view.algorithm == ViewAlgorithm::TempTable || !is_updatable(&bound.query) {
        return Err(refused());
    }
    let ast::Statement::Query(query) = parse(&view.text, LexMode::from_bits(view.lexing))? else {
        return Err(refused());
    };
    let select = select_of(&query).ok_or_else(refused)?;
    let factor = match select.from.as_slice() {
        [TableRef::Table(factor)] => factor,
        [] | [TableRef::Derived { .. } | TableRef::JsonTable(_)] => return Err(refused()),
        _ => return Err(of_several_tables(def, verb).unwrap_or_else(refused)),
    };
    let view_cx = view_cx(cx, (Some(def), view))?;
    let mut b = BlockBinder::new(&view_cx, None);
    match b.find_table(&factor.name)?.1 {
        Source::Table(inner) if inner.is_view() => {
            let opened = open(&view_cx, &inner, (refused, verb))?;
            b.install(opened, factor.alias.as_ref().unwrap_or(&factor.name.name));
        }
        Source::Table(_) => {
            b.single(factor, "UPDATE")?;
        }
        _ => return Err(refused()),
    }
    layer(b, (def, view), select).and_then(|opened| opened.ok_or_else(invalid))
}

/// The error of a view of several tables.
fn of_several_tables(def: &TableDef, verb: &str) -> Option<SqlError> {
    let code = match verb {
        "DELETE" => ErrorCode::ER_VIEW_DELETE_MERGE_VIEW,
        "INSERT" => ErrorCode::ER_VIEW_NO_INSERT_FIELD_LIST,
        "UPDATE" => {
            let what = "changing rows through a view of several tables";
            return Some(SqlError::not_supported(what));
        }
        _ => return None,
    };
    Some(SqlError::new(code, &[&def.schema, &def.name]))
}

/// Adds one view to the table, or to the view, that `b` has as its only slot. `None`: the view's
/// query has other columns now.
fn layer(
    mut b: BlockBinder<'_>,
    (def, view): (&TableDef, &ViewDef),
    select: &ast::Select,
) -> Result<Option<Opened>, SqlError> {
    let shown = match &b.view {
        None => b.shown_of(0),
        Some(lower) => {
            let column = |place: &usize| ColumnAt {
                table: 0,
                column: *place as u16,
            };
            lower
                .columns
                .iter()
                .map(|(_, place)| column(place))
                .collect()
        }
    };
    let mut info = FromInfo {
        shown,
        ..FromInfo::default()
    };
    // Only the columns that the statement names need a privilege.
    b.unchecked = true;
    let items = b.items(select, &info)?;
    b.unchecked = false;
    let mut items: Vec<Expr> = items.into_iter().map(|item| item.expr).collect();
    let mut own = b.where_conditions(&mut info, select.selection.as_ref())?;
    b.put_computed(items.iter_mut().chain(&mut own))?;
    if items.len() != def.columns.len() {
        return Ok(None);
    }
    let lower = b.view.take();
    let base_scope = lower.as_ref().map_or(b.cx.view_scope, |l| l.base_scope);
    let (below, checked) = lower.map_or_else(Default::default, |l| (l.conditions, l.check));
    let (Some(mut slot), Some(table)) = (b.scope.pop(), b.tables.pop()) else {
        return Ok(None);
    };
    let mut used = b.used.borrow_mut().pop().unwrap_or_default();
    let Source::Table(base) = &table.source else {
        return Ok(None);
    };
    let width = base.columns.len();
    let mut target = ViewTarget {
        schema: def.schema.clone(),
        name: def.name.clone(),
        base_scope,
        columns: Vec::with_capacity(items.len()),
        width,
        computed: Vec::new(),
        check: match view.check {
            ViewCheck::None => checked,
            ViewCheck::Local => [checked, own.clone()].concat(),
            ViewCheck::Cascaded => [below.clone(), own.clone()].concat(),
        },
        conditions: [below, own].concat(),
    };
    name_columns(&mut slot, &mut target, (def, items));
    used.resize(width + target.computed.len(), false);
    Ok(Some(Opened {
        slot,
        table,
        used,
        subqueries: b.subqueries,
        target,
    }))
}

/// Names the columns of the slot as the view does.
fn name_columns(
    slot: &mut ScopeSlot,
    target: &mut ViewTarget,
    (def, items): (&TableDef, Vec<Expr>),
) {
    slot.columns.truncate(target.width);
    for column in &mut slot.columns {
        column.name = "\0".into();
        column.visible = false;
    }
    for (item, column) in items.into_iter().zip(&def.columns) {
        let free = |at: &ColumnAt| &*slot.columns[usize::from(at.column)].name == "\0";
        let place = match item.as_column().filter(free) {
            Some(at) => usize::from(at.column),
            None => {
                slot.columns.push(ScopeColumn {
                    name: "\0".into(),
                    ty: item.ty.col.clone(),
                    nullable: item.ty.nullable,
                    coercibility: Some(item.ty.coercibility),
                    made: true,
                    visible: false,
                });
                target.computed.push(item);
                slot.columns.len() - 1
            }
        };
        slot.columns[place].name = column.name.clone();
        slot.columns[place].visible = true;
        target.columns.push((column.name.clone(), place));
    }
}

/// The SELECT that a view consists of.
fn select_of(query: &ast::Query) -> Option<&ast::Select> {
    if query.with.is_some() {
        return None;
    }
    match &query.body {
        AstBody::Select(select) => Some(select),
        AstBody::Paren(inner) => select_of(inner),
        _ => None,
    }
}

/// Whether each row of a query is a row of a table.
fn is_updatable(query: &Query) -> bool {
    let QueryBody::Block(block) = &query.body else {
        return false;
    };
    let plain = query.limit.is_none()
        && block.group.is_none()
        && !block.distinct
        && block.windows.is_empty()
        && block.having.is_empty();
    let correlated = |e: &Expr| {
        e.any(&mut |e| match &e.kind {
            ExprKind::Subquery { index, .. } => block
                .subqueries
                .get(usize::from(*index))
                .is_some_and(|s| s.correlated),
            _ => false,
        })
    };
    let stored = |t: &Table| match &t.source {
        Source::Table(_) => true,
        Source::Derived(q) => is_updatable(q),
        Source::Virtual(_) | Source::Json(_) => false,
    };
    plain && block.tables.iter().any(stored) && !block.select.iter().any(correlated)
}

/// Whether rows can be changed through a view, as `information_schema.VIEWS` says.
///
/// # Errors
/// Those of binding the view's query.
pub fn view_is_updatable(cx: &PlanCx<'_>, view: &ViewDef) -> Result<bool, SqlError> {
    if view.algorithm == ViewAlgorithm::TempTable {
        return Ok(false);
    }
    let bound = bind_view(&BindCx::new(cx), (None, view))?;
    Ok(is_updatable(&bound.query))
}
