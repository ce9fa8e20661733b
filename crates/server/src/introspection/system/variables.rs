//! The tables of system variables: values, where they come from, and what SET PERSIST has stored.

use nfold_types::{SqlError, Timestamp, Value};

use super::rows::{Cx, Put};
use crate::config::table::OptionKind;
use crate::config::{SetBy, Source};
use crate::session::vars::{Scope, VarDef, definitions};

/// The maximum length of VARIABLE_VALUE in characters.
const VALUE_CHARS: usize = 1024;

pub(super) fn variables(cx: &Cx<'_>, global: bool, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (at, def) in definitions().iter().enumerate() {
        if global && def.scope == Scope::Session {
            continue;
        }
        let mut value = cx.env.read_var(at, global).show();
        if let Some((end, _)) = value.char_indices().nth(VALUE_CHARS) {
            value.truncate(end);
        }
        put(vec![def.name.into(), value.into()])?;
    }
    Ok(())
}

/// VARIABLE_SOURCE, VARIABLE_PATH, and who has set the value.
fn origin(cx: &Cx<'_>, at: usize) -> (&'static str, String, Option<SetBy>) {
    if let Some(by) = cx.server.globals.changed_by(at) {
        return ("DYNAMIC", String::new(), Some(by));
    }
    match &cx.server.sources[at] {
        Source::Compiled => ("COMPILED", String::new(), None),
        Source::CommandLine => ("COMMAND_LINE", String::new(), None),
        Source::File(path) => ("EXPLICIT", path.display().to_string(), None),
        Source::Persisted(by) => {
            let path = cx.server.persisted.path().display().to_string();
            ("PERSISTED", path, Some(by.clone()))
        }
    }
}

/// MIN_VALUE and MAX_VALUE; zeros for variables that are no numbers.
fn range(def: &VarDef) -> (String, String) {
    match def.kind {
        OptionKind::Int { min, max, .. } => (min.to_string(), max.to_string()),
        OptionKind::Signed { min, max, .. } => (min.to_string(), max.to_string()),
        OptionKind::Real { min, max, .. } => (min.to_string(), max.to_string()),
        OptionKind::Bool { .. } | OptionKind::Text { .. } | OptionKind::Choice { .. } => {
            ("0".into(), "0".into())
        }
    }
}

pub(super) fn info(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (at, def) in definitions().iter().enumerate() {
        let (source, path, by) = origin(cx, at);
        let (min, max) = range(def);
        let time = by.as_ref().map_or(Value::Null, |by| {
            let micros = i64::try_from(by.micros).unwrap_or(i64::MAX);
            Value::Timestamp(Timestamp::from_micros(micros, 6))
        });
        let (user, host) = match &by {
            Some(by) => (by.user.as_str().into(), by.host.as_str().into()),
            None => (Value::Null, Value::Null),
        };
        put(vec![
            def.name.into(),
            source.into(),
            path.into(),
            min.into(),
            max.into(),
            time,
            user,
            host,
        ])?;
    }
    Ok(())
}

pub(super) fn persisted(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (name, entry) in cx.server.persisted.entries() {
        put(vec![name.into(), entry.value.into()])?;
    }
    Ok(())
}
