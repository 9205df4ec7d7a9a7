"""What the framework of a measured step was told: its preset, what is recomputed, its schedule of
stages, and facts that stand only in the notes of a row (see tabulate.py)."""
import re

# Kernels that bring tokens to experts: scripts/performance/configs of Megatron-Bridge have AllToAll in
# v0.2.0 (NeMo 25.11) on H100, DeepEP in v0.3.0 (26.02) on H100, HybridEP in v0.3.0 on B200 and in
# v0.4.0 (26.04) on both.
DISPATCH = {"megatron-bridge": "dispatchers of tokens: scripts/performance/configs at v0.2.0, v0.3.0 "
                               "and v0.4.0"}
# Fused kernels of the loss, where they are not those of the preset. Scripts of Megatron-Bridge and
# of NeMo 25.04 (dgxc-gb200) set Transformer Engine's. NeMo of 24.07 fuses none by default: of the
# files of dgxc-h100 (NVIDIA/dgxc-benchmarking at 8f5cbb37), LLaMA 3.1 and Nemotron have
# cross_entropy_loss_fusion: true, Grok-1 and GPT-3 leave it out. "cef" in names of SimuMax is
# --cross-entropy-loss-fusion with --cross-entropy-fusion-impl te (its docs/strategy.md).
LOSS_FUSIONS = {"dgxc-gb200": "te", "megatron-bridge": "te", "nemo-24.07": "none"}
# Models of dgxc-h100 whose launch scripts set model.ub_tp_comm_overlap over their files, which have
# it off.
SCRIPTED = "Nemotron-4 340B|Grok-1"
SCRIPT_SOURCES = {
    "dgxc-h100": "model.ub_tp_comm_overlap: CONFIG_OVERRIDES of nemotron/configure.sh and "
                 "grok1/configure.sh at 8f5cbb37; tokenizers: llama3.1/README_405b.md and "
                 "grok1/grok1_314b.yaml at 8f5cbb37",
}
LOSS_SOURCES = {
    "dgxc-gb200": "fused losses: NVIDIA/NeMo at 7a8f1cc7 and b4148d21, scripts/performance",
    "megatron-bridge": "fused losses: scripts/performance/utils at v0.2.0, v0.3.0, v0.4.0, v0.5.0 "
                       "and v0.6.0",
    "nemo-24.07": "NeMo of 24.07 fuses no loss by default",
}
# scripts/train/benchmarking/sweep.py of llm-foundry at 5e85bd62 made the rows of 128 H100 and more:
# attn_impl is flash, which leaves out padding, but for two models.
FOUNDRY_GPUS = 128
FOUNDRY_TRITON = ("MPT-13b", "MPT-30b")
ATTENTION_SOURCES = {
    "llm-foundry": "attention of 128 H100 and more: scripts/train/benchmarking/sweep.py at 5e85bd62",
}
# Blocks of fms-fsdp with selective checkpointing, of all that the model has. README.md at ed74fd5d has
# the HFU of each run by PyTorch's counter of FLOP, beside tokens/s. A block that is checkpointed
# repeats all products but the last, for torch's checkpoint stops early, and attention. The HFU
# then has 0.49 of the blocks of 13B on A100 and 1.04 of those of 70B; 0.75 of 34B on H100, and 0.67
# of 70B: selective_checkpointing of 1/2, 1, 3/4 and 2/3.
FMS_BLOCKS = {"fms-fsdp-13b-a100": 20, "fms-fsdp-34b-h100": 36, "fms-fsdp-70b-h100": 53}
# The sizes of the models of zero-bubble, 14.6B and 28.3B, leave 24,000 to 32,400 words beside their
# layers, and examples/pretrain_llama_7b.sh of the paper's repository at ed85b11c has a
# SentencePiece tokenizer and tied embeddings. LLaMA's has 32,000.
VOCABULARIES = {"zero-bubble": 32000}
# Words of tokenizers that stand for a model's own in files of dgxc-h100 (NVIDIA/dgxc-benchmarking at
# 8f5cbb37), and a multiple of which NeMo makes them (make_vocab_size_divisible_by 128, times tp).
# LLaMA 3.1 405B "uses the GPT2BPETokenizer as a proxy" (llama3.1/README_405b.md, configure.sh);
# grok1/grok1_314b.yaml has Meta-Llama-3-70B.
PROXIES = {"Llama-3.1-405B": 50257, "Grok-1 314B": 128256}
SCHEDULES = {"ZB-2p": "zb-h2", "ZB-1p": "zb-h1", "1F1B": "1f1b", "1F1B-I": "interleaved"}


# Groups whose times nobody measured. Of the 1,440 rows of data/ground_truth_single.csv, all 432 triples
# that differ in the number of microbatches alone, n, 2n and 4n, lie on a line to the last digit. All
# 240 pairs without stages that differ in dp alone, 2 and 4 or 4 and 8, differ by what vTrain's
# predictor (src/predictor.py, compute_comm_time) takes for an AllReduce of all weights from
# trace/a100, to the nanosecond; from 1 GiB on it leaves out the factor 2(n-1)/n, and more ranks are
# faster. Steps of Megatron-DeepSpeed, which data/README.md names, have neither.
PREDICTED = {"vtrain-single"}
# NVIDIA/Megatron-LM at 79a3bb6b, examples/sc21/run_table_1.sh: MBS. The row of 175B is of no table.
SC21_MICROBATCHES = {"sc21-a100-7.5b": 16, "sc21-a100-529.6b": 1}


def preset_of(row):
    group, notes = row["group"], row["notes"]
    if group == "megatron-sc21-zero3" and "tp" in row["parallelism"]:  # PTD-P is Megatron-LM.
        return "megatron-2021"
    if group in ("dgxc-h100", "dgxc-gb200", "nemo-24.07", "megatron-bridge"):
        if "MaxText" in notes:
            return "maxtext"
        return "maxtext" if "Paxml" in notes else "nemo"
    return {
        "maxtext-v5e": "maxtext", "maxtext-v5p": "maxtext", "maxtext-v4": "maxtext",
        "maxtext-v6e": "maxtext", "maxtext-v5p-recipes": "maxtext", "maxtext-ironwood": "maxtext",
        "maxtext-gpu": "maxtext", "gpu-recipes": "maxtext", "jax-toolbox": "maxtext",
        "megatron-h100": "megatron", "simumax-b200": "megatron", "llama3-paper": "megatron",
        "megascale": "megatron", "megatron-sc21": "megatron-2021", "korthikanti": "megatron-2021",
        "mt-nlg": "megatron-2021",
        "megatron-sc21-zero3": "deepspeed",
        "bigscience": "megatron-deepspeed", "zero-bubble": "zero-bubble",
        "torchtitan": "torchtitan", "llm-foundry": "llm-foundry", "fms-fsdp": "fsdp",
    }[group]


def loss_fusion_of(row, preset):
    """None where the preset has it."""
    if preset != "nemo":
        return None
    if row["group"] == "dgxc-h100" and row["model"]["name"].startswith(("Grok-1", "GPT-3")):
        return "none"
    return LOSS_FUSIONS.get(row["group"])


def has_fused_sums(row):
    """Rows of May 2022, by the authors of Megatron-LM's fused sums of February 2022 (83b1e42f)."""
    return row["group"] == "korthikanti"


def is_padded(row):
    large = "h100" in row["id"] and row["chips"] >= FOUNDRY_GPUS
    return row["group"] == "llm-foundry" and large and row["model"]["name"] not in FOUNDRY_TRITON


def recompute_of(row, assumed):
    notes, group = row["notes"], row["group"]
    if group == "llm-foundry":
        return "full" if "checkpointing=True" in notes else "none"
    if "offloaded" in notes:
        return "offloaded"
    if "selective" in notes:
        if group == "fms-fsdp":
            assumed.append("the blocks that are checkpointed: those of the published HFU")
            return "full"
        if group == "torchtitan" and re.search("float8|fp8", row["precision"].lower()):
            return "selective_fp8"  # Its list of what is kept (_save_list) has no _scaled_mm.
        return "selective"
    if "minimal_flash" in notes:
        return "minimal_flash"
    if "remat_policy=minimal" in notes:
        return "minimal"
    if "no full recompute" in notes or re.search(r"no (activation )?recompute", notes):
        return "none"
    if re.search(r"full (remat|recompute|activation)|remat_policy=full", notes):
        return "full"
    if "layer input kept on device" in notes or "layer input, context" in notes:
        assumed.append("all but the layer's input is repeated")
        return "full"
    if "remat policy set by the launch script" in notes:
        # POLICY of maxtext/configure.sh in NVIDIA/dgxc-benchmarking at 8f5cbb37.
        return "save_qkv_proj"
    if group in ("dgxc-gb200", "megatron-bridge", "megatron-h100", "llama3-paper", "megascale",
                 "dgxc-h100"):
        assumed.append("no recomputation")
        return "none"
    return None


def stages_of(row, ranks, facts, assumed):
    if "pp" not in ranks:
        return
    layers, parallelism = row["model"]["layers"], row["parallelism"]
    chunks = parallelism.get("vpp", 1)
    schedule = parallelism.get("schedule")
    if schedule:
        each = parallelism["layers_per_stage"]
        facts["schedule"] = SCHEDULES[schedule]
        facts["layout"] = "E{0}|({1}|)*{2}{0}L".format("t" * (each - 1), "t" * each, ranks["pp"] - 2)
        if schedule == "1F1B-I":
            facts["schedule"] += ":%d" % each
            facts["layout"] = "E|(t|)*%dL" % layers
        return
    if row["group"] == "llama3-paper":
        assumed.append("a layer in each chunk of a stage")
        facts["schedule"], facts["layout"] = "interleaved:8", "E|(t|)*126L"
        return
    if row["group"] == "megatron-h100":
        # "Pipeline-parallel communication (enabled by default)" overlaps in the interleaved
        # schedule alone (megatron/training/arguments.py), and 23 layers of a stage have no divisor.
        assumed.append("a layer in each chunk of a stage")
        chunks = layers // ranks["pp"]
    if row["group"] == "megatron-sc21":
        assumed.append("chunks of examples/sc21")
        chunks = 3 if layers == 105 else 1
    if row["group"] == "megatron-sc21-zero3":
        chunks = 3
        assumed.append("3 chunks, as in table 1 of the same paper")
    facts["schedule"] = "1f1b" if chunks == 1 else "interleaved:%d" % chunks


def framework_of(row, ranks, facts, assumed):
    notes, precision = row["notes"], row["precision"].lower()
    facts["preset"] = preset_of(row)
    loss_fusion = loss_fusion_of(row, facts["preset"])
    if loss_fusion is not None:
        facts["loss_fusion"] = loss_fusion
    recompute = recompute_of(row, assumed)
    if recompute is None:
        facts["lacks"] = "what is recomputed"
    else:
        facts["recompute"] = recompute
    if row["id"] in FMS_BLOCKS:
        facts["recompute_layers"] = FMS_BLOCKS[row["id"]]
    facts["precision"] = "fp8" if "fp8" in precision or "float8" in precision else "bf16"
    if re.search(r"(?i)mxfp8", precision):
        facts["recipe"] = "mxfp8"
    elif re.search("tensorwise|rowwise|-cs$", precision):
        facts["recipe"] = precision.split("-")[1]
    if row["group"] == "simumax-b200" and row["id"].endswith("_cef"):
        facts["loss_fusion"] = "te"
    if is_padded(row):
        facts["attention_kernel"] = "flash_padded"
    if "PURE" in row["precision"]:
        facts["gradients"] = "bf16"
    if facts["preset"] == "megatron-2021" and "bf16" in precision:  # --bf16 sums in fp32.
        facts["gradients"] = facts["main_gradients"] = "fp32"
    if has_fused_sums(row):
        facts["gradients"] = facts["main_gradients"] = "fp32"
        facts["gradient_sums"] = "fused"
        assumed.append("sums of gradients in fp32, by the products")
        # LinearWithGradAccumulationAndAsyncCommunication (megatron/mpu/layers.py at 739cb43d).
        facts["backward_order"] = "dx_first"
        # megatron/model/fused_layer_norm.py at a2fdcdf0 (November 2021), whose list has these widths.
        facts["persistent_layernorm"] = True
        if facts["recompute"] == "selective":  # The paper's present work has sequence parallelism.
            facts["activations"] = "tokens"
    if "fp32 gradient" in precision:
        facts["gradients"] = "fp32"
    if row["parallelism"].get("strategy") == "SHARD_GRAD_OP":
        facts["zero"] = 2
    if row["group"] == "llama3-paper":
        # Section 3.3.2: FSDP "synchronizes after each training step", and gradients of several
        # microbatches are added up in fp32 before. With zero 2 each microbatch would be reduced.
        facts["zero"], ranks["dp"] = 1, ranks.pop("fsdp")
    if facts["preset"] in ("nemo", "megatron", "torchtitan") and "tp" in ranks:
        if re.search(r"TP comm overlap|async TP|TP/DP/PP (communication )?overlap|"
                     r"communication overlap$", notes):
            facts["tp_overlap"] = True
            if row["group"] == "dgxc-h100" and "405B" in row["model"]["name"]:
                # NVIDIA/dgxc-benchmarking at 8f5cbb37: ub_tp_comm_overlap_cfg of
                # llama3.1/llama3.1_405b.yaml has aggregate 1, which the files of the other models
                # (llama3.1_70b.yaml, nemo_megatron/gpt3_175b_hydra.yaml) set to 0 or leave out.
                facts["matmul_chunks"] = "userbuffers_pairs"
        elif row["group"] == "dgxc-h100" and re.match(SCRIPTED, row["model"]["name"]):
            facts["tp_overlap"] = True
        elif "vanilla TP" in notes or notes.startswith("NeMo 24.12"):  # Which lists what it does.
            facts["tp_overlap"] = False
    if "all-to-all context" in notes:
        facts["context"] = "ulysses"
    elif "cp" in ranks and facts["preset"] == "maxtext":
        facts["context"] = "all_gather"
    if row["model"]["name"].startswith("DeepSeek-V3") and row["group"] != "megatron-bridge":
        facts["mtp"] = False
    if "all TP/PP/DP overlap switched off" in notes:
        facts["overlap"] = False
    if row["group"] == "megatron-bridge" and "ep" in ranks and not row["id"].startswith("mbridge-25"):
        facts["token_copies"] = "rank"  # DeepEP or HybridEP, by the release's scripts (see DISPATCH).
    match = re.search(r"capacity (?:factor )?([\d.]+)", notes)
    if match:
        facts["capacity_factor"] = float(match.group(1))


def vocabulary_of(row):
    """Rows of the embedding where they are not those of the model."""
    if row["group"] == "dgxc-h100":
        for name, words in PROXIES.items():
            if row["model"]["name"].startswith(name):
                multiple = 128 * row["parallelism"]["tp"]
                return -(-words // multiple) * multiple
    return VOCABULARIES.get(row["group"])


def sources_of(group):
    """Where facts of a group stand that its rows do not have."""
    return [notes[group] for notes in (DISPATCH, SCRIPT_SOURCES, LOSS_SOURCES, ATTENTION_SOURCES)
            if group in notes]
