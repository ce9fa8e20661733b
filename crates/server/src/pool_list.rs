//! The list of pages in memory that a server writes for its next start:
//! `innodb_buffer_pool_dump_at_shutdown` and related variables.
//!
//! # Picture
//! ```text
//! ib_buffer_pool   one line a page, as InnoDB writes it:  space,page
//!                  written to ib_buffer_pool.incomplete, synced, renamed
//! ```
//! # Concurrency
//! One thread at a time dumps or loads; a second request meanwhile is ignored, as in MySQL. A load
//! reads at most `innodb_io_capacity` pages a second, after the reads that sessions wait for. It
//! ends when the pool has no free page: it evicts nothing.
//! # Failure
//! The list is a hint. With a missing, truncated or damaged file, or pages that no longer exist,
//! the pool just starts cold. `Innodb_buffer_pool_load_status` shows the problem.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nfold_engine::Engine;
use nfold_types::temporal::{TimeZone, Timestamp};
use parking_lot::{Condvar, Mutex};

/// The number of pages that are requested at a time.
const SLICE: u32 = 256;
/// A larger file is not such a list: a line has at most 22 bytes, and this suffices for all pages
/// of the largest pool.
const MAX_BYTES: u64 = 1 << 32;

#[derive(Default)]
struct State {
    dump_status: String,
    load_status: String,
    /// The current or the last thread.
    thread: Option<JoinHandle<()>>,
    working: bool,
    /// A load was stopped, so the pages in memory are fewer than the list should have.
    incomplete: bool,
    /// Whether the load should stop.
    abort: bool,
    closed: bool,
}

/// The list of one server; see the module's header.
pub struct PoolList {
    engine: Arc<Engine>,
    dir: PathBuf,
    /// `innodb_io_capacity`.
    capacity: AtomicU32,
    state: Mutex<State>,
    bell: Condvar,
}

impl PoolList {
    pub fn new(engine: Arc<Engine>, dir: &Path) -> Arc<PoolList> {
        let state = State {
            dump_status: "Dumping of buffer pool not started".into(),
            load_status: "Loading of buffer pool not started".into(),
            ..State::default()
        };
        Arc::new(PoolList {
            engine,
            dir: dir.to_path_buf(),
            capacity: AtomicU32::new(10_000),
            state: Mutex::new(state),
            bell: Condvar::new(),
        })
    }

    /// Sets `innodb_io_capacity`, in pages a second.
    pub fn set_capacity(&self, pages: u32) {
        self.capacity.store(pages.max(1), Relaxed);
    }

    /// The values of `Innodb_buffer_pool_dump_status` and `Innodb_buffer_pool_load_status`.
    pub fn status(&self) -> [(&'static str, String); 2] {
        let state = self.state.lock();
        [
            ("Innodb_buffer_pool_dump_status", state.dump_status.clone()),
            ("Innodb_buffer_pool_load_status", state.load_status.clone()),
        ]
    }

    /// `innodb_buffer_pool_dump_now`: writes `percent` of the pages in memory to the file, in the
    /// background.
    pub fn dump(self: &Arc<Self>, file: &str, percent: u32) {
        let path = self.dir.join(file);
        self.spawn(move |list| list.dump_now(&path, percent));
    }

    /// `innodb_buffer_pool_load_now`, and at startup: loads the pages in the file, in the
    /// background.
    pub fn load(self: &Arc<Self>, file: &str) {
        let path = self.dir.join(file);
        self.spawn(move |list| list.load_now(&path));
    }

    /// `innodb_buffer_pool_load_abort`.
    pub fn abort(&self) {
        let mut state = self.state.lock();
        state.abort = state.working;
        self.bell.notify_all();
    }

    /// Called at shutdown: stops a load, and writes the file if `dump` names one. It is not written
    /// if a load was stopped by this.
    pub fn close(&self, dump: Option<(&str, u32)>) {
        let thread = {
            let mut state = self.state.lock();
            state.closed = true;
            state.abort = true;
            self.bell.notify_all();
            state.thread.take()
        };
        if let Some(thread) = thread {
            // A thread that panicked has reported it.
            drop(thread.join());
        }
        let Some((file, percent)) = dump else { return };
        if self.state.lock().incomplete {
            tracing::info!("the list of pages in memory stays as it is: it was still being loaded");
            return;
        }
        self.dump_now(&self.dir.join(file), percent);
    }

    fn spawn(self: &Arc<Self>, work: impl FnOnce(&PoolList) + Send + 'static) {
        let mut state = self.state.lock();
        if state.working || state.closed {
            return;
        }
        state.working = true;
        state.abort = false;
        let list = self.clone();
        let thread = std::thread::Builder::new()
            .name("nfold-pool-list".into())
            .spawn(move || {
                work(&list);
                list.state.lock().working = false;
            });
        match thread {
            Ok(thread) => state.thread = Some(thread),
            Err(error) => {
                state.working = false;
                tracing::warn!(%error, "no thread for the list of pages in memory");
            }
        }
    }

    fn say_dump(&self, text: String) {
        tracing::info!("{text}");
        self.state.lock().dump_status = text;
    }

    fn say_load(&self, text: String) {
        tracing::info!("{text}");
        self.state.lock().load_status = text;
    }

    fn dump_now(&self, path: &Path, percent: u32) {
        self.state.lock().dump_status = format!("Dumping buffer pool(s) to {}", path.display());
        let pages = self.engine.pages_in_memory(percent);
        let told = match write(path, &pages) {
            Ok(()) => format!("Buffer pool(s) dump completed at {}", clock_now()),
            Err(e) => format!("Cannot open '{}' for writing: {e}", path.display()),
        };
        self.say_dump(told);
    }

    fn load_now(&self, path: &Path) {
        let mut pages = match read(path) {
            Ok(Some(pages)) => pages,
            Ok(None) => {
                let shown = path.display();
                let text = format!("Error parsing '{shown}', unable to load buffer pool");
                return self.say_load(text);
            }
            Err(e) => {
                let text = format!("Cannot open '{}' for reading: {e}", path.display());
                return self.say_load(text);
            }
        };
        // Keeps the most used pages, as many as fit, and reads them in file order.
        pages.truncate(self.room());
        pages.sort_unstable();
        pages.dedup();
        self.state.lock().incomplete = true;
        let mut done = 0;
        while done < pages.len() {
            let capacity = self.capacity.load(Relaxed);
            let slice = SLICE.min(capacity.div_ceil(10)) as usize;
            let end = pages.len().min(done + slice);
            let due = Instant::now() + Duration::from_secs(1) * slice as u32 / capacity;
            if self.room() < 2 * slice {
                break;
            }
            self.engine.warm(&pages[done..end]);
            done = end;
            self.state.lock().load_status = format!("Loaded {done}/{} pages", pages.len());
            if !self.pause_until(due) {
                return self.say_load("Buffer pool(s) load aborted on request".into());
            }
        }
        self.state.lock().incomplete = false;
        self.say_load(format!("Buffer pool(s) load completed at {}", clock_now()));
    }

    /// The number of free pages in the pool.
    fn room(&self) -> usize {
        usize::try_from(self.engine.store_status().pool_pages_free).unwrap_or(usize::MAX)
    }

    /// Waits until `due`. False: the load should stop.
    fn pause_until(&self, due: Instant) -> bool {
        let mut state = self.state.lock();
        while !state.abort && Instant::now() < due {
            self.bell.wait_until(&mut state, due);
        }
        !state.abort
    }
}

/// Replaces the list atomically.
fn write(path: &Path, pages: &[(u32, u32)]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".incomplete");
    let temporary = PathBuf::from(name);
    let mut out = BufWriter::new(File::create(&temporary)?);
    for (space, page) in pages {
        writeln!(out, "{space},{page}")?;
    }
    out.into_inner()?.sync_all()?;
    fs::rename(&temporary, path)
}

/// Reads the pages of a list; `None`: the file is not a list.
fn read(path: &Path) -> io::Result<Option<Vec<(u32, u32)>>> {
    let whole = fs::metadata(path)?.len() <= MAX_BYTES;
    Ok(match fs::read(path)? {
        bytes if whole => parse(&bytes),
        _ => None,
    })
}

fn parse(bytes: &[u8]) -> Option<Vec<(u32, u32)>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let page = |line: &str| {
        let (space, page) = line.split_once(',')?;
        Some((space.parse().ok()?, page.trim_end().parse().ok()?))
    };
    text.lines().map(page).collect()
}

/// The current time in the format of InnoDB's messages.
fn clock_now() -> String {
    clock_text(SystemTime::now())
}

/// Local time in the format of InnoDB's messages: `261121  7:46:46`.
pub(crate) fn clock_text(at: SystemTime) -> String {
    let micros = at
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_micros() as i64);
    let local = TimeZone::system().to_local(Timestamp::from_micros(micros, 0));
    let Some(t) = local else {
        return String::new();
    };
    let (date, seconds) = (t.date(), t.time().micros() / 1_000_000);
    format!(
        "{:02}{:02}{:02} {:2}:{:02}:{:02}",
        date.year() % 100,
        date.month(),
        date.day(),
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_and_nothing_else_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        assert!(read(&path).is_err(), "there is none");
        for pages in [vec![], vec![(1, 0), (7, u32::MAX), (7, 3)]] {
            write(&path, &pages).unwrap();
            assert_eq!(read(&path).unwrap(), Some(pages));
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
        for bad in [
            "x",
            "1",
            "1,",
            "1,2,3",
            "1,2\n\n3,4",
            "-1,2",
            "1,4294967296",
            "\0\0",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(parse(&[b'1', b',', 0xff]), None);
        assert_eq!(parse(b"1,2\r\n3,4"), Some(vec![(1, 2), (3, 4)]));
    }
}
