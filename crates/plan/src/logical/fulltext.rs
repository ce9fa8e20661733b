//! MATCH ... AGAINST as a call of an internal function.
//!
//! The arguments are the hidden column of the index, the text of the search, the [`SearchTarget`]
//! as a constant, and the columns of the documents.

use super::expr::{Expr, ExprKind};
use super::func::FuncSet;
use nfold_types::Value;

/// The internal function, which SQL cannot name.
pub const MATCH: &str = "match ... against";

/// How a search reads its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchMode {
    NaturalLanguage,
    Boolean,
    /// WITH QUERY EXPANSION
    Expanded,
}

/// The index of a search, and its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchTarget {
    /// The table's id.
    pub table: u64,
    /// The index's id.
    pub index: u64,
    pub mode: SearchMode,
}

impl SearchTarget {
    /// The constant that the call has as an argument.
    pub fn to_value(self) -> Value {
        let mut bytes = Vec::with_capacity(17);
        bytes.extend_from_slice(&self.table.to_le_bytes());
        bytes.extend_from_slice(&self.index.to_le_bytes());
        bytes.push(match self.mode {
            SearchMode::NaturalLanguage => 0,
            SearchMode::Boolean => 1,
            SearchMode::Expanded => 2,
        });
        Value::Bytes(bytes)
    }

    /// The target in a call's argument.
    pub fn of_arg(arg: &Expr) -> Option<SearchTarget> {
        let ExprKind::Const(Value::Bytes(bytes)) = &arg.kind else {
            return None;
        };
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(SearchTarget {
            table: number(0)?,
            index: number(8)?,
            mode: match bytes.get(16)? {
                0 => SearchMode::NaturalLanguage,
                1 => SearchMode::Boolean,
                _ => SearchMode::Expanded,
            },
        })
    }
}

/// A call of the internal function.
#[derive(Debug, Clone, Copy)]
pub struct MatchCall<'e> {
    /// The hidden column of the index.
    pub words: &'e Expr,
    pub against: &'e Expr,
    pub target: SearchTarget,
    /// The columns of the documents.
    pub columns: &'e [Expr],
}

impl<'e> MatchCall<'e> {
    /// The parts of a call, given its arguments.
    pub fn of_args(args: &'e [Expr]) -> Option<MatchCall<'e>> {
        let [words, against, target, columns @ ..] = args else {
            return None;
        };
        Some(MatchCall {
            words,
            against,
            target: SearchTarget::of_arg(target)?,
            columns,
        })
    }

    /// The call that an expression is.
    pub fn of(funcs: &dyn FuncSet, e: &'e Expr) -> Option<MatchCall<'e>> {
        match &e.kind {
            ExprKind::Call { func, args } if funcs.get(*func).name == MATCH => Self::of_args(args),
            _ => None,
        }
    }
}
