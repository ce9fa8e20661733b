//! Disk errors: a full disk, failing reads and writes, failing syncs.

use nfold_store::*;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

fn options(io_threads: usize) -> StoreOptions {
    StoreOptions {
        pool_bytes: 48 * PAGE_SIZE as u64,
        log_bytes: 1 << 20,
        extend_bytes: 1 << 18,
        io_threads,
        fatal: Some(Arc::new(|message| {
            resume_unwind(Box::new(message.to_string()))
        })),
        ..StoreOptions::default()
    }
}

fn open(disk: &SimDisk, options: StoreOptions) -> Arc<Store> {
    let (store, report) =
        Store::open(options, Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {}).unwrap();
    assert!(report.corrupt_pages.is_empty());
    store
}

fn try_new_page(store: &Store, space: SpaceId, value: u64) -> Result<PageId, StoreError> {
    loop {
        let mut mtr = store.mtr();
        match mtr.reserve(128, space, 1) {
            Ok(()) => {}
            Err(Stop::Wait(wait)) => {
                drop(mtr);
                wait.block();
                continue;
            }
            Err(Stop::Error(e)) => return Err(e),
        }
        let p = mtr.alloc_page(space, PageType::USER, 0, 1);
        mtr.write(p, 64, &value.to_le_bytes());
        let id = mtr.id(p);
        mtr.commit();
        return Ok(id);
    }
}

fn try_read(store: &Store, id: PageId) -> Result<u64, StoreError> {
    loop {
        match store.read(id) {
            Ok(page) => {
                let value = page.u64(64);
                if page.validate() {
                    return Ok(value);
                }
            }
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(e)) => return Err(e),
        }
    }
}

fn full_disk(io_threads: usize) {
    let disk = SimDisk::new();
    let store = open(&disk, options(io_threads));
    let space = store.create_space("t").unwrap();
    disk.set_capacity(Some(disk.used() + (1 << 20)));
    let mut ids = Vec::new();
    let error = loop {
        match try_new_page(&store, space, ids.len() as u64) {
            Ok(id) => ids.push(id),
            Err(e) => break e,
        }
        assert!(ids.len() < 1000, "the disk is full long before that");
    };
    assert_eq!(error, StoreError::DiskFull);
    assert!(ids.len() > 40, "the available space is used: {}", ids.len());
    let made = store.create_space("other");
    assert!(
        matches!(made, Err(Stop::Error(StoreError::DiskFull))),
        "{made:?}"
    );
    assert_eq!(
        store.spaces_on_disk().unwrap().len(),
        1,
        "no unfinished file remains"
    );
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(try_read(&store, *id).unwrap(), i as u64);
    }
    store.checkpoint().unwrap();
    disk.set_capacity(None);
    ids.push(try_new_page(&store, space, ids.len() as u64).unwrap());
    if let Some(wait) = store.wait_durable(store.horizon().load()) {
        wait.block();
    }
    let after = disk.crash_image(5);
    drop(store);
    let store = open(&after, options(io_threads));
    store.open_space(space, "t").unwrap();
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(try_read(&store, *id).unwrap(), i as u64);
    }
}

#[test]
fn full_disk_returns_errors_and_loses_nothing() {
    full_disk(0);
    full_disk(2);
}

#[test]
fn failed_page_writes_are_repeated() {
    let disk = SimDisk::new();
    let store = open(&disk, options(0));
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..20)
        .map(|i| try_new_page(&store, space, i).unwrap())
        .collect();
    for file in ["t.nfd", "nfold.doublewrite"] {
        disk.inject(FaultOn::Write, file, 0, 1, ErrorKind::Other);
        assert!(
            matches!(store.checkpoint(), Err(StoreError::Io { .. })),
            "{file}"
        );
        assert!(
            store.status().pool_pages_dirty >= 20,
            "the pages are dirty again"
        );
    }
    store.wait_durable(store.horizon().load());
    let image = disk.crash(1);
    drop(store);
    let store = open(&image, options(0));
    store.open_space(space, "t").unwrap();
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(
            try_read(&store, *id).unwrap(),
            i as u64,
            "the log still contains their changes"
        );
    }
}

#[test]
fn failed_writes_do_not_stop_the_background_cleaner() {
    let disk = SimDisk::new();
    let store = open(&disk, options(1));
    let space = store.create_space("t").unwrap();
    disk.inject(FaultOn::Write, "t.nfd", 0, 3, ErrorKind::Other);
    let ids: Vec<_> = (0..150)
        .map(|i| try_new_page(&store, space, i).unwrap())
        .collect();
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(try_read(&store, *id).unwrap(), i as u64);
    }
    store.shutdown().unwrap();
}

#[test]
fn failed_reads_fail_only_that_read() {
    for io_threads in [0, 1] {
        let disk = SimDisk::new();
        let store = open(&disk, options(0));
        let space = store.create_space("t").unwrap();
        let id = try_new_page(&store, space, 7).unwrap();
        store.shutdown().unwrap();
        drop(store);
        let store = open(&disk, options(io_threads));
        store.open_space(space, "t").unwrap();
        disk.inject(FaultOn::Read, "t.nfd", 0, 1, ErrorKind::Other);
        assert!(matches!(try_read(&store, id), Err(StoreError::Io { .. })));
        std::thread::sleep(Duration::from_millis(if io_threads > 0 { 1100 } else { 0 }));
        assert_eq!(try_read(&store, id).unwrap(), 7);
    }
}

/// The message with which the fatal hook was called.
fn fatal_message(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("the fatal hook was called");
    *payload
        .downcast::<String>()
        .expect("the fatal hook panics with its message")
}

#[test]
fn failed_sync_ends_the_process() {
    for (file, says) in [
        ("redo.", "log"),
        ("t.nfd", "t.nfd: sync"),
        ("nfold.doublewrite", "sync"),
        ("nfold.control", "control"),
    ] {
        let disk = SimDisk::new();
        let store = open(&disk, options(0));
        let space = store.create_space("t").unwrap();
        try_new_page(&store, space, 1).unwrap();
        disk.inject(FaultOn::Sync, file, 0, 1, ErrorKind::Other);
        let message = fatal_message(|| {
            store.wait_durable(store.horizon().load());
            let _ = store.checkpoint();
        });
        assert!(message.contains(says), "{file}: {message}");
    }
}

/// A failed sync by a worker ends the process, too, and its commit does not count as durable.
#[test]
fn failed_sync_by_a_worker_ends_the_process() {
    gather_syncs();
    for _ in 0..1000 {
        let disk = SimDisk::new();
        let (failed, by) = std::sync::mpsc::channel();
        let failed = std::sync::Mutex::new(failed);
        let fatal = move |message: &str| {
            let me = std::thread::current().id();
            failed.lock().unwrap().send(me).unwrap();
            resume_unwind(Box::new(message.to_string()))
        };
        let options = StoreOptions {
            fatal: Some(Arc::new(fatal)),
            ..options(1)
        };
        let store = open(&disk, options);
        let space = store.create_space("t").unwrap();
        let commit = |value| {
            try_new_page(&store, space, value).unwrap();
            let end = store.horizon().load();
            let wait = store.wait_durable(end);
            store.finish_syncs(true);
            (end, wait)
        };
        for value in 0..60 {
            commit(value).1.into_iter().for_each(Wait::block);
        }
        disk.inject(FaultOn::Sync, "redo.", 0, 1, ErrorKind::Other);
        let failed = catch_unwind(AssertUnwindSafe(|| commit(60)));
        if by.recv().unwrap() == std::thread::current().id() {
            let message = failed.unwrap_err().downcast::<String>().unwrap();
            assert!(message.contains("syncing the log failed"), "{message}");
            assert!(store.durable_lsn() < store.horizon().load());
            return;
        }
        // Another sync was requested, or a sync took long, so the log thread got the error. It has
        // ended.
        std::mem::forget(store);
    }
    panic!("the worker never did a sync itself");
}

#[test]
fn dropping_a_changed_mtr_ends_the_process() {
    let store = open(&SimDisk::new(), options(0));
    let space = store.create_space("t").unwrap();
    let id = try_new_page(&store, space, 1).unwrap();
    let message = fatal_message(|| {
        let mut mtr = store.mtr();
        mtr.reserve(100, space, 0).unwrap();
        let p = mtr.latch(id).unwrap();
        mtr.write(p, 64, b"x");
        drop(mtr);
    });
    assert!(message.contains("I1"), "{message}");
}

#[test]
fn damaged_control_file_is_named() {
    let disk = SimDisk::new();
    let store = open(&disk, options(0));
    store.create_space("t").unwrap();
    store.shutdown().unwrap();
    drop(store);
    let try_open = |disk: &SimDisk| {
        Store::open(
            options(0),
            Arc::new(disk.clone()),
            Arc::new(NoRedo),
            &|_| {},
        )
        .map(|_| ())
        .unwrap_err()
        .to_string()
    };
    let broken = disk.kill();
    assert!(broken.flip_bit("nfold.control", 40) && broken.flip_bit("nfold.control", 4096 + 40));
    assert!(try_open(&broken).contains("nfold.control"));
    let broken = broken.kill();
    broken.remove("nfold.control").unwrap();
    assert!(
        try_open(&broken).contains("missing"),
        "a lost control file is not mistaken for an empty directory"
    );
}

#[test]
fn log_size_can_change_at_restart() {
    let disk = SimDisk::new();
    let store = open(&disk, options(0));
    let space = store.create_space("t").unwrap();
    let id = try_new_page(&store, space, 42).unwrap();
    store.shutdown().unwrap();
    drop(store);
    let disk = disk.kill();
    let larger = StoreOptions {
        log_bytes: 3 << 20,
        ..options(0)
    };
    let store = open(&disk, larger.clone());
    assert_eq!(disk.list("redo.").unwrap(), ["redo.0002", "redo.0003"]);
    store.open_space(space, "t").unwrap();
    let other = try_new_page(&store, space, 43).unwrap();
    store.wait_durable(store.horizon().load());
    let disk = disk.crash(1);
    drop(store);
    let store = open(&disk, larger);
    store.open_space(space, "t").unwrap();
    assert_eq!(
        (
            try_read(&store, id).unwrap(),
            try_read(&store, other).unwrap()
        ),
        (42, 43)
    );
}
