//! Points of a secondary index whose rows are wanted: entries become keys of the clustered lookup where they lie in their leaf, without a copy.
//!
//! # Picture
//! ```text
//!   entry in its leaf ──▶ newest change visible? ── yes, marked as deleted: nothing (V1)
//!                                   │                 yes: primary key, guess ──▶ GetMany; its row needs no second look
//!                                   └── no: the same, and a copy of the entry, as the row has to be compared with it (V2)
//! ```
//! # Concurrency
//! What is read of a leaf counts when the scan has validated the leaf. Until then it may be garbage, and what became of it is cut off.

use super::{Asked, Consistent, Stage};
use crate::error::{Stop, lift};
use crate::read::View;
use crate::read::settle::damaged;
use crate::record::{SECONDARY_HEADER, SecondaryHead};
use crate::session::EngineSession;
use crate::table::Table;
use nfold_btree::{EntryBatch, GetMany, LeafEntries, LeafEntry, PointSink};
use nfold_store::{PageNo, TrxId};

/// Rows that are looked up together.
const ROWS: usize = 512;

struct Leads<'l> {
    view: &'l View<'l>,
    /// What the view sees without a look at any status.
    below: TrxId,
    /// Which page numbers of guesses are believed: all, or none.
    guessing: PageNo,
    get: &'l mut GetMany,
    asked: &'l mut Vec<Asked>,
    /// Entries that do not decide by themselves.
    copied: &'l mut EntryBatch,
    /// Some entry has not the lengths of one.
    damaged: bool,
}

impl Leads<'_> {
    #[inline(always)]
    fn push(&mut self, point: u32, entry: &LeafEntry<'_>, entries: &LeafEntries<'_>) {
        let [first, second] = entry.value_words(0);
        let head = SecondaryHead::from_words(first, second);
        let seen = head.trx < self.below || self.view.sees(head.trx);
        if head.deleted && seen {
            return; // V1
        }
        let guess = head.guess.if_in(self.guessing);
        let whole = entry.value_len() >= SECONDARY_HEADER
            && self.get.push_key_end(entry, head.primary_len, guess);
        if !whole {
            self.damaged = true;
            return;
        }
        let mut place = Asked::NO_ENTRY;
        if !seen {
            place = self.copied.len() as u32;
            entries.copy(entry, point, self.copied);
        }
        self.asked.push(Asked {
            place,
            point,
            leaf: entries.page(),
            stands: seen,
        });
    }
}

impl PointSink for Leads<'_> {
    /// How many keys, how many copied entries, whether there was damage.
    type Mark = (usize, usize, bool);

    #[inline]
    fn mark(&self) -> Self::Mark {
        (self.asked.len(), self.copied.len(), self.damaged)
    }
    fn cut(&mut self, (keys, copied, damaged): Self::Mark) {
        self.get.truncate(keys);
        self.asked.truncate(keys);
        self.copied.truncate(copied);
        self.damaged = damaged;
    }
    #[inline]
    fn take(&mut self, point: u32, entries: LeafEntries<'_>) {
        for entry in entries.iter() {
            self.push(point, &entry, &entries);
        }
    }
    fn is_full(&self) -> bool {
        self.asked.len() >= ROWS
    }
    fn keep_points(&mut self, last: u32) {
        let asked = &*self.asked;
        if asked.iter().all(|a| a.point <= last) {
            return;
        }
        self.get.retain(|key| asked[key as usize].point <= last);
        self.asked.retain(|a| a.point <= last);
    }
}

impl Consistent {
    /// Brings the next keys of rows.
    pub(super) fn fill_leads(
        &mut self,
        table: &Table,
        index: usize,
        session: &EngineSession,
        view: &View<'_>,
    ) -> Result<(), Stop> {
        if !self.filling {
            self.filling = true;
            self.get.clear();
            self.origins.clear();
            self.entries.clear();
        }
        let mut leads = Leads {
            view,
            below: view.sees_below(),
            guessing: match session.guesses().on() {
                true => PageNo::MAX,
                false => 0,
            },
            get: &mut self.get,
            asked: &mut self.origins,
            copied: &mut self.entries,
            damaged: false,
        };
        let tree = &table.index(index).tree;
        let more = tree.scan_points_into(session.store(), &mut self.scan, &mut leads);
        if leads.damaged {
            // Now: a call after a wait would not know of it.
            self.filling = false;
            return Err(damaged());
        }
        self.more = more.map_err(lift)?;
        self.filling = false;
        if !self.origins.is_empty() {
            self.stage = Stage::Rows;
        }
        Ok(())
    }
}
