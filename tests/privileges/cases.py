"""The statements and the rights of the matrix."""

# Objects that every statement finds. Root runs them once.
SETUP = """
CREATE DATABASE pm
CREATE DATABASE pm_other
CREATE TABLE pm.t (a INT PRIMARY KEY, b INT, c VARCHAR(10), KEY (b))
CREATE TABLE pm.u (a INT PRIMARY KEY, b INT, c VARCHAR(10), KEY (b))
CREATE TABLE pm.par (a INT PRIMARY KEY, b INT)
CREATE TABLE pm.kid (a INT PRIMARY KEY, b INT, CONSTRAINT fk FOREIGN KEY (b) REFERENCES par (a) ON DELETE CASCADE)
CREATE TABLE pm_other.x (a INT PRIMARY KEY, b INT)
INSERT INTO pm.t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three')
INSERT INTO pm.u VALUES (1, 10, 'one'), (2, 20, 'two')
INSERT INTO pm.par VALUES (1, 1), (2, 2)
INSERT INTO pm.kid VALUES (1, 1)
CREATE VIEW pm.v AS SELECT a, b FROM pm.t
CREATE SQL SECURITY INVOKER VIEW pm.vi AS SELECT a, b FROM pm.t
CREATE VIEW pm.vv AS SELECT a FROM pm.vi
CREATE USER pm_target@localhost
CREATE ROLE pm_role
""".strip().splitlines()

TEARDOWN = """
DROP DATABASE IF EXISTS pm
DROP DATABASE IF EXISTS pm_other
DROP DATABASE IF EXISTS pm_new
DROP USER IF EXISTS pm_target@localhost, pm_made@localhost, pm_renamed@localhost, pm_role
""".strip().splitlines()

# Statements that run in a transaction that is rolled back.
CHANGES = """
INSERT INTO pm.t VALUES (9, 9, 'x')
INSERT INTO pm.t (a) VALUES (9)
INSERT INTO pm.t (a, b) VALUES (9, 1)
INSERT INTO pm.t SET b = 4, a = 9
INSERT INTO pm.t (a) VALUES (9), (8)
INSERT INTO pm.t () VALUES ()
INSERT INTO pm.t (a, b) VALUES (9, a)
INSERT INTO pm.t (a) VALUES ((SELECT MAX(a) + 7 FROM pm.u))
INSERT INTO pm.t (a) SELECT a + 10 FROM pm.u
INSERT INTO pm.t (a, b) SELECT a + 10, b FROM pm.u WHERE c = 'two'
INSERT INTO pm.t SELECT a + 10, b, c FROM pm.t
INSERT INTO pm.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 5
INSERT INTO pm.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = b + 1
INSERT INTO pm.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = VALUES(a)
INSERT INTO pm.t (a) VALUES (1) AS n ON DUPLICATE KEY UPDATE b = n.a
INSERT INTO pm.t (a) SELECT a FROM pm.u ON DUPLICATE KEY UPDATE b = u.b
INSERT IGNORE INTO pm.t (a) VALUES (1)
REPLACE INTO pm.t VALUES (1, 1, 'x')
REPLACE INTO pm.t (a) VALUES (1)
REPLACE INTO pm.t (a, b) SELECT a, b FROM pm.u
UPDATE pm.t SET a = 9 LIMIT 1
UPDATE pm.t SET b = 1
UPDATE pm.t SET b = b + 1
UPDATE pm.t SET b = a
UPDATE pm.t SET b = 1 WHERE a = 2
UPDATE pm.t SET b = 1 WHERE b = 10
UPDATE pm.t SET b = 1 ORDER BY c LIMIT 1
UPDATE pm.t SET b = 1, c = 'x' WHERE a = 1
UPDATE pm.t SET b = DEFAULT
UPDATE pm.t SET b = DEFAULT(c)
UPDATE pm.t SET b = (SELECT MAX(b) FROM pm.u)
UPDATE pm.t SET b = (SELECT MAX(u.b) FROM pm.u WHERE u.a = t.a)
UPDATE pm.t, pm.u SET t.b = 1
UPDATE pm.t, pm.u SET t.b = u.b WHERE t.a = u.a
UPDATE pm.t JOIN pm.u USING (a) SET t.b = 1
UPDATE pm.t JOIN (SELECT a FROM pm.u) d ON d.a = t.a SET t.b = 1
UPDATE pm.t x SET x.b = 1 WHERE x.a = 1
DELETE FROM pm.t
DELETE FROM pm.t WHERE a = 1
DELETE FROM pm.t WHERE b = 10
DELETE FROM pm.t ORDER BY b LIMIT 1
DELETE FROM pm.t WHERE a IN (SELECT a FROM pm.u)
DELETE pm.t FROM pm.t JOIN pm.u ON t.a = u.a
DELETE pm.t, pm.u FROM pm.t JOIN pm.u ON t.a = u.a
DELETE FROM pm.t USING pm.t WHERE t.a = 1
DELETE FROM x USING pm.t x, pm.u WHERE x.b = u.b
DELETE FROM pm.par WHERE a = 1
INSERT INTO pm.kid VALUES (5, 2)
UPDATE pm.kid SET b = 2
INSERT INTO pm.v VALUES (9, 9)
INSERT INTO pm.v (a) VALUES (9)
UPDATE pm.v SET b = 1 WHERE a = 1
UPDATE pm.v SET b = 1
DELETE FROM pm.v WHERE a = 1
INSERT INTO pm.vi (a) VALUES (9)
UPDATE pm.vi SET b = 1
DELETE FROM pm.vi
EXPLAIN INSERT INTO pm.t (a) VALUES (9)
EXPLAIN UPDATE pm.t SET b = 1 WHERE a = 1
EXPLAIN DELETE FROM pm.t WHERE a = 1
EXPLAIN REPLACE INTO pm.t (a) VALUES (9)
SELECT a FROM pm.t WHERE a = 1 FOR UPDATE
SELECT a FROM pm.t WHERE a = 1 FOR SHARE
SELECT b FROM pm.t WHERE a = 1 FOR UPDATE OF t
""".strip().splitlines()

# Statements that change nothing.
READS = """
SELECT 1
SELECT 1 FROM pm.t
SELECT COUNT(*) FROM pm.t
SELECT a FROM pm.t
SELECT b FROM pm.t
SELECT a, b FROM pm.t
SELECT * FROM pm.t
SELECT t.* FROM pm.t, pm.u
SELECT a FROM pm.t WHERE b = 10
SELECT a FROM pm.t WHERE nothing = 1
SELECT nothing FROM pm.t
SELECT a FROM pm.t ORDER BY b
SELECT MAX(b) FROM pm.t GROUP BY a
SELECT a FROM pm.t GROUP BY a HAVING MAX(b) > 1
SELECT t.a FROM pm.t JOIN pm.u ON t.b = u.b
SELECT a FROM pm.t JOIN pm.u USING (a)
SELECT * FROM pm.t NATURAL JOIN pm.u
SELECT a FROM pm.t WHERE a IN (SELECT a FROM pm.u WHERE b = 1)
SELECT a FROM pm.t WHERE EXISTS (SELECT * FROM pm.u WHERE u.b = t.b)
SELECT (SELECT b FROM pm.u WHERE u.a = t.a) FROM pm.t
SELECT d.a FROM (SELECT a, b FROM pm.t) d
SELECT d.a FROM (SELECT * FROM pm.t) d
WITH q AS (SELECT a FROM pm.t) SELECT * FROM q
SELECT a FROM pm.t UNION SELECT a FROM pm.u
SELECT SUM(b) OVER (ORDER BY c) FROM pm.t
TABLE pm.t
SELECT a FROM pm.none
SELECT a FROM nothere.none
SELECT a FROM pm_other.x
SELECT a FROM pm.v
SELECT b FROM pm.v WHERE a = 1
SELECT * FROM pm.v
SELECT a FROM pm.vi
SELECT b FROM pm.vi
SELECT a FROM pm.vv
SELECT v.a FROM pm.v JOIN pm.u ON v.b = u.b
EXPLAIN SELECT a FROM pm.t
EXPLAIN SELECT a FROM pm.v
EXPLAIN SELECT a FROM pm.vi
EXPLAIN FORMAT=TREE SELECT a FROM pm.t WHERE b = 1
DESCRIBE pm.t
DESCRIBE pm.v
SHOW COLUMNS FROM pm.t
SHOW FULL COLUMNS FROM pm.t
SHOW INDEX FROM pm.t
SHOW CREATE TABLE pm.t
SHOW CREATE TABLE pm.v
SHOW CREATE VIEW pm.v
SHOW CREATE VIEW pm.vi
SHOW CREATE TABLE pm.none
SHOW COLUMNS FROM pm.none
SHOW TABLES
SHOW TABLES FROM pm
SHOW TABLES FROM pm_other
SHOW FULL TABLES FROM pm
SHOW TABLE STATUS FROM pm
SHOW DATABASES LIKE 'pm%'
SHOW CREATE DATABASE pm
SHOW CREATE DATABASE pm_other
SHOW GRANTS
SHOW GRANTS FOR CURRENT_USER
SHOW GRANTS FOR pm_target@localhost
SHOW CREATE USER pm_target@localhost
SHOW CREATE USER CURRENT_USER
SELECT CURRENT_ROLE()
SET ROLE pm_role
SET ROLE NONE
SELECT b FROM pm.t WHERE a = 2
SET ROLE ALL
SET ROLE DEFAULT
SET DEFAULT ROLE NONE TO pm_target@localhost
SET DEFAULT ROLE pm_role TO pm_target@localhost
SHOW ENGINE INNODB STATUS
SHOW BINARY LOG STATUS
SHOW REPLICAS
SHOW TRIGGERS FROM pm
SHOW EVENTS FROM pm
SHOW OPEN TABLES FROM pm
USE pm
USE pm_other
USE nothere
CHECK TABLE pm.t
CHECKSUM TABLE pm.t
ANALYZE TABLE pm.t
OPTIMIZE TABLE pm.t
REPAIR TABLE pm.t
ANALYZE TABLE pm.t UPDATE HISTOGRAM ON c
ANALYZE TABLE pm.t DROP HISTOGRAM ON c
SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'pm' ORDER BY 1
SELECT TABLE_NAME, COLUMN_NAME, PRIVILEGES FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'pm' AND TABLE_NAME IN ('t', 'v') ORDER BY 1, 2
SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'pm%' ORDER BY 1
SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'pm' AND TABLE_NAME = 't' ORDER BY 2
SELECT TABLE_NAME, IF(VIEW_DEFINITION = '', 'hidden', 'shown') FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'pm' ORDER BY 1
SELECT CONSTRAINT_NAME, TABLE_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'pm' ORDER BY 2, 1
SELECT * FROM information_schema.USER_PRIVILEGES WHERE GRANTEE LIKE '%pm%' AND PRIVILEGE_TYPE NOT LIKE '%\\_%' ORDER BY 1, 3
SELECT * FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE LIKE '%pm%' ORDER BY 1, 3, 4
SELECT * FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE LIKE '%pm%' ORDER BY 1, 3, 4, 5
SELECT * FROM information_schema.COLUMN_PRIVILEGES WHERE GRANTEE LIKE '%pm%' ORDER BY 1, 3, 4, 5, 6
SELECT COUNT(*) FROM mysql.user WHERE user = 'pm_target'
SELECT COUNT(*) FROM mysql.db WHERE user = 'pm_target'
SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE 1 = 0
SELECT COUNT(*) FROM performance_schema.data_locks WHERE 1 = 0
SELECT COUNT(*) FROM performance_schema.threads WHERE 1 = 0
DO (SELECT MAX(a) FROM pm.t)
SET @x = (SELECT MAX(b) FROM pm.t)
HANDLER pm.t OPEN
KILL 999999999
FLUSH TABLES
FLUSH STATUS
FLUSH PRIVILEGES
FLUSH LOGS
SET SESSION sql_log_bin = 1
SET SESSION binlog_format = ROW
SET GLOBAL max_connections = 151
SET GLOBAL nothing = 1
SET SESSION sort_buffer_size = 262144
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ
LOCK TABLES pm.t READ
LOCK TABLES pm.t WRITE
LOCK TABLES pm.v READ
LOCK TABLES pm.t READ, pm.u READ
CREATE TABLE pm.t (a INT)
CREATE TABLE IF NOT EXISTS pm.t (a INT)
CREATE TEMPORARY TABLE pm.tmp (a INT)
CREATE TEMPORARY TABLE pm.tmp SELECT a FROM pm.t
CREATE TEMPORARY TABLE pm.tmp LIKE pm.t
DROP TABLE pm.none
DROP TABLE IF EXISTS pm.none
DROP VIEW pm.none
DROP VIEW IF EXISTS pm.none
DROP DATABASE IF EXISTS nothere
TRUNCATE pm.none
ALTER TABLE pm.none ADD x INT
RENAME TABLE pm.none TO pm.none2
DROP INDEX none ON pm.t
GRANT SELECT ON pm.* TO absent@nowhere
REVOKE SELECT ON pm.* FROM absent@nowhere
SET PASSWORD FOR absent@nowhere = 'x'
DROP USER absent@nowhere
DROP USER IF EXISTS absent@nowhere
ALTER USER absent@nowhere ACCOUNT LOCK
""".strip().splitlines()

# Statements with those that undo them, which root runs after a success.
DEFINITIONS = [line.split(" ;; ") for line in """
CREATE TABLE pm.n (a INT) ;; DROP TABLE pm.n
CREATE TABLE pm_other.n (a INT) ;; DROP TABLE pm_other.n
CREATE TABLE pm.n LIKE pm.t ;; DROP TABLE pm.n
CREATE TABLE pm.n SELECT a FROM pm.t ;; DROP TABLE pm.n
CREATE TABLE pm.n (a INT) SELECT a FROM pm.t WHERE b = 10 ;; DROP TABLE pm.n
CREATE TABLE pm.n (a INT, FOREIGN KEY (a) REFERENCES pm.par (a)) ;; DROP TABLE pm.n
CREATE TABLE pm.n (a INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES pm.n (a)) ;; DROP TABLE pm.n
CREATE DATABASE pm_new ;; DROP DATABASE pm_new
CREATE VIEW pm.w AS SELECT 1 ;; DROP VIEW pm.w
CREATE VIEW pm.w AS SELECT a FROM pm.t ;; DROP VIEW pm.w
CREATE VIEW pm.w AS SELECT * FROM pm.t ;; DROP VIEW pm.w
CREATE VIEW pm.w AS SELECT COUNT(*) FROM pm.t WHERE b = 1 ;; DROP VIEW pm.w
CREATE VIEW pm.w AS SELECT a FROM pm.v ;; DROP VIEW pm.w
CREATE OR REPLACE VIEW pm.w AS SELECT a FROM pm.t ;; DROP VIEW pm.w
CREATE DEFINER = root@localhost VIEW pm.w AS SELECT 1 ;; DROP VIEW pm.w
CREATE OR REPLACE VIEW pm.vv AS SELECT 1 ;; CREATE OR REPLACE VIEW pm.vv AS SELECT a FROM pm.vi
ALTER VIEW pm.vv AS SELECT 1 ;; CREATE OR REPLACE VIEW pm.vv AS SELECT a FROM pm.vi
CREATE INDEX i ON pm.t (c) ;; DROP INDEX i ON pm.t
ALTER TABLE pm.t ADD INDEX i (c) ;; DROP INDEX i ON pm.t
ALTER TABLE pm.t ADD COLUMN d INT ;; ALTER TABLE pm.t DROP COLUMN d
ALTER TABLE pm.t COMMENT = 'x' ;; ALTER TABLE pm.t COMMENT = ''
ALTER TABLE pm.t ENGINE = InnoDB ;; DO 1
ALTER TABLE pm.t RENAME TO pm.n ;; RENAME TABLE pm.n TO pm.t
ALTER TABLE pm.u ADD FOREIGN KEY (b) REFERENCES pm.par (a) ;; DO 1
RENAME TABLE pm.t TO pm.n ;; RENAME TABLE pm.n TO pm.t
RENAME TABLE pm.t TO pm_other.n ;; RENAME TABLE pm_other.n TO pm.t
ALTER DATABASE pm CHARACTER SET utf8mb4 ;; DO 1
DROP INDEX b ON pm.t ;; CREATE INDEX b ON pm.t (b)
TRUNCATE pm.u ;; INSERT INTO pm.u VALUES (1, 10, 'one'), (2, 20, 'two')
DROP TABLE pm.u ;; CREATE TABLE pm.u (a INT PRIMARY KEY, b INT, c VARCHAR(10), KEY (b)) ;; INSERT INTO pm.u VALUES (1, 10, 'one'), (2, 20, 'two')
DROP VIEW pm.vv ;; CREATE VIEW pm.vv AS SELECT a FROM pm.vi
DROP DATABASE pm_other ;; CREATE DATABASE pm_other ;; CREATE TABLE pm_other.x (a INT PRIMARY KEY, b INT)
CREATE USER pm_made@localhost ;; DROP USER pm_made@localhost
ALTER USER pm_target@localhost IDENTIFIED BY '' ;; DO 1
ALTER USER pm_target@localhost ACCOUNT UNLOCK ;; DO 1
SET PASSWORD FOR pm_target@localhost = '' ;; DO 1
RENAME USER pm_target@localhost TO pm_renamed@localhost ;; RENAME USER pm_renamed@localhost TO pm_target@localhost
DROP USER pm_target@localhost ;; CREATE USER pm_target@localhost
CREATE ROLE pm_made@localhost ;; DROP ROLE pm_made@localhost
DROP ROLE pm_target@localhost ;; CREATE USER pm_target@localhost
GRANT SELECT ON pm.* TO pm_target@localhost ;; REVOKE ALL, GRANT OPTION FROM pm_target@localhost
GRANT SELECT ON *.* TO pm_target@localhost ;; REVOKE ALL, GRANT OPTION FROM pm_target@localhost
GRANT SELECT ON pm.t TO pm_target@localhost ;; REVOKE ALL, GRANT OPTION FROM pm_target@localhost
GRANT ALL ON pm.t TO pm_target@localhost ;; REVOKE ALL, GRANT OPTION FROM pm_target@localhost
GRANT SELECT (a), INSERT (b) ON pm.t TO pm_target@localhost ;; REVOKE ALL, GRANT OPTION FROM pm_target@localhost
GRANT UPDATE (b) ON pm.t TO pm_target@localhost WITH GRANT OPTION ;; REVOKE ALL, GRANT OPTION FROM pm_target@localhost
GRANT pm_role TO pm_target@localhost ;; REVOKE pm_role FROM pm_target@localhost
REVOKE ALL, GRANT OPTION FROM pm_target@localhost ;; DO 1
REVOKE IF EXISTS SELECT ON pm.t FROM pm_target@localhost ;; DO 1
""".strip().splitlines()]

ON_TABLES = """SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|REFERENCES|INDEX|ALTER|CREATE VIEW|SHOW VIEW
|TRIGGER""".replace("\n", "").split("|")
ON_DATABASES = ON_TABLES + ["CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "CREATE ROUTINE", "EVENT"]
ON_ALL = """RELOAD|SHUTDOWN|PROCESS|FILE|SHOW DATABASES|SUPER|REPLICATION SLAVE|REPLICATION CLIENT|CREATE USER|CREATE ROLE|DROP ROLE
|SYSTEM_VARIABLES_ADMIN|SESSION_VARIABLES_ADMIN|CONNECTION_ADMIN|ROLE_ADMIN|SET_ANY_DEFINER|BINLOG_ADMIN|FLUSH_TABLES|FLUSH_STATUS
|FLUSH_PRIVILEGES|SYSTEM_USER|SHOW_ROUTINE|OPTIMIZE_LOCAL_TABLE|ALLOW_NONEXISTENT_DEFINER""".replace("\n", "").split("|")


def rights():
    """The sets of rights: a name, and the statements that grant them to {u}."""
    out = {"nothing": []}
    for p in ON_DATABASES:
        out[f"database {p}"] = [f"GRANT {p} ON pm.* TO {{u}}"]
        if p not in ("EXECUTE", "CREATE ROUTINE", "EVENT"):
            out[f"database all but {p}"] = ["GRANT ALL ON pm.* TO {u}", f"REVOKE {p} ON pm.* FROM {{u}}"]
    out["database all"] = ["GRANT ALL ON pm.* TO {u}"]
    out["database all, grant option"] = ["GRANT ALL ON pm.* TO {u} WITH GRANT OPTION"]
    out["database grant option"] = ["GRANT USAGE ON pm.* TO {u} WITH GRANT OPTION"]
    out["databases by wildcard"] = ["GRANT SELECT, INSERT ON `pm%`.* TO {u}"]
    for p in ON_TABLES:
        out[f"table {p}"] = [f"GRANT {p} ON pm.t TO {{u}}"]
        out[f"table all but {p}"] = [f"GRANT ALL ON pm.{t} TO {{u}}" for t in "tu"] + [
            f"REVOKE {p} ON pm.{t} FROM {{u}}" for t in "tu"]
        out[f"global {p}"] = [f"GRANT {p} ON *.* TO {{u}}"]
    out["tables all"] = [f"GRANT ALL ON pm.{t} TO {{u}}" for t in ("t", "u")]
    out["tables all, grant option"] = ["GRANT ALL ON pm.t TO {u} WITH GRANT OPTION"]
    out["table to be made"] = ["GRANT ALL ON pm.n TO {u}"]
    out["tables to be renamed"] = ["GRANT ALTER, DROP ON pm.t TO {u}", "GRANT CREATE, INSERT ON pm.n TO {u}"]
    out["view SELECT"] = ["GRANT SELECT ON pm.v TO {u}"]
    out["view SELECT, SHOW VIEW"] = ["GRANT SELECT, SHOW VIEW ON pm.v TO {u}"]
    out["view changes"] = ["GRANT INSERT, UPDATE, DELETE ON pm.v TO {u}"]
    out["view columns"] = ["GRANT SELECT (a), UPDATE (b), INSERT (a) ON pm.v TO {u}"]
    out["invoker's view"] = ["GRANT SELECT ON pm.vi TO {u}"]
    out["invoker's view and table"] = ["GRANT SELECT, INSERT, UPDATE, DELETE ON pm.vi TO {u}", "GRANT SELECT (a) ON pm.t TO {u}"]
    out["invoker's view, column update"] = ["GRANT UPDATE ON pm.vi TO {u}", "GRANT UPDATE (b) ON pm.t TO {u}"]
    out["view of view"] = ["GRANT SELECT ON pm.vv TO {u}"]
    out["views all"] = [f"GRANT ALL ON pm.{t} TO {{u}}" for t in ("v", "vi", "vv")]
    columns = ["SELECT (a)", "SELECT (b)", "SELECT (a, b)", "SELECT (a, b, c)", "INSERT (a)", "INSERT (a, b)",
               "INSERT (a, b, c)", "UPDATE (a)", "UPDATE (b)", "REFERENCES (a)", "SELECT (a), UPDATE (b)",
               "SELECT (b), UPDATE (b)", "SELECT (a), INSERT (a)", "SELECT (a), INSERT (a), UPDATE (b)",
               "UPDATE (b), DELETE", "SELECT (a), DELETE", "INSERT (a), DELETE", "SELECT, UPDATE (b)",
               "UPDATE, SELECT (b)"]
    for c in columns:
        out[f"columns {c}"] = [f"GRANT {c} ON pm.t TO {{u}}"]
    out["columns of two tables"] = ["GRANT SELECT (a, b) ON pm.t TO {u}", "GRANT SELECT (a) ON pm.u TO {u}"]
    out["columns and table"] = ["GRANT SELECT ON pm.u TO {u}", "GRANT SELECT (a), UPDATE (b) ON pm.t TO {u}"]
    out["columns, grant option"] = ["GRANT SELECT (a) ON pm.t TO {u} WITH GRANT OPTION"]
    out["foreign key"] = ["GRANT REFERENCES ON pm.par TO {u}", "GRANT CREATE ON pm.n TO {u}", "GRANT ALTER ON pm.u TO {u}"]
    out["foreign key, column"] = ["GRANT REFERENCES (a) ON pm.par TO {u}", "GRANT CREATE ON pm.* TO {u}"]
    out["foreign key, tables"] = ["GRANT SELECT, INSERT, UPDATE, DELETE ON pm.par TO {u}", "GRANT INSERT, UPDATE ON pm.kid TO {u}"]
    for p in ON_ALL:
        out[f"global {p}"] = [f"GRANT {p} ON *.* TO {{u}}"]
    out["global all"] = ["GRANT ALL ON *.* TO {u}"]
    out["global all, grant option"] = ["GRANT ALL ON *.* TO {u} WITH GRANT OPTION"]
    out["global grant option"] = ["GRANT USAGE ON *.* TO {u} WITH GRANT OPTION"]
    out["system tables"] = ["GRANT SELECT ON mysql.* TO {u}"]
    out["two levels"] = ["GRANT SELECT ON *.* TO {u}", "GRANT UPDATE ON pm.* TO {u}", "GRANT DELETE ON pm.t TO {u}",
                         "GRANT INSERT (a) ON pm.t TO {u}"]
    for name in BY_ROLE:
        out[f"role with {name}"] = by_role(out[name])
    out["role that is not active"] = by_role(out["database all"])[:-1]
    out["role with admin option"] = ["GRANT pm_role TO {u} WITH ADMIN OPTION"]
    out["role and own rights"] = ["GRANT INSERT ON pm.t TO {u}", *by_role(out["columns SELECT (a), UPDATE (b)"])]
    return out


# The sets of rights that come through a role as well.
BY_ROLE = ["database SELECT", "database all", "table SELECT", "table all but UPDATE", "columns SELECT (a)",
           "columns SELECT (a), UPDATE (b)", "view SELECT", "global CREATE USER", "global ROLE_ADMIN", "two levels"]


def by_role(granted):
    """The same rights through a role that is active after login."""
    through = [g.format(u="pm_role") for g in granted]
    return through + ["GRANT pm_role TO {u}", "SET DEFAULT ROLE ALL TO {u}"]
