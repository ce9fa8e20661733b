//! XA transactions that are prepared on the source when a copy begins.
//!
//! No snapshot has the rows of a prepared branch, and no event behind the snapshot's position has
//! them either: the channel would stop at the branch's XA COMMIT. So a copy begins at a moment at
//! which no branch is prepared.

use std::time::{Duration, Instant};

use nfold_binlog::BranchId;
use nfold_replica::{Client, SourceError};

use crate::error::{CopyError, Finding};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// MySQL's error without the privilege XA_RECOVER_ADMIN.
const ER_XAER_RMERR: u16 = 1401;
/// The most branches that a message names.
const NAMED: usize = 5;

/// Waits for the end of prepared branches, up to a limit.
pub(crate) struct BranchWait<'a> {
    pub limit: Duration,
    pub report: &'a mut dyn FnMut(&Finding),
    begun: Option<Instant>,
    can_see: bool,
}

impl<'a> BranchWait<'a> {
    pub fn new(limit: Duration, report: &'a mut dyn FnMut(&Finding)) -> BranchWait<'a> {
        BranchWait {
            limit,
            report,
            begun: None,
            can_see: true,
        }
    }

    /// Returns when no branch is prepared. Branches may be prepared right behind it.
    ///
    /// # Errors
    /// Branches are prepared until the end of the limit: the message names the last ones.
    pub fn wait(&mut self, source: &mut Client) -> Result<(), CopyError> {
        loop {
            let branches = self.prepared(source)?;
            if branches.is_empty() {
                return Ok(());
            }
            let begun = self.begun.unwrap_or_else(|| {
                (self.report)(&Finding::warning(
                    format!(
                        "XA transactions are prepared on the source: {}",
                        names(&branches)
                    ),
                    "the copy waits for their end: XA COMMIT or XA ROLLBACK",
                ));
                Instant::now()
            });
            self.begun = Some(begun);
            if begun.elapsed() >= self.limit {
                return Err(CopyError(format!(
                    "XA transactions are still prepared on the source: {}; end them there by XA \
                     COMMIT or XA ROLLBACK, pause the program that prepares them, or let this \
                     command wait longer by --xa-wait. A copy would not have their rows, and the \
                     channel would stop at their end",
                    names(&branches)
                )));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether no branch is prepared now.
    pub fn is_none(&mut self, source: &mut Client) -> Result<bool, CopyError> {
        Ok(self.prepared(source)?.is_empty())
    }

    /// The prepared branches; none if the account may not see them, which is reported once.
    fn prepared(&mut self, source: &mut Client) -> Result<Vec<BranchId>, CopyError> {
        if !self.can_see {
            return Ok(Vec::new());
        }
        match recover(source) {
            Err(SourceError::Server {
                code: ER_XAER_RMERR,
                ..
            }) => {
                self.can_see = false;
                (self.report)(&Finding::warning(
                    "the account has no XA_RECOVER_ADMIN ON *.*: prepared XA transactions are not \
                     seen, and the channel stops at the end of one that is prepared now",
                    "GRANT XA_RECOVER_ADMIN ON *.* TO it, if the source has XA transactions",
                ));
                Ok(Vec::new())
            }
            branches => branches.map_err(CopyError::at("XA RECOVER on the source")),
        }
    }
}

/// XA RECOVER
fn recover(source: &mut Client) -> Result<Vec<BranchId>, SourceError> {
    let mut branches = Vec::new();
    source.each_row::<SourceError>(b"XA RECOVER", |row| {
        let number = |n: usize| -> usize {
            let text = row.get(n).copied().flatten().unwrap_or_default();
            String::from_utf8_lossy(text).parse().unwrap_or(0)
        };
        let data = row.get(3).copied().flatten().unwrap_or_default();
        let (gtrid, rest) = data.split_at(number(1).min(data.len()));
        branches.push(BranchId {
            format: number(0) as u32,
            gtrid: gtrid.to_vec(),
            bqual: rest[..number(2).min(rest.len())].to_vec(),
        });
        Ok(())
    })?;
    Ok(branches)
}

/// Some names, and how many others there are.
fn names(branches: &[BranchId]) -> String {
    let named: Vec<String> = (branches.iter().take(NAMED))
        .map(BranchId::to_string)
        .collect();
    match branches.len().saturating_sub(NAMED) {
        0 => named.join("; "),
        more => format!("{} and {more} more", named.join("; ")),
    }
}
