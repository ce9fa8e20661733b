//! A tree's handle, and the descent from the root to a leaf.
//!
//! # Concurrency
//! A descent holds no latch. At each inner page it copies the child's page number, loads the
//! child's page word and then validates the inner page. So the child covered the key when its word
//! was loaded, and data read from the child count only if that word has not changed. A page that is
//! reached by a remembered number is also checked for its index id and level.
//!
//! Structure changes (splits and merges) of one tree run one at a time under `smo`, so the holder
//! of `smo` may rely on inner pages. It never waits for I/O. Writers that change a single leaf do
//! not take it.
//! # Cost
//! A read stores only into the caller's buffers.

use crate::node::Node;
#[cfg(not(shuttle))]
use nfold_observe::contention::{Site, WaitKind, WaitPlace};
use nfold_store::{
    Latched, Mtr, PageId, PageNo, PageRef, PageType, SpaceId, SpacePages, Stop, Store, StoreError,
};
use nfold_sync::{CachePadded, prim::spin};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::node::edit::Format;
use crate::redo;

/// The longest key, in bytes. An inner page full of such keys can be cut in the middle, and either
/// half then has room for one more.
pub const MAX_KEY: usize = 3200;
/// The largest key plus value, in bytes. Three such entries fit on a page, and after a cut in the
/// middle each half has room for its new fence key. The engine moves long columns to overflow
/// pages.
pub const MAX_ENTRY: usize = 5200;
/// The most levels that a descent accepts. Even with the longest keys, a tree of this height needs
/// far more than 2^32 pages.
pub(crate) const MAX_LEVELS: usize = 40;
/// The number of restarts of an optimistic read before it takes the latch.
pub(crate) const MAX_RESTARTS: u32 = 16;
/// The number of restarts while structure changes are excluded. Only evictions can cause these, so
/// more of them mean that the tree is damaged.
const MAX_STABLE_RESTARTS: u32 = 1000;

/// Identifies a tree. The root's page number never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    pub space: SpaceId,
    pub root: PageNo,
    pub index_id: u64,
}

/// Counters of one tree since it was opened, for SHOW STATUS. Only structure changes write to them.
#[derive(Debug, Default)]
pub struct TreeCounters {
    pub splits: AtomicU64,
    pub merges: AtomicU64,
}

/// A tree, with the structure change mutex and the counters that its users share. The engine's
/// index object owns it. A clone is a handle of the same tree and shares both.
#[derive(Clone, Debug)]
pub struct TreeHandle {
    pub(crate) tree: Tree,
    /// Unique in this process: only clones of this handle have the same id.
    pub(crate) id: u64,
    pub(crate) shape: Arc<Shape>,
}

/// The state that all handles of a tree share. Without it, two handles could change the tree's
/// structure at the same time.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Held during a split or merge, but never during I/O.
    pub(crate) smo: CachePadded<parking_lot::Mutex<()>>,
    pub(crate) counters: CachePadded<TreeCounters>,
}

/// Why an optimistic read did not complete: a concurrent change, after which it restarts, or a stop
/// that goes to the caller.
pub(crate) enum Miss {
    Restart,
    Stop(Stop),
}

impl From<Stop> for Miss {
    fn from(stop: Stop) -> Miss {
        Miss::Stop(stop)
    }
}

/// The target of a descent.
#[derive(Copy, Clone)]
pub(crate) enum Seek<'k> {
    /// The leaf that covers the key.
    At(&'k [u8]),
    /// The leaf that covers the keys just below the key.
    Below(&'k [u8]),
    /// The last leaf.
    Last,
}

impl Seek<'_> {
    #[inline(always)]
    pub(crate) fn child_slot(self, node: Node<'_>, count: usize) -> usize {
        match self {
            Seek::At(key) => node.child_slot(count, node.suffix(key)),
            Seek::Below(key) => node.child_slot_below(count, node.suffix(key)),
            Seek::Last => count.saturating_sub(1),
        }
    }

    /// Whether the seek ends at a page with these fence keys.
    pub(crate) fn covered_by(self, node: Node<'_>) -> bool {
        match self {
            Seek::At(key) => node.covers(key),
            Seek::Below(key) => node.covers_below(key),
            Seek::Last => node.upper_len().is_none(),
        }
    }
}

impl TreeHandle {
    /// Opens the first handle for an existing tree. Further handles must be clones of it.
    pub fn open(tree: Tree) -> TreeHandle {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        TreeHandle {
            tree,
            id: 1 + OPENED.fetch_add(1, Relaxed),
            shape: Arc::default(),
        }
    }

    /// Whether both handles are clones of one another, so that their structure changes exclude each
    /// other.
    pub fn is_same(&self, other: &TreeHandle) -> bool {
        Arc::ptr_eq(&self.shape, &other.shape)
    }

    /// Creates an empty tree inside `mtr`, which must have reserved one new page and its log space.
    /// Returns the root's page number.
    pub fn create(mtr: &mut Mtr<'_>, space: SpaceId, index_id: u64) -> PageNo {
        let root = mtr.alloc_page(space, PageType::BTREE_LEAF, 0, index_id);
        let format = Format {
            page_type: PageType::BTREE_LEAF,
            level: 0,
            index_id,
            left: 0,
            right: 0,
            lower: &[],
            upper: None,
        };
        redo::log_format(mtr, root, &format);
        mtr.id(root).page
    }

    /// The log bytes that [`create`](Self::create) needs.
    pub const CREATE_LOG_BYTES: usize = 256;

    pub fn tree(&self) -> Tree {
        self.tree
    }

    /// Takes the structure change mutex, and records a wait for it.
    #[inline]
    pub(crate) fn hold_smo(&self, store: &Store) -> parking_lot::MutexGuard<'_, ()> {
        // Under shuttle all threads are coroutines of one thread, so a blocked one must let the
        // others run.
        #[cfg(shuttle)]
        let _ = store;
        #[cfg(shuttle)]
        loop {
            match self.shape.smo.try_lock() {
                Some(guard) => return guard,
                None => spin(),
            }
        }
        #[cfg(not(shuttle))]
        nfold_store::lock_watched(&self.shape.smo, store.contention(), || Site {
            kind: WaitKind::TreeShape,
            place: WaitPlace::Index(self.tree.index_id),
        })
    }

    pub fn counters(&self) -> &TreeCounters {
        &self.shape.counters
    }

    #[inline(always)]
    pub(crate) fn page_id(&self, page: PageNo) -> PageId {
        PageId {
            space: self.tree.space,
            page,
        }
    }

    /// Whether an unvalidated page looks like one of this tree's at `level`.
    #[inline(always)]
    pub(crate) fn is_ours(&self, node: Node<'_>, level: u16) -> bool {
        let page_type = if level == 0 {
            PageType::BTREE_LEAF
        } else {
            PageType::BTREE_INNER
        };
        node.index_id() == self.tree.index_id
            && node.level() == level
            && node.page_type() == page_type
    }

    pub(crate) fn corrupt(&self, page: PageNo, what: &'static str) -> Stop {
        Stop::Error(StoreError::Corrupt {
            page: self.page_id(page),
            lsn: 0,
            what,
        })
    }

    /// The pages of the tree's space, or the reason why the space is missing.
    #[inline(always)]
    pub(crate) fn pages<'s>(&self, store: &'s Store) -> Result<SpacePages<'s>, Miss> {
        match store.pages_of(self.tree.space) {
            Some(pages) => Ok(pages),
            None => Err(self.no_pages(store)),
        }
    }

    #[cold]
    fn no_pages(&self, store: &Store) -> Miss {
        match store.read(self.page_id(self.tree.root)) {
            Ok(_) => Miss::Restart,
            Err(stop) => stop.into(),
        }
    }

    /// Reads the root. The caller's validation also covers the root's level.
    #[inline]
    pub(crate) fn read_root<'s>(&self, store: &'s Store) -> Result<PageRef<'s>, Miss> {
        self.root_of(self.pages(store)?)
    }

    #[inline(always)]
    pub(crate) fn root_of<'s>(&self, pages: SpacePages<'s>) -> Result<PageRef<'s>, Miss> {
        let page = pages.read(self.tree.root)?;
        self.root_node(&page)?;
        Ok(page)
    }

    /// The page with the root's number, if it looks like this tree's root.
    #[inline(always)]
    pub(crate) fn root_node<'s>(&self, page: &PageRef<'s>) -> Result<Node<'s>, Miss> {
        let node = Node::new(page.words());
        if !self.is_ours(node, node.level()) || node.level() as usize >= MAX_LEVELS {
            return Err(self.not_ours(page, "not the root of this index"));
        }
        Ok(node)
    }

    /// Classifies a page that does not look like this tree's: it changed meanwhile, or it is
    /// damaged.
    #[cold]
    fn not_ours(&self, page: &PageRef<'_>, what: &'static str) -> Miss {
        if page.validate() {
            self.corrupt(page.id().page, what).into()
        } else {
            Miss::Restart
        }
    }

    /// Goes from inner page `page` at `level` to its child in `slot`. Loads the child's word while
    /// `page` still has the bytes that were read.
    #[inline(always)]
    pub(crate) fn read_child<'s>(
        &self,
        pages: SpacePages<'s>,
        page: &PageRef<'s>,
        slot: usize,
        level: u16,
    ) -> Result<PageRef<'s>, Miss> {
        let node = Node::new(page.words());
        self.enter_child(pages, page, node.child(node.slot(slot)), level)
    }

    /// As [`read_child`](Self::read_child), with the child's page number already read from `page`.
    #[inline(always)]
    pub(crate) fn enter_child<'s>(
        &self,
        pages: SpacePages<'s>,
        page: &PageRef<'s>,
        child: PageNo,
        level: u16,
    ) -> Result<PageRef<'s>, Miss> {
        let next = self.enter_child_unseen(pages, page, child)?;
        if level == 0 {
            return Err(self.not_ours(&next, "not the child that its parent names"));
        }
        self.check_child(&next, level - 1)?;
        Ok(next)
    }

    /// As [`enter_child`](Self::enter_child), but reads nothing of the child yet. The caller must
    /// call [`check_child`](Self::check_child) next.
    #[inline(always)]
    pub(crate) fn enter_child_unseen<'s>(
        &self,
        pages: SpacePages<'s>,
        page: &PageRef<'s>,
        child: PageNo,
    ) -> Result<PageRef<'s>, Miss> {
        match pages.peek(child) {
            Some(next) => {
                // Prefetches the child's header and first lines before any access that may stall on
                // memory.
                Node::new(next.words()).prefetch_entry();
                if !page.validate() {
                    return Err(Miss::Restart);
                }
                pages.touch(&next);
                Ok(next)
            }
            None => self.wait_for_child(pages, page, child),
        }
    }

    /// Checks that a page looks like one of this tree's at `level`.
    #[inline(always)]
    pub(crate) fn check_child(&self, page: &PageRef<'_>, level: u16) -> Result<(), Miss> {
        match self.is_ours(Node::new(page.words()), level) {
            true => Ok(()),
            false => Err(self.not_ours(page, "not the child that its parent names")),
        }
    }

    /// [`read_child`](Self::read_child) for a child that is latched or not in memory.
    #[inline(never)]
    fn wait_for_child<'s>(
        &self,
        pages: SpacePages<'s>,
        page: &PageRef<'s>,
        child: PageNo,
    ) -> Result<PageRef<'s>, Miss> {
        // The number must be valid before this waits for that page.
        if !page.validate() {
            return Err(Miss::Restart);
        }
        let next = pages.read_slow(child);
        if !page.validate() {
            return Err(Miss::Restart);
        }
        Ok(next?)
    }

    /// Makes one attempt to reach the page at `level` where `seek` leads. Calls `visit` for each
    /// inner page on the way, which is not validated yet, with the chosen slot and the slot count.
    #[inline]
    pub(crate) fn try_descend<'s>(
        &self,
        store: &'s Store,
        seek: Seek<'_>,
        level: u16,
        mut visit: impl FnMut(&PageRef<'s>, usize, usize),
    ) -> Result<PageRef<'s>, Miss> {
        let pages = self.pages(store)?;
        let mut page = self.root_of(pages)?;
        let mut here = Node::new(page.words()).level();
        while here > level {
            let node = Node::new(page.words());
            let count = node.count();
            let slot = seek.child_slot(node, count);
            visit(&page, slot, count);
            page = self.read_child(pages, &page, slot, here)?;
            here -= 1;
        }
        if here < level {
            return Err(Miss::Restart);
        }
        Ok(page)
    }

    /// Runs an optimistic read, and restarts it on concurrent changes. Returns `None` after
    /// [`MAX_RESTARTS`] restarts; the caller then takes the latch
    /// ([`latch_leaf`](Self::latch_leaf)).
    #[inline]
    pub(crate) fn optimistic<T>(
        &self,
        store: &Store,
        mut attempt: impl FnMut() -> Result<T, Miss>,
    ) -> Result<Option<T>, Stop> {
        for _ in 0..MAX_RESTARTS {
            match attempt() {
                Ok(value) => return Ok(Some(value)),
                Err(Miss::Stop(stop)) => return Err(stop),
                Err(Miss::Restart) => count_restart(store),
            }
        }
        store.count_latch_fallback();
        Ok(None)
    }

    /// Latches the leaf where `seek` leads, for a reader whose optimistic attempts all failed.
    /// Under `smo` no other thread changes the inner pages. Only evictions can disturb the descent,
    /// and those end in a wait or a retry. The latch on the leaf is waited for.
    pub(crate) fn latch_leaf(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        seek: Seek<'_>,
    ) -> Result<Latched, Stop> {
        let _smo = self.hold_smo(store);
        match self.latch_leaf_tries(store, mtr, seek, MAX_STABLE_RESTARTS)? {
            Some(leaf) => Ok(leaf),
            None => Err(self.corrupt(
                self.tree.root,
                "a leaf does not cover the keys of its separator",
            )),
        }
    }

    /// [`latch_leaf`](Self::latch_leaf) for writers: excludes structure changes only after many
    /// attempts.
    pub(crate) fn latch_leaf_for_write(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        seek: Seek<'_>,
    ) -> Result<Latched, Stop> {
        match self.latch_leaf_tries(store, mtr, seek, 4 * MAX_RESTARTS)? {
            Some(leaf) => Ok(leaf),
            None => self.latch_leaf(store, mtr, seek),
        }
    }

    /// Makes up to `tries` attempts. If the latched leaf does not cover the key any more, it
    /// releases the leaf and descends again.
    fn latch_leaf_tries(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        seek: Seek<'_>,
        tries: u32,
    ) -> Result<Option<Latched>, Stop> {
        for _ in 0..tries {
            match self.try_latch_leaf(store, mtr, seek) {
                Ok(leaf) => return Ok(Some(leaf)),
                Err(Miss::Stop(stop)) => return Err(stop),
                Err(Miss::Restart) => count_restart(store),
            }
        }
        Ok(None)
    }

    fn try_latch_leaf(
        &self,
        store: &Store,
        mtr: &mut Mtr<'_>,
        seek: Seek<'_>,
    ) -> Result<Latched, Miss> {
        let root = self.read_root(store)?;
        // This level is only a hint. The writers of a small tree all latch its root leaf, so it may
        // never stay unchanged long enough for an optimistic read. The check under the latch below
        // decides.
        let level = Node::new(root.words()).level();
        let page = if level == 0 {
            self.tree.root
        } else {
            let parent = self.try_descend(store, seek, 1, |_, _, _| ())?;
            let node = Node::new(parent.words());
            let child = node.child(node.slot(seek.child_slot(node, node.count())));
            if !parent.validate() {
                return Err(Miss::Restart);
            }
            child
        };
        let leaf = mtr.latch(self.page_id(page))?;
        let node = Node::new(mtr.words(leaf));
        if self.is_ours(node, 0) && seek.covered_by(node) {
            return Ok(leaf);
        }
        mtr.unlatch(leaf);
        Err(Miss::Restart)
    }

    /// The page numbers and slots from the root to the leaf where `seek` leads, by level: `[0]` is
    /// the leaf. Call only under `smo`, which keeps inner pages unchanged.
    pub(crate) fn path(&self, store: &Store, seek: Seek<'_>) -> Result<Path, Stop> {
        loop {
            let mut path = Path::new();
            let end = self.try_descend(store, seek, 0, |page, slot, _| {
                path.push((page.id().page, slot))
            });
            match end {
                Ok(leaf) => {
                    path.push((leaf.id().page, 0));
                    path.reverse();
                    return Ok(path);
                }
                Err(Miss::Stop(stop)) => return Err(stop),
                Err(Miss::Restart) => count_restart(store),
            }
        }
    }
}

/// (page, chosen slot) by level. The slot at level 0 is meaningless.
pub(crate) type Path = SmallVec<[(PageNo, usize); 8]>;

/// Counts a restart of an optimistic read because of a concurrent change.
#[cold]
pub(crate) fn count_restart(store: &Store) {
    store.count_restart();
    spin();
}
