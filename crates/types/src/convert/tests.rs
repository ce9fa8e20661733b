//! Expected answers are those of a MySQL 9.7.

use super::number::*;

fn double(v: f64) -> String {
    let mut out = Vec::new();
    write_double(v, &mut out);
    String::from_utf8(out).expect("ASCII")
}

fn float(v: f32) -> String {
    let mut out = Vec::new();
    write_float(v, &mut out);
    String::from_utf8(out).expect("ASCII")
}

#[test]
fn doubles_read_as_the_server_prints_them() {
    let cases = [
        (1e15, "1e15"),
        (1e14, "100000000000000"),
        (123456789012345e0, "123456789012345"),
        (1234567890123456e0, "1.234567890123456e15"),
        (1e-14, "0.00000000000001"),
        (1e-15, "0.000000000000001"),
        (1e-16, "1e-16"),
        (1.5e-20, "1.5e-20"),
        (-1.5e300, "-1.5e300"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e22, "1e22"),
        (f64::MAX, "1.7976931348623157e308"),
        (5e-324, "5e-324"),
        (-0.0, "-0"),
        (0.0, "0"),
        (100.0, "100"),
        (1.0 / 3.0, "0.3333333333333333"),
        (123456.789, "123456.789"),
        (0.5, "0.5"),
        (10.25, "10.25"),
    ];
    for (v, text) in cases {
        assert_eq!(double(v), text);
    }
}

#[test]
fn floats_have_six_digits() {
    let cases = [
        (3.141_591_7, "3.14159"),
        (1e10, "10000000000"),
        (16_777_216.0, "16777200"),
        (123_456.7, "123457"),
        (0.1, "0.1"),
        (1e38, "1e38"),
        (1e-10, "0.0000000001"),
        (999_999.5, "1000000"),
        (-2.5, "-2.5"),
    ];
    for (v, text) in cases {
        assert_eq!(float(v), text);
    }
}

#[test]
fn texts_in_numeric_context() {
    // (text, value, "Truncated incorrect DOUBLE value")
    let cases = [
        ("12abc", 12.0, true),
        ("  12 ", 12.0, false),
        ("1e5", 1e5, false),
        (".5", 0.5, false),
        ("5.", 5.0, false),
        ("-", 0.0, true),
        ("1e", 1.0, true),
        ("1e400", f64::MAX, true),
        ("0x1F", 0.0, true),
        ("inf", 0.0, true),
        ("-1.5e+2x", -150.0, true),
        (".", 0.0, true),
        ("", 0.0, true),
        ("+7\t\n", 7.0, false),
    ];
    for (text, value, truncated) in cases {
        let p = parse_double(text.as_bytes());
        assert_eq!((p.value, p.truncated), (value, truncated), "{text:?}");
    }
}

#[test]
fn texts_cast_to_integers() {
    let cases = [
        ("12.9", 12, true),
        ("1e3", 1, true),
        ("-5", -5, false),
        (" 7 ", 7, false),
        ("abc", 0, true),
        ("", 0, true),
    ];
    for (text, value, truncated) in cases {
        let p = parse_integer(text.as_bytes());
        assert_eq!(
            (p.value, p.truncated, p.overflow),
            (value, truncated, false),
            "{text:?}"
        );
    }
    let p = parse_integer(b"99999999999999999999");
    assert_eq!((p.value, p.overflow), (i128::from(u64::MAX), true));
    let p = parse_integer(b"-99999999999999999999");
    assert_eq!((p.value, p.overflow), (i128::from(i64::MIN), true));
}

#[test]
fn texts_stored_as_integers_are_rounded() {
    let cases = [
        ("2.5", 3, false),
        ("-2.5", -3, false),
        ("1e2", 100, false),
        ("2.49x", 2, true),
        ("x", 0, true),
        ("1.5e1", 15, false),
        ("0.4999", 0, false),
        ("18446744073709551615", i128::from(u64::MAX), false),
    ];
    for (text, value, truncated) in cases {
        let p = parse_rounded_integer(text.as_bytes());
        assert_eq!(
            (p.value, p.truncated, p.overflow),
            (value, truncated, false),
            "{text:?}"
        );
    }
    assert!(parse_rounded_integer(b"1e30").overflow);
    assert_eq!(parse_rounded_integer(b"-1e70").value, i128::from(i64::MIN));
}

#[test]
fn doubles_round_to_even() {
    assert_eq!(double_to_integer(2.5), Some(2));
    assert_eq!(double_to_integer(3.5), Some(4));
    assert_eq!(double_to_integer(-2.5), Some(-2));
    assert_eq!(double_to_integer(1e20), None);
    assert_eq!(double_to_integer(f64::NAN), None);
    assert_eq!(
        double_to_integer(-9_223_372_036_854_775_808.0),
        Some(i128::from(i64::MIN))
    );
}
