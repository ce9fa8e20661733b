//! The values of a statement's parameter slots, in an arena that all executions reuse.

use nfold_sql::digest::{Digested, SlotKind};
use nfold_sql::literal::Lit;
use nfold_types::{Checkpoint, Decimal, SqlError, Value, ValueRef};

use super::batch::POOLED_BYTES;

/// How many list members or slots are bound between two checkpoints, and the work of each.
const MEMBERS: usize = 1024;
const MEMBER_WORK: u64 = 50;

/// A bound value. Strings are in the arena.
#[derive(Debug, Clone, Copy)]
enum Bound {
    Value(ValueRef<'static>),
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

/// The values of all parameter slots in one execution.
#[derive(Debug, Default)]
pub struct Params {
    slots: Vec<SlotValue>,
    /// For each slot, whether it is a `?`.
    markers: Vec<bool>,
    members: Vec<Bound>,
    arena: Vec<u8>,
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
    }

    /// Called after an execution: removes all values, and frees the memory of a long list.
    pub fn release(&mut self) {
        self.clear();
        let bytes = self.members.capacity() * size_of::<Bound>() + self.arena.capacity();
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
                    if slot.width <= 1 {
                        self.members.reserve(slot.count as usize);
                    }
                    for lit in digest.list(n, text) {
                        let bound = match lit {
                            Lit::Int { negative, value } => Bound::Value(integer(negative, value)),
                            _ => self.literal(&lit, checkpoint)?,
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
            Value::Null => Bound::Value(ValueRef::Null),
            Value::Int(v) => Bound::Value(ValueRef::Int(*v)),
            Value::UInt(v) => Bound::Value(ValueRef::UInt(*v)),
            Value::Float(v) => Bound::Value(ValueRef::Float(*v)),
            Value::Double(v) => Bound::Value(ValueRef::Double(*v)),
            Value::Decimal(v) => Bound::Value(ValueRef::Decimal(*v)),
            Value::Date(v) => Bound::Value(ValueRef::Date(*v)),
            Value::DateTime(v) => Bound::Value(ValueRef::DateTime(*v)),
            Value::Timestamp(v) => Bound::Value(ValueRef::Timestamp(*v)),
            Value::Time(v) => Bound::Value(ValueRef::Time(*v)),
        }
    }

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
            Lit::Null => ValueRef::Null,
            Lit::Bool(b) => return Ok(Bound::Bool(*b)),
            Lit::Int { negative, value } => return Ok(Bound::Value(integer(*negative, *value))),
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
        Ok(Bound::Value(value))
    }

    #[inline]
    fn resolve(&self, bound: Bound) -> ValueRef<'_> {
        match bound {
            Bound::Value(v) => v,
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
            + self.slots.capacity() * size_of::<SlotValue>()
            + self.markers.capacity()
    }
}

/// The integer with this sign and absolute value.
fn integer(negative: bool, value: u64) -> ValueRef<'static> {
    match (negative, i64::try_from(value)) {
        (false, Ok(v)) => ValueRef::Int(v),
        (false, Err(_)) => ValueRef::UInt(value),
        (true, Ok(v)) => ValueRef::Int(-v),
        (true, Err(_)) if value == i64::MIN.unsigned_abs() => ValueRef::Int(i64::MIN),
        (true, Err(_)) => {
            let d = Decimal::parse_prefix(value.to_string().as_bytes()).value;
            ValueRef::Decimal(d.neg())
        }
    }
}
