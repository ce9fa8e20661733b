//! The durable state of a channel: how to reach its source, and how far it has been applied.
//!
//! # Picture
//! ```text
//! configuration  u8 version = 1 · fields: u8 field · u32 length · bytes
//! coordinates    u8 version = 1 · u64 position · u32 length, file · GTID set (nfold_binlog::GtidSet)
//!                · u32 length, database · u32 length, table
//!                · version 2: u8 step (1: a branch is prepared, 2: it ends) · u32 length, its name
//!                  · u32 length, coordinates behind the step
//! ```
//! Integers are little-endian; docs/replication.md lists the fields.

use nfold_binlog::{BinlogError, GtidSet};
use nfold_protocol::Reader;

use crate::tls::TlsFiles;

const VERSION: u8 = 1;
/// The version of coordinates with a step of a branch.
const VERSION_WITH_STEP: u8 = 2;

/// How to reach the source of a channel (CHANGE REPLICATION SOURCE TO).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelConfig {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    /// SOURCE_AUTO_POSITION: the source finds the transactions that are missing here by GTIDs.
    pub auto_position: bool,
    /// SOURCE_CONNECT_RETRY, in seconds.
    pub connect_retry_s: u32,
    /// SOURCE_RETRY_COUNT; 0: for ever.
    pub retry_count: u64,
    /// SOURCE_HEARTBEAT_PERIOD, in milliseconds; 0: none.
    pub heartbeat_ms: u32,
    /// SOURCE_SSL
    pub ssl: bool,
    /// The certificates with SOURCE_SSL.
    pub tls: TlsFiles,
    /// GET_SOURCE_PUBLIC_KEY: the source may send the key that encrypts the password.
    pub get_public_key: bool,
    /// NFOLD_DATABASES: the databases that are followed; empty: all of them.
    pub databases: Vec<String>,
    /// SOURCE_DELAY, in seconds: how long after the source a transaction is applied.
    pub delay_s: u32,
    /// CHANGE REPLICATION FILTER
    pub filters: Filters,
}

/// The lists of CHANGE REPLICATION FILTER, in the order in which they were written. Which of them
/// decides: manual, "How Servers Evaluate Replication Filtering Rules".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters {
    pub do_db: Vec<String>,
    pub ignore_db: Vec<String>,
    /// Pairs of database and table.
    pub do_table: Vec<(String, String)>,
    pub ignore_table: Vec<(String, String)>,
    /// Patterns as of LIKE for `database.table`.
    pub wild_do_table: Vec<String>,
    pub wild_ignore_table: Vec<String>,
    /// Pairs of a database of the source and the one here.
    pub rewrite_db: Vec<(String, String)>,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        ChannelConfig {
            host: String::new(),
            port: 3306,
            user: String::new(),
            password: String::new(),
            auto_position: false,
            connect_retry_s: 60,
            retry_count: 10,
            heartbeat_ms: 30_000,
            ssl: false,
            tls: TlsFiles::default(),
            get_public_key: false,
            databases: Vec::new(),
            delay_s: 0,
            filters: Filters::default(),
        }
    }
}

/// The numbers of the fields of a configuration.
mod field {
    pub const HOST: u8 = 1;
    pub const PORT: u8 = 2;
    pub const USER: u8 = 3;
    pub const PASSWORD: u8 = 4;
    pub const AUTO_POSITION: u8 = 5;
    pub const CONNECT_RETRY: u8 = 6;
    pub const RETRY_COUNT: u8 = 7;
    pub const HEARTBEAT: u8 = 8;
    pub const SSL: u8 = 9;
    pub const GET_PUBLIC_KEY: u8 = 10;
    /// One field for each database.
    pub const DATABASE: u8 = 11;
    pub const DELAY: u8 = 12;
    /// One field for each item of the lists. A pair is u32 length · first · second.
    pub const DO_DB: u8 = 13;
    pub const IGNORE_DB: u8 = 14;
    pub const DO_TABLE: u8 = 15;
    pub const IGNORE_TABLE: u8 = 16;
    pub const WILD_DO_TABLE: u8 = 17;
    pub const WILD_IGNORE_TABLE: u8 = 18;
    pub const REWRITE_DB: u8 = 19;
    pub const SSL_CA: u8 = 20;
    pub const SSL_CERT: u8 = 21;
    pub const SSL_KEY: u8 = 22;
    pub const SSL_VERIFY_NAME: u8 = 23;
}

impl ChannelConfig {
    /// Appends the stored form.
    pub fn store(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        let mut put = |field: u8, bytes: &[u8]| {
            out.push(field);
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        put(field::HOST, self.host.as_bytes());
        put(field::PORT, &u64::from(self.port).to_le_bytes());
        put(field::USER, self.user.as_bytes());
        put(field::PASSWORD, self.password.as_bytes());
        for database in &self.databases {
            put(field::DATABASE, database.as_bytes());
        }
        let filters = &self.filters;
        let texts = [
            (field::DO_DB, &filters.do_db),
            (field::IGNORE_DB, &filters.ignore_db),
            (field::WILD_DO_TABLE, &filters.wild_do_table),
            (field::WILD_IGNORE_TABLE, &filters.wild_ignore_table),
        ];
        for (field, list) in texts {
            list.iter().for_each(|text| put(field, text.as_bytes()));
        }
        let pairs = [
            (field::DO_TABLE, &filters.do_table),
            (field::IGNORE_TABLE, &filters.ignore_table),
            (field::REWRITE_DB, &filters.rewrite_db),
        ];
        for (field, list) in pairs {
            for (first, second) in list {
                let mut bytes = (first.len() as u32).to_le_bytes().to_vec();
                bytes.extend_from_slice(first.as_bytes());
                bytes.extend_from_slice(second.as_bytes());
                put(field, &bytes);
            }
        }
        // A field that is absent can be read by a version that does not know it.
        let files = [
            (field::SSL_CA, &self.tls.ca),
            (field::SSL_CERT, &self.tls.cert),
            (field::SSL_KEY, &self.tls.key),
        ];
        for (field, name) in files.into_iter().filter(|(_, name)| !name.is_empty()) {
            put(field, name.as_bytes());
        }
        if self.tls.verify_name {
            put(field::SSL_VERIFY_NAME, &[]);
        }
        if self.delay_s != 0 {
            put(field::DELAY, &u64::from(self.delay_s).to_le_bytes());
        }
        let numbers = [
            (field::AUTO_POSITION, self.auto_position.into()),
            (field::CONNECT_RETRY, self.connect_retry_s.into()),
            (field::RETRY_COUNT, self.retry_count),
            (field::HEARTBEAT, self.heartbeat_ms.into()),
            (field::SSL, self.ssl.into()),
            (field::GET_PUBLIC_KEY, self.get_public_key.into()),
        ];
        for (field, number) in numbers {
            put(field, &u64::to_le_bytes(number));
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`BinlogError::Malformed`]; a field that this version does not know.
    pub fn load(bytes: &[u8]) -> Result<ChannelConfig, BinlogError> {
        let mut config = ChannelConfig::default();
        let mut r = Reader::new(bytes);
        if r.u8("version of a channel")? != VERSION {
            return Err(BinlogError::Malformed("version of a channel"));
        }
        while !r.is_empty() {
            let field = r.u8("field of a channel")?;
            let length = r.u32("length of a field")? as usize;
            let value = r.take(length, "value of a field")?;
            let text = || String::from_utf8_lossy(value).into_owned();
            let number = || Reader::new(value).u64("number of a channel");
            match field {
                field::HOST => config.host = text(),
                field::PORT => config.port = number()? as u16,
                field::USER => config.user = text(),
                field::PASSWORD => config.password = text(),
                field::AUTO_POSITION => config.auto_position = number()? != 0,
                field::CONNECT_RETRY => config.connect_retry_s = number()? as u32,
                field::RETRY_COUNT => config.retry_count = number()?,
                field::HEARTBEAT => config.heartbeat_ms = number()? as u32,
                field::SSL => config.ssl = number()? != 0,
                field::GET_PUBLIC_KEY => config.get_public_key = number()? != 0,
                field::DATABASE => config.databases.push(text()),
                field::SSL_CA => config.tls.ca = text(),
                field::SSL_CERT => config.tls.cert = text(),
                field::SSL_KEY => config.tls.key = text(),
                field::SSL_VERIFY_NAME => config.tls.verify_name = true,
                field::DELAY => config.delay_s = number()? as u32,
                field::DO_DB => config.filters.do_db.push(text()),
                field::IGNORE_DB => config.filters.ignore_db.push(text()),
                field::DO_TABLE => config.filters.do_table.push(pair(value)?),
                field::IGNORE_TABLE => config.filters.ignore_table.push(pair(value)?),
                field::WILD_DO_TABLE => config.filters.wild_do_table.push(text()),
                field::WILD_IGNORE_TABLE => config.filters.wild_ignore_table.push(text()),
                field::REWRITE_DB => config.filters.rewrite_db.push(pair(value)?),
                _ => return Err(BinlogError::Malformed("field of a channel")),
            }
        }
        Ok(config)
    }
}

/// How far a channel has been applied. All transactions before the position, and no others, are in
/// the tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coordinates {
    /// The source's file; empty: its first one.
    pub file: String,
    /// The position behind the last applied transaction.
    pub position: u64,
    /// The applied transactions.
    pub gtids: GtidSet,
    /// The database and the name of a table that exists already, although its CREATE TABLE ...
    /// SELECT is behind the position. It must be dropped before the channel goes on.
    pub unfinished: Option<(String, String)>,
    /// A step of an XA transaction that may be done already, although it is behind the position.
    pub step: Option<Box<BranchStep>>,
}

/// A step of an XA transaction. It cannot be in one transaction with the coordinates behind it, so
/// these are stored before it: whether the branch is prepared then tells whether the step is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchStep {
    /// The branch is prepared by the step. Otherwise the step commits it or rolls it back.
    pub prepares: bool,
    /// The engine's name of the branch.
    pub branch: Vec<u8>,
    /// The coordinates behind the step.
    pub after: Coordinates,
}

impl Coordinates {
    /// The coordinates without a step: those behind it if it is done.
    pub fn resolve(mut self, is_prepared: impl Fn(&[u8]) -> bool) -> Coordinates {
        match self.step.take() {
            Some(step) if is_prepared(&step.branch) == step.prepares => step.after,
            _ => self,
        }
    }

    /// Appends the stored form.
    pub fn store(&self, out: &mut Vec<u8>) {
        out.push(match self.step {
            None => VERSION,
            Some(_) => VERSION_WITH_STEP,
        });
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(&(self.file.len() as u32).to_le_bytes());
        out.extend_from_slice(self.file.as_bytes());
        self.gtids.store(out);
        let (database, table) = self.unfinished.as_ref().map_or(("", ""), |(d, t)| (d, t));
        for name in [database, table] {
            out.extend_from_slice(&(name.len() as u32).to_le_bytes());
            out.extend_from_slice(name.as_bytes());
        }
        if let Some(step) = &self.step {
            out.push(if step.prepares { 1 } else { 2 });
            let mut after = Vec::new();
            step.after.store(&mut after);
            for bytes in [&step.branch, &after] {
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`BinlogError::Malformed`].
    pub fn load(bytes: &[u8]) -> Result<Coordinates, BinlogError> {
        Coordinates::load_version(bytes, VERSION_WITH_STEP)
    }

    /// Reads a stored form up to a version.
    fn load_version(bytes: &[u8], newest: u8) -> Result<Coordinates, BinlogError> {
        let mut r = Reader::new(bytes);
        let version = r.u8("version of coordinates")?;
        if !(VERSION..=newest).contains(&version) {
            return Err(BinlogError::Malformed("version of coordinates"));
        }
        let position = r.u64("position")?;
        let file = name(&mut r)?;
        let gtids = GtidSet::load(&mut r)?;
        let (database, table) = (name(&mut r)?, name(&mut r)?);
        let mut step = None;
        if version == VERSION_WITH_STEP {
            let prepares = match r.u8("step of a branch")? {
                1 => true,
                2 => false,
                _ => return Err(BinlogError::Malformed("step of a branch")),
            };
            let length = r.u32("length of a branch")? as usize;
            let branch = r.take(length, "branch")?.to_vec();
            let length = r.u32("length of coordinates")? as usize;
            // Those behind a step have none themselves.
            let after = r.take(length, "coordinates")?;
            let after = Coordinates::load_version(after, VERSION)?;
            step = Some(Box::new(BranchStep {
                prepares,
                branch,
                after,
            }));
        }
        match r.is_empty() {
            true => Ok(Coordinates {
                file,
                position,
                gtids,
                unfinished: (!table.is_empty()).then_some((database, table)),
                step,
            }),
            false => Err(BinlogError::Malformed("bytes behind coordinates")),
        }
    }
}

/// A pair of names of a filter.
fn pair(bytes: &[u8]) -> Result<(String, String), BinlogError> {
    let mut r = Reader::new(bytes);
    let first = name(&mut r)?;
    Ok((first, String::from_utf8_lossy(r.rest()).into_owned()))
}

fn name(r: &mut Reader<'_>) -> Result<String, BinlogError> {
    let length = r.u32("length of a name")? as usize;
    Ok(String::from_utf8_lossy(r.take(length, "name")?).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stored_channel_is_read_back(host in ".{0,20}", port: u16, password in ".{0,20}",
            retry: u64, heartbeat: u32, flags: [bool; 3],
            databases in proptest::collection::vec(".{0,9}", 0..4),
            delay_s: u32, pairs in proptest::collection::vec((".{0,9}", ".{0,9}"), 0..4)) {
            let filters = Filters {
                do_db: databases.clone(),
                ignore_db: vec![host.clone()],
                do_table: pairs.clone(),
                ignore_table: pairs.iter().take(1).cloned().collect(),
                wild_do_table: vec![password.clone()],
                wild_ignore_table: databases.iter().take(2).cloned().collect(),
                rewrite_db: pairs,
            };
            let tls = TlsFiles {
                ca: host.clone(),
                cert: password.clone(),
                key: String::new(),
                verify_name: flags[0],
            };
            let config = ChannelConfig {
                databases, delay_s, filters, tls,
                host, port, password, retry_count: retry, heartbeat_ms: heartbeat,
                auto_position: flags[0], ssl: flags[1], get_public_key: flags[2],
                ..ChannelConfig::default()
            };
            let mut stored = Vec::new();
            config.store(&mut stored);
            prop_assert_eq!(ChannelConfig::load(&stored), Ok(config));
        }

        #[test]
        fn stored_coordinates_are_read_back(file in ".{0,20}", position: u64, last in 1..99u64) {
            let text = format!("11111111-1111-1111-1111-111111111111:1-{last}:blue:7,3-1-{last}");
            let gtids = GtidSet::parse(&text).expect("a set");
            let unfinished = (last > 50).then(|| ("d".to_owned(), file.clone() + "t"));
            let at = Coordinates { file, position, gtids, unfinished, step: None };
            let mut stored = Vec::new();
            at.store(&mut stored);
            prop_assert_eq!(Coordinates::load(&stored), Ok(at.clone()));
            let prepares = last % 2 == 0;
            let step = BranchStep { prepares, branch: b"x".to_vec(), after: at.clone() };
            let before = Coordinates { step: Some(Box::new(step)), ..Coordinates::default() };
            stored.clear();
            before.store(&mut stored);
            prop_assert_eq!(Coordinates::load(&stored), Ok(before.clone()));
            prop_assert_eq!(before.clone().resolve(|name| (name == b"x") == prepares), at);
            let unchanged = before.resolve(|name| (name == b"x") != prepares);
            prop_assert_eq!(unchanged, Coordinates::default());
        }

        #[test]
        fn damaged_state_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = ChannelConfig::load(&bytes);
            let _ = Coordinates::load(&bytes);
        }
    }
}
