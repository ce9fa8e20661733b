//! The search for a join order, by dynamic programming over sets of tables; beyond [`TABLES_MAX`]
//! tables by greedy steps (Selinger et al., "Access path selection in a relational database
//! management system"). Orders are linear: each table is joined to all tables before it, by index
//! lookups or by a hash table of its rows.
//!
//! # Picture
//! ```text
//!   {a} {b} {c}  ─▶  {a,b} {a,c} {b,c}  ─▶  {a,b,c}
//!   for each set: the cheapest order, its cost, its rows, and its last table
//! ```

use super::outer::OuterJoins;
use super::relation::Relation;
use super::trace::ConsideredPlans;
use crate::logical::trace::ConsideredPlan;
use crate::physical::JoinType;

/// Joins of more tables are ordered by greedy steps.
pub(super) const TABLES_MAX: usize = 10;

/// Costs that differ by at most this factor count as equal, in short statements and in statements
/// that lock rows.
const SIMILAR: f64 = 1.25;
const SHORT: f64 = 1_000.0;

/// The cost of passing a joined row to the next step.
const ROW: f64 = 0.03;

/// The minimum share of rows that an anti join is assumed to keep: the estimate counts matches, and
/// many of them may belong to a few outer rows.
const UNMATCHED_MIN: f64 = 0.1;

/// A table of a join order, and how it is joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Joined {
    pub table: usize,
    /// Whether it is joined by lookups that depend on the tables before it.
    pub lookup: bool,
    /// The cost of the lookup for one outer row, if lookups are possible, and the cost of building
    /// the hash table, if it fits into memory.
    pub lookup_cost: Option<f64>,
    pub build_cost: Option<f64>,
    /// The rows that enter the hash table; 0: their number is unknown.
    pub hashed: f64,
}

impl Joined {
    /// The first table of an order.
    pub fn first(table: usize) -> Joined {
        Joined {
            table,
            lookup: false,
            lookup_cost: None,
            build_cost: None,
            hashed: 0.0,
        }
    }
}

/// The cheapest order of a set of tables.
#[derive(Debug, Clone, Copy)]
struct CheapestOrder {
    startup: f64,
    cost: f64,
    last: Joined,
}

/// The inputs of the search.
pub(super) struct JoinSearch<'s> {
    pub relations: &'s [Relation],
    pub outer: &'s OuterJoins,
    /// For each table: the tables that its rows are computed from (a JSON_TABLE, or a LATERAL
    /// derived table), which must be placed before it.
    pub sources: &'s [u64],
    /// Whether rows are locked, so that lookups are preferred: they read no more rows than
    /// necessary.
    pub lookups: bool,
    /// The share of the joined rows that is read before LIMIT ends the query.
    pub share: f64,
    /// Collects the orders that are compared, for the optimizer trace.
    pub trace: Option<&'s ConsideredPlans>,
}

/// A join order with its estimates.
#[derive(Debug, Clone)]
pub(super) struct JoinOrder {
    pub steps: Vec<Joined>,
    pub cost: f64,
    pub rows: f64,
}

impl JoinSearch<'_> {
    /// The cheapest order, which begins with `first` if that is given. Otherwise the order as
    /// written is preferred if it costs about as little.
    pub fn cheapest(&self, first: Option<usize>) -> JoinOrder {
        let cheapest = match self.relations.len() <= TABLES_MAX {
            true => self.by_sets(first),
            false => self.by_steps(first),
        };
        if first.is_some() {
            return cheapest;
        }
        let written = self.as_written();
        let similar = written.cost <= cheapest.cost * SIMILAR;
        match similar && (self.lookups || cheapest.cost < SHORT) {
            true => written,
            false => cheapest,
        }
    }

    /// The cost by which orders are compared: that of the share of rows that is read.
    fn weight(&self, best: &CheapestOrder) -> f64 {
        best.startup + (best.cost - best.startup) * self.share
    }

    /// The tables that may follow a set.
    fn next(&self, placed: u64, first: Option<usize>) -> impl Iterator<Item = usize> {
        let wanted = first.filter(|_| placed == 0);
        (0..self.relations.len()).filter(move |&t| {
            placed >> t & 1 == 0
                && wanted.is_none_or(|first| first == t)
                && self.outer.may_place(t, placed)
                && self.sources[t] & !placed == 0
        })
    }

    /// Joins table `t` to the best order of `placed`, whose result is `rows` rows.
    fn extend(
        &self,
        best: Option<&CheapestOrder>,
        rows: f64,
        placed: u64,
        t: usize,
    ) -> CheapestOrder {
        let relation = &self.relations[t];
        let Some(best) = best else {
            return CheapestOrder {
                startup: 0.0,
                cost: relation.scan_cost,
                last: Joined::first(t),
            };
        };
        let joined = relation
            .joins(rows, placed, self.lookups)
            .map(|join| CheapestOrder {
                startup: best.startup + join.startup,
                cost: best.cost + join.total + rows * ROW,
                last: Joined {
                    table: t,
                    lookup: join.lookup,
                    lookup_cost: join.lookup_cost,
                    build_cost: join.build_cost,
                    hashed: relation.known_hashed(),
                },
            });
        let weight =
            |a: &CheapestOrder, b: &CheapestOrder| self.weight(a).total_cmp(&self.weight(b));
        joined.min_by(weight).unwrap_or(*best)
    }

    /// The number of rows after one more table is joined, and whether a unique key guarantees it.
    fn joined_rows(&self, rows: f64, placed: u64, t: usize) -> (f64, bool) {
        let relation = &self.relations[t];
        if placed == 0 {
            return (relation.passing, true);
        }
        let (matches, exact) = relation.matches(placed);
        match relation.kind {
            JoinType::Inner => (rows * matches, exact),
            JoinType::Left => (rows * matches.max(1.0), exact),
            JoinType::Semi => (rows * matches.min(1.0), false),
            JoinType::Anti => (rows * (1.0 - matches).max(UNMATCHED_MIN), false),
        }
    }

    fn by_sets(&self, first: Option<usize>) -> JoinOrder {
        let n = self.relations.len();
        let count = 1usize << n;
        let mut best: Vec<Option<CheapestOrder>> = vec![None; count];
        // The rows of each set: as a unique key guarantees, otherwise the smallest estimate.
        let mut rows: Vec<(f64, bool)> = vec![(f64::MAX, false); count];
        rows[0] = (1.0, true);
        for set in 0..count - 1 {
            if set > 0 && best[set].is_none() {
                continue;
            }
            for t in self.next(set as u64, first) {
                let next = set | 1 << t;
                let (more, exact) = self.joined_rows(rows[set].0, set as u64, t);
                if exact && !rows[next].1 || exact == rows[next].1 && more < rows[next].0 {
                    rows[next] = (more, exact);
                }
                let found = self.extend(best[set].as_ref(), rows[set].0, set as u64, t);
                let better = |old: &CheapestOrder| self.weight(&found) < self.weight(old);
                let chosen = best[next].as_ref().is_none_or(better);
                if let Some(trace) = self.trace {
                    let prefix = steps_of(&best, set).iter().map(|step| step.table).collect();
                    let plan = self.considered(prefix, (rows[set].0, more), &found, chosen);
                    trace.borrow_mut().push(plan);
                }
                if chosen {
                    best[next] = Some(found);
                }
            }
        }
        JoinOrder {
            steps: steps_of(&best, count - 1),
            cost: best[count - 1]
                .as_ref()
                .map_or(f64::MAX, |b| self.weight(b)),
            rows: rows[count - 1].0,
        }
    }

    /// Greedy search: each step takes the table that leaves the fewest rows, and of these the
    /// cheapest.
    fn by_steps(&self, first: Option<usize>) -> JoinOrder {
        let mut steps = Vec::with_capacity(self.relations.len());
        let (mut placed, mut rows) = (0u64, 1.0);
        let mut best: Option<CheapestOrder> = None;
        loop {
            let choices = self.next(placed, first).map(|t| {
                let found = self.extend(best.as_ref(), rows, placed, t);
                let (after, _) = self.joined_rows(rows, placed, t);
                let before = best.as_ref().map_or(0.0, |b| b.cost);
                (found.cost - before + after * GREEDY_ROW_COST, after, found)
            });
            let Some((_, after, found)) = choices.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                break;
            };
            self.trace_step(&steps, (rows, after), &found);
            placed |= 1 << found.last.table;
            rows = after;
            steps.push(found.last);
            best = Some(found);
        }
        JoinOrder {
            steps,
            cost: best.map_or(0.0, |b| self.weight(&b)),
            rows,
        }
    }

    /// Records a step that has no alternative.
    fn trace_step(&self, steps: &[Joined], rows: (f64, f64), found: &CheapestOrder) {
        if let Some(trace) = self.trace {
            let prefix = steps.iter().map(|step| step.table).collect();
            let plan = self.considered(prefix, rows, found, true);
            trace.borrow_mut().push(plan);
        }
    }

    /// The record of an order that ends with `found.last`. `rows`: of the tables before it, and
    /// with it.
    fn considered(
        &self,
        prefix: Vec<usize>,
        (before, rows): (f64, f64),
        found: &CheapestOrder,
        chosen: bool,
    ) -> ConsideredPlan {
        let table = found.last.table;
        let relation = &self.relations[table];
        let placed = prefix.iter().fold(0, |set, t| set | 1 << t);
        let ways = match placed {
            0 => vec![("scan", relation.scan_cost)],
            _ => relation
                .joins(before, placed, self.lookups)
                .map(|way| (if way.lookup { "lookup" } else { "hash" }, way.total))
                .collect(),
        };
        ConsideredPlan {
            prefix,
            table,
            ways,
            rows,
            cost: found.cost,
            chosen,
        }
    }

    /// The order as written, as far as outer joins allow it.
    pub fn as_written(&self) -> JoinOrder {
        let mut steps = Vec::with_capacity(self.relations.len());
        let (mut placed, mut rows) = (0u64, 1.0);
        let mut best: Option<CheapestOrder> = None;
        while let Some(t) = self.next(placed, None).next() {
            let found = self.extend(best.as_ref(), rows, placed, t);
            let after = self.joined_rows(rows, placed, t).0;
            self.trace_step(&steps, (rows, after), &found);
            rows = after;
            placed |= 1 << t;
            steps.push(found.last);
            best = Some(found);
        }
        JoinOrder {
            steps,
            cost: best.map_or(0.0, |b| self.weight(&b)),
            rows,
        }
    }
}

/// The steps of the best order of a set.
fn steps_of(best: &[Option<CheapestOrder>], mut set: usize) -> Vec<Joined> {
    let mut steps = Vec::new();
    while let Some(at) = &best[set] {
        steps.push(at.last);
        set &= !(1 << at.last.table);
    }
    steps.reverse();
    steps
}

/// The assumed cost of a row in later steps, for the greedy search.
const GREEDY_ROW_COST: f64 = 0.5;
