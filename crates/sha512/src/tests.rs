use aws_lc_rs::digest::{Algorithm, SHA384, SHA512, digest};

use super::{Hasher, Size};

const SIZES: [(Size, &Algorithm); 2] = [(Size::Bits384, &SHA384), (Size::Bits512, &SHA512)];

/// `length` bytes without a visible pattern.
fn message(length: usize) -> Vec<u8> {
    let mut x = 0x9E37_79B9_u32;
    let next = |_| {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x as u8
    };
    (0..length).map(next).collect()
}

/// The hash value of a message that comes in pieces; `None` on a processor without the
/// instructions.
fn hash(size: Size, pieces: &[&[u8]]) -> Option<Vec<u8>> {
    let mut hasher = Hasher::new(size)?;
    pieces.iter().for_each(|piece| hasher.update(piece));
    Some(hasher.finish())
}

/// Messages around the ends of blocks, and of odd and even numbers of blocks.
#[test]
fn messages_of_every_length_equal_the_library() {
    let long = message(1300);
    for (size, algorithm) in SIZES {
        for length in 0..=long.len() {
            let Some(ours) = hash(size, &[&long[..length]]) else {
                return;
            };
            let theirs = digest(algorithm, &long[..length]);
            assert_eq!(ours, theirs.as_ref(), "{size:?} of {length} bytes");
        }
    }
}

#[test]
fn pieces_equal_the_whole_message() {
    let long = message(1000);
    for (size, algorithm) in SIZES {
        for first in (0..long.len()).step_by(7) {
            for second in (first..long.len()).step_by(61) {
                let pieces = [&long[..first], &long[first..second], &long[second..]];
                let Some(ours) = hash(size, &pieces) else {
                    return;
                };
                assert_eq!(ours, digest(algorithm, &long).as_ref(), "{first}, {second}");
            }
        }
    }
}

/// Hashes of hashes: a wrong carry or rotation anywhere would show.
#[test]
fn chains_of_hashes_equal_the_library() {
    for (size, algorithm) in SIZES {
        let (mut ours, mut theirs) = (message(513), message(513));
        for _ in 0..2000 {
            let Some(next) = hash(size, &[&ours]) else {
                return;
            };
            ours.extend_from_slice(&next);
            ours.drain(..next.len() / 2);
            let next = digest(algorithm, &theirs);
            theirs.extend_from_slice(next.as_ref());
            theirs.drain(..next.as_ref().len() / 2);
            ours.truncate(900);
            theirs.truncate(900);
            assert_eq!(ours, theirs);
        }
    }
}
