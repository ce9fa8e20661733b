//! A profile by phase in the report, from the output of `stacks --json`.

use std::fmt::Write;
use std::path::Path;

use crate::LabError;
use crate::output::escape;
use crate::stacks::{Profile as Stacks, SCHEMA};

/// The profile of a server.
pub struct Profile {
    pub server: String,
    pub stacks: Stacks,
}

impl Profile {
    pub fn read(server: &str, path: &Path) -> Result<Profile, LabError> {
        let stacks: Stacks = crate::output::read(path, SCHEMA, "stacks --json")?;
        Ok(Profile {
            server: server.to_owned(),
            stacks,
        })
    }
}

/// Renders the server's own statistics of waits: column names, followed by rows.
pub fn contention(html: &mut String, table: &[Vec<String>]) {
    let Some((names, rows)) = table.split_first() else {
        return;
    };
    html.push_str("<h3>Waits, as the server counts them</h3>\n");
    if rows.is_empty() {
        html.push_str("<p class=\"dim\">None.</p>\n");
        return;
    }
    // Columns of numbers are right-aligned, as in the other tables.
    let numbers: Vec<bool> = (0..names.len())
        .map(|c| {
            let number = |row: &Vec<String>| row.get(c).is_none_or(|v| v.parse::<f64>().is_ok());
            rows.iter().all(number)
        })
        .collect();
    let class = |c: usize| match numbers.get(c) {
        Some(true) => "",
        _ => " class=\"l w\"",
    };
    html.push_str("<div class=\"scroll\"><table><thead><tr>");
    for (c, name) in names.iter().enumerate() {
        let _ = write!(html, "<th{}>{}</th>", class(c), escape(name));
    }
    html.push_str("</tr></thead>\n");
    for row in rows {
        html.push_str("<tr>");
        for (c, value) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}</td>", class(c), escape(value));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table></div>\n");
}
