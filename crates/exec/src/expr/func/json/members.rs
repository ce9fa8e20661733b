//! The parts of documents that a statement needs, for reads that leave long documents where they
//! are.

use std::sync::Arc;

use nfold_engine::{ColumnPart, ValueBytes, ValuePart};
use nfold_json::{DocumentBytes, MemberTree, Path};
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
            for e in &document.paths {
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
    let paths = texts.iter().flatten().map(|text| {
        let text = std::str::from_utf8(text).ok()?;
        Path::parse(text).ok()
    });
    let paths: Vec<Path> = paths.collect::<Option<_>>()?;
    let paths = paths.iter().chain(&document.row_paths);
    match document.outline {
        true => (paths.count() == 0).then(MemberTree::outline),
        false => MemberTree::of(paths),
    }
}
