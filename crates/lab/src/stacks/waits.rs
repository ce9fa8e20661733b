//! A server's own statistics of its waits: Nfold's SHOW ENGINE NFOLD CONTENTION, or the differences
//! of performance_schema's sums.

use std::collections::HashMap;

use crate::LabError;
use crate::client::{Connection, ResultSet};
use crate::dsn::Dsn;

/// Latches and mutexes. Row locks are not synchronization objects and so not included.
const LATCHES: &str = "'wait/synch/%'";
/// The most rows of the result.
const TOP: usize = 12;

/// (Number of waits, picoseconds) by name.
type Sums = HashMap<String, (u64, u64)>;

/// A started measurement of a server's waits.
pub struct Waits {
    connection: Connection,
    kind: WaitStatistics,
}

enum WaitStatistics {
    /// The wait sites at the start.
    Nfold(ResultSet),
    /// The sums at the start, and the instruments that were enabled for this measurement.
    Schema { before: Sums, switched: Vec<String> },
    /// A line that says why there are no statistics.
    Nothing(String),
}

impl Waits {
    /// `instrument`: enable performance_schema's instruments of latches until [`Self::end`].
    pub fn begin(dsn: &str, instrument: bool) -> Result<Waits, LabError> {
        let mut connection = Connection::open(&Dsn::open(dsn)?)?;
        let kind = match connection.query("SHOW ENGINE NFOLD CONTENTION") {
            Ok(before) => WaitStatistics::Nfold(before),
            Err(LabError::Server { .. }) => schema(&mut connection, instrument)?,
            Err(e) => return Err(e),
        };
        Ok(Waits { connection, kind })
    }

    /// The column names, followed by rows with the longest waits first. Empty if the server has no
    /// statistics.
    pub fn end(mut self) -> Result<Vec<Vec<String>>, LabError> {
        match self.kind {
            WaitStatistics::Nfold(before) => {
                let after = self.connection.query("SHOW ENGINE NFOLD CONTENTION")?;
                Ok(sites(&before, &after))
            }
            WaitStatistics::Schema { before, switched } => {
                let after = sums(&mut self.connection);
                for name in &switched {
                    switch(&mut self.connection, name, "NO")?;
                }
                Ok(difference(&before, &after?))
            }
            WaitStatistics::Nothing(why) => {
                eprintln!("nfold lab: {why}");
                Ok(Vec::new())
            }
        }
    }
}

/// Nfold's wait sites with waits since the start: its columns, with `Waits` and `Total_us` as
/// differences, longest first.
fn sites(before: &ResultSet, after: &ResultSet) -> Vec<Vec<String>> {
    let rows = |set: &ResultSet| -> Vec<Vec<String>> {
        (0..set.rows.len())
            .map(|i| {
                (0..set.columns.len())
                    .map(|c| set.text(i, c).unwrap_or_default())
                    .collect()
            })
            .collect()
    };
    let at = |name: &str| after.columns.iter().position(|c| c == name);
    let (Some(waits), Some(total)) = (at("Waits"), at("Total_us")) else {
        return std::iter::once(after.columns.clone())
            .chain(rows(after))
            .collect();
    };
    // The columns before the numbers identify the site.
    let known = waits.min(total);
    let before: HashMap<Vec<String>, Vec<String>> = rows(before)
        .into_iter()
        .map(|row| (row[..known.min(row.len())].to_vec(), row))
        .collect();
    let number = |row: &[String], c: usize| row.get(c).and_then(|v| v.parse::<u64>().ok());
    let mut met: Vec<(u64, Vec<String>)> = Vec::new();
    for mut row in rows(after) {
        let old = before.get(&row[..known]).map_or(&[][..], |old| old);
        let less = |c| {
            let (now, then) = (number(&row, c), number(old, c));
            now.unwrap_or(0).saturating_sub(then.unwrap_or(0))
        };
        let (count, us) = (less(waits), less(total));
        if count > 0 {
            (row[waits], row[total]) = (count.to_string(), us.to_string());
            met.push((us, row));
        }
    }
    met.sort_by_key(|(us, _)| std::cmp::Reverse(*us));
    std::iter::once(after.columns.clone())
        .chain(met.into_iter().take(TOP).map(|(_, row)| row))
        .collect()
}

fn schema(connection: &mut Connection, instrument: bool) -> Result<WaitStatistics, LabError> {
    let nothing = |why: &str| {
        Ok(WaitStatistics::Nothing(format!(
            "the server says nothing of its waits: {why}"
        )))
    };
    match connection.value("SELECT @@performance_schema") {
        Ok(Some(on)) if on == "1" => {}
        Ok(_) | Err(LabError::Server { .. }) => return nothing("performance_schema is off"),
        Err(e) => return Err(e),
    }
    let mut switched: Vec<String> = Vec::new();
    if instrument {
        let off = format!(
            "SELECT NAME FROM performance_schema.setup_instruments WHERE NAME LIKE {LATCHES} AND (ENABLED = 'NO' OR TIMED = 'NO')"
        );
        let off = match connection.query(&off) {
            Ok(result) => result,
            Err(LabError::Server { code, message }) => {
                return nothing(&format!("{code}: {message}"));
            }
            Err(e) => return Err(e),
        };
        for i in 0..off.rows.len() {
            let name = off.text(i, 0).unwrap_or_default();
            if let Err(e) = switch(connection, &name, "YES") {
                for done in &switched {
                    switch(connection, done, "NO")?;
                }
                return nothing(&e.to_string());
            }
            switched.push(name);
        }
    }
    match sums(connection) {
        Ok(before) => Ok(WaitStatistics::Schema { before, switched }),
        Err(LabError::Server { code, message }) => nothing(&format!("{code}: {message}")),
        Err(e) => Err(e),
    }
}

fn switch(connection: &mut Connection, name: &str, to: &str) -> Result<(), LabError> {
    let name = name.replace('\\', "\\\\").replace('\'', "''");
    let text = format!(
        "UPDATE performance_schema.setup_instruments SET ENABLED = '{to}', TIMED = '{to}' WHERE NAME = '{name}'"
    );
    connection.query(&text).map(|_| ())
}

fn sums(connection: &mut Connection) -> Result<Sums, LabError> {
    let text = format!(
        "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name \
         WHERE EVENT_NAME LIKE {LATCHES} AND EVENT_NAME NOT LIKE 'wait/synch/cond/%'"
    );
    let result = connection.query(&text)?;
    let number = |i, c| result.text(i, c).and_then(|v| v.parse().ok()).unwrap_or(0);
    Ok((0..result.rows.len())
        .map(|i| {
            (
                result.text(i, 0).unwrap_or_default(),
                (number(i, 1), number(i, 2)),
            )
        })
        .collect())
}

fn difference(before: &Sums, after: &Sums) -> Vec<Vec<String>> {
    let mut rows: Vec<(&String, u64, u64)> = after
        .iter()
        .map(|(name, (count, time))| {
            let (c, t) = before.get(name).copied().unwrap_or_default();
            (name, count.saturating_sub(c), time.saturating_sub(t))
        })
        .filter(|(_, count, _)| *count > 0)
        .collect();
    rows.sort_by(|a, b| (b.2, a.0).cmp(&(a.2, b.0)));
    let head = ["wait", "count", "seconds"].map(str::to_owned).to_vec();
    let rows = rows.into_iter().take(TOP).map(|(name, count, time)| {
        vec![
            name.clone(),
            count.to_string(),
            format!("{:.3}", time as f64 / 1e12),
        ]
    });
    std::iter::once(head).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_of_nfold_are_differences() {
        let set = |rows: &[[&str; 5]]| ResultSet {
            columns: ["Wait", "Table_name", "Waits", "Total_us", "Waiting_now"]
                .map(str::to_owned)
                .to_vec(),
            rows: rows
                .iter()
                .map(|row| row.iter().map(|v| Some(v.as_bytes().to_vec())).collect())
                .collect(),
            affected_rows: 0,
        };
        let before = set(&[["page", "a", "10", "100", ""], ["page", "b", "7", "9", ""]]);
        let after = set(&[
            ["page", "b", "7", "9", ""],
            ["page", "a", "12", "150", "5"],
            ["log", "", "3", "80", ""],
        ]);
        let rows = sites(&before, &after);
        assert_eq!(rows[0][2], "Waits");
        assert_eq!(
            rows[1..],
            [["log", "", "3", "80", ""], ["page", "a", "2", "50", "5"]]
        );
        // An unknown layout is shown unchanged.
        let other = ResultSet {
            columns: vec!["x".into()],
            rows: vec![vec![None]],
            affected_rows: 0,
        };
        assert_eq!(sites(&other, &other), [["x"], [""]]);
    }

    #[test]
    fn differences_are_sorted_by_time() {
        let before = Sums::from([("a".into(), (10, 1_000)), ("b".into(), (1, 1))]);
        let after = Sums::from([
            ("a".into(), (12, 2_000_000_001_000)),
            ("b".into(), (1, 1)),
            ("c".into(), (5, 3_000_000_000_000)),
        ]);
        let rows = difference(&before, &after);
        assert_eq!(rows[1], ["c", "5", "3.000"]);
        assert_eq!(rows[2], ["a", "2", "2.000"]);
        assert_eq!(rows.len(), 3);
    }
}
