//! The hit rate of a pool that is too small: point reads with Zipf's distribution over five times
//! as many pages as there are frames, alone and beside full scans. The yardstick is the best static
//! cache, which always contains the most frequently read pages.

use nfold_store::*;
use std::cell::Cell;
use std::sync::Arc;

const FRAMES: usize = 512;
const PAGES: usize = 5 * FRAMES;
const READS: usize = 30_000;

struct World {
    store: Arc<Store>,
    ids: Vec<PageId>,
    misses: Cell<u64>,
}

impl World {
    fn new() -> World {
        let options = StoreOptions {
            pool_bytes: (FRAMES * PAGE_SIZE) as u64,
            doublewrite: false,
            ..StoreOptions::default()
        };
        let (store, _) =
            Store::open(options, Arc::new(SimDisk::new()), Arc::new(NoRedo), &|_| {}).unwrap();
        let space = store.create_space("t").unwrap();
        let ids = (0..PAGES)
            .map(|_| {
                let mut mtr = store.mtr();
                mtr.reserve(100, space, 1).unwrap();
                let p = mtr.alloc_page(space, PageType::USER, 0, 1);
                let id = mtr.id(p);
                mtr.commit();
                id
            })
            .collect();
        store.checkpoint().unwrap();
        let misses = Cell::new(store.status().read_misses);
        World { store, ids, misses }
    }

    /// Reads a page like a statement: several reads in a row. Returns whether it was resident.
    fn read(&self, page: usize) -> bool {
        for _ in 0..4 {
            assert!(self.store.read(self.ids[page]).unwrap().validate());
        }
        let misses = self.store.status().read_misses;
        self.misses.replace(misses) == misses
    }
}

/// Ranks with Zipf's distribution of exponent `theta`, scattered over the pages.
struct Zipf {
    below: Vec<f64>,
    place: Vec<usize>,
    rng: SimRng,
}

impl Zipf {
    fn new(theta: f64, seed: u64) -> Zipf {
        let mut rng = SimRng::new(seed);
        let mut place: Vec<usize> = (0..PAGES).collect();
        for i in (1..PAGES).rev() {
            place.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let mut sum = 0.0;
        let below = (1..=PAGES)
            .map(|rank| {
                sum += (rank as f64).powf(-theta);
                sum
            })
            .collect();
        Zipf { below, place, rng }
    }

    fn next(&mut self) -> usize {
        let unit = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let at = unit * self.below[PAGES - 1];
        self.place[self.below.partition_point(|b| *b < at).min(PAGES - 1)]
    }
}

/// Returns the hits as a share of the best static cache's hits. With `scan_every`, a scan advances
/// by one page after that many point reads, in runs of 16 as read-ahead does.
fn against_the_best(theta: f64, scan_every: Option<usize>) -> f64 {
    let world = World::new();
    let mut zipf = Zipf::new(theta, 7);
    let mut scan = 0;
    let (mut hits, mut counts) = (0usize, vec![0usize; PAGES]);
    for turn in 0..2 * READS {
        let page = zipf.next();
        let hit = world.read(page);
        if turn >= READS {
            hits += usize::from(hit);
            counts[page] += 1;
        }
        if scan_every.is_some_and(|n| turn % (16 * n) == 0) {
            for _ in 0..16 {
                world.read(scan % PAGES);
                scan += 1;
            }
        }
    }
    if scan_every.is_some() {
        assert!(scan > 4 * PAGES, "the scan covered all pages several times");
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let best: usize = counts[..FRAMES].iter().sum();
    let share = hits as f64 / best as f64;
    println!(
        "theta {theta}, scan {scan_every:?}: {hits} hits of {READS}, best static {best}, share {share:.3}, marks {}",
        world.store.status().clock_marks
    );
    share
}

#[test]
fn point_reads_keep_hot_pages_resident() {
    for theta in [0.8, 0.99, 1.2] {
        let share = against_the_best(theta, None);
        assert!(share >= 0.85, "theta {theta}: {share}");
    }
}

#[test]
fn scans_do_not_evict_hot_pages() {
    for theta in [0.8, 0.99, 1.2] {
        for every in if theta == 0.99 { vec![1, 4] } else { vec![1] } {
            let share = against_the_best(theta, Some(every));
            assert!(share >= 0.8, "theta {theta}, scan every {every}: {share}");
        }
    }
}

#[test]
fn resident_working_set_is_rarely_marked() {
    let world = World::new();
    let set = FRAMES / 2;
    let pass = || {
        (0..set)
            .map(|page| usize::from(world.read(page)))
            .sum::<usize>()
    };
    pass();
    pass();
    let marks = world.store.status().clock_marks;
    for _ in 0..50 {
        assert_eq!(pass(), set, "all pages stay resident");
    }
    assert_eq!(world.store.status().clock_marks, marks, "hits set no marks");
}
