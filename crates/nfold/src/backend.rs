//! The database under the server: accounts, sessions, and how it is closed.

use std::sync::Arc;

use nfold_engine::Engine;
use nfold_server::auth::AccountSource;
use nfold_server::config::{DataDir, ServerOptions};
use nfold_server::database::{self, CatalogAccounts};
use nfold_server::handler::{ClientError, LoginInfo, SessionFactory, SessionHandler};
use nfold_server::server::StartError;
use nfold_server::worker::{FiberCx, Registry};

/// An open database.
pub struct Backend {
    pub accounts: Arc<dyn AccountSource>,
    pub sessions: Arc<dyn SessionFactory>,
    engine: Arc<Engine>,
}

impl Backend {
    /// Writes what is in memory only, and closes the files. All sessions have ended.
    pub fn close(self) -> Result<(), StartError> {
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
    _registry: &Arc<Registry>,
) -> Result<Backend, StartError> {
    let engine = database::open(options, datadir)?;
    Ok(Backend {
        accounts: Arc::new(CatalogAccounts(engine.catalog().clone())),
        sessions: Arc::new(NoSessions),
        engine,
    })
}

/// Until sessions are there: everybody is told so.
struct NoSessions;

impl SessionFactory for NoSessions {
    fn connect(
        &self,
        _: &FiberCx<'_>,
        _: LoginInfo,
    ) -> Result<Box<dyn SessionHandler>, ClientError> {
        Err(ClientError::new(
            1235,
            "42000",
            "This version of Nfold doesn't yet support 'statements'",
        ))
    }

    fn survives_panic(&self) -> bool {
        false
    }
}
