#!/usr/bin/env python3
"""Adds what kernels between matmuls reach to the tables of topology/kernels/.

    tools/kernels/between.py FOLDER

Run behind tabulate.py, on the same FOLDER. A share is that of the data sheet's rate of HBM which a
large kernel of a kind reaches, by the bytes of its arrays: the median of its measurements of 100 MB
or more. A launch is the least that a residual sum takes on few tokens.

    Vidur        microsoft/vidur at 7d475133, MIT: vLLM's kernels on A100 and H100
    NeuSight     sitar-lab/NeuSight at 6945927d, MIT: PyTorch's kernels on A100 PCIe
    SimuMax      MooreThreads/SimuMax at 4dcaae51, Apache-2.0: fits of Transformer Engine's kernels
                 (their GB/s are 1024^3 bytes a second: simumax/core/config.py)
    TensorRT-LLM ai-dynamo/aiconfigurator at 095f58a5, Apache-2.0: casts to fp8, of 2 bytes to 1

A kind that nobody measured on a chip has the share of the chip before it; the source says so.
"""
import csv
import glob
import gzip
import json
import os
import re
import statistics
import sys

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../topology/kernels")
LARGE_BYTES = 100e6
# Width, MLP width, heads and heads of keys.
MODELS = {"Llama-2-7b": (4096, 11008, 32, 32), "Llama-2-70b": (8192, 28672, 64, 8)}
HEAD = 128
VIDUR = {"a100-sxm": ("a100_sxm", 2.039e12), "h100-sxm": ("h100_sxm", 3.35e12)}
BLACKWELL = ("b200", "gb200-nvl72")
BLACKWELL_HBM = 8e12
CASTS = {"h100-sxm": ("h100_sxm", 3.35e12), "h200-sxm": ("h200_sxm", 4.8e12),
         "b200": ("b200_sxm", BLACKWELL_HBM), "gb200-nvl72": ("gb200", BLACKWELL_HBM)}
ALIKE = {"a100-40gb": "a100-sxm"}  # Others have the kernels' shares of the H100.
VIDUR_OPS = {"norm": "input_layernorm", "sum": "add", "gate": "mlp_act", "turn": "attn_rope"}
NEUSIGHT = {"function": "gelu", "loss": "softmax", "norm": "ln"}
NEUSIGHT_HBM = {"a100_pcie_40gb": 1.555e12, "a100_pcie_80gb": 1.935e12}
FUSIONS = {"sglang": "served", "vllm": "served", "trtllm": "attending", "te": "te",
           "torch-eager": "eager", "torch-compile": "compiled", "xla": "xla_gpu"}
# Whose norms are vLLM's own; others call kernels like PyTorch's.
SERVED = ("sglang", "vllm", "trtllm")


def vidur_bytes(model, op, tokens, tp):
    width, mlp, heads, keys = MODELS[model]
    return tokens * {"norm": 4 * width, "sum": 6 * width, "gate": 6 * mlp // tp,
                     "turn": 4 * (heads + max(keys, tp)) * HEAD // tp}[op]


def vidur_shares(folder, chip):
    name, hbm = VIDUR[chip]
    with gzip.open(os.path.join(folder, f"{name}.layer_ops.vidur.csv.gz"), "rt") as text:
        rows = [row for row in csv.DictReader(text) if row["model"] in MODELS]
    shares, launch_us = {}, None
    for op, published in VIDUR_OPS.items():
        times = [(vidur_bytes(row["model"], op, int(row["num_tokens"]), int(row["tp"])),
                  float(row["median_us"])) for row in rows if row["op"] == published]
        shares[op] = statistics.median(moved / us * 1e6 / hbm for moved, us in times
                                       if moved >= LARGE_BYTES)
        if op == "sum":
            launch_us = statistics.median(us for moved, us in times if moved < LARGE_BYTES / 50)
    return shares, launch_us


def cast_share(folder, chip):
    """Of casts to fp8; None of a chip without."""
    if chip not in CASTS:
        return None
    with open(os.path.join(folder, f"{CASTS[chip][0]}.quantize_scale_matrix.trtllm-1.3.0rc20.csv")) as text:
        rows = [(3 * int(row["m"]) * int(row["k"]), float(row["latency_us"]))
                for row in csv.DictReader(text)]
    return statistics.median(moved / us * 1e6 / CASTS[chip][1] for moved, us in rows
                             if moved >= LARGE_BYTES)


def neusight_shares(folder):
    """PyTorch's kernels read and write each array once, in fp32."""
    with open(os.path.join(folder, "a100_pcie.elementwise_fp32.neusight.csv")) as text:
        rows = list(csv.DictReader(text))
    shares = {}
    for op, published in NEUSIGHT.items():
        shares[op] = statistics.median(
            8 * int(row["rows"]) * int(row["width"]) / float(row["latency_us"]) * 1e6 /
            NEUSIGHT_HBM[row["chip"]] for row in rows
            if row["op"] == published and row["chip"] in NEUSIGHT_HBM and
            8 * int(row["rows"]) * int(row["width"]) >= LARGE_BYTES)
    return shares


def simumax_shares(folder):
    """Efficiencies of the fits' own peak, in GiB/s, as shares of the data sheet's rate of HBM."""
    with open(os.path.join(folder, "b200_sxm.fits.simumax.csv")) as text:
        return {row["op"]: float(row["efficiency"]) * float(row["peak"]) * 1024**3 / BLACKWELL_HBM
                for row in csv.DictReader(text) if row["where"] == "memory"}


def between_of(folder, chip, stack):
    torch = neusight_shares(folder)
    own = chip if chip in VIDUR else ALIKE.get(chip, "h100-sxm")
    shares, launch_us = vidur_shares(folder, own)
    sources = [f"kinds norm, sum, gate, turn and the launch: Vidur's {VIDUR[own][0]}, vLLM's kernels"
               + ("" if own == chip else ", derived: not measured on this chip"),
               "function, loss, update, rest: NeuSight's A100 PCIe, PyTorch's kernels"
               + ("" if chip == "a100-sxm" else ", derived: not measured on this chip")]
    shares["function"], shares["loss"] = torch["function"], torch["loss"]
    if stack not in SERVED:
        shares["norm"] = torch["norm"]
        sources[0] = sources[0].replace("norm, sum", "sum")
        sources[1] = sources[1].replace("function,", "norm, function,")
    if chip in BLACKWELL:
        fits = simumax_shares(folder)
        for op in ("sum", "function"):
            shares[op] = fits["default"]
        shares["loss"] = fits["ce"]
        sources.append("sum, function, loss, update, rest: SimuMax's B200, efficiencies of 8,000 GiB/s")
    shares["update"] = shares["rest"] = shares["function"]
    shares["cast"] = None if stack in SERVED else cast_share(folder, chip)
    if shares["cast"] is not None:
        sources.append("cast: TensorRT-LLM's")
    order = ["rest", "norm", "sum", "gate", "function", "turn", "loss", "update", "cast"]
    return {"fusion": FUSIONS[stack], "source": "; ".join(sources), "launch": f"{launch_us:g}us",
            "share_ppm": {op: min(1000000, round(shares[op] * 1e6)) for op in order if shares[op] is not None}}


def main():
    folder = sys.argv[1]
    for path in sorted(glob.glob(os.path.join(TOPOLOGY, "*.json"))):
        with open(path) as file:
            text = file.read()
        document = json.loads(text)
        chip, stack = document["chip"], document["stack"]
        if stack not in FUSIONS or chip.startswith("tpu-"):
            continue
        between = json.dumps(between_of(folder, chip, stack), indent=1).replace("\n", "\n ")
        text = re.sub(r',\n "between": \{.*?\n \}', "", text, flags=re.S)
        with open(path, "w") as file:
            file.write(text.rstrip()[:-1].rstrip() + f',\n "between": {between}\n}}\n')
        print(f"{chip} {stack}: {between}")


main()
