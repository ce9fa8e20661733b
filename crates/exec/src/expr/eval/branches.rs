//! CASE over constants: `CASE n WHEN 1 THEN ... WHEN 2 THEN ... END`, or with `WHEN n = 1`. The
//! constants are hashed once in an execution, and a value's branch is found by one lookup. The
//! same for `FIELD(n, 1, 2, ...)` of integers or of texts.

use nfold_plan::expr::{ArithOp, CmpKind, Expr, ExprKind, ExprType};
use nfold_sql::ast::BinaryOp;
use nfold_types::SqlError;
use rustc_hash::FxHashMap;

use super::prepared::{is_plain, is_silent};
use super::tuple::normal_key;
use super::{CONDITION_WORK, EvalCx, Val};

/// Fewer constants are compared one by one.
const HASHED_MIN: usize = 8;
/// A longer text is compared with one WHEN after the other: its sort key is dear.
const TEXT_MAX: usize = 256;

/// The branches of one CASE by their constants. Of equal constants the first counts.
pub(crate) enum Branches {
    Ints(FxHashMap<i128, usize>),
    /// By sort keys of this kind.
    Keys(CmpKind, FxHashMap<Box<[u8]>, usize>),
    /// The WHENs are tested one by one.
    Walk,
}

/// The branch that the constants of a CASE choose for a value.
pub(crate) enum Branch {
    At(usize),
    Else,
    /// The WHENs have to be tested one by one.
    Unknown,
}

/// The branch of the CASE expression `e`, whose WHENs are `whens`.
pub(crate) fn branch_of<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    whens: &'a [(Expr, Expr)],
) -> Result<Branch, SqlError> {
    if whens.len() < HASHED_MIN {
        return Ok(Branch::Unknown);
    }
    let id = std::ptr::from_ref(e) as usize;
    let cache = &cx.st.lists.branches;
    if !cache.borrow().contains_key(&id) {
        let branches = Branches::of(cx, whens)?;
        cache.borrow_mut().insert(id, branches);
    }
    let cache = cache.borrow();
    let Some(branches @ (Branches::Ints(_) | Branches::Keys(..))) = cache.get(&id) else {
        return Ok(Branch::Unknown);
    };
    let Some((_, [operand, _])) = equality(&whens[0].0) else {
        return Ok(Branch::Unknown);
    };
    let x = cx.val(operand)?;
    if x.is_null() {
        return Ok(Branch::Else);
    }
    let found = match (branches, &x) {
        (Branches::Ints(by_value), Val::Int(v)) => by_value.get(&i128::from(*v)),
        (Branches::Ints(by_value), Val::UInt(v)) => by_value.get(&i128::from(*v)),
        (Branches::Keys(kind, by_key), x) if is_short(x) => {
            let mut key = Vec::new();
            if !normal_key(cx, (x, &operand.ty), *kind, &mut key) {
                return Ok(Branch::Unknown);
            }
            by_key.get(&key[..])
        }
        _ => return Ok(Branch::Unknown),
    };
    Ok(found.map_or(Branch::Else, |at| Branch::At(*at)))
}

/// The position of `wanted`, which is not NULL, among the constants of a FIELD that compares by
/// `kind`, from 1; 0: it is not there. `None`: they have to be compared one by one.
pub(crate) fn position_of<'a>(
    cx: &EvalCx<'a>,
    constants: &'a [Expr],
    kind: CmpKind,
    wanted: (&Val<'_>, &ExprType),
) -> Result<Option<i64>, SqlError> {
    if constants.len() < HASHED_MIN {
        return Ok(None);
    }
    // The first constant may be a CASE, whose own branches are found by its address.
    let id = constants.as_ptr() as usize + 1;
    let cache = &cx.st.lists.branches;
    if !cache.borrow().contains_key(&id) {
        let branches = Branches::of_constants(cx, kind, constants)?;
        cache.borrow_mut().insert(id, branches);
    }
    let cache = cache.borrow();
    let found = match (cache.get(&id), wanted.0) {
        (Some(Branches::Ints(by_value)), Val::Int(v)) => by_value.get(&i128::from(*v)),
        (Some(Branches::Ints(by_value)), Val::UInt(v)) => by_value.get(&i128::from(*v)),
        (Some(Branches::Keys(kind, by_key)), v) if is_short(v) => {
            let mut key = Vec::new();
            if !normal_key(cx, wanted, *kind, &mut key) {
                return Ok(None);
            }
            by_key.get(&key[..])
        }
        _ => return Ok(None),
    };
    Ok(Some(found.map_or(0, |at| *at as i64 + 1)))
}

fn is_short(v: &Val<'_>) -> bool {
    !matches!(v, Val::Bytes(text) if text.len() > TEXT_MAX)
}

/// The sides of `a = b`, and how they are compared.
fn equality(e: &Expr) -> Option<(CmpKind, &[Expr; 2])> {
    match &e.kind {
        ExprKind::Compare {
            op: BinaryOp::Eq,
            kind,
            sides,
        } => Some((*kind, sides)),
        _ => None,
    }
}

/// Whether an expression has the same value each time in one row, and no effect.
fn is_repeatable(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Column(_) | ExprKind::Outer { .. } => true,
        ExprKind::Const(_) | ExprKind::Param(_) => true,
        ExprKind::Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Mul | ArithOp::Mod, sides) => {
            sides.iter().all(is_repeatable)
        }
        ExprKind::Neg(of) | ExprKind::Collate(of) => is_repeatable(of),
        _ => false,
    }
}

impl Branches {
    /// [`Branches::Walk`] unless each WHEN compares the same operand with a constant by `=`.
    fn of(cx: &EvalCx<'_>, whens: &[(Expr, Expr)]) -> Result<Branches, SqlError> {
        let Some((kind, [operand, _])) = equality(&whens[0].0) else {
            return Ok(Branches::Walk);
        };
        let mut branches = match kind {
            CmpKind::Int => Branches::Ints(FxHashMap::default()),
            CmpKind::Decimal | CmpKind::String(_) => Branches::Keys(kind, FxHashMap::default()),
            _ => return Ok(Branches::Walk),
        };
        if !is_repeatable(operand) {
            return Ok(Branches::Walk);
        }
        for (at, (when, _)) in whens.iter().enumerate() {
            cx.checkpoint(CONDITION_WORK)?;
            let Some((of_this, [left, constant])) = equality(when) else {
                return Ok(Branches::Walk);
            };
            let alike = of_this == kind && left.kind == operand.kind && is_plain(constant);
            if !alike || !branches.add(cx, kind, constant, at)? {
                return Ok(Branches::Walk);
            }
        }
        Ok(branches)
    }

    /// [`Branches::Walk`] unless all are constants that have keys.
    fn of_constants(
        cx: &EvalCx<'_>,
        kind: CmpKind,
        constants: &[Expr],
    ) -> Result<Branches, SqlError> {
        let mut branches = match kind {
            CmpKind::Int => Branches::Ints(FxHashMap::default()),
            kind => Branches::Keys(kind, FxHashMap::default()),
        };
        for (at, constant) in constants.iter().enumerate() {
            cx.checkpoint(CONDITION_WORK)?;
            if !is_plain(constant) || !branches.add(cx, kind, constant, at)? {
                return Ok(Branches::Walk);
            }
        }
        Ok(branches)
    }

    /// Adds the constant of a branch; false if it has no key.
    fn add<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        kind: CmpKind,
        constant: &'a Expr,
        at: usize,
    ) -> Result<bool, SqlError> {
        let v = cx.val(constant)?;
        if v.is_null() {
            // It is equal to nothing.
            return Ok(true);
        }
        match (self, &v) {
            (Branches::Ints(by_value), Val::Int(v)) => {
                by_value.entry(i128::from(*v)).or_insert(at);
            }
            (Branches::Ints(by_value), Val::UInt(v)) => {
                by_value.entry(i128::from(*v)).or_insert(at);
            }
            (Branches::Keys(_, by_key), v) => {
                let mut key = Vec::new();
                let fits = is_short(v) && is_silent(v, &constant.ty, kind);
                if !fits || !normal_key(cx, (v, &constant.ty), kind, &mut key) {
                    return Ok(false);
                }
                by_key.entry(key.into_boxed_slice()).or_insert(at);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
