//! Comparison, prefix search and hashing over weights.

use std::cmp::Ordering;

use super::weights::{Uca, Weigher};

/// Length of the common prefix, moved back to where a character starts in both strings.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= n && a[at..at + 8] == b[at..at + 8] {
        at += 8;
    }
    while at < n && a[at] == b[at] {
        at += 1;
    }
    let inside = |s: &[u8], at: usize| s.get(at).is_some_and(|&x| x & 0xC0 == 0x80);
    while at > 0 && (inside(a, at) || inside(b, at)) {
        at -= 1;
    }
    at
}

/// Compares at the first level; `pad` continues the shorter string with spaces.
#[inline]
pub(super) fn compare<W: Weigher>(w: W, a: &[u8], b: &[u8], pad: bool) -> Ordering {
    let at = common_prefix(a, b);
    let (a, b) = (&a[at..], &b[at..]);
    let (table, mut i) = (w.ascii(), 0);
    for (&x, &y) in a.iter().zip(b) {
        if (x | y) >= 0x80 {
            break;
        }
        let (wx, wy) = (table[usize::from(x)], table[usize::from(y)]);
        if wx != wy {
            if wx == W::IGNORED || wy == W::IGNORED {
                break;
            }
            return wx.cmp(&wy);
        }
        i += 1;
    }
    compare_weights(w, &a[i..], &b[i..], pad)
}

fn compare_weights<W: Weigher>(w: W, a: &[u8], b: &[u8], pad: bool) -> Ordering {
    let (mut a, mut b) = (w.weights(a), w.weights(b));
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => return x.cmp(&y),
            (None, None) => return Ordering::Equal,
            (Some(x), None) if pad => return against_spaces(x, a, w.space()),
            (None, Some(y)) if pad => return against_spaces(y, b, w.space()).reverse(),
            (Some(_), None) => return Ordering::Greater,
            (None, Some(_)) => return Ordering::Less,
        }
    }
}

fn against_spaces(first: u32, rest: impl Iterator<Item = u32>, space: u32) -> Ordering {
    std::iter::once(first)
        .chain(rest)
        .find(|&w| w != space)
        .map_or(Ordering::Equal, |w| w.cmp(&space))
}

/// Compares at the second level and, with three levels, at the third: for strings that are equal at the first.
pub(super) fn compare_accents(uca: &'static Uca, a: &[u8], b: &[u8], levels: u8) -> Ordering {
    if levels < 2 || a == b {
        return Ordering::Equal;
    }
    let at = common_prefix(a, b);
    let (a, b) = (&a[at..], &b[at..]);
    let order = uca.level::<1>(a).cmp(uca.level::<1>(b));
    if levels < 3 {
        order
    } else {
        order.then_with(|| uca.level::<2>(a).cmp(uca.level::<2>(b)))
    }
}

/// Compares byte weights, the shorter string continued with spaces.
#[inline]
pub(super) fn compare_bytes_padded(table: &[u8; 256], a: &[u8], b: &[u8]) -> Ordering {
    let n = a.len().min(b.len());
    for (&x, &y) in a.iter().zip(b) {
        let (wx, wy) = (table[usize::from(x)], table[usize::from(y)]);
        if wx != wy {
            return wx.cmp(&wy);
        }
    }
    let space = table[0x20];
    let tail = |s: &[u8]| {
        s.iter()
            .map(|&x| table[usize::from(x)])
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
fn starts_with(mut s: impl Iterator<Item = u32>, mut needle: impl Iterator<Item = u32>) -> bool {
    needle.all(|w| s.next() == Some(w))
}

/// Whether the weights of `needle` begin those of `s`, at the first level.
pub(super) fn has_prefix<W: Weigher>(w: W, s: &[u8], needle: &[u8]) -> bool {
    starts_with(w.weights(s), w.weights(needle))
}

/// Whether, level by level, the weights of `needle` begin those of `s`.
pub(super) fn has_prefix_uca(uca: &'static Uca, s: &[u8], needle: &[u8], levels: u8) -> bool {
    has_prefix(uca, s, needle)
        && (levels < 2 || starts_with(uca.level::<1>(s), uca.level::<1>(needle)))
        && (levels < 3 || starts_with(uca.level::<2>(s), uca.level::<2>(needle)))
}

/// A 64-bit hash, the same in every process and build; good for hash tables, not against an adversary.
#[derive(Copy, Clone)]
pub(super) struct Mixer(u64);

impl Mixer {
    pub(super) const fn new() -> Mixer {
        Mixer(0x9E37_79B9_7F4A_7C15)
    }
    #[inline]
    pub(super) fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517C_C1B7_2722_0A95);
    }
    #[inline]
    pub(super) fn finish(self) -> u64 {
        let mut h = self.0;
        h = (h ^ h >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        h = (h ^ h >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        h ^ h >> 33
    }
}

/// Hashes weights, without trailing weights equal to `pad`.
#[inline]
pub(super) fn hash_weights(
    weights: impl Iterator<Item = u32>,
    pad: Option<u32>,
    mixer: &mut Mixer,
) {
    let mut spaces = 0;
    for w in weights {
        if Some(w) == pad {
            spaces += 1;
            continue;
        }
        for _ in 0..spaces {
            mixer.add(u64::from(pad.unwrap_or(0)));
        }
        spaces = 0;
        mixer.add(u64::from(w));
    }
}

/// Hashes bytes as they are.
pub(super) fn hash_bytes(s: &[u8], mixer: &mut Mixer) {
    let (words, tail) = s.as_chunks::<8>();
    for word in words {
        mixer.add(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    mixer.add(u64::from_le_bytes(last));
    mixer.add(s.len() as u64);
}
