//! Reads the password from an option file in the format of my.cnf: the last one in the groups
//! `[client]` and `[nfold-lab]`.

use std::path::Path;

use crate::LabError;

/// The password, or `None` if neither group contains one.
pub fn password(file: &Path) -> Result<Option<String>, LabError> {
    let text =
        std::fs::read(file).map_err(LabError::io(format!("cannot read {}", file.display())))?;
    let text = String::from_utf8_lossy(&text);
    let (mut ours, mut found) = (false, None);
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[') {
            let group = group.trim_end_matches(']').trim();
            ours = matches!(group, "client" | "nfold-lab");
            continue;
        }
        if let Some((key, value)) = line.split_once('=')
            && ours
            && matches!(key.trim(), "password" | "loose-password")
        {
            found = Some(unquoted(value.trim()));
        }
    }
    Ok(found)
}

fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote)
            && let Some(inner) = inner.strip_suffix(quote)
        {
            return inner.into();
        }
    }
    // An unquoted value ends at a comment.
    value
        .split(" #")
        .next()
        .unwrap_or_default()
        .trim_end()
        .into()
}
