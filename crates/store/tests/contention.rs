//! Waits are recorded at their sites with their waiters, and nothing is recorded without a wait.

#[allow(dead_code)] // Not all of it is used here.
mod common;

use common::{finish, new_page, options, read_number, transfer};
use nfold_observe::contention::{SiteReport, WaitKind, WaitPlace, act_for};
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

/// Waits until some thread waits at a site of that kind.
fn wait_for_waiter(store: &Store, kind: WaitKind) -> SiteReport {
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
fn latch_waits_are_recorded_with_page_and_waiter() {
    let (store, a, b) = opened();
    finish(|| store.read(a).map(drop));
    finish(|| store.read(b).map(drop));
    let quiet = sites(&store, WaitKind::PageLatch).len() + sites(&store, WaitKind::PageRead).len();
    assert_eq!(
        quiet, 0,
        "contention::C1: nothing is recorded without a wait"
    );
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
        let place = WaitPlace::Page {
            space: a.space,
            page: a.page,
        };
        for (kind, connection) in [(WaitKind::PageRead, 7), (WaitKind::PageLatch, 8)] {
            let site = wait_for_waiter(store, kind);
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
fn only_commits_that_wait_for_the_disk_are_recorded() {
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
    // The log may have been synced before a commit had to wait.
    assert!(after - before <= 1, "{before} {after}");
    // A cancelled wait is over.
    let end = transfer(&store, a, b, 1);
    drop(store.wait_durable(end));
    assert!(
        sites(&store, WaitKind::CommitSync)
            .iter()
            .all(|s| s.waiting.is_empty())
    );
}

/// Waits for several missing pages count as one wait of the requesting connection.
#[test]
fn waits_for_pages_share_one_site() {
    let (store, a, _) = opened();
    let pages: Vec<_> = (0..100).map(|_| new_page(&store, a.space)).collect();
    store.checkpoint().unwrap();
    let waits = || -> u64 {
        let sites = sites(&store, WaitKind::PageLoad);
        assert!(sites.iter().all(|r| r.site.place == WaitPlace::Server));
        sites.iter().map(|r| r.waits).sum()
    };
    let (before, mut asked) = (waits(), 0);
    // A page that arrives before it is read causes no wait.
    while waits() == before {
        if let Some(wait) = store.wait_for(&pages) {
            wait.block();
            asked += 1;
        }
        assert!(waits() <= before + asked);
    }
}
