//! Parts of a query that the stages pass on as they are: result columns, LIMIT, sort keys,
//! aggregates, row locks and assignments.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::{LockStrength, LockWait};
use nfold_types::{ColumnType, Value};

use super::expr::Expr;
use super::table_exprs::TableExprs;
use super::types::ExprType;

/// A column of a result set, as the protocol describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMeta {
    pub schema: Arc<str>,
    /// Alias of the table, and its name.
    pub table: Arc<str>,
    pub org_table: Arc<str>,
    pub name: Arc<str>,
    pub org_name: Arc<str>,
    pub ty: ColumnType,
    /// `nfold_types::sql_type::ColumnFlags`
    pub flags: u16,
    /// What an expression makes is described in other ways than a column of a table (a temporary
    /// one of MySQL's too).
    pub made: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultOrder {
    pub column: usize,
    pub desc: bool,
}

/// `LIMIT`; both are constants or parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitPlan {
    pub offset: Option<Expr>,
    pub count: Expr,
}

impl LimitPlan {
    /// The first `n` rows.
    pub fn rows(n: u64) -> LimitPlan {
        LimitPlan {
            offset: None,
            count: Expr::constant(Value::UInt(n), ExprType::ubigint(false)),
        }
    }
}

/// An ORDER BY member.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderKey {
    pub expr: Expr,
    pub desc: bool,
}

/// One aggregate function.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub func: AggFunc,
    pub args: Vec<Expr>,
    pub distinct: bool,
    /// GROUP_CONCAT's.
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
    /// A column that the group determines, or ONLY_FULL_GROUP_BY is off.
    Any,
}

/// `FOR UPDATE`, `FOR SHARE`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLocking {
    pub strength: Option<LockStrength>,
    pub wait: LockWait,
    /// `OF`: the slots meant, as a bit set. 0: all.
    pub of: u64,
}

impl RowLocking {
    /// A plain read.
    pub const NONE: RowLocking = RowLocking {
        strength: None,
        wait: LockWait::Wait,
        of: 0,
    };

    /// How the rows of a slot are locked.
    pub fn of_slot(&self, slot: usize) -> Option<LockStrength> {
        let meant = self.of == 0 || self.of >> slot.min(63) & 1 == 1;
        self.strength.filter(|_| meant)
    }
}

/// `column = value`; `None` stands for DEFAULT.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    pub column: usize,
    pub value: Option<Expr>,
}

/// One table of an UPDATE of several.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateTarget {
    pub table: Arc<TableDef>,
    /// Its slot in `source`.
    pub slot: usize,
    pub assignments: Vec<Assignment>,
    /// The table's stored expressions, once the statement is planned.
    pub exprs: Option<Arc<TableExprs>>,
}

impl UpdateTarget {
    /// Whether a column of the index is assigned to, or computed from others.
    pub(crate) fn assigns_key(&self, index: usize) -> bool {
        let mut parts = self.table.indexes[index].parts.iter();
        parts.any(|p| {
            self.assignments.iter().any(|a| a.column == p.column)
                || self.table.columns[p.column].generated.is_some()
        })
    }
}
