//! The server in the test's own thread, asked by packets.

use nfold_protocol::consts::com;
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_protocol::response::parse_err;
use nfold_server::embedded::Client;

/// A client of the embedded server.
pub struct Session<'a>(pub Client<'a>);

impl Session<'_> {
    /// Answer packets without headers.
    pub fn command(&mut self, code: u8, body: &[u8]) -> Vec<Vec<u8>> {
        let (mut packet, mut answer, mut sequence) = (Vec::new(), Vec::new(), 0);
        let at = begin_packet(&mut packet);
        packet.push(code);
        packet.extend_from_slice(body);
        end_packet(&mut packet, at, &mut sequence);
        self.0.command(&packet, &mut answer).unwrap();
        let (mut rest, mut packets) = (&answer[..], Vec::new());
        while let [a, b, c, _, tail @ ..] = rest {
            let n = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            packets.push(tail[..n].to_vec());
            rest = &tail[n..];
        }
        packets
    }

    /// All values of all rows; `Err` has MySQL's number.
    pub fn query(&mut self, sql: &str) -> Result<Vec<String>, u16> {
        let packets = self.command(com::QUERY, sql.as_bytes());
        rows(&packets)
    }

    /// Fails the test on an error.
    pub fn ok(&mut self, sql: &str) -> Vec<String> {
        self.query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
    }
}

/// All values of a text result; `Err` has MySQL's number.
pub fn rows(packets: &[Vec<u8>]) -> Result<Vec<String>, u16> {
    let last = packets.last().unwrap();
    if last[0] == 0xff {
        return Err(parse_err(last).unwrap().0);
    }
    let mut values = Vec::new();
    if packets[0][0] == 0 {
        return Ok(values);
    }
    // Count, definitions, EOF, rows, EOF.
    let columns = usize::from(packets[0][0]);
    for row in &packets[columns + 2..packets.len() - 1] {
        let mut r = nfold_protocol::Reader::new(row);
        for _ in 0..columns {
            let value = match r.rest().first() {
                Some(0xfb) => {
                    r.u8("NULL").unwrap();
                    "NULL".into()
                }
                _ => String::from_utf8_lossy(r.lenenc_bytes("value").unwrap()).into_owned(),
            };
            values.push(value);
        }
    }
    Ok(values)
}
