//! Derives from a condition the values that it allows for one column of one table.

use std::sync::Arc;

use nfold_sql::ast::{BinaryOp, IsTest};
use nfold_types::{ColumnType, TypeKind};

use super::joins::slots_of;
use crate::logical::expr::{
    ArrayElements, Class, CmpKind, ColumnAt, Expr, ExprKind, SubqueryUse, is_constant,
};
use crate::physical::{Block, PointPart, RangePart};

/// The number of elements that the planner expects in a document that it does not know.
const UNKNOWN_ELEMENTS: usize = 4;

/// The values that a condition allows for a column.
#[allow(clippy::large_enum_variant)] // few of them, for the time of planning
#[derive(Debug, Clone)]
pub(crate) enum ColumnValues {
    /// A list of values. `count` is the estimated length. `exact`: the condition holds for these
    /// values alone.
    Points {
        part: PointPart,
        count: usize,
    },
    Range(RangePart),
    /// A union of ranges and single values.
    Ranges(Vec<RangePart>),
}

/// A condition that restricts one column.
#[derive(Debug, Clone)]
pub(crate) struct OnColumn {
    pub column: usize,
    pub values: ColumnValues,
    /// Whether the condition holds for every row found by these values, if they convert to the
    /// column's type exactly. Then it need not be tested again.
    pub implied: bool,
}

/// Whether an index over a column of type `ty` can find values under this comparison.
fn comparable(ty: &ColumnType, kind: CmpKind) -> bool {
    match (Class::of(ty), kind) {
        (_, _) if matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)) => false,
        (Class::Int | Class::Decimal, CmpKind::Int | CmpKind::Decimal | CmpKind::Double) => true,
        (Class::Double, CmpKind::Int | CmpKind::Decimal | CmpKind::Double) => true,
        (Class::String, CmpKind::String(collation)) => collation == ty.collation,
        (Class::Date | Class::DateTime, CmpKind::DateTime) => true,
        (Class::Time, CmpKind::Time) => true,
        _ => false,
    }
}

fn flip(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

/// Reads conditions on the columns of slot `t`.
pub(crate) struct Reader<'r> {
    pub block: &'r Block,
    pub t: usize,
    pub list_count: &'r dyn Fn(u32) -> usize,
}

impl Reader<'_> {
    fn own(&self, e: &Expr) -> Option<usize> {
        let ColumnAt { table, column } = e.as_column()?;
        (usize::from(table) == self.t).then_some(usize::from(column))
    }

    /// Whether an expression does not read slot `t`.
    fn foreign(&self, e: &Expr) -> bool {
        slots_of(e, self.block) >> self.t & 1 == 0
            && !e.any(&mut |e| {
                matches!(
                    e.kind,
                    ExprKind::Subquery { .. } | ExprKind::AssignUserVar(..)
                )
            })
    }

    /// The restriction that a condition puts on one column, if an index can use it.
    pub fn read(&self, c: &Expr) -> Option<OnColumn> {
        match &c.kind {
            ExprKind::Compare { op, kind, sides } => {
                let (column, op, value) = match (self.own(&sides[0]), self.own(&sides[1])) {
                    (Some(col), None) => (col, *op, &sides[1]),
                    (None, Some(col)) => (col, flip(*op), &sides[0]),
                    _ => return None,
                };
                let ty = if self.own(&sides[0]).is_some() {
                    &sides[0].ty.col
                } else {
                    &sides[1].ty.col
                };
                if !comparable(ty, *kind) || !self.foreign(value) {
                    return None;
                }
                let values = compared_values(op, value)?;
                Some(OnColumn {
                    column,
                    values,
                    implied: true,
                })
            }
            ExprKind::Between {
                parts,
                kinds,
                negated: false,
            } => {
                let column = self.own(&parts[0])?;
                let ty = &parts[0].ty.col;
                let fits = kinds.iter().all(|k| comparable(ty, *k))
                    && self.foreign(&parts[1])
                    && self.foreign(&parts[2]);
                if !fits {
                    return None;
                }
                let range = RangePart {
                    lo: Some((parts[1].clone(), true)),
                    hi: Some((parts[2].clone(), true)),
                    between: true,
                    ..RangePart::default()
                };
                Some(OnColumn {
                    column,
                    values: ColumnValues::Range(range),
                    implied: true,
                })
            }
            ExprKind::In {
                expr,
                list,
                negated: false,
            } => {
                let column = self.own(expr)?;
                let fits = list
                    .iter()
                    .all(|(k, e)| comparable(&expr.ty.col, *k) && self.foreign(e));
                // The comparison of a string with a TIME depends on whether all members of the list
                // are constant, and on the operand.
                let texts = Class::of(&expr.ty.col) == Class::Time
                    && list
                        .iter()
                        .any(|(_, e)| e.ty.class() == Class::String && !is_constant(e));
                if !fits || texts {
                    return None;
                }
                let members = list.iter().map(|(_, e)| e.clone()).collect();
                Some(OnColumn {
                    column,
                    values: ColumnValues::Points {
                        part: PointPart::In(members),
                        count: list.len(),
                    },
                    implied: true,
                })
            }
            ExprKind::InParam {
                left,
                kinds,
                list,
                negated: false,
            } if left.len() == 1 => {
                let column = self.own(&left[0])?;
                if !comparable(&left[0].ty.col, kinds[0]) {
                    return None;
                }
                let part = PointPart::List {
                    list: *list,
                    at: 0,
                    of: 1,
                };
                Some(OnColumn {
                    column,
                    values: ColumnValues::Points {
                        part,
                        count: (self.list_count)(*list),
                    },
                    implied: true,
                })
            }
            ExprKind::Subquery {
                index,
                use_as:
                    SubqueryUse::In {
                        left,
                        kinds,
                        negated: false,
                    },
            } => self.read_subquery(*index, left, kinds),
            ExprKind::Is {
                expr,
                test: IsTest::Null,
                negated,
            } => {
                let column = self.own(expr)?;
                let values = if *negated {
                    ColumnValues::Range(RangePart {
                        not_null: true,
                        ..RangePart::default()
                    })
                } else {
                    ColumnValues::Points {
                        part: PointPart::Eq {
                            expr: Expr::null(),
                            null_safe: true,
                        },
                        count: 1,
                    }
                };
                Some(OnColumn {
                    column,
                    values,
                    implied: true,
                })
            }
            ExprKind::Like {
                expr,
                pattern,
                escape,
                collation,
                negated: false,
            } => {
                let column = self.own(expr)?;
                let fits = comparable(&expr.ty.col, CmpKind::String(*collation))
                    && self.foreign(pattern)
                    && escape.as_ref().is_none_or(|e| self.foreign(e));
                if !fits {
                    return None;
                }
                let like = Some((Expr::clone(pattern), escape.as_deref().cloned()));
                Some(OnColumn {
                    column,
                    values: ColumnValues::Range(RangePart {
                        like,
                        ..RangePart::default()
                    }),
                    implied: false,
                })
            }
            ExprKind::ArrayHas {
                column,
                elements,
                all,
            } => {
                let (part, count) = element_points(elements, *all)?;
                Some(OnColumn {
                    column: self.own(column)?,
                    values: ColumnValues::Points { part, count },
                    implied: false,
                })
            }
            ExprKind::Or(list) => self.read_or(list),
            _ => None,
        }
    }

    /// `column IN (subquery)`, if the subquery's values need no conversion that might warn.
    fn read_subquery(&self, index: u16, left: &[Expr], kinds: &[CmpKind]) -> Option<OnColumn> {
        let ([left], [kind]) = (left, kinds) else {
            return None;
        };
        let sub = &self.block.subqueries[usize::from(index)];
        let column = self.own(left)?;
        let alike = left.ty.is_alike(sub.plan.types.first()?);
        if sub.correlated || !alike || !comparable(&left.ty.col, *kind) {
            return None;
        }
        let part = PointPart::Subquery {
            index,
            kind: *kind,
            most: 0,
        };
        Some(OnColumn {
            column,
            values: ColumnValues::Points {
                part,
                count: sub.plan.result_rows().ceil() as usize,
            },
            implied: true,
        })
    }

    /// OR of conditions on one column.
    fn read_or(&self, list: &[Expr]) -> Option<OnColumn> {
        let mut column = None;
        let mut ranges = Vec::with_capacity(list.len());
        let mut implied = true;
        let (mut equal, mut listed, mut numbers) = (false, false, false);
        let is_number = |e: &Expr| e.ty.class().is_number();
        for c in list {
            // An AND inside may have both bounds of a range.
            let on = match &c.kind {
                ExprKind::And(parts) => self.read_and(parts)?,
                _ => self.read(c)?,
            };
            if *column.get_or_insert(on.column) != on.column {
                return None;
            }
            implied &= on.implied;
            match on.values {
                ColumnValues::Range(r) => ranges.push(r),
                ColumnValues::Ranges(r) => ranges.extend(r),
                ColumnValues::Points {
                    part:
                        PointPart::Eq {
                            expr,
                            null_safe: false,
                        },
                    ..
                } => {
                    equal = true;
                    numbers |= is_number(&expr);
                    ranges.push(point_range(expr));
                }
                ColumnValues::Points {
                    part: PointPart::AnyEq(members),
                    ..
                } => {
                    equal = true;
                    numbers |= members.iter().any(is_number);
                    ranges.extend(members.into_iter().map(point_range));
                }
                ColumnValues::Points {
                    part: PointPart::In(members),
                    ..
                } => {
                    listed = true;
                    numbers |= members.iter().any(is_number);
                    ranges.extend(members.into_iter().map(point_range));
                }
                ColumnValues::Points { .. } => return None,
            }
        }
        let column = column?;
        let (ty, _) = &self.block.tables[self.t].source.column_types()[column];
        // A list of two or more members compares strings with a TIME, and numbers with a date or
        // time, differently from `=`.
        let own = Class::of(ty) == Class::Time || Class::of(ty).is_temporal() && numbers;
        if own && equal && listed {
            return None;
        }
        let all_points = ranges.iter().all(|r| match (&r.lo, &r.hi) {
            (Some((a, true)), Some((b, true))) => a == b && r.like.is_none(),
            _ => false,
        });
        if all_points {
            let members: Vec<Expr> = ranges
                .into_iter()
                .filter_map(|r| r.lo.map(|(e, _)| e))
                .collect();
            let count = members.len();
            let part = match own && equal {
                true => PointPart::AnyEq(members),
                false => PointPart::In(members),
            };
            return Some(OnColumn {
                column,
                values: ColumnValues::Points { part, count },
                implied,
            });
        }
        Some(OnColumn {
            column,
            values: ColumnValues::Ranges(ranges),
            implied,
        })
    }

    fn read_and(&self, parts: &[Expr]) -> Option<OnColumn> {
        let mut result: Option<OnColumn> = None;
        let mut all = true;
        for c in parts {
            let Some(on) = self.read(c) else {
                all = false;
                continue;
            };
            match &mut result {
                None => result = Some(on),
                Some(r) if r.column == on.column => match (&mut r.values, on.values) {
                    (ColumnValues::Range(a), ColumnValues::Range(b)) => {
                        all &= on.implied;
                        if !merge_range(a, b) {
                            all = false;
                        }
                    }
                    _ => all = false,
                },
                Some(_) => all = false,
            }
        }
        let mut r = result?;
        r.implied &= all;
        Some(r)
    }

    /// Reads `(a, b) IN (...)` over columns of this slot only. Returns the key part of each column,
    /// and the number of rows in the list.
    pub fn read_rows(&self, c: &Expr) -> Option<(Vec<(usize, PointPart)>, usize)> {
        match &c.kind {
            ExprKind::InParam {
                left,
                kinds,
                list,
                negated: false,
            } if left.len() > 1 => {
                let mut parts = Vec::new();
                for (at, (l, k)) in left.iter().zip(kinds).enumerate() {
                    let column = self.own(l)?;
                    if !comparable(&l.ty.col, *k) {
                        return None;
                    }
                    parts.push((
                        column,
                        PointPart::List {
                            list: *list,
                            at,
                            of: left.len(),
                        },
                    ));
                }
                Some((parts, (self.list_count)(*list)))
            }
            ExprKind::InRows {
                left,
                rows,
                negated: false,
            } => {
                let plain: Arc<Vec<Vec<Expr>>> = Arc::new(
                    rows.iter()
                        .map(|r| r.iter().map(|(_, e)| e.clone()).collect())
                        .collect(),
                );
                let mut parts = Vec::new();
                for (at, l) in left.iter().enumerate() {
                    let column = self.own(l)?;
                    let fits = rows
                        .iter()
                        .all(|r| comparable(&l.ty.col, r[at].0) && self.foreign(&r[at].1));
                    if !fits {
                        return None;
                    }
                    parts.push((
                        column,
                        PointPart::Rows {
                            rows: plain.clone(),
                            at,
                        },
                    ));
                }
                Some((parts, rows.len()))
            }
            _ => None,
        }
    }
}

/// The elements to look up, and their number.
fn element_points(elements: &ArrayElements, all: bool) -> Option<(PointPart, usize)> {
    let list = match elements {
        ArrayElements::Known(list) => list,
        ArrayElements::Computed { value, to, .. } => {
            let part = PointPart::Elements {
                value: value.clone(),
                to: to.clone(),
                most: 0,
            };
            let count = match to.member || to.all {
                true => 1,
                false => UNKNOWN_ELEMENTS,
            };
            return Some((part, count));
        }
    };
    // A row that has all elements has the first one.
    let looked_up = match all {
        true => list.get(..1)?,
        false => list.as_slice(),
    };
    let part = match looked_up {
        [] => return None,
        [only] if list.len() == 1 && !all => PointPart::Eq {
            expr: only.clone(),
            null_safe: false,
        },
        several => PointPart::In(several.to_vec()),
    };
    Some((part, looked_up.len()))
}

fn compared_values(op: BinaryOp, value: &Expr) -> Option<ColumnValues> {
    let value = value.clone();
    let range = |lo, hi| {
        ColumnValues::Range(RangePart {
            lo,
            hi,
            ..RangePart::default()
        })
    };
    Some(match op {
        BinaryOp::Eq => ColumnValues::Points {
            part: PointPart::Eq {
                expr: value,
                null_safe: false,
            },
            count: 1,
        },
        BinaryOp::NullSafeEq => ColumnValues::Points {
            part: PointPart::Eq {
                expr: value,
                null_safe: true,
            },
            count: 1,
        },
        BinaryOp::Lt => range(None, Some((value, false))),
        BinaryOp::Le => range(None, Some((value, true))),
        BinaryOp::Gt => range(Some((value, false)), None),
        BinaryOp::Ge => range(Some((value, true)), None),
        _ => return None,
    })
}

fn point_range(e: Expr) -> RangePart {
    RangePart {
        lo: Some((e.clone(), true)),
        hi: Some((e, true)),
        ..RangePart::default()
    }
}

/// Intersects `a` with `b`. Returns false if `a` cannot express the intersection.
pub(crate) fn merge_range(a: &mut RangePart, b: RangePart) -> bool {
    let mut whole = true;
    // The bounds of a BETWEEN belong together: a string that is no date is an error there, but not
    // in other comparisons.
    match (a.lo.is_some() || a.hi.is_some(), b.between) {
        (true, true) => {
            a.not_null |= b.not_null;
            return false;
        }
        (false, between) => a.between = between,
        (true, false) => {}
    }
    if a.between && a.lo.is_some() && (b.lo.is_some() || b.hi.is_some()) {
        return false;
    }
    if let Some(lo) = b.lo {
        if a.lo.is_none() {
            a.lo = Some(lo);
        } else {
            whole = false;
        }
    }
    if let Some(hi) = b.hi {
        if a.hi.is_none() {
            a.hi = Some(hi);
        } else {
            whole = false;
        }
    }
    if b.like.is_some() {
        if a.like.is_none() {
            a.like = b.like;
        }
        whole = false;
    }
    a.not_null |= b.not_null;
    whole
}
