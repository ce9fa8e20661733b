//! The values of a statement's parameter slots, in an arena that all executions reuse.

use nfold_sql::digest::{Digested, SlotKind};
use nfold_sql::literal::Lit;
use nfold_types::{Checkpoint, Decimal, SqlError, Value, ValueRef};

use super::batch::POOLED_BYTES;

/// How many list members or slots are bound between two checkpoints, and the work of each.
const MEMBERS: usize = 1024;
const MEMBER_WORK: u64 = 50;

/// A bound value. Strings are in the arena. Small, because an INSERT of many rows has tens of
/// thousands of them.
#[derive(Debug, Clone, Copy)]
enum Bound {
    Null,
    Int(i64),
    /// Another value, by its number in `others`.
    Other(u32),
    /// TRUE or FALSE: an integer, except beside documents.
    Bool(bool),
    Bytes {
        start: u32,
        len: u32,
    },
    /// A hexadecimal or bit literal: bytes that act as a number in numeric context.
    Binary {
        start: u32,
        len: u32,
    },
}

/// The value of a slot.
#[derive(Debug, Clone, Copy)]
enum SlotValue {
    One(Bound),
    /// A list: its range in `members`, in which rows are flattened.
    Many {
        start: u32,
        len: u32,
        width: u32,
    },
}

const _: () = assert!(size_of::<Bound>() == 16);

/// The values of all parameter slots in one execution.
#[derive(Debug, Default)]
pub struct Params {
    slots: Vec<SlotValue>,
    /// For each slot, whether it is a `?`.
    markers: Vec<bool>,
    members: Vec<Bound>,
    arena: Vec<u8>,
    /// Values of other types than integers and strings.
    others: Vec<ValueRef<'static>>,
}

impl Params {
    /// No parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.markers.clear();
        self.members.clear();
        self.arena.clear();
        self.others.clear();
    }

    /// Called after an execution: removes all values, and frees the memory of a long list.
    pub fn release(&mut self) {
        self.clear();
        let bytes = self.members.capacity() * size_of::<Bound>()
            + self.others.capacity() * size_of::<ValueRef<'_>>()
            + self.arena.capacity();
        if bytes > POOLED_BYTES {
            *self = Params::new();
        }
    }

    /// Binds the literals of a text. `markers` are the values of its `?`, in order.
    ///
    /// # Errors
    /// The error of the checkpoint.
    pub fn bind(
        &mut self,
        digest: &Digested,
        text: &[u8],
        markers: &[Value],
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), SqlError> {
        self.clear();
        for (n, slot) in digest.slots().iter().enumerate() {
            let n = n as u32;
            let value = match slot.kind {
                SlotKind::Literal(_) => {
                    let lit = digest.literal(n, text).unwrap_or(Lit::Null);
                    SlotValue::One(self.literal(&lit, checkpoint)?)
                }
                SlotKind::Marker(m) => {
                    SlotValue::One(self.value(markers.get(m as usize).unwrap_or(&Value::Null)))
                }
                SlotKind::List | SlotKind::Rows => {
                    let start = self.members.len() as u32;
                    self.members
                        .reserve(slot.count as usize * slot.width.max(1) as usize);
                    let mut list = digest.list(n, text);
                    loop {
                        list.advance();
                        let bound = match list.plain_string() {
                            Some(plain) => self.bytes(plain),
                            None => match list.literal() {
                                Some(Lit::Int { negative, value }) => self.integer(negative, value),
                                Some(lit) => self.literal(&lit, checkpoint)?,
                                None => break,
                            },
                        };
                        self.members.push(bound);
                        if self.members.len().is_multiple_of(MEMBERS) {
                            checkpoint.checkpoint(MEMBER_WORK * MEMBERS as u64)?;
                        }
                    }
                    SlotValue::Many {
                        start,
                        len: self.members.len() as u32 - start,
                        width: slot.width.max(1),
                    }
                }
            };
            self.slots.push(value);
            self.markers.push(matches!(slot.kind, SlotKind::Marker(_)));
            if self.slots.len().is_multiple_of(MEMBERS) {
                checkpoint.checkpoint(MEMBER_WORK * MEMBERS as u64)?;
            }
        }
        Ok(())
    }

    /// Adds a slot with one value, for statements that are not read from a text.
    pub fn push(&mut self, value: &Value) {
        let bound = self.value(value);
        self.slots.push(SlotValue::One(bound));
        self.markers.push(false);
    }

    fn value(&mut self, value: &Value) -> Bound {
        match value {
            Value::Bytes(b) => self.bytes(b),
            Value::Null => Bound::Null,
            Value::Int(v) => Bound::Int(*v),
            Value::UInt(v) => self.other(ValueRef::UInt(*v)),
            Value::Float(v) => self.other(ValueRef::Float(*v)),
            Value::Double(v) => self.other(ValueRef::Double(*v)),
            Value::Decimal(v) => self.other(ValueRef::Decimal(*v)),
            Value::Date(v) => self.other(ValueRef::Date(*v)),
            Value::DateTime(v) => self.other(ValueRef::DateTime(*v)),
            Value::Timestamp(v) => self.other(ValueRef::Timestamp(*v)),
            Value::Time(v) => self.other(ValueRef::Time(*v)),
        }
    }

    fn other(&mut self, value: ValueRef<'static>) -> Bound {
        self.others.push(value);
        Bound::Other(self.others.len() as u32 - 1)
    }

    /// The integer with this sign and absolute value.
    #[inline]
    fn integer(&mut self, negative: bool, value: u64) -> Bound {
        match (negative, i64::try_from(value)) {
            (false, Ok(v)) => Bound::Int(v),
            (true, Ok(v)) => Bound::Int(-v),
            _ => self.large_integer(negative, value),
        }
    }

    #[cold]
    fn large_integer(&mut self, negative: bool, value: u64) -> Bound {
        if !negative {
            return self.other(ValueRef::UInt(value));
        }
        if value == i64::MIN.unsigned_abs() {
            return Bound::Int(i64::MIN);
        }
        let d = Decimal::parse_prefix(value.to_string().as_bytes()).value;
        self.other(ValueRef::Decimal(d.neg()))
    }

    #[inline]
    fn bytes(&mut self, b: &[u8]) -> Bound {
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(b);
        Bound::Bytes {
            start,
            len: b.len() as u32,
        }
    }

    fn binary(&mut self, b: &[u8]) -> Bound {
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(b);
        Bound::Binary {
            start,
            len: b.len() as u32,
        }
    }

    fn literal(&mut self, lit: &Lit<'_>, checkpoint: &dyn Checkpoint) -> Result<Bound, SqlError> {
        let start = self.arena.len() as u32;
        let value = match lit {
            Lit::Null => return Ok(Bound::Null),
            Lit::Bool(b) => return Ok(Bound::Bool(*b)),
            Lit::Int { negative, value } => return Ok(self.integer(*negative, *value)),
            Lit::Decimal { negative, text } => {
                let d = Decimal::parse_prefix(text).value;
                ValueRef::Decimal(if *negative { d.neg() } else { d })
            }
            Lit::Float { negative, text } => {
                let v = std::str::from_utf8(text)
                    .ok()
                    .and_then(|t| t.parse::<f64>().ok())
                    .unwrap_or(0.0);
                ValueRef::Double(if *negative { -v } else { v })
            }
            Lit::String(raw) => match raw.plain() {
                Some(plain) => return Ok(self.bytes(plain)),
                None => {
                    raw.append_stoppable(&mut self.arena, checkpoint)?;
                    return Ok(Bound::Bytes {
                        start,
                        len: self.arena.len() as u32 - start,
                    });
                }
            },
            Lit::Hex(digits) => {
                let bytes = nfold_sql::literal::hex_bytes(digits);
                return Ok(self.binary(&bytes));
            }
            Lit::Bit(digits) => {
                let bytes = nfold_sql::literal::bit_bytes(digits);
                return Ok(self.binary(&bytes));
            }
        };
        Ok(self.other(value))
    }

    #[inline]
    fn resolve(&self, bound: Bound) -> ValueRef<'_> {
        match bound {
            Bound::Int(v) => ValueRef::Int(v),
            Bound::Null => ValueRef::Null,
            Bound::Other(n) => self.others[n as usize],
            Bound::Bool(b) => ValueRef::Int(i64::from(b)),
            Bound::Bytes { start, len } | Bound::Binary { start, len } => {
                ValueRef::Bytes(&self.arena[start as usize..(start + len) as usize])
            }
        }
    }

    /// The value of slot `n`; NULL for a list.
    #[inline]
    pub fn get(&self, n: u32) -> ValueRef<'_> {
        match self.slots.get(n as usize) {
            Some(SlotValue::One(b)) => self.resolve(*b),
            _ => ValueRef::Null,
        }
    }

    /// Whether slot `n` is a `?` of a prepared statement.
    pub fn is_marker(&self, n: u32) -> bool {
        self.markers.get(n as usize) == Some(&true)
    }

    /// The members of list or rows slot `n`, flattened, and the number of columns of a row.
    pub fn list(&self, n: u32) -> (impl ExactSizeIterator<Item = ValueRef<'_>> + Clone, usize) {
        let (start, len, width) = match self.slots.get(n as usize) {
            Some(SlotValue::Many { start, len, width }) => {
                (*start as usize, *len as usize, *width as usize)
            }
            _ => (0, 0, 1),
        };
        (
            self.members[start..start + len]
                .iter()
                .map(|b| self.resolve(*b)),
            width,
        )
    }

    /// As [`Self::list`], with each member whether it is a hexadecimal or bit literal.
    pub fn rows(&self, n: u32) -> (impl Iterator<Item = (ValueRef<'_>, bool)>, usize) {
        let (members, width) = match self.slots.get(n as usize) {
            Some(SlotValue::Many { start, len, width }) => {
                let members = &self.members[*start as usize..][..*len as usize];
                (members, *width as usize)
            }
            _ => (&[][..], 1),
        };
        let with_form = |b: &Bound| (self.resolve(*b), matches!(b, Bound::Binary { .. }));
        (members.iter().map(with_form), width)
    }

    /// Whether member `i` of list or rows slot `n` is a hexadecimal or bit literal.
    pub fn is_binary_member(&self, n: u32, i: usize) -> bool {
        matches!(self.member(n, i), Some(Bound::Binary { .. }))
    }

    /// Whether member `i` of list or rows slot `n` is TRUE or FALSE.
    pub fn is_boolean_member(&self, n: u32, i: usize) -> bool {
        matches!(self.member(n, i), Some(Bound::Bool(_)))
    }

    fn member(&self, n: u32, i: usize) -> Option<Bound> {
        match self.slots.get(n as usize) {
            Some(SlotValue::Many { start, len, .. }) if i < *len as usize => {
                Some(self.members[*start as usize + i])
            }
            _ => None,
        }
    }

    /// The memory that it holds, in bytes.
    pub fn memory(&self) -> usize {
        self.arena.capacity()
            + self.members.capacity() * size_of::<Bound>()
            + self.others.capacity() * size_of::<ValueRef<'_>>()
            + self.slots.capacity() * size_of::<SlotValue>()
            + self.markers.capacity()
    }
}
