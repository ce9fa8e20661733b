//! Converts a syntax tree to MySQL's normal form.
//!
//! MySQL brings an expression into this form while it parses it, and prints the result: NOT is
//! pushed down to the comparisons, a value that is used as a condition is compared with 0, and
//! functions that are aliases of another function become that function.

use nfold_types::{Charset, charset};

use crate::ast::*;

/// See [`super::normal`].
pub(super) struct Normal {
    pub connection: &'static Charset,
}

/// Functions that return a truth value.
const BOOLEAN: [&str; 14] = [
    "is_ipv4",
    "is_ipv4_compat",
    "is_ipv4_mapped",
    "is_ipv6",
    "is_uuid",
    "isnull",
    "json_contains",
    "json_contains_path",
    "json_overlaps",
    "json_schema_valid",
    "json_valid",
    "regexp_like",
    "strcmp",
    "like_range",
];

/// Whether an expression is a truth value for MySQL.
pub fn is_boolean(e: &Expr) -> bool {
    match e {
        Expr::Literal(Literal::Bool(_)) => true,
        Expr::Binary { op, .. } => op.is_comparison(),
        Expr::And(_)
        | Expr::Or(_)
        | Expr::Xor(..)
        | Expr::Not(_)
        | Expr::Is { .. }
        | Expr::Between { .. }
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Exists(_)
        | Expr::Quantified { .. }
        | Expr::Like { .. }
        | Expr::Regexp { .. }
        | Expr::SoundsLike(..)
        | Expr::MemberOf(..) => true,
        Expr::Function(call) => BOOLEAN.contains(&call.name.as_str()),
        _ => false,
    }
}

fn boxed(e: Expr) -> Box<Expr> {
    Box::new(e)
}

fn int(n: u64) -> Expr {
    Expr::Literal(Literal::Int(n))
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary {
        op,
        left: boxed(left),
        right: boxed(right),
    }
}

fn function(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(Box::new(FunctionCall {
        schema: None,
        stored: false,
        name: name.to_owned(),
        span: Span::default(),
        distinct: false,
        star: false,
        args,
        arg_spans: Vec::new(),
        order_by: Vec::new(),
        separator: None,
        over: None,
    }))
}

/// The comparison that holds where `op` does not; `None`: there is none.
fn inverse(op: BinaryOp) -> Option<BinaryOp> {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    Some(match op {
        Eq => Ne,
        Ne => Eq,
        Lt => Ge,
        Ge => Lt,
        Gt => Le,
        Le => Gt,
        _ => return None,
    })
}

impl Normal {
    /// The normal form of a value.
    pub fn value(&self, e: &Expr) -> Expr {
        match e {
            Expr::Literal(l) => Expr::Literal(self.literal(l)),
            Expr::Column(c) => Expr::Column(bare(c)),
            Expr::Default(Some(c)) => Expr::Default(Some(bare(c))),
            Expr::Unary {
                op: UnaryOp::Plus,
                expr,
            } => self.value(expr),
            Expr::Unary {
                op: UnaryOp::Binary,
                expr,
            } => self.cast(
                expr,
                TypeSpec {
                    charset: Some("binary".into()),
                    ..TypeSpec::new(TypeKind::Char)
                },
                false,
            ),
            Expr::Unary { op, expr } => Expr::Unary {
                op: *op,
                expr: self.boxed(expr),
            },
            Expr::Binary { op, left, right } => self.binary(*op, left, right),
            Expr::And(list) => Expr::And(list.iter().map(|e| self.truth(e)).collect()),
            Expr::Or(list) => Expr::Or(list.iter().map(|e| self.truth(e)).collect()),
            Expr::Xor(a, b) => Expr::Xor(boxed(self.truth(a)), boxed(self.truth(b))),
            Expr::Not(e) => self.negation(e),
            Expr::Is {
                expr,
                test,
                negated,
            } => self.is(expr, *test, *negated),
            Expr::Between {
                expr,
                low,
                high,
                negated,
            } => Expr::Between {
                expr: self.boxed(expr),
                low: self.boxed(low),
                high: self.boxed(high),
                negated: *negated,
            },
            Expr::InList {
                expr,
                list,
                negated,
            } => self.in_list(expr, list, *negated),
            Expr::Like {
                expr,
                pattern,
                escape,
                negated,
            } => {
                let like = Expr::Like {
                    expr: self.boxed(expr),
                    pattern: self.boxed(pattern),
                    escape: escape.as_ref().map(|e| self.boxed(e)),
                    negated: false,
                };
                not_if(*negated, like)
            }
            Expr::Regexp {
                expr,
                pattern,
                negated,
            } => {
                let args = vec![self.value(expr), self.value(pattern)];
                not_if(*negated, function("regexp_like", args))
            }
            Expr::SoundsLike(a, b) => {
                let sound = |e| function("soundex", vec![self.value(e)]);
                binary(BinaryOp::Eq, sound(a), sound(b))
            }
            Expr::MemberOf(a, b) => Expr::MemberOf(self.boxed(a), self.boxed(b)),
            other => self.call(other),
        }
    }

    fn boxed(&self, e: &Expr) -> Box<Expr> {
        boxed(self.value(e))
    }

    fn list(&self, list: &[Expr]) -> Vec<Expr> {
        list.iter().map(|e| self.value(e)).collect()
    }

    /// Converts nodes with the syntax of a function call.
    fn call(&self, e: &Expr) -> Expr {
        match e {
            Expr::Case {
                operand,
                whens,
                otherwise,
            } => Expr::Case {
                operand: operand.as_ref().map(|e| self.boxed(e)),
                whens: whens
                    .iter()
                    .map(|(when, then)| (self.value(when), self.value(then)))
                    .collect(),
                otherwise: otherwise.as_ref().map(|e| self.boxed(e)),
            },
            Expr::Cast { expr, ty, array } => self.cast(expr, (**ty).clone(), *array),
            Expr::ConvertUsing { expr, charset } => Expr::ConvertUsing {
                expr: self.boxed(expr),
                charset: charset.clone(),
            },
            Expr::Collate { expr, collation } => Expr::Collate {
                expr: self.boxed(expr),
                collation: collation.clone(),
            },
            Expr::IntervalArith {
                expr,
                amount,
                unit,
                subtract,
            } => Expr::IntervalArith {
                expr: self.boxed(expr),
                amount: self.boxed(amount),
                unit: *unit,
                subtract: *subtract,
            },
            Expr::Extract { unit, expr } => Expr::Extract {
                unit: *unit,
                expr: self.boxed(expr),
            },
            Expr::TimestampDiff { unit, from, to } => Expr::TimestampDiff {
                unit: *unit,
                from: self.boxed(from),
                to: self.boxed(to),
            },
            Expr::Trim { side, what, expr } => Expr::Trim {
                side: *side,
                what: what.as_ref().map(|e| self.boxed(e)),
                expr: self.boxed(expr),
            },
            Expr::Char { args, charset } => Expr::Char {
                args: self.list(args),
                charset: charset.clone(),
            },
            Expr::Row(list) => Expr::Row(self.list(list)),
            Expr::Function(call) => self.function(call),
            other => other.clone(),
        }
    }

    /// A truth value: any other value is compared with 0.
    fn truth(&self, e: &Expr) -> Expr {
        match is_boolean(e) {
            true => self.value(e),
            false => binary(BinaryOp::Ne, int(0), self.value(e)),
        }
    }

    /// The opposite of a truth value.
    fn negation(&self, e: &Expr) -> Expr {
        match e {
            Expr::Not(e) => self.truth(e),
            Expr::And(list) => Expr::Or(list.iter().map(|e| self.negation(e)).collect()),
            Expr::Or(list) => Expr::And(list.iter().map(|e| self.negation(e)).collect()),
            Expr::Xor(a, b) => Expr::Xor(boxed(self.negation(a)), boxed(self.truth(b))),
            Expr::Binary { op, left, right } if inverse(*op).is_some() => {
                self.binary(inverse(*op).unwrap_or(*op), left, right)
            }
            Expr::Is {
                expr,
                test,
                negated,
            } => self.is(expr, *test, !negated),
            Expr::Between {
                expr,
                low,
                high,
                negated,
            } => Expr::Between {
                expr: self.boxed(expr),
                low: self.boxed(low),
                high: self.boxed(high),
                negated: !negated,
            },
            Expr::InList {
                expr,
                list,
                negated,
            } => self.in_list(expr, list, !negated),
            e if is_boolean(e) => match self.value(e) {
                Expr::Not(positive) => *positive,
                Expr::Literal(Literal::Bool(b)) => Expr::Literal(Literal::Bool(!b)),
                positive => Expr::Not(boxed(positive)),
            },
            e => binary(BinaryOp::Eq, int(0), self.value(e)),
        }
    }

    fn binary(&self, op: BinaryOp, left: &Expr, right: &Expr) -> Expr {
        if let (BinaryOp::Eq, Expr::Row(a), Expr::Row(b)) = (op, left, right)
            && a.len() == b.len()
        {
            let pairs = a.iter().zip(b);
            return Expr::And(pairs.map(|(a, b)| self.binary(op, a, b)).collect());
        }
        let args = vec![self.value(left), self.value(right)];
        match (op, <[Expr; 2]>::try_from(args)) {
            (BinaryOp::Concat, Ok([a, b])) => function("concat", vec![a, b]),
            (op, Ok([a, b])) => binary(op, a, b),
            (_, Err(_)) => Expr::Literal(Literal::Null),
        }
    }

    fn is(&self, e: &Expr, test: IsTest, negated: bool) -> Expr {
        let (expr, test) = match test {
            IsTest::True | IsTest::False => (self.truth(e), test),
            IsTest::Null | IsTest::Unknown => (self.value(e), IsTest::Null),
        };
        Expr::Is {
            expr: boxed(expr),
            test,
            negated,
        }
    }

    fn in_list(&self, e: &Expr, list: &InList, negated: bool) -> Expr {
        let InList::Exprs(members) = list else {
            return Expr::Literal(Literal::Null);
        };
        if let ([member], false) = (members.as_slice(), matches!(e, Expr::Row(_))) {
            let op = if negated { BinaryOp::Ne } else { BinaryOp::Eq };
            return self.binary(op, e, member);
        }
        Expr::InList {
            expr: self.boxed(e),
            list: InList::Exprs(self.list(members)),
            negated,
        }
    }

    fn cast(&self, e: &Expr, mut ty: TypeSpec, array: bool) -> Expr {
        if ty.kind == TypeKind::Binary && !array {
            (ty.kind, ty.charset) = (TypeKind::Char, Some("binary".into()));
        }
        if ty.kind == TypeKind::Char && ty.charset.is_none() && !array {
            ty.charset = Some(self.connection.name.into());
        }
        if ty.kind == TypeKind::Decimal {
            ty.length = Some(ty.length.filter(|n| *n != 0).unwrap_or(10));
            ty.decimals = Some(ty.decimals.unwrap_or(0));
        }
        Expr::Cast {
            expr: self.boxed(e),
            ty: Box::new(ty),
            array,
        }
    }

    fn literal(&self, l: &Literal) -> Literal {
        let Literal::String(s) = l else {
            return match l {
                Literal::Bit(bytes) => Literal::Hex(bytes.clone()),
                Literal::Decimal(digits) if digits.starts_with('.') => {
                    Literal::Decimal(format!("0{digits}"))
                }
                other => other.clone(),
            };
        };
        if s.charset.is_some() {
            return l.clone();
        }
        let mut bytes = Vec::with_capacity(s.bytes.len());
        charset::convert(self.connection, &charset::UTF8MB4, &s.bytes, &mut bytes);
        Literal::String(StringLiteral {
            bytes,
            charset: Some("utf8mb4".into()),
        })
    }

    fn function(&self, call: &FunctionCall) -> Expr {
        let mut args = self.list(&call.args);
        let with = |mut args: Vec<Expr>, more: &[u64]| {
            args.extend(more.iter().map(|n| int(*n)));
            args
        };
        let name = match (call.name.as_str(), args.len()) {
            ("mod", 2) => return self.binary(BinaryOp::Mod, &call.args[0], &call.args[1]),
            ("isnull", 1) => return self.is(&call.args[0], IsTest::Null, false),
            ("date", 1) => return self.cast(&call.args[0], TypeSpec::new(TypeKind::Date), false),
            ("time", 1) => return self.cast(&call.args[0], TypeSpec::new(TypeKind::Time), false),
            ("timestamp", 1) => {
                return self.cast(&call.args[0], TypeSpec::new(TypeKind::DateTime), false);
            }
            ("datediff", 2) => {
                let days = |e| function("to_days", vec![self.value(e)]);
                let (from, to) = (days(&call.args[0]), days(&call.args[1]));
                return binary(BinaryOp::Sub, from, to);
            }
            ("week", 1) => return function("week", with(args, &[0])),
            ("yearweek", 1) => return function("yearweek", with(args, &[0])),
            ("weekofyear", 1) => return function("week", with(args, &[3])),
            ("bin", 1) => return function("conv", with(args, &[10, 2])),
            ("oct", 1) => return function("conv", with(args, &[10, 8])),
            ("instr", 2) => {
                args.swap(0, 1);
                "locate"
            }
            ("atan2", _) => "atan",
            ("ceil", _) => "ceiling",
            ("character_length", _) => "char_length",
            ("day", _) => "dayofmonth",
            ("lcase", _) => "lower",
            ("mid" | "substring", _) => "substr",
            ("octet_length", _) => "length",
            ("power", _) => "pow",
            ("ucase", _) => "upper",
            (name, _) => name,
        };
        let mut call = call.clone();
        (call.name, call.args) = (name.to_owned(), args);
        Expr::Function(Box::new(call))
    }
}

fn not_if(negated: bool, e: Expr) -> Expr {
    match negated {
        true => Expr::Not(boxed(e)),
        false => e,
    }
}

/// A column without its table.
fn bare(c: &ColumnRef) -> Box<ColumnRef> {
    Box::new(ColumnRef {
        schema: None,
        table: None,
        name: c.name.clone(),
    })
}
