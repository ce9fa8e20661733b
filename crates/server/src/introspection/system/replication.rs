//! The tables of `performance_schema` about the replication channel.

use nfold_catalog::Privileges;
use nfold_exec::SessionEnv;
use nfold_types::{SqlError, Timestamp, Value};

use super::rows::{Cx, Put};
use crate::session::replication::{CHANNEL, ChannelError, ChannelPhase, ChannelStatus};

/// Calls `f` with the configuration and the state of the channel, if it has a source and the
/// account may see it.
fn channel(
    cx: &Cx<'_>,
    f: impl FnOnce(&nfold_replica::ChannelConfig, ChannelStatus) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let replication = &cx.server.replication;
    let rights = [
        Privileges::SELECT,
        Privileges::SUPER,
        Privileges::REPLICATION_CLIENT,
    ];
    let sees = rights.iter().any(|right| cx.has_global(*right));
    match replication.config().filter(|_| sees) {
        Some(config) => f(&config, replication.with_status(|status| status.clone())),
        None => Ok(()),
    }
}

fn yes_or_no(on: bool) -> Value {
    if on { "YES" } else { "NO" }.into()
}

fn bit(on: bool) -> Value {
    if on { "1" } else { "0" }.into()
}

fn never() -> Value {
    Value::DateTime(nfold_types::DateTime::ZERO)
}

/// Number, message and time of an error.
fn error(cx: &Cx<'_>, error: Option<&ChannelError>) -> [Value; 3] {
    let Some(error) = error else {
        return [Value::Int(0), "".into(), never()];
    };
    let at = Timestamp::from_micros(error.at_us, 6);
    let local = cx.env.time_zone().to_local(at);
    [
        Value::Int(error.code.into()),
        error.message.as_str().into(),
        local.map_or_else(never, Value::DateTime),
    ]
}

/// A transaction, of which neither name nor times are known, and `n` more times.
fn no_transaction(n: usize) -> impl Iterator<Item = Value> {
    std::iter::once("".into()).chain(std::iter::repeat_with(never).take(n))
}

pub(super) fn connection_configuration(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    channel(cx, |config, _| {
        let none = || Value::from("");
        put(vec![
            CHANNEL.into(),
            config.host.as_str().into(),
            Value::Int(config.port.into()),
            config.user.as_str().into(),
            none(),
            bit(config.auto_position),
            yes_or_no(config.ssl),
            config.tls.ca.as_str().into(),
            none(),
            config.tls.cert.as_str().into(),
            none(),
            config.tls.key.as_str().into(),
            yes_or_no(config.tls.verify_name),
            none(),
            none(),
            Value::Int(config.connect_retry_s.into()),
            Value::UInt(config.retry_count),
            Value::Double(f64::from(config.heartbeat_ms) / 1000.0),
            none(),
            none(),
            yes_or_no(config.get_public_key),
            none(),
            "uncompressed".into(),
            Value::Int(3),
            Value::Null,
            bit(false),
            bit(false),
        ])
    })
}

pub(super) fn connection_status(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    channel(cx, |_, status| {
        let state = match status.phase {
            ChannelPhase::Stopped => "OFF",
            ChannelPhase::Connecting => "CONNECTING",
            ChannelPhase::Running => "ON",
        };
        let mut row = vec![
            CHANNEL.into(),
            "".into(),
            status.source_uuid.as_str().into(),
            Value::Null,
            state.into(),
            Value::UInt(0),
            never(),
            status.retrieved.to_string().into(),
        ];
        row.extend(error(cx, status.source_error.as_ref()));
        row.extend(no_transaction(4).chain(no_transaction(3)));
        put(row)
    })
}

pub(super) fn applier_configuration(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    channel(cx, |config, _| {
        put(vec![
            CHANNEL.into(),
            Value::Int(config.delay_s.into()),
            Value::Null,
            yes_or_no(false),
            "STREAM".into(),
            "OFF".into(),
            Value::Null,
        ])
    })
}

/// Whether the applier runs.
fn applier_state(status: &ChannelStatus) -> Value {
    match status.phase {
        ChannelPhase::Stopped => "OFF",
        ChannelPhase::Connecting | ChannelPhase::Running => "ON",
    }
    .into()
}

pub(super) fn applier_status(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    channel(cx, |_, status| {
        put(vec![
            CHANNEL.into(),
            applier_state(&status),
            status.remaining_delay_s().map(Value::UInt).into(),
            Value::UInt(status.retries),
        ])
    })
}

/// One thread receives and applies: it is the worker 0, as in MySQL without parallel workers.
pub(super) fn applier_status_by_worker(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    channel(cx, |_, status| {
        let mut row = vec![
            CHANNEL.into(),
            Value::UInt(0),
            Value::Null,
            applier_state(&status),
        ];
        row.extend(error(cx, status.applier_error.as_ref()));
        row.extend(no_transaction(4).chain(no_transaction(3)));
        for _ in 0..2 {
            row.extend([Value::UInt(0), Value::Int(0), "".into(), never()]);
        }
        put(row)
    })
}
