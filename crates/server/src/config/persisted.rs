//! Variables that SET PERSIST and SET PERSIST_ONLY keep across restarts.
//!
//! They stand in `mysqld-auto.cnf` in the data directory, in MySQL's format: a JSON document with
//! one object for variables that SET GLOBAL can change and one for the others. Each change writes
//! the whole file anew. Source: MySQL manual, "Persisted System Variables".

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::{Map, Value as Json, json};

use super::ini::ConfigError;
use super::{table, write_private};

const FILE: &str = "mysqld-auto.cnf";
const DYNAMIC: [&str; 2] = [
    "mysql_dynamic_variables",
    "mysql_dynamic_parse_early_variables",
];
const STATIC: [&str; 2] = [
    "mysql_static_variables",
    "mysql_static_parse_early_variables",
];

/// Who set a variable, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetBy {
    /// Microseconds since 1970.
    pub micros: u64,
    pub user: String,
    pub host: String,
}

/// A stored value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As SHOW VARIABLES shows it.
    pub value: String,
    pub by: SetBy,
}

/// The stored values by name, and their file.
#[derive(Debug)]
pub struct Persisted {
    path: PathBuf,
    entries: Mutex<BTreeMap<String, Entry>>,
}

impl Persisted {
    /// Reads the file of a data directory; a missing one is empty.
    pub fn open(datadir: &Path) -> Result<Persisted, ConfigError> {
        let path = datadir.join(FILE);
        let wrong = |what: &dyn std::fmt::Display| {
            ConfigError(format!("cannot read {}: {what}", path.display()))
        };
        let entries = match std::fs::read(&path) {
            Ok(bytes) => parse(&bytes).map_err(|e| wrong(&e))?,
            // Opening the directory itself reports what is wrong with it.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                BTreeMap::new()
            }
            Err(e) => return Err(wrong(&e)),
        };
        Ok(Persisted {
            path,
            entries: Mutex::new(entries),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All stored values, ordered by name.
    pub fn entries(&self) -> Vec<(String, Entry)> {
        let entries = self.entries.lock();
        entries
            .iter()
            .map(|(name, e)| (name.clone(), e.clone()))
            .collect()
    }

    /// Stores a value. If the file cannot be written, nothing changes.
    pub fn store(&self, name: &str, entry: Entry) -> io::Result<()> {
        self.change(|entries| {
            entries.insert(name.into(), entry);
        })
    }

    /// Removes one value. `Ok(false)`: it is not stored.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        if !self.entries.lock().contains_key(name) {
            return Ok(false);
        }
        self.change(|entries| {
            entries.remove(name);
        })?;
        Ok(true)
    }

    /// Removes all values.
    pub fn clear(&self) -> io::Result<()> {
        self.change(BTreeMap::clear)
    }

    fn change(&self, f: impl FnOnce(&mut BTreeMap<String, Entry>)) -> io::Result<()> {
        let mut entries = self.entries.lock();
        let mut changed = entries.clone();
        f(&mut changed);
        write_private(&self.path, print(&changed).as_bytes())?;
        *entries = changed;
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Result<BTreeMap<String, Entry>, String> {
    let document: Json = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    if document["Version"].as_u64() != Some(2) {
        return Err("it does not have version 2".into());
    }
    let mut entries = BTreeMap::new();
    for group in DYNAMIC.iter().chain(&STATIC) {
        let Some(variables) = document[group].as_object() else {
            continue;
        };
        for (name, variable) in variables {
            let text = |v: &Json| v.as_str().unwrap_or_default().to_string();
            let about = &variable["Metadata"];
            let value = variable["Value"].as_str();
            let entry = Entry {
                value: value.ok_or(format!("'{name}' has no value"))?.into(),
                by: SetBy {
                    micros: about["Timestamp"].as_u64().unwrap_or_default(),
                    user: text(&about["User"]),
                    host: text(&about["Host"]),
                },
            };
            entries.insert(name.clone(), entry);
        }
    }
    Ok(entries)
}

fn print(entries: &BTreeMap<String, Entry>) -> String {
    let mut document = Map::new();
    document.insert("Version".into(), 2.into());
    for (name, entry) in entries {
        let dynamic = table::variable(name).is_some_and(|at| table::OPTIONS[at].dynamic);
        let group = if dynamic { DYNAMIC[0] } else { STATIC[0] };
        let variables = document.entry(group).or_insert_with(|| json!({}));
        variables[name] = json!({
            "Value": entry.value,
            "Metadata": {
                "Host": entry.by.host,
                "User": entry.by.user,
                "Timestamp": entry.by.micros,
            },
        });
    }
    Json::Object(document).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: &str) -> Entry {
        Entry {
            value: value.into(),
            by: SetBy {
                micros: 1_795_843_517_094_436,
                user: "root".into(),
                host: "localhost".into(),
            },
        }
    }

    #[test]
    fn stored_values_are_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let first = Persisted::open(dir.path()).unwrap();
        assert_eq!(first.entries(), []);
        first.store("max_connections", entry("150")).unwrap();
        first.store("back_log", entry("9")).unwrap();
        first.store("sql_mode", entry("\"quoted\", ü")).unwrap();
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        let statics = text.find("mysql_static_variables").unwrap();
        assert!(text[statics..].contains("back_log"), "{text}");
        let second = Persisted::open(dir.path()).unwrap();
        assert_eq!(second.entries(), first.entries());
        assert_eq!(second.entries().len(), 3);
        assert!(second.remove("back_log").unwrap());
        assert!(!second.remove("back_log").unwrap());
        assert_eq!(Persisted::open(dir.path()).unwrap().entries().len(), 2);
        second.clear().unwrap();
        assert_eq!(Persisted::open(dir.path()).unwrap().entries(), []);
    }

    #[test]
    fn the_file_of_a_mysql_server_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"Version": 2,
            "mysql_static_variables": {"back_log": {"Value": "100",
                "Metadata": {"Host": "h", "User": "u", "Timestamp": 5}}},
            "mysql_dynamic_parse_early_variables": {"max_connections": {"Value": "150",
                "Metadata": {"Host": "h", "User": "u", "Timestamp": 6}}}}"#;
        std::fs::write(dir.path().join(FILE), text).unwrap();
        let names = Persisted::open(dir.path()).unwrap().entries();
        let names: Vec<_> = names.iter().map(|(n, e)| (&**n, &*e.value)).collect();
        assert_eq!(names, [("back_log", "100"), ("max_connections", "150")]);
    }

    #[test]
    fn a_damaged_file_stops_the_start() {
        let dir = tempfile::tempdir().unwrap();
        for text in [
            "",
            "{",
            "{\"Version\": 1}",
            "{\"Version\":2,\"mysql_static_variables\":{\"a\":1}}",
        ] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            let e = Persisted::open(dir.path()).unwrap_err();
            assert!(e.to_string().contains(FILE), "{e}");
        }
    }
}
