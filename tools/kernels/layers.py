"""A table of products on TPU v6e, from whole layers.

The profiler's split between neighbours is not to be relied on: weights of one product come while
another runs. So the products of a layer of LLaMA-3.1-8B stand for one of as many FLOP, with the
time of all of them. Norms, rotations and functions are 0.75 % of a layer of 2,048 tokens, and stand
in a step as ops of their own. Point by tokens: the median of the shares of the token counts within
4 %; up to 312 tokens the rows lack a product, whose time is in its neighbours. What would be faster
than the roofline (weights that come while attention runs) has its time.
"""
import tables

SHAPES = [(6144, 4096), (4096, 4096), (14336, 4096), (14336, 4096), (4096, 14336)]
PRODUCTS = ("q_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
NEEDED = ("q_proj", "o_proj", "gate_proj", "down_proj")
EDGES = [1, 16, 64, 128, 256, 512, 768, 1024, 1280, 1536, 1792, 2048]
INNER = 4096


def made(folder):
    rates, bytes_per_s = tables.rates_of("tpu-v6e")
    columns = sum(n * k for n, k in SHAPES) // INNER
    times = {}
    for row in tables.rows_of_file(folder, "tpu_v6e", "layer_ops", "llmservingsim", None):
        times.setdefault(int(row["num_tokens"]), {})[row["layer"]] = float(row["latency_us"])
    shares = {}
    for tokens, ops in times.items():
        if any(name not in ops for name in NEEDED):
            continue
        least = sum(max(2 * tokens * n * k / tables.amount(rates["bf16"]),
                        2 * (tokens * k + n * k + tokens * n) / tables.amount(bytes_per_s))
                    for n, k in SHAPES) * 1e6
        shares[tokens] = min(1.0, least / sum(ops.get(name, 0) for name in PRODUCTS))
    grid = {(edge, columns, INNER): tables.median([share for tokens, share in shares.items()
                                                   if abs(tokens - edge) <= edge / 25])
            for edge in EDGES}
    head = {
        "format": "bf16",
        "layout": "TN",
        "source": "casys-kaist/LLMServingSim profiler/v0/perf_models/TPU-v6e-1 at 5daddb21a545, MIT: "
                  "layers of LLaMA-3.1-8B",
        "flop_rate": rates["bf16"],
        "hbm_rate": bytes_per_s,
    }
    rows = [((tokens, columns, INNER), share) for tokens, share in shares.items()]
    return [tables.table_of("tpu-v6e xla", head, ("m", "n", "k"), [EDGES, [columns], [INNER]], grid,
                            rows)]


def of_v5e(table):
    """The table for TPU v5e, of which no kernels are published: shares by the one factor at which
    seven training steps are right."""
    rates, bytes_per_s = tables.rates_of("tpu-v5e")
    return table | {
        "source": table["source"] + ", carried over from v6e; shares times 1.05, from seven training "
                  "steps that podsim may learn from (docs/accuracy-published.md: maxtext-v5e)",
        "flop_rate": rates["bf16"],
        "hbm_rate": bytes_per_s,
        "share_ppm": [min(1000000, round(ppm * 1.05)) for ppm in table["share_ppm"]],
    }
