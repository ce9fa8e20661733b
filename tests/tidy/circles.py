"""Circles of imports inside a crate: none over two folders, none of more than a few files.

Folders are a crate's stages or layers, and imports between them go one way, as between crates. Two
rules follow. `circle`: no file belongs to a circle of files that lie in several folders, nor to one
of more than MAX_CIRCLE files in a single folder. `folders`: of the folders side by side in one
folder, none imports another that imports it back, directly or through others.
"""

import itertools

from source import Finding

MAX_CIRCLE = 12


def strongly_connected(graph):
    """The circles of a graph ({node: nodes}): its strongly connected components of two or more."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in graph:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    circle = stack[stack.index(node) :]
                    del stack[len(stack) - len(circle) :]
                    on_stack.difference_update(circle)
                    if len(circle) > 1:
                        found.append(circle)
    return found


def file_circles(crate):
    """Circles that break the rule: pairs of the modules' paths and the folders they lie in."""
    found = []
    for circle in strongly_connected(crate.imports):
        folders = {crate.modules[path].folder for path in circle}
        if len(folders) > 1 or len(circle) > MAX_CIRCLE:
            found.append((sorted(circle), sorted(folders)))
    return found


def folder_imports(crate):
    """Imports between folders that lie side by side: {parent: {folder: {folder: [imports]}}}.

    An import from `a/b` to `c/d` counts between `a` and `c`. An import is (file, line, file).
    """
    found = {}
    for path, targets in crate.imports.items():
        source = crate.modules[path]
        for target_path, offset in targets.items():
            target = crate.modules[target_path]
            one, other = source.folder, target.folder
            same = sum(1 for _ in itertools.takewhile(lambda p: p[0] == p[1], zip(one, other)))
            if same < min(len(one), len(other)):
                here = found.setdefault(one[:same], {})
                a, b = one[: same + 1], other[: same + 1]
                here.setdefault(b, {})
                line = source.source.line_of(offset)
                here.setdefault(a, {}).setdefault(b, []).append((source.file, line, target.file))
    return found


def check(crates):
    for crate in crates:
        yield from check_files(crate)
        yield from check_folders(crate)


def check_files(crate):
    for circle, folders in file_circles(crate):
        members = set(circle)
        for path in circle:
            module = crate.modules[path]
            inside = {t: o for t, o in crate.imports[path].items() if t in members}
            target, offset = min(
                inside.items(),
                key=lambda edge: (crate.modules[edge[0]].folder == module.folder, edge[1]),
            )
            if len(folders) > 1:
                what = f"a circle of {len(circle)} files over {len(folders)} folders"
            else:
                what = f"a circle of {len(circle)} files; {MAX_CIRCLE} are allowed in a folder"
            advice = (
                f"this import of {crate.modules[target].file} is part of {what}: move what is "
                "shared below both (tests/tidy/run --circles)"
            )
            yield Finding("circle", module.file, module.source.line_of(offset), advice)


def check_folders(crate):
    for parent, graph in folder_imports(crate).items():
        for circle in strongly_connected(graph):
            for folder in sorted(circle):
                targets = [t for t in graph[folder] if t in circle]
                file, line, target = graph[folder][targets[0]][0]
                others = ", ".join(sorted("/".join(t) for t in circle if t != folder))
                advice = (
                    f"imports {target}, but imports lead back from there: folders side by side "
                    f"({'/'.join(folder)}, {others}) import one way (tests/tidy/run --circles)"
                )
                key = f"{crate.src}/{'/'.join(folder)}"
                yield Finding("folders", file, line, advice, key)


def least_backward(nodes, weight):
    """The order of `nodes` in which the fewest imports go backwards (to an earlier node).

    `weight[a, b]` counts the imports of `b` in `a`; `a` should stand before what it imports. Exact
    up to 14 nodes (dynamic programming over subsets), beyond that by moving one node at a time.
    """
    nodes = list(nodes)
    cost = lambda a, b: weight.get((a, b), 0)  # noqa: E731
    if len(nodes) > 14:
        order, better = nodes, True
        total = lambda o: sum(
            cost(o[j], o[i]) for j in range(len(o)) for i in range(j)
        )  # noqa: E731
        while better:
            better = False
            for node in nodes:
                rest = [n for n in order if n != node]
                tries = [rest[:i] + [node] + rest[i:] for i in range(len(nodes))]
                best = min(tries, key=total)
                if total(best) < total(order):
                    order, better = best, True
        return order
    best = {0: (0, ())}
    for subset in range(1, 1 << len(nodes)):
        choices = []
        for last in range(len(nodes)):
            if subset >> last & 1:
                before, order = best[subset & ~(1 << last)]
                backward = sum(cost(nodes[last], nodes[n]) for n in order)
                choices.append((before + backward, (*order, last)))
        best[subset] = min(choices)
    return [nodes[n] for n in best[(1 << len(nodes)) - 1][1]]


def report(crates):
    """Lines for a reader who restructures a crate."""
    for crate in crates:
        circles = strongly_connected(crate.imports)
        bad = file_circles(crate)
        largest = max((len(c) for c in circles), default=0)
        yield f"{crate.name}: {len(crate.imports)} files, largest circle {largest} files"
        for circle, folders in bad:
            yield from report_circle(crate, circle, folders)
        for parent, graph in folder_imports(crate).items():
            for circle in strongly_connected(graph):
                names = ", ".join(sorted("/".join(f) for f in circle))
                yield f"  folders side by side that import one another: {names}"


def report_circle(crate, circle, folders):
    members, edges = set(circle), {}
    for path in circle:
        module = crate.modules[path]
        for target, offset in crate.imports[path].items():
            if target in members and crate.modules[target].folder != module.folder:
                pair = (module.folder, crate.modules[target].folder)
                place = (module.file, module.source.line_of(offset), crate.modules[target].file)
                edges.setdefault(pair, []).append(place)
    named = {f: "src/" + "/".join(f) for f in folders}
    yield f"  circle of {len(circle)} files over {len(folders)} folders:"
    for folder in folders:
        count = sum(crate.modules[p].folder == folder for p in circle)
        yield f"    {named[folder]} ({count} files)"
    if len(folders) == 1:
        return
    order = least_backward(folders, {pair: len(places) for pair, places in edges.items()})
    backward = [(a, b) for (a, b) in sorted(edges) if order.index(a) > order.index(b)]
    yield "    order with the fewest imports upwards: " + ", ".join(named[f] for f in order)
    yield f"    {sum(len(edges[p]) for p in backward)} imports go upwards and would have to go:"
    for pair in backward:
        for file, line, target in sorted(edges[pair]):
            yield f"      {file}:{line} -> {target}"
