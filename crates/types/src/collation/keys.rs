//! Sort keys: bytes whose `memcmp` order is the collation's order. Indexes on disk hold them, so
//! they never change.
//!
//! # Picture
//!
//! ```text
//! NO PAD bytes (binary, utf8mb4_0900_bin)   the string itself
//! utf8mb4_0900_ai_ci                        code*
//! utf8mb4_0900_as_ci                        code* 00 rank*
//! utf8mb4_0900_as_cs                        code* 00 rank* 00 tertiary*
//! PAD SPACE                                 (code | run of spaces)* END
//!
//! code, UCA       one byte for the weight of an ASCII character; lead byte and low byte for the other weights of
//!                 letters and signs; lead byte and two bytes for a Han ideograph; up to five for the rest
//! code, general   the weight as if it were a code point in UTF-8, moved by 2 above the space
//! code, bytes     the weight, moved by 2 above the space; FF FD, FF FE, FF FF for the three that have no room
//! run of spaces   LOW n   before something smaller than a space: more spaces are greater
//!                 HIGH n  before something greater: more spaces are smaller (n counts downwards)
//! ```
//!
//! The codes of LOW, END and HIGH follow each other where the space's own code would be, so the
//! string that ends sorts
//! among its continuations as if spaces followed, and trailing spaces leave no trace.
//!
//! # Invariants
//!
//! - I1: no UCA code starts with 00, so the end of a level sorts first.
//! - I2: a weight FB00..FBFF is followed by the second half of the same pair, which is stored as it
//!   is.
//! - I3: strings with the same primary weights have as many secondary weights 0x20 (its rank is the
//!   lowest), and strings
//!   with the same secondary weights as many tertiary weights. So ranks and tertiary weights of
//!   plain small letters may be
//!   left out at the end of their level without a change of order.

use crate::charset::UTF8MB4;

use super::weights::{SECONDARY_COMMON, TERTIARY_COMMON, Uca, Weigher};

/// The maximum length of the key bytes of one character: under UCA 4.0, under UCA 5.2, and at one,
/// two and three levels of UCA 9.0. (A test checks all characters.)
pub(super) const MAX_0400: usize = 16;
pub(super) const MAX_0520: usize = 16;
pub(super) const MAX_0900: [usize; 3] = [15, 23, 31];

/// The destination of a key's bytes: a key, or a hash.
pub(super) trait Sink {
    fn push(&mut self, byte: u8);
    fn push_all(&mut self, bytes: &[u8]);
    /// Announces how many bytes follow.
    fn expect_more(&mut self, bytes: usize);
    /// Adds the codes of ASCII characters that are not 0.
    #[inline]
    fn push_mapped(&mut self, ascii: &[u8], codes: &[u8; 128]) {
        for &x in ascii {
            let code = codes[usize::from(x & 0x7F)];
            if code != 0 {
                self.push(code);
            }
        }
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn push(&mut self, byte: u8) {
        Vec::push(self, byte);
    }
    #[inline]
    fn push_all(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
    #[inline]
    fn expect_more(&mut self, bytes: usize) {
        self.reserve(bytes);
    }
    #[inline]
    fn push_mapped(&mut self, ascii: &[u8], codes: &[u8; 128]) {
        let start = self.len();
        self.extend(ascii.iter().map(|x| codes[usize::from(x & 0x7F)]));
        if let Some(none) = memchr::memchr(0, &self[start..]) {
            // Characters without a code are rare, so they are removed afterwards.
            let first = start + none;
            let mut n = first;
            for i in first..self.len() {
                self[n] = self[i];
                n += usize::from(self[n] != 0);
            }
            self.truncate(n);
        }
    }
}

/// State between the codes of one key: whether the next weight is the second half of a pair (I2).
#[derive(Copy, Clone, Default)]
pub(super) struct Code {
    second_half: bool,
}

impl Code {
    #[inline]
    pub(super) fn is_second_half(&self) -> bool {
        self.second_half
    }
}

/// Byte codes of the primary weights of a UCA version.
pub(super) struct UcaCodes {
    /// Code of each ASCII character; 0: it has no weight, or (PAD SPACE) it is the space.
    pub(super) ascii: [u8; 128],
    /// The distinct weights of ASCII characters, ascending; 0xFFFF behind the last.
    singles: [u16; 128],
    /// First lead byte of the weights of each high byte up to `last_high`.
    first_lead: [u8; 256],
    /// Index in `singles` of the first one of each high byte.
    first_single: [u8; 256],
    last_high: u8,
    /// The space's weight and its three codes (LOW, then END, HIGH), with PAD SPACE.
    space: Option<u16>,
    space_low: u8,
    /// Lead bytes above those of the table: below FB40, FB40, FB41, above.
    implicit_lead: u8,
}

impl UcaCodes {
    /// Assigns the codes: for each high byte of a weight up to `last_high` a lead byte, and two
    /// more for each ASCII weight in
    /// it, which splits the range and is a code itself. `pad` gives the space three codes.
    pub(super) const fn new(ascii_weights: &[u16; 128], last_high: u8, pad: bool) -> UcaCodes {
        let mut codes = UcaCodes {
            ascii: [0; 128],
            singles: distinct(ascii_weights),
            first_lead: [0; 256],
            first_single: [0; 256],
            last_high,
            space: if pad { Some(ascii_weights[0x20]) } else { None },
            space_low: 0,
            implicit_lead: 0,
        };
        let (mut lead, mut single, mut high) = (1_u8, 0, 2_usize);
        while high <= last_high as usize {
            codes.first_lead[high] = lead;
            codes.first_single[high] = single as u8;
            lead += 1;
            while (codes.singles[single] >> 8) as usize == high {
                let weight = codes.singles[single];
                if pad && weight == ascii_weights[0x20] {
                    codes.space_low = lead;
                    lead += 2;
                } else {
                    let mut c = 0;
                    while c < 128 {
                        if ascii_weights[c] == weight {
                            codes.ascii[c] = lead;
                        }
                        c += 1;
                    }
                }
                lead += 2;
                single += 1;
            }
            high += 1;
        }
        codes.implicit_lead = lead;
        assert!(lead < 0xFC, "the lead bytes fit");
        assert!(
            codes.singles[single] == 0xFFFF,
            "every ASCII weight has a code"
        );
        codes
    }

    /// Appends the code of a primary weight.
    #[inline]
    pub(super) fn push<S: Sink>(&self, weight: u16, code: &mut Code, out: &mut S) {
        let [high, low] = weight.to_be_bytes();
        if code.second_half {
            code.second_half = false;
            out.push_all(&[high, low]);
            return;
        }
        if high < 2 || high > self.last_high {
            return self.push_implicit(weight, code, out);
        }
        let mut lead = self.first_lead[usize::from(high)];
        for &single in &self.singles[usize::from(self.first_single[usize::from(high)])..] {
            if weight <= single {
                if weight == single {
                    out.push(lead + 1);
                    return;
                }
                break;
            }
            if single >> 8 != u16::from(high) {
                break;
            }
            lead += if Some(single) == self.space { 4 } else { 2 };
        }
        out.push_all(&[lead, low]);
    }

    #[cold]
    fn push_implicit<S: Sink>(&self, weight: u16, code: &mut Code, out: &mut S) {
        let [high, low] = weight.to_be_bytes();
        if weight < 0x0200 {
            // Only the Persian tailoring of one level has such weights, so I1 still holds.
            return out.push_all(&[0, high, low]);
        }
        code.second_half = high == 0xFB;
        match weight {
            ..0xFB40 => out.push_all(&[self.implicit_lead, high, low]),
            0xFB40 => out.push(self.implicit_lead + 1),
            0xFB41 => out.push(self.implicit_lead + 2),
            _ => out.push_all(&[self.implicit_lead + 3, high, low]),
        }
    }

    /// The codes of a run of spaces and of the end, with PAD SPACE.
    #[inline]
    pub(super) fn spaces(&self) -> Spaces {
        Spaces {
            low: self.space_low,
        }
    }
}

/// The distinct nonzero weights in ascending order, then 0xFFFF.
const fn distinct(weights: &[u16; 128]) -> [u16; 128] {
    let mut out = [0xFFFF; 128];
    let (mut n, mut last) = (0, 0);
    loop {
        let (mut next, mut i) = (0xFFFF, 0);
        while i < 128 {
            if weights[i] > last && weights[i] < next {
                next = weights[i];
            }
            i += 1;
        }
        if next == 0xFFFF {
            return out;
        }
        out[n] = next;
        n += 1;
        last = next;
    }
}

/// Codes of the end of a string and of spaces before it: `low`, END = `low` + 1, HIGH = `low` + 2.
#[derive(Copy, Clone)]
pub(super) struct Spaces {
    low: u8,
}

/// The codes of spaces where the space's weight is 0x20.
pub(super) const PLAIN_SPACES: Spaces = Spaces { low: 0x20 };

impl Spaces {
    /// Appends a run of spaces that something smaller or greater than a space ends.
    pub(super) fn push_run<S: Sink>(self, mut n: usize, smaller: bool, out: &mut S) {
        out.push(if smaller { self.low } else { self.low + 2 });
        let digit = |n: u8| if smaller { n } else { 255 - n };
        while n > 254 {
            out.push(digit(255));
            n -= 254;
        }
        out.push(digit(n as u8));
    }

    #[inline]
    pub(super) fn push_end<S: Sink>(self, out: &mut S) {
        out.push(self.low + 1);
    }
}

/// Shifts a byte's code beyond the three codes of the space. Correct up to 0xFC.
pub(super) const fn shifted_byte(weight: u8) -> u8 {
    if weight > 0x20 { weight + 2 } else { weight }
}

/// Appends the code of a general_ci weight (at most 0x100FF, not the space).
#[inline]
pub(super) fn push_general<S: Sink>(weight: u32, out: &mut S) {
    match weight {
        0..0x80 => out.push(shifted_byte(weight as u8)),
        0x80..0x800 => out.push_all(&[0xC0 | (weight >> 6) as u8, 0x80 | (weight & 0x3F) as u8]),
        0x800..0x1_0000 => out.push_all(&[
            0xE0 | (weight >> 12) as u8,
            0x80 | (weight >> 6 & 0x3F) as u8,
            0x80 | (weight & 0x3F) as u8,
        ]),
        _ => out.push_all(&[0xFF, weight as u8]),
    }
}

/// Calls `ascii` with each ASCII character and `other` with each weight of the others.
#[inline]
fn visit<W: Weigher, X>(
    w: W,
    s: &[u8],
    state: &mut X,
    ascii: impl Fn(&mut X, u8),
    other: impl Fn(&mut X, u32),
) {
    let mut rest = s;
    while let Some((&first, tail)) = rest.split_first() {
        if first < 0x80 {
            ascii(state, first);
            rest = tail;
            continue;
        }
        let decoded = UTF8MB4.decode(rest);
        let (char, tail) = rest.split_at(decoded.map_or(1, |(_, len)| len));
        match decoded.and_then(|(c, _)| w.one_weight(c)) {
            Some(weight) => other(state, weight),
            None => w.weights(char).for_each(|weight| other(state, weight)),
        }
        rest = tail;
    }
}

/// Whether all bytes are ASCII. Unlike the standard library's function it does not stop early,
/// since strings are short and nearly always ASCII.
#[inline]
fn is_ascii(s: &[u8]) -> bool {
    let (words, rest) = s.as_chunks::<8>();
    let all = words.iter().fold(0, |all, w| all | u64::from_le_bytes(*w));
    let rest = rest.iter().fold(0, |all, x| all | x);
    (all | u64::from(rest)) & 0x8080_8080_8080_8080 == 0
}

/// Appends the primary codes of a string, without PAD SPACE.
#[inline]
pub(super) fn push_codes<W: Weigher, S: Sink>(w: W, s: &[u8], out: &mut S) {
    out.expect_more(s.len());
    let codes = w.ascii_codes();
    let ascii = if is_ascii(s) {
        s.len()
    } else {
        s.iter().position(|&x| x >= 0x80).unwrap_or(s.len())
    };
    out.push_mapped(&s[..ascii], codes);
    visit(
        w,
        &s[ascii..],
        &mut (out, Code::default()),
        |(out, _), x| out.push_mapped(&[x], codes),
        |(out, code), weight| w.push_code(weight, code, *out),
    );
}

/// Appends the key of a string with PAD SPACE.
pub(super) fn push_padded<W: Weigher, S: Sink>(w: W, spaces: Spaces, s: &[u8], out: &mut S) {
    push_unended(w, spaces, s, out);
    spaces.push_end(out);
}

/// Appends the key of a PAD SPACE string without its trailing spaces and without END: the common
/// prefix of the keys of all strings that begin with it.
pub(super) fn push_unended<W: Weigher, S: Sink>(w: W, spaces: Spaces, s: &[u8], out: &mut S) {
    out.expect_more(s.len() + 1);
    let (space, table, codes) = (w.space(), w.ascii(), w.ascii_codes());
    let end_run = |out: &mut S, run: &mut usize, weight: u32| {
        if *run > 0 {
            spaces.push_run(*run, weight < space, out);
            *run = 0;
        }
    };
    visit(
        w,
        s,
        &mut (out, 0, Code::default()),
        |(out, run, _), x| {
            let weight = table[usize::from(x)];
            if u32::from(weight) == space {
                *run += 1;
            } else if weight != W::IGNORED {
                end_run(out, run, u32::from(weight));
                out.push(codes[usize::from(x)]);
            }
        },
        |(out, run, code), weight| {
            // The second half of a pair may have any value (I2).
            if weight == space && !code.second_half {
                *run += 1;
                return;
            }
            end_run(out, run, weight);
            w.push_code(weight, code, *out);
        },
    );
}

/// [`push_padded`] for a string of byte weights.
pub(super) fn push_bytes_padded<S: Sink>(table: &[u8; 256], s: &[u8], out: &mut S) {
    push_bytes_unended(table, s, out);
    PLAIN_SPACES.push_end(out);
}

/// [`push_unended`] for a string of byte weights.
pub(super) fn push_bytes_unended<S: Sink>(table: &[u8; 256], s: &[u8], out: &mut S) {
    out.expect_more(s.len() + 1);
    let mut run = 0;
    for &x in s {
        let weight = table[usize::from(x)];
        if weight == 0x20 {
            run += 1;
            continue;
        }
        if run > 0 {
            PLAIN_SPACES.push_run(run, weight < 0x20, out);
            run = 0;
        }
        if weight <= 0xFC {
            out.push(shifted_byte(weight));
        } else {
            out.push_all(&[0xFF, weight]);
        }
    }
}

/// [`push_bytes_padded`] where the weight of the space is not 0x20: it has the three codes from its
/// weight on, and those above it move by 2.
pub(super) fn push_spaced<S: Sink>(table: &[u8; 256], s: &[u8], out: &mut S) {
    push_spaced_unended(table, s, out);
    spaces_of(table).push_end(out);
}

fn spaces_of(table: &[u8; 256]) -> Spaces {
    Spaces { low: table[0x20] }
}

/// [`push_spaced`] without the end.
pub(super) fn push_spaced_unended<S: Sink>(table: &[u8; 256], s: &[u8], out: &mut S) {
    let (spaces, space) = (spaces_of(table), table[0x20]);
    let mut run = 0;
    for &x in s {
        let weight = table[usize::from(x)];
        if weight == space {
            run += 1;
            continue;
        }
        if run > 0 {
            spaces.push_run(run, weight < space, out);
            run = 0;
        }
        match weight {
            0xFD.. => out.push_all(&[0xFF, weight]),
            _ if weight > space => out.push(weight + 2),
            _ => out.push(weight),
        }
    }
}

/// Appends the second and, with three levels, the third level of a key.
pub(super) fn push_accents<S: Sink>(uca: &'static Uca, s: &[u8], levels: u8, out: &mut S) {
    if levels >= 2 {
        push_level(uca.level::<1>(s), SECONDARY_COMMON, out);
    }
    if levels >= 3 {
        push_level(uca.level::<2>(s), TERTIARY_COMMON, out);
    }
}

fn push_level<S: Sink>(weights: impl Iterator<Item = u32>, common: u16, out: &mut S) {
    out.push(0);
    let mut held_back = 0;
    for w in weights {
        if w == u32::from(common) {
            held_back += 1;
            continue;
        }
        for _ in 0..held_back {
            out.push(common as u8);
        }
        held_back = 0;
        out.push(w as u8);
    }
    // I3: the weights that are held back are omitted.
}
