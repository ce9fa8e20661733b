//! A small evaluator of constant expressions. It implements just enough of MySQL's arithmetic to
//! distinguish groupings of operators.

use nfold_sql::ast::*;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Int(i128),
    Real(f64),
    Text(String),
}

use Value::*;

impl Value {
    fn real(&self) -> Option<f64> {
        match self {
            Null => None,
            Int(i) => Some(*i as f64),
            Real(r) => Some(*r),
            Text(t) => Some(t.parse().unwrap_or(0.0)),
        }
    }

    fn truth(&self) -> Option<bool> {
        self.real().map(|r| r != 0.0)
    }

    fn text(&self) -> Option<String> {
        match self {
            // Numbers become real only by a division, which has four digits.
            Real(r) => Some(format!("{r:.4}")),
            Null => None,
            other => Some(shown(other)),
        }
    }

    /// The value as an operand of bit operations.
    fn bits(&self) -> Option<u64> {
        Some(match self {
            Int(i) => *i as u64,
            other => other.real()?.round() as i64 as u64,
        })
    }
}

pub fn shown(value: &Value) -> String {
    match value {
        Null => "NULL".into(),
        Int(i) => i.to_string(),
        Real(r) => r.to_string(),
        Text(t) => t.clone(),
    }
}

/// Whether two texts are equal, or are numbers that differ only by rounding.
pub fn same(ours: &str, theirs: &str) -> bool {
    if ours == theirs {
        return true;
    }
    match (ours.parse::<f64>(), theirs.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 1e-3 * (1.0 + a.abs()),
        _ => false,
    }
}

fn truth(value: Option<bool>) -> Value {
    value.map_or(Null, |b| Int(i128::from(b)))
}

fn not(value: Value, negated: bool) -> Value {
    if negated {
        truth(value.truth().map(|b| !b))
    } else {
        value
    }
}

pub fn eval(expr: &Expr) -> Value {
    match expr {
        Expr::Literal(Literal::Null) => Null,
        Expr::Literal(Literal::Int(i)) => Int(i128::from(*i)),
        Expr::And(members) => fold(members, false),
        Expr::Or(members) => fold(members, true),
        Expr::Xor(a, b) => truth(eval(a).truth().zip(eval(b).truth()).map(|(a, b)| a != b)),
        Expr::Not(a) => truth(eval(a).truth().map(|b| !b)),
        Expr::Unary { op, expr } => unary(*op, eval(expr)),
        Expr::Binary { op, left, right } => binary(*op, eval(left), eval(right)),
        Expr::Is {
            expr,
            test,
            negated,
        } => {
            let value = eval(expr).truth();
            let holds = match test {
                IsTest::Null | IsTest::Unknown => value.is_none(),
                IsTest::True => value == Some(true),
                IsTest::False => value == Some(false),
            };
            truth(Some(holds != *negated))
        }
        Expr::Between {
            expr,
            low,
            high,
            negated,
        } => {
            let value = eval(expr);
            let above = binary(BinaryOp::Ge, value.clone(), eval(low));
            let below = binary(BinaryOp::Le, value, eval(high));
            not(both(&above, &below), *negated)
        }
        Expr::InList {
            expr,
            list: InList::Exprs(list),
            negated,
        } => {
            let value = eval(expr);
            let hits: Vec<Value> = list
                .iter()
                .map(|m| binary(BinaryOp::Eq, value.clone(), eval(m)))
                .collect();
            let found = if hits.contains(&Int(1)) {
                Int(1)
            } else if hits.contains(&Null) {
                Null
            } else {
                Int(0)
            };
            not(found, *negated)
        }
        Expr::Like {
            expr,
            pattern,
            negated,
            ..
        } => {
            let pair = eval(expr).text().zip(eval(pattern).text());
            not(truth(pair.map(|(text, pattern)| text == pattern)), *negated)
        }
        Expr::Regexp {
            expr,
            pattern,
            negated,
        } => {
            // The patterns are plain digits, and numbers with a point or a sign.
            let pair = eval(expr).text().zip(eval(pattern).text());
            not(
                truth(pair.map(|(text, pattern)| text.contains(&pattern))),
                *negated,
            )
        }
        Expr::Collate { expr, .. } => eval(expr).text().map_or(Null, Text),
        Expr::Case {
            operand: Some(operand),
            whens,
            otherwise: Some(otherwise),
        } => {
            let value = eval(operand);
            let hit = whens
                .iter()
                .find(|(when, _)| binary(BinaryOp::Eq, value.clone(), eval(when)) == Int(1));
            eval(hit.map_or(otherwise, |(_, then)| then))
        }
        other => panic!("not evaluated: {other:?}"),
    }
}

fn fold(members: &[Expr], decides: bool) -> Value {
    let values: Vec<_> = members.iter().map(|m| eval(m).truth()).collect();
    if values.contains(&Some(decides)) {
        truth(Some(decides))
    } else if values.contains(&None) {
        Null
    } else {
        truth(Some(!decides))
    }
}

fn both(a: &Value, b: &Value) -> Value {
    match (a.truth(), b.truth()) {
        (Some(false), _) | (_, Some(false)) => Int(0),
        (Some(true), Some(true)) => Int(1),
        _ => Null,
    }
}

fn unary(op: UnaryOp, value: Value) -> Value {
    match (op, value) {
        (_, Null) => Null,
        (UnaryOp::Plus, value) => value,
        (UnaryOp::Minus, Int(i)) => Int(-i),
        (UnaryOp::Minus, value) => value.real().map_or(Null, |r| Real(-r)),
        (UnaryOp::BitNot, value) => value.bits().map_or(Null, |b| Int(i128::from(!b))),
        (UnaryOp::Binary, value) => value.text().map_or(Null, Text),
    }
}

fn compare(op: BinaryOp, a: &Value, b: &Value) -> Value {
    use std::cmp::Ordering;
    if op == BinaryOp::NullSafeEq && (*a == Null || *b == Null) {
        return truth(Some(a == b));
    }
    let order = match (a, b) {
        (Null, _) | (_, Null) => return Null,
        (Text(a), Text(b)) => a.cmp(b),
        (Int(a), Int(b)) => a.cmp(b),
        _ => match a.real().zip(b.real()).and_then(|(a, b)| a.partial_cmp(&b)) {
            Some(order) => order,
            None => return Null,
        },
    };
    truth(Some(match op {
        BinaryOp::Eq | BinaryOp::NullSafeEq => order == Ordering::Equal,
        BinaryOp::Ne => order != Ordering::Equal,
        BinaryOp::Lt => order == Ordering::Less,
        BinaryOp::Le => order != Ordering::Greater,
        BinaryOp::Gt => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}

fn binary(op: BinaryOp, a: Value, b: Value) -> Value {
    use BinaryOp::*;
    if op.is_comparison() {
        return compare(op, &a, &b);
    }
    if op == Concat {
        return a.text().zip(b.text()).map_or(Null, |(a, b)| Text(a + &b));
    }
    if matches!(op, BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight) {
        let Some((x, y)) = a.bits().zip(b.bits()) else {
            return Null;
        };
        let shift = |f: fn(u64, u32) -> Option<u64>| {
            u32::try_from(y).ok().and_then(|y| f(x, y)).unwrap_or(0)
        };
        return Value::Int(i128::from(match op {
            BitAnd => x & y,
            BitOr => x | y,
            BitXor => x ^ y,
            ShiftLeft => shift(u64::checked_shl),
            _ => shift(u64::checked_shr),
        }));
    }
    if let (Int(x), Int(y)) = (&a, &b) {
        let whole = match op {
            Add => Some(x + y),
            Sub => Some(x - y),
            Mul => Some(x * y),
            IntDiv => return x.checked_div(*y).map_or(Null, Int),
            Mod => return x.checked_rem(*y).map_or(Null, Int),
            _ => None,
        };
        if let Some(whole) = whole {
            return Int(whole);
        }
    }
    let Some((x, y)) = a.real().zip(b.real()) else {
        return Null;
    };
    match op {
        Add => Real(x + y),
        Sub => Real(x - y),
        Mul => Real(x * y),
        _ if y == 0.0 => Null,
        Div => Real(x / y),
        IntDiv => Int((x / y).trunc() as i128),
        _ => Real(x % y),
    }
}
