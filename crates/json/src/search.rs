//! JSON_SEARCH: the paths of strings that match.

use nfold_types::SqlError;

use crate::binary::{Doc, DocKind, Scalar};
use crate::path::{Index, Leg};
use crate::path::{Path, write_leg, write_member};
use crate::tree::Work;

struct Search<'s> {
    matches: &'s mut dyn FnMut(&str) -> Result<bool, SqlError>,
    only_one: bool,
    /// The cells of a path without wildcards are shown as they were written: `[last]`.
    literal_cells: bool,
    /// Texts of paths, each once.
    paths: Vec<String>,
    work: &'s Work<'s>,
}

/// The paths of all strings for which `matches` holds, in `doc` or below the given paths of it; at
/// most one with `only_one`.
///
/// # Errors
/// 3142; those of `matches`; a statement that must end.
pub fn search(
    doc: Doc<'_>,
    paths: &[Path],
    only_one: bool,
    matches: &mut dyn FnMut(&str) -> Result<bool, SqlError>,
    work: &Work<'_>,
) -> Result<Vec<String>, SqlError> {
    let mut search = Search {
        matches,
        only_one,
        literal_cells: false,
        paths: Vec::new(),
        work,
    };
    let mut at = b"$".to_vec();
    if paths.is_empty() {
        search.below(doc, &mut at)?;
    }
    for path in paths {
        search.literal_cells = !path.has_wildcard();
        search.along(doc, &path.legs, &mut at)?;
    }
    Ok(search.paths)
}

impl Search<'_> {
    fn done(&self) -> bool {
        self.only_one && !self.paths.is_empty()
    }

    /// Follows a path, then searches all that is below.
    fn along(&mut self, doc: Doc<'_>, legs: &[Leg], at: &mut Vec<u8>) -> Result<(), SqlError> {
        self.work.add(50)?;
        let Some((leg, rest)) = legs.split_first() else {
            return self.below(doc, at);
        };
        match leg {
            Leg::Member(name) => match doc.member(name)? {
                Some(value) => self.step(value, rest, at, |at| write_member(name, at)),
                None => Ok(()),
            },
            Leg::AnyMember => self.members(doc, rest, at),
            Leg::Descendants => {
                self.along(doc, rest, at)?;
                self.elements(doc, 0..doc.length()?, legs, at)?;
                self.members(doc, legs, at)
            }
            // Unlike elsewhere a value that is no array is not its own first element.
            _ if doc.kind() != DocKind::Array => Ok(()),
            Leg::Cell(index) if self.literal_cells => {
                let place = index.within(doc.length()?);
                match place.map(|place| doc.element(place)).transpose()?.flatten() {
                    Some(value) => self.step(value, rest, at, |at| write_leg(leg, at)),
                    None => Ok(()),
                }
            }
            _ => self.elements(doc, leg.cells(doc.length()?), rest, at),
        }
    }

    fn step(
        &mut self,
        value: Doc<'_>,
        legs: &[Leg],
        at: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), SqlError> {
        if self.done() {
            return Ok(());
        }
        let before = at.len();
        write(at);
        self.along(value, legs, at)?;
        at.truncate(before);
        Ok(())
    }

    fn elements(
        &mut self,
        doc: Doc<'_>,
        places: std::ops::Range<usize>,
        legs: &[Leg],
        at: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        for place in places {
            let Some(value) = doc.element(place)? else {
                return Ok(());
            };
            let index = Index {
                offset: place as u32,
                from_end: false,
            };
            self.step(value, legs, at, |at| write_leg(&Leg::Cell(index), at))?;
        }
        Ok(())
    }

    fn members(&mut self, doc: Doc<'_>, legs: &[Leg], at: &mut Vec<u8>) -> Result<(), SqlError> {
        for member in doc.members()? {
            let (name, value) = member?;
            self.step(value, legs, at, |at| write_member(name, at))?;
        }
        Ok(())
    }

    /// Searches the value and all values inside it.
    fn below(&mut self, doc: Doc<'_>, at: &mut Vec<u8>) -> Result<(), SqlError> {
        if self.done() {
            return Ok(());
        }
        match doc.scalar()? {
            Some(Scalar::String(text)) => {
                if (self.matches)(text)? {
                    let path = String::from_utf8_lossy(at).into_owned();
                    if !self.paths.contains(&path) {
                        self.paths.push(path);
                    }
                }
                Ok(())
            }
            Some(_) => Ok(()),
            None => {
                self.elements(doc, 0..doc.length()?, &[], at)?;
                self.members(doc, &[], at)
            }
        }
    }
}
