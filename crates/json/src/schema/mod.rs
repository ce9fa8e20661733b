//! JSON schemas: draft 4, as JSON_SCHEMA_VALID checks them.
//!
//! The order in which requirements are tested decides which failure is reported. It is that of
//! MySQL's validator, which reads the document from front to back: the type of a value, its
//! members, then what depends on all members, then `enum`, `allOf`, `anyOf`, `oneOf`, `not`. A
//! keyword whose value is not as the draft demands is ignored.

mod location;
mod references;
mod validator;

use nfold_types::SqlError;

use crate::binary::Doc;
use crate::tree::{Json, Work};
use validator::Validator;

/// Whether a regular expression matches a part of a text; true where it is none.
pub type MatchPattern<'p> = dyn FnMut(&str, &str) -> Result<bool, SqlError> + 'p;

/// The first requirement that a document does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFailure {
    /// `required`, `type`
    pub keyword: &'static str,
    /// The schema with the requirement, as a JSON pointer in a URI.
    pub schema: String,
    /// The value that does not meet it.
    pub document: String,
}

/// Checks a document; `None`: it is valid. The schema is an object.
///
/// # Errors
/// 1235 for a reference to another document, 3157 for references in a circle, 3142, and those of
/// `matches`.
pub fn validate_schema(
    schema: Doc<'_>,
    doc: Doc<'_>,
    matches: &mut MatchPattern<'_>,
    work: &Work<'_>,
) -> Result<Option<SchemaFailure>, SqlError> {
    references::check(schema, work)?;
    Validator::new(schema, matches, work).check(schema, doc)
}

/// What JSON_SCHEMA_VALIDATION_REPORT returns.
pub fn schema_report(failure: Option<&SchemaFailure>) -> Json {
    let text = |text: &str| Json::String(text.to_string());
    let member = |name: &str, value: Json| (name.to_string(), value);
    let Some(failure) = failure else {
        return Json::object(vec![member("valid", Json::Bool(true))]);
    };
    let reason = format!(
        "The JSON document location '{}' failed requirement '{}' at JSON Schema location '{}'",
        failure.document, failure.keyword, failure.schema
    );
    Json::object(vec![
        member("valid", Json::Bool(false)),
        member("reason", text(&reason)),
        member("schema-location", text(&failure.schema)),
        member("document-location", text(&failure.document)),
        member("schema-failed-keyword", text(failure.keyword)),
    ])
}
