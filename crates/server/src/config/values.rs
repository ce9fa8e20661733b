//! The values of all options in the order of the table, parsed and checked.

use std::path::PathBuf;

use super::ini::{ConfigError, Line};
use super::persisted::{Entry, SetBy};
use super::table::{self, OPTIONS, OptionDef, OptionKind};

/// The value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Bool(bool),
    Int(u64),
    Signed(i64),
    Real(f64),
    /// `None`: NULL.
    Text(Option<String>),
}

impl Value {
    /// The default.
    pub fn default_of(def: &OptionDef) -> Value {
        match def.kind {
            OptionKind::Bool { default } => Value::Bool(default),
            OptionKind::Int { default, .. } => Value::Int(default),
            OptionKind::Signed { default, .. } => Value::Signed(default),
            OptionKind::Real { default, .. } => Value::Real(default),
            OptionKind::Text { default } => Value::Text(default.map(Into::into)),
            OptionKind::Choice { default, .. } => Value::Text(Some(default.into())),
        }
    }

    /// Parses a value of an option file or the command line; `None`: the name without a value. A
    /// number out of range is an error here, while SET adjusts it.
    pub fn parse(def: &OptionDef, text: Option<&str>) -> Result<Value, String> {
        let Some(text) = text else {
            return match def.kind {
                OptionKind::Bool { .. } => Ok(Value::Bool(true)),
                _ => Err(format!("option '{}' needs a value", def.name)),
            };
        };
        let bad = |what: &str| format!("option '{}': '{text}' is not {what}", def.name);
        match def.kind {
            OptionKind::Bool { .. } => parse_bool(text)
                .map(Value::Bool)
                .ok_or_else(|| bad("ON or OFF")),
            OptionKind::Int { min, max, .. } => {
                let n = parse_size(text).ok_or_else(|| bad("a number"))?;
                if (min..=max).contains(&n) {
                    Ok(Value::Int(n))
                } else {
                    Err(bad(&format!("between {min} and {max}")))
                }
            }
            OptionKind::Signed { min, max, .. } => match text.trim().parse::<i64>() {
                Ok(n) if (min..=max).contains(&n) => Ok(Value::Signed(n)),
                _ => Err(bad(&format!("a number between {min} and {max}"))),
            },
            OptionKind::Real { min, max, .. } => match text.parse::<f64>() {
                Ok(n) if (min..=max).contains(&n) => Ok(Value::Real(n)),
                _ => Err(bad(&format!("a number between {min} and {max}"))),
            },
            OptionKind::Text { .. } => Ok(Value::Text(Some(text.into()))),
            OptionKind::Choice { values, .. } => {
                let word = values.iter().find(|v| v.eq_ignore_ascii_case(text));
                word.map(|w| Value::Text(Some((*w).into())))
                    .ok_or_else(|| bad(&format!("one of {}", values.join(", "))))
            }
        }
    }
}

/// Parses ON, OFF, TRUE, FALSE, YES, NO, 1, 0.
fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Parses an integer with an optional suffix K, M, G, T, P (powers of 1024).
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        (at, 't' | 'T') => (&text[..at], 40),
        (at, 'p' | 'P') => (&text[..at], 50),
        _ => (text, 0),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Where an option's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The default.
    Compiled,
    /// The command line.
    CommandLine,
    /// An option file.
    File(PathBuf),
    /// SET PERSIST or SET PERSIST_ONLY before the server started.
    Persisted(SetBy),
}

/// All values, parallel to [`OPTIONS`].
#[derive(Debug, Clone)]
pub struct Values {
    all: Vec<Value>,
    /// Parallel to `all`.
    sources: Vec<Source>,
    /// Options that were set and have no effect.
    without_effect: Vec<&'static str>,
}

impl Default for Values {
    fn default() -> Self {
        Values {
            all: OPTIONS.iter().map(Value::default_of).collect(),
            sources: vec![Source::Compiled; OPTIONS.len()],
            without_effect: Vec::new(),
        }
    }
}

impl Values {
    /// Sets one option from the text of the command line.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        self.set_from(name, value, &Source::CommandLine)
    }

    fn set_from(&mut self, name: &str, value: Option<&str>, from: &Source) -> Result<(), String> {
        let (at, mut value) = resolve(name, value)?;
        let Some(at) = at else {
            tracing::warn!("option '{name}' is unknown and was marked as loose: ignored");
            return Ok(());
        };
        // `log_bin` may name the files.
        if OPTIONS[at].name == "log_bin"
            && let Some(base) = value.filter(|text| parse_bool(text).is_none())
        {
            if let Some(at) = table::variable("log_bin_basename") {
                self.put(at, &Value::Text(Some(base.into())), from);
            }
            value = Some("ON");
        }
        self.put(at, &Value::parse(&OPTIONS[at], value)?, from);
        if !OPTIONS[at].effective {
            self.without_effect.push(OPTIONS[at].name);
        }
        Ok(())
    }

    /// Sets the option at a position, and its other name.
    fn put(&mut self, at: usize, value: &Value, from: &Source) {
        for at in std::iter::once(at).chain(table::other_name(at)) {
            self.all[at] = value.clone();
            self.sources[at] = from.clone();
        }
    }

    /// Applies the lines of an option file, in order.
    pub fn apply(&mut self, lines: &[Line]) -> Result<(), ConfigError> {
        for l in lines {
            self.set_from(&l.name, l.value.as_deref(), &Source::File(l.file.clone()))
                .map_err(|e| ConfigError(format!("{}:{}: {e}", l.file.display(), l.number)))?;
        }
        Ok(())
    }

    /// Applies stored values. One that this server does not accept is logged and left out, so that
    /// a server of another version starts.
    pub fn apply_persisted(&mut self, stored: &[(String, Entry)]) {
        for (name, entry) in stored {
            let known = table::variable(name).filter(|&at| OPTIONS[at].persisted);
            let parsed = known.map(|at| (at, Value::parse(&OPTIONS[at], Some(&entry.value))));
            match parsed {
                Some((at, Ok(value))) => {
                    self.put(at, &value, &Source::Persisted(entry.by.clone()));
                }
                Some((_, Err(e))) => tracing::warn!("a persisted variable is ignored: {e}"),
                None => tracing::warn!("the persisted variable '{name}' is unknown: ignored"),
            }
        }
    }

    /// Where the values come from, parallel to [`OPTIONS`].
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The names of MySQL's options that were set and have no effect.
    pub fn without_effect(&self) -> &[&'static str] {
        &self.without_effect
    }

    /// The value of an option by name; `None` if it does not exist.
    pub fn get(&self, name: &str) -> Option<&Value> {
        table::find(name).map(|i| &self.all[i])
    }

    /// All options with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static OptionDef, &Value)> {
        OPTIONS.iter().zip(&self.all)
    }

    /// The value of an integer option, or of a choice whose words are numbers.
    ///
    /// # Panics
    /// If the table has no such option of this type: a programming error.
    pub fn int(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Value::Int(n)) => *n,
            Some(Value::Text(Some(s))) if s.parse::<u64>().is_ok() => s.parse().unwrap_or_default(),
            other => panic!("option {name} is no number: {other:?}"),
        }
    }

    /// The value of an ON/OFF option.
    ///
    /// # Panics
    /// As [`Self::int`].
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Bool(b)) => *b,
            other => panic!("option {name} is no switch: {other:?}"),
        }
    }

    /// The text of a variable that no option of its name sets; `None`: unset.
    pub fn text_of_variable(&self, name: &str) -> Option<&str> {
        match &self.all[table::variable(name)?] {
            Value::Text(text) => text.as_deref(),
            _ => None,
        }
    }

    /// The value of a string or choice option; `None`: unset.
    ///
    /// # Panics
    /// As [`Self::int`].
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(s)) => s.as_deref(),
            other => panic!("option {name} is no text: {other:?}"),
        }
    }
}

/// Finds an option and strips prefixes: `skip_x` and `disable_x` switch it off, `enable_x` on, and
/// `loose_x` may be unknown (then the result is `None`).
fn resolve<'v>(
    name: &str,
    value: Option<&'v str>,
) -> Result<(Option<usize>, Option<&'v str>), String> {
    if let Some(at) = table::find(name) {
        return Ok((Some(at), value));
    }
    let plain = name.replace('-', "_").to_ascii_lowercase();
    if let Some(rest) = plain.strip_prefix("loose_") {
        return Ok(resolve(rest, value).unwrap_or((None, value)));
    }
    for (prefix, on) in [("skip_", "OFF"), ("disable_", "OFF"), ("enable_", "ON")] {
        let at = plain.strip_prefix(prefix).and_then(table::find);
        if let Some(at) = at
            && value.is_none()
            && matches!(OPTIONS[at].kind, OptionKind::Bool { .. })
        {
            return Ok((Some(at), Some(on)));
        }
    }
    Err(format!("unknown option '{name}'"))
}
