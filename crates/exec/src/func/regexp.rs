//! Regular expressions. The engine is linear in the text: what needs backtracking (look-around, references back) is error 1235.

use std::cell::RefCell;
use std::rc::Rc;

use nfold_plan::expr::{Class, Coercibility, Expr, ExprType};
use nfold_plan::func::{Infer, any_nullable, infer_int};
use nfold_types::{CollationId, ErrorCode, SqlError, TypeKind};
use regex::{Regex, RegexBuilder};

use super::{Evaluated, Func, Inferred, arg, func, merged};
use crate::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("regexp_like", (2, 3), infer_like, eval_like),
    func("regexp_instr", (2, 6), infer_instr, eval_instr),
    func("regexp_substr", (2, 5), infer_substr, eval_substr),
    func("regexp_replace", (3, 6), infer_replace, eval_replace),
];

/// A compiled pattern with its text and match type.
type Compiled = (String, String, bool, Rc<Regex>);

thread_local! {
    /// The patterns used last on this thread, newest at the end.
    static RECENT: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

const RECENT_MAX: usize = 16;

fn compile(pattern: &str, flags: &str, insensitive: bool) -> Result<Rc<Regex>, SqlError> {
    let known = RECENT.with_borrow(|list| {
        list.iter()
            .find(|(p, f, i, _)| p == pattern && f == flags && *i == insensitive)
            .map(|entry| Rc::clone(&entry.3))
    });
    if let Some(regex) = known {
        return Ok(regex);
    }
    if pattern.is_empty() {
        return Err(SqlError::new(ErrorCode::ER_REGEXP_ILLEGAL_ARGUMENT, &[]));
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.case_insensitive(insensitive);
    for flag in flags.chars() {
        match flag {
            'c' => builder.case_insensitive(false),
            'i' => builder.case_insensitive(true),
            'm' => builder.multi_line(true),
            'n' => builder.dot_matches_new_line(true),
            'u' => builder.crlf(false),
            _ => {
                return Err(SqlError::new(
                    ErrorCode::ER_WRONG_ARGUMENTS,
                    &[&"regexp_like"],
                ));
            }
        };
    }
    let regex = Rc::new(builder.build().map_err(|e| refusal(pattern, &e))?);
    RECENT.with_borrow_mut(|list| {
        if list.len() == RECENT_MAX {
            list.remove(0);
        }
        list.push((pattern.into(), flags.into(), insensitive, Rc::clone(&regex)));
    });
    Ok(regex)
}

/// MySQL's error for a pattern that is none.
fn refusal(pattern: &str, error: &regex::Error) -> SqlError {
    let text = error.to_string();
    let has = |what: &str| text.contains(what);
    if has("look-around") || has("backreferences") {
        return SqlError::not_supported("look-around and references back in regular expressions");
    }
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return SqlError::new(ErrorCode::ER_REGEXP_STACK_OVERFLOW, &[]);
    }
    let code = if has("unclosed group") || has("unopened group") {
        ErrorCode::ER_REGEXP_MISMATCHED_PAREN
    } else if has("unclosed character class") {
        ErrorCode::ER_REGEXP_MISSING_CLOSE_BRACKET
    } else if has("invalid character class range") {
        ErrorCode::ER_REGEXP_INVALID_RANGE
    } else if has("invalid repetition count range") {
        ErrorCode::ER_REGEXP_MAX_LT_MIN
    } else if has("repetition quantifier expects") || has("counted repetition") {
        ErrorCode::ER_REGEXP_BAD_INTERVAL
    } else if has("escape") {
        ErrorCode::ER_REGEXP_BAD_ESCAPE_SEQUENCE
    } else if has("repetition operator missing expression") {
        let at = pattern.find(['*', '+', '?', '{']).map_or(1, |at| at + 1);
        return SqlError::new(ErrorCode::ER_REGEXP_RULE_SYNTAX, &[&1, &at]);
    } else {
        ErrorCode::ER_REGEXP_ILLEGAL_ARGUMENT
    };
    SqlError::new(code, &[])
}

/// Subject and pattern of a call, ready to search.
struct Search {
    text: String,
    regex: Rc<Regex>,
}

impl Search {
    /// `None`: an argument is NULL.
    fn new<'a>(
        cx: &EvalCx<'a>,
        args: &'a [Expr],
        flags: Option<&'a Expr>,
    ) -> Result<Option<Search>, SqlError> {
        let collation = merged(cx, &[&args[0], &args[1]], "regexp_like")?;
        let Some(text) = string(cx, &args[0])? else {
            return Ok(None);
        };
        let Some(pattern) = string(cx, &args[1])? else {
            return Ok(None);
        };
        let flags = match flags {
            None => String::new(),
            Some(e) => match string(cx, e)? {
                Some(flags) => flags,
                None => return Ok(None),
            },
        };
        let name = collation.known().name;
        let insensitive = name.ends_with("_ci");
        let regex = compile(&pattern, &flags, insensitive)?;
        Ok(Some(Search { text, regex }))
    }

    /// Byte offset of character `position`, counted from 1; error 3686.
    fn start(&self, position: i64) -> Result<usize, SqlError> {
        let outside = || SqlError::new(ErrorCode::ER_REGEXP_INDEX_OUTOFBOUNDS_ERROR, &[]);
        let skip = usize::try_from(position - 1).map_err(|_| outside())?;
        let mut places = self
            .text
            .char_indices()
            .map(|(at, _)| at)
            .chain([self.text.len()]);
        places.nth(skip).ok_or_else(outside)
    }
}

fn string<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<String>, SqlError> {
    let to = match e.ty.class() {
        Class::String if e.ty.collation() == CollationId::BINARY => CollationId::BINARY,
        _ => CollationId::UTF8MB4_0900_AI_CI,
    };
    Ok(cx
        .text(e, to)?
        .map(|t| String::from_utf8_lossy(&t).into_owned()))
}

/// An integer argument that may be left out.
fn number<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    place: usize,
    default: i64,
) -> Result<Option<i64>, SqlError> {
    match args.get(place) {
        Some(e) => cx.int(e),
        None => Ok(Some(default)),
    }
}

/// The subject, the pattern and the replacement must have a collation together; binary ones stand alone: error 3995. As in MySQL, what
/// comes as BINARY or BLOB goes with any text, with the written text of a replacement alone it does not.
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
    let search = arg!(Search::new(cx, args, args.get(2)));
    Ok(Val::Int(i64::from(search.regex.is_match(&search.text))))
}

fn infer_instr(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    matched_texts(cx, &args[..2])?;
    infer_int::<21>(cx, args)
}

fn eval_instr<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let search = arg!(Search::new(cx, args, args.get(5)));
    let position = arg!(number(cx, args, 2, 1));
    let occurrence = arg!(number(cx, args, 3, 1)).max(1) as usize;
    let after = arg!(number(cx, args, 4, 0)) == 1;
    if search.text.is_empty() && position == 1 {
        return Ok(Val::Int(i64::from(search.regex.is_match(""))));
    }
    let start = search.start(position)?;
    let found = search
        .regex
        .find_iter(&search.text)
        .filter(|m| m.start() >= start)
        .nth(occurrence - 1);
    Ok(Val::Int(found.map_or(0, |m| {
        let at = if after { m.end() } else { m.start() };
        search.text[..at].chars().count() as i64 + 1
    })))
}

fn infer_substr(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    matched_texts(cx, &args[..2])?;
    cx.string_from(&[&args[0], &args[1]], args[0].ty.char_length())
}

/// Text in the result's character set.
fn encoded<'a>(text: &str, ty: &ExprType) -> Val<'a> {
    let set = ty.collation().known().charset;
    if set.is_utf8() || set.is_binary() || text.is_ascii() {
        return Val::string(text.as_bytes().to_vec());
    }
    let mut out = Vec::new();
    let from = CollationId::UTF8MB4_0900_AI_CI.known().charset;
    nfold_types::charset::convert(from, set, text.as_bytes(), &mut out);
    Val::string(out)
}

fn eval_substr<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let search = arg!(Search::new(cx, args, args.get(4)));
    let position = arg!(number(cx, args, 2, 1));
    let occurrence = arg!(number(cx, args, 3, 1)).max(1) as usize;
    let start = search.start(position)?;
    let found = search
        .regex
        .find_iter(&search.text)
        .filter(|m| m.start() >= start)
        .nth(occurrence - 1);
    Ok(found.map_or(Val::Null, |m| encoded(m.as_str(), ty)))
}

fn infer_replace(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    matched_texts(cx, &args[..3])?;
    cx.string_from(&[&args[0], &args[1], &args[2]], u64::MAX)
}

fn eval_replace<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let search = arg!(Search::new(cx, args, args.get(5)));
    let with = arg!(string(cx, &args[2]));
    let position = arg!(number(cx, args, 3, 1));
    let occurrence = arg!(number(cx, args, 4, 0)).max(0) as usize;
    let start = search.start(position)?;
    let mut out = String::new();
    let mut copied = 0;
    let matches = search.regex.captures_iter(&search.text);
    let within = matches.filter(|c| c.get(0).is_some_and(|m| m.start() >= start));
    for (n, captures) in within.enumerate() {
        let Some(whole) = captures.get(0) else {
            continue;
        };
        if occurrence > 0 && n + 1 != occurrence {
            continue;
        }
        out.push_str(&search.text[copied..whole.start()]);
        expand(&with, &captures, &mut out)?;
        copied = whole.end();
    }
    out.push_str(&search.text[copied..]);
    if out.len() > cx.env().max_allowed_packet() {
        return cx.checked_string(out.into_bytes(), "regexp_replace");
    }
    Ok(encoded(&out, ty))
}

/// Fills the replacement: `$n` is a group, a backslash takes the next character as it is.
fn expand(with: &str, captures: &regex::Captures<'_>, out: &mut String) -> Result<(), SqlError> {
    let mut chars = with.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '$' => {
                let outside = || SqlError::new(ErrorCode::ER_REGEXP_INDEX_OUTOFBOUNDS_ERROR, &[]);
                let first = chars.next().and_then(|d| d.to_digit(10));
                let mut group = first
                    .ok_or_else(|| SqlError::new(ErrorCode::ER_REGEXP_ILLEGAL_ARGUMENT, &[]))?
                    as usize;
                if group >= captures.len() {
                    return Err(outside());
                }
                // More digits belong to the number while there is such a group.
                while let Some(d) = chars.peek().and_then(|d| d.to_digit(10)) {
                    let longer = group * 10 + d as usize;
                    if longer >= captures.len() {
                        break;
                    }
                    group = longer;
                    chars.next();
                }
                out.push_str(captures.get(group).map_or("", |m| m.as_str()));
            }
            other => out.push(other),
        }
    }
    Ok(())
}
