//! Wait sites with the names of their tables and indexes, for SHOW ENGINE NFOLD CONTENTION. The
//! counters are in [`nfold_observe::contention`].

use std::sync::Arc;
use std::time::Duration;

use nfold_observe::contention::{Contention, PageAbout, SiteReport, WaitPlace};
use nfold_store::PageType;
use nfold_txn::locks::place_of;
use rustc_hash::FxHashMap;

use crate::engine::Engine;
use crate::locks::{data_of, index_name};
use crate::table::Table;

/// Rows of a report: what waited longest.
const MAX_ROWS: usize = 256;

/// One place that was waited for, and by whom. What does not apply is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitSite {
    /// `page latch`, `row lock`, ...
    pub kind: &'static str,
    pub schema: Option<Arc<str>>,
    pub table: Option<Arc<str>>,
    pub index: Option<Arc<str>>,
    pub space: Option<u32>,
    pub page: Option<u32>,
    /// 0: a leaf.
    pub level: Option<u16>,
    /// The row's values, or what the page is.
    pub detail: Option<String>,
    pub waits: u64,
    pub time: Duration,
    pub longest: Duration,
    /// Connections that wait now, 0 for the server itself, the one that waits longest first.
    pub waiting: Vec<u32>,
}

type Indexes = FxHashMap<u64, (Arc<Table>, usize)>;

impl Engine {
    /// Where to note waits that only the layers above know of.
    pub fn contention(&self) -> &Arc<Contention> {
        self.shared().store.contention()
    }

    /// Where something waited since the start, the place with the most time first.
    pub fn wait_sites(&self) -> Vec<WaitSite> {
        let mut report = self.contention().report();
        report.truncate(MAX_ROWS);
        if report.is_empty() {
            return Vec::new();
        }
        let mut indexes = self.tables_by_index();
        let dictionary = &self.shared().dictionary;
        for (n, index) in dictionary.def().indexes.iter().enumerate() {
            indexes.insert(index.id.0, (dictionary.clone(), n));
        }
        report
            .iter()
            .map(|site| self.describe_site(&indexes, site))
            .collect()
    }

    fn describe_site(&self, indexes: &Indexes, report: &SiteReport) -> WaitSite {
        let mut out = WaitSite {
            kind: report.site.kind.name(),
            waits: report.waits,
            time: report.time,
            longest: report.longest,
            waiting: report.waiting.clone(),
            ..WaitSite::default()
        };
        match &report.site.place {
            WaitPlace::Server => {}
            WaitPlace::Rest => out.detail = Some("all other places".into()),
            WaitPlace::Index(id) => out.name_index(indexes, *id),
            WaitPlace::Page { space, page } => {
                (out.space, out.page) = (Some(*space), Some(*page));
                match report.about {
                    Some(about) => out.describe_page(indexes, about),
                    None => out.name_space(indexes, *space),
                }
                if out.table.is_none() {
                    out.name_space(indexes, *space);
                }
            }
            WaitPlace::Row(key) => {
                let (index, key) = place_of(key);
                out.name_index(indexes, index);
                out.detail = match (key, indexes.get(&index)) {
                    (None, _) => Some("supremum pseudo-record".into()),
                    (Some(key), Some((table, n))) => data_of(table, *n, key),
                    _ => None,
                };
            }
            WaitPlace::Table(id) => {
                let schema = self.catalog().snapshot();
                if let Some(def) = schema.tables().find(|def| def.id.0 == *id) {
                    out.schema = Some(def.schema.clone());
                    out.table = Some(def.name.clone());
                }
            }
        }
        out
    }
}

impl WaitSite {
    fn name_index(&mut self, indexes: &Indexes, id: u64) {
        if let Some((table, n)) = indexes.get(&id) {
            let def = table.def();
            self.schema = Some(def.schema.clone());
            self.table = Some(def.name.clone());
            self.index = Some(index_name(table, *n));
        }
    }

    /// The table that a file belongs to.
    fn name_space(&mut self, indexes: &Indexes, space: u32) {
        if let Some((table, _)) = indexes.values().find(|(t, _)| t.def().space == space) {
            self.schema = Some(table.def().schema.clone());
            self.table = Some(table.def().name.clone());
        }
    }

    fn describe_page(&mut self, indexes: &Indexes, about: PageAbout) {
        let what = match about.page_type {
            PageType::BTREE_LEAF => "leaf",
            PageType::BTREE_INNER => "inner page",
            PageType::OVERFLOW => "long values",
            PageType::UNDO => "undo log",
            PageType::UNDO_HEADER => "undo header",
            PageType::SPACE_HEADER => "header of the file",
            PageType::FREE | PageType::FREE_TRUNK => "free list",
            _ => return,
        };
        self.detail = Some(what.into());
        if matches!(
            about.page_type,
            PageType::BTREE_LEAF | PageType::BTREE_INNER
        ) {
            self.level = Some(about.level);
            self.name_index(indexes, about.index);
        }
    }
}
