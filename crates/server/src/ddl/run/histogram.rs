//! ANALYZE TABLE ... UPDATE HISTOGRAM and DROP HISTOGRAM.
//!
//! # Picture
//! ```text
//!   values with their counts, by a query ─▶ buckets ─▶ the table's definition, under its exclusive lock
//! ```

use std::cell::RefCell;
use std::sync::Arc;

use nfold_catalog::histogram::{STRING_CHARS, ValueCount, buckets_of, collation_of};
use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, Histogram, HistogramType, IndexDef, TableDef};
use nfold_exec::{Checkpoints, ExecCx, Executable, RowSink, WireFormat, execute};
use nfold_plan::query::ColumnMeta;
use nfold_plan::{PlanCx, plan_statement};
use nfold_sql::ast::{HistogramChange, HistogramUpdate, ObjectName};
use nfold_sql::lexer::LexMode;
use nfold_sql::parser::parse;
use nfold_types::convert::store::StoreMode;
use nfold_types::{ErrorCode, SqlError, TypeKind};

use super::histogram_data;
use super::maintenance::Lines;
use crate::session::Session;
use crate::session::plan_info::{Info, plan_cx};
use crate::unix_time::unix_time;

const BUCKETS: u64 = 100;
pub(super) const BUCKETS_MAX: u64 = 1024;

/// The memory of the values that a histogram is made of, in bytes: the default of
/// `histogram_generation_max_mem_size`. A larger table is sampled.
const VALUES_BYTES_MAX: f64 = 20e6;
/// The memory of one value, in bytes: a number, and a string.
const NUMBER_BYTES: f64 = 32.0;
const STRING_BYTES: f64 = 200.0;

/// Checks the statement itself.
///
/// # Errors
/// 1060 if a column is named twice; 1690 if the number of buckets is out of range.
pub(super) fn check(change: &HistogramChange) -> Result<(), SqlError> {
    for (n, column) in change.columns.iter().enumerate() {
        let mut before = change.columns[..n].iter();
        if before.any(|c| eq_name(c.as_str(), column.as_str())) {
            let code = ErrorCode::ER_DUP_FIELDNAME;
            return Err(SqlError::new(code, &[&column.as_str()]));
        }
    }
    let Some(update) = &change.update else {
        return Ok(());
    };
    match buckets(update) {
        1..=BUCKETS_MAX => Ok(()),
        _ => Err(SqlError::new(
            ErrorCode::ER_DATA_OUT_OF_RANGE,
            &[&"Number of buckets", &"ANALYZE TABLE"],
        )),
    }
}

fn buckets(update: &HistogramUpdate) -> u64 {
    update.buckets.unwrap_or(BUCKETS)
}

/// How the values of a column are read: their type, and the expression over the column. `None`: a
/// histogram cannot have them.
fn values_of(column: &ColumnDef) -> Option<(HistogramType, String)> {
    use HistogramType as H;
    let name = quoted(&column.name);
    let kind = H::of(&column.ty)?;
    let value = match kind {
        H::Enum | H::Set => format!("{name} + 0"),
        H::Int if matches!(column.ty.kind, TypeKind::Bit(_) | TypeKind::Year) => {
            format!("{name} + 0")
        }
        H::Double => format!("{name} + 0e0"),
        H::Time => format!("CAST({name} AS TIME(6))"),
        H::DateTime => format!("CAST({name} AS DATETIME(6))"),
        H::String => format!("LEFT({name}, {STRING_CHARS})"),
        H::Int | H::UInt | H::Decimal | H::Date => name,
    };
    Some((kind, value))
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The query of a column's values, in ascending order, each with the number of rows.
fn query_of(def: &TableDef, kind: HistogramType, value: &str, rate: f64) -> String {
    let shown = match kind {
        HistogramType::String => "HEX(v)",
        _ => "v",
    };
    let sample = match rate < 1.0 {
        true => format!(" WHERE RAND(1) < {rate:.9}"),
        false => String::new(),
    };
    format!(
        "SELECT {shown}, n FROM (SELECT {value} AS v, COUNT(*) AS n FROM {}.{}{sample} \
         GROUP BY {value}) AS q ORDER BY v",
        quoted(&def.schema),
        quoted(&def.name),
    )
}

/// Whether the only part of a unique index is the column.
fn is_unique(def: &TableDef, column: usize) -> bool {
    let only = |i: &IndexDef| matches!(i.parts.as_slice(), [part] if part.column == column);
    def.indexes.iter().any(|i| i.is_unique() && only(i))
}

/// Collects values with their counts.
#[derive(Default)]
struct Counts {
    row: Vec<u8>,
    values: Vec<ValueCount>,
    /// The number of rows with NULL.
    nulls: u64,
}

impl RowSink for Counts {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<(), SqlError> {
        Ok(())
    }

    fn format(&self) -> WireFormat {
        WireFormat::Text
    }

    fn row_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.row
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        let malformed = || SqlError::not_supported("a value in a histogram");
        let null = self.row.first() == Some(&0xfb);
        let mut reader = nfold_protocol::lenenc::Reader::new(&self.row[usize::from(null)..]);
        let value: Box<[u8]> = match null {
            true => Box::default(),
            false => reader
                .lenenc_bytes("value")
                .map_err(|_| malformed())?
                .into(),
        };
        let count = reader.lenenc_bytes("count").map_err(|_| malformed())?;
        let count = std::str::from_utf8(count).ok().and_then(|n| n.parse().ok());
        let count = count.ok_or_else(malformed)?;
        match null {
            true => self.nulls += count,
            false => self.values.push((value, count)),
        }
        self.row.clear();
        Ok(())
    }
}

fn bytes_of_hex(hex: &[u8]) -> Box<[u8]> {
    let digit = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
    hex.chunks(2)
        .map(|pair| digit(pair[0]) << 4 | pair.get(1).map_or(0, |b| digit(*b)))
        .collect()
}

impl Session {
    /// Runs the statement for one table.
    pub(super) fn change_histograms(
        &mut self,
        cx: &mut dyn ExecCx,
        schema: &str,
        name: &ObjectName,
        change: &HistogramChange,
    ) -> Result<Lines, SqlError> {
        let table = name.name.as_str();
        if self.temporary.find(schema, table).is_some() {
            let text = "Cannot create histogram statistics for a temporary table.";
            return Ok(vec![("Error", text.into())]);
        }
        self.table_locks.allow(schema, table, Some(table), true)?;
        self.lock_tables_shared(cx, &mut |s| {
            s.table(schema, table).iter().map(|d| d.id).collect()
        })?;
        let def = self.table_def(schema, table)?;
        if def.view().is_some() {
            let text = "Cannot create histogram statistics for a view.";
            return Ok(vec![("Error", text.into())]);
        }
        if change.columns.len() > 1 && change.update.as_ref().is_some_and(|u| u.data.is_some()) {
            let text = "Only one column can be specified while modifying histogram statistics with \
                        JSON data.";
            return Ok(vec![("Error", text.into())]);
        }
        let mut columns: Vec<&str> = change.columns.iter().map(|c| c.as_str()).collect();
        columns.sort_unstable();
        let mut changed = Vec::new();
        let mut lines = Lines::new();
        for name in columns {
            let at = def.columns.iter().position(|c| eq_name(&c.name, name));
            let Some(at) = at else {
                lines.push(("Error", format!("The column '{name}' does not exist.")));
                continue;
            };
            let made = match &change.update {
                Some(update) => self.new_histogram(cx, &def, at, update).map(Some),
                None if def.columns[at].histogram.is_some() => Ok(None),
                None => Err(vec![format!(
                    "No histogram statistics found for column '{name}'."
                )]),
            };
            match made {
                Ok(histogram) => {
                    let line = match &histogram {
                        Some(_) => {
                            let name = &def.columns[at].name;
                            format!("Histogram statistics created for column '{name}'.")
                        }
                        None => format!("Histogram statistics removed for column '{name}'."),
                    };
                    lines.push(("status", line));
                    changed.push((at, histogram));
                }
                Err(why) => lines.extend(why.into_iter().map(|line| ("Error", line))),
            }
        }
        self.put_histograms(cx, &def, changed)?;
        Ok(lines)
    }

    /// Makes the histograms of `AUTO UPDATE` anew.
    pub(super) fn refresh_histograms(
        &mut self,
        cx: &mut dyn ExecCx,
        def: &Arc<TableDef>,
    ) -> Result<(), SqlError> {
        let mut changed = Vec::new();
        for (at, column) in def.columns.iter().enumerate() {
            let Some(old) = column.histogram.as_ref().filter(|h| h.auto_update) else {
                continue;
            };
            let update = HistogramUpdate {
                buckets: Some(old.buckets_specified.into()),
                auto_update: true,
                data: None,
            };
            if let Ok(histogram) = self.new_histogram(cx, def, at, &update) {
                changed.push((at, Some(histogram)));
            }
        }
        self.put_histograms(cx, def, changed)
    }

    /// The histogram of a column. An error is the lines of the result.
    fn new_histogram(
        &mut self,
        cx: &mut dyn ExecCx,
        def: &Arc<TableDef>,
        at: usize,
        update: &HistogramUpdate,
    ) -> Result<Histogram, Vec<String>> {
        let column = &def.columns[at];
        let name = &column.name;
        if is_unique(def, at) {
            let why = "is covered by a single-part unique index.";
            return Err(vec![format!("The column '{name}' {why}")]);
        }
        let Some((kind, value)) = values_of(column) else {
            let line = format!("The column '{name}' has an unsupported data type.");
            return Err(vec![line]);
        };
        if let Some(document) = &update.data {
            return self.histogram_of_data(def, column, kind, document);
        }
        let bytes = match kind {
            HistogramType::String => STRING_BYTES,
            _ => NUMBER_BYTES,
        };
        let rows = self
            .server
            .engine
            .table(def.id)
            .map_or(0, |t| t.stats().rows);
        let rate = (VALUES_BYTES_MAX / (rows.max(1) as f64 * bytes)).min(1.0);
        let text = query_of(def, kind, &value, rate);
        let found = self.value_counts(cx, def, &text);
        let mut found = found.map_err(|e| vec![e.message.to_string()])?;
        if kind == HistogramType::String {
            let values = found.values.iter_mut();
            values.for_each(|(value, _)| *value = bytes_of_hex(value));
        }
        let total = found.nulls + found.values.iter().map(|(_, count)| count).sum::<u64>();
        let most = buckets(update);
        let (buckets, singleton) = buckets_of(&found.values, total, most as usize);
        Ok(Histogram {
            kind,
            singleton,
            buckets,
            null_share: match total {
                0 => 0.0,
                _ => found.nulls as f64 / total as f64,
            },
            collation: collation_of(kind, &column.ty),
            buckets_specified: most as u32,
            auto_update: update.auto_update,
            sampling_rate: rate,
            updated_us: unix_time().as_micros() as u64,
        })
    }

    /// The histogram that a document describes. An error is the lines of the result.
    fn histogram_of_data(
        &self,
        def: &TableDef,
        column: &ColumnDef,
        kind: HistogramType,
        document: &[u8],
    ) -> Result<Histogram, Vec<String>> {
        let mode = StoreMode {
            strict: true,
            ignore: false,
            ..self.store_mode()
        };
        let histogram = histogram_data::read(column, kind, document, &mode);
        let histogram = histogram.map_err(|mut lines| {
            let (name, schema, table) = (&column.name, &def.schema, &def.name);
            let line = format!(
                "Unable to build histogram statistics for column '{name}' in table \
                 '{schema}'.'{table}'"
            );
            lines.insert(lines.len().saturating_sub(1), line);
            lines
        })?;
        Ok(Histogram {
            updated_us: unix_time().as_micros() as u64,
            ..histogram
        })
    }

    /// Runs the query of a column's values.
    fn value_counts(
        &mut self,
        cx: &mut dyn ExecCx,
        def: &Arc<TableDef>,
        text: &str,
    ) -> Result<Counts, SqlError> {
        let text = text.as_bytes();
        let statement = parse(text, LexMode::default())?;
        let mut schema = (*self.schema).clone();
        schema.put_table(def.clone());
        let plan = {
            let info = Info {
                env: &self.env,
                engine: &self.server.engine,
                checkpoint: &Checkpoints::new(cx),
            };
            let cx = PlanCx {
                select_limit: None,
                ..plan_cx(&info, &schema, text, &[])
            };
            plan_statement(&cx, &statement)?
        };
        let mut operators = Executable::new(Arc::new(plan));
        let mut out = Counts::default();
        let warnings = RefCell::default();
        self.begin_work(true);
        let done = execute(
            &mut operators,
            &self.server.engine,
            &self.free_params,
            &mut self.engine,
            cx,
            &self.env,
            &warnings,
            &mut out,
        );
        done.map(|_| out)
    }

    /// Puts histograms into the table's definition, or removes them.
    fn put_histograms(
        &mut self,
        cx: &mut dyn ExecCx,
        def: &Arc<TableDef>,
        changed: Vec<(usize, Option<Histogram>)>,
    ) -> Result<(), SqlError> {
        // Ends the read, and gives up the shared locks.
        self.commit(cx)?;
        if changed.is_empty() {
            return Ok(());
        }
        let (_claim, now) = self.claim_table(cx, &def.schema, &def.name, &[])?;
        let same = |(at, _): &(usize, Option<Histogram>)| {
            let (old, new) = (&def.columns[*at], now.columns.get(*at));
            new.is_some_and(|new| new.name == old.name && new.ty == old.ty)
        };
        if now.id != def.id || !changed.iter().all(same) {
            return Err(SqlError::new(ErrorCode::ER_TABLE_DEF_CHANGED, &[]));
        }
        let mut new = TableDef::clone(&now);
        for (at, histogram) in changed {
            new.columns[at].histogram = histogram.map(Arc::new);
        }
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.alter_definition(new))
    }
}
