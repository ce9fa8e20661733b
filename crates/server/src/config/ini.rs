//! Reads an option file in the format of my.cnf.
//!
//! Only the groups `[mysqld]`, `[server]` and `[nfold]` are used; the others are for other
//! programs. Comments begin with `#` or `;`. `!include FILE` and `!includedir DIR` are followed.
//! Source: MySQL manual, "Using Option Files".

use std::path::{Path, PathBuf};

/// One line `name = value` of a group that is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub file: PathBuf,
    /// The line number, from 1.
    pub number: usize,
    pub name: String,
    /// `None`: the name without a value.
    pub value: Option<String>,
}

/// A problem and its place, as one line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(pub String);

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// The maximum depth of `!include`.
const MAX_DEPTH: usize = 10;

/// Reads a file and the files that it includes, in order.
pub fn read(file: &Path) -> Result<Vec<Line>, ConfigError> {
    let mut lines = Vec::new();
    read_into(file, &mut lines, 0)?;
    Ok(lines)
}

fn read_into(file: &Path, lines: &mut Vec<Line>, depth: usize) -> Result<(), ConfigError> {
    if depth > MAX_DEPTH {
        return Err(ConfigError(format!(
            "{}: files include each other too deeply",
            file.display()
        )));
    }
    let text = std::fs::read_to_string(file).map_err(|e| {
        ConfigError(format!(
            "cannot read the option file {}: {e}",
            file.display()
        ))
    })?;
    let mut counts = false;
    for (i, raw) in text.lines().enumerate() {
        let line = raw.trim();
        let error = |what: &str| ConfigError(format!("{}:{}: {what}", file.display(), i + 1));
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(directive) = line.strip_prefix('!') {
            include(file, directive, lines, depth).map_err(|e| match e {
                None => error(&format!("unknown directive '!{directive}'")),
                Some(e) => e,
            })?;
        } else if let Some(group) = line.strip_prefix('[') {
            let group = group
                .split_once(']')
                .ok_or_else(|| error("a group has no ']'"))?
                .0;
            counts = matches!(
                group.trim().to_ascii_lowercase().as_str(),
                "mysqld" | "server" | "nfold" | "mysqld-8.4"
            );
        } else if counts {
            let (name, value) = match line.split_once('=') {
                Some((name, value)) => (name.trim(), Some(unquote(value).map_err(error)?)),
                None => (strip_comment(line).trim(), None),
            };
            if name.is_empty() {
                return Err(error("a value without a name"));
            }
            lines.push(Line {
                file: file.into(),
                number: i + 1,
                name: name.into(),
                value,
            });
        }
    }
    Ok(())
}

/// Handles `!include` and `!includedir`. `None`: another line.
fn include(
    file: &Path,
    directive: &str,
    lines: &mut Vec<Line>,
    depth: usize,
) -> Result<(), Option<ConfigError>> {
    let (word, target) = directive.split_once(char::is_whitespace).ok_or(None)?;
    let target = file.parent().unwrap_or(Path::new(".")).join(target.trim());
    match word {
        "include" => read_into(&target, lines, depth + 1).map_err(Some),
        "includedir" => {
            let entries = std::fs::read_dir(&target).map_err(|e| {
                Some(ConfigError(format!(
                    "cannot read the directory {}: {e}",
                    target.display()
                )))
            })?;
            let mut files: Vec<PathBuf> = entries
                .filter_map(|e| Some(e.ok()?.path()))
                .filter(|p| p.extension().is_some_and(|x| x == "cnf"))
                .collect();
            files.sort();
            files
                .iter()
                .try_for_each(|f| read_into(f, lines, depth + 1).map_err(Some))
        }
        _ => Err(None),
    }
}

fn strip_comment(s: &str) -> &str {
    s.split_once('#').map_or(s, |(s, _)| s)
}

/// Removes quotes and resolves `\n \t \r \b \s \\`.
fn unquote(value: &str) -> Result<String, &'static str> {
    let value = value.trim();
    let body = match value.chars().next() {
        Some(q @ ('\'' | '"')) => {
            let rest = &value[1..];
            let end = rest.find(q).ok_or("a quote is not closed")?;
            &rest[..end]
        }
        _ => strip_comment(value).trim_end(),
    };
    let mut out = String::with_capacity(body.len());
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('s') => out.push(' '),
            Some('\\') | None => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_comments_quotes_and_includes() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("my.cnf");
        std::fs::create_dir(dir.path().join("conf.d")).unwrap();
        std::fs::write(dir.path().join("conf.d/b.cnf"), "[mysqld]\nport=2\n").unwrap();
        std::fs::write(dir.path().join("conf.d/a.cnf"), "[mysqld]\nport=1\n").unwrap();
        std::fs::write(dir.path().join("conf.d/skip.txt"), "[mysqld]\nport=9\n").unwrap();
        std::fs::write(
            &main,
            "# c\n[client]\nuser=x\n[mysqld]\n; c\n max-connections = 10 # ten\nsocket='/tmp/a b#c'\nskip-name-resolve\nx=a\\sb\\q\n!includedir conf.d\n",
        )
        .unwrap();
        let lines = read(&main).unwrap();
        let flat: Vec<_> = lines
            .iter()
            .map(|l| (l.number, l.name.as_str(), l.value.as_deref()))
            .collect();
        assert_eq!(
            flat,
            [
                (6, "max-connections", Some("10")),
                (7, "socket", Some("/tmp/a b#c")),
                (8, "skip-name-resolve", None),
                (9, "x", Some("a b\\q")),
                (2, "port", Some("1")),
                (2, "port", Some("2")),
            ]
        );
    }

    #[test]
    fn errors_name_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("my.cnf");
        for (text, what) in [
            ("[mysqld\n", "my.cnf:1: a group has no ']'"),
            ("[mysqld]\n=5\n", "my.cnf:2: a value without a name"),
            ("[mysqld]\na='b\n", "my.cnf:2: a quote is not closed"),
            (
                "!frobnicate x\n",
                "my.cnf:1: unknown directive '!frobnicate x'",
            ),
            ("!include my.cnf\n", "too deeply"),
            ("!include gone.cnf\n", "gone.cnf"),
        ] {
            std::fs::write(&main, text).unwrap();
            let e = read(&main).unwrap_err().to_string();
            assert!(e.contains(what), "{e}");
        }
        assert!(read(&dir.path().join("none")).is_err());
    }
}
