//! Weights of the collations of one byte that came later, and of the four that are no table of byte
//! weights.
//!
//! `tools/collations/sets.py` wrote the file from a MySQL server's answers and documents its
//! layout. It is frozen: sort keys in indexes are made of it.

const FILE: &[u8] = include_bytes!("tables/single_orders.bin");
const COUNT: usize = 35;

const fn bytes<const N: usize>(at: usize) -> [u8; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = FILE[at + i];
        i += 1;
    }
    out
}

const fn rows<const N: usize, const ROWS: usize>(at: usize) -> [[u8; N]; ROWS] {
    let mut out = [[0; N]; ROWS];
    let mut row = 0;
    while row < ROWS {
        out[row] = bytes(at + N * row);
        row += 1;
    }
    out
}

/// Weight of each byte.
pub(super) static ORDERS: [[u8; 256]; COUNT] = rows(0);

/// latin1_german2_ci: 'Ä' weighs as 'AE'.
pub(super) struct German2 {
    /// One or two weights of each byte; 0: there is no second one.
    pub(super) weights: [[u8; 2]; 256],
    /// The byte that LIKE and LOCATE take each byte for.
    pub(super) same: [u8; 256],
}

const GERMAN2_AT: usize = 256 * COUNT;
pub(super) static GERMAN2: German2 = German2 {
    weights: rows(GERMAN2_AT),
    same: bytes(GERMAN2_AT + 512),
};

/// latin2_czech_cs: four passes over the text, the first two word by word.
pub(super) struct Czech {
    /// Weight of each byte in each pass; 0: none, 2: a space.
    pub(super) passes: [[u8; 256]; 4],
    /// Weights of "ch", "Ch" and "CH" in each pass.
    pub(super) ch: [[u8; 4]; 3],
    /// The byte that LOCATE takes each byte for.
    pub(super) located: [u8; 256],
}

const CZECH_AT: usize = GERMAN2_AT + 768;
pub(super) static CZECH: Czech = Czech {
    passes: rows(CZECH_AT),
    ch: rows(CZECH_AT + 1024),
    located: bytes(CZECH_AT + 1036),
};

/// cp1250_czech_cs: two passes.
pub(super) struct Czech1250 {
    pub(super) passes: [[u8; 256]; 2],
    /// Weights of "ch", "Ch" and "CH" in each pass.
    pub(super) ch: [[u8; 2]; 3],
}

const CZECH1250_AT: usize = CZECH_AT + 1292;
pub(super) static CZECH1250: Czech1250 = Czech1250 {
    passes: rows(CZECH1250_AT),
    ch: rows(CZECH1250_AT + 512),
};

/// tis620_thai_ci.
pub(super) struct Thai {
    pub(super) weights: [u8; 256],
    /// The level of the marks that weigh behind the whole text; 0: no such mark.
    pub(super) levels: [u8; 256],
    /// The byte that LIKE and LOCATE take each byte for.
    pub(super) same: [u8; 256],
}

/// Lower and upper case of the bytes, where they are not those of the set.
pub(super) struct Cased {
    pub(super) lower: [u8; 256],
    pub(super) upper: [u8; 256],
}

const CASED_AT: usize = CZECH1250_AT + 518;
pub(super) static CZECH_CASE: Cased = cased(CASED_AT);
pub(super) static CZECH1250_CASE: Cased = cased(CASED_AT + 512);

const fn cased(at: usize) -> Cased {
    Cased {
        lower: bytes(at),
        upper: bytes(at + 256),
    }
}

const THAI_AT: usize = CASED_AT + 1024;
const _: () = assert!(FILE.len() == THAI_AT + 768);
pub(super) static THAI: Thai = Thai {
    weights: bytes(THAI_AT),
    levels: bytes(THAI_AT + 256),
    same: bytes(THAI_AT + 512),
};
