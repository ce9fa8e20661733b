//! The command phase: parses one payload into a [`Command`] that borrows from it.
//!
//! Source: page_protocol_command_phase.

use crate::consts::com;
use crate::lenenc::{Malformed, Reader};

/// A client's command. Text is kept as the bytes sent and is not validated as UTF-8 here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    Quit,
    InitDb(&'a [u8]),
    Query(&'a [u8]),
    /// Lists the columns of a table that match a wildcard (deprecated).
    FieldList {
        table: &'a [u8],
        wildcard: &'a [u8],
    },
    Statistics,
    Debug,
    Ping,
    ProcessKill(u32),
    /// The body, for [`crate::handshake::parse_change_user`].
    ChangeUser(&'a [u8]),
    StmtPrepare(&'a [u8]),
    StmtExecute(ExecuteHeader<'a>),
    StmtSendLongData {
        statement: u32,
        parameter: u16,
        data: &'a [u8],
    },
    StmtClose(u32),
    StmtReset(u32),
    StmtFetch {
        statement: u32,
        rows: u32,
    },
    /// `true` permits several statements in one query.
    SetOption(bool),
    ResetConnection,
    /// A replica introduces itself.
    RegisterReplica(RegisterReplica<'a>),
    /// A replica requests the events of the binary log.
    BinlogDump(BinlogDump<'a>),
    /// Any other command byte. The server answers with error 1047.
    Unknown(u8),
}

/// The fixed part of COM_STMT_EXECUTE. Parsing the rest requires the statement's parameter count,
/// see [`crate::stmt`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecuteHeader<'a> {
    pub statement: u32,
    /// The cursor type (CURSOR_TYPE_*): 0 none, 1 read only.
    pub cursor: u8,
    /// The null bitmap, the types and the values.
    pub parameters: &'a [u8],
}

/// COM_REGISTER_SLAVE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterReplica<'a> {
    pub server_id: u32,
    pub host: &'a [u8],
    pub port: u16,
}

/// COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinlogDump<'a> {
    /// Whether the dump ends at the end of the files instead of waiting for more.
    pub ends: bool,
    pub server_id: u32,
    /// Empty: the first file.
    pub file: &'a [u8],
    pub position: u64,
    /// The transactions that the replica has, if they say where the dump begins.
    pub gtids: Option<&'a [u8]>,
}

impl<'a> BinlogDump<'a> {
    const NON_BLOCK: u16 = 1;

    fn by_position(body: &'a [u8]) -> Result<BinlogDump<'a>, Malformed> {
        let mut r = Reader::new(body);
        let position = r.u32("position")?;
        let flags = r.u16("flags")?;
        Ok(BinlogDump {
            ends: flags & Self::NON_BLOCK != 0,
            server_id: r.u32("server id")?,
            file: r.rest(),
            position: position.into(),
            gtids: None,
        })
    }

    fn by_gtids(body: &'a [u8]) -> Result<BinlogDump<'a>, Malformed> {
        let mut r = Reader::new(body);
        let flags = r.u16("flags")?;
        let server_id = r.u32("server id")?;
        let length = r.u32("length of the file")?;
        let file = r.take(length as usize, "file")?;
        let position = r.u64("position")?;
        let length = r.u32("length of the GTID set")?;
        Ok(BinlogDump {
            ends: flags & Self::NON_BLOCK != 0,
            server_id,
            file,
            position,
            gtids: Some(r.take(length as usize, "GTID set")?),
        })
    }
}

impl<'a> RegisterReplica<'a> {
    fn read(body: &'a [u8]) -> Result<RegisterReplica<'a>, Malformed> {
        let mut r = Reader::new(body);
        let server_id = r.u32("server id")?;
        let length = r.u8("length of the host")?;
        let host = r.take(length.into(), "host")?;
        for what in ["user", "password"] {
            let length = r.u8(what)?;
            r.take(length.into(), what)?;
        }
        let port = r.u16("port")?;
        Ok(RegisterReplica {
            server_id,
            host,
            port,
        })
    }
}

/// Parses one payload. An empty payload is malformed (MySQL answers it with error 1047).
#[inline]
pub fn parse(payload: &[u8]) -> Result<Command<'_>, Malformed> {
    let (&code, body) = payload.split_first().ok_or(Malformed("empty command"))?;
    Ok(match code {
        com::QUERY => Command::Query(body),
        com::STMT_EXECUTE => {
            let mut r = Reader::new(body);
            let statement = r.u32("statement id")?;
            let cursor = r.u8("cursor flags")?;
            r.u32("iteration count")?;
            Command::StmtExecute(ExecuteHeader {
                statement,
                cursor,
                parameters: r.rest(),
            })
        }
        com::QUIT => Command::Quit,
        com::INIT_DB => Command::InitDb(body),
        com::PING => Command::Ping,
        com::STATISTICS => Command::Statistics,
        com::DEBUG => Command::Debug,
        com::RESET_CONNECTION => Command::ResetConnection,
        com::CHANGE_USER => Command::ChangeUser(body),
        com::STMT_PREPARE => Command::StmtPrepare(body),
        com::FIELD_LIST => {
            let mut r = Reader::new(body);
            let table = r.nul_bytes("table name")?;
            Command::FieldList {
                table,
                wildcard: r.rest(),
            }
        }
        com::PROCESS_KILL => Command::ProcessKill(Reader::new(body).u32("connection id")?),
        com::STMT_SEND_LONG_DATA => {
            let mut r = Reader::new(body);
            let statement = r.u32("statement id")?;
            let parameter = r.u16("parameter number")?;
            Command::StmtSendLongData {
                statement,
                parameter,
                data: r.rest(),
            }
        }
        com::STMT_CLOSE => Command::StmtClose(Reader::new(body).u32("statement id")?),
        com::STMT_RESET => Command::StmtReset(Reader::new(body).u32("statement id")?),
        com::STMT_FETCH => {
            let mut r = Reader::new(body);
            Command::StmtFetch {
                statement: r.u32("statement id")?,
                rows: r.u32("row count")?,
            }
        }
        com::SET_OPTION => match Reader::new(body).u16("option")? {
            0 => Command::SetOption(true),
            1 => Command::SetOption(false),
            _ => Command::Unknown(code),
        },
        com::REGISTER_REPLICA => Command::RegisterReplica(RegisterReplica::read(body)?),
        com::BINLOG_DUMP => Command::BinlogDump(BinlogDump::by_position(body)?),
        com::BINLOG_DUMP_GTID => Command::BinlogDump(BinlogDump::by_gtids(body)?),
        other => Command::Unknown(other),
    })
}

/// MySQL's name of a command byte, as shown in PROCESSLIST.
pub fn command_name(code: u8) -> &'static str {
    match code {
        com::SLEEP => "Sleep",
        com::QUIT => "Quit",
        com::INIT_DB => "Init DB",
        com::QUERY => "Query",
        com::FIELD_LIST => "Field List",
        com::STATISTICS => "Statistics",
        com::PROCESS_KILL => "Kill",
        com::DEBUG => "Debug",
        com::PING => "Ping",
        com::CHANGE_USER => "Change user",
        com::STMT_PREPARE => "Prepare",
        com::STMT_EXECUTE => "Execute",
        com::STMT_SEND_LONG_DATA => "Long Data",
        com::STMT_CLOSE => "Close stmt",
        com::STMT_RESET => "Reset stmt",
        com::SET_OPTION => "Set option",
        com::STMT_FETCH => "Fetch",
        com::RESET_CONNECTION => "Reset Connection",
        com::REGISTER_REPLICA => "Register Replica",
        com::BINLOG_DUMP => "Binlog Dump",
        com::BINLOG_DUMP_GTID => "Binlog Dump GTID",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_parse() {
        assert_eq!(parse(b"\x03SELECT 1"), Ok(Command::Query(b"SELECT 1")));
        assert_eq!(
            parse(b"\x04t1\0%x"),
            Ok(Command::FieldList {
                table: b"t1",
                wildcard: b"%x"
            })
        );
        assert_eq!(
            parse(b"\x17\x02\0\0\0\x01\x01\0\0\0rest"),
            Ok(Command::StmtExecute(ExecuteHeader {
                statement: 2,
                cursor: 1,
                parameters: b"rest"
            }))
        );
        assert_eq!(
            parse(b"\x18\x02\0\0\0\x03\0blob"),
            Ok(Command::StmtSendLongData {
                statement: 2,
                parameter: 3,
                data: b"blob"
            })
        );
        assert_eq!(parse(b"\x1b\x01\x00"), Ok(Command::SetOption(false)));
        assert_eq!(parse(b"\x7f"), Ok(Command::Unknown(0x7f)));
        assert!(parse(b"").is_err());
        assert!(parse(b"\x17\x02\0\0").is_err());
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = parse(&bytes);
        }
    }
}
