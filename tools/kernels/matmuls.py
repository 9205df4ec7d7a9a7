"""Tables of matmuls.

A share is the time of the roofline over the measured time: the larger of 2mnk over the data sheet's
FLOP/s and of the bytes of both operands and the result over the data sheet's HBM rate. The grid has
all n and k that were measured, and of m the powers of two and three times these. A point is the median
of the shares of the rows at it and at its neighbours in m within 2 %, so that a spike of one row does
not become a table's. A point that nobody measured has the share of the nearest m of its n and k, or of
the nearest k.

Rows in fp8 multiply x that lies in bf16: their time has the largest number of x, from which its scale
follows, and the cast of x; in blocks, one kernel for both. quantize_computescale and
quantize_scale_matrix have these two alone. A table whose `cast` is "tensor" is of the rows less both;
one whose `cast` is "block" is of the rows in blocks less the cast, which moves as many bytes there.

SGLang's rows on H200 are of two kinds: four of five take 1.00 times the time on H100, whose cores are
the same, and one of five, of any shape, takes 1.12 to 1.3 times, mostly 1.2. Hardly a row takes 1.10 to
1.12 times. TensorRT-LLM's and vLLM's rows on H200 have no second kind, so the slow rows are of the
machine that measured them. They have H100's time, which no H200 exceeds.
"""
import itertools

import tables

# Tables by the publisher's format: format, `cast`, and the kernels whose time is left out. What is not
# here is left out.
SCALE, CAST = "quantize_computescale", "quantize_scale_matrix"
TABLES = {"bfloat16": [("bf16", None, ())],
          "fp8": [("fp8", None, ()), ("fp8", "tensor", (SCALE, CAST))],
          "fp8_block": [("fp8", "block", (CAST,))]}
LESS = {None: "", "tensor": "; fp8 less the scale and the cast of x, measured alone",
        "block": "; fp8_block less a cast of x, measured alone"}


# Rows whose time is that of a chip with the same cores and less bandwidth, where they take longer than
# that by the factor.
SLOWER = {("h200_sxm", "gemm_bf16"): ("h100_sxm", 1.11)}


def roofline_us(shape, element_bytes, flop_per_s, bytes_per_s):
    m, n, k = shape
    moved = (m * k + n * k) * element_bytes + m * n * 2
    return max(2 * m * n * k / flop_per_s, moved / bytes_per_s) * 1e6


def casts_of(folder, source):
    """Times of the kernels that cast x, by kernel and sides of x."""
    chip, _, stack, version = source
    times = {}
    for family in (SCALE, CAST):
        try:
            for row in tables.rows_of_file(folder, chip, family, stack, version):
                times[(family, int(row["m"]), int(row["k"]))] = float(row["latency_us"])
        except FileNotFoundError:  # A chip without fp8, or a stack without such rows.
            return {}
    return times


def time_most(folder, source):
    """The most that a row may take, by format and shape, and what it takes else."""
    chip, family, stack, version = source
    other, factor = SLOWER.get((chip, family), (None, 0))
    if other is None:
        return {}
    return {(row.get("gemm_dtype"), row["m"], row["n"], row["k"]):
                (float(row["latency_us"]) * factor, float(row["latency_us"]))
            for row in tables.rows_of_file(folder, other, family, stack, version)}


def shares_of(folder, source):
    """Shares by format and cast, and shape."""
    chip, family, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    casts, most, shares = casts_of(folder, source), time_most(folder, source), {}
    for row in tables.rows_of_file(folder, chip, family, stack, version):
        shape = (int(row["m"]), int(row["n"]), int(row["k"]))
        for name, cast, without in TABLES.get(row.get("gemm_dtype", "bfloat16"), []):
            left_out = [casts.get((kernel, shape[0], shape[2])) for kernel in without]
            if None in left_out:
                continue
            least = roofline_us(shape, tables.ELEMENT_BYTES[name], tables.amount(rates[name]),
                                tables.amount(bytes_per_s))
            taken = float(row["latency_us"])
            longest, instead = most.get((row.get("gemm_dtype"), row["m"], row["n"], row["k"]),
                                        (taken, taken))
            alone = (taken if taken <= longest else instead) - sum(left_out)
            if alone >= least or cast is None:  # Noise of a difference is not faster than the chip.
                shares.setdefault((name, cast), {})[shape] = least / alone
    return shares


def is_power(value):
    return value & (value - 1) == 0


def grid_of(shares):
    rows, *axes = [sorted({shape[axis] for shape in shares}) for axis in range(3)]
    axes.insert(0, [m for m in rows if is_power(m) or m % 3 == 0 and is_power(m // 3)])
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
    of_shares = shares_of(folder, source)
    for name, cast in sorted(of_shares, key=lambda kind: (kind[0], kind[1] or "")):
        shares = of_shares[(name, cast)]
        axes, grid = grid_of(shares)
        # Rows in fp8 have the cast of x in their time.
        head = {
            "format": name,
            "layout": "TN",
        } | ({"quantises": True} if name == "fp8" and cast is None else {}) | (
            {"cast": cast} if cast is not None else {}) | {
            "source": tables.source_of(chip, family.split("_")[0], stack, version) + LESS[cast] +
                      ("; rows over 1.11 times H100's have its time"
                       if (chip, family) in SLOWER else ""),
            "flop_rate": rates[name],
            "hbm_rate": bytes_per_s,
        }
        result.append(tables.table_of(f"{chip} {stack} {name} {cast or ''}", head, ("m", "n", "k"),
                                      axes, grid, shares.items()))
    return result
