//! Parts of a query that all stages use unchanged: result columns, LIMIT, sort keys, aggregates,
//! row locks and assignments.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::{LockStrength, LockWait};
use nfold_types::{CollationId, ColumnType, Value};

use super::expr::{CmpKind, Expr};
use super::table_exprs::TableExprs;
use super::types::{Class, ExprType};

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

impl ColumnMeta {
    /// A column of no table, such as those of SHOW and EXPLAIN.
    pub fn without_table(name: &str, ty: ColumnType) -> ColumnMeta {
        let none: Arc<str> = "".into();
        ColumnMeta {
            schema: none.clone(),
            table: none.clone(),
            org_table: none.clone(),
            name: name.into(),
            org_name: none,
            flags: ty.computed_wire_flags(),
            ty,
            made: false,
        }
    }
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

/// FOR UPDATE and FOR SHARE. Each field is a bit set of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLocking {
    pub update: u64,
    pub share: u64,
    pub no_wait: u64,
    pub skip_locked: u64,
}

impl RowLocking {
    /// A read without row locks.
    pub const NONE: RowLocking = RowLocking {
        update: 0,
        share: 0,
        no_wait: 0,
        skip_locked: 0,
    };

    /// All rows are locked to be changed.
    pub const TO_CHANGE: RowLocking = RowLocking {
        update: u64::MAX,
        ..RowLocking::NONE
    };

    /// Whether rows of any slot are locked.
    pub fn is_some(&self) -> bool {
        self.update | self.share != 0
    }

    /// Adds a clause for the slots of a set.
    pub fn add(&mut self, slots: u64, strength: LockStrength, wait: LockWait) {
        match strength {
            LockStrength::Update => self.update |= slots,
            LockStrength::Share => self.share |= slots,
        }
        match wait {
            LockWait::Wait => {}
            LockWait::NoWait => self.no_wait |= slots,
            LockWait::SkipLocked => self.skip_locked |= slots,
        }
    }

    /// Treats the slots of `added` like `slot`.
    pub fn extend(&mut self, slot: usize, added: u64) {
        for set in [
            &mut self.update,
            &mut self.share,
            &mut self.no_wait,
            &mut self.skip_locked,
        ] {
            *set |= if has(*set, slot) { added } else { 0 };
        }
    }

    /// Leaves the rows of the slots of a set without locks.
    pub fn remove(&mut self, slots: u64) {
        self.update &= !slots;
        self.share &= !slots;
    }

    /// The strength of the locks on the rows of a slot; `None`: they are not locked.
    pub fn of_slot(&self, slot: usize) -> Option<LockStrength> {
        let update = has(self.update, slot).then_some(LockStrength::Update);
        update.or(has(self.share, slot).then_some(LockStrength::Share))
    }

    /// The effect of a lock that another transaction has on a row of a slot.
    pub fn wait_of(&self, slot: usize) -> LockWait {
        match (has(self.no_wait, slot), has(self.skip_locked, slot)) {
            (true, _) => LockWait::NoWait,
            (false, true) => LockWait::SkipLocked,
            (false, false) => LockWait::Wait,
        }
    }
}

fn has(set: u64, slot: usize) -> bool {
    set >> slot.min(63) & 1 == 1
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

/// A constant that the statement compares with values of the type `beside`. MySQL converts it
/// before it reads a row, and warns or fails then.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantCheck {
    pub constant: CheckedConstant,
    pub beside: ColumnType,
    /// The name of the column, if it is compared with a column of a table.
    pub column: Option<Arc<str>>,
    /// Whether dates and times are checked outside of strict mode: MySQL converts the constants of
    /// CREATE TABLE ... SELECT before strict mode begins.
    pub lenient: bool,
}

/// The constant of a [`ConstantCheck`].
#[derive(Debug, Clone, PartialEq)]
pub enum CheckedConstant {
    /// It is compared with a date or time.
    TimePoint(Expr),
    /// The bounds of a BETWEEN whose operand is a date. MySQL compares by `=` if they are equal.
    Bounds(Box<[Expr; 2]>),
    /// The only member of this list parameter, which is compared with a date or time. A list of
    /// several members is not checked.
    List(u32),
    /// A string that is read as a DECIMAL or as a DOUBLE.
    Number(Expr, Class),
    /// A string that is a condition.
    Truth(Expr),
    /// A literal that is compared with strings in a collation of another character set.
    Text(Expr, CollationId),
    /// The literals of a list parameter, as `Text`.
    Texts(u32, CollationId),
    /// The members of an IN list that are all compared with its operand in one way.
    Members(Box<ListCheck>),
    /// An operand that MySQL evaluates while it resolves the names and types of a statement.
    Resolved(Expr),
}

/// An IN list whose members MySQL converts before the first row. The members of a list of one warn
/// as the other side of `=` does.
#[derive(Debug, Clone, PartialEq)]
pub struct ListCheck {
    /// The operand of IN.
    pub left: Expr,
    pub kind: CmpKind,
    pub members: CheckedMembers,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CheckedMembers {
    Written(Vec<Expr>),
    /// A list parameter.
    Param(u32),
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
    /// Warning 1235: GREATEST or LEAST of JSON documents, which are compared as texts.
    ExtremeOfDocuments,
    /// Warning 1235: BETWEEN of JSON documents, which are compared as texts or numbers.
    RangeOfDocuments,
    /// Warning 1235: IN over a list of several rows with JSON documents, which are compared as
    /// texts. The number of the list's parameter, if it is one; it may have one row.
    ListOfDocuments(Option<u32>),
    /// Warning 3986: a JSON document is a condition.
    DocumentAsCondition,
}
