//! A random walk of several sessions against a model that keeps every committed state, over a disk
//! that dies.

use super::*;
use nfold_store::SimRng;
use std::collections::BTreeMap;

type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// One session's model: the state it started from, and its own changes.
#[derive(Clone, Default)]
struct Side {
    base: Option<State>,
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    saved: Option<BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
}

struct Walk {
    world: World,
    rng: SimRng,
    trxs: Vec<Trx>,
    sides: Vec<Side>,
    committed: State,
}

/// Key, filling and length: images are uniform, and messages stay short.
fn brief(rows: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<(u8, Option<u8>, usize)> {
    rows.iter()
        .map(|(k, v)| (k[0], v.first().copied(), v.len()))
        .collect()
}

const SESSIONS: usize = 4;

impl Walk {
    fn start(world: World, rng: SimRng, committed: State) -> Walk {
        let trxs = (0..SESSIONS).map(|_| world.session()).collect();
        Walk {
            world,
            rng,
            trxs,
            sides: vec![Side::default(); SESSIONS],
            committed,
        }
    }

    fn apply(mut state: State, changes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) -> State {
        for (key, image) in changes {
            match image {
                Some(image) => state.insert(key.clone(), image.clone()),
                None => state.remove(key),
            };
        }
        state
    }

    fn step(&mut self) {
        let n = self.rng.below(SESSIONS as u64) as usize;
        if !self.trxs[n].is_active() {
            self.trxs[n].begin(Isolation::RepeatableRead, false);
            self.sides[n] = Side::default();
        }
        match self.rng.below(20) {
            0..=9 => self.write(n),
            10..=13 => self.read(n),
            14 => {
                self.trxs[n].savepoint("s");
                self.sides[n].saved = Some(self.sides[n].changes.clone());
            }
            15 => {
                if let Some(saved) = self.sides[n].saved.clone() {
                    block_on(|| self.trxs[n].rollback_to_savepoint("s", &self.world)).unwrap();
                    self.sides[n].changes = saved;
                }
            }
            16..=17 => {
                self.world.commit(&mut self.trxs[n]);
                self.committed =
                    Self::apply(std::mem::take(&mut self.committed), &self.sides[n].changes);
            }
            18 => self.world.rollback(&mut self.trxs[n]),
            _ => {
                let budget = 1 + self.rng.below(20) as usize;
                block_on(|| self.world.system.purge_step(&self.world, budget)).unwrap();
            }
        }
    }

    fn write(&mut self, n: usize) {
        let key = vec![b'a' + self.rng.below(12) as u8];
        let image = (!self.rng.one_in(4)).then(|| self.image());
        match self
            .world
            .try_write(&mut self.trxs[n], &key, image.as_deref())
        {
            // A row that others have deleted since is not deleted again: an older snapshot goes on
            // to see it.
            Ok(false) if image.is_none() => {}
            Ok(_) => {
                self.sides[n].changes.insert(key, image);
            }
            // Dropping the wait is the time-out.
            Err(Stop::Wait(_)) => {}
            Err(Stop::Error(e)) => panic!("one session waits at a time: {e}"),
        }
    }

    fn image(&mut self) -> Vec<u8> {
        let len = self.rng.below(600) as usize;
        vec![self.rng.below(256) as u8; len]
    }

    fn read(&mut self, n: usize) {
        let base = self.sides[n]
            .base
            .get_or_insert_with(|| self.committed.clone())
            .clone();
        let expected: Vec<_> = Self::apply(base, &self.sides[n].changes)
            .into_iter()
            .collect();
        assert_eq!(brief(self.world.scan(&mut self.trxs[n])), brief(expected));
    }

    /// The process or the power dies; everything committed was durable.
    fn die(mut self) -> Walk {
        self.trxs.into_iter().for_each(Trx::vanish);
        let world = if self.rng.one_in(2) {
            self.world.after_kill()
        } else {
            self.world.after_crash(self.rng.next_u64())
        };
        let mut walk = Walk::start(world, self.rng, self.committed);
        walk.check();
        if walk.rng.one_in(2) {
            walk.world.run_background();
            walk.check();
            assert_eq!(
                walk.world.entries().len(),
                walk.committed.len(),
                "nothing is left of the undone and the deleted"
            );
        }
        walk
    }

    fn check(&self) {
        let expected: Vec<_> = self.committed.clone().into_iter().collect();
        assert_eq!(
            brief(self.world.scan(&mut self.world.begun())),
            brief(expected)
        );
    }
}

#[test]
fn every_snapshot_is_a_committed_state() {
    for seed in 0..12u64 {
        let mut walk = Walk::start(World::new(0), SimRng::new(seed), State::new());
        for _ in 0..4 {
            for _ in 0..150 + seed * 10 {
                walk.step();
            }
            if walk.rng.one_in(3) {
                walk.world.store.checkpoint().unwrap();
            }
            walk = walk.die();
        }
    }
}
