//! Tailorings: the differences between the weights of a language and those of its base, UCA 4.0 or
//! UCA 9.0.
//!
//! `tools/collations/tailorings.py` has written `tables/tailorings.bin` from a MySQL server's
//! answers, and documents its layout. The file is frozen, because sort keys in indexes contain the
//! weights. A tailoring is unpacked at its first use in a process.

use std::sync::OnceLock;

use super::weights::{UCA_0400, UCA_0900, Uca};

static FILE: &[u8] = include_bytes!("tables/tailorings.bin");

/// The maximum number of levels of a tailored collation: the fourth distinguishes Hiragana from
/// Katakana.
pub(super) const LEVELS: usize = 4;
/// Precedes the weights that the Japanese collations sort after Han.
const OTHER_SCRIPTS: u16 = 0xFB86;
/// In [`Tailoring::ascii`]: the character does not have exactly one weight, or may begin a
/// contraction.
pub(super) const COMPLEX: u16 = 0xFFFF;
const BLOCK: usize = 64;
const STAGE1: usize = 0x11_0000 / BLOCK;

/// A language's position in the file.
pub(super) struct Language {
    index: usize,
    unpacked: OnceLock<Tailoring>,
}

impl Language {
    const fn new(index: usize) -> Language {
        Language {
            index,
            unpacked: OnceLock::new(),
        }
    }

    /// Whether this is Turkish over UCA 4.0.
    pub(super) const fn is_turkish(&self) -> bool {
        self.index == 8
    }

    /// The language's tailoring, unpacked at the first call.
    #[inline]
    pub(super) fn tailoring(&'static self) -> &'static Tailoring {
        self.unpacked.get_or_init(|| {
            Reader::at(self.index)
                .tailoring()
                .expect("the table of tailorings is whole")
        })
    }
}

const LANGUAGES: usize = FILE[0] as usize | (FILE[1] as usize) << 8;

/// Every language, in the order of the file.
pub(super) static ALL: [Language; LANGUAGES] = {
    let mut all = [const { Language::new(0) }; LANGUAGES];
    let mut i = 0;
    while i < LANGUAGES {
        all[i].index = i;
        i += 1;
    }
    all
};

/// A range of primary weights that are shifted by `delta`.
struct Range {
    start: u16,
    end: u16,
    delta: i32,
    /// Whether [`OTHER_SCRIPTS`] comes first.
    behind_others: bool,
}

/// The weights of several code points that are weighed together.
struct Contraction {
    code_points: Vec<u32>,
    /// Offset into the pool.
    weights: u32,
}

/// How a language's weights differ from those of its base.
pub(super) struct Tailoring {
    pub(super) base: &'static Uca,
    ranges: Vec<Range>,
    /// Tertiary weight for each of the base.
    tertiary: [u16; 32],
    /// Place in `blocks` of each 64 code points; 0: none of them has weights of its own.
    stage1: Vec<u16>,
    /// Offset into the pool, by code point; 0: the base's weights.
    blocks: Vec<u32>,
    /// The weights of characters and contractions. Each item has a head with the number of weights
    /// of each level, four bits a level (a larger count of the first level has its own word),
    /// followed by the weights.
    pool: Vec<u16>,
    /// Sorted by code points; of two contractions with a common prefix the longer one comes first.
    contractions: Vec<Contraction>,
    /// Code points that occur in a contraction before its last position, in ascending order.
    joining: Vec<u32>,
    /// The first weights of these code points.
    joining_weights: Vec<u16>,
    /// The weight of each ASCII character at each level; 0: none, [`COMPLEX`]: see the tables.
    pub(super) ascii: [[u16; 128]; LEVELS],
    /// The maximum number of weights of one character, over all levels.
    pub(super) most_weights: usize,
}

impl Tailoring {
    /// The offset of the tailoring's own weights of a code point.
    #[inline]
    fn own(&self, cp: u32) -> Option<u32> {
        let block = *self.stage1.get(cp as usize / BLOCK)?;
        if block == 0 {
            return None;
        }
        let at = self.blocks[usize::from(block) * BLOCK + cp as usize % BLOCK];
        (at != 0).then_some(at)
    }

    #[inline]
    fn item(&self, at: u32, level: usize) -> &[u16] {
        let counts = &self.pool[at as usize..at as usize + LEVELS];
        let start = at as usize
            + LEVELS
            + counts[..level]
                .iter()
                .map(|&n| usize::from(n))
                .sum::<usize>();
        &self.pool[start..start + usize::from(counts[level])]
    }

    /// The weights of a code point at `level`. Those of the base are copied to `buffer`.
    pub(super) fn expand<'a>(&'a self, cp: u32, level: usize, buffer: &'a mut Buffer) -> &'a [u16] {
        if let Some(at) = self.own(cp) {
            return self.item(at, level);
        }
        buffer.len = 0;
        let mut second_half = false;
        self.base.visit(cp, level, |w| match level {
            0 if second_half => {
                second_half = false;
                buffer.push(w);
            }
            0 => {
                second_half = w >> 8 == 0xFB;
                self.push_primary(w, buffer);
            }
            2 => buffer.push(self.tertiary[usize::from(w & 31)]),
            _ => buffer.push(w),
        });
        &buffer.weights[..buffer.len]
    }

    fn push_primary(&self, w: u16, buffer: &mut Buffer) {
        match self.ranges.iter().find(|r| r.start <= w && w <= r.end) {
            None => buffer.push(w),
            Some(range) => {
                if range.behind_others {
                    buffer.push(OTHER_SCRIPTS);
                }
                buffer.push((i32::from(w) + range.delta) as u16);
            }
        }
    }

    /// Whether LIKE, which compares characters one by one, takes two different characters for
    /// equal. As in MySQL, a code point with implicit weights equals only itself.
    pub(super) fn same_char(&self, a: char, b: char, levels: usize) -> bool {
        let (a, b) = (u32::from(a), u32::from(b));
        if a == b {
            return true;
        }
        let by_formula = |cp| self.own(cp).is_none() && self.base.is_implicit(cp);
        if by_formula(a) || by_formula(b) {
            return false;
        }
        let (mut x, mut y) = (Buffer::new(), Buffer::new());
        (0..levels).all(|level| self.expand(a, level, &mut x) == self.expand(b, level, &mut y))
    }

    /// Whether there are contractions at all.
    #[inline]
    pub(super) fn has_contractions(&self) -> bool {
        !self.contractions.is_empty()
    }

    /// Whether a code point may occur in a contraction before its last position.
    #[inline]
    pub(super) fn joins(&self, cp: u32) -> bool {
        self.joining.binary_search(&cp).is_ok()
    }

    /// Whether a character equals, at the first level, one that [`Tailoring::joins`].
    pub(super) fn resembles_joining(&self, cp: u32) -> bool {
        let mut buffer = Buffer::new();
        let weights = self.expand(cp, 0, &mut buffer);
        self.joins(cp)
            || weights.is_empty()
            || weights.iter().any(|w| self.joining_weights.contains(w))
    }

    /// The longest contraction at the front of `next`: its weights, and its length in bytes. `next`
    /// returns the code point at a byte offset, and its length.
    #[inline(never)]
    pub(super) fn contraction(
        &self,
        level: usize,
        next: impl Fn(usize) -> Option<(u32, usize)>,
    ) -> Option<(&[u16], usize)> {
        let (first, first_len) = next(0)?;
        let from = self
            .contractions
            .partition_point(|c| c.code_points[0] < first);
        for c in self.contractions[from..]
            .iter()
            .take_while(|c| c.code_points[0] == first)
        {
            let mut at = first_len;
            let whole = c.code_points[1..].iter().all(|&want| match next(at) {
                Some((cp, len)) if cp == want => {
                    at += len;
                    true
                }
                _ => false,
            });
            if whole {
                return Some((self.item(c.weights, level), at));
            }
        }
        None
    }
}

/// Room for the weights of one character.
pub(super) struct Buffer {
    weights: [u16; 48],
    len: usize,
}

impl Buffer {
    #[inline]
    pub(super) fn new() -> Buffer {
        Buffer {
            weights: [0; 48],
            len: 0,
        }
    }

    #[inline]
    fn push(&mut self, w: u16) {
        if let Some(slot) = self.weights.get_mut(self.len) {
            *slot = w;
            self.len += 1;
        }
    }
}

/// Reads a tailoring out of the file.
struct Reader {
    at: usize,
}

impl Reader {
    fn at(index: usize) -> Reader {
        let bytes = FILE[2 + 4 * index..]
            .first_chunk::<4>()
            .copied()
            .unwrap_or_default();
        Reader {
            at: u32::from_le_bytes(bytes) as usize,
        }
    }

    fn number(&mut self) -> Option<u32> {
        let (mut n, mut shift) = (0, 0);
        loop {
            let byte = *FILE.get(self.at)?;
            self.at += 1;
            n |= u32::from(byte & 0x7F).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(n);
            }
            shift += 7;
        }
    }

    fn signed(&mut self) -> Option<i32> {
        let n = self.number()?;
        Some((n >> 1) as i32 ^ -((n & 1) as i32))
    }

    /// Reads the weights of each level, and appends an item of the pool.
    fn item(&mut self, pool: &mut Vec<u16>) -> Option<u32> {
        let at = pool.len();
        pool.extend([0; LEVELS]);
        for level in 0..self.number()? as usize {
            let n = self.number()?;
            *pool.get_mut(at + level)? = n as u16;
            for _ in 0..n {
                pool.push(self.number()? as u16);
            }
        }
        Some(at as u32)
    }

    fn tailoring(mut self) -> Option<Tailoring> {
        let mut t = Tailoring {
            base: [&UCA_0400, &UCA_0900].get(self.number()? as usize)?,
            ranges: Vec::new(),
            tertiary: std::array::from_fn(|i| i as u16),
            stage1: vec![0; STAGE1],
            blocks: vec![0; BLOCK],
            // Offset 0 means none.
            pool: vec![0],
            contractions: Vec::new(),
            joining: Vec::new(),
            joining_weights: Vec::new(),
            ascii: [[0; 128]; LEVELS],
            most_weights: 0,
        };
        self.ranges(&mut t)?;
        for _ in 0..self.number()? {
            let (from, to) = (self.number()?, self.number()?);
            *t.tertiary.get_mut(from as usize)? = to as u16;
        }
        self.overrides(&mut t)?;
        self.contractions(&mut t)?;
        t.fill_ascii();
        Some(t)
    }

    fn ranges(&mut self, t: &mut Tailoring) -> Option<()> {
        let mut last = 0;
        for _ in 0..self.number()? {
            let start = last + self.number()?;
            let end = start + self.number()?;
            t.ranges.push(Range {
                start: start as u16,
                end: end as u16,
                delta: self.signed()?,
                behind_others: self.number()? == 1,
            });
            last = end;
        }
        Some(())
    }

    fn overrides(&mut self, t: &mut Tailoring) -> Option<()> {
        let (mut cp, mut primary) = (0, 0);
        for _ in 0..self.number()? {
            cp += self.number()?;
            primary += self.signed()?;
            let at = t.pool.len() as u32;
            t.pool.extend([1, 1, 1, 0, primary as u16, 0x20, 2]);
            t.set(cp, at)?;
        }
        cp = 0;
        for _ in 0..self.number()? {
            cp += self.number()?;
            let at = self.item(&mut t.pool)?;
            t.set(cp, at)?;
        }
        Some(())
    }

    fn contractions(&mut self, t: &mut Tailoring) -> Option<()> {
        for _ in 0..self.number()? {
            let mut code_points = Vec::new();
            for _ in 0..self.number()? {
                code_points.push(self.number()?);
            }
            let weights = self.item(&mut t.pool)?;
            t.joining.extend(code_points.iter().rev().skip(1));
            t.contractions.push(Contraction {
                code_points,
                weights,
            });
        }
        t.contractions
            .sort_by_key(|c| (c.code_points[0], std::cmp::Reverse(c.code_points.len())));
        t.joining.sort_unstable();
        t.joining.dedup();
        let mut buffer = Buffer::new();
        let first = t
            .joining
            .iter()
            .flat_map(|&cp| t.expand(cp, 0, &mut buffer).to_vec());
        let first = first.collect();
        t.joining_weights = first;
        Some(())
    }
}

impl Tailoring {
    fn set(&mut self, cp: u32, at: u32) -> Option<()> {
        let block = self.stage1.get_mut(cp as usize / BLOCK)?;
        if *block == 0 {
            *block = (self.blocks.len() / BLOCK) as u16;
            self.blocks.extend([0; BLOCK]);
        }
        self.blocks[usize::from(*block) * BLOCK + cp as usize % BLOCK] = at;
        let counts = &self.pool[at as usize..at as usize + LEVELS];
        let weights = counts.iter().map(|&n| usize::from(n)).sum();
        self.most_weights = self.most_weights.max(weights);
        Some(())
    }

    fn fill_ascii(&mut self) {
        let mut buffer = Buffer::new();
        for level in 0..LEVELS {
            for cp in 0..128 {
                let weight = match *self.expand(cp, level, &mut buffer) {
                    _ if self.joins(cp) => COMPLEX,
                    [] => 0,
                    [w] if w >> 8 != 0xFB => w,
                    _ => COMPLEX,
                };
                self.ascii[level][cp as usize] = weight;
            }
        }
    }
}
