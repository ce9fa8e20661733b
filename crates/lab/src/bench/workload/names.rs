//! Parses the names of workloads.

use std::sync::Arc;

use super::{MOST_VALUES, Workload, all, sbtest};
use crate::LabError;

/// The published table (README, docs/performance.md) in its order: reads, lists, writes.
const PUBLISHED: &[&str] = &[
    "in_list_text",
    "in_list_ps",
    "oltp_point_select_ps",
    "oltp_point_select_text",
    "pk_point_text",
    "pk_point_ps",
    "key_point_limit_text",
    "key_point_limit_ps",
    "key_point_text",
    "key_point_ps",
    "key_point_no_data_text",
    "key_point_no_data_ps",
    "pk_range_limit_text",
    "pk_range_limit_ps",
    "oltp_read_only_auto_ps",
    "oltp_read_only_ps",
    "oltp_update_index_ps",
    "oltp_read_write_ps",
    "oltp_insert_text",
];

/// A parsed name.
struct Name<'a> {
    /// A workload, a group, or `all`.
    base: &'a str,
    prepared: bool,
    trx: bool,
    /// The name of the workload, if it is not `base` with its suffixes.
    called: Option<&'a str>,
}

/// Resolves published names: `key_point_ps` is `key_point:prepared`; `in_list_text` is
/// `in_list_200`.
fn published(name: &str) -> Option<(&str, bool)> {
    let (base, prepared) = match (name.strip_suffix("_ps"), name.strip_suffix("_text")) {
        (Some(base), _) => (base, true),
        (_, Some(base)) => (base, false),
        _ => return None,
    };
    Some((
        if base == "in_list" {
            "in_list_200"
        } else {
            base
        },
        prepared,
    ))
}

fn parse_name(name: &str) -> Result<Name<'_>, LabError> {
    let mut parts = name.split(':');
    let base = parts.next().unwrap_or_default();
    let mut found = Name {
        base,
        prepared: false,
        trx: false,
        called: None,
    };
    if let Some((other, prepared)) = published(base) {
        (found.base, found.prepared, found.called) = (other, prepared, Some(base));
    }
    for suffix in parts {
        match suffix {
            "prepared" if found.called.is_none() => found.prepared = true,
            "trx" => found.trx = true,
            _ => {
                return Err(LabError::usage(format!(
                    "workload {name:?}: a suffix is :prepared or :trx"
                )));
            }
        }
    }
    Ok(found)
}

/// Parses a list of names, groups and suffixes, separated by commas.
pub fn parse(names: &str) -> Result<Vec<Workload>, LabError> {
    let mut found = Vec::new();
    for name in names.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        if name == "published" {
            for name in PUBLISHED {
                one(name, &mut found)?;
            }
        } else {
            one(name, &mut found)?;
        }
    }
    match found.is_empty() {
        true => Err(LabError::usage(
            "no workload named; `nfold lab bench --list` names them",
        )),
        false => Ok(found),
    }
}

/// Appends the workloads of one name.
fn one(text: &str, found: &mut Vec<Workload>) -> Result<(), LabError> {
    let name = parse_name(text)?;
    let before = found.len();
    for (entry, group, about, table, plan, writer) in all() {
        if entry != name.base && group != name.base && name.base != "all" {
            continue;
        }
        if name.prepared && plan.places() > MOST_VALUES {
            if entry != name.base {
                continue;
            }
            return Err(LabError::usage(format!(
                "workload {text:?}: a prepared statement has at most {MOST_VALUES} values"
            )));
        }
        let plan = if name.trx && !plan.transaction {
            sbtest::transaction(plan.steps)
        } else {
            plan
        };
        let trx = if name.trx { ":trx" } else { "" };
        let called = match name.called {
            Some(called) if entry == name.base => format!("{called}{trx}"),
            _ if name.prepared => format!("{entry}:prepared{trx}"),
            _ => format!("{entry}{trx}"),
        };
        found.push(Workload {
            name: called,
            about,
            table,
            prepared: name.prepared,
            plan: Arc::new(plan),
            writer: writer.map(Arc::new),
        });
    }
    match found.len() == before {
        true => Err(LabError::usage(format!(
            "there is no workload {:?}; `nfold lab bench --list` names them",
            name.base
        ))),
        false => Ok(()),
    }
}
