//! The shared state of all workers.

use std::sync::Arc;

use super::balance::Loads;
use crate::config::ServerOptions;
use crate::net::auth::Authenticator;
use crate::net::fiber::handler::SessionFactory;
use crate::net::fiber::slot::Registry;

/// See the module's header.
pub(crate) struct Shared {
    pub options: Arc<ServerOptions>,
    pub auth: Authenticator,
    pub sessions: Arc<dyn SessionFactory>,
    pub registry: Arc<Registry>,
    /// The load of each worker.
    pub loads: Loads,
}
