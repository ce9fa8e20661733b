//! Responses cut into pieces of every size, with both protocols' ends of rows.

use nfold_protocol::consts::{cap, status};
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_protocol::response::{
    Column, Ok as OkPacket, encode_column, encode_end_of_rows, encode_err, encode_ok,
};
use nfold_protocol::stmt::encode_prepare_ok;
use proptest::prelude::*;

use super::*;

struct Keep(Vec<Vec<u8>>);

impl RowSink for Keep {
    fn wants_rows(&self) -> bool {
        true
    }
    fn row(&mut self, payload: &[u8]) {
        self.0.push(payload.to_vec());
    }
}

fn packets(bodies: &[Vec<u8>]) -> Vec<u8> {
    let (mut out, mut sequence) = (Vec::new(), 1);
    for body in bodies {
        let start = begin_packet(&mut out);
        out.extend_from_slice(body);
        end_packet(&mut out, start, &mut sequence);
    }
    out
}

fn body(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

fn result(rows: &[Vec<u8>], capabilities: u32, flags: u16) -> Vec<Vec<u8>> {
    let mut bodies = vec![
        vec![1],
        body(|out| {
            encode_column(
                out,
                &Column {
                    name: b"a",
                    ..Column::default()
                },
            )
        }),
    ];
    if capabilities & cap::DEPRECATE_EOF == 0 {
        bodies.push(body(|out| encode_end_of_rows(out, 0, 0, 0)));
    }
    bodies.extend_from_slice(rows);
    bodies.push(body(|out| encode_end_of_rows(out, capabilities, 0, flags)));
    bodies
}

fn read(
    bytes: &[u8],
    capabilities: u32,
    pieces: usize,
    sink: &mut impl RowSink,
    hash_rows: bool,
    prepare: bool,
) -> Answer {
    let mut response = Response::new(capabilities, hash_rows);
    response.begin(prepare);
    let mut done = false;
    for chunk in bytes.chunks(pieces) {
        assert!(!done, "whole before its end");
        done = response.feed(chunk, sink).expect("well formed");
    }
    assert!(done, "not whole at its end");
    response.answer().clone()
}

proptest! {
    /// The rows do not depend on how the bytes are cut into pieces, and are counted the same
    /// whether they are stored, hashed or skipped.
    #[test]
    fn result_does_not_depend_on_pieces(
        rows in prop::collection::vec(prop::collection::vec(0u8..=0xfb, 0..40), 0..20),
        pieces in 1usize..200,
        modern in any::<bool>(),
    ) {
        // A row is at least one length-encoded value, so its payload is never empty.
        let rows: Vec<Vec<u8>> = rows.into_iter().map(|mut r| { r.insert(0, r.len() as u8); r }).collect();
        let capabilities = if modern { cap::DEPRECATE_EOF } else { 0 };
        let bytes = packets(&result(&rows, capabilities, 0));
        let mut keep = Keep(Vec::new());
        let kept = read(&bytes, capabilities, pieces, &mut keep, true, false);
        prop_assert_eq!(&keep.0, &rows);
        let skipped = read(&bytes, capabilities, pieces, &mut NoRows, false, false);
        prop_assert_eq!(kept.rows, rows.len() as u64);
        prop_assert_eq!(skipped.rows, kept.rows);
        prop_assert_eq!(skipped.bytes, bytes.len() as u64);
        prop_assert_eq!(skipped.checksum, 0);
        let mut turned = rows.clone();
        turned.reverse();
        let other = read(&packets(&result(&turned, capabilities, 0)), capabilities, 4096, &mut NoRows, true, false);
        prop_assert_eq!(other.checksum, kept.checksum);
    }

    /// Garbage causes an error or an answer, but never a panic.
    #[test]
    fn garbage_causes_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), prepare in any::<bool>()) {
        let mut response = Response::new(cap::DEPRECATE_EOF, true);
        response.begin(prepare);
        let _ = response.feed(&bytes, &mut Keep(Vec::new()));
    }
}

#[test]
fn row_larger_than_16_mib_is_one_row() {
    let mut row = vec![0xfe];
    row.extend_from_slice(&(17u64 << 20).to_le_bytes());
    row.resize(row.len() + (17 << 20), b'x');
    let bytes = packets(&result(&[row, vec![1, b'y']], cap::DEPRECATE_EOF, 0));
    assert_eq!(
        read(
            &bytes,
            cap::DEPRECATE_EOF,
            70_000,
            &mut NoRows,
            false,
            false
        )
        .rows,
        2
    );
    assert_eq!(
        read(&bytes, cap::DEPRECATE_EOF, 70_000, &mut NoRows, true, false).rows,
        2
    );
}

#[test]
fn errors_and_counts_are_parsed() {
    let bytes = packets(&[body(|out| {
        encode_ok(
            out,
            0,
            &OkPacket {
                affected_rows: 3,
                ..OkPacket::default()
            },
        )
    })]);
    assert_eq!(
        read(&bytes, 0, 1, &mut NoRows, false, false).affected_rows,
        3
    );
    let mut bodies = result(&[vec![1, b'a']], cap::DEPRECATE_EOF, 0);
    bodies.pop();
    bodies.push(body(|out| encode_err(out, 1317, "70100", b"interrupted")));
    let answer = read(
        &packets(&bodies),
        cap::DEPRECATE_EOF,
        3,
        &mut NoRows,
        false,
        false,
    );
    assert_eq!(answer.rows, 1);
    assert_eq!(
        answer.error,
        Some(ServerError {
            code: 1317,
            message: "interrupted".into()
        })
    );
}

#[test]
fn several_results_form_one_answer() {
    let mut bodies = result(
        &[vec![1, b'a']],
        cap::DEPRECATE_EOF,
        status::MORE_RESULTS_EXISTS,
    );
    bodies.extend(result(
        &[vec![1, b'b'], vec![1, b'c']],
        cap::DEPRECATE_EOF,
        0,
    ));
    assert_eq!(
        read(
            &packets(&bodies),
            cap::DEPRECATE_EOF,
            5,
            &mut NoRows,
            false,
            false
        )
        .rows,
        3
    );
}

#[test]
fn prepare_skips_definitions() {
    for capabilities in [0, cap::DEPRECATE_EOF] {
        let definition = body(|out| encode_column(out, &Column::default()));
        let mut bodies = vec![body(|out| encode_prepare_ok(out, 7, 1, 2, 0))];
        for n in [2, 1] {
            bodies.extend(std::iter::repeat_n(definition.clone(), n));
            if capabilities == 0 {
                bodies.push(body(|out| encode_end_of_rows(out, 0, 0, 0)));
            }
        }
        let answer = read(&packets(&bodies), capabilities, 7, &mut NoRows, false, true);
        assert_eq!(answer.prepared, Some((7, 2)));
    }
}
