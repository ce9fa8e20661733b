"""Statements as trees, so that one that shows a difference can be made smaller piece by piece."""


class Node:
    """A piece of SQL: texts and nodes in order.

    optional: it may be left out whole (the texts around it still fit). fixed: it stands as it is
    when a statement is made smaller.
    """

    __slots__ = ("parts", "optional", "fixed")

    def __init__(self, *parts, optional=False, fixed=False):
        self.parts, self.optional, self.fixed = list(parts), optional, fixed

    def sql(self):
        return "".join(p.sql() if isinstance(p, Node) else p for p in self.parts)

    def nodes(self):
        """This node and all below it, outermost first."""
        yield self
        for p in self.parts:
            if isinstance(p, Node):
                yield from p.nodes()


def listed(nodes, separator=", "):
    """Nodes as a list whose members can be left out one by one, all but the last one."""
    return List(nodes, separator)


class List(Node):
    """Members with a separator."""

    __slots__ = ("separator",)

    def __init__(self, members, separator):
        super().__init__(*members)
        self.separator = separator

    def sql(self):
        return self.separator.join(p.sql() for p in self.parts)


def smaller(root):
    """Each way to make one change that shortens the tree: a generator that stops while a change
    stands, and is sent whether to keep it."""
    for node in list(root.nodes()):
        if isinstance(node, List):
            yield from _without_members(node)
            continue
        for i, part in enumerate(node.parts):
            if not isinstance(part, Node):
                continue
            if part.optional:
                yield from _replaced(node, i, "")
            elif not part.fixed and not isinstance(part, List):
                for below in [n for n in part.nodes() if n is not part and not n.fixed and not n.optional and not isinstance(n, List)]:
                    yield from _replaced(node, i, below)
                if part.sql() not in ("1", "NULL"):
                    yield from _replaced(node, i, Node("1"))


def _without_members(node):
    size = len(node.parts) // 2
    while size >= 1:
        at = 0
        while at + size <= len(node.parts) and len(node.parts) > size:
            before = node.parts
            node.parts = before[:at] + before[at + size:]
            keep = yield
            if not keep:
                node.parts = before
                at += size
        size //= 2
    for i, part in enumerate(node.parts):
        for below in [n for n in part.nodes() if n is not part and not n.fixed and not n.optional and not isinstance(n, List)]:
            yield from _replaced(node, i, below)


def _replaced(node, i, by):
    before = node.parts[i] if i < len(node.parts) else None
    if before is None or (isinstance(by, Node) and len(by.sql()) >= len(before.sql() if isinstance(before, Node) else before)):
        return
    node.parts[i] = by
    keep = False
    try:
        keep = yield
    finally:
        if not keep:
            node.parts[i] = before


def minimise(root, still, budget=80):
    """Makes the tree smaller as long as `still()` says that it shows the same difference; at most
    `budget` trials."""
    progress = True
    while progress and budget > 0:
        progress = False
        changes = smaller(root)
        try:
            next(changes)
            while budget > 0:
                budget -= 1
                good = still()
                progress = progress or good
                changes.send(good)
        except StopIteration:
            pass
        changes.close()
