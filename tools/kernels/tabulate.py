#!/usr/bin/env python3
"""Makes the kernel tables of topology/kernels/ from published measurements.

    tools/kernels/tabulate.py FOLDER

FOLDER holds the measurements as CSV (gemm: gemm_dtype, m, n, k, latency_us), named
<chip>.<family>.<stack>-<version>.csv.gz. Rates are those of topology/chips. Only maintainers run it,
once for each new version of the measurements: podsim reads what it writes, and needs no Python.

A share is the time of the roofline over the measured time: the larger of 2mnk over the data sheet's
FLOP/s and of the bytes of both operands and the result over the data sheet's HBM rate. The grid has
the powers of two. A point is the median of the shares of the rows at it and at its neighbours in m
within 2 %, so that a spike of one row does not become a table's. A point that nobody measured has the share
of the nearest m of its n and k, or of the nearest k.
"""
import csv
import gzip
import itertools
import json
import math
import os
import statistics
import sys

COMMIT = "095f58a51c4ca8e61b66ec108d86f223f8d559ce"
PUBLISHER = "ai-dynamo/aiconfigurator"
CHIPS = {
    "a100_sxm": "a100-sxm",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "gb200": "gb200-nvl72",
}
# The publisher's chip, family, stack and version.
SOURCES = [
    ("a100_sxm", "gemm", "sglang", "0.5.10"),
    ("h100_sxm", "gemm_bf16", "sglang", "0.5.14"),
    ("h200_sxm", "gemm_bf16", "sglang", "0.5.14"),
    ("b200_sxm", "gemm_bf16", "sglang", "0.5.14"),
    ("gb200", "gemm_bf16", "sglang", "0.5.14"),
    ("h100_sxm", "gemm", "trtllm", "1.3.0rc20"),
    ("h200_sxm", "gemm", "trtllm", "1.3.0rc20"),
    ("b200_sxm", "gemm", "trtllm", "1.3.0rc20"),
    ("gb200", "gemm", "trtllm", "1.3.0rc20"),
]
TITLES = {"sglang": "SGLang", "trtllm": "TensorRT-LLM"}
FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}  # Of a table; what is not here is left out.
ELEMENT_BYTES = {"bf16": 2, "fp8": 1}


TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../topology")
UNITS = {"TFLOP/s": 1e12, "PFLOP/s": 1e15, "TB/s": 1e12, "GB/s": 1e9}


def amount(text):
    digits = text.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ/s")
    return float(digits) * UNITS[text[len(digits):]]


def rates_of(chip):
    """FLOP/s by format and bytes/s, as texts with units."""
    with open(os.path.join(TOPOLOGY, "chips", CHIPS[chip] + ".json")) as text:
        data = json.load(text)
    return {name: of["value"] for name, of in data["math"].items()}, data["hbm_rate"]["value"]


def roofline_us(shape, element_bytes, flop_per_s, bytes_per_s):
    m, n, k = shape
    moved = (m * k + n * k) * element_bytes + m * n * 2
    return max(2 * m * n * k / flop_per_s, moved / bytes_per_s) * 1e6


def rows_of(folder, source):
    """Shares by format and shape."""
    chip, family, stack, version = source
    rates, bytes_per_s = rates_of(chip)
    path = os.path.join(folder, f"{chip}.{family}.{stack}-{version}.csv")
    opened = open(path) if os.path.exists(path) else gzip.open(path + ".gz", "rt")
    shares = {}
    with opened as text:
        for row in csv.DictReader(text):
            format_name = FORMATS.get(row.get("gemm_dtype", "bfloat16"))
            if format_name is None:
                continue
            shape = (int(row["m"]), int(row["n"]), int(row["k"]))
            least = roofline_us(shape, ELEMENT_BYTES[format_name], amount(rates[format_name]),
                                amount(bytes_per_s))
            shares.setdefault(format_name, {})[shape] = least / float(row["latency_us"])
    return shares


def powers(values):
    return [value for value in values if value & (value - 1) == 0]


def distance(at, shape):
    """The least first: another m, then another k, then another n."""
    steps = [abs(math.log2(one / other)) for one, other in zip(at, shape)]
    return (steps[1] > 0, steps[2] > 0, sum(steps), at)


def grid_of(shares):
    axes = [powers(sorted({shape[axis] for shape in shares})) for axis in range(3)]
    rows = sorted({shape[0] for shape in shares})
    near = {m: [row for row in rows if abs(row - m) <= m / 50] for m in axes[0]}
    grid = {}
    for n, k in itertools.product(axes[1], axes[2]):
        for m in axes[0]:
            there = [shares[(row, n, k)] for row in near[m] if (row, n, k) in shares]
            if there:
                grid[(m, n, k)] = statistics.median(there)
    for shape in itertools.product(*axes):
        if shape not in grid:
            grid[shape] = grid[min(grid, key=lambda at: distance(at, shape))]
    return axes, grid


def looked_up(axes, grid, shape):
    """By the logarithms of the share and of the sides, as sim/kernels does."""
    places = []
    for value, axis in zip(shape, axes):
        low = max(i for i, edge in enumerate(axis) if edge <= value)
        low = min(low, len(axis) - 2)
        places.append((axis[low], axis[low + 1], math.log2(value / axis[low]) /
                       math.log2(axis[low + 1] / axis[low])))
    total = 0.0
    for corner in range(8):
        weight, at = 1.0, []
        for axis, (low, high, part) in enumerate(places):
            is_high = corner >> axis & 1
            weight *= part if is_high else 1 - part
            at.append(high if is_high else low)
        if weight > 0:
            total += weight * math.log2(grid[tuple(at)])
    return 2**total


def errors_of(axes, grid, shares):
    errors = sorted(abs(share / looked_up(axes, grid, shape) - 1) for shape, share in shares.items())
    return [round(errors[min(len(errors) - 1, int(part * len(errors)))] * 1e6) for part in (0.5, 0.9)]


def table_of(source, format_name, shares):
    chip, family, stack, version = source
    rates, bytes_per_s = rates_of(chip)
    axes, grid = grid_of(shares)
    median, ninetieth = errors_of(axes, grid, shares)
    print(f"{chip} {stack} {format_name}: {len(shares)} rows, {len(grid)} points, a row is off by "
          f"{median / 1e4:.1f} % (median), {ninetieth / 1e4:.1f} % (9 of 10)")
    family_folder = family.split("_")[0]
    return {
        "format": format_name,
        "layout": "TN",
        "source": f"{PUBLISHER} {chip}/{family_folder}/{stack}/{version} at {COMMIT[:12]}, "
                  "Apache-2.0",
        "flop_rate": rates[format_name],
        "hbm_rate": bytes_per_s,
        "rows": len(shares),
        "error_median_ppm": median,
        "error_ninetieth_ppm": ninetieth,
        "m": axes[0],
        "n": axes[1],
        "k": axes[2],
        "share_ppm": [max(1, min(1000000, round(grid[(m, n, k)] * 1e6)))
                      for m in axes[0] for n in axes[1] for k in axes[2]],
    }


def main():
    folder = sys.argv[1]
    for source in SOURCES:
        chip, _, stack, version = source
        name = CHIPS[chip]
        document = {
            "podsim_kernels": 1,
            "chip": name,
            "stack": stack,
            "title": f"{TITLES[stack]} {version}",
            "matmul": [table_of(source, format_name, shares)
                       for format_name, shares in sorted(rows_of(folder, source).items())],
        }
        path = os.path.join(TOPOLOGY, "kernels", f"{name}.{stack}.json")
        text = json.dumps(document, indent=1)
        # A list of numbers is one line.
        parts = text.split("[\n    ")
        for i in range(1, len(parts)):
            head, rest = parts[i].split("]", 1)
            parts[i] = "[" + " ".join(head.split()) + "]" + rest
        with open(path, "w") as file:
            file.write(parts[0] + "".join(parts[1:]) + "\n")


main()
