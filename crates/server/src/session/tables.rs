//! The tables that a statement names, with the privileges that it needs on each. Determined before
//! binding, for access checks and metadata locks. Which tables a multi-table UPDATE or DELETE
//! changes is known from its plan only.

use std::sync::Arc;

use nfold_catalog::Privileges;
use nfold_plan::{Plan, ViewScope};
use nfold_sql::ast::*;
use nfold_types::{ErrorCode, SqlError};

/// A use of a table by a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableUse {
    pub schema: Box<str>,
    pub name: Box<str>,
    /// The name in the statement.
    pub alias: Box<str>,
    pub needs: Privileges,
    pub check: UseCheck,
    /// The view that reads the table, if it is not the statement itself.
    pub view: Option<Arc<ViewScope>>,
}

/// How the privileges on a table are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseCheck {
    /// All of [`TableUse::needs`], on the table or on one of its columns.
    Needs,
    /// Only those on the columns that the statement names.
    ByColumns,
    /// SELECT or UPDATE: a table of a multi-table UPDATE.
    ReadOrUpdate,
    /// SELECT, and a privilege to change rows: a table of `FOR UPDATE`.
    Locking,
    /// As `Needs`; a view needs SHOW VIEW as well, because EXPLAIN shows what it reads.
    Explain,
}

/// The tables of a statement. Names without a database are in `database`; error 1046 if there is
/// none.
pub fn tables_of(statement: &Statement, database: Option<&str>) -> Result<Vec<TableUse>, SqlError> {
    let mut walk = Walk::new(database);
    walk.statement(statement);
    if let Statement::Explain { .. } = statement {
        let needs = walk.found.iter_mut().filter(|u| u.check == UseCheck::Needs);
        needs.for_each(|u| u.check = UseCheck::Explain);
    }
    match walk.failed {
        Some(e) => Err(e),
        None => Ok(walk.found),
    }
}

/// Whether an expression must run as a query: it has a subquery, or a function that may wait.
pub fn needs_query(e: &Expr) -> bool {
    let mut walk = Walk::new(None);
    walk.expr(e);
    walk.queries > 0 || walk.may_wait
}

struct Walk<'a> {
    /// The number of queries found.
    queries: usize,
    /// Whether a function was found that may suspend the statement.
    may_wait: bool,
    database: Option<&'a str>,
    /// The names of the common table expressions in scope.
    ctes: Vec<&'a str>,
    /// How the tables of FROM are checked.
    reads: UseCheck,
    /// The locking clauses of the current query.
    locking: &'a [Locking],
    found: Vec<TableUse>,
    failed: Option<SqlError>,
}

impl<'a> Walk<'a> {
    fn new(database: Option<&'a str>) -> Walk<'a> {
        Walk {
            queries: 0,
            may_wait: false,
            database,
            ctes: Vec::new(),
            reads: UseCheck::Needs,
            locking: &[],
            found: Vec::new(),
            failed: None,
        }
    }

    fn add(&mut self, name: &ObjectName, needs: Privileges) {
        self.add_as(name, &name.name, (needs, UseCheck::Needs));
    }

    /// Adds a base table of a FROM clause.
    fn add_factor(&mut self, t: &TableFactor, needs: Privileges, check: UseCheck) {
        let alias = t.alias.as_ref().unwrap_or(&t.name.name);
        self.add_as(&t.name, alias, (needs, check));
    }

    fn add_as(&mut self, name: &ObjectName, alias: &Ident, (needs, check): (Privileges, UseCheck)) {
        // The same rule as in the planner: every name that the planner takes for a table must be
        // found here.
        if name.schema.is_none() && self.ctes.iter().any(|c| **c == name.name.value) {
            return;
        }
        let Some(schema) = name.schema.as_ref().map(Ident::as_str).or(self.database) else {
            self.failed
                .get_or_insert_with(|| SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[]));
            return;
        };
        let known = self.found.iter().any(|t| {
            *t.schema == *schema
                && *t.name == *name.name.value
                && *t.alias == *alias.value
                && t.needs == needs
                && t.check == check
        });
        if !known {
            self.found.push(TableUse {
                schema: schema.into(),
                name: name.name.as_str().into(),
                alias: alias.as_str().into(),
                needs,
                check,
                view: None,
            });
        }
    }

    /// Adds a table of FROM that is read, and perhaps locked.
    fn read_factor(&mut self, t: &TableFactor) {
        let alias = t.alias.as_ref().unwrap_or(&t.name.name);
        let locks = |l: &Locking| {
            let named = |of: &ObjectName| of.name.value == alias.value;
            l.strength == LockStrength::Update && (l.of.is_empty() || l.of.iter().any(named))
        };
        let check = match self.locking.iter().any(locks) {
            true => UseCheck::Locking,
            false => self.reads,
        };
        self.add_factor(t, Privileges::SELECT, check);
    }

    fn read(&mut self, name: &ObjectName) {
        self.add_as(name, &name.name, (Privileges::SELECT, self.reads));
    }

    fn statement(&mut self, s: &'a Statement) {
        match s {
            Statement::Query(q) => self.query(q),
            Statement::Insert(i) => self.insert(i),
            Statement::Update(u) => self.update(u),
            Statement::Delete(d) => self.delete(d),
            Statement::LoadData(l) => self.insert(&l.insert),
            Statement::Do(list) => self.exprs(list),
            Statement::Explain { options, statement } => {
                if let Some(schema) = &options.schema {
                    self.database = Some(schema.as_str());
                }
                self.statement(statement);
            }
            _ => {}
        }
    }

    /// Runs `f` with the common table expressions of `with` in scope.
    fn with(&mut self, with: Option<&'a With>, f: impl FnOnce(&mut Self)) {
        let before = self.ctes.len();
        if let Some(with) = with {
            for cte in &with.tables {
                if with.recursive {
                    self.ctes.push(&cte.name.value);
                }
                self.query(&cte.query);
                if !with.recursive {
                    self.ctes.push(&cte.name.value);
                }
            }
        }
        f(self);
        self.ctes.truncate(before);
    }

    fn query(&mut self, q: &'a Query) {
        self.queries += 1;
        let around = std::mem::replace(&mut self.locking, &q.locking);
        self.with(q.with.as_ref(), |w| {
            w.body(&q.body);
            w.order(&q.order_by);
            if let Some(limit) = &q.limit {
                limit
                    .offset
                    .iter()
                    .chain([&limit.count])
                    .for_each(|e| w.expr(e));
            }
        });
        self.locking = around;
    }

    fn body(&mut self, body: &'a QueryBody) {
        match body {
            QueryBody::Select(s) => self.select(s),
            QueryBody::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            QueryBody::Paren(q) => self.query(q),
            QueryBody::Values(rows) => rows.iter().for_each(|r| self.exprs(r)),
            QueryBody::Table(name) => self.read(name),
        }
    }

    fn select(&mut self, s: &'a Select) {
        s.from.iter().for_each(|t| self.table_ref(t));
        for item in &s.items {
            if let SelectItem::Expr { expr, .. } = item {
                self.expr(expr);
            }
        }
        self.exprs(s.selection.iter().chain(&s.group_by).chain(&s.having));
        for (_, window) in &s.windows {
            self.window(window);
        }
    }

    fn window(&mut self, w: &'a Window) {
        self.exprs(&w.partition_by);
        self.order(&w.order_by);
        for bound in w.frame.iter().flat_map(|f| [&f.start, &f.end]) {
            if let FrameBound::By { amount, .. } = bound {
                self.expr(amount);
            }
        }
    }

    fn order(&mut self, items: &'a [OrderItem]) {
        items.iter().for_each(|o| self.expr(&o.expr));
    }

    fn table_ref(&mut self, t: &'a TableRef) {
        match t {
            TableRef::Table(t) => self.read_factor(t),
            TableRef::Derived { query, .. } => self.query(query),
            TableRef::JsonTable(t) => self.expr(&t.document),
            TableRef::Join(j) => {
                self.table_ref(&j.left);
                self.table_ref(&j.right);
                if let JoinConstraint::On(e) = &j.constraint {
                    self.expr(e);
                }
            }
        }
    }

    fn assignments(&mut self, list: &'a [Assignment]) {
        list.iter().for_each(|a| self.expr(&a.value));
    }

    fn insert(&mut self, i: &'a Insert) {
        let mut needs = Privileges::INSERT;
        if i.replace {
            needs = needs.union(Privileges::DELETE);
        }
        if !i.on_duplicate.is_empty() {
            needs = needs.union(Privileges::UPDATE);
        }
        self.add(&i.table, needs);
        match &i.source {
            InsertSource::Values(rows) => rows.iter().for_each(|r| self.exprs(r)),
            InsertSource::RowsParam(_) => {}
            InsertSource::Set(list) => self.assignments(list),
            InsertSource::Query(q) => self.query(q),
            InsertSource::File { set, .. } => self.assignments(set),
        }
        self.assignments(&i.on_duplicate);
    }

    fn update(&mut self, u: &'a Update) {
        self.with(u.with.as_ref(), |w| {
            // Which of several tables are changed is known after binding only.
            let one = match u.tables.as_slice() {
                [TableRef::Table(t)] => Some(t),
                _ => None,
            };
            // The columns that it reads are checked one by one.
            match one {
                Some(t) => w.add_factor(t, Privileges::UPDATE, UseCheck::Needs),
                None => {
                    w.reads = UseCheck::ReadOrUpdate;
                    u.tables.iter().for_each(|t| w.table_ref(t));
                    w.reads = UseCheck::Needs;
                }
            }
            w.assignments(&u.assignments);
            w.exprs(u.selection.iter().chain(&u.limit));
            w.order(&u.order_by);
        });
    }

    fn delete(&mut self, d: &'a Delete) {
        self.with(d.with.as_ref(), |w| {
            if let ([TableRef::Table(t)], true) = (d.from.as_slice(), d.targets.is_empty()) {
                w.add_factor(t, Privileges::DELETE, UseCheck::Needs);
            } else {
                d.from.iter().for_each(|t| w.table_ref(t));
                d.targets.iter().for_each(|t| w.delete_target(t, &d.from));
            }
            w.exprs(d.selection.iter().chain(&d.limit));
            w.order(&d.order_by);
        });
    }

    /// A target of a multi-table DELETE: a table of FROM, by its alias or name.
    fn delete_target(&mut self, target: &'a ObjectName, from: &'a [TableRef]) {
        if target.schema.is_none() && self.database.is_none() {
            self.failed
                .get_or_insert_with(|| SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[]));
        }
        fn factors<'t>(t: &'t TableRef, out: &mut Vec<&'t TableFactor>) {
            match t {
                TableRef::Table(f) => out.push(f),
                TableRef::Join(j) => {
                    factors(&j.left, out);
                    factors(&j.right, out);
                }
                TableRef::Derived { .. } | TableRef::JsonTable(_) => {}
            }
        }
        let mut all = Vec::new();
        from.iter().for_each(|t| factors(t, &mut all));
        let means =
            |f: &&&TableFactor| f.alias.as_ref().unwrap_or(&f.name.name).value == target.name.value;
        if let Some(f) = all.iter().find(means) {
            self.add_factor(f, Privileges::DELETE, UseCheck::Needs);
        }
    }

    fn exprs(&mut self, list: impl IntoIterator<Item = &'a Expr>) {
        list.into_iter().for_each(|e| self.expr(e));
    }

    /// Collects the subqueries in an expression.
    fn expr(&mut self, e: &'a Expr) {
        use Expr::*;
        match e {
            Column(_)
            | Default(Some(_))
            | Values(_)
            | Literal(_)
            | Param(_)
            | UserVar(_)
            | SysVar { .. }
            | Default(None) => {}
            AssignUserVar { value: a, .. }
            | Unary { expr: a, .. }
            | Not(a)
            | Is { expr: a, .. }
            | Cast { expr: a, .. }
            | ConvertUsing { expr: a, .. }
            | Collate { expr: a, .. }
            | Extract { expr: a, .. }
            | Match { against: a, .. } => self.expr(a),
            Binary {
                left: a, right: b, ..
            }
            | Xor(a, b)
            | SoundsLike(a, b)
            | MemberOf(a, b)
            | Regexp {
                expr: a,
                pattern: b,
                ..
            }
            | IntervalArith {
                expr: a, amount: b, ..
            }
            | TimestampDiff { from: a, to: b, .. } => {
                self.exprs([&**a, &**b]);
            }
            And(list) | Or(list) | Row(list) | Char { args: list, .. } => self.exprs(list),
            Between {
                expr, low, high, ..
            } => self.exprs([&**expr, &**low, &**high]),
            InList { expr, list, .. } => {
                self.expr(expr);
                if let nfold_sql::ast::InList::Exprs(list) = list {
                    self.exprs(list);
                }
            }
            InSubquery { expr, query, .. } | Quantified { expr, query, .. } => {
                self.expr(expr);
                self.query(query);
            }
            Exists(q) | Subquery(q) => self.query(q),
            Like {
                expr,
                pattern,
                escape,
                ..
            } => self.exprs([&**expr, &**pattern].into_iter().chain(escape.as_deref())),
            Case {
                operand,
                whens,
                otherwise,
            } => {
                self.exprs(operand.as_deref().into_iter().chain(otherwise.as_deref()));
                whens.iter().for_each(|(a, b)| self.exprs([a, b]));
            }
            Trim { what, expr, .. } => self.exprs(what.as_deref().into_iter().chain([&**expr])),
            JsonValue(call) => self.expr(&call.document),
            Function(call) => {
                let name = call.name.as_str();
                let waits = |f: &&str| name.eq_ignore_ascii_case(f);
                self.may_wait |= WAITING_FUNCTIONS.iter().any(waits);
                self.exprs(&call.args);
                self.order(&call.order_by);
                call.over.iter().for_each(|w| self.window(w));
            }
        }
    }
}

/// Functions that may wait long.
const WAITING_FUNCTIONS: [&str; 4] = [
    "sleep",
    "get_lock",
    "benchmark",
    "wait_for_executed_gtid_set",
];

/// The tables that a multi-table statement changes, according to its plan.
pub fn changed_by(plan: &Plan) -> impl Iterator<Item = TableUse> {
    plan.changed_tables().into_iter().map(|t| {
        let (needs, check) = match t.deletes {
            true => (Privileges::DELETE, UseCheck::Needs),
            false => (Privileges::UPDATE, UseCheck::ByColumns),
        };
        TableUse {
            schema: (&*t.table.schema).into(),
            name: (&*t.table.name).into(),
            alias: (&*t.alias).into(),
            needs,
            check,
            view: None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfold_sql::lexer::LexMode;

    fn names(sql: &str) -> String {
        let statement = nfold_sql::parser::parse(sql.as_bytes(), LexMode::default()).unwrap();
        let found = tables_of(&statement, Some("d")).unwrap();
        found
            .iter()
            .map(|t| format!("{} {}.{}", t.needs.names_in_errors(), t.schema, t.name))
            .collect::<Vec<_>>()
            .join(", ")
    }

    #[test]
    fn every_table_is_found() {
        for (sql, expected) in [
            ("SELECT 1", ""),
            (
                "SELECT (SELECT MAX(a) FROM x.t) FROM u WHERE b IN (SELECT c FROM v)",
                "SELECT d.u, SELECT x.t, SELECT d.v",
            ),
            (
                "WITH q AS (SELECT 1 FROM t) SELECT * FROM q, e.q",
                "SELECT d.t, SELECT e.q",
            ),
            ("WITH Q AS (SELECT 1) SELECT * FROM q, Q", "SELECT d.q"),
            (
                "WITH a AS (SELECT 1 FROM a), b AS (SELECT 1 FROM a, c), c AS (SELECT 1) SELECT * FROM a, b, c",
                "SELECT d.a, SELECT d.c",
            ),
            (
                "SELECT (WITH q AS (SELECT 1) SELECT 1 FROM q), 1 FROM q",
                "SELECT d.q",
            ),
            (
                "INSERT INTO t SELECT * FROM u ON DUPLICATE KEY UPDATE a=1",
                "INSERT, UPDATE d.t, SELECT d.u",
            ),
            (
                "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a=VALUES(a)",
                "INSERT, UPDATE d.t",
            ),
            ("REPLACE INTO t VALUES (1)", "INSERT, DELETE d.t"),
            ("UPDATE t SET a=1", "UPDATE d.t"),
            ("UPDATE t SET a=ABS(b)", "UPDATE d.t"),
            ("UPDATE t SET a=1 ORDER BY b LIMIT 1", "UPDATE d.t"),
            (
                "UPDATE t SET a=(SELECT MAX(b) FROM u)",
                "UPDATE d.t, SELECT d.u",
            ),
            ("DELETE FROM t LIMIT 1", "DELETE d.t"),
            ("DELETE FROM t ORDER BY a LIMIT 1", "DELETE d.t"),
            (
                "UPDATE t x JOIN u y ON x.a=y.a SET x.b=1",
                "SELECT d.t, SELECT d.u",
            ),
            (
                "DELETE x FROM t x JOIN u WHERE x.a=u.a",
                "SELECT d.t, SELECT d.u, DELETE d.t",
            ),
            (
                "EXPLAIN SELECT * FROM t LEFT JOIN u ON EXISTS (SELECT 1 FROM w)",
                "SELECT d.t, SELECT d.u, SELECT d.w",
            ),
            (
                "TABLE t UNION SELECT COUNT(*) OVER (ORDER BY (SELECT 1 FROM z)) FROM t",
                "SELECT d.t, SELECT d.z",
            ),
        ] {
            assert_eq!(names(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_bare_name_needs_a_database() {
        let statement = nfold_sql::parser::parse(b"SELECT * FROM t", LexMode::default()).unwrap();
        assert_eq!(tables_of(&statement, None).unwrap_err().errno(), 1046);
    }
}
