//! Statements in an East Asian character set, whose characters may end with the byte of a backslash
//! or a backquote.
//!
//! The lexer reads bytes, and names are UTF-8. So such a text is rewritten before it is read:
//!
//! ```text
//!   SELECT `x` FROM t WHERE s = 'x'        x in sjis is 95 5C
//!           E8A1A8               955C5C    a name in UTF-8; a string with its bytes, 5C escaped
//! ```
//! Strings keep their bytes, so binary data survives. Under NO_BACKSLASH_ESCAPES the byte 5C has no
//! meaning in a string, and stays alone.

use std::borrow::Cow;

use nfold_sql::lexer::LexMode;
use nfold_types::Charset;

/// What a byte of the text belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// Words and operators.
    Plain,
    /// A string with this quote.
    Text(u8),
    /// A quoted name with this quote.
    Name(u8),
    LineComment,
    BlockComment,
}

/// A text of `set` as the lexer reads it.
pub(super) fn lexable<'t>(set: &Charset, mode: LexMode, text: &'t [u8]) -> Cow<'t, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let escapes = !mode.has(LexMode::NO_BACKSLASH_ESCAPES);
    let mut out = Vec::with_capacity(text.len() + text.len() / 2);
    let (mut at, mut part) = (0, Part::Plain);
    while at < text.len() {
        let rest = &text[at..];
        let len = set.step(rest).clamp(1, rest.len());
        at += len;
        if !rest[0].is_ascii() {
            append(set, &rest[..len], (part, escapes), &mut out);
            continue;
        }
        out.push(rest[0]);
        if rest[0] == b'\\' && escapes && matches!(part, Part::Text(_)) {
            // As in MySQL the next byte is no part of a character.
            out.extend(text.get(at));
            at += 1;
            continue;
        }
        part = part_after(part, rest, mode);
    }
    Cow::Owned(out)
}

/// Appends a character that is not ASCII.
fn append(set: &Charset, char: &[u8], (part, escapes): (Part, bool), out: &mut Vec<u8>) {
    if let Part::Text(_) = part {
        out.extend_from_slice(char);
        if escapes && char.len() > 1 && char.ends_with(b"\\") {
            out.push(b'\\');
        }
        return;
    }
    match set.decode(char) {
        Some((c, _)) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend_from_slice(char),
    }
}

/// What follows after the ASCII character that `rest` begins with. A doubled quote ends a string
/// and begins the next one.
fn part_after(part: Part, rest: &[u8], mode: LexMode) -> Part {
    let is_blank = |b: Option<&u8>| b.is_none_or(|b| b.is_ascii_whitespace());
    match (part, rest[0]) {
        (Part::Plain, b'"') if mode.has(LexMode::ANSI_QUOTES) => Part::Name(b'"'),
        (Part::Plain, quote @ (b'\'' | b'"')) => Part::Text(quote),
        (Part::Plain, b'`') => Part::Name(b'`'),
        (Part::Plain, b'#') => Part::LineComment,
        (Part::Plain, b'-') if rest.get(1) == Some(&b'-') && is_blank(rest.get(2)) => {
            Part::LineComment
        }
        (Part::Plain, b'/') if rest.get(1) == Some(&b'*') && rest.get(2) != Some(&b'!') => {
            Part::BlockComment
        }
        (Part::Text(quote) | Part::Name(quote), b) if b == quote => Part::Plain,
        (Part::LineComment, b'\n') => Part::Plain,
        (Part::BlockComment, b'*') if rest.get(1) == Some(&b'/') => Part::Plain,
        _ => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &str, text: &[u8]) -> Vec<u8> {
        let set = Charset::by_name(set).unwrap();
        lexable(set, LexMode::default(), text).into_owned()
    }

    #[test]
    fn trail_bytes_are_escaped_in_strings() {
        assert_eq!(read("sjis", b"'\x95\\' '"), b"'\x95\\\\' '");
        assert_eq!(read("gbk", b"'\\\x95\\''"), b"'\\\x95\\''");
        assert_eq!(read("big5", b"\"\xA5\\\""), b"\"\xA5\\\\\"");
        let set = Charset::by_name("sjis").unwrap();
        let text = b"'\x95\\'";
        let plain = lexable(set, LexMode::NO_BACKSLASH_ESCAPES, text);
        assert_eq!(&*plain, text);
    }

    #[test]
    fn names_and_comments_become_utf8() {
        assert_eq!(read("sjis", b"`\x95\\`"), "`\u{8868}`".as_bytes());
        let text = b"/* \x95\\ */ \x95\\ -- '\x95\\\n'\x95\\'";
        let mut wanted = "/* \u{8868} */ \u{8868} -- '\u{8868}\n'"
            .as_bytes()
            .to_vec();
        wanted.extend(b"\x95\\\\'");
        assert_eq!(read("sjis", text), wanted);
    }

    #[test]
    fn malformed_bytes_stay_in_strings() {
        assert_eq!(read("gbk", b"'\xFF\x00\x81'"), b"'\xFF\x00\x81'");
        assert_eq!(read("gbk", b"'\x81"), b"'\x81");
    }
}
