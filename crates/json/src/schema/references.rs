//! References (`$ref`) inside a schema: to other parts of it, and never in a circle.

use std::collections::HashMap;

use nfold_types::SqlError;

use super::location::{Step, find, names_of};
use crate::binary::{Doc, DocKind, Scalar};
use crate::tree::{Work, too_deep};

/// The text of a schema's `$ref`.
pub(super) fn reference_of<'a>(schema: Doc<'a>) -> Result<Option<&'a str>, SqlError> {
    let Some(member) = schema.member("$ref")? else {
        return Ok(None);
    };
    Ok(match member.scalar()? {
        Some(Scalar::String(text)) => Some(text),
        _ => None,
    })
}

/// The schema that a reference means, with the steps to it. `None`: there is none, and so no
/// requirement.
pub(super) fn resolve<'a>(
    root: Doc<'a>,
    reference: &str,
) -> Result<Option<(Doc<'a>, Vec<Step<'a>>)>, SqlError> {
    let Some(names) = reference.strip_prefix('#').and_then(names_of) else {
        return Ok(None);
    };
    find(root, &names)
}

/// Whether a visit of a reference's target is under way, or done.
#[derive(PartialEq, Eq)]
enum Visit {
    UnderWay,
    Done,
}

struct Visitor<'a, 'w> {
    root: Doc<'a>,
    work: &'w Work<'w>,
    /// By the reference's text.
    visits: HashMap<&'a str, Visit>,
}

/// Checks the references of a schema.
///
/// # Errors
/// 1235: one leads to another document. 3157: some lead in a circle.
pub(super) fn check(schema: Doc<'_>, work: &Work<'_>) -> Result<(), SqlError> {
    let visits = HashMap::new();
    let mut visitor = Visitor {
        root: schema,
        work,
        visits,
    };
    visitor.visits.insert("#", Visit::UnderWay);
    visitor.visit(schema)
}

impl<'a> Visitor<'a, '_> {
    fn visit(&mut self, value: Doc<'a>) -> Result<(), SqlError> {
        self.work.add(50)?;
        for element in value.elements()? {
            self.visit(element?)?;
        }
        for member in value.members()? {
            self.visit(member?.1)?;
        }
        if value.kind() != DocKind::Object {
            return Ok(());
        }
        let Some(reference) = reference_of(value)? else {
            return Ok(());
        };
        if !reference.starts_with('#') {
            return Err(SqlError::not_supported("references in JSON Schema"));
        }
        match self.visits.get(reference) {
            Some(Visit::Done) => return Ok(()),
            Some(Visit::UnderWay) => return Err(too_deep()),
            None => {}
        }
        self.visits.insert(reference, Visit::UnderWay);
        if let Some((target, _)) = resolve(self.root, reference)? {
            self.visit(target)?;
        }
        self.visits.insert(reference, Visit::Done);
        Ok(())
    }
}
