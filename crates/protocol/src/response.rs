//! Payloads of the server's responses: OK, ERR, EOF and column definitions. Each function appends
//! one payload without its packet header.
//!
//! Source: page_protocol_basic_response_packets,
//! page_protocol_com_query_response_text_resultset_column_definition.

use crate::consts::{cap, column_type as ty, status};
use crate::lenenc::{Malformed, Reader, put_bytes, put_int};

/// The contents of an OK packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ok<'a> {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    /// `status::*`
    pub status: u16,
    pub warnings: u16,
    /// A text such as `Rows matched: 1  Changed: 1  Warnings: 0`. May be empty.
    pub info: &'a str,
}

/// Appends an OK payload. `header` is 0x00, or 0xfe if the packet replaces the EOF packet after
/// rows (DEPRECATE_EOF).
pub fn encode_ok(out: &mut Vec<u8>, header: u8, ok: &Ok<'_>) {
    out.push(header);
    put_int(out, ok.affected_rows);
    put_int(out, ok.last_insert_id);
    out.extend_from_slice(&ok.status.to_le_bytes());
    out.extend_from_slice(&ok.warnings.to_le_bytes());
    if !ok.info.is_empty() {
        put_bytes(out, ok.info.as_bytes());
    }
}

/// As [`encode_ok`], with encoded changes of the session's state, for clients with SESSION_TRACK.
pub fn encode_ok_with_state(out: &mut Vec<u8>, header: u8, ok: &Ok<'_>, state: &[u8]) {
    let changed = Ok {
        status: ok.status | status::SESSION_STATE_CHANGED,
        ..*ok
    };
    encode_ok(out, header, &changed);
    if ok.info.is_empty() {
        put_bytes(out, b"");
    }
    put_bytes(out, state);
}

/// Appends an EOF payload, for clients without DEPRECATE_EOF.
pub fn encode_eof(out: &mut Vec<u8>, warnings: u16, status: u16) {
    out.push(0xfe);
    out.extend_from_slice(&warnings.to_le_bytes());
    out.extend_from_slice(&status.to_le_bytes());
}

/// Appends the payload that ends a list of rows, in the form that the client's capabilities
/// require.
pub fn encode_end_of_rows(out: &mut Vec<u8>, capabilities: u32, warnings: u16, status: u16) {
    if capabilities & cap::DEPRECATE_EOF != 0 {
        encode_ok(
            out,
            0xfe,
            &Ok {
                warnings,
                status,
                ..Ok::default()
            },
        );
    } else {
        encode_eof(out, warnings, status);
    }
}

/// The limit of messages in ERR packets, in bytes including a terminating zero (MYSQL_ERRMSG_SIZE).
pub const MAX_MESSAGE: usize = 512;

/// Appends an ERR payload. `sqlstate` must have five characters. A message of [`MAX_MESSAGE`] bytes
/// or more is truncated at a character boundary.
pub fn encode_err(out: &mut Vec<u8>, code: u16, sqlstate: &str, message: &[u8]) {
    out.push(0xff);
    out.extend_from_slice(&code.to_le_bytes());
    out.push(b'#');
    let state = sqlstate.as_bytes();
    out.extend_from_slice(if state.len() == 5 { state } else { b"HY000" });
    let mut end = message.len().min(MAX_MESSAGE - 1);
    // Do not cut inside a UTF-8 character.
    if end < message.len() && std::str::from_utf8(message).is_ok() {
        while message[end] & 0xc0 == 0x80 {
            end -= 1;
        }
    }
    out.extend_from_slice(&message[..end]);
}

/// A column of a result, as described to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// Names are encoded in `character_set_results`.
    pub schema: &'a [u8],
    /// The alias of the table.
    pub table: &'a [u8],
    pub org_table: &'a [u8],
    /// The alias of the column.
    pub name: &'a [u8],
    pub org_name: &'a [u8],
    /// The collation id; 63 (binary) for numbers and temporal values.
    pub collation: u16,
    /// The display width in bytes.
    pub length: u32,
    /// `column_type::*`
    pub type_code: u8,
    /// `column_flag::*`
    pub flags: u16,
    /// The number of decimals; 0x1f if not applicable.
    pub decimals: u8,
}

impl Default for Column<'_> {
    fn default() -> Self {
        Column {
            schema: b"",
            table: b"",
            org_table: b"",
            name: b"",
            org_name: b"",
            collation: 63,
            length: 0,
            type_code: ty::NULL,
            flags: 0,
            decimals: 0,
        }
    }
}

/// Appends a Protocol::ColumnDefinition41 payload.
pub fn encode_column(out: &mut Vec<u8>, c: &Column<'_>) {
    put_bytes(out, b"def");
    for s in [c.schema, c.table, c.org_table, c.name, c.org_name] {
        put_bytes(out, s);
    }
    out.push(0x0c);
    out.extend_from_slice(&c.collation.to_le_bytes());
    out.extend_from_slice(&c.length.to_le_bytes());
    out.push(c.type_code);
    out.extend_from_slice(&c.flags.to_le_bytes());
    out.push(c.decimals);
    out.extend_from_slice(&[0, 0]);
}

/// Parses an ERR payload into code, SQLSTATE and message. For clients and tests.
pub fn parse_err(payload: &[u8]) -> Result<(u16, &[u8], &[u8]), Malformed> {
    let mut r = Reader::new(payload);
    if r.u8("header")? != 0xff {
        return Err(Malformed("not an ERR packet"));
    }
    let code = r.u16("code")?;
    if r.rest().first() == Some(&b'#') {
        r.u8("marker")?;
        let state = r.take(5, "sqlstate")?;
        return Result::Ok((code, state, r.rest()));
    }
    Result::Ok((code, &b"HY000"[..], r.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_and_eof_layout() {
        let mut out = vec![];
        encode_ok(
            &mut out,
            0,
            &Ok {
                affected_rows: 3,
                last_insert_id: 300,
                status: 2,
                warnings: 1,
                info: "x",
            },
        );
        assert_eq!(out, [0, 3, 0xfc, 44, 1, 2, 0, 1, 0, 1, b'x']);
        out.clear();
        encode_end_of_rows(&mut out, 0, 1, 2);
        assert_eq!(out, [0xfe, 1, 0, 2, 0]);
        out.clear();
        encode_end_of_rows(&mut out, cap::DEPRECATE_EOF, 1, 2);
        assert_eq!(out, [0xfe, 0, 0, 2, 0, 1, 0]);
    }

    #[test]
    fn changes_of_the_state_follow_the_text() {
        let schema = [1, 2, 1, b'd'];
        let mut out = vec![];
        encode_ok_with_state(&mut out, 0, &Ok::default(), &schema);
        assert_eq!(out, [0, 0, 0, 0, 0x40, 0, 0, 0, 4, 1, 2, 1, b'd']);
        out.clear();
        let told = Ok {
            info: "x",
            ..Ok::default()
        };
        encode_ok_with_state(&mut out, 0xfe, &told, &schema);
        assert_eq!(out, [0xfe, 0, 0, 0, 0x40, 0, 0, 1, b'x', 4, 1, 2, 1, b'd']);
    }

    #[test]
    fn error_message_is_truncated_at_a_character() {
        let mut out = vec![];
        let long = "é".repeat(600);
        encode_err(&mut out, 1064, "42000", long.as_bytes());
        let (code, state, msg) = parse_err(&out).unwrap();
        assert_eq!((code, state), (1064, &b"42000"[..]));
        assert_eq!(std::str::from_utf8(msg).unwrap().len(), 510);
        assert!(parse_err(&[0, 1]).is_err());
    }

    #[test]
    fn column_layout() {
        let mut out = vec![];
        encode_column(
            &mut out,
            &Column {
                name: b"a",
                type_code: ty::LONGLONG,
                length: 21,
                flags: 129,
                ..Column::default()
            },
        );
        assert_eq!(
            out,
            *b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x15\0\0\0\x08\x81\0\0\0\0"
        );
    }
}
