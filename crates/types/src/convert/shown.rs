//! How messages show a string.

use crate::CollationId;
use crate::charset::{self, UTF8MB4};

/// The maximum length in bytes of a value in a message.
const SHOWN_BYTES: usize = 128;

/// A string of this collation as a message shows it, in 128 bytes at most. In a binary string,
/// bytes other than printable ASCII appear as `\x00`. Other text is shown in UTF-8, up to its first
/// zero byte.
pub fn shown(text: &[u8], collation: CollationId) -> String {
    let charset = collation.known().charset;
    // A character has at most four bytes.
    let text = &text[..text.len().min(charset.piece_end(text, 4 * SHOWN_BYTES + 4))];
    if charset.is_binary() {
        let mut out = String::new();
        // As in MySQL, the last byte's escape sequence may be cut.
        append_binary(text, SHOWN_BYTES + 3, &mut out);
        out.truncate(SHOWN_BYTES);
        return out;
    }
    let mut converted = Vec::new();
    let text = if std::ptr::eq(charset, &UTF8MB4) || charset.is_ascii(text) {
        text
    } else {
        charset::convert(charset, &UTF8MB4, text, &mut converted);
        &converted
    };
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    let text = String::from_utf8_lossy(&text[..end]);
    let end = text.floor_char_boundary(SHOWN_BYTES);
    let cut = text[end..].chars().next().filter(|_| end < SHOWN_BYTES);
    // As in MySQL, the bytes of a character that is cut become question marks.
    let rest = match cut.map(|c| (c.len_utf8(), SHOWN_BYTES - end)) {
        Some((2, 1) | (4, _)) => "?",
        Some((3, 2)) => "??",
        _ => "",
    };
    format!("{}{rest}", &text[..end])
}

/// Appends the bytes of a binary string: printable ASCII as it is, other bytes as `\x00`. Stops
/// before `out` is longer than `max` bytes.
pub fn append_binary(bytes: &[u8], max: usize, out: &mut String) {
    for b in bytes {
        let printable = matches!(b, b' '..=b'~');
        if out.len() + if printable { 1 } else { 4 } > max {
            break;
        }
        match printable {
            true => out.push(char::from(*b)),
            false => out.push_str(&format!("\\x{b:02X}")),
        }
    }
}
