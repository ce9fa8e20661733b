//! The conditions of a scan, compiled for one execution.
//!
//! # Invariants
//! - F1: conditions are tested in their order, and the first one that is not true ends the test, as
//!   in [`EvalCx::passes`]. So the evaluator warns about the same rows as without a kernel.
//! - F2: a condition is compiled only if evaluating it never warns and never fails.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::Range;

use nfold_plan::expr::{Class, CmpKind, Expr, ExprKind, ExprType, is_constant};
use nfold_plan::func::FuncSet;
use nfold_sql::ast::{BinaryOp, IsTest};
use nfold_types::collation::Collation;
use nfold_types::row::{RawField, RowLayout};
use nfold_types::{CollationId, SqlError, TypeKind, Warnings};

use super::images::Images;
use super::threshold::{ALL, KeyField, Keys, constant, push_constant_text, threshold};
use crate::expr::eval::compare::{holds, number_bounds};
use crate::expr::eval::list::{listed_kind, member_type};
use crate::expr::eval::{EvalCx, StmtState, Val, convert};
use crate::expr::func::Builtins;

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
        column: TextColumn,
        collation: &'static Collation,
        op: BinaryOp,
        /// The constant's range in [`RowFilter::texts`].
        text: (usize, usize),
    },
    /// Whether a text column is in a list of constants.
    Texts {
        column: TextColumn,
        collation: &'static Collation,
        /// The list's range in [`RowFilter::spans`].
        spans: (usize, usize),
        /// Whether the test holds for a text that is a member, and for one that is not.
        holds: [bool; 2],
    },
    /// LIKE of a text column and a constant pattern with the usual escape character.
    Like {
        column: TextColumn,
        collation: &'static Collation,
        pattern: (usize, usize),
        negated: bool,
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
    /// A group that consists of the next `len` tests. One of them must be true (`any`), or all.
    Group { any: bool, len: usize },
    /// The evaluator tests the condition.
    Evaluate,
}

/// A text column, or a prefix of its text: `LEFT(c, n)` and `SUBSTRING(c, 1, n)`.
#[derive(Debug, Clone, Copy)]
struct TextColumn {
    ordinal: usize,
    /// The number of characters; `None`: the whole text.
    prefix_chars: Option<usize>,
}

/// The conditions on the rows of one table, all of which must hold.
#[derive(Debug, Default)]
pub(crate) struct RowFilter {
    /// One test for each condition, each followed by those of its group.
    tests: Vec<Test>,
    conditions: usize,
    texts: Vec<u8>,
    /// The ranges in `texts` of the members of all lists of texts.
    spans: Vec<(usize, usize)>,
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
        for e in conditions {
            let start = self.tests.len();
            let compiled = Compiler {
                cx: &quiet,
                images,
                filter: self,
            }
            .push(e);
            let mut warned = warnings.borrow_mut();
            let silent = warned.total() == 0 && warned.take_raised().is_none();
            warned.clear();
            if !(compiled && silent) {
                self.tests.truncate(start);
                self.tests.push(Test::Evaluate);
            }
            self.conditions += 1;
        }
        let compiled = |test: &Test| !matches!(test, Test::Evaluate);
        self.tests.iter().any(compiled)
    }

    /// The memory of strings and lists, in bytes.
    pub fn memory(&self) -> usize {
        self.texts.capacity()
            + self.spans.capacity() * size_of::<(usize, usize)>()
            + self.members.capacity() * size_of::<i64>()
    }

    /// Removes the conditions, and keeps at most [`CACHED_BYTES`] of memory.
    pub fn clear(&mut self) {
        self.tests.clear();
        self.conditions = 0;
        self.spans.clear();
        self.spans
            .shrink_to(CACHED_BYTES / size_of::<(usize, usize)>());
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
        let mut at = 0;
        for condition in 0..self.conditions {
            let (holds, next) = self.test(at, layout, image);
            let holds = match holds {
                Some(holds) => holds,
                None => evaluate(condition)?,
            };
            if !holds {
                return Ok(false);
            }
            at = next;
        }
        Ok(true)
    }

    /// Whether the test at `at` is true, and where the next one begins. `None`: the evaluator has
    /// to test the condition, for example because a value is on overflow pages.
    #[inline(always)]
    fn test(&self, at: usize, layout: &RowLayout, image: &[u8]) -> (Option<bool>, usize) {
        let next = at + 1;
        match &self.tests[at] {
            Test::Group { any, len } => {
                let holds = self.group(*any, next..next + len, layout, image);
                (holds, next + len)
            }
            test => (self.holds(test, layout, image), next),
        }
    }

    /// Whether one of the tests, or all of them, are true.
    fn group(
        &self,
        any: bool,
        tests: Range<usize>,
        layout: &RowLayout,
        image: &[u8],
    ) -> Option<bool> {
        let mut at = tests.start;
        while at < tests.end {
            let (holds, next) = self.test(at, layout, image);
            if holds? == any {
                return Some(any);
            }
            at = next;
        }
        Some(!any)
    }

    #[inline(always)]
    fn holds(&self, test: &Test, layout: &RowLayout, image: &[u8]) -> Option<bool> {
        Some(match test {
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
            Test::Members {
                field,
                members,
                holds,
            } => field.key(image).is_some_and(|key| {
                let members = &self.members[members.0..members.1];
                holds[usize::from(members.binary_search(&key).is_err())]
            }),
            Test::Null { ordinal, negated } => layout.is_null(image, *ordinal).ok()? != *negated,
            Test::Text {
                column, collation, ..
            }
            | Test::Texts {
                column, collation, ..
            }
            | Test::Like {
                column, collation, ..
            } => match layout.raw(image, column.ordinal) {
                Ok(RawField::Var(value)) => match column.prefix_chars {
                    None => self.text_holds(test, value),
                    Some(n) => self.text_holds(test, collation.char_prefix(value, n)),
                },
                Ok(RawField::Null) => false,
                _ => return None,
            },
            Test::Group { .. } | Test::Evaluate => return None,
        })
    }

    /// Whether the test of a text column is true for `value`.
    fn text_holds(&self, test: &Test, value: &[u8]) -> bool {
        let order = |collation: &Collation, text: &(usize, usize)| {
            let text = &self.texts[text.0..text.1];
            match value == text {
                true => Ordering::Equal,
                false => collation.compare(value, text),
            }
        };
        match test {
            Test::Text {
                collation,
                op,
                text,
                ..
            } => holds(*op, order(collation, text)),
            Test::Texts {
                collation,
                spans,
                holds,
                ..
            } => {
                let mut members = self.spans[spans.0..spans.1].iter();
                let found = members.any(|text| order(collation, text).is_eq());
                holds[usize::from(!found)]
            }
            Test::Like {
                collation,
                pattern,
                negated,
                ..
            } => {
                let pattern = &self.texts[pattern.0..pattern.1];
                let mut goes_on = |_| true;
                let like = collation.like_stoppable(value, pattern, Some('\\'), &mut goes_on);
                like != *negated
            }
            _ => false,
        }
    }
}

/// Longer lists of texts are left to the evaluator, which searches them.
const TEXTS_MAX: usize = 16;

/// A member of a list of texts.
enum TextMember<'a> {
    Expr(&'a Expr),
    Value(Val<'a>, ExprType),
}

struct Compiler<'c, 'a> {
    cx: &'c EvalCx<'a>,
    images: Images<'c>,
    filter: &'c mut RowFilter,
}

impl<'a> Compiler<'_, 'a> {
    /// Adds the tests of a condition. False: the evaluator has to test it, and the tests added are
    /// to be removed.
    fn push(&mut self, e: &'a Expr) -> bool {
        let (any, list) = match &e.kind {
            ExprKind::Or(list) => (true, list),
            ExprKind::And(list) => (false, list),
            _ => {
                let test = self.condition(e);
                let compiled = test.is_some();
                self.filter.tests.extend(test);
                return compiled;
            }
        };
        let start = self.filter.tests.len();
        self.filter.tests.push(Test::Group { any, len: 0 });
        if !list.iter().all(|e| self.push(e)) {
            return false;
        }
        let len = self.filter.tests.len() - start - 1;
        self.filter.tests[start] = Test::Group { any, len };
        true
    }

    /// Compiles a condition without AND and OR; `None`: the evaluator has to test it.
    fn condition(&mut self, e: &'a Expr) -> Option<Test> {
        match &e.kind {
            ExprKind::Compare { op, kind, sides } => {
                let [a, b] = &**sides;
                match (self.ordinal(a), self.ordinal(b)) {
                    (Some(x), Some(y)) => self.columns(*op, *kind, (a, x), (b, y)),
                    _ if is_constant(b) => self.comparison(*op, *kind, a, b),
                    _ => self.comparison(mirrored(*op)?, *kind, b, a),
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
                if let Some((CmpKind::String(collation), _)) = list.first() {
                    let text = |(kind, e): &'a (CmpKind, Expr)| {
                        let alike = *kind == CmpKind::String(*collation);
                        (alike && is_constant(e)).then_some(TextMember::Expr(e))
                    };
                    return self.text_list(expr, *collation, list.iter().map(text), *negated);
                }
                let cx = self.cx;
                let members = list.iter().map(|(kind, member)| match member.kind {
                    _ if *kind != CmpKind::Int => None,
                    ExprKind::Const(_) | ExprKind::Param(_) => cx.val(member).ok(),
                    _ if is_constant(member) => constant(cx, member),
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
                ([expr], [CmpKind::String(collation)]) => {
                    let (cx, kind) = (self.cx, kinds[0]);
                    let members = cx.st.params.list(*list).0.map(Val::from_ref).enumerate();
                    let text = |(i, v): (usize, Val<'a>)| {
                        let ty = member_type(cx, *list, i, &v);
                        let alike = matches!(v, Val::Null | Val::Bytes(_))
                            && listed_kind(cx, expr, &ty, kind, *list) == kind;
                        alike.then_some(TextMember::Value(v, ty))
                    };
                    self.text_list(expr, *collation, members.map(text), *negated)
                }
                _ => None,
            },
            ExprKind::Like {
                expr,
                pattern,
                escape: None,
                collation,
                negated,
            } => {
                let column = self.text_column(expr, *collation)?;
                is_constant(pattern).then_some(())?;
                let texts = &mut self.filter.texts;
                let start = texts.len();
                push_constant_text(self.cx, pattern, *collation, texts)?;
                Some(Test::Like {
                    column,
                    collation: collation.known(),
                    pattern: (start, texts.len()),
                    negated: *negated,
                })
            }
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

    /// The text column, or the prefix of one, that `e` is. `None` if it is neither, or if its bytes
    /// would have to be converted before a comparison by `collation`.
    fn text_column(&self, e: &'a Expr, collation: CollationId) -> Option<TextColumn> {
        let plain = |e: &Expr| {
            let ty = &e.ty;
            ty.class() == Class::String
                && ty.col.is_string()
                && !ty.col.is_enum_or_set()
                && ty.col.collation.known().charset == collation.known().charset
        };
        let (column, prefix_chars) = match self.prefix(e) {
            Some((column, chars)) if plain(e) => (column, Some(chars)),
            _ => (e, None),
        };
        let ordinal = plain(column).then(|| self.ordinal(column))??;
        Some(TextColumn {
            ordinal,
            prefix_chars,
        })
    }

    /// The column and the number of characters of `LEFT(c, n)` or `SUBSTRING(c, 1, n)`.
    fn prefix(&self, e: &'a Expr) -> Option<(&'a Expr, usize)> {
        let ExprKind::Call { func, args } = &e.kind else {
            return None;
        };
        let number = |e: &'a Expr| match constant(self.cx, e) {
            Some(Val::Int(n)) => usize::try_from(n).ok(),
            _ => None,
        };
        match (Builtins.get(*func).name, args.as_slice()) {
            ("left", [column, chars]) => Some((column, number(chars)?)),
            ("substring" | "substr" | "mid", [column, first, chars]) if number(first)? == 1 => {
                Some((column, number(chars)?))
            }
            _ => None,
        }
    }

    /// Compiles an IN list of texts and NULLs. A member is `None` if another comparison is needed.
    fn text_list(
        &mut self,
        expr: &'a Expr,
        collation: CollationId,
        members: impl Iterator<Item = Option<TextMember<'a>>>,
        negated: bool,
    ) -> Option<Test> {
        let column = self.text_column(expr, collation)?;
        let RowFilter { texts, spans, .. } = &mut *self.filter;
        let first = spans.len();
        let mut has_null = false;
        for (n, member) in members.enumerate() {
            let start = texts.len();
            match member? {
                _ if n >= TEXTS_MAX => return None,
                TextMember::Expr(e) => push_constant_text(self.cx, e, collation, texts)?,
                TextMember::Value(Val::Null, _) => {
                    has_null = true;
                    continue;
                }
                TextMember::Value(v, ty) => {
                    texts.extend_from_slice(&convert::to_text(self.cx, v, &ty, collation)?);
                }
            }
            spans.push((start, texts.len()));
        }
        Some(Test::Texts {
            column,
            collation: collation.known(),
            spans: (first, spans.len()),
            // With a NULL in the list, the condition is NULL for a text that is no member.
            holds: [!negated, negated && !has_null],
        })
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
        let stored_members = &mut self.filter.members;
        let start = stored_members.len();
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
            stored_members.extend(i64::try_from(field.key_of(stored)));
        }
        stored_members[start..].sort_unstable();
        Some(Test::Members {
            field: KeyField::Ordered(field),
            members: (start, stored_members.len()),
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
        column: &'a Expr,
        e: &'a Expr,
    ) -> Option<Test> {
        if !is_constant(e) {
            return None;
        }
        if let CmpKind::String(collation) = kind {
            let column = self.text_column(column, collation)?;
            let texts = &mut self.filter.texts;
            let start = texts.len();
            push_constant_text(self.cx, e, collation, texts)?;
            return Some(Test::Text {
                column,
                collation: collation.known(),
                op,
                text: (start, texts.len()),
            });
        }
        let field = KeyField::of(self.images.layout, self.ordinal(column)?)?;
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
