use super::*;
use proptest::prelude::*;

/// Everything that `c` can hand on, in calls of at most `step` bytes.
fn read_all(c: &mut Compression, step: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![];
    let mut to = vec![0; step];
    while let Some(n) = c.read(&mut to)? {
        out.extend_from_slice(&to[..n]);
    }
    Ok(out)
}

fn receive(c: &mut Compression, mut bytes: &[u8], step: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![];
    while !bytes.is_empty() {
        let n = c.space().len().min(step).min(bytes.len());
        c.space()[..n].copy_from_slice(&bytes[..n]);
        c.received(n);
        bytes = &bytes[n..];
        out.append(&mut read_all(c, step)?);
    }
    Ok(out)
}

fn packets(algorithm: Algorithm, mut plain: &[u8]) -> Vec<u8> {
    let mut c = Compression::new(algorithm, &[]);
    while !plain.is_empty() {
        let n = c.write(plain);
        plain = &plain[n..];
    }
    c.pending().to_vec()
}

const BOTH: [Algorithm; 2] = [Algorithm::Zlib, Algorithm::Zstd];

#[test]
fn bytes_come_back_however_they_are_cut() {
    let text: Vec<u8> = (0..300_000u32)
        .flat_map(|i| (i / 7).to_le_bytes())
        .collect();
    for algorithm in BOTH {
        let sent = packets(algorithm, &text);
        assert!(sent.len() < text.len() / 2, "{algorithm:?}: {}", sent.len());
        for step in [100, 5000, 1 << 20] {
            let mut c = Compression::new(algorithm, &[]);
            assert_eq!(receive(&mut c, &sent, step).unwrap(), text);
            c.release();
            assert_eq!(
                c.received.bytes.capacity(),
                0,
                "an idle connection has no buffer"
            );
        }
    }
}

#[test]
fn short_and_random_bytes_are_sent_as_they_are() {
    let mut x = 1u32;
    let random: Vec<u8> = (0..1000)
        .map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 24) as u8
        })
        .collect();
    for algorithm in BOTH {
        for plain in [&b"x".repeat(49), &random] {
            let sent = packets(algorithm, plain);
            assert_eq!(&sent[4..HEADER], [0; 3], "not compressed");
            assert_eq!(&sent[HEADER..], &plain[..]);
        }
        assert_ne!(&packets(algorithm, &b"x".repeat(50))[4..HEADER], [0; 3]);
    }
}

#[test]
fn answers_are_numbered_behind_the_command() {
    let mut c = Compression::new(Algorithm::Zlib, &[]);
    for (command, number) in [(0, 1), (0, 1), (254, 255), (255, 0)] {
        receive(&mut c, &[1, 0, 0, command, 0, 0, 0, b'x'], 100).unwrap();
        c.write(b"answer");
        assert_eq!(c.pending()[3], number);
        c.sent(c.pending().len());
    }
}

#[test]
fn bytes_behind_the_login_are_read() {
    let early = packets(Algorithm::Zstd, b"early");
    let mut c = Compression::new(Algorithm::Zstd, &early);
    assert_eq!(read_all(&mut c, 100).unwrap(), b"early");
}

#[test]
fn a_packet_that_is_not_as_its_header_says_is_an_error() {
    for algorithm in BOTH {
        let good = packets(algorithm, &b"long enough ".repeat(20));
        let mut longer = good.clone();
        longer[4] += 1;
        let mut other = good.clone();
        other[HEADER..].fill(0x55);
        let empty = [0, 0, 0, 0, 9, 0, 0];
        for bad in [&longer[..], &other, &empty] {
            let mut c = Compression::new(algorithm, &[]);
            assert!(receive(&mut c, bad, 1000).is_err(), "{algorithm:?} {bad:?}");
        }
    }
}

#[test]
fn a_frame_with_a_large_window_is_refused() {
    let mut sent = packets(Algorithm::Zstd, &b"long enough ".repeat(20));
    // The frame's descriptor is followed by the exponent and mantissa of its window.
    assert_eq!(sent[HEADER + 4] & 0x20, 0);
    sent[HEADER + 5] = 31 << 3;
    let mut c = Compression::new(Algorithm::Zstd, &[]);
    assert!(receive(&mut c, &sent, 1000).is_err());
}

#[test]
fn lists_of_algorithms_are_read_as_mysql_reads_them() {
    let of = |zlib, zstd, uncompressed| {
        Some(Algorithms {
            zlib,
            zstd,
            uncompressed,
        })
    };
    assert_eq!(Algorithms::parse("zlib,ZSTD,zlib"), of(true, true, false));
    assert_eq!(Algorithms::parse("uncompressed"), of(false, false, true));
    for bad in ["", " zlib", "zlib,", "lz4"] {
        assert_eq!(Algorithms::parse(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), plain in 0u8..4, zstd in any::<bool>()) {
        let algorithm = BOTH[usize::from(zstd)];
        let mut sent = vec![bytes.len() as u8, (bytes.len() >> 8) as u8, 0, 0, plain, 0, 0];
        sent.extend_from_slice(&bytes);
        let _ = receive(&mut Compression::new(algorithm, &[]), &sent, 64);
        // A whole frame of which one byte is another one.
        let mut sent = packets(algorithm, &b"some text, ".repeat(30));
        let at = HEADER + bytes.len() % (sent.len() - HEADER);
        sent[at] ^= 1 + plain;
        let _ = receive(&mut Compression::new(algorithm, &[]), &sent, 64);
    }
}
