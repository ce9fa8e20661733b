//! The operators of a block's join steps.

use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::query::{
    Access, AccessKind, HASH_BUILD_COST, HASH_PROBE_COST, HashKey, JoinStep, JoinType, LOOKUP_COST,
    PointPart, TableSource,
};
use nfold_sql::ast::BinaryOp;

use super::json::Json;
use super::node::{Estimate, Node, readable};
use super::tree::BlockCx;
use crate::expr::eval::Scope;
use crate::operators::step::stops_early;
use crate::runtime::profile::Stage;

/// The planner's estimate of the rows of a hash join counts this share of its hash table.
const HASHED_SHARE: f64 = 10.0;
/// The planner's cost of testing the conditions of a candidate row, in microseconds.
const CANDIDATE_COST: f64 = 0.08;

/// How a step finds the rows for the rows before it.
#[derive(Clone, Copy, PartialEq)]
enum Algorithm {
    NestedLoop,
    /// Lookups for many outer rows by one read.
    Batched,
    Hash,
}

impl BlockCx<'_> {
    /// The operators of all steps.
    pub fn joins(&self) -> Node {
        let b = self.block;
        // The outer sides of the nested outer joins that have begun, each with the conditions of
        // the join.
        let mut outer: Vec<Node> = Vec::new();
        let mut left: Option<Node> = None;
        for (position, step) in b.joins.iter().enumerate() {
            left = Some(match left {
                None => self.first_step(step),
                Some(left) => {
                    let begins = step.nested_join.as_ref().is_some_and(|join| join.begins);
                    match begins {
                        true => {
                            outer.push(left);
                            self.inner_side(step, position)
                        }
                        false => self.join(left, step, position),
                    }
                }
            });
            let ends = step.nested_join.iter().flat_map(|join| &join.ends);
            for end in ends {
                if let (Some(inner), Some(before)) = (left.take(), outer.pop()) {
                    let on: Vec<&Expr> = end.on.iter().collect();
                    let inner = self.filter(inner, &on, 100.0, Scope::Tables(b));
                    let joined = nested_loop(before, inner, "left join", Algorithm::NestedLoop);
                    left = Some(joined.measured(self.measured(Stage::Join(position))));
                }
            }
            if step.nested_join.is_some()
                && let Some(joined) = left.take()
            {
                let conditions: Vec<&Expr> = step.filter.iter().collect();
                left = Some(self.filter(joined, &conditions, 100.0, Scope::Tables(b)));
            }
        }
        left.unwrap_or_else(|| Node::new("Rows fetched before execution"))
    }

    fn first_step(&self, step: &JoinStep) -> Node {
        let node = self.table(step, &step.access, step.rows, Stage::Read(0));
        let conditions: Vec<&Expr> = step.filter.iter().collect();
        if conditions.is_empty() {
            return node.measured(self.measured(Stage::Join(0)));
        }
        let scope = Scope::Tables(self.block);
        let node = self.filter(node, &conditions, step.filtered, scope);
        node.measured(self.measured(Stage::Join(0)))
    }

    /// The first table of the inner side of a nested outer join, which is read for each outer row.
    fn inner_side(&self, step: &JoinStep, position: usize) -> Node {
        let node = self.table(step, lookups(step), step.rows, Stage::Read(position));
        let conditions: Vec<&Expr> = step.on.iter().collect();
        self.filter(node, &conditions, step.filtered, Scope::Tables(self.block))
    }

    fn join(&self, left: Node, step: &JoinStep, position: usize) -> Node {
        let scope = Scope::Tables(self.block);
        let outer = step.kind != JoinType::Inner;
        let word = match step.kind {
            JoinType::Inner => "inner join",
            JoinType::Left => "left join",
            JoinType::Semi => "semijoin",
            JoinType::Anti => "antijoin",
        };
        let measured = self.measured(Stage::Join(position));
        let (matching, after): (Vec<&Expr>, Vec<&Expr>) = match outer {
            true => (step.on.iter().collect(), step.filter.iter().collect()),
            false => (step.on.iter().chain(&step.filter).collect(), Vec::new()),
        };
        let matching: Vec<&Expr> = match &step.access.kind {
            // Lookups test the conditions of the hash table that they stand for.
            AccessKind::Hash { filter, .. } if step.alternative.is_some() => {
                matching.into_iter().chain(filter).collect()
            }
            _ => matching,
        };
        let algorithm = self.algorithm(step);
        // The equalities that find a row need not be shown as conditions on it.
        let (matching, sure): (Vec<&Expr>, Vec<&Expr>) =
            matching.into_iter().partition(|e| !finds_rows(step, e));
        let passing = step.filtered * 10f64.powi(sure.len() as i32);
        let passing = passing.min(100.0);
        let joined = if algorithm == Algorithm::Hash {
            let rows = match step.kind {
                JoinType::Semi | JoinType::Anti => left.rows(),
                _ => left.rows() * step.rows * step.filtered / 100.0,
            };
            let mut node = self.hash_join(left, step, position, word);
            if outer && !matching.is_empty() {
                let text = self.texts.all_of(&matching, scope);
                node.operation += &format!(", extra conditions: {text}");
                node = node.field("extra_condition", Json::texts([text]));
            }
            node.estimate = node.estimate.map(|e| Estimate { rows, ..e });
            let node = node.measured(measured);
            match outer {
                true => node,
                false => self
                    .filter(node, &matching, 100.0, scope)
                    .measured(measured),
            }
        } else {
            let access = lookups(step);
            let rows = self.rows_of_lookup(step, access);
            let mut inner = self.table(step, access, rows, Stage::Read(position));
            if algorithm == Algorithm::Batched {
                batched(&mut inner);
            }
            let inner = self.filter(inner, &matching, passing, scope);
            let mut node = nested_loop(left, inner, word, algorithm);
            if let Some(other) = &step.alternative {
                let keys = self.hash_keys(keys_of(step));
                let rows = readable((other.budget / other.lookup_cost).ceil());
                node.operation += &match self.measured(Stage::Changed(position)) {
                    Some(m) if m.loops > 0 => format!(", changed to hash join {keys}"),
                    _ => format!(", or hash join {keys} after {rows} outer row(s)"),
                };
                node = node.field("hash_join_condition", Json::text(keys));
            }
            node.measured(measured)
        };
        match after.is_empty() {
            true => joined,
            false => self.filter(joined, &after, 100.0, scope).measured(measured),
        }
    }

    /// The estimated number of rows that a lookup finds. The planner's estimate is that of the hash
    /// table if the step plans one.
    fn rows_of_lookup(&self, step: &JoinStep, access: &Access) -> f64 {
        match (&step.alternative, &step.access.kind) {
            (Some(other), AccessKind::Hash { .. }) => {
                let by_row = self.builder.read_cost(access, 1.0) - LOOKUP_COST + CANDIDATE_COST;
                ((other.lookup_cost - LOOKUP_COST) / by_row).max(1.0)
            }
            _ => step.rows,
        }
    }

    fn algorithm(&self, step: &JoinStep) -> Algorithm {
        let slot = &self.block.tables[step.table];
        let of_table = matches!(slot.source, TableSource::Table(_));
        let for_each = matches!(slot.source, TableSource::Json(_)) || slot.lateral != 0;
        match &lookups(step).kind {
            AccessKind::Hash { .. } => Algorithm::Hash,
            AccessKind::Source | AccessKind::Empty if !for_each => Algorithm::Hash,
            AccessKind::Points(parts)
                if of_table
                    && !stops_early(step)
                    && parts.iter().all(|p| matches!(p, PointPart::Eq { .. })) =>
            {
                Algorithm::Batched
            }
            _ => Algorithm::NestedLoop,
        }
    }

    fn hash_join(&self, left: Node, step: &JoinStep, position: usize, word: &str) -> Node {
        let (build, keys, filter): (&Access, &[HashKey], &[Expr]) = match &step.access.kind {
            AccessKind::Hash {
                build,
                keys,
                filter,
                ..
            } => (build, keys, filter),
            _ => (&step.access, &[], &[]),
        };
        let hashed = match keys.is_empty() {
            true => step.rows,
            false => step.rows * HASHED_SHARE,
        };
        let table = self.table(step, build, hashed, Stage::Read(position));
        let own: Vec<&Expr> = filter.iter().collect();
        let table = self.filter(table, &own, 100.0, Scope::Tables(self.block));
        let built = table.cost() + table.rows() * HASH_BUILD_COST;
        let cost = left.cost() + built + left.rows() * HASH_PROBE_COST;
        let keys = self.hash_keys(keys);
        let mut hash = Node::over("Hash", table).kind("hash");
        hash.estimate = None;
        let mut node = Node::new(format!("{} {keys}", hash_words(word)))
            .kind("join")
            .field("join_type", Json::text(word))
            .field("join_algorithm", Json::text("hash"))
            .field("hash_condition", Json::texts([keys]))
            .estimated(cost, left.rows());
        node.inputs = vec![left, hash];
        node
    }

    fn hash_keys(&self, keys: &[HashKey]) -> String {
        let scope = Scope::Tables(self.block);
        let key = |k: &HashKey| {
            let inner = self.texts.expr(&k.inner, scope);
            let op = if k.null_safe { "<=>" } else { "=" };
            format!("({inner} {op} {})", self.texts.expr(&k.outer, scope))
        };
        let keys: Vec<String> = keys.iter().map(key).collect();
        match keys.is_empty() {
            true => "(no condition)".to_string(),
            false => keys.join(", "),
        }
    }
}

/// The access path that a step begins with: lookups, if it may change from them to a hash table.
fn lookups(step: &JoinStep) -> &Access {
    match (&step.alternative, &step.access.kind) {
        (Some(other), AccessKind::Hash { .. }) => &other.access,
        _ => &step.access,
    }
}

/// The keys of a step's hash table, also of one that it may change to.
fn keys_of(step: &JoinStep) -> &[HashKey] {
    let other = step.alternative.as_ref().map(|other| &other.access.kind);
    match (&step.access.kind, other) {
        (AccessKind::Hash { keys, .. }, _) | (_, Some(AccessKind::Hash { keys, .. })) => keys,
        _ => &[],
    }
}

/// Whether a condition holds for all rows that the step finds.
fn finds_rows(step: &JoinStep, e: &Expr) -> bool {
    let ExprKind::Compare {
        op: BinaryOp::Eq,
        sides,
        ..
    } = &e.kind
    else {
        return lookups(step).implied.contains(e);
    };
    let [left, right] = &**sides;
    let is = |key: &HashKey| {
        (key.inner == *left && key.outer == *right) || (key.inner == *right && key.outer == *left)
    };
    keys_of(step).iter().any(is) || lookups(step).implied.contains(e)
}

fn nested_loop(left: Node, inner: Node, word: &str, algorithm: Algorithm) -> Node {
    let cost = left.cost() + left.rows() * inner.cost();
    let rows = match word {
        "left join" => left.rows() * inner.rows().max(1.0),
        "inner join" => left.rows() * inner.rows(),
        _ => left.rows(),
    };
    let (words, name) = match algorithm {
        Algorithm::Batched => (format!("Batched key access {word}"), "batch_key_access"),
        _ => (format!("Nested loop {word}"), "nested_loop"),
    };
    let mut node = Node::new(words)
        .kind("join")
        .field("join_type", Json::text(word))
        .field("join_algorithm", Json::text(name))
        .estimated(cost, rows);
    let left = match algorithm {
        Algorithm::Batched => Node {
            heading: Some("Batch input rows".to_string()),
            ..left
        },
        _ => left,
    };
    node.inputs = vec![left, inner];
    node
}

/// Makes the operator of a lookup one of lookups for many outer rows.
fn batched(inner: &mut Node) {
    let words = &inner.operation;
    let rest = words.replacen("Single-row ", "", 1);
    let rest = rest
        .replacen("Index", "index", 1)
        .replacen("Covering", "covering", 1);
    inner.operation = format!("Multi-range {rest}");
    for (name, value) in &mut inner.fields {
        if *name == "index_access_type" {
            *value = Json::text("multi_range_read");
        }
    }
}

/// `inner join` as `Inner hash join`, `semijoin` as `Hash semijoin`.
fn hash_words(word: &str) -> String {
    let Some((kind, join)) = word.split_once(' ') else {
        return format!("Hash {word}");
    };
    let (first, rest) = kind.split_at(kind.len().min(1));
    format!("{}{rest} hash {join}", first.to_uppercase())
}
