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
V5E_FACTOR = 1.143


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
        "source": table["source"] + ", carried over from v6e; shares times "
                  f"{V5E_FACTOR}, from seven training steps that podsim may learn from "
                  "(docs/accuracy-published.md: maxtext-v5e)",
        "flop_rate": rates["bf16"],
        "hbm_rate": bytes_per_s,
        "share_ppm": [min(1000000, round(ppm * V5E_FACTOR)) for ppm in table["share_ppm"]],
    }


# Splash attention with blocks of 512 on TPU v5p: two causal sequences of 2,048 tokens, heads of 128
# columns. Milliseconds of a call, and of a call with its gradient in one kernel, by heads. The host
# is in each of them, so a head takes what another head adds.
FLASH_HEADS = [40, 56, 72, 88, 110, 140]
FLASH_MS = [1.0, 1.3, 1.5, 1.8, 1.9, 2.3]
FUSED_MS = [2.6, 3.4, 4.2, 5.0, 5.6, 7.0]
# How much longer it takes with a kernel each for dQ and for dK and dV, by the comment at the call.
APART = {40: 1.03, 56: 1.06, 140: 1.14}
# Chips with as many FLOP of the MXU for one of the vector unit as v5p. v6e and 7x have four times
# as many.
FLASH_CHIPS = ["tpu-v4p", "tpu-v5e", "tpu-v5p"]
FLASH_CHIP = "tpu-v5p"
FLASH_SOURCE = ("apple/axlearn at a5f0b462, axlearn/common/flash_attention/"
                "tpu_attention_benchmark.py and tpu_attention.py, Apache-2.0: splash attention on "
                "TPU v5p")


def slope(points):
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return (sum((x - mean_x) * (y - mean_y) for x, y in points) /
            sum((x - mean_x)**2 for x, _ in points))


def attention_of(chip):
    """Tables of attention, forward and backward, for a TPU whose vector unit is as fast next to its
    MXU as v5p's. MaxText calls the kernels of the backward pass apart."""
    if chip != FLASH_CHIP:
        of = [{"format": "bf16", "of": {"stack": FLASH_CHIP + ".xla"}}]
        return {"attention": of, "attention_backward": of}
    rates, bytes_per_s = tables.rates_of(chip)
    forward_s = slope(list(zip(FLASH_HEADS, FLASH_MS))) / 1e3
    fused = dict(zip(FLASH_HEADS, FUSED_MS))
    both_s = slope([(heads, fused[heads] * APART[heads]) for heads in APART]) / 1e3
    product_s = 2 * 2 * 2048 * 2049 / 2 * 128 / tables.amount(rates["bf16"])
    made = [{
        "format": "bf16",
        "source": FLASH_SOURCE,
        "flop_rate": rates["bf16"],
        "hbm_rate": bytes_per_s,
        "rows": len(FLASH_HEADS),
        "error_median_ppm": 0,
        "error_ninetieth_ppm": 0,
        "tokens": [2048], "heads": [1], "group": [1], "width": [128],
        "share_ppm": [round(share * 1e6)],
    } for share in (2 * product_s / forward_s, 5 * product_s / (both_s - forward_s))]
    return {"attention": made[:1], "attention_backward": made[1:]}
