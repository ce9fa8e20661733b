//! Starts and stops the network side of the server: listeners, workers, authentication.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::config::ServerOptions;
use crate::net::auth::{AccountSource, Authenticator, RsaKeys};
use crate::net::fiber::handler::SessionFactory;
use crate::net::listen::{Acceptor, Listeners};
use crate::net::tls;
use crate::net::worker::{Loads, Registry, Shared, WorkerCounters, Workers};

/// Why the server did not start, as one line for the user.
#[derive(Debug)]
pub struct StartError(pub String);

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// Sockets that are bound but not served yet. They are bound first, so that a start fails for a
/// port in use before recovery begins.
pub struct Bound(Listeners);

impl Bound {
    /// Binds the addresses, the port and the socket of the options.
    pub fn new(options: &ServerOptions) -> Result<Self, StartError> {
        Listeners::bind(options).map(Bound).map_err(StartError)
    }

    /// The first TCP address, with the actual port if 0 was requested.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.address
    }
}

/// A running server. [`Server::stop`] shuts it down in order.
pub struct Server {
    acceptor: Acceptor,
    workers: Workers,
    registry: Arc<Registry>,
    address: Option<SocketAddr>,
}

impl Server {
    /// Starts serving. The caller creates `registry`, because sessions need it first.
    pub fn start(
        bound: Bound,
        options: Arc<ServerOptions>,
        accounts: Arc<dyn AccountSource>,
        sessions: Arc<dyn SessionFactory>,
        registry: Arc<Registry>,
    ) -> Result<Self, StartError> {
        let line = |e: &dyn std::fmt::Display| StartError(e.to_string());
        let tls = if options.ssl {
            Some(tls::server_config(&options).map_err(|e| line(&e))?)
        } else {
            None
        };
        let keys = RsaKeys::load_or_generate(&options.datadir).map_err(|e| line(&e))?;
        let mut auth =
            Authenticator::new(options.server_version.clone(), accounts, tls, Some(keys));
        auth.registry = registry.clone();
        auth.log_denied = options.log_error_verbosity >= 3;
        let address = bound.address();
        let tunables = registry.tunables();
        tunables.set_max_connections(options.max_connections);
        tunables.set_connect_timeout(options.connect_timeout);
        tunables.set_require_secure_transport(options.require_secure_transport);
        let loads = Loads::new(options.workers);
        let shared = Arc::new(Shared {
            options,
            auth,
            sessions,
            registry: registry.clone(),
            loads,
        });
        let workers = Workers::start(&shared)
            .map_err(|e| StartError(format!("cannot start the workers: {e}")))?;
        let acceptor = Acceptor::start(bound.0, workers.inboxes(), registry.clone())
            .map_err(|e| StartError(format!("cannot start accepting: {e}")))?;
        Ok(Server {
            acceptor,
            workers,
            registry,
            address,
        })
    }

    /// The first TCP address.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The registry of all connections.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The counters for `SHOW GLOBAL STATUS`.
    pub fn counters(&self) -> WorkerCounters {
        self.workers.counters.clone()
    }

    /// Moves up to `most` idle connections from worker `from` to worker `to`, regardless of their
    /// loads.
    #[doc(hidden)]
    pub fn give(&self, from: usize, to: usize, most: usize) {
        self.workers.give(from, to, most);
    }

    /// Stops accepting, interrupts running statements, and ends all sessions.
    pub fn stop(self) {
        self.acceptor.stop();
        self.workers.stop();
    }
}
