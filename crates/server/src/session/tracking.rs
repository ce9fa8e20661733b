//! What the client is told of changes of its session's state, in OK packets (CLIENT_SESSION_TRACK).
//!
//! Which changes a client hears of is up to the variables `session_track_%`. A client without the
//! capability, or without changes, costs a test of a flag for each statement and each end of a
//! transaction.
//!
//! Source: page_protocol_basic_ok_packet, session state information.

use std::collections::BTreeSet;

use nfold_protocol::consts::cap;
use nfold_protocol::lenenc::put_bytes;

use super::transaction_info::{Level, Now, TransactionInfo};
use super::vars::{self, SessionVars, VarValue};

/// The kinds of changes (enum_session_state_type).
const SYSTEM_VARIABLE: u8 = 0;
const SCHEMA: u8 = 1;
const STATE_CHANGE: u8 = 2;
const GTIDS: u8 = 3;

/// The only way to write GTIDs: as text.
const GTIDS_AS_TEXT: u8 = 0;

/// What the client is to hear of. The flags are beside the session's other fields, so that a
/// statement without news reads no further line of memory.
#[derive(Debug, Default)]
pub(crate) struct Tracking {
    /// Changes were noted.
    noted: bool,
    /// The client follows its transactions or GTIDs, so each statement may bring news.
    follows: bool,
    /// `None`: the client does not have the capability.
    changes: Option<Box<Changes>>,
}

/// The changes of one statement that the client has not heard of.
#[derive(Debug, Default)]
struct Changes {
    /// `session_track_state_change` was ON before one of them.
    state: bool,
    /// The current database was set, even to itself.
    database: bool,
    /// Names of system variables that were set.
    variables: BTreeSet<&'static str>,
    transaction: TransactionInfo,
    gtids: TrackedGtids,
    /// `session_track_gtids` was set by this statement, so earlier commits do not count.
    gtids_set: bool,
}

/// `session_track_gtids`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TrackedGtids {
    #[default]
    Off,
    /// The GTID of the session's commit.
    Own,
    /// `gtid_executed` after the session's commit.
    All,
}

impl TrackedGtids {
    fn of_word(word: &str) -> TrackedGtids {
        match word {
            "OWN_GTID" => TrackedGtids::Own,
            "ALL_GTIDS" => TrackedGtids::All,
            _ => TrackedGtids::Off,
        }
    }
}

const TRANSACTION_INFO: &str = "session_track_transaction_info";
const TRACK_GTIDS: &str = "session_track_gtids";

impl Tracking {
    /// For a client with these capabilities, whose session starts with these variables.
    pub fn of_client(capabilities: u32, vars: &SessionVars) -> Tracking {
        if capabilities & cap::SESSION_TRACK == 0 {
            return Tracking::default();
        }
        let mut changes = Box::<Changes>::default();
        changes.follow(TRANSACTION_INFO, &shown(vars, TRANSACTION_INFO));
        changes.follow(TRACK_GTIDS, &shown(vars, TRACK_GTIDS));
        changes.gtids_set = false;
        Tracking {
            noted: false,
            follows: changes.follows(),
            changes: Some(changes),
        }
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
        self.note_with(vars, |changes| {
            for (at, value) in assigned {
                let name = vars::definitions()[*at].name;
                changes.variables.insert(name);
                changes.follow(name, &value.show());
            }
        });
    }

    fn note_with(&mut self, vars: &SessionVars, note: impl FnOnce(&mut Changes)) {
        if let Some(changes) = &mut self.changes {
            changes.state |= shown(vars, STATE) == "ON";
            note(changes);
            self.noted = true;
            self.follows = changes.follows();
        }
    }

    /// What the client hears of its transactions; `None`: nothing.
    #[inline]
    pub fn transaction(&mut self) -> Option<&mut TransactionInfo> {
        match self.follows {
            true => self.changes.as_mut().map(|c| &mut c.transaction),
            false => None,
        }
    }

    /// What the client hears of the GTID of a commit since the last call.
    pub fn take_gtids(&mut self) -> TrackedGtids {
        let Some(changes) = &mut self.changes else {
            return TrackedGtids::Off;
        };
        match std::mem::take(&mut changes.gtids_set) {
            true => TrackedGtids::Off,
            false => changes.gtids,
        }
    }

    /// Whether the client may have to be told something.
    #[inline]
    pub fn any(&self) -> bool {
        self.noted || self.follows
    }

    /// Forgets the changes of a statement that failed, of which the client does not hear. What it
    /// hears of its transaction comes with the next statement.
    pub fn forget(&mut self) {
        if let Some(changes) = &mut self.changes {
            self.noted = false;
            changes.take();
        }
    }

    /// Takes the noted changes, encoded for an OK packet; `None`: the client hears of none.
    /// `gtids`: those that it is to hear of. Without `now` it does not hear of its transaction.
    pub fn take(
        &mut self,
        vars: &SessionVars,
        database: Option<&str>,
        (gtids, now): (Option<String>, Option<Now>),
    ) -> Option<Box<[u8]>> {
        let any = self.any();
        let changes = self.changes.as_mut().filter(|_| any)?;
        let mut out = Vec::new();
        if std::mem::take(&mut self.noted) {
            encode(&changes.take(), vars, database, &mut out);
        }
        if let Some(gtids) = gtids {
            let mut entry = vec![GTIDS_AS_TEXT];
            put_bytes(&mut entry, gtids.as_bytes());
            out.push(GTIDS);
            put_bytes(&mut out, &entry);
        }
        if let Some(now) = now {
            changes.transaction.tell(&now, &mut out);
        }
        (!out.is_empty()).then(|| out.into())
    }
}

impl Changes {
    /// A variable is set, or has this value at the start.
    fn follow(&mut self, name: &str, value: &str) {
        match name {
            TRANSACTION_INFO => self.transaction.set_level(Level::of_word(value)),
            TRACK_GTIDS => {
                self.gtids = TrackedGtids::of_word(value);
                self.gtids_set = true;
            }
            _ => {}
        }
    }

    /// Whether the client follows its transactions or GTIDs.
    fn follows(&self) -> bool {
        self.transaction.is_on() || self.gtids != TrackedGtids::Off
    }

    /// Takes what concerns one statement.
    fn take(&mut self) -> Changes {
        Changes {
            state: std::mem::take(&mut self.state),
            database: std::mem::take(&mut self.database),
            variables: std::mem::take(&mut self.variables),
            ..Changes::default()
        }
    }
}

const STATE: &str = "session_track_state_change";

#[cold]
fn encode(changes: &Changes, vars: &SessionVars, database: Option<&str>, out: &mut Vec<u8>) {
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
        put_bytes(out, &entry);
    }
    if changes.database && shown(vars, "session_track_schema") == "ON" {
        let mut entry = Vec::new();
        put_bytes(&mut entry, database.unwrap_or_default().as_bytes());
        out.push(SCHEMA);
        put_bytes(out, &entry);
    }
    if changes.state && shown(vars, STATE) == "ON" {
        out.push(STATE_CHANGE);
        put_bytes(out, b"1");
    }
}

/// A variable's value, as SHOW VARIABLES has it.
fn shown(vars: &SessionVars, name: &str) -> String {
    vars::find(name).map_or(String::new(), |at| vars.get(at).show())
}
