//! Group commit over a device whose syncs end when the test says so, and one whose syncs take as long each.

use nfold_store::*;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Syncs of the log that have begun, and how many may end.
#[derive(Default)]
struct Syncs {
    begun: u64,
    allowed: Option<u64>,
    /// How long each takes.
    lasts: Duration,
}

/// A [`SimDisk`] with a say in when syncs of the log are over.
#[derive(Clone, Default)]
struct SlowDisk {
    inner: SimDisk,
    syncs: Arc<(Mutex<Syncs>, Condvar)>,
}

impl SlowDisk {
    fn change(&self, change: impl FnOnce(&mut Syncs)) {
        change(&mut self.syncs.0.lock().unwrap());
        self.syncs.1.notify_all();
    }

    fn wait_until(&self, done: impl Fn(&Syncs) -> bool) {
        let guard = self.syncs.0.lock().unwrap();
        drop(self.syncs.1.wait_while(guard, |s| !done(s)).unwrap());
    }
}

struct SlowFile {
    inner: Arc<dyn DiskFile>,
    /// Of the log.
    slow: Option<SlowDisk>,
}

impl Disk for SlowDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SlowFile {
            inner: self.inner.open(name, mode)?,
            slow: name.starts_with("redo.").then(|| self.clone()),
        }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.inner.exists(name)
    }
}

impl DiskFile for SlowFile {
    fn read_at(&self, off: u64, buf: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(off, buf)
    }

    fn write_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        self.inner.write_at(off, buf)
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Some(disk) = &self.slow {
            let (mut number, mut lasts) = (0, Duration::ZERO);
            disk.change(|s| {
                s.begun += 1;
                (number, lasts) = (s.begun, s.lasts);
            });
            disk.wait_until(|s| s.allowed.is_none_or(|n| number <= n));
            std::thread::sleep(lasts);
        }
        self.inner.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn allocate(&self, off: u64, len: u64) -> io::Result<()> {
        self.inner.allocate(off, len)
    }
}

fn open(disk: &SlowDisk) -> Arc<Store> {
    let options = StoreOptions {
        pool_bytes: 512 * PAGE_SIZE as u64,
        log_bytes: 16 << 20,
        io_threads: 1,
        ..StoreOptions::default()
    };
    let (store, _) =
        Store::open(options, Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {}).unwrap();
    store
}

fn finish<T>(mut call: impl FnMut() -> Result<T, Stop>) -> T {
    loop {
        match call() {
            Ok(value) => return value,
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(e)) => panic!("{e}"),
        }
    }
}

/// A page of the space, or another change of it: where its mini-transaction ends.
fn change(store: &Store, space: SpaceId, page: Option<PageId>) -> (PageId, Lsn) {
    finish(|| {
        let mut mtr = store.mtr();
        mtr.reserve(256, space, u32::from(page.is_none()) as _)?;
        let p = match page {
            Some(page) => mtr.latch(page)?,
            None => mtr.alloc_page(space, PageType::USER, 0, 1),
        };
        mtr.write(p, 64, &[1; 100]);
        Ok((mtr.id(p), mtr.commit().end))
    })
}

/// A commit that comes while a sync is under way waits for the end of that one and for the next, and for nothing else.
#[test]
fn a_commit_waits_for_two_syncs_at_most() {
    let disk = SlowDisk::default();
    let store = open(&disk);
    let space = store.create_space("t").unwrap();
    let (page, _) = change(&store, space, None);
    for _ in 0..20 {
        let mut begun = 0;
        disk.change(|s| {
            begun = s.begun;
            s.allowed = Some(begun);
        });
        let first = change(&store, space, Some(page)).1;
        let wait = store.wait_durable(first).expect("no sync may end");
        disk.wait_until(|s| s.begun > begun);
        let second = change(&store, space, Some(page)).1;
        let next = store.wait_durable(second).expect("no sync may end");
        disk.change(|s| s.allowed = Some(begun + 1));
        wait.block();
        disk.wait_until(|s| s.begun > begun + 1);
        assert!(store.durable_lsn() < second);
        disk.change(|s| s.allowed = Some(begun + 2));
        next.block();
        disk.change(|s| s.allowed = None);
        while let Some(wait) = store.wait_durable(second) {
            wait.block();
        }
    }
}

/// Prints what 64 writers meet where a sync takes 2, 5 and 10 ms: `cargo test -p nfold-store --test group_commit -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn waits_of_64_writers() {
    for (ms, writers) in [(2, 64), (5, 64), (10, 64), (5, 1), (5, 2), (5, 8)] {
        let disk = SlowDisk::default();
        let store = open(&disk);
        let space = store.create_space("t").unwrap();
        let pages: Vec<_> = (0..writers)
            .map(|_| change(&store, space, None).0)
            .collect();
        let lasts = Duration::from_millis(ms);
        disk.change(|s| s.lasts = lasts);
        let end = Instant::now() + lasts * 300;
        let before = disk.syncs.0.lock().unwrap().begun;
        let mut waits: Vec<f64> = std::thread::scope(|scope| {
            let threads: Vec<_> = pages
                .iter()
                .map(|page| scope.spawn(|| commits(&store, *page, end)))
                .collect();
            threads
                .into_iter()
                .flat_map(|t| t.join().unwrap())
                .collect()
        });
        let syncs = disk.syncs.0.lock().unwrap().begun - before;
        waits.sort_by(f64::total_cmp);
        let quantile =
            |q: f64| waits[((waits.len() - 1) as f64 * q) as usize] / lasts.as_secs_f64();
        println!(
            "{writers} writers, {ms} ms: {:.1} commits a sync; waits in syncs: p50 {:.2}, p99 {:.2}, most {:.2}",
            waits.len() as f64 / syncs as f64,
            quantile(0.5),
            quantile(0.99),
            quantile(1.0),
        );
    }
}

/// Commits one after the other until `end`; how long each took, in seconds.
fn commits(store: &Store, page: PageId, end: Instant) -> Vec<f64> {
    let mut waits = Vec::new();
    while Instant::now() < end {
        let lsn = change(store, page.space, Some(page)).1;
        let start = Instant::now();
        finish(|| {
            store
                .wait_durable(lsn)
                .map_or(Ok(()), |w| Err(Stop::Wait(w)))
        });
        waits.push(start.elapsed().as_secs_f64());
    }
    waits
}
