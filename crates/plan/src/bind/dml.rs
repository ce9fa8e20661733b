//! INSERT, REPLACE, UPDATE, DELETE.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, TableDef, Visibility};
use nfold_sql::ast::{self, ColumnRef, OrderItem, TableFactor, TableRef};
use nfold_types::{ErrorCode, SqlError};

use super::from::{FromInfo, scope_columns};
use super::names::display;
use super::{
    BindCx, BlockBinder, ScopeColumn, ScopeSlot, SourceColumns, block, stored, tables, with,
};
use crate::logical::clauses::{Assignment, LimitPlan, RowLocking};
use crate::logical::column_uses::{CheckStage, ColumnAccess};
use crate::logical::context::ParamType;
use crate::logical::expr::{ColumnAt, Expr, ExprType};
use crate::logical::pad::pad;
use crate::logical::query::{Block, IndexHints, Query, QueryBody, Source, Subquery, Table};
use crate::logical::statement::{Delete, Insert, InsertRows, Statement, Update};

pub(super) fn base_table(
    source: &Source,
    name: &str,
    verb: &str,
) -> Result<Arc<TableDef>, SqlError> {
    match source {
        Source::Table(t) => Ok(t.clone()),
        _ => Err(SqlError::new(
            ErrorCode::ER_NON_UPDATABLE_TABLE,
            &[&name, &verb],
        )),
    }
}

pub(super) fn insert(cx: &BindCx<'_>, i: &ast::Insert) -> Result<Statement, SqlError> {
    if !i.partitions.is_empty() {
        return Err(SqlError::not_supported("PARTITION selection"));
    }
    let mut b = BlockBinder::new(cx, None);
    b.single(&target_of(i), "INSERT")
        .map_err(|e| of_joined_view(i, e))?;
    let table = base_table(&b.tables[0].source, &i.table.name.value, "INSERT")?;
    let mut columns: Vec<usize> = Vec::new();
    let named: Option<Vec<ColumnRef>> = match (&i.columns, &i.source) {
        (_, ast::InsertSource::Set(list)) => Some(list.iter().map(|a| a.column.clone()).collect()),
        // `INSERT INTO t () ...` names all columns.
        (columns, _) => columns.clone().filter(|list| !list.is_empty()),
    };
    match &named {
        None => match b.view_columns()? {
            Some(all) => columns = all,
            None => {
                let all = table.columns.iter().enumerate();
                let visible = all.filter(|(_, c)| c.visibility == Visibility::Visible);
                columns.extend(visible.map(|(c, _)| c));
            }
        },
        Some(list) => {
            for c in list {
                let at = b.target_column(&table, c, "field list")?;
                if columns.contains(&at) {
                    return Err(SqlError::new(
                        ErrorCode::ER_FIELD_SPECIFIED_TWICE,
                        &[&c.name.value],
                    ));
                }
                columns.push(at);
            }
        }
    }
    b.refuse_computed()?;
    let access = match named {
        Some(_) => ColumnAccess::Insert,
        None => ColumnAccess::InsertAll,
    };
    columns
        .iter()
        .for_each(|c| b.assign_column(&table, *c, access));
    let source = match &i.source {
        ast::InsertSource::Values(rows) => InsertRows::Rows(rows_of(
            &mut b,
            rows,
            &table,
            &mut columns,
            named.is_some(),
        )?),
        ast::InsertSource::Set(list) => {
            let row = list
                .iter()
                .zip(&columns)
                .map(|(a, &c)| assigned(&mut b, &a.value, (&table, c)))
                .collect::<Result<_, _>>()?;
            InsertRows::Rows(vec![row])
        }
        ast::InsertSource::RowsParam(n) => {
            let width = match cx.params.get(*n as usize) {
                Some(ParamType::List { width, .. }) => *width,
                _ => return Err(SqlError::not_supported("these rows")),
            };
            if width != columns.len() {
                return Err(SqlError::new(ErrorCode::ER_WRONG_VALUE_COUNT_ON_ROW, &[&1]));
            }
            refuse_generated(&table, &columns)?;
            InsertRows::Param(*n)
        }
        ast::InsertSource::Query(q) => {
            // Derived tables need not be materialized: an INSERT into a table that it reads
            // collects the rows first.
            let source = BindCx {
                keeps_derived: false,
                ..*cx
            };
            let named = named_of_query(cx, i, &table, &columns)?;
            let mut query = query_with(&source, q, &named)?;
            if query.types.len() != columns.len() + named.len() {
                return Err(SqlError::new(ErrorCode::ER_WRONG_VALUE_COUNT_ON_ROW, &[&1]));
            }
            refuse_generated(&table, &columns)?;
            let into = columns.iter().map(|&c| &table.columns[c]);
            stored::selected(cx, &mut query, into);
            if !named.is_empty() {
                b.source_columns = Some(SourceColumns {
                    named,
                    shared: Vec::new(),
                    place: Some(ColumnAt {
                        table: 2,
                        column: columns.len() as u16,
                    }),
                });
            }
            InsertRows::Query(query)
        }
        ast::InsertSource::File { .. } => return super::load::load(cx, i),
    };
    let on_duplicate = on_duplicate(&mut b, i, &table, &columns, &source)?;
    let name = &i.table.name.value;
    let own = |e| own_table_of_view(e, name, b.view.is_some(), "INSERT");
    let refuse = match b.view {
        Some(_) => refuse_own_table,
        None => refuse_own_name,
    };
    refuse(&table, name, &b.subqueries).map_err(own)?;
    Ok(Statement::Insert(Box::new(Insert {
        table,
        columns,
        source,
        ignore: i.ignore,
        replace: i.replace,
        on_duplicate,
        view: b.changed_view()?,
        subqueries: b.subqueries,
    })))
}

/// The error of an INSERT into a view of several tables that names its columns.
fn of_joined_view(i: &ast::Insert, e: SqlError) -> SqlError {
    let named = i.columns.is_some() || matches!(i.source, ast::InsertSource::Set(_));
    match e.code == ErrorCode::ER_VIEW_NO_INSERT_FIELD_LIST && named {
        true => SqlError::not_supported("changing rows through a view of several tables"),
        false => e,
    }
}

/// Error 3105 if a generated column is among the columns that get values.
fn refuse_generated(table: &TableDef, columns: &[usize]) -> Result<(), SqlError> {
    let generated = |c: &&usize| table.columns[**c].generated.is_some();
    match columns.iter().find(generated) {
        Some(c) => Err(value_for_generated(table, *c)),
        None => Ok(()),
    }
}

fn value_for_generated(table: &TableDef, column: usize) -> SqlError {
    let code = ErrorCode::ER_NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN;
    SqlError::new(code, &[&table.columns[column].name, &table.name])
}

/// Binds the value that a statement assigns to a column. Error 3105 for a generated column.
pub(super) fn assigned(
    b: &mut BlockBinder<'_>,
    e: &ast::Expr,
    (table, column): (&TableDef, usize),
) -> Result<Option<Expr>, SqlError> {
    let def = &table.columns[column];
    if def.generated.is_some() && !takes_default(e, &def.name) {
        return Err(value_for_generated(table, column));
    }
    match def.generated {
        Some(_) => Ok(None),
        None => value(b, e, def),
    }
}

/// Whether `e` is `DEFAULT`, or `DEFAULT(column)` of the column itself.
fn takes_default(e: &ast::Expr, column: &str) -> bool {
    match e {
        ast::Expr::Default(None) => true,
        ast::Expr::Default(Some(c)) => eq_name(&c.name.value, column),
        _ => false,
    }
}

/// Binds a value for `column`, converted as it will be stored. `None` means DEFAULT.
pub(super) fn value(
    b: &mut BlockBinder<'_>,
    e: &ast::Expr,
    column: &ColumnDef,
) -> Result<Option<Expr>, SqlError> {
    match e {
        ast::Expr::Default(None) => Ok(None),
        e => {
            let mut e = b.expr(e)?;
            if b.cx.pads_char() {
                pad(b.cx.funcs, &|_| true, &mut e);
            }
            if stored::is_stored_as_text(b.cx, &e, false) {
                stored::as_text(&mut e, column);
            }
            stored::keep_digits(b.cx, &mut e, column);
            Ok(Some(e))
        }
    }
}

fn rows_of(
    b: &mut BlockBinder<'_>,
    rows: &[Vec<ast::Expr>],
    table: &TableDef,
    columns: &mut Vec<usize>,
    named: bool,
) -> Result<Vec<Vec<Option<Expr>>>, SqlError> {
    // `INSERT INTO t VALUES ()` gives every column its default.
    if !named && rows.iter().all(Vec::is_empty) {
        columns.clear();
    }
    let mut out = Vec::with_capacity(rows.len());
    for (n, row) in rows.iter().enumerate() {
        if row.len() != columns.len() {
            return Err(SqlError::new(
                ErrorCode::ER_WRONG_VALUE_COUNT_ON_ROW,
                &[&(n + 1)],
            ));
        }
        out.push(
            row.iter()
                .zip(columns.iter())
                .map(|(e, &c)| assigned(b, e, (table, c)))
                .collect::<Result<Vec<_>, _>>()?,
        );
    }
    Ok(out)
}

/// The columns of the table, by the names that the statement has for them.
fn columns_of_target(b: &BlockBinder<'_>, table: &TableDef) -> Vec<ScopeColumn> {
    let mut columns = scope_columns(table);
    for (column, named) in columns.iter_mut().zip(&b.scope[0].columns) {
        column.name = named.name.clone();
    }
    columns
}

fn on_duplicate(
    b: &mut BlockBinder<'_>,
    i: &ast::Insert,
    table: &Arc<TableDef>,
    given: &[usize],
    source: &InsertRows,
) -> Result<Vec<Assignment>, SqlError> {
    if let Some(alias) = &i.row_alias {
        check_row_alias(alias, &b.scope[0].alias, given.len())?;
    }
    if i.on_duplicate.is_empty() {
        return Ok(Vec::new());
    }
    // Slot 1 is the row that was to be inserted. Without a row alias it has no name, and only
    // `VALUES(c)` finds it, by number.
    let (alias, columns): (Arc<str>, _) = match &i.row_alias {
        Some(a) => {
            let mut columns = columns_of_target(b, table);
            if !a.columns.is_empty() {
                // Columns without a value in the statement cannot be named.
                columns.iter_mut().for_each(|c| c.name = "\0".into());
            }
            for (&c, name) in given.iter().zip(&a.columns) {
                columns[c].name = name.value.as_str().into();
            }
            (Arc::from(a.name.value.as_str()), columns)
        }
        None => (Arc::from("\0values"), columns_of_target(b, table)),
    };
    if i.row_alias.is_none() {
        for c in 0..columns.len() {
            b.hidden.push((1, c));
        }
    }
    push_row(b, table, alias, columns);
    if i.row_alias.as_ref().is_some_and(|a| a.columns.is_empty()) {
        // As in MySQL, a value of the new row needs the privilege on the table's column.
        b.scope[1].object = b.scope[0].object.clone();
    }
    b.values_slot = Some(1);
    // Slot 2 is the row of the query, if its columns are named.
    if let (Some(_), InsertRows::Query(query)) = (&b.source_columns, source) {
        let column = |ty: &ExprType| ScopeColumn {
            name: "\0".into(),
            ty: ty.col.clone(),
            nullable: ty.nullable,
            coercibility: Some(ty.coercibility),
            made: false,
            visible: true,
        };
        let columns = query.types.iter().map(column).collect();
        push_row(b, table, Arc::from("\0source"), columns);
    }
    assignments(b, &i.on_duplicate, table, 0)
}

/// Adds a row slot that the assignments of ON DUPLICATE KEY UPDATE may name.
fn push_row(
    b: &mut BlockBinder<'_>,
    table: &Arc<TableDef>,
    alias: Arc<str>,
    columns: Vec<ScopeColumn>,
) {
    b.used.borrow_mut().push(vec![false; columns.len()]);
    b.scope.push(ScopeSlot {
        schema: None,
        object: None,
        view_schema: None,
        alias: alias.clone(),
        columns,
        dependencies: Vec::new(),
    });
    b.tables.push(Table {
        source: Source::Table(table.clone()),
        alias,
        used: Vec::new(),
        documents: Vec::new(),
        merged: false,
        in_subquery: false,
        nullable: false,
        hints: IndexHints::default(),
        lateral: 0,
        shared: None,
        common: None,
        unpushed: None,
    });
}

/// Collects the columns of the query's tables that ON DUPLICATE KEY UPDATE names.
fn named_of_query(
    cx: &BindCx<'_>,
    i: &ast::Insert,
    table: &Arc<TableDef>,
    given: &[usize],
) -> Result<Vec<ColumnRef>, SqlError> {
    if i.on_duplicate.is_empty() {
        return Ok(Vec::new());
    }
    let mut b = BlockBinder::new(cx, None);
    b.single(&target_of(i), "INSERT")?;
    b.source_columns = Some(SourceColumns::default());
    // This pass ignores errors: the assignments are bound once more, with the query, and fail then.
    let _ = on_duplicate(&mut b, i, table, given, &InsertRows::Rows(Vec::new()));
    let Some(sources) = b.source_columns else {
        return Ok(Vec::new());
    };
    if let ast::InsertSource::Query(query) = &i.source {
        refuse_shared(cx, query, &sources.shared)?;
    }
    Ok(sources.named)
}

/// Error 1052 for a name that a table of the query has as well as the changed table.
fn refuse_shared(
    cx: &BindCx<'_>,
    query: &ast::Query,
    shared: &[ColumnRef],
) -> Result<(), SqlError> {
    let mut query = query.clone();
    let Some(select) = select_of(&mut query).filter(|s| s.group_by.is_empty()) else {
        return Ok(());
    };
    if shared.is_empty() || select.from.is_empty() || query.with.is_some() {
        return Ok(());
    }
    let Some(select) = select_of(&mut query) else {
        return Ok(());
    };
    let mut b = BlockBinder::new(cx, None);
    b.from(&select.from)?;
    let twice = shared.iter().find(|c| !matches!(b.find(c), Ok(None)));
    match twice {
        None => Ok(()),
        Some(c) => {
            let code = ErrorCode::ER_NON_UNIQ_ERROR;
            Err(SqlError::new(code, &[&c.name, &"field list"]))
        }
    }
}

/// Binds the query of INSERT ... SELECT with the columns `named` appended to its own.
///
/// # Errors
/// 1054 if it is grouped or a set operation, 1235 with DISTINCT.
fn query_with(cx: &BindCx<'_>, query: &ast::Query, named: &[ColumnRef]) -> Result<Query, SqlError> {
    let Some(first) = named.first() else {
        return block::bind_query(cx, query, None);
    };
    let unknown = || {
        let code = ErrorCode::ER_BAD_FIELD_ERROR;
        SqlError::new(code, &[&display(first), &"field list"])
    };
    let mut query = query.clone();
    let Some(select) = select_of(&mut query) else {
        return Err(unknown());
    };
    if !select.group_by.is_empty() {
        return Err(unknown());
    }
    let distinct = std::mem::take(&mut select.distinct);
    if distinct {
        group_by_all(select)?;
    }
    let value = |c: &ColumnRef| {
        let column = ast::Expr::Column(Box::new(c.clone()));
        match distinct {
            true => any_value(column),
            false => column,
        }
    };
    select
        .items
        .extend(named.iter().map(|c| ast::SelectItem::Expr {
            expr: value(c),
            alias: None,
            text: ast::Span::default(),
        }));
    block::bind_query(cx, &query, None).map_err(|e| match e.code {
        ErrorCode::ER_MIX_OF_GROUP_FUNC_AND_FIELDS => unknown(),
        _ => e,
    })
}

/// Replaces DISTINCT by GROUP BY of all select items: each row then has other columns, too, of one
/// of the rows that it stands for.
///
/// # Errors
/// 1235 for items that may be several columns.
fn group_by_all(select: &mut ast::Select) -> Result<(), SqlError> {
    let single = |i: &ast::SelectItem| matches!(i, ast::SelectItem::Expr { .. });
    if !select.items.iter().all(single) {
        let what = "DISTINCT * with columns of the query in ON DUPLICATE KEY UPDATE";
        return Err(SqlError::not_supported(what));
    }
    let places = 1..=select.items.len() as u64;
    let place = |n| ast::Expr::Literal(ast::Literal::Int(n));
    select.group_by = places.map(place).collect();
    Ok(())
}

fn any_value(argument: ast::Expr) -> ast::Expr {
    ast::Expr::Function(Box::new(ast::FunctionCall {
        schema: None,
        stored: false,
        name: "any_value".into(),
        span: ast::Span::default(),
        distinct: false,
        star: false,
        args: vec![argument],
        arg_spans: Vec::new(),
        order_by: Vec::new(),
        separator: None,
        over: None,
    }))
}

/// The SELECT of a query that is nothing else, with or without parentheses.
fn select_of(query: &mut ast::Query) -> Option<&mut ast::Select> {
    match &mut query.body {
        ast::QueryBody::Select(select) => Some(select),
        ast::QueryBody::Paren(inner) => select_of(inner),
        _ => None,
    }
}

/// The target table of an INSERT.
pub(super) fn target_of(i: &ast::Insert) -> TableFactor {
    TableFactor {
        name: i.table.clone(),
        partitions: Vec::new(),
        alias: None,
        hints: Vec::new(),
    }
}

/// Checks `AS new(a, b)`, which names the columns that get values, in their order.
///
/// # Errors
/// 1066 if it is the name of the table, 1353 if there are more or fewer names than columns, 1060 if
/// two names are equal.
fn check_row_alias(alias: &ast::RowAlias, table: &str, given: usize) -> Result<(), SqlError> {
    if alias.name.value == *table {
        let code = ErrorCode::ER_NONUNIQ_TABLE;
        return Err(SqlError::new(code, &[&alias.name.value]));
    }
    let names = &alias.columns;
    if !names.is_empty() && names.len() != given {
        return Err(SqlError::new(ErrorCode::ER_VIEW_WRONG_LIST, &[]));
    }
    for (n, name) in names.iter().enumerate() {
        let same = |other: &&ast::Ident| eq_name(&other.value, &name.value);
        if let Some(first) = names[..n].iter().find(same) {
            let code = ErrorCode::ER_DUP_FIELDNAME;
            return Err(SqlError::new(code, &[&first.value]));
        }
    }
    Ok(())
}

fn assignments(
    b: &mut BlockBinder<'_>,
    list: &[ast::Assignment],
    table: &TableDef,
    target: usize,
) -> Result<Vec<Assignment>, SqlError> {
    let mut out = Vec::with_capacity(list.len());
    for a in list {
        b.clause = "field list";
        if let Some(t) = &a.column.table
            && *b.scope[target].alias != *t.value
        {
            return Err(SqlError::new(
                ErrorCode::ER_BAD_FIELD_ERROR,
                &[&display(&a.column), &"field list"],
            ));
        }
        let column = b.target_column(table, &a.column, "field list")?;
        // An update compares the new value with the old one: a row that stays the same does not
        // count as changed.
        b.mark_used(target, column);
        b.assign_column(table, column, ColumnAccess::Update);
        out.push(Assignment {
            column,
            value: assigned(b, &a.value, (table, column))?,
        });
    }
    Ok(out)
}

/// Error 1093 if a subquery reads the table that the statement changes. Derived tables are exempt,
/// because their rows are copied before the first change.
pub(super) fn refuse_own_table(
    table: &TableDef,
    name: &str,
    subqueries: &[Subquery],
) -> Result<(), SqlError> {
    refuse_reads(name, subqueries, &|t| is_table(t, table))
}

/// Error 1093 if a subquery of an INSERT reads the table under its own name. As in MySQL, it may
/// read the table under an alias.
fn refuse_own_name(table: &TableDef, name: &str, subqueries: &[Subquery]) -> Result<(), SqlError> {
    refuse_reads(name, subqueries, &|t| {
        is_table(t, table) && *t.alias == *name
    })
}

fn is_table(slot: &Table, table: &TableDef) -> bool {
    matches!(&slot.source, Source::Table(t) if t.id == table.id)
}

/// Error 1093 if a subquery reads a table for which `refused` holds.
fn refuse_reads(
    name: &str,
    subqueries: &[Subquery],
    refused: &dyn Fn(&Table) -> bool,
) -> Result<(), SqlError> {
    fn reads(q: &Query, refused: &dyn Fn(&Table) -> bool) -> bool {
        match &q.body {
            QueryBody::Rows(_) | QueryBody::Working(_) => false,
            QueryBody::Recursive(r) => {
                reads(&r.seed, refused) || r.steps.iter().any(|q| reads(q, refused))
            }
            QueryBody::Set { left, right, .. } => reads(left, refused) || reads(right, refused),
            QueryBody::Block(b) => {
                b.tables.iter().any(refused)
                    || b.subqueries.iter().any(|s| reads(&s.query, refused))
            }
        }
    }
    if subqueries.iter().any(|s| reads(&s.query, refused)) {
        return Err(SqlError::new(ErrorCode::ER_UPDATE_TABLE_USED, &[&name]));
    }
    Ok(())
}

/// Error 1443 in place of 1093 for the table of a view that the statement names.
fn own_table_of_view(e: SqlError, alias: &str, is_view: bool, verb: &str) -> SqlError {
    let code = ErrorCode::ER_VIEW_PREVENT_UPDATE;
    match is_view {
        true => SqlError::new(code, &[&alias, &verb, &alias]),
        false => e,
    }
}

/// The only table of an UPDATE or DELETE; `None` if there are several.
fn single(refs: &[TableRef]) -> Option<&TableFactor> {
    match refs {
        [TableRef::Table(t)] => Some(t),
        _ => None,
    }
}

/// Binds WHERE, ORDER BY and LIMIT of a statement that changes one table.
fn find_rows_of_one(
    cx: &BindCx<'_>,
    mut b: BlockBinder<'_>,
    mut info: FromInfo,
    selection: Option<&ast::Expr>,
    order_by: &[OrderItem],
    limit: Option<&ast::Expr>,
) -> Result<(Block, Option<LimitPlan>), SqlError> {
    let mut conditions = b.where_conditions(&mut info, selection)?;
    b.clause = "order clause";
    b.enter_stage(CheckStage::Order);
    let mut order = b.order_keys(order_by, &[])?;
    let keys = order.iter_mut().map(|k| &mut k.expr);
    b.put_computed(conditions.iter_mut().chain(keys))?;
    conditions.extend(
        b.view
            .iter()
            .flat_map(|view| view.conditions.iter().cloned()),
    );
    let limit = match limit {
        None => None,
        Some(e) => Some(LimitPlan {
            offset: None,
            count: b.expr(e)?,
        }),
    };
    let mut block = find_rows(cx, b, info, conditions, 1);
    block.order = order;
    Ok((block, limit))
}

/// Builds the block that finds the rows to change. `changed` is the bit set of the slots that
/// change.
pub(super) fn find_rows(
    cx: &BindCx<'_>,
    mut b: BlockBinder<'_>,
    info: FromInfo,
    mut conditions: Vec<Expr>,
    changed: u64,
) -> Block {
    b.mark_assigned_vars(conditions.iter_mut());
    let used = b.used.take();
    for (t, (table, used)) in b.tables.iter_mut().zip(used).enumerate() {
        let changes = changed >> t & 1 == 1;
        table.used = used;
        if changes && let Source::Table(def) = &table.source {
            table.used.truncate(def.columns.len());
            // An update computes the keys of the new version. It copies the other columns as they
            // are stored, and so shares their overflow chains with the old version.
            let parts = def.indexes.iter().flat_map(|index| &index.parts);
            parts.for_each(|part| table.used[part.column] = true);
            // Stored expressions are computed from the new version.
            let named = def.stored_exprs().flat_map(|e| &e.columns);
            for column in named.filter_map(|name| def.column(name)) {
                table.used[column] = true;
            }
        }
        // With `sql_safe_updates`, any usable key is preferred to a scan, at any cost.
        table.hints.force |= cx.safe_updates && changes;
    }
    Block {
        conditions,
        outer_joins: info.outer_joins,
        straight_joins: info.straight_joins,
        semijoin: None,
        lock: RowLocking::TO_CHANGE,
        changed,
        warnings: b.warnings,
        pads_char: cx.pads_char(),
        ..Block::of_tables(b.tables, b.subqueries)
    }
}

pub(super) fn update(cx: &BindCx<'_>, u: &ast::Update) -> Result<Statement, SqlError> {
    with::with_ctes(cx, u.with.as_ref(), None, |cx| update_within(cx, u))
}

fn update_within(cx: &BindCx<'_>, u: &ast::Update) -> Result<Statement, SqlError> {
    let Some(factor) = single(&u.tables) else {
        return tables::update(cx, u);
    };
    let mut b = BlockBinder::new(cx, None);
    let info = b.single(factor, "UPDATE")?;
    let table = base_table(&b.tables[0].source, &b.scope[0].alias, "UPDATE")?;
    let name = b.scope[0].alias.clone();
    b.enter_stage(CheckStage::Set);
    let mut assignments = assignments(&mut b, &u.assignments, &table, 0)?;
    b.enter_stage(CheckStage::First);
    b.put_computed(assignments.iter_mut().flat_map(|a| &mut a.value))?;
    let view = b.changed_view()?;
    let own = |e| own_table_of_view(e, &name, view.is_some(), "UPDATE");
    let (source, limit) = find_rows_of_one(
        cx,
        b,
        info,
        u.selection.as_ref(),
        &u.order_by,
        u.limit.as_ref(),
    )?;
    refuse_own_table(&table, &name, &source.subqueries).map_err(own)?;
    Ok(Statement::Update(Box::new(Update {
        table,
        source,
        limit,
        assignments,
        ignore: u.ignore,
        view,
    })))
}

pub(super) fn delete(cx: &BindCx<'_>, d: &ast::Delete) -> Result<Statement, SqlError> {
    with::with_ctes(cx, d.with.as_ref(), None, |cx| delete_within(cx, d))
}

fn delete_within(cx: &BindCx<'_>, d: &ast::Delete) -> Result<Statement, SqlError> {
    let (Some(factor), true) = (single(&d.from), d.targets.is_empty()) else {
        return tables::delete(cx, d);
    };
    let mut b = BlockBinder::new(cx, None);
    let info = b.single(factor, "DELETE")?;
    let table = base_table(&b.tables[0].source, &b.scope[0].alias, "DELETE")?;
    let is_view = b.view.is_some();
    let name = b.scope[0].alias.clone();
    let (source, limit) = find_rows_of_one(
        cx,
        b,
        info,
        d.selection.as_ref(),
        &d.order_by,
        d.limit.as_ref(),
    )?;
    let own = |e| own_table_of_view(e, &name, is_view, "DELETE");
    refuse_own_table(&table, &name, &source.subqueries).map_err(own)?;
    Ok(Statement::Delete(Box::new(Delete {
        table,
        source,
        limit,
        ignore: d.ignore,
    })))
}
