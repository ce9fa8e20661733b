//! `information_schema.COLUMN_STATISTICS`: a JSON document for each histogram.

use nfold_catalog::{Histogram, HistogramBucket, HistogramType};
use nfold_json::{FieldType, Json, Opaque, Work};
use nfold_types::convert::number::{parse_decimal, parse_double, parse_integer};
use nfold_types::{DateTime, NoCheckpoint, SqlError, Timestamp, Value};

use super::rows::{Cx, Put};

pub(super) fn column_statistics(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in cx.tables() {
        if def.columns.iter().all(|column| column.histogram.is_none()) {
            continue;
        }
        let stats = cx
            .server
            .engine
            .table(def.id)
            .map(|t| t.stats())
            .unwrap_or_default();
        for (n, column) in def.columns.iter().enumerate() {
            let Some(histogram) = stats.user_histogram(def, n) else {
                continue;
            };
            let document = document(histogram);
            let bytes = nfold_json::binary::encode(&document, &Work::new(&NoCheckpoint))?;
            put(vec![
                (&*def.schema).into(),
                (&*def.name).into(),
                (&*column.name).into(),
                Value::Bytes(bytes),
            ])?;
        }
    }
    Ok(())
}

fn document(h: &Histogram) -> Json {
    let bucket = |b: &HistogramBucket| {
        Json::Array(match h.singleton {
            true => vec![value(h.kind, &b.upper), Json::Double(b.cumulative)],
            false => vec![
                value(h.kind, &b.lower),
                value(h.kind, &b.upper),
                Json::Double(b.cumulative),
                Json::UInt(b.distinct),
            ],
        })
    };
    let kind = match h.singleton {
        true => "singleton",
        false => "equi-height",
    };
    let members = [
        (
            "buckets",
            Json::Array(h.buckets.iter().map(bucket).collect()),
        ),
        ("data-type", Json::String(h.kind.name().into())),
        ("auto-update", Json::Bool(h.auto_update)),
        ("null-values", Json::Double(h.null_share)),
        ("collation-id", Json::UInt(h.collation.0.into())),
        ("last-updated", updated(h.updated_us)),
        ("sampling-rate", Json::Double(h.sampling_rate)),
        ("histogram-type", Json::String(kind.into())),
        (
            "number-of-buckets-specified",
            Json::UInt(h.buckets_specified.into()),
        ),
    ];
    let members = members.map(|(name, value)| (name.to_string(), value));
    Json::object(members.into())
}

fn updated(us: u64) -> Json {
    let at = Timestamp::from_micros(i64::try_from(us).unwrap_or(i64::MAX), 6);
    let at: Option<DateTime> = nfold_types::temporal::TimeZone::UTC.to_local(at);
    at.map_or(Json::Null, |at| Json::Opaque(Opaque::datetime(at)))
}

/// A bound of a bucket, from its text form.
fn value(kind: HistogramType, text: &[u8]) -> Json {
    let chars = || String::from_utf8_lossy(text).into_owned();
    match kind {
        HistogramType::Int | HistogramType::UInt | HistogramType::Enum | HistogramType::Set => {
            let n = parse_integer(text).value;
            i64::try_from(n).map_or(Json::UInt(n as u64), Json::Int)
        }
        HistogramType::Double => Json::Double(parse_double(text).value),
        HistogramType::Decimal => Json::Opaque(Opaque::decimal(&parse_decimal(text).value)),
        HistogramType::String => Json::Opaque(Opaque {
            field_type: FieldType::STRING,
            bytes: text.to_vec(),
        }),
        HistogramType::Date | HistogramType::Time | HistogramType::DateTime => {
            Json::String(chars())
        }
    }
}
