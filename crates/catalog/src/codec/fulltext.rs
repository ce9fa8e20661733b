//! The section of the options of full-text indexes.

use super::{BadObject, Reader, SECTION_FULLTEXT, put_list};
use crate::schema::{FulltextOptions, IndexKind, TableDef};

/// The options until the section is read.
pub(super) const UNREAD: FulltextOptions = FulltextOptions {
    ngram_chars: 0,
    min_chars: 0,
    max_chars: 0,
    stopwords: false,
};

/// Adds the section, if the table has a full-text index.
pub(super) fn put_section(table: &TableDef, sections: &mut Vec<(u8, Vec<u8>)>) {
    let indexes = table.indexes.iter().enumerate();
    let options: Vec<(usize, FulltextOptions)> = indexes
        .filter_map(|(n, index)| Some((n, index.fulltext()?)))
        .collect();
    if options.is_empty() {
        return;
    }
    let mut bytes = Vec::new();
    put_list(&mut bytes, &options, |out, (n, options)| {
        out.extend_from_slice(&(*n as u16).to_le_bytes());
        out.extend_from_slice(&[
            options.ngram_chars,
            options.min_chars,
            options.max_chars,
            options.stopwords.into(),
        ]);
    });
    sections.push((SECTION_FULLTEXT, bytes));
}

/// Reads the section into the table.
pub(super) fn get_section(r: &mut Reader<'_>, table: &mut TableDef) -> Result<(), BadObject> {
    r.list("full-text options", |r| {
        let n = usize::from(r.u16("full-text index")?);
        let [ngram_chars, min_chars, max_chars] = r.array("full-text sizes")?;
        let options = FulltextOptions {
            ngram_chars,
            min_chars,
            max_chars,
            stopwords: r.bool("full-text stop words")?,
        };
        let index = table.indexes.get_mut(n);
        match index.filter(|index| index.fulltext().is_some()) {
            Some(index) => index.kind = IndexKind::Fulltext(options),
            None => return Err(BadObject("full-text index")),
        }
        Ok(())
    })?;
    Ok(())
}
