use super::*;

#[test]
fn a_file_becomes_options() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.cnf");
    std::fs::write(
        &file,
        "[mysqld]\ninnodb-buffer-pool-size = 3G\nmax_connections=7\nport=3307\nskip-ssl\ninnodb_flush_log_at_trx_commit=2\nloose-frob=1\nrequire_secure_transport\nbind-address=127.0.0.1, ::1\n",
    )
    .unwrap();
    let mut v = Values::default();
    v.apply(&read(&file).unwrap()).unwrap();
    assert_eq!(v.int("innodb_buffer_pool_size"), 3 << 30);
    assert_eq!(v.int("innodb_flush_log_at_trx_commit"), 2);
    let o = ServerOptions::from_values(v).unwrap();
    assert_eq!(
        (o.port, o.max_connections, o.ssl, o.require_secure_transport),
        (3307, 7, false, true)
    );
    assert_eq!(o.bind_addresses, ["127.0.0.1", "::1"]);
    assert_eq!(o.limits.wait_timeout, Duration::from_secs(28800));
}

#[test]
fn mistakes_name_the_option_the_file_and_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.cnf");
    for (line, what) in [
        (
            "inodb_buffer_pool_size=1G",
            "unknown option 'inodb_buffer_pool_size'",
        ),
        ("max_connections=0", "between 1 and 100000"),
        ("max_connections=many", "is not a number"),
        ("max_connections=10X", "is not a number"),
        ("port", "needs a value"),
        ("autocommit=perhaps", "ON or OFF"),
        ("innodb_page_size=8192", "one of 16384, 16k"),
        ("innodb_buffer_pool_size=99999999999T", "is not a number"),
    ] {
        std::fs::write(&file, format!("[mysqld]\n\n{line}\n")).unwrap();
        let e = Values::default()
            .apply(&read(&file).unwrap())
            .unwrap_err()
            .to_string();
        assert!(e.contains("my.cnf:3: ") && e.contains(what), "{e}");
    }
}
