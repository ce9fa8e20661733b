//! The session factory of the workers.

use std::sync::Arc;

use crate::config::ServerOptions;
use crate::database::OpenDatabase;
use crate::introspection::system::Tables;
use crate::net::fiber::handler::{ClientError, LoginInfo, SessionFactory, SessionHandler};
use crate::net::worker::{FiberCx, Registry};
use crate::session::{ServerState, Session};

/// Creates the state that all sessions over an open engine share.
pub fn server_state(
    options: &ServerOptions,
    database: OpenDatabase,
    registry: Arc<Registry>,
) -> Arc<ServerState> {
    let state = ServerState::new(options, database, registry, &Tables);
    // It is empty.
    let _ = state.replication.launcher.set(crate::replication::launch);
    state
}

/// Creates sessions over a shared state.
pub struct Sessions(pub Arc<ServerState>);

impl SessionFactory for Sessions {
    fn connect(
        &self,
        cx: &FiberCx<'_>,
        login: LoginInfo,
    ) -> Result<Box<dyn SessionHandler>, ClientError> {
        let session = Session::open(self.0.clone(), login).map_err(|e| ClientError::from(&e))?;
        session.publish(cx);
        session.log_login("Connect");
        Ok(Box::new(session))
    }

    /// A panic above the engine affects its own session only; inside the engine it ends the
    /// process.
    fn survives_panic(&self) -> bool {
        crate::net::worker::last_was_contained()
    }

    /// The commits of one turn of a worker share a sync, and wake the log thread once.
    fn worker_begins(&self) {
        nfold_engine::gather_syncs();
    }

    fn has_deferred(&self) -> bool {
        nfold_engine::holds_syncs()
    }

    fn catch_up(&self, may_block: bool) {
        self.0.engine.finish_syncs(may_block);
    }
}
