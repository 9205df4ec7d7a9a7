"""Tables of products head by head in one kernel: those that absorb the matrices of latent attention.

Sides: products, and rows, columns and inner side of each: m, n, k. A share is the time of the roofline
over the measured time; each product has operands of its own, of which x lies in 16 bits. Before attention n is the width of
latents and k that of a head, behind it the other way round. The grid has both widths as n and as k;
where these are equal, which nobody measured, it has the mean of the logarithms of both shares.

Rows in fp8 multiply x that lies in bf16, and have its cast in their time. Rows whose kernel brings
matrices to bf16 before (dequant_bf16) are of that format, which has rows of its own. Rows that are
faster than the roofline read matrices from L2, which a step does not: they have a share of 1.
"""
import math

import tables

SIDES = ("batch", "m", "n", "k")
HEAD, LATENT = 128, 512
BATCH = [2**i for i in range(0, 8)]
ROWS = [2**i for i in range(0, 14)]
SHAPES = {"mla_gen_pre": (LATENT, HEAD), "mla_gen_post": (HEAD, LATENT)}
FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}


def rows_of(folder, source):
    """Shapes and shares by format."""
    chip, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    rows = {}
    for row in tables.rows_of_file(folder, chip, "mla_bmm", stack, version):
        name = FORMATS[row.get("bmm_dtype", "bfloat16")]
        if "dequant" in row.get("kernel_source", ""):
            continue
        batch, m = int(row["num_heads"]), int(row["num_tokens"])
        n, k = SHAPES[row["op_name"]]
        moved = batch * (2 * m * (n + k) + n * k * tables.ELEMENT_BYTES[name])
        least = max(2 * batch * m * n * k / tables.amount(rates[name]),
                    moved / tables.amount(bytes_per_s)) * 1e6
        share = min(1, least / float(row["latency_us"]))
        rows.setdefault(name, []).append(((batch, m, n, k), share))
    return rows


def grid_of(rows):
    widths = [HEAD, LATENT]
    axes = [BATCH, ROWS, widths, widths]
    grid = {shape: share for shape, share in rows if shape[0] in BATCH and shape[1] in ROWS}
    for batch in BATCH:
        for m in ROWS:
            share = math.sqrt(grid[(batch, m, *SHAPES["mla_gen_pre"])] *
                              grid[(batch, m, *SHAPES["mla_gen_post"])])
            for width in widths:
                grid[(batch, m, width, width)] = share
    return axes, grid


def made(folder, source):
    chip, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    result = []
    for name, rows in sorted(rows_of(folder, source).items()):
        axes, grid = grid_of(rows)
        head = {"format": name} | ({"quantises": True} if name == "fp8" else {}) | {
            "source": tables.source_of(chip, "mla_bmm", stack, version),
            "flop_rate": rates[name],
            "hbm_rate": bytes_per_s,
        }
        result.append(tables.table_of(f"{chip} {stack} batched {name}", head, SIDES, axes, grid, rows))
    return result
