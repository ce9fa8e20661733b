//! Replacement texts: `$1`, `${name}`, `\$`.

use crate::error::PatternError;
use crate::matcher::Search;
use crate::parse::scan::unescape;

/// Why a replacement cannot be filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaceError {
    /// There is no group of this number.
    NoSuchGroup,
    /// No group has this name, or there is none where one should stand.
    InvalidGroupName,
}

impl From<ReplaceError> for PatternError {
    fn from(e: ReplaceError) -> Self {
        match e {
            ReplaceError::NoSuchGroup => PatternError::InvalidBackReference,
            ReplaceError::InvalidGroupName => PatternError::InvalidGroupName,
        }
    }
}

/// Appends `replacement` to `out`, with the groups of the search's last match filled in.
pub fn expand(
    search: &Search<'_>,
    replacement: &[char],
    out: &mut String,
) -> Result<(), ReplaceError> {
    let mut at = 0;
    while let Some(&c) = replacement.get(at) {
        at += 1;
        match c {
            '\\' => {
                let Some(&escaped) = replacement.get(at) else {
                    break;
                };
                let unicode = matches!(escaped, 'u' | 'U');
                let code = unescape(replacement, at).filter(|_| unicode);
                if let Some((code, end)) = code {
                    // A lone surrogate is no character of the result.
                    out.push(char::from_u32(code).unwrap_or('?'));
                    at = end;
                } else {
                    out.push(escaped);
                    at += 1;
                }
            }
            '$' => {
                let (group, end) = group_at(search, replacement, at)?;
                at = end;
                if let Some((start, end)) = search.group(group) {
                    out.push_str(&search.text()[start..end]);
                }
            }
            c => out.push(c),
        }
    }
    Ok(())
}

/// The group with the number or name at index `at`, and the index after it.
fn group_at(
    search: &Search<'_>,
    replacement: &[char],
    at: usize,
) -> Result<(u32, usize), ReplaceError> {
    let digit = |at: usize| replacement.get(at).and_then(|c| c.to_digit(10));
    let groups = search.regexp().groups();
    let mut end = at;
    let mut group = 0;
    // Digits belong to the number while there is such a group.
    while let Some(d) = digit(end) {
        if group * 10 + d > groups {
            if end == at {
                return Err(ReplaceError::NoSuchGroup);
            }
            break;
        }
        group = group * 10 + d;
        end += 1;
    }
    if end > at {
        return Ok((group, end));
    }
    if replacement.get(at) != Some(&'{') {
        return Err(ReplaceError::InvalidGroupName);
    }
    let rest = &replacement[at + 1..];
    let len = rest.iter().position(|c| *c == '}');
    let name: String = rest[..len.unwrap_or(0)].iter().collect();
    // ICU knows no zero in names here.
    let group = search
        .regexp()
        .group_named(&name)
        .filter(|_| !name.contains('0'));
    let end = at + 2 + len.unwrap_or(0);
    Ok((group.ok_or(ReplaceError::InvalidGroupName)?, end))
}
