//! The parts of documents that a statement needs, for reads that leave long documents where they
//! are.

use std::sync::Arc;

use nfold_engine::{ColumnPart, ValueBytes, ValuePart};
use nfold_json::{DocumentBytes, MemberTree, Path, ValueNeed};
use nfold_plan::query::DocumentPaths;
use nfold_types::{CollationId, SqlError};

use crate::expr::eval::EvalCx;

/// The values of the paths of [`DocumentPaths`]; `None`: NULL.
type PathTexts = Vec<Option<Box<[u8]>>>;

/// The parts of a table's JSON columns that a statement needs.
#[derive(Default)]
pub(crate) struct DocumentParts {
    /// The paths of the last execution, column by column.
    texts: Vec<PathTexts>,
}

#[derive(Debug)]
struct Members(MemberTree);

impl ValuePart for Members {
    fn append(&self, length: usize, bytes: &mut dyn ValueBytes, out: &mut Vec<u8>) -> bool {
        self.0.excerpt(length, &mut Stored(bytes), out).is_some()
    }
}

/// A document where the engine stores it.
struct Stored<'b>(&'b mut dyn ValueBytes);

impl DocumentBytes for Stored<'_> {
    #[inline(always)]
    fn word(&mut self, at: usize) -> Option<u64> {
        self.0.word(at)
    }

    fn append(&mut self, at: usize, length: usize, out: &mut Vec<u8>) -> bool {
        self.0.append(at, length, out)
    }
}

impl DocumentParts {
    /// Evaluates the paths. Returns the parts that they lead to, or `None` if all paths are those
    /// of the last execution.
    pub fn bind<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        documents: &'a [DocumentPaths],
    ) -> Result<Option<Vec<ColumnPart>>, SqlError> {
        let mut texts = Vec::with_capacity(documents.len());
        for document in documents {
            let mut paths = Vec::with_capacity(document.paths.len());
            for (e, _) in &document.paths {
                let text = cx.text(e, CollationId::UTF8MB4_BIN)?;
                paths.push(text.map(|text| Box::from(&*text)));
            }
            texts.push(paths);
        }
        if self.texts == texts {
            return Ok(None);
        }
        let parts = documents
            .iter()
            .zip(&texts)
            .filter_map(|(document, texts)| {
                let part: Arc<dyn ValuePart> = Arc::new(Members(members(document, texts)?));
                Some((document.column, part))
            });
        let parts = parts.collect();
        self.texts = texts;
        Ok(Some(parts))
    }
}

/// `None`: documents are needed as a whole, or a path is wrong, which its function reports.
fn members(document: &DocumentPaths, texts: &PathTexts) -> Option<MemberTree> {
    let mut paths = Vec::with_capacity(texts.len());
    for (text, (_, need)) in texts.iter().zip(&document.paths) {
        if let Some(text) = text {
            let path = Path::parse(std::str::from_utf8(text).ok()?).ok()?;
            paths.push((path, *need));
        }
    }
    let paths = paths.iter().map(|(path, need)| (path, *need));
    let rows = document.row_paths.iter();
    let paths = paths.chain(rows.map(|path| (path, ValueNeed::Whole)));
    match document.own {
        Some(need) => (paths.count() == 0).then(|| MemberTree::of_document(need)),
        None => MemberTree::of(paths),
    }
}
