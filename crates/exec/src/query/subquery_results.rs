//! Results of a correlated subquery by the values of the outer columns that it names. If outer rows
//! share these values, the subquery runs once for them.
//!
//! # Cost
//! A subquery that reads few rows is not worth a lookup: results are kept only if its first runs
//! have read many. If few outer rows share values, results are no longer looked up.

use nfold_plan::expr::{Expr, ExprKind};
use nfold_types::{SqlError, Value};
use rustc_hash::FxHashMap;

use crate::expr::eval::{EvalCx, Val};

/// The runs whose cost decides whether results are kept, and the rows that a run must read.
const TRIAL_RUNS: u64 = 16;
const ROWS_MIN: u64 = 16;
/// The lookups after which at least one in `HITS_PART` must have found a result.
const LOOKUPS_MIN: u64 = 1024;
const HITS_PART: u64 = 16;
/// A longer value is not kept.
const VALUE_BYTES_MAX: usize = 1 << 10;
/// The memory of a result besides its key and text, in bytes.
const RESULT_BYTES: usize = 64;

/// The results, as long as they pay.
#[derive(Default)]
pub(super) struct Results {
    values: FxHashMap<Box<[u8]>, Value>,
    bytes: usize,
    runs: u64,
    read: u64,
    lookups: u64,
    hits: u64,
}

impl Results {
    /// Starts a run of the block.
    pub fn clear(&mut self) {
        if self.runs != 0 {
            *self = Results::default();
        }
    }

    /// Whether results are looked up.
    pub fn pay(&self) -> bool {
        self.runs >= TRIAL_RUNS
            && self.read >= self.runs * ROWS_MIN
            && (self.lookups < LOOKUPS_MIN || self.hits * HITS_PART >= self.lookups)
    }

    /// Counts a run that has read `rows` rows.
    pub fn count(&mut self, rows: u64) {
        self.runs += 1;
        self.read += rows;
    }

    /// The result for `key`.
    pub fn get(&mut self, key: &[u8]) -> Option<Value> {
        self.lookups += 1;
        let found = self.values.get(key).cloned();
        self.hits += u64::from(found.is_some());
        if !self.pay() {
            self.values = FxHashMap::default();
        }
        found
    }

    /// Keeps a result, unless the results need more than `memory` bytes.
    pub fn push(&mut self, key: &[u8], value: Value, memory: usize) {
        let text = match &value {
            Value::Bytes(text) => text.len(),
            _ => 0,
        };
        let bytes = key.len() + text + RESULT_BYTES;
        if text <= VALUE_BYTES_MAX && self.bytes + bytes <= memory {
            self.bytes += bytes;
            self.values.insert(key.into(), value);
        }
    }
}

/// Appends the exact values of columns and constants. False if an expression is something else.
pub(super) fn push_values<'a>(
    cx: &EvalCx<'a>,
    list: &'a [Expr],
    key: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    for e in list {
        if !matches!(
            e.kind,
            ExprKind::Column(_) | ExprKind::Outer { .. } | ExprKind::Const(_) | ExprKind::Param(_)
        ) {
            return Ok(false);
        }
        push_value(&cx.val(e)?, key);
    }
    Ok(true)
}

fn push_value(value: &Val<'_>, key: &mut Vec<u8>) {
    let text;
    let (tag, bytes): (u8, &[u8]) = match value {
        Val::Null => (0, &[]),
        Val::Int(v) => (1, &v.to_le_bytes()),
        Val::UInt(v) => (2, &v.to_le_bytes()),
        Val::Float(v) => (3, &v.to_bits().to_le_bytes()),
        Val::Double(v) => (4, &v.to_bits().to_le_bytes()),
        Val::Bytes(v) => (5, v),
        other => {
            text = format!("{:?}", other.as_value_ref());
            (6, text.as_bytes())
        }
    };
    key.push(tag);
    key.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    key.extend_from_slice(bytes);
}
