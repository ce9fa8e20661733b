use super::*;

fn shown(text: &str) -> String {
    match Dsn::parse(text) {
        Ok(dsn) => dsn.to_string(),
        Err(e) => e.to_string(),
    }
}

#[test]
fn url_and_key_value_forms_are_equivalent() {
    assert_eq!(
        shown("mysql://app@db.example:3307/shop"),
        "mysql://app@db.example:3307/shop"
    );
    assert_eq!(
        shown("host=db.example,port=3307,user=app,db=shop"),
        "mysql://app@db.example:3307/shop"
    );
    assert_eq!(shown("mysql://app@[::1]:3307"), "mysql://app@[::1]:3307");
    assert_eq!(shown("mysql://a%40b@h/x%2Fy"), "mysql://a@b@h:3306/x/y");
    assert_eq!(
        shown("mysql://app@/shop?socket=/run/m.sock"),
        "mysql://app@/shop?socket=/run/m.sock"
    );
    assert_eq!(shown("mariadb://app@h"), "mysql://app@h:3306");
    assert_eq!(
        shown("mysql://app@h/d?ssl-mode=verify_ca&ssl-ca=/ca.pem"),
        "mysql://app@h:3306/d?ssl-mode=VERIFY_CA"
    );
}

#[test]
fn password_in_dsn_is_rejected_and_not_repeated() {
    for text in [
        "mysql://app:hunter2@h/db",
        "user=app,password=hunter2",
        "mysql://app@h?password=hunter2",
    ] {
        let message = shown(text);
        assert!(message.contains("holds a password"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn invalid_dsns_report_one_clear_line() {
    for (text, part) in [
        ("", "empty"),
        ("postgres://h", "must begin with mysql://"),
        ("mysql://app@h:0", "port must be"),
        ("mysql://app@h:99999", "port must be"),
        ("mysql://app@[::1", "closing bracket"),
        ("mysql://app@h/%zz", "hexadecimal"),
        ("mysql://app@h?hots=x", "no key \"hots\""),
        ("shop", "no key=value"),
        ("prompt=maybe", "yes or no"),
        (
            "ssl-mode=on",
            "DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY",
        ),
    ] {
        let message = shown(text);
        assert!(message.contains(part), "{text}: {message}");
        assert_eq!(message.lines().count(), 1);
    }
}

#[test]
fn tls_is_default_only_for_remote_servers() {
    use crate::tls::SslMode;
    for (text, mode) in [
        ("mysql://app@db.example", SslMode::Preferred),
        ("mysql://app@127.0.0.1", SslMode::Disabled),
        (
            "mysql://app@db.example?ssl-mode=DISABLED",
            SslMode::Disabled,
        ),
        ("mysql://app@127.0.0.1?ssl-mode=REQUIRED", SslMode::Required),
        ("mysql://app@/d?socket=/run/m.sock", SslMode::Disabled),
    ] {
        let dsn = Dsn::open(text).expect("right");
        assert_eq!(dsn.ssl_mode(), mode, "{text}");
        assert_eq!(dsn.tls.is_some(), mode != SslMode::Disabled, "{text}");
    }
    for (text, part) in [
        ("mysql://app@/d?socket=/s&ssl-mode=REQUIRED", "Unix socket"),
        ("mysql://app@h?ssl-mode=VERIFY_CA", "needs ssl-ca"),
        (
            "mysql://app@h?ssl-mode=VERIFY_IDENTITY&ssl-ca=/not/there",
            "/not/there",
        ),
    ] {
        let message = Dsn::open(text).expect_err("wrong").to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn option_file_password_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("my.cnf");
    std::fs::write(
        &file,
        "[mysqld]\npassword=no\n[client]\nuser=x\npassword = \"se#cret\"\n[mysql]\npassword=no\n",
    )
    .expect("written");
    assert_eq!(
        option_file::password(&file).expect("read").as_deref(),
        Some("se#cret")
    );
    std::fs::write(&file, "[client]\npassword=plain # not this\n").expect("written");
    assert_eq!(
        option_file::password(&file).expect("read").as_deref(),
        Some("plain")
    );
    std::fs::write(&file, "[mysqld]\n").expect("written");
    assert_eq!(option_file::password(&file).expect("read"), None);
    let gone = option_file::password(&dir.path().join("gone")).expect_err("not there");
    assert!(gone.to_string().starts_with("cannot read "));
}

#[test]
fn debug_shows_no_password() {
    let mut dsn = Dsn::parse("user=app").expect("right");
    dsn.password = Secret("hunter2".into());
    assert!(!format!("{dsn:?} {dsn}").contains("hunter2"));
    assert_eq!(dsn.password.reveal(), "hunter2");
}
