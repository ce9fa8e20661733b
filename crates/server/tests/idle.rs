//! What idle connections cost: a test in a process of its own, because it weighs the process.
#![allow(unsafe_code)]

mod common;

use common::TestServer;
use common::client::Client;

fn root(s: &TestServer) -> Client {
    Client::login(s.port, "root", "").expect("root logs in")
}

/// Resident memory of this process in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn two_thousand_idle_connections_are_cheap_and_answer() {
    // Both ends are in this process.
    // SAFETY: plain numbers in and out.
    unsafe {
        let limit = libc::rlimit {
            rlim_cur: 10_000,
            rlim_max: 10_000,
        };
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
    let s = TestServer::start(&[("max_connections", "3000")]);
    // Warm the pools.
    assert_eq!(root(&s).value("SELECT 1"), "1");
    let before = resident_kib();
    let mut clients: Vec<Client> = (0..2000).map(|_| root(&s)).collect();
    let each = (resident_kib() - before) / 2000;
    assert!(each < 16, "{each} KiB for an idle connection");
    assert_eq!(s.server().registry().connections(), 2000);
    for (i, c) in clients.iter_mut().enumerate().step_by(7) {
        assert_eq!(c.value(&format!("SELECT {i}")), i.to_string());
    }
    drop(clients);
    s.eventually("all are gone", |s| s.server().registry().connections() == 0);
}
