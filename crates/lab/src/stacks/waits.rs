//! What a server says of its own waits: Nfold's SHOW ENGINE NFOLD CONTENTION, elsewhere performance_schema's sums over the time looked at.

use std::collections::HashMap;

use crate::LabError;
use crate::client::Connection;
use crate::dsn::Dsn;

/// Latches and mutexes; not row locks, which are no synchronisation objects.
const LATCHES: &str = "'wait/synch/%'";
/// Rows of the answer.
const TOP: usize = 12;

/// Number of waits and picoseconds by name.
type Sums = HashMap<String, (u64, u64)>;

/// A look at a server's waits that has begun.
pub struct Waits {
    connection: Connection,
    kind: Kind,
}

enum Kind {
    Nfold,
    /// Sums before, and the instruments that were switched on for this.
    Schema {
        before: Sums,
        switched: Vec<String>,
    },
    /// One line that says why there is nothing.
    Nothing(String),
}

impl Waits {
    /// `instrument`: switch performance_schema's instruments of latches on until [`Self::end`].
    pub fn begin(dsn: &str, instrument: bool) -> Result<Waits, LabError> {
        let mut connection = Connection::open(&Dsn::open(dsn)?)?;
        let kind = match connection.query("SHOW ENGINE NFOLD CONTENTION") {
            Ok(_) => Kind::Nfold,
            Err(LabError::Server { .. }) => schema(&mut connection, instrument)?,
            Err(e) => return Err(e),
        };
        Ok(Waits { connection, kind })
    }

    /// Names of columns, then rows, the longest waits first; nothing where the server tells nothing.
    pub fn end(mut self) -> Result<Vec<Vec<String>>, LabError> {
        match self.kind {
            Kind::Nfold => {
                let result = self.connection.query("SHOW ENGINE NFOLD CONTENTION")?;
                let row = |i: usize| {
                    (0..result.columns.len())
                        .map(|c| result.text(i, c).unwrap_or_default())
                        .collect()
                };
                Ok(std::iter::once(result.columns.clone())
                    .chain((0..result.rows.len()).map(row))
                    .collect())
            }
            Kind::Schema { before, switched } => {
                let after = sums(&mut self.connection);
                for name in &switched {
                    switch(&mut self.connection, name, "NO")?;
                }
                Ok(difference(&before, &after?))
            }
            Kind::Nothing(why) => {
                eprintln!("nfold lab: {why}");
                Ok(Vec::new())
            }
        }
    }
}

fn schema(connection: &mut Connection, instrument: bool) -> Result<Kind, LabError> {
    let nothing = |why: &str| {
        Ok(Kind::Nothing(format!(
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
        Ok(before) => Ok(Kind::Schema { before, switched }),
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
    fn what_happened_meanwhile_longest_first() {
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
