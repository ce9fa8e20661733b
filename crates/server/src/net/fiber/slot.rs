//! The public state of one connection, and how it is killed: a padded slot for each connection, in
//! a sharded registry.
//!
//! # Concurrency
//! A statement stores only to its own slot. `SHOW PROCESSLIST`, KILL and wakers read it from other
//! threads.
//! - `kill`: set by any thread, cleared by the worker when a statement begins. Relaxed, because the
//!   wake after the store goes through the inbox's mutex.
//! - `command`, `since_us`, `text`: written by the worker. `text` is protected by a sequence lock,
//!   whose count is odd during a write.
//! - `identity`: behind a mutex; written at login, USE and COM_CHANGE_USER only.
//!
//! # Cost
//! A statement stores about ten words plus its first [`TEXT_BYTES`] bytes, without a lock or an
//! allocation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::task::Wake;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::compression::Algorithms;
use super::inbox::{Inbox, Message};
use super::login_failures::LoginFailures;

/// The maximum length of a statement in PROCESSLIST, in bytes.
pub const TEXT_BYTES: usize = 1024;
const WORDS: usize = TEXT_BYTES / 8;
const SHARDS: usize = 64;

/// Whether a KILL ends a statement or a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillKind {
    /// The running statement.
    Query,
    /// The connection.
    Connection,
}

const KILL_NONE: u8 = 0;
const KILL_QUERY: u8 = 1;
const KILL_CONNECTION: u8 = 2;

/// User, host and database as PROCESSLIST shows them.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// `unauthenticated user` until login.
    pub user: String,
    /// `localhost`, or `address:port`.
    pub host: String,
    pub database: Option<String>,
}

/// One row of PROCESSLIST.
#[derive(Debug, Clone)]
pub struct ProcessInfo {
    pub id: u32,
    pub identity: Identity,
    /// `nfold_protocol::consts::com::*`; SLEEP when idle.
    pub command: u8,
    /// The time in the current command, in microseconds.
    pub elapsed_us: u64,
    /// The first [`TEXT_BYTES`] of the current statement.
    pub text: Option<Vec<u8>>,
}

/// Identifies a connection of one worker. It is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Token(u64);

impl Token {
    pub const INBOX: mio::Token = mio::Token(usize::MAX);

    pub fn new(index: u32, generation: u32) -> Self {
        Token(u64::from(generation) << 32 | u64::from(index))
    }

    pub fn index(self) -> usize {
        self.0 as u32 as usize
    }

    pub fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub fn to_mio(self) -> mio::Token {
        mio::Token(self.0 as usize)
    }

    pub fn from_mio(t: mio::Token) -> Self {
        Token(t.0 as u64)
    }
}

/// The fields that a statement uses are in the first cache line.
#[repr(C, align(128))]
pub(crate) struct ConnSlot {
    pub id: u32,
    kill: AtomicU8,
    command: AtomicU8,
    since_us: AtomicU64,
    text_version: AtomicU32,
    text_len: AtomicU32,
    /// The number of the text in `text`, even between statements; 0 if it has none.
    text_number: AtomicU64,
    text: Box<[AtomicU64; WORDS]>,
    token: Token,
    inbox: Arc<Inbox>,
    identity: Mutex<Identity>,
}

impl ConnSlot {
    pub fn new(id: u32, token: Token, inbox: Arc<Inbox>, host: String) -> Self {
        ConnSlot {
            id,
            token,
            inbox,
            kill: AtomicU8::new(KILL_NONE),
            command: AtomicU8::new(0),
            since_us: AtomicU64::new(0),
            text_version: AtomicU32::new(0),
            text_len: AtomicU32::new(0),
            text_number: AtomicU64::new(0),
            text: Box::new([const { AtomicU64::new(0) }; WORDS]),
            identity: Mutex::new(Identity {
                user: "unauthenticated user".into(),
                host,
                database: None,
            }),
        }
    }

    /// The pending KILL, if there is one.
    #[inline]
    pub fn killed(&self) -> Option<KillKind> {
        match self.kill.load(Ordering::Relaxed) {
            KILL_NONE => None,
            KILL_QUERY => Some(KillKind::Query),
            _ => Some(KillKind::Connection),
        }
    }

    fn kill(&self, kind: KillKind) {
        match kind {
            KillKind::Connection => self.kill.store(KILL_CONNECTION, Ordering::Relaxed),
            KillKind::Query => {
                let _ = self.kill.compare_exchange(
                    KILL_NONE,
                    KILL_QUERY,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
            }
        }
        self.wake_worker();
    }

    fn wake_worker(&self) {
        self.inbox.push(Message::Wake(self.token));
    }

    /// The slot of the same connection at another worker. Holders of the old slot do not reach it.
    pub fn moved(&self, token: Token, inbox: Arc<Inbox>) -> ConnSlot {
        let identity = self.identity.lock().clone();
        let slot = ConnSlot::new(self.id, token, inbox, String::new());
        slot.since_us
            .store(self.since_us.load(Ordering::Relaxed), Ordering::Relaxed);
        *slot.identity.lock() = identity;
        slot
    }

    /// When the current statement began, or the last one ended, in microseconds since the server
    /// started.
    pub fn since_us(&self) -> u64 {
        self.since_us.load(Ordering::Relaxed)
    }

    /// Starts a statement. A KILL QUERY of an earlier statement is ignored.
    #[inline]
    pub fn begin(&self, command: u8, now_us: u64, text: &[u8]) {
        if self.kill.load(Ordering::Relaxed) == KILL_QUERY {
            let _ = self.kill.compare_exchange(
                KILL_QUERY,
                KILL_NONE,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        self.set_text(text, 0);
        self.since_us.store(now_us, Ordering::Relaxed);
        self.command.store(command, Ordering::Relaxed);
    }

    /// Marks the connection as idle.
    #[inline]
    pub fn end(&self, now_us: u64) {
        self.command.store(0, Ordering::Relaxed);
        self.since_us.store(now_us, Ordering::Relaxed);
        self.text_len.store(0, Ordering::Relaxed);
    }

    /// Sets the text. `number` identifies it (0: unknown); a text that is there already is not
    /// copied again.
    #[inline]
    pub fn set_text(&self, text: &[u8], number: u64) {
        let len = text.len().min(TEXT_BYTES);
        if len == 0 || number != 0 && number == self.text_number.load(Ordering::Relaxed) {
            self.text_len.store(len as u32, Ordering::Relaxed);
            return;
        }
        self.copy_text(&text[..len]);
        self.text_number.store(number, Ordering::Relaxed);
    }

    fn copy_text(&self, text: &[u8]) {
        let version = self.text_version.load(Ordering::Relaxed);
        self.text_version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, bytes) in self.text.iter().zip(text.chunks(8)) {
            let mut w = [0; 8];
            w[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(w), Ordering::Relaxed);
        }
        self.text_len.store(text.len() as u32, Ordering::Relaxed);
        self.text_version
            .store(version.wrapping_add(2), Ordering::Release);
    }

    /// A consistent copy of the text, unless it is being written.
    fn text(&self) -> Option<Vec<u8>> {
        for _ in 0..100 {
            let before = self.text_version.load(Ordering::Acquire);
            let len = (self.text_len.load(Ordering::Relaxed) as usize).min(TEXT_BYTES);
            let mut out = Vec::with_capacity(len + 8);
            for word in self.text.iter().take(len.div_ceil(8)) {
                out.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.text_version.load(Ordering::Relaxed) == before {
                out.truncate(len);
                return (len > 0).then_some(out);
            }
            std::hint::spin_loop();
        }
        None
    }

    pub fn set_identity(&self, user: &str, database: Option<&str>) {
        let mut i = self.identity.lock();
        i.user = user.into();
        i.database = database.map(Into::into);
    }

    pub fn set_database(&self, database: Option<&str>) {
        self.identity.lock().database = database.map(Into::into);
    }

    fn info(&self, now_us: u64) -> ProcessInfo {
        ProcessInfo {
            id: self.id,
            identity: self.identity.lock().clone(),
            command: self.command.load(Ordering::Relaxed),
            elapsed_us: now_us.saturating_sub(self.since_us.load(Ordering::Relaxed)),
            text: self.text(),
        }
    }
}

impl Wake for ConnSlot {
    fn wake(self: Arc<Self>) {
        self.wake_worker();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_worker();
    }
}

/// All connections of the server, by id. Used when a connection opens or closes, by KILL and by
/// PROCESSLIST.
pub struct Registry {
    shards: [Mutex<FxHashMap<u32, Arc<ConnSlot>>>; SHARDS],
    next_id: AtomicU32,
    count: AtomicUsize,
    most: AtomicUsize,
    start: Instant,
    tunables: Tunables,
    login_failures: LoginFailures,
}

/// The minimum for a statement's memory limit.
const MIN_STATEMENT_MEMORY: u64 = 1 << 20;

/// Settings of the workers that SET GLOBAL changes at run time.
pub struct Tunables {
    max_connections: AtomicUsize,
    connect_timeout_s: AtomicU64,
    require_secure_transport: AtomicBool,
    server_memory: AtomicU64,
    compression: Mutex<Algorithms>,
}

impl Default for Tunables {
    fn default() -> Self {
        Tunables {
            max_connections: AtomicUsize::new(151),
            connect_timeout_s: AtomicU64::new(10),
            require_secure_transport: AtomicBool::new(false),
            server_memory: AtomicU64::new(u64::MAX),
            compression: Mutex::default(),
        }
    }
}

impl Tunables {
    pub fn max_connections(&self) -> usize {
        self.max_connections.load(Ordering::Relaxed)
    }

    pub fn set_max_connections(&self, n: usize) {
        self.max_connections.store(n, Ordering::Relaxed);
    }

    pub fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.connect_timeout_s.load(Ordering::Relaxed))
    }

    pub fn set_connect_timeout(&self, timeout: Duration) {
        self.connect_timeout_s
            .store(timeout.as_secs(), Ordering::Relaxed);
    }

    pub fn require_secure_transport(&self) -> bool {
        self.require_secure_transport.load(Ordering::Relaxed)
    }

    /// How clients may compress.
    pub fn compression(&self) -> Algorithms {
        *self.compression.lock()
    }

    pub fn set_compression(&self, algorithms: Algorithms) {
        *self.compression.lock() = algorithms;
    }

    /// The memory limit of the server besides its page frames, in bytes.
    pub fn server_memory(&self) -> u64 {
        self.server_memory.load(Ordering::Relaxed)
    }

    pub fn set_server_memory(&self, bytes: u64) {
        self.server_memory.store(bytes, Ordering::Relaxed);
    }

    /// The memory limit of a statement: `own` bytes, or for 0 half of the server's limit.
    #[inline]
    pub fn statement_memory(&self, own: u64) -> i64 {
        let bytes = match own {
            0 => self.server_memory() / 2,
            own => own,
        };
        bytes.clamp(MIN_STATEMENT_MEMORY, i64::MAX as u64) as i64
    }

    pub fn set_require_secure_transport(&self, on: bool) {
        self.require_secure_transport.store(on, Ordering::Relaxed);
    }
}

impl Default for Registry {
    fn default() -> Self {
        Registry {
            shards: std::array::from_fn(|_| Mutex::default()),
            next_id: AtomicU32::new(1),
            count: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            tunables: Tunables::default(),
            login_failures: LoginFailures::default(),
            start: Instant::now(),
        }
    }
}

impl Registry {
    fn shard(&self, id: u32) -> &Mutex<FxHashMap<u32, Arc<ConnSlot>>> {
        &self.shards[id as usize % SHARDS]
    }

    /// Microseconds since the server started.
    pub(crate) fn us(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_micros() as u64
    }

    /// An id that no open connection has.
    pub(crate) fn new_id(&self) -> u32 {
        loop {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            if id != 0 && !self.shard(id).lock().contains_key(&id) {
                return id;
            }
        }
    }

    /// Counts a new socket. The result includes it.
    pub(crate) fn count_in(&self) -> usize {
        let n = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(n, Ordering::Relaxed);
        n
    }

    pub(crate) fn count_out(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, slot: &Arc<ConnSlot>) {
        self.shard(slot.id).lock().insert(slot.id, slot.clone());
    }

    /// Replaces the slot of a connection. A KILL of the old slot applies to the new one.
    pub(crate) fn replace(&self, slot: &Arc<ConnSlot>) {
        let mut shard = self.shard(slot.id).lock();
        let old = shard.insert(slot.id, slot.clone());
        if let Some(kind) = old.and_then(|old| old.killed()) {
            slot.kill(kind);
        }
    }

    pub(crate) fn remove(&self, id: u32) {
        self.shard(id).lock().remove(&id);
    }

    /// Open sockets, including those before login (`Threads_connected`).
    pub fn connections(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The maximum number of sockets open at the same time (`Max_used_connections`).
    pub fn most_connections(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// The number of connections so far (`Connections`).
    pub fn connections_made(&self) -> u64 {
        u64::from(self.next_id.load(Ordering::Relaxed)) - 1
    }

    /// The time since the start (`Uptime`).
    pub fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    /// The failed logins in a row, by account.
    pub fn login_failures(&self) -> &LoginFailures {
        &self.login_failures
    }

    /// The settings that SET GLOBAL changes.
    pub fn tunables(&self) -> &Tunables {
        &self.tunables
    }

    /// Kills a statement or a connection. False: there is no such connection (1094).
    pub fn kill(&self, id: u32, kind: KillKind) -> bool {
        // Under the lock, so that a connection that is changing its slot is not missed.
        let shard = self.shard(id).lock();
        shard.get(&id).inspect(|s| s.kill(kind)).is_some()
    }

    /// The user name of a connection, for checking the privilege to kill it.
    pub fn user_of(&self, id: u32) -> Option<String> {
        let slot = self.shard(id).lock().get(&id).cloned()?;
        let user = slot.identity.lock().user.clone();
        Some(user)
    }

    /// All connections by id, for PROCESSLIST.
    pub fn processes(&self) -> Vec<ProcessInfo> {
        let now = self.us(Instant::now());
        let mut all: Vec<_> = self
            .shards
            .iter()
            .flat_map(|s| s.lock().values().cloned().collect::<Vec<_>>())
            .map(|slot| slot.info(now))
            .collect();
        all.sort_unstable_by_key(|p| p.id);
        all
    }
}
