/*
 * measured_memory_text.h: the text of docs/measured-memory.md around its tables.
 */
#ifndef TESTS_VALIDATION_MEASURED_MEMORY_TEXT_H
#define TESTS_VALIDATION_MEASURED_MEMORY_TEXT_H

static const char memory_head[] =
    "# Measured memory compared with podsim's\n"
    "\n"
    "`tests/validation/test_measured_memory --markdown` writes this page; a test fails when it is\n"
    "not up to date.\n"
    "\n"
    "Every peak is simulated on the machine in the profile `measured`: once with `\"memory\": "
    "\"book\"`,\n"
    "and once with `\"memory\": \"framework\"`, which adds the rows below "
    "([programs](program.md#memory)).\n"
    "No number is set from the measurements of this page.\n"
    "\n"
    "## What frameworks hold\n"
    "\n"
    "The rows are those of Megatron-LM with Transformer Engine; where parameters are sharded "
    "(`fsdp`,\n"
    "`zero` 3), those of PyTorch's FSDP2. PyTorch's allocator does not see rows with an asterisk, "
    "so\n"
    "they are left out of the comparisons with `torch.cuda.max_memory_allocated()`.\n"
    "\n";

static const char memory_b200_head[] =
    "\n"
    "The rest of what frameworks keep is in the book's bytes already: the output of flash "
    "attention with\n"
    "one fp32 a row and head, and residual sums once, since the norm behind a sum reads what the "
    "sum\n"
    "gives. What is free to compute again, the gathered inputs of `tp`, is not kept\n"
    "([programs](program.md#what-the-backward-pass-computes-again)).\n"
    "\n"
    "## Parts of LLaMA 3 and DeepSeek on eight B200\n"
    "\n"
    "MooreThreads/SimuMax at 1b8ca90b, `docs/b200/b200_release_v1.2_summary.md`: the most of any "
    "rank's\n"
    "`torch.cuda.max_memory_allocated()`, with Megatron-LM 23e00ed0 and Transformer Engine 2.11, "
    "the\n"
    "distributed optimizer (`zero` 1), sequence parallelism, no recomputation, and all-to-all "
    "between\n"
    "ranks that share sequences. Four microbatches; with 8 and 32 the source gives the same "
    "figures.\n"
    "\n";

static const char memory_b200_parts[] = "\n"
                                        "The parts of the peak, in GiB:\n"
                                        "\n";

static const char memory_zero_bubble_head[] =
    "\n"
    "| difference | reason |\n"
    "|---|---|\n"
    "| logits in fp32 | These runs fuse the cross entropy in Transformer Engine's kernel, which "
    "works in the logits' own array; Megatron-LM's own, which podsim counts, has a copy in fp32. "
    "With 131,072 tokens the row is 7.8 GiB, and 5.8 to 7.6 are too much. |\n"
    "| 70B over PP 2 | The first rank is the fullest: no logits there, and the sum is within 0.3 "
    "%. |\n"
    "| DeepSeek | Routing is even here. 1.0 to 1.2 GiB too much; logits in fp32 are 1.6 and 2.0. "
    "|\n"
    "\n"
    "## GPTs of Zero Bubble on A100\n"
    "\n"
    "Qi et al., *Zero Bubble Pipeline Parallelism* (arXiv 2401.10241), tables 3 to 5, printed as "
    "whole GB.\n"
    "The script of its first version (sail-sg/zero-bubble-pipeline-parallelism at 425b42e5,\n"
    "`examples/pretrain_zero_bubble.sh`) has no `--use-flash-attn` and leaves dropout at "
    "Megatron-LM's\n"
    "default of 0.1, so these steps run with `\"attention_kernel\": \"unfused_dropout\"`; neither "
    "a distributed\n"
    "optimizer nor recomputation. Megatron-LM's `report_memory` divides by 1024·1024 and prints "
    "MB, so the\n"
    "figures may be GiB: the last column is the error if they are. The vocabulary is not stated; "
    "50,304 is\n"
    "assumed, tied. ZB-1p and ZB-2p are `zb-h1` and `zb-h2` here; the paper's come from a search "
    "within one\n"
    "and two times the memory of 1F1B.\n"
    "\n";

static const char memory_zero_bubble_parts[] = "\n"
                                               "The parts of the peak, in GB:\n"
                                               "\n";

static const char memory_zero_bubble_differences[] =
    "\n"
    "| difference | reason |\n"
    "|---|---|\n"
    "| with `flash` | 36 to 68 % too low: softmax, dropout and its mask have 5 bytes a score, more "
    "than half of the saved activations. The runs had no flash attention. |\n"
    "| 6.2B to 28.3B | -2.9 to +9.9 % as GB. As GiB -3.8 to +2.4 %, ZB-2p -9.6 to -3.4 %. |\n"
    "| 1.5B | Within 1 % as GB, ZB-2p -5.1 %. |\n"
    "| ZB-2p | Of 1.5B and 6.2B, 3.0 and 2.1 GB more are measured. The search may hold 2p "
    "microbatches where `zb-h2` holds 2p - 1; one is 3.5 GB. |\n"
    "| fragmentation | Not counted, and not measured: the figures are what is allocated, not what "
    "is reserved. |\n";

static const char memory_fits_head[] =
    "\n"
    "## Published runs that podsim refuses\n"
    "\n"
    "A published run fitted its memory. Of about 200 published steps on GPUs that state layout, "
    "batch and\n"
    "recomputation as far as a scenario needs them, five need more than 80 GB with podsim's "
    "default,\n"
    "`main_gradients` in fp32. NeMo reduced in bf16; so stated, two of the five fit. Nemotron-4 "
    "340B has two sources.\n"
    "Not among the 200 are runs on TPUs, runs whose microbatch, stages or recomputation are not in "
    "their tables (the\n"
    "first row's), and runs that recompute some ops of a layer or some layers.\n"
    "\n";

static const char memory_tail[] =
    "\n"
    "80 GB is the data sheet's figure. `nvidia-smi` shows 81,559 MiB (85.5 GB) of an H100, so runs "
    "between both may\n"
    "fit and are refused: Nemotron-4 340B is 1.0 GB above.\n"
    "\n"
    "## What is not counted\n"
    "\n"
    "- what the allocator reserves and does not hand out, which `nvidia-smi` shows\n"
    "- NCCL's trees, NVLS and point-to-point channels; what users register\n"
    "- FP8 copies of weights and scales of blocks; temporary arrays of single kernels\n"
    "- statistics of norms: one or two fp32 a row\n"
    "- recomputation of some ops or of some layers, as FSDP's selective checkpointing chooses "
    "them\n";

#endif
