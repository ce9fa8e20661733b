//! IPv6 addresses (RFC 4291) as text and as bytes, and the functions that test whether a value is
//! an address.

use std::net::{Ipv4Addr, Ipv6Addr};

use nfold_plan::expr::{Coercibility, Expr, ExprType};
use nfold_plan::func::{Infer, any_nullable};
use nfold_types::CollationId;

use super::builtin::{Evaluated, Func, Inferred, arg, func};
use super::codes::no_value;
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("inet6_aton", (1, 1), infer_bytes, eval_aton),
    func("inet6_ntoa", (1, 1), infer_text, eval_ntoa),
    func("is_ipv4", (1, 1), infer_test, |cx, a, _| {
        test(cx, a, |b| ipv4(b).is_some())
    }),
    func("is_ipv6", (1, 1), infer_test, |cx, a, _| {
        test(cx, a, |b| ipv6(b).is_some())
    }),
    func("is_ipv4_compat", (1, 1), infer_test, |cx, a, _| {
        test(cx, a, |b| {
            // The loopback address and the unspecified address do not count.
            b.len() == 16 && b[..12].iter().all(|b| *b == 0) && b[12..] > [0, 0, 0, 1][..]
        })
    }),
    func("is_ipv4_mapped", (1, 1), infer_test, |cx, a, _| {
        test(cx, a, |b| {
            b.len() == 16 && b[..10].iter().all(|b| *b == 0) && b[10..12] == [0xFF, 0xFF]
        })
    }),
];

fn infer_bytes(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    let level = Coercibility::Coercible;
    Ok(ExprType::string(16, CollationId::BINARY, level, true))
}

fn infer_text(cx: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(cx.connection_string(39))
}

fn infer_test(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(ExprType::boolean(any_nullable(args)))
}

fn test<'a>(cx: &EvalCx<'a>, args: &'a [Expr], holds: fn(&[u8]) -> bool) -> Evaluated<'a> {
    let bytes = arg!(cx.bytes(&args[0]));
    Ok(Val::Int(i64::from(holds(&bytes))))
}

/// Parses four numbers of one to three digits. Unlike elsewhere, leading zeros are allowed.
fn ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split(|b| *b == b'.');
    for octet in &mut octets {
        let part = parts.next().filter(|p| (1..=3).contains(&p.len()))?;
        if !part.iter().all(u8::is_ascii_digit) {
            return None;
        }
        *octet = std::str::from_utf8(part).ok()?.parse().ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// Parses groups of hexadecimal digits. The last two may be written as an IPv4 address.
fn ipv6(text: &[u8]) -> Option<Ipv6Addr> {
    let text = std::str::from_utf8(text).ok()?;
    if !text.contains('.') {
        return text.parse().ok();
    }
    let (groups, octets) = text.rsplit_once(':')?;
    let [a, b, c, d] = ipv4(octets.as_bytes())?.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    format!("{groups}:{high:x}:{low:x}").parse().ok()
}

/// Prints groups of hexadecimal digits. The longest run of zeros is omitted, even if it is a single
/// group.
fn ipv6_text(groups: [u16; 8]) -> String {
    let run = |start: usize| groups[start..].iter().take_while(|g| **g == 0).count();
    let start = (0..8).rev().max_by_key(|&start| run(start)).unwrap_or(0);
    let shown = |groups: &[u16]| {
        let texts: Vec<String> = groups.iter().map(|g| format!("{g:x}")).collect();
        texts.join(":")
    };
    match run(start) {
        0 => shown(&groups),
        zeros => {
            let (before, after) = (&groups[..start], &groups[start + zeros..]);
            format!("{}::{}", shown(before), shown(after))
        }
    }
}

fn eval_aton<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.bytes(&args[0]));
    match (ipv4(&text), ipv6(&text)) {
        (Some(short), _) => Ok(Val::string(short.octets().to_vec())),
        (None, Some(long)) => Ok(Val::string(long.octets().to_vec())),
        (None, None) => no_value(cx, &args[0], "inet6_aton"),
    }
}

fn eval_ntoa<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    // Only a binary string is an address; a character string of 4 or 16 characters is not.
    let bytes = arg!(cx.bytes(&args[0]));
    let binary = args[0].ty.collation() == CollationId::BINARY;
    if let (Ok(short), true) = (<[u8; 4]>::try_from(&*bytes), binary) {
        return Ok(Val::string(Ipv4Addr::from(short).to_string().into_bytes()));
    }
    let (Ok(long), true) = (<[u8; 16]>::try_from(&*bytes), binary) else {
        return no_value(cx, &args[0], "inet6_ntoa");
    };
    let words = Ipv6Addr::from(long).segments();
    let [.., a, b, c, d] = long;
    let octets = Ipv4Addr::new(a, b, c, d);
    let text = match words[..6] {
        [0, 0, 0, 0, 0, 0] if words[6] != 0 => format!("::{octets}"),
        [0, 0, 0, 0, 0, 0xffff] => format!("::ffff:{octets}"),
        _ => ipv6_text(words),
    };
    Ok(Val::string(text.into_bytes()))
}
