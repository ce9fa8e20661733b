"""Tables and verdicts of bench/cliffs.

A row of results is a situation: its name, sizes, rules, and by server a list of cells. A cell is
{"unit_us": ..., "per_s": ...} or {"failed": why}.
"""
import math

# Measuring noise of one cell. The peers' and Nfold's cells come from one run on one machine.
NOISE = 1.10
NFOLD, FLOOR = "Nfold", "floor"


def least(row, again):
    """The row with each cell's least time and greatest throughput of two measurements."""
    def better(a, b):
        if "failed" in a or "failed" in b:
            return b if "failed" in a else a
        cell = min(a, b, key=lambda c: c["unit_us"])
        return cell | ({"per_s": max(a["per_s"], b["per_s"])} if "per_s" in cell else {})

    servers = {name: [better(a, b) for a, b in zip(cells, again["servers"][name])]
               for name, cells in row["servers"].items()}
    return row | {"servers": servers}


def is_complete(cells):
    return bool(cells) and not any("failed" in c for c in cells)


def growth(cells):
    """How much dearer a unit is at the largest size than at the smallest; None where a cell failed.
    """
    if not is_complete(cells):
        return None
    return cells[-1]["unit_us"] / max(cells[0]["unit_us"], 1e-9)


def growths_beyond_floor(row):
    """How much dearer Nfold's unit is at each size than at the smallest, without what the floor
    server's unit grows by in the same situation; None where a cell failed or the floor is not
    measured."""
    cells, floor = row["servers"].get(NFOLD), row["servers"].get(FLOOR)
    if not is_complete(cells) or not is_complete(floor):
        return None
    paid_by_floor = [f["unit_us"] - floor[0]["unit_us"] for f in floor]
    first = max(cells[0]["unit_us"], 1e-9)
    return [(c["unit_us"] - paid) / first for c, paid in zip(cells, paid_by_floor)]


def growth_beyond_floor(row):
    """As `growth`, without what the floor server's unit grows by in the same situation."""
    growths = growths_beyond_floor(row)
    return growths[-1] if growths else growth(row["servers"][NFOLD])


def allowed_growth(row):
    """How much dearer a unit may be at the largest size than at the smallest."""
    if row["growth"] is not None:
        return row["growth"]
    first, last = row["sizes"][0], row["sizes"][-1]
    return max(1.0, math.log2(max(2, last)) / math.log2(max(2, first)))


def peers_of(row):
    return {n: cells for n, cells in row["servers"].items() if n not in (NFOLD, FLOOR)}


def dearer(row):
    """(size, ours, the better peer's) where a unit costs more than on the better peer."""
    found = []
    for at, size in enumerate(row["sizes"]):
        ours = row["servers"][NFOLD][at]
        peers = [c[at]["unit_us"] for c in peers_of(row).values() if "failed" not in c[at]]
        if "failed" not in ours and peers and ours["unit_us"] > min(peers) * NOISE:
            found.append((size, ours["unit_us"], min(peers)))
    return found


def slower(row):
    """(size, ours, the better peer's) where the throughput is below the better peer's."""
    found = []
    for at, size in enumerate(row["sizes"]):
        ours = row["servers"][NFOLD][at].get("per_s")
        peers = [c[at]["per_s"] for c in peers_of(row).values() if "per_s" in c[at]]
        if ours is not None and peers and ours < max(peers):
            found.append((size, ours, max(peers)))
    return found


def broken_rules(row):
    """The rules that Nfold breaks in a situation, one line for each."""
    ours = row["servers"].get(NFOLD)
    if not ours:
        return []
    if not is_complete(ours):
        failed = next(c for c in ours if "failed" in c)
        return [f"failed: {failed.get('message', failed['failed'])}"]
    lines = []
    g, allowed = growth_beyond_floor(row), allowed_growth(row)
    if g > allowed * NOISE:
        lines.append(f"a unit grows {g:.2f} times, allowed are {allowed:.2f}")
    if row["compared"]:
        lines += [f"at {size:,}: {ours:,.1f} µs, the better peer {peer:,.1f} µs"
                  for size, ours, peer in dearer(row)]
    if row["fastest"]:
        lines += [f"at {size:,}: {ours:,.0f}/s, the better peer {peer:,.0f}/s"
                  for size, ours, peer in slower(row)]
    return lines


def cell_text(cell):
    if "failed" in cell:
        return cell["failed"]
    us = cell["unit_us"]
    text = f"{us:,.2f}" if us < 10 else f"{us:,.1f}" if us < 100 else f"{us:,.0f}"
    return text + (f" ({cell['per_s']:,.0f}/s)" if "per_s" in cell else "")


def growth_text(cells):
    g = growth(cells)
    return "–" if g is None else f"{g:.2f}"


def as_text(row):
    lines = [f"{row['name']}: {row['about']}; µs of processor time for {row['unit']}"]
    for server, cells in row["servers"].items():
        values = "  ".join(f"{size:,}: {cell_text(cell)}" for size, cell in zip(row["sizes"], cells))
        lines.append(f"  {server:8} {values}   growth {growth_text(cells)}")
    if beyond := growths_beyond_floor(row):
        ratios = "  ".join(f"{size:,}: {g:.2f}" for size, g in zip(row["sizes"], beyond))
        lines.append(f"  Nfold to its smallest size, without the floor's growth: {ratios}")
    lines += [f"  BREAKS A RULE: {rule}" for rule in broken_rules(row)]
    return "\n".join(lines)


def as_markdown(results):
    """One table. A bold figure breaks its rule: dearer than the better peer where the situation is
    compared, slower where throughput counts, or a growth beyond the allowed one."""
    names = []
    for row in results:
        names += [n for n in row["servers"] if n not in names and n != FLOOR]
    head = ["situation", "sizes", *(f"{n} µs" for n in names), "growth", "allowed"]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for row in results:
        marked = {size for size, *_ in dearer(row)} if row["compared"] else set()
        marked |= {size for size, *_ in slower(row)} if row["fastest"] else set()
        cells = []
        for name in names:
            texts = [cell_text(c) for c in row["servers"].get(name, [])]
            if name == NFOLD:
                texts = [f"**{t}**" if size in marked or "failed" in cell else t
                         for t, size, cell in zip(texts, row["sizes"], row["servers"][name])]
            cells.append(", ".join(texts))
        g, allowed = growth_beyond_floor(row), allowed_growth(row)
        grown = "–" if g is None else f"{g:.2f}"
        if g is None or g > allowed * NOISE:
            grown = f"**{grown}**"
        about = f"{row['about']}, {row['unit']}"
        if is_complete(row["servers"].get(FLOOR)):
            floor = ", ".join(cell_text(c) for c in row["servers"][FLOOR])
            ratios = ", ".join(f"{g:.2f}" for g in growths_beyond_floor(row))
            about += (f" (the floor: {floor} µs, whose growth does not count; "
                      f"Nfold without it: {ratios})")
        sizes = ", ".join(f"{s:,}" for s in row["sizes"])
        lines.append("| " + " | ".join([about, sizes, *cells, grown, f"{allowed:.2f}"]) + " |")
    return "\n".join(lines) + "\n"


def verdicts(results):
    """A line for each rule that Nfold breaks."""
    return [f"{row['name']}: {rule}" for row in results for rule in broken_rules(row)]
