//! Excerpts of documents: the members that some paths lead to, read from bytes that need not lie in
//! one piece.
//!
//! # Invariants
//!
//! - E1: in the excerpt every path of the [`MemberTree`] finds the values that it finds in the
//!   document.
//! - E2: nothing that is read is trusted: the bytes may change while they are read. Every read is
//!   checked against the document's length, and children lie behind their container's entries.
//!
//! # Cost
//!
//! A search in each object on the way, and the bytes of the members found. Documents of one column
//! have the same members as a rule: the search begins where the last document had the member, which
//! the tree remembers. So a tree belongs to one reader.

use std::cmp::Ordering;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::binary::{
    Container, DOUBLE, INT16, INT32, INT64, LARGE_ARRAY, LARGE_OBJECT, LITERAL, OPAQUE,
    SMALL_ARRAY, SMALL_OBJECT, STRING, UINT16, UINT32, UINT64, is_inlined, name_entry_width,
    offset_width, value_entry_width,
};
use crate::path::{Leg, Path};

/// Reads the bytes from an offset on; false if they cannot be read.
pub type ReadBytes<'r> = dyn FnMut(usize, &mut [u8]) -> bool + 'r;

/// The most steps of a path that an excerpt follows. The value there comes as a whole.
const LEGS_MAX: usize = 16;
/// Bytes of a name that are compared at a time.
const NAME_PART: usize = 32;
/// Bytes of an excerpt's entry of a name, and of a value.
const NAME_ENTRY: usize = name_entry_width(true);
const VALUE_ENTRY: usize = value_entry_width(true);

/// The members of a document that some paths lead to.
#[derive(Debug)]
pub struct MemberTree {
    /// In the order of an object's members. Empty: the value is needed as a whole.
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: Box<[u8]>,
    /// What is needed of the value.
    tree: MemberTree,
    /// Its number in the last object that had it.
    last: AtomicUsize,
}

impl Member {
    fn of_names(name: &[u8], rest: &[&[u8]]) -> Member {
        Member {
            name: name.into(),
            tree: MemberTree::of_names(rest),
            last: AtomicUsize::new(0),
        }
    }
}

impl MemberTree {
    /// The tree of the paths; `None` if one of them needs the document as a whole.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Option<MemberTree> {
        let mut tree: Option<MemberTree> = None;
        for path in paths {
            let names = path.legs.iter().take(LEGS_MAX).map_while(|leg| match leg {
                Leg::Member(name) => Some(name.as_bytes()),
                _ => None,
            });
            let names: Vec<&[u8]> = names.collect();
            if names.is_empty() {
                return None;
            }
            match &mut tree {
                Some(tree) => tree.add(&names),
                None => tree = Some(MemberTree::of_names(&names)),
            }
        }
        tree
    }

    fn of_names(names: &[&[u8]]) -> MemberTree {
        let first = names.split_first();
        let member = first.map(|(name, rest)| Member::of_names(name, rest));
        MemberTree {
            members: member.into_iter().collect(),
        }
    }

    fn add(&mut self, names: &[&[u8]]) {
        if self.members.is_empty() {
            return;
        }
        let Some((name, rest)) = names.split_first() else {
            self.members.clear();
            return;
        };
        let found = (self.members).binary_search_by(|known| name_order(&known.name, name));
        match found {
            Ok(at) => self.members[at].tree.add(rest),
            Err(at) => self.members.insert(at, Member::of_names(name, rest)),
        }
    }

    /// Appends the excerpt of a document of `length` bytes. `None`, and `out` has any bytes behind
    /// its end: the document is no object, or damaged, or its bytes cannot be read.
    pub fn excerpt(
        &self,
        length: usize,
        read: &mut ReadBytes<'_>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let mut source = Source { length, read };
        let [type_byte] = source.bytes(0)?;
        if !matches!(type_byte, SMALL_OBJECT | LARGE_OBJECT) || self.members.is_empty() {
            return None;
        }
        out.push(LARGE_OBJECT);
        source.object(self, (type_byte, 1), out)
    }
}

/// The order of an object's members.
fn name_order(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn number(bytes: &[u8]) -> usize {
    (bytes.iter().rev()).fold(0, |n, byte| n << 8 | usize::from(*byte))
}

/// The bytes of the document.
struct Source<'s, 'r> {
    length: usize,
    read: &'s mut ReadBytes<'r>,
}

impl Source<'_, '_> {
    fn fill(&mut self, at: usize, bytes: &mut [u8]) -> Option<()> {
        let end = at.checked_add(bytes.len())?;
        (end <= self.length && (self.read)(at, bytes)).then_some(())
    }

    fn bytes<const N: usize>(&mut self, at: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(at, &mut bytes)?;
        Some(bytes)
    }

    /// A number of `width` bytes.
    fn number(&mut self, at: usize, width: usize) -> Option<usize> {
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..width];
        self.fill(at, bytes)?;
        Some(number(bytes))
    }

    fn append(&mut self, at: usize, length: usize, out: &mut Vec<u8>) -> Option<()> {
        if at.checked_add(length)? > self.length {
            return None;
        }
        let start = out.len();
        out.resize(start + length, 0);
        self.fill(at, &mut out[start..])
    }

    /// Appends the object whose count lies at `at`, with the members of the tree only, as a large
    /// one.
    fn object(
        &mut self,
        tree: &MemberTree,
        (type_byte, at): (u8, usize),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let large = type_byte == LARGE_OBJECT;
        let count = self.number(at, offset_width(large))?;
        if count > self.length {
            return None;
        }
        let head = Container::new(large, true, count);
        let mut found = FoundMembers::new();
        for member in &tree.members {
            if let Some(place) = self.place(at, &head, member)? {
                found.push((&member.name, &member.tree, place));
            }
        }
        let start = out.len();
        let names = start + 2 * offset_width(true);
        let values = names + found.len() * NAME_ENTRY;
        out.resize(values + found.len() * VALUE_ENTRY, 0);
        for (n, (name, ..)) in found.iter().enumerate() {
            let offset = (out.len() - start) as u32;
            let entry = &mut out[names + n * NAME_ENTRY..][..NAME_ENTRY];
            entry[..4].copy_from_slice(&offset.to_le_bytes());
            entry[4..].copy_from_slice(&(name.len() as u16).to_le_bytes());
            out.extend_from_slice(name);
        }
        for (n, (_, rest, place)) in found.iter().enumerate() {
            let entry = values + n * VALUE_ENTRY;
            self.member(rest, (at, &head, *place), (start, entry), out)?;
        }
        let size = (out.len() - start) as u32;
        out[start..start + 4].copy_from_slice(&(found.len() as u32).to_le_bytes());
        out[start + 4..start + 8].copy_from_slice(&size.to_le_bytes());
        Some(())
    }

    /// Writes the entry of a member, and appends its value. The member is number `place` of the
    /// object at `at`; its entry lies at `entry`, and its new object begins at `start`.
    fn member(
        &mut self,
        tree: &MemberTree,
        (at, head, place): (usize, &Container, usize),
        (start, entry): (usize, usize),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let source = at + head.entry(place);
        let [mut type_byte] = self.bytes(source)?;
        let value = match is_inlined(type_byte, head.large) {
            true => source + 1,
            false => {
                let offset = self.number(source + 1, offset_width(head.large))?;
                (offset >= head.end_of_entries()).then_some(at.checked_add(offset)?)?
            }
        };
        if is_inlined(type_byte, true) {
            let length = self.value_length(type_byte, value)?;
            let here = entry + 1..entry + 1 + length;
            self.fill(value, &mut out[here])?;
        } else {
            let offset = (out.len() - start) as u32;
            out[entry + 1..entry + 5].copy_from_slice(&offset.to_le_bytes());
            let object = matches!(type_byte, SMALL_OBJECT | LARGE_OBJECT);
            if object && !tree.members.is_empty() {
                self.object(tree, (type_byte, value), out)?;
                type_byte = LARGE_OBJECT;
            } else {
                let length = self.value_length(type_byte, value)?;
                self.append(value, length, out)?;
            }
        }
        out[entry] = type_byte;
        Some(())
    }

    /// The number of a member in the object at `at`. The outer `None`: the bytes cannot be read.
    fn place(&mut self, at: usize, head: &Container, member: &Member) -> Option<Option<usize>> {
        let (width, name) = (offset_width(head.large), &*member.name);
        let (mut low, mut high) = (0, head.count);
        // Away from the last place in growing steps, until the member lies between two of them.
        let (mut next, mut step) = (member.last.load(Relaxed), 1);
        while low < high {
            let middle = match (low..high).contains(&next) {
                true => next,
                false => (low + high) / 2,
            };
            let mut entry = [0; NAME_ENTRY];
            let entry = &mut entry[..name_entry_width(head.large)];
            self.fill(at + head.name_entry(middle), entry)?;
            let (offset, length) = entry.split_at(width);
            let order = match number(length).cmp(&name.len()) {
                Ordering::Equal => self.compare(at.checked_add(number(offset))?, name)?,
                order => order,
            };
            match order {
                Ordering::Less => (low, next) = (middle + 1, middle + step),
                Ordering::Greater => (high, next) = (middle, middle.saturating_sub(step)),
                Ordering::Equal => {
                    member.last.store(middle, Relaxed);
                    return Some(Some(middle));
                }
            }
            step *= 2;
        }
        Some(None)
    }

    /// Compares as many bytes as `name` has.
    fn compare(&mut self, mut at: usize, name: &[u8]) -> Option<Ordering> {
        for part in name.chunks(NAME_PART) {
            let mut bytes = [0; NAME_PART];
            let bytes = &mut bytes[..part.len()];
            self.fill(at, bytes)?;
            match (*bytes).cmp(part) {
                Ordering::Equal => at += part.len(),
                order => return Some(order),
            }
        }
        Some(Ordering::Equal)
    }

    /// Bytes of a value, without its type.
    fn value_length(&mut self, type_byte: u8, at: usize) -> Option<usize> {
        Some(match type_byte {
            LITERAL => 1,
            INT16 | UINT16 => 2,
            INT32 | UINT32 => 4,
            INT64 | UINT64 | DOUBLE => 8,
            STRING => self.counted_length(at)?,
            OPAQUE => 1 + self.counted_length(at.checked_add(1)?)?,
            SMALL_OBJECT | SMALL_ARRAY => self.number(at.checked_add(2)?, 2)?,
            LARGE_OBJECT | LARGE_ARRAY => self.number(at.checked_add(4)?, 4)?,
            _ => return None,
        })
    }

    /// Bytes of a length and of the bytes that it counts.
    fn counted_length(&mut self, at: usize) -> Option<usize> {
        let mut length = 0;
        for n in 0..5 {
            let [byte] = self.bytes(at.checked_add(n)?)?;
            length |= usize::from(byte & 0x7F) << (7 * n);
            if byte & 0x80 == 0 {
                return Some(n + 1 + length);
            }
        }
        None
    }
}

/// The members of an object that the tree and the document have: name, tree, number in the object.
type FoundMembers<'t> = smallvec::SmallVec<[(&'t [u8], &'t MemberTree, usize); 4]>;
