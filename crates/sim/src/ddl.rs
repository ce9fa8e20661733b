//! DDL statements. Each takes effect as a whole or not at all, even if the power fails in the
//! middle.

use std::collections::BTreeSet;
use std::sync::Arc;

use nfold_catalog::{ReferentialAction, TableDef};
use nfold_engine::{CopyError, Engine, EngineError};
use nfold_store::SimRng;
use nfold_types::Value;

use crate::model::{Db, Row, TableModel};
use crate::select::some_k;
use crate::shape::{
    CHILD, DATABASE, PARENT, S, Shape, decode, duplicates, encode, find, index_spec, layout_of,
};

const NAMES: [&str; 4] = ["t", "u", "v", "w"];
/// The error of a converter that rejects a row.
const REFUSED: &str = "refused";

/// A DDL statement, and its effect on the tables.
pub struct Ddl {
    pub what: What,
    /// The table that it changes.
    pub table: String,
    /// The state after it; `None` if it must be rejected.
    pub after: Option<Db>,
}

#[derive(Debug)]
pub enum What {
    Create(Shape),
    Drop,
    Truncate,
    Rename(String),
    /// Two tables exchange their names.
    Swap(String),
    Indexes {
        add: Vec<&'static str>,
        drop: Vec<&'static str>,
    },
    /// A copy with another shape. Column `x` gets this value in all rows.
    Copy(Shape, Value),
    /// A copy that fails at this row.
    BrokenCopy(u64),
}

impl Ddl {
    /// Chooses a DDL statement, if the tables that it concerns are not in use. `foreign`: the
    /// actions of the foreign key, whose tables are created first, and never renamed or dropped.
    pub fn choose(
        db: &Db,
        rng: &mut SimRng,
        foreign: Option<ReferentialAction>,
        used: impl Fn(&str) -> bool,
    ) -> Option<Ddl> {
        let absent = |name: &&&str| !db.contains_key(**name);
        let free = NAMES.iter().find(absent);
        let linked = [PARENT, CHILD];
        let linked = linked.iter().filter(|_| foreign.is_some()).find(absent);
        if let Some(name) = linked.or(free)
            && (linked.is_some() || db.len() < 2 || rng.one_in(6))
        {
            return Some(create(db, name, foreign, rng));
        }
        let at = rng.below(db.len() as u64) as usize;
        let (name, model) = db.iter().nth(at)?;
        if used(name) {
            return None;
        }
        let is_linked = |name: &str| name == PARENT || name == CHILD;
        let choice = match rng.below(12) {
            0 | 2 | 3 if is_linked(name) => 4,
            1 if name == PARENT => 4,
            n => n,
        };
        let (what, after) = match choice {
            0 if db.len() > 1 => (What::Drop, without(db, name)),
            1 => (What::Truncate, with_rows_cleared(db, name)),
            2 => {
                let to = (*free?).to_owned();
                let mut after = db.clone();
                let moved = after.remove(name)?;
                after.insert(to.clone(), moved);
                (What::Rename(to), Some(after))
            }
            3 => {
                let swaps = |n: &&String| *n != name && !used(n) && !is_linked(n);
                let other = db.keys().find(swaps)?.clone();
                let mut after = db.clone();
                after.insert(name.clone(), db[&other].clone());
                after.insert(other.clone(), model.clone());
                (What::Swap(other), Some(after))
            }
            4..=7 => indexes(db, name, model, rng),
            8 => {
                let rows = model.rows.len() as u64;
                (What::BrokenCopy(rng.below(rows.max(1))), None)
            }
            _ => copy(db, name, model, rng),
        };
        let broken_but_empty = matches!(what, What::BrokenCopy(_)) && model.rows.is_empty();
        (!broken_but_empty).then(|| Ddl {
            what,
            table: name.clone(),
            after,
        })
    }

    /// The names of the tables that it concerns.
    pub fn tables(&self) -> Vec<String> {
        let mut names = vec![self.table.clone()];
        match &self.what {
            What::Rename(other) | What::Swap(other) => names.push(other.clone()),
            _ => {}
        }
        names
    }

    /// Runs the statement. Returns false if it was rejected because the rows do not fit.
    pub fn run(&self, engine: &Engine) -> Result<bool, EngineError> {
        let def = engine
            .catalog()
            .snapshot()
            .table(DATABASE, &self.table)
            .cloned();
        let Some(def) = def else {
            let What::Create(shape) = &self.what else {
                return Err(EngineError::Dictionary("the table is missing".into()));
            };
            return engine.create_table(shape.spec(&self.table)).map(|_| true);
        };
        let done = match &self.what {
            What::Create(_) => return Err(EngineError::Dictionary("the table exists".into())),
            What::Drop => engine.drop_tables(&[def]),
            What::Truncate => engine.truncate_table(&def),
            What::Rename(to) => engine.rename_tables(&[(def, DATABASE.into(), to.as_str().into())]),
            What::Swap(other) => {
                let schema = engine.catalog().snapshot();
                let Some(second) = schema.table(DATABASE, other).cloned() else {
                    return Err(EngineError::Dictionary("the other table is missing".into()));
                };
                engine.rename_tables(&[
                    (def, DATABASE.into(), other.as_str().into()),
                    (second, DATABASE.into(), self.table.as_str().into()),
                ])
            }
            What::Indexes { add, drop } => {
                let add: Vec<_> = add.iter().map(|n| index_spec(n)).collect();
                let drop: Vec<_> = drop
                    .iter()
                    .filter_map(|n| def.index(n).map(|i| def.indexes[i].id))
                    .collect();
                engine.change_indexes(&def, &add, &drop)
            }
            What::Copy(shape, x) => return self.copy(engine, &def, shape, x, u64::MAX),
            What::BrokenCopy(at) => {
                return self.copy(engine, &def, &Shape::of(&def), &Value::Null, *at);
            }
        };
        match done {
            Err(EngineError::DuplicateInBuild { .. }) => Ok(false),
            other => other.map(|()| true),
        }
    }

    fn copy(
        &self,
        engine: &Engine,
        def: &Arc<TableDef>,
        shape: &Shape,
        x: &Value,
        stop_at: u64,
    ) -> Result<bool, EngineError> {
        let old = find(engine, &self.table).map_err(EngineError::Dictionary)?;
        let layout = layout_of(shape);
        let mut rows = 0;
        let copied = engine.rebuild_table(def, &shape.spec(&self.table), |image, out| {
            if rows == stop_at {
                return Err(REFUSED);
            }
            rows += 1;
            let row = decode(old.layout(), image).ok_or("a damaged row")?;
            encode(&layout, &reshaped(&row, shape, x), out);
            Ok(())
        });
        match copied {
            Ok(_) => Ok(true),
            Err(CopyError::Convert(REFUSED)) => Ok(false),
            Err(CopyError::Convert(what)) => Err(EngineError::Dictionary(what.into())),
            Err(CopyError::Engine(EngineError::DuplicateInBuild { .. })) => Ok(false),
            Err(CopyError::Engine(e)) => Err(e),
        }
    }
}

fn create(db: &Db, name: &str, foreign: Option<ReferentialAction>, rng: &mut SimRng) -> Ddl {
    let mut shape = some_shape(rng);
    if name == CHILD {
        shape.action = foreign;
        shape.indexes.insert("k");
    }
    let mut after = db.clone();
    let model = TableModel {
        shape: shape.clone(),
        rows: Default::default(),
    };
    after.insert(name.into(), Arc::new(model));
    Ddl {
        what: What::Create(shape),
        table: name.into(),
        after: Some(after),
    }
}

fn some_shape(rng: &mut SimRng) -> Shape {
    let x = rng.one_in(3);
    let mut shape = Shape {
        primary: !rng.one_in(4),
        x,
        indexes: BTreeSet::new(),
        action: None,
    };
    for name in shape.possible() {
        if rng.one_in(2) {
            shape.indexes.insert(name);
        }
    }
    shape
}

fn reshaped(row: &Row, shape: &Shape, x: &Value) -> Row {
    let mut row = row.clone();
    row.resize(shape.columns(), x.clone());
    row
}

fn without(db: &Db, name: &str) -> Option<Db> {
    let mut after = db.clone();
    after.remove(name);
    Some(after)
}

fn with_rows_cleared(db: &Db, name: &str) -> Option<Db> {
    let mut after = db.clone();
    Arc::make_mut(after.get_mut(name)?).rows.clear();
    Some(after)
}

fn indexes(db: &Db, name: &str, model: &TableModel, rng: &mut SimRng) -> (What, Option<Db>) {
    let mut shape = model.shape.clone();
    let (mut add, mut drop) = (Vec::new(), Vec::new());
    for index in shape.possible() {
        // The foreign key needs its index.
        if !rng.one_in(2) || *index == "k" && shape.action.is_some() {
            continue;
        }
        if shape.indexes.remove(index) {
            drop.push(*index);
        } else {
            shape.indexes.insert(index);
            add.push(*index);
        }
    }
    let refused = add.contains(&"s") && duplicates(&model.rows, S);
    let after = (!refused).then(|| {
        let mut after = db.clone();
        let changed = TableModel {
            shape,
            rows: model.rows.clone(),
        };
        after.insert(name.into(), Arc::new(changed));
        after
    });
    (What::Indexes { add, drop }, after)
}

fn copy(db: &Db, name: &str, model: &TableModel, rng: &mut SimRng) -> (What, Option<Db>) {
    let mut shape = model.shape.clone();
    if !rng.one_in(3) {
        shape.x = !shape.x;
    }
    if !shape.x {
        shape.indexes.remove("x");
    }
    if rng.one_in(4) {
        shape.primary = !shape.primary;
    }
    let x = some_k(rng);
    let rows = model
        .rows
        .iter()
        .map(|(id, row)| (*id, Arc::new(reshaped(row, &shape, &x))))
        .collect();
    let mut after = db.clone();
    let copied = TableModel {
        shape: shape.clone(),
        rows,
    };
    after.insert(name.into(), Arc::new(copied));
    (What::Copy(shape, x), Some(after))
}
