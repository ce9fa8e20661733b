//! Numbers of JSON text: an integer where it fits 64 bits, otherwise the nearest double.

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Int(i64),
    UInt(u64),
    Double(f64),
}

/// Why a text is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberError {
    Invalid,
    TooBig,
    NoFraction,
    NoExponent,
}

struct Digits<'a> {
    text: &'a [u8],
    at: usize,
}

impl Digits<'_> {
    fn take(&mut self, wanted: &[u8]) -> bool {
        let found = self.text.get(self.at).is_some_and(|b| wanted.contains(b));
        self.at += usize::from(found);
        found
    }

    /// Takes digits; returns how many.
    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at - start
    }
}

/// Reads a number at the start of `text`; returns it with its length, or the error with its place.
pub(super) fn parse(text: &[u8]) -> Result<(Number, usize), (NumberError, usize)> {
    let mut s = Digits { text, at: 0 };
    let minus = s.take(b"-");
    // Nothing follows a zero but a point or an exponent.
    if !s.take(b"0") && s.digits() == 0 {
        return Err((NumberError::Invalid, s.at));
    }
    let whole = s.at;
    let mut fraction = 0;
    if s.take(b".") {
        fraction = s.digits();
        if fraction == 0 {
            return Err((NumberError::NoFraction, s.at));
        }
    }
    let mut huge = false;
    if s.take(b"eE") {
        let negative = !s.take(b"+") && s.take(b"-");
        let start = s.at;
        if s.digits() == 0 {
            return Err((NumberError::NoExponent, s.at));
        }
        // RapidJSON refuses such an exponent with any digits before it, even `0e999`.
        let exponent = shown(&text[start..s.at]).parse::<u64>();
        huge = !negative && !exponent.is_ok_and(|e| e <= 308 + fraction as u64);
    }
    let number = shown(&text[..s.at]);
    if s.at == whole
        && let Some(integer) = integer(number, minus)
    {
        return Ok((integer, s.at));
    }
    match number.parse::<f64>() {
        Ok(v) if v.is_finite() && !huge => Ok((Number::Double(v), s.at)),
        _ => Err((NumberError::TooBig, 0)),
    }
}

fn shown(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or("")
}

/// As RapidJSON has it, unsigned is what needs more than 32 bits and is not negative.
fn integer(text: &str, minus: bool) -> Option<Number> {
    if minus {
        return text.parse().ok().map(Number::Int);
    }
    let value: u64 = text.parse().ok()?;
    Some(match u32::try_from(value) {
        Ok(small) => Number::Int(i64::from(small)),
        Err(_) => Number::UInt(value),
    })
}
