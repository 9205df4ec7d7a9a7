"""Tables of matmuls.

A share is the time of the roofline over the measured time: the larger of 2mnk over the data sheet's
FLOP/s and of the bytes of both operands and the result over the data sheet's HBM rate. The grid has
the powers of two. A point is the median of the shares of the rows at it and at its neighbours in m
within 2 %, so that a spike of one row does not become a table's. A point that nobody measured has the
share of the nearest m of its n and k, or of the nearest k.
"""
import itertools

import tables

FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}  # Of a table; what is not here is left out.


def roofline_us(shape, element_bytes, flop_per_s, bytes_per_s):
    m, n, k = shape
    moved = (m * k + n * k) * element_bytes + m * n * 2
    return max(2 * m * n * k / flop_per_s, moved / bytes_per_s) * 1e6


def shares_of(folder, source):
    """Shares by format and shape."""
    chip, family, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    shares = {}
    for row in tables.rows_of_file(folder, chip, family, stack, version):
        name = FORMATS.get(row.get("gemm_dtype", "bfloat16"))
        if name is None:
            continue
        shape = (int(row["m"]), int(row["n"]), int(row["k"]))
        least = roofline_us(shape, tables.ELEMENT_BYTES[name], tables.amount(rates[name]),
                            tables.amount(bytes_per_s))
        shares.setdefault(name, {})[shape] = least / float(row["latency_us"])
    return shares


def powers(values):
    return [value for value in values if value & (value - 1) == 0]


def grid_of(shares):
    axes = [powers(sorted({shape[axis] for shape in shares})) for axis in range(3)]
    rows = sorted({shape[0] for shape in shares})
    near = {m: [row for row in rows if abs(row - m) <= m / 50] for m in axes[0]}
    grid = {}
    for n, k in itertools.product(axes[1], axes[2]):
        for m in axes[0]:
            there = [shares[(row, n, k)] for row in near[m] if (row, n, k) in shares]
            if there:
                grid[(m, n, k)] = tables.median(there)
    return axes, tables.filled(axes, grid, (1, 2))


def made(folder, source):
    """The tables of one source."""
    chip, family, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    result = []
    for name, shares in sorted(shares_of(folder, source).items()):
        axes, grid = grid_of(shares)
        # Rows in fp8 have the cast of x in their time.
        head = {
            "format": name,
            "layout": "TN",
        } | ({"quantises": True} if name == "fp8" else {}) | {
            "source": tables.source_of(chip, family.split("_")[0], stack, version),
            "flop_rate": rates[name],
            "hbm_rate": bytes_per_s,
        }
        result.append(tables.table_of(f"{chip} {stack} {name}", head, ("m", "n", "k"), axes, grid,
                                      shares.items()))
    return result
