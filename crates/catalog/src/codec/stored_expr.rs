//! The sections of a table's stored expressions, and of columns and indexes that are not visible.

use super::{
    BadObject, Reader, SECTION_ARRAYS, SECTION_CHECKS, SECTION_COLUMN_EXPRS,
    SECTION_INVISIBLE_INDEXES, SECTION_VISIBILITY, put_bytes, put_list,
};
use crate::schema::{ColumnDef, ColumnDefault, TableDef, Visibility};
use crate::stored_expr::{CheckDef, GeneratedColumn, StoredExpr};
use nfold_types::ColumnType;

/// The roles of a column's expression.
const DEFAULT: u8 = 0;
const VIRTUAL: u8 = 1;
const STORED: u8 = 2;

/// Appends the sections that the table needs.
pub(super) fn put_sections(table: &TableDef, sections: &mut Vec<(u8, Vec<u8>)>) {
    let mut section = |kind, bytes| sections.push((kind, bytes));
    if !table.checks.is_empty() {
        let mut bytes = Vec::new();
        put_list(&mut bytes, &table.checks, |out, c| {
            put_bytes(out, c.name.as_bytes());
            out.push(c.enforced.into());
            put_expr(out, &c.expr);
        });
        section(SECTION_CHECKS, bytes);
    }
    let mut exprs: Vec<(u16, u8, &StoredExpr)> = Vec::new();
    for (n, c) in table.columns.iter().enumerate() {
        if let ColumnDefault::Expr(e) = &c.default {
            exprs.push((n as u16, DEFAULT, e));
        }
        if let Some(g) = &c.generated {
            exprs.push((n as u16, if g.stored { STORED } else { VIRTUAL }, &g.expr));
        }
    }
    if !exprs.is_empty() {
        let mut bytes = Vec::new();
        put_list(&mut bytes, &exprs, |out, (column, kind, expr)| {
            out.extend_from_slice(&column.to_le_bytes());
            out.push(*kind);
            put_expr(out, expr);
        });
        section(SECTION_COLUMN_EXPRS, bytes);
    }
    let columns = table.columns.iter().enumerate();
    let unseen = columns.filter(|(_, c)| c.visibility != Visibility::Visible);
    let unseen: Vec<(u16, Visibility)> = unseen.map(|(n, c)| (n as u16, c.visibility)).collect();
    if !unseen.is_empty() {
        let mut bytes = Vec::new();
        put_list(&mut bytes, &unseen, |out, (column, visibility)| {
            out.extend_from_slice(&column.to_le_bytes());
            out.push(u8::from(*visibility == Visibility::Hidden));
        });
        section(SECTION_VISIBILITY, bytes);
    }
    let indexes = table.indexes.iter().enumerate();
    let unseen: Vec<u16> = indexes
        .filter(|(_, i)| !i.visible)
        .map(|(n, _)| n as u16)
        .collect();
    if !unseen.is_empty() {
        let mut bytes = Vec::new();
        put_list(&mut bytes, &unseen, |out, n| {
            out.extend_from_slice(&n.to_le_bytes())
        });
        section(SECTION_INVISIBLE_INDEXES, bytes);
    }
    let array_of = |c: &ColumnDef| c.generated.as_ref()?.array_of.clone();
    let columns = table.columns.iter().enumerate();
    let arrays: Vec<(u16, ColumnType)> = columns
        .filter_map(|(n, c)| Some((n as u16, array_of(c)?)))
        .collect();
    if !arrays.is_empty() {
        let mut bytes = Vec::new();
        put_list(&mut bytes, &arrays, |out, (column, ty)| {
            out.extend_from_slice(&column.to_le_bytes());
            let mut element = Vec::new();
            ty.serialize(&mut element);
            put_bytes(out, &element);
        });
        section(SECTION_ARRAYS, bytes);
    }
}

/// Reads one section into the table.
pub(super) fn get_section(
    kind: u8,
    section: &mut Reader<'_>,
    table: &mut TableDef,
) -> Result<(), BadObject> {
    match kind {
        SECTION_CHECKS => table.checks = section.list("checks", get_check)?,
        SECTION_COLUMN_EXPRS => {
            section.list("column expressions", |r| {
                let at = usize::from(r.u16("expression's column")?);
                let column = table.columns.get_mut(at);
                let column = column.ok_or(BadObject("expression's column"))?;
                let kind = r.u8("expression's kind")?;
                let expr = get_expr(r)?;
                match kind {
                    DEFAULT => column.default = ColumnDefault::Expr(Box::new(expr)),
                    VIRTUAL | STORED => {
                        let stored = kind == STORED;
                        column.generated = Some(Box::new(GeneratedColumn {
                            expr,
                            stored,
                            array_of: None,
                        }));
                    }
                    _ => return Err(BadObject("expression's kind")),
                }
                Ok(())
            })?;
        }
        SECTION_VISIBILITY => {
            section.list("visibility", |r| {
                let column = table.columns.get_mut(usize::from(r.u16("unseen column")?));
                let column = column.ok_or(BadObject("unseen column"))?;
                column.visibility = match r.bool("hidden")? {
                    true => Visibility::Hidden,
                    false => Visibility::Invisible,
                };
                Ok(())
            })?;
        }
        SECTION_INVISIBLE_INDEXES => {
            section.list("invisible indexes", |r| {
                let index = table
                    .indexes
                    .get_mut(usize::from(r.u16("invisible index")?));
                index.ok_or(BadObject("invisible index"))?.visible = false;
                Ok(())
            })?;
        }
        SECTION_ARRAYS => {
            section.list("arrays", |r| {
                let column = table.columns.get_mut(usize::from(r.u16("array column")?));
                let generated = column.and_then(|c| c.generated.as_mut());
                let ty = ColumnType::deserialize(&mut r.bytes("element type")?);
                let ty = ty.ok_or(BadObject("element type"))?;
                generated.ok_or(BadObject("array column"))?.array_of = Some(ty);
                Ok(())
            })?;
        }
        _ => return Err(BadObject("section")),
    }
    Ok(())
}

fn put_expr(out: &mut Vec<u8>, e: &StoredExpr) {
    put_bytes(out, e.text.as_bytes());
    put_list(out, &e.columns, |out, name| put_bytes(out, name.as_bytes()));
    out.extend_from_slice(&e.mode.to_le_bytes());
}

fn get_expr(r: &mut Reader<'_>) -> Result<StoredExpr, BadObject> {
    Ok(StoredExpr {
        text: r.text("expression")?.into(),
        columns: r.list("expression's columns", |r| {
            Ok(r.text("column name")?.into())
        })?,
        mode: r.u32("expression's mode")?,
    })
}

fn get_check(r: &mut Reader<'_>) -> Result<CheckDef, BadObject> {
    Ok(CheckDef {
        name: r.text("constraint name")?.into(),
        enforced: r.bool("enforced")?,
        expr: get_expr(r)?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn expr(text: &str, column: &str) -> StoredExpr {
        StoredExpr {
            text: text.into(),
            columns: vec![column.into()],
            mode: 32,
        }
    }

    /// `table` with one of everything that these sections hold.
    pub(in super::super) fn with_exprs(mut table: TableDef) -> TableDef {
        table.checks = vec![CheckDef {
            name: "t_chk_1".into(),
            expr: expr("(`id` > 0)", "id"),
            enforced: false,
        }];
        table.columns[1].default = ColumnDefault::Expr(Box::new(expr("upper(`b`)", "b")));
        table.columns[2].generated = Some(Box::new(GeneratedColumn {
            expr: expr("(`id` + 1)", "id"),
            stored: true,
            array_of: None,
        }));
        table.columns[3].generated = Some(Box::new(GeneratedColumn {
            expr: expr("now()", "id"),
            stored: false,
            array_of: Some(ColumnType::bigint().with_unsigned()),
        }));
        table.columns[2].visibility = Visibility::Invisible;
        table.columns[3].visibility = Visibility::Hidden;
        table.indexes[0].visible = false;
        table
    }
}
