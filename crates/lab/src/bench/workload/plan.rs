//! The plan of a connection: a few statements with placeholders for values, executed again and
//! again.
//!
//! # Picture
//! ```text
//! Plan ── Step "SELECT … WHERE a = ? AND b IN (?,?,?)" ── Fill::One(Group), Fill::List(3, Near)
//!                └ pieces around the `?`: a text is pieces and literals in turn; prepared, the text is the template
//! ```

use std::sync::Arc;

use super::rng::Rng;
use crate::client::drive::{Next, Source};
use crate::client::{Answer, Command, Param};

/// The sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The rows of each table.
    pub rows: u64,
    /// The number of distinct values of `items.group_id`. Five rows share one.
    pub groups: u64,
}

impl Size {
    pub fn of(rows: u64) -> Size {
        Size {
            rows,
            groups: (rows / 5).max(1),
        }
    }
}

/// A generated value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gen {
    /// A row's id, remembered for [`Gen::Last`].
    Id,
    /// The last id or state drawn, plus this number.
    Last(u64),
    Group,
    Country,
    /// 1 to 50, remembered for [`Gen::Last`].
    State,
    /// 1 to 2^31, like sysbench's `k`, and within the rows.
    Key,
    /// sysbench's `c` with 119 characters; its `pad` has 59.
    Long,
    Pad,
}

/// The distribution of the values of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    Uniform,
    /// Ascending values close to each other, as the application of 2011 used them.
    Near,
    Skewed,
    /// Every value occurs four times.
    Duplicates,
    /// Every tenth value is NULL, and every tenth is larger than all groups.
    Odd,
    /// Names of groups instead of their numbers.
    Names,
}

/// The values of consecutive placeholders of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    One(Gen),
    List(u32, Spread),
}

/// A statement with its placeholders.
#[derive(Debug, Clone)]
pub struct Step {
    template: String,
    pieces: Vec<String>,
    fills: Vec<Fill>,
}

impl Step {
    /// `template` contains one `?` per value.
    pub fn new(template: impl Into<String>, fills: &[Fill]) -> Step {
        let template = template.into();
        let pieces = template.split('?').map(str::to_owned).collect();
        Step {
            template,
            pieces,
            fills: fills.to_vec(),
        }
    }

    /// `head (?,?,…) tail` with a list of `n` placeholders.
    pub fn list(head: &str, n: u32, spread: Spread, tail: &str) -> Step {
        let marks = vec!["?"; n as usize].join(",");
        Step::new(format!("{head}({marks}){tail}"), &[Fill::List(n, spread)])
    }

    pub fn places(&self) -> usize {
        self.pieces.len() - 1
    }

    /// Whether it is a SELECT.
    pub fn reads(&self) -> bool {
        self.template.starts_with("SELECT ")
    }
}

/// The statements of one event.
#[derive(Debug, Clone)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// Whether BEGIN and COMMIT are among the steps, so that an error must be followed by a
    /// rollback.
    pub transaction: bool,
}

impl Plan {
    /// The number of placeholders of the longest statement.
    pub fn places(&self) -> usize {
        self.steps.iter().map(Step::places).max().unwrap_or(0)
    }

    /// The first statement with placeholders, with its list shortened for readers.
    pub fn example(&self) -> String {
        let step = self
            .steps
            .iter()
            .find(|s| s.places() > 0)
            .unwrap_or(&self.steps[0]);
        let n = step.places();
        match step.template.find("?,?,?,?,") {
            Some(at) => {
                let end = step.template.rfind(",?").map_or(at, |e| e + 2);
                format!(
                    "{}… {n} values …{}",
                    &step.template[..at],
                    &step.template[end..]
                )
            }
            None => step.template.clone(),
        }
    }
}

/// The source of one connection that executes a plan.
pub struct PlanSource {
    plan: Arc<Plan>,
    prepared: bool,
    size: Size,
    rng: Rng,
    step: usize,
    rollback: bool,
    last: u64,
    list: Vec<u64>,
}

impl PlanSource {
    pub fn new(plan: Arc<Plan>, prepared: bool, size: Size, seed: u64) -> PlanSource {
        PlanSource {
            plan,
            prepared,
            size,
            rng: Rng::new(seed),
            step: 0,
            rollback: false,
            last: 0,
            list: Vec::new(),
        }
    }

    fn one(&mut self, kind: Gen, out: &mut Out<'_>) {
        match kind {
            Gen::Id => {
                self.last = self.rng.up_to(self.size.rows);
                out.int(self.last);
            }
            Gen::Last(n) => out.int(self.last + n),
            Gen::Group => out.int(self.rng.up_to(self.size.groups)),
            Gen::Country => out.int(self.rng.up_to(super::people::COUNTRIES)),
            Gen::State => {
                self.last = self.rng.up_to(super::people::STATES);
                out.int(self.last);
            }
            Gen::Key => out.int(self.rng.up_to(self.size.rows)),
            Gen::Long => out.text(&super::sbtest::digits(&mut self.rng, 10)),
            Gen::Pad => out.text(&super::sbtest::digits(&mut self.rng, 5)),
        }
    }

    fn many(&mut self, n: u32, spread: Spread, out: &mut Out<'_>) {
        let (n, groups) = (u64::from(n), self.size.groups);
        if spread == Spread::Near {
            // Ascending steps of 1 to 4 from a random start.
            let mut at = self.rng.up_to(groups.saturating_sub(n * 5 / 2).max(1));
            for _ in 0..n {
                out.int(at.min(groups));
                at += self.rng.up_to(4);
            }
            return;
        }
        for i in 0..n {
            match spread {
                Spread::Skewed => out.int(self.rng.skewed(groups)),
                Spread::Odd if i % 10 == 3 => out.null(),
                Spread::Odd if i % 10 == 7 => out.int(groups + self.rng.up_to(1 << 40)),
                Spread::Duplicates => {
                    if i % 4 == 0 {
                        self.list.clear();
                        self.list.push(self.rng.up_to(groups));
                    }
                    out.int(self.list[0]);
                }
                Spread::Names => out.text(super::items::name(self.rng.up_to(groups)).as_bytes()),
                _ => out.int(self.rng.up_to(groups)),
            }
        }
    }
}

impl Source for PlanSource {
    fn next(&mut self, command: &mut Command) -> Next {
        if std::mem::take(&mut self.rollback) {
            command.text().extend_from_slice(b"ROLLBACK");
            return Next::Send;
        }
        let plan = self.plan.clone();
        let number = self.step;
        let step = &plan.steps[number];
        self.step = if number + 1 < plan.steps.len() {
            number + 1
        } else {
            0
        };
        // Preparing a statement without values has no benefit, and BEGIN cannot be prepared.
        let mut out = if self.prepared && step.places() > 0 {
            Out {
                pieces: &[],
                at: 0,
                text: None,
                values: Some(command.execute(number as u32)),
            }
        } else {
            let text = command.text();
            text.extend_from_slice(step.pieces[0].as_bytes());
            Out {
                pieces: &step.pieces,
                at: 1,
                text: Some(text),
                values: None,
            }
        };
        for fill in &step.fills {
            match *fill {
                Fill::One(kind) => self.one(kind, &mut out),
                Fill::List(n, spread) => self.many(n, spread, &mut out),
            }
        }
        command.more = self.step != 0;
        Next::Send
    }

    fn template(&self, id: u32) -> &str {
        &self.plan.steps[id as usize].template
    }

    fn answered(&mut self, answer: &Answer) {
        if answer.error.is_some() && self.plan.transaction {
            self.rollback = self.step != 0;
            self.step = 0;
        }
    }

    fn reconnected(&mut self) -> bool {
        // The server has rolled back the transaction.
        let restart = self.plan.transaction;
        if restart {
            (self.step, self.rollback) = (0, false);
        }
        !restart
    }
}

/// Receives values: into a text, where each is followed by the next piece, or into an execution.
struct Out<'a> {
    pieces: &'a [String],
    at: usize,
    text: Option<&'a mut Vec<u8>>,
    values: Option<&'a mut crate::client::Values>,
}

impl Out<'_> {
    #[inline]
    fn put(&mut self, literal: impl FnOnce(&mut Vec<u8>), value: Param<'_>) {
        if let Some(text) = &mut self.text {
            literal(text);
            text.extend_from_slice(self.pieces[self.at].as_bytes());
            self.at += 1;
        } else if let Some(values) = &mut self.values {
            values.push(value);
        }
    }

    #[inline]
    fn int(&mut self, v: u64) {
        self.put(
            |text| text.extend_from_slice(itoa::Buffer::new().format(v).as_bytes()),
            Param::Int(v as i64),
        );
    }

    fn null(&mut self) {
        self.put(|text| text.extend_from_slice(b"NULL"), Param::Null);
    }

    /// Adds a value without quotes or backslashes.
    fn text(&mut self, v: &[u8]) {
        let literal = |text: &mut Vec<u8>| {
            text.push(b'\'');
            text.extend_from_slice(v);
            text.push(b'\'');
        };
        self.put(literal, Param::Bytes(v));
    }
}
