use super::*;
use proptest::prelude::*;

fn page(bytes: &[u8]) -> Vec<AtomicU64> {
    assert!(bytes.len().is_multiple_of(8));
    bytes
        .chunks(8)
        .map(|c| AtomicU64::new(u64::from_le_bytes(c.try_into().unwrap())))
        .collect()
}

fn bytes(words: &[AtomicU64]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|w| w.load(Relaxed).to_le_bytes())
        .collect()
}

/// The expected `[off, off + len)` when bytes outside are zero.
fn padded(model: &[u8], off: usize, len: usize) -> Vec<u8> {
    (off..off + len)
        .map(|i| model.get(i).copied().unwrap_or(0))
        .collect()
}

proptest! {
    #[test]
    fn reads_agree_with_bytes(model in proptest::collection::vec(any::<u8>(), 256..=256), off in 0usize..290, len in 0usize..290, low in 0usize..290, ahead in 0usize..40) {
        let (w, total) = (page(&model), model.len());
        prop_assert_eq!(load_u8(&w, off), padded(&model, off, 1)[0]);
        prop_assert_eq!(load_u16(&w, off).to_le_bytes().to_vec(), padded(&model, off, 2));
        prop_assert_eq!(load_u32(&w, off).to_le_bytes().to_vec(), padded(&model, off, 4));
        prop_assert_eq!(load_u64(&w, off).to_le_bytes().to_vec(), padded(&model, off, 8));
        let around = [&[0; 8][..], &model].concat();
        let middle = low + ahead;
        let expected: Vec<_> = [middle, middle + 8, middle + 16].map(|at| padded(&around, at, 8)).concat();
        let (number, found) = load_u16_and_3_u64(&w, low as u32, ahead as u32);
        prop_assert_eq!(number, load_u16(&w, low));
        prop_assert_eq!(found.map(u64::to_le_bytes).concat(), expected);
        let aligned = off / 8 * 8;
        let numbers: Vec<u8> = load_16_u32(&w, aligned).iter().flat_map(|n| n.to_le_bytes()).collect();
        prop_assert_eq!(numbers, padded(&model, aligned, 64));
        let mut out = vec![7u8; len];
        copy_out(&w, off, &mut out);
        prop_assert_eq!(&out, &padded(&model, off, len));
        let mut words = vec![9u8; 8];
        let (at, kept) = append_words(&w, off, len, &mut words);
        prop_assert_eq!(&words[at..at + kept], if off < total { &model[off..(off + len).min(total)] } else { &[][..] });
        prop_assert!(words.len().is_multiple_of(8) && words[..8] == [9; 8]);
        let mut appended = vec![1u8];
        append_out(&w, off, len, &mut appended);
        let end = (off + len).min(total);
        let inside = if off < total { &model[off..end] } else { &[][..] };
        prop_assert_eq!(&appended[1..], inside);
        for short in [append_short::<0>, append_short::<1>, append_short::<2>, append_short::<5>] {
            let mut appended = vec![1u8];
            short(&w, off, len, &mut appended);
            prop_assert_eq!(&appended[1..], inside);
        }
    }

    #[test]
    fn spans_agree_with_bytes(model in proptest::collection::vec(any::<u8>(), 256..=256), off in 0usize..290, len in 0usize..290, low in 0usize..300, high in 0usize..300) {
        fn check<const N: usize>(span: Span<'_>, model: &[u8], from: usize) -> Result<(), TestCaseError> {
            for at in (0..300).chain([usize::MAX - N, usize::MAX]) {
                let inside = from.checked_add(at).and_then(|at| model.get(at..at.checked_add(N)?));
                prop_assert_eq!(span.at::<N>(at).map(Vec::from), inside.map(Vec::from));
            }
            Ok(())
        }
        let w = page(&model);
        let (from, end) = (off.min(256), (off + len).min(256));
        let inside = &model[from..end];
        let span = Span::new(&w, off, len);
        prop_assert_eq!((span.len(), span.is_empty()), (inside.len(), inside.is_empty()));
        let part = span.part(low..high);
        prop_assert_eq!(part.is_some(), inside.get(low..high).is_some());
        for (span, from) in [(Some(span), from), (part, from + low)] {
            let Some(span) = span else { continue };
            check::<1>(span, &model, from)?;
            check::<2>(span, &model, from)?;
            check::<4>(span, &model, from)?;
            check::<8>(span, &model, from)?;
            check::<16>(span, &model, from)?;
            check::<64>(span, &model, from)?;
            check::<128>(span, &model, from)?;
            let mut out = vec![9; 40];
            span.copy_to(&mut out);
            prop_assert_eq!(out, padded(&model[..from + span.len()], from, 40));
        }
    }

    #[test]
    fn compare_is_memcmp(a in proptest::collection::vec(0u8..4, 64..=64), b in proptest::collection::vec(0u8..4, 0..40),
                         off in 0usize..70, len in 0usize..70, copy in any::<bool>()) {
        let w = page(&a);
        let inside = if off < 64 { &a[off..(off + len).min(64)] } else { &[][..] };
        let mut other = b;
        if copy { let n = other.len().min(inside.len()); other[..n].copy_from_slice(&inside[..n]); }
        prop_assert_eq!(compare(&w, off, len, &other), inside.cmp(&other[..]));
    }

    #[test]
    fn writes_agree_with_bytes(start in proptest::collection::vec(any::<u8>(), 640..=640),
                               steps in proptest::collection::vec((0u8..4, 0usize..700, 0usize..700, 0usize..400), 1..8)) {
        let w = page(&start);
        let mut model = start;
        for (kind, a, b, len) in steps {
            match kind {
                0 => {
                    let data: Vec<u8> = (0..len).map(|i| (i * 7 + a) as u8).collect();
                    store_bytes(&w, a, &data);
                    for (i, d) in data.iter().enumerate() { if a + i < 640 { model[a + i] = *d; } }
                }
                1 | 3 => {
                    // Word-aligned ranges take another code path.
                    let unit = if kind == 3 { 8 } else { 1 };
                    let (a, b, len) = (a / unit * unit, b / unit * unit, len / unit * unit);
                    move_within(&w, a, b, len);
                    let len = len.min(640usize.saturating_sub(a)).min(640usize.saturating_sub(b));
                    if len > 0 { model.copy_within(a..a + len, b); }
                }
                _ => {
                    fill_zero(&w, a, len);
                    model[a.min(640)..(a + len).min(640)].fill(0);
                }
            }
            prop_assert_eq!(&bytes(&w), &model);
        }
    }
}

#[test]
fn equal_finds_one_other_byte_anywhere() {
    let model: Vec<u8> = (0..40 * 8).map(|n| (n * 7) as u8).collect();
    let words = page(&model);
    for off in [0, 1, 8, 13, 63] {
        for len in 0..=model.len() - off {
            let mut other = model[off..off + len].to_vec();
            assert!(equal(&words, off, &other), "{len} bytes from {off} on");
            if let Some(last) = other.last_mut() {
                *last ^= 1;
                assert!(!equal(&words, off, &other));
                *other.last_mut().unwrap() ^= 1;
            }
            let middle = len / 2;
            if len > 0 {
                other[middle] ^= 0x80;
                assert!(!equal(&words, off, &other));
                other[middle] ^= 0x80;
            }
        }
        let longer = [&model[off..], &[0; 70]].concat();
        assert!(!equal(&words, off, &longer));
    }
    assert!(!equal(&words, model.len() + 8, &[1]));
    assert!(!equal(&words, usize::MAX, &[1; 64]));
}

#[test]
fn out_of_range_offsets_read_zero() {
    let w = page(&[1; 16]);
    assert_eq!(load_u64(&w, usize::MAX), 0);
    assert_eq!(load_u16_and_3_u64(&w, u32::MAX, u32::MAX), (0, [0, 0, 0]));
    assert_eq!(load_u32(&w, usize::MAX - 1), 0);
    assert_eq!(load_u16(&w, usize::MAX), 0);
    assert_eq!(load_u8(&w, 1 << 60), 0);
    let span = Span::new(&w, usize::MAX, usize::MAX);
    assert!(span.is_empty() && span.at::<1>(0).is_none() && span.part(0..1).is_none());
    assert_eq!(Span::new(&w, 15, usize::MAX).at(0), Some([1]));
    let mut out = [9u8; 3];
    copy_out(&w, usize::MAX, &mut out);
    assert_eq!(out, [0; 3]);
    let mut v = Vec::new();
    for (off, len) in [(8, usize::MAX), (usize::MAX, 8), (usize::MAX, usize::MAX)] {
        assert!(append_words(&w, off, len, &mut v).1 <= 8);
    }
    v.clear();
    append_out(&w, 8, usize::MAX, &mut v);
    assert_eq!(v.len(), 8);
    append_short::<1>(&w, usize::MAX, 3, &mut v);
    append_short::<1>(&w, usize::MAX - 3, usize::MAX, &mut v);
    assert_eq!(v.len(), 8);
    assert_eq!(compare(&w, usize::MAX, 5, b""), Ordering::Equal);
    prefetch(&w, usize::MAX);
}

#[test]
fn long_copies_take_what_the_page_has() {
    let model: Vec<u8> = (0..16384u32).map(|n| (n * 7 + n / 256) as u8).collect();
    let w = page(&model);
    for off in [
        0,
        3,
        56,
        8192,
        16384 - LONG,
        16383,
        16384,
        16385,
        usize::MAX,
    ] {
        for len in [
            0,
            1,
            LONG - 1,
            LONG,
            LONG + 5,
            16384 - 56,
            16384,
            16385,
            usize::MAX,
        ] {
            let end = off.saturating_add(len).min(model.len());
            let mut appended = vec![1u8];
            append_long(&w, off, len, &mut appended);
            assert_eq!(appended[0], 1);
            assert!(
                &appended[1..] == model.get(off..end).unwrap_or(&[]),
                "{len} from {off}"
            );
        }
    }
    for len in [0, 9, LONG - 1, LONG, LONG + 3, 16384, 16390] {
        let mut out = vec![9u8; len];
        copy_page(&w, &mut out);
        assert!(out == padded(&model, 0, len), "{len}");
    }
}
