//! Built-in functions: one table. A function is found by name when a statement is bound, and by
//! number when it runs.
//!
//! Each module contributes a slice of [`Func`]. To add a function, write its `infer` and its
//! `eval`, and put it into the slice of its module. A function evaluates its arguments itself
//! (`cx.int(&args[0])?`), so that IF and COALESCE evaluate only those that they need.

mod aes;
mod builtin;
mod codes;
mod compress;
mod constants;
mod core;
mod date_times;
mod dates;
mod digest;
mod formats;
mod fulltext;
mod gtids;
mod inet6;
mod info;
mod json;
mod key_derivation;
mod numeric;
mod regexp;
mod strings;
mod text;
mod user_locks;
mod xml;

use std::rc::Rc;
use std::sync::LazyLock;

use nfold_plan::expr::{Expr, ExprKind, FuncId};
use nfold_plan::fulltext::MatchCall;
use nfold_plan::func::{FuncDef, FuncSet, UNCHANGED, VOLATILE};
use nfold_types::{SqlError, Value};
use rustc_hash::FxHashMap;

pub use builtin::Func;
pub(crate) use core::known_constant;
pub(crate) use json::{DocumentParts, document as json_document};
pub(crate) use numeric::number_among_times;

use builtin::Evaluated;

use super::eval::{EvalCx, EvalFn};
use crate::fulltext::program::Program;

/// All functions. A [`FuncId`] is an index into the list, and valid only within the process.
struct Registry {
    funcs: Vec<&'static Func>,
    by_name: FxHashMap<&'static str, FuncId>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let modules: &[&'static [Func]] = &[
        core::FUNCS,
        strings::FUNCS,
        text::FUNCS,
        codes::FUNCS,
        digest::FUNCS,
        numeric::FUNCS,
        dates::FUNCS,
        formats::FUNCS,
        fulltext::FUNCS,
        info::FUNCS,
        gtids::FUNCS,
        regexp::FUNCS,
        aes::FUNCS,
        compress::FUNCS,
        inet6::FUNCS,
        xml::FUNCS,
    ];
    let modules = modules.iter().chain(&json::FUNCS);
    let funcs: Vec<&'static Func> = modules.flat_map(|m| m.iter()).collect();
    let by_name = funcs
        .iter()
        .enumerate()
        .map(|(i, f)| (f.def.name, FuncId(i as u16)))
        .collect();
    Registry { funcs, by_name }
});

/// The registry for the binder.
pub struct Builtins;

impl FuncSet for Builtins {
    fn find(&self, name: &str) -> Option<(FuncId, &'static FuncDef)> {
        let id = *REGISTRY.by_name.get(name)?;
        Some((id, self.get(id)))
    }

    fn get(&self, id: FuncId) -> &'static FuncDef {
        &REGISTRY.funcs[usize::from(id.0)].def
    }

    fn value_of(&self, e: &Expr) -> Option<Value> {
        constants::value_of(e)
    }
}

/// Whether computing an expression once more, or earlier, has no effect but its warnings.
pub(crate) fn is_repeatable(e: &Expr) -> bool {
    !e.any(&mut |e| match &e.kind {
        ExprKind::AssignUserVar(..) | ExprKind::Subquery { .. } => true,
        ExprKind::Call { func, .. } => Builtins.get(*func).flags & VOLATILE != 0,
        _ => false,
    })
}

/// The prepared search of a call of MATCH; `None` if its text is NULL.
pub(crate) fn search<'a>(
    cx: &EvalCx<'a>,
    call: &MatchCall<'a>,
) -> Result<Option<Rc<Program>>, SqlError> {
    let collation = call.columns.first().map(|c| c.ty.collation());
    let collation = collation.unwrap_or(call.against.ty.collation());
    match cx.text(call.against, collation)? {
        Some(text) => cx.st.subqueries.search(call.target, &text).map(Some),
        None => Ok(None),
    }
}

/// Whether the function returns one of its arguments unchanged: IF and NULLIF.
pub(crate) fn is_unchanged(id: FuncId) -> bool {
    Builtins.get(id).flags & UNCHANGED != 0
}

/// Whether `e` adds to a time: ADDTIME, SUBTIME, or arithmetic with an interval.
pub(crate) fn adds_to_time(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::IntervalArith { .. } => true,
        ExprKind::Call { func, .. } => {
            matches!(Builtins.get(*func).name, "addtime" | "subtime")
        }
        _ => false,
    }
}

/// Whether MySQL rounds the number of `e`, a date or time with a fraction, where it wants an
/// integer: `23:59:59.5` is 235960. It rounds any other date or time itself, to 240000.
pub(crate) fn rounds_as_number(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::IntervalArith { .. } => true,
        ExprKind::Call { func, args } => match Builtins.get(*func).name {
            "addtime" | "subtime" | "str_to_date" => true,
            "timestamp" => args.len() == 2,
            _ => false,
        },
        _ => false,
    }
}

/// Whether the function is UNIX_TIMESTAMP.
pub(crate) fn is_unix_timestamp(id: FuncId) -> bool {
    Builtins.get(id).name == "unix_timestamp"
}

/// Whether the function is GREATEST or LEAST.
pub(crate) fn is_extreme(id: FuncId) -> bool {
    matches!(Builtins.get(id).name, "greatest" | "least")
}

/// The function that evaluates `id`.
#[inline]
pub fn eval_fn(id: FuncId) -> EvalFn {
    REGISTRY.funcs[usize::from(id.0)].eval
}

/// Evaluates expressions with their own syntax: interval arithmetic, EXTRACT, TIMESTAMPDIFF, TRIM.
pub(crate) fn eval_special<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Evaluated<'a> {
    use nfold_plan::expr::ExprKind::*;
    match &e.kind {
        Trim { side, what, expr } => strings::trim(cx, *side, what.as_deref(), expr, &e.ty),
        IntervalArith {
            expr,
            amount,
            unit,
            subtract,
        } => date_times::interval_arith(cx, expr, amount, *unit, *subtract, &e.ty),
        Extract { unit, expr } => date_times::extract(cx, *unit, expr),
        TimestampDiff { unit, from, to } => date_times::difference(cx, *unit, from, to),
        _ => unreachable!("only expressions with a syntax of their own come here"),
    }
}
