use super::*;
use nfold_types::Warnings;

fn set(name: &str, value: impl Into<Value>) -> Result<(String, usize), SqlError> {
    let def = &definitions()[find(name)?];
    let mut warnings = Warnings::default();
    let changes = check(def, &value.into(), &mut warnings)?;
    Ok((changes[0].1.show(), warnings.list().len()))
}

#[test]
fn protections_that_do_not_exist_are_refused() {
    let e = set("offline_mode", Value::Int(1)).unwrap_err();
    assert_eq!(e.code, ErrorCode::ER_NOT_SUPPORTED_YET);
    assert_eq!(set("offline_mode", Value::Int(0)).unwrap().0, "OFF");
}

#[test]
fn variables_are_sorted_unique_and_defaults_in_range() {
    assert!(definitions().windows(2).all(|w| w[0].name < w[1].name));
    assert!(definitions().len() >= 200, "{}", definitions().len());
    for d in definitions() {
        if let (OptionKind::Int { min, max, .. }, VarValue::Int(n)) = (d.kind, d.default()) {
            assert!((min..=max).contains(&n), "{}", d.name);
        }
    }
    assert_eq!(find("NIX").unwrap_err().errno(), 1193);
    assert_eq!(definitions()[find("Sql_Mode").unwrap()].name, "sql_mode");
}

/// As MySQL answers each of them.
#[test]
fn values_are_checked_as_mysql_checks_them() {
    let text = |s: &str| Value::from(s);
    let good = [
        ("sort_buffer_size", Value::Int(1), "32768", 1),
        ("sort_buffer_size", Value::Int(-1), "32768", 1),
        ("sort_buffer_size", Value::Int(1 << 20), "1048576", 0),
        ("auto_increment_increment", Value::Int(0), "1", 1),
        ("autocommit", text("oFf"), "OFF", 0),
        ("autocommit", Value::Int(1), "ON", 0),
        ("transaction_isolation", Value::Int(1), "READ-COMMITTED", 0),
        (
            "transaction_isolation",
            text("serializable"),
            "SERIALIZABLE",
            0,
        ),
        ("sql_mode", Value::Int(4), "ANSI_QUOTES", 0),
        (
            "sql_mode",
            text("ansi_quotes, ,STRICT_ALL_TABLES"),
            "ANSI_QUOTES,STRICT_ALL_TABLES",
            1,
        ),
        (
            "sql_mode",
            text("ANSI"),
            "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI",
            0,
        ),
        ("time_zone", text("+5:30"), "+05:30", 0),
        ("long_query_time", Value::Double(20.5), "20.500000", 0),
        ("long_query_time", Value::Double(1e30), "31536000.000000", 1),
        ("innodb_flush_log_at_trx_commit", Value::Int(2), "2", 0),
        ("character_set_client", text("UTF8MB4"), "utf8mb4", 0),
        (
            "collation_connection",
            Value::Int(8),
            "latin1_swedish_ci",
            0,
        ),
        ("character_set_results", Value::Null, "", 0),
        ("completion_type", Value::Int(1), "CHAIN", 0),
    ];
    for (name, value, shown, warnings) in good {
        assert_eq!(
            set(name, value.clone()).unwrap(),
            (shown.to_string(), warnings),
            "{name} = {value:?}"
        );
    }
    let bad = [
        ("sort_buffer_size", text("a"), 1232),
        ("sort_buffer_size", Value::Null, 1232),
        ("sort_buffer_size", Value::Double(1.5), 1232),
        ("autocommit", Value::Int(2), 1231),
        ("autocommit", Value::Null, 1231),
        ("autocommit", text("x"), 1231),
        ("transaction_isolation", text("x"), 1231),
        ("sql_mode", text("x,ANSI"), 1231),
        ("sql_mode", Value::Int(99_999_999_999_999), 1231),
        ("sql_mode", Value::Null, 1231),
        ("time_zone", text("x/y"), 1298),
        ("time_zone", Value::Null, 1231),
        ("character_set_client", text("nix"), 1115),
        ("character_set_client", Value::Null, 1231),
        ("collation_connection", text("nix"), 1273),
        ("long_query_time", text("x"), 1232),
        ("default_storage_engine", text("nix"), 1286),
    ];
    for (name, value, errno) in bad {
        assert_eq!(
            set(name, value.clone()).unwrap_err().errno(),
            errno,
            "{name} = {value:?}"
        );
    }
    let e = set("sql_mode", text("x,ANSI")).unwrap_err();
    assert_eq!(
        &*e.message,
        "Variable 'sql_mode' can't be set to the value of 'x'"
    );
}

#[test]
fn sessions_begin_with_the_global_values_and_go_their_own_way() {
    let globals = Globals::new(
        &Values::default(),
        &[("version", VarValue::text("8.4.0-Nfold"))],
    );
    let mut a = SessionVars::new(&globals);
    a.set_known(&[
        ("autocommit", VarValue::Bool(false)),
        ("sql_mode", VarValue::text("ANSI_QUOTES")),
    ]);
    globals.set(find("lock_wait_timeout").unwrap(), VarValue::Int(7));
    let b = SessionVars::new(&globals);
    assert!(!a.settings().autocommit && b.settings().autocommit);
    assert!(
        a.settings()
            .lexing
            .has(nfold_sql::lexer::LexMode::ANSI_QUOTES)
    );
    assert_eq!(b.settings().lock_wait_timeout.as_secs(), 7);
    assert_ne!(a.settings().lock_wait_timeout.as_secs(), 7);
    assert_eq!(b.get(find("version").unwrap()).show(), "8.4.0-Nfold");
    assert_eq!(VarValue::Bool(true).to_value(), Value::Int(1));
}

#[test]
fn sessions_that_begin_alike_share_their_values() {
    let globals = Globals::new(&Values::default(), &[]);
    let named = |name: &str| [("collation_connection", VarValue::text(name))];
    let begin = |names: &[&str]| {
        let mut vars = SessionVars::new(&globals);
        for name in names {
            vars.set_shared(&globals, &named(name));
        }
        vars
    };
    let place = |vars: &SessionVars| std::ptr::from_ref(vars.settings());
    let (a, mut b) = (begin(&["latin1_bin"]), begin(&["latin1_bin"]));
    assert_eq!(place(&a), place(&b));
    assert_ne!(place(&a), place(&begin(&["utf8mb4_bin"])));
    let twice = ["latin1_bin", "utf8mb4_bin"];
    assert_eq!(place(&begin(&twice)), place(&begin(&twice)));
    b.set_known(&named("latin1_bin"));
    assert_eq!(place(&a), place(&b), "nothing changes");
    b.set_known(&named("utf8mb4_bin"));
    assert_ne!(a.settings(), b.settings());
    assert_eq!(a.settings(), begin(&["latin1_bin"]).settings());
    globals.set(known("max_error_count"), VarValue::Int(7));
    let c = begin(&["latin1_bin"]);
    assert_eq!(
        (a.settings().max_error_count, c.settings().max_error_count),
        (1024, 7)
    );
    for n in 0..2 * MAX_DERIVED as u64 {
        let mut vars = SessionVars::new(&globals);
        vars.set_shared(&globals, &[("sort_buffer_size", VarValue::Int(n + 40_000))]);
    }
    assert_eq!(globals.derived.lock().len(), MAX_DERIVED);
}
