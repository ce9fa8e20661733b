"""Clients that move money between accounts on several shards, and the checks of what is left.

A transfer changes two accounts and writes an entry beside each of them, all in one transaction."""

import random
import threading
import time

import pymysql

ACCOUNTS, BALANCE = 200, 1000
TABLES = [
    ("accounts", "id INT PRIMARY KEY, balance INT NOT NULL"),
    # The id of an entry has the parity of its account's id, so both are on the same shard.
    ("entries", "id BIGINT PRIMARY KEY, transfer BIGINT NOT NULL, account INT NOT NULL, amount INT NOT NULL"),
]


class Clients:
    """`count` sessions of `connect()` that transfer until `stop`."""

    def __init__(self, connect, count=12, first=1, seed=1):
        self.connect, self.seed = connect, seed
        self.acknowledged, self.refused, self.errors = set(), 0, {}
        self.lock, self.ended, self.next = threading.Lock(), threading.Event(), first
        self.threads = [threading.Thread(target=self.work, args=(n,), daemon=True) for n in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(120)
            assert not thread.is_alive(), "a client does not end"

    def wait(self, seconds, least=20):
        """Waits `seconds`, and until at least this many more transfers are acknowledged."""
        before = len(self.acknowledged)
        for polls in range(20 * 90):
            if polls >= 20 * seconds and len(self.acknowledged) >= before + least:
                return
            time.sleep(0.05)
        raise AssertionError(f"no transfers: {self.errors}")

    def work(self, number):
        chance, connection = random.Random(self.seed * 1000 + number), None
        while not self.ended.is_set():
            with self.lock:
                transfer, self.next = self.next, self.next + 1
            try:
                connection = connection or self.connect()
                self.move(connection.cursor(), transfer, chance)
                with self.lock:
                    self.acknowledged.add(transfer)
            except (pymysql.MySQLError, OSError) as e:
                with self.lock:
                    self.refused += 1
                    text = str(e)[:150]
                    self.errors[text] = self.errors.get(text, 0) + 1
                connection = abandon(connection)
                self.ended.wait(0.05)
        if connection:
            connection.close()

    @staticmethod
    def move(cur, transfer, chance):
        # One account of each parity: a transfer changes both shards.
        accounts = [2 * chance.randrange(ACCOUNTS // 2), 2 * chance.randrange(ACCOUNTS // 2) + 1]
        chance.shuffle(accounts)
        amount = chance.randint(1, 20)
        cur.execute("BEGIN")
        for account, change in zip(accounts, (-amount, amount)):
            cur.execute(f"UPDATE accounts SET balance = balance + {change} WHERE id = {account}")
        rows = (f"({2 * transfer + account % 2}, {transfer}, {account}, {change})" for account, change in zip(accounts, (-amount, amount)))
        cur.execute(f"INSERT INTO entries VALUES {', '.join(rows)}")
        cur.execute("COMMIT")


def abandon(connection):
    """Closes the connection, whose open transaction the server rolls back."""
    try:
        connection.close()
    except (pymysql.MySQLError, OSError, AttributeError):
        pass


def fill(connection):
    """Makes the accounts."""
    values = ", ".join(f"({n}, {BALANCE})" for n in range(ACCOUNTS))
    connection.cursor().execute(f"INSERT INTO accounts VALUES {values}")


def prepared(nodes):
    """The prepared branches of all nodes."""
    found = []
    for node in nodes:
        with node.connect() as conn:
            cur = conn.cursor()
            cur.execute("XA RECOVER")
            found += [(node.port, row[3]) for row in cur.fetchall()]
    return found


def until_none_prepared(nodes, seconds=90):
    """Waits until the coordinator has ended all prepared branches; the seconds that it took."""
    for polls in range(5 * seconds):
        left = prepared(nodes)
        if not left:
            return polls / 5
        time.sleep(0.2)
    raise AssertionError(f"still prepared: {left}")


def check(shards, acknowledged):
    """The money is complete, no transfer is on one shard only, and each acknowledged one is there.

    shards: for each table the rows of each shard."""
    accounts, entries = shards["accounts"], shards["entries"]
    assert all(accounts) and all(entries), "a shard is empty"
    balances = {number: balance for rows in accounts for number, balance in rows}
    assert len(balances) == ACCOUNTS and sum(balances.values()) == ACCOUNTS * BALANCE, (len(balances), sum(balances.values()))
    expected = dict.fromkeys(range(ACCOUNTS), BALANCE)
    for rows in entries:
        for _, _, account, amount in rows:
            expected[account] += amount
    assert balances == expected, {n: (balances[n], expected[n]) for n in expected if balances[n] != expected[n]}
    here, there = ({transfer for _, transfer, _, _ in rows} for rows in entries)
    assert here == there, f"on one shard only: {sorted(here ^ there)[:20]}"
    assert acknowledged <= here, f"acknowledged and lost: {sorted(acknowledged - here)[:20]}"
    return len(here)
