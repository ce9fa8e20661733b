//! Strings made from strings: padding, replacing, concatenating, quoting, and formatted numbers.

use nfold_plan::expr::{Class, Expr, ExprKind, ExprType};
use nfold_plan::func::{ANY_ARGS, Infer, any_nullable};
use nfold_types::{ErrorCode, Locale, SqlError, TypeKind, Value};

use super::builtin::{
    Evaluated, Func, Inferred, PIECE_BYTES, Pace, arg, char_len, char_prefix_len, func,
};
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("lpad", (3, 3), infer_pad, |cx, a, ty| pad(cx, a, ty, true)),
    func("rpad", (3, 3), infer_pad, |cx, a, ty| pad(cx, a, ty, false)),
    func(
        nfold_plan::func::PADDED,
        (1, 1),
        |_, args| Ok(args[0].ty.clone()),
        eval_padded,
    ),
    func("repeat", (2, 2), infer_repeat, eval_repeat),
    func("space", (1, 1), infer_space, eval_space),
    func("replace", (3, 3), infer_replace, eval_replace),
    func("insert", (4, 4), infer_insert, eval_insert),
    func("concat_ws", (2, ANY_ARGS), infer_concat_ws, eval_concat_ws),
    func("make_set", (2, ANY_ARGS), infer_make_set, eval_make_set),
    func("export_set", (3, 5), infer_export_set, eval_export_set),
    func("quote", (1, 1), infer_quote, eval_quote),
    func("soundex", (1, 1), infer_soundex, eval_soundex),
    func("format", (2, 3), infer_format, eval_format),
];

/// The value of an integer literal.
fn constant(e: &Expr) -> Option<u64> {
    match &e.kind {
        ExprKind::Const(Value::Int(n)) => u64::try_from(*n).ok(),
        ExprKind::Const(Value::Decimal(d)) => d.round(0).and_then(|d| d.to_u64()),
        ExprKind::Const(Value::Bytes(text)) => std::str::from_utf8(text).ok()?.parse().ok(),
        ExprKind::Cast { expr, to } if Class::of(to) == Class::Int => constant(expr),
        _ => None,
    }
}

/// Whether `bytes` exceeds `max_allowed_packet`. Then it warns (1301), and the result is NULL.
fn too_long(cx: &EvalCx<'_>, bytes: usize, name: &str) -> bool {
    let max = cx.env().max_allowed_packet();
    if bytes > max {
        cx.warn(ErrorCode::ER_WARN_ALLOWED_PACKET_OVERFLOWED, &[&name, &max]);
    }
    bytes > max
}

/// Pads a CHAR value: PAD_CHAR_TO_FULL_LENGTH.
fn eval_padded<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let Some(text) = cx.bytes(&args[0])? else {
        return Ok(Val::Null);
    };
    let missing = match ty.col.kind {
        TypeKind::Char(n) => (n as usize).saturating_sub(ty.col.charset().char_len(&text)),
        _ => 0,
    };
    if missing == 0 {
        return Ok(Val::Bytes(text));
    }
    let mut text = text.into_owned();
    text.extend(ty.col.charset().space().repeat(missing));
    Ok(Val::string(text))
}

fn infer_pad(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    cx.long_string_from(&[&args[0]], constant(&args[1]))
}

fn pad<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType, left: bool) -> Evaluated<'a> {
    let set = ty.collation().known().charset;
    let text = arg!(cx.text(&args[0], ty.collation()));
    let wanted = arg!(cx.length(&args[1]));
    let fill = arg!(cx.text_for(&args[2], ty.collation()));
    let Ok(wanted) = usize::try_from(wanted) else {
        return Ok(Val::Null);
    };
    let have = char_len(cx, set, &text)?;
    if wanted <= have {
        let keep = char_prefix_len(cx, set, &text, wanted)?;
        return Ok(Val::string(text[..keep].to_vec()));
    }
    let unit = set.char_len(&fill);
    if unit == 0 {
        return Ok(Val::Bytes(text));
    }
    let name = if left { "lpad" } else { "rpad" };
    let per_char = usize::from(set.max_len);
    if too_long(cx, wanted.saturating_mul(per_char), name) {
        return Ok(Val::Null);
    }
    let missing = wanted - have;
    let mut padding = repeated(cx, &fill, missing / unit)?;
    padding.extend_from_slice(set.char_prefix(&fill, missing % unit));
    if left {
        cx.append(&text, &mut padding)?;
        return Ok(Val::string(padding));
    }
    let mut out = text.into_owned();
    cx.append(&padding, &mut out)?;
    Ok(Val::string(out))
}

fn infer_repeat(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let length = cx.total_length(&[&args[0]])?;
    let times = match &args[1].kind {
        _ if length == 0 => Some(0),
        ExprKind::Const(Value::Int(n)) if *n < 0 => Some(u64::MAX),
        _ => constant(&args[1]),
    };
    let chars = times.map(|n| length.saturating_mul(n));
    cx.long_string_from(&[&args[0]], chars)
}

fn eval_repeat<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.text(&args[0], ty.collation()));
    let times = usize::try_from(arg!(cx.length(&args[1]))).unwrap_or(0);
    if too_long(cx, text.len().saturating_mul(times), "repeat") {
        return Ok(Val::Null);
    }
    Ok(Val::string(repeated(cx, &text, times)?))
}

/// Repeats text.
fn repeated(cx: &EvalCx<'_>, text: &[u8], times: usize) -> Result<Vec<u8>, SqlError> {
    if text.is_empty() || text.len().saturating_mul(times) <= PIECE_BYTES {
        return Ok(text.repeat(times));
    }
    let at_once = (PIECE_BYTES / text.len()).max(1);
    let piece = text.repeat(at_once);
    let mut out = Vec::with_capacity(text.len() * times);
    for _ in 0..times / at_once {
        out.extend_from_slice(&piece);
        cx.checkpoint(piece.len() as u64)?;
    }
    out.extend_from_slice(&piece[..text.len() * (times % at_once)]);
    Ok(out)
}

fn infer_space(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let negative = match &args[0].kind {
        ExprKind::Const(Value::Int(n)) => *n < 0,
        ExprKind::Const(Value::Decimal(d)) => d.is_negative(),
        _ => false,
    };
    let chars = if negative {
        Some(0)
    } else {
        constant(&args[0])
    };
    cx.long_string_from(&[], chars)
}

fn eval_space<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let n = usize::try_from(arg!(cx.length(&args[0]))).unwrap_or(0);
    if too_long(cx, n, "space") {
        return Ok(Val::Null);
    }
    Ok(Val::string(repeated(cx, b" ", n)?))
}

fn infer_replace(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let collation = cx.merge(&[&args[0]])?.collation;
    let (text, to) = (
        args[0].ty.length_in(collation),
        args[2].ty.length_in(collation),
    );
    // The maximum length as MySQL computes it, regardless of the replaced string.
    cx.string_from(
        &[&args[0]],
        text.saturating_add(text.saturating_mul(to.saturating_sub(2))),
    )
}

/// REPLACE: replaces every occurrence, compared by bytes in every collation.
fn eval_replace<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.text(&args[0], ty.collation()));
    let from = arg!(cx.text_for(&args[1], ty.collation()));
    let to = arg!(cx.text_for(&args[2], ty.collation()));
    if from.is_empty() {
        return Ok(Val::Bytes(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut copied = 0;
    let mut end = |until: usize, next: usize, to: &[u8]| {
        out.extend_from_slice(&text[copied..until]);
        out.extend_from_slice(to);
        copied = next;
        too_long(cx, out.len(), "replace")
    };
    let (mut last, mut next) = (0, 0);
    let set = ty.collation().known().charset;
    let finder = memchr::memmem::Finder::new(&from[..]);
    while let Some(found) = finder.find(&text[next..]) {
        let at = next + found;
        if !set.is_boundary(&text, at) {
            next = at + 1;
            continue;
        }
        next = at + from.len();
        cx.checkpoint((at - last + to.len()) as u64)?;
        last = at;
        if end(at, at + from.len(), &to) {
            return Ok(Val::Null);
        }
    }
    match end(text.len(), text.len(), &[]) {
        true => Ok(Val::Null),
        false => Ok(Val::string(out)),
    }
}

fn infer_insert(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let collation = cx.merge(&[&args[0]])?.collation;
    let chars = args[0].ty.length_in(collation);
    let more = args[3].ty.length_in(collation);
    cx.string_from(&[&args[0]], chars.saturating_add(more))
}

fn eval_insert<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let set = ty.collation().known().charset;
    let text = arg!(cx.text(&args[0], ty.collation()));
    let (at, len) = (arg!(cx.int(&args[1])), arg!(cx.int(&args[2])));
    let new = arg!(cx.text_for(&args[3], ty.collation()));
    let chars = char_len(cx, set, &text)?;
    let Some(at) = usize::try_from(at)
        .ok()
        .filter(|at| (1..=chars).contains(at))
    else {
        return Ok(Val::Bytes(text));
    };
    let from = char_prefix_len(cx, set, &text, at - 1)?;
    let to = match usize::try_from(len) {
        Ok(len) => from + char_prefix_len(cx, set, &text[from..], len)?,
        Err(_) => text.len(),
    };
    let mut out = Vec::with_capacity(from + new.len() + (text.len() - to));
    for part in [&text[..from], &new, &text[to..]] {
        cx.append(part, &mut out)?;
    }
    cx.checked_string(out, "insert")
}

fn infer_concat_ws(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let all: Vec<&Expr> = args.iter().collect();
    let collation = cx.merge(&all)?.collation;
    let separators = args[0]
        .ty
        .length_in(collation)
        .saturating_mul(args.len() as u64 - 2);
    let chars = args[1..]
        .iter()
        .map(|e| e.ty.length_in(collation))
        .fold(separators, u64::saturating_add);
    cx.string_from(&all, chars)
}

fn eval_concat_ws<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let separator = arg!(cx.text(&args[0], ty.collation()));
    let mut out = Vec::new();
    let mut first = true;
    for e in &args[1..] {
        if let Some(text) = cx.text(e, ty.collation())? {
            if !first {
                cx.append(&separator, &mut out)?;
            }
            first = false;
            cx.append(&text, &mut out)?;
            if out.len() > cx.env().max_allowed_packet() {
                break;
            }
        }
    }
    cx.checked_string(out, "concat_ws")
}

fn infer_make_set(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let strings: Vec<&Expr> = args[1..].iter().collect();
    let chars = cx
        .total_length(&strings)?
        .saturating_add(args.len() as u64 - 2);
    let mut ty = cx.string_from(&strings, chars)?;
    ty.nullable = any_nullable(args);
    Ok(ty)
}

fn eval_make_set<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let bits = arg!(cx.integer(&args[0])) as u64;
    let mut out = Vec::new();
    let mut first = true;
    for (_, e) in args[1..]
        .iter()
        .take(64)
        .enumerate()
        .filter(|(i, _)| bits >> i & 1 == 1)
    {
        if let Some(text) = cx.text(e, ty.collation())? {
            if !first {
                out.push(b',');
            }
            first = false;
            cx.append(&text, &mut out)?;
        }
    }
    Ok(Val::string(out))
}

fn infer_export_set(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let strings: Vec<&Expr> = args[1..args.len().min(4)].iter().collect();
    let longest = strings[0].ty.char_length().max(strings[1].ty.char_length());
    let separator = strings.get(2).map_or(1, |e| e.ty.char_length());
    cx.string_from(
        &strings,
        longest.saturating_mul(64).saturating_add(separator * 63),
    )
}

fn eval_export_set<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let bits = arg!(cx.integer(&args[0])) as u64;
    let on = arg!(cx.text(&args[1], ty.collation()));
    let off = arg!(cx.text(&args[2], ty.collation()));
    let separator = match args.get(3) {
        Some(e) => arg!(cx.text(e, ty.collation())),
        None => b",".as_slice().into(),
    };
    let count = match args.get(4) {
        Some(e) => match arg!(cx.int(e)) {
            n @ 0..=64 => n,
            _ => 64,
        },
        None => 64,
    };
    let lengths = (0..count).map(|i| {
        if bits >> i & 1 == 1 {
            on.len()
        } else {
            off.len()
        }
    });
    let separators = separator.len() * (count as usize).saturating_sub(1);
    let bytes = lengths.sum::<usize>() + separators;
    if too_long(cx, bytes, "export_set") {
        return Ok(Val::Null);
    }
    let mut out = Vec::with_capacity(bytes);
    for i in 0..count {
        if i > 0 {
            cx.append(&separator, &mut out)?;
        }
        cx.append(if bits >> i & 1 == 1 { &on } else { &off }, &mut out)?;
    }
    Ok(Val::string(out))
}

fn infer_quote(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    if args[0].ty.class() == Class::Null {
        return Ok(cx.connection_string("NULL".len() as u64));
    }
    let chars = cx.total_length(&[&args[0]])?.saturating_mul(2) + 2;
    let mut ty = cx.string_from(&[&args[0]], chars)?;
    // As in MySQL, bytes become text of the connection.
    if ty.col.charset().is_binary() {
        let coercibility = ty.coercibility;
        ty = ExprType::string(chars, cx.connection, coercibility, true);
    }
    Ok(ty)
}

fn eval_quote<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let Some(text) = cx.text_for(&args[0], ty.collation())? else {
        return Ok(Val::string(b"NULL".to_vec()));
    };
    let mut out = vec![b'\''];
    let mut pace = Pace::new(cx);
    for b in text.iter() {
        pace.step()?;
        match b {
            b'\'' | b'\\' => out.extend([b'\\', *b]),
            0 => out.extend(b"\\0"),
            0x1A => out.extend(b"\\Z"),
            _ => out.push(*b),
        }
    }
    out.push(b'\'');
    Ok(Val::string(out))
}

fn infer_soundex(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let chars = cx.total_length(&[&args[0]])?.max(4);
    cx.string_from(&[&args[0]], chars)
}

/// SOUNDEX: the original algorithm, in which vowels are dropped before duplicates. The result may
/// exceed four characters.
fn eval_soundex<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    const CODES: &[u8; 26] = b"01230120022455012623010202";
    let set = ty.collation().known().charset;
    let text = arg!(cx.text(&args[0], ty.collation()));
    let code = |c: char| {
        let upper = c.to_ascii_uppercase();
        if upper.is_ascii_uppercase() {
            CODES[(upper as u8 - b'A') as usize]
        } else {
            b'0'
        }
    };
    let mut out = Vec::new();
    let mut last = b'0';
    let mut rest = &text[..];
    let mut pace = Pace::new(cx);
    while !rest.is_empty() {
        pace.step()?;
        let (c, step) = set.decode(rest).unwrap_or(('\0', 1));
        rest = &rest[step..];
        if !(c.is_ascii_alphabetic() || u32::from(c) >= 0xC0 && !set.is_binary()) {
            continue;
        }
        let this = code(c);
        if out.is_empty() {
            set.encode(c.to_ascii_uppercase(), &mut out);
        } else if this != b'0' && this != last {
            out.push(this);
        } else if this == b'0' {
            continue;
        }
        last = this;
    }
    if !out.is_empty() {
        let chars = set.char_len(&out);
        out.resize(out.len() + 4usize.saturating_sub(chars), b'0');
    }
    Ok(Val::string(out))
}

fn infer_format(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let chars = args[0].ty.char_length();
    Ok(cx.connection_string(chars + chars / 3 + 32))
}

/// The digits of a number with this many decimals. Of a large number, the shortest digits that
/// identify it, followed by zeros.
fn plain_digits(v: f64, digits: usize) -> String {
    /// Doubles from this value on have no decimals.
    const WHOLE: f64 = 1e16;
    if v.abs() < WHOLE {
        return format!("{v:.digits$}");
    }
    let shortest = format!("{v:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let sign = if v < 0.0 { "-" } else { "" };
    let mut whole: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let wanted = exponent.parse::<usize>().unwrap_or(0) + 1;
    whole.extend(std::iter::repeat_n('0', wanted.saturating_sub(whole.len())));
    match digits {
        0 => format!("{sign}{whole}"),
        n => format!("{sign}{whole}.{}", "0".repeat(n)),
    }
}

/// The locale that FORMAT names; `en_US`, with a warning, where there is no such.
fn format_locale<'a>(cx: &EvalCx<'a>, name: &'a Expr) -> Result<&'static Locale, SqlError> {
    let name = cx.bytes(name)?;
    let text = String::from_utf8_lossy(name.as_deref().unwrap_or(b"NULL"));
    let found = Locale::by_name(&text);
    if found.is_none() {
        cx.warn(ErrorCode::ER_UNKNOWN_LOCALE, &[&text]);
    }
    Ok(found.unwrap_or_else(Locale::english))
}

/// Appends digits in groups, as a locale writes them.
fn push_grouped(out: &mut String, digits: &str, locale: &Locale) {
    // How many digits stand behind each separator.
    let mut breaks = Vec::new();
    let mut sizes = locale.groups.iter().copied().filter(|n| *n > 0);
    let (mut behind, mut size) = (0, 0);
    while !locale.separator.is_empty() {
        size = sizes.next().unwrap_or(size);
        behind += size;
        if size == 0 || behind >= digits.len() {
            break;
        }
        breaks.push(behind);
    }
    for (i, c) in digits.chars().enumerate() {
        if breaks.contains(&(digits.len() - i)) {
            out.push_str(locale.separator);
        }
        out.push(c);
    }
}

fn eval_format<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let exact = matches!(args[0].ty.class(), Class::Int | Class::Decimal);
    let number = cx.val(&args[0])?;
    if number.is_null() {
        return Ok(Val::Null);
    }
    let digits = arg!(cx.int(&args[1])).clamp(0, 30);
    let text = if exact {
        let d = arg!(cx.decimal(&args[0]));
        let d = d.round(digits as i32).unwrap_or(d);
        match d.rescale(digits as u8) {
            Some(d) => d.to_string(),
            None => d.to_string(),
        }
    } else {
        let v = super::numeric::round_double(arg!(cx.f64(&args[0])), digits, false);
        plain_digits(v, digits as usize)
    };
    let locale = match args.get(2) {
        None => Locale::english(),
        Some(e) => format_locale(cx, e)?,
    };
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut out = String::from(sign);
    push_grouped(&mut out, whole, locale);
    if digits > 0 {
        out.push_str(locale.decimal_point);
        out.push_str(fraction);
    }
    Ok(Val::string(out.into_bytes()))
}
