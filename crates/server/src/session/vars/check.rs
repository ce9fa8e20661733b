//! Checks and adjusts the values of SET, with MySQL's warnings.

use nfold_sql::parser::{Deprecated, OLDER_NAMES};
use nfold_types::charset::Charset;
use nfold_types::collation::CollationId;
use nfold_types::temporal::TimeZone;
use nfold_types::{Collation, ErrorCode, Level, Locale, SqlError, Value, Warnings};

use super::modes::ModeSet;
use super::{VarDef, VarValue, find, parse_modes};
use crate::config::table::OptionKind;
use crate::net::fiber::compression::Algorithms;

/// The variables that one assignment changes, by position: the assigned one, and those that depend
/// on it (`character_set_connection` and `collation_connection`).
pub type Assigned = Vec<(usize, VarValue)>;

const NON_STANDARD_KEYS: &str =
    "Foreign key referring to non-unique or partial keys is unsafe and may break replication.";

/// Error 1231.
fn wrong_value(name: &str, value: &Value) -> SqlError {
    SqlError::new(ErrorCode::ER_WRONG_VALUE_FOR_VAR, &[&name, &shown(value)])
}

/// Error 1232.
fn wrong_type(name: &str) -> SqlError {
    SqlError::new(ErrorCode::ER_WRONG_TYPE_FOR_VAR, &[&name])
}

/// A value as messages show it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Int(v) => v.to_string(),
        Value::UInt(v) => v.to_string(),
        Value::Double(v) => v.to_string(),
        Value::Float(v) => v.to_string(),
        Value::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
        other => {
            let mut out = Vec::new();
            let ty = nfold_types::ColumnType::new(nfold_types::TypeKind::Null);
            nfold_types::wire::display_text(other.as_ref(), &ty, &TimeZone::UTC, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

/// A string value. Error 1231 for NULL, 1232 for numbers.
fn text_of(name: &str, value: &Value) -> Result<String, SqlError> {
    match value {
        Value::Bytes(b) => Ok(String::from_utf8_lossy(b).into_owned()),
        Value::Null => Err(wrong_value(name, value)),
        _ => Err(wrong_type(name)),
    }
}

/// Checks `value` for `def`, and returns the values to be stored.
pub fn check(def: &VarDef, value: &Value, warnings: &mut Warnings) -> Result<Assigned, SqlError> {
    let own = |v: VarValue| -> Result<Assigned, SqlError> { Ok(vec![(find(def.name)?, v)]) };
    match def.name {
        "sql_mode" => {
            let modes = modes(def.name, value)?;
            warn_of_modes(modes, warnings);
            own(VarValue::text(modes.names()))
        }
        "time_zone" => {
            let text = text_of(def.name, value)?;
            let zone = TimeZone::parse(&text)
                .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_TIME_ZONE, &[&text]))?;
            own(VarValue::text(zone.to_string()))
        }
        name if name.starts_with("character_set_") => charset(def, value, warnings),
        name if name.starts_with("collation_") => collation(def, value, warnings),
        "default_collation_for_utf8mb4" => {
            let collation = known_collation(def.name, value)?;
            own(VarValue::text(collation.name))
        }
        "default_storage_engine" | "default_tmp_storage_engine" => {
            let text = text_of(def.name, value)?;
            if !text.eq_ignore_ascii_case("innodb") {
                return Err(SqlError::new(
                    ErrorCode::ER_UNKNOWN_STORAGE_ENGINE,
                    &[&text],
                ));
            }
            own(VarValue::text("InnoDB"))
        }
        "restrict_fk_on_non_standard_key" => {
            let value = plain(def, value, warnings)?;
            if value == VarValue::Bool(false) {
                let code = ErrorCode::ER_WARN_DEPRECATED_WITH_NOTE;
                warnings.warn(code, &[&def.name, &NON_STANDARD_KEYS]);
            } else {
                let code = ErrorCode::ER_WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT;
                warnings.warn(code, &[&def.name]);
            }
            own(value)
        }
        // MySQL warns about a negative number, and uses the clock.
        "timestamp" => match plain(def, value, warnings)? {
            VarValue::Real(seconds) if seconds > f64::from(i32::MAX) => {
                Err(wrong_value(def.name, value))
            }
            value => own(value),
        },
        "lc_time_names" => own(locale(def.name, value)?),
        "log_timestamps" if value.is_null() => Err(wrong_value(def.name, value)),
        "log_output" => own(outputs(def.name, value)?),
        "general_log_file" | "slow_query_log_file" => {
            let text = text_of(def.name, value)?;
            if text.is_empty() {
                return Err(wrong_value(def.name, value));
            }
            own(VarValue::text(text))
        }
        "protocol_compression_algorithms" => {
            let text = text_of(def.name, value)?;
            match Algorithms::parse(&text) {
                Some(_) => own(VarValue::text(text)),
                None => Err(wrong_value(def.name, value)),
            }
        }
        "explain_format" => {
            let words = ["TRADITIONAL", "TRADITIONAL_STRICT", "TREE", "JSON"];
            own(word(def, value, &words)?)
        }
        "explicit_defaults_for_timestamp" => {
            let value = plain(def, value, warnings)?;
            if value == VarValue::Bool(false) {
                let message = format!(
                    "'{}' is deprecated and will be removed in a future release.",
                    def.name
                );
                let code = ErrorCode::ER_WARN_DEPRECATED_SYNTAX;
                let warning = SqlError::with_message(code, message);
                warnings.push_error(Level::Warning, &warning);
            }
            own(value)
        }
        name if name == PROTECTION => match plain(def, value, warnings)? {
            VarValue::Bool(true) => Err(SqlError::not_supported(format_args!("{name} = ON"))),
            off => own(off),
        },
        "completion_type" => own(word(def, value, &["NO_CHAIN", "CHAIN", "RELEASE"])?),
        _ => own(plain(def, value, warnings)?),
    }
}

/// A switch that keeps accounts out. Nothing here depends on it, so ON would promise a protection
/// that does not exist.
const PROTECTION: &str = "offline_mode";

/// A locale by its name or number.
fn locale(name: &str, value: &Value) -> Result<VarValue, SqlError> {
    let text = name_or_number(name, value)?;
    let numbered = |n: usize| Locale::by_number(n);
    let found = match value {
        Value::Bytes(_) => Locale::by_name(&text),
        _ => text.parse().ok().and_then(numbered),
    };
    let unknown = || SqlError::new(ErrorCode::ER_UNKNOWN_LOCALE, &[&text]);
    Ok(VarValue::text(found.ok_or_else(unknown)?.name))
}

/// The value of `log_output`: a list of words, or the sum of their bits, in MySQL's order.
fn outputs(name: &str, value: &Value) -> Result<VarValue, SqlError> {
    let bits = match value {
        Value::Int(n) => u64::try_from(*n).ok(),
        Value::UInt(n) => Some(*n),
        Value::Bytes(_) => {
            let text = text_of(name, value)?;
            let bit = |word: &str| OUTPUTS.iter().position(|o| o.eq_ignore_ascii_case(word));
            let bits = text.split(',').map(|word| bit(word.trim()));
            bits.map(|b| b.map(|b| 1 << b))
                .try_fold(0, |all, b| Some(all | b?))
        }
        Value::Null => None,
        _ => return Err(wrong_type(name)),
    };
    let known = 1..1 << OUTPUTS.len();
    let bits = bits
        .filter(|b| known.contains(b))
        .ok_or_else(|| wrong_value(name, value))?;
    if bits & 4 != 0 {
        return Err(SqlError::not_supported("log_output=TABLE"));
    }
    let chosen = OUTPUTS
        .iter()
        .enumerate()
        .filter(|(n, _)| bits & 1 << n != 0);
    let words: Vec<&str> = chosen.map(|(_, word)| *word).collect();
    Ok(VarValue::text(words.join(",")))
}

/// The words of `log_output`, by bit.
const OUTPUTS: [&str; 3] = ["NONE", "FILE", "TABLE"];

/// Whether `log_output` includes files.
pub fn logs_to_files(outputs: &str) -> bool {
    let has = |word| {
        outputs
            .split(',')
            .any(|o| o.trim().eq_ignore_ascii_case(word))
    };
    has("FILE") && !has("NONE")
}

fn plain(def: &VarDef, value: &Value, warnings: &mut Warnings) -> Result<VarValue, SqlError> {
    match def.kind {
        OptionKind::Bool { .. } => switch(def.name, value),
        OptionKind::Int { min, max, .. } => {
            let stored = integer(def.name, value, min, max, warnings)?;
            Ok(in_blocks(def.name, value, stored, warnings))
        }
        OptionKind::Signed { min, max, .. } => {
            let stored = whole(def.name, value, (min.into(), max.into()), warnings)?;
            Ok(VarValue::Signed(stored as i64))
        }
        OptionKind::Real { min, max, .. } => real(def.name, value, min, max, warnings),
        OptionKind::Choice { values, .. } => word(def, value, values),
        OptionKind::Text { .. } => match value {
            Value::Null => Ok(VarValue::Text(None)),
            Value::Bytes(_) => text_of(def.name, value).map(VarValue::text),
            _ => Err(wrong_type(def.name)),
        },
    }
}

fn switch(name: &str, value: &Value) -> Result<VarValue, SqlError> {
    let on = match value {
        Value::Int(0) | Value::UInt(0) => Some(false),
        Value::Int(1) | Value::UInt(1) => Some(true),
        Value::Bytes(b) => match b.to_ascii_lowercase().as_slice() {
            b"on" => Some(true),
            b"off" => Some(false),
            _ => None,
        },
        Value::Double(_) | Value::Decimal(_) => return Err(wrong_type(name)),
        _ => None,
    };
    on.map(VarValue::Bool)
        .ok_or_else(|| wrong_value(name, value))
}

/// Error 1231 for a value that [`check`] would adjust to the range of the variable. MySQL refuses
/// it in the SQL mode STRICT_ALL_TABLES.
pub fn refuse_adjusted(def: &VarDef, value: &Value) -> Result<(), SqlError> {
    let mut warnings = Warnings::default();
    check(def, value, &mut warnings)?;
    let code = ErrorCode::ER_TRUNCATED_WRONG_VALUE;
    match warnings.list().iter().any(|w| w.code == code) {
        true => Err(wrong_value(def.name, value)),
        false => Ok(()),
    }
}

/// Warning 1292. It shows the present name of a variable that has an older one.
fn truncated(name: &str, value: &Value, warnings: &mut Warnings) {
    let present = OLDER_NAMES.iter().find(|(older, _)| *older == name);
    let name = present.map_or(name, |(_, present)| present);
    warnings.warn(ErrorCode::ER_TRUNCATED_WRONG_VALUE, &[&name, &shown(value)]);
}

fn integer(
    name: &str,
    value: &Value,
    min: u64,
    max: u64,
    warnings: &mut Warnings,
) -> Result<VarValue, SqlError> {
    let stored = whole(name, value, (min.into(), max.into()), warnings)?;
    Ok(VarValue::Int(stored as u64))
}

/// Variables whose values beyond the range are refused.
const NEVER_ADJUSTED: [&str; 2] = [
    "caching_sha2_password_digest_rounds",
    "innodb_commit_concurrency",
];

/// An integer, bounded by the range of the variable, with warning 1292 if it is beyond. Error 1232
/// for other types.
fn whole(
    name: &str,
    value: &Value,
    (min, max): (i128, i128),
    warnings: &mut Warnings,
) -> Result<i128, SqlError> {
    let asked: i128 = match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        _ => return Err(wrong_type(name)),
    };
    let stored = asked.clamp(min, max);
    if stored != asked {
        if NEVER_ADJUSTED.contains(&name) {
            return Err(wrong_value(name, value));
        }
        truncated(name, value, warnings);
    }
    Ok(stored)
}

/// The bytes of which the value of a variable is a multiple.
const BLOCKS: [(&str, u64); 12] = [
    ("innodb_fsync_threshold", 16_384),
    ("join_buffer_size", 128),
    ("key_buffer_size", 4096),
    ("max_heap_table_size", 1024),
    ("myisam_max_sort_file_size", 1 << 20),
    ("net_buffer_length", 1024),
    ("query_alloc_block_size", 1024),
    ("query_prealloc_size", 1024),
    ("range_alloc_block_size", 1024),
    ("read_buffer_size", 4096),
    ("transaction_alloc_block_size", 1024),
    ("transaction_prealloc_size", 1024),
];

/// Rounds a number down to a multiple of the variable's block, with warning 1292. `asked` is the
/// value that was assigned.
fn in_blocks(name: &str, asked: &Value, stored: VarValue, warnings: &mut Warnings) -> VarValue {
    let (VarValue::Int(n), Some((_, block))) =
        (&stored, BLOCKS.iter().find(|(block, _)| *block == name))
    else {
        return stored;
    };
    let whole = n - n % block;
    if whole == *n {
        return stored;
    }
    truncated(name, asked, warnings);
    VarValue::Int(whole)
}

fn real(
    name: &str,
    value: &Value,
    min: f64,
    max: f64,
    warnings: &mut Warnings,
) -> Result<VarValue, SqlError> {
    let asked = match value {
        Value::Int(v) => *v as f64,
        Value::UInt(v) => *v as f64,
        Value::Double(v) => *v,
        Value::Float(v) => f64::from(*v),
        Value::Decimal(v) => v.to_f64(),
        _ => return Err(wrong_type(name)),
    };
    let stored = asked.clamp(min, max);
    if stored != asked {
        truncated(name, value, warnings);
    }
    Ok(VarValue::Real(stored))
}

/// One of several words, or its number in the list.
fn word(def: &VarDef, value: &Value, words: &[&'static str]) -> Result<VarValue, SqlError> {
    let number = |n: u64| usize::try_from(n).ok().and_then(|n| words.get(n).copied());
    let found = match value {
        Value::Int(n) => u64::try_from(*n).ok().and_then(number),
        Value::UInt(n) => number(*n),
        Value::Bytes(b) => words
            .iter()
            .copied()
            .find(|w| w.as_bytes().eq_ignore_ascii_case(b)),
        Value::Null => None,
        _ => return Err(wrong_type(def.name)),
    };
    found
        .map(super::choice_value)
        .ok_or_else(|| wrong_value(def.name, value))
}

/// Warns that strict mode and the three modes that will become part of it belong together.
fn warn_of_modes(modes: ModeSet, warnings: &mut Warnings) {
    let parts = [
        "NO_ZERO_DATE",
        "NO_ZERO_IN_DATE",
        "ERROR_FOR_DIVISION_BY_ZERO",
    ];
    let strict = modes.has("STRICT_TRANS_TABLES") || modes.has("STRICT_ALL_TABLES");
    let some = parts.iter().any(|part| modes.has(part));
    let all = parts.iter().all(|part| modes.has(part));
    if (strict || some) && !(strict && all) {
        warnings.warn(ErrorCode::ER_SQL_MODE_MERGED, &[]);
    }
    if modes.has("PAD_CHAR_TO_FULL_LENGTH") {
        let deprecated = "PAD_CHAR_TO_FULL_LENGTH";
        warnings.warn(ErrorCode::ER_WARN_DEPRECATED_SQLMODE, &[&deprecated]);
    }
}

fn modes(name: &str, value: &Value) -> Result<ModeSet, SqlError> {
    let bits = match value {
        Value::Bytes(b) => {
            let text = String::from_utf8_lossy(b);
            return parse_modes(&text)
                .map_err(|bad| SqlError::new(ErrorCode::ER_WRONG_VALUE_FOR_VAR, &[&name, &bad]));
        }
        Value::Int(v) => u64::try_from(*v).ok(),
        Value::UInt(v) => Some(*v),
        Value::Null => None,
        _ => return Err(wrong_type(name)),
    };
    bits.and_then(ModeSet::from_bits)
        .ok_or_else(|| wrong_value(name, value))
}

/// The character set of this name. Error 1115.
fn charset_by_name(name: &str) -> Result<&'static Charset, SqlError> {
    Charset::by_name(name)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_CHARACTER_SET, &[&name]))
}

/// The character set of what a client sends. Error 1231 for a set in which ASCII characters have
/// more than one byte.
pub fn client_charset(name: &str) -> Result<&'static Charset, SqlError> {
    for_client(charset_by_name(name)?)
}

fn for_client(set: &'static Charset) -> Result<&'static Charset, SqlError> {
    if set.is_wide() {
        return Err(SqlError::new(
            ErrorCode::ER_WRONG_VALUE_FOR_VAR,
            &[&"character_set_client", &set.name],
        ));
    }
    Ok(set)
}

/// Error 1235 for a set in which functions would have to convert the text of numbers.
pub fn for_connection(set: &'static Charset) -> Result<(), SqlError> {
    match set.is_wide() {
        false => Ok(()),
        true => Err(SqlError::not_supported(format_args!(
            "character_set_connection = {}",
            set.name
        ))),
    }
}

/// The collation of this name. Error 1273.
pub fn collation_by_name(name: &str) -> Result<&'static Collation, SqlError> {
    Collation::by_name(name).ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_COLLATION, &[&name]))
}

/// The collation with a number.
fn collation_by_number(value: &Value) -> Option<&'static Collation> {
    let id = match value {
        Value::Int(v) => u16::try_from(*v).ok()?,
        Value::UInt(v) => u16::try_from(*v).ok()?,
        _ => return None,
    };
    CollationId(id).get()
}

/// The name of a character set or collation; for an unknown number, the text that errors show.
fn name_or_number(name: &str, value: &Value) -> Result<String, SqlError> {
    match value {
        Value::Int(_) | Value::UInt(_) => Ok(shown(value)),
        _ => text_of(name, value),
    }
}

/// The collation that a variable is set to, by its name or its number.
fn known_collation(name: &str, value: &Value) -> Result<&'static Collation, SqlError> {
    match collation_by_number(value) {
        Some(collation) => Ok(collation),
        None => collation_by_name(&name_or_number(name, value)?),
    }
}

fn charset(def: &VarDef, value: &Value, warnings: &mut Warnings) -> Result<Assigned, SqlError> {
    if value.is_null() && def.name == "character_set_results" {
        return Ok(vec![(find(def.name)?, VarValue::Text(None))]);
    }
    let set = match collation_by_number(value) {
        Some(collation) => collation.charset,
        None => {
            let name = name_or_number(def.name, value)?;
            let set = charset_by_name(&name)?;
            if let Some(warning) = Deprecated::charset(set.name) {
                warnings.push_error(Level::Warning, &warning.warning());
            }
            if set.name == "utf8mb3" {
                let warning = match name.eq_ignore_ascii_case("utf8") {
                    true => Deprecated::Utf8,
                    false => Deprecated::Utf8mb3,
                };
                warnings.push_error(Level::Warning, &warning.warning());
            }
            set
        }
    };
    match def.name {
        "character_set_client" => {
            for_client(set)?;
        }
        "character_set_connection" => for_connection(set)?,
        _ => {}
    }
    let mut changes = vec![(find(def.name)?, VarValue::text(set.name))];
    let follower = def.name.replace("character_set_", "collation_");
    if let Ok(at) = find(&follower) {
        changes.push((at, VarValue::text(set.default_collation.known().name)));
    }
    Ok(changes)
}

fn collation(def: &VarDef, value: &Value, warnings: &mut Warnings) -> Result<Assigned, SqlError> {
    let collation = known_collation(def.name, value)?;
    if collation.charset.name == "utf8mb3" {
        let warning = Deprecated::Utf8mb3Collation(collation.name).warning();
        warnings.push_error(Level::Warning, &warning);
    }
    if def.name == "collation_connection" {
        for_connection(collation.charset)?;
    }
    let set = def.name.replace("collation_", "character_set_");
    Ok(vec![
        (find(def.name)?, VarValue::text(collation.name)),
        (find(&set)?, VarValue::text(collation.charset.name)),
    ])
}
