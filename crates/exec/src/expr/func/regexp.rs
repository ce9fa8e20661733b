//! Regular expressions: applies `crates/regexp` to strings of any character set.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use nfold_plan::Value;
use nfold_plan::expr::{Class, Coercibility, Expr, ExprKind, ExprType};
use nfold_plan::func::{Infer, any_nullable, infer_int};
use nfold_regexp::{
    Flags, MatchError, PatternError, Regexp, ReplaceError, Scratch, Search, Span, expand,
};
use nfold_types::{CollationId, ErrorCode, SqlError, TypeKind};

use super::builtin::{Evaluated, Func, Inferred, arg, func, matched, merged};
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("regexp_like", (2, 3), infer_like, eval_like),
    func("regexp_instr", (2, 6), infer_instr, eval_instr),
    matched(func("regexp_substr", (2, 5), infer_substr, eval_substr)),
    matched(func("regexp_replace", (3, 6), infer_replace, eval_replace)),
];

/// A compiled pattern with its text and flags.
struct Compiled {
    pattern: String,
    flags: Flags,
    regexp: Rc<Regexp>,
}

thread_local! {
    /// The patterns that this thread used last, most recent at the end.
    static RECENT: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
    /// Memory of searches. A search takes it out, because its statement may be suspended.
    static SCRATCH: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

const RECENT_MAX: usize = 16;

const SCRATCH_MAX: usize = 4;

/// The approximate time of one search step in nanoseconds.
const STEP_WORK: u64 = 5;

/// The maximum length of cached patterns in bytes; longer ones are compiled each time.
const RECENT_BYTES_MAX: usize = 64 << 10;

fn compile(cx: &EvalCx<'_>, pattern: &str, flags: Flags) -> Result<Rc<Regexp>, SqlError> {
    let known = RECENT.with_borrow(|list| {
        let mut newest_first = list.iter().rev();
        newest_first
            .find(|c| c.flags == flags && c.pattern == pattern)
            .map(|c| Rc::clone(&c.regexp))
    });
    if let Some(regexp) = known {
        return Ok(regexp);
    }
    let mut stopped = None;
    let mut progress = |work: u64| {
        stopped = cx.checkpoint(work * STEP_WORK).err();
        stopped.is_none()
    };
    let compiled = Regexp::new(pattern, flags, &mut progress);
    if let Some(e) = stopped {
        return Err(e);
    }
    let regexp = Rc::new(compiled.map_err(refusal)?);
    if pattern.len() > RECENT_BYTES_MAX {
        return Ok(regexp);
    }
    RECENT.with_borrow_mut(|list| {
        if list.len() == RECENT_MAX {
            list.remove(0);
        }
        list.push(Compiled {
            pattern: pattern.into(),
            flags,
            regexp: Rc::clone(&regexp),
        });
    });
    Ok(regexp)
}

/// Whether the pattern matches a part of `text`; `None`: the pattern is no regular expression.
pub(super) fn finds(cx: &EvalCx<'_>, pattern: &str, text: &str) -> Result<Option<bool>, SqlError> {
    let Ok(regexp) = compile(cx, pattern, Flags::default()) else {
        cx.checkpoint(0)?;
        return Ok(None);
    };
    let text = Cow::Borrowed(text);
    let call = Call { text, regexp };
    let found = call.search(cx, &call.text, 0, |m| m.next())?;
    Ok(Some(found.is_some()))
}

/// MySQL's error for a pattern that cannot be compiled.
fn refusal(error: PatternError) -> SqlError {
    let code = match error {
        PatternError::Syntax { line, column } => {
            return SqlError::new(ErrorCode::ER_REGEXP_RULE_SYNTAX, &[&line, &column]);
        }
        PatternError::NotSupported(what) => return SqlError::not_supported(what),
        PatternError::UnknownCharacterName => {
            let args: [&dyn std::fmt::Display; 1] = [&"U_ILLEGAL_CHAR_FOUND"];
            return SqlError::new(ErrorCode::ER_REGEXP_ERROR, &args);
        }
        PatternError::IllegalArgument => ErrorCode::ER_REGEXP_ILLEGAL_ARGUMENT,
        PatternError::Internal | PatternError::Stopped => ErrorCode::ER_REGEXP_INTERNAL_ERROR,
        PatternError::BadEscape => ErrorCode::ER_REGEXP_BAD_ESCAPE_SEQUENCE,
        PatternError::Unimplemented => ErrorCode::ER_REGEXP_UNIMPLEMENTED,
        PatternError::MismatchedParen => ErrorCode::ER_REGEXP_MISMATCHED_PAREN,
        PatternError::BadInterval => ErrorCode::ER_REGEXP_BAD_INTERVAL,
        PatternError::MaxBelowMin => ErrorCode::ER_REGEXP_MAX_LT_MIN,
        PatternError::InvalidBackReference => ErrorCode::ER_REGEXP_INVALID_BACK_REF,
        PatternError::LookBehindLimit => ErrorCode::ER_REGEXP_LOOK_BEHIND_LIMIT,
        PatternError::MissingCloseBracket => ErrorCode::ER_REGEXP_MISSING_CLOSE_BRACKET,
        PatternError::InvalidRange => ErrorCode::ER_REGEXP_INVALID_RANGE,
        PatternError::TooBig => ErrorCode::ER_REGEXP_PATTERN_TOO_BIG,
        PatternError::InvalidGroupName => ErrorCode::ER_REGEXP_INVALID_CAPTURE_GROUP_NAME,
        PatternError::InvalidFlag => ErrorCode::ER_REGEXP_INVALID_FLAG,
        PatternError::NumberTooBig => ErrorCode::ER_REGEXP_NUMBER_TOO_BIG,
    };
    SqlError::new(code, &[])
}

fn outside() -> SqlError {
    SqlError::new(ErrorCode::ER_REGEXP_INDEX_OUTOFBOUNDS_ERROR, &[])
}

fn replacement_error(error: ReplaceError) -> SqlError {
    match error {
        ReplaceError::NoSuchGroup => outside(),
        ReplaceError::InvalidGroupName => refusal(PatternError::InvalidGroupName),
    }
}

/// A string as UTF-8. Each byte of a binary string becomes one character.
fn string<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Cow<'a, str>>, SqlError> {
    let is_binary = e.ty.class() == Class::String && e.ty.collation() == CollationId::BINARY;
    let to = if is_binary {
        CollationId::BINARY
    } else {
        CollationId::UTF8MB4_0900_AI_CI
    };
    let Some(bytes) = cx.text(e, to)? else {
        return Ok(None);
    };
    if is_binary && !bytes.is_ascii() {
        return Ok(Some(bytes.iter().map(|b| char::from(*b)).collect()));
    }
    Ok(Some(match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Cow::Owned(text),
            Err(e) => Cow::Owned(String::from_utf8_lossy(e.as_bytes()).into_owned()),
        },
    }))
}

/// Parses the match type's flags. `name` is the function, for error 1210. `None`: NULL.
fn flags_of<'a>(
    cx: &EvalCx<'a>,
    e: Option<&'a Expr>,
    insensitive: bool,
    name: &str,
) -> Result<Option<Flags>, SqlError> {
    let mut flags = Flags::default();
    flags.case_insensitive = insensitive;
    let Some(e) = e else {
        return Ok(Some(flags));
    };
    let Some(letters) = string(cx, e)? else {
        return Ok(None);
    };
    for letter in letters.chars() {
        match letter {
            'c' => flags.case_insensitive = false,
            'i' => flags.case_insensitive = true,
            'm' => flags.multi_line = true,
            'n' => flags.dot_all = true,
            'u' => flags.unix_lines = true,
            _ => return Err(SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&name])),
        }
    }
    Ok(Some(flags))
}

/// The subject and the compiled pattern of a call.
struct Call<'a> {
    text: Cow<'a, str>,
    regexp: Rc<Regexp>,
}

impl<'a> Call<'a> {
    /// `None` if an argument is NULL. An invalid pattern is an error even if the subject is NULL,
    /// as in MySQL.
    fn new(
        cx: &EvalCx<'a>,
        args: &'a [Expr],
        flags: Option<&'a Expr>,
        name: &str,
    ) -> Result<Option<Call<'a>>, SqlError> {
        let collation = merged(cx, &[&args[0], &args[1]], "regexp_like")?;
        let insensitive = collation.known().name.ends_with("_ci");
        let Some(flags) = flags_of(cx, flags, insensitive, name)? else {
            return Ok(None);
        };
        let Some(pattern) = string(cx, &args[1])? else {
            return Ok(None);
        };
        let regexp = compile(cx, &pattern, flags)?;
        let text = string(cx, &args[0])?;
        Ok(text.map(|text| Call { text, regexp }))
    }

    /// The byte offset of character `position`, counted from 0.
    fn offset(&self, position: usize) -> Option<usize> {
        if position == 0 {
            return Some(0);
        }
        let mut places = self.text.char_indices().map(|(at, _)| at);
        let end = self.text.len();
        places.by_ref().chain([end]).nth(position)
    }

    /// Searches `text` from byte `from` on.
    fn search<R>(
        &self,
        cx: &EvalCx<'_>,
        text: &str,
        from: usize,
        run: impl FnOnce(&mut Matches<'_, '_>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let mut scratch = SCRATCH.with_borrow_mut(Vec::pop).unwrap_or_default();
        let limits = cx.env().regexp_limits();
        let search = Search::new(&self.regexp, text, from, limits, &mut scratch);
        let outcome = run(&mut Matches { cx, search });
        scratch.trim();
        SCRATCH.with_borrow_mut(|list| {
            if list.len() < SCRATCH_MAX {
                list.push(scratch);
            }
        });
        outcome
    }
}

/// A search that can be stopped at checkpoints.
struct Matches<'m, 'a> {
    cx: &'m EvalCx<'a>,
    search: Search<'m>,
}

impl Matches<'_, '_> {
    fn next(&mut self) -> Result<Option<Span>, SqlError> {
        let cx = self.cx;
        let mut progress = |work: u64| cx.checkpoint(work * STEP_WORK);
        self.search.next(&mut progress).map_err(|e| match e {
            MatchError::TimeOut => SqlError::new(ErrorCode::ER_REGEXP_TIME_OUT, &[]),
            MatchError::StackOverflow => SqlError::new(ErrorCode::ER_REGEXP_STACK_OVERFLOW, &[]),
            MatchError::Stopped(e) => e,
        })
    }

    /// Match number `occurrence`, counted from 1.
    fn nth(&mut self, occurrence: i32) -> Result<Option<Span>, SqlError> {
        for _ in 1..occurrence {
            if self.next()?.is_none() {
                return Ok(None);
            }
        }
        self.next()
    }
}

/// An optional integer argument, of 32 bits as in MySQL.
fn number<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    place: usize,
    default: i32,
) -> Result<Option<i32>, SqlError> {
    match args.get(place) {
        Some(e) => Ok(cx.int(e)?.map(|v| v as i32)),
        None => Ok(Some(default)),
    }
}

/// Checks that the subject, the pattern and the replacement have a common collation. A binary
/// string together with a character string is error 3995. As in MySQL, a BINARY or BLOB value goes
/// with any string, but not with a replacement that is a literal.
fn matched_texts(cx: &Infer<'_>, args: &[Expr]) -> Result<(), SqlError> {
    let merged = cx.comparable(&[&args[0], &args[1]])?;
    let text = |e: &&Expr| e.ty.class() == Class::String;
    let texts = args.iter().filter(text);
    let written = |e: &Expr| e.ty.coercibility == Coercibility::Coercible;
    let alone = args.len() > 2 && texts.clone().any(written);
    let binary = |e: &Expr| {
        let varying = matches!(e.ty.col.kind, TypeKind::VarBinary(_));
        e.ty.collation() == CollationId::BINARY && (varying || alone)
    };
    let not_binary = |e: &Expr| e.ty.collation() != CollationId::BINARY;
    if texts.clone().any(binary) && texts.clone().any(not_binary) {
        let name = |e: &Expr| {
            let own = nfold_plan::collate::as_string(&e.ty, cx.connection);
            own.collation.known().name
        };
        let code = nfold_types::ErrorCode::ER_CHARACTER_SET_MISMATCH;
        return Err(SqlError::new(
            code,
            &[&name(&args[0]), &name(&args[1]), &cx.name],
        ));
    }
    nfold_plan::collate::convertible(args.iter(), merged.collation)
}

fn infer_like(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    matched_texts(cx, &args[..2])?;
    Ok(ExprType::boolean(any_nullable(args)))
}

fn eval_like<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let call = arg!(Call::new(cx, args, args.get(2), "regexp_like"));
    let found = call.search(cx, &call.text, 0, |m| m.next())?;
    Ok(Val::Int(i64::from(found.is_some())))
}

/// Error 1210: the return option of REGEXP_INSTR must be 0 or 1.
fn wrong_return_option() -> SqlError {
    let what = "regexp_instr: return_option must be 1 or 0.";
    SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&what])
}

fn infer_instr(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    matched_texts(cx, &args[..2])?;
    if let Some(ExprKind::Const(option)) = args.get(4).map(|e| &e.kind)
        && (matches!(option, Value::Int(n) if !(0..=1).contains(n))
            || matches!(option, Value::UInt(n) if *n > 1))
    {
        return Err(wrong_return_option());
    }
    infer_int::<21>(cx, args)
}

fn eval_instr<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let option = arg!(number(cx, args, 4, 0));
    if !(0..=1).contains(&option) {
        return Err(wrong_return_option());
    }
    let call = arg!(Call::new(cx, args, args.get(5), "regexp_instr"));
    let position = arg!(number(cx, args, 2, 1));
    let occurrence = arg!(number(cx, args, 3, 1));
    let mut skipped = 0;
    let mut from = 0;
    if !call.text.is_empty() {
        skipped = usize::try_from(i64::from(position) - 1).map_err(|_| outside())?;
        from = call.offset(skipped).ok_or_else(outside)?;
        if from == call.text.len() {
            return Err(outside());
        }
    }
    // The pattern sees the text from the position on only, unlike with REGEXP_SUBSTR.
    let rest = &call.text[from..];
    let found = call.search(cx, rest, 0, |m| m.nth(occurrence))?;
    Ok(Val::Int(found.map_or(0, |(start, end)| {
        let at = if option == 1 { end } else { start };
        (skipped + rest[..at].chars().count()) as i64 + 1
    })))
}

fn infer_substr(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    matched_texts(cx, &args[..2])?;
    cx.string_from(&[&args[0], &args[1]], args[0].ty.char_length())
}

/// Converts text to the character set of the result.
fn encoded<'a>(text: &str, ty: &ExprType) -> Val<'a> {
    let set = ty.collation().known().charset;
    if set.is_utf8() || set.is_ascii(text.as_bytes()) {
        return Val::string(text.as_bytes().to_vec());
    }
    if set.is_binary() {
        let byte = |c: char| u8::try_from(u32::from(c)).unwrap_or(b'?');
        return Val::string(text.chars().map(byte).collect());
    }
    let mut out = Vec::new();
    let from = CollationId::UTF8MB4_0900_AI_CI.known().charset;
    nfold_types::charset::convert(from, set, text.as_bytes(), &mut out);
    Val::string(out)
}

/// The byte offset of the position argument of REGEXP_SUBSTR and REGEXP_REPLACE. Errors 1583, 3686.
fn from_position(call: &Call<'_>, position: i32, name: &str) -> Result<usize, SqlError> {
    if position < 1 {
        let code = ErrorCode::ER_WRONG_PARAMETERS_TO_NATIVE_FCT;
        return Err(SqlError::new(code, &[&name]));
    }
    call.offset(position as usize - 1).ok_or_else(outside)
}

fn eval_substr<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let call = arg!(Call::new(cx, args, args.get(4), "regexp_substr"));
    let position = arg!(number(cx, args, 2, 1));
    let occurrence = arg!(number(cx, args, 3, 1));
    let from = from_position(&call, position, "regexp_substr")?;
    let found = call.search(cx, &call.text, from, |m| m.nth(occurrence))?;
    Ok(found.map_or(Val::Null, |(start, end)| {
        encoded(&call.text[start..end], ty)
    }))
}

fn infer_replace(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    matched_texts(cx, &args[..3])?;
    cx.string_from(&[&args[0], &args[1], &args[2]], u64::MAX)
}

fn eval_replace<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let call = arg!(Call::new(cx, args, args.get(5), "regexp_replace"));
    let replacement = arg!(string(cx, &args[2]));
    let position = arg!(number(cx, args, 3, 1));
    let occurrence = arg!(number(cx, args, 4, 0));
    let from = from_position(&call, position, "regexp_replace")?;
    // MySQL replaces nothing in an empty string, even if the pattern matches it.
    if call.text.is_empty() {
        return Ok(encoded("", ty));
    }
    let replacement: Vec<char> = replacement.chars().collect();
    let out = call.search(cx, &call.text, from, |m| {
        replaced(m, &call.text, occurrence, &replacement)
    })?;
    if out.len() > cx.env().max_allowed_packet() {
        return cx.checked_string(out.into_bytes(), "regexp_replace");
    }
    Ok(encoded(&out, ty))
}

/// `text` with all matches replaced, or only match number `occurrence`.
fn replaced(
    matches: &mut Matches<'_, '_>,
    text: &str,
    occurrence: i32,
    replacement: &[char],
) -> Result<String, SqlError> {
    let mut out = String::new();
    let mut copied = 0;
    let mut found = matches.nth(occurrence)?;
    while let Some((start, end)) = found {
        out.push_str(&text[copied..start]);
        expand(&matches.search, replacement, &mut out).map_err(replacement_error)?;
        copied = end;
        if occurrence != 0 {
            break;
        }
        found = matches.next()?;
    }
    out.push_str(&text[copied..]);
    Ok(out)
}
