//! Whether every page of a table's space is used by something, or on the free list: nothing leaks.
//!
//! For tests and the simulator. The engine is at rest meanwhile: no session writes, everything is
//! purged, the background has nothing to do.

use nfold_btree::TreeCheck;
use nfold_store::{PAGE_HEADER, PageId, PageNo, PageType};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::orphaned::ORPHANED_LIST;
use crate::overflow;
use crate::record::RowHeader;
use crate::stats::block;
use crate::table::Table;

/// What the pages say that they are.
#[derive(Default)]
struct PagesFound {
    by_index: FxHashMap<u64, u64>,
    overflow: FxHashSet<PageNo>,
    free: FxHashSet<PageNo>,
    orphaned: u64,
    problems: Vec<String>,
}

impl Engine {
    /// Reports the pages of a table's file that are lost or used twice; see the module. Empty if
    /// there are none. Blocks.
    pub fn check_space(&self, table: &Table) -> Result<Vec<String>, EngineError> {
        let mut found = self.read_pages(table)?;
        for index in &table.def().indexes {
            let n = table.def().indexes.iter().position(|i| i.id == index.id);
            let Some(n) = n else { continue };
            let mut check = TreeCheck::default();
            let mut chains = Vec::new();
            let mut visit = |_: &[u8], value: &[u8]| {
                if n == 0
                    && let Some((_, image)) = RowHeader::split(value)
                {
                    chains.extend(overflow::pointers(table.layout(), image));
                }
            };
            let tree = &table.index(n).tree;
            while !block(|| tree.check_step(table.store(), &mut check, &mut visit))? {}
            let pages = found.by_index.remove(&index.id.0).unwrap_or(0);
            let used = check.leaf_pages + check.inner_pages;
            if pages != used {
                let name = &index.name;
                found
                    .problems
                    .push(format!("{pages} pages of index {name}, {used} in its tree"));
            }
            for chain in chains {
                self.follow(table, chain.first_page, &mut found)?;
            }
        }
        for (index, pages) in &found.by_index {
            found.problems.push(format!(
                "{pages} pages of index {index}, which does not exist"
            ));
        }
        if !found.overflow.is_empty() {
            let lost = &found.overflow;
            found
                .problems
                .push(format!("overflow pages that no row names: {lost:?}"));
        }
        if found.orphaned > 1 {
            found.problems.push("more than one orphaned page".into());
        }
        self.walk_free_list(table, &mut found)?;
        Ok(found.problems)
    }

    fn read_pages(&self, table: &Table) -> Result<PagesFound, EngineError> {
        let (store, space) = (table.store(), table.def().space);
        let mut found = PagesFound::default();
        for page in 1..store.space_pages(space)? {
            let read = block(|| store.read(PageId { space, page }))?;
            match read.page_type() {
                PageType::BTREE_LEAF | PageType::BTREE_INNER => {
                    let index = read.u64(nfold_store::header::INDEX_ID);
                    *found.by_index.entry(index).or_default() += 1;
                }
                PageType::OVERFLOW => drop(found.overflow.insert(page)),
                PageType::FREE | PageType::FREE_TRUNK => drop(found.free.insert(page)),
                ORPHANED_LIST => found.orphaned += 1,
                other => found
                    .problems
                    .push(format!("page {page} is of type {other:#x}")),
            }
        }
        Ok(found)
    }

    fn follow(
        &self,
        table: &Table,
        first: PageNo,
        found: &mut PagesFound,
    ) -> Result<(), EngineError> {
        let (store, space) = (table.store(), table.def().space);
        let mut page = first;
        while page != 0 {
            if !found.overflow.remove(&page) {
                found.problems.push(format!(
                    "a row names page {page}, which it does not have alone"
                ));
                return Ok(());
            }
            let read = block(|| store.read(PageId { space, page }))?;
            page = read.u32(PAGE_HEADER);
        }
        Ok(())
    }

    fn walk_free_list(&self, table: &Table, found: &mut PagesFound) -> Result<(), EngineError> {
        let listed = table.store().free_pages(table.def().space)?;
        for page in listed {
            if !found.free.remove(&page) {
                found.problems.push(format!(
                    "page {page} is on the free list, and in use or listed twice"
                ));
            }
        }
        if !found.free.is_empty() {
            let lost = &found.free;
            found
                .problems
                .push(format!("free pages that are not listed: {lost:?}"));
        }
        Ok(())
    }
}
