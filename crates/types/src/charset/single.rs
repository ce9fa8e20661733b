//! Character sets of one byte: which character each byte is, and its cases.
//!
//! `tools/collations/sets.py` wrote the table from a MySQL server's answers. It is frozen.

use std::sync::OnceLock;

const FILE: &[u8] = include_bytes!("tables/single_sets.bin");
const SETS: usize = 23;
const ENTRY: usize = 4 * 256;
const _: () = assert!(FILE.len() == SETS * ENTRY);

/// One set's tables.
#[derive(Debug)]
pub(crate) struct SingleSet {
    /// The code point of each byte; 0 of another byte than 0: it is no character.
    code_points: [u16; 256],
    pub(crate) lower: [u8; 256],
    pub(crate) upper: [u8; 256],
    /// Code points in ascending order with their bytes, made at the first use.
    bytes: OnceLock<Vec<(u16, u8)>>,
}

/// Every set, in the order of the file.
pub(super) static ALL: [SingleSet; SETS] = {
    let mut all = [const { SingleSet::new() }; SETS];
    let mut set = 0;
    while set < SETS {
        let mut b = 0;
        while b < 256 {
            let at = set * ENTRY;
            all[set].code_points[b] = u16::from_le_bytes([FILE[at + 2 * b], FILE[at + 2 * b + 1]]);
            all[set].lower[b] = FILE[at + 512 + b];
            all[set].upper[b] = FILE[at + 768 + b];
            b += 1;
        }
        set += 1;
    }
    all
};

impl SingleSet {
    const fn new() -> SingleSet {
        SingleSet {
            code_points: [0; 256],
            lower: [0; 256],
            upper: [0; 256],
            bytes: OnceLock::new(),
        }
    }

    /// The character that a byte is.
    pub(super) fn decode(&self, byte: u8) -> Option<char> {
        match self.code_points[usize::from(byte)] {
            0 if byte != 0 => None,
            code_point => char::from_u32(u32::from(code_point)),
        }
    }

    /// The byte of a character. Of several bytes with one code point it is the last one.
    pub(super) fn encode(&self, c: char) -> Option<u8> {
        let code_point = u16::try_from(u32::from(c)).ok()?;
        let bytes = self.bytes.get_or_init(|| {
            let defined = (0..=255_u8).filter(|b| self.decode(*b).is_some());
            let mut pairs: Vec<_> = defined
                .map(|b| (self.code_points[usize::from(b)], b))
                .collect();
            pairs.sort_unstable();
            pairs
        });
        let end = bytes.partition_point(|(found, _)| *found <= code_point);
        let (found, byte) = *bytes.get(end.checked_sub(1)?)?;
        (found == code_point).then_some(byte)
    }
}
