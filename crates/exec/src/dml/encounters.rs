//! Which rows of a table a join has produced already, so that a row of several joined rows is
//! changed once.

use nfold_types::SqlError;

use crate::operators::distinct::Distinct;
use crate::runtime::Runtime;

/// The rows of one table that a join has produced so far, by their clustered keys.
pub(super) enum Encounters {
    /// Equal rows come one after the other, so the key of the last one is enough.
    Last(Vec<u8>),
    Any(Box<Distinct>),
}

/// Whether a row has been met before.
pub(super) enum Encounter {
    First,
    Repeated,
    /// Not known yet: memory was full, and the row went to a file. [`Encounters::drain_undecided`]
    /// decides.
    Undecided,
}

impl Encounters {
    /// `grouped`: equal rows come one after the other, because the join reads the table first and
    /// under no other name.
    pub fn new(rt: &Runtime<'_>, grouped: bool) -> Encounters {
        match grouped {
            true => Encounters::Last(Vec::new()),
            false => Encounters::Any(Box::new(Distinct::new(rt.env.work_memory()))),
        }
    }

    /// Looks a row up by its key and remembers it. `record` writes what is needed of it later, and
    /// is called only if the answer is [`Encounter::Undecided`].
    pub fn meet(
        &mut self,
        rt: &Runtime<'_>,
        key: &[u8],
        record: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Encounter, SqlError> {
        let distinct = match self {
            Encounters::Any(distinct) => distinct,
            Encounters::Last(last) if last == key => return Ok(Encounter::Repeated),
            Encounters::Last(last) => {
                last.clear();
                last.extend_from_slice(key);
                return Ok(Encounter::First);
            }
        };
        let mut undecided = false;
        let new = distinct.is_new(
            rt,
            |out| {
                out.extend_from_slice(key);
                Ok(())
            },
            |out| {
                undecided = true;
                record(out);
                Ok(())
            },
        )?;
        Ok(match (new, undecided) {
            (true, _) => Encounter::First,
            (false, true) => Encounter::Undecided,
            (false, false) => Encounter::Repeated,
        })
    }

    /// Calls `f` with the records of undecided rows that were met for the first time, each row
    /// once.
    pub fn drain_undecided(
        self,
        rt: &Runtime<'_>,
        f: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        match self {
            Encounters::Last(_) => Ok(()),
            Encounters::Any(distinct) => distinct.put_off(rt, f),
        }
    }
}
