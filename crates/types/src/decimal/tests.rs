//! Expected answers of literals and arithmetic are those of a MySQL 9.7.

use super::*;
use ethnum::I256;
use proptest::prelude::*;

fn d(s: &str) -> Decimal {
    Decimal::parse(s).unwrap_or_else(|| panic!("{s} is no decimal"))
}

const NINES: &str = "99999999999999999999999999999999999999999999999999999999999999999";

#[test]
fn text_round_trips() {
    for s in [
        "0",
        "0.00",
        "-1",
        "1.50",
        "0.001",
        "-0.000000000000000000000000000001",
        "18446744073709551616",
        NINES,
        "12345678901234567890123456789012345.678901234567890123456789012345",
        "0.00000000000000000000000000000001",
        "1.23456789012345678901234567890123456",
        "10000000000000000000",
        "100000000000000000000000000000000000000",
        "10000000000000000001.5",
    ] {
        assert_eq!(d(s).to_string(), s);
    }
    assert_eq!(d("-0.0").to_string(), "0.0");
    assert_eq!(d("1e3").to_string(), "1000");
    assert_eq!(d("1e-3").to_string(), "0.001");
    assert_eq!(d("12.5e1").to_string(), "125");
    assert_eq!(d("007.10").to_string(), "7.10");
    assert_eq!(d(".5").to_string(), "0.5");
    assert_eq!(d("5.").to_string(), "5");
}

#[test]
fn prefixes_and_limits() {
    let p = Decimal::parse_prefix(b" 12.5abc");
    assert_eq!((p.value, p.used), (d("12.5"), 5));
    assert_eq!(Decimal::parse_prefix(b"abc").used, 0);
    assert_eq!(Decimal::parse_prefix(b"-").used, 0);
    assert_eq!(Decimal::parse_prefix(b"1e").used, 1);
    let p = Decimal::parse_prefix(b"1e65");
    assert!(p.overflow && p.value == d(NINES));
    assert!(!Decimal::parse_prefix(b"1e64").overflow);
    let p = Decimal::parse_prefix(b"1e-80");
    assert!(p.truncated && p.value.is_zero());
    let p = Decimal::parse_prefix(
        b"0.000000000000000000000000000000000000000000000000000000000000000000000005",
    );
    assert_eq!((p.truncated, p.value.to_string().len()), (true, 73));
    assert!(Decimal::parse_prefix(b"1e999999999999").overflow);
}

#[test]
fn sums_and_products() {
    let add = |a: &str, b: &str| d(a).add(&d(b)).map(|v| v.to_string());
    assert_eq!(
        add(NINES, "1").as_deref(),
        Some("100000000000000000000000000000000000000000000000000000000000000000")
    );
    assert_eq!(add(NINES, "0.5").as_deref(), Some(&*format!("{NINES}.5")));
    assert_eq!(add("1.5", "-2.25").as_deref(), Some("-0.75"));
    assert_eq!(add("0.4", "-0.4").as_deref(), Some("0.0"));
    let mul = |a: &str, b: &str| d(a).mul(&d(b)).map(|v| v.to_string());
    let c = "0.123456789012345678901234567890";
    assert_eq!(
        mul(c, c).as_deref(),
        Some("0.015241578753238836750495351563")
    );
    assert_eq!(
        mul("0.000000000000000000000000000001", "0.5").as_deref(),
        Some("0.000000000000000000000000000001")
    );
    assert_eq!(
        mul("0.000000000000000000000000000003", "0.5").as_deref(),
        Some("0.000000000000000000000000000002")
    );
    assert_eq!(mul(NINES, NINES), None);
    assert_eq!(mul(NINES, "10").as_deref(), Some(&*format!("{NINES}0")));
    assert_eq!(
        mul(NINES, "0.1").as_deref(),
        Some("9999999999999999999999999999999999999999999999999999999999999999.9")
    );
    // MySQL cuts the operands here to fit its nine words; this is exact.
    assert_eq!(
        mul(
            "999999999999999999999999999999999999999.5",
            "9999999999999999999999999.5"
        )
        .as_deref(),
        Some("9999999999999999999999999499999999999995000000000000000000000000.25")
    );
}

#[test]
fn quotients_and_remainders() {
    let cases = [
        ("2", "3", "0.6667"),
        ("1", "3", "0.3333"),
        ("0.1", "3", "0.03333"),
        ("1.000", "3.0", "0.3333333"),
        (
            "1",
            "0.000000000000000000000000000003",
            "333333333333333333333333333333.3333",
        ),
        ("2.00000", "3", "0.666666666"),
        ("2.0000", "3", "0.66666667"),
        ("2.000000", "3", "0.6666666667"),
        ("0.00002", "0.00003", "0.666666667"),
        ("2.00001", "3.00000000000001", "0.666670000"),
        ("2", "3.00000", "0.6667"),
        ("20000.000000000000000", "3", "6666.6666666666666666667"),
        (
            "2.00000000000000000000000000",
            "3",
            "0.666666666666666666666666666667",
        ),
        (
            "2.0000000000000000000000000000",
            "3",
            "0.666666666666666666666666666667",
        ),
        ("1", "1000000000000", "0.0000"),
        ("5", "10000000000.0", "0.0000"),
        ("-1", "8", "-0.1250"),
        (
            NINES,
            "7",
            "14285714285714285714285714285714285714285714285714285714285714285.5714",
        ),
    ];
    for (a, b, want) in cases {
        let got = d(a)
            .div(&d(b), DIV_PRECISION_INCREMENT)
            .flatten()
            .map(|v| v.to_string());
        assert_eq!(got.as_deref(), Some(want), "{a}/{b}");
    }
    assert_eq!(d("1").div(&Decimal::ZERO, 4), None);
    let rem = |a: &str, b: &str| d(a).rem(&d(b)).map(|v| v.to_string());
    assert_eq!(rem("5.5", "2").as_deref(), Some("1.5"));
    assert_eq!(rem("-7.0", "3").as_deref(), Some("-1.0"));
    assert_eq!(rem("7.5", "-2.25").as_deref(), Some("0.75"));
    assert_eq!(
        rem("12345678901234567890123456789", "7.1").as_deref(),
        Some("0.9")
    );
    assert_eq!(rem("-1.55", "0.1").as_deref(), Some("-0.05"));
    assert_eq!(rem("10.5", "0"), None);
    let int_div = |a: &str, b: &str| d(a).int_div(&d(b)).flatten().map(|v| v.to_string());
    assert_eq!(int_div("5", "2.5").as_deref(), Some("2"));
    assert_eq!(int_div("7.9", "-2").as_deref(), Some("-3"));
    assert_eq!(
        int_div("9999999999999999999", "0.1").as_deref(),
        Some("99999999999999999990")
    );
}

#[test]
fn rounding() {
    let round = |s: &str, n| d(s).round(n).map(|v| v.to_string());
    assert_eq!(round("-0.4", 0).as_deref(), Some("0"));
    assert_eq!(round("2.5", 0).as_deref(), Some("3"));
    assert_eq!(round("-2.5", 0).as_deref(), Some("-3"));
    assert_eq!(round("1234.5", -2).as_deref(), Some("1200"));
    assert_eq!(round("1.5", -70).as_deref(), Some("0"));
    assert_eq!(round("1.5", i32::MIN).as_deref(), Some("0"));
    assert_eq!(round("1.5", i32::MAX).as_deref(), Some("1.5"));
    assert_eq!(round("950", -3).as_deref(), Some("1000"));
    assert_eq!(d("-1.999").truncate(1).to_string(), "-1.9");
    assert_eq!(d("1.01").ceil(), Some(d("2")));
    assert_eq!(d("-1.01").ceil(), Some(d("-1")));
    assert_eq!(d("-1.01").floor(), Some(d("-2")));
    assert_eq!(Decimal::max_of(5, 2, true).to_string(), "-999.99");
    assert_eq!(
        d("1.5").rescale(3).map(|v| v.to_string()).as_deref(),
        Some("1.500")
    );
}

#[test]
fn equal_numbers_hash_alike() {
    use std::collections::HashSet;
    let set: HashSet<Decimal> = ["1.0", "1.00", "1", "1e0", "0.5", "0.50"]
        .into_iter()
        .map(d)
        .collect();
    assert_eq!(set.len(), 2);
}

#[test]
fn integers_and_doubles() {
    assert_eq!(d("2.5").to_i64(), Some(3));
    assert_eq!(d("-9223372036854775808").to_i64(), Some(i64::MIN));
    assert_eq!(d("9223372036854775808").to_i64(), None);
    assert_eq!(d("18446744073709551615").to_u64(), Some(u64::MAX));
    assert_eq!(d("-1").to_u64(), None);
    assert_eq!(d("0.1").to_f64(), 0.1);
    assert_eq!(
        d("123456789012345678901234567890.5").to_f64(),
        123456789012345678901234567890.5
    );
    assert_eq!(Decimal::from_f64(0.1), Some(d("0.1")));
    assert_eq!(
        Decimal::from_f64(-1.5e20),
        Some(d("-150000000000000000000"))
    );
    assert_eq!(Decimal::from_f64(1e70), None);
    assert_eq!(Decimal::from_f64(f64::NAN), None);
}

#[test]
fn widths_hold_their_precision() {
    for p in 1..=65u8 {
        let w = crate::sql_type::decimal_width(p);
        let max = Decimal::max_of(p, 0, false);
        let mut out = Vec::new();
        assert!(
            max.write_sortable(0, w, &mut out).is_some(),
            "precision {p} in {w} bytes"
        );
        assert_eq!(Decimal::read_sortable(&out, 0), Some(max));
        assert!(
            w == 1 || max.write_sortable(0, w - 1, &mut out).is_none() || p < 3,
            "precision {p} wastes a byte"
        );
    }
}

fn decimal() -> impl Strategy<Value = (i128, u8)> {
    (
        prop_oneof![
            any::<i128>().prop_map(|v| v >> 40),
            -1000i128..1000,
            any::<i64>().prop_map(i128::from)
        ],
        0u8..20,
    )
}

fn make((m, scale): (i128, u8)) -> Decimal {
    Decimal::from_parts(m < 0, U256::from(m.unsigned_abs()), scale).expect("fits")
}

/// The naive model: both numbers as integers at scale 20.
fn at20((m, scale): (i128, u8)) -> I256 {
    I256::from(m) * I256::from(10).pow(20 - u32::from(scale))
}

proptest! {
    #[test]
    fn arithmetic_agrees_with_integers(a in decimal(), b in decimal()) {
        let (x, y) = (make(a), make(b));
        prop_assert_eq!(x.cmp(&y), at20(a).cmp(&at20(b)));
        let unscaled = |v: Decimal| {
            let v = v.rescale(20).expect("fits");
            let m = I256::try_from(v.magnitude()).expect("fits");
            if v.is_negative() { -m } else { m }
        };
        prop_assert_eq!(unscaled(x.add(&y).expect("fits")), at20(a) + at20(b));
        prop_assert_eq!(unscaled(x.sub(&y).expect("fits")), at20(a) - at20(b));
        if b.0 != 0 {
            prop_assert_eq!(unscaled(x.rem(&y).expect("not by zero")), at20(a) % at20(b));
            prop_assert_eq!(unscaled(x.int_div(&y).expect("not by zero").expect("fits")), at20(a) / at20(b) * I256::from(10).pow(20));
        }
        prop_assert_eq!(Decimal::parse(&x.to_string()), Some(x));
        prop_assert_eq!(x.neg().neg(), x);
        prop_assert_eq!(x.without_trailing_zeros(), x);
    }

    #[test]
    fn products_round_at_thirty(a in any::<i64>(), b in any::<i64>(), s1 in 0u8..30, s2 in 0u8..30) {
        let (x, y) = (make((i128::from(a), s1)), make((i128::from(b), s2)));
        let p = x.mul(&y).expect("fits");
        prop_assert_eq!(p.scale(), (s1 + s2).min(30));
        let exact = I256::from(a) * I256::from(b);
        let cut = I256::from(10).pow(u32::from((s1 + s2).saturating_sub(30)));
        let m = I256::try_from(p.magnitude()).expect("fits") * if p.is_negative() { I256::from(-1) } else { I256::from(1) };
        // |2 * (m * cut - exact)| <= cut, and a half goes away from zero.
        let twice = (m * cut - exact) * I256::from(2);
        prop_assert!(twice.abs() <= cut);
        prop_assert!(twice.abs() < cut || m.abs() * cut > exact.abs());
    }

    #[test]
    fn wide_products_and_quotients(a in any::<[u64; 3]>(), b in any::<[u64; 3]>()) {
        let make = |v: [u64; 3]| U256::from_words(u128::from(v[2]), u128::from(v[1]) << 64 | u128::from(v[0]));
        let (x, y) = (make(a), make(b));
        let product = wide::mul(x, y);
        if y != U256::ZERO {
            prop_assert_eq!(wide::div_rem(&product, y), Some((x, U256::ZERO)));
        }
    }

    #[test]
    fn sortable_bytes_round_trip(a in decimal()) {
        let x = make(a);
        let mut out = Vec::new();
        prop_assert!(x.write_sortable(20, 32, &mut out).is_some());
        prop_assert_eq!(Decimal::read_sortable(&out, 20), Some(x));
    }
}

#[test]
fn floor_unscaled_rounds_towards_negative_infinity() {
    let floor = |text: &str, scale| {
        Decimal::parse(text)
            .expect("a decimal")
            .floor_unscaled(scale)
    };
    assert_eq!(floor("1.25", 2), Some((125, true)));
    assert_eq!(floor("1.25", 4), Some((12_500, true)));
    assert_eq!(floor("1.25", 1), Some((12, false)));
    assert_eq!(floor("-1.25", 1), Some((-13, false)));
    assert_eq!(floor("-1.20", 1), Some((-12, true)));
    assert_eq!(floor("0", 30), Some((0, true)));
    assert_eq!(floor(&"9".repeat(60), 0), None);
}
