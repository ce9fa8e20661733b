//! Prepared statements of a session: the binary protocol's, by number, and SQL's, by name.

use std::sync::Arc;

use nfold_protocol::stmt::Parameters;
use nfold_sql::digest::Digested;
use nfold_sql::lexer::LexMode;
use nfold_sql::parser::{Parsed, parse_parameterised};
use nfold_types::sql_type::WireType;
use nfold_types::{ErrorCode, SqlError, Value, wire};
use rustc_hash::FxHashMap;

use super::dispatch::is_planned;

/// Parameters of one statement at most, as the protocol counts them.
pub const MAX_PARAMETERS: u32 = u16::MAX as u32;

/// A parsed text with its parameters' places.
pub struct Statement {
    pub text: Vec<u8>,
    pub digested: Digested,
    /// The current database when it was prepared: names without one are of that, whatever is current when it runs.
    pub database: Option<Arc<str>>,
    /// The tree; `None` for what is planned, which is parsed again should its plan be gone.
    pub parsed: Option<Parsed>,
    /// Type codes that the client sent last (`code`, unsigned).
    types: Vec<(u8, bool)>,
    /// Values sent ahead in pieces.
    long_data: FxHashMap<u16, Vec<u8>>,
    /// An error of COM_STMT_SEND_LONG_DATA, for the next execution.
    pub failed: Option<SqlError>,
}

impl Statement {
    /// Reads a text that may hold `?`. One that is planned is not parsed here.
    pub fn parse(
        text: &[u8],
        mode: LexMode,
        database: Option<Arc<str>>,
    ) -> Result<Statement, SqlError> {
        let mut digested = Digested::new();
        digested.read(text, mode);
        if let Some(next) = digested.next() {
            return Err(nfold_sql::parser::syntax_error_at(text, next));
        }
        let parsed = match is_planned(&digested) {
            true => None,
            false => Some(parse_parameterised(text, &digested, true)?),
        };
        if digested.markers() > MAX_PARAMETERS {
            return Err(SqlError::new(ErrorCode::ER_PS_MANY_PARAM, &[]));
        }
        if parsed.as_ref().is_some_and(|p| !preparable(&p.statement)) {
            return Err(SqlError::new(ErrorCode::ER_UNSUPPORTED_PS, &[]));
        }
        Ok(Statement {
            text: text.to_vec(),
            digested,
            database,
            parsed,
            types: Vec::new(),
            long_data: FxHashMap::default(),
            failed: None,
        })
    }

    /// How many `?`.
    pub fn parameters(&self) -> u16 {
        self.digested.markers() as u16
    }

    /// Reads the values of an execution, and takes what was sent ahead.
    pub fn read_values(&mut self, block: &[u8], out: &mut Vec<Value>) -> Result<(), SqlError> {
        let malformed = |_| SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&"mysqld_stmt_execute"]);
        out.clear();
        if let Some(e) = self.failed.take() {
            self.long_data.clear();
            return Err(e);
        }
        let count = self.parameters();
        let p = Parameters::parse(block, count).map_err(|e| malformed(e.to_string()))?;
        if let Some(types) = p.types() {
            self.types.clear();
            self.types.extend(types.map(|t| (t.code, t.unsigned)));
        }
        if self.types.len() != usize::from(count) {
            return Err(malformed(String::new()));
        }
        let values = p.values();
        let mut rest = values.rest();
        for (i, &(code, unsigned)) in self.types.iter().enumerate() {
            if let Some(sent) = self.long_data.remove(&(i as u16)) {
                out.push(Value::Bytes(sent));
            } else if p.is_null(i) || code == WireType::Null as u8 {
                out.push(Value::Null);
            } else {
                out.push(
                    wire::read_param(code, unsigned, &mut rest)
                        .map_err(|e| malformed(e.to_string()))?,
                );
            }
        }
        Ok(())
    }

    /// COM_STMT_SEND_LONG_DATA
    pub fn append(&mut self, parameter: u16, data: &[u8], max: usize) {
        if parameter >= self.parameters() {
            self.failed = Some(SqlError::new(
                ErrorCode::ER_WRONG_ARGUMENTS,
                &[&"mysqld_stmt_send_long_data"],
            ));
            return;
        }
        let value = self.long_data.entry(parameter).or_default();
        if value.len() + data.len() > max {
            self.failed = Some(SqlError::with_message(
                ErrorCode::ER_UNKNOWN_ERROR,
                "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes",
            ));
            value.clear();
            return;
        }
        value.extend_from_slice(data);
    }

    /// COM_STMT_RESET
    pub fn reset(&mut self) {
        self.long_data.clear();
        self.failed = None;
    }
}

/// Can it be prepared? As in MySQL, a client that is told no sends the text instead.
fn preparable(statement: &nfold_sql::ast::Statement) -> bool {
    use nfold_sql::ast::{Show, Statement::*};
    !matches!(
        statement,
        Prepare { .. }
            | Execute { .. }
            | Deallocate(_)
            | Begin(_)
            | RollbackTo(_)
            | Savepoint(_)
            | ReleaseSavepoint(_)
            | LockTables(_)
            | UnlockTables
            | Use(_)
            | AlterDatabase(_)
            | ExplainConnection(_)
            | Empty
            | Show(Show::Warnings(_) | Show::Errors(_) | Show::WarningCount | Show::ErrorCount)
    )
}

/// All of a session.
#[derive(Default)]
pub struct PreparedStatements {
    by_id: FxHashMap<u32, Statement>,
    by_name: FxHashMap<String, u32>,
    last: u32,
}

impl PreparedStatements {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Keeps a statement under a new number.
    pub fn add(&mut self, statement: Statement) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !self.by_id.contains_key(&self.last) {
                break;
            }
        }
        self.by_id.insert(self.last, statement);
        self.last
    }

    /// Takes a statement out for its execution; [`Self::give_back`] puts it in again.
    pub fn take(&mut self, id: u32) -> Option<Statement> {
        self.by_id.remove(&id)
    }

    /// See [`Self::take`].
    pub fn give_back(&mut self, id: u32, statement: Statement) {
        self.by_id.insert(id, statement);
    }

    /// The statement of a number.
    pub fn get(&mut self, id: u32) -> Option<&mut Statement> {
        self.by_id.get_mut(&id)
    }

    /// PREPARE: replaces the one of this name.
    pub fn set_name(&mut self, name: &str, statement: Statement) {
        self.close_name(name);
        let id = self.add(statement);
        self.by_name.insert(name.to_lowercase(), id);
    }

    /// The number of a name.
    pub fn id_of(&self, name: &str) -> Option<u32> {
        self.by_name.get(&name.to_lowercase()).copied()
    }

    /// DEALLOCATE PREPARE; whether it was there.
    pub fn close_name(&mut self, name: &str) -> bool {
        let id = self.by_name.remove(&name.to_lowercase());
        id.is_some_and(|id| self.by_id.remove(&id).is_some())
    }

    /// COM_STMT_CLOSE
    pub fn close(&mut self, id: u32) {
        self.by_id.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfold_protocol::consts::column_type as ty;

    fn statement(sql: &str) -> Statement {
        Statement::parse(sql.as_bytes(), LexMode::default(), None).unwrap()
    }

    #[test]
    fn types_are_remembered_and_long_data_taken_once() {
        let mut s = statement("SELECT ?, ?");
        assert_eq!(s.parameters(), 2);
        let mut out = Vec::new();
        // null map 0, types follow: LONG, VAR_STRING; 7 and 'ab'
        let block = [
            &[0u8, 1, ty::LONG, 0, ty::VAR_STRING, 0][..],
            &7u32.to_le_bytes(),
            &[2, b'a', b'b'],
        ]
        .concat();
        s.read_values(&block, &mut out).unwrap();
        assert_eq!(out, [Value::Int(7), Value::from("ab")]);
        s.append(1, b"long ", 100);
        s.append(1, b"data", 100);
        let block = [&[0u8, 0][..], &9u32.to_le_bytes()].concat();
        s.read_values(&block, &mut out).unwrap();
        assert_eq!(out, [Value::Int(9), Value::from("long data")]);
        let block = [&[0b11u8, 0][..]].concat();
        s.read_values(&block, &mut out).unwrap();
        assert_eq!(out, [Value::Null, Value::Null]);
        s.append(7, b"x", 100);
        assert_eq!(s.read_values(&block, &mut out).unwrap_err().errno(), 1210);
        assert!(
            s.read_values(&block, &mut out).is_ok(),
            "an error is told once"
        );
        assert_eq!(
            s.read_values(&[0, 0], &mut out).unwrap_err().errno(),
            1210,
            "the values are cut off"
        );
        assert_eq!(
            statement("SELECT ?")
                .read_values(&[0, 0, 1], &mut out)
                .unwrap_err()
                .errno(),
            1210,
            "no types yet"
        );
    }

    #[test]
    fn names_and_numbers() {
        let mut all = PreparedStatements::default();
        let a = all.add(statement("SELECT 1"));
        all.set_name("S", statement("SELECT 2"));
        let first = all.id_of("s").unwrap();
        all.set_name("s", statement("SELECT 3"));
        assert_ne!(all.id_of("S"), Some(first));
        assert_eq!(all.len(), 2);
        assert!(all.close_name("S") && !all.close_name("s"));
        all.close(a);
        assert_eq!(all.len(), 0);
        assert_eq!(
            Statement::parse(b"PREPARE a FROM 'b'", LexMode::default(), None)
                .err()
                .map(|e| e.errno()),
            Some(1295)
        );
        assert_eq!(
            Statement::parse(b"SELECT 1; SELECT 2", LexMode::default(), None)
                .err()
                .map(|e| e.errno()),
            Some(1064)
        );
    }
}
