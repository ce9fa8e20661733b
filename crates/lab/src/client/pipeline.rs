//! Many commands under way on one blocking connection: the next are there before the server has answered the last, so it need not sleep.

use nfold_protocol::consts::com;

use super::command::{Command, packet};
use super::connection::Connection;
use super::response::{NoRows, Response};
use crate::LabError;

/// A connection whose commands are sent ahead. Rows are passed over.
#[derive(Debug)]
pub struct Pipeline {
    connection: Connection,
    response: Response,
    buffer: Vec<u8>,
    /// Bytes received and not looked at.
    from: usize,
    to: usize,
}

/// One `recv` takes at most so much.
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

    /// The connection, while no command is under way.
    pub fn idle(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The connection alone; no command is under way.
    pub fn into_connection(self) -> Connection {
        self.connection
    }

    /// Sends packets of commands.
    pub fn send(&mut self, packets: &[u8]) -> Result<(), LabError> {
        self.connection.send(packets)
    }

    /// Waits for so many answers. The first that is an error ends it.
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

/// Appends the packet of a text.
pub fn text(out: &mut Vec<u8>, sql: &[u8]) {
    packet(out, com::QUERY, |out| out.extend_from_slice(sql));
}
