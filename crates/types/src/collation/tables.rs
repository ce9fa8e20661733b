//! The frozen weight and case tables, read out of the `.bin` files at compile time.
//!
//! `tools/collations/generate.py` writes the files from a MySQL server's answers and documents
//! their layout. They never change: sort keys in indexes are made of them.

/// No block: the code point is not in the table.
const ABSENT: u16 = 0xFFFF;
const BLOCK: usize = 64;

/// A map from code points to `T` of two stages.
pub(super) struct Trie<T: 'static> {
    stage1: &'static [u16],
    blocks: &'static [T],
}

impl<T: Copy> Trie<T> {
    /// The entry of a code point; `None` where its block is not in the table.
    #[inline]
    pub(super) fn get(&self, cp: u32) -> Option<T> {
        let block = *self.stage1.get((cp >> 6) as usize)?;
        if block == ABSENT {
            return None;
        }
        self.blocks
            .get(usize::from(block) * BLOCK + (cp & 63) as usize)
            .copied()
    }
}

/// Weights of one version of the Unicode Collation Algorithm.
pub(super) struct UcaTable {
    /// See [`Entry`].
    pub(super) entries: Trie<u32>,
    /// Weights of characters with several: see `generate.py`.
    pub(super) pool: &'static [u16],
    /// Secondary weights, ascending; named by their rank, from 1.
    pub(super) secondary: &'static [u16],
}

const fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}

const fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

const fn u16s<const N: usize>(b: &[u8], at: usize) -> [u16; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = u16_at(b, at + 2 * i);
        i += 1;
    }
    out
}

const fn u32s<const N: usize>(b: &[u8], at: usize) -> [u32; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = u32_at(b, at + 4 * i);
        i += 1;
    }
    out
}

const fn i32s<const N: usize>(b: &[u8], at: usize) -> [i32; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = u32_at(b, at + 4 * i) as i32;
        i += 1;
    }
    out
}

const fn bytes<const N: usize>(b: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = b[at + i];
        i += 1;
    }
    out
}

/// Entries of the first stage that cover all of Unicode.
const UNICODE: usize = 0x11_0000 / BLOCK;

macro_rules! uca_table {
    ($module:ident, $file:literal) => {
        mod $module {
            use super::*;
            const FILE: &[u8] = include_bytes!($file);
            const BLOCKS: usize = u32_at(FILE, 0) as usize * BLOCK;
            const POOL: usize = u32_at(FILE, 4) as usize;
            const SECONDARY: usize = u32_at(FILE, 8) as usize;
            const BLOCKS_AT: usize = 12 + 2 * UNICODE;
            const POOL_AT: usize = BLOCKS_AT + 4 * BLOCKS;
            const SECONDARY_AT: usize = POOL_AT + 2 * POOL;
            const _: () = assert!(FILE.len() == SECONDARY_AT + 2 * SECONDARY);
            static STAGE1_DATA: [u16; UNICODE] = u16s(FILE, 12);
            static BLOCK_DATA: [u32; BLOCKS] = u32s(FILE, BLOCKS_AT);
            static POOL_DATA: [u16; POOL] = u16s(FILE, POOL_AT);
            static SECONDARY_DATA: [u16; SECONDARY] = u16s(FILE, SECONDARY_AT);
            pub(in super::super) static TABLE: UcaTable = UcaTable {
                entries: Trie {
                    stage1: &STAGE1_DATA,
                    blocks: &BLOCK_DATA,
                },
                pool: &POOL_DATA,
                secondary: &SECONDARY_DATA,
            };
            /// Entries of the ASCII characters.
            pub(in super::super) const ASCII: [u32; 128] = {
                let mut out = [0; 128];
                let mut cp = 0;
                while cp < 128 {
                    let block = u16_at(FILE, 12 + 2 * (cp / BLOCK)) as usize;
                    out[cp] = u32_at(FILE, BLOCKS_AT + 4 * (block * BLOCK + cp % BLOCK));
                    cp += 1;
                }
                out
            };
        }
    };
}

uca_table!(uca0900, "tables/uca0900.bin");
uca_table!(uca0520, "tables/uca0520.bin");
uca_table!(uca0400, "tables/uca0400.bin");
pub(super) use uca0400::{ASCII as UCA_0400_ASCII, TABLE as UCA_0400};
pub(super) use uca0520::{ASCII as UCA_0520_ASCII, TABLE as UCA_0520};
pub(super) use uca0900::{ASCII as UCA_0900_ASCII, TABLE as UCA_0900};

mod general {
    use super::*;
    const FILE: &[u8] = include_bytes!("tables/general.bin");
    const STAGE1: usize = 0x1_0000 / BLOCK;
    const BLOCKS: usize = u32_at(FILE, 0) as usize * BLOCK;
    const _: () = assert!(FILE.len() == 4 + 2 * STAGE1 + 2 * BLOCKS);
    static STAGE1_DATA: [u16; STAGE1] = u16s(FILE, 4);
    static BLOCK_DATA: [u16; BLOCKS] = u16s(FILE, 4 + 2 * STAGE1);
    /// Weights of utf8mb4_general_ci where they differ from the code point (Basic Multilingual
    /// Plane only).
    pub(in super::super) static GENERAL: Trie<u16> = Trie {
        stage1: &STAGE1_DATA,
        blocks: &BLOCK_DATA,
    };
}
pub(super) use general::GENERAL;

/// Case mappings of one Unicode version: what to add to a code point.
pub(super) struct CaseTable {
    pub(super) lower: Trie<i32>,
    pub(super) upper: Trie<i32>,
}

macro_rules! case_table {
    ($module:ident, $file:literal) => {
        mod $module {
            use super::*;
            const FILE: &[u8] = include_bytes!($file);
            const STAGE1: usize = 0x2_0000 / BLOCK;
            const LOWER: usize = u32_at(FILE, 0) as usize * BLOCK;
            const UPPER_AT: usize = 4 + 2 * STAGE1 + 4 * LOWER;
            const UPPER: usize = u32_at(FILE, UPPER_AT) as usize * BLOCK;
            const _: () = assert!(FILE.len() == UPPER_AT + 4 + 2 * STAGE1 + 4 * UPPER);
            static LOWER1: [u16; STAGE1] = u16s(FILE, 4);
            static LOWER2: [i32; LOWER] = i32s(FILE, 4 + 2 * STAGE1);
            static UPPER1: [u16; STAGE1] = u16s(FILE, UPPER_AT + 4);
            static UPPER2: [i32; UPPER] = i32s(FILE, UPPER_AT + 4 + 2 * STAGE1);
            pub(in super::super) static TABLE: CaseTable = CaseTable {
                lower: Trie {
                    stage1: &LOWER1,
                    blocks: &LOWER2,
                },
                upper: Trie {
                    stage1: &UPPER1,
                    blocks: &UPPER2,
                },
            };
        }
    };
}

case_table!(case_0900, "tables/case_0900.bin");
case_table!(case_0520, "tables/case_0520.bin");
case_table!(case_general, "tables/case_general.bin");
pub(super) use case_0520::TABLE as CASE_0520;
pub(super) use case_0900::TABLE as CASE_0900;
pub(super) use case_general::TABLE as CASE_GENERAL;

const SINGLE: &[u8] = include_bytes!("tables/single_byte.bin");
const _: () = assert!(SINGLE.len() == 8 * 256);
/// Weight of each byte.
pub(super) static LATIN1_SWEDISH_CI: [u8; 256] = bytes(SINGLE, 0);
pub(super) static LATIN1_GENERAL_CI: [u8; 256] = bytes(SINGLE, 256);
pub(super) static LATIN1_GENERAL_CS: [u8; 256] = bytes(SINGLE, 512);
pub(super) static ASCII_GENERAL_CI: [u8; 256] = bytes(SINGLE, 768);
pub(super) static LATIN1_LOWER: [u8; 256] = bytes(SINGLE, 1024);
pub(super) static LATIN1_UPPER: [u8; 256] = bytes(SINGLE, 1280);
pub(super) static ASCII_LOWER: [u8; 256] = bytes(SINGLE, 1536);
pub(super) static ASCII_UPPER: [u8; 256] = bytes(SINGLE, 1792);

/// Weight of a byte in the `_bin` collations: itself.
pub(super) static IDENTITY: [u8; 256] = {
    let mut out = [0; 256];
    let mut i = 0;
    while i < 256 {
        out[i] = i as u8;
        i += 1;
    }
    out
};
