//! The server on the caller's thread, without sockets and threads: complete packets in, complete
//! packets out. It includes connection buffers, fibers, sessions, planner, executor and engine. For
//! counting the instructions and allocations of statements.
//!
//! # Cost
//! As in a worker, except for epoll, `recv` and `send`, which are two copies of the bytes here. A
//! statement never yields, and a wait polls.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use corosensei::{Coroutine, CoroutineResult};
use nfold_engine::Engine;
use nfold_protocol::consts::cap;

use crate::config::{DataDir, ServerOptions, Values};
use crate::database;
use crate::net::conn::{
    After, Conn, Input, Job, Link, Output, Peer, Phase, Socket, Transport, run,
};
use crate::net::fiber::handler::LoginInfo;
use crate::net::worker::{
    ConnSlot, CounterCells, Fiber, FiberCx, Inbox, Local, Registry, StatementMemory, Suspend, Token,
};
use crate::server::StartError;
use crate::session::ServerState;
use crate::statement::{Sessions, server_state};

/// Longer than any statement.
const SLICE: Duration = Duration::from_secs(1 << 20);
/// The time between two polls of a wait.
const PAUSE: Duration = Duration::from_millis(1);
/// The capabilities of its clients.
const CAPABILITIES: u32 = cap::SERVER
    & !cap::SSL
    & !cap::CONNECT_WITH_DB
    & !cap::CONNECT_ATTRS
    & !cap::DEPRECATE_EOF
    & !cap::COMPRESS;

/// A server over a data directory. It runs only during the calls of its [`Client`]s.
pub struct Embedded {
    local: Rc<Local>,
    state: Arc<ServerState>,
    inbox: Arc<Inbox>,
    options: ServerOptions,
    _poll: mio::Poll,
    _datadir: Arc<DataDir>,
}

/// The data for [`Embedded::worker`] to create another worker of the same server on another thread.
#[derive(Clone)]
pub struct Seed {
    registry: Arc<Registry>,
    state: Arc<ServerState>,
    options: ServerOptions,
    datadir: Arc<DataDir>,
}

impl Embedded {
    /// Opens `dir`, which is created if necessary, with options by name.
    ///
    /// # Errors
    /// An invalid option, or a directory that cannot be opened.
    pub fn open(dir: &Path, options: &[(&str, &str)]) -> Result<Embedded, StartError> {
        let line = |e: &dyn std::fmt::Display| StartError(e.to_string());
        let mut values = Values::default();
        for (name, value) in options {
            values.set(name, Some(value)).map_err(StartError)?;
        }
        let mut options = ServerOptions::from_values(values).map_err(|e| line(&e))?;
        let datadir = DataDir::open(dir).map_err(|e| line(&e))?;
        options.datadir = datadir.path().to_path_buf();
        let database = database::open_inline(&options, &datadir)?;
        let registry = Arc::new(Registry::default());
        let state = server_state(&options, database, registry.clone());
        let seed = Seed {
            registry,
            state,
            options,
            datadir: Arc::new(datadir),
        };
        Embedded::worker(&seed, 0)
    }

    /// The data for a worker on another thread.
    pub fn seed(&self) -> Seed {
        Seed {
            registry: self.local.registry.clone(),
            state: self.state.clone(),
            options: self.options.clone(),
            datadir: self._datadir.clone(),
        }
    }

    /// A worker of an open server, for the calling thread only.
    ///
    /// # Errors
    /// The system cannot create an eventfd.
    pub fn worker(seed: &Seed, number: u16) -> Result<Embedded, StartError> {
        let line = |e: &dyn std::fmt::Display| StartError(e.to_string());
        let Seed {
            registry,
            state,
            options,
            datadir,
        } = seed.clone();
        let poll = mio::Poll::new().map_err(|e| line(&e))?;
        let eventfd = mio::Waker::new(poll.registry(), Token::INBOX).map_err(|e| line(&e))?;
        let mut local = Local::new(
            number.into(),
            registry,
            poll.registry().try_clone().map_err(|e| line(&e))?,
            Arc::new(Sessions(state.clone())),
            Arc::new(CounterCells::default()),
        );
        local.slice = SLICE;
        Ok(Embedded {
            local: Rc::new(local),
            state,
            inbox: Arc::new(Inbox::new(eventfd)),
            options,
            _poll: poll,
            _datadir: datadir,
        })
    }

    /// The engine of the server.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.state.engine
    }

    /// Logs in as `root`.
    pub fn connect(&self) -> std::io::Result<Client<'_>> {
        self.connect_as("root")
    }

    /// Logs in as `user`@`localhost` without checking a password. If the login is refused, the
    /// first command fails.
    pub fn connect_as(&self, user: &str) -> std::io::Result<Client<'_>> {
        let registry = &self.local.registry;
        let peer = Peer::Local;
        let slot = Arc::new(ConnSlot::new(
            registry.new_id(),
            Token::new(0, 0),
            self.inbox.clone(),
            peer.process_host(),
        ));
        registry.add(&slot);
        let id = slot.id;
        let conn = Box::new(Conn {
            link: Rc::new(Link {
                waker: Waker::from(slot.clone()),
                slot,
                limits: Cell::new(self.options.limits),
            }),
            transport: Transport::new(
                Socket::Memory(Vec::new()),
                &self.local.poll,
                Token::new(0, 0).to_mio(),
            )?,
            input: Input::default(),
            output: Output::default(),
            peer,
            phase: Phase::Command,
            session: None,
            capabilities: CAPABILITIES,
            sequence: 0,
            answer_sequence: 0,
            deadline: None,
            in_reserve: false,
        });
        let mut client = Client {
            server: self,
            conn: Some(conn),
            id,
        };
        client.run(Job::Login(LoginInfo {
            connection_id: id,
            user: user.into(),
            client_host: "localhost".into(),
            account_user: user.into(),
            account_host: "localhost".into(),
            database: None,
            collation: 255,
            capabilities: CAPABILITIES,
            attributes: Vec::new(),
            tls: false,
            local: true,
            zstd_level: 0,
        }))?;
        Ok(client)
    }
}

/// One connection.
pub struct Client<'a> {
    server: &'a Embedded,
    /// `None` after the connection has ended.
    conn: Option<Box<Conn>>,
    id: u32,
}

impl Client<'_> {
    /// Sends complete packets, with their headers, and appends the answers to `answer`.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn command(&mut self, packets: &[u8], answer: &mut Vec<u8>) -> std::io::Result<()> {
        let local = &self.server.local;
        let conn = self.conn.as_mut().ok_or(std::io::ErrorKind::NotConnected)?;
        let mut rest = packets;
        while !rest.is_empty() {
            let space = conn.input.space(local, packets.len());
            let n = space.len().min(rest.len());
            space[..n].copy_from_slice(&rest[..n]);
            conn.input.received(n);
            rest = &rest[n..];
        }
        while self.conn.as_ref().is_some_and(|c| !c.input.is_empty()) {
            self.run(Job::Commands)?;
        }
        let sent = self
            .conn
            .as_mut()
            .and_then(|c| c.transport.sent_to_memory());
        if let Some(sent) = sent {
            answer.extend_from_slice(sent);
            sent.clear();
        }
        Ok(())
    }

    /// Runs a fiber to its end, as a worker does.
    fn run(&mut self, job: Job) -> std::io::Result<()> {
        let mut conn = self.conn.take().ok_or(std::io::ErrorKind::NotConnected)?;
        let local = self.server.local.clone();
        let now = Instant::now();
        let slice_end = now + local.slice;
        let stack = local.take_stack()?;
        let mut fiber: Fiber = Coroutine::with_stack(stack, move |yielder, ()| {
            let link = conn.link.clone();
            let cx = FiberCx {
                yielder,
                link: &link,
                local: &local,
                slice_end: Cell::new(slice_end),
                now: Cell::new(now),
                statement_start: Cell::new(now),
                statement_end: Cell::new(None),
                memory: StatementMemory::default(),
                masked: Cell::new(false),
                at_first_tick: Cell::new(false),
            };
            let after = run(&mut conn, &cx, &*local.sessions, job);
            (conn, after)
        });
        let mut messages = Vec::new();
        loop {
            match fiber.resume(()) {
                CoroutineResult::Yield(Suspend::Yield) => {}
                CoroutineResult::Yield(_) => {
                    std::thread::sleep(PAUSE);
                    self.server.inbox.take(&mut messages);
                    messages.clear();
                }
                CoroutineResult::Return((mut conn, after)) => {
                    let local = &self.server.local;
                    local.give_stack(fiber.into_stack());
                    conn.output.release(local);
                    conn.input.release(local);
                    if after == After::KeepOpen {
                        self.conn = Some(conn);
                    }
                    return Ok(());
                }
            }
        }
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        if self.conn.is_some() {
            // No client can receive its answer.
            let _ = self.run(Job::Disconnect);
        }
        self.server.local.registry.remove(self.id);
    }
}
