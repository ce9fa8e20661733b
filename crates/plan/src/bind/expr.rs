//! Expressions: operators, functions, casts, with the types that MySQL gives them.

use nfold_sql::ast::{self, BinaryOp, IsTest, Literal, UnaryOp};
use nfold_types::collation::CollationId;
use nfold_types::decimal::{MAX_PRECISION, MAX_SCALE};
use nfold_types::{ColumnType, Decimal, ErrorCode, SqlError, TextSize, TypeKind, Value};

use super::BlockBinder;
use super::cast::{cast, cast_to, check_cast_type};
use super::compare::listed_comparison;
use super::json;
use super::names::display;
use super::types::{
    aggregate_named, arith_type, bits_type, charset_collation, collation_named, negated_type,
};
use super::wide_sets;
use crate::logical::clauses::BlockWarning;
use crate::logical::collate::{self, Operand};
use crate::logical::column_uses::ColumnAccess;
use crate::logical::context::{ParamType, hex_type};
use crate::logical::expr::{
    ArithOp, BitOp, Class, CmpKind, Coercibility, ColumnAt, Expr, ExprKind, ExprType, SubqueryUse,
    TextOrigin, is_constant, string_type,
};
use crate::logical::func::Infer;
use crate::logical::query::{QueryBody, SubqueryForm};

/// The work of binding one expression without its operands, in units of
/// [`Checkpoint`](nfold_types::Checkpoint).
const NODE_WORK: u64 = 300;

/// The maximum length of EXTRACT's result in characters, its sign included.
fn extract_length(unit: ast::IntervalUnit) -> u32 {
    use ast::IntervalUnit::*;
    match unit {
        Quarter => 2,
        Month | Week | Day | Minute | Second => 3,
        Hour => 4,
        Year | MinuteSecond => 5,
        HourMinute => 6,
        YearMonth | Microsecond => 7,
        HourSecond => 8,
        DayHour | SecondMicrosecond => 9,
        DayMinute | MinuteMicrosecond => 11,
        DaySecond => 13,
        HourMicrosecond => 14,
        DayMicrosecond => 20,
    }
}

/// The length of a date as text.
const DATE_CHARS: u64 = 10;

impl BlockBinder<'_> {
    /// Binds a scalar expression.
    pub(crate) fn expr(&mut self, e: &ast::Expr) -> Result<Expr, SqlError> {
        use ast::Expr as A;
        self.cx.checkpoint.checkpoint(NODE_WORK)?;
        match e {
            A::Literal(lit) => self.literal(lit),
            A::Param(n) => self.param(*n),
            A::Column(c) => self.column(c),
            A::UserVar(name) => {
                let name = name.to_lowercase();
                let mut col = self.cx.info.user_var_type(&name);
                let is_unset = matches!(col.kind, TypeKind::VarBinary(_));
                let mut assigned = self.assigned_vars.iter().rev();
                if is_unset && let Some((_, text)) = assigned.find(|(v, _)| **v == *name) {
                    // Set in this statement for the first time: its type is not known yet.
                    let collation = text.unwrap_or(self.cx.connection);
                    let kind = match collation {
                        CollationId::BINARY => TypeKind::Blob(TextSize::Long),
                        _ => TypeKind::Text(TextSize::Long),
                    };
                    col = ColumnType {
                        width: TextSize::Medium.max_bytes() as u32,
                        ..ColumnType::string(kind, collation)
                    };
                }
                let ty = ExprType {
                    coercibility: Coercibility::Implicit,
                    origin: TextOrigin::Computed,
                    ..ExprType::new(col, true)
                };
                Ok(Expr {
                    kind: ExprKind::UserVar(name.into()),
                    ty,
                })
            }
            A::AssignUserVar { name, value } => {
                let mut value = self.expr(value)?;
                let text = value.ty.class() == Class::String;
                let text = text.then_some(value.ty.collation());
                self.assigned_vars.push((name.to_lowercase().into(), text));
                let mut ty = value.ty.clone();
                if ty.class().is_temporal() || ty.col.is_enum_or_set() {
                    let text = collate::as_string(&ty, self.cx.connection).of_string();
                    let chars = ty.length_in(text.collation);
                    ty = ExprType::string(chars, text.collation, text.coercibility, true);
                    value.cast_to(ty.clone());
                }
                // A user variable holds integers as BIGINT and floats as DOUBLE, independent of the
                // type of the column that was assigned.
                match ty.col.kind {
                    TypeKind::TinyInt
                    | TypeKind::SmallInt
                    | TypeKind::MediumInt
                    | TypeKind::Int
                    | TypeKind::Year => {
                        ty.col.width = ty.max_length() as u32;
                        ty.col.kind = TypeKind::BigInt;
                    }
                    TypeKind::Float => ty.col.kind = TypeKind::Double,
                    TypeKind::Char(n) => ty.col.kind = TypeKind::VarChar(n),
                    _ => {}
                }
                Ok(Expr {
                    kind: ExprKind::AssignUserVar(name.to_lowercase().into(), Box::new(value)),
                    ty,
                })
            }
            A::SysVar { scope, name } => {
                let name = name.to_lowercase();
                let col = self.cx.info.sysvar_type(*scope, &name)?;
                let ty = ExprType {
                    coercibility: Coercibility::SysConst,
                    ..ExprType::new(col, true)
                };
                Ok(Expr {
                    kind: ExprKind::SysVar {
                        scope: *scope,
                        name: name.into(),
                    },
                    ty,
                })
            }
            A::Unary { op, expr } => self.unary(*op, expr),
            A::Binary { op, left, right } => self.binary(*op, left, right),
            A::And(list) => self.logical(list, ExprKind::And),
            A::Or(list) => self.logical(list, ExprKind::Or),
            A::Xor(a, b) => {
                let sides = Box::new([self.truth(a)?, self.truth(b)?]);
                let nullable = sides.iter().any(|s| s.ty.nullable);
                Ok(Expr {
                    kind: ExprKind::Xor(sides),
                    ty: ExprType::boolean(nullable),
                })
            }
            A::Not(inner) => {
                let inner = self.truth(inner)?;
                let ty = ExprType::boolean(inner.ty.nullable);
                Ok(Expr {
                    kind: ExprKind::Not(Box::new(inner)),
                    ty,
                })
            }
            A::Is {
                expr,
                test,
                negated,
            } => {
                let expr = match test {
                    IsTest::Null => {
                        let operand = self.expr(expr)?;
                        self.null_tested(operand)
                    }
                    IsTest::Unknown => {
                        let operand = self.truth(expr)?;
                        self.null_tested(operand)
                    }
                    IsTest::True | IsTest::False => self.truth(expr)?,
                };
                let expr = Box::new(expr);
                Ok(Expr {
                    kind: ExprKind::Is {
                        expr,
                        test: *test,
                        negated: *negated,
                    },
                    ty: ExprType::boolean(false),
                })
            }
            A::Between {
                expr,
                low,
                high,
                negated,
            } => self.between(expr, low, high, *negated),
            A::InList {
                expr,
                list,
                negated,
            } => self.in_list(expr, list, *negated),
            A::InSubquery {
                expr,
                query,
                negated,
            } => self.in_subquery(expr, query, *negated),
            A::Exists(query) => {
                let (index, _) = self.subquery(query, SubqueryForm::Existence)?;
                let kind = ExprKind::Subquery {
                    index,
                    use_as: SubqueryUse::Exists,
                };
                Ok(Expr {
                    kind,
                    ty: ExprType::boolean(false),
                })
            }
            A::Subquery(query) => {
                if let Some(e) = self.selected_constant(query) {
                    return Ok(e);
                }
                let (index, types) = self.subquery(query, SubqueryForm::Rows)?;
                let [ty] = types.as_slice() else {
                    return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&1]));
                };
                let mut e = selected(index, SubqueryUse::Scalar, ty.clone().computed());
                let query = &self.subqueries[usize::from(index)].query;
                e.ty.nullable &= ty.nullable || !query.has_one_row();
                let set = matches!(query.body, QueryBody::Set { .. });
                if set && e.ty.col.kind == TypeKind::BigInt {
                    e.ty.col.width = 20;
                }
                Ok(e)
            }
            A::Quantified {
                op,
                expr,
                all,
                query,
            } => self.quantified(*op, expr, *all, query),
            A::Like {
                expr,
                pattern,
                escape,
                negated,
            } => self.like(expr, pattern, escape.as_deref(), *negated),
            A::Regexp {
                expr,
                pattern,
                negated,
            } => {
                let e = self.call("regexp_like", &[expr, pattern])?;
                Ok(if *negated {
                    Expr {
                        kind: ExprKind::Not(Box::new(e)),
                        ty: ExprType::boolean(true),
                    }
                } else {
                    e
                })
            }
            A::SoundsLike(a, b) => {
                let (a, b) = (self.call("soundex", &[a])?, self.call("soundex", &[b])?);
                self.compare(BinaryOp::Eq, a, b)
            }
            A::Case {
                operand,
                whens,
                otherwise,
            } => self.case(operand.as_deref(), whens, otherwise.as_deref()),
            A::Cast { expr, ty, array } => {
                if *array {
                    return Err(SqlError::not_supported(super::cast::ARRAY_CAST));
                }
                check_cast_type(expr, ty)?;
                let inner = self.expr(expr)?;
                cast(inner, ty, self.cx.connection)
            }
            A::ConvertUsing { expr, charset } => {
                let inner = self.expr(expr)?;
                let collation = charset_collation(charset)?;
                let ty = ExprType::string(
                    inner.ty.length_in(collation),
                    collation,
                    Coercibility::Implicit,
                    true,
                );
                Ok(cast_to(inner, ty))
            }
            A::Collate { expr, collation } => self.collate(expr, collation),
            A::IntervalArith {
                expr,
                amount,
                unit,
                subtract,
            } => self.interval(expr, amount, *unit, *subtract),
            A::Extract { unit, expr } => {
                let expr = Box::new(self.expr(expr)?);
                Ok(Expr {
                    kind: ExprKind::Extract { unit: *unit, expr },
                    ty: ExprType::int(extract_length(*unit), true),
                })
            }
            A::TimestampDiff { unit, from, to } => {
                let (from, to) = (Box::new(self.expr(from)?), Box::new(self.expr(to)?));
                Ok(Expr {
                    kind: ExprKind::TimestampDiff {
                        unit: *unit,
                        from,
                        to,
                    },
                    ty: ExprType::bigint(true),
                })
            }
            A::Trim { side, what, expr } => {
                let expr = self.expr(expr)?;
                let what = what.as_ref().map(|w| self.expr(w)).transpose()?;
                let merged = collate::as_string(&expr.ty, self.cx.connection).of_string();
                let mut ty = ExprType::string(
                    expr.ty.length_in(merged.collation),
                    merged.collation,
                    merged.coercibility,
                    true,
                );
                ty.origin = TextOrigin::Computed;
                if wide_sets::is_wide(&ty) {
                    return Ok(wide_sets::trimmed(*side, what, expr, ty));
                }
                Ok(Expr {
                    kind: ExprKind::Trim {
                        side: *side,
                        what: what.map(Box::new),
                        expr: Box::new(expr),
                    },
                    ty,
                })
            }
            A::Char { args, charset } => {
                let e = self.call("char", &args.iter().collect::<Vec<_>>())?;
                match charset {
                    None => Ok(e),
                    Some(name) => {
                        let collation = charset_collation(name)?;
                        let ty = ExprType::string(
                            e.ty.char_length(),
                            collation,
                            Coercibility::Coercible,
                            true,
                        );
                        Ok(cast_to(e, ty))
                    }
                }
            }
            A::Function(call) => self.function(call),
            A::JsonValue(call) => self.json_value(call),
            A::Row(_) => Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&1])),
            A::Default(Some(c)) => self.default_of(c),
            A::Default(None) => Err(SqlError::not_supported("DEFAULT in an expression")),
            A::Values(c) => self.values_of(c),
            A::MemberOf(value, array) => self.call("member of", &[value, array]),
            A::Match {
                columns,
                against,
                mode,
            } => self.match_against(columns, against, *mode),
        }
    }

    fn literal(&self, lit: &Literal) -> Result<Expr, SqlError> {
        Ok(match lit {
            Literal::Null => Expr::null(),
            Literal::Bool(b) => Expr::constant(Value::Int(i64::from(*b)), ExprType::boolean(false)),
            Literal::Int(v) => match i64::try_from(*v) {
                Ok(v) => Expr::int(v),
                Err(_) => Expr::constant(Value::UInt(*v), ExprType::ubigint(false).with_width(20)),
            },
            Literal::Decimal(text) => {
                let d = Decimal::parse_prefix(text.as_bytes()).value;
                let scale = u32::from(d.scale().min(MAX_SCALE));
                let whole = d.int_digits().max(u32::from(!text.starts_with('.')));
                let precision = (whole + scale).clamp(1, u32::from(MAX_PRECISION));
                Expr::constant(
                    Value::Decimal(d),
                    ExprType::decimal(precision, scale, false),
                )
            }
            Literal::Float(text) => {
                let v = text.parse::<f64>().unwrap_or(f64::INFINITY);
                if !v.is_finite() {
                    return Err(SqlError::new(
                        ErrorCode::ER_ILLEGAL_VALUE_FOR_TYPE,
                        &[&"double", text],
                    ));
                }
                let ty = ExprType::double(false).with_width(text.len() as u32);
                Expr::constant(Value::Double(v), ty)
            }
            Literal::String(s) => return self.string_literal(s),
            Literal::Hex(b) => {
                let mut ty = hex_type(b.len() as u64);
                ty.col.unsigned = true; // in its description only
                Expr::constant(Value::Bytes(b.clone()), ty)
            }
            Literal::Bit(b) => Expr::constant(Value::Bytes(b.clone()), hex_type(b.len() as u64)),
            Literal::Temporal { kind, text, odbc } => {
                return self.temporal_literal(*kind, text, *odbc);
            }
        })
    }

    pub(super) fn string_literal(&self, s: &ast::StringLiteral) -> Result<Expr, SqlError> {
        let collation = match &s.charset {
            Some(name) => charset_collation(name)?,
            None => self.cx.connection,
        };
        let chars = collation.known().char_len(&s.bytes) as u64;
        let ty = ExprType::string(chars, collation, Coercibility::Coercible, false);
        Ok(Expr::constant(Value::Bytes(s.bytes.clone()), ty))
    }

    fn param(&self, n: u32) -> Result<Expr, SqlError> {
        match self.cx.params.get(n as usize) {
            Some(ParamType::One(ty)) => Ok(Expr {
                kind: ExprKind::Param(n),
                ty: ty.clone(),
            }),
            _ => Err(SqlError::not_supported("a list as a parameter here")),
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &ast::Expr) -> Result<Expr, SqlError> {
        // A minus sign is part of the literal that follows it.
        if let (UnaryOp::Minus, ast::Expr::Literal(Literal::Int(v))) = (op, operand)
            && *v <= i64::MIN.unsigned_abs()
        {
            return Ok(Expr::int((*v as i64).wrapping_neg()));
        }
        if let (UnaryOp::Minus, ast::Expr::Literal(Literal::Int(v))) = (op, operand) {
            let d = Decimal::from(*v).neg();
            let ty = ExprType::decimal(d.int_digits(), 0, false);
            return Ok(Expr::constant(Value::Decimal(d), ty));
        }
        let inner = self.expr(operand)?;
        match op {
            UnaryOp::Plus => Ok(inner),
            UnaryOp::Minus => {
                let ty = negated_type(&inner, self.cx.funcs);
                Ok(Expr {
                    kind: ExprKind::Neg(Box::new(inner)),
                    ty,
                })
            }
            UnaryOp::BitNot => {
                let ty = bits_type(&[&inner.ty], inner.ty.nullable);
                Ok(Expr {
                    kind: ExprKind::BitNot(Box::new(inner)),
                    ty,
                })
            }
            UnaryOp::Binary => {
                self.warnings.push(BlockWarning::Deprecated {
                    what: "BINARY expr",
                    instead: "CAST",
                });
                let ty = ExprType::string(
                    inner.ty.byte_length(),
                    CollationId::BINARY,
                    Coercibility::Implicit,
                    true,
                );
                Ok(cast_to(inner, ty))
            }
        }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Expr, SqlError> {
        if op.is_comparison() {
            if let (ast::Expr::Row(a), ast::Expr::Row(b)) = (left, right) {
                return self.compare_nested(op, a, b);
            }
            let (mut a, mut b) = (self.columns(left)?, self.columns(right)?);
            if a.len() != b.len() {
                return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&a.len()]));
            }
            if a.len() > 1 {
                return self.compare_rows(op, a, b);
            }
            let (a, b) = (a.swap_remove(0), b.swap_remove(0));
            return self.compare(op, a, b);
        }
        if op == BinaryOp::Concat {
            return self.call("concat", &[left, right]);
        }
        let (a, b) = (self.expr(left)?, self.expr(right)?);
        let nullable = a.ty.nullable || b.ty.nullable;
        let bit = match op {
            BinaryOp::BitAnd => Some(BitOp::And),
            BinaryOp::BitOr => Some(BitOp::Or),
            BinaryOp::BitXor => Some(BitOp::Xor),
            BinaryOp::ShiftLeft => Some(BitOp::ShiftLeft),
            BinaryOp::ShiftRight => Some(BitOp::ShiftRight),
            _ => None,
        };
        if let Some(bit) = bit {
            let ty = match bit {
                BitOp::ShiftLeft | BitOp::ShiftRight => bits_type(&[&a.ty], nullable),
                _ => bits_type(&[&a.ty, &b.ty], nullable),
            };
            return Ok(Expr {
                kind: ExprKind::Bit(bit, Box::new([a, b])),
                ty,
            });
        }
        let op = match op {
            BinaryOp::Add => ArithOp::Add,
            BinaryOp::Sub => ArithOp::Sub,
            BinaryOp::Mul => ArithOp::Mul,
            BinaryOp::Div => ArithOp::Div,
            BinaryOp::IntDiv => ArithOp::IntDiv,
            _ => ArithOp::Mod,
        };
        let ty = arith_type(op, &a.ty, &b.ty, self.cx);
        Ok(Expr {
            kind: ExprKind::Arith(op, Box::new([a, b])),
            ty,
        })
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        whens: &[(ast::Expr, ast::Expr)],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr, SqlError> {
        let operand = operand.map(|o| self.expr(o)).transpose()?;
        let mut bound = Vec::with_capacity(whens.len());
        for (when, then) in whens {
            bound.push((self.expr(when)?, self.expr(then)?));
        }
        if let Some(o) = &operand {
            let types = std::iter::once(&o.ty).chain(bound.iter().map(|(w, _)| &w.ty));
            let texts = match bound.len() {
                1 => None,
                _ => collate::of_texts(types, self.cx.connection, "case")?,
            };
            for (when, _) in &mut bound {
                let w = std::mem::replace(when, Expr::null());
                *when = match texts {
                    Some(kind) => Expr {
                        ty: ExprType::boolean(o.ty.nullable || w.ty.nullable),
                        kind: ExprKind::Compare {
                            op: BinaryOp::Eq,
                            kind,
                            sides: Box::new([o.clone(), w]),
                        },
                    },
                    None => self.case_equal(o.clone(), w)?,
                };
            }
        }
        let otherwise = otherwise.map(|e| self.expr(e)).transpose()?.map(Box::new);
        let types: Vec<&ExprType> = bound
            .iter()
            .map(|(_, t)| &t.ty)
            .chain(otherwise.as_ref().map(|e| &e.ty))
            .collect();
        let mut ty = collate::common_type(&types, self.cx.connection, "case")?;
        if ty.class() == Class::String {
            let values = bound.iter().map(|(_, t)| t).chain(otherwise.as_deref());
            collate::convertible(values.clone(), ty.collation())?;
            self.check_convertible(values, ty.collation())?;
        }
        ty = ty.computed();
        ty.nullable |= otherwise.is_none();
        // A branch that is compared with NULL is never taken, and MySQL does not evaluate it.
        let unknown = |e: &Expr| {
            matches!(&e.kind, ExprKind::Compare { sides, .. }
                if sides.iter().any(|side| side.ty.class() == Class::Null))
        };
        if operand.is_some() {
            bound.retain(|(when, _)| !unknown(when));
        }
        Ok(Expr {
            kind: ExprKind::Case {
                whens: bound,
                otherwise,
            },
            ty,
        })
    }

    /// `(SELECT constant)` is bound as the constant.
    pub(super) fn selected_constant(&mut self, query: &ast::Query) -> Option<Expr> {
        let ast::QueryBody::Select(s) = &query.body else {
            return None;
        };
        let plain = query.limit.is_none()
            && query.order_by.is_empty()
            && query.with.is_none()
            && query.into.is_none()
            && s.from.is_empty()
            && s.selection.is_none()
            && s.group_by.is_empty()
            && s.having.is_none();
        let [ast::SelectItem::Expr { expr, .. }] = s.items.as_slice() else {
            return None;
        };
        if !plain {
            return None;
        }
        let mut free = BlockBinder::new(self.cx, None);
        free.constants_only = true;
        let e = free.expr(expr).ok()?;
        let constant = is_constant(&e);
        let stays = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_));
        if !constant || e.any(&mut |e| stays(e)) {
            return None;
        }
        self.warnings.append(&mut free.warnings);
        Some(e)
    }

    /// Binds the comparison of `CASE a WHEN b` if one side is a document and the other one a binary
    /// string. The string becomes text unless the document is NULL, with error 3854 if it is none.
    fn case_of_binary(&mut self, a: Expr, b: Expr) -> Result<Expr, SqlError> {
        let document = if a.ty.col.is_json() { &a } else { &b };
        let known = Expr {
            ty: ExprType::boolean(false),
            kind: ExprKind::Is {
                expr: Box::new(document.clone()),
                test: IsTest::Null,
                negated: true,
            },
        };
        let text = |e: Expr| match (is_binary(&e), self.cx.funcs.find("coalesce")) {
            (true, Some((func, _))) => {
                let (chars, collation) = (e.ty.max_length(), CollationId::UTF8MB4_BIN);
                let ty = ExprType::string(chars, collation, e.ty.coercibility, e.ty.nullable);
                let kind = ExprKind::Call {
                    func,
                    args: vec![e],
                };
                Expr { kind, ty }
            }
            _ => json::document_text(e),
        };
        let (a, b) = (text(a), text(b));
        let equal = self.compare_as_is(BinaryOp::Eq, a, b, "=")?;
        Ok(Expr {
            ty: equal.ty.clone(),
            kind: ExprKind::And(vec![known, equal]),
        })
    }

    /// Binds the comparison of `CASE a WHEN b`. It compares as `a IN (b, ...)` does: a string that
    /// is no date is not refused beside a date. A constant is not converted to the type of a
    /// column.
    fn case_equal(&mut self, a: Expr, b: Expr) -> Result<Expr, SqlError> {
        let (a, b) = match a.ty.col.is_json() || b.ty.col.is_json() {
            true if a.ty.class().is_number() || b.ty.class().is_number() => {
                return self.case_of_documents(a, b);
            }
            // Beside anything else a document is compared as its text.
            true if is_binary(&a) || is_binary(&b) => return self.case_of_binary(a, b),
            true => (json::document_text(a), json::document_text(b)),
            false => (a, b),
        };
        // A DATE is compared with a TIME as its text, which is no time.
        let b = match (a.ty.class(), b.ty.class()) {
            (Class::Time, Class::Date) => {
                let (connection, nullable) = (self.cx.connection, b.ty.nullable);
                let coercibility = Coercibility::Coercible;
                let ty = ExprType::string(DATE_CHARS, connection, coercibility, nullable);
                cast_to(b, ty)
            }
            _ => b,
        };
        if !a.ty.class().is_temporal() && !b.ty.class().is_temporal() {
            if (a.ty.class(), b.ty.class()) == (Class::String, Class::String) {
                collate::comparable([&a.ty, &b.ty].into_iter(), self.cx.connection, "case")?;
            }
            let mixed = a.ty.class() != b.ty.class();
            let text = [&a, &b].iter().any(|e| e.ty.class() == Class::String);
            let mut equal = self.compare_each(BinaryOp::Eq, a, b, "=")?;
            // A text beside a DECIMAL is a double here, even if it is constant.
            if let ExprKind::Compare { kind, .. } = &mut equal.kind
                && *kind == CmpKind::Decimal
                && mixed
                && text
            {
                *kind = CmpKind::Double;
            }
            return Ok(equal);
        }
        let kind = match (a.ty.class(), b.ty.class()) {
            (Class::Time, c) if c == Class::String || c.is_temporal() => CmpKind::Time,
            // A string is compared as a string.
            (Class::String, b_class) if b_class.is_temporal() => {
                let merged =
                    collate::merge([&a.ty, &b.ty].into_iter(), self.cx.connection, "case")?;
                CmpKind::String(merged.collation)
            }
            (Class::Int, Class::Date | Class::DateTime) => CmpKind::Double,
            _ => {
                let sides = [Operand::Other; 2];
                listed_comparison(&a.ty, &b.ty, sides, self.cx.connection, "case")?
            }
        };
        let ty = ExprType::boolean(a.ty.nullable || b.ty.nullable);
        let kind = ExprKind::In {
            expr: Box::new(a),
            list: vec![(kind, b)],
            negated: false,
        };
        Ok(Expr { kind, ty })
    }

    fn collate(&mut self, e: &ast::Expr, name: &str) -> Result<Expr, SqlError> {
        let mut inner = self.expr(e)?;
        let collation = collation_named(name)?;
        let charset = match inner.ty.class() {
            Class::String => inner.ty.col.charset(),
            _ => self.cx.connection.known().charset,
        };
        if inner.ty.class() == Class::Null {
            inner.ty.col = string_type(0, collation);
        } else if charset != collation.known().charset {
            return Err(SqlError::new(
                ErrorCode::ER_COLLATION_CHARSET_MISMATCH,
                &[&collation.known().name, &charset.name],
            ));
        }
        let ty = ExprType::string(
            inner.ty.char_length(),
            collation,
            Coercibility::Explicit,
            true,
        );
        Ok(Expr {
            kind: ExprKind::Collate(Box::new(inner)),
            ty: ExprType {
                origin: TextOrigin::Computed,
                ..ty
            },
        })
    }

    fn interval(
        &mut self,
        e: &ast::Expr,
        amount: &ast::Expr,
        unit: ast::IntervalUnit,
        subtract: bool,
    ) -> Result<Expr, SqlError> {
        let (expr, amount) = (self.expr(e)?, self.expr(amount)?);
        Ok(self.moved_by(expr, amount, unit, subtract))
    }

    /// `expr ± INTERVAL amount unit`
    pub(super) fn moved_by(
        &self,
        expr: Expr,
        amount: Expr,
        unit: ast::IntervalUnit,
        subtract: bool,
    ) -> Expr {
        use ast::IntervalUnit::*;
        let micro = matches!(
            unit,
            Microsecond | SecondMicrosecond | MinuteMicrosecond | HourMicrosecond | DayMicrosecond
        );
        let date_only = matches!(unit, Day | Week | Month | Quarter | Year | YearMonth);
        let days = matches!(unit, DayHour | DayMinute | DaySecond | DayMicrosecond);
        let has_days = date_only || days;
        // A hexadecimal literal is an integer here.
        let amount_fsp = if unit == Second && !amount.ty.col.zerofill {
            amount.ty.decimal_shape().1.min(6) as u8
        } else {
            0
        };
        let fsp = |f: u8| if micro { 6 } else { f.max(amount_fsp) };
        let col = match expr.ty.class() {
            Class::Date if date_only => ColumnType::new(TypeKind::Date),
            Class::Date => ColumnType::new(TypeKind::DateTime(fsp(0))),
            Class::Time if !has_days => ColumnType::new(TypeKind::Time(fsp(expr.ty.col.fsp()))),
            Class::Time => ColumnType::new(TypeKind::DateTime(fsp(expr.ty.col.fsp()))),
            Class::DateTime => ColumnType::new(TypeKind::DateTime(fsp(expr.ty.col.fsp()))),
            _ => ColumnType::string(TypeKind::Char(29), self.cx.connection),
        };
        let ty = ExprType {
            col,
            nullable: true,
            coercibility: Coercibility::Coercible,
            origin: TextOrigin::Computed,
            item_name: Default::default(),
        };
        Expr {
            kind: ExprKind::IntervalArith {
                expr: Box::new(expr),
                amount: Box::new(amount),
                unit,
                subtract,
            },
            ty,
        }
    }

    /// Binds a call of a built-in function.
    fn call(&mut self, name: &str, args: &[&ast::Expr]) -> Result<Expr, SqlError> {
        self.call_as(name, name, args)
    }

    /// As [`Self::call`]; `shown` is the name in error messages.
    fn call_as(&mut self, name: &str, shown: &str, args: &[&ast::Expr]) -> Result<Expr, SqlError> {
        let Some((func, def)) = self.cx.funcs.find(name) else {
            return Err(SqlError::not_supported(format_args!("function {name}")));
        };
        let mut args: Vec<Expr> = args
            .iter()
            .map(|a| self.expr(a))
            .collect::<Result<_, _>>()?;
        if args.len() < usize::from(def.min_args)
            || (args.len() > usize::from(def.max_args) && def.max_args != u8::MAX)
        {
            return Err(SqlError::new(
                ErrorCode::ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT,
                &[&shown],
            ));
        }
        let infer = Infer {
            name,
            written: shown,
            connection: self.cx.connection,
            funcs: self.cx.funcs,
        };
        if wide_sets::is_converted(name, &args) {
            return wide_sets::call(func, def, &infer, args);
        }
        let compared = match (name, args.as_mut_slice()) {
            ("nullif", [a, b]) => self.convert_nullif(a, b),
            _ => None,
        };
        self.check_arguments(name, &args);
        if let ("strcmp", [a, b]) = (name, args.as_mut_slice()) {
            self.check_dates([a, b]);
        }
        if name == "isnull" {
            args = args.into_iter().map(|e| self.null_tested(e)).collect();
        }
        let mut ty = (def.infer)(&infer, &mut args)?;
        if ty.class() == Class::String {
            // The condition of IF is no part of its result.
            let parts = args.iter().skip(usize::from(name == "if"));
            self.check_convertible(parts, ty.collation())?;
        }
        if let ("nullif", [a, b]) = (name, args.as_slice()) {
            args[1] = self.nullif_equal([compared.as_ref().unwrap_or(a), b])?;
        }
        ty.origin = def.origin(ty.origin);
        if name.starts_with("json_") {
            ty = ty.with_item_name(name);
        }
        if matches!(name, "greatest" | "least") && args.iter().any(|a| a.ty.col.is_json()) {
            self.warnings.push(BlockWarning::ExtremeOfDocuments);
        }
        Ok(Expr {
            kind: ExprKind::Call { func, args },
            ty,
        })
    }

    fn function(&mut self, call: &ast::FunctionCall) -> Result<Expr, SqlError> {
        if call.stored {
            return Err(self.no_function(call));
        }
        if let Some(over) = &call.over {
            return self.window_call(call, over);
        }
        if let Some(func) = aggregate_named(&call.name, call.star) {
            return self.aggregate(func, call);
        }
        match (call.name.as_str(), call.args.as_slice()) {
            ("grouping", args) => return self.grouping(args),
            ("mod", [a, b]) => return self.binary(BinaryOp::Mod, a, b),
            (name, _) if self.cx.funcs.find(name).is_none() => return Err(self.no_function(call)),
            _ => {}
        }
        let written = String::from_utf8_lossy(call.span.of(self.cx.text));
        let shown = written.split('(').next().unwrap_or_default().trim();
        let shown = if shown.is_empty() { &*call.name } else { shown };
        let mut bound = self.call_as(&call.name, shown, &call.args.iter().collect::<Vec<_>>())?;
        self.name_arguments(&mut bound, call);
        Ok(bound)
    }

    fn default_of(&mut self, c: &ast::ColumnRef) -> Result<Expr, SqlError> {
        use nfold_catalog::ColumnDefault;
        use nfold_types::convert::store::implicit_default;
        let e = self.column(c)?;
        let none = || SqlError::new(ErrorCode::ER_NO_DEFAULT_FOR_FIELD, &[&c.name]);
        let column = self.column_behind(&e).ok_or_else(none)?;
        let value = match column.default {
            ColumnDefault::Literal(v) => v,
            ColumnDefault::Null => Value::Null,
            // The word DEFAULT alone means the current time.
            ColumnDefault::CurrentTimestamp(_) if column.nullable => Value::Null,
            ColumnDefault::CurrentTimestamp(_) => implicit_default(&column.ty),
            ColumnDefault::Expr(_) => {
                return Err(SqlError::new(ErrorCode::ER_DEFAULT_AS_VAL_GENERATED, &[]));
            }
            ColumnDefault::None if column.auto_increment => implicit_default(&e.ty.col),
            ColumnDefault::None => return Err(none()),
        };
        Ok(Expr {
            ty: ExprType {
                nullable: e.ty.nullable || matches!(value, Value::Null),
                ..e.ty
            },
            kind: ExprKind::Default(value),
        })
    }

    /// The column of a table that a bound name means, looked up through derived tables and views.
    pub(super) fn column_behind(&self, e: &Expr) -> Option<nfold_catalog::ColumnDef> {
        let (at, level) = match &e.kind {
            ExprKind::Column(at) => (at, 0),
            ExprKind::Outer { level, at } => (at, *level),
            _ => return None,
        };
        let mut block = self;
        for _ in 0..level {
            block = block.outer?;
        }
        let table = block.tables.get(usize::from(at.table))?;
        table.source.column(usize::from(at.column))
    }

    fn values_of(&mut self, c: &ast::ColumnRef) -> Result<Expr, SqlError> {
        let Some(slot) = self.values_slot else {
            return Ok(Expr::null());
        };
        let found = self.scope[0]
            .columns
            .iter()
            .position(|col| nfold_catalog::schema::eq_name(&col.name, &c.name.value));
        match found {
            Some(i) => {
                let at = |table| ColumnAt {
                    table,
                    column: i as u16,
                };
                self.name_column(at(0), ColumnAccess::Read);
                Ok(self.column_expr(at(slot)))
            }
            None => Err(SqlError::new(
                ErrorCode::ER_BAD_FIELD_ERROR,
                &[&display(c), &"field list"],
            )),
        }
    }
}

/// The value of a scalar or row subquery. A member of an ENUM or SET is returned as its text.
pub(super) fn selected(index: u16, use_as: SubqueryUse, ty: ExprType) -> Expr {
    let ty = ExprType {
        nullable: true,
        origin: TextOrigin::Cached,
        ..ty
    };
    let text = ty.col.is_enum_or_set().then(|| ty.item());
    let value = Expr {
        kind: ExprKind::Subquery { index, use_as },
        ty,
    };
    match text {
        Some(ty) => Expr::cast(value, ty),
        None => value,
    }
}

/// Whether an expression is a binary string.
fn is_binary(e: &Expr) -> bool {
    e.ty.class() == Class::String && e.ty.col.charset().is_binary()
}
