//! Full-text keys: an index over a hidden column, whose rows hold the words of the document.
//!
//! Source: MySQL manual, "InnoDB Full-Text Indexes", "ngram Full-Text Parser".

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{
    ColumnDef, ColumnDefault, FulltextOptions, GeneratedColumn, IndexKind, IndexPart, StoredExpr,
    Visibility,
};
use nfold_engine::IndexSpec;
use nfold_sql::ast::{KeyDef, KeyKind, KeyPart, KeyTarget};
use nfold_types::{CollationId, ColumnType, ErrorCode, SqlError, TextSize, TypeKind};

use super::{Commented, DdlCx, comment, error, key};

/// The most bytes of a word in the index. A word has at most 84 characters.
const WORD_BYTES: u32 = 2048;

/// The name that InnoDB reserves for the number of a document.
const DOCUMENT_NUMBER: &str = "FTS_DOC_ID";

/// Binds a full-text key over `columns`, to which its hidden column is added. `taken` are the names
/// of earlier keys.
///
/// # Errors
/// 1283 for columns that are no text or have another collation, 1060, 1072, 1128, 1214, 1221, 1797,
/// 3106, 3152, 3759, and those of names and comments.
pub fn bind(
    key: &KeyDef,
    columns: &mut Vec<ColumnDef>,
    taken: &[Arc<str>],
    cx: &mut DdlCx<'_>,
) -> Result<IndexSpec, SqlError> {
    let options = options(key, cx)?;
    if cx.has_hash_indexes {
        return Err(error(ErrorCode::ER_TABLE_CANT_HANDLE_FT, &[]));
    }
    if key.parts.len() > key::MAX_PARTS {
        let code = ErrorCode::ER_TOO_MANY_KEY_PARTS;
        return Err(error(code, &[&key::MAX_PARTS]));
    }
    let mut parts: Vec<IndexPart> = Vec::with_capacity(key.parts.len() + 1);
    for part in &key.parts {
        let column = document_column(part, columns)?;
        let name = &columns[column].name;
        if parts.iter().any(|p| p.column == column) {
            return Err(error(ErrorCode::ER_DUP_FIELDNAME, &[name]));
        }
        let first = parts.first().map_or(column, |p| p.column);
        if columns[first].ty.collation != columns[column].ty.collation {
            return Err(error(ErrorCode::ER_BAD_FT_COLUMN, &[name]));
        }
        parts.push(IndexPart {
            column,
            prefix_len: None,
            desc: false,
        });
    }
    check_document_number(columns)?;
    let kind = IndexKind::Fulltext(options);
    let name = key::name_of(key, kind, columns, &parts, taken)?;
    let comment = comment(key.comment.as_ref(), (Commented::Index, &name), cx)?;
    let hidden = IndexPart {
        column: columns.len(),
        prefix_len: None,
        desc: false,
    };
    columns.push(words_column(&name, columns));
    parts.insert(0, hidden);
    Ok(IndexSpec {
        name,
        kind,
        parts,
        comment,
        btree: false,
        generated: false,
        visible: !key.invisible,
    })
}

/// The options of a new index: those of the session, and its parser.
fn options(key: &KeyDef, cx: &DdlCx<'_>) -> Result<FulltextOptions, SqlError> {
    let ngram_chars = match &key.parser {
        None => 0,
        Some(name) if name.as_str().eq_ignore_ascii_case("ngram") => cx.fulltext.ngram_chars,
        Some(name) => {
            let code = ErrorCode::ER_FUNCTION_NOT_DEFINED;
            return Err(error(code, &[&name.as_str()]));
        }
    };
    Ok(FulltextOptions {
        ngram_chars,
        ..cx.fulltext
    })
}

/// The column of a part.
fn document_column(part: &KeyPart, columns: &[ColumnDef]) -> Result<usize, SqlError> {
    let KeyTarget::Column { name, .. } = &part.target else {
        return Err(error(ErrorCode::ER_FULLTEXT_FUNCTIONAL_INDEX, &[]));
    };
    let found = columns.iter().position(|c| eq_name(&c.name, name.as_str()));
    let unknown = || error(ErrorCode::ER_KEY_COLUMN_DOES_NOT_EXITS, &[&name.as_str()]);
    let column = found.ok_or_else(unknown)?;
    if part.ordered {
        let args: [&dyn std::fmt::Display; 2] =
            [&"spatial/fulltext/hash index", &"explicit index order"];
        return Err(error(ErrorCode::ER_WRONG_USAGE, &args));
    }
    let ty = &columns[column].ty;
    let name = &columns[column].name;
    if ty.is_json() {
        return Err(error(ErrorCode::ER_JSON_USED_AS_KEY, &[name]));
    }
    let text = matches!(
        ty.kind,
        TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Text(_)
    );
    if !text || ty.collation == CollationId::BINARY || ty.charset().is_wide() {
        return Err(error(ErrorCode::ER_BAD_FT_COLUMN, &[name]));
    }
    if columns[column]
        .generated
        .as_ref()
        .is_some_and(|g| !g.stored)
    {
        let what = "Fulltext index on virtual generated column";
        let code = ErrorCode::ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN;
        return Err(error(code, &[&what]));
    }
    Ok(column)
}

/// Error 1797 for a column with the reserved name and another type than InnoDB's.
fn check_document_number(columns: &[ColumnDef]) -> Result<(), SqlError> {
    let reserved = columns.iter().find(|c| &*c.name == DOCUMENT_NUMBER);
    let fits = |c: &ColumnDef| c.ty.kind == TypeKind::BigInt && c.ty.unsigned && !c.nullable;
    match reserved.is_some_and(|c| !fits(c)) {
        true => Err(error(
            ErrorCode::ER_INNODB_FT_WRONG_DOCID_COLUMN,
            &[&DOCUMENT_NUMBER],
        )),
        false => Ok(()),
    }
}

/// The hidden column of the index called `index`. The planner makes its expression from the parts
/// of the index, so that columns can be renamed and dropped.
fn words_column(index: &str, columns: &[ColumnDef]) -> ColumnDef {
    let name = (0..)
        .map(|n| format!("!hidden!{index}!0!{n}"))
        .find(|name| columns.iter().all(|c| !eq_name(&c.name, name)))
        .unwrap_or_default();
    let element = ColumnType::string(TypeKind::VarBinary(WORD_BYTES), CollationId::BINARY);
    ColumnDef {
        name: name.into(),
        ty: ColumnType::new(TypeKind::Blob(TextSize::Long)),
        nullable: true,
        default: ColumnDefault::Null,
        on_update_now: None,
        auto_increment: false,
        comment: "".into(),
        own_charset: false,
        generated: Some(Box::new(GeneratedColumn {
            expr: StoredExpr {
                text: "NULL".into(),
                columns: Vec::new(),
                mode: 0,
            },
            stored: false,
            array_of: Some(element),
        })),
        visibility: Visibility::Hidden,
        histogram: None,
    }
}

/// Error 1796 for a full-text key of a temporary table.
pub fn refuse_temporary(keys: &[KeyDef]) -> Result<(), SqlError> {
    match keys.iter().any(|k| k.kind == KeyKind::Fulltext) {
        true => Err(error(ErrorCode::ER_INNODB_NO_FT_TEMP_TABLE, &[])),
        false => Ok(()),
    }
}

/// Whether an index has lost all columns of its documents.
pub fn is_without_document(index: &IndexSpec) -> bool {
    matches!(index.kind, IndexKind::Fulltext(_)) && index.parts.len() < 2
}

/// The parts that statements see, as [`nfold_catalog::IndexDef::shown_parts`].
pub fn shown_parts(index: &IndexSpec) -> &[IndexPart] {
    match index.kind {
        IndexKind::Fulltext(_) => index.parts.get(1..).unwrap_or_default(),
        _ => &index.parts,
    }
}
