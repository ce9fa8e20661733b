//! Prepared transactions (M9): they belong to no actor, survive each engine run, and end in the
//! same run or a later one.

use std::collections::{BTreeMap, BTreeSet};

use nfold_engine::{Engine, block};

use crate::model::{Changes, Db, applied, orphan};
use crate::run::World;

/// A prepared transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    pub changes: Changes,
    /// The tables that it has used. DDL on them must wait.
    pub touched: BTreeSet<String>,
}

/// All of them, and what a crash interrupted.
#[derive(Default)]
pub struct Branches {
    pub prepared: BTreeMap<Vec<u8>, Branch>,
    /// The branch whose preparation is in progress.
    pub preparing: Option<(Vec<u8>, Branch)>,
    /// The branch whose end is in progress, and whether that is a commit.
    ending: Option<(Vec<u8>, bool)>,
}

impl Branches {
    /// Whether a prepared transaction has used a table.
    pub fn use_table(&self, table: &str) -> bool {
        self.prepared.values().any(|b| b.touched.contains(table))
    }

    /// Compares the prepared transactions of an opened engine with the model. Returns the committed
    /// state if it is certain, because a commit that the crash interrupted was durable.
    pub fn adopt(&mut self, db: &Db, engine: &Engine) -> Result<Option<Db>, String> {
        let (preparing, ending) = (self.preparing.take(), self.ending.take());
        let mut found: BTreeSet<Vec<u8>> = BTreeSet::new();
        found.extend(engine.prepared_branches().into_iter().map(Vec::from));
        let mut committed = None;
        if let Some((name, commit)) = ending
            && !found.contains(&name)
            && let Some(branch) = self.prepared.remove(&name)
            && commit
        {
            committed = Some(applied(db, &branch.changes));
        }
        if let Some((name, branch)) = preparing
            && found.contains(&name)
        {
            self.prepared.insert(name, branch);
        }
        let known: BTreeSet<Vec<u8>> = self.prepared.keys().cloned().collect();
        if found != known {
            let lost: Vec<_> = known.difference(&found).collect();
            let strange: Vec<_> = found.difference(&known).collect();
            return Err(format!(
                "prepared transactions {lost:?} are lost, {strange:?} were not prepared"
            ));
        }
        Ok(committed)
    }
}

impl World {
    /// Commits or rolls back a prepared transaction.
    pub(crate) fn end_branch(&mut self, engine: &Engine) -> Result<(), String> {
        let count = self.branches.prepared.len() as u64;
        let Some(n) = count.checked_sub(1) else {
            return Ok(());
        };
        let (n, commit) = (self.rng.below(n + 1) as usize, !self.rng.one_in(3));
        let Some((name, branch)) = self.branches.prepared.iter().nth(n) else {
            return Ok(());
        };
        let (name, branch) = (name.clone(), branch.clone());
        tell!("{} ends {name:?}, commit: {commit}", self.now);
        self.branches.ending = Some((name.clone(), commit));
        let mut session = engine.session(101).map_err(|e| e.to_string())?;
        if !session.resume_branch(engine, &name, false) {
            return Err(format!("the prepared transaction {name:?} is unknown"));
        }
        let ended = match commit {
            true => block(|| session.commit_branch()),
            false => block(|| session.rollback_branch()),
        };
        ended.map_err(|e| format!("the end of a prepared transaction: {e}"))?;
        self.branches.ending = None;
        self.branches.prepared.remove(&name);
        self.outcome.branches += 1;
        if commit {
            let after = applied(&self.db, &branch.changes);
            if let Some(orphan) = orphan(&after) {
                return Err(format!("a prepared commit leaves an {orphan}"));
            }
            self.put_db(after);
            // It is durable, and so are all commits before it.
            self.maybe.clear();
        }
        Ok(())
    }
}
