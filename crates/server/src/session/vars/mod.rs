//! System variables: the options' table, the global values, and each session's own.
//!
//! # Invariants
//! - V1: the table of options has every variable that the server itself reads.
//!
//! # Concurrency
//! [`Globals`] is replaced as a whole under a mutex; a session copies the `Arc` when it begins and again only when it reads or sets
//! a global value. A session's own values are an `Arc` that it copies before its first SET.

mod check;
mod modes;
mod settings;

use std::sync::Arc;

use arc_swap::ArcSwap;
use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, ErrorCode, SqlError, Value};
use parking_lot::Mutex;

use crate::config::table::{self as options, Kind, OPTIONS};
use crate::config::{self, Values};

pub use crate::config::table::{OptionDef as VarDef, Scope};
pub use check::{
    Assigned, check, client_charset, collation_by_name, for_connection, logs_to_files,
};
pub use modes::{ModeSet, parse_modes};
pub use settings::{Settings, isolation_of, isolation_word};

/// A variable's value.
#[derive(Debug, Clone, PartialEq)]
pub enum VarValue {
    Bool(bool),
    Int(u64),
    Real(f64),
    /// `None`: NULL.
    Text(Option<Arc<str>>),
}

impl VarValue {
    /// A text value.
    pub fn text(s: impl Into<Arc<str>>) -> VarValue {
        VarValue::Text(Some(s.into()))
    }

    /// As SHOW VARIABLES shows it.
    pub fn show(&self) -> String {
        match self {
            VarValue::Bool(b) => if *b { "ON" } else { "OFF" }.into(),
            VarValue::Int(n) => n.to_string(),
            VarValue::Real(v) => format!("{v:.6}"),
            VarValue::Text(s) => s.as_deref().unwrap_or_default().into(),
        }
    }

    /// As `@@name` gives it: switches and numbers are numbers.
    pub fn to_value(&self) -> Value {
        match self {
            VarValue::Bool(b) => Value::Int(i64::from(*b)),
            VarValue::Int(n) => Value::UInt(*n),
            VarValue::Real(v) => Value::Double(*v),
            VarValue::Text(None) => Value::Null,
            VarValue::Text(Some(s)) => Value::from(&**s),
        }
    }
}

/// A start-up option that is no variable.
pub const NO_VARIABLE: &str = "ssl";

/// Every variable, in the order of their names; [`NO_VARIABLE`] is among them.
pub fn definitions() -> &'static [VarDef] {
    OPTIONS
}

/// Place of a variable in [`definitions`]; error 1193 where there is none.
pub fn find(name: &str) -> Result<usize, SqlError> {
    options::variable(name)
        .filter(|&at| OPTIONS[at].name != NO_VARIABLE)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_SYSTEM_VARIABLE, &[&name]))
}

/// The place of a variable that the program itself names.
fn known(name: &'static str) -> usize {
    find(name).expect("V1: the table has every variable that the server reads")
}

impl VarDef {
    /// The default.
    pub fn default(&self) -> VarValue {
        match self.kind {
            Kind::Bool { default } => VarValue::Bool(default),
            Kind::Int { default, .. } => VarValue::Int(default),
            Kind::Real { default, .. } => VarValue::Real(default),
            Kind::Text { default } => VarValue::Text(default.map(Into::into)),
            Kind::Choice { default, .. } => choice_value(default),
        }
    }

    /// The type of `@@name`.
    pub fn column_type(&self) -> ColumnType {
        let number = |ty: ColumnType, width: u32| ColumnType { width, ..ty };
        match self.default() {
            VarValue::Bool(_) => number(ColumnType::bigint(), 1),
            VarValue::Int(_) => number(ColumnType::bigint().with_unsigned(), 21),
            VarValue::Real(_) => ColumnType {
                decimals: 6,
                ..number(ColumnType::double(), 23)
            },
            VarValue::Text(_) => ColumnType::varchar(SHOWN_TEXT, CollationId::UTF8MB3_GENERAL_CI),
        }
    }
}

/// Characters that `@@name` of a text is described with: as many as are no BLOB.
const SHOWN_TEXT: u32 = 65_535 / 3;

/// Words that are numbers (`innodb_flush_log_at_trx_commit`) are shown as numbers.
fn choice_value(word: &str) -> VarValue {
    word.parse()
        .map_or_else(|_| VarValue::text(word), VarValue::Int)
}

/// Values of all variables, parallel to [`definitions`].
pub type VarValues = Vec<VarValue>;

/// The global values.
pub struct Globals {
    values: ArcSwap<(VarValues, Settings)>,
    change: Mutex<()>,
    /// What logins have made of them, for the sessions that do the same; the oldest first.
    derived: Mutex<Vec<Derived>>,
}

/// Values that differ from others in a few places.
struct Derived {
    from: Arc<(VarValues, Settings)>,
    changes: Vec<(usize, VarValue)>,
    values: Arc<(VarValues, Settings)>,
}

/// [`Derived`] that are kept.
const MAX_DERIVED: usize = 64;

impl Globals {
    /// From the options the server was started with, and `facts` that it found out itself (by name).
    pub fn new(options: &Values, facts: &[(&'static str, VarValue)]) -> Globals {
        let mut values: VarValues = definitions().iter().map(VarDef::default).collect();
        for (def, value) in options.iter() {
            let Ok(at) = find(def.name) else { continue };
            values[at] = match value {
                config::Value::Bool(b) => VarValue::Bool(*b),
                config::Value::Int(n) => VarValue::Int(*n),
                config::Value::Real(v) => VarValue::Real(*v),
                config::Value::Text(Some(s)) if matches!(def.kind, Kind::Choice { .. }) => {
                    choice_value(s)
                }
                config::Value::Text(s) => VarValue::Text(s.as_deref().map(Into::into)),
            };
        }
        for (name, value) in facts {
            values[known(name)] = value.clone();
        }
        let settings = Settings::of(&values);
        Globals {
            values: ArcSwap::from_pointee((values, settings)),
            change: Mutex::new(()),
            derived: Mutex::default(),
        }
    }

    /// The values as of now.
    pub fn load(&self) -> Arc<(VarValues, Settings)> {
        self.values.load_full()
    }

    /// The typed values, for a look: no reference is counted.
    pub fn with_settings<T>(&self, f: impl FnOnce(&Settings) -> T) -> T {
        f(&self.values.load().1)
    }

    /// A value, for a look: no reference is counted.
    pub fn with_value<T>(&self, at: usize, f: impl FnOnce(&VarValue) -> T) -> T {
        f(&self.values.load().0[at])
    }

    /// Sets one value.
    pub fn set(&self, at: usize, value: VarValue) {
        self.set_all(&[(at, value)]);
    }

    /// Sets several at once.
    pub fn set_all(&self, changes: &[(usize, VarValue)]) {
        let _one = self.change.lock();
        let mut values = self.values.load().0.clone();
        for (at, value) in changes {
            values[*at] = value.clone();
        }
        let settings = Settings::of(&values);
        self.values.store(Arc::new((values, settings)));
        self.derived.lock().clear();
    }

    /// `from` with changes, shared with whoever asked for the same before.
    fn derive(
        &self,
        from: &Arc<(VarValues, Settings)>,
        changes: &[(usize, VarValue)],
    ) -> Arc<(VarValues, Settings)> {
        let mut derived = self.derived.lock();
        let same = |d: &&Derived| Arc::ptr_eq(&d.from, from) && d.changes == changes;
        if let Some(known) = derived.iter().find(same) {
            return known.values.clone();
        }
        let mut own = SessionVars {
            values: from.clone(),
        };
        own.set_all(changes);
        if derived.len() >= MAX_DERIVED {
            derived.remove(0);
        }
        derived.push(Derived {
            from: from.clone(),
            changes: changes.to_vec(),
            values: own.values.clone(),
        });
        own.values
    }
}

/// One session's values.
#[derive(Clone)]
pub struct SessionVars {
    values: Arc<(VarValues, Settings)>,
}

impl SessionVars {
    /// A new session's: the global ones.
    pub fn new(globals: &Globals) -> Self {
        SessionVars {
            values: globals.load(),
        }
    }

    /// The values that the server itself looks at.
    #[inline]
    pub fn settings(&self) -> &Settings {
        &self.values.1
    }

    /// The stored value at a place of [`definitions`].
    pub fn get(&self, at: usize) -> &VarValue {
        &self.values.0[at]
    }

    /// Whether these are its values already.
    fn has(&self, changes: &[(usize, VarValue)]) -> bool {
        changes
            .iter()
            .all(|(at, value)| self.values.0[*at] == *value)
    }

    /// Sets values by place; from then on they are the session's own.
    pub fn set_all(&mut self, changes: &[(usize, VarValue)]) {
        if self.has(changes) {
            return;
        }
        let own = Arc::make_mut(&mut self.values);
        for (at, value) in changes {
            own.0[*at] = value.clone();
        }
        own.1 = Settings::of(&own.0);
    }

    /// As [`Self::set_all`], by name, but what results is shared with the sessions that set the same after the same: nearly all sessions begin
    /// alike, and all their values are 10 KiB.
    pub fn set_shared(&mut self, globals: &Globals, changes: &[(&'static str, VarValue)]) {
        let at: Vec<_> = (changes.iter())
            .map(|(name, value)| (known(name), value.clone()))
            .collect();
        if !self.has(&at) {
            self.values = globals.derive(&self.values, &at);
        }
    }

    /// Sets values that the program names.
    pub fn set_known(&mut self, changes: &[(&'static str, VarValue)]) {
        let at: Vec<_> = (changes.iter())
            .map(|(name, value)| (known(name), value.clone()))
            .collect();
        self.set_all(&at);
    }
}

#[cfg(test)]
mod tests;
