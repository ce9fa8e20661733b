//! The built-in workloads: names, tables, plans.
//!
//! A name is `FAMILY_SHAPE`, optionally followed by `:prepared` and `:trx` (BEGIN and COMMIT around
//! it): `in_list_200:prepared`, `read_pk_point:trx`. A group name (`in-list`, `keys`, `2007`,
//! `sysbench`, `all`) means all its workloads. `NAME_text` and `NAME_ps` are the names in
//! `bench/README.md` for `NAME` and `NAME:prepared`. The group `published` is the table of
//! docs/performance.md.

mod items;
mod names;
mod people;
mod plan;
mod rng;
mod sbtest;

use std::sync::Arc;

pub use names::parse;
pub use plan::{Plan, PlanSource, Size};
pub use rng::Rng;

use crate::client::drive::Source;
use plan::{Gen, Spread};

/// The most values of a prepared execution. The protocol counts them in two bytes.
const MOST_VALUES: usize = 65_535;

/// A table that workloads read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    Items,
    ItemsNamed,
    People,
    Sbtest,
}

impl Table {
    pub fn name(self) -> &'static str {
        match self {
            Table::Items => "items",
            Table::ItemsNamed => "items_named",
            Table::People => "people",
            Table::Sbtest => "sbtest1",
        }
    }

    pub fn create(self) -> &'static str {
        match self {
            Table::Items => items::CREATE,
            Table::ItemsNamed => items::CREATE_NAMED,
            Table::People => people::CREATE,
            Table::Sbtest => sbtest::CREATE,
        }
    }

    /// Appends `(…)` with the values of row `id` (from 1), which depend only on the id and the
    /// size.
    pub fn row(self, out: &mut Vec<u8>, id: u64, size: Size) {
        match self {
            Table::Items => items::row(out, id, size.groups),
            Table::ItemsNamed => items::row_named(out, id, size.groups),
            Table::People => people::row(out, id),
            Table::Sbtest => sbtest::row(out, id, size.rows),
        }
    }
}

/// A requested workload.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The name with its `:prepared` and `:trx`.
    pub name: String,
    pub about: &'static str,
    pub table: Table,
    pub prepared: bool,
    plan: Arc<Plan>,
    /// The plan of every eighth connection, instead of `plan`.
    writer: Option<Arc<Plan>>,
}

impl Workload {
    /// The source of connection `number` out of `of`. Each window has its own `seed`.
    pub fn source(&self, number: usize, of: usize, size: Size, seed: u64) -> Box<dyn Source> {
        let writes = of > 1 && (number % 8 == 7 || (of < 8 && number == of - 1));
        let plan = match &self.writer {
            Some(writer) if writes => writer,
            _ => &self.plan,
        };
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
        Box::new(PlanSource::new(plan.clone(), self.prepared, size, seed))
    }

    /// Whether the floor server, which answers everything with one row, is comparable: plain reads
    /// of a few rows by one or two values.
    pub fn fits_the_floor(&self) -> bool {
        let few = matches!(self.table, Table::Items | Table::Sbtest) && self.plan.places() <= 2;
        let reads = self.plan.steps.iter().all(|s| s.reads());
        few && reads && !self.plan.transaction && self.writer.is_none()
    }

    /// A readable statement of the workload.
    pub fn example(&self) -> String {
        self.plan.example()
    }
}

/// (Name, group, description, table, plan, writers beside it).
type Entry = (
    &'static str,
    &'static str,
    &'static str,
    Table,
    Plan,
    Option<Plan>,
);

fn all() -> Vec<Entry> {
    let list = |n, spread| items::in_list(n, spread);
    let item = |name, about, plan| (name, "in-list", about, Table::Items, plan, None);
    let mut all = vec![
        item(
            "in_list_20",
            "full rows of 20 ids, uniform",
            list(20, Spread::Uniform),
        ),
        item("in_list_100", "of 100 ids", list(100, Spread::Uniform)),
        item(
            "in_list_199",
            "of 199 ids: below eq_range_index_dive_limit",
            list(199, Spread::Uniform),
        ),
        item(
            "in_list_200",
            "of 200 ids: the statement of 2011",
            list(200, Spread::Uniform),
        ),
        item("in_list_201", "of 201 ids", list(201, Spread::Uniform)),
        item("in_list_2100", "of 2,100 ids", list(2100, Spread::Uniform)),
        item(
            "in_list_90000",
            "of 90,000 ids",
            list(90_000, Spread::Uniform),
        ),
        item(
            "in_list_near",
            "200 ids close to each other and rising, as in 2011",
            list(200, Spread::Near),
        ),
        item(
            "in_list_skewed",
            "200 ids, few of them far more often",
            list(200, Spread::Skewed),
        ),
        item(
            "in_list_duplicates",
            "200 values, 50 of them different",
            list(200, Spread::Duplicates),
        ),
        item(
            "in_list_odd",
            "200 values: NULLs and out-of-range ones among them",
            list(200, Spread::Odd),
        ),
        item(
            "in_list_rows",
            "200 row constructors",
            items::in_list_rows(),
        ),
        item(
            "not_in_list",
            "100 rows by primary key, of groups that are not listed",
            items::not_in_list(),
        ),
        item(
            "in_list_order",
            "the 20 newest rows of 200 ids",
            items::in_list_order(),
        ),
        (
            "in_list_names",
            "in-list",
            "200 strings under a collation",
            Table::ItemsNamed,
            items::in_list_names(),
            None,
        ),
        (
            "in_list_writers",
            "in-list",
            "in_list_200; every eighth client updates",
            Table::Items,
            list(200, Spread::Uniform),
            Some(items::writer()),
        ),
    ];
    for (name, about, sql, kind) in [
        (
            "pk_point",
            "one column by primary key",
            "SELECT title FROM items WHERE id=? LIMIT 1",
            Gen::Id,
        ),
        (
            "key_point",
            "five rows by a secondary key",
            "SELECT title, owner FROM items WHERE group_id=?",
            Gen::Group,
        ),
        (
            "key_point_limit",
            "the first of them",
            "SELECT title, owner FROM items WHERE group_id=? LIMIT 1",
            Gen::Group,
        ),
        (
            "key_point_no_data",
            "the key alone",
            "SELECT deleted FROM items WHERE group_id=?",
            Gen::Group,
        ),
        (
            "pk_range_limit",
            "20 adjacent rows",
            "SELECT title, owner FROM items WHERE id>=? LIMIT 20",
            Gen::Id,
        ),
    ] {
        all.push((
            name,
            "keys",
            about,
            Table::Items,
            items::point(sql, kind),
            None,
        ));
    }
    for shape in &people::SHAPES {
        all.push((
            shape.0,
            "2007",
            "a read of the comparison of 2007",
            Table::People,
            people::plan(shape),
            None,
        ));
    }
    for (name, about, plan) in sbtest::families() {
        all.push((name, "sysbench", about, Table::Sbtest, plan, None));
    }
    all
}

/// A table of all workloads.
pub fn list() -> String {
    let mut out = String::from(
        "Names take :prepared and :trx; a group's name stands for all of its workloads, `all` for all,\n\
         `published` for those of Nfold's published table. NAME_ps is NAME:prepared, NAME_text is NAME (in_list: in_list_200).\n",
    );
    let mut last = "";
    for (name, group, about, _, plan, _) in all() {
        if group != last {
            out.push_str(&format!("\n{group}\n"));
            last = group;
        }
        let first = if plan.steps.len() == 1 {
            plan.example()
        } else {
            format!("{} statements, as {}", plan.steps.len(), plan.example())
        };
        let first = crate::digest::table::shortened(&first, 120);
        out.push_str(&format!("  {name:<30} {about}\n  {:<30} {first}\n", ""));
    }
    out
}

#[cfg(test)]
mod tests;
