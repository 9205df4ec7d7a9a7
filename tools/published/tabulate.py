#!/usr/bin/env python3
"""Makes the published measurements of workloads/published/ from lists of them.

    tools/published/tabulate.py FOLDER

FOLDER holds measured-public.json, whose rows are judged, and measured-steps.json and
measured-inference.json, whose rows podsim may learn from: facts that others published, a row for
each measurement. The script writes a file for each group, with the facts that `podsim validate
--published` makes a scenario of: chip, machine, sizes of the model, ranks, batch, precision, what
the framework was told (framework.py), and the measured time. It decides no rate. Where a
publication leaves something out, the row says what was assumed ("assumed"), or that it cannot be
run ("lacks"). Only maintainers run it.
"""
import json
import os
import re
import sys

import framework

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
OUTPUT = os.path.join(ROOT, "workloads/published")
LISTS = [("measured-public.json", False), ("measured-steps.json", True),
         ("measured-inference.json", True)]

CHIPS = {
    "TPU v4": "tpu-v4p", "TPU v5e": "tpu-v5e", "TPU v5p": "tpu-v5p",
    "TPU v6e (Trillium)": "tpu-v6e", "TPU7x (Ironwood)": "tpu-7x",
    "A100 SXM 80GB": "a100-sxm", "A100 SXM 40GB": "a100-40gb", "A100 (Ampere) 80GB": "a100-sxm",
    "A100 SXM 80GB (330 W cap)": "a100-sxm", "H100 SXM 80GB": "h100-sxm",
    "H100 SXM 80GB (GCP A3)": "h100-sxm", "H100 SXM 80GB HBM3 (700 W)": "h100-sxm",
    "H100 96GB HBM2e 2.4 TB/s, 500 W cap (Meta variant)": "h100-sxm", "H200 SXM": "h200-sxm",
    "H800": "h800-sxm", "B200 SXM": "b200", "B200 SXM 180GB (GCP A4)": "b200",
    "GB200": "gb200-nvl72",
}
NODE_GPUS = 8
RACK_GPUS = 72
# Of 2.4 in place of 3.35 TB/s.
HBM_SHARES = {"H100 96GB HBM2e 2.4 TB/s, 500 W cap (Meta variant)": 0.716}
POWER = {"A100 SXM 80GB (330 W cap)": 330, "H100 SXM 80GB HBM3 (700 W)": 700,
         "H100 96GB HBM2e 2.4 TB/s, 500 W cap (Meta variant)": 500}
# NICs of a node that are not the chip's own, by words of the topology.
NETWORKS = [
    ("4x 100 Gb/s", {"node_nics": 4, "nic_rate": "12.5GB/s"}),
    ("4x 200 Gb/s NICs", {"node_nics": 4, "nic_rate": "25GB/s"}),
    ("400 Gb/s per node", {"node_nics": 8, "nic_rate": "6.25GB/s"}),
    ("800 Gb/s per node", {"node_nics": 8, "nic_rate": "12.5GB/s"}),
]
RANKS = {"ici_fsdp": "fsdp", "ici_fsdp_transpose": "fsdp", "dcn_fsdp": "fsdp", "ici_tensor": "tp",
         "ici_expert": "ep", "dcn_data": "dp", "context": "cp", "zero3": "fsdp"}


# What is judged, and by how much the mean absolute error may be off, in percent.
TESTS = {
    "T01": ("32B on 1 to 32 slices of v5e", 6),
    "T03": ("128B and 1024B on v5p", 6),
    "T06": ("Mixtral on 256 v6e", 10),
    "T10": ("LLaMA 3.1 405B on 32 to 2,304 H100", 5),
    "T12": ("Grok-1 on 32 to 2,048 H100", 8),
    "T13": ("GPT 22B to 1T on 8 to 512 A100", 5),
    "T15": ("parts of LLaMA 3 and DeepSeek on eight B200", 8),
    "T17": ("MPT 7B and 30B on 128 to 512 H100", 8),
    "T19": ("GPT 1.5B to 28.3B by schedules on A100", None),
    "T21": ("decodes of LLaMA and Mixtral on A100, H100 and H200", 12),
    "T23": ("NCCL on one node, from 16 MiB", 8),
    "T23-small": ("NCCL on one node, below 16 MiB", 20),
}
# Where ratios are aimed at, and not times.
RATIO_AIMS = {"T19": 4}


# --- Models ---

def config_of(model, length):
    """A config.json with the sizes of a published model."""
    name, mlp = model["name"], model.get("mlp", "")
    if "q_lora_rank" in model or model.get("alibi") or name.startswith("Qwen3"):
        return built_in(model)
    sizes = {"hidden_size": model["d_model"], "intermediate_size": model["d_ff"],
             "num_hidden_layers": model["layers"], "num_attention_heads": model["heads"],
             "num_key_value_heads": model["kv_heads"], "head_dim": model["head_dim"],
             "vocab_size": model["vocab"], "tie_word_embeddings": model.get("tied_embeddings", False)}
    if "attention_pattern" in model and "experts" in model:  # podsim refuses it, and says why.
        return {"model_type": "llama4", **sizes}
    if model.get("attention_pattern") == "5 local : 1 global":
        return {"model_type": "gemma3_text", **sizes, "sliding_window": model["sliding_window"]}
    if "experts" in model:
        return {"model_type": "mixtral", **sizes, "num_local_experts": model["experts"],
                "num_experts_per_tok": model["top_k"]}
    if mlp == "swiglu":
        return {"model_type": "llama", **sizes}
    if name == "Falcon-180B":
        return {"model_type": "falcon", "new_decoder_architecture": True,
                "num_kv_heads": model["kv_heads"], "ffn_hidden_size": model["d_ff"],
                "hidden_size": model["d_model"], "num_hidden_layers": model["layers"],
                "num_attention_heads": model["heads"], "vocab_size": model["vocab"]}
    if name == "GPT-J 6B":
        return {"model_type": "gptj", "n_embd": model["d_model"], "n_inner": model["d_ff"],
                "n_layer": model["layers"], "n_head": model["heads"], "vocab_size": model["vocab"]}
    if name.startswith("175B (MegaScale"):  # PaLM's block: attention and the MLP read one norm.
        assert model["head_dim"] * model["heads"] == model["d_model"], name
        return {"model_type": "gptj", "n_embd": model["d_model"], "n_inner": model["d_ff"],
                "n_layer": model["layers"], "n_head": model["heads"], "vocab_size": model["vocab"]}
    if name.startswith("MPT-"):
        return mpt(model, length)
    if mlp == "gelu (no gate)" and not model.get("tied_embeddings"):
        assert model["kv_heads"] == model["heads"]
        assert model["head_dim"] * model["heads"] == model["d_model"], name
        return {"model_type": "gpt2", "n_embd": model["d_model"], "n_inner": model["d_ff"],
                "n_layer": model["layers"], "n_head": model["heads"],
                "n_positions": max(2048, length),
                "vocab_size": model["vocab"], "tie_word_embeddings": True}
    assert "no gate" in mlp, mlp
    return {"model_type": "starcoder2", "use_bias": False, **sizes}


def mpt(model, positions):
    """Learned positions, as many as a sequence has tokens, and biases everywhere: MPTConfig of
    llm-foundry at 49521837 has both by default. Neither the yamls of its benchmarks nor
    submit_benchmarks.py set another. Published counts of parameters have both."""
    width, layers = model["d_model"], model["layers"]
    assert model["d_ff"] == 4 * width and model["tied_embeddings"]
    biased = 13 * width  # 4 D of attention, 5 D of the MLP, and two norms of 2 D.
    parameters = (model["vocab"] + positions) * width + layers * (12 * width ** 2 + biased) \
        + 2 * width
    assert abs(parameters / (1e9 * model["params_b"]) - 1) < 5e-6, parameters
    return {"architectures": ["MPTForCausalLM"], "model_type": "mpt", "d_model": width,
            "n_heads": model["heads"], "n_layers": layers, "expansion_ratio": 4,
            "max_seq_len": positions, "vocab_size": model["vocab"],
            "attn_config": {"attn_impl": "flash"}}


def name_of(model, length):
    """MPT of one size has as many positions as a row's sequences have tokens."""
    is_longer = model["name"].startswith("MPT-") and length != 2048
    return model["name"] + (", %d positions" % length if is_longer else "")


def built_in(model):
    """A model of the catalogue, cut to the published layers."""
    name = model["name"].split(" cut to ")[0]
    file = {"BLOOM 176B": "bloom-176b", "DeepSeek-V2 236B": "deepseek-v2",
            "DeepSeek-V3 671B": "deepseek-v3", "Qwen3-30B-A3B": "qwen3-30b-a3b",
            "Qwen3-235B-A22B": "qwen3-235b-a22b"}[name]
    with open(os.path.join(ROOT, "workloads/models", file + ".json")) as f:
        config = json.load(f)
    if config.get("num_hidden_layers", config.get("n_layer")) == model["layers"]:
        return file
    config["num_hidden_layers"] = model["layers"]
    if "first_dense_layers" in model:
        config["first_k_dense_replace"] = model["first_dense_layers"]
    return config


# --- Machines ---

def machine_of(row):
    chip = CHIPS[row["hardware"]]
    machine = {"chip": chip, "chips": row["chips"]}
    topology = row["topology"]
    if chip.startswith("tpu"):
        shape = re.search(r"\d+x\d+x\d+|\d+x\d+", topology)
        machine["shape"] = shape.group(0) if shape else None
        if "v6e-256" in topology:
            machine["shape"] = "16x16"
        count = 1
        for side in machine["shape"].split("x"):
            count *= int(side)
        machine["slices"] = row["chips"] // count
        assert machine["slices"] * count == row["chips"], row["id"]
        return machine
    node = NODE_GPUS
    if chip == "gb200-nvl72":
        node = max(n for n in range(1, RACK_GPUS + 1)
                   if row["chips"] % n == 0 and n % 8 == 0)
    machine["gpus"] = min(node, row["chips"])
    machine["nodes"] = row["chips"] // machine["gpus"]
    assert machine["nodes"] * machine["gpus"] == row["chips"], row["id"]
    for words, network in NETWORKS:
        if words in topology and machine["nodes"] > 1:
            machine["network"] = network
    if row["hardware"] in HBM_SHARES:
        machine["hbm"] = HBM_SHARES[row["hardware"]]
    if row["hardware"] in POWER:
        machine["power_w"] = POWER[row["hardware"]]
    return machine


# --- Ranks and batch ---

def ranks_of(row):
    """Ranks by podsim's names of axes; None where the publication does not split them."""
    ranks = {}
    for key, value in row["parallelism"].items():
        if key in ("vpp", "schedule", "microbatches", "layers_per_stage", "interleave", "strategy",
                   "zero", "sequence_parallel", "expert_weights"):
            continue
        if key == "fsdp_dp":
            return None
        name = RANKS.get(key, key)
        if name == "dp" and "zero3" in row["parallelism"]:
            continue
        ranks[name] = ranks.get(name, 1) * value
    if row["parallelism"].get("strategy") == "SHARD_GRAD_OP":
        ranks["dp"] = ranks.pop("fsdp")
    if CHIPS[row["hardware"]] == "tpu-7x":  # Two devices of a chip are one here.
        ranks["fsdp"] //= 2
    if "ep" in ranks and "dp" in ranks:  # Megatron's ranks of experts lie within those of data.
        if ranks["dp"] % ranks["ep"] == 0:
            ranks["dp"] //= ranks["ep"]
    return {name: count for name, count in ranks.items() if count > 1}


def batch_of(row, ranks):
    batch = row["batch"]
    facts = {"sequences": batch["global_seqs"], "length": batch["seq_len"]}
    replicas = 1
    for name in ("dp", "fsdp", "ep"):
        replicas *= ranks.get(name, 1)
    each = facts["sequences"] / replicas
    micro = batch.get("micro_seqs", batch.get("microbatch"))
    if "grad_accum" in batch:
        micro = each / batch["grad_accum"]
    if "per_chip_seqs" in batch or "local_seqs" in batch or "per_device_seqs" in batch:
        micro = each
    facts["microbatch"] = int(micro) if micro and micro == int(micro) else micro
    return facts


# --- Rows ---

def step_row(row):
    facts, assumed = {}, []
    facts.update(machine_of(row))
    model = row["model"]
    words = framework.vocabulary_of(row)
    if words is not None:
        model = {**model, "vocab": words}
    ranks = ranks_of(row)
    if row.get("subkind") == "layer":
        facts["lacks"] = "how long a step takes: it timed one layer"
    elif row.get("subkind"):
        facts["lacks"] = "how long a step takes: it timed kernels that share a chip"
    elif row["group"] in framework.PREDICTED:
        facts["lacks"] = "how long a step takes: its times are predictions"
    elif "heads" not in model or "layers" not in model:
        facts["lacks"] = "sizes of the model"
    elif ranks is None:
        facts["lacks"] = "how ranks are split over FSDP and DP"
    if "lacks" in facts:
        return facts, None
    facts.update(batch_of(row, ranks))
    facts["microbatch"] = framework.SC21_MICROBATCHES.get(row["id"], facts["microbatch"])
    if facts["microbatch"] is None:
        facts["microbatch"] = 1
        assumed.append("microbatches of one sequence")
    framework.framework_of(row, ranks, facts, assumed)
    framework.stages_of(row, ranks, facts, assumed)
    if row["group"] == "megascale":
        assumed.append("no window of attention")
    if row["hardware"] == "GB200":
        assumed.append("%d of a rack's 72 GPUs" % facts["gpus"])
    facts["ranks"] = ranks
    if assumed:
        facts["assumed"] = assumed
    return facts, config_of(model, facts["length"])


SERVERS = {"splitwise": "vllm", "vllm-latency": "vllm", "gpt-fast": "gpt-fast",
           "trtllm-static": "trtllm", "lmdeploy-static": "lmdeploy"}


def inference_row(row):
    """A decode of the mean length, a prefill, or all of both."""
    batch, precision, assumed = row["batch"], row["precision"], []
    facts = {"kind": row["kind"], **machine_of(row), "preset": SERVERS[row["group"]],
             "batch": batch["batch"],
             "ranks": {name: ranks for name, ranks in row["parallelism"].items() if ranks > 1}}
    if "prefill" in row["target"]["what"]:
        facts["kind"] = "generate"
        facts["output"] = batch["tokens_generated"] - 1
    if facts["kind"] == "decode":
        facts["length"] = int(batch["mean_context"])
    else:
        facts["length"] = batch["prompt"]
    facts["precision"] = "fp8" if "fp8" in precision else "bf16"
    if "weights" in precision:
        facts["weights"] = precision.split()[0]
    if "experts" in row["model"] and row["chips"] > 1:  # podsim has no AllReduce behind experts.
        facts["activations"] = "model"
        assumed.append("a ReduceScatter and an AllGather in place of an AllReduce")
    if row["group"] == "splitwise":
        assumed.append("CUDA graphs")
    if "hybrid cube mesh" in row["topology"] and row["chips"] > 1:
        assumed.append("an NVSwitch in place of a hybrid cube mesh")
    if assumed:
        facts["assumed"] = assumed
    return facts, config_of(row["model"], facts["length"])


OPERATIONS = {"alltoall": "all_to_all"}
# NCCL 2.24, of January 2025, writes to registered arrays alone (src/device/prims_simple.h).
DIRECT_BEFORE = "2025"
ALGORITHMS = {"RING": "ring", "NVLS": "sharp"}
PLATEAU_BYTES = 8 << 30
SMALL_BYTES = 16 << 20


def collective_row(row):
    """A collective by itself; of a plateau a size that lies on it."""
    name, ranks, assumed = row["parallelism"]["op"], row["chips"], []
    facts = {"kind": "collective", **machine_of(row), "operation": OPERATIONS.get(name, name),
             "bytes": row["batch"]["bytes"]}
    if "algorithm" in row["parallelism"]:
        facts["algorithm"] = ALGORITHMS[row["parallelism"]["algorithm"]]
    if "cannot use NVLS" in row["notes"]:
        facts["algorithm"] = "ring"
        assumed.append("a ring")
    if not isinstance(facts["bytes"], int):
        facts["bytes"] = PLATEAU_BYTES
        assumed.append("8 GiB")
        busbw = row["measured"]["value"] * 1e9
        facts["seconds"] = float("%.6g" % (PLATEAU_BYTES * 2 * (ranks - 1) / ranks / busbw))
        facts["derived"] = True
    if facts["bytes"] < SMALL_BYTES:
        facts["tests"] = [test + "-small" for test in row["tests"]]
    if row["source"]["date"] < DIRECT_BEFORE:
        facts["registered"] = True
        assumed.append("NCCL before 2.24, which wrote to arrays of its own process directly")
    if assumed:
        facts["assumed"] = assumed
    return facts, None


ROWS = {"decode": inference_row, "prefill": inference_row, "collective": collective_row}


def target_of(row):
    facts = {}
    if "target" in row:
        facts["seconds"] = row["target"]["seconds"]
        facts["derived"] = row["target"]["how"] != "printed"
    also = row["measured"].get("also", {})
    if "peak_alloc_gib" in also:
        facts["peak_gib"] = also["peak_alloc_gib"]
    if "peak_memory_gb" in also:
        facts["peak_gb"] = also["peak_memory_gb"]
    return facts


def row_of(row, learned):
    facts = {"id": row["id"]}
    if learned:
        facts["learned"] = True
    else:
        facts["tests"] = row["tests"]
    of_step, config = ROWS.get(row["kind"], step_row)(row)
    facts.update(of_step)
    if config is not None:
        facts["model"] = name_of(row["model"], facts["length"])
    facts.update(target_of(row))
    facts["confidence"] = row["confidence"]
    return facts, config


# --- Files ---

def source_of(rows):
    sources = []
    for row in rows:
        source = row["source"]
        commit = source.get("commit", "")[:8]
        text = source["repo"] + (" at " + commit if commit else "") + ", " + source["path"]
        text = re.sub(r" row \d+$", "", text)
        if text not in sources:
            sources.append(text)
    return "; ".join(sources + framework.sources_of(rows[0]["group"]))


def without_common(rows):
    """Facts that all rows of a file share stand before them."""
    common = {}
    for key, value in rows[0].items():
        if key != "id" and all(row.get(key) == value for row in rows):
            common[key] = value
    return common, [{k: v for k, v in row.items() if k not in common} for row in rows]


def tests_of(rows):
    tests = {}
    for row in rows:
        for test in row.get("tests", []):
            title, aim = TESTS[test]
            tests[test] = {"title": title}
            if aim:
                tests[test]["aim_percent"] = aim
            if test in RATIO_AIMS:
                tests[test]["ratio_aim_percent"] = RATIO_AIMS[test]
    return tests


def write(group, rows, models, source):
    tests = tests_of(rows)
    common, rows = without_common(rows)
    lines = ["{", '  "podsim_published": 1,', '  "group": %s,' % json.dumps(group),
             '  "source": %s,' % json.dumps(source), '  "tests": %s,' % json.dumps(tests),
             '  "models": {']
    lines.append(",\n".join("    %s: %s" % (json.dumps(name), json.dumps(config))
                            for name, config in models.items()))
    lines += ["  },", '  "common": %s,' % json.dumps(common), '  "rows": [']
    lines.append(",\n".join("    " + json.dumps(row) for row in rows))
    lines += ["  ]", "}"]
    with open(os.path.join(OUTPUT, group + ".json"), "w") as f:
        f.write("\n".join(lines) + "\n")


def main():
    folder = sys.argv[1]
    groups = {}
    for name, learned in LISTS:
        with open(os.path.join(folder, name)) as f:
            for row in json.load(f):
                groups.setdefault(row["group"], []).append((row, learned))
    os.makedirs(OUTPUT, exist_ok=True)
    for group, pairs in groups.items():
        rows, models = [], {}
        for row, learned in pairs:
            facts, config = row_of(row, learned)
            if config is not None:
                assert models.get(facts["model"], config) == config, facts["id"]
                models[facts["model"]] = config
            rows.append(facts)
        write(group, rows, models, source_of([row for row, _ in pairs]))


main()
