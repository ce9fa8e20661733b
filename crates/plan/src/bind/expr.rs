//! Expressions: operators, functions, casts, with the types that MySQL gives them.

use nfold_sql::ast::{self, BinaryOp, InList, Literal, TypeKind as AstKind, TypeSpec, UnaryOp};
use nfold_types::collation::{Collation, CollationId};
use nfold_types::{ColumnType, Decimal, ErrorCode, SqlError, TextSize, TypeKind, Value};

use super::names::display;
use super::{AGGREGATES, BlockBinder, ParamType, hex_type};
use crate::collate;
use crate::expr::{
    ArithOp, BitOp, Class, CmpKind, Coercibility, ColumnAt, Expr, ExprKind, ExprType, SubqueryUse,
    string_type,
};
use crate::func::Infer;
use crate::mode::SqlMode;
use crate::query::{AggFunc, Aggregate, OrderKey};

/// Whether an expression is a constant of the statement: nothing of a row is in it.
pub(crate) fn is_constant(e: &Expr) -> bool {
    !e.any(&mut |e| {
        matches!(
            e.kind,
            ExprKind::Column(_)
                | ExprKind::Outer { .. }
                | ExprKind::Subquery { .. }
                | ExprKind::AssignUserVar(..)
        )
    })
}

impl BlockBinder<'_> {
    /// Binds a scalar expression.
    pub(crate) fn expr(&mut self, e: &ast::Expr) -> Result<Expr, SqlError> {
        use ast::Expr as A;
        match e {
            A::Literal(lit) => self.literal(lit),
            A::Param(n) => self.param(*n),
            A::Column(c) => self.column(c),
            A::UserVar(name) => {
                let col = self.cx.info.user_var_type(&name.to_lowercase());
                let ty = ExprType {
                    coercibility: Coercibility::Implicit,
                    ..ExprType::new(col, true)
                };
                Ok(Expr {
                    kind: ExprKind::UserVar(name.to_lowercase().into()),
                    ty,
                })
            }
            A::AssignUserVar { name, value } => {
                let value = self.expr(value)?;
                let ty = value.ty.clone();
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
                let sides = Box::new([self.expr(a)?, self.expr(b)?]);
                let nullable = sides.iter().any(|s| s.ty.nullable);
                Ok(Expr {
                    kind: ExprKind::Xor(sides),
                    ty: ExprType::boolean(nullable),
                })
            }
            A::Not(inner) => {
                let inner = self.expr(inner)?;
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
                let expr = Box::new(self.expr(expr)?);
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
                let (index, _) = self.subquery(query)?;
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
                let (index, types) = self.subquery(query)?;
                let [ty] = types.as_slice() else {
                    return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&1]));
                };
                let ty = ExprType {
                    nullable: true,
                    ..ty.clone()
                };
                Ok(Expr {
                    kind: ExprKind::Subquery {
                        index,
                        use_as: SubqueryUse::Scalar,
                    },
                    ty,
                })
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
                    return Err(SqlError::not_supported("CAST(... AS ... ARRAY)"));
                }
                let inner = self.expr(expr)?;
                self.cast(inner, ty)
            }
            A::ConvertUsing { expr, charset } => {
                let inner = self.expr(expr)?;
                let collation = charset_collation(charset)?;
                let ty = ExprType::string(
                    inner.ty.char_length(),
                    collation,
                    Coercibility::Implicit,
                    true,
                );
                Ok(Expr {
                    kind: ExprKind::Cast(Box::new(inner)),
                    ty,
                })
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
                    ty: ExprType::bigint(true),
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
                let types: Vec<&ExprType> = std::iter::once(&expr.ty)
                    .chain(what.as_ref().map(|w| &w.ty))
                    .collect();
                let merged = collate::merge(types.iter().copied(), self.cx.connection, "trim")?;
                let ty = ExprType::string(
                    expr.ty.char_length(),
                    merged.collation,
                    merged.coercibility,
                    types.iter().any(|t| t.nullable),
                );
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
                        Ok(Expr {
                            kind: ExprKind::Cast(Box::new(e)),
                            ty,
                        })
                    }
                }
            }
            A::Function(call) => self.function(call),
            A::Row(_) => Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&1])),
            A::Default(Some(c)) => self.default_of(c),
            A::Default(None) => Err(SqlError::not_supported("DEFAULT in an expression")),
            A::Values(c) => self.values_of(c),
            A::MemberOf(..) => Err(SqlError::not_supported("MEMBER OF")),
            A::Match { .. } => Err(SqlError::not_supported("MATCH ... AGAINST")),
        }
    }

    fn literal(&self, lit: &Literal) -> Result<Expr, SqlError> {
        Ok(match lit {
            Literal::Null => Expr::null(),
            Literal::Bool(b) => Expr::constant(Value::Int(i64::from(*b)), ExprType::boolean(false)),
            Literal::Int(v) => match i64::try_from(*v) {
                Ok(v) => Expr::int(v),
                Err(_) => Expr::constant(Value::UInt(*v), ExprType::ubigint(false)),
            },
            Literal::Decimal(text) => {
                let d = Decimal::parse_prefix(text.as_bytes()).value;
                let scale = u32::from(d.scale());
                Expr::constant(
                    Value::Decimal(d),
                    ExprType::decimal(d.int_digits().max(1) + scale, scale, false),
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
                Expr::constant(Value::Double(v), ExprType::double(false))
            }
            Literal::String(s) => {
                let collation = match &s.charset {
                    Some(name) => charset_collation(name)?,
                    None => self.cx.connection,
                };
                let chars = collation.known().char_len(&s.bytes) as u64;
                let ty = ExprType::string(chars, collation, Coercibility::Coercible, false);
                Expr::constant(Value::Bytes(s.bytes.clone()), ty)
            }
            Literal::Hex(b) | Literal::Bit(b) => {
                Expr::constant(Value::Bytes(b.clone()), hex_type(b.len() as u64))
            }
            Literal::Temporal { kind, text } => {
                let ty = ExprType::string(
                    text.len() as u64,
                    self.cx.connection,
                    Coercibility::Coercible,
                    false,
                );
                let fsp = text
                    .iter()
                    .rposition(|&b| b == b'.')
                    .map_or(0, |p| (text.len() - p - 1).min(6)) as u8;
                let target = match kind {
                    ast::TemporalKind::Date => TypeKind::Date,
                    ast::TemporalKind::Time => TypeKind::Time(fsp),
                    ast::TemporalKind::Timestamp => TypeKind::DateTime(fsp),
                };
                let inner = Expr::constant(Value::Bytes(text.clone()), ty);
                Expr {
                    kind: ExprKind::Cast(Box::new(inner)),
                    ty: ExprType::new(ColumnType::new(target), true),
                }
            }
        })
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
        // A minus sign belongs to its literal.
        if let (UnaryOp::Minus, ast::Expr::Literal(Literal::Int(v))) = (op, operand)
            && *v <= i64::MIN.unsigned_abs()
        {
            return Ok(Expr::int((*v as i64).wrapping_neg()));
        }
        let inner = self.expr(operand)?;
        match op {
            UnaryOp::Plus => Ok(inner),
            UnaryOp::Minus => {
                let ty = match inner.ty.class() {
                    Class::Int => ExprType::bigint(inner.ty.nullable),
                    Class::Decimal => {
                        let (p, s) = inner.ty.decimal_shape();
                        ExprType::decimal(p, s, inner.ty.nullable)
                    }
                    c if c.is_temporal() => numeric_of_temporal(&inner.ty),
                    _ => ExprType::double(inner.ty.nullable),
                };
                Ok(Expr {
                    kind: ExprKind::Neg(Box::new(inner)),
                    ty,
                })
            }
            UnaryOp::BitNot => {
                let ty = ExprType::ubigint(inner.ty.nullable);
                Ok(Expr {
                    kind: ExprKind::BitNot(Box::new(inner)),
                    ty,
                })
            }
            UnaryOp::Binary => {
                self.deprecated.push(("BINARY expr", "CAST"));
                let ty = ExprType::string(
                    inner.ty.char_length(),
                    CollationId::BINARY,
                    Coercibility::Implicit,
                    inner.ty.nullable,
                );
                Ok(Expr {
                    kind: ExprKind::Cast(Box::new(inner)),
                    ty,
                })
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
                return self.compare_rows(op, a, b);
            }
            let (a, b) = (self.expr(left)?, self.expr(right)?);
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
            return Ok(Expr {
                kind: ExprKind::Bit(bit, Box::new([a, b])),
                ty: ExprType::ubigint(nullable),
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
        let ty = arith_type(op, &a.ty, &b.ty, self.cx.mode);
        Ok(Expr {
            kind: ExprKind::Arith(op, Box::new([a, b])),
            ty,
        })
    }

    /// `a op b`, with the comparison that MySQL would choose.
    pub(crate) fn compare(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Result<Expr, SqlError> {
        let constant = [is_constant(&a), is_constant(&b)];
        let kind = collate::comparison(&a.ty, &b.ty, constant, self.cx.connection, op.symbol())?;
        let nullable = op != BinaryOp::NullSafeEq && (a.ty.nullable || b.ty.nullable);
        Ok(Expr {
            kind: ExprKind::Compare {
                op,
                kind,
                sides: Box::new([a, b]),
            },
            ty: ExprType::boolean(nullable),
        })
    }

    fn compare_rows(
        &mut self,
        op: BinaryOp,
        a: &[ast::Expr],
        b: &[ast::Expr],
    ) -> Result<Expr, SqlError> {
        if a.len() != b.len() {
            return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&a.len()]));
        }
        let left: Vec<Expr> = a.iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
        let right: Vec<Expr> = b.iter().map(|e| self.expr(e)).collect::<Result<_, _>>()?;
        let pairs: Vec<(Expr, Expr)> = left.into_iter().zip(right).collect();
        if op == BinaryOp::Eq {
            let list = pairs
                .into_iter()
                .map(|(a, b)| self.compare(op, a, b))
                .collect::<Result<Vec<_>, _>>()?;
            return Ok(and(list));
        }
        let kinds = pairs
            .iter()
            .map(|(a, b)| {
                let constant = [is_constant(a), is_constant(b)];
                collate::comparison(&a.ty, &b.ty, constant, self.cx.connection, op.symbol())
            })
            .collect::<Result<_, _>>()?;
        let (left, right) = pairs.into_iter().unzip();
        Ok(Expr {
            kind: ExprKind::CompareRows {
                op,
                kinds,
                left,
                right,
            },
            ty: ExprType::boolean(true),
        })
    }

    fn logical(
        &mut self,
        list: &[ast::Expr],
        make: fn(Vec<Expr>) -> ExprKind,
    ) -> Result<Expr, SqlError> {
        let list: Vec<Expr> = list
            .iter()
            .map(|e| self.expr(e))
            .collect::<Result<_, _>>()?;
        let nullable = list.iter().any(|e| e.ty.nullable);
        Ok(Expr {
            kind: make(list),
            ty: ExprType::boolean(nullable),
        })
    }

    fn between(
        &mut self,
        e: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let parts = Box::new([self.expr(e)?, self.expr(low)?, self.expr(high)?]);
        let kind = |b: &Expr| {
            let constant = [is_constant(&parts[0]), is_constant(b)];
            collate::comparison(&parts[0].ty, &b.ty, constant, self.cx.connection, "between")
        };
        let kinds = [kind(&parts[1])?, kind(&parts[2])?];
        let nullable = parts.iter().any(|p| p.ty.nullable);
        Ok(Expr {
            kind: ExprKind::Between {
                parts,
                kinds,
                negated,
            },
            ty: ExprType::boolean(nullable),
        })
    }

    fn in_list(&mut self, e: &ast::Expr, list: &InList, negated: bool) -> Result<Expr, SqlError> {
        let left: Vec<Expr> = match e {
            ast::Expr::Row(members) => members
                .iter()
                .map(|m| self.expr(m))
                .collect::<Result<_, _>>()?,
            single => vec![self.expr(single)?],
        };
        match list {
            InList::ListParam(n) => {
                let Some(ParamType::List { members, width, .. }) = self.cx.params.get(*n as usize)
                else {
                    return Err(SqlError::not_supported("this list"));
                };
                if *width != left.len() {
                    return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&left.len()]));
                }
                let kinds = left
                    .iter()
                    .map(|l| list_kind(l, members, left.len() > 1, self.cx.connection))
                    .collect::<Result<_, _>>()?;
                let ty = ExprType::boolean(true);
                Ok(Expr {
                    kind: ExprKind::InParam {
                        left,
                        kinds,
                        list: *n,
                        negated,
                    },
                    ty,
                })
            }
            InList::Exprs(members) => {
                let kind_of = |b: &mut Self, l: &Expr, m: &Expr| {
                    collate::comparison(
                        &l.ty,
                        &m.ty,
                        [is_constant(l), is_constant(m)],
                        b.cx.connection,
                        "in",
                    )
                };
                if let [left] = left.as_slice() {
                    let mut list = Vec::with_capacity(members.len());
                    for m in members {
                        let m = self.expr(m)?;
                        list.push((kind_of(self, left, &m)?, m));
                    }
                    let nullable = left.ty.nullable || list.iter().any(|(_, m)| m.ty.nullable);
                    let kind = ExprKind::In {
                        expr: Box::new(left.clone()),
                        list,
                        negated,
                    };
                    return Ok(Expr {
                        kind,
                        ty: ExprType::boolean(nullable),
                    });
                }
                let mut rows = Vec::with_capacity(members.len());
                for m in members {
                    let ast::Expr::Row(row) = m else {
                        return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&left.len()]));
                    };
                    if row.len() != left.len() {
                        return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&left.len()]));
                    }
                    let mut bound = Vec::with_capacity(row.len());
                    for (l, m) in left.iter().zip(row) {
                        let m = self.expr(m)?;
                        bound.push((kind_of(self, l, &m)?, m));
                    }
                    rows.push(bound);
                }
                Ok(Expr {
                    kind: ExprKind::InRows {
                        left,
                        rows,
                        negated,
                    },
                    ty: ExprType::boolean(true),
                })
            }
        }
    }

    fn in_subquery(
        &mut self,
        e: &ast::Expr,
        query: &ast::Query,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let left: Vec<Expr> = match e {
            ast::Expr::Row(members) => members
                .iter()
                .map(|m| self.expr(m))
                .collect::<Result<_, _>>()?,
            single => vec![self.expr(single)?],
        };
        if query.limit.is_some() {
            return Err(SqlError::not_supported("LIMIT & IN/ALL/ANY/SOME subquery"));
        }
        let (index, types) = self.subquery(query)?;
        if types.len() != left.len() {
            return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&left.len()]));
        }
        let kinds = left
            .iter()
            .zip(&types)
            .map(|(l, t)| {
                collate::comparison(&l.ty, t, [is_constant(l), false], self.cx.connection, "in")
            })
            .collect::<Result<_, _>>()?;
        let use_as = SubqueryUse::In {
            left,
            kinds,
            negated,
        };
        Ok(Expr {
            kind: ExprKind::Subquery { index, use_as },
            ty: ExprType::boolean(true),
        })
    }

    fn quantified(
        &mut self,
        op: BinaryOp,
        e: &ast::Expr,
        all: bool,
        query: &ast::Query,
    ) -> Result<Expr, SqlError> {
        let left = self.expr(e)?;
        let (index, types) = self.subquery(query)?;
        let [ty] = types.as_slice() else {
            return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&1]));
        };
        let kind = collate::comparison(
            &left.ty,
            ty,
            [is_constant(&left), false],
            self.cx.connection,
            op.symbol(),
        )?;
        let use_as = SubqueryUse::Quantified {
            left: Box::new(left),
            op,
            kind,
            all,
        };
        Ok(Expr {
            kind: ExprKind::Subquery { index, use_as },
            ty: ExprType::boolean(true),
        })
    }

    fn like(
        &mut self,
        e: &ast::Expr,
        p: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let (expr, pattern) = (self.expr(e)?, self.expr(p)?);
        let escape = escape.map(|e| self.expr(e)).transpose()?.map(Box::new);
        let merged = collate::merge(
            [&expr.ty, &pattern.ty].into_iter(),
            self.cx.connection,
            "like",
        )?;
        let ty = ExprType::boolean(expr.ty.nullable || pattern.ty.nullable);
        let collation = if merged.coercibility == Coercibility::Ignorable {
            self.cx.connection
        } else {
            merged.collation
        };
        Ok(Expr {
            kind: ExprKind::Like {
                expr: Box::new(expr),
                pattern: Box::new(pattern),
                escape,
                collation,
                negated,
            },
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
            let mut when = self.expr(when)?;
            if let Some(o) = &operand {
                when = self.compare(BinaryOp::Eq, o.clone(), when)?;
            }
            bound.push((when, self.expr(then)?));
        }
        let otherwise = otherwise.map(|e| self.expr(e)).transpose()?.map(Box::new);
        let types: Vec<&ExprType> = bound
            .iter()
            .map(|(_, t)| &t.ty)
            .chain(otherwise.as_ref().map(|e| &e.ty))
            .collect();
        let mut ty = collate::common_type(&types, self.cx.connection, "case")?;
        ty.nullable |= otherwise.is_none();
        Ok(Expr {
            kind: ExprKind::Case {
                whens: bound,
                otherwise,
            },
            ty,
        })
    }

    fn cast(&mut self, inner: Expr, spec: &TypeSpec) -> Result<Expr, SqlError> {
        let len = || spec.length.map(|l| l.min(u64::from(u32::MAX)));
        let plain = |kind: TypeKind, nullable: bool| ExprType::new(ColumnType::new(kind), nullable);
        let fsp = spec.length.unwrap_or(0).min(6) as u8;
        let nullable = inner.ty.nullable;
        let ty = match spec.kind {
            AstKind::Signed | AstKind::BigInt | AstKind::Int if !spec.unsigned => {
                ExprType::bigint(nullable)
            }
            AstKind::Unsigned | AstKind::Signed | AstKind::BigInt | AstKind::Int => {
                ExprType::ubigint(nullable)
            }
            AstKind::Char | AstKind::VarChar => {
                let collation = match (&spec.charset, &spec.collation) {
                    (_, Some(name)) => collation_named(name)?,
                    (Some(name), None) => charset_collation(name)?,
                    (None, None) => self.cx.connection,
                };
                let collation = if spec.binary {
                    collation.known().charset.binary_collation
                } else {
                    collation
                };
                ExprType::string(
                    len().unwrap_or(inner.ty.char_length()),
                    collation,
                    Coercibility::Coercible,
                    nullable,
                )
            }
            AstKind::Binary | AstKind::VarBinary => {
                let collation = CollationId::BINARY;
                match len() {
                    Some(n) => ExprType {
                        col: ColumnType::string(TypeKind::Binary(n as u32), collation),
                        nullable,
                        coercibility: Coercibility::Coercible,
                    },
                    None => ExprType::string(
                        inner.ty.char_length() * 4,
                        collation,
                        Coercibility::Coercible,
                        nullable,
                    ),
                }
            }
            AstKind::Decimal => ExprType::decimal(
                len().unwrap_or(10) as u32,
                spec.decimals.unwrap_or(0),
                nullable,
            ),
            AstKind::Double => ExprType::double(nullable),
            AstKind::Float => plain(
                if spec.length.unwrap_or(0) > 24 {
                    TypeKind::Double
                } else {
                    TypeKind::Float
                },
                nullable,
            ),
            AstKind::Date => plain(TypeKind::Date, true),
            AstKind::DateTime | AstKind::Timestamp => plain(TypeKind::DateTime(fsp), true),
            AstKind::Time => plain(TypeKind::Time(fsp), true),
            AstKind::Year => plain(TypeKind::Year, true),
            _ => return Err(SqlError::not_supported("CAST to this type")),
        };
        Ok(Expr {
            kind: ExprKind::Cast(Box::new(inner)),
            ty,
        })
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
        let mut ty = ExprType::string(
            inner.ty.char_length(),
            collation,
            Coercibility::Explicit,
            inner.ty.nullable,
        );
        if inner.ty.class() == Class::String && !inner.ty.col.is_enum_or_set() {
            ty.col = ColumnType {
                collation,
                ..inner.ty.col.clone()
            };
        }
        Ok(Expr {
            kind: ExprKind::Collate(Box::new(inner)),
            ty,
        })
    }

    fn interval(
        &mut self,
        e: &ast::Expr,
        amount: &ast::Expr,
        unit: ast::IntervalUnit,
        subtract: bool,
    ) -> Result<Expr, SqlError> {
        use ast::IntervalUnit::*;
        let (expr, amount) = (self.expr(e)?, self.expr(amount)?);
        let micro = matches!(
            unit,
            Microsecond | SecondMicrosecond | MinuteMicrosecond | HourMicrosecond | DayMicrosecond
        );
        let date_only = matches!(unit, Day | Week | Month | Quarter | Year | YearMonth);
        let amount_fsp = if unit == Second {
            amount.ty.decimal_shape().1.min(6) as u8
        } else {
            0
        };
        let fsp = |f: u8| if micro { 6 } else { f.max(amount_fsp) };
        let col = match expr.ty.class() {
            Class::Date if date_only => ColumnType::new(TypeKind::Date),
            Class::Date => ColumnType::new(TypeKind::DateTime(fsp(0))),
            Class::Time if !date_only => ColumnType::new(TypeKind::Time(fsp(expr.ty.col.fsp()))),
            Class::Time => ColumnType::new(TypeKind::DateTime(fsp(expr.ty.col.fsp()))),
            Class::DateTime => ColumnType::new(TypeKind::DateTime(fsp(expr.ty.col.fsp()))),
            _ => ColumnType::string(TypeKind::Char(29), self.cx.connection),
        };
        let ty = ExprType {
            col,
            nullable: true,
            coercibility: Coercibility::Coercible,
        };
        Ok(Expr {
            kind: ExprKind::IntervalArith {
                expr: Box::new(expr),
                amount: Box::new(amount),
                unit,
                subtract,
            },
            ty,
        })
    }

    /// A built-in function of the registry.
    fn call(&mut self, name: &str, args: &[&ast::Expr]) -> Result<Expr, SqlError> {
        self.call_as(name, name, args)
    }

    /// A built-in function, with its name as error messages show it.
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
            connection: self.cx.connection,
        };
        let ty = (def.infer)(&infer, &mut args)?;
        Ok(Expr {
            kind: ExprKind::Call { func, args },
            ty,
        })
    }

    fn function(&mut self, call: &ast::FunctionCall) -> Result<Expr, SqlError> {
        if call.over.is_some() {
            return Err(SqlError::not_supported("window functions"));
        }
        if let Some(func) = aggregate_named(&call.name, call.star) {
            return self.aggregate(func, call);
        }
        if let ("mod", None, [a, b]) = (call.name.as_str(), &call.schema, call.args.as_slice()) {
            return self.binary(BinaryOp::Mod, a, b);
        }
        if self.cx.funcs.find(&call.name).is_none() {
            let schema = call
                .schema
                .as_ref()
                .map(|s| s.value.as_str())
                .or(self.cx.db);
            let name = match schema {
                Some(db) => format!("{db}.{}", call.name),
                None => return Err(SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[])),
            };
            return Err(SqlError::new(
                ErrorCode::ER_SP_DOES_NOT_EXIST,
                &[&"FUNCTION", &name],
            ));
        }
        let written = String::from_utf8_lossy(call.span.of(self.cx.text));
        let shown = written.split('(').next().unwrap_or_default().trim();
        let shown = if shown.is_empty() { &*call.name } else { shown };
        self.call_as(&call.name, shown, &call.args.iter().collect::<Vec<_>>())
    }

    fn aggregate(&mut self, func: AggFunc, call: &ast::FunctionCall) -> Result<Expr, SqlError> {
        if !self.aggregates_allowed || self.in_aggregate {
            return Err(SqlError::new(ErrorCode::ER_INVALID_GROUP_FUNC_USE, &[]));
        }
        let wanted = matches!(
            func,
            AggFunc::CountStar | AggFunc::GroupConcat | AggFunc::Count
        );
        if call.args.len() != 1 && !wanted || (func == AggFunc::Count && call.args.is_empty()) {
            return Err(SqlError::new(
                ErrorCode::ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT,
                &[&call.name],
            ));
        }
        self.in_aggregate = true;
        let args = call
            .args
            .iter()
            .map(|a| self.expr(a))
            .collect::<Result<Vec<_>, _>>();
        let order = call
            .order_by
            .iter()
            .map(|o| {
                Ok(OrderKey {
                    expr: self.expr(&o.expr)?,
                    desc: o.descending,
                })
            })
            .collect::<Result<Vec<_>, SqlError>>();
        self.in_aggregate = false;
        let (args, order) = (args?, order?);
        let ty = aggregate_type(func, &args, self.cx.connection, &call.name)?;
        let separator = call.separator.clone().unwrap_or_else(|| b",".to_vec());
        let agg = Aggregate {
            func,
            args,
            distinct: call.distinct,
            order,
            separator,
            ty: ty.clone(),
        };
        let place = self
            .aggregates
            .iter()
            .position(|a| *a == agg)
            .unwrap_or_else(|| {
                self.aggregates.push(agg);
                self.aggregates.len() - 1
            });
        Ok(Expr {
            kind: ExprKind::Column(ColumnAt {
                table: AGGREGATES,
                column: place as u16,
            }),
            ty,
        })
    }

    fn default_of(&mut self, c: &ast::ColumnRef) -> Result<Expr, SqlError> {
        use nfold_catalog::ColumnDefault;
        let e = self.column(c)?;
        let Some(at) = e.as_column() else {
            return Err(SqlError::not_supported("DEFAULT of this column"));
        };
        let crate::query::TableSource::Table(table) = &self.tables[usize::from(at.table)].source
        else {
            return Err(SqlError::not_supported("DEFAULT of a derived column"));
        };
        let kind = match &table.columns[usize::from(at.column)].default {
            ColumnDefault::Null => ExprKind::Default(Value::Null),
            ColumnDefault::Literal(v) => ExprKind::Default(v.clone()),
            ColumnDefault::CurrentTimestamp(fsp) => ExprKind::DefaultNow(*fsp),
            ColumnDefault::None => {
                return Err(SqlError::new(
                    ErrorCode::ER_NO_DEFAULT_FOR_FIELD,
                    &[&display(c)],
                ));
            }
        };
        Ok(Expr {
            kind,
            ty: ExprType {
                nullable: true,
                ..e.ty
            },
        })
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
            Some(i) => Ok(self.column_expr(ColumnAt {
                table: slot,
                column: i as u16,
            })),
            None => Err(SqlError::new(
                ErrorCode::ER_BAD_FIELD_ERROR,
                &[&display(c), &"field list"],
            )),
        }
    }
}

/// Conditions put together with AND; a single one stays as it is.
pub(crate) fn and(mut list: Vec<Expr>) -> Expr {
    if list.len() == 1
        && let Some(one) = list.pop()
    {
        return one;
    }
    let nullable = list.iter().any(|e| e.ty.nullable);
    Expr {
        kind: ExprKind::And(list),
        ty: ExprType::boolean(nullable),
    }
}

/// How an operand is compared with the members of a list. Members of several kinds are compared one by one, each in its own way; of a
/// list of rows it is not known which kinds stand in which column, so the one is taken that suits the operand.
fn list_kind(
    left: &Expr,
    members: &[ExprType],
    rows: bool,
    connection: CollationId,
) -> Result<CmpKind, SqlError> {
    let mut kinds = Vec::new();
    for m in members.iter().filter(|m| m.class() != Class::Null) {
        match collate::comparison(&left.ty, m, [false, true], connection, "in") {
            Ok(kind) => kinds.push(kind),
            Err(e) if !rows => return Err(e),
            Err(_) => {}
        }
    }
    let own = |k: &CmpKind| match left.ty.class() {
        Class::Int => *k == CmpKind::Int,
        Class::Decimal => *k == CmpKind::Decimal,
        Class::String => matches!(k, CmpKind::String(_)),
        Class::Date | Class::DateTime => *k == CmpKind::DateTime,
        Class::Time => *k == CmpKind::Time,
        _ => false,
    };
    match kinds.as_slice() {
        [] => Ok(CmpKind::Int),
        [first, rest @ ..] if rest.iter().all(|k| k == first) => Ok(*first),
        all if rows => Ok(all.iter().copied().find(own).unwrap_or(CmpKind::Double)),
        _ => Ok(CmpKind::Double),
    }
}

fn numeric_of_temporal(ty: &ExprType) -> ExprType {
    let (p, s) = ty.decimal_shape();
    if s == 0 {
        ExprType::bigint(ty.nullable)
    } else {
        ExprType::decimal(p, s, ty.nullable)
    }
}

/// Type of an arithmetic operator (manual, "Arithmetic Operators").
fn arith_type(op: ArithOp, a: &ExprType, b: &ExprType, mode: SqlMode) -> ExprType {
    let numeric = |t: &ExprType| {
        if t.class().is_temporal() {
            numeric_of_temporal(t)
        } else {
            t.clone()
        }
    };
    let (a, b) = (numeric(a), numeric(b));
    let zero = matches!(op, ArithOp::Div | ArithOp::IntDiv | ArithOp::Mod);
    let nullable = zero || a.nullable || b.nullable;
    let unsigned = a.col.unsigned
        || b.col.unsigned
        || [&a, &b]
            .iter()
            .any(|t| matches!(t.col.kind, TypeKind::Bit(_) | TypeKind::Year));
    let hex = |t: &ExprType| t.col.zerofill && matches!(t.col.kind, TypeKind::VarBinary(_));
    let class = |t: &ExprType| if hex(t) { Class::Int } else { t.class() };
    let is = |c: Class| class(&a) == c || class(&b) == c;
    if op == ArithOp::IntDiv {
        return if unsigned {
            ExprType::ubigint(nullable)
        } else {
            ExprType::bigint(nullable)
        };
    }
    if is(Class::Double) || is(Class::String) || is(Class::Null) {
        return ExprType::double(nullable);
    }
    let ints = [&a, &b]
        .iter()
        .all(|t| matches!(class(t), Class::Int | Class::Null));
    if ints && op != ArithOp::Div {
        if class(&a) == Class::Null && class(&b) == Class::Null {
            return ExprType::double(true);
        }
        let unsigned = match op {
            ArithOp::Sub if mode.has(SqlMode::NO_UNSIGNED_SUBTRACTION) => false,
            ArithOp::Mod => a.col.unsigned,
            _ => unsigned,
        };
        return if unsigned {
            ExprType::ubigint(nullable)
        } else {
            ExprType::bigint(nullable)
        };
    }
    let ((pa, sa), (pb, sb)) = (a.decimal_shape(), b.decimal_shape());
    let (p, s) = match op {
        ArithOp::Add | ArithOp::Sub => {
            let s = sa.max(sb);
            ((pa - sa.min(pa)).max(pb - sb.min(pb)) + s + 1, s)
        }
        ArithOp::Mul => (pa + pb, (sa + sb).min(30)),
        ArithOp::Div => (pa + sb + 4, (sa + 4).min(30)),
        _ => (
            (pa - sa.min(pa)).max(pb - sb.min(pb)) + sa.max(sb),
            sa.max(sb),
        ),
    };
    let mut ty = ExprType::decimal(p, s, nullable);
    ty.col.unsigned = a.col.unsigned && b.col.unsigned;
    ty
}

fn aggregate_named(name: &str, star: bool) -> Option<AggFunc> {
    Some(match name {
        "count" if star => AggFunc::CountStar,
        "count" => AggFunc::Count,
        "sum" => AggFunc::Sum,
        "avg" => AggFunc::Avg,
        "min" => AggFunc::Min,
        "max" => AggFunc::Max,
        "bit_and" => AggFunc::BitAnd,
        "bit_or" => AggFunc::BitOr,
        "bit_xor" => AggFunc::BitXor,
        "std" | "stddev" | "stddev_pop" => AggFunc::StdPop,
        "stddev_samp" => AggFunc::StdSamp,
        "variance" | "var_pop" => AggFunc::VarPop,
        "var_samp" => AggFunc::VarSamp,
        "group_concat" => AggFunc::GroupConcat,
        "any_value" => AggFunc::Any,
        _ => return None,
    })
}

fn aggregate_type(
    func: AggFunc,
    args: &[Expr],
    connection: CollationId,
    name: &str,
) -> Result<ExprType, SqlError> {
    Ok(match func {
        AggFunc::CountStar | AggFunc::Count => ExprType::bigint(false),
        AggFunc::BitAnd | AggFunc::BitOr | AggFunc::BitXor => ExprType::ubigint(false),
        AggFunc::StdPop | AggFunc::StdSamp | AggFunc::VarPop | AggFunc::VarSamp => {
            ExprType::double(true)
        }
        AggFunc::Sum | AggFunc::Avg => {
            let ty = &args[0].ty;
            match ty.class() {
                Class::Double | Class::String | Class::Null => ExprType::double(true),
                _ => {
                    let (p, s) = ty.decimal_shape();
                    let (p, s) = if func == AggFunc::Sum {
                        (p + 22, s)
                    } else {
                        (p + 4, (s + 4).min(30))
                    };
                    ExprType::decimal(p, s, true)
                }
            }
        }
        AggFunc::Min | AggFunc::Max | AggFunc::Any => {
            let mut ty = ExprType {
                nullable: true,
                ..args[0].ty.clone()
            };
            if ty.col.is_enum_or_set() && func != AggFunc::Any {
                ty.col = string_type(ty.char_length(), ty.col.collation);
            }
            ty
        }
        AggFunc::GroupConcat => {
            let merged = collate::merge(args.iter().map(|a| &a.ty), connection, name)?;
            let collation = if merged.coercibility >= Coercibility::Numeric {
                connection
            } else {
                merged.collation
            };
            let size = if collation == CollationId::BINARY {
                TypeKind::Blob(TextSize::Long)
            } else {
                TypeKind::Text(TextSize::Long)
            };
            ExprType {
                col: ColumnType::string(size, collation),
                nullable: true,
                coercibility: merged.coercibility,
            }
        }
    })
}

/// The default collation of a character set by name; error 1115.
pub(crate) fn charset_collation(name: &str) -> Result<CollationId, SqlError> {
    nfold_types::charset::Charset::by_name(name)
        .map(|c| c.default_collation)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_CHARACTER_SET, &[&name]))
}

fn collation_named(name: &str) -> Result<CollationId, SqlError> {
    Collation::by_name(name)
        .map(|c| c.id)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_COLLATION, &[&name]))
}

/// For SET and SHOW: the type of an expression that stands alone.
pub fn bind_type(e: &Expr) -> &ColumnType {
    &e.ty.col
}
