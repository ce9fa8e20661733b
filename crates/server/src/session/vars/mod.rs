//! System variables: the table of options, the global values, and the values of each session.
//!
//! # Invariants
//! - V1: the table of options has every variable that the server itself reads.
//!
//! # Concurrency
//! [`Globals`] is replaced as a whole under a mutex. A session copies the `Arc` when it starts, and
//! again only when it reads or sets a global value. A session's own values are an `Arc` that is
//! copied before its first SET.

mod check;
mod modes;
mod settings;

use std::sync::Arc;

use arc_swap::ArcSwap;
use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, ErrorCode, SqlError, Value, Warnings};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::config::components::is_component_variable;
use crate::config::table::{self as options, OPTIONS, OptionKind};
use crate::config::{self, SetBy, Values};

pub use crate::config::table::{OptionDef as VarDef, Scope};
pub use check::{
    Assigned, check, client_charset, collation_by_name, for_connection, logs_to_files,
    refuse_adjusted,
};
pub use modes::{ModeSet, parse_modes};
pub use settings::{Settings, isolation_of, isolation_word};

/// A variable's value.
#[derive(Debug, Clone, PartialEq)]
pub enum VarValue {
    Bool(bool),
    Int(u64),
    Signed(i64),
    Real(f64),
    /// `None`: NULL.
    Text(Option<Arc<str>>),
}

impl VarValue {
    /// A text value.
    pub fn text(s: impl Into<Arc<str>>) -> VarValue {
        VarValue::Text(Some(s.into()))
    }

    /// The value in SHOW VARIABLES.
    pub fn show(&self) -> String {
        match self {
            VarValue::Bool(b) => if *b { "ON" } else { "OFF" }.into(),
            VarValue::Int(n) => n.to_string(),
            VarValue::Signed(n) => n.to_string(),
            VarValue::Real(v) => format!("{v:.6}"),
            VarValue::Text(s) => s.as_deref().unwrap_or_default().into(),
        }
    }

    /// The value of `@@name`, in which switches are numbers.
    pub fn to_value(&self) -> Value {
        match self {
            VarValue::Bool(b) => Value::Int(i64::from(*b)),
            VarValue::Int(n) => Value::UInt(*n),
            VarValue::Signed(n) => Value::Int(*n),
            VarValue::Real(v) => Value::Double(*v),
            VarValue::Text(None) => Value::Null,
            VarValue::Text(Some(s)) => Value::from(&**s),
        }
    }
}

/// A start-up option that is no variable.
pub const NO_VARIABLE: &str = "ssl";

/// All variables, in the order of their names, including [`NO_VARIABLE`].
pub fn definitions() -> &'static [VarDef] {
    OPTIONS
}

/// The position of a variable in [`definitions`]. Error 1193 if it does not exist.
pub fn find(name: &str) -> Result<usize, SqlError> {
    options::variable(name)
        .filter(|&at| OPTIONS[at].name != NO_VARIABLE)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_SYSTEM_VARIABLE, &[&name]))
}

/// The position of a variable that the program itself names.
fn known(name: &'static str) -> usize {
    find(name).expect("V1: the table has every variable that the server reads")
}

impl VarDef {
    /// The default.
    pub fn default(&self) -> VarValue {
        match self.kind {
            OptionKind::Bool { default } => VarValue::Bool(default),
            OptionKind::Int { default, .. } => VarValue::Int(default),
            OptionKind::Signed { default, .. } => VarValue::Signed(default),
            OptionKind::Real { default, .. } => VarValue::Real(default),
            OptionKind::Text { default } => VarValue::Text(default.map(Into::into)),
            OptionKind::Choice { default, .. } => choice_value(default),
        }
    }

    /// The type of `@@name`.
    pub fn column_type(&self) -> ColumnType {
        let number = |ty: ColumnType, width: u32| ColumnType { width, ..ty };
        match self.default() {
            VarValue::Bool(_) => number(ColumnType::bigint(), 1),
            VarValue::Int(_) => number(ColumnType::bigint().with_unsigned(), 21),
            VarValue::Signed(_) => number(ColumnType::bigint(), 21),
            VarValue::Real(_) => ColumnType {
                decimals: 6,
                ..number(ColumnType::double(), 23)
            },
            VarValue::Text(_) => ColumnType::varchar(SHOWN_TEXT, CollationId::UTF8MB3_GENERAL_CI),
        }
    }
}

/// The length of a string variable in the description of `@@name`, in characters: the maximum below
/// BLOB.
const SHOWN_TEXT: u32 = 65_535 / 3;

/// The value of a choice. Words that are numbers (`innodb_flush_log_at_trx_commit`) become numbers.
fn choice_value(word: &str) -> VarValue {
    word.parse()
        .map_or_else(|_| VarValue::text(word), VarValue::Int)
}

/// The value of a variable from that of its option.
fn of_option(def: &VarDef, value: &config::Value) -> VarValue {
    match value {
        config::Value::Bool(b) => VarValue::Bool(*b),
        config::Value::Int(n) => VarValue::Int(*n),
        config::Value::Signed(n) => VarValue::Signed(*n),
        config::Value::Real(v) => VarValue::Real(*v),
        config::Value::Text(Some(s)) if matches!(def.kind, OptionKind::Choice { .. }) => {
            choice_value(s)
        }
        config::Value::Text(s) => VarValue::Text(s.as_deref().map(Into::into)),
    }
}

/// A stored value of a variable; `None`: the variable does not accept it.
pub fn of_stored(at: usize, text: &str) -> Option<VarValue> {
    let def = &definitions()[at];
    let value = config::Value::parse(def, Some(text)).ok()?;
    Some(of_option(def, &value))
}

/// The global values of the variables of components.
pub fn of_components(globals: &Globals) -> Vec<(usize, VarValue)> {
    let values = globals.load();
    let all = definitions().iter().enumerate();
    all.filter(|(_, def)| is_component_variable(def.name))
        .map(|(at, _)| (at, values.get(at).clone()))
        .collect()
}

/// The values of all variables: those of a base, and the ones that differ from it.
#[derive(Clone)]
pub struct VarValues {
    /// Parallel to [`definitions`]. Sessions share the one that was global when they began.
    base: Arc<[VarValue]>,
    /// The values that a session has set, ordered by position. A session sets few of some 600.
    own: Vec<(usize, VarValue)>,
    settings: Settings,
}

impl VarValues {
    fn new(base: Arc<[VarValue]>) -> VarValues {
        VarValues {
            settings: Settings::of(|at| &base[at]),
            base,
            own: Vec::new(),
        }
    }

    /// The value at a position of [`definitions`].
    pub fn get(&self, at: usize) -> &VarValue {
        match self.own.binary_search_by_key(&at, |(at, _)| *at) {
            Ok(own) => &self.own[own].1,
            Err(_) => &self.base[at],
        }
    }

    /// Sets values by position.
    fn set(&mut self, changes: &[(usize, VarValue)]) {
        for (at, value) in changes {
            match self.own.binary_search_by_key(at, |(at, _)| *at) {
                Ok(own) => self.own[own].1 = value.clone(),
                Err(own) => self.own.insert(own, (*at, value.clone())),
            }
        }
        self.settings = Settings::of(|at| self.get(at));
    }
}

/// The global values.
pub struct Globals {
    values: ArcSwap<VarValues>,
    change: Mutex<()>,
    /// Values that logins have derived from them, for other sessions that make the same changes;
    /// oldest first.
    derived: Mutex<Vec<Derived>>,
    /// Who has set variables since the server started, by position.
    changed: Mutex<FxHashMap<usize, SetBy>>,
}

/// A set of values that differs from another in a few positions.
struct Derived {
    from: Arc<VarValues>,
    changes: Vec<(usize, VarValue)>,
    values: Arc<VarValues>,
}

/// The maximum number of cached [`Derived`].
const MAX_DERIVED: usize = 64;

/// If only one of `character_set_server` and `collation_server` is configured, sets the other to
/// match.
fn complete_server_charset(options: &Values, values: &mut [VarValue]) {
    let [set, collation] = ["character_set_server", "collation_server"].map(known);
    let configured = |at: usize| options.sources()[at] != config::Source::Compiled;
    let (from, to) = match (configured(set), configured(collation)) {
        (true, false) => (set, collation),
        (false, true) => (collation, set),
        _ => return,
    };
    let given = values[from].to_value();
    let changes = check(&definitions()[from], &given, &mut Warnings::default());
    for (at, value) in changes.unwrap_or_default() {
        if at == to {
            values[at] = value;
        }
    }
}

impl Globals {
    /// The global values: from the server's options, and from `facts` that the server has
    /// determined itself, by name.
    pub fn new(options: &Values, facts: &[(&'static str, VarValue)]) -> Globals {
        let mut values: Vec<VarValue> = definitions().iter().map(VarDef::default).collect();
        for (def, value) in options.iter() {
            let Ok(at) = find(def.name) else { continue };
            values[at] = of_option(def, value);
        }
        for (name, value) in facts {
            values[known(name)] = value.clone();
        }
        complete_server_charset(options, &mut values);
        Globals {
            values: ArcSwap::from_pointee(VarValues::new(values.into())),
            change: Mutex::new(()),
            derived: Mutex::default(),
            changed: Mutex::default(),
        }
    }

    /// The current values.
    pub fn load(&self) -> Arc<VarValues> {
        self.values.load_full()
    }

    /// Calls `f` with the typed values, without counting a reference.
    pub fn with_settings<T>(&self, f: impl FnOnce(&Settings) -> T) -> T {
        f(&self.values.load().settings)
    }

    /// Calls `f` with a value, without counting a reference.
    pub fn with_value<T>(&self, at: usize, f: impl FnOnce(&VarValue) -> T) -> T {
        f(self.values.load().get(at))
    }

    /// Sets one value.
    pub fn set(&self, at: usize, value: VarValue) {
        self.set_all(&[(at, value)]);
    }

    /// Sets several values at once.
    pub fn set_all(&self, changes: &[(usize, VarValue)]) {
        self.set_all_by(changes, None);
    }

    /// As [`Self::set_all`], by a SET of an account.
    pub fn set_all_by(&self, changes: &[(usize, VarValue)], by: Option<&SetBy>) {
        let _one = self.change.lock();
        let mut values = self.values.load().base.to_vec();
        for (at, value) in changes {
            values[*at] = value.clone();
        }
        self.values.store(Arc::new(VarValues::new(values.into())));
        self.derived.lock().clear();
        if let Some(by) = by {
            let changes = changes.iter().map(|(at, _)| (*at, by.clone()));
            self.changed.lock().extend(changes);
        }
    }

    /// Sets several values, as if no SET had changed them since the server started.
    pub fn reset_all(&self, values: &[(usize, VarValue)]) {
        self.set_all(values);
        self.changed
            .lock()
            .retain(|at, _| values.iter().all(|(reset, _)| reset != at));
    }

    /// Who has set the variable at a position since the server started; `None`: unchanged.
    pub fn changed_by(&self, at: usize) -> Option<SetBy> {
        self.changed.lock().get(&at).cloned()
    }

    /// `from` with changes; shared with other sessions that have made the same changes.
    fn derive(&self, from: &Arc<VarValues>, changes: &[(usize, VarValue)]) -> Arc<VarValues> {
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
    values: Arc<VarValues>,
}

impl SessionVars {
    /// The values of a new session, which are the global ones.
    pub fn new(globals: &Globals) -> Self {
        SessionVars {
            values: globals.load(),
        }
    }

    /// The typed values that the server itself uses.
    #[inline]
    pub fn settings(&self) -> &Settings {
        &self.values.settings
    }

    /// The value at a position of [`definitions`].
    pub fn get(&self, at: usize) -> &VarValue {
        self.values.get(at)
    }

    /// Whether the values are set already.
    fn has(&self, changes: &[(usize, VarValue)]) -> bool {
        changes
            .iter()
            .all(|(at, value)| self.values.get(*at) == value)
    }

    /// Sets values by position. From then on the session has its own copy.
    pub fn set_all(&mut self, changes: &[(usize, VarValue)]) {
        if self.has(changes) {
            return;
        }
        Arc::make_mut(&mut self.values).set(changes);
    }

    /// As [`Self::set_all`], by name. The result is shared with sessions that make the same changes
    /// to the same values: most sessions start alike.
    pub fn set_shared(&mut self, globals: &Globals, changes: &[(&'static str, VarValue)]) {
        let at: Vec<_> = (changes.iter())
            .map(|(name, value)| (known(name), value.clone()))
            .collect();
        if !self.has(&at) {
            self.values = globals.derive(&self.values, &at);
        }
    }

    /// Sets values of variables that the program names.
    pub fn set_known(&mut self, changes: &[(&'static str, VarValue)]) {
        let at: Vec<_> = (changes.iter())
            .map(|(name, value)| (known(name), value.clone()))
            .collect();
        self.set_all(&at);
    }
}

#[cfg(test)]
mod tests;
