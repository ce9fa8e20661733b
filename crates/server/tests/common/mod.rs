//! A server with a small session of its own, and a client that speaks raw packets.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod client;

use std::collections::HashMap;
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use nfold_protocol::command::ExecuteHeader;
use nfold_protocol::consts::{CACHING_SHA2_PASSWORD, NATIVE_PASSWORD, column_type, status};
use nfold_protocol::lenenc::put_bytes;
use nfold_protocol::response::{Column, Ok as OkPacket};
use nfold_server::config::{ServerOptions, Values};
use nfold_server::net::auth::{Account, AccountSource, hash_password};
use nfold_server::net::conn::{Peer, ResponseWriter};
use nfold_server::net::fiber::handler::*;
use nfold_server::net::worker::{FiberCx, Interrupt, KillKind, Registry, Waiter};
use nfold_server::server::{Bound, Server};

/// `root` without a password, `nat`/`npw` and `sha`/`spw` with one, `locked`.
pub struct Accounts(Vec<Account>);

impl Default for Accounts {
    fn default() -> Self {
        let account = |user: &str, plugin: &str, password: &str| Account {
            user: user.into(),
            host: "%".into(),
            plugin: plugin.into(),
            auth_string: hash_password(plugin, password)
                .expect("a known plugin")
                .into_bytes(),
            locked: user == "locked",
            connection_admin: user == "root",
            ..Account::default()
        };
        Accounts(vec![
            account("root", CACHING_SHA2_PASSWORD, ""),
            account("nat", NATIVE_PASSWORD, "npw"),
            account("sha", CACHING_SHA2_PASSWORD, "spw"),
            account("locked", NATIVE_PASSWORD, "npw"),
        ])
    }
}

impl AccountSource for Accounts {
    fn find(&self, user: &str, _: Peer) -> Option<Account> {
        self.0.iter().find(|a| a.user == user).cloned()
    }
}

#[derive(Default)]
pub struct Sessions {
    pub ended: Arc<AtomicUsize>,
    /// Set by the statements PUTOFF and SYNC, cleared by the worker's catching up.
    pub deferred: Arc<AtomicBool>,
    pub caught_up: Arc<CaughtUp>,
}

/// Records when a worker catches up, and whether it may block then.
#[derive(Default)]
pub struct CaughtUp {
    /// When each connection began its last statement.
    begun: Mutex<HashMap<u32, Instant>>,
    /// The tasks that wait until the worker catches up.
    wakers: Mutex<Vec<Waker>>,
    /// For each time that it was allowed to block: how long before that others than the last
    /// connection had begun a statement.
    pub may_block: Mutex<Vec<Option<Duration>>>,
}

impl CaughtUp {
    fn caught_up(&self, may_block: bool) {
        if may_block {
            let mut ago: Vec<_> = (self.begun.lock().unwrap().values())
                .map(Instant::elapsed)
                .collect();
            ago.sort();
            self.may_block.lock().unwrap().push(ago.get(1).copied());
        }
        self.wakers.lock().unwrap().drain(..).for_each(Waker::wake);
    }

    pub fn times_it_may_block(&self) -> usize {
        self.may_block.lock().unwrap().len()
    }
}

impl SessionFactory for Sessions {
    fn connect(
        &self,
        _: &FiberCx<'_>,
        login: LoginInfo,
    ) -> Result<Box<dyn SessionHandler>, ClientError> {
        if login.database.as_deref() == Some("nowhere") {
            return Err(ClientError::new(
                1049,
                "42000",
                "Unknown database 'nowhere'",
            ));
        }
        Ok(Box::new(Session {
            login,
            in_transaction: false,
            ended: self.ended.clone(),
            deferred: self.deferred.clone(),
            caught_up: self.caught_up.clone(),
            long_data: vec![],
        }))
    }

    fn has_deferred(&self) -> bool {
        self.deferred.load(Ordering::SeqCst)
    }

    fn catch_up(&self, may_block: bool) {
        self.deferred.store(false, Ordering::SeqCst);
        self.caught_up.caught_up(may_block);
    }

    fn survives_panic(&self) -> bool {
        true
    }
}

struct Session {
    login: LoginInfo,
    in_transaction: bool,
    ended: Arc<AtomicUsize>,
    deferred: Arc<AtomicBool>,
    caught_up: Arc<CaughtUp>,
    long_data: Vec<u8>,
}

fn result(out: &mut ResponseWriter<'_>, name: &str, rows: &[&[u8]]) {
    let column = Column {
        name: name.as_bytes(),
        type_code: column_type::VAR_STRING,
        collation: 255,
        length: 1024,
        ..Column::default()
    };
    out.columns([column].into_iter());
    for row in rows {
        put_bytes(out.row_buffer(), row);
        if out.end_row().is_err() {
            return;
        }
    }
    out.end_rows(0);
}

fn interrupted(out: &mut ResponseWriter<'_>, why: Interrupt) {
    out.error(&why.to_client_error());
}

impl Session {
    fn statement(&mut self, cx: &FiberCx<'_>, sql: &str, out: &mut ResponseWriter<'_>) {
        let words: Vec<&str> = sql.split_whitespace().collect();
        let number = |i: usize| {
            words
                .get(i)
                .and_then(|w| w.parse::<u64>().ok())
                .unwrap_or(0)
        };
        let mut begun = self.caught_up.begun.lock().unwrap();
        begun.insert(cx.connection_id(), Instant::now());
        drop(begun);
        match words.first().copied().unwrap_or("") {
            "PUTOFF" => {
                self.deferred.store(true, Ordering::SeqCst);
                out.ok(&OkPacket::default());
            }
            // Waits until the worker has caught up.
            "SYNC" => {
                self.deferred.store(true, Ordering::SeqCst);
                let fut = pin!(poll_fn(|task| {
                    if !self.deferred.load(Ordering::SeqCst) {
                        return Poll::Ready(());
                    }
                    let mut wakers = self.caught_up.wakers.lock().unwrap();
                    wakers.push(task.waker().clone());
                    Poll::Pending
                }));
                match cx.wait(fut, None) {
                    Ok(()) => out.ok(&OkPacket::default()),
                    Err(why) => interrupted(out, why),
                }
            }
            "SELECT" if words.get(1) == Some(&"USER()") => {
                let user = format!("{}@{}", self.login.user, self.login.client_host);
                result(out, "USER()", &[user.as_bytes()]);
            }
            "SELECT" => {
                let value = words.get(1).unwrap_or(&"NULL").trim_end_matches(';');
                result(out, value, &[value.as_bytes()]);
            }
            "LENGTH" => result(out, "l", &[sql.len().to_string().as_bytes()]),
            "TLS" => result(out, "tls", &[self.login.tls.to_string().as_bytes()]),
            "ROWS" => {
                let row = vec![b'x'; number(2) as usize];
                let rows = vec![&row[..]; number(1) as usize];
                result(out, "r", &rows);
            }
            "WAIT" => self.wait(cx, number(1), out),
            "SPIN" => {
                let end = Instant::now() + Duration::from_millis(number(1));
                while Instant::now() < end {
                    if let Err(why) = cx.tick() {
                        return interrupted(out, why);
                    }
                }
                out.ok(&OkPacket::default());
            }
            "WAKE" => {
                // Woken by another thread after some milliseconds.
                let end = Instant::now() + Duration::from_millis(number(1));
                let mut started = false;
                let fut = pin!(poll_fn(move |task| {
                    if Instant::now() >= end {
                        return Poll::Ready(());
                    }
                    if !std::mem::replace(&mut started, true) {
                        let waker = task.waker().clone();
                        std::thread::spawn(move || {
                            std::thread::sleep(end.saturating_duration_since(Instant::now()));
                            waker.wake();
                        });
                    }
                    Poll::Pending
                }));
                match cx.wait(fut, None) {
                    Ok(()) => out.ok(&OkPacket::default()),
                    Err(why) => interrupted(out, why),
                }
            }
            "PANIC" => panic!("as asked for"),
            "KILL" => {
                let kind = if words[1] == "QUERY" {
                    KillKind::Query
                } else {
                    KillKind::Connection
                };
                if cx.registry().kill(number(words.len() - 1) as u32, kind) {
                    out.ok(&OkPacket::default());
                } else {
                    out.error(&ClientError::new(1094, "HY000", "Unknown thread id"));
                }
            }
            "BEGIN" | "COMMIT" => {
                self.in_transaction = words[0] == "BEGIN";
                out.set_status(self.status_flags());
                out.ok(&OkPacket::default());
            }
            "TWO" => {
                out.set_more_results(true);
                result(out, "a", &[b"1"]);
                out.set_more_results(false);
                result(out, "b", &[b"2"]);
            }
            "SET" | "set" => out.ok(&OkPacket::default()),
            "PROCESSLIST" => {
                let lines: Vec<String> = cx
                    .registry()
                    .processes()
                    .iter()
                    .map(|p| {
                        let text = p.text.as_deref().map(String::from_utf8_lossy);
                        format!("{} {} {} {:?}", p.id, p.identity.user, p.command, text)
                    })
                    .collect();
                result(
                    out,
                    "p",
                    &lines.iter().map(|l| l.as_bytes()).collect::<Vec<_>>(),
                );
            }
            "TIMEOUT" => {
                let limits = Limits {
                    wait_timeout: Duration::from_millis(number(1)),
                    ..cx.limits()
                };
                cx.set_limits(limits);
                out.ok(&OkPacket::default());
            }
            other => out.error(&ClientError::new(
                1064,
                "42000",
                format!("what is '{other}'?"),
            )),
        }
    }

    /// Waits for nothing that will ever come, at most `ms` milliseconds (0: no limit).
    fn wait(&mut self, cx: &FiberCx<'_>, ms: u64, out: &mut ResponseWriter<'_>) {
        let deadline = (ms > 0).then(|| Instant::now() + Duration::from_millis(ms));
        match cx.wait(pin!(std::future::pending()), deadline) {
            Ok(()) => unreachable!("it never comes"),
            Err(why) => interrupted(out, why),
        }
    }
}

impl SessionHandler for Session {
    fn query(&mut self, cx: &FiberCx<'_>, sql: &[u8], out: &mut ResponseWriter<'_>) {
        match std::str::from_utf8(sql) {
            Ok(sql) => self.statement(cx, sql, out),
            Err(_) => out.error(&ClientError::new(
                1300,
                "HY000",
                "Invalid utf8mb4 character string",
            )),
        }
    }

    fn prepare(&mut self, _: &FiberCx<'_>, _: &[u8], out: &mut ResponseWriter<'_>) {
        out.prepare_ok(7, 0, 1, 0);
        out.definitions([Column::default()].into_iter());
    }

    fn execute(&mut self, _: &FiberCx<'_>, h: ExecuteHeader<'_>, out: &mut ResponseWriter<'_>) {
        let text = format!(
            "{} {} {}",
            h.statement,
            h.parameters.len(),
            self.long_data.len()
        );
        result(out, "e", &[text.as_bytes()]);
    }

    fn fetch(&mut self, _: &FiberCx<'_>, id: u32, _: u32, out: &mut ResponseWriter<'_>) {
        out.error(&ClientError::new(
            1243,
            "HY000",
            format!("Unknown prepared statement handler ({id})"),
        ));
    }

    fn send_long_data(&mut self, _: u32, _: u16, data: &[u8]) {
        self.long_data.extend_from_slice(data);
    }

    fn close_statement(&mut self, _: u32) {}

    fn reset_statement(&mut self, _: &FiberCx<'_>, _: u32, out: &mut ResponseWriter<'_>) {
        self.long_data.clear();
        out.ok(&OkPacket::default());
    }

    fn ping(&mut self, out: &mut ResponseWriter<'_>) {
        out.ok(&OkPacket::default());
    }

    fn init_db(&mut self, cx: &FiberCx<'_>, name: &[u8], out: &mut ResponseWriter<'_>) {
        cx.set_database(Some(&String::from_utf8_lossy(name)));
        out.ok(&OkPacket::default());
    }

    fn field_list(&mut self, _: &FiberCx<'_>, _: &[u8], _: &[u8], out: &mut ResponseWriter<'_>) {
        out.field_list(&[]);
    }

    fn reset_connection(&mut self, _: &FiberCx<'_>, out: &mut ResponseWriter<'_>) {
        self.in_transaction = false;
        out.ok(&OkPacket::default());
    }

    fn change_user(&mut self, _: &FiberCx<'_>, login: LoginInfo) -> Result<(), ClientError> {
        self.login = login;
        Ok(())
    }

    fn kill(&mut self, cx: &FiberCx<'_>, id: u32, out: &mut ResponseWriter<'_>) {
        cx.registry().kill(id, KillKind::Connection);
        out.ok(&OkPacket::default());
    }

    fn statistics(&mut self, _: &FiberCx<'_>) -> String {
        "Uptime: 1".into()
    }

    fn status_flags(&self) -> u16 {
        status::AUTOCOMMIT
            | if self.in_transaction {
                status::IN_TRANS
            } else {
                0
            }
    }

    fn disconnected(&mut self, cx: &FiberCx<'_>) {
        // A rollback may wait; interrupts are off here.
        let mut polls = 0;
        let fut = pin!(poll_fn(|task| {
            polls += 1;
            task.waker().wake_by_ref();
            if polls > 3 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        cx.wait(fut, None).expect("no interrupt at the end");
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// A running server; stopped when dropped.
pub struct TestServer {
    server: Option<Server>,
    pub port: u16,
    pub dir: tempfile::TempDir,
    pub ended: Arc<AtomicUsize>,
    pub deferred: Arc<AtomicBool>,
    pub caught_up: Arc<CaughtUp>,
}

impl TestServer {
    /// With options on top of: a free port, a socket `s` in the data directory, two workers, not
    /// pinned.
    pub fn start(options: &[(&str, &str)]) -> TestServer {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("s").display().to_string();
        let mut values = Values::default();
        let datadir = dir.path().display().to_string();
        let fixed = [
            ("datadir", datadir.as_str()),
            ("port", "0"),
            ("socket", &socket),
            ("nfold_workers", "2"),
            ("nfold_pin_workers", "OFF"),
            ("nfold_move_connections", "OFF"),
        ];
        for (name, value) in fixed.iter().chain(options) {
            values.set(name, Some(value)).expect("a good option");
        }
        let options = Arc::new(ServerOptions::from_values(values).expect("good options"));
        let bound = Bound::new(&options).expect("a free port");
        let sessions = Sessions::default();
        let ended = sessions.ended.clone();
        let deferred = sessions.deferred.clone();
        let caught_up = sessions.caught_up.clone();
        let server = Server::start(
            bound,
            options,
            Arc::new(Accounts::default()),
            Arc::new(sessions),
            Arc::new(Registry::default()),
        )
        .expect("it starts");
        let port = server.address().expect("TCP").port();
        TestServer {
            server: Some(server),
            port,
            dir,
            ended,
            deferred,
            caught_up,
        }
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("running")
    }

    pub fn socket(&self) -> String {
        self.dir.path().join("s").display().to_string()
    }

    pub fn stop(&mut self) {
        if let Some(s) = self.server.take() {
            s.stop();
        }
    }

    /// Waits until a condition holds; fails after some seconds.
    pub fn eventually(&self, what: &str, mut condition: impl FnMut(&TestServer) -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !condition(self) {
            assert!(Instant::now() < end, "never happened: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a program; its standard output if it succeeds, otherwise its errors.
pub fn run_program(program: &str, args: &[&str]) -> Result<String, String> {
    let out = std::process::Command::new(program)
        .args(args)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    if out.status.success() {
        Ok(text(&out.stdout))
    } else {
        Err(text(&out.stderr))
    }
}

pub fn has(program: &str) -> bool {
    Path::new("/usr/bin").join(program).exists()
}
