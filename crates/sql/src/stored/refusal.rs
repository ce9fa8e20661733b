//! Checks which syntax a stored expression may not contain.

use super::walk::each_child;
use crate::ast::Expr;

/// The first part of an expression that MySQL refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A function, by its name as messages show it; `None`: a subquery or a function without a
    /// name.
    Function(Option<String>),
    /// A user or system variable.
    Variable,
    Aggregate,
    /// A window function, by its name.
    Window(String),
}

/// Functions whose result depends on more than the row. A DEFAULT may call them.
const NOT_OF_THE_ROW: [&str; 24] = [
    "connection_id",
    "curdate",
    "current_role",
    "current_user",
    "curtime",
    "database",
    "icu_version",
    "now",
    "ps_current_thread_id",
    "rand",
    "random_bytes",
    "roles_graphml",
    "session_user",
    "sysdate",
    "system_user",
    "unix_timestamp",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "uuid",
    "uuid_short",
    "localtime",
    "validate_password_strength",
];

/// Functions with effects, or of the session's last statement.
const NEVER: [&str; 16] = [
    "benchmark",
    "found_rows",
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "last_insert_id",
    "load_file",
    "release_all_locks",
    "release_lock",
    "row_count",
    "sleep",
    "source_pos_wait",
    "statement_digest",
    "statement_digest_text",
    "updatexml",
    "wait_for_executed_gtid_set",
];

const AGGREGATES: [&str; 20] = [
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "group_concat",
    "grouping",
    "json_arrayagg",
    "json_objectagg",
    "max",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    "count_distinct",
];

/// Functions that MySQL 9 loads from a component, so that no definition may depend on them.
const LOADABLE: [&str; 3] = ["md5", "sha", "sha1"];

/// Whether two calls in one statement may give different values.
pub fn is_volatile(e: &Expr) -> bool {
    let own = match e {
        Expr::Function(call) => {
            let name = call.name.as_str();
            ["rand", "random_bytes", "sysdate", "uuid", "uuid_short"].contains(&name)
        }
        _ => false,
    };
    let mut found = own;
    each_child(e, &mut |e| found |= is_volatile(e));
    found
}

/// What of an expression MySQL refuses. `default`: it is a DEFAULT, which may depend on the
/// session. `known`: whether there is a function of this name.
pub fn refusal(e: &Expr, default: bool, known: &dyn Fn(&str) -> bool) -> Option<Refusal> {
    let named = |name: &str| Some(Refusal::Function(Some(name.to_owned())));
    let own = match e {
        Expr::InSubquery { .. } | Expr::Exists(_) | Expr::Subquery(_) | Expr::Quantified { .. } => {
            Some(Refusal::Function(None))
        }
        Expr::UserVar(_) | Expr::AssignUserVar { .. } | Expr::SysVar { .. } => {
            Some(Refusal::Variable)
        }
        Expr::Values(_) => named("values"),
        Expr::Match { .. } => named("match"),
        Expr::Function(call) => {
            let name = call.name.as_str();
            if call.over.is_some() {
                Some(Refusal::Window(name.to_owned()))
            } else if AGGREGATES.contains(&name) {
                Some(Refusal::Aggregate)
            } else if name == "name_const" {
                Some(Refusal::Function(None))
            } else if name == "version" {
                named("version()")
            } else if NEVER.contains(&name) || !default && NOT_OF_THE_ROW.contains(&name) {
                named(name)
            } else if call.stored || LOADABLE.contains(&name) || !known(name) {
                named(&format!("`{name}`"))
            } else {
                None
            }
        }
        _ => None,
    };
    let mut found = None;
    each_child(e, &mut |e| {
        if found.is_none() {
            found = refusal(e, default, known);
        }
    });
    found.or(own)
}
