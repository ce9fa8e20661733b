//! The select list: its expressions, and the names and descriptions of its columns.

use std::borrow::Cow;
use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::{self, Literal, Select, SelectItem};
use nfold_types::charset::{UTF8MB4, convert};
use nfold_types::collation::CollationId;
use nfold_types::sql_type::ColumnFlags;
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind};

use super::BlockBinder;
use super::from::FromInfo;
use super::item_names::name_selected;
use crate::logical::clauses::{BlockWarning, ColumnMeta};
use crate::logical::column_uses::ColumnAccess;
use crate::logical::describe::computed_column;
use crate::logical::expr::{Class, ColumnAt, Expr, ExprType};
use crate::logical::query::Source;

/// The maximum number of result columns, as in MySQL. The protocol counts them in 16 bits.
const MAX_COLUMNS: usize = 4096;

/// A bound select item.
pub(super) struct Item {
    pub expr: Expr,
    pub meta: ColumnMeta,
}

/// The name of a select item that is a column without an alias.
fn bare_column(item: &SelectItem) -> Option<&str> {
    match item {
        SelectItem::Expr {
            expr: ast::Expr::Column(c),
            alias: None,
            ..
        } => Some(&c.name.value),
        _ => None,
    }
}

impl BlockBinder<'_> {
    /// Binds the select list.
    pub(super) fn items(&mut self, s: &Select, info: &FromInfo) -> Result<Vec<Item>, SqlError> {
        let mut out = Vec::new();
        let written = s.items.iter().rev().filter_map(|item| match item {
            SelectItem::Expr { alias, .. } => alias.as_ref(),
            _ => None,
        });
        self.later_aliases = written.map(|alias| alias.value.as_str().into()).collect();
        let bare = s.items.iter().rev().filter_map(bare_column);
        self.later_columns = bare.map(Into::into).collect();
        for item in &s.items {
            if out.len() > MAX_COLUMNS {
                break;
            }
            match item {
                SelectItem::Star => {
                    if self.scope.is_empty() && self.is_existence_test {
                        // EXISTS needs no value.
                        let one = Expr::int(1);
                        let meta = computed_column("1".into(), &one.ty);
                        out.push(Item { expr: one, meta });
                        continue;
                    }
                    if self.scope.is_empty() {
                        return Err(SqlError::new(ErrorCode::ER_NO_TABLES_USED, &[]));
                    }
                    for at in &info.shown {
                        out.push(self.star_column(*at));
                    }
                }
                SelectItem::TableStar(name) => {
                    let named: Vec<usize> = self.slots_named(name).collect();
                    if named.is_empty() {
                        return Err(SqlError::new(ErrorCode::ER_BAD_TABLE_ERROR, &[&name]));
                    }
                    let shown: Vec<ColumnAt> =
                        named.into_iter().flat_map(|t| self.shown_of(t)).collect();
                    for at in shown {
                        out.push(self.star_column(at));
                    }
                }
                SelectItem::Expr { expr, alias, text } => {
                    let mut bound = self.expr(expr)?;
                    if alias.is_some() {
                        self.later_aliases.pop();
                    }
                    if bare_column(item).is_some() {
                        self.later_columns.pop();
                    }
                    let source = self.as_utf8(text.of(self.cx.text));
                    let written = || source.trim();
                    // A plus sign leaves nothing behind.
                    let mut expr = expr;
                    while let ast::Expr::Unary {
                        op: ast::UnaryOp::Plus,
                        expr: inner,
                    } = expr
                        && is_named_by_itself(inner)
                    {
                        expr = inner;
                    }
                    let name: Arc<str> = match (alias, expr) {
                        (Some(a), _) => self.visible_name(&a.value),
                        (None, ast::Expr::Column(c)) => self
                            .view_column(&bound)
                            .unwrap_or_else(|| c.name.value.as_str().into()),
                        (None, ast::Expr::Literal(Literal::String(s))) => {
                            literal_name(s, &bound.ty, written())
                        }
                        (None, ast::Expr::Literal(Literal::Null)) => "NULL".into(),
                        (
                            None,
                            ast::Expr::Literal(
                                Literal::Int(_) | Literal::Decimal(_) | Literal::Float(_),
                            ),
                        ) => {
                            let around = |c: char| c.is_whitespace() || "+()".contains(c);
                            written().trim_matches(around).into()
                        }
                        (None, ast::Expr::Function(f)) if f.name == "name_const" => {
                            match f.args.first() {
                                Some(ast::Expr::Literal(Literal::String(s))) => {
                                    String::from_utf8_lossy(&s.bytes).into()
                                }
                                _ => basic(written()),
                            }
                        }
                        _ => basic(written()),
                    };
                    name_selected(&mut bound, &name);
                    let meta = match bound.as_column() {
                        Some(at) if at.table < super::WINDOWS => ColumnMeta {
                            name,
                            ..self.column_meta(at)
                        },
                        _ if matches!(expr, ast::Expr::Param(_)) => {
                            computed_column(name, &parameter_type(&bound.ty))
                        }
                        _ => computed_column(name, &bound.ty),
                    };
                    // A later item may be a subquery that names this alias.
                    self.aliases.push((meta.name.clone(), bound.clone()));
                    out.push(Item { expr: bound, meta });
                }
            }
        }
        if out.len() > MAX_COLUMNS {
            return Err(SqlError::new(ErrorCode::ER_TOO_MANY_FIELDS, &[]));
        }
        Ok(out)
    }

    /// An alias without what is no visible character in front.
    fn visible_name(&mut self, alias: &str) -> Arc<str> {
        let blank = |c: char| c.is_ascii() && !c.is_ascii_graphic();
        let name = alias.trim_start_matches(blank);
        if name.len() < alias.len() {
            self.warnings.push(match name {
                "" => BlockWarning::EmptyName(alias.into()),
                _ => BlockWarning::SpacesBeforeName(alias.into()),
            });
        }
        name.into()
    }

    /// A piece of the statement's text in UTF-8; bytes that are no characters are question marks.
    fn as_utf8<'t>(&self, text: &'t [u8]) -> Cow<'t, str> {
        let set = self.cx.connection.known().charset;
        // Of a text in an East Asian set the session has made names UTF-8, unlike strings.
        if let Ok(text) = std::str::from_utf8(text)
            && (set.is_multi_byte() || text.is_ascii())
        {
            return Cow::Borrowed(text);
        }
        let set = match set.is_binary() {
            true => &UTF8MB4,
            false => set,
        };
        let mut out = Vec::new();
        convert(set, &UTF8MB4, text, &mut out);
        Cow::Owned(String::from_utf8_lossy(&out).into_owned())
    }

    /// The name of a column of `information_schema`, as defined and not as written: its tables are
    /// views in MySQL.
    fn view_column(&self, e: &Expr) -> Option<Arc<str>> {
        let at = e.as_column().filter(|at| at.table < super::WINDOWS)?;
        let slot = &self.scope[usize::from(at.table)];
        let view = slot.schema.as_deref() == Some("information_schema");
        view.then(|| slot.columns[usize::from(at.column)].name.clone())
    }

    fn star_column(&mut self, at: ColumnAt) -> Item {
        let access = match self.read_access() {
            ColumnAccess::Read => ColumnAccess::ReadAll,
            access => access,
        };
        self.name_column(at, access);
        Item {
            expr: self.column_expr(at),
            meta: self.column_meta(at),
        }
    }

    fn column_meta(&self, at: ColumnAt) -> ColumnMeta {
        let slot = &self.scope[usize::from(at.table)];
        let column = &slot.columns[usize::from(at.column)];
        let nullable = column.nullable || self.tables[usize::from(at.table)].nullable;
        let mut flags = column.ty.wire_flags() | if nullable { 0 } else { ColumnFlags::NOT_NULL };
        let mut org_table: Arc<str> = "".into();
        if let Source::Table(def) | Source::Virtual(def) =
            &self.tables[usize::from(at.table)].source
        {
            org_table = def.name.clone();
            flags |= key_flags(def, usize::from(at.column));
        }
        ColumnMeta {
            schema: slot.schema.clone().unwrap_or_else(|| "".into()),
            table: slot.alias.clone(),
            org_table,
            name: column.name.clone(),
            org_name: column.name.clone(),
            ty: column.ty.clone(),
            flags,
            made: column.made,
        }
    }
}

/// The key flags that MySQL sends in a column's description.
pub(crate) fn key_flags(def: &TableDef, column: usize) -> u16 {
    let mut flags = 0;
    let c = &def.columns[column];
    if c.auto_increment {
        flags |= ColumnFlags::AUTO_INCREMENT;
    }
    if c.on_update_now.is_some() {
        flags |= ColumnFlags::TIMESTAMP | ColumnFlags::ON_UPDATE_NOW;
    }
    if matches!(c.default, nfold_catalog::ColumnDefault::CurrentTimestamp(_)) {
        flags |= ColumnFlags::TIMESTAMP;
    }
    if !c.nullable && matches!(c.default, nfold_catalog::ColumnDefault::None) && !c.auto_increment {
        flags |= ColumnFlags::NO_DEFAULT_VALUE;
    }
    let promoted = def.promoted_key();
    for (n, index) in def.indexes.iter().enumerate() {
        let Some(at) = index.shown_parts().iter().position(|p| p.column == column) else {
            continue;
        };
        flags |= ColumnFlags::PART_KEY;
        match index.kind {
            nfold_catalog::IndexKind::Primary => flags |= ColumnFlags::PRI_KEY,
            _ if promoted == Some(n) => flags |= ColumnFlags::PRI_KEY,
            nfold_catalog::IndexKind::Unique if index.parts.len() == 1 => {
                flags |= ColumnFlags::UNIQUE_KEY
            }
            _ if at == 0 => flags |= ColumnFlags::MULTIPLE_KEY,
            _ => {}
        }
    }
    flags
}

/// Whether a select item is called as its operand where nothing but plus signs is before it.
fn is_named_by_itself(e: &ast::Expr) -> bool {
    match e {
        ast::Expr::Column(_) => true,
        ast::Expr::Literal(l) => matches!(
            l,
            Literal::Null
                | Literal::Int(_)
                | Literal::Decimal(_)
                | Literal::Float(_)
                | Literal::String(_)
        ),
        ast::Expr::Unary { op, expr } => *op == ast::UnaryOp::Plus && is_named_by_itself(expr),
        _ => false,
    }
}

/// Makes a column name from text. Characters beyond the Basic Multilingual Plane become question
/// marks.
fn basic(text: &str) -> Arc<str> {
    if text.is_ascii() {
        return text.into();
    }
    let shown = |c: char| if u32::from(c) > 0xffff { '?' } else { c };
    text.chars().map(shown).collect::<String>().into()
}

/// The name of a column that is a string literal: its value, from the first visible character on. A
/// hexadecimal or bit literal with an introducer is named as written.
fn literal_name(s: &ast::StringLiteral, ty: &ExprType, written: &str) -> Arc<str> {
    if s.charset.is_some() && !written.ends_with(['\'', '"']) {
        return basic(written);
    }
    let digits = |quoted: &str| quoted.trim_end().ends_with(['x', 'X', 'b', 'B']);
    if s.charset.is_some()
        && let Some((introducer, _)) = written.split_once('\'')
        && introducer.contains(char::is_whitespace)
        && digits(introducer)
    {
        return basic(written);
    }
    let bytes = match first_piece(written) {
        Some(len) => &s.bytes[..len.min(s.bytes.len())],
        None => &s.bytes,
    };
    let set = ty.col.charset();
    let visible = |b: &u8| b.is_ascii_graphic() || (!b.is_ascii() && !set.is_binary());
    let start = bytes.iter().position(visible).unwrap_or(bytes.len());
    let mut name = Vec::new();
    convert(set, &UTF8MB4, &bytes[start..], &mut name);
    basic(&String::from_utf8_lossy(&name))
}

/// The bytes of the first of several adjacent strings, of which only the first names a column;
/// `None` where there is one.
fn first_piece(written: &str) -> Option<usize> {
    let begin = written.find(['\'', '"'])?;
    let text = &written.as_bytes()[begin..];
    let (quote, mut at, mut len) = (text[0], 1, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => {
                let kept = matches!(text.get(at + 1), Some(b'%' | b'_'));
                (at, len) = (at + 2, len + 1 + usize::from(kept));
            }
            _ if byte != quote => (at, len) = (at + 1, len + 1),
            _ if text.get(at + 1) == Some(&quote) => (at, len) = (at + 2, len + 1),
            _ => break,
        }
    }
    let rest = written.get(begin + at + 1..)?;
    rest.contains(['\'', '"']).then_some(len)
}

/// The type in the description of a parameter. A NULL is described as a string.
fn parameter_type(ty: &ExprType) -> ExprType {
    match ty.class() {
        Class::Null => ExprType {
            col: ColumnType::string(TypeKind::VarBinary(65_532), CollationId::BINARY),
            ..ty.clone()
        },
        _ => ty.clone(),
    }
}
