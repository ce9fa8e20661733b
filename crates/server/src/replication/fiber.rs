//! A session that runs on the thread of the replication channel, in coroutines as on a worker.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use corosensei::{Coroutine, CoroutineResult};
use nfold_types::{ErrorCode, SqlError};

use crate::net::conn::{Link, Peer};
use crate::net::fiber::handler::{ClientError, Limits, LoginInfo, SessionFactory, SessionHandler};
use crate::net::worker::{
    ConnSlot, CounterCells, FiberCx, Inbox, Local, StatementMemory, Suspend, Token,
};
use crate::session::{ServerState, Session};

/// The user that SHOW PROCESSLIST shows.
const USER: &str = "system user";
/// The longest sleep before a wait is polled again.
const PAUSE: Duration = Duration::from_millis(100);

/// There is no socket, so no time matters.
const LIMITS: Limits = Limits {
    wait_timeout: Duration::MAX,
    net_read_timeout: Duration::MAX,
    net_write_timeout: Duration::MAX,
    max_allowed_packet: 1 << 30,
};

/// The thread has no clients, so it opens no sessions for them.
struct NoClients;

impl SessionFactory for NoClients {
    fn connect(
        &self,
        _: &FiberCx<'_>,
        _: LoginInfo,
    ) -> Result<Box<dyn SessionHandler>, ClientError> {
        Err(ClientError::new(1040, "08004", "Too many connections"))
    }

    fn survives_panic(&self) -> bool {
        crate::net::worker::last_was_contained()
    }
}

/// See the module's header.
pub(super) struct SessionThread {
    server: Arc<ServerState>,
    local: Rc<Local>,
    inbox: Arc<Inbox>,
    poll: mio::Poll,
    link: Rc<Link>,
    /// `None` while it runs.
    session: Option<Box<Session>>,
}

impl SessionThread {
    /// Opens the session.
    pub fn open(server: &Arc<ServerState>) -> Result<SessionThread, SqlError> {
        let cannot = |e: std::io::Error| {
            let text = format!("cannot open a session for the replica: {e}");
            SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, text)
        };
        let poll = mio::Poll::new().map_err(cannot)?;
        let eventfd = mio::Waker::new(poll.registry(), Token::INBOX).map_err(cannot)?;
        let inbox = Arc::new(Inbox::new(eventfd));
        let local = Local::new(
            0,
            server.registry.clone(),
            poll.registry().try_clone().map_err(cannot)?,
            Arc::new(NoClients),
            Arc::new(CounterCells::default()),
        );
        let slot = Arc::new(ConnSlot::new(
            server.registry.new_id(),
            Token::new(0, 0),
            inbox.clone(),
            Peer::Local.process_host(),
        ));
        slot.set_identity(USER, None);
        server.registry.add(&slot);
        let login = LoginInfo {
            connection_id: slot.id,
            user: USER.into(),
            client_host: String::new(),
            account_user: USER.into(),
            account_host: String::new(),
            database: None,
            collation: 255,
            capabilities: 0,
            attributes: Vec::new(),
            tls: false,
            local: true,
            zstd_level: 0,
        };
        let session = Session::for_replica(server.clone(), login);
        if session.is_err() {
            server.registry.remove(slot.id);
        }
        Ok(SessionThread {
            server: server.clone(),
            local: Rc::new(local),
            inbox,
            poll,
            link: Rc::new(Link {
                waker: Waker::from(slot.clone()),
                slot,
                limits: Cell::new(LIMITS),
            }),
            session: Some(Box::new(session?)),
        })
    }

    /// The id of the session's connection.
    pub fn id(&self) -> u32 {
        self.link.slot.id
    }

    /// Runs `f` in a coroutine, which may wait.
    ///
    /// # Errors
    /// The error of `f`; an error if `f` panicked above the engine.
    pub fn run<T: 'static>(
        &mut self,
        f: impl FnOnce(&FiberCx<'_>, &mut Session) -> Result<T, SqlError> + 'static,
    ) -> Result<T, SqlError> {
        let internal = |text: &str| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, text);
        let mut session = (self.session.take()).ok_or_else(|| internal("no session"))?;
        let stack = self.local.take_stack();
        let stack = stack.map_err(|e| internal(&e.to_string()))?;
        let (link, local) = (self.link.clone(), self.local.clone());
        let mut fiber = Coroutine::with_stack(stack, move |yielder, ()| {
            let now = Instant::now();
            let cx = FiberCx {
                yielder,
                link: &link,
                local: &local,
                slice_end: Cell::new(now + local.slice),
                now: Cell::new(now),
                statement_start: Cell::new(now),
                statement_end: Cell::new(None),
                memory: StatementMemory::default(),
                masked: Cell::new(false),
                at_first_tick: Cell::new(false),
            };
            cx.begin_statement(session.env.vars.settings().statement_memory, 0);
            let work = std::panic::AssertUnwindSafe(|| f(&cx, &mut session));
            let done = std::panic::catch_unwind(work);
            cx.lift_limits();
            (session, done)
        });
        loop {
            match fiber.resume(()) {
                CoroutineResult::Yield(Suspend::Yield) => {}
                CoroutineResult::Yield(Suspend::Wait(until)) => self.wait(until),
                CoroutineResult::Yield(_) => self.wait(None),
                CoroutineResult::Return((session, done)) => {
                    self.local.give_stack(fiber.into_stack());
                    self.session = Some(session);
                    return done.unwrap_or_else(|_| {
                        if !self.local.sessions.survives_panic() {
                            tracing::error!(
                                "applying an event panicked while the thread held a latch or a \
                                 mini-transaction; the server ends"
                            );
                            std::process::abort();
                        }
                        Err(internal("Internal error: the event failed unexpectedly"))
                    });
                }
            }
        }
    }

    /// Sleeps until the coroutine is woken, or `until`.
    fn wait(&mut self, until: Option<Instant>) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if self.inbox.may_sleep() {
            let mut events = mio::Events::with_capacity(1);
            let _ = self
                .poll
                .poll(&mut events, Some(left.unwrap_or(PAUSE).min(PAUSE)));
        }
        self.inbox.awake();
        let mut messages = Vec::new();
        self.inbox.take(&mut messages);
    }
}

impl Drop for SessionThread {
    fn drop(&mut self) {
        if self.session.is_some() {
            let _ = self.run(|cx, session| {
                cx.masked.set(true);
                session.disconnected(cx);
                Ok(())
            });
        }
        self.server.registry.remove(self.link.slot.id);
    }
}
