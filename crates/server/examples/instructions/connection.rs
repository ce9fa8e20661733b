//! A client of the embedded server that runs the kinds of statements.

use nfold_protocol::consts::{column_type, com};
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_protocol::response::parse_err;
use nfold_server::embedded::Client;

use super::kinds::{Random, StatementKind};

pub type Failure = Box<dyn std::error::Error>;

/// A client with its buffers.
pub struct Connection<'a> {
    client: Client<'a>,
    packet: Vec<u8>,
    answer: Vec<u8>,
    values: Vec<u64>,
}

impl<'a> Connection<'a> {
    pub fn new(client: Client<'a>) -> Self {
        Connection {
            client,
            packet: Vec::new(),
            answer: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Sends one command and reads its answer. An error packet is a failure.
    fn command(&mut self, code: u8, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        self.packet.clear();
        let (mut sequence, at) = (0, begin_packet(&mut self.packet));
        self.packet.push(code);
        fill(&mut self.packet);
        end_packet(&mut self.packet, at, &mut sequence);
        self.answer.clear();
        self.client.command(&self.packet, &mut self.answer)?;
        match self.answer.get(4) {
            Some(0xff) => {
                let (code, _, message) = parse_err(&self.answer[4..]).map_err(|e| e.0)?;
                Err(format!("error {code}: {}", String::from_utf8_lossy(message)).into())
            }
            Some(_) => Ok(()),
            None => Err("no answer".into()),
        }
    }

    pub fn query(&mut self, sql: &str) -> Result<(), Failure> {
        self.command(com::QUERY, |out| out.extend_from_slice(sql.as_bytes()))
    }

    /// Prepares the statements of a kind, and returns their ids; none for a kind that is sent as
    /// text.
    pub fn prepare(&mut self, kind: &StatementKind) -> Result<Vec<u32>, Failure> {
        let mut ids = Vec::new();
        for sql in kind.statements.iter().filter(|_| kind.prepared) {
            self.command(com::STMT_PREPARE, |out| {
                out.extend_from_slice(sql.as_bytes())
            })?;
            ids.push(u32::from_le_bytes(self.answer[5..9].try_into()?));
        }
        Ok(ids)
    }

    /// Runs a kind `count` times, and returns the size of all answers in bytes. `first`: the kind
    /// has not run yet.
    pub fn runs(
        &mut self,
        kind: &StatementKind,
        prepared: &[u32],
        random: &mut Random,
        first: &mut bool,
        runs: u32,
    ) -> Result<usize, Failure> {
        let mut values = std::mem::take(&mut self.values);
        let mut bytes = 0;
        for _ in 0..runs {
            values.clear();
            (kind.values)(random, &mut values);
            let mut left = values.as_slice();
            for (i, sql) in kind.statements.iter().enumerate() {
                let (own, rest) = left.split_at(sql.matches('?').count());
                left = rest;
                match prepared.get(i) {
                    Some(&id) => self.execute(id, own, *first)?,
                    None => self.command(com::QUERY, |out| write_text(out, sql, own))?,
                }
                bytes += self.answer.len();
            }
            *first = false;
        }
        self.values = values;
        Ok(bytes)
    }

    /// Sends the parameter types with the first execution only, as most clients do.
    fn execute(&mut self, id: u32, values: &[u64], first: bool) -> Result<(), Failure> {
        self.command(com::STMT_EXECUTE, |out| {
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&[0, 1, 0, 0, 0]);
            if values.is_empty() {
                return;
            }
            out.resize(out.len() + values.len().div_ceil(8), 0);
            out.push(u8::from(first));
            if first {
                out.extend(values.iter().flat_map(|_| [column_type::LONGLONG, 0]));
            }
            out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        })
    }
}

/// Writes `sql` with values in place of its `?`.
fn write_text(out: &mut Vec<u8>, sql: &str, values: &[u64]) {
    use std::io::Write;
    let mut parts = sql.split('?');
    out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for (part, value) in parts.zip(values) {
        // Writing to a vector does not fail.
        let _ = write!(out, "{value}");
        out.extend_from_slice(part.as_bytes());
    }
}
