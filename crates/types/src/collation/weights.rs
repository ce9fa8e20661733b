//! The weights of characters: the Unicode Collation Algorithm (versions 9.0, 5.2 and 4.0) and
//! MySQL's `general_ci`.
//!
//! MySQL's root collations have no contractions: a character has the same weights everywhere, and a
//! string may be split at any character. A byte that belongs to no character has a weight above all
//! characters.

use super::keys::{Code, Sink, UcaCodes};
use super::tables::{self, GENERAL, UcaTable};
use crate::charset::UTF8MB4;

/// A source of weights of one level, for the algorithms in the neighbouring files.
pub(super) trait Weigher: Copy {
    /// The weights in order, without ignored ones.
    type Weights<'a>: Iterator<Item = u32>;
    /// The value in [`Weigher::ascii`] for a character without weight.
    const IGNORED: u16;
    /// Weight of each ASCII character.
    fn ascii(self) -> &'static [u16; 128];
    /// Weights of a string.
    fn weights(self, s: &[u8]) -> Self::Weights<'_>;
    /// The weight of a character that has exactly one. Also `None` if computing it is expensive.
    fn one_weight(self, c: char) -> Option<u32>;
    /// Appends the sort key's bytes for a weight.
    fn push_code<S: Sink>(self, weight: u32, code: &mut Code, out: &mut S);
    /// The sort key byte of each ASCII character with a weight, except the space with PAD SPACE.
    fn ascii_codes(self) -> &'static [u8; 128];
    /// Weight of the space.
    #[inline]
    fn space(self) -> u32 {
        u32::from(self.ascii()[0x20])
    }
}

/// The entry of a code point with implicit weights.
const IMPLICIT: u32 = u32::MAX;
/// The flag of an entry with several weights: 15 bits of an offset into the pool, and the primary
/// weight if there is only one.
const MANY: u32 = 1 << 31;
/// Primary weight of a malformed byte.
const MALFORMED: u16 = 0xFFFF;
/// Rank of the secondary weight 0x0020, which a character without accent has.
pub(super) const SECONDARY_COMMON: u16 = 1;
/// The tertiary weight of small letters.
pub(super) const TERTIARY_COMMON: u16 = 2;

/// A version of the Unicode Collation Algorithm with its table.
pub(super) struct Uca {
    table: &'static UcaTable,
    ascii_entries: [u32; 128],
    ascii_primary: [u16; 128],
    pub(super) codes: UcaCodes,
    version: Version,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Version {
    V0400,
    V0520,
    V0900,
}

const fn primaries(entries: &[u32; 128]) -> [u16; 128] {
    let mut out = [0; 128];
    let mut i = 0;
    while i < 128 {
        assert!(
            entries[i] < MANY,
            "an ASCII character has at most one weight of each level"
        );
        out[i] = (entries[i] & 0xFFFF) as u16;
        i += 1;
    }
    out
}

/// UCA 9.0: the `utf8mb4_0900` collations.
pub(super) static UCA_0900: Uca = Uca {
    table: &tables::UCA_0900,
    ascii_entries: tables::UCA_0900_ASCII,
    ascii_primary: primaries(&tables::UCA_0900_ASCII),
    codes: UcaCodes::new(&primaries(&tables::UCA_0900_ASCII), 0x54, false),
    version: Version::V0900,
};

/// UCA 5.2: the `unicode_520_ci` collations, of one level, with PAD SPACE.
pub(super) static UCA_0520: Uca = Uca {
    table: &tables::UCA_0520,
    ascii_entries: tables::UCA_0520_ASCII,
    ascii_primary: primaries(&tables::UCA_0520_ASCII),
    codes: UcaCodes::new(&primaries(&tables::UCA_0520_ASCII), 0x3A, true),
    version: Version::V0520,
};

/// UCA 4.0: the `unicode_ci` collations, of one level, with PAD SPACE.
pub(super) static UCA_0400: Uca = Uca {
    table: &tables::UCA_0400,
    ascii_entries: tables::UCA_0400_ASCII,
    ascii_primary: primaries(&tables::UCA_0400_ASCII),
    codes: UcaCodes::new(&primaries(&tables::UCA_0400_ASCII), 0x23, true),
    version: Version::V0400,
};

/// The weight of one level in an entry that is not `IMPLICIT` (in one with `MANY`, only of the
/// first level); 0: none.
#[inline]
fn part<const LEVEL: u8>(entry: u32) -> u16 {
    let bits = match LEVEL {
        0 => entry & 0xFFFF,
        1 => entry >> 16 & 0xFF,
        _ => entry >> 24 & 0x1F,
    };
    bits as u16
}

impl Uca {
    #[inline]
    fn entry(&self, cp: u32) -> u32 {
        self.table.entries.get(cp).unwrap_or(IMPLICIT)
    }

    /// The secondary weight of a rank (1, 2, ...).
    pub(super) fn secondary(&self, rank: u16) -> u16 {
        self.table
            .secondary
            .get(usize::from(rank).wrapping_sub(1))
            .copied()
            .unwrap_or(0)
    }

    /// The weights of one code point at one level.
    #[inline]
    fn expand<const LEVEL: u8>(&self, cp: u32) -> Run {
        let entry = self.entry(cp);
        if entry < MANY {
            return Run::of(&[part::<LEVEL>(entry)]);
        }
        if entry == IMPLICIT {
            return self.expand_implicit::<LEVEL>(cp);
        }
        let item = self
            .table
            .pool
            .get(((entry & !MANY) >> 16) as usize..)
            .unwrap_or(&[]);
        let Some((&head, item)) = item.split_first() else {
            return Run::of(&[]);
        };
        let (primaries, pairs) = (usize::from(head & 0xFF), usize::from(head >> 8));
        let pool = match LEVEL {
            0 => item.get(..primaries),
            _ => item.get(primaries..primaries + pairs),
        };
        Run {
            pool: pool.unwrap_or(&[]),
            ..Run::of(&[])
        }
    }

    /// Implicit weights (UCA 9.0, section 10.1.3): Han, Tangut and unassigned code points. A Hangul
    /// syllable has the weights of its letters.
    fn expand_implicit<const LEVEL: u8>(&self, cp: u32) -> Run {
        if self.version != Version::V0900 {
            return match cp {
                0x1_0000.. if self.version == Version::V0400 => Run::of(&[0xFFFD]),
                0x4E00..=0x9FA5 => implicit_pair(0xFB40, cp),
                0x3400..=0x4DB5 => implicit_pair(0xFB80, cp),
                _ if is_compatibility_han(cp) => implicit_pair(0xFB40, cp),
                _ => implicit_pair(0xFBC0, cp),
            };
        }
        if let 0xAC00..=0xD7A3 = cp {
            let i = cp - 0xAC00;
            let letters = [0x1100 + i / 588, 0x1161 + i % 588 / 28, 0x11A7 + i % 28];
            let letters = if i.is_multiple_of(28) {
                &letters[..2]
            } else {
                &letters
            };
            let mut run = Run::of(&[]);
            for &letter in letters {
                // MySQL's table has a special tertiary weight for the last block of syllables.
                let tertiary = if cp >= 0xD700 { 3 } else { 2 };
                run.push(if LEVEL == 2 {
                    tertiary
                } else {
                    part::<LEVEL>(self.entry(letter))
                });
            }
            return run;
        }
        match (LEVEL, cp) {
            (1, _) => Run::of(&[SECONDARY_COMMON]),
            (2, _) => Run::of(&[TERTIARY_COMMON]),
            (_, 0x1_7000..=0x1_8AFF) => Run::of(&[0xFB00, (cp - 0x1_7000) as u16 | 0x8000]),
            (_, 0x4E00..=0x9FD5) => implicit_pair(0xFB40, cp),
            (_, 0x3400..=0x4DB5 | 0x2_0000..=0x2_A6D6 | 0x2_A700..=0x2_B734) => {
                implicit_pair(0xFB80, cp)
            }
            (_, 0x2_B740..=0x2_B81D | 0x2_B820..=0x2_CEA1) => implicit_pair(0xFB80, cp),
            _ if is_compatibility_han(cp) => implicit_pair(0xFB40, cp),
            _ => implicit_pair(0xFBC0, cp),
        }
    }

    /// Whether LIKE, which compares characters one by one, takes two characters for equal at the
    /// first `levels` levels. As in MySQL, a code point with implicit weights equals only itself.
    #[inline]
    pub(super) fn same_char(&self, a: char, b: char, levels: u8) -> bool {
        if a == b {
            return true;
        }
        let entry = |c: char| match self.ascii_entries.get(c as usize) {
            Some(&entry) => entry,
            None => self.entry(u32::from(c)),
        };
        let (x, y) = (entry(a), entry(b));
        if x < MANY && y < MANY {
            let mask = [0xFFFF, 0xFF_FFFF, 0x1FFF_FFFF][usize::from(levels.clamp(1, 3)) - 1];
            return (x ^ y) & mask == 0;
        }
        if x == IMPLICIT || y == IMPLICIT {
            return false;
        }
        let (a, b) = (u32::from(a), u32::from(b));
        self.expand::<0>(a).eq(self.expand::<0>(b))
            && (levels < 2 || self.expand_pairs::<1>(a).eq(self.expand_pairs::<1>(b)))
            && (levels < 3 || self.expand_pairs::<2>(a).eq(self.expand_pairs::<2>(b)))
    }

    /// Calls `each` with the weights of a code point at a level, from 0; there are none beyond the
    /// third level.
    pub(super) fn visit(&self, cp: u32, level: usize, mut each: impl FnMut(u16)) {
        match level {
            0 => self.expand::<0>(cp).for_each(each),
            1 => self
                .expand_pairs::<1>(cp)
                .for_each(|rank| each(self.secondary(rank))),
            2 => self.expand_pairs::<2>(cp).for_each(each),
            _ => {}
        }
    }

    /// Whether a code point has implicit weights.
    pub(super) fn is_implicit(&self, cp: u32) -> bool {
        self.entry(cp) == IMPLICIT
    }

    fn expand_pairs<const LEVEL: u8>(&self, cp: u32) -> impl Iterator<Item = u16> {
        let run = self.expand::<LEVEL>(cp);
        let packed = !run.pool.is_empty();
        run.map(move |w| if packed { unpack::<LEVEL>(w) } else { w })
    }
}

fn implicit_pair(base: u16, cp: u32) -> Run {
    Run::of(&[base + (cp >> 15) as u16, (cp & 0x7FFF) as u16 | 0x8000])
}

/// Han ideographs among the compatibility ideographs.
fn is_compatibility_han(cp: u32) -> bool {
    matches!(
        cp,
        0xFA0E | 0xFA0F | 0xFA11 | 0xFA13 | 0xFA14 | 0xFA1F | 0xFA21 | 0xFA23 | 0xFA24 | 0xFA27
            ..=0xFA29
    )
}

/// A level's weight out of a word of the pool.
#[inline]
fn unpack<const LEVEL: u8>(word: u16) -> u16 {
    match LEVEL {
        0 => word,
        1 => word & 0xFF,
        _ => word >> 8,
    }
}

/// The weights of one character: up to three of its own, then words of the pool. Zeros are skipped.
struct Run {
    own: [u16; 3],
    len: u8,
    at: u8,
    pool: &'static [u16],
}

impl Run {
    #[inline]
    fn of(weights: &[u16]) -> Run {
        let mut run = Run {
            own: [0; 3],
            len: 0,
            at: 0,
            pool: &[],
        };
        for &w in weights {
            run.push(w);
        }
        run
    }

    #[inline]
    fn push(&mut self, weight: u16) {
        if weight != 0 {
            self.own[usize::from(self.len)] = weight;
            self.len += 1;
        }
    }
}

impl Iterator for Run {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        if self.at < self.len {
            self.at += 1;
            return Some(self.own[usize::from(self.at) - 1]);
        }
        let (&w, rest) = self.pool.split_first()?;
        self.pool = rest;
        Some(w)
    }
}

/// The weights of a string at one level: primary weights, ranks of secondary weights, or tertiary
/// weights.
pub(super) struct UcaWeights<'a, const LEVEL: u8> {
    uca: &'static Uca,
    rest: &'a [u8],
    run: Run,
    /// Whether `run` may hold weights.
    running: bool,
}

impl Uca {
    #[inline]
    pub(super) fn level<'a, const LEVEL: u8>(&'static self, s: &'a [u8]) -> UcaWeights<'a, LEVEL> {
        UcaWeights {
            uca: self,
            rest: s,
            run: Run::of(&[]),
            running: false,
        }
    }
}

impl<const LEVEL: u8> UcaWeights<'_, LEVEL> {
    /// Starts a character that does not have exactly one weight, or a malformed byte (`None`).
    #[inline(never)]
    fn expand(&mut self, c: Option<char>) {
        self.run = match c {
            Some(c) => self.uca.expand::<LEVEL>(u32::from(c)),
            None => Run::of(&[[MALFORMED, SECONDARY_COMMON, TERTIARY_COMMON][usize::from(LEVEL)]]),
        };
        self.running = true;
    }
}

impl<const LEVEL: u8> Iterator for UcaWeights<'_, LEVEL> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            if self.running {
                let packed = self.run.at == self.run.len;
                if let Some(w) = self.run.next() {
                    return Some(u32::from(if packed { unpack::<LEVEL>(w) } else { w }));
                }
                self.running = false;
            }
            let (&first, tail) = self.rest.split_first()?;
            let entry = if first < 0x80 {
                self.rest = tail;
                self.uca.ascii_entries[usize::from(first)]
            } else {
                let Some((c, len)) = UTF8MB4.decode(self.rest) else {
                    self.rest = tail;
                    self.expand(None);
                    continue;
                };
                self.rest = &self.rest[len..];
                let entry = self.uca.entry(u32::from(c));
                let one = entry < MANY || (LEVEL == 0 && entry != IMPLICIT && entry & 0xFFFF != 0);
                if !one {
                    self.expand(Some(c));
                    continue;
                }
                entry
            };
            let weight = part::<LEVEL>(entry);
            if weight != 0 {
                return Some(u32::from(weight));
            }
        }
    }
}

impl Weigher for &'static Uca {
    type Weights<'a> = UcaWeights<'a, 0>;
    const IGNORED: u16 = 0;

    #[inline]
    fn ascii(self) -> &'static [u16; 128] {
        &self.ascii_primary
    }
    #[inline]
    fn weights(self, s: &[u8]) -> UcaWeights<'_, 0> {
        self.level::<0>(s)
    }
    #[inline]
    fn one_weight(self, c: char) -> Option<u32> {
        let entry = self.entry(u32::from(c));
        (entry != IMPLICIT && entry & 0xFFFF != 0).then_some(entry & 0xFFFF)
    }
    #[inline]
    fn push_code<S: Sink>(self, weight: u32, code: &mut Code, out: &mut S) {
        self.codes.push(weight as u16, code, out);
    }
    #[inline]
    fn ascii_codes(self) -> &'static [u8; 128] {
        &self.codes.ascii
    }
}

/// MySQL's `general_ci` and its two variants: one weight per character; all characters above U+FFFF
/// have the same weight.
#[derive(Copy, Clone)]
pub(super) struct General<const VARIANT: u8>;

const MYSQL500: u8 = 1;
const TOLOWER: u8 = 2;
pub(super) const GENERAL_CI: General<0> = General;
pub(super) const GENERAL_MYSQL500_CI: General<MYSQL500> = General;
pub(super) const GENERAL_TOLOWER_CI: General<TOLOWER> = General;

/// What general_ci adds to a malformed byte.
pub(super) const GENERAL_MALFORMED: u32 = 0x1_0000;

/// Weights of ASCII characters.
const fn general_ascii(lower: bool) -> [u16; 128] {
    let mut out = [0; 128];
    let mut i = 0;
    while i < 128 {
        let c = i as u8;
        out[i] = if lower {
            c.to_ascii_lowercase()
        } else {
            c.to_ascii_uppercase()
        } as u16;
        i += 1;
    }
    out
}

const fn general_codes(weights: &[u16; 128]) -> [u8; 128] {
    let mut out = [0; 128];
    let mut i = 0;
    while i < 128 {
        out[i] = super::keys::shifted_byte(weights[i] as u8);
        i += 1;
    }
    out
}

static GENERAL_ASCII: [u16; 128] = general_ascii(false);
static GENERAL_ASCII_CODES: [u8; 128] = general_codes(&general_ascii(false));
static TOLOWER_ASCII: [u16; 128] = general_ascii(true);
static TOLOWER_ASCII_CODES: [u8; 128] = general_codes(&general_ascii(true));

impl<const VARIANT: u8> General<VARIANT> {
    /// The weight of a character.
    #[inline]
    pub(super) fn weight(self, c: char) -> u32 {
        let cp = u32::from(c);
        if cp > 0xFFFF {
            return 0xFFFD;
        }
        match VARIANT {
            MYSQL500 if c == 'ß' => cp,
            TOLOWER => tables::CASE_GENERAL
                .lower
                .get(cp)
                .map_or(cp, |delta| cp.wrapping_add_signed(delta)),
            _ => GENERAL.get(cp).map_or(cp, u32::from),
        }
    }
}

/// The weights of a string under `general_ci`.
pub(super) struct GeneralWeights<'a, const VARIANT: u8> {
    rest: &'a [u8],
}

impl<const VARIANT: u8> Iterator for GeneralWeights<'_, VARIANT> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let &first = self.rest.first()?;
        if first < 0x80 {
            self.rest = &self.rest[1..];
            return Some(u32::from(General::<VARIANT>.ascii()[usize::from(first)]));
        }
        let (weight, len) = match UTF8MB4.decode(self.rest) {
            Some((c, len)) => (General::<VARIANT>.weight(c), len),
            None => (GENERAL_MALFORMED + u32::from(first), 1),
        };
        self.rest = &self.rest[len..];
        Some(weight)
    }
}

impl<const VARIANT: u8> Weigher for General<VARIANT> {
    type Weights<'a> = GeneralWeights<'a, VARIANT>;
    const IGNORED: u16 = 0xFFFF;

    #[inline]
    fn ascii(self) -> &'static [u16; 128] {
        if VARIANT == TOLOWER {
            &TOLOWER_ASCII
        } else {
            &GENERAL_ASCII
        }
    }
    #[inline]
    fn weights(self, s: &[u8]) -> GeneralWeights<'_, VARIANT> {
        GeneralWeights { rest: s }
    }
    #[inline]
    fn one_weight(self, c: char) -> Option<u32> {
        Some(self.weight(c))
    }
    #[inline]
    fn push_code<S: Sink>(self, weight: u32, _: &mut Code, out: &mut S) {
        super::keys::push_general(weight, out);
    }
    #[inline]
    fn ascii_codes(self) -> &'static [u8; 128] {
        if VARIANT == TOLOWER {
            &TOLOWER_ASCII_CODES
        } else {
            &GENERAL_ASCII_CODES
        }
    }
}
