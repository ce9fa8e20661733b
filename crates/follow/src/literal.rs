//! Values of the text protocol as literals of an INSERT that store the same value again.

/// How the values of a column are read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// As it is: a number.
    Number,
    /// A quoted ASCII text: a temporal value.
    Text,
    /// A string in a character set in which no byte of a character is a quote or a backslash.
    String(String),
    /// Bytes, or a string in another character set: in hexadecimal digits.
    Hex(String),
    /// A BIT value.
    Bits,
}

/// Character sets whose characters beyond ASCII have no bytes of ASCII.
const SAFE: [&str; 9] = [
    "ascii", "binary", "latin1", "latin2", "latin5", "latin7", "utf8mb3", "utf8mb4", "utf8",
];

impl ValueForm {
    /// The form of a column's values, and the expression that selects them.
    pub fn of(name: &str, data_type: &str, charset: Option<&str>) -> (ValueForm, String) {
        let plain = name.to_owned();
        match data_type {
            "float" => {
                // As a FLOAT it would be rounded to six digits.
                (ValueForm::Number, format!("{name} * 1e0"))
            }
            // Numbers of members, because the value of an invalid member has no name.
            "enum" | "set" => (ValueForm::Number, format!("{name} + 0")),
            "bit" => (ValueForm::Bits, plain),
            "date" | "time" | "datetime" | "timestamp" => (ValueForm::Text, plain),
            "json" => (ValueForm::String("utf8mb4".into()), plain),
            _ => match charset {
                Some(set) if SAFE.contains(&set) => (ValueForm::String(set.into()), plain),
                Some(set) => (ValueForm::Hex(set.into()), plain),
                None if data_type.ends_with("blob") || data_type.ends_with("binary") => {
                    (ValueForm::String("binary".into()), plain)
                }
                None => (ValueForm::Number, plain),
            },
        }
    }

    /// Appends a value as a literal.
    pub fn put(&self, value: Option<&[u8]>, out: &mut Vec<u8>) {
        let Some(value) = value else {
            return out.extend_from_slice(b"NULL");
        };
        match self {
            ValueForm::Number => out.extend_from_slice(value),
            ValueForm::Text => quote(value, out),
            ValueForm::String(set) => {
                if set != "utf8mb4" || std::str::from_utf8(value).is_err() {
                    out.push(b'_');
                    out.extend_from_slice(set.as_bytes());
                }
                quote(value, out);
            }
            ValueForm::Hex(set) => {
                out.push(b'_');
                out.extend_from_slice(set.as_bytes());
                out.extend_from_slice(b" X'");
                hex(value, out);
                out.push(b'\'');
            }
            ValueForm::Bits => {
                out.extend_from_slice(b"0x");
                hex(value, out);
            }
        }
    }
}

fn hex(value: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in value {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Appends a string between quotes.
pub(crate) fn quote(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for &byte in value {
        match byte {
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0 => out.extend_from_slice(b"\\0"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
}

/// A text as a literal.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A name between backticks.
pub(crate) fn name(text: &str) -> String {
    format!("`{}`", text.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_keep_the_bytes() {
        let put = |data_type: &str, set: Option<&str>, value: &[u8]| {
            let mut out = Vec::new();
            ValueForm::of("c", data_type, set)
                .0
                .put(Some(value), &mut out);
            out
        };
        assert_eq!(put("int", None, b"-7"), b"-7");
        assert_eq!(
            put("datetime", None, b"2024-02-29 00:00:00"),
            b"'2024-02-29 00:00:00'"
        );
        assert_eq!(
            put("varchar", Some("utf8mb4"), "é'\\".as_bytes()),
            "'é\\'\\\\'".as_bytes()
        );
        assert_eq!(
            put("varchar", Some("latin1"), b"\xe9\0"),
            b"_latin1'\xe9\\0'"
        );
        assert_eq!(put("char", Some("sjis"), b"\x95\\"), b"_sjis X'955c'");
        assert_eq!(put("longblob", None, b"\xff"), b"_binary'\xff'");
        assert_eq!(put("bit", None, &[1, 2]), b"0x0102");
        assert_eq!(ValueForm::of("c", "float", None).1, "c * 1e0");
    }
}
