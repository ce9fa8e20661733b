//! Information about session and server, identifiers, addresses, and user-level locks.

use std::time::Duration;

use nfold_plan::expr::{Coercibility, Expr, ExprKind, ExprType};
use nfold_plan::func::{Infer, infer_int_null};
use nfold_types::{CHECKPOINT_WORK, CollationId, ErrorCode, SqlError};

use super::builtin::{Evaluated, Func, Inferred, arg, func, volatile};
use super::codes::no_value;
use super::user_locks::{get_lock, is_free_lock, is_used_lock, release_all_locks, release_lock};
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("user", (0, 0), infer_name, |cx, _, _| text(cx.env().user())),
    func("session_user", (0, 0), infer_name, |cx, _, _| {
        text(cx.env().user())
    }),
    func("system_user", (0, 0), infer_name, |cx, _, _| {
        text(cx.env().user())
    }),
    func("current_user", (0, 0), infer_name, |cx, _, _| {
        text(cx.env().current_user())
    }),
    func("current_role", (0, 0), infer_role, |cx, _, _| {
        text(cx.env().current_role())
    }),
    func("version", (0, 0), infer_name, |cx, _, _| {
        text(cx.env().version())
    }),
    func("schema", (0, 0), infer_schema, |cx, _, _| {
        Ok(cx
            .env()
            .database()
            .map_or(Val::Null, |d| Val::string(d.into_bytes())))
    }),
    func(
        "validate_password_strength",
        (1, 1),
        infer_int_null::<10>,
        |cx, a, _| {
            let password = arg!(cx.text(&a[0], CollationId::UTF8MB4_GENERAL_CI));
            let strength = cx
                .env()
                .password_strength(&String::from_utf8_lossy(&password));
            Ok(Val::Int(strength as i64))
        },
    ),
    func("connection_id", (0, 0), infer_unsigned, |cx, _, _| {
        Ok(Val::UInt(cx.env().connection_id()))
    }),
    func("found_rows", (0, 0), infer_plain_int, |cx, _, _| {
        Ok(Val::Int(cx.env().found_rows() as i64))
    }),
    func("row_count", (0, 0), infer_plain_int, |cx, _, _| {
        Ok(Val::Int(cx.env().row_count()))
    }),
    volatile(func("sleep", (1, 1), infer_plain_int, eval_sleep)),
    volatile(func(
        "benchmark",
        (2, 2),
        infer_int_null::<1>,
        eval_benchmark,
    )),
    volatile(func("uuid", (0, 0), infer_uuid, eval_uuid)),
    volatile(func("uuid_short", (0, 0), infer_unsigned, eval_uuid_short)),
    func("is_uuid", (1, 1), infer_int_null::<1>, |cx, a, _| {
        let text = arg!(cx.bytes(&a[0]));
        Ok(Val::Int(i64::from(uuid_bytes(&text).is_some())))
    }),
    func("uuid_to_bin", (1, 2), infer_uuid_to_bin, eval_uuid_to_bin),
    func("bin_to_uuid", (1, 2), infer_bin_to_uuid, eval_bin_to_uuid),
    func(
        "inet_aton",
        (1, 1),
        |_, _| Ok(ExprType::ubigint(true)),
        eval_inet_aton,
    ),
    func("inet_ntoa", (1, 1), infer_inet_ntoa, eval_inet_ntoa),
    func(
        "name_const",
        (2, 2),
        |_, a| {
            if !is_literal(&a[0]) || !is_literal(&a[1]) {
                let code = ErrorCode::ER_WRONG_ARGUMENTS;
                return Err(SqlError::new(code, &[&"NAME_CONST"]));
            }
            Ok(ExprType {
                nullable: true,
                ..a[1].ty.item()
            })
        },
        |cx, a, _| cx.val(&a[1]),
    ),
    volatile(func("get_lock", (2, 2), infer_int_null::<1>, get_lock)),
    volatile(func(
        "release_lock",
        (1, 1),
        infer_int_null::<1>,
        release_lock,
    )),
    volatile(func(
        "release_all_locks",
        (0, 0),
        infer_unsigned,
        release_all_locks,
    )),
    volatile(func(
        "is_free_lock",
        (1, 1),
        infer_int_null::<1>,
        is_free_lock,
    )),
    volatile(func(
        "is_used_lock",
        (1, 1),
        infer_unsigned_null,
        is_used_lock,
    )),
];

/// Whether `e` is a literal, perhaps with a sign or COLLATE.
fn is_literal(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Const(_) | ExprKind::Param(_) => true,
        ExprKind::Neg(inner) => matches!(inner.kind, ExprKind::Const(_) | ExprKind::Param(_)),
        ExprKind::Collate(inner) => is_literal(inner),
        _ => false,
    }
}

fn text<'a>(s: String) -> Evaluated<'a> {
    Ok(Val::string(s.into_bytes()))
}

fn infer_role(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::string(
        5_592_405,
        CollationId::UTF8MB3_GENERAL_CI,
        Coercibility::SysConst,
        true,
    ))
}

fn infer_name(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::string(
        288,
        CollationId::UTF8MB3_GENERAL_CI,
        Coercibility::SysConst,
        true,
    ))
}

fn infer_schema(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::string(
        64,
        CollationId::UTF8MB3_GENERAL_CI,
        Coercibility::SysConst,
        true,
    ))
}

fn infer_unsigned(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::ubigint(false))
}

fn infer_unsigned_null(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::ubigint(true))
}

fn infer_plain_int(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::bigint(false))
}

/// The work of one round of BENCHMARK, without that of the evaluated functions.
const BENCHMARK_WORK: u64 = 100;

fn eval_benchmark<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let times = arg!(cx.int(&args[0]));
    if times < 0 {
        let count = times.to_string();
        cx.warn(
            ErrorCode::ER_WRONG_VALUE_FOR_TYPE,
            &[&"count", &count, &"benchmark"],
        );
        return Ok(Val::Null);
    }
    for _ in 0..times {
        cx.checkpoint(BENCHMARK_WORK)?;
        cx.val(&args[1])?;
    }
    Ok(Val::Int(0))
}

/// Returns an error if a call of SLEEP was ended by KILL QUERY or the time limit and the statement
/// reads rows. A statement without rows continues, as in MySQL.
#[cold]
fn stop_reading_rows(cx: &EvalCx<'_>) -> Result<(), SqlError> {
    match cx.rows.is_empty() && cx.outer.is_empty() {
        true => Ok(()),
        false => cx.checkpoint(CHECKPOINT_WORK),
    }
}

fn eval_sleep<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let time = cx.f64(&args[0])?.filter(|t| *t >= 0.0);
    let Some(time) = time.and_then(|t| Duration::try_from_secs_f64(t.min(1e9)).ok()) else {
        return Err(SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&"sleep."]));
    };
    let slept = time.is_zero() || cx.st.subqueries.sleep(time)?;
    if !slept {
        stop_reading_rows(cx)?;
    }
    Ok(Val::Int(i64::from(!slept)))
}

fn infer_uuid(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::string(
        36,
        CollationId::UTF8MB3_GENERAL_CI,
        Coercibility::Coercible,
        true,
    ))
}

/// UUID version 1 (RFC 4122): the clock, and a random node as the RFC allows.
fn eval_uuid<'a>(cx: &EvalCx<'a>, _: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    /// The time from 1582-10-15 to 1970-01-01 in units of 100 ns.
    const GREGORIAN: u64 = 0x01B2_1DD2_1381_4000;
    // The clock has microseconds. The digit below and the sequence number distinguish the
    // identifiers of one microsecond.
    let (low, node) = (cx.env().random(), cx.env().random());
    let ticks = cx.env().clock().micros() as u64 * 10 + low % 10 + GREGORIAN;
    let shown = format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        ticks as u32,
        (ticks >> 32) as u16,
        (ticks >> 48) as u16 & 0x0FFF | 0x1000,
        (low >> 16) as u16 & 0x3FFF | 0x8000,
        node & 0xFFFF_FFFF_FFFF | 0x0100_0000_0000,
    );
    text(shown)
}

fn eval_uuid_short<'a>(cx: &EvalCx<'a>, _: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    use std::sync::atomic::{AtomicU64, Ordering};
    // UUID_SHORT as MySQL composes it: server number 1, the second of the first call, and a
    // counter.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let start = 1u64 << 56 | (cx.env().clock().seconds() as u64 & 0xFFFF_FFFF) << 24;
    // Relaxed: only uniqueness matters.
    let _ = NEXT.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed);
    Ok(Val::UInt(NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Parses a UUID with dashes, in braces, or as digits only.
fn uuid_bytes(text: &[u8]) -> Option<[u8; 16]> {
    let inner = match text {
        [b'{', inner @ .., b'}'] if inner.len() == 36 => inner,
        other => other,
    };
    let digits: Vec<u8> = match inner.len() {
        32 => inner.to_vec(),
        36 if [8, 13, 18, 23].iter().all(|i| inner[*i] == b'-') => {
            inner.iter().copied().filter(|b| *b != b'-').collect()
        }
        _ => return None,
    };
    if digits.len() != 32 {
        return None;
    }
    let digit = |b: u8| char::from(b).to_digit(16);
    let mut out = [0; 16];
    for (byte, pair) in out.iter_mut().zip(digits.chunks(2)) {
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(out)
}

fn infer_uuid_to_bin(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::string(
        16,
        CollationId::BINARY,
        Coercibility::Coercible,
        true,
    ))
}

fn wrong_value(text: &[u8], function: &str) -> SqlError {
    let shown = String::from_utf8_lossy(text);
    SqlError::new(
        ErrorCode::ER_WRONG_VALUE_FOR_TYPE,
        &[&"string", &shown, &function],
    )
}

fn eval_uuid_to_bin<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.bytes(&args[0]));
    let Some(b) = uuid_bytes(&text) else {
        return Err(wrong_value(&text, "uuid_to_bin"));
    };
    let swap = match args.get(1) {
        Some(e) => cx.int(e)?.unwrap_or(0) != 0,
        None => false,
    };
    Ok(Val::string(if swap {
        [&b[6..8], &b[4..6], &b[..4], &b[8..]].concat()
    } else {
        b.to_vec()
    }))
}

fn infer_bin_to_uuid(cx: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(cx.connection_string(36))
}

fn eval_bin_to_uuid<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(cx.bytes(&args[0]));
    if bytes.len() != 16 {
        return Err(wrong_value(&bytes, "bin_to_uuid"));
    }
    let swapped = match args.get(1) {
        Some(e) => cx.int(e)?.unwrap_or(0) != 0,
        None => false,
    };
    let b = if swapped {
        [&bytes[4..8], &bytes[2..4], &bytes[..2], &bytes[8..]].concat()
    } else {
        bytes.into_owned()
    };
    let digits = super::codes::hex_of(&b, b"0123456789abcdef");
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    Ok(Val::string(parts.join(&b'-')))
}

fn eval_inet_aton<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.bytes(&args[0]));
    let parts: Vec<&[u8]> = text.split(|b| *b == b'.').collect();
    let mut numbers = Vec::new();
    for part in &parts {
        let digits = !part.is_empty() && part.len() <= 10 && part.iter().all(u8::is_ascii_digit);
        let n = std::str::from_utf8(part)
            .ok()
            .and_then(|p| p.parse::<u64>().ok());
        match n.filter(|n| digits && *n <= 255) {
            Some(n) => numbers.push(n),
            None => return no_value(cx, &args[0], "inet_aton"),
        }
    }
    if numbers.len() > 4 {
        return no_value(cx, &args[0], "inet_aton");
    }
    // In a short form the last number fills the remaining bytes.
    let last = numbers.pop().unwrap_or(0);
    let head = numbers.iter().fold(0, |n, part| n << 8 | part);
    let shift = if numbers.is_empty() {
        0
    } else {
        8 * (4 - numbers.len())
    };
    Ok(Val::UInt(head << shift | last))
}

fn infer_inet_ntoa(cx: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(cx.connection_string(31))
}

fn eval_inet_ntoa<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let n = arg!(cx.integer(&args[0]));
    match u32::try_from(n) {
        Ok(n) => text(std::net::Ipv4Addr::from(n).to_string()),
        Err(_) => {
            let shown = cx.describe(&args[0]);
            cx.warn(
                ErrorCode::ER_WRONG_VALUE_FOR_TYPE,
                &[&"integer", &shown, &"inet_ntoa"],
            );
            Ok(Val::Null)
        }
    }
}
