//! Built-in functions: one table, found by name when a statement is bound and by number when it runs.
//!
//! A module contributes a slice of [`Func`]; to add a function, write its `infer` and its `eval` and put it into the slice of its
//! module. Arguments are evaluated by the function itself (`cx.int(&args[0])?`), so that IF and COALESCE evaluate only what they need.

mod core;

use std::sync::LazyLock;

use nfold_plan::expr::FuncId;
use nfold_plan::func::{FuncDef, FuncSet};
use rustc_hash::FxHashMap;

use crate::eval::EvalFn;

/// A built-in function.
pub struct Func {
    pub def: FuncDef,
    pub eval: EvalFn,
}

/// All functions. A function's [`FuncId`] is its place here; ids hold for the life of the process only.
struct Registry {
    funcs: Vec<&'static Func>,
    by_name: FxHashMap<&'static str, FuncId>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let modules: &[&'static [Func]] = &[core::FUNCS];
    let funcs: Vec<&'static Func> = modules.iter().flat_map(|m| m.iter()).collect();
    let by_name = funcs
        .iter()
        .enumerate()
        .map(|(i, f)| (f.def.name, FuncId(i as u16)))
        .collect();
    Registry { funcs, by_name }
});

/// The built-in functions as the binder sees them.
pub struct Builtins;

impl FuncSet for Builtins {
    fn find(&self, name: &str) -> Option<(FuncId, &'static FuncDef)> {
        let id = *REGISTRY.by_name.get(name)?;
        Some((id, self.get(id)))
    }

    fn get(&self, id: FuncId) -> &'static FuncDef {
        &REGISTRY.funcs[usize::from(id.0)].def
    }
}

/// How function `id` is evaluated.
#[inline]
pub fn eval_fn(id: FuncId) -> EvalFn {
    REGISTRY.funcs[usize::from(id.0)].eval
}

/// Expressions with a syntax of their own: interval arithmetic, EXTRACT, TIMESTAMPDIFF, TRIM.
pub(crate) fn eval_special<'a>(
    cx: &crate::eval::EvalCx<'a>,
    e: &'a nfold_plan::expr::Expr,
) -> Result<crate::eval::Val<'a>, nfold_types::SqlError> {
    let _ = (cx, e);
    Err(nfold_types::SqlError::not_supported(
        "this temporal or TRIM expression",
    ))
}
