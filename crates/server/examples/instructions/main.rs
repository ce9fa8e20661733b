//! Runs each kind of statement over and over, in one thread and without sockets, for callgrind to count instructions (`bench/instructions`).
//! Without valgrind it prints nanoseconds.
//!
//! Between the counted runs nothing is left to chance: numbers come from fixed seeds, the engine has no threads, no statement gives way.

mod kinds;
mod valgrind;

use std::ffi::CString;
use std::time::Instant;

use kinds::{Kind, Random, kinds, load};
use nfold_protocol::consts::{column_type, com};
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_protocol::response::parse_err;
use nfold_server::embedded::{Client, Embedded};

type Failure = Box<dyn std::error::Error>;

/// Runs before those that count.
const WARM_UP: u32 = 30;
/// Background steps between two kinds at most.
const STEPS: usize = 1000;

fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let options = [
        ("innodb_buffer_pool_size", "134217728"),
        ("innodb_flush_log_at_trx_commit", "2"),
    ];
    let server = Embedded::open(dir.path(), &options).map_err(|e| e.0)?;
    let mut connection = Connection {
        client: server.connect()?,
        packet: Vec::new(),
        answer: Vec::new(),
    };
    for sql in load() {
        connection.query(&sql)?;
    }
    if valgrind::is_here() {
        valgrind::start();
    }
    for (number, kind) in kinds().iter().enumerate() {
        let mut random = Random(number as u64 * 1000);
        let prepared = connection.prepare(kind)?;
        let mut first = true;
        connection.runs(kind, &prepared, &mut random, &mut first, WARM_UP)?;
        // Settles what the load and the kind before have left: pages to be written, versions to be purged, guesses to be put right.
        for _ in 0..STEPS {
            if !server.engine().step_background()? {
                break;
            }
        }
        connection.runs(kind, &prepared, &mut random, &mut first, WARM_UP)?;
        valgrind::zero();
        let start = Instant::now();
        let bytes = connection.runs(kind, &prepared, &mut random, &mut first, kind.runs)?;
        let time = start.elapsed() / kind.runs;
        valgrind::dump(&CString::new(kind.name.as_str())?);
        let unit = if valgrind::is_here() {
            0
        } else {
            time.as_nanos()
        };
        println!("{}\t{}\t{bytes}\t{unit}", kind.name, kind.runs);
    }
    Ok(())
}

struct Connection<'a> {
    client: Client<'a>,
    packet: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection<'_> {
    /// One command and its answer; an error packet is a failure.
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

    fn query(&mut self, sql: &str) -> Result<(), Failure> {
        self.command(com::QUERY, |out| out.extend_from_slice(sql.as_bytes()))
    }

    /// Ids of the prepared statements; none for a kind that is sent as text.
    fn prepare(&mut self, kind: &Kind) -> Result<Vec<u32>, Failure> {
        let mut ids = Vec::new();
        for sql in kind.statements.iter().filter(|_| kind.prepared) {
            self.command(com::STMT_PREPARE, |out| {
                out.extend_from_slice(sql.as_bytes())
            })?;
            ids.push(u32::from_le_bytes(self.answer[5..9].try_into()?));
        }
        Ok(ids)
    }

    /// So many runs; gives the bytes of all answers. `first`: the kind has not run yet.
    fn runs(
        &mut self,
        kind: &Kind,
        prepared: &[u32],
        random: &mut Random,
        first: &mut bool,
        runs: u32,
    ) -> Result<usize, Failure> {
        let mut values = Vec::new();
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
        Ok(bytes)
    }

    /// The types go with the first execution only, as from most clients.
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

/// `sql` with the values in place of its `?`.
fn write_text(out: &mut Vec<u8>, sql: &str, values: &[u64]) {
    use std::io::Write;
    let mut parts = sql.split('?');
    out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for (part, value) in parts.zip(values) {
        // A vector takes everything.
        let _ = write!(out, "{value}");
        out.extend_from_slice(part.as_bytes());
    }
}
