//! Built-in functions: one table, found by name when a statement is bound and by number when it runs.
//!
//! A module contributes a slice of [`Func`]; to add a function, write its `infer` and its `eval` and put it into the slice of its
//! module. Arguments are evaluated by the function itself (`cx.int(&args[0])?`), so that IF and COALESCE evaluate only what they need.

mod aes;
mod codes;
mod compress;
mod core;
mod dates;
mod digest;
mod formats;
mod inet6;
mod info;
mod json;
mod moments;
mod numeric;
mod regexp;
mod strings;
mod text;
mod user_locks;

use std::sync::LazyLock;

use nfold_plan::expr::{Expr, ExprType, FuncId};
use nfold_plan::func::{FuncDef, FuncSet, Infer, VOLATILE};
use nfold_types::{Charset, CollationId, SqlError};
use rustc_hash::FxHashMap;

use crate::eval::{EvalCx, EvalFn, Val};

/// A built-in function.
pub struct Func {
    pub def: FuncDef,
    pub eval: EvalFn,
}

/// What a function's type inference gives.
type Inferred = Result<ExprType, SqlError>;
/// What a function gives.
type Evaluated<'a> = Result<Val<'a>, SqlError>;

const fn func(
    name: &'static str,
    args: (u8, u8),
    infer: fn(&Infer<'_>, &mut [Expr]) -> Inferred,
    eval: EvalFn,
) -> Func {
    Func {
        def: FuncDef {
            name,
            min_args: args.0,
            max_args: args.1,
            infer,
            flags: 0,
        },
        eval,
    }
}

/// The function as one that is evaluated for each row, whatever its arguments.
const fn volatile(f: Func) -> Func {
    Func {
        def: FuncDef {
            flags: VOLATILE,
            ..f.def
        },
        ..f
    }
}

/// The value of an argument, or out of the function with NULL.
macro_rules! arg {
    ($e:expr) => {
        match $e? {
            Some(v) => v,
            None => return Ok($crate::eval::Val::Null),
        }
    };
}
use arg;

/// Bytes of a large value between two checkpoints.
const PIECE_BYTES: usize = 128 << 10;

/// Calls `f` for a text piece by piece, each ending between two characters; a byte of them takes `cost` steps.
fn in_pieces(
    cx: &EvalCx<'_>,
    set: &Charset,
    text: &[u8],
    cost: u64,
    mut f: impl FnMut(&[u8]),
) -> Result<(), SqlError> {
    let mut rest = text;
    while rest.len() > PIECE_BYTES {
        let (piece, after) = rest.split_at(set.piece_end(rest, PIECE_BYTES));
        f(piece);
        cx.checkpoint(piece.len() as u64 * cost)?;
        rest = after;
    }
    f(rest);
    Ok(())
}

/// [`Charset::char_len`]
fn char_len(cx: &EvalCx<'_>, set: &Charset, text: &[u8]) -> Result<usize, SqlError> {
    let mut chars = 0;
    in_pieces(cx, set, text, 2, |piece| chars += set.char_len(piece))?;
    Ok(chars)
}

/// [`Charset::char_prefix_len`]
fn char_prefix_len(
    cx: &EvalCx<'_>,
    set: &Charset,
    text: &[u8],
    chars: usize,
) -> Result<usize, SqlError> {
    let (mut at, mut left) = (0, chars);
    while text.len() - at > PIECE_BYTES && left > PIECE_BYTES {
        let piece = set.piece_end(&text[at..], PIECE_BYTES);
        // No character is shorter than a byte.
        left -= set.char_len(&text[at..at + piece]);
        at += piece;
        cx.checkpoint(4 * piece as u64)?;
    }
    Ok(at + set.char_prefix_len(&text[at..], left))
}

/// Counts the steps of a loop over a large value.
struct Pace<'c, 'a> {
    cx: &'c EvalCx<'a>,
    steps: u32,
}

impl<'c, 'a> Pace<'c, 'a> {
    const STEPS: u32 = 4096;

    fn new(cx: &'c EvalCx<'a>) -> Pace<'c, 'a> {
        Pace { cx, steps: 0 }
    }

    /// To be called once a round, which takes some ten steps.
    #[inline]
    fn step(&mut self) -> Result<(), SqlError> {
        self.steps += 1;
        if self.steps < Self::STEPS {
            return Ok(());
        }
        self.steps = 0;
        self.cx.checkpoint(10 * u64::from(Self::STEPS))
    }
}

/// The collation in which a function compares its arguments.
fn merged(cx: &EvalCx<'_>, args: &[&Expr], name: &str) -> Result<CollationId, SqlError> {
    let types = args.iter().map(|e| &e.ty);
    Ok(nfold_plan::collate::merge(types, cx.env().collation(), name)?.collation)
}

/// All functions. A function's [`FuncId`] is its place here; ids hold for the life of the process only.
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
        info::FUNCS,
        regexp::FUNCS,
        aes::FUNCS,
        compress::FUNCS,
        inet6::FUNCS,
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
pub(crate) fn eval_special<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Evaluated<'a> {
    use nfold_plan::expr::ExprKind::*;
    match &e.kind {
        Trim { side, what, expr } => strings::trim(cx, *side, what.as_deref(), expr, &e.ty),
        IntervalArith {
            expr,
            amount,
            unit,
            subtract,
        } => moments::interval_arith(cx, expr, amount, *unit, *subtract, &e.ty),
        Extract { unit, expr } => moments::extract(cx, *unit, expr),
        TimestampDiff { unit, from, to } => moments::difference(cx, *unit, from, to),
        _ => unreachable!("only expressions with a syntax of their own come here"),
    }
}
