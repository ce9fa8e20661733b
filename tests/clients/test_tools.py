"""Tools that introspect: mysqldump and the mariadb client, PyMySQL as a limited user, SQLAlchemy,
Django. Foreign keys and CHECK constraints are not there
yet, so Django runs the applications and models that need none."""

import datetime
import decimal
import os
import subprocess
import sys

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))

TYPES = """
CREATE TABLE every_type (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT ZEROFILL, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(20,6),
  i BIT(12), j DATE, k TIME(6), l DATETIME(3), m TIMESTAMP(6) NULL, n YEAR, o CHAR(5), p VARCHAR(40) COLLATE utf8mb4_bin, q BINARY(4), r VARBINARY(30),
  s TINYTEXT, t TEXT CHARACTER SET latin1, u MEDIUMTEXT, v LONGTEXT, w TINYBLOB, x BLOB, y LONGBLOB, z ENUM('x','it''s','é'), aa SET('p','q','r'),
  bb INT NOT NULL DEFAULT 7 COMMENT 'it''s a \\\\ comment', cc DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id), UNIQUE KEY u (b, c), KEY k (p(7), j DESC))
"""


def connect(srv, user="root", password="", **kw):
    where = {"host": "127.0.0.1", "port": srv.port, "user": user, "password": password}
    return pymysql.connect(charset="utf8mb4", autocommit=True, **where, **kw)


def client(srv, program, *arguments, text=None):
    """What a command-line client writes; raises with its errors."""
    command = [program, "-h127.0.0.1", f"-P{srv.port}", "-uroot", "--ssl=0", *arguments]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 0, (command, done.stderr.decode())
    return done.stdout


def rows(srv, database, table):
    with connect(srv, database=database, conv={}, use_unicode=False) as conn, conn.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
        return cursor.fetchall()


def fill(srv):
    with connect(srv) as conn, conn.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS dump_a")
        cursor.execute("DROP DATABASE IF EXISTS dump_b")
        cursor.execute("CREATE DATABASE dump_a")
        cursor.execute("CREATE DATABASE dump_b")
        cursor.execute("USE dump_a")
        cursor.execute(TYPES)
        every_byte = bytes(range(256))
        insert = "INSERT INTO every_type VALUES (" + ",".join(["%s"] * 30) + ")"
        cursor.execute(insert, (
            1, -128, 65535, -8388608, 42, -2**63, 1.5, 1e300, decimal.Decimal("-12345678901234.123456"), b"\x0f\xff", "9999-12-31", "-838:59:59.000000",
            "2020-02-29 23:59:59.999", "2038-01-19 03:14:07.123456", 2155, "é☃", "quote ' back \\ nl \n tab \t nul \0 😀", b"\0\1", every_byte[:30],
            "", "é\n", "x" * 70000, ";\n--", every_byte[:255], every_byte * 20, b"", "it's", "p,r", 1, "2001-01-01 00:00:00"))
        cursor.execute(insert, (2, *[None] * 27, 0, None))
        cursor.execute("CREATE TABLE `odd name;` (`a``b` INT PRIMARY KEY) DEFAULT CHARSET=latin1")
        cursor.execute("INSERT INTO `odd name;` VALUES (3),(1),(2)")
        cursor.execute("CREATE TABLE no_key (a INT, b VARCHAR(10) DEFAULT 'x')")
        cursor.executemany("INSERT INTO no_key VALUES (%s, %s)", [(n, f"r{n}") for n in range(2000)])


def check_same(srv):
    for table in ("every_type", "`odd name;`", "no_key"):
        before, after = rows(srv, "dump_a", table), rows(srv, "dump_b", table)
        assert before and before == after, (table, before[:2], after[:2])
    with connect(srv) as conn, conn.cursor() as cursor:
        for table in ("every_type", "`odd name;`", "no_key"):
            cursor.execute(f"SHOW CREATE TABLE dump_a.{table}")
            original = cursor.fetchone()
            cursor.execute(f"SHOW CREATE TABLE dump_b.{table}")
            assert cursor.fetchone() == original


def test_mysqldump_and_reload(srv):
    for options in ([], ["--single-transaction", "--routines", "--triggers", "--events", "--hex-blob"], ["--skip-lock-tables", "--skip-extended-insert", "--complete-insert"]):
        fill(srv)
        client(srv, "mariadb", "dump_b", text=client(srv, "mysqldump", *options, "dump_a"))
        check_same(srv)


def test_mysqldump_locks_writers_out(srv):
    fill(srv)
    with connect(srv, database="dump_a") as reader, connect(srv, database="dump_a") as writer:
        reader.cursor().execute("LOCK TABLES no_key READ")
        writer.cursor().execute("SET lock_wait_timeout=1")
        try:
            writer.cursor().execute("INSERT INTO no_key VALUES (1, 'y')")
            raise AssertionError("the lock was not felt")
        except pymysql.err.OperationalError as e:
            assert e.args[0] == 1205, e
        reader.cursor().execute("UNLOCK TABLES")
        writer.cursor().execute("INSERT INTO no_key VALUES (1, 'y')")


def test_mysqldump_of_everything(srv):
    fill(srv)
    text = client(srv, "mysqldump", "--all-databases")
    assert b"CREATE DATABASE" in text and b"`odd name;`" in text and b"-- Dump completed" in text


def test_mariadb_client(srv):
    fill(srv)
    status = client(srv, "mariadb", "-e", r"\s").decode()
    assert "Server version" in status and "Uptime" in status, status
    # With --auto-rehash the client reads all tables and columns when it begins.
    out = client(srv, "mariadb", "--auto-rehash", "dump_a", "-t", text=b"SELECT COUNT(*) FROM no_key;\nDESCRIBE every_type;\nSHOW TABLE STATUS;\n").decode()
    assert "2000" in out and "every_type" in out, out
    assert "every_type" in client(srv, "mysqlshow", "dump_a").decode()


def test_a_user_sees_its_databases_only(srv):
    fill(srv)
    with connect(srv) as root, root.cursor() as cursor:
        cursor.execute("DROP USER IF EXISTS narrow")
        cursor.execute("CREATE USER narrow IDENTIFIED BY 'pw'")
        cursor.execute("GRANT SELECT ON dump_b.* TO narrow")
        cursor.execute("CREATE TABLE dump_b.seen (a INT PRIMARY KEY)")
    with connect(srv, "narrow", "pw") as conn, conn.cursor() as cursor:
        def values(sql):
            cursor.execute(sql)
            return [row[0] for row in cursor.fetchall()]

        assert values("SHOW DATABASES") == ["dump_b", "information_schema", "performance_schema"]
        assert sorted(values("SELECT schema_name FROM information_schema.schemata")) == ["dump_b", "information_schema", "performance_schema"]
        assert values("SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND engine = 'InnoDB'") == ["seen"]
        assert values("SELECT privileges FROM information_schema.columns WHERE table_name = 'seen'") == ["select"]
        assert values("SELECT DISTINCT table_schema FROM information_schema.statistics WHERE table_schema LIKE 'dump%'") == ["dump_b"]
        assert values("SELECT DISTINCT grantee FROM information_schema.user_privileges") == ["'narrow'@'%'"]
        assert values("SELECT privilege_type FROM information_schema.schema_privileges") == ["SELECT"]
        assert set(values("SELECT user FROM information_schema.processlist")) == {"narrow"}
        for sql, errno in [("SELECT * FROM information_schema.innodb_tables", 1227), ("DROP TABLE information_schema.tables", 1044),
                           ("INSERT INTO information_schema.schemata VALUES (1)", 1044), ("CREATE TABLE information_schema.x (a INT)", 1044),
                           ("USE dump_a", 1044), ("SHOW TABLES FROM dump_a", 1044)]:
            try:
                cursor.execute(sql)
                raise AssertionError(f"{sql} was allowed")
            except pymysql.err.MySQLError as e:
                assert e.args[0] == errno, (sql, e)


def test_sqlalchemy(srv):
    import sqlalchemy as sa
    from sqlalchemy.orm import Session, declarative_base
    with connect(srv) as root, root.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS alchemy")
        cursor.execute("CREATE DATABASE alchemy")
    engine = sa.create_engine(f"mysql+pymysql://root@127.0.0.1:{srv.port}/alchemy?charset=utf8mb4")
    base = declarative_base()

    class Person(base):
        __tablename__ = "people"
        id = sa.Column(sa.Integer, primary_key=True)
        name = sa.Column(sa.String(50), unique=True, nullable=False, comment="the name")
        born = sa.Column(sa.Date)
        at = sa.Column(sa.DateTime, server_default=sa.func.now())
        price = sa.Column(sa.Numeric(10, 2), index=True)
        ok = sa.Column(sa.Boolean, default=True)
        data = sa.Column(sa.LargeBinary)
        kind = sa.Column(sa.Enum("a", "b"))
        __table_args__ = (sa.Index("two", "born", "price"), {"comment": "everybody"})

    base.metadata.create_all(engine)
    base.metadata.create_all(engine)  # finds what is there
    inspector = sa.inspect(engine)
    assert "alchemy" in inspector.get_schema_names() and inspector.get_table_names() == ["people"] and inspector.get_view_names() == []
    columns = {c["name"]: c for c in inspector.get_columns("people")}
    assert list(columns) == ["id", "name", "born", "at", "price", "ok", "data", "kind"]
    assert columns["name"]["comment"] == "the name" and not columns["name"]["nullable"] and columns["id"]["autoincrement"]
    assert str(columns["price"]["type"]) == "DECIMAL(10, 2)" and columns["kind"]["type"].enums == ["a", "b"]
    assert inspector.get_pk_constraint("people")["constrained_columns"] == ["id"]
    assert {i["name"]: (i["column_names"], i["unique"]) for i in inspector.get_indexes("people")} == {
        "name": (["name"], True), "two": (["born", "price"], False), "ix_people_price": (["price"], False)}
    assert inspector.get_table_comment("people") == {"text": "everybody"} and inspector.get_foreign_keys("people") == []
    with Session(engine) as session:
        session.add_all([Person(name=f"n{n}", born=datetime.date(2020, 1, n + 1), price=decimal.Decimal("1.5"), data=b"\0\xff", kind="a") for n in range(5)])
        session.commit()
        one = session.query(Person).filter_by(name="n1").one()
        assert (one.born, one.price, one.ok, one.data, one.kind) == (datetime.date(2020, 1, 2), decimal.Decimal("1.50"), True, b"\0\xff", "a")
        assert isinstance(one.at, datetime.datetime)
        one.name = "new"
        with session.begin_nested():
            session.add(Person(name="inner"))
        try:
            with session.begin_nested():
                session.add(Person(name="new"))
            raise AssertionError("a second row of that name")
        except sa.exc.IntegrityError as e:
            assert e.orig.args[0] == 1062
        session.commit()
        assert sorted(session.query(Person.kind, sa.func.count()).group_by(Person.kind).all(), key=str) == [("a", 5), (None, 1)]
        assert session.query(Person).filter(Person.name.in_(["n2", "n3"])).with_for_update().count() == 2
        session.delete(one)
        session.commit()
        assert session.query(Person).count() == 5
    reflected = sa.MetaData()
    reflected.reflect(engine)
    assert list(reflected.tables) == ["people"] and reflected.tables["people"].c.price.type.scale == 2
    for level in ("SERIALIZABLE", "READ COMMITTED", "AUTOCOMMIT"):
        with engine.connect().execution_options(isolation_level=level) as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(reflected.tables["people"])).scalar() == 5
    base.metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []
    engine.dispose()


def test_django(srv):
    with connect(srv) as root, root.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS django")
        cursor.execute("CREATE DATABASE django")
    done = subprocess.run([sys.executable, os.path.join(HERE, "django_round_trip.py"), str(srv.port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, done.stdout.decode()[-3000:]
