"""Passwords that the server makes, and that have expired: what MySQL's lists of statements
(tests/privileges/passwords.grants) cannot compare."""
import pymysql
import server
from test_kill import wait_until

CAN_HANDLE_EXPIRED_PASSWORDS = 1 << 22
COM_STMT_PREPARE = 0x16


def error(conn, sql):
    try:
        with conn.cursor() as cur:
            cur.execute(sql)
    except pymysql.Error as e:
        return e.args[0]
    return None


def rows(conn, sql):
    with conn.cursor() as cur:
        cur.execute(sql)
        return cur.fetchall()


def test_random_passwords_are_returned_and_work(srv):
    with srv.connect() as admin:
        made = rows(admin, "CREATE USER r1 IDENTIFIED BY RANDOM PASSWORD, r2 IDENTIFIED BY 'x', r3 IDENTIFIED BY RANDOM PASSWORD")
        assert [(user, host, factor) for user, host, _, factor in made] == [("r1", "%", 1), ("r3", "%", 1)], made
        passwords = {user: password for user, _, password, _ in made}
        assert all(len(p) == 20 for p in passwords.values()) and passwords["r1"] != passwords["r3"], made
        for user, password in passwords.items():
            srv.connect(user=user, password=password).close()
        rows(admin, "SET generated_random_password_length = 6")
        (_, _, again, _), = rows(admin, "ALTER USER r1 IDENTIFIED BY RANDOM PASSWORD")
        assert len(again) == 6
        (user, _, own, _), = rows(srv.connect(user="r1", password=again), "SET PASSWORD TO RANDOM")
        assert user == "r1" and len(own) == 20
        srv.connect(user="r1", password=own).close()
        assert rows(admin, "CREATE USER IF NOT EXISTS r1 IDENTIFIED BY RANDOM PASSWORD") == ()


def test_an_expired_password_allows_only_its_change(srv):
    with srv.connect() as admin:
        rows(admin, "CREATE USER e1 IDENTIFIED BY 'a' PASSWORD EXPIRE")
        rows(admin, "CREATE DATABASE expired")
        rows(admin, "GRANT ALL ON expired.* TO e1")

    def connect(password):
        return srv.connect(user="e1", password=password, client_flag=CAN_HANDLE_EXPIRED_PASSWORDS)
    with connect("a") as conn:
        for sql in ("SELECT 1", "SET @a = 1", "SET NAMES utf8mb4", "USE expired", "SHOW WARNINGS", "BEGIN", "ALTER USER e1 ACCOUNT UNLOCK",
                    "PREPARE s FROM 'SELECT 1'", "nonsense"):
            assert error(conn, sql) == 1820, sql
        conn._execute_command(COM_STMT_PREPARE, b"SELECT 1")
        try:
            conn._read_packet()
            raise AssertionError("prepared")
        except pymysql.Error as e:
            assert e.args[0] == 1820, e
        rows(conn, "SET PASSWORD = 'b'")
        assert rows(conn, "SELECT 1") == ((1,),)
    with connect("b") as conn, srv.connect() as admin:
        rows(admin, "ALTER USER e1 PASSWORD EXPIRE")
        assert rows(conn, "SELECT 1") == ((1,),), "sessions that are open go on"
    with connect("b") as conn:
        assert error(conn, "SELECT 1") == 1820
        rows(conn, "ALTER USER USER() IDENTIFIED BY 'c'")
        assert rows(conn, "SELECT 1") == ((1,),)


def test_what_accounts_say_survives_kill_9(srv):
    with server.Server() as own:
        with own.connect() as admin:
            rows(admin, "CREATE USER k1 IDENTIFIED BY 'a' WITH MAX_USER_CONNECTIONS 3 PASSWORD EXPIRE INTERVAL 9 DAY PASSWORD HISTORY 4 "
                        "FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME UNBOUNDED ATTRIBUTE '{\"team\": \"db\"}'")
            rows(admin, "ALTER USER k1 IDENTIFIED BY 'b' RETAIN CURRENT PASSWORD")
            before = rows(admin, "SHOW CREATE USER k1"), rows(admin, "SELECT * FROM mysql.user WHERE User = 'k1'")
        own.kill()
        own.start()
        with own.connect() as admin:
            after = rows(admin, "SHOW CREATE USER k1"), rows(admin, "SELECT * FROM mysql.user WHERE User = 'k1'")
            assert after == before, (before, after)
            assert error(admin, "ALTER USER k1 IDENTIFIED BY 'a'") == 3638
        for password in ("a", "b"):
            own.connect(user="k1", password=password).close()


def test_limits_of_connections(srv):
    with srv.connect() as admin:
        rows(admin, "CREATE USER l1 WITH MAX_USER_CONNECTIONS 2 MAX_QUERIES_PER_HOUR 4")
    first, second = (srv.connect(user="l1") for _ in range(2))
    try:
        srv.connect(user="l1")
        raise AssertionError("a third connection")
    except pymysql.Error as e:
        assert e.args == (1226, "User 'l1' has exceeded the 'max_user_connections' resource (current value: 2)"), e
    errors = [error(conn, "SELECT 1") for conn in (first, second, first, second, first, second)]
    assert errors.count(1226) >= 2 and errors[0] is None, errors
    first.close()
    wait_until("the connection is no longer counted", lambda: connects(srv, "l1"))


def connects(srv, user):
    try:
        srv.connect(user=user).close()
    except pymysql.Error:
        return False
    return True
