//! Grapheme clusters for `\X`: UAX 29, but for the rule for Indic conjuncts (GB9c).

use std::sync::OnceLock;

use super::char_at;
use crate::unicode::{SearchSet, property};

/// Classes of characters that the rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Cr,
    Lf,
    Control,
    Extend,
    Joiner,
    SpacingMark,
    Prepend,
    RegionalIndicator,
    HangulL,
    HangulV,
    HangulT,
    HangulLv,
    HangulLvt,
    Pictographic,
    Other,
}

const SETS: [(&str, Class); 13] = [
    ("gcb=Extend", Class::Extend),
    ("gcb=Control", Class::Control),
    ("gcb=ZWJ", Class::Joiner),
    ("gcb=SpacingMark", Class::SpacingMark),
    ("gcb=Prepend", Class::Prepend),
    ("gcb=Regional_Indicator", Class::RegionalIndicator),
    ("gcb=L", Class::HangulL),
    ("gcb=V", Class::HangulV),
    ("gcb=T", Class::HangulT),
    ("gcb=LV", Class::HangulLv),
    ("gcb=LVT", Class::HangulLvt),
    ("Extended_Pictographic", Class::Pictographic),
    ("gcb=CR", Class::Cr),
];

fn class_of(c: char) -> Class {
    static CLASSES: OnceLock<Vec<(SearchSet, Class)>> = OnceLock::new();
    match c {
        '\r' => return Class::Cr,
        '\n' => return Class::Lf,
        ' '..='~' => return Class::Other,
        _ => {}
    }
    let build = || {
        let set = |name| SearchSet::new(&property(name, false).unwrap_or_default());
        SETS.iter()
            .map(|(name, class)| (set(name), *class))
            .collect()
    };
    let classes = CLASSES.get_or_init(build);
    let found = classes.iter().find(|(set, _)| set.has(c));
    found.map_or(Class::Other, |(_, class)| *class)
}

/// Where the cluster that starts at `at`, before `limit`, ends.
pub(super) fn end(text: &[u8], at: usize, limit: usize) -> usize {
    let (c, len) = char_at(text, at);
    let mut before = class_of(c);
    let mut end = at + len;
    let mut indicators = usize::from(before == Class::RegionalIndicator);
    // Pictographic Extend* Joiner
    let mut pictograph = before == Class::Pictographic;
    while end < limit {
        let (c, len) = char_at(text, end);
        let next = class_of(c);
        if !joins(before, next, indicators, pictograph) {
            break;
        }
        indicators += usize::from(next == Class::RegionalIndicator);
        pictograph = next == Class::Pictographic
            || (pictograph && matches!(next, Class::Extend | Class::Joiner));
        before = next;
        end += len;
    }
    end
}

/// Whether there is no boundary between two characters.
fn joins(before: Class, next: Class, indicators: usize, pictograph: bool) -> bool {
    use Class::{
        Control, Cr, Extend, HangulL, HangulLv, HangulLvt, HangulT, HangulV, Joiner, Lf,
        Pictographic, Prepend, RegionalIndicator, SpacingMark,
    };
    match (before, next) {
        (Cr, Lf) => true,
        (Cr | Lf | Control, _) | (_, Cr | Lf | Control) => false,
        (HangulL, HangulL | HangulV | HangulLv | HangulLvt) => true,
        (HangulLv | HangulV, HangulV | HangulT) | (HangulLvt | HangulT, HangulT) => true,
        (_, Extend | Joiner | SpacingMark) | (Prepend, _) => true,
        (Joiner, Pictographic) => pictograph,
        (RegionalIndicator, RegionalIndicator) => indicators % 2 == 1,
        _ => false,
    }
}
