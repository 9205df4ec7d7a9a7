/*
 * megatron_text.h: what docs/megatron.md says around its tables.
 */
#ifndef TESTS_VALIDATION_MEGATRON_TEXT_H
#define TESTS_VALIDATION_MEGATRON_TEXT_H

static const char megatron_head[] =
    "# Megatron-LM's steps beside ours\n"
    "\n"
    "Written by `tests/validation/test_megatron --markdown`; a test fails when it is not up to\n"
    "date.\n"
    "\n"
    "Narayanan et al., *Efficient Large-Scale Language Model Training on GPU Clusters Using\n"
    "Megatron-LM* (SC 2021, arXiv 2104.04473), trained GPTs of 1.7 to 1008 billion parameters\n"
    "on up to 3,072 A100 of Selene. Table 1 has what each GPU achieved, by the FLOP of their\n"
    "equation 3: the matmuls, with attention over the whole square and the forward pass\n"
    "computed twice. Beside it stand the same FLOP over the simulated period, from the end of\n"
    "a step to the end of the next.\n"
    "\n"
    "```sh\n"
    "build/podsim run scenarios/megatron/megatron-76.1b-a100-1024.json\n"
    "```\n"
    "\n"
    "No parameter is fitted to these rows. The profile `measured` of `a100-sxm` has the best\n"
    "matmul of a wide search (271 of 312 TFLOP/s), HBM and launches by two matrix-vector\n"
    "products, NVLink and InfiniBand by NCCL's own constants: `podsim list chips a100-sxm` has\n"
    "the sources.\n"
    "\n";

static const char megatron_setup[] =
    "\n"
    "**All steps are faster here than they were, by 26 to 42 %**, most at 76.1B and least at\n"
    "1008B. Take them for a bound of what the hardware could do with kernels as good as its\n"
    "best matmul, not for a forecast of that software.\n"
    "\n"
    "What the scenarios have:\n"
    "\n"
    "- Layers, width, heads, ranks and batch are table 1's. The table has neither microbatches\n"
    "  nor chunks; those are of the script that repeats it, `examples/sc21/run_table_1.sh`\n"
    "  (NVIDIA/Megatron-LM at 79a3bb6b). It interleaves from 76.1B to 529.6B, and not at 39.1B\n"
    "  and 1008B.\n"
    "- 16-bit weights, activations and gradients, Adam's moments in 32 bits, all activations\n"
    "  recomputed (`remat: layer`), attention over the whole square, sequences of 2,048, 51,200\n"
    "  words, embedding and head one matrix: with stages, both ends hold it and add up their\n"
    "  gradients.\n"
    "- Attention of its time, before flash attention: `attention_kernel: unfused_dropout`. The\n"
    "  scores of all tokens and keys go to HBM from the product, to one kernel that scales,\n"
    "  masks and takes the softmax, to dropout (on, Megatron's default), to the product with V:\n"
    "  45 bytes a score, with the pass computed again and the way back.\n"
    "- Nodes of a pipeline stand side by side. Megatron puts replicas side by side and stages\n"
    "  apart.\n"
    "- Between blocks, and where they are saved, activations are divided over `tp`, by a gather "
    "and\n"
    "  a reduce-scatter; Megatron of that time kept them whole on every rank, by one AllReduce of\n"
    "  as many bytes.\n"
    "- With stages, InfiniBand is one switch a rail (`switch_ports`), so that a single pipeline\n"
    "  has to be played. By the fat tree of 40 ports, every node played, the step of 76.1B is\n"
    "  0.2 ms longer, that of 1008B 0.1 ms: less than 0.002 %.\n"
    "\n"
    "## What is missing\n"
    "\n"
    "Seconds of a step. \"Between matmuls\" is not simulated but reckoned from the bytes that\n"
    "the kernels of 2021 moved and that are not simulated, at the HBM rate of the profile.\n"
    "\n";

static const char megatron_reasons[] =
    "\n"
    "- **between matmuls**: layernorm, bias, dropout and residual ran on every rank of `tp`\n"
    "  over the whole width, and GELU as a kernel of its own; here norms are divided over `tp`\n"
    "  and the rest is part of the matmul before it.\n"
    "- **left**: 18 to 25 % of the measured step, whatever its size, and not told apart:\n"
    "  - every matmul runs at the rate of the best one. A sweep on this chip\n"
    "    (ai-dynamo/aiconfigurator, `gemm_perf.parquet`) has 168 TFLOP/s for 1024x4096x4096 and\n"
    "    263 for 8192x8192x8192, with kernels of later years; attention's own products, batches\n"
    "    with 96 to 160 inside, are not in it;\n"
    "  - collectives have the rate that NCCL reckons with on NVLink and InfiniBand, without the\n"
    "    latency of its protocols: what nccl-tests measured on 8 A100 stands in\n"
    "    [measured-collectives.md](measured-collectives.md). TP's are all exposed, here and\n"
    "    there;\n"
    "  - gradients are reduced while other layers' are computed, and messages between stages\n"
    "    travel while a rank computes on. Megatron's own DDP, which the rows with stages have,\n"
    "    reduces after all passes, and a rank may wait for its messages;\n"
    "  - the optimizer's copy of the weights in 32 bits, norms of gradients, checks for\n"
    "    overflow, data, logging: in the measured time, not in ours; nor does a clock slow down\n"
    "    under load here.\n"
    "\n";

static const char megatron_interleaving[] =
    "\n"
    "A pipeline of table 1 has 280 sequences of 530B, or 512 of 1T, as well: 54.08 and 102.63 s\n"
    "there, 10 and 9 % more than with the later software and no replicas. Here replicas cost\n"
    "next to nothing.\n"
    "\n"
    "## Interleaving\n"
    "\n"
    "The paper's figure 12 compares schedules for 174.6B parameters on 96 GPUs (TP 8, PP 12,\n"
    "microbatches of one sequence, two layers a chunk), by curves without numbers: interleaving\n"
    "wins most with small batches, the gap closes as the batch grows, and the abstract says 10\n"
    "% and more. Here:\n"
    "\n";

static const char megatron_tail[] =
    "\n"
    "```sh\n"
    "build/podsim pipeline scenarios/megatron/megatron-174.6b-a100-96.json \\\n"
    "    --schedules 1f1b,interleaved:4 --microbatches 12\n"
    "```\n"
    "\n"
    "The gain is the bubble's, of which interleaving leaves a quarter: messages between stages\n"
    "are a chip's eighth of the activations, as with the paper's scatter and gather, and hide\n"
    "behind compute.\n";

#endif
