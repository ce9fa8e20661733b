//! Statistics by digest. Times are in picoseconds, as in MySQL.
//!
//! The histogram has 128 buckets, four for each power of two of nanoseconds; MySQL has 450.
//! `DIGEST` is the SHA-256 of the digest's text; MySQL hashes the tokens.

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};
use nfold_catalog::Privileges;
use nfold_exec::SessionEnv;
use nfold_observe::digests::{DigestRow, LATENCY_BUCKETS, latency_bounds};
use nfold_types::{SqlError, Timestamp, Value};

use super::rows::{Cx, Put};

const PS_PER_NS: u64 = 1000;

fn picoseconds(ns: u64) -> Value {
    Value::UInt(ns.saturating_mul(PS_PER_NS))
}

/// Microseconds since 1970 as a date and time in the session's time zone.
fn time(cx: &Cx<'_>, us: u64) -> Value {
    let at = Timestamp::from_micros(us as i64, 6);
    let local = cx.env.time_zone().to_local(at);
    local.map_or(Value::Null, Value::DateTime)
}

/// SCHEMA_NAME and DIGEST.
fn identity(row: &DigestRow) -> [Value; 2] {
    let Some(name) = &row.name else {
        return [Value::Null, Value::Null];
    };
    let mut hex = String::with_capacity(64);
    for byte in digest(&SHA256, name.text.as_bytes()).as_ref() {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    [name.schema.as_deref().into(), hex.into()]
}

/// The digests that the account may see: all with PROCESS, otherwise those of databases that it may
/// use.
fn visible(cx: &Cx<'_>) -> Vec<DigestRow> {
    let all = cx.has_global(Privileges::PROCESS);
    let mut rows = cx.server.digests.rows();
    rows.retain(|r| {
        let schema = r.name.as_ref().and_then(|n| n.schema.as_deref());
        all || schema.is_some_and(|s| cx.sees_tables(s) && !super::is_system_schema(s))
    });
    rows
}

pub(super) fn summary(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    visible(cx).iter().try_for_each(|r| {
        let name = r.name.as_ref();
        let zero = || Value::UInt(0);
        let mut row = identity(r).to_vec();
        row.extend([
            name.map(|n| &*n.text).into(),
            Value::UInt(r.count),
            picoseconds(r.latency_ns),
            picoseconds(r.min_ns),
            picoseconds(r.latency_ns / r.count.max(1)),
            picoseconds(r.max_ns),
            zero(),
            Value::UInt(r.errors),
            Value::UInt(r.warnings),
            Value::UInt(r.rows_affected),
            Value::UInt(r.rows_sent),
            Value::UInt(r.rows_examined),
            zero(),
            zero(),
            Value::UInt(r.full_joins),
            Value::UInt(r.range_joins),
            Value::UInt(r.ranges),
            zero(),
            Value::UInt(r.scans),
        ]);
        // Sorts are not counted.
        row.extend([zero(), zero(), zero(), zero()]);
        row.extend([Value::UInt(r.no_index), zero()]);
        // CPU time, memory, and executions on a secondary engine.
        row.extend([zero(), zero(), zero(), zero()]);
        row.extend([
            time(cx, name.map_or(r.last_us, |n| n.first_us)),
            time(cx, r.last_us),
            picoseconds(r.quantile_ns(0.95)),
            picoseconds(r.quantile_ns(0.99)),
            picoseconds(r.quantile_ns(0.999)),
            name.map(|n| &*n.sample).into(),
            time(cx, name.map_or(r.last_us, |n| n.first_us)),
            zero(),
        ]);
        put(row)
    })
}

pub(super) fn histogram(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for r in visible(cx) {
        let [schema, hash] = identity(&r);
        let total: u64 = r.buckets.iter().sum();
        let mut seen = 0;
        for bucket in 0..LATENCY_BUCKETS {
            let (low, high) = latency_bounds(bucket);
            seen += r.buckets[bucket];
            put(vec![
                schema.clone(),
                hash.clone(),
                Value::UInt(bucket as u64),
                picoseconds(low),
                picoseconds(high),
                Value::UInt(r.buckets[bucket]),
                Value::UInt(seen),
                Value::Double(seen as f64 / total.max(1) as f64),
            ])?;
        }
    }
    Ok(())
}
