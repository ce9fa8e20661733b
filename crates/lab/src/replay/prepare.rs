//! Converts statements into templates with `?`, as a client that prepares statements would send
//! them.
//!
//! Only literals that the parser accepts as parameters become `?`, and only those whose type the
//! protocol transmits unchanged: integers, doubles and strings. In the rows of an INSERT, all
//! literals do, because each value is converted to its column's type. All others stay in the
//! template's text.

use nfold_sql::digest::{Digested, LiteralRole, SlotKind};
use nfold_sql::lexer::LexMode;
use nfold_sql::literal::Lit;
use nfold_sql::parser::parse_parameterised;
use rustc_hash::FxHashMap;

use crate::client::{Param, Values};

/// The most parameters of a statement in the protocol.
const MAX_PARAMETERS: usize = 65_535;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Null,
    Int(i64),
    UInt(u64),
    Double(f64),
    /// A range of `Store::bytes`.
    Bytes(usize, usize),
}

/// A statement as an execution of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    pub template: u32,
    start: usize,
    count: usize,
}

/// The values of executions in sequence.
#[derive(Debug, Default)]
pub struct Store {
    values: Vec<Value>,
    bytes: Vec<u8>,
}

/// The most bytes of template texts that are kept. Statements of further templates are sent as
/// text.
const MAX_TEXT: usize = 32 << 20;

/// The templates of a file. They are found in the survey, and looked up when the file is read
/// again.
#[derive(Debug, Default)]
pub struct Templates {
    texts: Vec<String>,
    by_text: FxHashMap<String, u32>,
    text_bytes: usize,
}

impl Templates {
    /// The number of templates.
    pub fn count(&self) -> usize {
        self.texts.len()
    }

    pub fn text(&self, template: u32) -> &str {
        self.texts.get(template as usize).map_or("", String::as_str)
    }

    /// Converts a statement to an execution, and adds its template if it is new. `None` if the
    /// statement must be sent as text.
    pub fn add(&mut self, text: &[u8], mode: LexMode, store: &mut Store) -> Option<Execution> {
        let (template, execution) = store.split(text, mode)?;
        let known = self.by_text.get(&template).copied();
        let fits = self.text_bytes + template.len() <= MAX_TEXT;
        let number = match known {
            Some(number) => number,
            None if fits => {
                let number = self.texts.len() as u32;
                self.text_bytes += template.len();
                self.texts.push(template.clone());
                self.by_text.insert(template, number);
                number
            }
            None => {
                store.remove_last(execution);
                return None;
            }
        };
        Some(execution.of(number))
    }

    /// As [`Self::add`], but only with known templates. `None` also if the template is unknown.
    pub fn find(&self, text: &[u8], mode: LexMode, store: &mut Store) -> Option<Execution> {
        let (template, execution) = store.split(text, mode)?;
        match self.by_text.get(&template) {
            Some(number) => Some(execution.of(*number)),
            None => {
                store.remove_last(execution);
                None
            }
        }
    }
}

impl Execution {
    fn of(self, template: u32) -> Execution {
        Execution { template, ..self }
    }
}

impl Store {
    /// Its memory in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.values.len() * size_of::<Value>()
    }

    pub fn push_values(&self, execution: Execution, values: &mut Values) {
        for value in &self.values[execution.start..execution.start + execution.count] {
            values.push(match *value {
                Value::Null => Param::Null,
                Value::Int(v) => Param::Int(v),
                Value::UInt(v) => Param::UInt(v),
                Value::Double(v) => Param::Double(v),
                Value::Bytes(start, end) => Param::Bytes(&self.bytes[start..end]),
            });
        }
    }

    /// Appends an execution of `other`.
    pub fn copy(&mut self, other: &Store, execution: Execution) -> Execution {
        let start = self.values.len();
        for value in &other.values[execution.start..execution.start + execution.count] {
            self.values.push(match *value {
                Value::Bytes(from, to) => {
                    let at = self.bytes.len();
                    self.bytes.extend_from_slice(&other.bytes[from..to]);
                    Value::Bytes(at, self.bytes.len())
                }
                plain => plain,
            });
        }
        Execution { start, ..execution }
    }

    /// Removes the last execution. Its bytes stay, unused.
    fn remove_last(&mut self, execution: Execution) {
        self.values.truncate(execution.start);
    }

    /// The template's text, and an execution without the template's index.
    fn split(&mut self, text: &[u8], mode: LexMode) -> Option<(String, Execution)> {
        let mut digested = Digested::new();
        digested.read(text, mode);
        if !digested.is_parameterisable() || digested.markers() > 0 {
            return None;
        }
        let roles = parse_parameterised(text, &digested, false).ok()?.roles;
        let (start, bytes) = (self.values.len(), self.bytes.len());
        let template = self.template(text, &digested, &roles);
        let count = self.values.len() - start;
        let template = template
            .filter(|_| count <= MAX_PARAMETERS)
            .and_then(|t| String::from_utf8(t).ok());
        let Some(template) = template else {
            self.values.truncate(start);
            self.bytes.truncate(bytes);
            return None;
        };
        let execution = Execution {
            template: 0,
            start,
            count,
        };
        Some((template, execution))
    }

    fn template(
        &mut self,
        text: &[u8],
        digested: &Digested,
        roles: &[LiteralRole],
    ) -> Option<Vec<u8>> {
        let (mut out, mut done) = (Vec::with_capacity(text.len()), 0);
        for (n, slot) in digested.slots().iter().enumerate() {
            let (start, end) = (slot.span.start as usize, slot.span.end as usize);
            if roles.get(n) != Some(&LiteralRole::Parameter) {
                continue;
            }
            let mark = (self.values.len(), self.bytes.len());
            let marked = match slot.kind {
                SlotKind::Marker(_) => return None,
                SlotKind::Literal(_) => {
                    let fits = !bound_to_neighbours(text, start, end);
                    let literal = digested.literal(n as u32, text).filter(|_| fits);
                    literal
                        .is_some_and(|lit| self.value(&lit, false))
                        .then(|| b"?".to_vec())
                }
                SlotKind::List | SlotKind::Rows => {
                    let rows = slot.kind == SlotKind::Rows;
                    let all = digested
                        .list(n as u32, text)
                        .all(|lit| self.value(&lit, rows));
                    all.then(|| markers(slot.width as usize, slot.count as usize, slot.rows, rows))
                }
            };
            match marked {
                Some(markers) => {
                    out.extend_from_slice(&text[done..start]);
                    out.extend_from_slice(&markers);
                    done = end;
                }
                None => {
                    self.values.truncate(mark.0);
                    self.bytes.truncate(mark.1);
                }
            }
        }
        out.extend_from_slice(text.get(done..digested.end())?);
        Some(out)
    }

    /// Stores the value of a literal. Returns false if the protocol has no type for it.
    fn value(&mut self, lit: &Lit<'_>, converted: bool) -> bool {
        let value = match lit {
            Lit::Null => Value::Null,
            Lit::Int {
                negative: false,
                value,
            } => i64::try_from(*value).map_or(Value::UInt(*value), Value::Int),
            Lit::Int {
                negative: true,
                value,
            } if *value <= 1 << 63 => Value::Int((*value as i64).wrapping_neg()),
            Lit::Float { negative, text } => match std::str::from_utf8(text)
                .ok()
                .and_then(|t| t.parse::<f64>().ok())
            {
                Some(v) => Value::Double(if *negative { -v } else { v }),
                None => return false,
            },
            Lit::String(s) if !s.national => {
                let start = self.bytes.len();
                s.append_to(&mut self.bytes);
                Value::Bytes(start, self.bytes.len())
            }
            Lit::Bool(b) if converted => Value::Int(i64::from(*b)),
            Lit::Decimal { negative, text } if converted => {
                let start = self.bytes.len();
                if *negative {
                    self.bytes.push(b'-');
                }
                self.bytes.extend_from_slice(text);
                Value::Bytes(start, self.bytes.len())
            }
            _ => return false,
        };
        self.values.push(value);
        true
    }
}

/// `(?,?)`; with `rows` `((?,?),(?,?))`; for VALUES `(?,?),(?,?)`.
fn markers(width: usize, count: usize, rows: bool, bare: bool) -> Vec<u8> {
    let row = |n: usize| [b"(".to_vec(), vec![&b"?"[..]; n].join(&b','), b")".to_vec()].concat();
    if !rows {
        return row(count);
    }
    let inner = vec![row(width); count].join(&b',');
    if bare {
        inner
    } else {
        [b"(".to_vec(), inner, b")".to_vec()].concat()
    }
}

/// Whether an adjacent token belongs to the literal: `DATE '…'`, `_utf8mb4'…'`, `'a' 'b'`,
/// `a->'$.b'`.
fn bound_to_neighbours(text: &[u8], start: usize, end: usize) -> bool {
    let before = text[..start].trim_ascii_end();
    let word = before
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
        .count();
    let word = &before[before.len() - word..];
    let prefix = [&b"DATE"[..], b"TIME", b"TIMESTAMP"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name));
    prefix
        || word.first() == Some(&b'_')
        || before.ends_with(b"->")
        || before.ends_with(b"->>")
        || matches!(before.last(), Some(b'\'' | b'"')) && matches!(text[start], b'\'' | b'"')
        || matches!(text[end..].trim_ascii_start().first(), Some(b'\'' | b'"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<(String, String)> {
        let (mut templates, mut store) = (Templates::default(), Store::default());
        let execution = templates.add(text.as_bytes(), LexMode::default(), &mut store)?;
        assert_eq!(
            templates.find(text.as_bytes(), LexMode::default(), &mut Store::default()),
            Some(execution)
        );
        let values: Vec<String> = store
            .values
            .iter()
            .map(|value| match *value {
                Value::Null => "NULL".into(),
                Value::Int(v) => v.to_string(),
                Value::UInt(v) => format!("{v}u"),
                Value::Double(v) => format!("{v:?}"),
                Value::Bytes(start, end) => {
                    String::from_utf8_lossy(&store.bytes[start..end]).into_owned()
                }
            })
            .collect();
        assert_eq!(values.len(), execution.count);
        let text = templates.text(execution.template);
        assert_eq!(text.matches('?').count(), values.len(), "{text}");
        Some((text.to_string(), values.join(" ")))
    }

    #[test]
    fn literals_become_parameters() {
        for (text, template, values) in [
            (
                "SELECT a FROM t WHERE id = 5",
                "SELECT a FROM t WHERE id = ?",
                "5",
            ),
            (
                "SELECT a FROM t WHERE id IN (1, -2, 18446744073709551615);",
                "SELECT a FROM t WHERE id IN (?,?,?)",
                "1 -2 18446744073709551615u",
            ),
            (
                "SELECT a FROM t WHERE (a,b) IN ((1,'x'),(NULL,'it''s'))",
                "SELECT a FROM t WHERE (a,b) IN ((?,?),(?,?))",
                "1 x NULL it's",
            ),
            (
                "INSERT INTO t VALUES (1, 2.50), (2, TRUE)",
                "INSERT INTO t VALUES (?,?),(?,?)",
                "1 2.50 2 1",
            ),
            (
                "SELECT a FROM t WHERE b = 1.5 AND c = 1e1 LIMIT 3",
                "SELECT a FROM t WHERE b = 1.5 AND c = ? LIMIT ?",
                "10.0 3",
            ),
            (
                "SELECT a FROM t WHERE d > DATE '2024-01-01' AND e = _latin1 'x' AND f = 7",
                "SELECT a FROM t WHERE d > DATE '2024-01-01' AND e = _latin1 'x' AND f = ?",
                "7",
            ),
            (
                "SELECT a FROM t WHERE b = 'x' 'y' AND c = 1",
                "SELECT a FROM t WHERE b = 'x' 'y' AND c = ?",
                "1",
            ),
            (
                "SELECT a FROM t WHERE f = 1 ORDER BY 2",
                "SELECT a FROM t WHERE f = ? ORDER BY 2",
                "1",
            ),
            (
                "SELECT a FROM t WHERE b IN (1, 2.5)",
                "SELECT a FROM t WHERE b IN (1, 2.5)",
                "",
            ),
        ] {
            assert_eq!(
                shown(text),
                Some((template.to_string(), values.to_string())),
                "{text}"
            );
        }
    }

    #[test]
    fn unpreparable_statements_are_sent_as_text() {
        for text in [
            "SHOW TABLES",
            "SELECT FROM WHERE",
            "SELECT a FROM t WHERE id = ?",
            "SET @a = 1",
            "",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
        let long = format!(
            "SELECT a FROM t WHERE id IN ({})",
            vec!["1"; MAX_PARAMETERS + 1].join(",")
        );
        assert_eq!(shown(&long), None);
    }

    #[test]
    fn statements_of_equal_shape_share_a_template() {
        let (mut templates, mut store) = (Templates::default(), Store::default());
        let mode = LexMode::default;
        let one = templates
            .add(b"SELECT a FROM t WHERE id = 5", mode(), &mut store)
            .expect("prepares");
        let two = templates
            .add(b"SELECT a FROM t WHERE id = 77", mode(), &mut store)
            .expect("prepares");
        let unknown = templates.find(b"SELECT b FROM t WHERE id = 77", mode(), &mut store);
        assert_eq!((unknown, store.values.len()), (None, 2));
        assert_eq!((one.template, two.template, templates.count()), (0, 0, 1));
        assert_ne!(one, two);
    }
}
