//! Threads: transfers between rows, readers that add up, purge, and sessions that vanish.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ROWS: u8 = 8;
const EACH: u64 = 1000;

fn amount(image: &[u8]) -> u64 {
    u64::from_le_bytes(image[..8].try_into().unwrap())
}

/// Reads the newest version under an exclusive lock.
fn locked_read(w: &World, trx: &mut Trx, key: &[u8]) -> Result<u64, TxnError> {
    loop {
        let row = w.current(key).expect("accounts are never deleted");
        let holder = Some(row.trx).filter(|t| w.system.is_active(*t));
        let request = LockRequest::new(7, LockKey::Key(key), LockMode::X, LockKind::Record)
            .implicit_holder(holder);
        block_on(|| trx.lock(&request))?;
        let now = w.current(key).expect("accounts are never deleted");
        if now.trx == trx.id() || !w.system.is_active(now.trx) {
            return Ok(amount(&now.image));
        }
    }
}

fn transfer(w: &World, trx: &mut Trx, from: u8, to: u8, sum: u64) -> Result<(), TxnError> {
    trx.begin(Isolation::RepeatableRead, false);
    block_on(|| trx.assign_id())?;
    let (a, b) = (locked_read(w, trx, &[from])?, locked_read(w, trx, &[to])?);
    let sum = sum.min(a);
    w.write(trx, &[from], Some(&(a - sum).to_le_bytes()))?;
    w.write(trx, &[to], Some(&(b + sum).to_le_bytes()))?;
    Ok(())
}

fn total(w: &World, trx: &mut Trx) -> u64 {
    w.scan(trx).iter().map(|(_, image)| amount(image)).sum()
}

fn writer(w: &World, seed: u64, rounds: u64, committed: &AtomicU64) {
    let mut rng = nfold_store::SimRng::new(seed);
    let mut trx = w.session();
    for _ in 0..rounds {
        let from = rng.below(ROWS as u64) as u8;
        let to = (from + 1 + rng.below(ROWS as u64 - 1) as u8) % ROWS;
        match transfer(w, &mut trx, from, to, rng.below(50)) {
            Ok(()) if rng.one_in(20) => trx = w.session(),
            Ok(()) if rng.one_in(8) => w.rollback(&mut trx),
            Ok(()) => {
                block_on(|| trx.commit(FlushAtCommit::Lazy)).unwrap();
                committed.fetch_add(1, Ordering::Relaxed);
            }
            Err(TxnError::Deadlock) => w.rollback(&mut trx),
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn the_sum_never_changes() {
    for io_threads in [0, 2] {
        let w = World::new(io_threads);
        let mut setup = w.begun();
        for row in 0..ROWS {
            w.write(&mut setup, &[row], Some(&EACH.to_le_bytes()))
                .unwrap();
        }
        w.commit(&mut setup);
        let (stop, committed) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let background = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    block_on(|| w.system.rollback_step(&w, 5)).unwrap();
                    block_on(|| w.system.purge_step(&w, 50)).unwrap();
                    std::thread::yield_now();
                }
            });
            for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
                let (w, stop) = (&w, &stop);
                scope.spawn(move || {
                    let mut trx = w.session();
                    while !stop.load(Ordering::Relaxed) {
                        trx.begin(isolation, true);
                        for _ in 0..3 {
                            assert_eq!(total(w, &mut trx), ROWS as u64 * EACH);
                            trx.end_statement();
                        }
                        w.commit(&mut trx);
                    }
                });
            }
            let writers: Vec<_> = (0..3)
                .map(|seed| {
                    let (w, committed) = (&w, &committed);
                    scope.spawn(move || writer(w, seed, 250, committed))
                })
                .collect();
            let results: Vec<_> = writers.into_iter().map(|t| t.join()).collect();
            stop.store(true, Ordering::Relaxed);
            background.join().unwrap();
            results.into_iter().for_each(|r| r.unwrap());
        });
        assert!(committed.load(Ordering::Relaxed) > 0);
        w.run_background();
        assert_eq!(total(&w, &mut w.begun()), ROWS as u64 * EACH);
        assert!(w.system.locks().locks().is_empty());
        assert_eq!(w.system.views().low(), w.system.views().next());
        let status = w.system.status();
        assert_eq!((status.history_length, status.rolling_back), (0, 0));
    }
}
