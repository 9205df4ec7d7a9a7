"""Tables of attention.

Sides: tokens of a sequence (of a decode, tokens that it attends to), heads of keys over all
sequences, heads of queries for each, width of a head. A share is the time of the roofline over the
measured time: causal scores of T tokens are T(T+1)/2, each multiplied twice; Q, K, V and the result
move once, and of a decode all rows of the cache. A point is the median of the rows at it. Rows that
would be faster than the roofline are left out, and so are kernels that an engine takes for want of
a better one (Triton's on Blackwell). Windows are left out. Rows have the write of keys and values to the
cache in them, by the same kernel or by one before it; encoders have no cache.
"""
import tables

SIDES = ("tokens", "heads", "group", "width")
GROUPS = [1, 2, 4, 8, 16, 32]
WIDTHS = [64, 128, 256]
PREFILL = [[2**i for i in range(4, 15)], [2**i for i in range(0, 11)], GROUPS, WIDTHS]
DECODE = [[2**i for i in range(5, 18)], [2**i for i in range(0, 13)], GROUPS, WIDTHS]
# Whole sequences without a mask, of heads as narrow as those of encoders of images.
FULL = [[2**i for i in range(4, 17)], [2**i for i in range(0, 12)], [1], [64, 72, 80]]
# Whole prompts of latent attention (DeepSeek-V3): heads with 192 columns of keys and 128 of values.
MADE_KEY, MADE_VALUE = 192, 128
MADE = [[2**i for i in range(4, 16)], [2**i for i in range(0, 13)], [1],
        [(MADE_KEY + MADE_VALUE) // 2]]
LATENT_KEY, LATENT_VALUE = 576, 512
LATENT = [[2**i for i in range(5, 18)], [2**i for i in range(0, 11)], [2**i for i in range(0, 8)],
          [(LATENT_KEY + LATENT_VALUE) // 2]]
# The publisher's families of those that are not its attention.
FILES = {"latent_decode": "mla", "latent_attention": "mla", "full_attention": "encoder_attention"}
FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}


def roofline_us(shape, decodes, stored_bytes, flop_per_s, bytes_per_s):
    tokens, heads, group, width = shape
    scores = heads * group * (tokens if decodes else tokens * (tokens + 1) / 2)
    queries = heads * group * width * (1 if decodes else tokens)
    moved = 2 * queries * 2 + 2 * tokens * heads * width * stored_bytes
    return max(4 * scores * width / flop_per_s, moved / bytes_per_s) * 1e6


def rows_of(folder, source, decodes):
    """Shapes and shares by the format of keys and values."""
    chip, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    family = "attention_decode" if decodes else "attention_context"
    rows, left_out = {}, 0
    for row in tables.rows_of_file(folder, chip, family, stack, version):
        stored = FORMATS[row.get("kv_cache_dtype", "bfloat16")]
        if row.get("attn_dtype", "bfloat16") != "bfloat16" or row.get("window_size", "0") != "0":
            continue
        if "triton" in row.get("kernel_source", "") or (not decodes and stored != "bf16"):
            continue
        heads, keys = int(row["num_heads"]), int(row["num_key_value_heads"])
        tokens = int(row["step"]) + 1 if decodes else int(row["isl"])
        width = int(row.get("head_dim", 128))
        if heads % keys != 0:
            continue
        shape = (tokens, keys * int(row["batch_size"]), heads // keys, width)
        least = roofline_us(shape, decodes, tables.ELEMENT_BYTES[stored],
                            tables.amount(rates["bf16"]), tables.amount(bytes_per_s))
        share = least / float(row["latency_us"])
        if share > 1:
            left_out += 1
        else:
            rows.setdefault(stored, []).append((shape, share))
    if left_out:
        print(f"{chip} {stack} {family}: {left_out} rows are faster than the roofline, left out")
    return rows


def latent_rows_of(folder, source):
    """Decodes of latent attention (DeepSeek-V3): one head of keys, of 576 columns with 512 of values."""
    chip, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    rows = {}
    for row in tables.rows_of_file(folder, chip, "mla_decode", stack, version):
        stored = FORMATS[row["kv_cache_dtype"]]
        tokens, heads = int(row["step"]) + 1, int(row["num_heads"])
        sequences = int(row["batch_size"])
        moved = (tokens * sequences * LATENT_KEY * tables.ELEMENT_BYTES[stored] +
                 2 * sequences * heads * (LATENT_KEY + LATENT_VALUE))
        least = max(2 * tokens * sequences * heads * (LATENT_KEY + LATENT_VALUE) /
                    tables.amount(rates["bf16"]), moved / tables.amount(bytes_per_s)) * 1e6
        share = least / float(row["latency_us"])
        if share <= 1:
            shape = (tokens, sequences, heads, (LATENT_KEY + LATENT_VALUE) // 2)
            rows.setdefault(stored, []).append((shape, share))
    return rows


def whole_us(shape, scores, flop_per_s, bytes_per_s):
    """Of sequences with so many scores a head, in 16 bits."""
    tokens, heads, _, width = shape
    return max(4 * scores * heads * width / flop_per_s,
               2 * 4 * tokens * heads * width / bytes_per_s) * 1e6


def full_rows_of(folder, source):
    """Sequences whose queries have all keys: encoders of images, a head of keys for each of queries."""
    chip, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    rows = []
    for row in tables.rows_of_file(folder, chip, "encoder_attention", stack, version):
        tokens = int(row["isl"])
        shape = (tokens, int(row["num_heads"]) * int(row["batch_size"]), 1, int(row["head_dim"]))
        least = whole_us(shape, tokens**2, tables.amount(rates["bf16"]), tables.amount(bytes_per_s))
        if least <= float(row["latency_us"]):
            rows.append((shape, least / float(row["latency_us"])))
    return rows


def made_rows_of(folder, source):
    """Prompts of latent attention whose keys and values are made for each head. The width is the mean
    of both. Rows that write a cache in 16 bits."""
    chip, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    rows = []
    for row in tables.rows_of_file(folder, chip, "mla_context", stack, version):
        tokens = int(row["isl"])
        shape = (tokens, int(row["num_heads"]) * int(row["batch_size"]), 1,
                 (MADE_KEY + MADE_VALUE) // 2)
        least = whole_us(shape, tokens * (tokens + 1) / 2, tables.amount(rates["bf16"]),
                         tables.amount(bytes_per_s))
        if row["kv_cache_dtype"] == "bfloat16" and least <= float(row["latency_us"]):
            rows.append((shape, least / float(row["latency_us"])))
    return rows


def grid_of(rows, wanted):
    there = {}
    for shape, share in rows:
        there.setdefault(shape, []).append(share)
    axes = [[edge for edge in edges if any(shape[side] == edge for shape in there)]
            for side, edges in enumerate(wanted)]
    grid = {shape: tables.median(shares) for shape, shares in there.items()
            if all(side in edges for side, edges in zip(shape, axes))}
    return axes, tables.filled(axes, grid, (3, 0, 2))


def table_of(source, kind, stored, rows, wanted):
    chip, stack, version = source
    rates, bytes_per_s = tables.rates_of(tables.CHIPS[chip])
    axes, grid = grid_of(rows, wanted)
    head = {"format": "bf16"} | ({"stored": stored} if "decode" in kind else {}) | (
        {"appends": True} if kind != "full_attention" else {}) | {
        "source": tables.source_of(chip, FILES.get(kind, "attention"), stack, version),
        "flop_rate": rates["bf16"],
        "hbm_rate": bytes_per_s,
    }
    return tables.table_of(f"{chip} {stack} {kind} {stored}", head, SIDES, axes, grid, rows)


def prefills(folder, source):
    return [table_of(source, "attention", stored, rows, PREFILL)
            for stored, rows in sorted(rows_of(folder, source, False).items())]


def decodes(folder, source):
    return [table_of(source, "decode", stored, rows, DECODE)
            for stored, rows in sorted(rows_of(folder, source, True).items())]


def latent_decodes(folder, source):
    return [table_of(source, "latent_decode", stored, rows, LATENT)
            for stored, rows in sorted(latent_rows_of(folder, source).items())]


def full(folder, source):
    return [table_of(source, "full_attention", "bf16", full_rows_of(folder, source), FULL)]


def latent_prompts(folder, source):
    return [table_of(source, "latent_attention", "bf16", made_rows_of(folder, source), MADE)]
