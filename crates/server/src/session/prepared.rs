//! The prepared statements of a session: those of the binary protocol by number, those of SQL by
//! name.
//!
//! # Picture
//! ```text
//! number = generation of the slot ‖ slot + 1 ─▶ places[slot] ─▶ Statement: types, hint to its plan ─▶ Text, one for all sessions
//! ```

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nfold_protocol::stmt::Parameters;
use nfold_sql::digest::Digested;
use nfold_sql::lexer::LexMode;
use nfold_sql::parser::{Parsed, parse_parameterised_stoppable};
use nfold_sync::words::prefetch_line_outer;
use nfold_types::sql_type::WireType;
use nfold_types::{Checkpoint, ErrorCode, SqlError, Value, copy_in_pieces, wire};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cursor::Cursor;
use super::plans::Hint;

/// The maximum number of parameters of a statement: the protocol counts them in 16 bits.
pub const MAX_PARAMETERS: u32 = u16::MAX as u32;
/// The number of bits for the slot in a statement's number.
const PLACE_BITS: u32 = 22;
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;
/// The maximum number of statements of a session.
pub const MAX_STATEMENTS: usize = PLACE_MASK as usize;

/// Whether a text begins with a word that may, but need not, mean EXPLAIN (`ANALYZE TABLE`, `DESC
/// t`).
fn may_be_no_plan(text: &[u8]) -> bool {
    [&b"EXPLAIN"[..], b"DESC", b"ANALYZE"]
        .iter()
        .any(|w| text.starts_with(w))
}

/// Whether a statement is planned, so that its plan is cached.
pub(crate) fn is_planned(digested: &Digested) -> bool {
    digested.is_parameterisable() && !may_be_no_plan(digested.text())
}

/// The parts of a prepared statement that all sessions share.
pub struct Text {
    pub text: Box<[u8]>,
    pub digested: Digested,
    /// Unique to this text.
    pub number: u64,
}

impl Text {
    fn new(text: Vec<u8>, digested: Digested) -> Text {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Text {
            text: text.into_boxed_slice(),
            digested,
            number: LAST.fetch_add(1, Relaxed) + 1,
        }
    }

    /// Whether two texts are interchangeable.
    pub fn is_like(&self, other: &Text) -> bool {
        self.text == other.text && self.digested.mode() == other.digested.mode()
    }
}

/// The state of a statement between two commands, which few have. The next execution and
/// COM_STMT_RESET drop it.
#[derive(Default)]
struct BetweenCommands {
    /// The values of COM_STMT_SEND_LONG_DATA.
    long_data: FxHashMap<u16, Vec<u8>>,
    /// An error of COM_STMT_SEND_LONG_DATA.
    failed: Option<SqlError>,
    /// The result of the last execution, if the client fetches it in parts.
    cursor: Option<Cursor>,
}

/// A prepared statement.
pub struct Statement {
    pub of: Arc<Text>,
    /// Where its plan was found last.
    pub plan: Cell<Hint>,
    /// The number of its `?`.
    parameters: u16,
    /// The types that the client sent last (`code`, unsigned).
    types: SmallVec<[(u8, bool); 8]>,
    kept: Option<Box<BetweenCommands>>,
    /// The current database at preparation. Names without a database refer to it whenever the
    /// statement runs.
    pub database: Option<Arc<str>>,
    /// The syntax tree; `None` for a planned statement, whose text is parsed again if its plan has
    /// been evicted.
    pub parsed: Option<Box<Parsed>>,
}

impl Statement {
    /// Prepares a text, which may contain `?`. A statement that will be planned is not parsed here.
    pub fn parse(
        text: &[u8],
        mode: LexMode,
        database: Option<Arc<str>>,
        checkpoint: &dyn Checkpoint,
    ) -> Result<Statement, SqlError> {
        let mut digested = Digested::new();
        digested.read_stoppable(text, mode, checkpoint)?;
        if let Some(next) = digested.next() {
            return Err(nfold_sql::parser::syntax_error_at(text, next));
        }
        let parsed = match is_planned(&digested) {
            true => None,
            false => Some(parse_parameterised_stoppable(
                text, &digested, true, checkpoint,
            )?),
        };
        if digested.markers() > MAX_PARAMETERS {
            return Err(SqlError::new(ErrorCode::ER_PS_MANY_PARAM, &[]));
        }
        if parsed.as_ref().is_some_and(|p| !preparable(&p.statement)) {
            return Err(SqlError::new(ErrorCode::ER_UNSUPPORTED_PS, &[]));
        }
        Ok(Statement {
            parameters: digested.markers() as u16,
            of: Arc::new(Text::new(copy_in_pieces(text, checkpoint)?, digested)),
            plan: Cell::default(),
            database,
            parsed: parsed.map(Box::new),
            types: SmallVec::new(),
            kept: None,
        })
    }

    /// The number of its `?`.
    pub fn parameters(&self) -> u16 {
        self.parameters
    }

    /// Reads the values of an execution, including those that were sent ahead.
    pub fn read_values(&mut self, block: &[u8], out: &mut Vec<Value>) -> Result<(), SqlError> {
        let malformed = |_| SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&"mysqld_stmt_execute"]);
        out.clear();
        if let Some(kept) = &mut self.kept
            && let Some(e) = kept.failed.take()
        {
            self.kept = None;
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
            let kept = self.kept.as_mut();
            if let Some(sent) = kept.and_then(|k| k.long_data.remove(&(i as u16))) {
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
        self.kept = None;
        Ok(())
    }

    /// COM_STMT_SEND_LONG_DATA.
    pub fn append(&mut self, parameter: u16, data: &[u8], max: usize) {
        let known = parameter < self.parameters();
        let kept = self.kept.get_or_insert_default();
        if !known {
            kept.failed = Some(SqlError::new(
                ErrorCode::ER_WRONG_ARGUMENTS,
                &[&"mysqld_stmt_send_long_data"],
            ));
            return;
        }
        let value = kept.long_data.entry(parameter).or_default();
        if value.len() + data.len() > max {
            kept.failed = Some(SqlError::with_message(
                ErrorCode::ER_UNKNOWN_ERROR,
                "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes",
            ));
            value.clear();
            return;
        }
        value.extend_from_slice(data);
    }

    /// The open cursor, which is closed if it is not [given back](Self::set_cursor).
    pub fn take_cursor(&mut self) -> Option<Cursor> {
        self.kept.as_mut()?.cursor.take()
    }

    pub fn set_cursor(&mut self, cursor: Cursor) {
        self.kept.get_or_insert_default().cursor = Some(cursor);
    }

    /// COM_STMT_RESET.
    pub fn reset(&mut self) {
        self.kept = None;
    }
}

/// Whether a statement can be prepared. If not, clients send its text instead, as with MySQL.
fn preparable(statement: &nfold_sql::ast::Statement) -> bool {
    use nfold_sql::ast::{Show, Statement::*};
    !matches!(
        statement,
        Prepare { .. }
            | Execute { .. }
            | Deallocate(_)
            | Signal(_)
            | Resignal
            | GetDiagnostics(_)
            | Handler(_)
            | Begin(_)
            | Xa(_)
            | RollbackTo(_)
            | Savepoint(_)
            | ReleaseSavepoint(_)
            | LockTables(_)
            | UnlockTables
            | Use(_)
            | AlterDatabase(_)
            | ExplainConnection(..)
            | LoadData(_)
            | Component(_)
            | Empty
            | Show(Show::Warnings(_) | Show::Errors(_) | Show::WarningCount | Show::ErrorCount)
    )
}

/// A slot for a statement.
#[derive(Default)]
struct StatementSlot {
    /// `None` if the slot is empty, and while its statement runs.
    statement: Option<Box<Statement>>,
    /// How many times the slot was freed. It is part of the statements' numbers, so that an old
    /// number does not find a new statement.
    generation: u32,
}

/// All prepared statements of a session.
#[derive(Default)]
pub struct PreparedStatements {
    places: Vec<StatementSlot>,
    /// The empty slots. The one that has been empty longest is filled first.
    free: VecDeque<u32>,
    by_name: FxHashMap<String, u32>,
}

impl PreparedStatements {
    /// How many statements there are.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Adds a statement and returns its number. There must be fewer than [`MAX_STATEMENTS`].
    pub fn add(&mut self, statement: Statement) -> u32 {
        let at = self.free.pop_front().unwrap_or_else(|| {
            self.places.push(StatementSlot::default());
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[at as usize];
        place.statement = Some(Box::new(statement));
        (place.generation << PLACE_BITS) | (at + 1)
    }

    /// Prefetches the slots of a few statements.
    pub fn prefetch(&self) {
        if let Some(first) = self.places.first() {
            prefetch_line_outer(first);
        }
    }

    #[inline]
    fn place(&mut self, id: u32) -> Option<&mut StatementSlot> {
        let at = (id & PLACE_MASK).wrapping_sub(1);
        let place = self.places.get_mut(at as usize)?;
        (place.generation << PLACE_BITS == id & !PLACE_MASK).then_some(place)
    }

    /// Takes a statement out for its execution; [`Self::give_back`] returns it.
    #[inline]
    pub fn take(&mut self, id: u32) -> Option<Box<Statement>> {
        self.place(id)?.statement.take()
    }

    /// See [`Self::take`].
    #[inline]
    pub fn give_back(&mut self, id: u32, statement: Box<Statement>) {
        if let Some(place) = self.place(id) {
            place.statement = Some(statement);
        }
    }

    /// The statement with this number.
    pub fn get(&mut self, id: u32) -> Option<&mut Statement> {
        self.place(id)?.statement.as_deref_mut()
    }

    /// PREPARE: replaces the statement with this name.
    pub fn set_name(&mut self, name: &str, statement: Statement) {
        self.close_name(name);
        let id = self.add(statement);
        self.by_name.insert(name.to_lowercase(), id);
    }

    /// The number of the statement with this name.
    pub fn id_of(&self, name: &str) -> Option<u32> {
        self.by_name.get(&name.to_lowercase()).copied()
    }

    /// DEALLOCATE PREPARE. Returns whether the statement existed.
    pub fn close_name(&mut self, name: &str) -> bool {
        let id = self.by_name.remove(&name.to_lowercase());
        id.is_some_and(|id| self.close(id))
    }

    /// COM_STMT_CLOSE. Returns whether the statement existed.
    pub fn close(&mut self, id: u32) -> bool {
        let Some(place) = self.place(id) else {
            return false;
        };
        if place.statement.take().is_none() {
            return false;
        }
        place.generation = (place.generation + 1) & (u32::MAX >> PLACE_BITS);
        self.free.push_back((id & PLACE_MASK) - 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfold_protocol::consts::column_type as ty;

    fn statement(sql: &str) -> Statement {
        Statement::parse(
            sql.as_bytes(),
            LexMode::default(),
            None,
            &nfold_types::NoCheckpoint,
        )
        .unwrap()
    }

    #[test]
    fn types_are_remembered_and_long_data_taken_once() {
        let mut s = statement("SELECT ?, ?");
        assert_eq!(s.parameters(), 2);
        let mut out = Vec::new();
        // null bitmap 0, types follow: LONG, VAR_STRING; values 7 and 'ab'
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
        assert!(all.close(a) && !all.close(a));
        assert_eq!(all.len(), 0);
        let b = all.add(statement("SELECT 4"));
        let c = all.add(statement("SELECT 5"));
        assert!(all.get(a).is_none() && all.get(0).is_none() && all.get(u32::MAX).is_none());
        let running = all.take(c).unwrap();
        assert!(all.take(c).is_none() && !all.close(c) && all.len() == 2);
        all.give_back(c, running);
        assert_eq!(&*all.get(b).unwrap().of.text, b"SELECT 4");
        assert!(all.close(c) && all.close(b) && all.len() == 0);
        assert_eq!(
            Statement::parse(
                b"PREPARE a FROM 'b'",
                LexMode::default(),
                None,
                &nfold_types::NoCheckpoint
            )
            .err()
            .map(|e| e.errno()),
            Some(1295)
        );
        assert_eq!(
            Statement::parse(
                b"SELECT 1; SELECT 2",
                LexMode::default(),
                None,
                &nfold_types::NoCheckpoint
            )
            .err()
            .map(|e| e.errno()),
            Some(1064)
        );
    }
}
