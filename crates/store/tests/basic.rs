//! The store as higher layers use it, with one thread and inline I/O.

use nfold_store::*;
use std::sync::Arc;

/// Operation 0x20 fills the page body with the payload's only byte.
struct Fill;

impl RedoHandler for Fill {
    fn apply(&self, op: u8, payload: &[u8], page: &PageMut<'_>) -> Result<(), StoreError> {
        match (op, payload) {
            (0x20, [byte]) => {
                page.write(PAGE_HEADER, &vec![*byte; PAGE_SIZE - PAGE_HEADER]);
                Ok(())
            }
            _ => Err(page.corrupt("unknown op")),
        }
    }
}

fn open(disk: Arc<dyn Disk>, options: StoreOptions) -> (Arc<Store>, RecoveryReport) {
    Store::open(options, disk, Arc::new(Fill), &|_| {}).unwrap()
}

fn new_page(store: &Store, space: SpaceId, byte: u8) -> PageId {
    let mut mtr = store.mtr();
    mtr.reserve(256, space, 1).unwrap();
    let p = mtr.alloc_page(space, PageType::USER, 3, 77);
    mtr.op(p, 0x20, &[byte]);
    mtr.set_newest_trx(p, 1000 + u64::from(byte));
    let id = mtr.id(p);
    let end = mtr.commit();
    assert!(end.start < end.end && store.horizon().load() >= end.end);
    id
}

fn check(store: &Store, id: PageId, byte: u8) {
    let page = store.read(id).unwrap();
    let mut out = vec![0; PAGE_SIZE - PAGE_HEADER];
    page.copy(PAGE_HEADER, &mut out);
    assert_eq!(
        (page.page_type(), page.level(), page.index_id()),
        (PageType::USER, 3, 77)
    );
    assert_eq!(page.newest_trx(), 1000 + u64::from(byte));
    assert!(page.validate());
    assert!(out.iter().all(|b| *b == byte), "page {id} contains {byte}");
}

#[test]
fn pages_survive_shutdown_on_real_disk() {
    on_a_real_disk(false);
    on_a_real_disk(true);
}

fn on_a_real_disk(direct: bool) {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::new(dir.path(), direct));
    let (store, report) = open(disk.clone(), StoreOptions::default());
    assert!(report.created);
    let space = store.create_space("t1").unwrap();
    let ids: Vec<_> = (0..10).map(|i| new_page(&store, space, i)).collect();
    store.shutdown().unwrap();
    assert!(matches!(
        store.mtr().reserve(1, space, 0),
        Err(Stop::Error(StoreError::ShuttingDown))
    ));
    drop(store);

    let (store, report) = open(disk, StoreOptions::default());
    assert!(report.clean && !report.created, "{report:?}");
    assert_eq!(store.spaces_on_disk().unwrap(), [(space, "t1".to_string())]);
    assert!(matches!(
        store.read(ids[0]),
        Err(Stop::Error(StoreError::SpaceGone(_)))
    ));
    store.open_space(space, "t1").unwrap();
    for (i, id) in ids.iter().enumerate() {
        check(&store, *id, i as u8);
    }
    let next = store.create_space("t2").unwrap();
    assert!(next > space, "ids are never reused");
}

#[test]
fn committed_pages_survive_kill_with_small_pool() {
    let disk = SimDisk::new();
    let options = StoreOptions {
        pool_bytes: 40 * PAGE_SIZE as u64,
        log_bytes: 1 << 20,
        ..StoreOptions::default()
    };
    let (store, _) = open(Arc::new(disk.clone()), options.clone());
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..200u32)
        .map(|i| new_page(&store, space, i as u8))
        .collect();
    for (i, id) in ids.iter().enumerate() {
        check(&store, *id, i as u8);
    }
    let lsn = store.horizon().load();
    assert!(store.wait_durable(lsn).is_none());
    assert_eq!(store.durable_lsn(), lsn);
    let status = store.status();
    assert!(
        status.pages_evicted > 0 && status.pages_written > 0 && status.checkpoint_lsn > 0,
        "{status:?}"
    );
    let disk = disk.crash(1);
    drop(store);
    let (store, report) = open(Arc::new(disk), options);
    assert!(
        !report.clean && report.corrupt_pages.is_empty(),
        "{report:?}"
    );
    assert_eq!(report.end_lsn, lsn);
    assert!(store.next_trx_id_floor() > 1199);
    store.open_space(space, "t").unwrap();
    for (i, id) in ids.iter().enumerate() {
        check(&store, *id, i as u8);
    }
}

#[test]
fn optimistic_read_detects_change() {
    let (store, _) = open(Arc::new(SimDisk::new()), StoreOptions::default());
    let space = store.create_space("t").unwrap();
    let id = new_page(&store, space, 1);
    let page = store.read(id).unwrap();
    assert!(page.validate());

    let mut mtr = store.mtr();
    let p = mtr.upgrade(&page).unwrap();
    assert_eq!(mtr.find(id), Some(p));
    assert_eq!(mtr.latch(id).unwrap(), p);
    assert!(!page.validate(), "a latched page does not validate");
    mtr.unlatch(p);
    assert!(
        page.validate(),
        "a latch without a change keeps the version"
    );

    let p = mtr.latch(id).unwrap();
    mtr.write(p, 100, b"hello");
    let mut seen = 0;
    let end = mtr.commit_with(|lsn| seen = lsn);
    assert_eq!(seen, end.end);
    assert!(!page.validate());
    assert!(store.mtr().upgrade(&page).is_none());
    let page = store.read(id).unwrap();
    let mut out = Vec::new();
    page.append(100, 5, &mut out);
    assert_eq!(out, b"hello");
    assert_eq!(page.u64(header::LSN), end.end);
}

#[test]
fn unchanged_mtr_releases_latches_and_writes_no_log() {
    let (store, _) = open(Arc::new(SimDisk::new()), StoreOptions::default());
    let space = store.create_space("t").unwrap();
    let id = new_page(&store, space, 1);
    let before = store.horizon().load();
    let mut mtr = store.mtr();
    mtr.reserve(1000, space, 2).unwrap();
    mtr.latch(id).unwrap();
    drop(mtr);
    let mut mtr = store.mtr();
    mtr.latch(id).unwrap();
    let end = mtr.commit();
    assert_eq!((end.start, end.end), (before, before));
    assert_eq!(store.horizon().load(), before);
}

/// A pool for more pages than the free list in a space's header has room for.
fn roomy() -> (Arc<Store>, SpaceId) {
    let options = StoreOptions {
        pool_bytes: 96 << 20,
        log_bytes: 16 << 20,
        ..StoreOptions::default()
    };
    let (store, _) = open(Arc::new(SimDisk::new()), options);
    let space = store.create_space("t").unwrap();
    (store, space)
}

#[test]
fn freed_pages_are_reused_also_from_trunk_pages() {
    let (store, space) = roomy();
    let many = 4100u32; // More than a header page's list has room for.
    let ids: Vec<_> = (0..many)
        .map(|i| new_page(&store, space, i as u8))
        .collect();
    assert_eq!(store.space_pages(space).unwrap(), many + 1);
    for id in &ids {
        let mut mtr = store.mtr();
        mtr.reserve(64, space, 0).unwrap();
        let p = mtr.latch(*id).unwrap();
        mtr.free_page(p);
        mtr.commit();
    }
    let mut again: Vec<_> = (0..many)
        .map(|i| new_page(&store, space, i as u8))
        .collect();
    again.sort();
    assert_eq!(again, ids, "each number is allocated once");
    assert_eq!(store.space_pages(space).unwrap(), many + 1);
}

/// A thread that claims pages with a latch held, such as an undo page after the row's pages, must
/// not wait for a trunk page whose holder goes on to latch more pages.
#[test]
fn reserve_with_a_latch_does_not_wait_for_a_trunk_page() {
    let (store, space) = roomy();
    let leaf = new_page(&store, space, 1);
    let many = 3969; // The last freed page becomes a trunk page, and the header's list is empty.
    let ids: Vec<_> = (0..many).map(|_| new_page(&store, space, 2)).collect();
    for id in &ids {
        let mut mtr = store.mtr();
        mtr.reserve(64, space, 0).unwrap();
        let p = mtr.latch(*id).unwrap();
        mtr.free_page(p);
        mtr.commit();
    }
    let pages = store.space_pages(space).unwrap();

    let mut first = store.mtr();
    first.reserve(64, space, 1).unwrap(); // Latches the trunk page.
    let (done, is_done) = std::sync::mpsc::channel();
    let other = store.clone();
    let second = std::thread::spawn(move || {
        let mut mtr = other.mtr();
        mtr.latch(leaf).unwrap();
        mtr.reserve(64, space, 1).unwrap();
        let p = mtr.alloc_page(space, PageType::USER, 0, 1);
        let id = mtr.id(p);
        mtr.commit();
        done.send(id).unwrap();
    });
    let from_the_end = is_done
        .recv_timeout(std::time::Duration::from_secs(20))
        .expect(
            "it waits for the trunk page while holding the latch that the first one needs next",
        );
    second.join().unwrap();
    assert_eq!(from_the_end, PageId::new(space, pages));
    first.latch(leaf).unwrap();
    let p = first.alloc_page(space, PageType::USER, 0, 1);
    assert_eq!(
        Some(&first.id(p)),
        ids.last(),
        "the number of the trunk page itself"
    );
    first.commit();
    let mut again: Vec<_> = (1..many).map(|_| new_page(&store, space, 3)).collect();
    again.sort();
    assert_eq!(
        again,
        ids[..ids.len() - 1],
        "the pages listed in the trunk page"
    );
}

#[test]
fn invalid_page_numbers_return_errors() {
    let (store, _) = open(Arc::new(SimDisk::new()), StoreOptions::default());
    let space = store.create_space("t").unwrap();
    let bad = PageId::new(space, u32::MAX);
    assert!(
        matches!(store.read(bad), Err(Stop::Error(StoreError::Corrupt { page, .. })) if page == bad)
    );
    assert_eq!(store.prefetch(bad), Residency::Absent);
    assert!(matches!(
        store.read(PageId::new(9999, 1)),
        Err(Stop::Error(StoreError::SpaceGone(9999)))
    ));
    assert!(matches!(
        store.create_space("t"),
        Err(Stop::Error(StoreError::SpaceExists(_)))
    ));
    assert!(store.create_space("../evil").is_err());
}

#[test]
fn dropped_space_is_gone_after_recovery() {
    let disk = SimDisk::new();
    let (store, _) = open(Arc::new(disk.clone()), StoreOptions::default());
    let (a, b) = (
        store.create_space("a").unwrap(),
        store.create_space("b").unwrap(),
    );
    let kept = new_page(&store, b, 9);
    for i in 0..50 {
        new_page(&store, a, i);
    }
    store.wait_durable(store.horizon().load());
    let free = store.status().pool_pages_free;
    store.drop_space(a).unwrap();
    assert!(store.status().pool_pages_free > free + 50);
    assert!(matches!(store.drop_space(a), Err(StoreError::SpaceGone(_))));
    assert!(store.mtr().reserve(1, a, 1).is_err());
    let disk = disk.crash(7);
    let (store, report) = open(Arc::new(disk.clone()), StoreOptions::default());
    assert_eq!(
        report.missing_spaces,
        [a],
        "its redo is in the log, but its file is gone"
    );
    assert_eq!(
        disk.list("a.nfd").unwrap(),
        Vec::<String>::new(),
        "recovery creates no file"
    );
    check(&store, kept, 9);
    assert!(store.create_space("a").unwrap() > b);
}

/// Apart from pages, the memory for spaces is bounded by the number that are open at the same time.
#[test]
fn dropped_spaces_take_no_memory() {
    let disk = SimDisk::new();
    let (store, _) = open(Arc::new(disk), StoreOptions::default());
    let kept = store.create_space("kept").unwrap();
    let kept = new_page(&store, kept, 9);
    let mut before = None;
    for i in 0..4_000u32 {
        let space = store.create_space("t").unwrap();
        if i % 100 == 0 {
            // One of them has a page beyond the first chunk of page words.
            let mut mtr = store.mtr();
            mtr.reserve(1024, space, 100).unwrap();
            for _ in 0..100 {
                mtr.alloc_page(space, PageType::USER, 0, 1);
            }
            mtr.commit();
        }
        store.drop_space(space).unwrap();
        assert!(store.space_pages(space).is_err() && store.pages_of(space).is_none());
        let bytes = store.space_bytes();
        assert_eq!(*before.get_or_insert(bytes), bytes, "after {i} spaces");
    }
    check(&store, kept, 9);
}

/// A pin, a latch or a load keeps the object of a dropped space from being reused.
#[test]
fn users_of_a_dropped_space_keep_its_object() {
    let disk = SimDisk::new();
    let (store, _) = open(Arc::new(disk), StoreOptions::default());
    let (a, b) = (
        store.create_space("a").unwrap(),
        store.create_space("b").unwrap(),
    );
    let old = new_page(&store, a, 1);
    let stale = store.pages_of(a).unwrap();
    let page = stale.read(old.page).unwrap();
    let mut mtr = store.mtr();
    mtr.reserve(1024, a, 1).unwrap();
    store.drop_space(a).unwrap();
    assert!(
        page.validate(),
        "the page is not discarded while it is pinned"
    );
    let next = store.create_space("c").unwrap();
    let other = new_page(&store, next, 2);
    assert_eq!(other.page, old.page);
    let p = mtr.alloc_page(a, PageType::USER, 3, 77);
    mtr.op(p, 0x20, &[2]);
    mtr.commit();
    assert!(!page.validate(), "the page is discarded with the last pin");
    // The object now belongs to the next space.
    let last = store.create_space("d").unwrap();
    let last = new_page(&store, last, 3);
    assert_eq!(last.page, old.page);
    assert!(stale.peek(old.page).is_none() && !page.validate());
    let gone = |result: Result<PageRef<'_>, Stop>| matches!(result, Err(Stop::Error(StoreError::SpaceGone(id))) if id == a);
    assert!(gone(stale.read(old.page)) && gone(store.read(old)));
    assert!(store.mtr().upgrade(&page).is_none());
    check(&store, other, 2);
    check(&store, last, 3);
    assert_eq!(store.space_pages(b).unwrap(), 1);
}

#[test]
fn mini_transaction_survives_the_drop_of_its_space() {
    let disk = SimDisk::new();
    let (store, _) = open(Arc::new(disk.clone()), StoreOptions::default());
    let space = store.create_space("a").unwrap();
    let old = new_page(&store, space, 1);
    let (free, dirty) = (
        store.status().pool_pages_free,
        store.status().pool_pages_dirty,
    );
    // One mini-transaction changes nothing; another one allocates pages and frees one.
    let mut idle = store.mtr();
    idle.reserve(256, space, 1).unwrap();
    let mut mtr = store.mtr();
    mtr.reserve(1024, space, 2).unwrap();
    let latched = mtr.latch(old).unwrap();
    store.drop_space(space).unwrap();
    for _ in 0..2 {
        let p = mtr.alloc_page(space, PageType::USER, 3, 77);
        mtr.op(p, 0x20, &[2]);
    }
    mtr.free_page(latched);
    mtr.commit();
    let gone = |result: Result<(), Stop>| matches!(result, Err(Stop::Error(StoreError::SpaceGone(id))) if id == space);
    assert!(gone(store.mtr().reserve(1, space, 1)));
    assert!(gone(store.mtr().latch(old).map(drop)));
    drop(idle);
    let after = store.status();
    assert!(
        after.pool_pages_free >= free + 2,
        "header and page are discarded"
    );
    assert!(after.pool_pages_dirty <= dirty.saturating_sub(2));
    assert!(store.checkpoint().unwrap() > 0);
    let (_, report) = open(Arc::new(disk.crash(3)), StoreOptions::default());
    assert!(
        report.missing_spaces.is_empty(),
        "the checkpoint has advanced past it"
    );
}

/// Log files are read through the page cache and written directly. Both see the same bytes, at any
/// length and offset.
#[test]
fn log_file_reads_see_direct_writes() {
    let dir = tempfile::tempdir().unwrap();
    let disk = RealDisk::new(dir.path(), true);
    let file = disk.open("redo.0000", OpenMode::CreateNew).unwrap();
    let mut model = vec![0u8; 64 << 10];
    file.write_at(0, &model).unwrap();
    let mut memory = vec![0u8; 24 << 10];
    let mut read = vec![0u8; model.len()];
    for round in 0..200usize {
        memory.fill(round as u8 + 1);
        // Every third write is aligned, so it can be direct.
        let (skip, off, len) = if round % 3 == 0 {
            let aligned = memory.as_ptr().addr().wrapping_neg() % 4096;
            (aligned, round % 12 * 4096, 4096 * (1 + round % 4))
        } else {
            (round % 7, round * 331 % 40_000, 1 + round * 97 % 9000)
        };
        file.write_at(off as u64, &memory[skip..skip + len])
            .unwrap();
        model[off..off + len].fill(round as u8 + 1);
        file.read_at(0, &mut read).unwrap();
        assert!(read == model, "round {round}");
        file.sync_data().unwrap();
    }
}
