//! Expressions.

use super::{Ident, JsonValue, OrderItem, Query, Span, TypeSpec};

/// An expression. AND and OR chains are flat lists of at least two members. Parentheses are not
/// represented.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Literal(Literal),
    /// The value of parameter slot `n`: a `?` of a prepared statement, or a literal that the digest
    /// extracted.
    Param(u32),
    Column(Box<ColumnRef>),
    /// `@name`
    UserVar(String),
    /// `@name := value`
    AssignUserVar {
        name: String,
        value: Box<Expr>,
    },
    /// `@@[scope.][component.]name`
    SysVar {
        scope: Option<VarScope>,
        name: String,
    },
    Unary {
        op: UnaryOp,
        expr: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Is {
        expr: Box<Expr>,
        test: IsTest,
        negated: bool,
    },
    Between {
        expr: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    InList {
        expr: Box<Expr>,
        list: InList,
        negated: bool,
    },
    InSubquery {
        expr: Box<Expr>,
        query: Box<Query>,
        negated: bool,
    },
    Exists(Box<Query>),
    /// A scalar (or row) subquery.
    Subquery(Box<Query>),
    /// `expr op ALL|ANY (query)`
    Quantified {
        op: BinaryOp,
        expr: Box<Expr>,
        all: bool,
        query: Box<Query>,
    },
    Like {
        expr: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
    },
    Regexp {
        expr: Box<Expr>,
        pattern: Box<Expr>,
        negated: bool,
    },
    /// `a SOUNDS LIKE b`
    SoundsLike(Box<Expr>, Box<Expr>),
    /// `a MEMBER OF (b)`
    MemberOf(Box<Expr>, Box<Expr>),
    Case {
        operand: Option<Box<Expr>>,
        whens: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(expr AS type)` and `CONVERT(expr, type)`; `array` means `AS type ARRAY`.
    Cast {
        expr: Box<Expr>,
        ty: Box<TypeSpec>,
        array: bool,
    },
    /// `CONVERT(expr USING charset)`
    ConvertUsing {
        expr: Box<Expr>,
        charset: String,
    },
    Collate {
        expr: Box<Expr>,
        collation: String,
    },
    /// `expr ± INTERVAL amount unit`, DATE_ADD, DATE_SUB, ADDDATE, SUBDATE, TIMESTAMPADD.
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
    /// `TRIM([side] [what FROM] expr)`
    Trim {
        side: TrimSide,
        what: Option<Box<Expr>>,
        expr: Box<Expr>,
    },
    /// `CHAR(n, … [USING charset])`
    Char {
        args: Vec<Expr>,
        charset: Option<String>,
    },
    Function(Box<FunctionCall>),
    JsonValue(Box<JsonValue>),
    /// `(a, b, …)` with at least two members, or `ROW(…)`.
    Row(Vec<Expr>),
    /// `DEFAULT` as a value, or `DEFAULT(column)`.
    Default(Option<Box<ColumnRef>>),
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE.
    Values(Box<ColumnRef>),
    /// `MATCH (columns) AGAINST (expr modifier)`
    Match {
        columns: Vec<ColumnRef>,
        against: Box<Expr>,
        mode: MatchMode,
    },
}

/// The modifier of AGAINST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchMode {
    NaturalLanguage,
    Boolean,
    /// `[IN NATURAL LANGUAGE MODE] WITH QUERY EXPANSION`
    QueryExpansion,
}

/// A constant written in the text.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    /// Up to 18,446,744,073,709,551,615. The sign is a unary minus. Longer integers are `Decimal`.
    Int(u64),
    /// The digits as written, with or without a point.
    Decimal(String),
    /// A number with an exponent, as written.
    Float(String),
    String(StringLiteral),
    /// `x'..'` and `0x..`: a binary string that is a number in numeric context.
    Hex(Vec<u8>),
    /// `b'..'` and `0b..`, padded on the left to whole bytes.
    Bit(Vec<u8>),
    Temporal {
        kind: TemporalKind,
        text: Vec<u8>,
        /// Whether it was written as ODBC does: `{ts '..'}`.
        odbc: bool,
    },
}

/// A string with its escapes resolved and adjacent strings concatenated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringLiteral {
    pub bytes: Vec<u8>,
    /// The introducer's name in lower case, without its underscore (`utf8mb3` for `N'..'`). `None`:
    /// the connection's character set.
    pub charset: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TemporalKind {
    Date,
    Time,
    /// `TIMESTAMP'..'`: a DATETIME value.
    Timestamp,
}

/// `[[schema.]table.]name`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnRef {
    pub schema: Option<Ident>,
    pub table: Option<Ident>,
    pub name: Ident,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarScope {
    Global,
    /// `SESSION`, `LOCAL`
    Session,
    Persist,
    PersistOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Plus,
    Minus,
    /// `~`
    BitNot,
    /// `BINARY expr`
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// `/`
    Div,
    /// `DIV`
    IntDiv,
    /// `%`, `MOD`
    Mod,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Eq,
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `||` under PIPES_AS_CONCAT
    Concat,
}

impl BinaryOp {
    /// Whether it is one of the seven comparisons.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | NullSafeEq | Ne | Lt | Le | Gt | Ge)
    }

    /// The operator in MySQL's spelling.
    pub fn symbol(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            Div => "/",
            IntDiv => "DIV",
            Mod => "%",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "^",
            ShiftLeft => "<<",
            ShiftRight => ">>",
            Eq => "=",
            NullSafeEq => "<=>",
            Ne => "<>",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            Concat => "||",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IsTest {
    Null,
    True,
    False,
    Unknown,
}

/// The contents of the parentheses in `IN (…)`.
#[derive(Clone, Debug, PartialEq)]
pub enum InList {
    /// Expressions. Row constructors are `Expr::Row`.
    Exprs(Vec<Expr>),
    /// Only literals: the values of list slot `n`, which are read from the text when the plan is
    /// bound. The width (1, or the length of each row) is in `digest::Slot`.
    ListParam(u32),
}

pub use nfold_types::temporal::IntervalUnit;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

/// `[schema.]name([DISTINCT] args)`. Synonyms are unified: SUBSTR, MID and `SUBSTRING(a FROM b FOR
/// c)` are `substring`; `POSITION(a IN b)` is `locate`; CURRENT_TIMESTAMP, LOCALTIME and
/// LOCALTIMESTAMP are `now`; CURRENT_DATE is `curdate`, CURRENT_TIME `curtime`; SCHEMA() is
/// `database`; `a -> b` is `json_extract`.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    pub schema: Option<Ident>,
    /// Whether this can only be a stored function: it has a schema, or is a keyword of a built-in
    /// function without a parenthesis directly behind it.
    pub stored: bool,
    /// Built-in names are in lower case, all others as written.
    pub name: String,
    /// The name's position, for the message "FUNCTION … does not exist".
    pub span: Span,
    pub distinct: bool,
    /// `COUNT(*)`
    pub star: bool,
    pub args: Vec<Expr>,
    /// The positions of the arguments if the function's name is no keyword; otherwise empty. Only
    /// such arguments are named by their text in MySQL's warnings.
    pub arg_spans: Vec<Span>,
    /// The ORDER BY of GROUP_CONCAT.
    pub order_by: Vec<OrderItem>,
    /// The SEPARATOR of GROUP_CONCAT, if written.
    pub separator: Option<Vec<u8>>,
    /// `OVER (…)`
    pub over: Option<Box<Window>>,
}

/// A window: the name of one, or a specification.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The referenced window (`OVER w`), or the one that this specification extends (`OVER (w …)`).
    pub name: Option<Ident>,
    /// Whether parentheses were written.
    pub written: bool,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderItem>,
    pub frame: Option<Box<Frame>>,
}

/// `ROWS|RANGE BETWEEN start AND end`
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub range: bool,
    pub start: FrameBound,
    pub end: FrameBound,
}

/// A bound of a window frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    CurrentRow,
    Unbounded {
        following: bool,
    },
    By {
        amount: Expr,
        /// `INTERVAL amount unit`
        unit: Option<IntervalUnit>,
        following: bool,
    },
}

/// Trees are built and walked recursively, so nodes must stay small.
const _: () = assert!(size_of::<Expr>() <= 64);
