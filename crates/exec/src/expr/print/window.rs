//! Window functions in messages. MySQL prints the column that stores the result, whose name is the
//! call without database names and quotes.

use nfold_plan::expr::{ArithOp, Expr, ExprKind};
use nfold_plan::query::{
    AggFunc, Block, FrameBound, TableSource, WindowCall, WindowFunc, WindowPass,
};
use nfold_sql::printer::Quoted;

use super::{Printer, aggregate_name};
use crate::expr::eval::Scope;

/// The text of column `n` in the results of pass `pass`.
pub(super) fn text(
    p: &Printer<'_>,
    block: &Block,
    pass: usize,
    n: usize,
    below: Scope<'_>,
) -> Option<String> {
    let pass = block.windows.get(pass)?;
    let call = pass.calls.get(n)?;
    let bare = |e: &Expr| Some(unquoted(&p.text(e, below)?, block));
    let list = |list: &[Expr]| -> Option<String> {
        let texts: Option<Vec<String>> = list.iter().map(bare).collect();
        Some(texts?.join(","))
    };
    let (name, args) = match call.func {
        WindowFunc::Aggregate(AggFunc::CountStar) => ("count", "0".into()),
        WindowFunc::Aggregate(func) => (aggregate_name(func)?, list(&call.args)?),
        func => {
            let mut args: Vec<Expr> = call.args.clone();
            let place = args.len().min(1);
            args.splice(place..place, call.number.clone());
            (func.name(), list(&args)?)
        }
    };
    if !call.window.starts_with('<') {
        return Some(format!("`{name}({args}) OVER {}`", call.window));
    }
    let mut members = String::new();
    if !pass.partition.is_empty() {
        members.push_str(&format!("PARTITION BY {} ", list(&pass.partition)?));
    }
    let order: Option<Vec<String>> = pass.order[..call.order]
        .iter()
        .map(|k| Some(bare(&k.expr)? + if k.desc { " desc" } else { "" }))
        .collect();
    let order = order?;
    if !order.is_empty() {
        members.push_str(&format!("ORDER BY {} ", order.join(",")));
    }
    let frame = frame(call, pass, &bare)?;
    Some(format!("`{name}({args}) OVER ({members}{frame}) `"))
}

/// The text of a frame; empty for the default frame.
fn frame(
    call: &WindowCall,
    pass: &WindowPass,
    bare: &dyn Fn(&Expr) -> Option<String>,
) -> Option<String> {
    use FrameBound::{CurrentRow, Peers, Rows, Unbounded, Value};
    let (start, end) = (&call.frame.start, &call.frame.end);
    match (start, end) {
        (Unbounded, Unbounded) => return Some(String::new()),
        (Unbounded, Peers) if call.order > 0 => return Some(String::new()),
        _ => {}
    }
    let side = |following: bool| if following { "FOLLOWING" } else { "PRECEDING" };
    let bound = |b: &FrameBound, is_end: bool| -> Option<String> {
        Some(match b {
            Unbounded => format!("UNBOUNDED {}", side(is_end)),
            CurrentRow | Peers => "CURRENT ROW".into(),
            Rows { amount, following } => format!("{} {}", bare(amount)?, side(*following)),
            Value { value, amount, .. } => match value.kind {
                ExprKind::Arith(op, _) => {
                    let following = (op == ArithOp::Add) != pass.order.first()?.desc;
                    format!("{} {}", bare(amount)?, side(following))
                }
                _ => return None,
            },
        })
    };
    let by_rows = |b: &FrameBound| matches!(b, CurrentRow | Rows { .. });
    let unit = match by_rows(start) || by_rows(end) {
        true => "ROWS",
        false => "RANGE",
    };
    Some(format!(
        "{unit} BETWEEN {} AND {}",
        bound(start, false)?,
        bound(end, true)?
    ))
}

/// Removes the quotes and database names from column names.
fn unquoted(text: &str, block: &Block) -> String {
    let mut out = text.to_string();
    for slot in &block.tables {
        if let TableSource::Table(t) | TableSource::Virtual(t) = &slot.source {
            let alias = Quoted(&slot.alias);
            let whole = format!("{}.{alias}.", Quoted(&t.schema));
            out = out.replace(&whole, &format!("{alias}."));
        }
    }
    out.replace('`', "")
}
