//! Excerpts of documents: the members that some paths lead to, or the names of all members, read
//! from bytes that need not lie in one piece.
//!
//! # Invariants
//!
//! - E1: in the excerpt every path of the [`MemberTree`] finds the values that it finds in the
//!   document. An outline has the type of the document, and as many elements or the same members.
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
    Container, DOUBLE, INT16, INT32, INT64, LARGE_ARRAY, LARGE_OBJECT, LITERAL, LITERAL_NULL,
    OPAQUE, SMALL_ARRAY, SMALL_OBJECT, STRING, UINT16, UINT32, UINT64, container_type, is_inlined,
    name_entry_width, offset_width, value_entry_width,
};
use crate::path::{Leg, Path};

/// The bytes of a document. They may change while they are read.
pub trait DocumentBytes {
    /// The 8 bytes from `at` on, the first one lowest; those behind the end of the document are
    /// any. `None` if they cannot be read.
    fn word(&mut self, at: usize) -> Option<u64>;

    /// Appends `length` bytes from `at` on, all of them inside the document. False if they cannot
    /// be read; then `out` has any bytes behind its end.
    fn append(&mut self, at: usize, length: usize, out: &mut Vec<u8>) -> bool;
}

/// The most steps of a path that an excerpt follows. The value there comes as a whole.
const LEGS_MAX: usize = 16;
/// Bytes of a name that are compared at a time.
const WORD: usize = size_of::<u64>();
/// Bytes of an excerpt's entry of a name, and of a value.
const NAME_ENTRY: usize = name_entry_width(true);
const VALUE_ENTRY: usize = value_entry_width(true);

/// The part of a value that a function needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueNeed {
    /// All of it.
    Whole,
    /// Its type, the number of its elements, and the names of its members.
    Names,
    /// Its type, and the number of its elements.
    Head,
}

/// The parts of a document that some paths lead to, or its names or its head.
#[derive(Debug)]
pub struct MemberTree(Part);

/// The part of a value that is needed.
#[derive(Debug)]
enum Part {
    /// A scalar is always a whole.
    Of(ValueNeed),
    /// The type, and these members, in the order of an object's members.
    Members(Vec<Member>),
}

#[derive(Debug)]
struct Member {
    name: Box<[u8]>,
    /// The name in big-endian words, whose order is that of the bytes, with zeros at its end.
    words: Box<[u64]>,
    /// The part of the value that is needed.
    part: Part,
    /// Its number in the last object that had it.
    last: AtomicUsize,
}

impl Part {
    /// The part of the value that the names lead to.
    fn of_names(names: &[&[u8]], need: ValueNeed) -> Part {
        match names.split_first() {
            Some((name, rest)) => Part::Members(vec![Member::of_names(name, rest, need)]),
            None => Part::Of(need),
        }
    }

    fn add(&mut self, names: &[&[u8]], need: ValueNeed) {
        match (&mut *self, names.split_first()) {
            (Part::Members(members), Some((name, rest))) => {
                match members.binary_search_by(|known| name_order(&known.name, name)) {
                    Ok(at) => members[at].part.add(rest, need),
                    Err(at) => members.insert(at, Member::of_names(name, rest, need)),
                }
            }
            (Part::Of(known), None) if *known == need => {}
            (Part::Of(ValueNeed::Names | ValueNeed::Head), None) if need != ValueNeed::Whole => {
                *self = Part::Of(ValueNeed::Names);
            }
            _ => *self = Part::Of(ValueNeed::Whole),
        }
    }
}

impl Member {
    fn of_names(name: &[u8], rest: &[&[u8]], need: ValueNeed) -> Member {
        let word = |part: &[u8]| {
            let mut bytes = [0; WORD];
            bytes[..part.len()].copy_from_slice(part);
            u64::from_be_bytes(bytes)
        };
        Member {
            name: name.into(),
            words: name.chunks(WORD).map(word).collect(),
            part: Part::of_names(rest, need),
            last: AtomicUsize::new(0),
        }
    }
}

impl MemberTree {
    /// The tree of the paths, each with the part of its values that is needed; `None` if one of
    /// them needs the document as a whole.
    pub fn of<'p>(paths: impl IntoIterator<Item = (&'p Path, ValueNeed)>) -> Option<MemberTree> {
        let mut tree = Part::Members(Vec::new());
        for (path, need) in paths {
            let names = path.legs.iter().take(LEGS_MAX).map_while(|leg| match leg {
                Leg::Member(name) => Some(name.as_bytes()),
                _ => None,
            });
            let names: Vec<&[u8]> = names.collect();
            if names.is_empty() {
                return None;
            }
            let is_all = names.len() == path.legs.len();
            tree.add(&names, if is_all { need } else { ValueNeed::Whole });
        }
        Some(MemberTree(tree))
    }

    /// The names of all members without their values, or only the head of the document.
    pub fn of_document(need: ValueNeed) -> MemberTree {
        MemberTree(Part::Of(need))
    }

    /// Appends the excerpt of a document of `length` bytes. `None`, and `out` has any bytes behind
    /// its end: the document is no object or array, or damaged, or its bytes cannot be read.
    pub fn excerpt(
        &self,
        length: usize,
        bytes: &mut impl DocumentBytes,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let mut source = Source { length, bytes };
        let type_byte = source.word(0, 1)? as u8;
        let excerpt = container_of_excerpt(&self.0, type_byte)?;
        out.push(excerpt);
        source.container(&self.0, (type_byte, 1), out)
    }
}

/// The type of the excerpt of a container of this type. `None`: it is a scalar, or needed as a
/// whole.
fn container_of_excerpt(part: &Part, type_byte: u8) -> Option<u8> {
    let (_, object) = container_type(type_byte)?;
    match part {
        Part::Of(ValueNeed::Whole) => None,
        Part::Of(ValueNeed::Names | ValueNeed::Head) => Some(type_byte),
        Part::Members(_) if object => Some(LARGE_OBJECT),
        Part::Members(_) => Some(LARGE_ARRAY),
    }
}

/// Appends a large container without elements.
fn empty_container(out: &mut Vec<u8>) {
    let size = 2 * offset_width(true) as u32;
    out.extend_from_slice(&0u32.to_le_bytes());
    out.extend_from_slice(&size.to_le_bytes());
}

/// The order of an object's members.
fn name_order(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The first `bytes` bytes of a word, less than all.
fn low(word: u64, bytes: usize) -> usize {
    (word & !(u64::MAX << (8 * bytes))) as usize
}

/// The bytes of the document.
struct Source<'s, B> {
    length: usize,
    bytes: &'s mut B,
}

impl<B: DocumentBytes> Source<'_, B> {
    /// The word at `at`, of which `needed` bytes are inside the document.
    #[inline(always)]
    fn word(&mut self, at: usize, needed: usize) -> Option<u64> {
        match at.saturating_add(needed) <= self.length {
            true => self.bytes.word(at),
            false => None,
        }
    }

    /// A number of `width` bytes.
    #[inline(always)]
    fn number(&mut self, at: usize, width: usize) -> Option<usize> {
        Some(low(self.word(at, width)?, width))
    }

    fn append(&mut self, at: usize, length: usize, out: &mut Vec<u8>) -> Option<()> {
        let inside = at.checked_add(length)? <= self.length;
        (inside && self.bytes.append(at, length, out)).then_some(())
    }

    /// Appends the needed part of the container whose count lies at `at`.
    #[inline]
    fn container(
        &mut self,
        part: &Part,
        (type_byte, at): (u8, usize),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let (large, object) = container_type(type_byte)?;
        match part {
            Part::Members(members) if object => self.object(members, (type_byte, at), out),
            Part::Members(_) => {
                empty_container(out);
                Some(())
            }
            Part::Of(ValueNeed::Head) => self.append(at, 2 * offset_width(large), out),
            Part::Of(_) => self.outline((large, object), at, out),
        }
    }

    /// Appends the container whose count lies at `at`, with `null` in place of all values.
    fn outline(
        &mut self,
        (large, object): (bool, bool),
        at: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let width = offset_width(large);
        let head = Container::new(large, object, self.number(at, width)?);
        let mut end = head.end_of_entries();
        if object && let Some(last) = head.count.checked_sub(1) {
            let entry = at + head.name_entry(last);
            let (offset, length) = (self.number(entry, width)?, self.number(entry + width, 2)?);
            end = end.max(offset.checked_add(length)?);
        }
        let start = out.len();
        self.append(at, end, out)?;
        for n in 0..head.count {
            let entry = start + head.entry(n);
            out[entry..entry + 2].copy_from_slice(&[LITERAL, LITERAL_NULL]);
        }
        Some(())
    }

    /// Appends the object whose count lies at `at`, with these members only, as a large one.
    fn object(
        &mut self,
        members: &[Member],
        (type_byte, at): (u8, usize),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let large = type_byte == LARGE_OBJECT;
        let width = offset_width(large);
        let count = self.number(at, width)?;
        if count > self.length {
            return None;
        }
        let head = Container::new(large, true, count);
        let mut found = FoundMembers::new();
        for member in members {
            if let Some(place) = self.place(at, &head, member)? {
                let entry = self.word(at + head.entry(place), 1 + width)?;
                found.push((member, entry));
            }
        }
        let start = out.len();
        let names = start + 2 * offset_width(true);
        let values = names + found.len() * NAME_ENTRY;
        out.resize(values + found.len() * VALUE_ENTRY, 0);
        for (n, (member, _)) in found.iter().enumerate() {
            let (offset, length) = ((out.len() - start) as u32, member.name.len() as u16);
            let entry = &mut out[names + n * NAME_ENTRY..][..NAME_ENTRY];
            entry[..4].copy_from_slice(&offset.to_le_bytes());
            entry[4..].copy_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&member.name);
        }
        for (n, (member, source)) in found.iter().enumerate() {
            let entry = values + n * VALUE_ENTRY;
            self.member(&member.part, (at, &head, *source), (start, entry), out)?;
        }
        let size = (out.len() - start) as u32;
        out[start..start + 4].copy_from_slice(&(found.len() as u32).to_le_bytes());
        out[start + 4..start + 8].copy_from_slice(&size.to_le_bytes());
        Some(())
    }

    /// Writes the entry of a member, and appends its value. `source` is the member's entry in the
    /// object at `at`; the new one lies at `entry`, and its new object begins at `start`.
    #[inline]
    fn member(
        &mut self,
        part: &Part,
        (at, head, source): (usize, &Container, u64),
        (start, entry): (usize, usize),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let (mut type_byte, inlined) = (source as u8, source >> 8);
        let offset = match is_inlined(type_byte, head.large) {
            true => None,
            false => {
                let offset = low(inlined, offset_width(head.large));
                (offset >= head.end_of_entries()).then_some(())?;
                Some(at + offset)
            }
        };
        let stored = match offset {
            None => {
                let length = inlined_length(type_byte)?;
                low(inlined, length) as u32
            }
            Some(value) if is_inlined(type_byte, true) => {
                let length = inlined_length(type_byte)?;
                self.number(value, length)? as u32
            }
            Some(value) => {
                // The type lies in front of the value as well, so that both are a document.
                let excerpt = container_of_excerpt(part, type_byte);
                out.push(excerpt.unwrap_or(type_byte));
                let stored = (out.len() - start) as u32;
                match excerpt {
                    Some(excerpt) => {
                        self.container(part, (type_byte, value), out)?;
                        type_byte = excerpt;
                    }
                    None => {
                        let length = self.value_length(type_byte, value)?;
                        self.append(value, length, out)?;
                    }
                }
                stored
            }
        };
        out[entry] = type_byte;
        out[entry + 1..entry + VALUE_ENTRY].copy_from_slice(&stored.to_le_bytes());
        Some(())
    }

    /// The number of a member in the object at `at`. The outer `None`: the bytes cannot be read.
    #[inline]
    fn place(&mut self, at: usize, head: &Container, member: &Member) -> Option<Option<usize>> {
        let (width, length) = (offset_width(head.large), member.name.len());
        let (mut low_place, mut high) = (0, head.count);
        // Away from the last place in growing steps, until the member lies between two of them.
        let (mut next, mut step) = (member.last.load(Relaxed), 1);
        while low_place < high {
            let middle = match (low_place..high).contains(&next) {
                true => next,
                false => (low_place + high) / 2,
            };
            let entry = self.word(at + head.name_entry(middle), width + 2)?;
            let order = match low(entry >> (8 * width), 2).cmp(&length) {
                Ordering::Equal => self.compare(at + low(entry, width), member)?,
                order => order,
            };
            match order {
                Ordering::Less => (low_place, next) = (middle + 1, middle + step),
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

    /// Compares as many bytes as the member's name has.
    #[inline]
    fn compare(&mut self, at: usize, member: &Member) -> Option<Ordering> {
        for (n, name) in member.words.iter().enumerate() {
            let left = member.name.len() - n * WORD;
            let mut word = self.word(at + n * WORD, left.min(WORD))?.swap_bytes();
            if left < WORD {
                word &= u64::MAX << (8 * (WORD - left));
            }
            if word != *name {
                return Some(word.cmp(name));
            }
        }
        Some(Ordering::Equal)
    }

    /// Bytes of a value that is never stored in its entry, without its type.
    fn value_length(&mut self, type_byte: u8, at: usize) -> Option<usize> {
        Some(match type_byte {
            INT64 | UINT64 | DOUBLE => 8,
            STRING => self.counted_length(at)?,
            OPAQUE => 1 + self.counted_length(at + 1)?,
            SMALL_OBJECT | SMALL_ARRAY => self.number(at + 2, 2)?,
            LARGE_OBJECT | LARGE_ARRAY => self.number(at + 4, 4)?,
            _ => return None,
        })
    }

    /// Bytes of a length and of the bytes that it counts.
    fn counted_length(&mut self, at: usize) -> Option<usize> {
        let word = self.word(at, 1)?;
        let mut length = 0;
        for n in 0..5 {
            let byte = (word >> (8 * n)) as u8;
            length |= usize::from(byte & 0x7F) << (7 * n);
            if byte & 0x80 == 0 {
                return Some(n + 1 + length);
            }
        }
        None
    }
}

/// Bytes of a value that a large container stores in its entry.
fn inlined_length(type_byte: u8) -> Option<usize> {
    match type_byte {
        LITERAL => Some(1),
        INT16 | UINT16 => Some(2),
        INT32 | UINT32 => Some(4),
        _ => None,
    }
}

/// The members of an object that the tree and the document have, each with its entry there.
type FoundMembers<'t> = smallvec::SmallVec<[(&'t Member, u64); 4]>;
