"""The general log: what is in it, when it is written, and that the lab reads it."""
import os
import re
import struct

import lab
import pymysql
from test_slow_log import contents, execute
from wire import Session

OPTIONS = {"general_log": "ON", "general_log_file": "general.log"}


def lines_of(text, connection):
    """(command, argument) of a connection's lines."""
    found = re.findall(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\t +(\d+) ([A-Z][A-Za-z ]+)\t(.*)$", text, re.M)
    return [(command, argument) for id_, command, argument in found if int(id_) == connection]


def test_every_command_is_in_it(srv):
    conn = srv.connect()
    cur = conn.cursor()
    cur.execute("CREATE DATABASE general")
    conn.select_db("general")
    cur.execute("CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(20))")
    cur.execute("INSERT INTO t VALUES (1,'x'), (2,'it''s')")
    cur.execute("CREATE USER hidden@localhost IDENTIFIED BY 'open sesame'")
    cur.execute("PREPARE s FROM 'SELECT a FROM t WHERE a = ?'")
    cur.execute("SET @a = 2")
    cur.execute("EXECUTE s USING @a")
    try:
        cur.execute("SELEKT 1")
    except pymysql.Error as e:
        assert e.args[0] == 1064
    cur.execute("SET sql_log_off = 1")
    cur.execute("SELECT 'unseen'")
    cur.execute("SET sql_log_off = 0")
    conn.close()
    wire = Session(host="127.0.0.1", port=srv.port, user="root", database="general")
    execute(wire, "SELECT a FROM t WHERE s = ? AND a < ?", b"\xfd\0\x03\0", b"\x04it's" + struct.pack("<i", 9))
    wire.query("SELECT 1; SELECT\n2")
    second = wire.conn.thread_id()
    wire.close()
    text = contents(srv, "general.log", f"{second} Quit\t\n")
    assert text.startswith("nfold, Version: ") and "\nTime                 Id Command    Argument\n" in text, text[:300]
    assert "open sesame" not in text and "unseen" not in text
    first = lines_of(text, conn.thread_id())
    assert first[0][0] == "Connect" and first[0][1] == "root@localhost on  using TCP/IP", first
    wanted = [("Query", "CREATE DATABASE general"), ("Init DB", "general"), ("Query", "CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(20))"),
              ("Query", "INSERT INTO t VALUES (1,'x'), (2,'it''s')"), ("Query", "CREATE USER hidden@localhost IDENTIFIED BY <secret>"),
              ("Query", "PREPARE s FROM 'SELECT a FROM t WHERE a = ?'"), ("Prepare", "SELECT a FROM t WHERE a = ?"), ("Query", "SET @a = 2"),
              ("Query", "EXECUTE s USING @a"), ("Execute", "SELECT a FROM t WHERE a = 2"), ("Query", "SELEKT 1"), ("Query", "SET sql_log_off = 1"),
              ("Quit", "")]
    assert [line for line in first[1:] if line in wanted] == wanted, first
    assert lines_of(text, second)[1:] == [
        ("Prepare", "SELECT a FROM t WHERE s = ? AND a < ?"), ("Execute", "SELECT a FROM t WHERE s = 'it''s' AND a < 9"), ("Query", "SELECT 1"),
        ("Query", "SELECT"), ("Quit", "")], text
    assert "\tSELECT\n2\n" in text, "a statement of several lines stays as it is"


def test_switches(srv):
    cur = srv.connect().cursor()
    cur.execute("SELECT @@log_output, @@general_log")
    assert cur.fetchall() == (("FILE", 1),)
    cur.execute("SET GLOBAL general_log_file = 'second.log'")
    cur.execute("SELECT 'in the second'")
    contents(srv, "second.log", "SELECT 'in the second'\n")
    os.rename(os.path.join(srv.datadir, "second.log"), os.path.join(srv.datadir, "second.1"))
    cur.execute("FLUSH GENERAL LOGS")
    cur.execute("SELECT 'behind the turn'")
    contents(srv, "second.log", "SELECT 'behind the turn'\n")
    for off, on in (("general_log = OFF", "general_log = ON"), ("log_output = 'NONE'", "log_output = 'FILE'")):
        cur.execute(f"SET GLOBAL {off}")
        cur.execute("SELECT 'while it is off'")
        cur.execute(f"SET GLOBAL {on}")
        cur.execute(f"SELECT 'on again', '{on[:5]}'")
        assert "while it is off" not in contents(srv, "second.log", f"SELECT 'on again', '{on[:5]}'\n")
    for value, number in (("'TABLE'", 1235), ("'FILE,TABLE'", 1235), ("'PAPER'", 1231), ("''", 1231), ("NULL", 1231), ("1.5", 1232)):
        try:
            cur.execute(f"SET GLOBAL log_output = {value}")
        except pymysql.Error as e:
            assert e.args[0] == number, (value, e)
        else:
            raise AssertionError(value)
    cur.execute("SET GLOBAL log_output = 'file,none'")
    cur.execute("SELECT @@log_output")
    assert cur.fetchone() == ("NONE,FILE",)
    cur.execute("SET GLOBAL log_output = 2")
    cur.execute("SHOW GLOBAL STATUS LIKE 'Nfold_general_log_lost'")
    assert cur.fetchone()[1] == "0"
    cur.execute("SET GLOBAL general_log_file = 'general.log'")


def test_lab_digests_the_general_log(srv):
    cur = srv.connect().cursor()
    for n in range(1, 8):
        cur.execute(f"SELECT 'for the lab',\n {n} IN ({','.join(['5'] * n)})")
    contents(srv, "general.log", "7 IN (5,5,5,5,5,5,5)\n")
    assert lab.digested(os.path.join(srv.datadir, "general.log"), "for the lab") == 7
