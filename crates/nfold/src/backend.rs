//! Opens the database under the server: accounts, sessions, and how it is closed.

use std::sync::Arc;

use nfold_server::auth::AccountSource;
use nfold_server::config::{DataDir, ServerOptions};
use nfold_server::handler::SessionFactory;
use nfold_server::server::StartError;
use nfold_server::worker::Registry;

/// An open database.
pub struct Backend {
    pub accounts: Arc<dyn AccountSource>,
    pub sessions: Arc<dyn SessionFactory>,
}

impl Backend {
    /// Writes what is in memory only, and closes the files.
    pub fn close(self) -> Result<(), StartError> {
        Ok(())
    }
}

/// Opens the data directory, recovering it if need be. A first start makes the account of root.
pub fn open(
    _options: &Arc<ServerOptions>,
    _datadir: &DataDir,
    _registry: &Arc<Registry>,
) -> Result<Backend, StartError> {
    Err(StartError("this build has no storage engine yet".into()))
}
