//! Listening sockets, and the thread that accepts connections and distributes them over the
//! workers.
//!
//! # Failure
//! A port or path that is in use is reported in one line. A socket file that no process listens on
//! is replaced. Without free file descriptors, accepting pauses until some are free.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream, UnixListener};
use mio::{Events, Interest, Poll, Token};
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_protocol::response::encode_err;

use super::conn::{Peer, Socket, too_many_connections};
use super::fiber::inbox::Accepted;
use super::worker::{EndProcessOnPanic, Inbox, Message, Registry};
use crate::config::ServerOptions;

mod pacing;

use pacing::Elsewhere;

const STOP: Token = Token(usize::MAX);

enum Listener {
    Tcp(TcpListener, Option<Elsewhere>),
    Unix(UnixListener),
}

/// The bound sockets, before any connection is accepted.
pub(crate) struct Listeners {
    all: Vec<Listener>,
    /// The first TCP address, with the actual port.
    pub address: Option<SocketAddr>,
    socket_file: Option<PathBuf>,
}

impl Listeners {
    pub fn bind(options: &ServerOptions) -> Result<Self, String> {
        let mut listeners = Listeners {
            all: vec![],
            address: None,
            socket_file: None,
        };
        for name in &options.bind_addresses {
            for address in resolve(name, options.port)? {
                let (l, elsewhere) = bind_tcp(address, options.backlog)
                    .map_err(|e| format!("cannot listen on {address}: {}", plain(&e)))?;
                if listeners.address.is_none() {
                    listeners.address = l.local_addr().ok();
                }
                listeners.all.push(Listener::Tcp(l, elsewhere));
            }
        }
        if let Some(path) = &options.socket {
            let l = bind_unix(path).map_err(|e| {
                format!(
                    "cannot listen on the socket {}: {}",
                    path.display(),
                    plain(&e)
                )
            })?;
            listeners.all.push(Listener::Unix(l));
            listeners.socket_file = Some(path.clone());
        }
        Ok(listeners)
    }
}

fn plain(e: &io::Error) -> String {
    match e.kind() {
        ErrorKind::AddrInUse => "it is in use by another server".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        _ => e.to_string(),
    }
}

fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let name = if name == "*" { "::" } else { name };
    (name, port)
        .to_socket_addrs()
        .map(Iterator::collect)
        .map_err(|e| format!("bind_address '{name}' is no address of this machine: {e}"))
}

fn bind_tcp(address: SocketAddr, backlog: u32) -> io::Result<(TcpListener, Option<Elsewhere>)> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM,
        None,
    )?;
    socket.set_reuse_address(true)?;
    if address.ip().is_unspecified() && address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    let elsewhere = Elsewhere::of(&socket, pacing::paces).unwrap_or_else(|e| {
        tracing::debug!("TCP_CONGESTION: {e}");
        None
    });
    socket.listen(backlog.min(i32::MAX as u32) as i32)?;
    Ok((TcpListener::from_std(socket.into()), elsewhere))
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt;
    match UnixListener::bind(path) {
        Err(e) if e.kind() == ErrorKind::AddrInUse => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(e);
            }
            // A leftover of a server that was killed.
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        other => other,
    }
    .inspect(|_| {
        // Anyone may connect; accounts decide who may log in, as in MySQL.
        if let Err(e) = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)) {
            tracing::warn!("cannot open {} to other users: {e}", path.display());
        }
    })
}

/// The accepting thread.
pub(crate) struct Acceptor {
    thread: JoinHandle<()>,
    stop: mio::Waker,
    socket_file: Option<PathBuf>,
}

impl Acceptor {
    pub fn start(
        listeners: Listeners,
        workers: Vec<Arc<Inbox>>,
        registry: Arc<Registry>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let stop = mio::Waker::new(poll.registry(), STOP)?;
        let socket_file = listeners.socket_file.clone();
        let mut all = listeners.all;
        for (i, l) in all.iter_mut().enumerate() {
            match l {
                Listener::Tcp(l, _) => poll.registry().register(l, Token(i), Interest::READABLE)?,
                Listener::Unix(l) => poll.registry().register(l, Token(i), Interest::READABLE)?,
            }
        }
        let thread = std::thread::Builder::new()
            .name("acceptor".into())
            .spawn(move || {
                let _guard = EndProcessOnPanic;
                let mut accepting = Accepting {
                    poll,
                    listeners: all,
                    workers,
                    next: 0,
                    registry,
                    complained: None,
                };
                accepting.run();
            })?;
        Ok(Acceptor {
            thread,
            stop,
            socket_file,
        })
    }

    /// Stops accepting connections.
    pub fn stop(self) {
        if let Err(e) = self.stop.wake() {
            tracing::error!("cannot stop accepting: {e}");
            return;
        }
        if self.thread.join().is_err() {
            tracing::error!("the accepting thread panicked");
        }
        if let Some(path) = self.socket_file {
            let _ = std::fs::remove_file(path);
        }
    }
}

struct Accepting {
    poll: Poll,
    listeners: Vec<Listener>,
    workers: Vec<Arc<Inbox>>,
    next: usize,
    registry: Arc<Registry>,
    /// When the last failure to accept was logged.
    complained: Option<Instant>,
}

/// The time between two log lines about failures to accept.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

impl Accepting {
    fn run(&mut self) {
        let mut events = Events::with_capacity(64);
        let mut paused = false;
        loop {
            let timeout = paused.then_some(Duration::from_millis(100));
            if let Err(e) = self.poll.poll(&mut events, timeout) {
                if e.kind() == ErrorKind::Interrupted {
                    continue;
                }
                tracing::error!("cannot accept connections any more: {e}");
                return;
            }
            if events.iter().any(|e| e.token() == STOP) {
                return;
            }
            let was_paused = std::mem::take(&mut paused);
            for i in 0..self.listeners.len() {
                if was_paused || events.iter().any(|e| e.token() == Token(i)) {
                    paused |= self.accept_all(i);
                }
            }
        }
    }

    /// Accepts all waiting connections. True: stopped for lack of resources.
    fn accept_all(&mut self, i: usize) -> bool {
        loop {
            let accepted = match &self.listeners[i] {
                Listener::Tcp(l, elsewhere) => {
                    l.accept().map(|(s, a)| tcp(s, a, elsewhere.as_ref()))
                }
                Listener::Unix(l) => l.accept().map(|(s, _)| (Socket::Unix(s), Peer::Local)),
            };
            match accepted {
                Ok((socket, peer)) => self.hand_over(socket, peer),
                Err(e) => match e.kind() {
                    ErrorKind::WouldBlock => return false,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.complain(&e);
                        return true;
                    }
                },
            }
        }
    }

    /// Logs a failure to accept. No connection is lost: clients wait in the system's queue.
    fn complain(&mut self, error: &std::io::Error) {
        if self
            .complained
            .is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY)
        {
            tracing::warn!("cannot accept connections for now: {error}");
            self.complained = Some(Instant::now());
        }
    }

    fn hand_over(&mut self, socket: Socket, peer: Peer) {
        let count = self.registry.count_in();
        let max = self.registry.tunables().max_connections();
        if count > max + 1 {
            self.registry.count_out();
            refuse(socket);
            return;
        }
        let in_reserve = count > max;
        let worker = &self.workers[self.next % self.workers.len()];
        self.next = self.next.wrapping_add(1);
        worker.push(Message::Accept(Accepted {
            socket,
            peer,
            in_reserve,
        }));
    }
}

fn tcp(socket: TcpStream, address: SocketAddr, elsewhere: Option<&Elsewhere>) -> (Socket, Peer) {
    if let Some(elsewhere) = elsewhere {
        elsewhere.welcome(&socket, address);
    }
    // Each answer is written as a whole, so small packets need not be merged.
    if let Err(e) = socket.set_nodelay(true) {
        tracing::debug!("TCP_NODELAY: {e}");
    }
    let keep = socket2::SockRef::from(&socket).set_keepalive(true);
    if let Err(e) = keep {
        tracing::debug!("SO_KEEPALIVE: {e}");
    }
    (Socket::Tcp(socket), Peer::Tcp(address))
}

/// Sends error 1040 in place of a greeting. It fits into the buffer of a new socket.
fn refuse(mut socket: Socket) {
    let e = too_many_connections();
    let mut out = vec![];
    let at = begin_packet(&mut out);
    encode_err(&mut out, e.code, &e.sqlstate, e.message.as_bytes());
    end_packet(&mut out, at, &mut 0);
    let _ = socket.write(&out);
}
