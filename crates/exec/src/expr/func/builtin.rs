//! Definitions for the function modules: the registry entry, and helpers for large values.

use nfold_plan::expr::{Expr, ExprType};
use nfold_plan::func::{FuncDef, Infer, MATCHED, UNCHANGED, UNCHECKED, VOLATILE};
use nfold_types::{Charset, CollationId, SqlError};

use crate::expr::eval::{EvalCx, EvalFn, Val};

/// A built-in function.
pub struct Func {
    pub def: FuncDef,
    pub eval: EvalFn,
}

/// The result of type inference.
pub(super) type Inferred = Result<ExprType, SqlError>;
/// The result of an evaluation.
pub(super) type Evaluated<'a> = Result<Val<'a>, SqlError>;

pub(super) const fn func(
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

/// Marks a function as volatile: it is evaluated for each row, even with constant arguments.
pub(super) const fn volatile(f: Func) -> Func {
    flagged(f, VOLATILE)
}

/// Marks a function that returns one of its arguments unchanged.
pub(super) const fn unchanged(f: Func) -> Func {
    flagged(f, UNCHANGED)
}

/// Marks a function whose text is read as a number without warning 1292.
pub(super) const fn unchecked(f: Func) -> Func {
    flagged(f, UNCHECKED)
}

/// Marks a function whose text is read as a DECIMAL through an integer, and as a number without
/// warning 1292.
pub(super) const fn matched(f: Func) -> Func {
    flagged(f, MATCHED)
}

const fn flagged(f: Func, flags: u8) -> Func {
    Func {
        def: FuncDef { flags, ..f.def },
        ..f
    }
}

/// The value of an argument. Returns NULL from the calling function if it is NULL.
macro_rules! arg {
    ($e:expr) => {
        match $e? {
            Some(v) => v,
            None => return Ok($crate::expr::eval::Val::Null),
        }
    };
}
pub(super) use arg;

/// The number of bytes of a large value between two checkpoints.
pub(super) const PIECE_BYTES: usize = 128 << 10;

/// Splits text into pieces of whole characters, and calls `f` for each piece. `cost` is the work
/// for each byte.
pub(super) fn in_pieces(
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

/// [`Charset::char_len`], with checkpoints.
pub(super) fn char_len(cx: &EvalCx<'_>, set: &Charset, text: &[u8]) -> Result<usize, SqlError> {
    let mut chars = 0;
    in_pieces(cx, set, text, 2, |piece| chars += set.char_len(piece))?;
    Ok(chars)
}

/// [`Charset::char_prefix_len`], with checkpoints.
pub(super) fn char_prefix_len(
    cx: &EvalCx<'_>,
    set: &Charset,
    text: &[u8],
    chars: usize,
) -> Result<usize, SqlError> {
    let (mut at, mut left) = (0, chars);
    while text.len() - at > PIECE_BYTES && left > PIECE_BYTES {
        let piece = set.piece_end(&text[at..], PIECE_BYTES);
        // A character has at least one byte.
        left -= set.char_len(&text[at..at + piece]);
        at += piece;
        cx.checkpoint(4 * piece as u64)?;
    }
    Ok(at + set.char_prefix_len(&text[at..], left))
}

/// Counts the rounds of a loop over a large value, for checkpoints.
pub(super) struct Pace<'c, 'a> {
    cx: &'c EvalCx<'a>,
    steps: u32,
}

impl<'c, 'a> Pace<'c, 'a> {
    const STEPS: u32 = 4096;

    pub(super) fn new(cx: &'c EvalCx<'a>) -> Pace<'c, 'a> {
        Pace { cx, steps: 0 }
    }

    /// Called once in each round, which takes about ten steps.
    #[inline]
    pub(super) fn step(&mut self) -> Result<(), SqlError> {
        self.steps += 1;
        if self.steps < Self::STEPS {
            return Ok(());
        }
        self.steps = 0;
        self.cx.checkpoint(10 * u64::from(Self::STEPS))
    }
}

/// The collation in which a function compares its arguments.
pub(super) fn merged(cx: &EvalCx<'_>, args: &[&Expr], name: &str) -> Result<CollationId, SqlError> {
    let types = args.iter().map(|e| &e.ty);
    Ok(nfold_plan::collate::merge(types, cx.env().collation(), name)?.collation)
}
