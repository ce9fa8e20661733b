//! Reads, and the rows that they must return.

use std::collections::BTreeSet;
use std::sync::Arc;

use nfold_engine::{
    Bound, EngineSession, EqualityKeys, KeyRange, Read, ReadSpec, RowBatch, Stop, Table,
};
use nfold_store::SimRng;
use nfold_types::Value;

use crate::model::{Row, Rows, difference};
use crate::shape::{self, K, S, decode, id_index, id_of};

/// The condition of a statement: the rows that it wants.
#[derive(Clone, Debug)]
pub enum Wanted {
    All,
    Ids(BTreeSet<i64>),
    /// A range of ids, including both ends.
    Range(i64, i64),
    /// Rows with this value in a column that is the first one of the index with this name.
    Equal(usize, &'static str, Value),
}

impl Wanted {
    /// Chooses a condition that the table's indexes support. Ids are below `ids`.
    pub fn choose(table: &Table, ids: u64, rng: &mut SimRng) -> Wanted {
        let id = |rng: &mut SimRng| rng.below(ids) as i64;
        let indexed = |name: &str| table.def().index(name).is_some();
        match rng.below(8) {
            0 | 1 => {
                let from = id(rng);
                Wanted::Range(from, from + rng.below(ids / 4 + 2) as i64)
            }
            2 if indexed("k") => Wanted::Equal(K, "k", some_k(rng)),
            3 if indexed("sk") => Wanted::Equal(S, "sk", some_s(ids, rng)),
            4 if indexed("s") => Wanted::Equal(S, "s", some_s(ids, rng)),
            _ => {
                let n = 1 + rng.below(4);
                Wanted::Ids((0..n).map(|_| id(rng)).collect())
            }
        }
    }

    /// Whether a row satisfies the condition.
    pub fn has(&self, id: i64, row: &Row) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Ids(ids) => ids.contains(&id),
            Wanted::Range(lo, hi) => (*lo..=*hi).contains(&id),
            Wanted::Equal(column, _, value) => &row[*column] == value,
        }
    }

    /// The rows that satisfy the condition.
    pub fn of(&self, mut rows: Rows) -> Rows {
        rows.retain(|id, row| self.has(*id, row));
        rows
    }

    /// The ordinal of the index for the condition.
    fn index(&self, table: &Table, any: usize) -> usize {
        match self {
            Wanted::All => any,
            Wanted::Equal(_, name, _) => table.def().index(name).unwrap_or(0),
            _ => id_index(table),
        }
    }

    /// A read of the wanted rows. `any` is the index to use if all rows are wanted.
    pub fn read(
        &self,
        table: &Arc<Table>,
        any: usize,
        reverse: bool,
        change: impl FnOnce(&mut ReadSpec),
    ) -> (Read, usize, bool) {
        let index = self.index(table, any);
        let mut spec = ReadSpec {
            index,
            columns: (0..table.def().columns.len()).collect(),
            ..ReadSpec::default()
        };
        change(&mut spec);
        if index == 0 {
            spec.covering = false;
        }
        let covering = spec.covering;
        let key = |value: &Value| {
            let mut out = Vec::new();
            table
                .key_layout(index)
                .encode_values([value.as_ref()], &mut out)
                .expect("the model's keys fit the index");
            out
        };
        let read = match self {
            Wanted::All => Read::range(table.clone(), spec, &KeyRange::all(), reverse),
            Wanted::Range(lo, hi) => {
                let range = KeyRange {
                    lo: Bound::Included(key(&Value::Int(*lo)).into()),
                    hi: Bound::Included(key(&Value::Int(*hi)).into()),
                };
                Read::range(table.clone(), spec, &range, reverse)
            }
            Wanted::Ids(ids) => {
                let mut points = EqualityKeys::new();
                ids.iter()
                    .for_each(|id| points.push(&key(&Value::Int(*id))));
                Read::points(table.clone(), spec, points)
            }
            Wanted::Equal(_, _, value) => {
                let mut points = EqualityKeys::new();
                points.push(&key(value));
                Read::points(table.clone(), spec, points)
            }
        };
        (read, index, covering)
    }
}

/// A random value for column `k`.
pub fn some_k(rng: &mut SimRng) -> Value {
    match rng.below(10) {
        0 | 1 => Value::Null,
        2 | 3 => Value::Int(rng.below(1000) as i64),
        _ => Value::Int(rng.below(8) as i64),
    }
}

/// A random value for column `s`.
pub fn some_s(ids: u64, rng: &mut SimRng) -> Value {
    if rng.one_in(5) {
        Value::Null
    } else {
        Value::Bytes(format!("name{}", rng.below(ids * 3 / 2)).into_bytes())
    }
}

/// A consistent read in progress.
pub struct Reading {
    pub table: Arc<Table>,
    pub read: Read,
    pub index: usize,
    pub covering: bool,
    pub batch: RowBatch,
    /// The expected rows; `None` for dirty reads, which may return anything.
    pub expected: Option<Rows>,
}

impl Reading {
    /// Reads the next batch. Returns whether there are more rows.
    pub fn go_on(&mut self, session: &mut EngineSession) -> Result<bool, Stop> {
        self.read.next(session, &mut self.batch)
    }

    /// Compares the rows read with the expected ones (M2).
    pub fn check(&self) -> Result<(), String> {
        let whole = self.table.layout();
        let (layout, columns): (_, Vec<usize>) = if self.covering {
            let columns = self.table.index_columns(self.index).to_vec();
            (self.table.index_layout(self.index), columns)
        } else {
            (whole, (0..whole.columns().len()).collect())
        };
        let id_at = columns.iter().position(|c| *c == shape::ID);
        let mut found = Vec::new();
        for image in self.batch.iter() {
            found.push(decode(layout, image).ok_or("a damaged row")?);
        }
        let Some(expected) = &self.expected else {
            return Ok(());
        };
        let mut wanted: Vec<Row> = expected
            .values()
            .map(|row| columns.iter().map(|c| row[*c].clone()).collect())
            .collect();
        if id_at != Some(0) {
            // The order differs, and there may be no ids, so the rows are compared as multisets.
            let text = |rows: &mut Vec<Row>| rows.sort_by_cached_key(|r| format!("{r:?}"));
            text(&mut wanted);
            text(&mut found);
            if wanted == found {
                return Ok(());
            }
            let more = found.iter().find(|row| !wanted.contains(row));
            let less = wanted.iter().find(|row| !found.contains(row));
            return Err(format!(
                "a read of index {} gives other rows, {} for {}: not {less:?}, but {more:?}",
                self.index,
                found.len(),
                wanted.len()
            ));
        }
        let count = found.len();
        let rows: Rows = found
            .into_iter()
            .filter_map(|row| Some((id_of(&row)?, Arc::new(row))))
            .collect();
        let expected: Rows = expected
            .keys()
            .copied()
            .zip(wanted.into_iter().map(Arc::new))
            .collect();
        if rows != expected {
            let what = format!("a consistent read of index {}", self.index);
            return Err(difference(&what, &expected, &rows));
        }
        if rows.len() != count {
            return Err("a consistent read gives a row twice".into());
        }
        Ok(())
    }
}

/// All rows of a table as seen by the session's transaction.
pub fn all_rows(session: &mut EngineSession, table: &Arc<Table>) -> Result<Rows, String> {
    let (mut read, ..) = Wanted::All.read(table, 0, false, |_| {});
    let mut batch = RowBatch::new();
    loop {
        match read.next(session, &mut batch) {
            Ok(true) => {}
            Ok(false) => break,
            Err(Stop::Wait(_)) => return Err("a plain read had to wait with inline I/O".into()),
            Err(Stop::Error(e)) => return Err(format!("a plain read failed: {e}")),
        }
    }
    let mut rows = Rows::new();
    for image in batch.iter() {
        let row = decode(table.layout(), image).ok_or("a damaged row")?;
        let id = id_of(&row).ok_or("a row without an id")?;
        if rows.insert(id, Arc::new(row)).is_some() {
            return Err(format!("row {id} is there twice"));
        }
    }
    Ok(rows)
}
