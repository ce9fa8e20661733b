//! The plans that sessions share: which statements share one, when a plan is dropped, and how much
//! memory it takes.

#[path = "common/embedded.rs"]
mod embedded;

use embedded::Session;
use nfold_protocol::consts::{column_type, com};
use nfold_server::embedded::Embedded;

trait Plans {
    fn status(&mut self, name: &str) -> u64;
    fn misses(&mut self) -> u64 {
        self.status("misses")
    }
}

impl Plans for Session<'_> {
    fn status(&mut self, name: &str) -> u64 {
        let row = self.ok(&format!("SHOW STATUS LIKE 'Nfold_plan_cache_{name}'"));
        row[1].parse().unwrap()
    }
}

fn with_server(test: impl FnOnce(&Embedded)) {
    let dir = tempfile::tempdir().unwrap();
    let server = Embedded::open(dir.path(), &[("innodb_buffer_pool_size", "16777216")]).unwrap();
    let mut s = Session(server.connect().unwrap());
    s.ok("CREATE DATABASE a");
    s.ok("CREATE DATABASE b");
    for db in ["a", "b"] {
        s.ok(&format!(
            "CREATE TABLE {db}.t (id INT PRIMARY KEY, v VARCHAR(20), at TIMESTAMP NULL)"
        ));
        s.ok(&format!(
            "INSERT INTO {db}.t VALUES (1, '{db}1', '2020-01-01 00:00:00'), (2, '{db}2', NULL)"
        ));
    }
    drop(s);
    test(&server);
}

fn session<'a>(server: &'a Embedded, database: &str) -> Session<'a> {
    let mut s = Session(server.connect().unwrap());
    s.ok(&format!("USE {database}"));
    s
}

#[test]
fn a_cold_session_takes_over_what_another_has_planned() {
    with_server(|server| {
        let sql = "SELECT v FROM t WHERE id IN (1,2)";
        let mut one = session(server, "a");
        assert_eq!(one.ok(sql), ["a1", "a2"]);
        let mut two = session(server, "a");
        let before = (two.misses(), two.status("hits"));
        // Another value, and another length of the list.
        assert_eq!(two.ok("SELECT v FROM t WHERE id IN (2, 7, 8, 9)"), ["a2"]);
        assert_eq!(two.ok(sql), ["a1", "a2"]);
        assert_eq!(two.misses(), before.0, "nothing was parsed");
        // SHOW STATUS is no planned statement; the second execution is the session's own.
        assert_eq!(two.status("hits"), before.1 + 1);
        // Kinds of members, structural literals and names of result columns make other statements.
        for other in [
            "SELECT v FROM t WHERE id IN (1,'2')",
            "SELECT v FROM t ORDER BY 1",
            "SELECT v, id FROM t ORDER BY 2",
            "SELECT 1 + 1",
            "SELECT 1 + 2",
        ] {
            let before = two.misses();
            two.ok(other);
            assert_eq!(two.misses(), before + 1, "{other}");
            one.ok(other);
            assert_eq!(two.misses(), before + 1, "{other}");
        }
    });
}

#[test]
fn preparing_takes_over_too_and_a_marker_in_a_text_is_an_error() {
    with_server(|server| {
        let sql = b"SELECT v FROM t WHERE id = ?";
        let mut one = session(server, "a");
        let execute = |s: &mut Session<'_>, id: i64| {
            let answer = s.command(com::STMT_PREPARE, sql);
            let mut body = answer[0][1..5].to_vec();
            body.extend([0, 1, 0, 0, 0, 0, 1, column_type::LONGLONG, 0]);
            body.extend(id.to_le_bytes());
            let packets = s.command(com::STMT_EXECUTE, &body);
            String::from_utf8_lossy(&packets[3]).into_owned()
        };
        assert!(execute(&mut one, 1).ends_with("a1"));
        let mut two = session(server, "a");
        let before = two.misses();
        assert!(execute(&mut two, 2).ends_with("a2"));
        assert_eq!(
            two.misses(),
            before,
            "neither preparing nor executing parsed"
        );
        assert_eq!(two.query("SELECT v FROM t WHERE id = ?"), Err(1064));
        assert_eq!(one.query("SELECT v FROM t WHERE id = ?"), Err(1064));
    });
}

#[test]
fn plans_over_temporary_tables_stay_with_their_session() {
    with_server(|server| {
        let sql = "SELECT v FROM t WHERE id = 1";
        let mut one = session(server, "a");
        let mut two = session(server, "a");
        assert_eq!(
            (one.ok(sql), two.ok(sql)),
            (vec!["a1".into()], vec!["a1".into()])
        );
        one.ok("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, v VARCHAR(9))");
        one.ok("INSERT INTO t VALUES (1, 'own')");
        for _ in 0..2 {
            assert_eq!(one.ok(sql), ["own"]);
            assert_eq!(two.ok(sql), ["a1"]);
            // One that neither has met, planned first over the temporary table.
            assert_eq!(one.ok("SELECT MAX(v) FROM t"), ["own"]);
            assert_eq!(two.ok("SELECT MAX(v) FROM t"), ["a2"]);
        }
        // The table behind it changes meanwhile.
        two.ok("ALTER TABLE t ADD c INT");
        assert_eq!(one.ok(sql), ["own"]);
        one.ok("DROP TEMPORARY TABLE t");
        assert_eq!(one.ok(sql), ["a1"]);
        drop(one);
        assert_eq!(two.ok(sql), ["a1"]);
    });
}

#[test]
fn no_plan_outlives_its_schema() {
    with_server(|server| {
        let mut one = session(server, "a");
        let mut two = session(server, "a");
        let sql = "SELECT * FROM t WHERE id = 1";
        assert_eq!(one.ok(sql).len(), 3);
        assert_eq!(two.ok(sql).len(), 3);
        let mut ddl = session(server, "a");
        ddl.ok("ALTER TABLE t ADD COLUMN w INT DEFAULT 7");
        for s in [&mut one, &mut two, &mut session(server, "a")] {
            assert_eq!(s.ok(sql)[3], "7");
        }
        ddl.ok("DROP TABLE t");
        assert_eq!(two.query(sql), Err(1146));
        ddl.ok("CREATE TABLE t (x INT, id VARCHAR(9))");
        ddl.ok("INSERT INTO t VALUES (5, '1')");
        for s in [&mut one, &mut two, &mut session(server, "a")] {
            assert_eq!(s.ok(sql), ["5", "1"]);
        }
        assert!(one.status("plans") < 5, "plans of older schemas are gone");
    });
}

#[test]
fn no_plan_meets_another_environment() {
    with_server(|server| {
        // (setting, statement, result before it, result after it)
        let cases = [
            ("USE b", "SELECT v FROM t WHERE id = 1", "a1", "b1"),
            (
                "SET sql_mode = 'PIPES_AS_CONCAT'",
                "SELECT 1 || 2",
                "1",
                "12",
            ),
            (
                "SET sql_mode = 'ANSI_QUOTES'",
                "SELECT \"v\" FROM t WHERE id = 1",
                "v",
                "a1",
            ),
            (
                "SET time_zone = '+05:00'",
                "SELECT at + 0 FROM t WHERE id = 1",
                "20200101000000",
                "20200101050000",
            ),
            (
                "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
                "SELECT 'a' = 'A'",
                "1",
                "0",
            ),
            (
                "SET div_precision_increment = 8",
                "SELECT 1 / 3",
                "0.3333",
                "0.33333333",
            ),
            (
                "SET sql_select_limit = 1",
                "SELECT COUNT(*) FROM t UNION ALL SELECT 5",
                "2 5",
                "2",
            ),
        ];
        for (set, sql, before, after) in cases {
            let start = |s: &mut Session<'_>| s.ok("SET time_zone = '+00:00'");
            let mut one = session(server, "a");
            let mut two = session(server, "a");
            start(&mut one);
            start(&mut two);
            assert_eq!(one.ok(sql).join(" "), before, "{sql}");
            assert_eq!(two.ok(sql).join(" "), before, "{sql}");
            two.ok(set);
            assert_eq!(two.ok(sql).join(" "), after, "{set}: {sql}");
            assert_eq!(one.ok(sql).join(" "), before, "{sql}, in the other session");
            let mut three = session(server, "a");
            start(&mut three);
            three.ok(set);
            let misses = three.misses();
            assert_eq!(three.ok(sql).join(" "), after, "{set}: {sql}, at first");
            assert_eq!(three.misses(), misses, "{set}: equal environments are one");
        }
    });
}

#[test]
fn the_cache_is_bounded_and_plans_hold_no_lists() {
    with_server(|server| {
        let mut s = session(server, "a");
        s.ok("SELECT v FROM t WHERE id IN (1,2)");
        let before = s.status("bytes");
        let ids: Vec<String> = (0..50_000).map(|n| n.to_string()).collect();
        let mut other = session(server, "b");
        other.ok(&format!("SELECT v FROM t WHERE id IN ({})", ids.join(",")));
        let grown = other.status("bytes") - before;
        assert!(grown > 0 && grown < 8192, "{grown}");
        s.ok("SET GLOBAL nfold_plan_cache_size = 262144");
        for n in 0..500 {
            s.ok(&format!("SELECT id AS c{n}, v FROM t WHERE id = 1"));
            assert!(s.status("bytes") <= 262_144);
        }
        assert!(s.status("evictions") > 0 && s.status("plans") > 10);
        s.ok("SET GLOBAL nfold_plan_cache_size = 0");
        let misses = s.misses();
        s.ok("SELECT id AS d, v FROM t WHERE id = 1");
        s.ok("SELECT id AS d, v FROM t WHERE id = 1");
        assert_eq!(s.misses(), misses + 1, "the session's own is still there");
    });
}

#[test]
fn cache_keeps_few_plans_of_one_digest() {
    with_server(|server| {
        let mut s = session(server, "a");
        let before = s.status("plans");
        for n in 0..300 {
            assert_eq!(s.ok(&format!("SELECT 'x{n}'")), [format!("x{n}")]);
        }
        let plans = s.status("plans") - before;
        assert!((1..=64).contains(&plans), "{plans} plans");
        let misses = s.misses();
        let mut other = session(server, "a");
        assert_eq!(other.ok("SELECT 'x299'"), ["x299"]);
        assert_eq!(s.misses(), misses, "the newest plan is there");
    });
}

#[test]
fn table_locks_and_user_variables_are_the_sessions_own() {
    with_server(|server| {
        let sql = "SELECT v FROM t WHERE id = 1";
        let mut one = session(server, "a");
        let mut two = session(server, "a");
        assert_eq!(one.ok(sql), ["a1"]);
        two.ok("LOCK TABLES b.t READ");
        assert_eq!(
            two.query(sql),
            Err(1100),
            "a shared plan knows no table locks"
        );
        two.ok("UNLOCK TABLES");
        assert_eq!(two.ok(sql), ["a1"]);
        one.ok("SET @x = 1");
        two.ok("SET @x = 'one'");
        assert_eq!(one.ok("SELECT @x, @x + 1"), ["1", "2"]);
        assert_eq!(two.ok("SELECT @x, CONCAT(@x, '!')"), ["one", "one!"]);
        assert_eq!(one.ok("SELECT @x, CONCAT(@x, '!')"), ["1", "1!"]);
    });
}

#[test]
fn each_session_asks_its_own_privileges() {
    with_server(|server| {
        let mut root = session(server, "a");
        for sql in [
            "CREATE USER u@localhost",
            "GRANT SELECT ON b.* TO u@localhost",
            "GRANT INSERT ON a.* TO u@localhost",
        ] {
            root.ok(sql);
        }
        let sql = "SELECT v FROM t WHERE id = 1";
        assert_eq!(root.ok(sql), ["a1"]);
        let mut user = Session(server.connect_as("u").unwrap());
        user.ok("USE a");
        assert_eq!(
            user.query(sql),
            Err(1142),
            "the plan is shared, the right is not"
        );
        root.ok("GRANT SELECT ON a.* TO u@localhost");
        let misses = user.misses();
        assert_eq!(user.ok(sql), ["a1"]);
        assert_eq!(user.misses(), misses);
        root.ok("REVOKE SELECT ON a.* FROM u@localhost");
        assert_eq!(user.query(sql), Err(1142), "also of the session's own plan");
        assert_eq!(root.ok(sql), ["a1"]);
        assert_eq!(root.misses(), misses, "accounts end no plan");
    });
}

#[test]
fn who_may_only_make_temporary_tables_sees_no_others() {
    with_server(|server| {
        let mut root = session(server, "a");
        root.ok("CREATE USER u@localhost");
        root.ok("GRANT CREATE TEMPORARY TABLES, LOCK TABLES ON a.* TO u@localhost");
        let mut user = Session(server.connect_as("u").unwrap());
        user.ok("USE a");
        for sql in ["SHOW CREATE TABLE t", "DESCRIBE t", "SHOW INDEX FROM t"] {
            assert_eq!(user.query(sql), Err(1142), "{sql}");
        }
        let tables = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'a'";
        assert!(user.ok(tables).is_empty());
        assert!(user.ok("SHOW TABLES").is_empty());
        user.ok("CREATE TEMPORARY TABLE t (own INT)");
        assert!(user.ok("SHOW CREATE TABLE t")[1].contains("`own`"));
    });
}

#[test]
fn columns_that_a_change_looks_at_are_read() {
    with_server(|server| {
        let mut root = session(server, "a");
        for sql in [
            "CREATE TABLE b.w (id INT PRIMARY KEY, n INT, secret INT)",
            "INSERT INTO b.w VALUES (1, 0, 7)",
            "CREATE USER u@localhost",
            "GRANT INSERT, UPDATE, DELETE ON b.* TO u@localhost",
        ] {
            root.ok(sql);
        }
        let mut user = Session(server.connect_as("u").unwrap());
        for sql in [
            "UPDATE b.w SET n = secret",
            "UPDATE b.w SET n = IF(ABS(secret) = 7, 1, 0)",
            "UPDATE b.w SET n = DEFAULT(n)",
            "UPDATE b.w SET n = 1 ORDER BY secret LIMIT 1",
            "DELETE FROM b.w ORDER BY secret LIMIT 1",
            "INSERT INTO b.w VALUES (1, 0, 0) ON DUPLICATE KEY UPDATE n = secret",
        ] {
            assert_eq!(user.query(sql), Err(1143), "{sql}");
            root.ok("UPDATE b.w SET n = 0");
        }
        user.ok("UPDATE b.w SET n = 1 LIMIT 1");
        user.ok("UPDATE b.w SET n = DEFAULT");
        user.ok("INSERT INTO b.w VALUES (1, 0, 0) ON DUPLICATE KEY UPDATE n = 5");
        user.ok("DELETE FROM b.w LIMIT 1");
    });
}

#[test]
fn changed_tables_of_a_join_need_the_right() {
    with_server(|server| {
        let mut root = session(server, "a");
        for sql in [
            "CREATE TABLE b.w (id INT PRIMARY KEY, n INT)",
            "INSERT INTO b.w VALUES (1, 0)",
            "CREATE USER u@localhost",
            "GRANT SELECT ON a.* TO u@localhost",
            "GRANT SELECT, UPDATE ON b.* TO u@localhost",
        ] {
            root.ok(sql);
        }
        let mut user = Session(server.connect_as("u").unwrap());
        user.ok("USE a");
        let read = "UPDATE a.t JOIN b.w USING (id) SET t.v = 'x' WHERE id = 2";
        let both = "UPDATE a.t JOIN b.w USING (id) SET t.v = 'x', w.n = 1 WHERE id = 2";
        let gone = "DELETE b.w FROM a.t JOIN b.w USING (id) WHERE id = 2";
        for (sql, error) in [(read, 1143), (both, 1143), (gone, 1142)] {
            assert_eq!(user.query(sql), Err(error), "{sql}");
            assert_eq!(user.query(&format!("EXPLAIN {sql}")), Err(error), "{sql}");
            root.ok(sql);
            assert_eq!(user.query(sql), Err(error), "the plan is shared: {sql}");
        }
        for sql in [
            "UPDATE a.t JOIN b.w USING (id) SET w.n = w.n + 1",
            // A name without a table means the only one that has it.
            "UPDATE a.t JOIN b.w USING (id) SET n = n + 1",
        ] {
            user.ok(sql);
        }
        assert_eq!(user.ok("SELECT n FROM b.w"), ["2"]);
        root.ok("GRANT DELETE ON b.* TO u@localhost");
        user.ok(gone);
        user.ok("DELETE FROM b.w USING b.w JOIN a.t USING (id)");
        assert!(root.ok("SELECT n FROM b.w").is_empty());
    });
}

#[test]
fn a_prepared_statement_keeps_its_database() {
    with_server(|server| {
        let mut s = session(server, "a");
        let answer = s.command(
            com::STMT_PREPARE,
            b"SELECT v, DATABASE() FROM t WHERE id = 1",
        );
        let mut body = answer[0][1..5].to_vec();
        body.extend([0, 1, 0, 0, 0]);
        s.ok("PREPARE p FROM 'SELECT v FROM t WHERE id = 1'");
        for database in ["a", "b", "a"] {
            s.ok(&format!("USE {database}"));
            let packets = s.command(com::STMT_EXECUTE, &body);
            assert!(packets[4].ends_with(b"a1\x01a"), "{:?}", packets[4]);
            assert_eq!(s.ok("EXECUTE p"), ["a1"], "with {database}");
            assert_eq!(
                s.ok("SELECT v FROM t WHERE id = 1"),
                [format!("{database}1")]
            );
            assert_eq!(s.ok("SELECT DATABASE()"), [database]);
        }
    });
}

fn key_of(s: &mut Session<'_>, sql: &str) -> String {
    s.ok(&format!("EXPLAIN FORMAT=TRADITIONAL {sql}"))[6].clone()
}

#[test]
fn literal_of_functional_key_belongs_to_plan_key() {
    with_server(|server| {
        let mut s = session(server, "a");
        s.ok("CREATE TABLE f (id INT PRIMARY KEY, n INT, s VARCHAR(20), KEY n1 ((n + 1)), KEY c ((CONCAT(s, '-'))))");
        s.ok("INSERT INTO f VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')");
        assert_eq!(key_of(&mut s, "SELECT id FROM f WHERE n + 1 = 3"), "n1");
        assert_eq!(
            key_of(&mut s, "SELECT id FROM f WHERE CONCAT(s, '-') = 'b-'"),
            "c"
        );
        let before = s.misses();
        assert_eq!(s.ok("SELECT id FROM f WHERE n + 1 = 3"), ["2"]);
        assert_eq!(s.ok("SELECT id FROM f WHERE n + 1 = 4"), ["3"]);
        assert_eq!(
            s.misses(),
            before + 1,
            "what it is compared with is a parameter"
        );
        assert_eq!(s.ok("SELECT id FROM f WHERE n + 2 = 3"), ["1"]);
        assert_eq!(s.misses(), before + 2, "another literal, another plan");
        assert_eq!(s.ok("SELECT id FROM f WHERE n + 2 = 4"), ["2"]);
        assert_eq!(s.ok("SELECT id FROM f WHERE n + 1 = 2"), ["1"]);
        // A third literal is neither the key's nor that of the plan before.
        assert_eq!(s.ok("SELECT id FROM f WHERE n + 3 = 4"), ["1"]);
        assert_eq!(s.misses(), before + 3);
    });
}

#[test]
fn functional_key_orders_and_groups() {
    with_server(|server| {
        let mut s = session(server, "a");
        s.ok("CREATE TABLE f (id INT PRIMARY KEY, d DATETIME, name VARCHAR(20), pad VARCHAR(200), KEY y ((YEAR(d)), name))");
        let rows: Vec<String> = (0..500)
            .map(|n| format!("({n}, '{}-01-01', 'n{n}', REPEAT('x', 200))", 2000 + n % 50))
            .collect();
        s.ok(&format!("INSERT INTO f VALUES {}", rows.join(",")));
        s.ok("ANALYZE TABLE f");
        for sql in [
            "SELECT id FROM f ORDER BY YEAR(d) LIMIT 3",
            "SELECT id FROM f ORDER BY YEAR(d) DESC, name DESC LIMIT 3",
            "SELECT YEAR(d), COUNT(*) FROM f GROUP BY YEAR(d)",
            "SELECT YEAR(d), name, COUNT(*) FROM f GROUP BY YEAR(d), name",
        ] {
            assert_eq!(key_of(&mut s, sql), "y", "{sql}");
        }
        // A column of the expression that is read otherwise stays read.
        assert_eq!(
            s.ok("SELECT d, YEAR(d) FROM f ORDER BY YEAR(d) DESC, name LIMIT 1"),
            ["2049-01-01 00:00:00", "2049"]
        );
    });
}
