//! What `session_track_transaction_info` tells the client: the state of its transaction, and the
//! statements that would begin an equal one elsewhere.
//!
//! Source: MySQL manual, "Server Tracking of Client Session State", and what a MySQL server sent.

use nfold_protocol::lenenc::put_bytes;
use nfold_sql::ast::IsolationLevel;

/// The kinds of changes (enum_session_state_type).
const CHARACTERISTICS: u8 = 4;
const STATE: u8 = 5;

/// What the transaction has done so far, as bits: in the order of the letters of the state.
pub(crate) mod done {
    /// Rows of a table that takes part in no transaction were read.
    pub const UNSAFE_READ: u8 = 1 << 0;
    pub const READ: u8 = 1 << 1;
    pub const UNSAFE_WRITE: u8 = 1 << 2;
    pub const WRITE: u8 = 1 << 3;
    pub const UNSAFE_STATEMENT: u8 = 1 << 4;
    /// The client has received rows.
    pub const ROWS: u8 = 1 << 5;
    /// Of these, what uses tables.
    pub const ON_TABLES: u8 = UNSAFE_READ | READ | UNSAFE_WRITE | WRITE;
}

const LETTERS: [(u8, u8); 6] = [
    (done::UNSAFE_READ, b'r'),
    (done::READ, b'R'),
    (done::UNSAFE_WRITE, b'w'),
    (done::WRITE, b'W'),
    (done::UNSAFE_STATEMENT, b's'),
    (done::ROWS, b'S'),
];

const NOTHING: [u8; 8] = *b"________";

/// `session_track_transaction_info`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    #[default]
    Off,
    State,
    Characteristics,
}

impl Level {
    pub fn of_word(word: &str) -> Level {
        match word {
            "STATE" => Level::State,
            "CHARACTERISTICS" => Level::Characteristics,
            _ => Level::Off,
        }
    }
}

/// The session's transaction at the end of a statement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Now {
    /// BEGIN or START TRANSACTION has begun the transaction.
    pub explicit: bool,
    /// A transaction without them is open, because of `autocommit = 0`.
    pub implicit: bool,
    pub locks_tables: bool,
    /// What SET TRANSACTION says of the next transaction.
    pub isolation: Option<IsolationLevel>,
    pub read_only: Option<bool>,
}

/// How a transaction was begun explicitly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TransactionStart {
    pub isolation: Option<IsolationLevel>,
    pub read_only: Option<bool>,
    pub consistent_snapshot: bool,
}

/// What is tracked, and what the client has heard of it.
#[derive(Debug, Default)]
pub(crate) struct TransactionInfo {
    level: Level,
    /// Bits of [`done`].
    done: u8,
    begun: TransactionStart,
    told_state: Option<[u8; 8]>,
    /// `None`: the client is to be told in any case.
    told_characteristics: Option<String>,
}

impl TransactionInfo {
    /// Whether the client wants to hear of it.
    pub fn is_on(&self) -> bool {
        self.level > Level::Off
    }

    /// The variable is set.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
        self.told_characteristics = None;
    }

    /// The transaction does something.
    pub fn note(&mut self, done: u8) {
        self.done |= done;
    }

    /// The transaction has ended.
    pub fn ended(&mut self) {
        self.done = 0;
    }

    /// A transaction was begun explicitly.
    pub fn begun(&mut self, begun: TransactionStart) {
        self.begun = begun;
        if begun.consistent_snapshot {
            self.done |= done::READ;
        }
    }

    /// COMMIT AND CHAIN or ROLLBACK AND CHAIN has begun a transaction like the one before it.
    pub fn chained(&mut self, was_explicit: bool) {
        let before = match was_explicit {
            true => self.begun,
            false => TransactionStart::default(),
        };
        self.begun = TransactionStart {
            consistent_snapshot: false,
            ..before
        };
        self.told_characteristics = None;
    }

    /// Appends what the client has not heard of.
    pub fn tell(&mut self, now: &Now, out: &mut Vec<u8>) {
        if !self.is_on() {
            return;
        }
        let state = self.state(now);
        if self.told_state.unwrap_or(NOTHING) != state {
            put(STATE, &state, out);
            self.told_state = Some(state);
        }
        if self.level == Level::Characteristics {
            let text = self.characteristics(now);
            if self.told_characteristics.as_ref() != Some(&text) {
                put(CHARACTERISTICS, text.as_bytes(), out);
                self.told_characteristics = Some(text);
            }
        }
    }

    /// The eight letters of the state.
    fn state(&mut self, now: &Now) -> [u8; 8] {
        let mut state = NOTHING;
        if now.locks_tables {
            state[7] = b'L';
        }
        // A transaction without BEGIN begins when a table is used.
        let uses_tables = self.done & done::ON_TABLES != 0;
        if !(now.explicit || now.implicit && uses_tables) {
            self.done = 0;
            return state;
        }
        state[0] = if now.explicit { b'T' } else { b'I' };
        for (at, (bit, letter)) in LETTERS.into_iter().enumerate() {
            if self.done & bit != 0 {
                state[at + 1] = letter;
            }
        }
        state
    }

    fn characteristics(&self, now: &Now) -> String {
        let (isolation, read_only) = match now.explicit {
            true => (self.begun.isolation, self.begun.read_only),
            false => (now.isolation, now.read_only),
        };
        let mut statements = Vec::new();
        if let Some(isolation) = isolation {
            let words = match isolation {
                IsolationLevel::ReadUncommitted => "READ UNCOMMITTED",
                IsolationLevel::ReadCommitted => "READ COMMITTED",
                IsolationLevel::RepeatableRead => "REPEATABLE READ",
                IsolationLevel::Serializable => "SERIALIZABLE",
            };
            statements.push(format!("SET TRANSACTION ISOLATION LEVEL {words};"));
        }
        let access = read_only.map(|only| if only { "READ ONLY" } else { "READ WRITE" });
        if now.explicit {
            let snapshot = self.begun.consistent_snapshot;
            let snapshot = snapshot.then_some("WITH CONSISTENT SNAPSHOT");
            let parts: Vec<&str> = snapshot.into_iter().chain(access).collect();
            let space = if parts.is_empty() { "" } else { " " };
            statements.push(format!("START TRANSACTION{space}{};", parts.join(", ")));
        } else if let Some(access) = access {
            statements.push(format!("SET TRANSACTION {access};"));
        }
        statements.join(" ")
    }
}

fn put(kind: u8, text: &[u8], out: &mut Vec<u8>) {
    let mut entry = Vec::new();
    put_bytes(&mut entry, text);
    out.push(kind);
    put_bytes(out, &entry);
}
