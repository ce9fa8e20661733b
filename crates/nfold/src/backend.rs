//! The database under the server: accounts, sessions, and how it is closed.

use std::sync::Arc;

use nfold_engine::Engine;
use nfold_server::config::{DataDir, ServerOptions};
use nfold_server::database::{self, CatalogAccounts};
use nfold_server::net::auth::AccountSource;
use nfold_server::net::fiber::handler::SessionFactory;
use nfold_server::net::worker::{Registry, WorkerCounters};
use nfold_server::server::StartError;
use nfold_server::session::ServerState;
use nfold_server::statement::{Sessions, server_state};

/// An open database.
pub struct Backend {
    pub accounts: Arc<dyn AccountSource>,
    pub sessions: Arc<dyn SessionFactory>,
    engine: Arc<Engine>,
    state: Arc<ServerState>,
}

impl Backend {
    /// The workers run: their counters are what SHOW STATUS adds up.
    pub fn serving(&self, counters: WorkerCounters) {
        // A second call would find the same workers.
        let _ = self.state.counters.set(counters);
        self.state.begin();
    }

    /// What all sessions share.
    pub fn state(&self) -> &Arc<ServerState> {
        &self.state
    }

    /// Writes the data that are only in memory, and closes the files. All sessions have ended.
    pub fn close(self) -> Result<(), StartError> {
        self.state.end();
        tracing::info!("writing changed pages and a checkpoint");
        self.engine
            .shutdown()
            .map_err(|e| StartError(format!("the shutdown was not clean: {e}")))
    }
}

/// Opens the data directory, recovering it if need be. A first start makes the account of root.
pub fn open(
    options: &Arc<ServerOptions>,
    datadir: &DataDir,
    registry: &Arc<Registry>,
) -> Result<Backend, StartError> {
    let database = database::open(options, datadir)?;
    let engine = database.engine.clone();
    let state = server_state(options, database, registry.clone());
    Ok(Backend {
        accounts: Arc::new(CatalogAccounts(engine.catalog().clone())),
        sessions: Arc::new(Sessions(state.clone())),
        engine,
        state,
    })
}
