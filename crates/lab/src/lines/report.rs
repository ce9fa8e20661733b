//! Parses the output of `perf c2c report --stdio`.
//!
//! # Picture
//! ```text
//!            Shared Data Cache Line Table                     Shared Cache Line Distribution Pareto
//! # Index    Address …  Hitm … LclHitm RmtHitm …           #  Num  RmtHitm  LclHitm …    Offset …  Symbol  Object
//! # .....  .......... ......  ....... .......              # ....  .......  .......  ..........   ......  ......
//!       0  0x7f…0080  66.14%      252       0               --------- (a line of the table) ---------
//!                                                              0        0      252  0x7f…0080
//!                                                           --------- (its places) --------------
//!                                                                   0.00%   12.30%        0x20   [.] f    libx
//! ```
//! The columns depend on the version (6.0 added `Peer` and `Any Lvl`, and `-c` determines whether
//! there is a `Pid`). So each column is located by the row of dots and by the name above it.

use serde::Serialize;

/// A cache line that more than one processor uses.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Line {
    /// The address as printed by perf: `0x…`.
    pub address: String,
    /// Its share of all such loads, 0 to 1.
    pub share: f64,
    /// The samples of this line, and how many of them were loads and stores.
    pub records: u64,
    pub loads: u64,
    pub stores: u64,
    /// The loads that found the line modified in the cache of another processor: of the same
    /// socket, or of another one. On ARM (`peer`): in either.
    pub hitm_local: u64,
    pub hitm_remote: u64,
    pub peer: u64,
    pub places: Vec<AccessSite>,
}

/// An instruction that accesses some bytes of a line.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AccessSite {
    /// The offset from the line's beginning, `0x…`.
    pub offset: String,
    pub code: String,
    /// The function, without perf's `[.]`.
    pub symbol: String,
    /// The program or library.
    pub object: String,
    pub source: String,
    /// The shares of the line's loads that found it modified, and of its stores, 0 to 1.
    pub hitm: f64,
    pub stores: f64,
    pub records: u64,
    /// The number of processors on which it was sampled.
    pub processors: u64,
}

/// The positions and names of columns.
struct Columns(Vec<(String, usize, usize)>);

impl Columns {
    /// Derives the columns from the row of names and the row of dots below it.
    fn of(names: &str, dots: &str) -> Columns {
        let (names, dots): (Vec<char>, Vec<char>) =
            (names.chars().collect(), dots.chars().collect());
        let mut columns = Vec::new();
        let mut at = 0;
        while at < dots.len() {
            if dots[at] != '.' {
                at += 1;
                continue;
            }
            let end = (at..dots.len())
                .find(|i| dots[*i] != '.')
                .unwrap_or(dots.len());
            let name: String = names.iter().take(end).skip(at).collect();
            columns.push((name.trim().to_owned(), at, end));
            at = end;
        }
        Columns(columns)
    }

    /// The cell of the first column that has one of the names. A cell reaches from the end of its
    /// left neighbour to its own end, the last cell to the end of the line.
    fn cell(&self, line: &[char], names: &[&str]) -> Option<String> {
        let number = names
            .iter()
            .find_map(|name| self.0.iter().position(|(n, _, _)| n == name))?;
        let from = number.checked_sub(1).map_or(0, |left| self.0[left].2);
        let to = match self.0.get(number + 1) {
            Some(_) => self.0[number].2,
            None => line.len(),
        };
        let text: String = line.iter().take(to).skip(from).collect();
        Some(text.trim().to_owned())
    }

    fn number(&self, line: &[char], names: &[&str]) -> u64 {
        let cell = self.cell(line, names);
        cell.and_then(|c| c.parse().ok()).unwrap_or(0)
    }

    /// A percentage, as a share.
    fn share(&self, line: &[char], names: &[&str]) -> f64 {
        let cell = self.cell(line, names).unwrap_or_default();
        cell.trim_end_matches('%').parse().unwrap_or(0.0) / 100.0
    }
}

#[derive(PartialEq, Clone, Copy)]
enum Part {
    Before,
    Lines,
    Places,
}

/// All lines of a report in its order. `None` if it does not contain the tables.
pub fn read(report: &str) -> Option<Vec<Line>> {
    let (mut part, mut columns, mut names) = (Part::Before, Columns(Vec::new()), "");
    let mut lines: Vec<Line> = Vec::new();
    let mut current: Option<usize> = None;
    for text in report.lines() {
        if text.contains("Shared Data Cache Line Table") {
            part = Part::Lines;
        } else if text.contains("Shared Cache Line Distribution Pareto") {
            part = Part::Places;
        } else if let Some(head) = text.strip_prefix('#') {
            let head = head.trim();
            if !head.is_empty() && head.chars().all(|c| c == '.' || c == ' ') {
                columns = Columns::of(names, text);
            }
            names = text;
        } else if part != Part::Before && !text.trim().is_empty() {
            let row: Vec<char> = text.chars().collect();
            let rule = text.trim().chars().all(|c| c == '-' || c == '=');
            match part {
                _ if rule => {}
                Part::Lines => lines.extend(line(&columns, &row)),
                _ => match columns.cell(&row, &["Num"]).as_deref() {
                    Some(number) if number.parse::<u64>().is_ok() => {
                        let address = columns.cell(&row, &["Offset"]);
                        current = lines
                            .iter()
                            .position(|l| Some(&l.address) == address.as_ref());
                    }
                    _ => {
                        if let Some(line) = current.and_then(|at| lines.get_mut(at)) {
                            line.places.extend(place(&columns, &row));
                        }
                    }
                },
            }
        }
    }
    (part != Part::Before).then_some(lines)
}

fn line(columns: &Columns, row: &[char]) -> Option<Line> {
    let number = |names: &[&str]| columns.number(row, names);
    let address = columns.cell(row, &["Address"])?;
    address.starts_with("0x").then(|| {
        let peers = columns.0.iter().filter(|(n, _, _)| n == "Peer").count();
        Line {
            share: columns.share(row, if peers == 2 { &["Peer"] } else { &["Hitm"] }),
            records: number(&["records"]),
            loads: number(&["Loads"]),
            stores: number(&["Stores"]),
            hitm_local: number(&["LclHitm", "Lcl"]),
            hitm_remote: number(&["RmtHitm", "Rmt"]),
            peer: columns.last_number(row, "Peer"),
            address,
            places: Vec::new(),
        }
    })
}

fn place(columns: &Columns, row: &[char]) -> Option<AccessSite> {
    let cell = |names: &[&str]| columns.cell(row, names).unwrap_or_default();
    let share = |names: &[&str]| columns.share(row, names);
    let offset = cell(&["Offset"]);
    let symbol = cell(&["Symbol"]);
    // `[.]`, or `[k]` in the kernel.
    let symbol = match symbol.split_once("] ") {
        Some((kind, name)) if kind.starts_with('[') => name.trim().to_owned(),
        _ => symbol,
    };
    offset.starts_with("0x").then(|| AccessSite {
        code: cell(&["Code address"]),
        symbol,
        object: cell(&["Object"]),
        source: cell(&["Source:Line"]),
        hitm: [&["RmtHitm", "Rmt"][..], &["LclHitm", "Lcl"], &["Peer"]]
            .map(share)
            .into_iter()
            .fold(0.0, f64::max),
        stores: [&["L1 Hit"][..], &["L1 Miss"], &["N/A", "Any Lvl"]]
            .map(share)
            .into_iter()
            .fold(0.0, f64::max),
        records: columns.number(row, &["records"]),
        processors: columns.number(row, &["cnt"]),
        offset,
    })
}

impl Columns {
    /// The number in the last column of that name. If lines are ranked by `Peer`, the first such
    /// column is a share.
    fn last_number(&self, row: &[char], name: &str) -> u64 {
        let Some(number) = self.0.iter().rposition(|(n, _, _)| n == name) else {
            return 0;
        };
        let from = number.checked_sub(1).map_or(0, |left| self.0[left].2);
        let text: String = row.iter().take(self.0[number].2).skip(from).collect();
        text.trim().parse().unwrap_or(0)
    }
}
