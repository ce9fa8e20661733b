//! Sends many commands ahead on one blocking connection. The next commands arrive before the server
//! has answered the last, so the server need not wait for them.

use nfold_protocol::consts::com;

use super::command::{Command, packet};
use super::connection::Connection;
use super::response::{NoRows, Response};
use crate::LabError;

/// A connection whose commands are sent ahead. Rows are skipped.
#[derive(Debug)]
pub struct Pipeline {
    connection: Connection,
    response: Response,
    buffer: Vec<u8>,
    /// The start of the received bytes that are not processed yet.
    from: usize,
    to: usize,
}

/// The most bytes that one `recv` takes.
const BUFFER: usize = 256 << 10;

impl Pipeline {
    pub fn new(connection: Connection) -> Pipeline {
        Pipeline {
            response: Response::new(connection.capabilities(), false),
            connection,
            buffer: vec![0; BUFFER],
            from: 0,
            to: 0,
        }
    }

    /// The connection. Only to be used while no command is in progress.
    pub fn idle(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Ends pipelining. No command may be in progress.
    pub fn into_connection(self) -> Connection {
        self.connection
    }

    /// Sends packets of commands.
    pub fn send(&mut self, packets: &[u8]) -> Result<(), LabError> {
        self.connection.send(packets)
    }

    /// Waits for `answers` answers. Stops at the first one that is an error.
    pub fn take(&mut self, answers: usize) -> Result<(), LabError> {
        for _ in 0..answers {
            self.response.begin(false);
            loop {
                if self.from == self.to {
                    (self.from, self.to) = (0, self.connection.receive(&mut self.buffer)?);
                }
                let got = &self.buffer[self.from..self.to];
                let (taken, whole) = self
                    .response
                    .take(got, &mut NoRows)
                    .map_err(|e| LabError::malformed(format!("{}: {e}", self.connection.name())))?;
                self.from += taken;
                if whole {
                    break;
                }
            }
            if let Some(error) = &self.response.answer().error {
                return Err(LabError::Server {
                    code: error.code,
                    message: error.message.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Appends the packet that executes statement `id` with the command's values.
pub fn execution(out: &mut Vec<u8>, id: u32, command: &Command) {
    command.encode_execute(id, out);
}

/// Appends the packet of a text command.
pub fn text(out: &mut Vec<u8>, sql: &[u8]) {
    packet(out, com::QUERY, |out| out.extend_from_slice(sql));
}
