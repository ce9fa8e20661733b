//! The collation and the comparison type of expressions that meet in one operation (manual,
//! "Collation Coercibility in Expressions").

use nfold_types::charset::{self, Charset};
use nfold_types::collation::{Collation, CollationId};
use nfold_types::{ErrorCode, SqlError, TypeKind, Value};

pub use super::common_type::common_type;
use super::expr::{Class, CmpKind, Coercibility, Expr, ExprKind, ExprType};

/// A collation with its coercibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    pub collation: CollationId,
    pub coercibility: Coercibility,
}

impl Merged {
    /// The collation as that of a function's string result: a string made from numbers and dates
    /// alone has the coercibility of a literal.
    pub fn of_string(mut self) -> Merged {
        if self.coercibility == Coercibility::Numeric {
            self.coercibility = Coercibility::Coercible;
        }
        self
    }
}

/// The collation and coercibility of an expression used as a string. Numbers and dates become text
/// in the connection's collation.
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
        // The bytes of a BIT column are a binary string.
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

/// Merges two collations; `None` if neither wins.
fn merge_two(a: Merged, b: Merged) -> Option<Merged> {
    if a.collation == b.collation {
        let firm = a.coercibility.min(b.coercibility);
        let none = a.coercibility.max(b.coercibility) == Coercibility::NoCollation;
        return Some(Merged {
            collation: a.collation,
            coercibility: match none && firm != Coercibility::Explicit {
                true => Coercibility::NoCollation,
                false => firm,
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
        // A column's values are converted only if every character survives. Conversion to a binary
        // string never loses anything.
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
        // The `_bin` collation of a character set wins over its other collations. Two others are a
        // conflict.
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

/// Whether MySQL converts text of `small` to `big` implicitly: from ascii to any set, from a
/// non-Unicode set to a Unicode one, and from another Unicode set to utf8mb4 or utf32.
fn is_superset(big: &Charset, small: &Charset) -> bool {
    if *small == charset::ASCII {
        return true;
    }
    big.is_unicode() && (!small.is_unicode() || (big.takes_all_unicode() && big != small))
}

/// Merges the collations of operands that are used as strings.
///
/// # Errors
/// 1267, 1270 or 1271, depending on the number of operands.
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
    let mut failed = false;
    // Whether two operands conflict. Then a literal or a number does not decide between them.
    let mut in_conflict = false;
    for next in all {
        if in_conflict && next.coercibility > Coercibility::Implicit {
            continue;
        }
        let none = Coercibility::NoCollation;
        let had_collations = result.coercibility != none && next.coercibility != none;
        match merge_two(result, next) {
            Some(m) => {
                in_conflict = had_collations && m.coercibility == none;
                result = m;
            }
            None => failed = true,
        }
    }
    if failed {
        let list: Vec<Merged> = types.map(|t| as_string(t, connection)).collect();
        return Err(mix_error(&list, operation));
    }
    if result.coercibility == Coercibility::Ignorable {
        result.collation = CollationId::BINARY;
    }
    Ok(result)
}

/// As [`merge`], for operands that are compared with one another: a conflict is an error.
pub fn comparable<'e>(
    types: impl Iterator<Item = &'e ExprType> + Clone,
    connection: CollationId,
    operation: &str,
) -> Result<Merged, SqlError> {
    let merged = merge(types.clone(), connection, operation)?;
    // A conflict between two operands is an error even if a third operand wins in the merge.
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

/// The comparison of a list whose members are all strings; `None` if some are not.
pub fn of_texts<'e>(
    types: impl Iterator<Item = &'e ExprType> + Clone,
    connection: CollationId,
    operation: &str,
) -> Result<Option<CmpKind>, SqlError> {
    let text = |t: &ExprType| matches!(t.class(), Class::String | Class::Null);
    if !types.clone().all(text) {
        return Ok(None);
    }
    let merged = comparable(types, connection, operation)?;
    Ok(Some(CmpKind::String(merged.collation)))
}

/// Error 3854 if a literal has characters that the character set of `collation` lacks.
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

/// The default collation of a character set, by the set's name. Error 1115 if it is unknown.
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

/// Error 3854.
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

/// The kind of one side of a comparison. A constant is converted to the temporal type of the other
/// side only if that side is a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A literal, a parameter, or an expression of nothing else.
    Constant,
    /// A column.
    Column,
    /// Any other expression.
    Other,
}

/// How `a op b` is compared (manual, "Type Conversion in Expression Evaluation"). `sides` are the
/// kinds of `a` and `b`, `operation` is the operator's name in messages.
///
/// # Errors
/// 1267 if both are strings and no collation wins.
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
    // A hexadecimal or bit literal beside a number is a number.
    let hex = |t: &ExprType| t.col.zerofill && matches!(t.col.kind, TypeKind::VarBinary(_));
    if (hex(a) && cb == Int) || (hex(b) && ca == Int) {
        return Ok(CmpKind::Int);
    }
    let year = |t: &ExprType| t.col.kind == TypeKind::Year;
    Ok(match (ca, cb) {
        // A YEAR beside a date is a date without month and day.
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
        // A constant is converted to the type of the column.
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
        // An integer column and a constant string: the executor compares them as integers if the
        // string is an integer.
        _ => CmpKind::Double,
    })
}

/// How the numbers in a list of two or more members are compared with an operand of temporal class
/// `left`. `alone`: all members are constant numbers; only then they are converted to the operand's
/// type.
pub fn listed_number(left: Class, alone: bool) -> CmpKind {
    match (alone, left) {
        (false, _) => CmpKind::Double,
        (true, Class::Time) => CmpKind::Time,
        (true, _) => CmpKind::DateTime,
    }
}
