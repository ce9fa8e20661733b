//! Parts of a query that all stages use unchanged: result columns, LIMIT, sort keys, aggregates,
//! row locks and assignments.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::{LockStrength, LockWait};
use nfold_types::{ColumnType, Value};

use super::expr::Expr;
use super::table_exprs::TableExprs;
use super::types::ExprType;

/// The description of a result column, as the protocol sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMeta {
    pub schema: Arc<str>,
    /// The alias of the table, then its name.
    pub table: Arc<str>,
    pub org_table: Arc<str>,
    pub name: Arc<str>,
    pub org_name: Arc<str>,
    pub ty: ColumnType,
    /// `nfold_types::sql_type::ColumnFlags`
    pub flags: u16,
    /// Whether the value is computed by an expression. Such a column is described differently from
    /// a column of a table, even after it went through one of MySQL's temporary tables.
    pub made: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultOrder {
    pub column: usize,
    pub desc: bool,
}

/// LIMIT. Both values are constants or parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitPlan {
    pub offset: Option<Expr>,
    pub count: Expr,
}

impl LimitPlan {
    /// A LIMIT of `n` rows.
    pub fn rows(n: u64) -> LimitPlan {
        LimitPlan {
            offset: None,
            count: Expr::constant(Value::UInt(n), ExprType::ubigint(false)),
        }
    }
}

/// A member of ORDER BY.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderKey {
    pub expr: Expr,
    pub desc: bool,
}

/// A call of an aggregate function.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub func: AggFunc,
    pub args: Vec<Expr>,
    pub distinct: bool,
    /// The ORDER BY inside GROUP_CONCAT.
    pub order: Vec<OrderKey>,
    pub separator: Vec<u8>,
    pub ty: ExprType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggFunc {
    CountStar,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    StdPop,
    StdSamp,
    VarPop,
    VarSamp,
    GroupConcat,
    JsonArray,
    JsonObject,
    /// The value in any row of the group: ANY_VALUE, or a column that is no key of the grouping.
    Any,
}

/// FOR UPDATE or FOR SHARE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLocking {
    pub strength: Option<LockStrength>,
    pub wait: LockWait,
    /// The slots named by `OF`, as a bit set. 0 means all.
    pub of: u64,
}

impl RowLocking {
    /// A read without row locks.
    pub const NONE: RowLocking = RowLocking {
        strength: None,
        wait: LockWait::Wait,
        of: 0,
    };

    /// The strength of the locks on the rows of a slot; `None`: they are not locked.
    pub fn of_slot(&self, slot: usize) -> Option<LockStrength> {
        let meant = self.of == 0 || self.of >> slot.min(63) & 1 == 1;
        self.strength.filter(|_| meant)
    }
}

/// `column = value`. A value of `None` means DEFAULT.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    pub column: usize,
    pub value: Option<Expr>,
}

/// A target table of a multi-table UPDATE.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateTarget {
    pub table: Arc<TableDef>,
    /// The slot of the table in `source`.
    pub slot: usize,
    pub assignments: Vec<Assignment>,
    /// The stored expressions of the table. `None` before the statement is planned.
    pub exprs: Option<Arc<TableExprs>>,
}

impl UpdateTarget {
    /// Whether an UPDATE changes a column of the index: by an assignment, or because it is computed
    /// from others.
    pub(crate) fn assigns_key(&self, index: usize) -> bool {
        let mut parts = self.table.indexes[index].parts.iter();
        parts.any(|p| {
            self.assignments.iter().any(|a| a.column == p.column)
                || self.table.columns[p.column].generated.is_some()
        })
    }
}

/// A warning that each run of a block gives.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockWarning {
    /// Warning 1287.
    Deprecated {
        what: &'static str,
        instead: &'static str,
    },
    /// Warning 1052: a name in GROUP BY is a column of a table, and the alias of another
    /// expression.
    Ambiguous(Arc<str>),
    /// Warning 1466: an alias begins with spaces.
    SpacesBeforeName(Arc<str>),
    /// Warning 1474: an alias consists of spaces.
    EmptyName(Arc<str>),
}
