"""Tables of training, which follow from others: shares of one table times a factor that was measured.

SimuMax measured matmuls of Transformer Engine in all layouts, and attention forward and backward,
on an A100 (PCIe) and a B200, for the shapes of a few models. A factor is found at points of a
coarse grid: the mean of the logarithms of measured ratios, each weighted by exp(-d^2/2), d its
distance in octaves. Chips without such rows have the geometric mean of the two chips' ratios of a
layout to TN.
"""
import csv
import itertools
import math
import os

import tables

COMMIT = "4dcaae513ba7"
FILES = {"a100": "a100_pcie", "b200": "b200_bf16_ceperm"}
CSV = {"a100": "a100_pcie", "b200": "b200_sxm"}
CORES = {"a100": 108, "b200": 148}
NODES = [[512, 2048, 8192, 32768]] * 3
FALLS = 0.5  # Of the square of octaves.


def source_of(chips):
    names = " and ".join(FILES[chip] + ".json" for chip in chips)
    return f"MooreThreads/SimuMax configs/system/{names} at {COMMIT}, Apache-2.0"


def csv_rows(folder, chip, family):
    with open(os.path.join(folder, f"{CSV[chip]}.{family}.te-simumax.csv")) as text:
        yield from csv.DictReader(text)


def clamped(shape, axes):
    return tuple(min(max(side, axis[0]), axis[-1]) for side, axis in zip(shape, axes))


def gemm_rows(folder, chip):
    """Efficiencies by layout, format of the result and sides as executed."""
    rows = {}
    for row in csv_rows(folder, chip, "train_gemm"):
        if row["b"] == "1":
            key = (row["layout"], row["out_dtype"])
            shape = tuple(int(row[side]) for side in "mnk")
            rows.setdefault(key, []).append((shape, float(row["efficiency"])))
    return rows


def factor_of(ratios, node):
    """The smoothed ratio at a point."""
    weights = [(math.exp(-FALLS * sum(math.log2(one / other)**2 for one, other in zip(shape, node))),
                ratio) for shape, ratio in ratios]
    if max(weight for weight, _ in weights) < 1e-6:  # Far from all: the nearest decides.
        near = min(ratios, key=lambda at: sum(math.log2(a / b)**2 for a, b in zip(at[0], node)))
        return near[1]
    total = sum(weight for weight, _ in weights)
    return math.exp(sum(weight * math.log(ratio) for weight, ratio in weights) / total)


def factors(ratios):
    return {node: factor_of(ratios, node) for node in itertools.product(*NODES)}


def errors_of(axes, grid, nodes, rows):
    """How far rows are from shares times factors: half, and nine of ten."""
    off = []
    for shape, share in rows:
        base = tables.looked_up(axes, grid, clamped(shape, axes))
        found = min(1, base * tables.looked_up(NODES, nodes, clamped(shape, NODES)))
        off.append(abs(share / found - 1))
    off.sort()
    return [round(off[min(len(off) - 1, int(part * len(off)))] * 1e6) for part in (0.5, 0.9)]


def grid_of(table):
    axes = [table[side] for side in "mnk"]
    shares = [share / 1e6 for share in table["share_ppm"]]
    return axes, dict(zip(itertools.product(*axes), shares))


def ratios_of(folder, chip, base):
    """Measured over the base's shares, by layout and format of the result."""
    axes, grid = grid_of(base)
    return {key: [(shape, share / tables.looked_up(axes, grid, clamped(shape, axes)))
                  for shape, share in rows] for key, rows in gemm_rows(folder, chip).items()}


def rounded(nodes):
    return {side: NODES[i] for i, side in enumerate("mnk")} | {
        "ppm": [round(nodes[node] * 1e6) for node in itertools.product(*NODES)]}


def matmul(layout, result, of, source, derived, nodes=None, errors=(0, 0, 0)):
    entry = {"format": "bf16", "layout": layout} | ({"result": result} if result != "bf16" else {})
    entry |= {"of": {"stack": of, "layout": "TN"}, "source": source, "derived": derived}
    if nodes is not None:
        entry["factor"] = rounded(nodes)
    return entry | dict(zip(("rows", "error_median_ppm", "error_ninetieth_ppm"), errors))


def measured_matmuls(folder, chip, of, base):
    """Of a chip whose training matmuls were measured."""
    axes, grid = grid_of(base)
    rows = gemm_rows(folder, chip)
    entries, smooth = [], {}
    for key, ratios in sorted(ratios_of(folder, chip, base).items(), reverse=True):
        layout, result = key
        nodes = smooth[key] = factors(ratios)
        median, ninetieth = errors_of(axes, grid, nodes, rows[key])
        print(f"te {chip} {layout} {result}: {len(ratios)} rows, off by {median / 1e4:.1f} %, "
              f"{ninetieth / 1e4:.1f} %")
        entries.append(matmul(layout, result, of, source_of([chip]),
                              "shares of TN times those that Transformer Engine's matmuls had of it",
                              nodes, (len(ratios), median, ninetieth)))
    return entries, smooth


def derived_matmuls(of, smooth):
    """Of a chip without such rows: the ratios to TN of both chips."""
    both = source_of(smooth)
    entries = []
    for layout, result in (("NN", "bf16"), ("NT", "fp32")):
        chips = [of_chip for of_chip in smooth.values() if (layout, result) in of_chip]
        nodes = {}
        for node in itertools.product(*NODES):
            logs = [math.log(of_chip[(layout, result)][node] / of_chip[("TN", "bf16")][node])
                    for of_chip in chips]
            nodes[node] = math.exp(sum(logs) / len(logs))
        entries.append(matmul(layout, result, of, both,
                              f"shares of TN times the ratio of {layout} to TN on A100 and B200",
                              nodes))
    return entries


# --- Products for each expert ---

# Rows of an expert, and the two sides of its matrix.
GROUPED_ROWS = [128, 256, 512, 1024, 2048, 8192]
GROUPED_SIDES = [2048, 4096, 8192]
STAGES = {"fwd": "TN", "bwd_grad_act": "NN", "bwd_grad_w": "NT"}


def grouped_rows(folder, chip, rates):
    """Shares of the roofline by layout and format of the result, at the sides as executed. The files
    have sides of the forward product, and efficiencies of the math rate alone."""
    flop_per_s, bytes_per_s = (tables.amount(rate) for rate in rates)
    rows = {}
    for row in csv_rows(folder, chip, "train_grouped_gemm"):
        m, n, k = (int(row[side]) for side in "mnk")
        layout = STAGES[row["stage"]]
        shape = {"TN": (m, n, k), "NN": (m, k, n), "NT": (n, k, m)}[layout]
        math_s = 2 * m * n * k / flop_per_s
        move_s = 2 * (m * k + n * k + m * n) / bytes_per_s
        share = float(row["efficiency"]) * max(1, move_s / math_s)
        key = (layout, row["main_grad_dtype"] if layout == "NT" else "bf16")
        rows.setdefault(key, []).append((shape, share))
    return rows


def without_their_shape(rows, ratios):
    """How far rows are from the ratios of all other shapes: half, and nine of ten."""
    off = []
    for (shape, share), (_, ratio) in zip(rows, ratios):
        others = [at for at in ratios if at[0] != shape]
        off.append(abs(ratio / factor_of(others, shape) - 1))
    off.sort()
    return [off[min(len(off) - 1, int(part * len(off)))] for part in (0.5, 0.9)]


def grouped(folder, chip, of, base):
    """Products for each expert, as factors of one product at the rows of an expert. One product's
    kernels change from edge to edge of its dense grid; grouped ones, which are others, do not change
    with them. So the shares are those at powers of two alone."""
    axes, grid = grid_of(base)
    axes = [[edge for edge in axis if edge & (edge - 1) == 0] for axis in axes]
    entries = []
    for key, rows in sorted(grouped_rows(folder, chip, (base["flop_rate"], base["hbm_rate"])).items(),
                            reverse=True):
        layout, result = key
        sides = [GROUPED_ROWS, GROUPED_SIDES, GROUPED_SIDES]
        sides = sides[1:] + sides[:1] if layout == "NT" else sides
        ratios = [(shape, share / tables.looked_up(axes, grid, clamped(shape, axes)))
                  for shape, share in rows]
        nodes = {node: factor_of(ratios, node) for node in itertools.product(*sides)}
        off = sorted(abs(ratio / tables.looked_up(sides, nodes, clamped(shape, sides)) - 1)
                     for shape, ratio in ratios)
        errors = [round(off[min(len(off) - 1, int(part * len(off)))] * 1e6) for part in (0.5, 0.9)]
        alone = without_their_shape(rows, ratios)
        print(f"te {chip} grouped {layout} {result}: {len(rows)} rows, off by {errors[0] / 1e4:.1f} %, "
              f"{errors[1] / 1e4:.1f} %; without their shape {alone[0]:.1%}, {alone[1]:.1%}")
        entries.append({"format": "bf16", "layout": layout} | (
            {"result": result} if result != "bf16" else {}) | {
            "of": {"stack": of, "family": "matmul", "layout": "TN"} | dict(zip("mnk", axes)),
            "source": source_of([chip]),
            "derived": "shares of one product at the rows of an expert times those that Transformer "
                       "Engine's grouped products had of it",
            "factor": dict(zip("mnk", sides)) | {
                "ppm": [round(nodes[node] * 1e6) for node in itertools.product(*sides)]},
            "rows": len(rows), "error_median_ppm": errors[0], "error_ninetieth_ppm": errors[1]})
    return entries


# --- Attention ---

TOKENS = [512, 1024, 2048, 4096, 8192, 16384, 32768, 131072]
HEADS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
GROUPS = [1, 2, 4, 8, 16, 32]
WIDTH = 128
TILE = 128


def attention_ratios(folder, chip):
    """Backward over forward of heads of 128: tokens, tiles for each core, and the ratio. Those of
    latent attention (192 and 128 columns) are about a tenth lower."""
    times = {}
    for row in csv_rows(folder, chip, "train_attention"):
        if row["qk_head_dim"] == row["v_head_dim"] == str(WIDTH):
            key = (int(row["seq_len"]), int(row["heads"]), row["kv_heads"], row["qkv_contiguous"])
            times.setdefault(key, {})[row["direction"]] = float(row["efficiency_full"])
    return [(tokens, tokens / TILE * heads / CORES[chip], of["bwd"] / of["fwd"])
            for (tokens, heads, _, _), of in sorted(times.items()) if len(of) == 2]


def line(points, at):
    """Between points, linear in logarithms; beyond, the last one."""
    points = sorted(points)
    if at <= points[0][0]:
        return points[0][1]
    for (low, first), (high, last) in zip(points, points[1:]):
        if at <= high:
            part = math.log(at / low) / math.log(high / low)
            return math.exp((1 - part) * math.log(first) + part * math.log(last))
    return points[-1][1]


def means(points):
    by = {}
    for at, ratio in points:
        by.setdefault(at, []).append(math.log(ratio))
    return [(at, math.exp(sum(logs) / len(logs))) for at, logs in by.items()]


def ratio_at(ratios, tokens, fill):
    """By how full the chip is at 4,096 tokens, then by sequence."""
    by_fill = means((full, ratio) for length, full, ratio in ratios if length == 4096)
    longer = [(length, ratio / line(by_fill, full)) for length, full, ratio in ratios
              if length > 4096]
    by_tokens = means([(4096, 1.0)] + longer)
    return line(by_fill, fill) * line(by_tokens, tokens)


def attention_backward(folder, chips, cores, of):
    """Efficiencies count the full square forward and backward, so that their ratio is that of causal
    shares."""
    ratios = {chip: attention_ratios(folder, chip) for chip in chips}
    ppm = []
    for tokens, heads, group in itertools.product(TOKENS, HEADS, GROUPS):
        fill = tokens / TILE * heads * group / cores
        logs = [math.log(ratio_at(rows, tokens, fill)) for rows in ratios.values()]
        ppm.append(round(math.exp(sum(logs) / len(logs)) * 1e6))
    return {
        "format": "bf16",
        "of": {"stack": of, "family": "attention"},
        "source": source_of(chips),
        "derived": "shares of forward attention times the ratio of backward to it on " +
                   " and ".join(chip.upper() for chip in chips),
        "factor": {"tokens": TOKENS, "heads": HEADS, "group": GROUPS, "width": [WIDTH], "ppm": ppm},
        "rows": 0, "error_median_ppm": 0, "error_ninetieth_ppm": 0,
    }
