//! Latches are taken in one order, also when pages that old records name have been given to
//! something else.

use super::*;
use crate::orphaned::Slot;
use nfold_store::PageId;
use nfold_types::row::OverflowPointer;

/// What purge does about a long column, with a chain whose first page has been given to something
/// else.
type Step = fn(&Arc<Engine>, &Arc<Table>, OverflowPointer);

/// A thread has latched a leaf and will latch the orphan list next, as the writer of a row with a
/// long column does. Purge handles a chain that was freed long ago, and whose page is that leaf
/// now.
#[test]
fn purge_latches_no_leaf_after_the_orphan_list() {
    let lists: Step = |_, table, chain| {
        block(|| crate::undo::discard(table.store(), table, chain)).unwrap();
    };
    let frees: Step = |_, table, chain| {
        let store = table.store();
        let mut slot = slot(table);
        let mut mtr = store.mtr();
        block(|| mtr.reserve(1024, table.def().space, 0)).unwrap();
        let orphaned = block(|| slot.latch(&mut mtr)).unwrap();
        slot.put(&mut mtr, orphaned, chain.first_page, chain.owner);
        mtr.commit();
        drop(slot);
        assert!(block(|| table.orphaned().drain(store)).unwrap());
    };
    for step in [lists, frees] {
        let db = Db::new();
        let table = db.table();
        let store = table.store();
        let slot = slot(&table);
        let orphan_list_page = {
            let mut mtr = store.mtr();
            let orphaned = block(|| slot.latch(&mut mtr)).unwrap();
            mtr.id(orphaned)
        };
        let leaf = PageId {
            space: table.def().space,
            page: table.index(0).tree.tree().root,
        };
        let mut writer = store.mtr();
        block(|| writer.latch(leaf)).unwrap();
        let waits = store.status().latch_waits;
        let (engine, purged) = (db.engine.clone(), table.clone());
        let purge = std::thread::spawn(move || {
            let chain = OverflowPointer {
                first_page: leaf.page,
                length: 5000,
                owner: 7,
            };
            step(&engine, &purged, chain);
        });
        while store.status().latch_waits == waits {
            std::thread::yield_now();
        }
        // Purge waits for the leaf.
        let pages = store.pages_of(orphan_list_page.space).unwrap();
        assert!(
            pages.peek(orphan_list_page.page).is_some(),
            "the orphaned page is latched"
        );
        block(|| slot.latch(&mut writer)).unwrap();
        drop(writer);
        purge.join().unwrap();
    }
}

fn slot(table: &Table) -> Slot {
    block(|| table.orphaned().take(table.store())).unwrap()
}
