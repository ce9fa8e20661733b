//! Bound expressions: names are resolved to columns of row slots, and every node has a type. An
//! expression holds no engine handle and no parameter value, so one tree serves every execution.

use nfold_sql::ast::{BinaryOp, IntervalUnit, IsTest, TrimSide, VarScope};
use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, Value};

use super::collate::Operand;
pub(crate) use super::types::MAX_KEPT_CHARS;
pub use super::types::{
    Class, CmpKind, Coercibility, ExprType, ItemName, TextOrigin, long_string_type, string_type,
};

/// Arithmetic operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArithOp {
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Mod,
}

/// Bit operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitOp {
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// A built-in function, as its index in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FuncId(pub u16);

/// The position of a column in the current row. `table` is a row slot of the query block: the base
/// and derived tables in the order of the FROM clause, or a single slot after grouping. `column` is
/// an index into the slot's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnAt {
    pub table: u16,
    pub column: u16,
}

/// A typed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: ExprType,
}

/// The operation of an expression. Operands are in the order written.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    Const(Value),
    /// The value of a parameter slot of the statement.
    Param(u32),
    Column(ColumnAt),
    /// A column in the current row of an enclosing query. `level` 1 is the next query outwards.
    Outer {
        level: u16,
        at: ColumnAt,
    },
    UserVar(Box<str>),
    /// A user variable that the query block assigns: each row may see another value.
    VaryingUserVar(Box<str>),
    AssignUserVar(Box<str>, Box<Expr>),
    SysVar {
        scope: Option<VarScope>,
        name: Box<str>,
    },
    Neg(Box<Expr>),
    BitNot(Box<Expr>),
    /// Computed as integer, decimal or double: the class of the result decides.
    Arith(ArithOp, Box<[Expr; 2]>),
    Bit(BitOp, Box<[Expr; 2]>),
    Compare {
        op: BinaryOp,
        kind: CmpKind,
        sides: Box<[Expr; 2]>,
    },
    /// Row constructors of equal width, with one `CmpKind` for each column.
    CompareRows {
        op: BinaryOp,
        kinds: Vec<CmpKind>,
        left: Vec<Expr>,
        right: Vec<Expr>,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Box<[Expr; 2]>),
    Not(Box<Expr>),
    Is {
        expr: Box<Expr>,
        test: IsTest,
        negated: bool,
    },
    /// The operand and the two bounds; each bound has its own comparison.
    Between {
        parts: Box<[Expr; 3]>,
        kinds: [CmpKind; 2],
        negated: bool,
    },
    /// `expr IN (...)` with members that are expressions, each with its own comparison.
    In {
        expr: Box<Expr>,
        list: Vec<(CmpKind, Expr)>,
        negated: bool,
    },
    /// `(a, b) IN ((...), ...)` with members that are expressions.
    InRows {
        left: Vec<Expr>,
        rows: Vec<Vec<(CmpKind, Expr)>>,
        negated: bool,
    },
    /// Whether a column of a multi-valued key part has any or `all` of some elements. It stands for
    /// MEMBER OF, JSON_OVERLAPS and JSON_CONTAINS.
    ArrayHas {
        column: Box<Expr>,
        elements: ArrayElements,
        all: bool,
    },
    /// IN with the list of a parameter slot. `left` has as many expressions as a row of the list.
    InParam {
        left: Vec<Expr>,
        kinds: Vec<CmpKind>,
        list: u32,
        negated: bool,
    },
    Like {
        expr: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        collation: CollationId,
        negated: bool,
    },
    /// The WHEN branches in order, then ELSE.
    Case {
        whens: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// Conversion to the type `to`. The node's own type describes the result, and differs from `to`
    /// where a temporary table stores the result in a column of another type.
    Cast {
        expr: Box<Expr>,
        to: Box<ColumnType>,
    },
    /// COLLATE: the type differs from the operand's in its collation only.
    Collate(Box<Expr>),
    IntervalArith {
        expr: Box<Expr>,
        amount: Box<Expr>,
        unit: IntervalUnit,
        subtract: bool,
    },
    Extract {
        unit: IntervalUnit,
        expr: Box<Expr>,
    },
    TimestampDiff {
        unit: IntervalUnit,
        from: Box<Expr>,
        to: Box<Expr>,
    },
    Trim {
        side: TrimSide,
        what: Option<Box<Expr>>,
        expr: Box<Expr>,
    },
    Call {
        func: FuncId,
        args: Vec<Expr>,
    },
    /// A subquery, as its index in [`crate::query::QueryPlan::subqueries`].
    Subquery {
        index: u16,
        use_as: SubqueryUse,
    },
    /// DEFAULT(column): a constant default.
    Default(Value),
}

/// The elements that [`ExprKind::ArrayHas`] looks for.
#[derive(Debug, Clone, PartialEq)]
pub enum ArrayElements {
    /// Constants of the element type.
    Known(Vec<Expr>),
    /// Those of a constant operand whose value is known when the statement runs. If they do not
    /// convert to the element type, the replaced `call` decides.
    Computed {
        value: Box<Expr>,
        to: Box<ElementTarget>,
        call: Box<Expr>,
    },
}

/// How the operand of MEMBER OF, JSON_OVERLAPS or JSON_CONTAINS is converted to elements.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementTarget {
    /// MEMBER OF: the operand is one element. Otherwise it is a document.
    pub member: bool,
    /// JSON_CONTAINS: a row must have all elements.
    pub all: bool,
    /// The type of the elements.
    pub element: ColumnType,
}

/// How an expression uses a subquery.
#[derive(Debug, Clone, PartialEq)]
pub enum SubqueryUse {
    /// As one value. More than one row is error 1242.
    Scalar,
    /// As a row, of which this node is the given column.
    Column(u16),
    Exists,
    /// `left [NOT] IN (subquery)`. Also `= ANY` and `<> ALL`.
    In {
        left: Vec<Expr>,
        kinds: Vec<CmpKind>,
        negated: bool,
    },
    /// `left op ANY|ALL (subquery)`
    Quantified {
        left: Box<Expr>,
        op: BinaryOp,
        kind: CmpKind,
        all: bool,
    },
}

/// Whether an expression is constant during a statement: it reads no row.
pub fn is_constant(e: &Expr) -> bool {
    !e.any(&mut |e| {
        matches!(
            e.kind,
            ExprKind::Column(_)
                | ExprKind::Outer { .. }
                | ExprKind::Subquery { .. }
                | ExprKind::VaryingUserVar(_)
                | ExprKind::AssignUserVar(..)
        )
    })
}

/// Classifies an expression as one side of a comparison.
pub fn operand(e: &Expr) -> Operand {
    match e.kind {
        ExprKind::Column(_) | ExprKind::Outer { .. } => Operand::Column,
        _ if is_constant(e) => Operand::Constant,
        _ => Operand::Other,
    }
}

/// Calls `$f` on each direct operand of `$kind`; `$iter` is `iter` or `iter_mut`.
macro_rules! each_operand {
    ($kind:expr, $f:ident, $iter:ident) => {{
        use ExprKind::*;
        match $kind {
            Const(_)
            | Param(_)
            | Column(_)
            | Outer { .. }
            | UserVar(_)
            | VaryingUserVar(_)
            | SysVar { .. }
            | Default(_) => {}
            AssignUserVar(_, e) | Neg(e) | BitNot(e) | Not(e) | Collate(e) => $f(e),
            Is { expr, .. } | Cast { expr, .. } | Extract { expr, .. } => $f(expr),
            Arith(_, s) | Bit(_, s) | Xor(s) => s.$iter().for_each(&mut *$f),
            Compare { sides, .. } => sides.$iter().for_each(&mut *$f),
            CompareRows { left, right, .. } => left.$iter().chain(right).for_each(&mut *$f),
            And(list) | Or(list) => list.$iter().for_each(&mut *$f),
            Between { parts, .. } => parts.$iter().for_each(&mut *$f),
            In { expr, list, .. } => {
                $f(expr);
                list.$iter().for_each(|(_, e)| $f(e));
            }
            InRows { left, rows, .. } => {
                left.$iter().for_each(&mut *$f);
                rows.$iter().flatten().for_each(|(_, e)| $f(e));
            }
            ArrayHas {
                column, elements, ..
            } => {
                $f(column);
                match elements {
                    ArrayElements::Known(list) => list.$iter().for_each(&mut *$f),
                    ArrayElements::Computed { value, call, .. } => {
                        $f(value);
                        $f(call);
                    }
                }
            }
            InParam { left, .. } => left.$iter().for_each(&mut *$f),
            Like {
                expr,
                pattern,
                escape,
                ..
            } => {
                $f(expr);
                $f(pattern);
                if let Some(e) = escape {
                    $f(e);
                }
            }
            Case { whens, otherwise } => {
                for (when, then) in whens {
                    $f(when);
                    $f(then);
                }
                if let Some(e) = otherwise {
                    $f(e);
                }
            }
            IntervalArith { expr, amount, .. } => {
                $f(expr);
                $f(amount);
            }
            TimestampDiff { from, to, .. } => {
                $f(from);
                $f(to);
            }
            Trim { what, expr, .. } => {
                if let Some(e) = what {
                    $f(e);
                }
                $f(expr);
            }
            Call { args, .. } => args.$iter().for_each(&mut *$f),
            Subquery { use_as, .. } => match use_as {
                SubqueryUse::Scalar | SubqueryUse::Column(_) | SubqueryUse::Exists => {}
                SubqueryUse::In { left, .. } => left.$iter().for_each(&mut *$f),
                SubqueryUse::Quantified { left, .. } => $f(left),
            },
        }
    }};
}

impl Expr {
    /// A constant of the given type.
    pub fn constant(value: Value, ty: ExprType) -> Expr {
        Expr {
            kind: ExprKind::Const(value),
            ty,
        }
    }

    /// The integer constant `v`.
    pub fn int(v: i64) -> Expr {
        let digits = v.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
        Expr::constant(Value::Int(v), ExprType::int(digits + 1, false))
    }

    /// `expr` converted to `ty`.
    pub fn cast(expr: Expr, ty: ExprType) -> Expr {
        let kind = ExprKind::Cast {
            expr: Box::new(expr),
            to: Box::new(ty.col.clone()),
        };
        Expr { kind, ty }
    }

    /// Converts this expression to `ty`.
    pub fn cast_to(&mut self, ty: ExprType) {
        *self = Expr::cast(std::mem::replace(self, Expr::null()), ty);
    }

    /// The NULL constant.
    pub fn null() -> Expr {
        Expr::constant(Value::Null, ExprType::null())
    }

    /// Calls `f` on each direct operand.
    pub fn each_child<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        each_operand!(&self.kind, f, iter)
    }

    /// Calls `f` on each direct operand, mutably.
    pub fn each_child_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        each_operand!(&mut self.kind, f, iter_mut)
    }

    /// Whether `f` holds for this node or one below it.
    pub fn any(&self, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if f(self) {
            return true;
        }
        let mut found = false;
        self.each_child(&mut |e| found = found || e.any(f));
        found
    }

    /// The columns of slot `t` and of another slot, if this is an equality of two columns.
    pub fn equated_columns(&self, t: usize) -> Option<(ColumnAt, ColumnAt)> {
        let ExprKind::Compare {
            op: BinaryOp::Eq,
            sides,
            ..
        } = &self.kind
        else {
            return None;
        };
        let (a, b) = (sides[0].as_column()?, sides[1].as_column()?);
        match usize::from(a.table) == t {
            true => Some((a, b)),
            false => Some((b, a)),
        }
    }

    /// The column, if the expression is a column of the current row and nothing else.
    pub fn as_column(&self) -> Option<ColumnAt> {
        match self.kind {
            ExprKind::Column(at) => Some(at),
            _ => None,
        }
    }
}
