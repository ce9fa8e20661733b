//! Waits are noted where they happen, with who waits, and only then.

#[allow(dead_code)] // parts of it
mod common;

use common::{finish, new_page, options, read_number, transfer};
use nfold_observe::contention::{Place, SiteReport, WaitKind, act_for};
use nfold_store::*;
use std::sync::Arc;

fn opened() -> (Arc<Store>, PageId, PageId) {
    let disk = Arc::new(SimDisk::new());
    let (store, _) = Store::open(options(), disk, Arc::new(NoRedo), &|_| {}).unwrap();
    let space = store.create_space("t").unwrap();
    let (a, b) = (new_page(&store, space), new_page(&store, space));
    (store, a, b)
}

fn sites(store: &Store, kind: WaitKind) -> Vec<SiteReport> {
    let mut all = store.contention().report();
    all.retain(|r| r.site.kind == kind);
    all
}

/// Waits until somebody waits for something of that kind.
fn somebody_waits(store: &Store, kind: WaitKind) -> SiteReport {
    loop {
        let mut all = sites(store, kind);
        all.retain(|r| !r.waiting.is_empty());
        if let Some(site) = all.pop() {
            return site;
        }
        std::thread::yield_now();
    }
}

#[test]
fn page_latches_are_named_with_who_waits() {
    let (store, a, b) = opened();
    finish(|| store.read(a).map(drop));
    finish(|| store.read(b).map(drop));
    let quiet = sites(&store, WaitKind::PageLatch).len() + sites(&store, WaitKind::PageRead).len();
    assert_eq!(quiet, 0, "contention::C1: nothing waited");
    std::thread::scope(|s| {
        let mut mtr = store.mtr();
        finish(|| mtr.latch(a));
        let store = &store;
        s.spawn(move || {
            act_for(7);
            read_number(store, a);
        });
        s.spawn(move || {
            act_for(8);
            transfer(store, a, b, 5);
        });
        let place = Place::Page {
            space: a.space,
            page: a.page,
        };
        for (kind, connection) in [(WaitKind::PageRead, 7), (WaitKind::PageLatch, 8)] {
            let site = somebody_waits(store, kind);
            assert_eq!(
                (site.site.place, &site.waiting[..]),
                (place.clone(), &[connection][..])
            );
        }
    });
    for kind in [WaitKind::PageRead, WaitKind::PageLatch] {
        let site = sites(&store, kind).pop().unwrap();
        assert!(site.waiting.is_empty() && !site.time.is_zero());
        let about = site.about.unwrap();
        assert_eq!((about.page_type, about.index), (PageType::USER, 1));
    }
}

#[test]
fn a_commit_that_waits_for_the_disk_is_noted_and_one_that_need_not_is_not() {
    let (store, a, b) = opened();
    let end = transfer(&store, a, b, 1);
    let before = sites(&store, WaitKind::CommitSync);
    let before = before.first().map_or(0, |s| s.waits);
    if let Some(wait) = store.wait_durable(end) {
        wait.block();
    }
    assert!(store.wait_durable(end).is_none());
    let after = sites(&store, WaitKind::CommitSync);
    let after = after.first().map_or(0, |s| s.waits);
    // The log may have been synced before anybody had to wait.
    assert!(after - before <= 1, "{before} {after}");
    // A wait that is given up is over.
    let end = transfer(&store, a, b, 1);
    drop(store.wait_durable(end));
    assert!(
        sites(&store, WaitKind::CommitSync)
            .iter()
            .all(|s| s.waiting.is_empty())
    );
}

/// Pages that are not in memory: one wait of the connection that asks, whatever number they are.
#[test]
fn waits_for_pages_are_one_place() {
    let (store, a, _) = opened();
    let pages: Vec<_> = (0..100).map(|_| new_page(&store, a.space)).collect();
    store.checkpoint().unwrap();
    let waits = || -> u64 {
        let sites = sites(&store, WaitKind::PageLoad);
        assert!(sites.iter().all(|r| r.site.place == Place::Server));
        sites.iter().map(|r| r.waits).sum()
    };
    let (before, mut asked) = (waits(), 0);
    // What has come by the time somebody looks for it is no wait.
    while waits() == before {
        if let Some(wait) = store.wait_for(&pages) {
            wait.block();
            asked += 1;
        }
        assert!(waits() <= before + asked);
    }
}
