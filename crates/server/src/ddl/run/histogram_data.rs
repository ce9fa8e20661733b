//! `UPDATE HISTOGRAM ... USING DATA`: a histogram from a JSON document in the form of
//! `information_schema.COLUMN_STATISTICS`. Source: MySQL manual, "Optimizer Statistics".

use std::cmp::Ordering;

use nfold_catalog::histogram::{STRING_CHARS, collation_of};
use nfold_catalog::{ColumnDef, Histogram, HistogramBucket, HistogramType};
use nfold_json::{Json, ParseError, Work, parse};
use nfold_types::compare::compare;
use nfold_types::convert::number::parse_decimal;
use nfold_types::convert::store::{StoreCx, StoreMode, store_value};
use nfold_types::temporal::parse::{parse_datetime, parse_time};
use nfold_types::{CollationId, NoCheckpoint, TypeKind, Value, Warnings, base64};

use super::histogram::BUCKETS_MAX;

/// The beginning of a string in a document: base64 of the bytes follows.
const STRING_PREFIX: &str = "base64:type254:";
/// The last cumulative share and the share of NULL make 1, but for this difference.
const SHARE_TOLERANCE: f64 = 1e-6;

/// The lines of the result that say why a document is no histogram.
type Refusal = Vec<String>;

/// A document with the column that it describes.
struct Reader<'a> {
    column: &'a ColumnDef,
    kind: HistogramType,
    mode: &'a StoreMode,
    collation: CollationId,
}

/// A bound of a bucket: its text in the histogram, and the value that it is compared by.
struct BucketBound {
    text: Box<[u8]>,
    value: Value,
}

/// Reads the histogram of a column from a document.
///
/// # Errors
/// The lines of the result.
pub(super) fn read(
    column: &ColumnDef,
    kind: HistogramType,
    document: &[u8],
    mode: &StoreMode,
) -> Result<Histogram, Refusal> {
    let document = match parse(document, &Work::new(&NoCheckpoint)) {
        Ok(document) => document,
        Err(ParseError::Syntax(what, at)) => {
            let line = format!(
                "Invalid JSON text in argument 1 to function UPDATE HISTOGRAM: \"{what}\" at \
                 position {at}."
            );
            return Err(vec![line, "JSON format error.".into()]);
        }
        Err(ParseError::Other(e)) => {
            return Err(vec![e.message.to_string(), "JSON format error.".into()]);
        }
    };
    let mut reader = Reader {
        column,
        kind,
        mode,
        collation: CollationId::BINARY,
    };
    reader.histogram(&document).map_err(|line| vec![line])
}

fn missing(path: &str) -> String {
    format!("Missing attribute at '{path}'.")
}

fn wrong_type(path: &str) -> String {
    format!("Wrong attribute type at '{path}'.")
}

/// The path of a member of the document, as MySQL writes it.
fn path_of(name: &str) -> String {
    match name.contains('-') {
        true => format!("$.\"{name}\""),
        false => format!("$.{name}"),
    }
}

fn member<'j>(members: &'j [(String, Json)], name: &str) -> Result<&'j Json, String> {
    let found = members.iter().find(|(own, _)| own == name);
    found
        .map(|(_, value)| value)
        .ok_or_else(|| missing(&path_of(name)))
}

fn text<'j>(members: &'j [(String, Json)], name: &str) -> Result<&'j str, String> {
    match member(members, name)? {
        Json::String(text) => Ok(text),
        _ => Err(wrong_type(&path_of(name))),
    }
}

fn integer(value: &Json) -> Option<i128> {
    match value {
        Json::Int(n) => Some((*n).into()),
        Json::UInt(n) => Some((*n).into()),
        _ => None,
    }
}

/// A number from 0 to 1 with a fraction. `what`: the name in the message about other numbers.
fn share(value: &Json, path: &str, what: &str) -> Result<f64, String> {
    match value {
        Json::Double(n) if (0.0..=1.0).contains(n) => Ok(*n),
        Json::Double(_) => Err(format!(
            "The {what} must be greater than or equal to 0 and less than or equal to 1 at '{path}'."
        )),
        _ => Err(wrong_type(path)),
    }
}

impl Reader<'_> {
    fn histogram(&mut self, document: &Json) -> Result<Histogram, String> {
        let Json::Object(members) = document else {
            return Err("JSON data is not an object".into());
        };
        let singleton = match text(members, "histogram-type")? {
            "singleton" => true,
            "equi-height" => false,
            _ => {
                let path = path_of("histogram-type");
                return Err(format!("Unsupported histogram type at '{path}'."));
            }
        };
        if text(members, "data-type")? != self.kind.name() {
            let path = path_of("data-type");
            return Err(format!(
                "Histogram data type does not match column data type at '{path}'."
            ));
        }
        let rate = member(members, "sampling-rate")?;
        let sampling_rate = share(rate, &path_of("sampling-rate"), "sampling rate")?;
        let buckets_specified = buckets_specified(members)?;
        let nulls = member(members, "null-values")?;
        let null_share = share(nulls, &path_of("null-values"), "frequency")?;
        let own = collation(members)?;
        // A string is compared by its column's collation, and so are the bounds of its histogram.
        self.collation = match self.kind {
            HistogramType::String => collation_of(self.kind, &self.column.ty),
            _ => CollationId::BINARY,
        };
        let Json::Bool(auto_update) = *member(members, "auto-update")? else {
            return Err(wrong_type(&path_of("auto-update")));
        };
        let Json::Array(list) = member(members, "buckets")? else {
            return Err(wrong_type(&path_of("buckets")));
        };
        let buckets = self.buckets(list, singleton)?;
        check_shares(&buckets, singleton, null_share)?;
        if buckets.len() > buckets_specified as usize {
            return Err(
                "The number of real buckets must be less than or equal to the number specified by \
                 attribute number-of-buckets-specified."
                    .into(),
            );
        }
        let collation = match self.kind {
            HistogramType::String => self.collation,
            _ => own,
        };
        Ok(Histogram {
            kind: self.kind,
            singleton,
            buckets,
            null_share,
            collation,
            buckets_specified,
            auto_update,
            sampling_rate,
            updated_us: 0,
        })
    }

    fn buckets(&self, list: &[Json], singleton: bool) -> Result<Vec<HistogramBucket>, String> {
        let mut buckets: Vec<HistogramBucket> = Vec::with_capacity(list.len());
        let mut last: Option<Value> = None;
        for (n, bucket) in list.iter().enumerate() {
            let path = format!("$.buckets[{n}]");
            let Json::Array(parts) = bucket else {
                return Err(wrong_type(&path));
            };
            let (bucket, upper) = match (singleton, parts.as_slice()) {
                (true, [value, share]) => self.single(value, share, &path, last.as_ref())?,
                (false, [lower, upper, share, distinct]) => {
                    let bounds = (lower, upper);
                    self.range(bounds, (share, distinct), &path, last.as_ref())?
                }
                (true, _) => return Err(format!("Two elements required for bucket at '{path}'.")),
                (false, _) => {
                    return Err(format!("Four elements required for bucket at '{path}'."));
                }
            };
            let before = buckets.last().map(|b| b.cumulative);
            if before.is_some_and(|before| bucket.cumulative <= before) {
                let place = if singleton { 1 } else { 2 };
                return Err(format!(
                    "The cumulative frequency of bucket at '{path}[{place}]' must be greater than \
                     that of previous bucket."
                ));
            }
            buckets.push(bucket);
            last = Some(upper);
        }
        Ok(buckets)
    }

    /// A bucket `[value, cumulative share]`.
    fn single(
        &self,
        value: &Json,
        rows: &Json,
        path: &str,
        last: Option<&Value>,
    ) -> Result<(HistogramBucket, Value), String> {
        let bound = self.bound(value, &format!("{path}[0]"))?;
        let cumulative = share(rows, &format!("{path}[1]"), "frequency")?;
        if last.is_some_and(|last| self.order(last, &bound.value) != Ordering::Less) {
            return Err(format!(
                "The value at '{path}[0]' must be greater than that of previous bucket."
            ));
        }
        let bucket = HistogramBucket {
            lower: bound.text.clone(),
            upper: bound.text,
            cumulative,
            distinct: 1,
        };
        Ok((bucket, bound.value))
    }

    /// A bucket `[lower, upper, cumulative share, distinct values]`.
    fn range(
        &self,
        (lower, upper): (&Json, &Json),
        (rows, distinct): (&Json, &Json),
        path: &str,
        last: Option<&Value>,
    ) -> Result<(HistogramBucket, Value), String> {
        let lower = self.bound(lower, &format!("{path}[0]"))?;
        let upper = self.bound(upper, &format!("{path}[1]"))?;
        let cumulative = share(rows, &format!("{path}[2]"), "frequency")?;
        let place = format!("{path}[3]");
        let distinct = integer(distinct).ok_or_else(|| wrong_type(&place))?;
        let distinct = match u64::try_from(distinct) {
            Ok(n) if n > 0 => n,
            _ => {
                return Err(format!(
                    "The number of distinct values must be a positive integer at '{place}'."
                ));
            }
        };
        if self.order(&lower.value, &upper.value) == Ordering::Greater {
            return Err(format!(
                "The lower inclusive value of bucket at '{path}[0]' must be less than or equal to \
                 upper inclusive value."
            ));
        }
        if last.is_some_and(|last| self.order(last, &lower.value) != Ordering::Less) {
            return Err(format!(
                "The lower inclusive value of bucket at '{path}[0]' must be greater than the upper \
                 inclusive value of previous bucket."
            ));
        }
        let bucket = HistogramBucket {
            lower: lower.text,
            upper: upper.text,
            cumulative,
            distinct,
        };
        Ok((bucket, upper.value))
    }

    fn order(&self, a: &Value, b: &Value) -> Ordering {
        compare(a.as_ref(), b.as_ref(), self.collation.known())
    }

    /// A bound of a bucket. It must be a value of the column.
    fn bound(&self, value: &Json, path: &str) -> Result<BucketBound, String> {
        use HistogramType as H;
        let wrong = || wrong_type(path);
        let malformed = || format!("Value format error at '{path}'.");
        let outside = || format!("Out of range value for column at '{path}'.");
        let of_number = |n: i128| {
            let value = i64::try_from(n).map(Value::Int);
            value
                .or_else(|_| u64::try_from(n).map(Value::UInt))
                .map_err(|_| outside())
        };
        let (value, text) = match (self.kind, value) {
            (H::Int | H::UInt | H::Enum | H::Set, number) => {
                let n = integer(number).ok_or_else(wrong)?;
                (of_number(n)?, n.to_string().into_bytes())
            }
            (H::Double, Json::Double(n)) => (Value::Double(*n), n.to_string().into_bytes()),
            (H::Decimal, number) => {
                let text = match number {
                    Json::Double(n) => n.to_string(),
                    number => integer(number).ok_or_else(wrong)?.to_string(),
                };
                let value = Value::Decimal(parse_decimal(text.as_bytes()).value);
                (value, text.into_bytes())
            }
            (H::String, Json::String(text)) => {
                let symbols = text.strip_prefix(STRING_PREFIX).ok_or_else(malformed)?;
                let bytes = base64::decode(symbols.as_bytes(), &NoCheckpoint);
                let bytes = bytes.ok().flatten().ok_or_else(malformed)?;
                let prefix = self.collation.known().char_prefix(&bytes, STRING_CHARS);
                if prefix.len() < bytes.len() {
                    return Err(outside());
                }
                (Value::Bytes(bytes.clone()), bytes)
            }
            (H::Date, Json::String(text)) => {
                let found = parse_datetime(text.as_bytes(), self.mode.dates);
                let date = found.map_err(|_| malformed())?.value.date();
                (Value::Date(date), date.to_string().into_bytes())
            }
            (H::DateTime, Json::String(text)) => {
                let found = parse_datetime(text.as_bytes(), self.mode.dates);
                let at = found.map_err(|_| malformed())?.value.with_fsp(6);
                (Value::DateTime(at), at.to_string().into_bytes())
            }
            (H::Time, Json::String(text)) => {
                let found = parse_time(text.as_bytes());
                let at = found.map_err(|_| malformed())?.value.with_fsp(6);
                (Value::Time(at), at.to_string().into_bytes())
            }
            _ => return Err(wrong()),
        };
        if !self.fits(&value) {
            return Err(outside());
        }
        Ok(BucketBound {
            text: text.into(),
            value,
        })
    }

    /// Whether the column can hold a value.
    fn fits(&self, value: &Value) -> bool {
        let ty = &self.column.ty;
        let number = match value {
            Value::Int(n) => u64::try_from(*n).ok(),
            Value::UInt(n) => Some(*n),
            _ => None,
        };
        match &ty.kind {
            // 0 is the number of a value that is no member.
            TypeKind::Enum(members) => number.is_some_and(|n| n <= members.len() as u64),
            TypeKind::Set(members) => {
                let all = 1u64.checked_shl(members.len() as u32).unwrap_or(0);
                number.is_some_and(|n| n <= all.wrapping_sub(1))
            }
            _ => {
                let mut cx = StoreCx {
                    mode: self.mode,
                    column: &self.column.name,
                    row: 1,
                    from: ty.collation,
                    warnings: &mut Warnings::default(),
                };
                store_value(value.as_ref(), ty.collation, ty, &mut cx).is_ok()
            }
        }
    }
}

fn buckets_specified(members: &[(String, Json)]) -> Result<u32, String> {
    let name = "number-of-buckets-specified";
    let path = path_of(name);
    let n = integer(member(members, name)?).ok_or_else(|| wrong_type(&path))?;
    match u32::try_from(n) {
        Ok(n) if (1..=BUCKETS_MAX).contains(&n.into()) => Ok(n),
        _ => Err(format!(
            "The value of attribute {name} must be an integer in the range from 1 to {BUCKETS_MAX} \
             at '{path}'."
        )),
    }
}

fn collation(members: &[(String, Json)]) -> Result<CollationId, String> {
    let path = path_of("collation-id");
    let n = integer(member(members, "collation-id")?).ok_or_else(|| wrong_type(&path))?;
    let known = u16::try_from(n).ok().map(CollationId);
    let known = known.filter(|id| id.get().is_some());
    known.ok_or_else(|| format!("The charset ID does not exist at '{path}'."))
}

/// All rows have a value of a bucket, or NULL.
fn check_shares(
    buckets: &[HistogramBucket],
    singleton: bool,
    null_share: f64,
) -> Result<(), String> {
    match buckets.last() {
        Some(last) if (last.cumulative + null_share - 1.0).abs() > SHARE_TOLERANCE => Err(
            "The sum of the null values fraction and the cumulative frequency of the last bucket \
             should be 1.'"
                .into(),
        ),
        Some(_) => Ok(()),
        None if !singleton => Err("Equi-height histogram must have at least one bucket".into()),
        None if null_share != 0.0 && null_share != 1.0 => {
            Err("The null values fraction should be 0 or 1.".into())
        }
        None => Ok(()),
    }
}
