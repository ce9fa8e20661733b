//! The lock table for the status views. The shards are read one after the other, not at one point
//! in time.

use super::owner::LockOwner;
use super::queue::Entry;
use super::queue_key::KEY_AT;
use super::table::{LockTable, TAG_KEY, shard_of};
use super::{DeadlockInfo, LockInfo, OwnerInfo, WaitInfo};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::time::Instant;

fn info(key: &[u8], e: &Entry) -> LockInfo {
    let mut index = [0; 8];
    index.copy_from_slice(&key[..8]);
    LockInfo {
        owner: Arc::as_ptr(&e.owner) as usize,
        trx_id: e.owner.trx_id(),
        session: e.owner.session(),
        index: u64::from_be_bytes(index),
        key: (key[8] == TAG_KEY).then(|| key[KEY_AT..].to_vec()),
        mode: e.mode,
        kind: e.kind,
        granted: e.waiter.is_none(),
    }
}

/// Index id and key of a lock's place, as a wait site names it; no key: the end of the index.
pub fn place_of(key: &[u8]) -> (u64, Option<&[u8]>) {
    let index = key.first_chunk().map_or(0, |b| u64::from_be_bytes(*b));
    let named = (key.get(8) == Some(&TAG_KEY)).then(|| key.get(KEY_AT..));
    (index, named.flatten())
}

impl LockTable {
    /// All entries.
    pub fn locks(&self) -> Vec<LockInfo> {
        let mut out = Vec::new();
        for shard in &self.shards {
            for (key, queue) in shard.lock().iter() {
                out.extend(queue.entries().map(|e| info(key, e)));
            }
        }
        self.add_runs(&mut out);
        out
    }

    /// Adds the locks in runs, except those with a copy among `out`.
    fn add_runs(&self, out: &mut Vec<LockInfo>) {
        let mut locks = Vec::new();
        self.each_in_runs(|owner, run, key| {
            locks.push(LockInfo {
                owner: Arc::as_ptr(owner) as usize,
                trx_id: owner.trx_id(),
                session: owner.session(),
                index: run.index,
                key: Some(key.to_vec()),
                mode: run.mode,
                kind: run.kind,
                granted: true,
            });
        });
        if locks.is_empty() {
            return;
        }
        let place = |l: &LockInfo| (l.owner, l.index, l.key.clone(), l.mode, l.kind);
        let copies: FxHashSet<_> = out.iter().filter(|l| l.granted).map(place).collect();
        locks.retain(|lock| !copies.contains(&place(lock)));
        out.append(&mut locks);
    }

    /// Every waiting entry with each that it waits for.
    pub fn waits(&self) -> Vec<WaitInfo> {
        let mut out = Vec::new();
        for shard in &self.shards {
            for (key, queue) in shard.lock().iter() {
                for (at, e) in queue.waiting().iter().enumerate() {
                    let blockers = queue.blockers(&e.owner, e.mode, e.kind, at);
                    out.extend(blockers.map(|b| WaitInfo {
                        waiting: info(key, e),
                        blocking: info(key, b),
                    }));
                }
            }
        }
        out
    }

    /// A session's wait at a place that a wait site names: when it began, and the sessions that it
    /// waits for.
    pub fn wait_of(&self, session: u64, key: &[u8]) -> Option<(Instant, Vec<u64>)> {
        let shard = self.shards[shard_of(key)].lock();
        let queue = shard.get(key)?;
        let is_own = |e: &Entry| e.owner.session() == session;
        let at = queue.waiting().iter().position(is_own)?;
        let e = &queue.waiting()[at];
        let blockers = queue.blockers(&e.owner, e.mode, e.kind, at);
        let sessions = blockers.map(|b| b.owner.session()).collect();
        Some((e.waiter.as_ref()?.since, sessions))
    }

    /// What `waiting` waits for, and the lock of `blocking` that is in its way.
    pub(super) fn wait_between(
        &self,
        waiting: &Arc<LockOwner>,
        blocking: &Arc<LockOwner>,
    ) -> Option<WaitInfo> {
        let (place, waiter) = waiting.state.lock().waiting.clone()?;
        let shard = self.shards[place.shard as usize].lock();
        let queue = shard.get(&place.key)?;
        let at = queue.position(&waiter)?;
        let e = &queue.waiting()[at];
        let blocker = queue
            .blockers(&e.owner, e.mode, e.kind, at)
            .find(|b| Arc::ptr_eq(&b.owner, blocking))?;
        Some(WaitInfo {
            waiting: info(&place.key, e),
            blocking: info(&place.key, blocker),
        })
    }

    /// All transactions that have an id or a lock, by id.
    pub fn owners(&self) -> Vec<OwnerInfo> {
        let mut found: FxHashMap<usize, OwnerInfo> = FxHashMap::default();
        let mut add = |owner: &Arc<LockOwner>| {
            found
                .entry(Arc::as_ptr(owner) as usize)
                .or_insert_with(|| owner.info());
        };
        for shard in &self.owners {
            shard.lock().values().for_each(&mut add);
        }
        for shard in &self.shards {
            for queue in shard.lock().values() {
                queue.entries().for_each(|e| add(&e.owner));
            }
        }
        let mut out: Vec<OwnerInfo> = found.into_values().collect();
        out.sort_by_key(|o| (o.trx_id, o.session));
        out
    }

    /// The cycle that was broken last.
    pub fn last_deadlock(&self) -> Option<DeadlockInfo> {
        self.last_deadlock.lock().clone()
    }
}
