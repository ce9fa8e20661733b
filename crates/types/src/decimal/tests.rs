use super::*;

fn d(s: &str) -> Decimal {
    Decimal::parse(s).expect("a decimal")
}

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
        "12345678901234567890123456789012345.678901234567890123456789012345",
    ] {
        assert_eq!(d(s).to_string(), s);
    }
}
