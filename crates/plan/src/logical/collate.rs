//! Which collation and which type a result has when several expressions meet (manual, "Collation
//! Coercibility in Expressions").

use nfold_types::charset::{self, Charset};
use nfold_types::collation::{Collation, CollationId};
use nfold_types::{ErrorCode, SqlError, TypeKind, Value};

pub use super::common_type::common_type;
use super::expr::{Class, CmpKind, Coercibility, Expr, ExprKind, ExprType};

/// A collation and how firmly it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    pub collation: CollationId,
    pub coercibility: Coercibility,
}

impl Merged {
    /// As the result of a function that gives a string: one made from numbers and dates alone is a
    /// string like a literal.
    pub fn of_string(mut self) -> Merged {
        if self.coercibility == Coercibility::Numeric {
            self.coercibility = Coercibility::Coercible;
        }
        self
    }
}

/// Collation and coercibility of an expression used as a string: numbers and dates are text of the
/// connection's collation.
pub fn as_string(ty: &ExprType, connection: CollationId) -> Merged {
    match ty.class() {
        Class::String => Merged {
            collation: ty.col.collation,
            coercibility: ty.coercibility,
        },
        Class::Null => Merged {
            collation: CollationId::BINARY,
            coercibility: Coercibility::Ignorable,
        },
        Class::Json => Merged {
            collation: CollationId::UTF8MB4_BIN,
            coercibility: Coercibility::Implicit,
        },
        // The bytes of a BIT are binary text.
        _ if matches!(ty.col.kind, TypeKind::Bit(_))
            && ty.coercibility == Coercibility::Implicit =>
        {
            Merged {
                collation: CollationId::BINARY,
                coercibility: Coercibility::Implicit,
            }
        }
        _ => Merged {
            collation: connection,
            coercibility: Coercibility::Numeric,
        },
    }
}

fn coercibility_name(c: Coercibility) -> &'static str {
    match c {
        Coercibility::Explicit => "EXPLICIT",
        Coercibility::NoCollation => "NONE",
        Coercibility::Implicit => "IMPLICIT",
        Coercibility::SysConst => "SYSCONST",
        Coercibility::Coercible => "COERCIBLE",
        Coercibility::Numeric => "NUMERIC",
        Coercibility::Ignorable => "IGNORABLE",
    }
}

/// Merges two; `None` where neither wins.
fn merge_two(a: Merged, b: Merged) -> Option<Merged> {
    if a.collation == b.collation {
        let none = Coercibility::NoCollation;
        return Some(Merged {
            collation: a.collation,
            coercibility: if a.coercibility == none || b.coercibility == none {
                none
            } else {
                a.coercibility.min(b.coercibility)
            },
        });
    }
    if a.coercibility != b.coercibility {
        let (firm, loose) = if a.coercibility < b.coercibility {
            (a, b)
        } else {
            (b, a)
        };
        let (fc, lc) = (firm.collation.known(), loose.collation.known());
        // Values of a column are converted only where no character can be lost. A binary string
        // needs no conversion.
        let converts = fc.charset != lc.charset && loose.coercibility == Coercibility::Implicit;
        let safe = match firm.coercibility {
            Coercibility::Explicit => {
                let binary = fc.charset.is_binary() || lc.charset.is_binary();
                binary || fc.charset.is_unicode() || *lc.charset == charset::ASCII
            }
            _ => is_superset(fc.charset, lc.charset),
        };
        if converts && !safe {
            return None;
        }
        return Some(firm);
    }
    if a.coercibility == Coercibility::Explicit {
        return None;
    }
    let (ca, cb) = (a.collation.known(), b.collation.known());
    if ca.charset == cb.charset {
        // The _bin collation of a set wins over its others; two others leave none.
        return match (ca.is_binary(), cb.is_binary()) {
            (true, false) => Some(a),
            (false, true) => Some(b),
            _ => Some(Merged {
                collation: ca.charset.binary_collation,
                coercibility: Coercibility::NoCollation,
            }),
        };
    }
    if a.collation == CollationId::BINARY {
        return Some(a);
    }
    if b.collation == CollationId::BINARY {
        return Some(b);
    }
    if is_superset(ca.charset, cb.charset) {
        return Some(a);
    }
    if is_superset(cb.charset, ca.charset) {
        return Some(b);
    }
    None
}

/// Whether MySQL converts text of `small` to `big` on its own: from ascii, from a set that is not
/// Unicode to one that is, and from the others of Unicode to utf8mb4 and utf32.
fn is_superset(big: &Charset, small: &Charset) -> bool {
    if *small == charset::ASCII {
        return true;
    }
    big.is_unicode() && (!small.is_unicode() || (big.takes_all_unicode() && big != small))
}

/// Merges the collations of operands that are used as strings.
///
/// # Errors
/// 1267, 1270 or 1271, by the number of operands.
pub fn merge<'e>(
    types: impl Iterator<Item = &'e ExprType> + Clone,
    connection: CollationId,
    operation: &str,
) -> Result<Merged, SqlError> {
    let mut all = types.clone().map(|t| as_string(t, connection));
    let Some(mut result) = all.next() else {
        return Ok(Merged {
            collation: connection,
            coercibility: Coercibility::Coercible,
        });
    };
    let mut count = 1;
    let mut failed = false;
    for next in all {
        count += 1;
        match merge_two(result, next) {
            Some(m) => result = m,
            None => failed = true,
        }
    }
    if failed {
        let list: Vec<Merged> = types.map(|t| as_string(t, connection)).collect();
        return Err(mix_error(&list, operation));
    }
    let _ = count;
    if result.coercibility == Coercibility::Ignorable {
        result.collation = CollationId::BINARY;
    }
    Ok(result)
}

/// As [`merge`], of operands that are compared with one another: some collation must have won.
pub fn comparable<'e>(
    types: impl Iterator<Item = &'e ExprType> + Clone,
    connection: CollationId,
    operation: &str,
) -> Result<Merged, SqlError> {
    let merged = merge(types.clone(), connection, operation)?;
    // Where two of them leave none, a third one does not help.
    let mut all = types.clone().map(|t| as_string(t, connection));
    let mut none = merged.coercibility == Coercibility::NoCollation;
    if let Some(mut sofar) = all.next() {
        for next in all {
            if let Some(m) = merge_two(sofar, next) {
                sofar = m;
                none |= m.coercibility == Coercibility::NoCollation;
            }
        }
    }
    if none {
        let list: Vec<Merged> = types.map(|t| as_string(t, connection)).collect();
        return Err(mix_error(&list, operation));
    }
    Ok(merged)
}

/// The collation in which texts are compared that stand in one list; `None` where they are not all
/// texts.
pub fn of_texts<'e>(
    types: impl Iterator<Item = &'e ExprType> + Clone,
    connection: CollationId,
    operation: &str,
) -> Result<Option<CmpKind>, SqlError> {
    let text = |t: &ExprType| matches!(t.class(), Class::String | Class::Null) && !t.col.zerofill;
    if !types.clone().all(text) {
        return Ok(None);
    }
    let merged = comparable(types, connection, operation)?;
    Ok(Some(CmpKind::String(merged.collation)))
}

/// Error 3854 where a literal has characters that the character set of `collation` lacks.
pub fn convertible<'e>(
    mut exprs: impl Iterator<Item = &'e Expr>,
    collation: CollationId,
) -> Result<(), SqlError> {
    let to = collation.known().charset;
    exprs.try_for_each(|e| {
        let (ExprKind::Const(Value::Bytes(text)), Class::String) = (&e.kind, e.ty.class()) else {
            return Ok(());
        };
        let from = e.ty.col.charset();
        let free = e.ty.coercibility == Coercibility::Coercible && !e.ty.col.zerofill;
        let same = from == to || from.is_binary() || to.is_binary();
        if !free || same || (to.is_ascii_compatible() && from.is_ascii(text)) {
            return Ok(());
        }
        if nfold_types::charset::convert(from, to, text, &mut Vec::new()) > 0 {
            return Err(cannot_convert(text, from.name, to.name));
        }
        Ok(())
    })
}

/// The default collation of a character set by name; error 1115.
pub(crate) fn charset_collation(name: &str) -> Result<CollationId, SqlError> {
    nfold_types::charset::Charset::by_name(name)
        .map(|c| c.default_collation)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_CHARACTER_SET, &[&name]))
}

pub(crate) fn collation_named(name: &str) -> Result<CollationId, SqlError> {
    Collation::by_name(name)
        .map(|c| c.id)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_COLLATION, &[&name]))
}

/// Error 3854
pub fn cannot_convert(text: &[u8], from: &str, to: &str) -> SqlError {
    const SHOWN: usize = 6;
    let mut shown = String::new();
    for b in &text[..text.len().min(SHOWN)] {
        match b {
            b' '..=b'~' => shown.push(char::from(*b)),
            _ => shown.push_str(&format!("\\x{b:02X}")),
        }
    }
    if text.len() > SHOWN {
        shown.push_str("...");
    }
    SqlError::new(ErrorCode::ER_CANNOT_CONVERT_STRING, &[&shown, &from, &to])
}

/// Error 1267, 1270 or 1271.
pub fn mix_error(list: &[Merged], operation: &str) -> SqlError {
    let name = |m: &Merged| m.collation.known().name;
    let level = |m: &Merged| coercibility_name(m.coercibility);
    match list {
        [a, b] => SqlError::new(
            ErrorCode::ER_CANT_AGGREGATE_2COLLATIONS,
            &[&name(a), &level(a), &name(b), &level(b), &operation],
        ),
        [a, b, c] => SqlError::new(
            ErrorCode::ER_CANT_AGGREGATE_3COLLATIONS,
            &[
                &name(a),
                &level(a),
                &name(b),
                &level(b),
                &name(c),
                &level(c),
                &operation,
            ],
        ),
        _ => SqlError::new(ErrorCode::ER_CANT_AGGREGATE_NCOLLATIONS, &[&operation]),
    }
}

/// What stands on a side of a comparison: a constant takes the temporal type of a *column* on the
/// other side, and of nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A literal, a parameter, or made of nothing else.
    Constant,
    /// A column as it stands.
    Column,
    /// Any other expression.
    Other,
}

/// How `a op b` compares (manual, "Type Conversion in Expression Evaluation").
///
/// # Errors
/// 1267 where both are strings and their collations do not go together.
pub fn comparison(
    a: &ExprType,
    b: &ExprType,
    sides: [Operand; 2],
    connection: CollationId,
    operation: &str,
) -> Result<CmpKind, SqlError> {
    use Class::*;
    use Operand::{Column, Constant};
    let (ca, cb) = (a.class(), b.class());
    if ca == Json || cb == Json {
        return Ok(CmpKind::Json);
    }
    // A hexadecimal or bit literal next to a number is a number.
    let hex = |t: &ExprType| t.col.zerofill && matches!(t.col.kind, TypeKind::VarBinary(_));
    if (hex(a) && cb == Int) || (hex(b) && ca == Int) {
        return Ok(CmpKind::Int);
    }
    let year = |t: &ExprType| t.col.kind == TypeKind::Year;
    Ok(match (ca, cb) {
        // Beside a date a year is one without month and day.
        (Date | DateTime, Int) if year(b) => CmpKind::DateTime,
        (Int, Date | DateTime) if year(a) => CmpKind::DateTime,
        (String | Null, String | Null) => {
            CmpKind::String(comparable([a, b].into_iter(), connection, operation)?.collation)
        }
        (Null, other) | (other, Null) => match other {
            Int => CmpKind::Int,
            Decimal => CmpKind::Decimal,
            Time => CmpKind::Time,
            Date | DateTime => CmpKind::DateTime,
            _ => CmpKind::Double,
        },
        (Int, Int) => CmpKind::Int,
        (Int | Decimal, Int | Decimal) => CmpKind::Decimal,
        (Time, Time) => CmpKind::Time,
        // A constant beside a column becomes a value of the column.
        (Time, Date | DateTime) if sides == [Column, Constant] => CmpKind::Time,
        (Date | DateTime, Time) if sides == [Constant, Column] => CmpKind::Time,
        (x, y) if x.is_temporal() && y.is_temporal() => CmpKind::DateTime,
        (Date | DateTime, String) | (String, Date | DateTime) => CmpKind::DateTime,
        (Time, _) if sides == [Column, Constant] => CmpKind::Time,
        (_, Time) if sides == [Constant, Column] => CmpKind::Time,
        (Time, String) | (String, Time) => {
            CmpKind::String(merge([a, b].into_iter(), connection, operation)?.collation)
        }
        (Date | DateTime, _) if sides == [Column, Constant] => CmpKind::DateTime,
        (_, Date | DateTime) if sides == [Constant, Column] => CmpKind::DateTime,
        (Int | Decimal, x) | (x, Int | Decimal) if x.is_temporal() => CmpKind::Decimal,
        // An integer column against a constant string that is an integer compares as integers; the
        // executor looks at the value.
        _ => CmpKind::Double,
    })
}

/// How numbers in a list of several are compared with a moment of class `left`: as moments where
/// all of the list are constant numbers, otherwise as numbers. `alone`: whether they are.
pub fn listed_number(left: Class, alone: bool) -> CmpKind {
    match (alone, left) {
        (false, _) => CmpKind::Double,
        (true, Class::Time) => CmpKind::Time,
        (true, _) => CmpKind::DateTime,
    }
}
