//! gb18030: the two-byte characters of gbk, and four-byte characters for the rest of Unicode.
//!
//! `tools/collations/gb18030.py` has written the tables from a MySQL server's answers, and
//! documents their layout. They are frozen, because sort keys in indexes contain the weights.

use super::coded::{CodedSet, GBK, Reader, Tables, push_code, unzip};

static FILE: &[u8] = include_bytes!("tables/gb18030.bin");

/// The weights of characters with a position in Pinyin order.
const PINYIN: u32 = 0xFFA0_0000;
/// The weights of the other four-byte characters.
const FOUR_BYTES: u32 = 0xFF00_0000;
/// The last four-byte character, and its weight.
const LAST: (u32, u32) = (0xFE39_FE39, 0xFFFF_FFFF);

/// A run of characters with consecutive indexes and code points.
#[derive(Copy, Clone, Debug)]
struct Run {
    index: u32,
    count: u32,
    code_point: u32,
}

/// The tables of four-byte characters. A character's index counts all four-byte codes before it.
#[derive(Debug)]
pub(super) struct FourBytes {
    /// Ascending by index.
    runs: Vec<Run>,
    /// Ascending by code point.
    runs_by_point: Vec<Run>,
    /// For each index, the position in Pinyin order; in ascending order.
    ranks: Vec<(u32, u16)>,
}

/// The index of a code of four bytes.
fn index(code: u32) -> u32 {
    let [a, b, c, d] = code.to_be_bytes().map(u32::from);
    ((a - 0x81) * 10 + b - 0x30) * 1260 + (c - 0x81) * 10 + d - 0x30
}

/// The code of an index.
fn code(index: u32) -> u32 {
    let (a, b) = (0x81 + index / 12600, 0x30 + index / 1260 % 10);
    let (c, d) = (0x81 + index / 10 % 126, 0x30 + index % 10);
    a << 24 | b << 16 | c << 8 | d
}

/// Whether four bytes form a character.
pub(super) fn is_character([a, b, c, d]: &[u8; 4]) -> bool {
    let letters = matches!(a, 0x81..=0xFE) && matches!(c, 0x81..=0xFE);
    letters && matches!(b, 0x30..=0x39) && matches!(d, 0x30..=0x39)
}

impl FourBytes {
    /// The code point of a code.
    pub(super) fn decode(&self, code: u32) -> Option<u32> {
        let index = index(code);
        let at = self.runs.partition_point(|run| run.index <= index);
        let run = self.runs.get(at.checked_sub(1)?)?;
        let offset = index - run.index;
        (offset < run.count).then_some(run.code_point + offset)
    }

    /// Appends the character of a code point. Returns false, and appends nothing, if there is none.
    pub(super) fn encode(&self, code_point: u32, out: &mut Vec<u8>) -> bool {
        let runs = &self.runs_by_point;
        let at = runs.partition_point(|run| run.code_point <= code_point);
        let Some(run) = at.checked_sub(1).and_then(|at| runs.get(at)) else {
            return false;
        };
        let offset = code_point - run.code_point;
        if offset >= run.count {
            return false;
        }
        push_code(code(run.index + offset), out);
        true
    }

    fn rank(&self, code: u32) -> Option<u16> {
        let index = index(code);
        let found = self.ranks.binary_search_by_key(&index, |(index, _)| *index);
        found.ok().map(|at| self.ranks[at].1)
    }
}

impl CodedSet {
    /// The weight of a multi-byte character of gb18030: its position in Pinyin order, or that of
    /// its capital letter. `None` in other sets.
    pub(crate) fn long_weight(&self, code: u32) -> Option<u32> {
        let four = self.four_bytes()?;
        let rank = match code {
            ..=0xFFFF => self.weight(code).filter(|rank| *rank > 0),
            _ => four.rank(code),
        };
        if let Some(rank) = rank {
            return Some(PINYIN + u32::from(rank));
        }
        let (_, capital) = self.cases(code);
        Some(match capital {
            ..=0xFFFF => capital,
            _ if capital == LAST.0 => LAST.1,
            _ => FOUR_BYTES + index(capital),
        })
    }
}

/// The tables of gb18030.
pub(super) fn tables(set: &CodedSet) -> Option<Tables> {
    let unpacked = unzip(FILE);
    let mut file = Reader(&unpacked);
    let mut tables = Tables::new(set, Some(&GBK), &mut file)?;
    let mut runs = Vec::new();
    for _ in 0..file.number()? {
        runs.push(Run {
            index: file.number()?,
            count: file.number()?,
            code_point: file.number()?,
        });
    }
    tables.read_cases(&mut file)?;
    for b in 0..0x80_u8 {
        tables.ascii[usize::from(b)] = b.to_ascii_uppercase();
    }
    tables.weights = vec![0; 0x1_0000];
    for (code, rank) in set.all_codes().zip(file.halves()?) {
        tables.weights[code as usize] = rank;
    }
    let all_ranks = (0..).zip(file.halves()?);
    let ranks = all_ranks.filter(|(_, rank)| *rank > 0).collect();
    let mut runs_by_point = runs.clone();
    runs_by_point.sort_unstable_by_key(|run| run.code_point);
    tables.four_bytes = Some(FourBytes {
        runs,
        runs_by_point,
        ranks,
    });
    Some(tables)
}
