//! Tests of a single page: against a model, replay of its redo, and random bytes.

use super::edit::{Copied, push_cell, push_cell_pieces};
use super::*;
use crate::check::check_node;
use crate::redo::*;
use nfold_store::{PageId, PageMut, PageType, RedoHandler};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn page() -> Vec<AtomicU64> {
    (0..PAGE_WORDS).map(|_| AtomicU64::new(0)).collect()
}

fn bytes_of(words: &[AtomicU64]) -> Vec<u64> {
    words.iter().map(|w| w.load(Relaxed)).collect()
}

/// The number of cases of each property: `PROPTEST_CASES`, or a small default. Miri takes about a
/// thousand times as long.
fn cases() -> u32 {
    let default = if cfg!(miri) { 2 } else { 48 };
    let wanted = std::env::var("PROPTEST_CASES");
    wanted.ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}
const CHANGES: usize = if cfg!(miri) { 10 } else { 200 };
/// The most keys of a search test. The work grows with the square of this number.
const KEYS: usize = if cfg!(miri) { 12 } else { 60 };

/// A page that records the operations applied to it, for replay.
struct Logged {
    words: Vec<AtomicU64>,
    log: Vec<(u8, Vec<u8>)>,
}

impl Logged {
    fn new(lower: &[u8], upper: Option<&[u8]>) -> Logged {
        let mut payload = Vec::new();
        payload.extend_from_slice(&PageType::BTREE_LEAF.to_le_bytes());
        payload.extend_from_slice(&0u16.to_le_bytes());
        payload.extend_from_slice(&7u64.to_le_bytes());
        payload.extend_from_slice(&[0; 8]);
        payload.extend_from_slice(&(lower.len() as u16).to_le_bytes());
        payload.extend_from_slice(&upper.map_or(NO_UPPER, |u| u.len() as u16).to_le_bytes());
        payload.extend_from_slice(lower);
        payload.extend_from_slice(upper.unwrap_or(&[]));
        let mut logged = Logged {
            words: page(),
            log: Vec::new(),
        };
        logged.apply(OP_FORMAT, payload).unwrap();
        logged
    }
    fn node(&self) -> Node<'_> {
        Node::new(&self.words)
    }
    fn apply(&mut self, op: u8, payload: Vec<u8>) -> Result<(), nfold_store::StoreError> {
        let page = PageMut::detached(PageId { space: 1, page: 2 }, &self.words);
        BtreeRedo.apply(op, &payload, &page)?;
        self.log.push((op, payload));
        Ok(())
    }
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<(), nfold_store::StoreError> {
        let node = self.node();
        let suffix = node.suffix(key);
        let (slot, found) = node.search(node.count(), suffix);
        assert!(!found);
        let mut payload = (slot as u16).to_le_bytes().to_vec();
        payload.extend_from_slice(&(suffix.len() as u16).to_le_bytes());
        payload.extend_from_slice(suffix);
        payload.extend_from_slice(value);
        self.apply(OP_INSERT, payload)
    }
    /// Inserts entries that are adjacent on the page.
    fn insert_run(
        &mut self,
        entries: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<(), nfold_store::StoreError> {
        let node = self.node();
        let (slot, found) = node.search(node.count(), node.suffix(&entries[0].0));
        assert!(!found);
        let mut payload = (slot as u16).to_le_bytes().to_vec();
        for (key, value) in entries {
            let (first, second) = value.split_at(value.len() / 2);
            push_cell_pieces(&mut payload, node.suffix(key), [first, second]);
        }
        self.apply(OP_INSERT_RUN, payload)
    }
    fn at_slot(&mut self, op: u8, slot: usize, rest: &[u8]) -> Result<(), nfold_store::StoreError> {
        let mut payload = (slot as u16).to_le_bytes().to_vec();
        payload.extend_from_slice(rest);
        self.apply(op, payload)
    }
    fn assert_equals(&self, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let node = self.node();
        let mut problems = Vec::new();
        check_node(node, &mut |what| problems.push(what));
        assert!(problems.is_empty(), "{problems:?}");
        let entries: Vec<_> = (0..node.count())
            .map(|i| {
                let (mut key, mut value) = (Vec::new(), Vec::new());
                node.append_key(node.slot(i), &mut key);
                node.append_value(node.slot(i), &mut value);
                (key, value)
            })
            .collect();
        let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(entries, expected);
    }
    /// Asserts that the same operations on a zeroed page produce the same bytes.
    fn assert_replays(&self) {
        let words = page();
        let page = PageMut::detached(PageId { space: 1, page: 2 }, &words);
        for (op, payload) in &self.log {
            BtreeRedo.apply(*op, payload, &page).unwrap();
        }
        assert_eq!(bytes_of(&words), bytes_of(&self.words));
    }
}

#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>, Vec<u8>),
    /// Inserts keys that begin with the first one, as many of them as are adjacent.
    Run(Vec<u8>, Vec<Vec<u8>>),
    Remove(prop::sample::Index),
    Patch(prop::sample::Index, u8),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Few letters and shared prefixes make many keys with the same head, keys that are prefixes of
    // others, and zero bytes.
    let tail = prop_oneof![
        prop::collection::vec(0u8..3, 0..8),
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(97u8..99, 0..300),
    ];
    (
        prop::sample::select(vec![&b""[..], b"comm", b"common", b"commonp"]),
        tail,
    )
        .prop_map(|(a, b)| [a, &b].concat())
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        5 => (key(), prop::collection::vec(any::<u8>(), 0..400)).prop_map(|(k, v)| Change::Put(k, v)),
        2 => (key(), prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20)).prop_map(|(k, v)| Change::Run(k, v)),
        2 => any::<prop::sample::Index>().prop_map(Change::Remove),
        1 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(i, b)| Change::Patch(i, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn page_matches_btreemap(fenced in any::<bool>(), changes in prop::collection::vec(change(), 1..CHANGES), cut in any::<prop::sample::Index>()) {
        let (lower, upper): (&[u8], Option<&[u8]>) = if fenced { (b"comm", Some(b"commz")) } else { (b"", None) };
        let mut page = Logged::new(lower, upper);
        let mut model = BTreeMap::new();
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    if !page.node().covers(&key) {
                        continue;
                    }
                    let (slot, found) = page.node().search(page.node().count(), page.node().suffix(&key));
                    prop_assert_eq!(found, model.contains_key(&key));
                    let before = bytes_of(&page.words);
                    let done = if found { page.at_slot(OP_REPLACE, slot, &value) } else { page.insert(&key, &value) };
                    match done {
                        Ok(()) => { model.insert(key, value); }
                        // The page is full. It must be unchanged.
                        Err(_) => prop_assert_eq!(before, bytes_of(&page.words)),
                    }
                }
                Change::Run(first, values) => {
                    let next = model.range(first.clone()..).next().map(|(k, _)| k.clone());
                    let keys = (0..).map(|n: u8| match n { 0 => first.clone(), n => [&first[..], &[n]].concat() });
                    let run: Vec<_> = keys
                        .zip(values)
                        .take_while(|(key, _)| page.node().covers(key) && next.as_ref().is_none_or(|next| key < next))
                        .collect();
                    if run.is_empty() {
                        continue;
                    }
                    let before = bytes_of(&page.words);
                    match page.insert_run(&run) {
                        Ok(()) => model.extend(run),
                        Err(_) => prop_assert_eq!(before, bytes_of(&page.words)),
                    }
                }
                Change::Remove(i) if !model.is_empty() => {
                    let slot = i.index(model.len());
                    let key = model.keys().nth(slot).unwrap().clone();
                    page.at_slot(OP_REMOVE, slot, &[]).unwrap();
                    model.remove(&key);
                }
                Change::Patch(i, byte) if !model.is_empty() => {
                    let slot = i.index(model.len());
                    let value = model.values_mut().nth(slot).unwrap();
                    if let Some(last) = value.last_mut() {
                        *last = byte;
                        let off = (value.len() - 1) as u16;
                        page.at_slot(OP_VALUE_BYTES, slot, &[&off.to_le_bytes()[..], &[byte]].concat()).unwrap();
                    }
                }
                _ => {}
            }
        }
        page.assert_equals(&model);
        let node = page.node();
        for key in model.keys().cloned().chain((0..20u8).map(|n| b"common\x01q\xFFyz"[..usize::from(n) % 11].to_vec())) {
            let expected = node.has_prefix(&key).then(|| Suffix {
                head: head_of(node.suffix(&key)),
                len: node.suffix(&key).len(),
            });
            prop_assert_eq!(node.suffix_here(Key::from(&key[..])), expected, "{:?}", key);
            if let Some(suffix) = expected {
                prop_assert_eq!(node.suffix_of(Key::from(&key[..])), suffix, "{:?}", key);
            }
        }
        if !model.is_empty() {
            // The left half of a split.
            let at = cut.index(model.len());
            let keys: Vec<Vec<u8>> = model.keys().cloned().collect();
            let upper = keys[at].clone();
            if upper.as_slice() > lower {
                let right = model.split_off(&upper);
                let payload = [&(at as u16).to_le_bytes()[..], &9u32.to_le_bytes(), &upper].concat();
                page.apply(OP_TRUNCATE, payload).unwrap();
                prop_assert_eq!(page.node().right(), 9);
                page.assert_equals(&model);
                // Append the moved entries again, as cells.
                let prefix = page.node().prefix_len();
                let mut cells = Vec::new();
                for (key, value) in right.iter().filter(|(k, _)| k.get(..prefix) == upper.get(..prefix)) {
                    push_cell(&mut cells, &key[prefix..], value);
                }
                // They now lie outside the fences. Only their replay is tested.
                let _ = page.apply(OP_APPEND, cells);
            }
        }
        page.assert_replays();
    }

    #[test]
    fn searches_match_sorted_list(keys in prop::collection::btree_set(key(), 0..KEYS), probes in prop::collection::vec(key(), 1..KEYS / 2)) {
        let mut page = Logged::new(b"", None);
        let mut held = Vec::new();
        for key in &keys {
            if page.insert(key, &7u32.to_le_bytes()).is_ok() {
                held.push(key.clone());
            }
        }
        let node = page.node();
        for probe in probes.iter().chain(&held) {
            let at = held.partition_point(|k| k < probe);
            prop_assert_eq!(node.search(node.count(), probe), (at, held.get(at) == Some(probe)));
            let above = held.partition_point(|k| k <= probe);
            prop_assert_eq!(node.child_slot(node.count(), probe), above.saturating_sub(1));
            prop_assert_eq!(node.child_slot_below(node.count(), probe), at.saturating_sub(1));
            for from in 0..=at {
                prop_assert_eq!(node.end_from(from, node.count(), probe), at);
            }
        }
    }

    /// A reader can see arbitrary bytes while a page is being changed or after damage. It must not
    /// panic, hang, or read outside the page.
    #[test]
    fn random_bytes_cause_no_panic(seed in any::<u64>(), header in prop::collection::vec(any::<u16>(), 16), key in key(), plausible in any::<bool>(), op in 0x20u8..0x29, payload in prop::collection::vec(any::<u8>(), 0..64)) {
        let words = page();
        let mut state = seed | 1;
        for w in &words {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            w.store(state, Relaxed);
        }
        for (i, field) in header.iter().enumerate() {
            let most = if cfg!(miri) { 64 } else { 17000 };
            let field = if plausible || cfg!(miri) { field % most } else { *field };
            words::store_bytes(&words, OFF_COUNT + i * 2, &field.to_le_bytes());
        }
        let node = Node::new(&words);
        let count = node.count();
        prop_assert!(count <= MAX_SLOTS);
        let mut out = Vec::new();
        let (slot, _) = node.search(count, node.suffix(&key));
        prop_assert!(slot <= count);
        prop_assert!(node.child_slot(count, &key) <= count && node.child_slot_below(count, &key) <= count);
        prop_assert!(node.end_from(slot, count, &key) <= count.max(slot));
        for i in [0, slot, count, usize::MAX / 16] {
            let slot = node.slot(i);
            node.append_key(slot, &mut out);
            node.append_value(slot, &mut out);
            node.child(slot);
        }
        node.append_lower(&mut out);
        node.append_upper(&mut out);
        node.covers(&key);
        node.covers_below(&key);
        node.free_bytes();
        node.used_bytes();
        let range = node.hinted(count, 77);
        prop_assert!(range.0 <= count + 1 && range.1 <= count);
        node.prefetch_slots(range);
        node.has_prefix(&key);
        check_node(node, &mut |_| ());
        // A writer can meet a damaged page or a damaged log record.
        let damaged = Copied::of(&words);
        let page = PageMut::detached(PageId { space: 1, page: 2 }, damaged.words());
        let _ = BtreeRedo.apply(op, &payload, &page);
        let small = [&[0u8, 0][..], &payload].concat();
        let _ = BtreeRedo.apply(op, &small, &page);
    }
}

#[test]
fn run_has_the_bytes_of_single_inserts() {
    let entry = |n: u16| (n.to_be_bytes().to_vec(), vec![n as u8; usize::from(n % 50)]);
    let (mut runs, mut singles) = (Logged::new(b"", None), Logged::new(b"", None));
    let mut removed = false;
    // Runs behind the last insert, before it, and elsewhere; the last one needs compaction.
    for (from, to) in [
        (300, 320),
        (320, 321),
        (100, 130),
        (130, 140),
        (50, 52),
        (400, 560),
    ] {
        let entries: Vec<_> = (from..to).map(entry).collect();
        runs.insert_run(&entries).unwrap();
        for (key, value) in &entries {
            singles.insert(key, value).unwrap();
        }
        assert_eq!(bytes_of(&runs.words), bytes_of(&singles.words), "{from}");
        assert_eq!(runs.node().last_insert(), singles.node().last_insert());
        removed |= from == 50;
        if from == 50 {
            for page in [&mut runs, &mut singles] {
                page.at_slot(OP_REMOVE, 10, &[]).unwrap();
            }
        }
    }
    assert!(removed && runs.node().garbage() > 0);
    runs.assert_replays();
}

#[test]
fn run_compacts_scattered_bytes() {
    let entry = |n: u16| (n.to_be_bytes().to_vec(), vec![n as u8; 600]);
    let mut page = Logged::new(b"", None);
    let mut model: BTreeMap<_, _> = (0..26).map(entry).collect();
    page.insert_run(&model.clone().into_iter().collect::<Vec<_>>())
        .unwrap();
    for n in (0..10u16).rev() {
        page.at_slot(OP_REMOVE, usize::from(n), &[]).unwrap();
        model.remove(&n.to_be_bytes()[..]);
    }
    let run: Vec<_> = (0..8).map(entry).collect();
    assert!(page.node().open_bytes() < 8 * 600);
    page.insert_run(&run).unwrap();
    model.extend(run);
    page.assert_equals(&model);
    page.assert_replays();
    let before = bytes_of(&page.words);
    let more: Vec<_> = (100..104).map(entry).collect();
    page.insert_run(&more).unwrap_err();
    assert_eq!(before, bytes_of(&page.words));
}

#[test]
fn damaged_payloads_return_errors() {
    let mut page = Logged::new(b"", None);
    page.insert(b"a", b"1").unwrap();
    for (op, payload) in [
        (OP_REMOVE, vec![1, 0]),
        (OP_REMOVE, vec![0]),
        (OP_REPLACE, vec![5, 0, 1]),
        (OP_VALUE_BYTES, vec![0, 0, 1, 0, 9]),
        (OP_TRUNCATE, vec![2, 0, 0, 0, 0, 0, b'z']),
        (OP_APPEND, vec![1, 0, 1, 0, b'k']),
        (OP_INSERT_RUN, vec![0, 0]),
        (OP_INSERT_RUN, vec![2, 0, 1, 0, 0, 0, b'k']),
        (OP_INSERT_RUN, vec![1, 0, 1, 0, 1, 0, b'k']),
        (0x2f, vec![]),
    ] {
        let before = bytes_of(&page.words);
        let error = page.apply(op, payload).unwrap_err();
        assert!(
            matches!(error, nfold_store::StoreError::Corrupt { .. }),
            "{error}"
        );
        assert_eq!(before, bytes_of(&page.words));
    }
}

#[test]
fn key_head_order_matches_key_order() {
    assert!(head_of(b"") <= head_of(b"\0"));
    assert_eq!(head_of(b"ab"), head_of(b"ab\0\0zz"));
    assert!(head_of(b"ab\x01") > head_of(b"ab"));
    assert_eq!(common_prefix(b"abc", b"abd"), 2);
}

/// The keys share their head, end in zeros, are prefixes of one another, and have lengths around
/// the sizes of the words that a search compares.
#[test]
fn search_finds_keys_with_equal_head() {
    let mut keys: Vec<Vec<u8>> = vec![vec![7; 4], vec![7; 3]];
    // Under miri, testing all lengths would take minutes.
    for len in (0..14).step_by(if cfg!(miri) { 6 } else { 1 }) {
        for last in [0u8, 1, 200] {
            let mut key = vec![7; 4];
            key.extend(std::iter::repeat_n(0, len));
            keys.push(key.clone());
            key.push(last);
            keys.push(key);
        }
    }
    keys.sort();
    keys.dedup();
    for present in 0..2 {
        let mut page = Logged::new(&[], None);
        let inside: Vec<&Vec<u8>> = keys.iter().skip(present).step_by(2).collect();
        for key in &inside {
            page.insert(key, b"v").unwrap();
        }
        for key in &keys {
            let at = inside.partition_point(|k| *k < key);
            let found = inside.get(at) == Some(&key);
            assert_eq!(
                page.node().search(inside.len(), key),
                (at, found),
                "{key:?}"
            );
        }
    }
}
