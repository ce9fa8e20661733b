//! Replaces MEMBER OF, JSON_CONTAINS and JSON_OVERLAPS over the document of a multi-valued key part
//! by [`ExprKind::ArrayHas`] over its hidden column, so that the index finds the rows.
//!
//! As in MySQL, only constants are replaced that convert to the element type, and the condition is
//! then one on the converted elements. A literal of the statement is a parameter of its plan; the
//! plan is for its value alone.
//!
//! Source: MySQL manual, "CREATE INDEX Statement", "Using multi-valued Indexes".

use nfold_json::{Doc, Json, Opaque, Scalar, Work, scalar_value};
use nfold_types::temporal::DateFlags;
use nfold_types::temporal::parse::{parse_datetime, parse_time};
use nfold_types::{ColumnType, SqlError, TypeKind, Value};

use super::generated::{forget_unread, is_same, moved};
use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, ColumnAt, Expr, ExprKind, ExprType};
use crate::logical::query::{Block, Source};
use crate::logical::table_exprs::BindExprs;

/// A multi-valued key part.
struct ArrayColumn {
    /// The document, over the table's slot.
    document: Expr,
    column: Expr,
    element: ColumnType,
}

/// Replaces the tests in the conditions of `block`. `exprs` binds the stored expressions of tables.
pub(super) fn use_array_columns(
    block: &mut Block,
    cx: &PlanCx<'_>,
    exprs: &BindExprs<'_>,
) -> Result<(), SqlError> {
    let columns = array_columns(block, exprs)?;
    if columns.is_empty() {
        return Ok(());
    }
    let mut rule = Rule {
        cx,
        columns,
        used: Vec::new(),
    };
    // As in MySQL, not in the conditions of an outer join.
    block.conditions.iter_mut().for_each(|e| rule.replace(e));
    for at in &rule.used {
        let flags = &mut block.tables[usize::from(at.table)].used;
        if let Some(flag) = flags.get_mut(usize::from(at.column)) {
            *flag = true;
        }
    }
    if !rule.used.is_empty() {
        let replaced = rule.columns.into_iter().map(|c| (c.document, c.column));
        forget_unread(block, &replaced.collect::<Vec<_>>());
    }
    Ok(())
}

/// The multi-valued key parts of the block's tables that an index may use.
fn array_columns(block: &Block, exprs: &BindExprs<'_>) -> Result<Vec<ArrayColumn>, SqlError> {
    let mut found = Vec::new();
    for (t, table) in block.tables.iter().enumerate() {
        let Source::Table(def) = &table.source else {
            continue;
        };
        let arrays = |n: usize| {
            let part = def.array_part(&def.indexes[n])?;
            if def.indexes[n].fulltext().is_some() {
                return None;
            }
            (!table.hints.ignore.contains(&n)).then(|| def.indexes[n].parts[part].column)
        };
        let arrays: Vec<usize> = (0..def.indexes.len()).filter_map(arrays).collect();
        if arrays.is_empty() {
            continue;
        }
        let Some(exprs) = exprs(def)? else { continue };
        for g in exprs
            .generated
            .iter()
            .filter(|g| arrays.contains(&g.column))
        {
            let Some(element) = def.array_of(g.column) else {
                continue;
            };
            let mut document = g.expr.clone();
            moved(&mut document, t as u16);
            let at = ColumnAt {
                table: t as u16,
                column: g.column as u16,
            };
            let ty = ExprType::new(def.columns[g.column].ty.clone(), true);
            found.push(ArrayColumn {
                document,
                column: Expr {
                    kind: ExprKind::Column(at),
                    ty,
                },
                element: element.clone(),
            });
        }
    }
    Ok(found)
}

/// The rule at work on one block.
struct Rule<'r> {
    cx: &'r PlanCx<'r>,
    columns: Vec<ArrayColumn>,
    /// Columns that have replaced a document.
    used: Vec<ColumnAt>,
}

impl Rule<'_> {
    fn replace(&mut self, e: &mut Expr) {
        match &mut e.kind {
            ExprKind::And(list) | ExprKind::Or(list) => {
                list.iter_mut().for_each(|e| self.replace(e));
            }
            ExprKind::Call { func, args } => {
                let name = self.cx.funcs.get(*func).name;
                if let Some(test) = self.test(name, args) {
                    e.kind = test;
                }
            }
            _ => {}
        }
    }

    /// The test that replaces a call.
    fn test(&mut self, name: &str, args: &[Expr]) -> Option<ExprKind> {
        let [first, second] = args else { return None };
        let tests: &[(&Expr, &Expr)] = match name {
            "member of" => &[(second, first)],
            "json_contains" => &[(first, second)],
            "json_overlaps" => &[(first, second), (second, first)],
            _ => return None,
        };
        for &(document, constant) in tests {
            for column in &self.columns {
                if !is_same(&column.document, document, self.cx.literals) {
                    continue;
                }
                let is_document = name != "member of";
                let Some(elements) = self.elements(constant, is_document, &column.element) else {
                    continue;
                };
                self.used.extend(column.column.as_column());
                return Some(ExprKind::ArrayHas {
                    column: Box::new(column.column.clone()),
                    elements,
                    all: name == "json_contains",
                });
            }
        }
        None
    }

    /// The elements of a constant, converted to the element type. `document`: a string is the text
    /// of a document.
    fn elements(&self, constant: &Expr, document: bool, ty: &ColumnType) -> Option<Vec<Expr>> {
        let work = Work::new(self.cx.checkpoint);
        let mut value = self.constant(constant)?;
        if document && let Json::String(text) = &value {
            value = nfold_json::parse(text.as_bytes(), &work).ok()?;
        }
        let bytes = nfold_json::binary::encode(&value, &work).ok()?;
        let doc = Doc::new(&bytes).ok()?;
        let members: Vec<Doc<'_>> = match &value {
            // An array is a member only of an array of arrays.
            Json::Array(_) if !document => return None,
            Json::Array(_) => doc.elements().ok()?.collect::<Result<_, _>>().ok()?,
            _ => vec![doc],
        };
        let element = |member: &Doc<'_>| {
            let value = element(*member, document, ty)?;
            Some(Expr::constant(value, ExprType::new(ty.clone(), false)))
        };
        members.iter().map(element).collect()
    }

    /// The value of a constant expression.
    fn constant(&self, e: &Expr) -> Option<Json> {
        let is_text = e.ty.class() == Class::String && !e.ty.col.is_json();
        if is_text && !e.ty.col.charset().is_utf8() {
            return None;
        }
        match &e.kind {
            ExprKind::Const(v) => json_of(v),
            ExprKind::Param(n) => json_of(&self.cx.literals?.read(*n)?),
            ExprKind::Cast(inner) if e.ty.col.is_json() => match self.constant(inner)? {
                Json::String(text) => {
                    nfold_json::parse(text.as_bytes(), &Work::new(self.cx.checkpoint)).ok()
                }
                other => Some(other),
            },
            ExprKind::Call { func, args } if self.cx.funcs.get(*func).name == "json_array" => {
                let members = args.iter().map(|e| self.constant(e));
                members.collect::<Option<_>>().map(Json::Array)
            }
            _ => None,
        }
    }
}

/// The document of a literal.
fn json_of(v: &Value) -> Option<Json> {
    Some(match v {
        Value::Int(v) => Json::Int(*v),
        Value::UInt(v) => Json::UInt(*v),
        Value::Double(v) => Json::Double(*v),
        Value::Decimal(v) => Json::Opaque(Opaque::decimal(v)),
        Value::Bytes(text) => Json::String(String::from_utf8(text.clone()).ok()?),
        _ => return None,
    })
}

/// A scalar as an element, if it converts without loss. `loose`: a number may be in quotes.
fn element(doc: Doc<'_>, loose: bool, ty: &ColumnType) -> Option<Value> {
    let scalar = doc.scalar().ok()??;
    let number = match scalar {
        Scalar::Int(_) | Scalar::UInt(_) => true,
        Scalar::String(_) => loose,
        _ => false,
    };
    Some(match (&ty.kind, scalar) {
        (TypeKind::BigInt, _) if number => {
            let value = scalar_value::integer(doc).ok()?.ok()?;
            match ty.unsigned {
                true => Value::UInt(u64::try_from(value).ok()?),
                false => Value::Int(i64::try_from(value).ok()?),
            }
        }
        (TypeKind::Decimal { precision, scale }, _)
            if number || matches!(scalar, Scalar::Double(_) | Scalar::Decimal(_)) =>
        {
            let value = scalar_value::decimal(doc).ok()?.ok()?;
            let rescaled = value.rescale(*scale).filter(|d| *d == value)?;
            let fits = rescaled.int_digits() <= u32::from(precision - scale);
            Value::Decimal(fits.then_some(rescaled)?)
        }
        (TypeKind::VarChar(n), Scalar::String(text)) if text.chars().count() <= *n as usize => {
            Value::Bytes(text.as_bytes().to_vec())
        }
        (TypeKind::VarBinary(n), Scalar::String(text)) if text.len() <= *n as usize => {
            Value::Bytes(text.as_bytes().to_vec())
        }
        (TypeKind::Date | TypeKind::DateTime(_), Scalar::String(text)) => {
            let parsed = parse_datetime(text.as_bytes(), DateFlags::default()).ok()?;
            if parsed.truncated || parsed.nanos != 0 || parsed.offset_s.is_some() {
                return None;
            }
            match ty.kind {
                TypeKind::DateTime(fsp) => {
                    let cut = parsed.value.truncate(fsp);
                    Value::DateTime((cut.micros() == parsed.value.micros()).then_some(cut)?)
                }
                _ => Value::Date(parsed.date_only.then(|| parsed.value.date())?),
            }
        }
        (TypeKind::Time(fsp), Scalar::String(text)) => {
            let parsed = parse_time(text.as_bytes()).ok()?;
            let unusual = parsed.truncated || parsed.clamped || parsed.dated.is_some();
            if unusual || parsed.nanos != 0 {
                return None;
            }
            let cut = parsed.value.truncate(*fsp);
            Value::Time((cut.micros() == parsed.value.micros()).then_some(cut)?)
        }
        _ => return None,
    })
}
