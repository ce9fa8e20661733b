//! The components that INSTALL COMPONENT has installed.
//!
//! The only component is `validate_password`. Its variables are always in the table of options;
//! sessions see them while it is installed. The list stands in a file of the data directory, which
//! each change writes anew.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use super::ini::ConfigError;
use super::write_private;

const FILE: &str = "nfold.components";

/// The name of the component that checks passwords, and the prefix of its variables.
pub const VALIDATE_PASSWORD: &str = "validate_password";

/// Where the component that checks passwords is.
pub const VALIDATE_PASSWORD_URN: &str = "file://component_validate_password";

/// An installed component, as `mysql.component` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub id: u64,
    pub group: u64,
    pub urn: String,
}

/// See the module's header.
#[derive(Debug)]
pub struct Components {
    path: PathBuf,
    list: Mutex<List>,
    validates_passwords: AtomicBool,
}

#[derive(Debug, Clone, Default)]
struct List {
    /// The greatest numbers that were given out.
    last: (u64, u64),
    installed: Vec<Installed>,
}

impl Components {
    /// Reads the list of a data directory; without a file it is empty.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(datadir: &Path) -> Result<Components, ConfigError> {
        let path = datadir.join(FILE);
        let wrong = |what: &dyn std::fmt::Display| {
            ConfigError(format!("cannot read {}: {what}", path.display()))
        };
        let list = match std::fs::read(&path) {
            Ok(bytes) => parse(&bytes).ok_or_else(|| wrong(&"it is damaged"))?,
            // Opening the directory itself reports what is wrong with it.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                List::default()
            }
            Err(e) => return Err(wrong(&e)),
        };
        Ok(Components {
            path,
            validates_passwords: AtomicBool::new(has(&list, VALIDATE_PASSWORD_URN)),
            list: Mutex::new(list),
        })
    }

    /// The installed components, ordered by number.
    pub fn installed(&self) -> Vec<Installed> {
        self.list.lock().installed.clone()
    }

    /// Whether passwords are checked.
    pub fn validates_passwords(&self) -> bool {
        self.validates_passwords.load(Ordering::Relaxed)
    }

    /// Whether a variable exists: those of a component do while it is installed.
    pub fn has_variable(&self, name: &str) -> bool {
        !is_component_variable(name) || self.validates_passwords()
    }

    /// Adds `urns` to the list, as one group. `Ok(Some(urn))`: this one is installed, and nothing
    /// changes. Blocks.
    ///
    /// # Errors
    /// The file cannot be written; nothing changes.
    pub fn install(&self, urns: &[String]) -> io::Result<Option<String>> {
        let mut list = self.list.lock();
        let mut changed = list.clone();
        changed.last.1 += 1;
        for urn in urns {
            if has(&changed, urn) {
                return Ok(Some(urn.clone()));
            }
            changed.last.0 += 1;
            changed.installed.push(Installed {
                id: changed.last.0,
                group: changed.last.1,
                urn: urn.clone(),
            });
        }
        self.replace(&mut list, changed)?;
        Ok(None)
    }

    /// Removes `urns` from the list. `Ok(Some(urn))`: this one is not installed, and nothing
    /// changes. Blocks.
    ///
    /// # Errors
    /// The file cannot be written; nothing changes.
    pub fn uninstall(&self, urns: &[String]) -> io::Result<Option<String>> {
        let mut list = self.list.lock();
        let mut changed = list.clone();
        for urn in urns {
            let Some(at) = changed.installed.iter().position(|c| c.urn == *urn) else {
                return Ok(Some(urn.clone()));
            };
            changed.installed.remove(at);
        }
        self.replace(&mut list, changed)?;
        Ok(None)
    }

    fn replace(&self, list: &mut List, changed: List) -> io::Result<()> {
        write_private(&self.path, print(&changed).as_bytes())?;
        *list = changed;
        let validates = has(list, VALIDATE_PASSWORD_URN);
        self.validates_passwords.store(validates, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether a variable belongs to a component.
pub fn is_component_variable(name: &str) -> bool {
    let rest = name.strip_prefix(VALIDATE_PASSWORD);
    rest.is_some_and(|rest| rest.starts_with('.'))
}

fn has(list: &List, urn: &str) -> bool {
    list.installed.iter().any(|c| c.urn == urn)
}

fn parse(bytes: &[u8]) -> Option<List> {
    let document: Json = serde_json::from_slice(bytes).ok()?;
    let component = |c: &Json| {
        Some(Installed {
            id: c["id"].as_u64()?,
            group: c["group"].as_u64()?,
            urn: c["urn"].as_str()?.into(),
        })
    };
    let installed = document["installed"].as_array()?.iter().map(component);
    Some(List {
        last: (
            document["last_id"].as_u64()?,
            document["last_group"].as_u64()?,
        ),
        installed: installed.collect::<Option<_>>()?,
    })
}

fn print(list: &List) -> String {
    let component = |c: &Installed| json!({"id": c.id, "group": c.group, "urn": c.urn});
    let installed: Vec<Json> = list.installed.iter().map(component).collect();
    json!({"last_id": list.last.0, "last_group": list.last.1, "installed": installed}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let first = Components::open(dir.path()).unwrap();
        let urns = [VALIDATE_PASSWORD_URN.to_string()];
        assert!(!first.has_variable("validate_password.length"));
        assert!(first.has_variable("validate_password_length"));
        assert_eq!(first.install(&urns).unwrap(), None);
        assert_eq!(first.install(&urns).unwrap(), Some(urns[0].clone()));
        assert!(first.has_variable("validate_password.length"));
        let second = Components::open(dir.path()).unwrap();
        assert!(second.validates_passwords());
        assert_eq!(second.installed(), first.installed());
        assert_eq!(second.uninstall(&urns).unwrap(), None);
        assert_eq!(second.uninstall(&urns).unwrap(), Some(urns[0].clone()));
        assert_eq!(second.install(&urns).unwrap(), None);
        assert_eq!(
            (second.installed()[0].id, second.installed()[0].group),
            (2, 2)
        );
    }

    #[test]
    fn a_damaged_list_stops_the_start() {
        let dir = tempfile::tempdir().unwrap();
        for text in [
            "",
            "{",
            "{}",
            r#"{"last_id":1,"last_group":1,"installed":[1]}"#,
        ] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            let e = Components::open(dir.path()).unwrap_err();
            assert!(e.to_string().contains(FILE), "{e}");
        }
    }
}
