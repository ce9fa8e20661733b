//! Sets of GTIDs, for both kinds of servers.
//!
//! # Picture
//! ```text
//! MySQL    (uuid, tag) ─▶ intervals [first, end) in ascending order, none of which touch
//! MariaDB  domain ─▶ (server, sequence): the position in the domain
//!
//! the dump command and PREVIOUS_GTIDS, without tags:
//!   u64 number of sources · for each: 16 uuid · u64 number of intervals · (u64 first · u64 end)*
//! with tags: the first word is 1 │ number of sources << 8 │ 1 << 56, and after each uuid the tag:
//!   u8 length * 2 · bytes
//! as stored in the dictionary (docs/replication.md):
//!   u8 version = 1 · u64 length of the above in the form with tags · the above
//!   · u32 number of domains · (u32 domain · u32 server · u64 sequence)*
//! ```
//! Integers are little-endian.
//!
//! # Invariants
//! - G1: the intervals of a source are not empty, in ascending order, and do not touch.

mod text;

use std::collections::BTreeMap;
use std::fmt;

use nfold_protocol::Reader;

use crate::BinlogError;
use crate::gtid::{Gtid, SourceUuid, Tag};

/// A MySQL source: who committed, under which tag.
type Source = (SourceUuid, Tag);

const STORED_VERSION: u8 = 1;
const TAGGED: u64 = 1;

/// A set of transactions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GtidSet {
    sources: BTreeMap<Source, Vec<(u64, u64)>>,
    domains: BTreeMap<u32, (u32, u64)>,
}

/// Adds `[first, end)` to the intervals.
fn add_interval(intervals: &mut Vec<(u64, u64)>, (first, end): (u64, u64)) {
    if first >= end {
        return;
    }
    let from = intervals.partition_point(|i| i.1 < first);
    let to = intervals.partition_point(|i| i.0 <= end);
    let (mut low, mut high) = (first, end);
    for i in &intervals[from..to] {
        (low, high) = (low.min(i.0), high.max(i.1));
    }
    intervals.splice(from..to, [(low, high)]);
}

/// Removes `[first, end)` from the intervals.
fn remove_interval(intervals: &mut Vec<(u64, u64)>, (first, end): (u64, u64)) {
    let mut left = Vec::with_capacity(intervals.len() + 1);
    for &(a, b) in intervals.iter() {
        if a < first.min(b) {
            left.push((a, first.min(b)));
        }
        if b > end.max(a) {
            left.push((end.max(a), b));
        }
    }
    *intervals = left;
}

impl GtidSet {
    /// The empty set.
    pub fn new() -> GtidSet {
        GtidSet::default()
    }

    /// Whether it has no transaction.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.domains.is_empty()
    }

    /// The positions of MariaDB's domains alone.
    pub fn domains(&self) -> GtidSet {
        GtidSet {
            sources: BTreeMap::new(),
            domains: self.domains.clone(),
        }
    }

    /// Parses MySQL's form (`uuid:1-5:7:tag:1-3, ...`) or MariaDB's (`0-1-100,1-1-5`).
    ///
    /// # Errors
    /// [`BinlogError::Gtid`].
    pub fn parse(text: &str) -> Result<GtidSet, BinlogError> {
        text::parse(text, true)
    }

    /// Parses MySQL's form alone.
    ///
    /// # Errors
    /// [`BinlogError::Gtid`].
    pub fn parse_mysql(text: &str) -> Result<GtidSet, BinlogError> {
        text::parse(text, false)
    }

    fn add_range(&mut self, source: Source, range: (u64, u64)) {
        if range.0 < range.1 {
            add_interval(self.sources.entry(source).or_default(), range);
        }
    }

    /// Adds one transaction. In a domain of MariaDB, it becomes the position.
    pub fn add(&mut self, gtid: &Gtid) {
        match gtid {
            Gtid::MySql { uuid, tag, number } => {
                self.add_range((*uuid, tag.clone()), (*number, *number + 1));
            }
            Gtid::MariaDb {
                domain,
                server,
                sequence,
            } => {
                self.domains.insert(*domain, (*server, *sequence));
            }
        }
    }

    /// Whether the transaction is in the set. In a domain of MariaDB, all sequence numbers up to
    /// the position are.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        match gtid {
            Gtid::MySql { uuid, tag, number } => {
                let intervals = self.sources.get(&(*uuid, tag.clone()));
                intervals.is_some_and(|all| {
                    let at = all.partition_point(|i| i.1 <= *number);
                    all.get(at).is_some_and(|i| i.0 <= *number)
                })
            }
            Gtid::MariaDb {
                domain, sequence, ..
            } => self.domains.get(domain).is_some_and(|at| at.1 >= *sequence),
        }
    }

    /// The highest number of a source's transactions without a tag; 0: it has none.
    pub fn highest(&self, uuid: SourceUuid) -> u64 {
        let intervals = self.sources.get(&(uuid, Tag::default()));
        intervals.and_then(|all| all.last()).map_or(0, |i| i.1 - 1)
    }

    /// Adds all transactions of another set.
    pub fn add_all(&mut self, other: &GtidSet) {
        for (source, intervals) in &other.sources {
            for &range in intervals {
                self.add_range(source.clone(), range);
            }
        }
        for (domain, at) in &other.domains {
            let own = self.domains.entry(*domain).or_insert(*at);
            if own.1 < at.1 {
                *own = *at;
            }
        }
    }

    /// The transactions that are not in `other`.
    pub fn without(&self, other: &GtidSet) -> GtidSet {
        let mut left = self.clone();
        left.sources.retain(|source, intervals| {
            for &range in other.sources.get(source).into_iter().flatten() {
                remove_interval(intervals, range);
            }
            !intervals.is_empty()
        });
        left.domains
            .retain(|domain, at| other.domains.get(domain).is_none_or(|o| o.1 < at.1));
        left
    }

    /// Whether all its transactions are in `other`.
    pub fn is_subset(&self, other: &GtidSet) -> bool {
        self.without(other).is_empty()
    }

    /// Appends the form of COM_BINLOG_DUMP_GTID. MariaDB's positions have none.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let tagged = self.sources.keys().any(|(_, tag)| !tag.as_str().is_empty());
        self.encode_sources(tagged, out);
    }

    fn encode_sources(&self, tagged: bool, out: &mut Vec<u8>) {
        let n = self.sources.len() as u64;
        let head = match tagged {
            true => TAGGED | n << 8 | TAGGED << 56,
            false => n,
        };
        out.extend_from_slice(&head.to_le_bytes());
        for ((uuid, tag), intervals) in &self.sources {
            out.extend_from_slice(&uuid.0);
            if tagged {
                out.push(2 * tag.as_str().len() as u8);
                out.extend_from_slice(tag.as_str().as_bytes());
            }
            out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for (first, end) in intervals {
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&end.to_le_bytes());
            }
        }
    }

    /// Reads the form of COM_BINLOG_DUMP_GTID and PREVIOUS_GTIDS.
    ///
    /// # Errors
    /// [`BinlogError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<GtidSet, BinlogError> {
        let mut r = Reader::new(bytes);
        let set = GtidSet::decode_sources(&mut r)?;
        match r.is_empty() {
            true => Ok(set),
            false => Err(BinlogError::Malformed("bytes behind a GTID set")),
        }
    }

    fn decode_sources(r: &mut Reader<'_>) -> Result<GtidSet, BinlogError> {
        let head = r.u64("number of sources")?;
        let tagged = head >> 56 == TAGGED;
        let n = match tagged {
            true => head << 8 >> 16,
            false => head,
        };
        let mut set = GtidSet::new();
        for _ in 0..n {
            let mut uuid = [0; 16];
            uuid.copy_from_slice(r.take(16, "uuid")?);
            let mut tag = Tag::default();
            if tagged {
                let length = usize::from(r.u8("length of a tag")?) / 2;
                let text = std::str::from_utf8(r.take(length, "tag")?).ok();
                tag = text
                    .and_then(Tag::parse)
                    .ok_or(BinlogError::Malformed("tag"))?;
            }
            let intervals = r.u64("number of intervals")?;
            for _ in 0..intervals {
                let (first, end) = (r.u64("interval")?, r.u64("interval")?);
                if first == 0 || first >= end || end > Gtid::MAX_NUMBER + 1 {
                    return Err(BinlogError::Malformed("interval"));
                }
                set.add_range((SourceUuid(uuid), tag.clone()), (first, end));
            }
        }
        Ok(set)
    }

    /// Appends the stored form, for both kinds of GTIDs.
    pub fn store(&self, out: &mut Vec<u8>) {
        let mut sources = Vec::new();
        self.encode_sources(true, &mut sources);
        out.push(STORED_VERSION);
        out.extend_from_slice(&(sources.len() as u64).to_le_bytes());
        out.extend_from_slice(&sources);
        out.extend_from_slice(&(self.domains.len() as u32).to_le_bytes());
        for (domain, (server, sequence)) in &self.domains {
            out.extend_from_slice(&domain.to_le_bytes());
            out.extend_from_slice(&server.to_le_bytes());
            out.extend_from_slice(&sequence.to_le_bytes());
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`BinlogError::Malformed`].
    pub fn load(r: &mut Reader<'_>) -> Result<GtidSet, BinlogError> {
        if r.u8("version of a GTID set")? != STORED_VERSION {
            return Err(BinlogError::Malformed("version of a GTID set"));
        }
        let length = r.u64("length of a GTID set")?;
        let length = usize::try_from(length).map_err(|_| BinlogError::Malformed("length"))?;
        let mut set = GtidSet::decode(r.take(length, "sources")?)?;
        for _ in 0..r.u32("number of domains")? {
            let domain = r.u32("domain")?;
            let at = (r.u32("server")?, r.u64("sequence")?);
            set.domains.insert(domain, at);
        }
        Ok(set)
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before: Option<&SourceUuid> = None;
        let mut empty = true;
        for ((uuid, tag), intervals) in &self.sources {
            if before != Some(uuid) {
                f.write_str(if empty { "" } else { ",\n" })?;
                write!(f, "{uuid}")?;
                before = Some(uuid);
            }
            if !tag.as_str().is_empty() {
                write!(f, ":{}", tag.as_str())?;
            }
            for (first, end) in intervals {
                match end - first {
                    1 => write!(f, ":{first}")?,
                    _ => write!(f, ":{first}-{}", end - 1)?,
                }
            }
            empty = false;
        }
        for (domain, (server, sequence)) in &self.domains {
            f.write_str(if empty { "" } else { "," })?;
            write!(f, "{domain}-{server}-{sequence}")?;
            empty = false;
        }
        Ok(())
    }
}
