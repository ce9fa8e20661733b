//! The section of the columns' histograms.

use std::sync::Arc;

use nfold_types::collation::CollationId;

use super::{BadObject, Reader, SECTION_HISTOGRAMS, put_bytes, put_list};
use crate::histogram::{Histogram, HistogramBucket, HistogramType};
use crate::schema::TableDef;

const SINGLETON: u8 = 1;
const AUTO_UPDATE: u8 = 2;

/// Appends the section, if a column has a histogram.
pub(super) fn put_section(table: &TableDef, sections: &mut Vec<(u8, Vec<u8>)>) {
    let columns = table.columns.iter().enumerate();
    let made: Vec<(u16, &Histogram)> = columns
        .filter_map(|(n, c)| Some((n as u16, c.histogram.as_deref()?)))
        .collect();
    if made.is_empty() {
        return;
    }
    let mut bytes = Vec::new();
    put_list(&mut bytes, &made, |out, (column, histogram)| {
        out.extend_from_slice(&column.to_le_bytes());
        put_histogram(out, histogram);
    });
    sections.push((SECTION_HISTOGRAMS, bytes));
}

/// Appends a histogram.
pub(super) fn put_histogram(out: &mut Vec<u8>, h: &Histogram) {
    let kind = HistogramType::ALL.iter().position(|kind| *kind == h.kind);
    out.push(kind.unwrap_or_default() as u8);
    let singleton = if h.singleton { SINGLETON } else { 0 };
    out.push(singleton | if h.auto_update { AUTO_UPDATE } else { 0 });
    out.extend_from_slice(&h.null_share.to_bits().to_le_bytes());
    out.extend_from_slice(&h.collation.0.to_le_bytes());
    out.extend_from_slice(&h.buckets_specified.to_le_bytes());
    out.extend_from_slice(&h.sampling_rate.to_bits().to_le_bytes());
    out.extend_from_slice(&h.updated_us.to_le_bytes());
    put_list(out, &h.buckets, |out, bucket| {
        put_bytes(out, &bucket.lower);
        put_bytes(out, &bucket.upper);
        out.extend_from_slice(&bucket.cumulative.to_bits().to_le_bytes());
        out.extend_from_slice(&bucket.distinct.to_le_bytes());
    });
}

/// Reads the section into the table.
pub(super) fn get_section(section: &mut Reader<'_>, table: &mut TableDef) -> Result<(), BadObject> {
    section.list("histograms", |r| {
        let at = usize::from(r.u16("histogram's column")?);
        let histogram = get_histogram(r)?;
        let column = table.columns.get_mut(at);
        let column = column.ok_or(BadObject("histogram's column"))?;
        column.histogram = Some(Arc::new(histogram));
        Ok(())
    })?;
    Ok(())
}

/// Reads a histogram.
pub(super) fn get_histogram(r: &mut Reader<'_>) -> Result<Histogram, BadObject> {
    let kind = usize::from(r.u8("histogram's type")?);
    let kind = HistogramType::ALL.get(kind);
    let kind = *kind.ok_or(BadObject("histogram's type"))?;
    let flags = r.u8("histogram's flags")?;
    Ok(Histogram {
        kind,
        singleton: flags & SINGLETON != 0,
        auto_update: flags & AUTO_UPDATE != 0,
        null_share: f64::from_bits(r.u64("null share")?),
        collation: CollationId(r.u16("collation")?),
        buckets_specified: r.u32("buckets specified")?,
        sampling_rate: f64::from_bits(r.u64("sampling rate")?),
        updated_us: r.u64("update time")?,
        buckets: r.list("buckets", |r| {
            Ok(HistogramBucket {
                lower: r.bytes("lower bound")?.into(),
                upper: r.bytes("upper bound")?.into(),
                cumulative: f64::from_bits(r.u64("cumulative share")?),
                distinct: r.u64("distinct values")?,
            })
        })?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Stored, VERSION_SECTIONS, tests};
    use super::*;

    #[test]
    fn tables_with_histograms_round_trip() {
        let mut table = tests::table();
        let bucket = |value: &str, cumulative| HistogramBucket {
            lower: value.as_bytes().into(),
            upper: value.as_bytes().into(),
            cumulative,
            distinct: 1,
        };
        table.columns[1].histogram = Some(Arc::new(Histogram {
            kind: HistogramType::String,
            singleton: true,
            buckets: vec![bucket("a", 0.5), bucket("b", 0.75)],
            null_share: 0.25,
            collation: CollationId(255),
            buckets_specified: 100,
            auto_update: true,
            sampling_rate: 0.5,
            updated_us: 7,
        }));
        let mut bytes = Vec::new();
        table.encode(&mut bytes);
        assert_eq!(bytes[0], VERSION_SECTIONS);
        assert_eq!(TableDef::decode(&bytes), Ok(table));
        for cut in 0..bytes.len() {
            assert!(TableDef::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }
}
