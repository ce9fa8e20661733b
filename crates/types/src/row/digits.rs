//! Numbers, dates and times of rows, written in place: eight digits at a time are made in one word,
//! without a loop or a table.
//!
//! Source: Paul Khuong, "How to print integers really fast" (2017).

use crate::append_cursor::Tail;
use crate::temporal::{Date, DateTime};

const ZEROS: u64 = 0x3030_3030_3030_3030;
/// 10^8: one more than the largest number that a word of eight digits holds.
const WORD: u64 = 100_000_000;

/// The eight digits of four numbers below 100, the first one in the lowest 16 bits; digit values,
/// the first digit in the lowest byte.
#[inline(always)]
fn digits_of_pairs(pairs: u64) -> u64 {
    let tens = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    tens + ((pairs - 10 * tens) << 8)
}

/// The eight digits of a number below 10^8, as above.
#[inline(always)]
fn eight(v: u64) -> u64 {
    let v = v as u32;
    let halves = u64::from(v / 10_000) | u64::from(v % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007F_0000_007F;
    digits_of_pairs(hundreds | (halves - 100 * hundreds) << 16)
}

/// Length, sign and digits.
#[inline(always)]
pub(super) fn number_text<const P: bool>(v: u64, negative: bool, tail: &mut Tail<'_, P>) {
    if v < 10 && !negative {
        return tail.put([1, b'0' + v as u8], 2);
    }
    if v < WORD {
        return leading(v, negative, 0, tail);
    }
    if v < WORD * WORD {
        leading(v / WORD, negative, 8, tail);
    } else {
        leading(v / (WORD * WORD), negative, 16, tail);
        tail.put((eight(v / WORD % WORD) | ZEROS).to_le_bytes(), 8);
    }
    tail.put((eight(v % WORD) | ZEROS).to_le_bytes(), 8);
}

/// The length of the whole, the sign if there is one, and the digits of the first word without
/// leading zeros; `rest` more digits follow.
#[inline(always)]
fn leading<const P: bool>(v: u64, negative: bool, rest: usize, tail: &mut Tail<'_, P>) {
    let digits = eight(v);
    // Nothing is left of a zero but its last digit.
    let zeros = (digits | 1 << 56).trailing_zeros() & 56;
    let len = 8 - zeros as usize / 8;
    let shown = (digits | ZEROS) >> zeros;
    let head = (usize::from(negative) + len + rest) as u8;
    tail.headed_number(head, negative, shown.to_le_bytes(), len);
}

/// The two digits of numbers below 100; nothing useful above.
const PAIRS: [[u8; 2]; 128] = {
    let mut pairs = [[b'0'; 2]; 128];
    let mut v = 0;
    while v < 100 {
        pairs[v] = [b'0' + (v / 10) as u8, b'0' + (v % 10) as u8];
        v += 1;
    }
    pairs
};

/// Writes the two digits of a number below 100 at `at`.
#[inline(always)]
fn pair<const N: usize>(v: u32, at: usize, out: &mut [u8; N]) {
    out[at..at + 2].copy_from_slice(&PAIRS[v as usize % PAIRS.len()]);
}

/// Writes year, month and day into `yyyy-mm-dd`, which begins at `out[1]`.
#[inline(always)]
fn date_digits<const N: usize>(v: Date, out: &mut [u8; N]) {
    let year = v.year();
    pair(year / 100, 1, out);
    pair(year % 100, 3, out);
    pair(v.month(), 6, out);
    pair(v.day(), 9, out);
}

#[inline(always)]
pub(super) fn date_text<const P: bool>(v: Date, tail: &mut Tail<'_, P>) {
    tail.put_with(*b"\x0Ayyyy-mm-dd.....", 11, |out| date_digits(v, out));
}

/// DATETIME without a fraction.
#[inline(always)]
pub(super) fn seconds_text<const P: bool>(v: DateTime, tail: &mut Tail<'_, P>) {
    tail.put_with(*b"\x13yyyy-mm-dd hh:mm:ss....", 20, |out| {
        date_digits(v.date(), out);
        pair(v.hour(), 12, out);
        pair(v.minute(), 15, out);
        pair(v.second(), 18, out);
    });
}

/// A date in a binary row.
#[inline(always)]
pub(super) fn date_binary<const P: bool>(v: Date, tail: &mut Tail<'_, P>) {
    let [low, high] = (v.year() as u16).to_le_bytes();
    let len = if v == Date::ZERO { 0 } else { 4 };
    tail.put(
        [len, low, high, v.month() as u8, v.day() as u8],
        1 + usize::from(len),
    );
}

/// A DATETIME without a fraction in a binary row.
#[inline(always)]
pub(super) fn seconds_binary<const P: bool>(v: DateTime, tail: &mut Tail<'_, P>) {
    let date = v.date();
    let [low, high] = (date.year() as u16).to_le_bytes();
    let (month, day) = (date.month() as u8, date.day() as u8);
    let (hour, minute, second) = (v.hour() as u8, v.minute() as u8, v.second() as u8);
    if hour | minute | second == 0 {
        return date_binary(date, tail);
    }
    tail.put([7, low, high, month, day, hour, minute, second], 8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Tail<'_, false>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut Tail::new(&mut out, 0));
        out
    }

    /// Checks the length byte of a written number, and returns its digits.
    fn text(write: impl FnOnce(&mut Tail<'_, false>)) -> String {
        let out = written(write);
        assert_eq!(usize::from(out[0]), out.len() - 1);
        String::from_utf8(out[1..].to_vec()).expect("digits")
    }

    #[test]
    fn numbers_of_all_lengths() {
        let near = |v: u64| [v.saturating_sub(1), v, v.saturating_add(1)];
        let powers = (0..20).flat_map(|power| near(10u64.pow(power)));
        let others = [u64::MAX, 1 << 63, 12_345_678, 87_654_321_123_456_789];
        for v in powers.chain(others).chain(0..20_000) {
            assert_eq!(text(|t| number_text(v, false, t)), v.to_string());
            assert_eq!(text(|t| number_text(v, true, t)), format!("-{v}"));
        }
    }

    #[test]
    fn every_number_of_a_word() {
        for v in (0..WORD).step_by(9_973).chain(WORD - 10_000..WORD) {
            assert_eq!(text(|t| number_text(v, false, t)), v.to_string());
        }
    }

    #[test]
    fn dates_and_times() {
        for year in [0, 1, 99, 100, 1999, 2014, 9999] {
            for (month, day) in [(0, 0), (1, 1), (12, 31), (5, 6)] {
                let date = Date::new(year, month, day);
                let shown = format!("{year:04}-{month:02}-{day:02}");
                assert_eq!(text(|t| date_text(date, t)), shown);
                for (h, m, s) in [(0, 0, 0), (23, 59, 59), (7, 8, 9)] {
                    let time = DateTime::new(date, h, m, s, 0, 0);
                    let shown = format!("{shown} {h:02}:{m:02}:{s:02}");
                    assert_eq!(text(|t| seconds_text(time, t)), shown);
                    let mut expected = Vec::new();
                    crate::wire::binary_datetime(time, &mut expected);
                    assert_eq!(written(|t| seconds_binary(time, t)), expected);
                }
                let mut expected = Vec::new();
                crate::wire::binary_date(date, &mut expected);
                assert_eq!(written(|t| date_binary(date, t)), expected);
            }
        }
    }
}
