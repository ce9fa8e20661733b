//! Wait statistics: which resources sessions waited for, how often and how long, and which
//! connections wait now (`SHOW ENGINE NFOLD CONTENTION`).
//!
//! # Picture
//! ```text
//!  waiting thread ── enter(site) ──▶ own shard: sites { site → counts }, waiting { ticket → site, connection, since }
//!                 ◀── leave ───────  adds the time to the site's counts
//!  report: visits all shards in turn and merges them by site
//! ```
//! # Invariants
//! - C1: a thread that does not wait touches nothing here.
//! - C2: a shard keeps at most [`SITES`] sites. To make room it evicts a site with at most the mean
//!   wait time, the one whose last wait is oldest, and adds its counts to its kind's
//!   [`WaitPlace::Rest`]. So sums by kind are exact, and hot sites stay.
//! # Concurrency
//! The threads that share a shard (as with [`crate::Sharded`]) and reports take the shard's mutex.
//! A ticket names its shard, so a wait may end on another thread than it began on.
//! # Cost
//! A wait takes its shard's mutex twice and reads the clock twice.

use std::cell::Cell;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::sharded::shard;

/// The number of sites that one shard keeps.
const SITES: usize = 128;
const SHARDS: usize = 32;

thread_local! {
    static ACTING_FOR: Cell<u32> = const { Cell::new(0) };
}

/// Sets the connection that this thread works for from now on; 0 is the server itself.
#[inline]
pub fn act_for(connection: u32) {
    ACTING_FOR.set(connection);
}

/// The connection that this thread works for; 0 is the server itself.
#[inline]
pub fn acting_for() -> u32 {
    ACTING_FOR.get()
}

/// The kind of resource that is waited for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum WaitKind {
    /// A page's exclusive latch.
    PageLatch,
    /// The release of a page's latch, to read the page.
    PageRead,
    /// The mutex that serializes the splits and merges of a tree.
    TreeShape,
    /// The latch of one shard of the lock manager.
    LockShard,
    RowLock,
    MetadataLock,
    /// A user-level lock (GET_LOCK).
    UserLock,
    /// Log records before a commit that other threads still copy into the ring.
    CommitOrder,
    /// The sync that makes a commit durable.
    CommitSync,
    /// Free space in the log's ring buffer.
    LogRing,
    /// Free space in the log's files, which a checkpoint has to provide.
    LogFiles,
    /// A free frame of the buffer pool.
    FreeFrame,
    /// The mutex of the list of free frames.
    FreeList,
    /// A page that is being read from disk.
    PageLoad,
    /// The growth of a file by more pages.
    FileGrowth,
    /// A higher ceiling of transaction ids, or the switch to another undo file.
    TransactionIds,
}

pub const KINDS: [WaitKind; 16] = [
    WaitKind::PageLatch,
    WaitKind::PageRead,
    WaitKind::TreeShape,
    WaitKind::LockShard,
    WaitKind::RowLock,
    WaitKind::MetadataLock,
    WaitKind::UserLock,
    WaitKind::CommitOrder,
    WaitKind::CommitSync,
    WaitKind::LogRing,
    WaitKind::LogFiles,
    WaitKind::FreeFrame,
    WaitKind::FreeList,
    WaitKind::PageLoad,
    WaitKind::FileGrowth,
    WaitKind::TransactionIds,
];

impl WaitKind {
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::PageLatch => "page latch",
            WaitKind::PageRead => "page read",
            WaitKind::TreeShape => "tree shape",
            WaitKind::LockShard => "lock table",
            WaitKind::RowLock => "row lock",
            WaitKind::MetadataLock => "metadata lock",
            WaitKind::UserLock => "user lock",
            WaitKind::CommitOrder => "commit order",
            WaitKind::CommitSync => "commit sync",
            WaitKind::LogRing => "log buffer",
            WaitKind::LogFiles => "log files",
            WaitKind::FreeFrame => "free frame",
            WaitKind::FreeList => "free list",
            WaitKind::PageLoad => "page load",
            WaitKind::FileGrowth => "file growth",
            WaitKind::TransactionIds => "transaction ids",
        }
    }
}

/// The resource that is waited for, within its kind.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum WaitPlace {
    /// The only resource of its kind.
    Server,
    Page {
        space: u32,
        page: u32,
    },
    /// An index, by its id.
    Index(u64),
    /// A row lock, by the lock manager's own key.
    Row(Arc<[u8]>),
    /// A table, by its id.
    Table(u64),
    /// All resources of the kind without a site of their own (C2).
    Rest,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Site {
    pub kind: WaitKind,
    pub place: WaitPlace,
}

impl Site {
    /// The site of a kind that has only one resource.
    pub fn of(kind: WaitKind) -> Site {
        Site {
            kind,
            place: WaitPlace::Server,
        }
    }

    pub fn page(kind: WaitKind, space: u32, page: u32) -> Site {
        Site {
            kind,
            place: WaitPlace::Page { space, page },
        }
    }
}

/// The page's type, and the index id and level in its header.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PageAbout {
    pub page_type: u16,
    pub index: u64,
    pub level: u16,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    waits: u64,
    time: Duration,
    longest: Duration,
    about: Option<PageAbout>,
    /// The shard's clock at the site's last wait.
    last: u64,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.waits += other.waits;
        self.time += other.time;
        self.longest = self.longest.max(other.longest);
        self.about = self.about.or(other.about);
    }
}

struct Waiting {
    site: Site,
    connection: u32,
    since: Instant,
}

#[derive(Default)]
struct Shard {
    sites: FxHashMap<Site, Counts>,
    waiting: FxHashMap<u64, Waiting>,
    /// Counts the shard's waits. It also numbers the tickets.
    clock: u64,
}

/// A wait in progress. [`Contention::leave`] takes it back.
#[derive(Debug)]
#[must_use]
pub struct Ticket {
    shard: usize,
    number: u64,
}

/// One site of a report.
#[derive(Clone, Debug)]
pub struct SiteReport {
    pub site: Site,
    pub about: Option<PageAbout>,
    /// The number of waits, those still in progress included.
    pub waits: u64,
    /// The total wait time, that of waits still in progress included.
    pub time: Duration,
    pub longest: Duration,
    /// The connections that wait here now, longest wait first; 0 is the server itself.
    pub waiting: Vec<u32>,
}

/// The wait statistics of one engine. See the module's header.
#[derive(Default)]
pub struct Contention {
    shards: Shards,
}

#[repr(align(128))]
#[derive(Default)]
struct Padded(Mutex<Shard>);

struct Shards(Box<[Padded]>);

impl Default for Shards {
    fn default() -> Self {
        Shards((0..SHARDS).map(|_| Padded::default()).collect())
    }
}

impl Contention {
    fn shard(&self, at: usize) -> MutexGuard<'_, Shard> {
        let Padded(shard) = &self.shards.0[at % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a wait of the connection that this thread [acts for](act_for).
    pub fn enter(&self, site: Site) -> Ticket {
        self.enter_page(site, None)
    }

    /// Begins a wait at a page. `about` describes the page, so that a report can name its index
    /// while the first wait is still in progress.
    pub fn enter_page(&self, site: Site, about: Option<PageAbout>) -> Ticket {
        let at = shard() % SHARDS;
        let (connection, since) = (acting_for(), Instant::now());
        let mut shard = self.shard(at);
        shard.clock += 1;
        let number = shard.clock;
        let counts = shard.counts(&site);
        counts.waits += 1;
        counts.last = number;
        counts.about = counts.about.or(about);
        let waiting = Waiting {
            site,
            connection,
            since,
        };
        shard.waiting.insert(number, waiting);
        Ticket { shard: at, number }
    }

    /// Ends a wait. `about` describes the page, if the site is one.
    pub fn leave(&self, ticket: Ticket, about: Option<PageAbout>) {
        let now = Instant::now();
        let mut shard = self.shard(ticket.shard);
        let Some(waited) = shard.waiting.remove(&ticket.number) else {
            return;
        };
        let time = now.saturating_duration_since(waited.since);
        let counts = shard.counts(&waited.site);
        counts.time += time;
        counts.longest = counts.longest.max(time);
        counts.about = about.or(counts.about);
    }

    /// Runs the blocking function `wait` as a wait at `site`.
    pub fn during<T>(&self, site: Site, wait: impl FnOnce() -> T) -> T {
        let ticket = self.enter(site);
        let result = wait();
        self.leave(ticket, None);
        result
    }

    /// All waits in progress: the connection (0: the server itself) and the site of each.
    pub fn waiting(&self) -> Vec<(u32, Site)> {
        let mut out = Vec::new();
        for at in 0..SHARDS {
            let shard = self.shard(at);
            let waits = shard.waiting.values();
            out.extend(waits.map(|w| (w.connection, w.site.clone())));
        }
        out
    }

    /// The site where a connection waits now, if it does.
    pub fn site_of(&self, connection: u32) -> Option<Site> {
        (0..SHARDS).find_map(|at| {
            let shard = self.shard(at);
            let mut waits = shard.waiting.values();
            let found = waits.find(|w| w.connection == connection);
            found.map(|w| w.site.clone())
        })
    }

    /// All sites with waits, the one with the longest total time first.
    pub fn report(&self) -> Vec<SiteReport> {
        let mut sites: FxHashMap<Site, Counts> = FxHashMap::default();
        let mut waiting = Vec::new();
        for at in 0..SHARDS {
            let shard = self.shard(at);
            for (site, counts) in &shard.sites {
                sites.entry(site.clone()).or_default().add(counts);
            }
            let now = Instant::now();
            waiting.extend(shard.waiting.values().map(|w| {
                let time = now.saturating_duration_since(w.since);
                (w.site.clone(), time, w.connection)
            }));
        }
        waiting.sort_by_key(|(_, time, _)| std::cmp::Reverse(*time));
        let mut who: FxHashMap<Site, Vec<u32>> = FxHashMap::default();
        for (site, time, connection) in waiting {
            let counts = sites.entry(site.clone()).or_default();
            counts.time += time;
            counts.longest = counts.longest.max(time);
            who.entry(site).or_default().push(connection);
        }
        let mut out: Vec<SiteReport> = sites
            .into_iter()
            .map(|(site, counts)| SiteReport {
                waiting: who.remove(&site).unwrap_or_default(),
                site,
                about: counts.about,
                waits: counts.waits,
                time: counts.time,
                longest: counts.longest,
            })
            .collect();
        out.sort_by_key(|r| (std::cmp::Reverse((r.time, r.waits)), r.site.kind));
        out
    }
}

impl Shard {
    /// The counts of a site. Makes room for a new site if the shard is full (C2).
    fn counts(&mut self, site: &Site) -> &mut Counts {
        if !self.sites.contains_key(site) {
            if self.sites.len() >= SITES {
                self.make_room();
            }
            self.sites.insert(site.clone(), Counts::default());
        }
        self.sites.get_mut(site).expect("C2: the site is there")
    }

    fn make_room(&mut self) {
        let kept = |site: &Site| site.place == WaitPlace::Rest;
        let own = self.sites.iter().filter(|(site, _)| !kept(site));
        let (count, all) = own.fold((0, Duration::ZERO), |(count, all), (_, counts)| {
            (count + 1, all + counts.time)
        });
        let mean = all / u32::max(1, count);
        let least = self
            .sites
            .iter()
            .filter(|(site, counts)| !kept(site) && counts.time <= mean)
            .min_by_key(|(_, counts)| counts.last);
        // If only few sites are left beside the `Rest` sites, all of them may be above the mean.
        let oldest = || {
            let own = self.sites.iter().filter(|(site, _)| !kept(site));
            own.min_by_key(|(_, counts)| counts.last)
        };
        let Some((site, _)) = least.or_else(oldest) else {
            return;
        };
        let site = site.clone();
        let Some(counts) = self.sites.remove(&site) else {
            return;
        };
        let rest = Site {
            kind: site.kind,
            place: WaitPlace::Rest,
        };
        let rest = self.sites.entry(rest).or_default();
        rest.add(&counts);
        rest.about = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(page: u32) -> Site {
        Site::page(WaitKind::PageLatch, 7, page)
    }

    #[test]
    fn report_shows_waiting_connections() {
        let contention = Contention::default();
        assert!(contention.report().is_empty());
        act_for(12);
        let first = contention.enter(page(3));
        act_for(13);
        let second = contention.enter(page(3));
        act_for(0);
        let third = contention.enter(Site::of(WaitKind::CommitSync));
        let report = contention.report();
        assert_eq!(report.len(), 2);
        let hot = report.iter().find(|r| r.site == page(3)).unwrap();
        assert_eq!((hot.waits, &hot.waiting[..]), (2, &[12, 13][..]));
        let sync = report.iter().find(|r| r.site.place == WaitPlace::Server);
        assert_eq!(sync.unwrap().waiting, [0]);
        assert_eq!(contention.site_of(13), Some(page(3)));
        assert_eq!(contention.site_of(14), None);
        assert_eq!(contention.waiting().len(), 3);

        let about = PageAbout {
            page_type: 1,
            index: 40,
            level: 2,
        };
        contention.leave(second, Some(about));
        contention.leave(first, None);
        contention.leave(third, None);
        let report = contention.report();
        let hot = report.iter().find(|r| r.site == page(3)).unwrap();
        assert_eq!((hot.waits, hot.waiting.len()), (2, 0));
        assert_eq!(hot.about, Some(about));
        assert!(hot.longest <= hot.time);
    }

    #[test]
    fn first_wait_in_progress_names_the_page() {
        let contention = Contention::default();
        let about = |index| PageAbout {
            page_type: 1,
            index,
            level: 0,
        };
        let first = contention.enter_page(page(3), Some(about(40)));
        assert_eq!(contention.report()[0].about, Some(about(40)));
        let second = contention.enter_page(page(3), Some(about(41)));
        assert_eq!(contention.report()[0].about, Some(about(40)));
        contention.leave(second, Some(about(42)));
        contention.leave(first, None);
        assert_eq!(contention.report()[0].about, Some(about(42)));
    }

    #[test]
    fn wait_may_end_on_another_thread() {
        let contention = Contention::default();
        let ticket = contention.enter(page(1));
        std::thread::scope(|s| {
            s.spawn(|| contention.leave(ticket, None));
        });
        let report = contention.report();
        assert_eq!((report[0].waits, report[0].waiting.len()), (1, 0));
    }

    #[test]
    fn eviction_keeps_hot_sites_and_exact_sums() {
        let contention = Contention::default();
        let mut begun = 0;
        let mut once = |site: Site, time: u64| {
            let ticket = contention.enter(site.clone());
            let (shard, number) = (ticket.shard, ticket.number);
            contention.leave(ticket, None);
            let mut shard = contention.shard(shard);
            assert!(!shard.waiting.contains_key(&number));
            shard.sites.get_mut(&site).unwrap().time = Duration::from_secs(time);
            begun += 1;
        };
        once(page(0), 100_000);
        for n in 1..=10 * SITES as u32 {
            once(page(n), 1);
            if n % 50 == 0 {
                once(page(0), 100_000);
            }
        }
        let report = contention.report();
        assert!(report.len() <= SITES + 1, "C2: {}", report.len());
        assert_eq!(report[0].site, page(0), "C2: hot sites stay");
        assert_eq!(report.iter().map(|r| r.waits).sum::<u64>(), begun);
        let rest = |r: &&SiteReport| r.site.place == WaitPlace::Rest;
        assert_eq!(report.iter().filter(rest).count(), 1);
    }

    #[test]
    fn kinds_have_different_names() {
        let names: std::collections::BTreeSet<_> = KINDS.iter().map(|k| k.name()).collect();
        assert_eq!(names.len(), KINDS.len());
    }
}
