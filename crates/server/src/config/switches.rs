//! Variables that are a set of switches: `optimizer_switch`, `optimizer_trace` and
//! `optimizer_trace_features`. Of `optimizer_switch`, plans depend on those of
//! [`nfold_plan::Switches`].

use std::fmt::Display;

use nfold_types::{ErrorCode, SqlError, Value};

/// A variable that is a set of switches.
pub struct SwitchSet {
    name: &'static str,
    /// The switches in MySQL's order, with their defaults.
    switches: &'static [(&'static str, bool)],
}

/// `optimizer_trace`
static TRACE: SwitchSet = SwitchSet {
    name: "optimizer_trace",
    switches: &[("enabled", false), ("one_line", false)],
};

/// `optimizer_trace_features`
static TRACE_FEATURES: SwitchSet = SwitchSet {
    name: "optimizer_trace_features",
    switches: &[
        ("greedy_search", true),
        ("range_optimizer", true),
        ("dynamic_range", true),
        ("repeated_subselect", true),
    ],
};

/// `optimizer_switch`
static OPTIMIZER: SwitchSet = SwitchSet {
    name: "optimizer_switch",
    switches: &OPTIMIZER_SWITCHES,
};

const OPTIMIZER_SWITCHES: [(&str, bool); 27] = [
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

/// The set of switches that a variable is.
pub fn set_of(variable: &str) -> Option<&'static SwitchSet> {
    let all = [&OPTIMIZER, &TRACE, &TRACE_FEATURES];
    all.into_iter().find(|set| set.name == variable)
}

/// Whether a switch is on in the text of a set.
pub fn is_on(text: &str, switch: &str) -> bool {
    let on = |word: &str| word.strip_prefix(switch) == Some("=on");
    text.split(',').any(on)
}

/// The default of `optimizer_switch`.
pub const DEFAULT: &str = "index_merge=on,index_merge_union=on,index_merge_sort_union=on,\
    index_merge_intersection=on,engine_condition_pushdown=on,index_condition_pushdown=on,mrr=on,\
    mrr_cost_based=on,block_nested_loop=on,batched_key_access=off,materialization=on,semijoin=on,\
    loosescan=on,firstmatch=on,duplicateweedout=on,subquery_materialization_cost_based=on,\
    use_index_extensions=on,condition_fanout_filter=on,derived_merge=on,use_invisible_indexes=off,\
    skip_scan=on,hash_join=on,subquery_to_derived=off,prefer_ordering_index=on,\
    hypergraph_optimizer=off,derived_condition_pushdown=on,hash_set_operations=on";

impl SwitchSet {
    /// The result of setting the variable to `value` when it is `present`. `value` is a number of
    /// bits, or a list of `switch=on|off|default` with at most one `default`.
    ///
    /// # Errors
    /// 1231 for an unknown word or a switch that is named twice, 1232.
    pub fn assign(&self, present: &str, value: &Value) -> Result<String, SqlError> {
        let bits = match value {
            Value::Bytes(text) => {
                return self.assign_words(present, &String::from_utf8_lossy(text));
            }
            Value::Int(bits) => u64::try_from(*bits).map_err(|_| self.refused(bits))?,
            Value::UInt(bits) => *bits,
            Value::Null => return Err(self.refused(&"NULL")),
            _ => {
                let code = ErrorCode::ER_WRONG_TYPE_FOR_VAR;
                return Err(SqlError::new(code, &[&self.name]));
            }
        };
        // The word `default` has a bit, too, which changes nothing.
        if bits >> (self.switches.len() + 1) != 0 {
            return Err(self.refused(&bits));
        }
        let on = (0..self.switches.len()).map(|n| bits >> n & 1 == 1);
        Ok(self.shown(&on.collect::<Vec<bool>>()))
    }

    /// Error 1231.
    fn refused(&self, value: &dyn Display) -> SqlError {
        SqlError::new(ErrorCode::ER_WRONG_VALUE_FOR_VAR, &[&self.name, value])
    }

    fn assign_words(&self, present: &str, text: &str) -> Result<String, SqlError> {
        let switches = self.switches.iter();
        let current = |(name, default): &(&str, bool)| {
            let word = |word: &str| {
                word.strip_prefix(name)?
                    .strip_prefix('=')
                    .map(|s| s == "on")
            };
            present.split(',').find_map(word).unwrap_or(*default)
        };
        let mut on: Vec<bool> = switches.map(current).collect();
        if text.is_empty() {
            return Ok(self.shown(&on));
        }
        let mut named = vec![false; on.len()];
        let mut all_default = false;
        let mut changes = Vec::new();
        for word in text.split(',') {
            let refused = || self.refused(&word);
            if word.eq_ignore_ascii_case("default") && !all_default {
                all_default = true;
                continue;
            }
            let (switch, setting) = word.split_once('=').ok_or_else(refused)?;
            let known = |(name, _): &(&str, bool)| name.eq_ignore_ascii_case(switch);
            let n = self.switches.iter().position(known).ok_or_else(refused)?;
            let setting = match setting.to_ascii_lowercase().as_str() {
                "on" => true,
                "off" => false,
                "default" => self.switches[n].1,
                _ => return Err(refused()),
            };
            if std::mem::replace(&mut named[n], true) {
                return Err(refused());
            }
            changes.push((n, setting));
        }
        if all_default {
            on = self.switches.iter().map(|(_, default)| *default).collect();
        }
        for (n, setting) in changes {
            on[n] = setting;
        }
        Ok(self.shown(&on))
    }

    fn shown(&self, on: &[bool]) -> String {
        let word = |((name, _), on): (&(&str, bool), &bool)| {
            let setting = if *on { "on" } else { "off" };
            format!("{name}={setting}")
        };
        let words: Vec<String> = self.switches.iter().zip(on).map(word).collect();
        words.join(",")
    }
}

#[cfg(test)]
mod tests {
    use nfold_types::{SqlError, Value};

    use super::{DEFAULT, OPTIMIZER, is_on, set_of};

    fn assign(present: &str, value: &Value) -> Result<String, SqlError> {
        OPTIMIZER.assign(present, value)
    }

    #[test]
    fn optimizer_trace_is_a_set_of_switches() {
        let set = set_of("optimizer_trace").expect("a set");
        let on = set.assign("enabled=off,one_line=off", &"enabled=on".into());
        assert_eq!(on, Ok("enabled=on,one_line=off".into()));
        assert!(is_on("enabled=on,one_line=off", "enabled"));
        assert!(!is_on("enabled=on,one_line=off", "one_line"));
        assert_eq!(
            set.assign("", &Value::Int(3)),
            Ok("enabled=on,one_line=on".into())
        );
        assert!(set.assign("", &Value::Int(8)).is_err());
        assert!(set_of("sql_mode").is_none());
    }

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
