"""Accounts, privileges and roles after a crash, and in the tables of `mysql`."""
import pymysql
import server

MAKE = """
CREATE DATABASE d
CREATE TABLE d.t (a INT, b INT)
INSERT INTO d.t VALUES (1, 2)
CREATE ROLE r
CREATE USER u
GRANT SELECT (a) ON d.t TO r
GRANT INSERT ON d.t TO u WITH GRANT OPTION
GRANT r TO u WITH ADMIN OPTION
GRANT ROLE_ADMIN ON *.* TO u
SET DEFAULT ROLE r TO u
""".strip().splitlines()

GRANTS = """
GRANT USAGE ON *.* TO `u`@`%`
GRANT ROLE_ADMIN ON *.* TO `u`@`%`
GRANT SELECT (`a`), INSERT ON `d`.`t` TO `u`@`%` WITH GRANT OPTION
GRANT `r`@`%` TO `u`@`%` WITH ADMIN OPTION
""".strip().splitlines()


def test_grants_survive_a_kill(_):
    with server.Server() as srv:
        with srv.connect() as root, root.cursor() as cursor:
            for sql in MAKE:
                cursor.execute(sql)
        srv.kill()
        srv.start()
        with srv.connect(user="u") as conn, conn.cursor() as cursor:
            cursor.execute("SHOW GRANTS")
            assert [line for line, in cursor.fetchall()] == GRANTS
            cursor.execute("SELECT a FROM d.t")
            assert cursor.fetchall() == ((1,),)
            try:
                cursor.execute("SELECT b FROM d.t")
                raise AssertionError("a column without a privilege was read")
            except pymysql.Error as e:
                assert e.args[0] == 1143, e


def test_grant_tables_show_the_grants(srv):
    with srv.connect() as root, root.cursor() as cursor:
        for sql in MAKE:
            cursor.execute(sql)
        cursor.execute("SELECT Table_priv, Column_priv FROM mysql.tables_priv WHERE User IN ('r', 'u') ORDER BY User")
        assert cursor.fetchall() == (("", "Select"), ("Insert,Grant", ""))
        cursor.execute("SELECT User, Column_name, Column_priv FROM mysql.columns_priv")
        assert cursor.fetchall() == (("r", "a", "Select"),)
        cursor.execute("SELECT * FROM mysql.role_edges")
        assert cursor.fetchall() == (("%", "r", "%", "u", "Y"),)
        cursor.execute("SELECT * FROM mysql.default_roles")
        assert cursor.fetchall() == (("%", "u", "%", "r"),)
        cursor.execute("SELECT * FROM mysql.global_grants WHERE USER = 'u'")
        assert cursor.fetchall() == (("u", "%", "ROLE_ADMIN", "N"),)
        cursor.execute("SELECT User, account_locked, password_expired, Select_priv FROM mysql.user ORDER BY User")
        assert cursor.fetchall() == (("r", "Y", "Y", "N"), ("root", "N", "N", "Y"), ("u", "N", "N", "N"))
        cursor.execute("SELECT COUNT(*) FROM mysql.help_topic")
        assert cursor.fetchall() == ((0,),)
        for sql in ("DROP TABLE d.t", "DROP DATABASE d", "DROP USER u", "DROP ROLE r"):
            cursor.execute(sql)
        cursor.execute("SELECT COUNT(*) FROM mysql.role_edges")
        assert cursor.fetchall() == ((0,),)
