//! `optimizer_switch`: stores and shows MySQL's switches. Plans depend on those of
//! [`nfold_plan::Switches`].

use nfold_types::{ErrorCode, SqlError, Value};

const NAME: &str = "optimizer_switch";

/// The switches in MySQL's order, with their defaults.
const SWITCHES: [(&str, bool); 27] = [
    ("index_merge", true),
    ("index_merge_union", true),
    ("index_merge_sort_union", true),
    ("index_merge_intersection", true),
    ("engine_condition_pushdown", true),
    ("index_condition_pushdown", true),
    ("mrr", true),
    ("mrr_cost_based", true),
    ("block_nested_loop", true),
    ("batched_key_access", false),
    ("materialization", true),
    ("semijoin", true),
    ("loosescan", true),
    ("firstmatch", true),
    ("duplicateweedout", true),
    ("subquery_materialization_cost_based", true),
    ("use_index_extensions", true),
    ("condition_fanout_filter", true),
    ("derived_merge", true),
    ("use_invisible_indexes", false),
    ("skip_scan", true),
    ("hash_join", true),
    ("subquery_to_derived", false),
    ("prefer_ordering_index", true),
    ("hypergraph_optimizer", false),
    ("derived_condition_pushdown", true),
    ("hash_set_operations", true),
];

/// The default of `optimizer_switch`.
pub const DEFAULT: &str = "index_merge=on,index_merge_union=on,index_merge_sort_union=on,\
    index_merge_intersection=on,engine_condition_pushdown=on,index_condition_pushdown=on,mrr=on,\
    mrr_cost_based=on,block_nested_loop=on,batched_key_access=off,materialization=on,semijoin=on,\
    loosescan=on,firstmatch=on,duplicateweedout=on,subquery_materialization_cost_based=on,\
    use_index_extensions=on,condition_fanout_filter=on,derived_merge=on,use_invisible_indexes=off,\
    skip_scan=on,hash_join=on,subquery_to_derived=off,prefer_ordering_index=on,\
    hypergraph_optimizer=off,derived_condition_pushdown=on,hash_set_operations=on";

/// The result of setting `optimizer_switch` to `value` when it is `present`. `value` is a number of
/// bits, or a list of `switch=on|off|default` with at most one `default`.
///
/// # Errors
/// 1231 for an unknown word or a switch that is named twice, 1232.
pub fn assign(present: &str, value: &Value) -> Result<String, SqlError> {
    let refused = |bad: &str| {
        SqlError::new(
            ErrorCode::ER_WRONG_VALUE_FOR_VAR,
            &[&NAME, &bad.to_string()],
        )
    };
    let bits = match value {
        Value::Bytes(text) => return assign_words(present, &String::from_utf8_lossy(text)),
        Value::Int(bits) => u64::try_from(*bits).map_err(|_| refused(&bits.to_string()))?,
        Value::UInt(bits) => *bits,
        Value::Null => return Err(refused("NULL")),
        _ => return Err(SqlError::new(ErrorCode::ER_WRONG_TYPE_FOR_VAR, &[&NAME])),
    };
    if bits >> SWITCHES.len() != 0 {
        return Err(refused(&bits.to_string()));
    }
    Ok(shown(std::array::from_fn(|n| bits >> n & 1 == 1)))
}

fn assign_words(present: &str, text: &str) -> Result<String, SqlError> {
    let mut on = SWITCHES.map(|(name, default)| {
        let word = |word: &str| {
            word.strip_prefix(name)?
                .strip_prefix('=')
                .map(|s| s == "on")
        };
        present.split(',').find_map(word).unwrap_or(default)
    });
    if text.is_empty() {
        return Ok(shown(on));
    }
    let mut named = [false; SWITCHES.len()];
    let mut all_default = false;
    let mut changes = Vec::new();
    for word in text.split(',') {
        let refused = || SqlError::new(ErrorCode::ER_WRONG_VALUE_FOR_VAR, &[&NAME, &word]);
        if word.eq_ignore_ascii_case("default") && !all_default {
            all_default = true;
            continue;
        }
        let (switch, setting) = word.split_once('=').ok_or_else(refused)?;
        let known = |(name, _): &(&str, bool)| name.eq_ignore_ascii_case(switch);
        let n = SWITCHES.iter().position(known).ok_or_else(refused)?;
        let setting = match setting.to_ascii_lowercase().as_str() {
            "on" => true,
            "off" => false,
            "default" => SWITCHES[n].1,
            _ => return Err(refused()),
        };
        if std::mem::replace(&mut named[n], true) {
            return Err(refused());
        }
        changes.push((n, setting));
    }
    if all_default {
        on = SWITCHES.map(|(_, default)| default);
    }
    for (n, setting) in changes {
        on[n] = setting;
    }
    Ok(shown(on))
}

fn shown(on: [bool; SWITCHES.len()]) -> String {
    let word = |((name, _), on): (&(&str, bool), bool)| {
        let setting = if on { "on" } else { "off" };
        format!("{name}={setting}")
    };
    let words: Vec<String> = SWITCHES.iter().zip(on).map(word).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT, assign};

    #[test]
    fn optimizer_switch_default_is_what_the_word_default_gives() {
        assert_eq!(assign("", &"default".into()), Ok(DEFAULT.to_string()));
        assert_eq!(assign(DEFAULT, &"".into()), Ok(DEFAULT.to_string()));
    }

    #[test]
    fn optimizer_switch_keeps_what_is_not_named() {
        let off = assign(DEFAULT, &"mrr=off".into()).unwrap_or_default();
        assert_eq!(off, DEFAULT.replace("mrr=on", "mrr=off"));
        let both = assign(&off, &"Semijoin=OFF".into()).unwrap_or_default();
        assert_eq!(both, off.replace("semijoin=on", "semijoin=off"));
        assert_eq!(
            assign(&both, &"mrr=default,semijoin=on".into()),
            Ok(DEFAULT.into())
        );
    }

    #[test]
    fn optimizer_switch_refuses_unknown_words() {
        for bad in [
            "mrr",
            "mrr=1",
            "none=on",
            "mrr=on,mrr=on",
            "default,default",
            "mrr=on,",
        ] {
            let e = assign(DEFAULT, &bad.into()).expect_err(bad);
            assert_eq!(e.errno(), 1231, "{bad}");
        }
    }
}
