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
    "one fp32 a row and head, and each residual sum once, since the next norm reads the same "
    "array.\n"
    "The gathered inputs of `tp` are not kept, since they can be gathered again\n"
    "([programs](program.md#what-the-backward-pass-computes-again)).\n"
    "\n"
    "## Parts of LLaMA 3 and DeepSeek on eight B200\n"
    "\n"
    "MooreThreads/SimuMax at 1b8ca90b, `docs/b200/b200_release_v1.2_summary.md`: the largest of "
    "all "
    "ranks'\n"
    "`torch.cuda.max_memory_allocated()`, with Megatron-LM 23e00ed0 and Transformer Engine 2.11, "
    "the\n"
    "distributed optimizer (`zero` 1), sequence parallelism, no recomputation, and all-to-all "
    "between\n"
    "ranks that share sequences. The steps have four microbatches; with 8 and 32 the source has "
    "the "
    "same figures.\n"
    "\n";

static const char memory_b200_parts[] = "\n"
                                        "The parts of the peak, in GiB:\n"
                                        "\n";

static const char memory_zero_bubble_head[] =
    "\n"
    "| difference | reason |\n"
    "|---|---|\n"
    "| logits in fp32 | These runs fuse the cross entropy in Transformer Engine's kernel, which "
    "works in the array of the logits. Megatron-LM's own cross entropy, which podsim counts, has a "
    "copy in fp32. With 131,072 tokens the row is 7.8 GiB, and podsim's sum is 5.8 to 7.6 GiB too "
    "large. |\n"
    "| 70B over PP 2 | The fullest rank is the first, which has no logits, and the sum is within "
    "0.3 %. |\n"
    "| DeepSeek | podsim's sum is 1.0 to 1.2 GiB too large; logits in fp32 are 1.6 and 2.0 GiB. "
    "podsim routes evenly. |\n"
    "\n"
    "## GPTs of Zero Bubble on A100\n"
    "\n"
    "Qi et al., *Zero Bubble Pipeline Parallelism* (arXiv 2401.10241), tables 3 to 5, printed as "
    "whole GB.\n"
    "The script of its first version (sail-sg/zero-bubble-pipeline-parallelism at 425b42e5,\n"
    "`examples/pretrain_zero_bubble.sh`) has no `--use-flash-attn` and leaves dropout at "
    "Megatron-LM's\n"
    "default of 0.1, so these steps run with `\"attention_kernel\": \"unfused_dropout\"`, without "
    "a distributed\n"
    "optimizer and without recomputation. Megatron-LM's `report_memory` divides by 1024·1024 and "
    "prints "
    "MB, so the\n"
    "figures may be GiB: the last column is the error if they are. The vocabulary is not stated; "
    "50,304 is\n"
    "assumed, tied. podsim simulates `zb-h1` for ZB-1p and `zb-h2` for ZB-2p; the paper's "
    "schedules "
    "come from a\n"
    "search within one and two times the memory of 1F1B.\n"
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
    "| 6.2B to 28.3B | Errors are -2.9 to +9.9 % as GB. As GiB they are -3.8 to +2.4 %, for ZB-2p "
    "-9.6 to -3.4 %. |\n"
    "| 1.5B | Errors are within 1 % as GB, for ZB-2p -5.1 %. |\n"
    "| ZB-2p | 1.5B measured 3.0 GB more, 6.2B 2.1 GB more. The search may hold 2p microbatches "
    "where `zb-h2` holds 2p - 1; one microbatch is 3.5 GB. |\n"
    "| fragmentation | It is neither counted nor measured: the figures are allocated bytes, not "
    "reserved bytes. |\n";

static const char memory_fits_head[] =
    "\n"
    "## Published runs that podsim refuses\n"
    "\n"
    "A published run fitted its memory. Of about 200 published steps on GPUs that state layout, "
    "batch and\n"
    "recomputation as far as a scenario needs them, five need more than 80 GB with podsim's "
    "default,\n"
    "`main_gradients` in fp32 and, in a pipeline, whole gradients. A GPU has more than the 80 GB "
    "of the data sheet:\n"
    "84.9 GB of an H100 are left by its driver ([profiles](machine.md#profiles)). As published, "
    "one run is refused.\n"
    "Nemotron-4 340B has two sources. Three kinds of runs are not among the 200:\n"
    "\n"
    "- runs on TPUs;\n"
    "- runs without microbatch, stages or recomputation in their tables (as the first row's);\n"
    "- runs that recompute some ops of a layer, or some layers.\n"
    "\n";

static const char memory_tail[] =
    "\n"
    "The shipped scenario of DeepSeek-V3 on 2,048 H800 fits too: 81.5 of 84.9 GB\n"
    "([parts](moe.md#deepseek-v3-compared-with-deepseeks-figures)). On 8,192 H100 LLaMA 3 405B "
    "does not, by 2.1 GB\n"
    "([rows](pipeline.md#llama-3-405b-compared-with-metas-figures)).\n"
    "\n"
    "## What is not counted\n"
    "\n"
    "- bytes that the allocator reserves but does not hand out, which `nvidia-smi` shows\n"
    "- buffers of NCCL's trees, NVLS and point-to-point channels; buffers that users register\n"
    "- FP8 copies of weights and scales of blocks; temporary arrays of single kernels\n"
    "- statistics of norms: one or two fp32 a row\n"
    "- recomputation of some ops or of some layers, as in FSDP's selective checkpointing\n";

#endif
