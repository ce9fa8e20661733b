//! SET GLOBAL of the engine's variables: adjustments beyond the range check, with MySQL's warnings,
//! and passing the values to the engine.

use nfold_engine::{Engine, ResizePhase, ResizeStatus};
use nfold_types::{ErrorCode, SqlError, Warnings, error::Level};

use super::ServerState;
use super::vars::{Assigned, VarValue};
use crate::pool_list::clock_text;

/// `innodb_buffer_pool_size` is rounded up to a multiple of this, as MySQL rounds to its chunks.
const POOL_UNIT: u64 = 1 << 20;

/// Adjusts a value within its variable's range to one that the engine supports, with MySQL's
/// warnings.
pub(crate) fn adjust(
    server: &ServerState,
    name: &str,
    assigned: &mut Assigned,
    warnings: &mut Warnings,
) {
    if let Some((_, VarValue::Bool(asked))) = assigned.first_mut() {
        if *asked && act(server, name) {
            *asked = false;
        }
        return;
    }
    let Some((_, VarValue::Int(value))) = assigned.first_mut() else {
        return;
    };
    match name {
        "innodb_buffer_pool_size" => {
            let max = server.engine.max_pool_bytes();
            let whole = value.checked_next_multiple_of(POOL_UNIT).unwrap_or(max);
            if whole.min(max) != *value {
                warnings.warn(ErrorCode::ER_TRUNCATED_WRONG_VALUE, &[&name, value]);
                *value = whole.min(max);
            }
        }
        "innodb_io_capacity" => {
            let max = server.int("innodb_io_capacity_max");
            bound(
                value,
                *value > max,
                max,
                name,
                "higher",
                "innodb_io_capacity_max",
                warnings,
            );
        }
        "innodb_io_capacity_max" => {
            let low = server.int("innodb_io_capacity");
            bound(
                value,
                *value < low,
                low,
                name,
                "lower",
                "innodb_io_capacity",
                warnings,
            );
        }
        _ => {}
    }
}

/// Carries out switches that are requests; they stay OFF. Returns whether `name` is one.
fn act(server: &ServerState, name: &str) -> bool {
    let list = &server.pool_list;
    match name {
        "innodb_buffer_pool_dump_now" => {
            let (file, percent) = server.pool_list_file();
            list.dump(&file, percent);
        }
        "innodb_buffer_pool_load_now" => list.load(&server.pool_list_file().0),
        "innodb_buffer_pool_load_abort" => list.abort(),
        _ => return false,
    }
    true
}

/// The two warnings if one of two related variables exceeds the other.
fn bound(
    value: &mut u64,
    beyond: bool,
    to: u64,
    name: &str,
    how: &str,
    other: &str,
    warnings: &mut Warnings,
) {
    if beyond {
        let said = [
            format!("{name} cannot be set {how} than {other}."),
            format!("Setting {name} to {to}"),
        ];
        for message in said {
            let warning = SqlError::with_message(ErrorCode::ER_WRONG_ARGUMENTS, message);
            warnings.push_error(Level::Warning, &warning);
        }
        *value = to;
    }
}

/// Passes the global values to the engine.
pub(crate) fn hand_over(server: &ServerState) {
    let engine: &Engine = &server.engine;
    engine.set_flush_at_commit(server.int("innodb_flush_log_at_trx_commit") as u8);
    engine.set_row_hints(server.flag("innodb_adaptive_hash_index"));
    let capacity = |name| u32::try_from(server.int(name)).unwrap_or(u32::MAX);
    engine.set_io_capacity(
        capacity("innodb_io_capacity"),
        capacity("innodb_io_capacity_max"),
    );
    server
        .pool_list
        .set_capacity(capacity("innodb_io_capacity"));
    let limit = server.int("innodb_max_undo_log_size");
    engine.set_undo_limit(server.flag("innodb_undo_log_truncate").then_some(limit));
    engine.resize_pool(server.int("innodb_buffer_pool_size"));
}

/// The status variables of a resize.
pub fn resize_values(resize: &ResizeStatus) -> [(&'static str, String); 3] {
    let ResizeStatus {
        from_bytes: from,
        to_bytes: to,
        ..
    } = resize;
    let text = match (resize.phase, resize.ended) {
        (ResizePhase::Idle, None) => String::new(),
        (ResizePhase::Idle, Some(at)) => {
            format!("Completed resizing buffer pool at {}.", clock_text(at))
        }
        (ResizePhase::Withdrawing, _) => "Withdrawing blocks to be shrunken.".into(),
        (ResizePhase::Resizing, _) => format!("Resizing buffer pool from {from} to {to}."),
        (ResizePhase::Failed, _) => {
            format!("Resizing buffer pool from {from} to {to} failed: no memory.")
        }
    };
    [
        ("Innodb_buffer_pool_resize_status", text),
        (
            "Innodb_buffer_pool_resize_status_code",
            (resize.phase as u8).to_string(),
        ),
        (
            "Innodb_buffer_pool_resize_status_progress",
            resize.percent.to_string(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn a_resize_is_told_as_mysql_tells_it() {
        let mut status = ResizeStatus::default();
        let [text, code, progress] = resize_values(&status).map(|(_, value)| value);
        assert_eq!([&*text, &*code, &*progress], ["", "0", "0"]);
        status = ResizeStatus {
            phase: ResizePhase::Withdrawing,
            percent: 40,
            from_bytes: 3 << 20,
            to_bytes: 1 << 20,
            ended: None,
        };
        let [text, code, progress] = resize_values(&status).map(|(_, value)| value);
        assert_eq!(
            [&*text, &*code, &*progress],
            ["Withdrawing blocks to be shrunken.", "3", "40"]
        );
        status.phase = ResizePhase::Resizing;
        assert_eq!(
            resize_values(&status)[0].1,
            "Resizing buffer pool from 3145728 to 1048576."
        );
        status.phase = ResizePhase::Idle;
        status.ended = Some(UNIX_EPOCH);
        let text = &resize_values(&status)[0].1;
        assert!(
            text.starts_with("Completed resizing buffer pool at "),
            "{text}"
        );
    }
}
