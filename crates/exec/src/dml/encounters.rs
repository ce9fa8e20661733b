//! Remembers which rows of a table a join has produced, so that each row is changed once even if
//! several joined rows contain it.

use nfold_types::SqlError;

use crate::operators::distinct::Distinct;
use crate::runtime::Runtime;

/// The rows of one table that a join has produced so far, identified by their clustered keys.
pub(super) enum Encounters {
    /// Repetitions of a row are adjacent, so the last key is enough.
    Last(Vec<u8>),
    Any(Box<Distinct>),
}

/// Whether the join has produced a row before.
pub(super) enum Encounter {
    First,
    Repeated,
    /// Not known yet, because the table of keys has spilled. [`Encounters::drain_undecided`]
    /// decides later.
    Undecided,
}

impl Encounters {
    /// `grouped`: repetitions of a row are adjacent, because the join reads the table first, and
    /// only once.
    pub fn new(rt: &Runtime<'_>, grouped: bool) -> Encounters {
        match grouped {
            true => Encounters::Last(Vec::new()),
            false => Encounters::Any(Box::new(Distinct::new(rt.env.work_memory()))),
        }
    }

    /// Looks up a row by its key and adds it. `record` is called only if the result is
    /// [`Encounter::Undecided`]; it writes the data that is passed to `drain_undecided` later.
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

    /// Calls `f` with the record of each undecided row that is a first encounter.
    pub fn drain_undecided(
        self,
        rt: &Runtime<'_>,
        f: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        match self {
            Encounters::Last(_) => Ok(()),
            Encounters::Any(distinct) => distinct.give_deferred(rt, f),
        }
    }
}
