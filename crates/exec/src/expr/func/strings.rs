//! Substrings and positions. Positions and lengths are characters of the result's character set,
//! counted from 1.

use std::borrow::Cow;

use nfold_plan::expr::{Expr, ExprKind, ExprType};
use nfold_plan::func::{ANY_ARGS, Infer, infer_int};
use nfold_sql::ast::TrimSide;
use nfold_types::charset::Charset;
use nfold_types::collation::Collation;
use nfold_types::{CollationId, SqlError, Value};

use super::builtin::{
    Evaluated, Func, Inferred, Pace, arg, char_len, char_prefix_len, func, in_pieces, merged,
};
use crate::expr::eval::branches::position_of;
use crate::expr::eval::compare::ComparedAs;
use crate::expr::eval::convert::string_collation;
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("upper", (1, 1), infer_same, eval_upper),
    func("ucase", (1, 1), infer_same, eval_upper),
    func("lcase", (1, 1), infer_same, eval_lower),
    func("substring", (2, 3), infer_substring, eval_substring),
    func("substr", (2, 3), infer_substring, eval_substring),
    func("mid", (2, 3), infer_substring, eval_substring),
    func("left", (2, 2), infer_side, eval_left),
    func("right", (2, 2), infer_side, eval_right),
    func("ltrim", (1, 1), infer_same, |cx, a, ty| {
        trim(cx, TrimSide::Leading, None, &a[0], ty)
    }),
    func("rtrim", (1, 1), infer_same, |cx, a, ty| {
        trim(cx, TrimSide::Trailing, None, &a[0], ty)
    }),
    func("substring_index", (3, 3), infer_index, eval_index),
    func("reverse", (1, 1), infer_same, eval_reverse),
    func("instr", (2, 2), infer_places, |cx, a, _| {
        locate(cx, &a[1], &a[0], None)
    }),
    func("locate", (2, 3), infer_places, |cx, a, _| {
        locate(cx, &a[0], &a[1], a.get(2))
    }),
    func("position", (2, 2), infer_places, |cx, a, _| {
        locate(cx, &a[0], &a[1], None)
    }),
    func("strcmp", (2, 2), infer_strcmp, eval_strcmp),
    func("find_in_set", (2, 2), infer_find_in_set, eval_find_in_set),
    func("octet_length", (1, 1), infer_int::<11>, |cx, a, _| {
        Ok(Val::Int(arg!(cx.bytes(&a[0])).len() as i64))
    }),
    func("bit_length", (1, 1), infer_int::<11>, |cx, a, _| {
        Ok(Val::Int(arg!(cx.bytes(&a[0])).len() as i64 * 8))
    }),
    func(
        "character_length",
        (1, 1),
        infer_int::<11>,
        eval_char_length,
    ),
    func("field", (2, ANY_ARGS), infer_field, eval_field),
    func("elt", (2, ANY_ARGS), infer_elt, eval_elt),
];

/// The type of a string no longer than the first argument, in its character set.
fn infer_same(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    cx.string_from(&[&args[0]], cx.total_length(&[&args[0]])?)
}

fn infer_index(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    cx.string_from(&[&args[0]], cx.total_length(&[&args[0]])?)
}

/// The type of a position in a string; the arguments are converted to a common collation.
fn infer_places(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    infer_int::<11>(cx, args)
}

fn infer_strcmp(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    cx.comparable(&[&args[0], &args[1]])?;
    infer_int::<2>(cx, args)
}

fn infer_find_in_set(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    cx.comparable(&[&args[0], &args[1]])?;
    infer_int::<11>(cx, args)
}

/// The value of an integer literal.
fn written(e: &Expr) -> Option<i64> {
    match &e.kind {
        ExprKind::Const(Value::Int(n)) => Some(*n),
        _ => None,
    }
}

/// LEFT and RIGHT: the result is no longer than a literal length.
fn infer_side(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let chars = cx.total_length(&[&args[0]])?;
    let wanted = written(&args[1]).map_or(chars, |n| u64::try_from(n).unwrap_or(0));
    cx.string_from(&[&args[0]], chars.min(wanted))
}

fn infer_substring(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let mut chars = cx.total_length(&[&args[0]])?;
    chars = match written(&args[1]) {
        None => chars,
        Some(0) => 0,
        Some(from) if from < 0 && from.unsigned_abs() > chars => 0,
        Some(from) if from < 0 => from.unsigned_abs(),
        Some(from) => chars.saturating_sub(from as u64 - 1),
    };
    if let Some(wanted) = args.get(2).and_then(written) {
        chars = chars.min(u64::try_from(wanted).unwrap_or(0));
    }
    cx.string_from(&[&args[0]], chars)
}

fn cut(text: Cow<'_, [u8]>, from: usize, to: usize) -> Val<'_> {
    match text {
        Cow::Borrowed(b) => Val::Bytes(Cow::Borrowed(&b[from..to])),
        // Most of a large text moves in its own memory, which is cheaper than new memory.
        Cow::Owned(mut b) if to - from > b.len() / 2 => {
            b.truncate(to);
            b.drain(..from);
            Val::string(b)
        }
        Cow::Owned(b) => Val::string(b[from..to].to_vec()),
    }
}

fn eval_upper<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    changed_case(cx, args, ty, Collation::upper)
}

fn eval_lower<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    changed_case(cx, args, ty, Collation::lower)
}

/// The argument after `change`, which appends a piece of it in the other case. A binary string has
/// no case.
fn changed_case<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    ty: &'a ExprType,
    change: fn(&Collation, &[u8], &mut Vec<u8>),
) -> Evaluated<'a> {
    let text = arg!(cx.text(&args[0], ty.collation()));
    if ty.collation() == CollationId::BINARY {
        return Ok(Val::Bytes(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let collation = ty.collation().known();
    in_pieces(cx, collation.charset, &text, 6, |piece| {
        change(collation, piece, &mut out)
    })?;
    Ok(Val::string(out))
}

fn eval_char_length<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let collation = string_collation(cx, &args[0].ty);
    let text = arg!(cx.bytes(&args[0]));
    Ok(Val::Int(
        char_len(cx, collation.known().charset, &text)? as i64
    ))
}

fn charset(ty: &ExprType) -> &'static Charset {
    ty.collation().known().charset
}

fn eval_substring<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.text(&args[0], ty.collation()));
    let start = arg!(cx.length(&args[1]));
    let len = match args.get(2) {
        Some(e) => usize::try_from(arg!(cx.length(e))).unwrap_or(0),
        None => usize::MAX,
    };
    let set = charset(ty);
    let first = if start < 0 {
        let chars = char_len(cx, set, &text)?;
        match chars.checked_sub(start.unsigned_abs() as usize) {
            Some(first) => first,
            None => return Ok(Val::string(Vec::new())),
        }
    } else if start == 0 {
        return Ok(Val::string(Vec::new()));
    } else {
        start as usize - 1
    };
    let from = char_prefix_len(cx, set, &text, first)?;
    let to = from + char_prefix_len(cx, set, &text[from..], len)?;
    Ok(cut(text, from, to))
}

fn eval_left<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.text(&args[0], ty.collation()));
    let n = usize::try_from(arg!(cx.length(&args[1]))).unwrap_or(0);
    let to = char_prefix_len(cx, charset(ty), &text, n)?;
    Ok(cut(text, 0, to))
}

fn eval_right<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.text(&args[0], ty.collation()));
    let n = usize::try_from(arg!(cx.length(&args[1]))).unwrap_or(0);
    let set = charset(ty);
    let skip = char_len(cx, set, &text)?.saturating_sub(n);
    let from = char_prefix_len(cx, set, &text, skip)?;
    let to = text.len();
    Ok(cut(text, from, to))
}

/// `TRIM([side] [what FROM] expr)`. Without `what`, spaces are removed.
pub(super) fn trim<'a>(
    cx: &EvalCx<'a>,
    side: TrimSide,
    what: Option<&'a Expr>,
    expr: &'a Expr,
    ty: &'a ExprType,
) -> Evaluated<'a> {
    let text = arg!(cx.text(expr, ty.collation()));
    let what: Cow<'_, [u8]> = match what {
        Some(e) => arg!(cx.text_for(e, ty.collation())),
        None => Cow::Borrowed(b" "),
    };
    let (mut from, mut to) = (0, text.len());
    let mut pace = Pace::new(cx);
    if !what.is_empty() {
        if side != TrimSide::Trailing {
            while text[from..to].starts_with(&what) {
                from += what.len();
                pace.step()?;
            }
        }
        if side != TrimSide::Leading {
            let set = charset(ty);
            while text[from..to].ends_with(&what) && set.is_boundary(&text, to - what.len()) {
                to -= what.len();
                pace.step()?;
            }
        }
    }
    Ok(cut(text, from, to))
}

fn eval_index<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.text(&args[0], ty.collation()));
    let delimiter = arg!(cx.text_for(&args[1], ty.collation()));
    let count = arg!(cx.int(&args[2]));
    if text.is_empty() || delimiter.is_empty() || count == 0 {
        return Ok(Val::string(Vec::new()));
    }
    // A negative count searches from the right for delimiters that were found from the left.
    let (mut from, mut to) = (0, text.len());
    let mut left = count.unsigned_abs();
    let mut pace = Pace::new(cx);
    if count > 0 {
        let mut at = 0;
        while at + delimiter.len() <= text.len() {
            pace.step()?;
            if text[at..].starts_with(&delimiter) {
                left -= 1;
                if left == 0 {
                    to = at;
                    break;
                }
                at += delimiter.len();
            } else {
                at += charset(ty).step(&text[at..]).max(1);
            }
        }
    } else {
        let mut at = text.len();
        while at >= delimiter.len() {
            pace.step()?;
            let ends = text[..at].ends_with(&delimiter);
            if ends && charset(ty).is_boundary(&text, at - delimiter.len()) {
                left -= 1;
                if left == 0 {
                    from = at;
                    break;
                }
                at -= delimiter.len();
            } else {
                at -= 1;
            }
        }
    }
    Ok(cut(text, from, to))
}

fn eval_reverse<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.text(&args[0], ty.collation()));
    let mut out = Vec::with_capacity(text.len());
    let set = charset(ty);
    let mut ends = vec![0];
    in_pieces(cx, set, &text, 1, |piece| {
        ends.push(ends[ends.len() - 1] + piece.len())
    })?;
    for ends in ends.windows(2).rev() {
        set.reverse(&text[ends[0]..ends[1]], &mut out);
        cx.checkpoint(4 * (ends[1] - ends[0]) as u64)?;
    }
    Ok(Val::string(out))
}

/// The position of `needle` in `hay`, from character `from` on; 0 if it is not found.
fn locate<'a>(
    cx: &EvalCx<'a>,
    needle: &'a Expr,
    hay: &'a Expr,
    from: Option<&'a Expr>,
) -> Evaluated<'a> {
    let collation = string_collation(cx, &hay.ty);
    let needle = arg!(cx.text_for(needle, collation));
    let hay = arg!(cx.bytes(hay));
    let skip = match from {
        None => 0,
        Some(e) => match arg!(cx.int(e)) {
            n if n > 0 => n as usize - 1,
            _ => return Ok(Val::Int(0)),
        },
    };
    let collation = collation.known();
    let set = collation.charset;
    if skip > 0 && skip > char_len(cx, set, &hay)? {
        return Ok(Val::Int(0));
    }
    let start = char_prefix_len(cx, set, &hay, skip)?;
    let mut goes_on = |work| cx.goes_on(work);
    let found = collation.position_stoppable(&hay, &needle, start, &mut goes_on);
    cx.checkpoint(0)?;
    Ok(Val::Int(match found {
        Some(at) => char_len(cx, set, &hay[..at])? as i64 + 1,
        None => 0,
    }))
}

fn eval_strcmp<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let collation = merged(cx, &[&args[0], &args[1]], "strcmp")?;
    let a = arg!(cx.text(&args[0], collation));
    let b = arg!(cx.text(&args[1], collation));
    Ok(Val::Int(collation.known().compare(&a, &b) as i64))
}

fn eval_find_in_set<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let collation = merged(cx, &[&args[0], &args[1]], "find_in_set")?;
    let needle = arg!(cx.text(&args[0], collation));
    let set = arg!(cx.text(&args[1], collation));
    if set.is_empty() {
        return Ok(Val::Int(0));
    }
    // Trailing spaces count in every collation.
    let spaces = |t: &[u8]| t.iter().rev().take_while(|b| **b == b' ').count();
    let known = collation.known();
    let equal = |member: &[u8]| {
        known.eq(member, &needle) && (!known.pad_space || spaces(member) == spaces(&needle))
    };
    for (n, member) in set.split(|b| *b == b',').enumerate() {
        cx.checkpoint(10 + member.len() as u64)?;
        if equal(member) {
            return Ok(Val::Int(n as i64 + 1));
        }
    }
    Ok(Val::Int(0))
}

fn infer_field(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::int(11, false))
}

/// FIELD: the position of the first argument among the others. They are compared as strings if all
/// are strings, dates or times, as integers if all are integers, otherwise as doubles.
fn eval_field<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    use nfold_plan::expr::CmpKind;
    let (first, rest) = (&args[0], &args[1..]);
    if cx.val(first)?.is_null() {
        return Ok(Val::Int(0));
    }
    let compared = cx.st.lists.compared_as(args, members_compared_as);
    let found = if matches!(compared, ComparedAs::Strings | ComparedAs::Texts) {
        let collation = string_collation(cx, &first.ty);
        let wanted = arg!(cx.bytes(first));
        let hashed = match compared == ComparedAs::Strings {
            true => {
                let value = Val::Bytes(wanted.as_ref().into());
                position_of(cx, rest, CmpKind::String(collation), (&value, &first.ty))?
            }
            false => None,
        };
        match hashed {
            Some(position) => position,
            None => place(rest, |e| {
                let text = cx.text_for(e, collation)?;
                Ok(text.is_some_and(|t| collation.known().eq(&wanted, &t)))
            })?,
        }
    } else if compared == ComparedAs::Ints {
        let wanted = cx.integer(first)?;
        let value = cx.val(first)?;
        // As in MySQL, integers are equal if their 64 bits are: the table of constants compares
        // their values, which is the same only for those of both kinds of BIGINT.
        let unsigned = wanted.is_some_and(|n| i64::try_from(n).is_ok_and(|n| n >= 0));
        let hashed = match unsigned {
            true => position_of(cx, rest, CmpKind::Int, (&value, &first.ty))?,
            false => None,
        };
        match hashed {
            Some(position) => position,
            None => {
                let bits = wanted.map(|n| n as u64);
                place(rest, |e| Ok(cx.integer(e)?.map(|n| n as u64) == bits))?
            }
        }
    } else if compared == ComparedAs::Decimals {
        let wanted = cx.decimal(first)?;
        place(rest, |e| Ok(cx.decimal(e)? == wanted))?
    } else {
        let wanted = cx.f64(first)?;
        place(rest, |e| Ok(cx.f64(e)? == wanted))?
    };
    Ok(Val::Int(found))
}

/// How FIELD compares.
fn members_compared_as(args: &[Expr]) -> ComparedAs {
    use nfold_plan::expr::Class;
    let all = |fits: &dyn Fn(Class) -> bool| args.iter().all(|e| fits(e.ty.class()));
    if all(&|class| class == Class::String) {
        ComparedAs::Strings
    } else if all(&|class| matches!(class, Class::String | Class::Null) || class.is_temporal()) {
        ComparedAs::Texts
    } else if all(&|class| class == Class::Int) {
        ComparedAs::Ints
    } else if all(&|class| matches!(class, Class::Int | Class::Decimal)) {
        ComparedAs::Decimals
    } else {
        ComparedAs::Doubles
    }
}

/// The position of the first argument for which the predicate holds, from 1; 0 if there is none.
fn place<'a>(
    list: &'a [Expr],
    mut found: impl FnMut(&'a Expr) -> Result<bool, SqlError>,
) -> Result<i64, SqlError> {
    for (i, e) in list.iter().enumerate() {
        if found(e)? {
            return Ok(i as i64 + 1);
        }
    }
    Ok(0)
}

fn infer_elt(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let strings: Vec<&Expr> = args[1..].iter().collect();
    let collation = cx.merge(&strings)?.collation;
    let chars = strings.iter().map(|e| e.ty.length_in(collation)).max();
    cx.string_from(&strings, chars.unwrap_or(0))
}

fn eval_elt<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let n = arg!(cx.int(&args[0]));
    match usize::try_from(n)
        .ok()
        .filter(|n| (1..args.len()).contains(n))
    {
        Some(n) => Ok(Val::Bytes(arg!(cx.text(&args[n], ty.collation())))),
        None => Ok(Val::Null),
    }
}
