//! What stops a start is one clear line and exit code 1.

use std::io::{BufRead, BufReader, Lines};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use nfold_server::config::DataDir;

fn nfold(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nfold"))
        .arg("serve")
        .args(args)
        .output()
        .expect("it runs")
}

/// The last line on standard error of a start that must fail.
fn complaint(args: &[&str]) -> String {
    let out = nfold(args);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(out.stdout.is_empty());
    let text = String::from_utf8(out.stderr).expect("text");
    text.lines().last().expect("a line").to_string()
}

fn text(p: &Path) -> &str {
    p.to_str().expect("a path in UTF-8")
}

#[test]
fn mistakes_in_options_name_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.cnf");
    std::fs::write(&file, "[client]\nanything=1\n[mysqld]\nmax_conections=5\n").unwrap();
    let line = complaint(&["--config", text(&file)]);
    assert!(
        line.ends_with("my.cnf:4: unknown option 'max_conections'"),
        "{line}"
    );
    let line = complaint(&["--set", "max_connections=none"]);
    assert!(line.contains("'none' is not a number"), "{line}");
    let line = complaint(&["--set", "max_connections"]);
    assert!(line.contains("NAME=VALUE"), "{line}");
    let line = complaint(&["--port", "70000"]);
    assert!(line.contains("between 0 and 65535"), "{line}");
    let line = complaint(&["--config", "/nonexistent/my.cnf"]);
    assert!(
        line.contains("cannot read the option file /nonexistent/my.cnf"),
        "{line}"
    );
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let line = complaint(&["--datadir", text(&file.join("data"))]);
    assert!(line.contains("cannot create the data directory"), "{line}");
    let held = DataDir::open(&dir.path().join("held")).unwrap();
    let line = complaint(&["--datadir", text(held.path()), "--port", "0"]);
    let wanted = format!("in use by another server (process {})", std::process::id());
    assert!(line.contains(&wanted), "{line}");
}

#[test]
fn a_taken_port_or_socket_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let line = complaint(&["--datadir", text(&data), "--port", &port]);
    assert!(
        line.ends_with(&format!(
            "cannot listen on 127.0.0.1:{port}: it is in use by another server"
        )),
        "{line}"
    );
    let socket = dir.path().join("s");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let line = complaint(&[
        "--datadir",
        text(&data),
        "--port",
        "0",
        "--socket",
        text(&socket),
    ]);
    assert!(
        line.contains("cannot listen on the socket") && line.contains("in use"),
        "{line}"
    );
}

/// A server that runs until it is dropped or told to stop.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    log: Vec<String>,
}

impl Running {
    fn start(args: &[&str]) -> Running {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nfold"))
            .arg("serve")
            .args(["--port", "0", "--set", "innodb_buffer_pool_size=8M"])
            .args([
                "--set",
                "innodb_redo_log_capacity=8M",
                "--set",
                "innodb_log_buffer_size=1M",
            ])
            .args(args)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let stderr = child.stderr.take().expect("piped");
        let mut running = Running {
            child,
            lines: BufReader::new(stderr).lines(),
            log: vec![],
        };
        running.read_until("ready for connections");
        running
    }

    fn read_until(&mut self, what: &str) {
        while !self.log.last().is_some_and(|l| l.contains(what)) {
            let Some(Ok(line)) = self.lines.next() else {
                panic!("never said '{what}': {:#?}", self.log);
            };
            self.log.push(line);
        }
    }

    fn said(&self, what: &str) -> bool {
        self.log.iter().any(|l| l.contains(what))
    }

    fn signal(&mut self, name: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        let status = Command::new("/bin/kill").args(["-s", name, &pid]).status();
        assert!(status.expect("kill runs").success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn signals_stop_it_and_a_kill_leaves_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut s = Running::start(&["--datadir", text(&data)]);
    assert!(s.said("made a new database") && s.said("made the account 'root'@'localhost'"));
    assert!(s.said("can be reached from this machine only"));
    let second = complaint(&["--datadir", text(&data), "--port", "0"]);
    assert!(
        second.contains(&format!("(process {})", s.child.id())),
        "{second}"
    );
    assert_eq!(s.signal("TERM"), Some(0));
    s.read_until("shut down");
    let mut s = Running::start(&["--datadir", text(&data)]);
    assert!(s.said("opened after a clean shutdown") && !s.said("made the account"));
    assert_eq!(s.signal("KILL"), None);
    let mut s = Running::start(&["--datadir", text(&data)]);
    // Nothing had been written since the checkpoint of the shutdown: either line is true.
    assert!(s.said("recovered from an unclean end") || s.said("opened after a clean shutdown"));
    assert!(data.join("nfold.sock").exists());
    assert_eq!(s.signal("INT"), Some(0));
    assert!(!data.join("nfold.sock").exists());
}
