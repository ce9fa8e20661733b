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
