//! The order and the hash of values of one column type: what ORDER BY, GROUP BY, DISTINCT, MIN and
//! MAX go by.
//!
//! Which type a comparison of two *expressions* takes is the planner's decision; values that it has
//! brought to one type compare here. Integers, DECIMAL and doubles also compare with one another,
//! exactly, so that a mixture of them has one order.

use crate::{Collation, Decimal, ValueRef};
use std::cmp::Ordering;
use std::hash::Hasher;

/// The order of two values, NULL first. Strings compare under `collation`.
///
/// Values of kinds that have no order with one another (a string and a number) compare by their
/// kind, so that the order is total.
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>, collation: &Collation) -> Ordering {
    use ValueRef as V;
    match (a, b) {
        (V::Int(a), V::Int(b)) => a.cmp(&b),
        (V::UInt(a), V::UInt(b)) => a.cmp(&b),
        (V::Bytes(a), V::Bytes(b)) => collation.compare(a, b),
        (V::Decimal(a), V::Decimal(b)) => a.cmp(&b),
        (V::Date(a), V::Date(b)) => a.cmp(&b),
        (V::DateTime(a), V::DateTime(b)) => a.cmp(&b),
        (V::Date(a), V::DateTime(b)) => a.at_midnight().cmp(&b),
        (V::DateTime(a), V::Date(b)) => a.cmp(&b.at_midnight()),
        (V::Timestamp(a), V::Timestamp(b)) => a.cmp(&b),
        (V::Time(a), V::Time(b)) => a.cmp(&b),
        _ => match (Number::of(a), Number::of(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => rank(a).cmp(&rank(b)),
        },
    }
}

/// The place of a value's kind among kinds without a common order.
fn rank(v: ValueRef<'_>) -> u8 {
    match v {
        ValueRef::Null => 0,
        ValueRef::Int(_)
        | ValueRef::UInt(_)
        | ValueRef::Float(_)
        | ValueRef::Double(_)
        | ValueRef::Decimal(_) => 1,
        ValueRef::Time(_) => 2,
        ValueRef::Date(_) | ValueRef::DateTime(_) => 3,
        ValueRef::Timestamp(_) => 4,
        ValueRef::Bytes(_) => 5,
    }
}

/// A number of either exactness.
#[derive(Clone, Copy)]
enum Number {
    Exact(Decimal),
    Double(f64),
}

impl Number {
    fn of(v: ValueRef<'_>) -> Option<Number> {
        Some(match v {
            ValueRef::Int(v) => Number::Exact(Decimal::from(v)),
            ValueRef::UInt(v) => Number::Exact(Decimal::from(v)),
            ValueRef::Decimal(v) => Number::Exact(v),
            ValueRef::Float(v) => Number::Double(f64::from(v)),
            ValueRef::Double(v) => Number::Double(v),
            _ => return None,
        })
    }

    fn cmp(&self, other: &Number) -> Ordering {
        match (self, other) {
            (Number::Exact(a), Number::Exact(b)) => a.cmp(b),
            // No SQL double is NaN; should one be here it equals everything.
            (Number::Double(a), Number::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Number::Exact(a), Number::Double(b)) => exact_to_double(a, *b),
            (Number::Double(a), Number::Exact(b)) => exact_to_double(b, *a).reverse(),
        }
    }
}

/// The order of an exact number and a double, by their true values.
fn exact_to_double(a: &Decimal, b: f64) -> Ordering {
    // Rounding to a double keeps the order, so only equal doubles need a closer look.
    match a.to_f64().partial_cmp(&b) {
        Some(Ordering::Equal) => {}
        Some(order) => return order,
        None => return Ordering::Equal,
    }
    let whole = b.trunc();
    let Some(whole_exact) = whole_decimal(whole) else {
        return Ordering::Equal;
    };
    let by_whole = a.truncate(0).cmp(&whole_exact);
    by_whole.then_with(|| fraction_order(a, b - whole))
}

/// A double without fraction as a DECIMAL; `None` past its digits.
fn whole_decimal(v: f64) -> Option<Decimal> {
    let bits = v.abs().to_bits();
    let exponent = (bits >> 52) as i32 - 1075;
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    if v == 0.0 {
        return Some(Decimal::ZERO);
    }
    let magnitude = match exponent {
        0..=187 => ethnum::U256::from(mantissa) << exponent as u32,
        -52..0 => ethnum::U256::from(mantissa >> -exponent),
        _ => return None,
    };
    Decimal::from_parts(v < 0.0, magnitude, 0)
}

/// The order of the fraction of `a` and the fraction `b`, |b| < 1, digit by digit: a double's
/// fraction has at most 1,074 digits.
fn fraction_order(a: &Decimal, b: f64) -> Ordering {
    let Some(rest) = a.sub(&a.truncate(0)) else {
        return Ordering::Equal;
    };
    let negative = rest.is_negative() || b < 0.0;
    let mut exact = String::new();
    if rest.scale() > 0 {
        exact.push_str(rest.abs().to_string().trim_start_matches("0."));
    }
    let double = format!("{:.1074}", b.abs());
    let double = double.trim_start_matches("0.").trim_end_matches('0');
    let order = exact.trim_end_matches('0').cmp(double);
    if negative { order.reverse() } else { order }
}

/// Feeds a hasher so that values which [`compare`] as equal hash alike.
pub fn hash<H: Hasher>(v: ValueRef<'_>, collation: &Collation, state: &mut H) {
    state.write_u8(rank(v));
    match v {
        ValueRef::Null => {}
        ValueRef::Int(v) => hash_integer(i128::from(v), state),
        ValueRef::UInt(v) => hash_integer(i128::from(v), state),
        ValueRef::Decimal(v) => hash_decimal(&v, state),
        ValueRef::Float(v) => hash_double(f64::from(v), state),
        ValueRef::Double(v) => hash_double(v, state),
        ValueRef::Bytes(v) => collation.hash(v, state),
        ValueRef::Date(v) => state.write_u64(v.at_midnight().packed()),
        ValueRef::DateTime(v) => state.write_u64(v.packed()),
        ValueRef::Timestamp(v) => state.write_i64(v.micros()),
        ValueRef::Time(v) => state.write_i64(v.micros()),
    }
}

/// Every number hashes by its double, which equal numbers share.
fn hash_double<H: Hasher>(v: f64, state: &mut H) {
    state.write_u64((v + 0.0).to_bits());
}

fn hash_integer<H: Hasher>(v: i128, state: &mut H) {
    hash_double(v as f64, state);
}

fn hash_decimal<H: Hasher>(v: &Decimal, state: &mut H) {
    hash_double(v.to_f64(), state);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CollationId, Date, DateTime, Time, Value};
    use proptest::prelude::*;
    use std::hash::DefaultHasher;

    fn ci() -> &'static Collation {
        CollationId::UTF8MB4_0900_AI_CI.known()
    }

    fn order(a: &Value, b: &Value) -> Ordering {
        compare(a.as_ref(), b.as_ref(), ci())
    }

    fn hash_of(v: &Value) -> u64 {
        let mut state = DefaultHasher::new();
        hash(v.as_ref(), ci(), &mut state);
        state.finish()
    }

    fn decimal(s: &str) -> Value {
        Value::Decimal(Decimal::parse(s).expect("a decimal"))
    }

    #[test]
    fn numbers_of_all_kinds_have_one_order() {
        // The groups ascend; the members of a group are equal.
        let groups = [
            vec![Value::Null],
            vec![Value::Double(-1e300)],
            vec![
                Value::Int(i64::MIN),
                decimal("-9223372036854775808.0"),
                Value::Double(-9_223_372_036_854_775_808.0),
            ],
            vec![decimal("-0.5"), Value::Double(-0.5), Value::Float(-0.5)],
            vec![
                Value::Int(0),
                Value::UInt(0),
                decimal("0.00"),
                Value::Double(-0.0),
            ],
            vec![decimal("0.1")],
            // The double 0.1 is a little more than a tenth.
            vec![Value::Double(0.1)],
            vec![
                Value::Int(9_007_199_254_740_992),
                Value::Double(9_007_199_254_740_992.0),
            ],
            vec![Value::Int(9_007_199_254_740_993)],
            vec![Value::Int(i64::MAX)],
            vec![
                Value::UInt(1 << 63),
                Value::Double(9_223_372_036_854_775_808.0),
            ],
            vec![Value::UInt(u64::MAX), decimal("18446744073709551615")],
            vec![Value::Double(1e300)],
        ];
        for (i, a) in groups.iter().enumerate() {
            for (j, b) in groups.iter().enumerate() {
                for (x, y) in a.iter().flat_map(|x| b.iter().map(move |y| (x, y))) {
                    assert_eq!(order(x, y), i.cmp(&j), "{x:?} {y:?}");
                    assert!(i != j || hash_of(x) == hash_of(y), "{x:?} {y:?}");
                }
            }
        }
    }

    #[test]
    fn strings_and_dates() {
        assert_eq!(
            order(&Value::from("äB"), &Value::from("Ab")),
            Ordering::Equal
        );
        assert_eq!(hash_of(&Value::from("äB")), hash_of(&Value::from("Ab")));
        let date = Date::new(2024, 2, 29);
        assert_eq!(
            order(&Value::Date(date), &Value::DateTime(date.at_midnight())),
            Ordering::Equal
        );
        assert_eq!(
            hash_of(&Value::Date(date)),
            hash_of(&Value::DateTime(date.at_midnight()))
        );
        assert_eq!(
            order(
                &Value::DateTime(DateTime::new(date, 1, 0, 0, 0, 0)),
                &Value::Date(date)
            ),
            Ordering::Greater
        );
        assert_eq!(
            order(
                &Value::Time(Time::from_micros(-1, 6)),
                &Value::Time(Time::from_micros(0, 0))
            ),
            Ordering::Less
        );
        assert_eq!(order(&Value::from("1"), &Value::Int(1)), Ordering::Greater);
    }

    fn number() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::Int),
            (-20i64..20).prop_map(Value::Int),
            any::<u64>().prop_map(Value::UInt),
            (-20i64..20, 0u8..4).prop_map(|(m, s)| {
                Value::Decimal(
                    Decimal::from_parts(m < 0, m.unsigned_abs().into(), s).expect("fits"),
                )
            }),
            (-80i64..80).prop_map(|v| Value::Double(v as f64 / 8.0)),
            any::<i64>().prop_map(|v| Value::Double(v as f64)),
            Just(Value::Null),
        ]
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in number(), b in number(), c in number()) {
            prop_assert_eq!(order(&a, &a), Ordering::Equal);
            prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
            if order(&a, &b) == order(&b, &c) {
                prop_assert_eq!(order(&a, &c), order(&a, &b));
            }
            if order(&a, &b) == Ordering::Equal {
                prop_assert_eq!(order(&a, &c), order(&b, &c));
                prop_assert_eq!(hash_of(&a), hash_of(&b));
            }
        }
    }
}
