//! SHA-512 and SHA-384 (FIPS 180-4) for x86-64 processors with AVX2, BMI1 and BMI2.
//!
//! It exists because the libraries for Rust reach two thirds of OpenSSL's speed on processors
//! without instructions for SHA-512 (docs/notebook/cliffs.md has the figures). It hashes
//! applications' data; it is not written for secrets.
//!
//! # Picture
//! ```text
//! update() ─▶ pending: less than a block ─▶ blocks::compress() ─▶ state ─▶ finish()
//!             whole blocks of the message ─────────▲
//! ```
//!
//! # Cost
//! 128 bytes (a block) take about 500 cycles on Zen 3.
#![deny(unsafe_code)]

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
mod blocks;
#[cfg(test)]
mod tests;

const BLOCK_BYTES: usize = 128;

/// The size of a hash value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Bits384,
    Bits512,
}

impl Size {
    fn bytes(self) -> usize {
        match self {
            Size::Bits384 => 48,
            Size::Bits512 => 64,
        }
    }

    /// The initial hash values of FIPS 180-4, sections 5.3.4 and 5.3.5.
    fn initial_state(self) -> [u64; 8] {
        match self {
            Size::Bits384 => [
                0xCBBB_9D5D_C105_9ED8,
                0x629A_292A_367C_D507,
                0x9159_015A_3070_DD17,
                0x152F_ECD8_F70E_5939,
                0x6733_2667_FFC0_0B31,
                0x8EB4_4A87_6858_1511,
                0xDB0C_2E0D_64F9_8FA7,
                0x47B5_481D_BEFA_4FA4,
            ],
            Size::Bits512 => [
                0x6A09_E667_F3BC_C908,
                0xBB67_AE85_84CA_A73B,
                0x3C6E_F372_FE94_F82B,
                0xA54F_F53A_5F1D_36F1,
                0x510E_527F_ADE6_82D1,
                0x9B05_688C_2B3E_6C1F,
                0x1F83_D9AB_FB41_BD6B,
                0x5BE0_CD19_137E_2179,
            ],
        }
    }
}

/// Compresses whole blocks on a processor that has the instructions.
#[derive(Clone, Copy)]
struct Compressor(());

impl Compressor {
    /// `None`: the processor lacks an instruction.
    fn of_this_processor() -> Option<Compressor> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if blocks::are_supported() {
            return Some(Compressor(()));
        }
        None
    }

    /// Adds whole blocks to the hash `state`.
    fn compress(self, state: &mut [u64; 8], blocks: &[[u8; BLOCK_BYTES]]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: `of_this_processor` has made the compressor, so the instructions exist.
        #[allow(unsafe_code)]
        unsafe {
            blocks::compress(state, blocks);
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        unreachable!("{} blocks for {state:?} without a compressor", blocks.len());
    }
}

/// A hash value being computed.
pub struct Hasher {
    compressor: Compressor,
    size: Size,
    state: [u64; 8],
    /// The first `pending` bytes await the rest of their block.
    block: [u8; BLOCK_BYTES],
    pending: usize,
    /// The length of the message so far, in bytes.
    length: u128,
}

impl Hasher {
    /// `None`: the processor lacks an instruction, and the caller needs another implementation.
    pub fn new(size: Size) -> Option<Hasher> {
        Some(Hasher {
            compressor: Compressor::of_this_processor()?,
            size,
            state: size.initial_state(),
            block: [0; BLOCK_BYTES],
            pending: 0,
            length: 0,
        })
    }

    /// Appends `message` to what is hashed.
    pub fn update(&mut self, mut message: &[u8]) {
        self.length += message.len() as u128;
        if self.pending > 0 {
            let (head, rest) = message.split_at(message.len().min(BLOCK_BYTES - self.pending));
            self.block[self.pending..][..head.len()].copy_from_slice(head);
            self.pending += head.len();
            if self.pending < BLOCK_BYTES {
                return;
            }
            self.compressor.compress(&mut self.state, &[self.block]);
            (self.pending, message) = (0, rest);
        }
        let (whole, rest) = message.as_chunks();
        if !whole.is_empty() {
            self.compressor.compress(&mut self.state, whole);
        }
        self.block[..rest.len()].copy_from_slice(rest);
        self.pending = rest.len();
    }

    /// The hash value, of as many bytes as its size says.
    pub fn finish(mut self) -> Vec<u8> {
        const LENGTH_BYTES: usize = size_of::<u128>();
        let bits = self.length * 8;
        let mut end = [[0; BLOCK_BYTES]; 2];
        end[0][..self.pending].copy_from_slice(&self.block[..self.pending]);
        end[0][self.pending] = 0x80;
        let last = usize::from(self.pending + 1 + LENGTH_BYTES > BLOCK_BYTES);
        end[last][BLOCK_BYTES - LENGTH_BYTES..].copy_from_slice(&bits.to_be_bytes());
        self.compressor.compress(&mut self.state, &end[..=last]);
        let mut hash: Vec<u8> = self.state.iter().flat_map(|w| w.to_be_bytes()).collect();
        hash.truncate(self.size.bytes());
        hash
    }
}
