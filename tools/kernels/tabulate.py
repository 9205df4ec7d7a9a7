#!/usr/bin/env python3
"""Makes the kernel tables of topology/kernels/ from published measurements.

    tools/kernels/tabulate.py FOLDER

FOLDER holds the measurements as CSV, named <chip>.<family>.<stack>-<version>.csv or .csv.gz: gemm
with gemm_dtype, m, n, k, latency_us; attention_context, attention_decode, encoder_attention, mla_context and
mla_decode with num_heads, num_key_value_heads, batch_size, isl or step, latency_us; mla_bmm as batched.py, moe as experts.py reads it;
train_gemm, train_attention, train_grouped_gemm and layer_ops as training.py and layers.py read them. Rates are those of topology/chips. Only maintainers run it,
once for each new version of the measurements: podsim reads what it writes, and needs no Python.
"""
import sys

import attention
import batched
import experts
import flash2
import layers
import matmuls
import tables
import training

VERSIONS = {
    "a100_sxm": {"sglang": "0.5.10", "trtllm": "1.0.0", "vllm": "0.14.0"},
    "h100_sxm": {"sglang": "0.5.14", "trtllm": "1.3.0rc20", "vllm": "0.24.0"},
    "h200_sxm": {"sglang": "0.5.14", "trtllm": "1.3.0rc20", "vllm": "0.24.0"},
    "b200_sxm": {"sglang": "0.5.14", "trtllm": "1.3.0rc20", "vllm": "0.24.0"},
    "gb200": {"sglang": "0.5.14", "trtllm": "1.3.0rc20", "vllm": "0.24.0"},
}
# Chips of which vLLM's encoders of images were measured: whole sequences without a mask.
FULL = ["h100_sxm", "h200_sxm", "b200_sxm", "gb200"]
# Chips on which vLLM's latent attention takes as long as TensorRT-LLM's.
LATENT = FULL
# Whose products head by head were measured, of those that call PyTorch's for them (torch.bmm): vLLM and
# SGLang do in bf16, Transformer Engine leaves them to PyTorch, and TensorRT-LLM on A100 does, too (bmm_out).
BATCHED = {"a100_sxm": "trtllm"}
# Whose experts were measured, of those that take balanced rows; its other engines have the same.
EXPERTS = {"a100_sxm": "sglang"}
TITLES = {"sglang": "SGLang", "trtllm": "TensorRT-LLM", "vllm": "vLLM"}
CORES = {"a100-sxm": 108, "h100-sxm": 132, "h200-sxm": 132, "b200": 148, "gb200-nvl72": 148}
# Whose training kernels were measured; other chips have the ratios of both.
TRAINED = {"a100-sxm": "a100", "b200": "b200"}
ATTENDED = {"a100-sxm": ["a100"], "b200": ["b200"], "gb200-nvl72": ["b200"]}
BOTH = ["a100", "b200"]
TPUS = ["tpu-v4p", "tpu-v5p", "tpu-7x"]


# The share of its clock that a chip keeps in a whole step, where kernels were measured alone, in bf16
# and fp8 (tools/published/clock.py). The chip's clock is that at which the median error of all rows
# vanishes. A stack of ten rows or more has a clock of its own, within 5 % of its chip's.
H100_CLOCK = (810000,
    "48 training steps in bf16 of dense models on H100 that podsim may learn from "
    "(docs/accuracy-published.md: dgxc-h100, megatron-h100, llama3-paper, llm-foundry, fms-fsdp, "
    "maxtext-gpu): the median error vanishes at 0.81; the stack has fewer than ten of its own")
H100_FP8 = (820000,
    "32 training steps in fp8 of dense models on H100 that podsim may learn from "
    "(docs/accuracy-published.md: dgxc-h100, nemo-24.07, megatron-bridge, llm-foundry): the median "
    "error vanishes at 0.82; the stack has fewer than ten of its own")
HOPPER_CLOCKS = {
    "te": ((830000,
        "18 training steps in bf16 of dense models on H100 at 700 W with Transformer Engine that podsim "
        "may learn from (docs/accuracy-published.md: dgxc-h100, megatron-h100, llama3-paper): the "
        "median error vanishes at 0.825, that of all stacks at 0.81"),
        (820000,
        "25 training steps in fp8 of dense models on H100 at 700 W with Transformer Engine that podsim "
        "may learn from (docs/accuracy-published.md: dgxc-h100, nemo-24.07, megatron-bridge): the "
        "median error vanishes at 0.82, that of all stacks at 0.82")),
    "torch-eager": ((770000,
        "23 training steps in bf16 of dense models on H100 that podsim may learn from "
        "(docs/accuracy-published.md: llm-foundry): the median error vanishes at 0.76, more than 5 % "
        "below that of all stacks at 0.81: the nearest share that is within 5 %"), H100_FP8),
    "torch-compile": (H100_CLOCK, H100_FP8),
    "xla": (H100_CLOCK, H100_FP8),
}
CLOCKS = {
    "gb200-nvl72.te": ((790000,
        "five training steps in bf16 of dense models that podsim may learn from "
        "(docs/accuracy-published.md: dgxc-gb200): the median error vanishes at 0.792, the mean at 0.802"),
        (720000,
        "four training steps in fp8 of dense models that podsim may learn from "
        "(docs/accuracy-published.md: dgxc-gb200): the median error vanishes at 0.724, the mean at 0.721")),
    "b200.te": ((1000000, "tables of training in bf16, which have the clock of a step"),
                (720000, "derived: gb200-nvl72's, the same cores")),
    "tpu-v6e.xla": ((730000,
        "four training steps of dense models that podsim may learn from "
        "(docs/accuracy-published.md: maxtext-v6e): the median error vanishes at 0.734, the mean at 0.732; "
        "the table is of layers alone"), None),
}
for _stack, _clocks in HOPPER_CLOCKS.items():
    CLOCKS[f"h100-sxm.{_stack}"] = _clocks
    for _chip in ("h200-sxm", "h800-sxm"):
        CLOCKS[f"{_chip}.{_stack}"] = tuple(
            (ppm, f"derived: h100-sxm.{_stack}'s, the same cores at the same power") for ppm, _ in _clocks)


def reference(of, format_name, **other):
    return {"format": format_name} | other | {"of": {"stack": of}}


def clock_of(value):
    return dict(zip(("ppm", "source"), value))


def write(chip, stack, title, **lists):
    name = f"{chip}.{stack}"
    head = {"podsim_kernels": 1, "chip": chip, "stack": stack, "title": title}
    if name in CLOCKS:
        clock, clock_fp8 = CLOCKS[name]
        head["clock"] = clock_of(clock) | ({"fp8": clock_of(clock_fp8)} if clock_fp8 else {})
    tables.write(name, head | lists)


def served(folder, file_chip):
    """Stacks of engines, by the publisher's name of a chip. vLLM's matmuls in bf16 were measured with
    weights that were never filled: SGLang's are the same of PyTorch's."""
    chip = tables.CHIPS[file_chip]
    versions = VERSIONS[file_chip]
    title = {stack: f"{TITLES[stack]} {version}" for stack, version in versions.items()}
    family = "gemm" if file_chip == "a100_sxm" else "gemm_bf16"
    of_sglang = matmuls.made(folder, (file_chip, family, "sglang", versions["sglang"]))
    of_trtllm = matmuls.made(folder, (file_chip, "gemm", "trtllm", versions["trtllm"]))
    made = {stack: (attention.prefills(folder, (file_chip, stack, versions[stack])),
                    attention.decodes(folder, (file_chip, stack, versions[stack])))
            for stack in ("trtllm", "vllm")}
    # vLLM's rows of latent attention have the projections in them. They take as long as the
    # projections' tables and TensorRT-LLM's attention together (docs/kernels.md, "Latent attention"),
    # but on A100, where vLLM's kernels are Triton's.
    latent = {"latent_attention": attention.latent_prompts(folder, (file_chip, "trtllm", versions["trtllm"])),
              "latent_decode": attention.latent_decodes(folder, (file_chip, "trtllm", versions["trtllm"]))}
    latent_of = {family: [reference(f"{chip}.trtllm", "bf16", **(
                     {"stored": table["stored"]} if "stored" in table else {})) for table in of_family]
                 for family, of_family in latent.items() if file_chip in LATENT}
    products = {stack: batched.made(folder, (file_chip, stack, versions[stack]))
                for stack in {"trtllm", BATCHED.get(file_chip, "vllm")}}
    batched_of = {"batched_matmul": [reference(f"{chip}.{BATCHED.get(file_chip, 'vllm')}", "bf16")]}
    full = {"full_attention": attention.full(folder, (file_chip, "vllm", versions["vllm"]))} \
        if file_chip in FULL else {}
    full_of = {family: [reference(f"{chip}.vllm", "bf16")] for family in full}
    fp8 = [reference(f"{chip}.trtllm", "fp8", layout="TN",
                     **({"cast": table["cast"]} if "cast" in table else {}))
           for table in of_trtllm if table["format"] == "fp8"]
    within = [table for table in fp8 if "cast" not in table]
    engine = EXPERTS.get(file_chip, "vllm")
    of_engine = experts.made(folder, (file_chip, engine, versions[engine]))
    experts_of = {stack: of_engine if stack == engine else
                         [reference(f"{chip}.{engine}", table["format"]) for table in of_engine]
                  for stack in versions}
    write(chip, "trtllm", title["trtllm"], matmul=of_trtllm, batched_matmul=products["trtllm"],
          attention=made["trtllm"][0],
          decode=made["trtllm"][1], **latent, experts=experts_of["trtllm"])
    write(chip, "vllm", title["vllm"],
          matmul=[reference(f"{chip}.sglang", "bf16", layout="TN")] + within,
          **({"batched_matmul": products["vllm"]} if "vllm" in products else batched_of),
          attention=made["vllm"][0], **full, decode=made["vllm"][1], **latent_of,
          experts=experts_of["vllm"])
    write(chip, "sglang", title["sglang"], matmul=of_sglang, **batched_of,
          attention=[reference(f"{chip}.vllm", "bf16")], **full_of,
          decode=[reference(f"{chip}.vllm", "bf16", stored=table["stored"])
                  for table in made["vllm"][1]], **latent_of, experts=experts_of["sglang"])
    return of_sglang[0], fp8, made["vllm"][0][0], \
        full.get("full_attention", [None])[0], BATCHED.get(file_chip, "vllm")


# Transformer Engine and torchao let products of gradients add up in two steps on Hopper (use_split_accumulator,
# use_fast_accum), which the measured ones do not: fast accumulation is 1.1 to 1.2 times as fast.
SPLIT_PPM = round(1e6 / 1.15)
SPLIT = ("pytorch/ao issue 2377: 1.1 to 1.2; TransformerEngine d0067d0d pytorch/module/base.py"
         " (_2X_ACC_DGRAD, _2X_ACC_WGRAD)")
HOPPER = ["h100-sxm", "h200-sxm"]
PYTORCH = (("torch-eager", "PyTorch, eager"), ("torch-compile", "PyTorch, compiled"))


def gradients_in_fp8(chip):
    """Layouts of gradients as TN, in which all operands lie once they are cast."""
    kinds = {"tensor": (SPLIT_PPM, SPLIT, "shares of TN over 1.15: gradients add up in two steps")}
    kinds["block"] = (1000000, "TransformerEngine d0067d0d common/recipe (Float8BlockScaling)",
                      "shares of TN, as which both operands are cast")
    return [reference(f"{chip}.trtllm", "fp8", layout=layout, cast=cast) | {
                "of": {"stack": f"{chip}.trtllm", "layout": "TN"}, "source": source, "derived": derived,
                "factor": {"m": [1], "n": [1], "k": [1], "ppm": [ppm]},
                "rows": 0, "error_median_ppm": 0, "error_ninetieth_ppm": 0}
            for cast, (ppm, source, derived) in kinds.items() for layout in ("NN", "NT")]


def trained(folder, chip, measured, smooth, flash):
    """Transformer Engine, and PyTorch, whose matmuls are the same libraries'."""
    of = f"{chip}.sglang"
    of_sglang, fp8 = measured[:2]
    lists = {"full_attention": [reference(f"{chip}.vllm", "bf16")]} if measured[3] else {}
    if chip in TRAINED:
        name = TRAINED[chip]
        lists["grouped_matmul"] = training.grouped(folder, name, of, of_sglang)
        products, smooth[name] = training.measured_matmuls(folder, name, of, of_sglang)
    else:
        products = [reference(of, "bf16", layout="TN")] + training.derived_matmuls(of, smooth)
    backward = training.attention_backward(folder, ATTENDED.get(chip, BOTH), CORES[chip], f"{chip}.vllm")
    fp8 = fp8 + (gradients_in_fp8(chip) if chip in HOPPER else [])
    write(chip, "te", "Transformer Engine", matmul=products + fp8,
          batched_matmul=[reference(f"{chip}.{measured[4]}", "bf16")],
          attention=[reference(f"{chip}.vllm", "bf16")], attention_backward=[backward], **lists)
    write(chip, "xla", "XLA", tables_of=f"{chip}.te")
    lists = flash2.made(chip, *flash) if chip in HOPPER else {}
    for stack, title in PYTORCH:
        write(chip, stack, title, tables_of=f"{chip}.te", **lists)


def main():
    folder = sys.argv[1]
    smooth, engines = {}, {}
    for file_chip in VERSIONS:
        engines[tables.CHIPS[file_chip]] = served(folder, file_chip)
    # Chips with training kernels of their own first: others have the ratios of both.
    flash = engines["h100-sxm"][2:4]
    for chip in sorted(engines, key=lambda name: name not in TRAINED):
        trained(folder, chip, engines[chip], smooth, flash)
    for stack, title in (("te", "Transformer Engine"), *PYTORCH, ("xla", "XLA")):
        write("h800-sxm", stack, title, tables_of=f"h100-sxm.{stack}")
        write("a100-40gb", stack, title, tables_of=f"a100-sxm.{stack}")
    of_layers = layers.made(folder)
    write("tpu-v6e", "xla", "XLA", matmul=of_layers)
    write("tpu-v5e", "xla", "XLA", matmul=[layers.of_v5e(table) for table in of_layers],
          **layers.attention_of("tpu-v5e"))
    for chip in TPUS:
        lists = layers.attention_of(chip) if chip in layers.FLASH_CHIPS else {}
        write(chip, "xla", "XLA", tables_of="tpu-v6e.xla", **lists)


if __name__ == "__main__":
    main()
