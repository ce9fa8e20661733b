//! LIKE and WHERE of SHOW statements, applied to rows in memory.
//!
//! WHERE supports the columns of the result, literals, comparisons, LIKE, IN, IS NULL, BETWEEN and
//! the logical operators, which tools use. Anything else is error 1235.

use std::cmp::Ordering;

use nfold_sql::ast::{BinaryOp, Expr, InList, IsTest, Literal, ShowFilter, UnaryOp};
use nfold_types::collation::CollationId;
use nfold_types::convert::number::parse_double;
use nfold_types::{ErrorCode, SqlError, Value};

use crate::session::response::RowSet;

/// Names in the dictionary are compared without regard to case, and so is `Variable_name`.
const NAMES: CollationId = CollationId::UTF8MB3_GENERAL_CI;

/// Whether `text` matches the LIKE pattern `pattern`.
pub fn like(text: &[u8], pattern: &[u8]) -> bool {
    NAMES.known().like(text, pattern, Some('\\'))
}

/// Keeps the rows that satisfy `filter`. LIKE applies to the column `like_column`.
pub fn apply(
    set: &mut RowSet,
    filter: Option<&ShowFilter>,
    like_column: usize,
) -> Result<(), SqlError> {
    match filter {
        None => Ok(()),
        Some(ShowFilter::Like(pattern)) => {
            set.rows
                .retain(|row| text_of(&row[like_column]).is_some_and(|t| like(&t, pattern)));
            Ok(())
        }
        Some(ShowFilter::Where(condition)) => {
            let rows = std::mem::take(&mut set.rows);
            for row in rows {
                if truth(&eval(condition, set, &row)?) == Some(true) {
                    set.rows.push(row);
                }
            }
            // An unknown column is an error even if there is no row.
            if set.rows.is_empty() {
                let nothing = vec![Value::Null; set.columns.len()];
                eval(condition, set, &nothing)?;
            }
            Ok(())
        }
    }
}

fn text_of(v: &Value) -> Option<Vec<u8>> {
    match v {
        Value::Null => None,
        Value::Bytes(b) => Some(b.clone()),
        Value::Int(n) => Some(n.to_string().into_bytes()),
        Value::UInt(n) => Some(n.to_string().into_bytes()),
        other => {
            let mut out = Vec::new();
            let ty = nfold_types::ColumnType::double();
            nfold_types::wire::display_text(
                other.as_ref(),
                &ty,
                &nfold_types::temporal::TimeZone::UTC,
                &mut out,
            );
            Some(out)
        }
    }
}

fn number_of(v: &Value) -> Option<f64> {
    match v {
        Value::Int(n) => Some(*n as f64),
        Value::UInt(n) => Some(*n as f64),
        Value::Double(n) => Some(*n),
        Value::Decimal(n) => Some(n.to_f64()),
        other => text_of(other).map(|t| parse_double(&t).value),
    }
}

fn truth(v: &Value) -> Option<bool> {
    number_of(v).map(|n| n != 0.0)
}

fn from_bool(b: Option<bool>) -> Value {
    b.map_or(Value::Null, Value::from)
}

/// `None` if either side is NULL.
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    if a.is_null() || b.is_null() {
        return None;
    }
    match (a, b) {
        (Value::Bytes(x), Value::Bytes(y)) => Some(NAMES.known().compare(x, y)),
        _ => number_of(a)?.partial_cmp(&number_of(b)?),
    }
}

fn negate_if(negated: bool, b: Option<bool>) -> Value {
    from_bool(b.map(|b| b != negated))
}

fn eval(e: &Expr, set: &RowSet, row: &[Value]) -> Result<Value, SqlError> {
    let sub = |e: &Expr| eval(e, set, row);
    let unsupported = || SqlError::not_supported("this expression in the WHERE of SHOW");
    Ok(match e {
        Expr::Column(c) => {
            let at = set
                .columns
                .iter()
                .position(|m| m.name.eq_ignore_ascii_case(&c.name.value));
            let at = at.ok_or_else(|| {
                SqlError::new(
                    ErrorCode::ER_BAD_FIELD_ERROR,
                    &[&c.name.value, &"where clause"],
                )
            })?;
            row[at].clone()
        }
        Expr::Literal(l) => match l {
            Literal::Null => Value::Null,
            Literal::Bool(b) => Value::from(*b),
            Literal::Int(n) => Value::UInt(*n),
            Literal::Decimal(t) | Literal::Float(t) => {
                Value::Double(parse_double(t.as_bytes()).value)
            }
            Literal::String(s) => Value::Bytes(s.bytes.clone()),
            Literal::Hex(b) | Literal::Bit(b) => Value::Bytes(b.clone()),
            Literal::Temporal { .. } => return Err(unsupported()),
        },
        Expr::Unary {
            op: UnaryOp::Minus,
            expr,
        } => number_of(&sub(expr)?).map(|n| -n).into(),
        Expr::Unary {
            op: UnaryOp::Binary,
            expr,
        } => sub(expr)?,
        Expr::Collate { expr, .. } => sub(expr)?,
        Expr::Not(inner) => from_bool(truth(&sub(inner)?).map(|b| !b)),
        Expr::And(list) => logical(list, false, &sub)?,
        Expr::Or(list) => logical(list, true, &sub)?,
        Expr::Xor(a, b) => from_bool(truth(&sub(a)?).zip(truth(&sub(b)?)).map(|(a, b)| a != b)),
        Expr::Binary { op, left, right } if op.is_comparison() => {
            let (a, b) = (sub(left)?, sub(right)?);
            if *op == BinaryOp::NullSafeEq {
                Value::from(compare(&a, &b).map_or(a.is_null() && b.is_null(), Ordering::is_eq))
            } else {
                from_bool(compare(&a, &b).map(|o| holds(*op, o)))
            }
        }
        Expr::Like {
            expr,
            pattern,
            escape: None,
            negated,
        } => {
            let (text, pattern) = (text_of(&sub(expr)?), text_of(&sub(pattern)?));
            negate_if(*negated, text.zip(pattern).map(|(t, p)| like(&t, &p)))
        }
        Expr::InList {
            expr,
            list: InList::Exprs(list),
            negated,
        } => {
            let value = sub(expr)?;
            let members = list.iter().map(sub).collect::<Result<Vec<_>, _>>()?;
            let found = members
                .iter()
                .map(|m| compare(&value, m).map(Ordering::is_eq));
            let any = found.clone().any(|b| b == Some(true));
            let unknown = found.clone().any(|b| b.is_none());
            negate_if(
                *negated,
                if any {
                    Some(true)
                } else if unknown {
                    None
                } else {
                    Some(false)
                },
            )
        }
        Expr::Between {
            expr,
            low,
            high,
            negated,
        } => {
            let value = sub(expr)?;
            let inside = compare(&value, &sub(low)?)
                .zip(compare(&value, &sub(high)?))
                .map(|(l, h)| l.is_ge() && h.is_le());
            negate_if(*negated, inside)
        }
        Expr::Is {
            expr,
            test,
            negated,
        } => {
            let value = sub(expr)?;
            let is = match test {
                IsTest::Null => value.is_null(),
                IsTest::True => truth(&value) == Some(true),
                IsTest::False => truth(&value) == Some(false),
                IsTest::Unknown => truth(&value).is_none(),
            };
            Value::from(is != *negated)
        }
        _ => return Err(unsupported()),
    })
}

fn holds(op: BinaryOp, o: Ordering) -> bool {
    match op {
        BinaryOp::Eq => o.is_eq(),
        BinaryOp::Ne => o.is_ne(),
        BinaryOp::Lt => o.is_lt(),
        BinaryOp::Le => o.is_le(),
        BinaryOp::Gt => o.is_gt(),
        _ => o.is_ge(),
    }
}

/// AND (`decides` is false) or OR (`decides` is true).
fn logical(
    list: &[Expr],
    decides: bool,
    sub: &dyn Fn(&Expr) -> Result<Value, SqlError>,
) -> Result<Value, SqlError> {
    let mut unknown = false;
    for e in list {
        match truth(&sub(e)?) {
            Some(b) if b == decides => return Ok(Value::from(decides)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown {
        Value::Null
    } else {
        Value::from(!decides)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfold_sql::ast::{Show, Statement};
    use nfold_sql::lexer::LexMode;

    fn kept(condition: &str) -> Result<String, SqlError> {
        let sql = format!("SHOW VARIABLES {condition}");
        let Statement::Show(Show::Variables { filter, .. }) =
            nfold_sql::parser::parse(sql.as_bytes(), LexMode::default())?
        else {
            panic!("not SHOW VARIABLES");
        };
        let mut set = RowSet::of_text(&[("Variable_name", 64), ("Value", 64)]);
        for (name, value) in [
            ("autocommit", Value::from("ON")),
            ("port", Value::from("3306")),
            ("socket", Value::Null),
        ] {
            set.push(vec![Value::from(name), value]);
        }
        apply(&mut set, filter.as_ref(), 0)?;
        Ok(set
            .rows
            .iter()
            .map(|r| String::from_utf8(text_of(&r[0]).unwrap()).unwrap())
            .collect::<Vec<_>>()
            .join(","))
    }

    #[test]
    fn conditions() {
        for (condition, expected) in [
            ("", "autocommit,port,socket"),
            ("LIKE 'P%'", "port"),
            (
                "WHERE variable_name = 'PORT' OR Value LIKE 'o_'",
                "autocommit,port",
            ),
            (
                "WHERE Variable_name IN ('port', 'x') AND NOT Value > 4000",
                "port",
            ),
            ("WHERE Value IS NULL", "socket"),
            ("WHERE Value <> 'ON'", "port"),
            (
                "WHERE Variable_name NOT IN ('port') XOR Value <=> NULL",
                "autocommit",
            ),
            ("WHERE Variable_name BETWEEN 'a' AND 'b'", "autocommit"),
            ("WHERE 0", ""),
        ] {
            assert_eq!(kept(condition).unwrap(), expected, "{condition}");
        }
        assert_eq!(kept("WHERE nix = 1").unwrap_err().errno(), 1054);
        assert_eq!(kept("WHERE CONCAT(Value) = 1").unwrap_err().errno(), 1235);
    }
}
