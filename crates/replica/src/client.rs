//! A connection that runs statements: for the queries of a channel at its source, and for the
//! commands that copy and compare servers.
//!
//! # Cost
//! [`Client::each_row`] keeps one row in memory; the other rows stay with the server until they are
//! read.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

use nfold_protocol::Reader;

use crate::ChannelConfig;
use crate::login::log_in;
use crate::source::SourceError;
use crate::stream::Wire;

const COM_QUERY: u8 = 3;
/// The longest time without an answer to the login.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);

/// The rows of a text result; `None` is NULL.
pub type TextRows = Vec<Vec<Option<String>>>;

/// The values of a row in the text protocol; `None` is NULL.
pub type RowValues<'a> = [Option<&'a [u8]>];

/// What a statement without rows answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    pub affected_rows: u64,
    pub warnings: u16,
}

/// See the module's header.
pub struct Client {
    pub(crate) wire: Wire,
    packet: Vec<u8>,
    version: String,
    /// The names of the columns of the last result.
    names: Vec<String>,
}

impl Client {
    /// Connects and logs in. Only the address, the account and the TLS settings of `config` count.
    /// A host that begins with `/` is the path of a Unix socket.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn connect(config: &ChannelConfig) -> Result<Client, SourceError> {
        let wire = Wire::connect(&config.host, config.port)?;
        wire.set_timeout(Some(LOGIN_TIMEOUT))?;
        let (wire, version) = log_in(wire, config)?;
        wire.set_timeout(None)?;
        Ok(Client {
            wire,
            packet: Vec::new(),
            version,
            names: Vec::new(),
        })
    }

    /// The server's version, from its greeting.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A second handle of a TCP socket, which ends a wait of this connection by shutting it down.
    ///
    /// # Errors
    /// The system has no descriptor left, or the socket is a Unix socket.
    pub fn handle(&self) -> io::Result<TcpStream> {
        self.wire.handle()
    }

    /// Sends a command with arguments, and receives the first packet of its answer.
    pub(crate) fn command(&mut self, payload: &[u8]) -> Result<&[u8], SourceError> {
        self.wire.command(payload)?;
        self.receive()?;
        Ok(&self.packet)
    }

    /// Runs a statement and reads its rows one after the other. A statement without rows answers
    /// its counts.
    ///
    /// # Errors
    /// The server's error, a broken connection, or the error of `row`. After an error of `row` the
    /// connection cannot be used any more.
    pub fn each_row<E: From<SourceError>>(
        &mut self,
        sql: &[u8],
        mut row: impl FnMut(&RowValues<'_>) -> Result<(), E>,
    ) -> Result<Done, E> {
        let mut command = Vec::with_capacity(sql.len() + 1);
        command.push(COM_QUERY);
        command.extend_from_slice(sql);
        let first = self.command(&command)?;
        if first[0] == 0 {
            return Ok(done(first)?);
        }
        let columns = Reader::new(first).lenenc_int("number of columns");
        let columns = columns.map_err(SourceError::from)?;
        self.names.clear();
        for _ in 0..columns {
            self.receive()?;
            self.names.push(column_name(&self.packet)?);
        }
        self.end_of_rows()?;
        while !self.end_of_rows()? {
            let mut values: Vec<Option<&[u8]>> = Vec::with_capacity(columns as usize);
            let mut r = Reader::new(&self.packet);
            for _ in 0..columns {
                values.push(value(&mut r)?);
            }
            row(&values)?;
        }
        Ok(Done::default())
    }

    /// Runs a statement that has no rows, or whose rows do not matter.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn run(&mut self, sql: &[u8]) -> Result<Done, SourceError> {
        self.each_row(sql, |_| Ok(()))
    }

    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn query(&mut self, sql: &str) -> Result<TextRows, SourceError> {
        let mut rows = Vec::new();
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        self.each_row::<SourceError>(sql.as_bytes(), |row| {
            rows.push(row.iter().map(|value| value.map(text)).collect());
            Ok(())
        })?;
        Ok(rows)
    }

    /// The first value of the first row; `None` if there is none, or if it is NULL.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, SourceError> {
        Ok(self.query(sql)?.into_iter().flatten().next().flatten())
    }

    /// The first row by the names of its columns, with NULL as an empty text; `None` if there is
    /// none.
    ///
    /// # Errors
    /// The server's error, or a broken connection.
    pub fn named_row(
        &mut self,
        sql: &str,
    ) -> Result<Option<BTreeMap<String, String>>, SourceError> {
        let row = self.query(sql)?.into_iter().next();
        let values = row.map(|row| row.into_iter().map(Option::unwrap_or_default));
        Ok(values.map(|values| self.names.iter().cloned().zip(values).collect()))
    }

    /// Receives a packet; whether it is an EOF packet.
    fn end_of_rows(&mut self) -> Result<bool, SourceError> {
        self.receive()?;
        Ok(self.packet.first() == Some(&0xfe) && self.packet.len() < 9)
    }

    /// Receives the next packet, which is not an error and not empty.
    pub(crate) fn receive(&mut self) -> Result<(), SourceError> {
        self.wire.receive(&mut self.packet)?;
        match self.packet.first() {
            Some(0xff) => Err(SourceError::refused(&self.packet)),
            Some(_) => Ok(()),
            None => Err(SourceError::Protocol("empty packet".into())),
        }
    }

    /// The packet received last.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.packet
    }
}

/// The name in the definition of a column.
fn column_name(definition: &[u8]) -> Result<String, SourceError> {
    let mut r = Reader::new(definition);
    for what in ["catalog", "schema", "table", "original table"] {
        r.lenenc_bytes(what)?;
    }
    Ok(String::from_utf8_lossy(r.lenenc_bytes("name")?).into_owned())
}

fn value<'a>(r: &mut Reader<'a>) -> Result<Option<&'a [u8]>, SourceError> {
    if r.rest().first() == Some(&0xfb) {
        r.u8("NULL")?;
        return Ok(None);
    }
    Ok(Some(r.lenenc_bytes("value")?))
}

/// Reads an OK packet.
fn done(packet: &[u8]) -> Result<Done, SourceError> {
    let mut r = Reader::new(packet);
    r.u8("header")?;
    let affected_rows = r.lenenc_int("affected rows")?;
    r.lenenc_int("last insert id")?;
    r.u16("status")?;
    Ok(Done {
        affected_rows,
        warnings: r.u16("warnings")?,
    })
}
