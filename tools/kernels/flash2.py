"""Attention of FlashAttention 2 on Hopper, which PyTorch's scaled_dot_product_attention and
flash-attn 2 run: as factors of the shares of vLLM's attention, which is FlashAttention 3.

FlashAttention 2 has Ampere's instructions, and does not get faster with Hopper's. The paper of
FlashAttention 3 (arXiv 2407.08608) has both on an H100 SXM5: forward in figure 5, backward without
a mask in figure 6. In each 2,048 columns of heads, and 16,384 tokens. A causal backward pass has the
speed of one without a mask times what a mask leaves of the speed forward.
"""
import attention
import tables

SOURCE = "arXiv 2407.08608, figures 5 and 6: FlashAttention 2 on H100 SXM5"
TOKENS = [512, 1024, 2048, 4096, 8192, 16384]
ALL_TOKENS, COLUMNS = 16384, 2048
# TFLOP/s by width of a head.
CAUSAL = {64: [180, 229, 262, 284, 295, 299], 128: [191, 260, 298, 319, 333, 335],
          256: [208, 251, 278, 293, 297, 298]}
FULL = {64: [282, 306, 318, 321, 322, 324], 128: [309, 350, 362, 368, 370, 370]}
FULL_BACKWARD = {64: [198, 238, 264, 279, 287, 291], 128: [214, 260, 291, 310, 318, 322]}
HEADS = [1]
GROUPS = [1]


def backward(width, place):
    known = min(width, 128)  # Figure 6 has no wider heads.
    return FULL_BACKWARD[known][place] * CAUSAL[known][place] / FULL[known][place]


def pairs_of(tokens, is_full):
    return tokens * tokens if is_full else tokens * (tokens + 1) / 2


def factors(table, speeds, times, arrays, widths=tuple(CAUSAL), is_full=False):
    """Shares over those of a table of forward attention at the same shape. A share is of the
    roofline of the pass: scores multiplied `times` times, and so many arrays that move once."""
    axes = [table[side] for side in attention.SIDES]
    grid = tables.grid_of(table, attention.SIDES)
    rate, hbm = tables.amount(table["flop_rate"]), tables.amount(table["hbm_rate"])
    ppm = []
    for place, tokens in enumerate(TOKENS):
        for width in widths:
            heads = ALL_TOKENS // tokens * COLUMNS // width
            flop = times * 2 * heads * pairs_of(tokens, is_full) * width
            least = max(flop / rate, arrays * 2 * heads * tokens * width / hbm)
            share = least / (flop / (speeds(width, place) * 1e12))
            ppm.append(round(share / tables.looked_up(axes, grid, (tokens, heads, 1, width)) * 1e6))
    return {"tokens": TOKENS, "heads": HEADS, "group": GROUPS, "width": list(widths), "ppm": ppm}


def entry(chip, derived, factor, family="attention"):
    return {"format": "bf16", "of": {"stack": f"{chip}.vllm", "family": family},
            "source": SOURCE, "derived": derived, "factor": factor,
            "rows": 0, "error_median_ppm": 0, "error_ninetieth_ppm": 0}


def made(chip, measured, measured_full):
    """Forward and backward of a chip, from the tables of the H100's forward attention. Encoders' heads
    are 64 to 80 columns wide, of which the paper has 64."""
    forward = factors(measured, lambda width, place: CAUSAL[width][place], 2, 4)
    gradients = factors(measured, backward, 5, 8)
    full = factors(measured_full, lambda width, place: FULL[width][place], 2, 4, (64,), True)
    text = "shares of FlashAttention 3 times the ratio of FlashAttention 2 to it on H100"
    return {"attention": [entry(chip, text, forward)],
            "full_attention": [entry(chip, text, full, "full_attention")],
            "attention_backward": [entry(chip, text + ", backward to forward", gradients)]}
