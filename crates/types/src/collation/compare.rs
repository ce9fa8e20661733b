//! Comparison, prefix search and hashing over weights.

use std::cmp::Ordering;

use super::GoesOn;
use super::keys::Sink;
use super::weights::{Uca, Weigher};
use crate::charset::UTF8MB4;

/// Checkpoints during a comparison.
pub(super) trait Progress {
    /// Called with each character or weight. False: the comparison stops.
    fn step(&mut self) -> bool;
}

/// For short strings: no checkpoints.
pub(super) struct Unwatched;

impl Progress for Unwatched {
    #[inline(always)]
    fn step(&mut self) -> bool {
        true
    }
}

/// The number of steps between two checkpoints, and the work of one.
const STEPS: u32 = 4096;
const STEP_WORK: u64 = 10;

/// For long strings: with checkpoints.
pub(super) struct Watched<'f> {
    goes_on: GoesOn<'f>,
    steps: u32,
    has_given_up: bool,
}

impl<'f> Watched<'f> {
    pub(super) fn new(goes_on: GoesOn<'f>) -> Watched<'f> {
        Watched {
            goes_on,
            steps: 0,
            has_given_up: false,
        }
    }
}

impl Progress for Watched<'_> {
    #[inline]
    fn step(&mut self) -> bool {
        self.steps += 1;
        if self.steps < STEPS || self.has_given_up {
            return !self.has_given_up;
        }
        self.steps = 0;
        self.has_given_up |= !(self.goes_on)(u64::from(STEPS) * STEP_WORK);
        !self.has_given_up
    }
}

/// The length of the common prefix of two long strings, or of a part of it if stopped.
pub(super) fn equal_bytes_watched(a: &[u8], b: &[u8], goes_on: GoesOn<'_>) -> usize {
    const PIECE: usize = 64 << 10;
    let n = a.len().min(b.len());
    let mut at = 0;
    while at + PIECE <= n && a[at..at + PIECE] == b[at..at + PIECE] && goes_on(PIECE as u64) {
        at += PIECE;
    }
    at
}

/// The order of two sequences of weights. Equal if it was stopped.
pub(super) fn order<T: Ord, P: Progress>(
    mut a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
    progress: &mut P,
) -> Ordering {
    loop {
        if !progress.step() {
            return Ordering::Equal;
        }
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => {}
            (x, y) => match x.cmp(&y) {
                Ordering::Equal => return Ordering::Equal,
                order => return order,
            },
        }
    }
}

/// Length of the common prefix.
#[inline]
fn equal_bytes(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 256;
    let n = a.len().min(b.len());
    let mut at = 0;
    while at + BLOCK <= n && a[at..at + BLOCK] == b[at..at + BLOCK] {
        at += BLOCK;
    }
    while at + 8 <= n && a[at..at + 8] == b[at..at + 8] {
        at += 8;
    }
    while at < n && a[at] == b[at] {
        at += 1;
    }
    at
}

/// The length of the common prefix, moved back to the start of a character in both strings.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut at = equal_bytes(a, b);
    let inside = |s: &[u8], at: usize| s.get(at).is_some_and(|&x| x & 0xC0 == 0x80);
    while at > 0 && (inside(a, at) || inside(b, at)) {
        at -= 1;
    }
    at
}

/// Compares at the first level; `pad` continues the shorter string with spaces.
#[inline]
pub(super) fn compare<W: Weigher, P: Progress>(
    w: W,
    a: &[u8],
    b: &[u8],
    pad: bool,
    progress: &mut P,
) -> Ordering {
    let at = common_prefix(a, b);
    let (mut a, mut b) = (&a[at..], &b[at..]);
    let table = w.ascii();
    // Character by character, as long as each has one weight.
    while let (Some(&x), Some(&y)) = (a.first(), b.first()) {
        if !progress.step() {
            return Ordering::Equal;
        }
        if (x | y) < 0x80 {
            let (wx, wy) = (table[usize::from(x)], table[usize::from(y)]);
            if wx != wy {
                if wx == W::IGNORED || wy == W::IGNORED {
                    break;
                }
                return wx.cmp(&wy);
            }
            (a, b) = (&a[1..], &b[1..]);
            continue;
        }
        let (Some((c, c_len)), Some((d, d_len))) = (UTF8MB4.decode(a), UTF8MB4.decode(b)) else {
            break;
        };
        if c != d {
            let (Some(wc), Some(wd)) = (w.one_weight(c), w.one_weight(d)) else {
                break;
            };
            if wc != wd {
                return wc.cmp(&wd);
            }
        }
        (a, b) = (&a[c_len..], &b[d_len..]);
    }
    compare_weights(w, a, b, pad, progress)
}

fn compare_weights<W: Weigher, P: Progress>(
    w: W,
    a: &[u8],
    b: &[u8],
    pad: bool,
    progress: &mut P,
) -> Ordering {
    let (mut a, mut b) = (w.weights(a), w.weights(b));
    while progress.step() {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => return x.cmp(&y),
            (None, None) => return Ordering::Equal,
            (Some(x), None) if pad => return against_spaces(x, a, w.space(), progress),
            (None, Some(y)) if pad => {
                return against_spaces(y, b, w.space(), progress).reverse();
            }
            (Some(_), None) => return Ordering::Greater,
            (None, Some(_)) => return Ordering::Less,
        }
    }
    Ordering::Equal
}

/// The order of weights and as many weights of spaces. Equal if it was stopped.
pub(super) fn against_spaces<T: Ord, P: Progress>(
    first: T,
    rest: impl Iterator<Item = T>,
    space: T,
    progress: &mut P,
) -> Ordering {
    let mut weights = std::iter::once(first).chain(rest);
    let other = weights.find(|w| *w != space || !progress.step());
    other.map_or(Ordering::Equal, |w| w.cmp(&space))
}

/// Compares at the second level and, with three levels, at the third: for strings that are equal at
/// the first.
pub(super) fn compare_accents<P: Progress>(
    uca: &'static Uca,
    a: &[u8],
    b: &[u8],
    levels: u8,
    progress: &mut P,
) -> Ordering {
    if levels < 2 || a == b {
        return Ordering::Equal;
    }
    let at = common_prefix(a, b);
    let (a, b) = (&a[at..], &b[at..]);
    let second = order(uca.level::<1>(a), uca.level::<1>(b), progress);
    if levels < 3 {
        second
    } else {
        second.then_with(|| order(uca.level::<2>(a), uca.level::<2>(b), progress))
    }
}

/// Compares byte weights, the shorter string continued with spaces.
#[inline]
pub(super) fn compare_bytes_padded<P: Progress>(
    table: &[u8; 256],
    a: &[u8],
    b: &[u8],
    progress: &mut P,
) -> Ordering {
    let at = equal_bytes(a, b);
    let (a, b) = (&a[at..], &b[at..]);
    for (&x, &y) in a.iter().zip(b) {
        if !progress.step() {
            return Ordering::Equal;
        }
        let (wx, wy) = (table[usize::from(x)], table[usize::from(y)]);
        if wx != wy {
            return wx.cmp(&wy);
        }
    }
    let (n, space) = (a.len().min(b.len()), table[0x20]);
    let tail = |s: &[u8]| {
        let mut weights = s.iter().map(|&x| table[usize::from(x)]);
        weights
            .find(|&w| w != space)
            .map_or(Ordering::Equal, |w| w.cmp(&space))
    };
    if a.len() > n {
        tail(&a[n..])
    } else {
        tail(&b[n..]).reverse()
    }
}

/// Whether the weights of `needle` begin those of `s`, at one level.
pub(super) fn starts_with<T: PartialEq>(
    mut s: impl Iterator<Item = T>,
    needle: impl Iterator<Item = T>,
    goes_on: GoesOn<'_>,
) -> bool {
    let mut steps = 0;
    for w in needle {
        if s.next() != Some(w) {
            return false;
        }
        steps += 1;
        if steps % 4096 == 0 && !goes_on(10 * 4096) {
            return false;
        }
    }
    true
}

/// Whether the weights of `needle` begin those of `s`, at the first level.
pub(super) fn has_prefix<W: Weigher>(w: W, s: &[u8], needle: &[u8], goes_on: GoesOn<'_>) -> bool {
    // Most places fail at their first character.
    if let (Some(&x), Some(&y)) = (s.first(), needle.first())
        && (x | y) < 0x80
    {
        let (wx, wy) = (w.ascii()[usize::from(x)], w.ascii()[usize::from(y)]);
        if wx != wy && wx != W::IGNORED && wy != W::IGNORED {
            return false;
        }
    }
    starts_with(w.weights(s), w.weights(needle), goes_on)
}

/// Whether, level by level, the weights of `needle` begin those of `s`.
pub(super) fn has_prefix_uca(
    uca: &'static Uca,
    s: &[u8],
    needle: &[u8],
    levels: u8,
    goes_on: GoesOn<'_>,
) -> bool {
    has_prefix(uca, s, needle, goes_on)
        && (levels < 2 || starts_with(uca.level::<1>(s), uca.level::<1>(needle), goes_on))
        && (levels < 3 || starts_with(uca.level::<2>(s), uca.level::<2>(needle), goes_on))
}

/// A 64-bit hash of bytes, the same in every process; good for hash tables, not against an
/// adversary.
#[derive(Copy, Clone)]
pub(super) struct Mixer {
    hash: u64,
    /// Up to seven bytes that are not mixed in yet, and how many bytes there were.
    held: u64,
    len: u64,
}

impl Mixer {
    pub(super) const fn new() -> Mixer {
        Mixer {
            hash: 0x9E37_79B9_7F4A_7C15,
            held: 0,
            len: 0,
        }
    }

    #[inline]
    fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    #[inline]
    pub(super) fn finish(mut self) -> u64 {
        self.mix(self.held);
        self.mix(self.len);
        let mut h = self.hash;
        h = (h ^ (h >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        h = (h ^ (h >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        h ^ (h >> 33)
    }
}

impl Sink for Mixer {
    #[inline]
    fn push(&mut self, byte: u8) {
        self.held |= u64::from(byte) << (8 * (self.len & 7));
        self.len += 1;
        if self.len & 7 == 0 {
            self.mix(self.held);
            self.held = 0;
        }
    }

    #[inline]
    fn push_all(&mut self, bytes: &[u8]) {
        if self.len & 7 != 0 || bytes.len() < 8 {
            return bytes.iter().for_each(|&b| self.push(b));
        }
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        self.len += 8 * words.len() as u64;
        tail.iter().for_each(|&b| self.push(b));
    }

    #[inline]
    fn expect_more(&mut self, _: usize) {}
}
