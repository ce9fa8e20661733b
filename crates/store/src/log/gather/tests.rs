//! The pace against a device whose every sync takes as long, in a time that only the test moves.

use super::*;

/// What writers met.
struct Seen {
    /// How long each commit waited, in syncs, ascending.
    waits: Vec<f64>,
    syncs: u64,
}

impl Seen {
    fn quantile(&self, q: f64) -> f64 {
        self.waits[((self.waits.len() - 1) as f64 * q) as usize]
    }

    fn commits_per_sync(&self) -> f64 {
        self.waits.len() as f64 / self.syncs as f64
    }
}

/// Lets `back.len()` writers commit through `syncs` syncs of `sync` ns each; writer `i` commits again `back[i]` ns after the answer. The first
/// commits are spread over a sync. `company`: whether the pace is asked.
fn run(sync: u64, back: &[u64], syncs: u64, company: bool) -> Seen {
    let zero = Instant::now();
    let at = |ns: u64| zero + Duration::from_nanos(ns);
    let mut pace = Pace::new(zero);
    let n = back.len() as u64;
    // When each writer commits next.
    let mut next: Vec<u64> = (0..n).map(|i| i * sync / n).collect();
    let mut seen = Seen {
        waits: Vec::new(),
        syncs,
    };
    let (mut now, mut answered) = (0, 0);
    for _ in 0..syncs {
        let waiting = |next: &[u64], now: u64| next.iter().filter(|t| **t <= now).count() as u64;
        now = now.max(*next.iter().min().unwrap());
        let before = answered + waiting(&next, now);
        if company && let Some((enough, until)) = pace.plan(before, at(now)) {
            let until = until.duration_since(zero).as_nanos() as u64;
            let mut times = next.clone();
            times.sort_unstable();
            let start = now;
            // The ask that makes it enough, or the end of patience.
            now = times[(enough - answered - 1).min(n - 1) as usize]
                .max(start)
                .min(until);
            let after = answered + waiting(&next, now);
            pace.gathered(before, after, Duration::from_nanos(now - start));
        }
        let (began, cut) = (now, answered + waiting(&next, now));
        now += sync;
        let asks = answered + waiting(&next, now);
        pace.synced(cut, asks, at(began), at(now));
        for (commit, back) in next.iter_mut().zip(back) {
            if *commit <= began {
                seen.waits.push((now - *commit) as f64 / sync as f64);
                *commit = now + back;
            }
        }
        answered = cut;
    }
    seen.waits.sort_by(f64::total_cmp);
    seen
}

const MS: u64 = 1_000_000;

/// Writers of a machine that answers one after the other: the last is back when `all` ns are over.
fn one_by_one(n: u64, all: u64) -> Vec<u64> {
    (0..n).map(|i| (i + 1) * all / n).collect()
}

#[test]
fn two_crowds_become_one() {
    let back = one_by_one(64, MS);
    let (apart, together) = (
        run(5 * MS, &back, 500, false),
        run(5 * MS, &back, 500, true),
    );
    assert!(apart.commits_per_sync() < 33.0 && apart.quantile(0.5) > 1.7);
    assert!(together.commits_per_sync() > 60.0 && together.quantile(0.5) < 1.3);
    assert!(together.quantile(0.99) < 2.0, "{}", together.quantile(0.99));
}

#[test]
fn nobody_waits_longer_than_g1_allows() {
    for all in [MS / 10, MS, 3 * MS, 5 * MS, 20 * MS] {
        for writers in [1, 2, 3, 10, 64, 300] {
            let seen = run(5 * MS, &one_by_one(writers, all), 300, true);
            assert!(seen.quantile(1.0) <= 2.0 + 1.0 / f64::from(SHARE));
        }
    }
}

#[test]
fn a_lonely_writer_waits_for_nobody() {
    for back in [0, MS, 30 * MS] {
        let seen = run(5 * MS, &[back], 100, true);
        assert_eq!(seen.quantile(1.0), 1.0, "G3");
    }
}

#[test]
fn company_that_never_comes_is_soon_forgotten() {
    // Whom a sync answers is back two and a half syncs later.
    let back: Vec<u64> = (0..8).map(|i| 12 * MS + i * MS / 3).collect();
    let (apart, together) = (
        run(5 * MS, &back, 1000, false),
        run(5 * MS, &back, 1000, true),
    );
    let mean = |seen: &Seen| seen.waits.iter().sum::<f64>() / seen.waits.len() as f64;
    assert!(mean(&together) < mean(&apart) + 0.05, "G2");
    assert!(together.waits.len() as f64 > apart.waits.len() as f64 * 0.97);
}

#[test]
fn fast_devices_are_not_waited_for() {
    let seen = run(50_000, &one_by_one(16, 10_000), 100, true);
    assert!(seen.quantile(1.0) <= 2.0);
    assert!(seen.commits_per_sync() < 9.0);
}

#[test]
fn the_log_thread_is_woken_once_it_is_enough() {
    let asks = Asks::default();
    assert!(asks.add(true) && !asks.add(false));
    asks.wait_for(5);
    assert!(!asks.add(true) && !asks.add(true) && asks.add(false));
    asks.wait_for(0);
    assert!(asks.add(true));
    assert_eq!(asks.count(), 6);
}
