"""The names of the files of the binary log, which `log_bin` gives as in MySQL."""

import server

OPTIONS = {"server_id": 78, "innodb_buffer_pool_size": "64M", "gtid_mode": "ON", "log_bin": "mysql-bin.log"}


def value(srv, sql):
    cur = srv.connect().cursor()
    cur.execute(sql)
    return cur.fetchone()[0]


def state(srv):
    cur = srv.connect().cursor()
    cur.execute("SHOW BINARY LOG STATUS")
    row = cur.fetchone()
    return row[0], row[4]


def restarted(srv, log_bin):
    srv.stop()
    srv.options["log_bin"] = log_bin
    return srv


def test_the_option_names_the_files(srv):
    assert value(srv, "SELECT @@log_bin_basename").endswith("/mysql-bin")
    assert value(srv, "SELECT @@log_bin") == 1
    cur = srv.connect().cursor()
    cur.execute("CREATE DATABASE named")
    file, executed = state(srv)
    assert file == "mysql-bin.000001" and executed.endswith(":1"), (file, executed)
    cur.execute("FLUSH BINARY LOGS")
    cur.execute("SHOW BINARY LOGS")
    assert [row[0] for row in cur.fetchall()] == ["mysql-bin.000001", "mysql-bin.000002"]
    cur.execute("SHOW BINLOG EVENTS IN 'mysql-bin.000001'")
    assert all(row[0] == "mysql-bin.000001" for row in cur.fetchall())
    cur.execute("PURGE BINARY LOGS TO 'mysql-bin.000002'")
    # An extension does not count.
    restarted(srv, "mysql-bin").start()
    assert state(srv) == ("mysql-bin.000002", executed)
    # Another name would begin another log, without the transactions of this one.
    restarted(srv, "other").start_refused()
    assert "log_bin=mysql-bin continues them" in srv.tail(), srv.tail()
    restarted(srv, "OFF").start()
    assert value(srv, "SELECT @@log_bin_basename") is None
    restarted(srv, "mysql-bin.log").start()
    assert state(srv)[1] == executed


def test_a_path_is_refused(_):
    refused = server.Server({**OPTIONS, "log_bin": "/tmp/mysql-bin"})
    refused.start_refused()
    assert "cannot be the name of the files" in refused.tail(), refused.tail()
