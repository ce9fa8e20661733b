//! Locking reads and row changes, and their expected results.

use std::collections::VecDeque;
use std::sync::Arc;

use nfold_catalog::ReferentialAction;
use nfold_engine::{
    DeferredStep, DeleteOp, EngineSession, InsertOp, LockWaitPolicy, Read, RowBatch, RowLock, Stop,
    Table, UpdateOp, WriteOutcome,
};
use nfold_store::SimRng;
use nfold_sync::planted::{self, Bug};
use nfold_types::row::RowLayout;
use nfold_types::{Value, ValueRef};

use crate::foreign::ForeignKey;
use crate::model::{Changes, Db, Row, Rows, difference, rows_with};
use crate::select::{Wanted, some_k, some_s};
use crate::shape::{self, B, PARENT, S, decode, encode, id_of};

/// The sizes of ids, rows and statements.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// All ids are below this.
    pub ids: u64,
    /// The most rows that one statement inserts.
    pub bulk: u64,
    /// The length in bytes of a text that is stored within the row.
    pub text: u64,
    /// The most rows that one step writes.
    pub burst: u64,
    /// The actions of the foreign key, if the seed has one.
    pub foreign: Option<ReferentialAction>,
}

impl Scale {
    /// Chooses few rows with many conflicts, or many rows, or rows of which so few fit a page that
    /// nearly every step splits or merges pages while other actors read.
    pub fn choose(rng: &mut SimRng) -> Scale {
        let (ids, bulk, text, burst) = match rng.below(6) {
            0 | 1 => (40, 3, 300, 1),
            2 => (300, 12, 900, 1),
            3 => (1500, 60, 600, 1),
            _ => (250, 24, 3600, 8),
        };
        Scale {
            ids,
            bulk,
            text,
            burst,
            foreign: match rng.below(6) {
                0 => Some(ReferentialAction::Restrict),
                1 => Some(ReferentialAction::Cascade),
                2 => Some(ReferentialAction::SetNull),
                _ => None,
            },
        }
    }

    /// The sizes of one table: the parent of the foreign key has few ids, so that the values of
    /// column `k` of its child are often among them.
    pub fn of_table(mut self, name: &str) -> Scale {
        if name == PARENT {
            self.ids = 5;
        }
        self
    }

    /// A random row.
    pub fn row(&self, id: i64, columns: usize, rng: &mut SimRng) -> Arc<Row> {
        let b = match rng.below(24) {
            0 => Value::Bytes("overflow ".repeat(rng.below(4000) as usize).into_bytes()),
            1..=6 => Value::Null,
            n => {
                let letter = [b'a' + (n % 7) as u8];
                Value::Bytes(letter.repeat(rng.below(self.text) as usize))
            }
        };
        let mut row = vec![Value::Int(id), some_k(rng), some_s(self.ids, rng), b];
        if columns > row.len() {
            row.push(some_k(rng));
        }
        Arc::new(row)
    }
}

/// What happens to the rows that a locking read returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    Nothing,
    Update,
    /// Changes ids, too.
    Move,
    Delete,
}

/// A locking read in progress.
pub struct Locking {
    pub name: String,
    pub table: Arc<Table>,
    pub wanted: Wanted,
    pub read: Read,
    pub batch: RowBatch,
    pub intent: Intent,
    pub policy: LockWaitPolicy,
    /// Long columns are not read: the images have overflow pointers in their places.
    skips_long: bool,
    /// The rows of the batch, as [`check`](Self::check) has found them.
    rows: Vec<Arc<Row>>,
}

impl Locking {
    pub fn choose(name: &str, table: &Arc<Table>, scale: &Scale, rng: &mut SimRng) -> Locking {
        let wanted = Wanted::choose(table, scale.ids, rng);
        let intent = match rng.below(8) {
            0 => Intent::Nothing,
            1 => Intent::Move,
            2 | 3 => Intent::Delete,
            _ => Intent::Update,
        };
        let policy = match rng.below(12) {
            0 => LockWaitPolicy::NoWait,
            1 => LockWaitPolicy::SkipLocked,
            _ => LockWaitPolicy::Wait,
        };
        let shared = intent == Intent::Nothing && rng.one_in(2);
        let reverse = rng.one_in(4);
        let skips_long = rng.one_in(2);
        let (read, ..) = wanted.read(table, 0, reverse, |spec| {
            if skips_long {
                spec.columns.retain(|&column| column != B);
            }
            spec.wait = policy;
            spec.lock = if shared {
                RowLock::Shared
            } else {
                RowLock::Exclusive
            };
        });
        Locking {
            name: name.into(),
            table: table.clone(),
            wanted,
            read,
            batch: RowBatch::new(),
            intent,
            policy,
            skips_long,
            rows: Vec::new(),
        }
    }

    /// Compares the rows read with the newest rows (M4). `gaps`: the read also locks gaps, so it
    /// must have returned all rows.
    pub fn check(&mut self, current: Rows, gaps: bool) -> Result<(), String> {
        let mut expected = self.wanted.of(current);
        let mut found = Rows::new();
        for image in self.batch.iter() {
            let row = self.decode(image, &expected).ok_or("a damaged row")?;
            let id = id_of(&row).ok_or("a row without an id")?;
            let row = Arc::new(row);
            self.rows.push(row.clone());
            if found.insert(id, row).is_some() {
                return Err(format!("a locking read gives row {id} twice"));
            }
        }
        if !gaps || self.policy == LockWaitPolicy::SkipLocked {
            expected.retain(|id, _| found.contains_key(id));
        }
        if found != expected {
            let what = format!("a locking read of {:?}", self.wanted);
            return Err(difference(&what, &expected, &found));
        }
        Ok(())
    }

    /// The row of an image. The expected row supplies the long value if the read left it out.
    fn decode(&self, image: &[u8], expected: &Rows) -> Option<Row> {
        let layout = self.table.layout();
        if !self.skips_long || !RowLayout::has_external(image) {
            return decode(layout, image);
        }
        let mut short = Vec::new();
        let without_long = |column| (column == B).then_some(ValueRef::Null);
        layout
            .encode_changed(image, without_long, &mut short)
            .ok()?;
        let mut row = decode(layout, &short)?;
        row[B] = expected.get(&id_of(&row)?)?[B].clone();
        Some(row)
    }

    /// Chooses the changes that follow a [`check`](Self::check).
    pub fn changes(&self, scale: &Scale, rng: &mut SimRng) -> VecDeque<Change> {
        let columns = self.table.def().columns.len();
        // Half of the statements change one column.
        let only = rng
            .one_in(2)
            .then(|| 1 + rng.below(columns as u64 - 1) as usize);
        let mut changes = VecDeque::new();
        for n in 0..self.batch.len() {
            let image = self.batch.row(n).to_vec();
            let row_id = self.batch.row_id(n);
            let Some((row, id)) = self.rows.get(n).and_then(|row| Some((row, id_of(row)?))) else {
                continue;
            };
            let change = match self.intent {
                Intent::Nothing => break,
                Intent::Delete => Change::Delete { id, image, row_id },
                Intent::Update | Intent::Move => {
                    let to = if self.intent == Intent::Move && rng.one_in(2) {
                        rng.below(scale.ids) as i64
                    } else {
                        id
                    };
                    let mut new = scale.row(to, columns, rng);
                    let mut same_long = false;
                    if let Some(column) = only {
                        let mut row = Row::clone(row);
                        row[column] = new[column].clone();
                        row[shape::ID] = Value::Int(to);
                        new = Arc::new(row);
                        same_long = column != B;
                    }
                    if !self.skips_long && rng.one_in(3) {
                        new = with_small_change(row, &new, rng);
                        same_long = false;
                    }
                    Change::Update {
                        id,
                        image,
                        row_id,
                        new,
                        same_long,
                    }
                }
            };
            changes.push_back(change);
        }
        changes
    }
}

/// The row `new` with a long value that differs little from that of `old`, if that has one.
fn with_small_change(old: &[Value], new: &[Value], rng: &mut SimRng) -> Arc<Row> {
    let mut row = new.to_vec();
    if let Value::Bytes(text) = &old[B] {
        let mut text = text.clone();
        for _ in 0..rng.below(3) {
            let at = rng.below(text.len() as u64 + 1) as usize;
            let end = (at + rng.below(20) as usize).min(text.len());
            let inserted = b"changed".repeat(rng.below(3) as usize);
            text.splice(at..end, inserted);
        }
        row[B] = Value::Bytes(text);
    }
    Arc::new(row)
}

/// A change of one row.
pub enum Change {
    Insert {
        new: Arc<Row>,
    },
    Update {
        id: i64,
        image: Vec<u8>,
        row_id: Option<u64>,
        new: Arc<Row>,
        /// The long column stays as it is stored, in its place or on overflow pages.
        same_long: bool,
    },
    Delete {
        id: i64,
        image: Vec<u8>,
        row_id: Option<u64>,
    },
}

/// The changes of a statement. They are made one row after the other.
pub struct Writing {
    pub name: String,
    pub table: Arc<Table>,
    queue: VecDeque<Change>,
    /// The changes to make. The first one is in progress.
    begun: bool,
    insert: InsertOp,
    update: UpdateOp,
    delete: DeleteOp,
    foreign: Option<ForeignKey>,
    /// A row that the foreign key refuses is left as it was.
    ignore: bool,
    /// Rows are inserted and updated later, several at a time.
    defers: bool,
    /// The rows that wait to be inserted, and the number of those whose outcome is known.
    later: Vec<Arc<Row>>,
    later_done: usize,
    /// The refused row is being rolled back.
    undoing: bool,
    /// Where the changes of the current row begin, and those before it.
    mark: u32,
    before_row: Changes,
}

/// The result of a call of [`Writing::go_on`].
pub enum Wrote {
    /// All changes are made.
    All,
    Row,
    Duplicate,
    /// A part of the work for a row: others may run before the next.
    Part,
    /// The foreign key forbids the change.
    Refused,
}

impl Writing {
    pub fn new(name: &str, table: &Arc<Table>, queue: VecDeque<Change>) -> Writing {
        Writing {
            name: name.into(),
            table: table.clone(),
            queue,
            begun: false,
            insert: InsertOp::new(table.clone()),
            update: UpdateOp::new(table.clone()),
            delete: DeleteOp::new(table.clone()),
            foreign: None,
            ignore: false,
            defers: false,
            later: Vec::new(),
            later_done: 0,
            undoing: false,
            mark: 0,
            before_row: Changes::new(),
        }
    }

    /// Inserts of several rows, with random or consecutive ids.
    pub fn inserts(name: &str, table: &Arc<Table>, scale: &Scale, rng: &mut SimRng) -> Writing {
        let n = if rng.one_in(2) {
            1
        } else {
            1 + rng.below(scale.bulk)
        };
        let first = rng.below(scale.ids);
        let in_order = rng.one_in(2);
        let queue = (0..n)
            .map(|i| {
                let id = if in_order {
                    (first + i) % scale.ids
                } else {
                    rng.below(scale.ids)
                };
                let new = scale.row(id as i64, table.def().columns.len(), rng);
                Change::Insert { new }
            })
            .collect();
        Writing::new(name, table, queue)
    }

    /// A description of the current change.
    pub fn described(&self) -> String {
        let short = |row: &Row| format!("{:?}", &row[..S + 1]);
        let name = &self.name;
        match self.queue.front() {
            None => format!("has changed {name}"),
            Some(Change::Insert { new }) => format!("inserts into {name} {}", short(new)),
            Some(Change::Update { id, new, .. }) => {
                format!("updates row {id} of {name} to {}", short(new))
            }
            Some(Change::Delete { id, .. }) => format!("deletes row {id} of {name}"),
        }
    }

    /// Sets the foreign key that the changes must respect. Some statements leave a refused row as
    /// it was and continue, like UPDATE IGNORE. Others, without a foreign key, defer rows.
    pub fn check_foreign_key(&mut self, foreign: Option<ForeignKey>, rng: &mut SimRng) {
        self.foreign = foreign;
        self.ignore = self.foreign.is_some() && rng.one_in(3);
        self.defers = self.foreign.is_none() && rng.one_in(2);
    }

    /// Continues the current change. The newest rows, `changes` upon `db`, determine whether the
    /// change must be rejected (M5, M8). Changes made are added to `changes`.
    pub fn go_on(
        &mut self,
        session: &mut EngineSession,
        db: &Db,
        changes: &mut Changes,
    ) -> Result<Result<Wrote, String>, Stop> {
        if self.undoing {
            session.return_to(self.mark)?;
            changes.clone_from(&self.before_row);
            self.undoing = false;
            self.next_change();
            return Ok(Ok(Wrote::Row));
        }
        if let Some(foreign) = &mut self.foreign
            && !foreign.is_done()
        {
            let checked = foreign.go_on(session, db, changes)?;
            return Ok(checked.map(|allowed| self.checked(allowed)));
        }
        if self.defers_insert(session)? {
            return Ok(Ok(Wrote::Part));
        }
        if !self.later.is_empty() {
            return self.insert_later(session, db, changes);
        }
        if !matches!(self.queue.front(), Some(Change::Update { .. })) {
            session.update_deferred(&mut self.update)?;
        }
        if self.queue.is_empty() {
            return Ok(Ok(Wrote::All));
        }
        if !self.begun {
            self.begin_change(session, changes);
            // Bug on purpose: the foreign key is checked before the change.
            if planted::is(Bug::ProbeBeforeChange) && self.begin_checks() {
                return Ok(Ok(Wrote::Part));
            }
        }
        self.change(session, db, changes)
    }

    /// Defers the first change, if it is an insert that can be deferred.
    fn defers_insert(&mut self, session: &mut EngineSession) -> Result<bool, Stop> {
        let Some(Change::Insert { new }) = self.queue.front() else {
            return Ok(false);
        };
        let is_done = self.later_done == 0;
        if !self.defers || self.begun || !is_done || self.insert.is_full() {
            return Ok(false);
        }
        encode(self.table.layout(), new, self.insert.row());
        if !session.defer_insert(&mut self.insert)? {
            return Ok(false);
        }
        self.later.push(new.clone());
        self.queue.pop_front();
        Ok(true)
    }

    /// Inserts the rows that wait, up to a duplicate (M5).
    fn insert_later(
        &mut self,
        session: &mut EngineSession,
        db: &Db,
        changes: &mut Changes,
    ) -> Result<Result<Wrote, String>, Stop> {
        let duplicate = loop {
            match session.insert_deferred(&mut self.insert)? {
                DeferredStep::Done => break None,
                DeferredStep::Duplicate(duplicate) => break Some(duplicate),
                DeferredStep::More => {}
            }
        };
        let end = duplicate.map_or(self.later.len(), |duplicate| duplicate.row);
        let conflicts = |new: &Row, changes: &Changes| {
            let rows = rows_with(db, changes, &self.name);
            conflicts(&self.table, &rows, None, new)
        };
        for new in &self.later[self.later_done..end] {
            if conflicts(new, changes) {
                return Ok(Err(format!("{new:?} was taken")));
            }
            if let Some(id) = id_of(new) {
                changes.insert((self.name.clone(), id), Some(new.clone()));
            }
        }
        if duplicate.is_none() {
            self.insert.clear_deferred();
            self.later.clear();
            self.later_done = 0;
            return Ok(Ok(Wrote::Row));
        }
        let new = &self.later[end];
        if !conflicts(new, changes) {
            return Ok(Err(format!("{new:?} was refused")));
        }
        self.later_done = end + 1;
        Ok(Ok(Wrote::Duplicate))
    }

    /// What follows from a check of the foreign key.
    fn checked(&mut self, allowed: bool) -> Wrote {
        if allowed {
            return Wrote::Part;
        }
        self.undoing = self.ignore;
        match self.ignore {
            true => Wrote::Part,
            false => Wrote::Refused,
        }
    }

    /// Prepares the operation of the first change.
    fn begin_change(&mut self, session: &EngineSession, changes: &Changes) {
        let layout = self.table.layout();
        match self.queue.front() {
            None => {}
            Some(Change::Insert { new }) => encode(layout, new, self.insert.row()),
            Some(Change::Update {
                image,
                row_id,
                new,
                same_long: true,
                ..
            }) => {
                let changed = |column: usize| (column != B).then(|| new[column].as_ref());
                let out = self.update.row(image, *row_id);
                let encoded = layout.encode_changed(image, changed, out);
                encoded.expect("the model's rows fit the table");
            }
            Some(Change::Update {
                image, row_id, new, ..
            }) => encode(layout, new, self.update.row(image, *row_id)),
            Some(Change::Delete { image, row_id, .. }) => self.delete.row(image, *row_id),
        }
        self.begun = true;
        if self.ignore {
            self.mark = session.change_mark();
            self.before_row.clone_from(changes);
        }
    }

    /// Carries out the first change.
    fn change(
        &mut self,
        session: &mut EngineSession,
        db: &Db,
        changes: &mut Changes,
    ) -> Result<Result<Wrote, String>, Stop> {
        let Some(change) = self.queue.front() else {
            return Ok(Ok(Wrote::All));
        };
        let (old, new, outcome) = match change {
            Change::Insert { new } => (None, Some(new), session.insert(&mut self.insert)?),
            Change::Update { id, new, .. } => {
                let outcome = match self.defers {
                    true => update_later(session, &mut self.update)?,
                    false => session.update(&mut self.update)?,
                };
                (Some(*id), Some(new), outcome)
            }
            Change::Delete { id, .. } => (Some(*id), None, session.delete(&mut self.delete)?),
        };
        let done = outcome == WriteOutcome::Done;
        if let Some(new) = new {
            let rows = rows_with(db, changes, &self.name);
            if conflicts(&self.table, &rows, old, new) == done {
                let found = if done { "was taken" } else { "was refused" };
                return Ok(Err(format!("{new:?} instead of {old:?} {found}")));
            }
        }
        if !done {
            self.next_change();
            return Ok(Ok(Wrote::Duplicate));
        }
        if let Some(id) = old {
            changes.insert((self.name.clone(), id), None);
        }
        if let Some(new) = new
            && let Some(id) = id_of(new)
        {
            changes.insert((self.name.clone(), id), Some(new.clone()));
        }
        if !planted::is(Bug::ProbeBeforeChange) {
            self.begin_checks();
        }
        self.next_change();
        Ok(Ok(Wrote::Row))
    }

    /// Queues the checks of the foreign key for the first change; false: there are none.
    fn begin_checks(&mut self) -> bool {
        let (Some(foreign), Some(change)) = (&mut self.foreign, self.queue.front()) else {
            return false;
        };
        let (old, new) = match change {
            Change::Insert { new } => (None, Some(new)),
            Change::Update { image, new, .. } => (Some(image), Some(new)),
            Change::Delete { image, .. } => (Some(image), None),
        };
        foreign.begin(&self.table, old.map(Vec::as_slice), new.map(|row| &**row));
        !foreign.is_done()
    }

    fn next_change(&mut self) {
        // The change of a refused row may be the next one already.
        if self.begun {
            self.queue.pop_front();
            self.begun = false;
        }
    }
}

/// Defers an update, or makes it after those that were deferred.
fn update_later(session: &mut EngineSession, op: &mut UpdateOp) -> Result<WriteOutcome, Stop> {
    if op.is_full() {
        session.update_deferred(op)?;
    }
    if session.defer_update(op)? {
        return Ok(WriteOutcome::Done);
    }
    session.update_deferred(op)?;
    session.update(op)
}

/// Whether `new`, in place of row `old`, has the same unique key as another row.
fn conflicts(table: &Table, rows: &Rows, old: Option<i64>, new: &Row) -> bool {
    let id = id_of(new);
    let same_id = id.is_some_and(|id| Some(id) != old && rows.contains_key(&id));
    let unique = table.def().index("s").is_some() && new[S] != Value::Null;
    same_id
        || unique
            && rows
                .iter()
                .any(|(id, row)| Some(*id) != old && row[S] == new[S])
}
