//! What the client is told of changes of its session's state, in OK packets (CLIENT_SESSION_TRACK).
//!
//! Which changes a client hears of is up to `session_track_schema`,
//! `session_track_system_variables` and `session_track_state_change`. A client without the
//! capability costs a test of one pointer for each statement.
//!
//! Source: page_protocol_basic_ok_packet, session state information.

use std::collections::BTreeSet;

use nfold_protocol::consts::cap;
use nfold_protocol::lenenc::put_bytes;

use super::vars::{self, SessionVars, VarValue};

/// The kinds of changes (enum_session_state_type).
const SYSTEM_VARIABLE: u8 = 0;
const SCHEMA: u8 = 1;
const STATE_CHANGE: u8 = 2;

/// The changes of one statement that the client has not heard of; without the capability, none.
#[derive(Debug)]
pub(crate) struct Tracking(Option<Box<Changes>>);

#[derive(Debug, Default)]
struct Changes {
    any: bool,
    /// `session_track_state_change` was ON before one of them.
    state: bool,
    /// The current database was set, even to itself.
    database: bool,
    /// Names of system variables that were set.
    variables: BTreeSet<&'static str>,
}

impl Tracking {
    /// For a client with these capabilities.
    pub fn of_client(capabilities: u32) -> Tracking {
        Tracking((capabilities & cap::SESSION_TRACK != 0).then(Box::default))
    }

    /// Notes a change. `vars` are as before it.
    pub fn note(&mut self, vars: &SessionVars) {
        self.note_with(vars, |_| {});
    }

    /// Notes that the current database was set.
    pub fn note_database(&mut self, vars: &SessionVars) {
        self.note_with(vars, |changes| changes.database = true);
    }

    /// Notes that variables will be set, by their positions.
    pub fn note_variables(&mut self, vars: &SessionVars, assigned: &[(usize, VarValue)]) {
        let names = assigned.iter().map(|(at, _)| vars::definitions()[*at].name);
        self.note_with(vars, |changes| changes.variables.extend(names));
    }

    fn note_with(&mut self, vars: &SessionVars, note: impl FnOnce(&mut Changes)) {
        if let Some(changes) = &mut self.0 {
            changes.any = true;
            changes.state |= shown(vars, STATE) == "ON";
            note(changes);
        }
    }

    /// Whether changes were noted.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.as_ref().is_some_and(|changes| changes.any)
    }

    /// Takes the noted changes, encoded for an OK packet; `None`: the client hears of none.
    pub fn take(&mut self, vars: &SessionVars, database: Option<&str>) -> Option<Box<[u8]>> {
        let changes = self.0.as_mut().filter(|changes| changes.any)?;
        encode(&std::mem::take(&mut **changes), vars, database)
    }
}

const STATE: &str = "session_track_state_change";

#[cold]
fn encode(changes: &Changes, vars: &SessionVars, database: Option<&str>) -> Option<Box<[u8]>> {
    let mut out = Vec::new();
    let listed = shown(vars, "session_track_system_variables");
    let words: Vec<&str> = listed.split(',').map(str::trim).collect();
    for name in &changes.variables {
        let as_listed = words.iter().find(|word| word.eq_ignore_ascii_case(name));
        let as_listed = match as_listed {
            Some(word) => word,
            None if words.contains(&"*") => name,
            None => continue,
        };
        let mut entry = Vec::new();
        put_bytes(&mut entry, as_listed.as_bytes());
        put_bytes(&mut entry, shown(vars, name).as_bytes());
        out.push(SYSTEM_VARIABLE);
        put_bytes(&mut out, &entry);
    }
    if changes.database && shown(vars, "session_track_schema") == "ON" {
        let mut entry = Vec::new();
        put_bytes(&mut entry, database.unwrap_or_default().as_bytes());
        out.push(SCHEMA);
        put_bytes(&mut out, &entry);
    }
    if changes.state && shown(vars, STATE) == "ON" {
        out.push(STATE_CHANGE);
        put_bytes(&mut out, b"1");
    }
    (!out.is_empty()).then(|| out.into())
}

/// A variable's value, as SHOW VARIABLES has it.
fn shown(vars: &SessionVars, name: &str) -> String {
    vars::find(name).map_or(String::new(), |at| vars.get(at).show())
}
