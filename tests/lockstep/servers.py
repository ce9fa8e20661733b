"""Starts the two servers, puts them back into a clean state between files, and notices when one has
died."""

import os
import shutil
import subprocess
import sys
import tempfile
import time

import pymysql

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import server  # noqa: E402

SYSTEM = {"mysql", "sys", "information_schema", "performance_schema"}


class Nfold:
    """The server under test: a fresh data directory for each file."""

    def __init__(self):
        self.server, self.log_at, self.home = None, 0, None

    def where(self):
        return {"unix_socket": self.server.beside + ".sock"}

    def fresh(self):
        self.stop()
        options = {"innodb_buffer_pool_size": "128M", "secure_file_priv": ""}
        # As deep as MySQL's, for files whose names begin with `../../`.
        self.home = tempfile.mkdtemp(prefix="lockstep-nfold-")
        self.server = server.Server(options, datadir=os.path.join(self.home, "data")).start()
        for attempt in range(100):  # its socket file follows its port
            try:
                with pymysql.connect(user="root", **self.where()) as admin:
                    admin.cursor().execute("CREATE DATABASE IF NOT EXISTS test")
                return
            except pymysql.err.OperationalError:
                if attempt == 99:
                    raise
                time.sleep(0.05)

    def trouble(self):
        """What has gone wrong since the last question: "crash", "panic", or None. A dead server is
        started again."""
        with open(self.server.log_path, "rb") as f:
            f.seek(self.log_at)
            news = f.read()
            self.log_at += len(news)
        if not self.server.alive():
            self.server.start()
            return "crash", news.decode("utf-8", "replace")[-600:]
        if b"panicked at" in news:
            return "panic", news[news.find(b"panicked at"):][:400].decode("utf-8", "replace")
        return None

    def stop(self):
        if self.server:
            self.log_at = 0
            try:
                self.server.__exit__(None, None, None)
            except RuntimeError:
                pass
            shutil.rmtree(self.home, ignore_errors=True)
            self.server = None


class MySQL:
    """The reference: unpacked by `fetch` below `cache`; its data directory is copied from a
    template once it is spoilt. The template has the time zones that MySQL's own test run loads."""

    def __init__(self, cache):
        self.cache, self.process = os.path.abspath(cache), None
        self.dist = os.path.join(self.cache, "dist")
        self.home = tempfile.mkdtemp(prefix="lockstep-mysql-")
        self.variables = {}

    def command(self, datadir, *more):
        lib = os.path.join(self.dist, "usr/lib/x86_64-linux-gnu")
        usr = os.path.join(self.dist, "usr")
        return [f"{lib}/ld-linux-x86-64.so.2", "--library-path", f"{lib}:{usr}/lib/mysql/private", f"{usr}/sbin/mysqld",
                "--no-defaults", "--user=root", f"--basedir={usr}", f"--datadir={datadir}",
                f"--lc-messages-dir={usr}/share/mysql", f"--character-sets-dir={usr}/share/mysql/charsets",
                f"--plugin-dir={usr}/lib/mysql/plugin", *more]

    def where(self):
        return {"unix_socket": os.path.join(self.home, "mysqld.sock")}

    def start(self):
        template = os.path.join(self.cache, "template-with-zones")
        if not os.path.isdir(template):
            new = template + ".new"
            command = self.command(new, "--initialize-insecure", f"--init-file={self.time_zones()}")
            subprocess.run(command, check=True, capture_output=True)
            os.rename(new, template)
        data = os.path.join(self.home, "data")
        if not os.path.isdir(data):
            shutil.copytree(template, data)
        with open(os.path.join(self.home, "error.log"), "ab") as log:
            self.process = subprocess.Popen(
                self.command(data, f"--socket={self.home}/mysqld.sock", "--skip-networking", "--mysqlx=OFF", "--skip-log-bin",
                             "--performance_schema=OFF", "--secure-file-priv=", "--innodb_buffer_pool_size=128M",
                             "--innodb_flush_log_at_trx_commit=0", f"--pid-file={self.home}/mysqld.pid"),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(240):
            try:
                with pymysql.connect(user="root", **self.where()) as admin:
                    cursor = admin.cursor()
                    cursor.execute("SHOW GLOBAL VARIABLES")
                    self.variables = self.variables or dict(cursor.fetchall())
                return
            except pymysql.err.MySQLError:
                time.sleep(0.25)
        raise RuntimeError(f"MySQL does not start: see {self.home}/error.log")

    def time_zones(self):
        """Path of a file of statements, a line each, that fill the tables of time zones."""
        with open(os.path.join(self.cache, "tests/include/mtr_test_data_timezone.sql"), encoding="utf-8") as f:
            inserts = [line for line in f if line.startswith("INSERT")]
        path = os.path.join(self.home, "time_zones.sql")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(["USE mysql;\n", *inserts])
        return path

    def fresh(self):
        """Databases and users dropped, global variables as at the start; a copy of the template if
        that fails."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        try:
            self.clean()
        except pymysql.err.MySQLError:
            self.stop(last=False)
            self.start()
            self.clean()

    def connect(self):
        return pymysql.connect(user="root", autocommit=True, read_timeout=60, **self.where())

    def clean(self):
        """A session takes its variables from the global ones when it begins, so databases are
        made by one that begins after these are put back: a database takes the session's set."""
        with self.connect() as admin:
            self.end_sessions(admin.cursor(), admin.thread_id())
            self.restore_variables(admin.cursor())
        with self.connect() as admin:
            self.remove_objects(admin.cursor())
            admin.cursor().execute("CREATE DATABASE test")

    def end_sessions(self, cursor, own):
        cursor.execute("SELECT id FROM information_schema.processlist WHERE user NOT IN ('event_scheduler', 'system user')")
        for (thread,) in cursor.fetchall():
            if thread != own:
                self.attempt(cursor, f"KILL {thread}")

    def restore_variables(self, cursor):
        cursor.execute("SHOW GLOBAL VARIABLES")
        for name, value in cursor.fetchall():
            if self.variables.get(name) != value:
                old = self.variables[name]
                self.attempt(cursor, f"SET GLOBAL {name} = {old if old.lstrip('-').isdigit() else repr(old)}")

    @staticmethod
    def remove_objects(cursor):
        """Drops databases and users."""
        cursor.execute("SHOW DATABASES")
        for (name,) in cursor.fetchall():
            if name not in SYSTEM:
                quoted = name.replace("`", "``")
                cursor.execute(f"DROP DATABASE `{quoted}`")
        cursor.execute("SELECT user, host FROM mysql.user WHERE user NOT LIKE 'mysql.%' AND NOT (user = 'root' AND host = 'localhost')")
        for user, host in cursor.fetchall():
            cursor.execute("DROP USER %s@%s", (user, host))

    @staticmethod
    def attempt(cursor, sql):
        try:
            cursor.execute(sql)
        except pymysql.err.MySQLError:
            pass

    def trouble(self):
        if self.process.poll() is not None:
            self.start()
            return "mysql crash", ""
        return None

    def stop(self, last=True):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(os.path.join(self.home, "data"), ignore_errors=True)
        if last:
            shutil.rmtree(self.home, ignore_errors=True)
