//! Stock clients against the network side: both plugins, TLS, the unix socket. Skipped loudly where
//! a client is missing.

mod common;

use common::{TestServer, has, run_program};

fn mariadb(server: &TestServer, args: &[&str], sql: &str) -> Result<String, String> {
    let port = server.port.to_string();
    let mut all = vec![
        "--no-defaults",
        "-h127.0.0.1",
        "-P",
        &port,
        "-N",
        "-B",
        "-A",
    ];
    all.extend(args);
    all.extend(["-e", sql]);
    run_program("mariadb", &all)
}

#[test]
fn mariadb_client_logs_in_every_way() {
    if !has("mariadb") {
        eprintln!("SKIPPED: no mariadb client");
        return;
    }
    let s = TestServer::start(&[]);
    for tls in ["--ssl=0", "--ssl"] {
        for (user, password) in [
            ("-uroot", "--password="),
            ("-unat", "-pnpw"),
            ("-usha", "-pspw"),
            ("-usha", "-pspw"),
        ] {
            let args = [tls, "--skip-ssl-verify-server-cert", user, password];
            assert_eq!(
                mariadb(&s, &args, "SELECT 1").as_deref(),
                Ok("1\n"),
                "{args:?}"
            );
        }
        let refused = mariadb(
            &s,
            &[tls, "--skip-ssl-verify-server-cert", "-usha", "-pwrong"],
            "SELECT 1",
        );
        let refused = refused.expect_err("a wrong password");
        assert!(
            refused.contains(
                "ERROR 1045 (28000): Access denied for user 'sha'@'localhost' (using password: YES)"
            ),
            "{refused}"
        );
    }
    let tls = mariadb(
        &s,
        &["--ssl", "--skip-ssl-verify-server-cert", "-unat", "-pnpw"],
        "TLS",
    );
    assert_eq!(tls.as_deref(), Ok("true\n"));
    let stranger =
        mariadb(&s, &["--ssl=0", "-ustranger", "-px"], "SELECT 1").expect_err("no such user");
    assert!(stranger.contains("ERROR 1045 (28000)"), "{stranger}");
    let locked = mariadb(&s, &["--ssl=0", "-ulocked", "-pnpw"], "SELECT 1").expect_err("locked");
    assert!(locked.contains("ERROR 3118 (HY000)"), "{locked}");
    let nowhere =
        mariadb(&s, &["--ssl=0", "-uroot", "-Dnowhere"], "SELECT 1").expect_err("no database");
    assert!(nowhere.contains("ERROR 1049 (42000)"), "{nowhere}");
    let socket = s.socket();
    let args = [
        "--no-defaults",
        "-S",
        &socket,
        "-usha",
        "-pspw",
        "-N",
        "-B",
        "-A",
        "-e",
        "SELECT USER()",
    ];
    assert_eq!(
        run_program("mariadb", &args).as_deref(),
        Ok("sha@localhost\n")
    );
}

#[test]
fn secure_transport_may_be_required() {
    if !has("mariadb") {
        eprintln!("SKIPPED: no mariadb client");
        return;
    }
    let s = TestServer::start(&[("require_secure_transport", "ON")]);
    let open = mariadb(&s, &["--ssl=0", "-uroot"], "SELECT 1").expect_err("in the open");
    assert!(open.contains("ERROR 3159"), "{open}");
    let args = ["--ssl", "--skip-ssl-verify-server-cert", "-uroot"];
    assert_eq!(mariadb(&s, &args, "SELECT 1").as_deref(), Ok("1\n"));
}

#[test]
fn pymysql_logs_in_and_queries() {
    if run_program("/usr/bin/python3", &["-c", "import pymysql"]).is_err() {
        eprintln!("SKIPPED: no PyMySQL");
        return;
    }
    let s = TestServer::start(&[]);
    let script = format!(
        r#"
import pymysql, sys
for user, pw in (("root", ""), ("nat", "npw"), ("sha", "spw"), ("sha", "spw")):
    for ssl in (None, {{"check_hostname": False, "verify_mode": False}}):
        c = pymysql.connect(host="127.0.0.1", port={port}, user=user, password=pw, ssl=ssl, autocommit=True)
        k = c.cursor()
        k.execute("SELECT 42")
        assert k.fetchall() == (("42",),), k.fetchall()
        c.ping(reconnect=False)
        k.execute("TWO")
        assert k.fetchall() == (("1",),)
        assert k.nextset() and k.fetchall() == (("2",),) and not k.nextset()
        try:
            k.execute("frob")
            sys.exit("no error")
        except pymysql.err.ProgrammingError as e:
            assert e.args[0] == 1064, e
        k.execute("LENGTH " + "x" * 20000000)
        assert k.fetchall() == (("20000007",),)
        k.execute("ROWS 2 20000000")
        assert [len(r[0]) for r in k.fetchall()] == [20000000] * 2
        c.close()
try:
    pymysql.connect(host="127.0.0.1", port={port}, user="sha", password="no")
    sys.exit("let in")
except pymysql.err.OperationalError as e:
    assert e.args[0] == 1045, e
print("fine")
"#,
        port = s.port
    );
    assert_eq!(
        run_program("/usr/bin/python3", &["-c", &script]).as_deref(),
        Ok("fine\n")
    );
}
