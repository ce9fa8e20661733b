"""Other plans of MySQL for the same statement: MySQL differs from itself where one of them answers
as Nfold does. Each way is asked; nothing is accepted unseen."""

import itertools
import re

from compare import differences
import keys
from nodes import Node

SIMPLE_PLANS = "semijoin=off,materialization=off,derived_merge=off,derived_condition_pushdown=off,condition_fanout_filter=off,block_nested_loop=off,hash_join=off"
LENIENT = "ONLY_FULL_GROUP_BY"
# Notes about a hint that a plan cannot follow.
ABOUT_HINTS = {3126, 3127, 3128}


def _is_and(node, i):
    """Whether part `i` of a node is the AND between two conditions."""
    between = any(isinstance(p, str) and "BETWEEN" in p for p in node.parts)
    return node.parts[i] == " AND " and not between and 0 < i < len(node.parts) - 1 and all(isinstance(node.parts[i + d], Node) for d in (-1, 1))


def swap_sides(root):
    """Exchanges the sides of each AND in place; gives how many there are."""
    count = 0
    for node in root.nodes():
        for i in range(len(node.parts)):
            if _is_and(node, i):
                node.parts[i - 1], node.parts[i + 1] = node.parts[i + 1], node.parts[i - 1]
                count += 1
    return count


# How a condition is hidden: inside a function, and as the value of a subquery, in which MySQL
# leaves constants as they are.
HIDDEN = [("IF(RAND() < 2, ", ", NULL)"), ("(SELECT MAX(", "))")]


def _conditions(root):
    """(node, the place of a condition's first part, and of the part behind its last one)"""
    for node in root.nodes():
        if len(node.parts) > 1 and node.parts[0] in (" WHERE ", " AND "):
            yield node, 1, len(node.parts)
        for i, part in enumerate(node.parts[:-1]):
            if isinstance(part, str) and part.endswith(" ON ") and isinstance(node.parts[i + 1], Node):
                yield node, i + 1, i + 2


def with_hidden_conditions(root):
    """The statement with its conditions hidden in each way: MySQL cannot decide them while it
    plans, or look rows up by them. Empty without conditions."""
    found = list(_conditions(root))
    whole = [list(node.parts) for node, _, _ in found]
    texts = []
    for before, after in HIDDEN if found else []:
        for node, first, end in found:
            node.parts[first:end] = [Node(before, *node.parts[first:end], after)]
        texts.append(root.sql())
        for (node, _, _), parts in reversed(list(zip(found, whole))):
            node.parts[:] = parts
    return texts


def in_orders(sql):
    """The statement with each order of its outermost tables as a hint."""
    aliases = list(dict.fromkeys(re.findall(r"\bt\d\b(?= ON | JOIN | LEFT | WHERE | GROUP | ORDER |$)", sql)))
    if not sql.startswith("SELECT ") or not 1 < len(aliases) < 4:
        return []
    return [f"SELECT /*+ JOIN_ORDER({', '.join(order)}) */ {sql[7:]}" for order in itertools.permutations(aliases)]


def by_keys(sql, tables):
    """A change of one table by each of the table's keys."""
    found = re.match(r"(UPDATE (?:IGNORE )?`(r\d)`)( SET .*)", sql, re.S)
    table = next((t for t in tables if found and t.name == found[2]), None)
    if not table:
        return []
    names = re.findall(r"KEY `(k\d)`", table.definition) + ["PRIMARY"] * ("PRIMARY KEY" in table.definition)
    return [f"{found[1]} FORCE INDEX ({name}){found[3]}" for name in names]


class Ways:
    """The plans of one round's MySQL."""

    def __init__(self, current):
        self.round = current
        self.mysql, self.nfold = current.sides

    def answers(self, statement, prepared, kind):
        """Whether MySQL answers as Nfold does under another plan or mode. `kind` is that of the
        difference: if warnings or types differ, they have to be equal there, too."""
        settings = [f"optimizer_switch = '{keys.NESTED_LOOPS}'", f"optimizer_switch = '{SIMPLE_PLANS}'"]
        if not statement.changes and kind != "types":
            settings.append(f"sql_mode = '{LENIENT}'")
        for setting in settings:
            if self._under(setting, statement, prepared, kind):
                return True
        if kind == "warnings" and swap_sides(statement.root):
            try:
                swapped = statement.sql()
            finally:
                swap_sides(statement.root)
            for setting in ["@none = 1", *settings]:
                if self._under(setting, statement, prepared, kind, swapped):
                    return True
        if kind == "warnings":
            for sql in by_keys(statement.sql(), self.round.tables):
                if self._under("@none = 1", statement, prepared, kind, sql):
                    return True
        if kind in ("warnings", "types", "rows") and not statement.changes:
            for sql in [*with_hidden_conditions(statement.root), *in_orders(statement.sql())]:
                if self._same(statement, kind, sql):
                    return True
        return self._without_keys(statement, kind)

    def _under(self, setting, statement, prepared, kind, sql=None):
        self.mysql.run(f"SET @mode = @@sql_mode, {setting}")
        found = self.round.try_statement(statement, prepared, False, mysql_sql=sql)
        self.mysql.run("SET sql_mode = @mode, optimizer_switch = DEFAULT")
        return not any(f.startswith(("rows", "affected", "error", kind)) for f in found)

    def _same(self, statement, kind, sql):
        answer = self.mysql.run(sql)
        answer.warnings = [w for w in answer.warnings if w[0] not in ABOUT_HINTS]
        found = differences(answer, self.nfold.run(statement.sql()), ordered=statement.ordered, loose=statement.loose)
        return not any(f.startswith(("rows", "error", kind)) for f in found)

    def _without_keys(self, statement, kind):
        """Whether MySQL says what Nfold says when its tables have no keys."""
        mysql, database = self.mysql, self.round.database
        plain = f"{database}_plain"
        for sql in (f"DROP DATABASE IF EXISTS `{plain}`", f"CREATE DATABASE `{plain}`", "SET @mode = @@sql_mode, sql_mode = ''"):
            mysql.run(sql)
        for table in self.round.tables:
            mysql.run(f"CREATE TABLE `{plain}`.`{table.name}` SELECT * FROM `{database}`.`{table.name}`")
            # EXCEPT and INTERSECT tell equal values of CHAR apart if their lengths in bytes differ.
            for c in [c for c in table.columns if c.type.startswith("CHAR") and kind == "rows"]:
                mysql.run(f"ALTER TABLE `{plain}`.`{table.name}` MODIFY {c.definition().replace('CHAR', 'VARCHAR', 1)}")
        mysql.run("SET sql_mode = @mode")
        mysql.run(f"USE `{plain}`")
        modes = ["@mode"] if statement.changes or kind == "types" else ["@mode", f"'{LENIENT}'"]
        orders = in_orders(statement.sql()) if kind in ("warnings", "types") else []
        same = False
        for mode in modes:
            mysql.run(f"SET sql_mode = {mode}")
            if statement.changes:
                found = self.round.try_statement(statement, False, False)
                same = same or not found
            else:
                same = same or any(self._same(statement, kind, sql) for sql in [statement.sql(), *orders])
        mysql.run(f"USE `{database}`")
        mysql.run(f"DROP DATABASE `{plain}`")
        mysql.run("SET sql_mode = @mode")
        return same
