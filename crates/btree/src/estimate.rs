//! Estimates the number of entries in a range, or the size of the whole tree.

use crate::node::Node;
use crate::tree::{MAX_LEVELS, Miss, Seek, TreeHandle, count_restart};
use nfold_store::{PageNo, Stop, Store};
use smallvec::SmallVec;

/// The number of pages that [`TreeHandle::stats`] reads on each level.
const SAMPLES: usize = 8;

/// A tree's size, estimated from a few pages.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct TreeStats {
    /// The number of levels, the leaf level included.
    pub depth: u32,
    pub leaf_pages: u64,
    pub inner_pages: u64,
    pub entries: u64,
}

/// A page on a descent, with the slot taken and the slot count.
#[derive(Copy, Clone)]
struct Stage {
    page: PageNo,
    slot: usize,
    count: usize,
}

type Stages = SmallVec<[Stage; 8]>;

impl TreeHandle {
    /// Estimates the number of entries in `[lo, hi)` from two descents; an empty `hi` means no
    /// upper bound. Exact within one leaf.
    pub fn estimate_range(&self, store: &Store, lo: &[u8], hi: &[u8]) -> Result<u64, Stop> {
        if !hi.is_empty() && hi <= lo {
            return Ok(0);
        }
        let from = self.stages(store, Seek::At(lo))?;
        let to = self.stages(
            store,
            if hi.is_empty() {
                Seek::Last
            } else {
                Seek::At(hi)
            },
        )?;
        let middle = self.middle(store, &from, &to)?;
        let mut apart: Option<f64> = None;
        // The number of slots between the two paths, level by level.
        for (level, (a, b)) in from.iter().zip(&to).enumerate() {
            apart = match apart {
                None if a.page == b.page && a.slot == b.slot => None,
                None if a.page == b.page => Some(b.slot.saturating_sub(a.slot) as f64),
                // The paths diverged because the tree changed between the two descents.
                None => Some(1.0),
                Some(pages) => {
                    // Pages in between are assumed to be as full as the mean of the middle one and
                    // the fuller end. The last page of a growing tree is nearly empty.
                    let end = a.count.max(b.count);
                    let full = (middle.get(level).map_or(end, |m| m.count) + end) as f64 / 2.0;
                    let ends = (a.count.saturating_sub(a.slot) + b.slot) as f64;
                    Some(ends + (pages - 1.0).max(0.0) * full)
                }
            };
        }
        Ok(apart.unwrap_or(0.0) as u64)
    }

    /// A path halfway between two paths, if there are pages between them.
    fn middle(&self, store: &Store, from: &Stages, to: &Stages) -> Result<Stages, Stop> {
        let parted = from
            .iter()
            .zip(to)
            .find(|(a, b)| a.page != b.page || a.slot != b.slot);
        let Some((a, b)) = parted else {
            return Ok(Stages::new());
        };
        if a.page != b.page || b.slot < a.slot + 2 {
            return Ok(Stages::new());
        }
        let page = store.read(self.page_id(a.page))?;
        let node = Node::new(page.words());
        let mut key = Vec::new();
        node.append_key(node.slot((a.slot + b.slot) / 2), &mut key);
        if node.level() == 0 || !page.validate() {
            return Ok(Stages::new());
        }
        self.stages(store, Seek::At(&key))
    }

    /// The pages and slots on the way to the first entry at or behind `seek`.
    fn stages(&self, store: &Store, seek: Seek<'_>) -> Result<Stages, Stop> {
        for _ in 0..1000 {
            let mut stages = Stages::new();
            let end = self.try_descend(store, seek, 0, |page, slot, count| {
                stages.push(Stage {
                    page: page.id().page,
                    slot,
                    count,
                });
            });
            match end {
                Ok(leaf) => {
                    let node = Node::new(leaf.words());
                    let count = node.count();
                    let slot = match seek {
                        Seek::At(key) => node.search(count, node.suffix(key)).0,
                        _ => count,
                    };
                    stages.push(Stage {
                        page: leaf.id().page,
                        slot,
                        count,
                    });
                    if leaf.validate() {
                        return Ok(stages);
                    }
                }
                Err(Miss::Stop(stop)) => return Err(stop),
                Err(Miss::Restart) => {}
            }
            count_restart(store);
        }
        // Writers never stop changing this leaf. An estimate is optional, so this gives up.
        Ok(Stages::new())
    }

    /// Estimates the size of the tree from up to [`SAMPLES`] pages per level.
    pub fn stats(&self, store: &Store) -> Result<TreeStats, Stop> {
        let mut stats = TreeStats {
            depth: 1,
            ..TreeStats::default()
        };
        let mut sample: Vec<PageNo> = vec![self.tree.root];
        let mut pages = 1.0f64;
        for _ in 0..MAX_LEVELS {
            let mut children: Vec<PageNo> = Vec::new();
            let (mut slots, mut read, mut leaf) = (0usize, 0usize, false);
            for page_no in &sample {
                let page = store.read(self.page_id(*page_no))?;
                let node = Node::new(page.words());
                let (ours, count) = (self.is_ours(node, node.level()), node.count());
                let is_leaf = node.level() == 0;
                let step = count.div_ceil(SAMPLES).max(1);
                let below: SmallVec<[PageNo; SAMPLES]> = (0..count)
                    .step_by(step)
                    .map(|i| node.child(node.slot(i)))
                    .collect();
                // A page that changed, or no longer belongs to the tree, is left out of the sample.
                if page.validate() && ours {
                    slots += count;
                    read += 1;
                    leaf |= is_leaf;
                    if !is_leaf {
                        children.extend(below);
                    }
                }
            }
            let per_page = slots as f64 / read.max(1) as f64;
            if leaf || children.is_empty() {
                stats.leaf_pages = pages as u64;
                stats.entries = (pages * per_page) as u64;
                return Ok(stats);
            }
            stats.depth += 1;
            stats.inner_pages += pages as u64;
            pages *= per_page;
            let step = children.len().div_ceil(SAMPLES).max(1);
            sample = children.into_iter().step_by(step).collect();
        }
        Ok(stats)
    }

    /// Keys that divide the tree into parts of about the same size, in ascending order: up to
    /// `most` of them, none if the tree is one leaf. Reads no more inner pages than that.
    pub fn spread(&self, store: &Store, most: usize) -> Result<Vec<Vec<u8>>, Stop> {
        let mut pages: Vec<PageNo> = vec![self.tree.root];
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for _ in 0..MAX_LEVELS {
            let mut below: Vec<(PageNo, Vec<u8>)> = Vec::new();
            let mut leaves = false;
            for page_no in &pages {
                let page = store.read(self.page_id(*page_no))?;
                let node = Node::new(page.words());
                let (ours, level) = (self.is_ours(node, node.level()), node.level());
                let slot = |i: usize| {
                    let mut key = Vec::new();
                    node.append_key(node.slot(i), &mut key);
                    (node.child(node.slot(i)), key)
                };
                let children: Vec<(PageNo, Vec<u8>)> = match level {
                    0 => Vec::new(),
                    _ => (0..node.count()).map(slot).collect(),
                };
                // A page that changed, or no longer belongs to the tree, is left out.
                if page.validate() && ours && level > 0 {
                    leaves |= level == 1;
                    below.extend(children);
                }
            }
            if below.is_empty() {
                break;
            }
            let enough = leaves || below.len() >= most;
            let step = below.len().div_ceil(most.max(1));
            let taken = below.into_iter().step_by(step);
            (pages, keys) = taken.unzip();
            if enough {
                break;
            }
        }
        Ok(keys)
    }
}
