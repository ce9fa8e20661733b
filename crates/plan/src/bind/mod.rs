//! Names and types: from the syntax tree to bound expressions over row slots.
//!
//! A query block is bound by a [`BlockBinder`]: FROM first, which makes the slots; then WHERE, GROUP BY, the select list, HAVING and
//! ORDER BY, each with MySQL's rules for what a name may mean there. While a block is bound, an aggregate function is a column of
//! the slot [`AGGREGATES`]; [`group`] gives it its place in the grouped row when all are known. A window function is a column of the slot [`WINDOWS`];
//! [`window`] says of which pass's slot it becomes one.

mod aggregate;
mod block;
mod compare;
mod conditions;
mod dml;
mod expr;
mod from;
mod group;
mod keyed;
mod merged;
mod names;
pub(crate) mod pad;
pub(crate) mod rollup;
mod set;
mod stored;
mod tables;
mod types;
mod window;
mod with;

use std::sync::Arc;

use nfold_catalog::{SchemaSnapshot, TableDef, TableId, TableStats};
use nfold_sql::ast::VarScope;
use nfold_sql::digest::{Digested, KindSet, SlotKind};
use nfold_types::collation::CollationId;
use nfold_types::{Checkpoint, ColumnType, ErrorCode, SqlError};

use crate::expr::{Coercibility, Expr, ExprType, SubqueryPlan};
use crate::func::FuncSet;
use crate::mode::SqlMode;
use crate::query::{Aggregate, LimitPlan, Plan, TableSlot};

pub use compare::listed_number;
pub use expr::{is_constant, operand};
pub use from::view_results;
pub(crate) use from::{FromInfo, Hints, MAX_TABLES, OuterJoin};
use keyed::Asked;
pub(crate) use merged::Unplanned;
pub use types::bind_type;
pub use with::Ctes;

/// While binding: the slot of aggregates, before they have their place in the grouped row.
pub(crate) const AGGREGATES: u16 = u16::MAX;

/// While binding: the slot of the calls of GROUPING, before the members of GROUP BY are known.
pub(crate) const GROUPINGS: u16 = u16::MAX - 1;

/// While binding: the slot of window functions, before they have their place in the slots of the passes. Columns of tables are below it.
pub(crate) const WINDOWS: u16 = u16::MAX - 2;

/// What the binder asks of the layers above, besides the schema.
pub trait PlanInfo {
    fn stats(&self, table: TableId) -> Option<Arc<TableStats>>;
    /// Type of a system variable; error 1193 for an unknown one.
    fn sysvar_type(&self, scope: Option<VarScope>, name: &str) -> Result<ColumnType, SqlError>;
    /// Type of a user variable's present value.
    fn user_var_type(&self, name: &str) -> ColumnType;
    /// A system table, looked for where the schema has no such table.
    fn virtual_table(&self, schema: &str, name: &str) -> Option<Arc<TableDef>>;
}

/// Everything a plan depends on but the statement itself.
#[derive(Clone, Copy)]
pub struct PlanCx<'a> {
    pub snapshot: &'a SchemaSnapshot,
    /// What views see: the same without temporary tables.
    pub stored: &'a SchemaSnapshot,
    /// Current database.
    pub db: Option<&'a str>,
    pub mode: SqlMode,
    /// `collation_connection`
    pub connection: CollationId,
    pub funcs: &'static dyn FuncSet,
    pub info: &'a dyn PlanInfo,
    /// Looks at KILL and gives way to other sessions while a large statement is planned.
    pub checkpoint: &'a dyn Checkpoint,
    /// The statement's text, which names columns.
    pub text: &'a [u8],
    /// Types of the parameter slots.
    pub params: &'a [ParamType],
    /// `sql_select_limit`: rows of a SELECT without LIMIT.
    pub select_limit: Option<u64>,
    /// `sql_safe_updates`: UPDATE and DELETE need a key or a LIMIT.
    pub safe_updates: bool,
    /// What WITH has defined around the query at hand.
    pub ctes: Option<&'a Ctes<'a>>,
    /// Queries around the one at hand, one in the other, in whatever place.
    pub depth: usize,
    /// The query at hand is a derived table.
    pub derived: bool,
    /// Derived tables stay tables of their own: the statement changes what they may read.
    pub keeps_derived: bool,
}

impl<'a> PlanCx<'a> {
    /// Of a statement that changes rows.
    fn changing(&self) -> PlanCx<'a> {
        PlanCx {
            keeps_derived: true,
            ..*self
        }
    }

    /// One query deeper.
    ///
    /// # Errors
    /// 1473. The parser sees how deep queries stand in one another, but not that of common table expressions.
    pub(crate) fn deeper(&self) -> Result<PlanCx<'a>, SqlError> {
        match self.depth < MAX_DEPTH {
            true => Ok(PlanCx {
                depth: self.depth + 1,
                ..*self
            }),
            false => Err(too_deep()),
        }
    }
}

fn too_deep() -> SqlError {
    SqlError::new(
        ErrorCode::ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT,
        &[&MAX_DEPTH],
    )
}

/// Type of a parameter slot.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamType {
    One(ExprType),
    /// A folded list: the types its members have, its width, and how many there are (an estimate for costs; never for meaning).
    List {
        members: Vec<ExprType>,
        width: usize,
        count: usize,
    },
}

fn kind_types(kinds: KindSet, connection: CollationId) -> Vec<ExprType> {
    let mut out = Vec::new();
    let mut add = |kind: KindSet, ty: ExprType| {
        if kinds.contains(kind) {
            out.push(ty);
        }
    };
    add(KindSet::INT, ExprType::bigint(false));
    add(KindSet::BOOL, ExprType::boolean(false));
    add(KindSet::BIG_INT, ExprType::ubigint(false));
    add(KindSet::DECIMAL, ExprType::decimal(65, 30, false));
    add(KindSet::FLOAT, ExprType::double(false));
    add(
        KindSet::STRING,
        ExprType::string(255, connection, Coercibility::Coercible, false),
    );
    add(
        KindSet::NATIONAL,
        ExprType::string(
            255,
            CollationId::UTF8MB3_GENERAL_CI,
            Coercibility::Coercible,
            false,
        ),
    );
    add(KindSet::HEX, hex_type(8));
    add(KindSet::BIT, hex_type(8));
    add(KindSet::NULL, ExprType::null());
    out
}

/// Type of a hexadecimal or bit literal: a binary string that acts as a number, which `zerofill` marks.
pub fn hex_type(bytes: u64) -> ExprType {
    let mut ty = ExprType::string(bytes, CollationId::BINARY, Coercibility::Coercible, false);
    ty.col.zerofill = true;
    ty
}

/// Types of the slots of a statement: literals by their kind, `?` by what is bound to them.
pub fn param_types(
    digest: &Digested,
    markers: &[ExprType],
    connection: CollationId,
) -> Vec<ParamType> {
    let one = |kinds: KindSet| {
        kind_types(kinds, connection)
            .into_iter()
            .next()
            .unwrap_or_else(ExprType::null)
    };
    digest
        .slots()
        .iter()
        .map(|slot| match slot.kind {
            SlotKind::Literal(_) => ParamType::One(one(slot.kinds)),
            SlotKind::Marker(n) => {
                ParamType::One(markers.get(n as usize).cloned().unwrap_or_else(|| {
                    ExprType::string(255, connection, Coercibility::Coercible, true)
                }))
            }
            SlotKind::List | SlotKind::Rows => ParamType::List {
                members: kind_types(slot.kinds, connection),
                width: slot.width.max(1) as usize,
                count: slot.count as usize,
            },
        })
        .collect()
}

/// Binds and plans a statement.
///
/// # Errors
/// Whatever MySQL says of unknown names and impossible combinations; 1235 for what is not supported.
pub fn plan_statement(
    cx: &PlanCx<'_>,
    statement: &nfold_sql::ast::Statement,
) -> Result<Plan, SqlError> {
    use nfold_sql::ast::Statement;
    match statement {
        Statement::Query(q) => {
            let mut plan = block::bind_query(cx, q, None)?;
            if plan.limit.is_none() {
                plan.limit = cx.select_limit.map(LimitPlan::rows);
            }
            Ok(Plan::Query(plan))
        }
        Statement::Insert(i) => dml::insert(&cx.changing(), i),
        Statement::Update(u) => dml::update(&cx.changing(), u),
        Statement::Delete(d) => dml::delete(&cx.changing(), d),
        Statement::Do(list) => {
            let mut block = BlockBinder::new(cx, None);
            let exprs = list
                .iter()
                .map(|e| block.expr(e))
                .collect::<Result<_, _>>()?;
            Ok(Plan::Do(exprs, block.subqueries))
        }
        Statement::Explain {
            format,
            analyze,
            statement,
        } => {
            if *analyze || *format != nfold_sql::ast::ExplainFormat::Traditional {
                return Err(SqlError::not_supported(
                    "EXPLAIN ANALYZE, FORMAT=JSON and FORMAT=TREE",
                ));
            }
            let inner = plan_statement(cx, statement)?;
            Ok(Plan::Explain(Box::new(crate::explain::explain(cx, &inner))))
        }
        _ => Err(SqlError::not_supported("this statement as a plan")),
    }
}

/// Binds a single expression over the columns of one virtual table (`SHOW … WHERE`), or over nothing (`SET`, `KILL`).
pub fn bind_free(cx: &PlanCx<'_>, e: &nfold_sql::ast::Expr) -> Result<Expr, SqlError> {
    BlockBinder::new(cx, None).expr(e)
}

/// A name that slots are searched for.
pub(crate) struct ScopeColumn {
    pub name: Arc<str>,
    pub ty: ColumnType,
    pub nullable: bool,
    /// That of the expression, for a derived table that MySQL merges into the query.
    pub coercibility: Option<Coercibility>,
    /// An expression of a derived table that MySQL merges into the query.
    pub made: bool,
}

/// What names see of a slot.
pub(crate) struct ScopeSlot {
    /// Database, where the slot is a table.
    pub schema: Option<Arc<str>>,
    pub alias: Arc<str>,
    pub columns: Vec<ScopeColumn>,
}

/// Binds one query block.
pub(crate) struct BlockBinder<'b> {
    pub cx: &'b PlanCx<'b>,
    pub outer: Option<&'b BlockBinder<'b>>,
    pub scope: Vec<ScopeSlot>,
    pub tables: Vec<TableSlot>,
    /// Columns of USING and NATURAL joins that an unqualified name (and `*`) does not see.
    pub hidden: Vec<(usize, usize)>,
    pub subqueries: Vec<SubqueryPlan>,
    /// Behind a cell because subqueries may have aggregates of this block.
    pub aggregates: std::cell::RefCell<Vec<Aggregate>>,
    /// The arguments of the calls of GROUPING.
    pub groupings: Vec<Vec<Expr>>,
    /// What the block's GROUP BY is.
    pub grouped: rollup::Grouped,
    /// Which columns were named, per slot; behind a cell because subqueries name them too.
    pub used: std::cell::RefCell<Vec<Vec<bool>>>,
    /// A name was found in an enclosing query.
    pub correlated: std::cell::Cell<bool>,
    /// For error 1054.
    pub clause: &'static str,
    /// The first slot whose columns may be named.
    pub in_sight_from: usize,
    /// Aggregate functions may stand here.
    pub aggregates_allowed: bool,
    /// Inside an aggregate's arguments.
    pub in_aggregate: bool,
    /// Window functions may stand here.
    pub windows_allowed: bool,
    /// Inside a window function's arguments or its window.
    pub in_window: bool,
    /// The window whose members are at hand.
    pub window_spec: Option<Arc<str>>,
    pub windows: Vec<window::Draft>,
    /// Select list, for names that may be aliases.
    pub aliases: Vec<(Arc<str>, Expr)>,
    /// GROUP BY's expressions, for HAVING.
    pub keys: Vec<Expr>,
    /// ON DUPLICATE KEY UPDATE: `VALUES(column)` is a column of this slot.
    pub values_slot: Option<u16>,
    /// What is deprecated, and what to write instead: warning 1287.
    pub deprecated: Vec<(&'static str, &'static str)>,
    /// How deep in the statement; bounds recursion.
    pub depth: usize,
    /// Only a constant is wanted: subqueries are refused before they are bound. Otherwise the search for `(SELECT constant)` in nested
    /// subqueries binds each level twice, which doubles the time with each level.
    pub constants_only: bool,
}

/// Query blocks may nest so deep (MySQL: 63).
pub(crate) const MAX_DEPTH: usize = 63;

impl<'b> BlockBinder<'b> {
    pub fn new(cx: &'b PlanCx<'b>, outer: Option<&'b BlockBinder<'b>>) -> Self {
        BlockBinder {
            cx,
            outer,
            scope: Vec::new(),
            tables: Vec::new(),
            hidden: Vec::new(),
            subqueries: Vec::new(),
            aggregates: std::cell::RefCell::default(),
            groupings: Vec::new(),
            grouped: rollup::Grouped::No,
            used: std::cell::RefCell::new(Vec::new()),
            correlated: std::cell::Cell::new(false),
            clause: "field list",
            in_sight_from: 0,
            aggregates_allowed: false,
            in_aggregate: false,
            windows_allowed: false,
            in_window: false,
            window_spec: None,
            windows: Vec::new(),
            aliases: Vec::new(),
            keys: Vec::new(),
            values_slot: None,
            deprecated: Vec::new(),
            depth: outer.map_or(0, |o| o.depth + 1),
            constants_only: false,
        }
    }

    /// Binds a subquery of this block and keeps its plan; gives its place.
    pub fn subquery(
        &mut self,
        query: &nfold_sql::ast::Query,
        asked: Asked,
    ) -> Result<(u16, Vec<ExprType>), SqlError> {
        if self.constants_only {
            return Err(SqlError::not_supported("a subquery in a constant"));
        }
        let bound = block::bind_subquery(self.cx, query, self, asked)?;
        let types = bound.plan.types.clone();
        self.subqueries.push(SubqueryPlan {
            plan: Box::new(bound.plan),
            correlated: bound.correlated,
            keyed: bound.keyed,
        });
        Ok(((self.subqueries.len() - 1) as u16, types))
    }
}
