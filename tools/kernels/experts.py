"""Tables of the experts of a layer, as engines run them: one fused layer with both grouped products,
top-k, the order of rows, the gate, and the sum of each token's rows.

Sides: tokens of each expert that has any, such experts, columns of an expert on this rank, columns of
the model. A share is the time of the roofline over the measured time: weights of experts with rows
are read once, rows are read and written by both products. Rows are balanced, on ranks that have all
experts: a rank with some of them was measured with the tokens of all ranks. Experts without a gate
are left out, and so are kernels that an engine takes for some shapes alone. The format fp8 has scales
by blocks, as published models do.

Measured are a few models. A point of the grid has the time of a form of four numbers, times the
mean of the logarithms of measured times over those of the form, each weighted by exp(-d^2), where d is
the distance in octaves. The form is a launch, plus bytes of rows at a rate, plus math and bytes of
weights at shares of the roofline, as the fourth root of the sum of their fourth powers. Its numbers
are those with the least mean error of the logarithms.
"""
import itertools
import math

import tables

SIDES = ("tokens", "experts", "columns", "model")
AXES = [[2**i for i in range(0, 13)], [2**i for i in range(0, 10)],
        [2**i for i in range(6, 15)], [2048, 4096, 8192]]
FORMATS = {"bfloat16": "bf16", "fp8_block": "fp8"}
# Nemotron's have no gate: top-k and, of the smaller one, columns of an expert.
UNGATED_TOPK, UNGATED_COLUMNS = 22, 1856
SHARPNESS = 4
FALLS = 1.0
FAR = 3.5  # Octaves; beyond them a measurement weighs nothing but the nearest.
STEPS = (0.5, 0.2, 0.05, 0.02)


def demands_us(shape, element_bytes, flop_per_s, bytes_per_s):
    """Math, bytes of weights, bytes of rows."""
    rows, experts, columns, model = shape
    weights = 3 * experts * columns * model
    moved = rows * experts * (2 * model + 3 * columns)
    return (2 * rows * weights / flop_per_s * 1e6, weights * element_bytes / bytes_per_s * 1e6,
            moved * element_bytes / bytes_per_s * 1e6)


def roofline_us(demands):
    return max(demands[0], demands[1] + demands[2])


def rows_of(folder, source):
    """Shapes and microseconds by format."""
    chip, stack, version = source
    rows = {}
    for row in tables.rows_of_file(folder, chip, "moe", stack, version):
        shape = [int(row[key]) for key in ("num_tokens", "topk", "num_experts", "inter_size",
                                           "moe_tp_size", "hidden_size")]
        tokens, topk, experts, columns, ranks, model = shape
        name = FORMATS.get(row["moe_dtype"])
        is_other = topk == UNGATED_TOPK or columns == UNGATED_COLUMNS
        if name is None or is_other or row["distribution"] != "balanced" or row["moe_ep_size"] != "1":
            continue
        busy = min(experts, tokens * topk)
        rows.setdefault(name, {}).setdefault(row.get("kernel_source", ""), []).append(
            ((tokens * topk / busy, busy, columns / ranks, model), float(row["latency_us"])))
    return {name: max(kernels.values(), key=len) for name, kernels in rows.items()}


def form_us(numbers, demands):
    launch, moves, math_share, weight_share = numbers
    bound = ((demands[0] / math_share)**SHARPNESS + (demands[1] / weight_share)**SHARPNESS)
    return launch + moves * demands[2] + bound**(1 / SHARPNESS)


def form_of(known):
    """The four numbers, by steps that become smaller."""
    def error(numbers):
        return sum(abs(math.log(us / form_us(numbers, demands))) for demands, us in known)

    best = [min(us for _, us in known), 2.0, 0.5, 0.8]
    least = error(best)
    for step in STEPS:
        is_better = True
        while is_better:
            is_better = False
            for i, sign in itertools.product(range(4), (1, -1)):
                other = list(best)
                other[i] *= (1 + step)**sign
                if (found := error(other)) < least:
                    best, least, is_better = other, found, True
    return best


def factor_of(ratios, at):
    """The weighted mean of ratios around a point, given as logarithms of its sides."""
    total = sum_of = 0.0
    nearest = (math.inf, 0.0)
    for place, ratio in ratios:
        square = sum((one - other)**2 for one, other in zip(place, at))
        nearest = min(nearest, (square, ratio))
        if square < FAR**2:
            weight = math.exp(-FALLS * square)
            total += weight
            sum_of += weight * ratio
    return math.exp(sum_of / total if total > 0 else nearest[1])


def places_of(shape):
    return [math.log2(side) for side in shape]


def table_of(source, name, known):
    chip, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    per_s = tables.amount(rates[name]), tables.amount(bytes_per_s)

    def demands(shape):
        return demands_us(shape, tables.ELEMENT_BYTES[name], *per_s)

    numbers = form_of([(demands(shape), us) for shape, us in known])
    ratios = [(places_of(shape), math.log(us / form_us(numbers, demands(shape))))
              for shape, us in known]
    grid = {}
    for shape in itertools.product(*AXES):
        of = demands(shape)
        us = form_us(numbers, of) * factor_of(ratios, places_of(shape))
        grid[shape] = min(1.0, roofline_us(of) / us)
    head = {"format": name} | ({"quantises": True} if name == "fp8" else {}) | {
        "source": tables.source_of(chip, "moe", stack, version),
        "flop_rate": rates[name],
        "hbm_rate": bytes_per_s,
    }
    shares = [(shape, min(1.0, roofline_us(demands(shape)) / us)) for shape, us in known]
    print(f"{chip} {stack} experts {name}: launch {numbers[0]:.1f} us, rows {numbers[1]:.2f}, "
          f"math {numbers[2]:.2f}, weights {numbers[3]:.2f}")
    return tables.table_of(f"{chip} {stack} experts {name}", head, SIDES, AXES, grid, shares)


def made(folder, source):
    return [table_of(source, name, known) for name, known in sorted(rows_of(folder, source).items())]
