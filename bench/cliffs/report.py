"""Tables and verdicts of bench/cliffs."""
import math

# Measuring noise of one cell. The peers' and Nfold's cells come from one run on one machine.
NOISE = 1.10


def growth(cells):
    """How much dearer a unit is at the largest size than at the smallest; None where a cell failed."""
    if any("failed" in c for c in cells):
        return None
    return cells[-1]["unit_us"] / max(cells[0]["unit_us"], 1e-9)


def allowed_growth(row):
    """How much dearer a unit may be at the largest size than at the smallest."""
    if row["growth"] is not None:
        return row["growth"]
    first, last = row["sizes"][0], row["sizes"][-1]
    return max(1.0, math.log2(max(2, last)) / math.log2(max(2, first)))


def cell_text(cell):
    return cell["failed"] if "failed" in cell else f"{cell['unit_us']:,.1f}" + (f" ({cell['per_s']:,.0f}/s)" if "per_s" in cell else "")


def as_text(row):
    lines = [f"{row['name']}: {row['about']}; µs of processor time for {row['unit']}"]
    for server, cells in row["servers"].items():
        values = "  ".join(f"{size:,}: {cell_text(cell)}" for size, cell in zip(row["sizes"], cells))
        g = growth(cells)
        lines.append(f"  {server:8} {values}   growth {'-' if g is None else f'{g:.2f}'}")
    return "\n".join(lines)


def as_markdown(results):
    names = list(results[0]["servers"]) if results else []
    lines = ["| situation | sizes | " + " | ".join(f"{n} µs" for n in names) + " | growth of a unit's cost |",
             "| --- | --- |" + " --- |" * (len(names) + 1)]
    for row in results:
        sizes = ", ".join(f"{s:,}" for s in row["sizes"])
        cells = [", ".join(cell_text(c) for c in row["servers"][n]) for n in names]
        grown = ", ".join("–" if growth(row["servers"][n]) is None else f"{growth(row['servers'][n]):.2f}" for n in names)
        lines.append(f"| {row['about']}, {row['unit']} | {sizes} | " + " | ".join(cells) + f" | {grown} |")
    return "\n".join(lines) + "\n"


def verdicts(results):
    """A line for each bound that Nfold exceeds: dearer than the better peer, or growing by more than a logarithm."""
    lines = []
    for row in results:
        ours = row["servers"].get("Nfold")
        if ours is None:
            continue
        if "failed" in ours[-1]:
            lines.append(f"{row['name']}: Nfold failed: {ours[-1].get('message', ours[-1]['failed'])}")
            continue
        g, allowed = growth(ours), allowed_growth(row) * NOISE
        if g > allowed:
            lines.append(f"{row['name']}: a unit grows {g:.2f} times, allowed are {allowed:.2f}")
        for at, size in enumerate(row["sizes"]):
            peers = [c[at]["unit_us"] for n, c in row["servers"].items() if n != "Nfold" and "failed" not in c[at]]
            if peers and ours[at]["unit_us"] > min(peers) * NOISE:
                lines.append(f"{row['name']} at {size:,}: {ours[at]['unit_us']:,.1f} µs, the better peer {min(peers):,.1f} µs")
    return lines
