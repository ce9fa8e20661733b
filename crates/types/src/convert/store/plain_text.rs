//! Texts in the usual form of a number or date, for columns of that type. Files of LOAD DATA and
//! dumps hold millions of them. Everything else takes the general way.

use crate::sql_type::{ColumnType, TypeKind};
use crate::temporal::calendar::days_in_month;
use crate::temporal::{Date, DateTime};
use crate::{Decimal, Value};

/// The most digits of a number here; 18 fit in an `i64`.
const MOST_DIGITS: usize = 18;

/// The value of `text` in a column of type `ty`, if the text is a number of few digits or a date
/// without spaces, and fits exactly. Such a value is valid in every SQL mode.
#[inline]
pub(super) fn plain_value(text: &[u8], ty: &ColumnType) -> Option<Value> {
    match &ty.kind {
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt => {
            let (value, 0) = number(text, 0)? else {
                return None;
            };
            let (low, high) = ty.int_range()?;
            let fits = (low..=high).contains(&i128::from(value));
            fits.then_some(match ty.unsigned {
                true => Value::UInt(value.unsigned_abs()),
                false => Value::Int(value),
            })
        }
        TypeKind::Decimal { precision, scale } => {
            let (value, places) = number(text, usize::from(*scale))?;
            let missing = u32::from(*scale) - places;
            let value = value.checked_mul(10_i64.checked_pow(missing)?)?;
            let most = 10_u64.checked_pow(u32::from(*precision));
            let fits = most.is_none_or(|most| value.unsigned_abs() < most);
            (fits && !(ty.unsigned && value < 0))
                .then(|| Value::Decimal(Decimal::from_scaled(value, *scale)))
        }
        TypeKind::Date => Some(Value::Date(date(text.try_into().ok()?)?)),
        TypeKind::DateTime(fsp) => {
            let (day, rest) = text.split_first_chunk::<10>()?;
            let [b' ', h1, h2, b':', m1, m2, b':', s1, s2] = rest else {
                return None;
            };
            let (hour, minute) = (two_digits(*h1, *h2)?, two_digits(*m1, *m2)?);
            let second = two_digits(*s1, *s2)?;
            let is_time = hour < 24 && minute < 60 && second < 60;
            let value = DateTime::new(date(day)?, hour, minute, second, 0, *fsp);
            is_time.then_some(Value::DateTime(value))
        }
        _ => None,
    }
}

/// A sign, digits, and at most `most_places` digits behind a point: the digits as an integer, and
/// the number of those behind the point. No negative zero.
fn number(text: &[u8], most_places: usize) -> Option<(i64, u32)> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() > MOST_DIGITS + 1 || !digits.first()?.is_ascii_digit() {
        return None;
    }
    let (mut value, mut point) = (0_i64, None);
    for (n, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + i64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(n),
            _ => return None,
        }
    }
    let places = point.map_or(0, |point| digits.len() - 1 - point);
    let count = digits.len() - usize::from(point.is_some());
    let is_plain = count <= MOST_DIGITS && places <= most_places && !(negative && value == 0);
    // "1." is left to the general way.
    let ends_in_point = point.is_some() && places == 0;
    let value = if negative { -value } else { value };
    (is_plain && !ends_in_point).then_some((value, places as u32))
}

/// `2024-02-28`.
fn date(text: &[u8; 10]) -> Option<Date> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text else {
        return None;
    };
    let year = 100 * two_digits(y1, y2)? + two_digits(y3, y4)?;
    let (month, day) = (two_digits(m1, m2)?, two_digits(d1, d2)?);
    let is_month = year > 0 && (1..=12).contains(&month);
    let is_date = is_month && (1..=days_in_month(year, month)).contains(&day);
    is_date.then(|| Date::new(year, month, day))
}

fn two_digits(a: u8, b: u8) -> Option<u32> {
    let is_number = a.is_ascii_digit() && b.is_ascii_digit();
    is_number.then(|| u32::from(a - b'0') * 10 + u32::from(b - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CollationId;
    use crate::convert::store::{StoreCx, general_value, tests::mode};
    use crate::error::Warnings;
    use proptest::prelude::*;

    fn types() -> Vec<ColumnType> {
        let decimal = |precision, scale| TypeKind::Decimal { precision, scale };
        let kinds = [
            TypeKind::TinyInt,
            TypeKind::Int,
            TypeKind::BigInt,
            decimal(5, 2),
            decimal(15, 2),
            decimal(18, 18),
            decimal(40, 5),
            decimal(3, 0),
            TypeKind::Date,
            TypeKind::DateTime(0),
            TypeKind::DateTime(3),
        ];
        let both = |kind: TypeKind| {
            [false, true].map(|unsigned| ColumnType {
                unsigned,
                ..ColumnType::new(kind.clone())
            })
        };
        kinds.into_iter().flat_map(both).collect()
    }

    /// Whether a value is found, which must be that of the general way.
    fn is_plain(text: &[u8]) -> Vec<bool> {
        let check = |ty: &ColumnType| {
            let Some(value) = plain_value(text, ty) else {
                return false;
            };
            for strict in [false, true] {
                let (mode, mut warnings) = (mode(strict), Warnings::default());
                let mut cx = StoreCx {
                    mode: &mode,
                    column: "c",
                    row: 1,
                    from: CollationId::UTF8MB4_BIN,
                    warnings: &mut warnings,
                };
                let text = crate::ValueRef::Bytes(text);
                let general =
                    general_value(text, CollationId::UTF8MB4_BIN, ty, &mut cx, Vec::new());
                // Also the number of decimal places.
                assert_eq!(
                    format!("{value:?}"),
                    format!("{:?}", general.unwrap()),
                    "{text:?} {ty:?}"
                );
                assert_eq!(warnings.total(), 0, "{text:?} {ty:?}");
            }
            true
        };
        types().iter().map(check).collect()
    }

    #[test]
    fn usual_texts_are_plain() {
        let any = |text: &str| is_plain(text.as_bytes()).contains(&true);
        let usual = [
            "0",
            "-1",
            "00012",
            "127",
            "2147483647",
            "1.5",
            "-12.34",
            "0.000001",
            "2024-02-28",
            "2024-02-29",
            "1996-12-31",
            "1996-12-10 23:59:59",
        ];
        for text in usual {
            assert!(any(text), "{text}");
        }
        let other = [
            "",
            "-",
            ".5",
            "5.",
            "1e3",
            " 1",
            "1 ",
            "-0",
            "-0.0",
            "1.2.3",
            "2023-02-29",
            "2024-04-31",
            "2024-12-00",
            "0000-00-00",
            "2024-2-28",
            "2024-02-28 24:00:00",
            "2024-02-28T10:00:00",
            "1234567890123456789",
        ];
        for text in other {
            assert!(!any(text), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn plain_texts_have_the_value_of_the_general_way(
            number in "-?[0-9]{1,19}(\\.[0-9]{0,6})?",
            date in "[0-2][0-9]{3}-[01][0-9]-[0-3][0-9]( [0-2][0-9]:[0-6][0-9]:[0-6][0-9])?",
            noise in "[-0-9.: e]{0,12}",
        ) {
            for text in [number, date, noise] {
                is_plain(text.as_bytes());
            }
        }
    }
}
