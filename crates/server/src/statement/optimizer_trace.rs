//! The optimizer trace: the records of the planner about a statement, as a JSON document. The main
//! steps have MySQL's names; costs are those of EXPLAIN. Source: MySQL manual, "Tracing the
//! Optimizer".

use std::cell::RefCell;
use std::fmt::Write;

use nfold_catalog::Privileges;
use nfold_exec::eval::{ListCache, NoSubqueries, RowCounts, Scope, StmtState};
use nfold_exec::{Checkpoints, ExecCx, Params, plan_text};
use nfold_plan::Plan;
use nfold_plan::trace::{
    AccessPathTrace, BlockTrace, ConsideredPlan, OptimizerTrace, PlacedTable, TableTrace,
};
use nfold_sql::printer::Quoted;

use crate::config::switches::is_on;
use crate::session::Session;
use crate::session::optimizer_traces::Trace;
use crate::session::plans::Work;
use crate::session::system_schemas::INFORMATION;
use crate::session::tables::TableUse;
use crate::session::vars::{self, VarValue};

impl Session {
    /// The records of the statement that is being planned; `None` if it is not traced. A statement
    /// that reads the traces is not.
    #[inline]
    pub(super) fn begin_trace(&self, uses: &[TableUse]) -> Option<OptimizerTrace> {
        if !self.env.vars.settings().tracing {
            return None;
        }
        let reads_traces = |u: &TableUse| {
            u.schema.eq_ignore_ascii_case(INFORMATION)
                && u.name.eq_ignore_ascii_case("OPTIMIZER_TRACE")
        };
        if uses.iter().any(reads_traces) {
            return None;
        }
        let wanted = self.env.traces.borrow().wants_next(self.env.trace_limits());
        if !wanted {
            self.env.traces.borrow_mut().skip();
        }
        wanted.then(OptimizerTrace::default)
    }

    /// Remembers the trace of a statement that has been planned.
    #[cold]
    pub(super) fn record_trace(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        plan: &Plan,
        uses: &[TableUse],
        trace: OptimizerTrace,
    ) {
        let limits = self.env.trace_limits();
        let trace = match self.may_see_trace(uses) {
            true => Trace {
                query: String::from_utf8_lossy(work.text).into_owned(),
                text: self.trace_text(cx, work, plan, trace),
                ..Trace::default()
            },
            false => Trace {
                insufficient_privileges: true,
                ..Trace::default()
            },
        };
        self.env.traces.borrow_mut().add(trace, limits);
    }

    /// Whether the account may see what views hide: their definitions and the tables behind them.
    fn may_see_trace(&self, uses: &[TableUse]) -> bool {
        uses.iter().all(|u| {
            let held = self.rights.on_table(&u.schema, &u.name);
            let is_view = (self.schema.table(&u.schema, &u.name)).is_some_and(|t| t.is_view());
            let shown = Privileges::SELECT.union(Privileges::SHOW_VIEW);
            match (is_view, &u.view) {
                (true, _) => held.contains(shown),
                (false, Some(_)) => held.contains(Privileges::SELECT),
                (false, None) => true,
            }
        })
    }

    fn trace_text(
        &self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        plan: &Plan,
        trace: OptimizerTrace,
    ) -> String {
        let text_of = |name| match vars::find(name).map(|at| self.env.vars.get(at)) {
            Ok(VarValue::Text(Some(text))) => text.to_string(),
            _ => String::new(),
        };
        let checkpoint = Checkpoints::new(cx);
        let mut params = Params::default();
        let bound = params.bind(work.digested, work.text, work.markers, &checkpoint);
        let query = bound.map(|()| {
            let state = StmtState {
                params: &params,
                env: &self.env,
                warnings: &RefCell::default(),
                subqueries: &NoSubqueries,
                checkpoint: &checkpoint,
                lists: &ListCache::default(),
                counts: &RowCounts::default(),
                strict: false,
                scope: Scope::None,
                changes: false,
            };
            plan_text(&state, plan)
        });
        let mut json = JsonText::new(is_on(&text_of("optimizer_trace"), "one_line"));
        let greedy = is_on(&text_of("optimizer_trace_features"), "greedy_search");
        document(
            &mut json,
            &query.unwrap_or_default(),
            &trace.into_blocks(),
            greedy,
        );
        json.text
    }
}

/// Writes JSON as MySQL's optimizer trace does: with the members in the order of writing, and two
/// blanks for each level unless it is one line.
struct JsonText {
    text: String,
    one_line: bool,
    /// The closing bracket of each open object or array.
    open: Vec<char>,
    /// Whether a value precedes on the same level.
    follows: bool,
}

impl JsonText {
    fn new(one_line: bool) -> JsonText {
        JsonText {
            text: String::new(),
            one_line,
            open: Vec::new(),
            follows: false,
        }
    }

    fn line(&mut self) {
        if !self.one_line {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n("  ", self.open.len()));
        }
    }

    /// Begins a value, with its name in an object.
    fn next(&mut self, name: Option<&str>) {
        if std::mem::replace(&mut self.follows, true) {
            self.text.push(',');
        }
        if !self.open.is_empty() {
            self.line();
        }
        if let Some(name) = name {
            self.quoted(name);
            self.text.push_str(": ");
        }
    }

    fn quoted(&mut self, text: &str) {
        let mut bytes = Vec::new();
        nfold_json::write_quoted(text, &mut bytes);
        self.text.push_str(&String::from_utf8_lossy(&bytes));
    }

    fn group(&mut self, name: Option<&str>, brackets: (char, char), f: impl FnOnce(&mut Self)) {
        self.next(name);
        self.text.push(brackets.0);
        self.open.push(brackets.1);
        self.follows = false;
        f(self);
        self.open.pop();
        self.line();
        self.text.push(brackets.1);
        self.follows = true;
    }

    fn object(&mut self, name: Option<&str>, f: impl FnOnce(&mut Self)) {
        self.group(name, ('{', '}'), f);
    }

    fn array(&mut self, name: &str, f: impl FnOnce(&mut Self)) {
        self.group(Some(name), ('[', ']'), f);
    }

    fn string(&mut self, name: Option<&str>, text: &str) {
        self.next(name);
        self.quoted(text);
    }

    fn integer(&mut self, name: &str, n: u64) {
        self.next(Some(name));
        let _ = write!(self.text, "{n}");
    }

    /// A number with up to six digits, as MySQL writes costs and rows.
    fn number(&mut self, name: &str, n: f64) {
        self.next(Some(name));
        let digits = match n.abs() {
            size if size >= 1e5 || size == 0.0 => 0,
            size => (5 - size.log10().floor() as i32).clamp(0, 9) as usize,
        };
        let text = format!("{n:.digits$}");
        let text = match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.'),
            false => &text,
        };
        self.text.push_str(text);
    }

    fn bool(&mut self, name: &str, value: bool) {
        self.next(Some(name));
        self.text.push_str(if value { "true" } else { "false" });
    }
}

/// The whole trace. `blocks` have the outermost block last; it has number 1.
fn document(json: &mut JsonText, query: &str, blocks: &[BlockTrace], greedy: bool) {
    let numbered = || blocks.iter().rev().zip(1u64..);
    json.object(None, |json| {
        json.array("steps", |json| {
            step(json, "join_preparation", 1, |json| {
                json.object(None, |json| json.string(Some("expanded_query"), query));
            });
            for (block, number) in numbered() {
                step(json, "join_optimization", number, |json| {
                    optimization(json, block, greedy);
                });
            }
            for (_, number) in numbered() {
                step(json, "join_execution", number, |_| {});
            }
        });
    });
}

fn step(json: &mut JsonText, name: &str, select: u64, f: impl FnOnce(&mut JsonText)) {
    json.object(None, |json| {
        json.object(Some(name), |json| {
            json.integer("select#", select);
            json.array("steps", f);
        });
    });
}

fn name_of(block: &BlockTrace, t: usize) -> String {
    let table = block.tables.get(t);
    Quoted(table.map_or("", |table| &table.name)).to_string()
}

fn optimization(json: &mut JsonText, block: &BlockTrace, greedy: bool) {
    if block.tables.is_empty() {
        return;
    }
    json.object(None, |json| {
        json.array("table_dependencies", |json| {
            for (t, table) in block.tables.iter().enumerate() {
                dependencies(json, block, t, table);
            }
        });
    });
    json.object(None, |json| {
        json.array("rows_estimation", |json| {
            for (t, table) in block.tables.iter().enumerate() {
                estimation(json, &name_of(block, t), table);
            }
        });
    });
    json.object(None, |json| match greedy {
        true => json.array("considered_execution_plans", |json| {
            for plan in &block.considered {
                considered(json, block, plan);
            }
            if let ([table], [placed]) = (&*block.tables, &*block.steps) {
                alone(json, table, placed);
            }
        }),
        false => json.string(Some("considered_execution_plans"), "..."),
    });
    json.object(None, |json| {
        json.array("refine_plan", |json| {
            for placed in &block.steps {
                json.object(None, |json| {
                    json.string(Some("table"), &name_of(block, placed.table));
                    let path = &placed.path;
                    json.string(Some("access_type"), path.kind);
                    if let Some(index) = &path.index {
                        json.string(Some("index"), index);
                    }
                    if placed.hashed {
                        json.bool("using_hash_join", true);
                    }
                });
            }
        });
    });
}

fn dependencies(json: &mut JsonText, block: &BlockTrace, t: usize, table: &TableTrace) {
    json.object(None, |json| {
        json.string(Some("table"), &name_of(block, t));
        json.bool("row_may_be_null", table.nullable);
        json.integer("map_bit", t as u64);
        json.array("depends_on_map_bits", |json| {
            for bit in (0..64).filter(|bit| table.depends >> bit & 1 == 1) {
                json.next(None);
                let _ = write!(json.text, "{bit}");
            }
        });
    });
}

fn estimation(json: &mut JsonText, name: &str, table: &TableTrace) {
    json.object(None, |json| {
        json.string(Some("table"), name);
        if let Some(rows) = table.rows {
            json.integer("table_rows", rows);
        }
        let shown = match table.path.kind {
            "scan" => "table_scan",
            _ => "range_analysis",
        };
        json.object(Some(shown), |json| {
            if shown == "range_analysis" {
                access(json, &table.path);
            }
            json.number("rows", table.path.rows);
            json.number("cost", table.path.cost);
        });
        if let Some(rows) = table.passing {
            json.number("resulting_rows", rows);
        }
    });
}

fn access(json: &mut JsonText, path: &AccessPathTrace) {
    json.string(Some("access_type"), path.kind);
    if let Some(index) = &path.index {
        json.string(Some("index"), index);
    }
}

/// The only plan of a block with one table.
fn alone(json: &mut JsonText, table: &TableTrace, placed: &PlacedTable) {
    json.object(None, |json| {
        json.array("plan_prefix", |_| {});
        json.string(Some("table"), &Quoted(&table.name).to_string());
        json.object(Some("best_access_path"), |json| {
            json.array("considered_access_paths", |json| {
                json.object(None, |json| {
                    access(json, &placed.path);
                    json.number("rows", table.path.rows);
                    json.number("cost", table.path.cost);
                    json.bool("chosen", true);
                });
            });
        });
        json.number("rows_for_plan", table.path.rows);
        json.number("cost_for_plan", table.path.cost);
        json.bool("chosen", true);
    });
}

fn considered(json: &mut JsonText, block: &BlockTrace, plan: &ConsideredPlan) {
    let cheapest = plan.ways.iter().map(|(_, cost)| *cost);
    let cheapest = cheapest.fold(f64::INFINITY, f64::min);
    json.object(None, |json| {
        json.array("plan_prefix", |json| {
            for t in &plan.prefix {
                json.string(None, &name_of(block, *t));
            }
        });
        json.string(Some("table"), &name_of(block, plan.table));
        json.object(Some("best_access_path"), |json| {
            json.array("considered_access_paths", |json| {
                for (way, cost) in &plan.ways {
                    json.object(None, |json| {
                        json.string(Some("access_type"), way);
                        json.number("cost", *cost);
                        json.bool("chosen", *cost <= cheapest);
                    });
                }
            });
        });
        json.number("rows_for_plan", plan.rows);
        json.number("cost_for_plan", plan.cost);
        json.bool("chosen", plan.chosen);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(one_line: bool) -> String {
        let mut json = JsonText::new(one_line);
        json.object(None, |json| {
            json.string(Some("a"), "x\"y");
            json.array("b", |json| {
                json.object(None, |json| json.bool("c", true));
                json.object(None, |json| json.number("d", 1234.5));
            });
            json.array("e", |_| {});
        });
        json.text
    }

    #[test]
    fn documents_look_like_those_of_mysql() {
        let line = r#"{"a": "x\"y","b": [{"c": true},{"d": 1234.5}],"e": []}"#;
        assert_eq!(sample(true), line);
        let lines = "{\n  \"a\": \"x\\\"y\",\n  \"b\": [\n    {\n      \"c\": true\n    },\n    {\n      \
                     \"d\": 1234.5\n    }\n  ],\n  \"e\": [\n  ]\n}";
        assert_eq!(sample(false), lines);
    }

    #[test]
    fn numbers_have_six_digits() {
        let shown = |n| {
            let mut json = JsonText::new(true);
            json.number("n", n);
            json.text
        };
        assert_eq!(shown(0.25), "\"n\": 0.25");
        assert_eq!(shown(0.0), "\"n\": 0");
        assert_eq!(shown(1.0 / 3.0), "\"n\": 0.333333");
        assert_eq!(shown(123_456_789.5), "\"n\": 123456790");
        assert_eq!(shown(200.0), "\"n\": 200");
    }
}
