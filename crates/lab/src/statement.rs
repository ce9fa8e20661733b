//! A statement as the lab's commands exchange it: one line of a JSONL file (`digest --extract`,
//! `replay`). docs/lab.md describes the schema.

use serde::{Deserialize, Serialize};

/// A statement that a server has executed. Times are whole microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The text, if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The text's bytes in hexadecimal, if they are not UTF-8. Exactly one of the two members is
    /// present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_hex: Option<String>,
    /// The id of its pattern (`digest`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The current database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The server's connection id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// The start time in microseconds since 1970, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_us: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_us: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_sent: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_examined: Option<u64>,
    /// MySQL's error number, if the log shows that the statement failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<u32>,
}

impl Statement {
    /// Stores `text`, which may contain any bytes.
    pub fn set_text(&mut self, text: &[u8]) {
        (self.text, self.text_hex) = match std::str::from_utf8(text) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => {
                use std::fmt::Write;
                let mut hex = String::with_capacity(text.len() * 2);
                for byte in text {
                    let _ = write!(hex, "{byte:02x}");
                }
                (None, Some(hex))
            }
        };
    }

    /// The text's bytes. `None` if both or neither of the two members is present, or if the
    /// hexadecimal one is malformed.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match (&self.text, &self.text_hex) {
            (Some(text), None) => Some(text.as_bytes().to_vec()),
            (None, Some(hex)) if hex.len().is_multiple_of(2) => hex
                .as_bytes()
                .chunks_exact(2)
                .map(|pair| {
                    let digit = |b: u8| (b as char).to_digit(16);
                    Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)
                })
                .collect(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_round_trips_through_json() {
        for text in [
            &b"SELECT 'a\n\"'"[..],
            b"SELECT '\xff\x00'",
            "SELECT 'ä'".as_bytes(),
            b"",
        ] {
            let mut statement = Statement {
                time_us: Some(-1),
                ..Statement::default()
            };
            statement.set_text(text);
            let line = serde_json::to_string(&statement).expect("a statement is JSON");
            assert!(!line.contains('\n'));
            let back: Statement = serde_json::from_str(&line).expect("and comes back");
            assert_eq!(back, statement);
            assert_eq!(back.bytes().as_deref(), Some(text));
        }
        let broken: Statement = serde_json::from_str(r#"{"text_hex":"4g"}"#).expect("is JSON");
        assert_eq!(broken.bytes(), None);
    }
}
