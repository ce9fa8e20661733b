//! Replaces MEMBER OF, JSON_CONTAINS and JSON_OVERLAPS over the document of a multi-valued key part
//! by [`ExprKind::ArrayHas`] over its hidden column, so that the index finds the rows.
//!
//! As in MySQL, only constants are replaced that convert to the element type, and the condition is
//! then one on the converted elements. A literal of the statement is a parameter of its plan; the
//! plan is for its value alone. Other constants, such as `?` and user variables, are converted when
//! the statement runs, because executions share the plan.
//!
//! Source: MySQL manual, "CREATE INDEX Statement", "Using multi-valued Indexes".

use nfold_json::{Doc, Json, Opaque, Scalar, Work, scalar_value};
use nfold_types::temporal::DateFlags;
use nfold_types::temporal::parse::{parse_datetime, parse_time};
use nfold_types::{ColumnType, SqlError, TypeKind, Value};

use super::generated::{forget_unread, is_same, moved};
use crate::logical::context::PlanCx;
use crate::logical::expr::{
    ArrayElements, Class, ColumnAt, ElementTarget, Expr, ExprKind, ExprType, is_constant,
};
use crate::logical::func::is_volatile;
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
    let mut assigns = false;
    let mut assigned = |e: &mut Expr| {
        assigns |= e.any(&mut |e| matches!(e.kind, ExprKind::AssignUserVar(..)));
    };
    block.each_condition_mut(&mut assigned);
    block.each_joined_expr_mut(&mut assigned);
    let mut rule = Rule {
        cx,
        columns,
        assigns,
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
    /// Whether the block assigns user variables, which are no constants then.
    assigns: bool,
    /// Columns that have replaced a document.
    used: Vec<ColumnAt>,
}

impl Rule<'_> {
    fn replace(&mut self, e: &mut Expr) {
        match &mut e.kind {
            ExprKind::And(list) | ExprKind::Or(list) => {
                list.iter_mut().for_each(|e| self.replace(e));
            }
            ExprKind::Call { func, .. } => {
                let name = self.cx.funcs.get(*func).name;
                if let Some(test) = self.test(name, e) {
                    e.kind = test;
                }
            }
            _ => {}
        }
    }

    /// The test that replaces `call`.
    fn test(&mut self, name: &str, call: &Expr) -> Option<ExprKind> {
        let ExprKind::Call { args, .. } = &call.kind else {
            return None;
        };
        let [first, second] = args.as_slice() else {
            return None;
        };
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
                let to = ElementTarget {
                    member: name == "member of",
                    all: name == "json_contains",
                    element: column.element.clone(),
                };
                let all = to.all;
                let Some(elements) = self.elements(constant, to, call) else {
                    continue;
                };
                self.used.extend(column.column.as_column());
                return Some(ExprKind::ArrayHas {
                    column: Box::new(column.column.clone()),
                    elements,
                    all,
                });
            }
        }
        None
    }

    /// The elements of a constant: converted now if its value is known, otherwise at run time.
    fn elements(&self, value: &Expr, to: ElementTarget, call: &Expr) -> Option<ArrayElements> {
        let fits = match to.member {
            true => is_comparable(&value.ty, &to.element),
            false => value.ty.col.is_json() || value.ty.class() == Class::String,
        };
        if !fits {
            return None;
        }
        let known = self.constant(value);
        if let Some(known) = &known {
            match self.known_elements(known, &to) {
                Known::Elements(list) => return Some(ArrayElements::Known(list)),
                Known::Never => return None,
                Known::AtRunTime => {}
            }
        }
        let reads_variable = |e: &Expr| e.any(&mut |e| matches!(e.kind, ExprKind::UserVar(_)));
        let constant = is_constant(value)
            && !is_volatile(self.cx.funcs, value)
            && !(self.assigns && reads_variable(value));
        constant.then(|| ArrayElements::Computed {
            value: Box::new(value.clone()),
            to: Box::new(to),
            call: Box::new(call.clone()),
        })
    }

    /// The elements of a known value.
    fn known_elements(&self, value: &Json, to: &ElementTarget) -> Known {
        let work = Work::new(self.cx.checkpoint);
        let convert = || -> Option<Known> {
            let parsed;
            let value = match value {
                Json::String(text) if !to.member => {
                    parsed = nfold_json::parse(text.as_bytes(), &work).ok()?;
                    &parsed
                }
                value => value,
            };
            let bytes = nfold_json::binary::encode(value, &work).ok()?;
            let doc = Doc::new(&bytes).ok()?;
            let members: Vec<Doc<'_>> = match value {
                // An array is a member only of an array of arrays.
                Json::Array(_) if to.member => return None,
                Json::Array(_) => doc.elements().ok()?.collect::<Result<_, _>>().ok()?,
                _ => vec![doc],
            };
            let empty = members.is_empty();
            let mut list = Vec::with_capacity(members.len());
            for member in members {
                // No array has a NULL.
                if matches!(member.scalar(), Ok(Some(Scalar::Null))) {
                    match to.all {
                        true => return None,
                        false => continue,
                    }
                }
                match element(member, &to.element, &work)? {
                    Some(value) => {
                        let ty = ExprType::new(to.element.clone(), false);
                        list.push(Expr::constant(value, ty));
                    }
                    None => return Some(Known::AtRunTime),
                }
            }
            (empty || !list.is_empty()).then_some(Known::Elements(list))
        };
        convert().unwrap_or(Known::Never)
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
            ExprKind::Cast { expr, to } if to.is_json() => match self.constant(expr)? {
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

/// The elements of a value that is known when the plan is made.
enum Known {
    Elements(Vec<Expr>),
    /// They do not convert, so that no index finds them.
    Never,
    AtRunTime,
}

/// Whether MEMBER OF with a value of type `ty` may use an index over elements of type `element`: it
/// may not if the two are of different kinds.
fn is_comparable(ty: &ExprType, element: &ColumnType) -> bool {
    let kind = |class| match class {
        Class::Int | Class::Decimal | Class::Double | Class::Null => class,
        _ => Class::String,
    };
    let own = match ty.col.is_json() {
        true => Class::String,
        false => kind(ty.class()),
    };
    own == kind(Class::of(element))
}

/// Converts a scalar to an element as a stored one is converted. `None`: it does not convert;
/// `Some(None)`: whether it does depends on the session.
#[allow(clippy::option_option)]
fn element(doc: Doc<'_>, ty: &ColumnType, work: &Work<'_>) -> Option<Option<Value>> {
    let scalar = doc.scalar().ok()??;
    Some(Some(match (&ty.kind, scalar) {
        (TypeKind::BigInt, _) => {
            let value = scalar_value::integer(doc).ok()?.ok()?;
            match ty.unsigned {
                true => Value::UInt(u64::try_from(value).ok()?),
                false => Value::Int(i64::try_from(value).ok()?),
            }
        }
        (TypeKind::Decimal { precision, scale }, _) => {
            let value = scalar_value::decimal(doc).ok()?.ok()?;
            let rounded = value.round(i32::from(*scale))?.rescale(*scale)?;
            let fits = rounded.int_digits() <= u32::from(precision - scale);
            Value::Decimal(fits.then_some(rounded)?)
        }
        (TypeKind::VarChar(n) | TypeKind::VarBinary(n), scalar) => {
            let mut text = Vec::new();
            match scalar {
                Scalar::Opaque(_, bytes) => text.extend_from_slice(bytes),
                _ => nfold_json::print_unquoted(doc, work, &mut text).ok()?,
            }
            let fits = ty.collation.known().char_len(&text) <= *n as usize;
            Value::Bytes(fits.then_some(text)?)
        }
        (TypeKind::Date | TypeKind::DateTime(_), Scalar::String(text)) => {
            match whole_date(text, ty) {
                Some(value) => value,
                None => return Some(None),
            }
        }
        (TypeKind::Time(fsp), Scalar::String(text)) => match whole_time(text, *fsp) {
            Some(value) => value,
            None => return Some(None),
        },
        (_, Scalar::Bool(_)) => return None,
        _ => return Some(None),
    }))
}

/// A complete date, or date and time, that the type stores without loss.
fn whole_date(text: &str, ty: &ColumnType) -> Option<Value> {
    let parsed = parse_datetime(text.as_bytes(), DateFlags::default()).ok()?;
    if parsed.truncated || parsed.nanos != 0 || parsed.offset_s.is_some() {
        return None;
    }
    match ty.kind {
        TypeKind::DateTime(fsp) => {
            let cut = parsed.value.truncate(fsp);
            (cut.micros() == parsed.value.micros()).then_some(Value::DateTime(cut))
        }
        _ => parsed.date_only.then(|| Value::Date(parsed.value.date())),
    }
}

/// A complete time that the type stores without loss.
fn whole_time(text: &str, fsp: u8) -> Option<Value> {
    let parsed = parse_time(text.as_bytes()).ok()?;
    let unusual = parsed.truncated || parsed.clamped || parsed.dated.is_some();
    let cut = parsed.value.truncate(fsp);
    let whole = !unusual && parsed.nanos == 0 && cut.micros() == parsed.value.micros();
    whole.then_some(Value::Time(cut))
}
