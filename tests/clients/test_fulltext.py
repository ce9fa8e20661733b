"""Full-text indexes beside writers, old snapshots and kill -9: a search finds exactly the rows
whose text has the word, and no acknowledged change is lost."""
import random
import re
import shutil
import tempfile
import threading

import pymysql
import server

WORDS = [f"word{n}" for n in range(40)]
WRITERS = 4


def rows(conn, sql):
    with conn.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def run(conn, *statements):
    for sql in statements:
        with conn.cursor() as cursor:
            cursor.execute(sql)


def document(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(12)))


class Writer(threading.Thread):
    """Changes rows of its own in random transactions. `documents` are the acknowledged ones;
    `uncertain` are those of the transaction whose answer did not come."""

    def __init__(self, srv, number, transactions):
        super().__init__(daemon=True)
        self.srv, self.rng, self.transactions = srv, random.Random(number), transactions
        self.first = number * 1000
        self.documents, self.uncertain = {}, None
        self.finished = 0

    def run(self):
        try:
            with self.srv.connect() as conn:
                while self.transactions is None or self.finished < self.transactions:
                    self.transaction(conn)
                    self.finished += 1
        except pymysql.MySQLError:
            pass  # The server was killed.

    def transaction(self, conn):
        after = dict(self.documents)
        self.uncertain = after
        run(conn, "BEGIN")
        for _ in range(self.rng.randrange(1, 5)):
            row = self.first + self.rng.randrange(50)
            if row not in after:
                after[row] = document(self.rng)
                run(conn, f"INSERT INTO d.t (id, a) VALUES ({row}, '{after[row]}')")
            elif self.rng.random() < 0.3:
                del after[row]
                run(conn, f"DELETE FROM d.t WHERE id = {row}")
            elif self.rng.random() < 0.2:
                run(conn, f"UPDATE d.t SET n = n + 1 WHERE id = {row}")
            else:
                after[row] = document(self.rng)
                run(conn, f"UPDATE d.t SET a = '{after[row]}' WHERE id = {row}")
        if self.rng.random() < 0.25:
            run(conn, "ROLLBACK")
        else:
            run(conn, "COMMIT")
            self.documents = after
        self.uncertain = None


def create(conn):
    run(conn, "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, n INT DEFAULT 0, a TEXT, FULLTEXT (a))")


def assert_searches_find_words(conn):
    """Compares each search with the texts of the same snapshot."""
    run(conn, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    texts = rows(conn, "SELECT id, a FROM d.t")
    for word in WORDS:
        expected = sorted(row for row, text in texts if re.search(rf"\b{word}\b", text))
        for search in (f"'{word}'", f"'+{word}' IN BOOLEAN MODE"):
            found = rows(conn, f"SELECT id FROM d.t WHERE MATCH (a) AGAINST ({search}) ORDER BY id")
            assert [row for (row,) in found] == expected, search
    frequency = {row: text.split().count("word7") for row, text in texts}
    ranks = rows(conn, "SELECT id, MATCH (a) AGAINST ('word7') FROM d.t")
    weights = {rank / frequency[row] for row, rank in ranks if frequency[row]}
    assert not weights or max(weights) - min(weights) < 1e-6, weights
    assert all(rank == 0 for row, rank in ranks if not frequency[row])
    run(conn, "COMMIT")
    return dict(texts)


def test_searches_beside_writers_and_in_old_snapshots(srv):
    with srv.connect() as conn, srv.connect() as old:
        create(conn)
        writers = [Writer(srv, n, 60) for n in range(WRITERS)]
        for writer in writers:
            writer.start()
        while sum(writer.finished for writer in writers) < 40 and any(w.is_alive() for w in writers):
            assert_searches_find_words(conn)
        run(old, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        search = "SELECT id, MATCH (a) AGAINST ('word1 word2') AS m FROM d.t WHERE MATCH (a) AGAINST ('word1 word2') ORDER BY id"
        before = [row for row, _ in rows(old, search)]
        texts = dict(rows(old, "SELECT id, a FROM d.t"))
        while any(writer.is_alive() for writer in writers):
            assert_searches_find_words(conn)
            assert [row for row, _ in rows(old, search)] == before, "a snapshot changes"
        assert before == sorted(row for row, text in texts.items() if re.search(r"\bword[12]\b", text))
        run(old, "COMMIT")
        expected = {}
        for writer in writers:
            expected.update(writer.documents)
        assert assert_searches_find_words(conn) == expected
        assert rows(conn, "CHECK TABLE d.t")[-1][-1] == "OK"


def test_kill_and_restart_keep_the_index(_):
    top = tempfile.mkdtemp(prefix="nfold-fulltext-")
    try:
        datadir = top + "/data"
        with server.Server(datadir=datadir) as srv:
            with srv.connect() as conn:
                create(conn)
            writers = [Writer(srv, n, None) for n in range(WRITERS)]
            for writer in writers:
                writer.start()
            while min(writer.finished for writer in writers) < 30:
                assert all(writer.is_alive() for writer in writers)
            srv.kill()
            for writer in writers:
                writer.join()
        with server.Server(datadir=datadir) as again, again.connect() as conn:
            found = assert_searches_find_words(conn)
            assert rows(conn, "CHECK TABLE d.t")[-1][-1] == "OK"
            for writer in writers:
                own = {row: text for row, text in found.items() if row // 1000 * 1000 == writer.first}
                assert own in (writer.documents, writer.uncertain), "a transaction is lost or half there"
            run(conn, "DELETE FROM d.t")
            assert assert_searches_find_words(conn) == {}
            assert rows(conn, "CHECK TABLE d.t")[-1][-1] == "OK"
    finally:
        shutil.rmtree(top)
