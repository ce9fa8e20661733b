//! A simulation of the binary log and of a replica: a source and its replica over two simulated
//! disks, in one thread, with power failures and kills of either, decided by a seed.
//!
//! # Picture
//! ```text
//! transactions ─▶ engine A ─ attachments ─▶ Writer ─▶ files ─▶ events ─▶ engine B
//! XA PREPARE, XA COMMIT          SimDisk A                           coordinates, SimDisk B
//!        │                            │ crash                             │ crash
//!      history  ◀──── compare ────────┴────────── compare ────────────────┘
//! ```
//! The rows are those of the dictionary's table: a key is the name of a channel, and its
//! coordinates are the value.
//!
//! # Invariants
//! - S1: after a crash, the files of the source have every acknowledged transaction once and in
//!   order, with the GTIDs from 1 on. At most the transaction that was interrupted is behind them.
//! - S2: its tables and prepared branches are what the files say.
//! - S3: after a crash, the tables and prepared branches of the replica are those of the
//!   transactions that its coordinates name. None is missing in them that was applied before the
//!   last XA PREPARE; later ones were not synced, and the source sends them again.
//! - S4: the position of a replica stays valid over crashes of the source.
//!
//! # Not here
//! The session's statements and row events: `tests/replication` has them.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use nfold_binlog::write::{self, Stamp, query_event};
use nfold_binlog::{
    BranchId, Event, EventReader, Gtid, Header, QueryContext, QueryEvent, SourceUuid, Tag,
    XaPrepareEvent,
};
use nfold_engine::{
    AttachmentReader, ChannelRecord, Disk, Engine, EngineOptions, EngineSession, Isolation,
    PrepareOptions, StoreOptions, TrxOptions, block,
};
use nfold_replica::{BranchStep, Coordinates};
use nfold_store::{SimDisk, SimRng};

use super::semi_sync::SemiSyncOptions;
use super::{
    BASE_NAME, BinaryLog, BinlogOptions, BinlogTunables, FIRST_POSITION, Group, GroupEvents,
    GroupForm, read_events,
};

const UUID: SourceUuid = SourceUuid([7; 16]);
const STAMP: Stamp = Stamp {
    timestamp: 1_700_000_000,
    server_id: 1,
};
const KEYS: u64 = 12;
/// The row of the replica with its coordinates.
const CHANNEL: &str = "";
/// The steps from one start to the next.
const STEPS: u64 = 120;

/// A bug on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Planted {
    None,
    /// The engine's log is given up before the binary log is synced.
    EarlyRelease,
    /// The floor is not stored for an XA transaction at the end of a file.
    MissingFloor,
    /// A branch is prepared or ended before the coordinates know of the step.
    MissingStep,
    /// The end of a branch is in no log record.
    MissingEnd,
    /// The replica's coordinates commit before the changes, in a transaction of their own.
    EarlyCoordinates,
}

type Changes = Vec<(String, String)>;

/// A transaction of the binary log.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Commit(Changes),
    OnePhase(String, Changes),
    Prepare(String, Changes),
    End { name: String, commits: bool },
}

/// What tables and branches contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    rows: BTreeMap<String, String>,
    prepared: BTreeMap<String, Changes>,
}

impl State {
    fn of(entries: &[Entry]) -> State {
        let mut state = State::default();
        entries.iter().for_each(|entry| state.apply(entry));
        state
    }

    fn apply(&mut self, entry: &Entry) {
        match entry.clone() {
            Entry::Commit(changes) | Entry::OnePhase(_, changes) => self.rows.extend(changes),
            Entry::Prepare(name, changes) => drop(self.prepared.insert(name, changes)),
            Entry::End { name, commits } => {
                let changes = self.prepared.remove(&name).unwrap_or_default();
                if commits {
                    self.rows.extend(changes);
                }
            }
        }
    }

    /// Compares with an engine. The rows that a branch has changed are locked, and are compared
    /// after its end.
    fn check(&self, engine: &Engine) -> Result<(), String> {
        let mut names: Vec<String> = engine.prepared_branches().iter().map(|n| text(n)).collect();
        names.sort();
        let expected: Vec<String> = self.prepared.keys().cloned().collect();
        if names != expected {
            return Err(format!(
                "the prepared branches are {names:?}, not {expected:?}"
            ));
        }
        for key in (0..KEYS).map(key).filter(|key| !self.is_locked(key)) {
            let value = engine.channel_record(ChannelRecord::Coordinates, &key);
            let value = value.map_err(|e| e.to_string())?.map(|value| text(&value));
            if value.as_ref() != self.rows.get(&key) {
                let expected = self.rows.get(&key);
                return Err(format!("{key} is {value:?}, not {expected:?}"));
            }
        }
        Ok(())
    }

    fn is_locked(&self, key: &str) -> bool {
        let mut changes = self.prepared.values().flatten();
        changes.any(|(locked, _)| locked == key)
    }
}

fn key(n: u64) -> String {
    format!("k{n}")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn branch(n: u64) -> BranchId {
    BranchId {
        format: 1,
        gtrid: format!("x{n}").into(),
        bqual: Vec::new(),
    }
}

fn query(out: &mut Vec<u8>, sql: String) {
    let event = QueryEvent {
        thread: 1,
        error: 0,
        database: String::new(),
        context: QueryContext::default(),
        sql: sql.into(),
    };
    query_event(out, STAMP, &event);
}

/// The events of a transaction. The text of a ROWS_QUERY is a change.
fn events_of(entry: &Entry, n: u64) -> (GroupForm, Vec<u8>) {
    let mut events = Vec::new();
    let rows = |events: &mut Vec<u8>, changes: &Changes| {
        for (key, value) in changes {
            write::rows_query(events, STAMP, format!("{key}={value}").as_bytes());
        }
    };
    let mut form = GroupForm::Xa;
    match entry {
        Entry::Commit(changes) => {
            form = GroupForm::Changes;
            query(&mut events, "BEGIN".into());
            rows(&mut events, changes);
        }
        Entry::OnePhase(name, changes) | Entry::Prepare(name, changes) => {
            query(&mut events, format!("XA START {name}"));
            rows(&mut events, changes);
            query(&mut events, format!("XA END {name}"));
            let one_phase = matches!(entry, Entry::OnePhase(..));
            let branch = branch(n);
            write::xa_prepare(&mut events, STAMP, &XaPrepareEvent { one_phase, branch });
        }
        Entry::End { name, commits } => {
            let verb = if *commits { "COMMIT" } else { "ROLLBACK" };
            query(&mut events, format!("XA {verb} {name}"));
        }
    }
    (form, events)
}

/// The bytes that the commit of a transaction carries. `is_large`: its events lie in a file.
fn attachment(log: &BinaryLog, entry: &Entry, n: u64, is_large: bool) -> Result<Vec<u8>, String> {
    let (form, events) = events_of(entry, n);
    let mut group = Group {
        form,
        server_id: 1,
        commit_us: n,
        gtid: None,
        events: GroupEvents::Here(&events),
    };
    let stored = match is_large {
        true => Some(log.store_large(&events).map_err(|e| e.to_string())?),
        false => None,
    };
    if let Some(name) = &stored {
        group.events = GroupEvents::InFile(name);
    }
    Ok(group.encode())
}

/// A transaction as a replica reads it.
struct Received {
    entry: Entry,
    number: u64,
    /// The file and the position behind it.
    end: (u64, u64),
}

/// Reads the published transactions behind a position.
fn received(log: &BinaryLog, mut at: (u64, u64)) -> Result<Vec<Received>, String> {
    let mut all = Vec::new();
    let mut reader = EventReader::new(true);
    let (mut gtid, mut changes, mut name) = (0, Changes::new(), None);
    for (number, file) in log.files() {
        if number < at.0 {
            continue;
        }
        if number > at.0 {
            at = (number, FIRST_POSITION);
        }
        let opened = log.open_file(number).map_err(|e| e.to_string())?;
        while at.1 < file.bytes {
            let chunk = read_events(&*opened, at.1, file.bytes).map_err(|e| e.to_string())?;
            let mut rest = &chunk[..];
            while let Ok(header) = Header::read(rest) {
                let (bytes, behind) = rest.split_at((header.size as usize).min(rest.len()));
                let (_, event) = reader.read(bytes).map_err(|e| format!("{at:?}: {e}"))?;
                (at.1, rest) = (at.1 + bytes.len() as u64, behind);
                let mut entry = None;
                match event {
                    Event::Gtid(g) => match g.gtid {
                        Some(Gtid::MySql { number, .. }) => gtid = number,
                        other => return Err(format!("the GTID {other:?}")),
                    },
                    Event::RowsQuery(change) => {
                        let change = text(&change);
                        let pair = change.split_once('=').ok_or("a change")?;
                        changes.push((pair.0.into(), pair.1.into()));
                    }
                    Event::Query(q) => {
                        let sql = text(&q.sql);
                        let ended = |verb| sql.strip_prefix(verb).map(str::to_owned);
                        if let Some(branch) = ended("XA START ") {
                            name = Some(branch);
                        } else if let Some(name) = ended("XA COMMIT ") {
                            let commits = true;
                            entry = Some(Entry::End { name, commits });
                        } else if let Some(name) = ended("XA ROLLBACK ") {
                            let commits = false;
                            entry = Some(Entry::End { name, commits });
                        }
                    }
                    Event::Xid(_) => entry = Some(Entry::Commit(std::mem::take(&mut changes))),
                    Event::XaPrepare(end) => {
                        let name = name.take().unwrap_or_default();
                        let changes = std::mem::take(&mut changes);
                        entry = Some(match end.one_phase {
                            true => Entry::OnePhase(name, changes),
                            false => Entry::Prepare(name, changes),
                        });
                    }
                    Event::FormatDescription(_)
                    | Event::PreviousGtids(_)
                    | Event::Rotate { .. }
                    | Event::Stop => {}
                    other => return Err(format!("{at:?}: the event {other:?}")),
                }
                all.extend(entry.map(|entry| Received {
                    entry,
                    number: gtid,
                    end: at,
                }));
            }
        }
    }
    Ok(all)
}

/// The panic payload of a simulated death.
struct Died;

fn engine_on(disk: &SimDisk, reader: Option<Arc<BinaryLog>>) -> Result<Arc<Engine>, String> {
    let store = StoreOptions {
        pool_bytes: 128 * 16384,
        pool_max_bytes: 128 * 16384,
        log_bytes: 4 << 20,
        log_buffer_bytes: 1 << 19,
        extend_bytes: 1 << 17,
        fatal: Some(Arc::new(|_| resume_unwind(Box::new(Died)))),
        attachments: reader.map(|log| log as Arc<dyn AttachmentReader>),
        ..StoreOptions::default()
    };
    let options = EngineOptions {
        store,
        flush_at_commit: 1,
        build_memory: 1 << 20,
    };
    let opened = Engine::open(options, Arc::new(disk.clone()), &|_| {});
    Ok(opened.map_err(|e| format!("opening: {e}"))?.0)
}

fn begin(engine: &Engine) -> Result<EngineSession, String> {
    let mut session = engine.session(1).map_err(|e| e.to_string())?;
    session.begin(TrxOptions {
        isolation: Isolation::ReadCommitted,
        read_only: false,
        consistent_snapshot: false,
    });
    Ok(session)
}

/// Runs a transaction in an engine. `attached` are the bytes for the binary log, `coordinates`
/// those that a commit writes; a replica's commits are synced behind them.
fn execute(
    engine: &Engine,
    entry: &Entry,
    attached: Option<Vec<u8>>,
    coordinates: Option<&Coordinates>,
) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("{entry:?}: {e}");
    let logged = attached.is_some();
    match entry {
        Entry::Commit(changes) | Entry::OnePhase(_, changes) | Entry::Prepare(_, changes) => {
            let mut session = begin(engine)?;
            for (key, value) in changes {
                let put = engine.put_coordinates(&mut session, key, value.as_bytes());
                put.map_err(|e| failed(&e))?;
            }
            if let Some(at) = coordinates {
                let mut data = Vec::new();
                at.store(&mut data);
                let put = engine.put_coordinates(&mut session, CHANNEL, &data);
                put.map_err(|e| failed(&e))?;
            }
            if !logged {
                session.sync_behind();
            }
            attached.into_iter().for_each(|bytes| session.attach(bytes));
            let Entry::Prepare(name, _) = entry else {
                return block(|| session.commit()).map_err(|e| failed(&e));
            };
            let claimed = engine.claim_branch(name.as_bytes());
            let claimed = claimed.ok_or_else(|| failed(&"the name is in use"))?;
            let attached = false;
            let options = PrepareOptions { attached, logged };
            block(|| session.prepare(&claimed, options)).map_err(|e| failed(&e))
        }
        Entry::End { name, commits } => {
            let mut session = engine.session(1).map_err(|e| failed(&e))?;
            if !session.resume_branch(engine, name.as_bytes(), false) {
                return Err(failed(&"the branch is unknown"));
            }
            if !logged {
                session.sync_behind();
            }
            attached.into_iter().for_each(|bytes| session.attach(bytes));
            let ended = block(|| match commits {
                true => session.commit_branch(),
                false => session.rollback_branch(),
            });
            ended.map_err(|e| failed(&e))
        }
    }
}

struct World {
    rng: SimRng,
    source: SimDisk,
    replica: SimDisk,
    planted: Planted,
    /// The acknowledged transactions of the source.
    history: Vec<Entry>,
    /// The transaction that is being executed.
    interrupted: Option<Entry>,
    /// The transactions of it that the replica has applied.
    applied: u64,
    /// Those of them that are durable on the replica.
    durable: u64,
    /// A number for each transaction.
    next: u64,
    crashes: u32,
}

impl World {
    fn run(seed: u64, crashes: u32, planted: Planted) -> Result<World, String> {
        let mut world = World {
            rng: SimRng::new(seed),
            source: SimDisk::new(),
            replica: SimDisk::new(),
            planted,
            history: Vec::new(),
            interrupted: None,
            applied: 0,
            durable: 0,
            next: 0,
            crashes: 0,
        };
        while world.crashes < crashes {
            match world.rng.below(3) {
                0 => world.source.fail_power_after(20 + world.rng.below(900)),
                1 => world.replica.fail_power_after(20 + world.rng.below(900)),
                _ => {}
            }
            world.run_to_crash(false)?;
        }
        world.run_to_crash(true)?;
        Ok(world)
    }

    /// Both sides run until one of them dies; the other is killed.
    fn run_to_crash(&mut self, is_last: bool) -> Result<(), String> {
        let lived = catch_unwind(AssertUnwindSafe(|| self.run_both(is_last)));
        let dead = self.source.is_dead() || self.replica.is_dead();
        match lived {
            Ok(Ok(())) => {}
            _ if dead => {}
            Ok(Err(what)) => return Err(format!("{what} [crash {}]", self.crashes)),
            Err(payload) => resume_unwind(payload),
        }
        for disk in [&mut self.source, &mut self.replica] {
            *disk = match disk.is_dead() || self.rng.one_in(4) {
                true => disk.crash(self.rng.next_u64()),
                false => disk.kill(),
            };
        }
        self.crashes += 1;
        Ok(())
    }

    fn run_both(&mut self, is_last: bool) -> Result<(), String> {
        let (log, source) = self.open_source()?;
        let (replica, mut at) = self.open_replica()?;
        let steps = if is_last { 40 } else { STEPS };
        for _ in 0..steps {
            match self.rng.below(12) {
                0..5 => self.change(&log, &source)?,
                5..8 => self.write(&log, &source)?,
                8 | 9 => {
                    let count = 1 + self.rng.below(6);
                    self.apply(&log, &replica, &mut at, count)?;
                }
                10 => self.sync(&log, &source)?,
                _ => self.background(&log, &source, &replica)?,
            }
        }
        if is_last {
            self.write(&log, &source)?;
            self.apply(&log, &replica, &mut at, u64::MAX)?;
            let end = State::of(&self.history);
            end.check(&source)?;
            end.check(&replica)?;
            if self.applied != self.history.len() as u64 {
                return Err(format!("{} transactions are applied", self.applied));
            }
        }
        Ok(())
    }

    /// Opens the source, and compares it with the history (S1, S2).
    fn open_source(&mut self) -> Result<(Arc<BinaryLog>, Arc<Engine>), String> {
        let options = BinlogOptions {
            base_name: BASE_NAME.into(),
            uuid: UUID,
            server_version: "9.7.0".into(),
            gtids: true,
            tunables: BinlogTunables {
                server_id: 1,
                checksums: true,
                max_bytes: 6 << 10,
                expire_s: 0,
                semi_sync: SemiSyncOptions::default(),
            },
        };
        let disk: Arc<dyn Disk> = Arc::new(self.source.clone());
        let log = BinaryLog::open(&disk, options, true).map_err(|e| format!("the log: {e}"))?;
        let log = log.ok_or("there is no binary log")?;
        let engine = engine_on(&self.source, Some(log.clone()))?;
        log.begin().map_err(|e| e.to_string())?;
        let found = received(&log, (0, FIRST_POSITION))?;
        for (n, one) in (1..).zip(&found) {
            if one.number != n {
                return Err(format!("transaction {n} has the GTID {}", one.number));
            }
        }
        let found: Vec<Entry> = found.into_iter().map(|one| one.entry).collect();
        if let Some(entry) = self.interrupted.take()
            && found.len() > self.history.len()
        {
            self.history.push(entry);
        }
        if found != self.history {
            let same = found.iter().zip(&self.history);
            let same = same.take_while(|(a, b)| a == b).count();
            return Err(format!(
                "the binary log has {} transactions, not {}; number {same} is {:?}, not {:?}",
                found.len(),
                self.history.len(),
                found.get(same),
                self.history.get(same)
            ));
        }
        State::of(&self.history).check(&engine)?;
        Ok((log, engine))
    }

    /// Opens the replica, and compares it with what its coordinates say (S3).
    fn open_replica(&mut self) -> Result<(Arc<Engine>, Coordinates), String> {
        let engine = engine_on(&self.replica, None)?;
        let stored = engine.channel_record(ChannelRecord::Coordinates, CHANNEL);
        let at = match stored.map_err(|e| e.to_string())? {
            Some(data) => Coordinates::load(&data).map_err(|e| e.to_string())?,
            None => Coordinates::default(),
        };
        let prepared = engine.prepared_branches();
        let at = at.resolve(|name| prepared.iter().any(|branch| **branch == *name));
        let applied = at.gtids.highest(UUID);
        if applied < self.durable || applied > self.applied + 1 {
            let known = (self.durable, self.applied);
            return Err(format!("the replica has applied {applied}, not {known:?}"));
        }
        (self.applied, self.durable) = (applied, applied);
        let state = State::of(&self.history[..applied as usize]);
        state
            .check(&engine)
            .map_err(|e| format!("the replica: {e}"))?;
        self.store(&engine, &at)?;
        Ok((engine, at))
    }

    /// Executes a transaction on the source.
    fn change(&mut self, log: &BinaryLog, engine: &Engine) -> Result<(), String> {
        self.next += 1;
        let (n, state) = (self.next, State::of(&self.history));
        let mut changes = Changes::new();
        for _ in 0..1 + self.rng.below(3) {
            let key = key(self.rng.below(KEYS));
            if !state.is_locked(&key) && changes.iter().all(|(other, _)| *other != key) {
                let length = if self.rng.one_in(5) { 3000 } else { 10 };
                let pad = "p".repeat(self.rng.below(length) as usize);
                changes.push((key, format!("{n}:{pad}")));
            }
        }
        let name = branch(n).to_string();
        let count = state.prepared.len() as u64;
        let entry = match self.rng.below(6) {
            0 | 1 if count > 0 => {
                let name = state.prepared.keys().nth(self.rng.below(count) as usize);
                Entry::End {
                    name: name.cloned().unwrap_or_default(),
                    commits: !self.rng.one_in(3),
                }
            }
            _ if changes.is_empty() => return Ok(()),
            0..4 if count < 4 => Entry::Prepare(name, changes),
            4 => Entry::OnePhase(name, changes),
            _ => Entry::Commit(changes),
        };
        self.interrupted = Some(entry.clone());
        let is_end = matches!(entry, Entry::End { .. });
        let attached = attachment(log, &entry, n, self.rng.one_in(8))?;
        let forgets = self.planted == Planted::MissingEnd && is_end;
        execute(engine, &entry, Some(attached).filter(|_| !forgets), None)?;
        self.interrupted = None;
        self.history.push(entry);
        Ok(())
    }

    /// A step of the thread `nfold-binlog`.
    fn write(&mut self, log: &BinaryLog, engine: &Engine) -> Result<(), String> {
        let mut writer = log.writer.lock();
        let written = log.append_ready(&mut writer, engine);
        written.map_err(|e| format!("writing: {e}"))?;
        if self.planted == Planted::EarlyRelease {
            engine.attachments().release(writer.commit);
        }
        Ok(())
    }

    fn sync(&mut self, log: &BinaryLog, engine: &Engine) -> Result<(), String> {
        let mut writer = log.writer.lock();
        if self.planted == Planted::MissingFloor {
            writer.unnumbered = false;
        }
        let synced = log.sync(&mut writer, engine);
        synced.map_err(|e| format!("syncing: {e}"))
    }

    fn background(
        &mut self,
        log: &BinaryLog,
        source: &Engine,
        replica: &Engine,
    ) -> Result<(), String> {
        let engine = if self.rng.one_in(3) { replica } else { source };
        match self.rng.below(5) {
            0 => log.rotate().map_err(|e| format!("rotating: {e}")),
            1 | 2 => engine.checkpoint().map_err(|e| format!("checkpoint: {e}")),
            3 => {
                // A transaction that is not in the binary log.
                let changes = vec![("other".to_owned(), "o".repeat(4000))];
                execute(engine, &Entry::Commit(changes), None, None)
            }
            _ => {
                let stepped = engine.step_background();
                stepped.map(drop).map_err(|e| format!("background: {e}"))
            }
        }
    }

    fn store(&self, engine: &Engine, at: &Coordinates) -> Result<(), String> {
        let mut data = Vec::new();
        at.store(&mut data);
        let stored = engine.put_coordinates_alone(CHANNEL, &data);
        stored.map_err(|e| format!("the coordinates: {e}"))
    }

    /// Applies published transactions on the replica, as its channel does.
    fn apply(
        &mut self,
        log: &BinaryLog,
        engine: &Engine,
        at: &mut Coordinates,
        count: u64,
    ) -> Result<(), String> {
        let file = log.names.number(&at.file).unwrap_or(0);
        let position = at.position.max(FIRST_POSITION);
        let received = received(log, (file, position))?;
        for one in received.into_iter().take(count as usize) {
            let mut after = at.clone();
            after.file = log.names.file(one.end.0);
            after.position = one.end.1;
            let number = one.number;
            after.gtids.add(&Gtid::MySql {
                uuid: UUID,
                tag: Tag::default(),
                number,
            });
            let expected = self.history.get(self.applied as usize);
            if expected != Some(&one.entry) || number != self.applied + 1 {
                let applied = self.applied;
                return Err(format!("{:?} follows {applied} transactions", one.entry));
            }
            match &one.entry {
                Entry::Commit(_) | Entry::OnePhase(..) => {
                    let early = self.planted == Planted::EarlyCoordinates;
                    if early {
                        self.store(engine, &after)?;
                    }
                    let own = Some(&after).filter(|_| !early);
                    execute(engine, &one.entry, None, own)?;
                }
                Entry::Prepare(name, _) | Entry::End { name, .. } => {
                    let step = BranchStep {
                        prepares: matches!(one.entry, Entry::Prepare(..)),
                        branch: name.clone().into(),
                        after: after.clone(),
                    };
                    let before = Coordinates {
                        step: Some(Box::new(step)),
                        ..at.clone()
                    };
                    if self.planted != Planted::MissingStep {
                        self.store(engine, &before)?;
                    }
                    execute(engine, &one.entry, None, None)?;
                    self.store(engine, &after)?;
                }
            }
            *at = after;
            self.applied += 1;
            if matches!(one.entry, Entry::Prepare(..)) {
                self.durable = self.applied;
            }
        }
        Ok(())
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `NFOLD_BINLOG_SEEDS` is the number of seeds, `NFOLD_BINLOG_FIRST_SEED` the first of them.
#[test]
fn histories_of_source_and_replica_are_equal() {
    let first = from_environment("NFOLD_BINLOG_FIRST_SEED", 1);
    let seeds = from_environment("NFOLD_BINLOG_SEEDS", 40);
    let (mut applied, mut ends) = (0, 0);
    for seed in first..first + seeds {
        let world = World::run(seed, 6, Planted::None);
        let world = world.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        applied += world.applied;
        let ended = world.history.iter();
        ends += ended.filter(|e| matches!(e, Entry::End { .. })).count() as u64;
    }
    println!("{seeds} seeds: {applied} transactions applied, {ends} ends of branches");
    assert!(applied > 50 * seeds && ends > 5 * seeds, "{applied} {ends}");
}

#[test]
fn planted_bugs_are_found() {
    std::panic::set_hook(Box::new(|_| {}));
    for bug in [
        Planted::EarlyRelease,
        Planted::MissingFloor,
        Planted::MissingStep,
        Planted::MissingEnd,
        Planted::EarlyCoordinates,
    ] {
        let found = (1..200).find(|&seed| {
            let run = || World::run(seed, 6, bug).is_err();
            catch_unwind(run).unwrap_or(true)
        });
        println!("{bug:?}: found by seed {found:?}");
        assert!(found.is_some(), "{bug:?}");
    }
    drop(std::panic::take_hook());
}
