//! The conditions of a scan, compiled for one execution.
//!
//! # Invariants
//! - F1: conditions are tested in their order, and the first one that is not true ends the test, as
//!   in [`EvalCx::passes`]. So the evaluator warns about the same rows as without a kernel.
//! - F2: a condition is compiled only if evaluating it never warns and never fails.

use std::cell::RefCell;
use std::cmp::Ordering;

use nfold_plan::expr::{Class, CmpKind, Expr, ExprKind, is_constant};
use nfold_sql::ast::{BinaryOp, IsTest};
use nfold_types::collation::Collation;
use nfold_types::row::{RawField, RowLayout};
use nfold_types::{SqlError, TypeKind, Warnings};

use super::images::Images;
use super::threshold::{ALL, KeyField, Keys, push_constant_text, threshold};
use crate::expr::eval::compare::{holds, number_bounds};
use crate::expr::eval::{EvalCx, StmtState, Val};

/// One condition over a row image.
#[derive(Debug)]
enum Test {
    /// Whether a column's key is between two keys, or (`negated`) is not.
    Range {
        field: KeyField,
        first: i64,
        last: i64,
        negated: bool,
    },
    /// Two columns of one type.
    Columns { sides: [KeyField; 2], op: BinaryOp },
    /// A text column and a constant.
    Text {
        ordinal: usize,
        collation: &'static Collation,
        op: BinaryOp,
        /// The constant's range in [`RowFilter::texts`].
        text: (usize, usize),
        /// The number of the condition, for values on overflow pages.
        condition: usize,
    },
    /// Whether a column's key is in a list of constants.
    Members {
        field: KeyField,
        /// The list's range in [`RowFilter::members`].
        members: (usize, usize),
        /// Whether the test holds for a key that is a member, and for one that is not.
        holds: [bool; 2],
    },
    /// `IS NULL`, or (`negated`) `IS NOT NULL`.
    Null { ordinal: usize, negated: bool },
    /// The evaluator tests the condition of this number.
    Evaluate(usize),
}

/// The conditions on the rows of one table, all of which must hold.
#[derive(Debug, Default)]
pub(crate) struct RowFilter {
    tests: Vec<Test>,
    texts: Vec<u8>,
    /// The keys of all lists. Those of one list are in ascending order.
    members: Vec<i64>,
}

/// The memory for strings and lists that stays allocated between executions, in bytes.
const CACHED_BYTES: usize = 64 << 10;

impl RowFilter {
    /// Compiles the conditions on the rows of a table, reusing the memory of the filter. `cx` has
    /// no row of the table. Returns false if the evaluator has to test all of them.
    pub fn compile<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        images: Images<'_>,
        conditions: impl Iterator<Item = &'a Expr>,
    ) -> bool {
        let warnings = RefCell::new(Warnings::default());
        let state = StmtState {
            warnings: &warnings,
            ..*cx.st
        };
        let quiet = EvalCx {
            rows: cx.rows,
            outer: cx.outer,
            st: &state,
        };
        self.clear();
        let mut compiler = Compiler {
            cx: &quiet,
            images,
            texts: &mut self.texts,
            members: &mut self.members,
        };
        for (number, e) in conditions.enumerate() {
            let test = compiler.condition(e, number);
            let mut warned = warnings.borrow_mut();
            let silent = warned.total() == 0 && warned.take_raised().is_none();
            warned.clear();
            let test = test.filter(|_| silent);
            self.tests.push(test.unwrap_or(Test::Evaluate(number)));
        }
        let compiled = |test: &Test| !matches!(test, Test::Evaluate(_));
        self.tests.iter().any(compiled)
    }

    /// The memory of strings and lists, in bytes.
    pub fn memory(&self) -> usize {
        self.texts.capacity() + self.members.capacity() * size_of::<i64>()
    }

    /// Removes the conditions, and keeps at most [`CACHED_BYTES`] of memory.
    pub fn clear(&mut self) {
        self.tests.clear();
        self.texts.clear();
        self.texts.shrink_to(CACHED_BYTES);
        self.members.clear();
        self.members.shrink_to(CACHED_BYTES / size_of::<i64>());
    }

    /// Whether a row image passes. `evaluate` evaluates the condition of a number.
    #[inline]
    pub fn passes(
        &self,
        layout: &RowLayout,
        image: &[u8],
        mut evaluate: impl FnMut(usize) -> Result<bool, SqlError>,
    ) -> Result<bool, SqlError> {
        for test in &self.tests {
            let holds = match test {
                Test::Range {
                    field,
                    first,
                    last,
                    negated,
                } => field
                    .key(image)
                    .is_some_and(|key| (*first <= key && key <= *last) != *negated),
                Test::Columns { sides, op } => match (sides[0].key(image), sides[1].key(image)) {
                    (Some(x), Some(y)) => holds(*op, x.cmp(&y)),
                    _ => false,
                },
                Test::Text {
                    ordinal,
                    collation,
                    op,
                    text,
                    condition,
                } => match layout.raw(image, *ordinal) {
                    Ok(RawField::Var(value)) => {
                        let text = &self.texts[text.0..text.1];
                        let order = match value == text {
                            true => Ordering::Equal,
                            false => collation.compare(value, text),
                        };
                        holds(*op, order)
                    }
                    Ok(RawField::Null) => false,
                    _ => evaluate(*condition)?,
                },
                Test::Members {
                    field,
                    members,
                    holds,
                } => field.key(image).is_some_and(|key| {
                    let members = &self.members[members.0..members.1];
                    holds[usize::from(members.binary_search(&key).is_err())]
                }),
                Test::Null { ordinal, negated } => {
                    let null = layout.is_null(image, *ordinal);
                    null.map_err(|e| crate::expr::eval::row_error(&e))? != *negated
                }
                Test::Evaluate(condition) => evaluate(*condition)?,
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct Compiler<'c, 'a> {
    cx: &'c EvalCx<'a>,
    images: Images<'c>,
    texts: &'c mut Vec<u8>,
    members: &'c mut Vec<i64>,
}

impl<'a> Compiler<'_, 'a> {
    /// Compiles a condition; `None`: the evaluator has to test it.
    fn condition(&mut self, e: &'a Expr, number: usize) -> Option<Test> {
        match &e.kind {
            ExprKind::Compare { op, kind, sides } => {
                let [a, b] = &**sides;
                match (self.ordinal(a), self.ordinal(b)) {
                    (Some(x), Some(y)) => self.columns(*op, *kind, (a, x), (b, y)),
                    (Some(x), None) => self.comparison(*op, *kind, (a, x), b, number),
                    (None, Some(y)) => self.comparison(mirrored(*op)?, *kind, (b, y), a, number),
                    (None, None) => None,
                }
            }
            ExprKind::Between {
                parts,
                kinds,
                negated,
            } => {
                let ordinal = self.ordinal(&parts[0])?;
                let field = KeyField::of(self.images.layout, ordinal)?;
                if number_bounds(self.cx, parts, kinds).ok()?.is_some() {
                    return None;
                }
                let keys = |n: usize, op| {
                    let column = (&parts[0], field);
                    threshold(self.cx, kinds[n - 1], column, &parts[n], false)?.keys(op)
                };
                let (low, high) = (keys(1, BinaryOp::Ge)?, keys(2, BinaryOp::Le)?);
                Some(range(field, (low.0, high.1), *negated))
            }
            ExprKind::In {
                expr,
                list,
                negated,
            } => {
                let members = list.iter().map(|(kind, member)| match member.kind {
                    _ if *kind != CmpKind::Int => None,
                    ExprKind::Const(_) | ExprKind::Param(_) => self.cx.val(member).ok(),
                    _ => None,
                });
                self.list(expr, members, *negated)
            }
            ExprKind::InParam {
                left,
                kinds,
                list,
                negated,
            } => match (left.as_slice(), kinds.as_slice()) {
                ([expr], [CmpKind::Int]) => {
                    let members = self.cx.st.params.list(*list).0;
                    self.list(expr, members.map(|v| Some(Val::from_ref(v))), *negated)
                }
                _ => None,
            },
            ExprKind::Is {
                expr,
                test: IsTest::Null,
                negated,
            } => Some(Test::Null {
                ordinal: self.ordinal(expr)?,
                negated: *negated,
            }),
            _ => None,
        }
    }

    /// The position in the images of the column that `e` is; `None` if it is no column of the
    /// table.
    fn ordinal(&self, e: &Expr) -> Option<usize> {
        let at = e.as_column()?;
        let own = usize::from(at.table) == self.images.table;
        own.then(|| (self.images.ordinal)(at.column.into()))?
    }

    /// Compiles an integer column with a list of integers and NULLs. A member is `None` if it
    /// depends on the row.
    fn list(
        &mut self,
        expr: &Expr,
        members: impl Iterator<Item = Option<Val<'a>>>,
        negated: bool,
    ) -> Option<Test> {
        let field = match KeyField::of(self.images.layout, self.ordinal(expr)?)? {
            KeyField::Ordered(field) if field.is_integer() => field,
            _ => return None,
        };
        // Numbers beside a YEAR may be two-digit years.
        if expr.ty.class() != Class::Int || expr.ty.col.kind == TypeKind::Year {
            return None;
        }
        let start = self.members.len();
        let mut has_null = false;
        for member in members {
            let stored = match member? {
                Val::Int(v) => i128::from(v),
                Val::UInt(v) => i128::from(v),
                Val::Null => {
                    has_null = true;
                    continue;
                }
                _ => return None,
            };
            // A member without a key is equal to no value of the column.
            self.members.extend(i64::try_from(field.key_of(stored)));
        }
        self.members[start..].sort_unstable();
        Some(Test::Members {
            field: KeyField::Ordered(field),
            members: (start, self.members.len()),
            // With a NULL in the list, a key that is no member makes the condition NULL.
            holds: [!negated, negated && !has_null],
        })
    }

    fn columns(
        &self,
        op: BinaryOp,
        kind: CmpKind,
        (a, x): (&Expr, usize),
        (b, y): (&Expr, usize),
    ) -> Option<Test> {
        let exact = matches!(kind, CmpKind::Int | CmpKind::Decimal | CmpKind::DateTime);
        let alike = a.ty.col.kind == b.ty.col.kind && a.ty.col.unsigned == b.ty.col.unsigned;
        let layout = self.images.layout;
        let sides = [KeyField::of(layout, x)?, KeyField::of(layout, y)?];
        // NULL <=> NULL is true.
        let usual = exact && alike && op != BinaryOp::NullSafeEq;
        usual.then_some(Test::Columns { sides, op })
    }

    fn comparison(
        &mut self,
        op: BinaryOp,
        kind: CmpKind,
        (column, ordinal): (&'a Expr, usize),
        e: &'a Expr,
        condition: usize,
    ) -> Option<Test> {
        if !is_constant(e) {
            return None;
        }
        if let CmpKind::String(collation) = kind {
            let ty = &column.ty;
            let plain = ty.class() == Class::String
                && ty.col.is_string()
                && !ty.col.is_enum_or_set()
                && ty.col.collation.known().charset == collation.known().charset;
            if !plain {
                return None;
            }
            let start = self.texts.len();
            push_constant_text(self.cx, e, collation, self.texts)?;
            return Some(Test::Text {
                ordinal,
                collation: collation.known(),
                op,
                text: (start, self.texts.len()),
                condition,
            });
        }
        let field = KeyField::of(self.images.layout, ordinal)?;
        let found = threshold(self.cx, kind, (column, field), e, true)?;
        Some(match (op, found.keys(op)) {
            (_, Some(keys)) => range(field, keys, false),
            (BinaryOp::Ne, None) => match found.exact {
                true => range(field, (found.floor, found.floor), true),
                false => range(field, ALL, false),
            },
            _ => return None,
        })
    }
}

/// The test for the keys in a range, or for all others.
fn range(field: KeyField, (first, last): Keys, negated: bool) -> Test {
    let least = i128::from(i64::MIN);
    let most = i128::from(i64::MAX);
    let empty = first > last || first > most || last < least;
    let bound = |key: i128| key.clamp(least, most) as i64;
    let (first, last) = match empty {
        true => (i64::MAX, i64::MIN),
        false => (bound(first), bound(last)),
    };
    Test::Range {
        field,
        first,
        last,
        negated,
    }
}

/// The operator for exchanged operands.
fn mirrored(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq | BinaryOp::NullSafeEq | BinaryOp::Ne => op,
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        _ => return None,
    })
}
