"""What the makers of kernel tables share: rates of chips, grids, look-ups, writing."""
import bisect
import csv
import gzip
import itertools
import json
import math
import os
import statistics

COMMIT = "095f58a51c4ca8e61b66ec108d86f223f8d559ce"
PUBLISHER = "ai-dynamo/aiconfigurator"
CHIPS = {
    "a100_sxm": "a100-sxm",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "gb200": "gb200-nvl72",
}
ELEMENT_BYTES = {"bf16": 2, "fp8": 1}
TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../topology")
UNITS = {"TFLOP/s": 1e12, "PFLOP/s": 1e15, "TB/s": 1e12, "GB/s": 1e9}


def amount(text):
    digits = text.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ/s")
    return float(digits) * UNITS[text[len(digits):]]


def rates_of(chip):
    """FLOP/s by format and bytes/s of a chip of podsim, as texts with units."""
    with open(os.path.join(TOPOLOGY, "chips", chip + ".json")) as text:
        data = json.load(text)
    return {name: of["value"] for name, of in data["math"].items()}, data["hbm_rate"]["value"]


def rows_of_file(folder, chip, family, stack, version):
    end = stack if version is None else f"{stack}-{version}"
    path = os.path.join(folder, f"{chip}.{family}.{end}.csv")
    with open(path) if os.path.exists(path) else gzip.open(path + ".gz", "rt") as text:
        yield from csv.DictReader(text)


def source_of(chip, family, stack, version):
    return f"{PUBLISHER} {chip}/{family}/{stack}/{version} at {COMMIT[:12]}, Apache-2.0"


def filled(axes, grid, order):
    """A point that nobody measured has the share of the nearest: one that differs in no side of `order`
    if there is one, else in the last of these, and so on."""
    known = sorted(grid)
    for shape in itertools.product(*axes):
        if shape in grid:
            continue

        def distance(at, shape=shape):
            steps = [abs(math.log2(one / other)) for one, other in zip(at, shape)]
            return ([steps[side] > 0 for side in order], sum(steps), at)

        grid[shape] = grid[min(known, key=distance)]
    return grid


def grid_of(table, sides):
    """Shares of a table by its edges."""
    shares = [share / 1e6 for share in table["share_ppm"]]
    return dict(zip(itertools.product(*[table[side] for side in sides]), shares))


def looked_up(axes, grid, shape):
    """By the logarithms of the share and of the sides, as sim/kernels does within the grid."""
    places = []
    for value, axis in zip(shape, axes):
        low = min(bisect.bisect_right(axis, value) - 1, max(len(axis) - 2, 0))
        high = min(low + 1, len(axis) - 1)
        part = 0 if high == low else math.log2(value / axis[low]) / math.log2(axis[high] / axis[low])
        places.append((axis[low], axis[high], part))
    total = 0.0
    for corner in itertools.product((False, True), repeat=len(axes)):
        weight, at = 1.0, []
        for is_high, (low, high, part) in zip(corner, places):
            weight *= part if is_high else 1 - part
            at.append(high if is_high else low)
        if weight > 0:
            total += weight * math.log2(grid[tuple(at)])
    return 2**total


def errors_of(axes, grid, rows):
    """Of the rows within the grid: how many, and by how much half and nine of ten are off."""
    errors = sorted(
        abs(share / looked_up(axes, grid, shape) - 1) for shape, share in rows
        if all(axis[0] <= side <= axis[-1] for side, axis in zip(shape, axes)))
    parts = [round(errors[min(len(errors) - 1, int(part * len(errors)))] * 1e6) for part in (0.5, 0.9)]
    return len(errors), *parts


def table_of(name, head, sides, axes, grid, rows):
    """A table of a stack's file, from a grid of shares and the rows that it was made from."""
    count, median, ninetieth = errors_of(axes, grid, rows)
    print(f"{name}: {count} rows, {len(grid)} points, a row is off by {median / 1e4:.1f} % (median), "
          f"{ninetieth / 1e4:.1f} % (9 of 10)")
    return head | {
        "rows": count,
        "error_median_ppm": median,
        "error_ninetieth_ppm": ninetieth
    } | dict(zip(sides, axes)) | {
        "share_ppm": [max(1, min(1000000, round(grid[shape] * 1e6)))
                      for shape in itertools.product(*axes)]
    }


def write(name, document):
    text = json.dumps(document, indent=1)
    # A list of numbers is one line.
    parts = text.split("[\n    ")
    for i in range(1, len(parts)):
        head, rest = parts[i].split("]", 1)
        parts[i] = "[" + " ".join(head.split()) + "]" + rest
    with open(os.path.join(TOPOLOGY, "kernels", name + ".json"), "w") as file:
        file.write(parts[0] + "".join(parts[1:]) + "\n")


def median(values):
    return statistics.median(values)
