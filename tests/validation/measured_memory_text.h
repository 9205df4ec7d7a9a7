/*
 * measured_memory_text.h: the text of docs/measured-memory.md around its tables. Figures in it that
 * follow from the tables are left to printf().
 */
#ifndef TESTS_VALIDATION_MEASURED_MEMORY_TEXT_H
#define TESTS_VALIDATION_MEASURED_MEMORY_TEXT_H

static const char memory_head[] =
    "# Measured memory compared with podsim's\n"
    "\n"
    "This page lists what training frameworks hold in the memory of a GPU, with sources, and "
    "compares\n"
    "published peaks of memory with simulated ones.\n"
    "\n"
    "Every peak is simulated in the profile `measured`: once with `\"memory\": \"book\"`, and once "
    "with\n"
    "`\"memory\": \"framework\"`, which adds the rows of the next table "
    "([programs](program.md#memory)). No number\n"
    "is set from the measurements of this page. `tests/validation/test_measured_memory --markdown` "
    "writes\n"
    "the page.\n"
    "\n"
    "## What frameworks hold\n"
    "\n"
    "The rows are of Megatron-LM with Transformer Engine, or of PyTorch's FSDP2 where parameters "
    "are "
    "sharded\n"
    "(`fsdp`, `zero` 3). PyTorch's allocator does not count rows with an asterisk. Comparisons "
    "with\n"
    "`torch.cuda.max_memory_allocated()` therefore leave these rows out.\n"
    "\n";

static const char memory_b200_head[] =
    "\n"
    "The bytes of the book already contain the rest of what frameworks keep: the output of flash "
    "attention\n"
    "with one fp32 a row and head, and each residual sum once, since the next norm reads the same "
    "array.\n"
    "The gathered inputs of `tp` are not kept, since they can be gathered again\n"
    "([programs](program.md#what-the-backward-pass-computes-again)).\n"
    "\n"
    "## Parts of LLaMA 3 and DeepSeek on eight B200\n"
    "\n"
    "The measurements are from MooreThreads/SimuMax at 1b8ca90b,\n"
    "`docs/b200/b200_release_v1.2_summary.md`: the largest\n"
    "`torch.cuda.max_memory_allocated()` of all ranks. The runs used Megatron-LM 23e00ed0, "
    "Transformer "
    "Engine\n"
    "2.11, the distributed optimizer (`zero` 1), sequence parallelism, no recomputation, and "
    "all-to-all\n"
    "between ranks that share sequences. The simulated steps have four microbatches; the source "
    "has the "
    "same\n"
    "figures with 8 and 32.\n"
    "\n";

static const char memory_b200_parts[] = "\n"
                                        "The parts of the peak, in GiB:\n"
                                        "\n";

/* The bytes of a loss that is not fused; what DeepSeek's sums lack, from and to. */
static const char memory_b200_differences[] =
    "\n"
    "| difference | reason |\n"
    "|---|---|\n"
    "| logits in fp32 | These runs fuse the cross entropy in Transformer Engine's kernels "
    "(`loss_fusion` `te`), which work in the array of the logits. The cross entropy of Megatron-LM "
    "itself has a copy in fp32: with 131,072 tokens %.1f GiB more. |\n"
    "| DeepSeek | podsim's sum is %.1f to %.1f GiB too small. podsim routes evenly. |\n";

static const char memory_zero_bubble_head[] =
    "\n"
    "## GPTs of Zero Bubble on A100\n"
    "\n"
    "The measurements are from tables 3 to 5 of Qi et al., *Zero Bubble Pipeline Parallelism* "
    "(arXiv\n"
    "2401.10241), which have whole GB.\n"
    "\n"
    "| subject | setting of the simulated steps |\n"
    "|---|---|\n"
    "| attention | `\"attention_kernel\": \"unfused_dropout\"`: the script of the paper's first "
    "version (sail-sg/zero-bubble-pipeline-parallelism at 425b42e5, "
    "`examples/pretrain_zero_bubble.sh`) has no `--use-flash-attn` and leaves dropout at "
    "Megatron-LM's default of 0.1 |\n"
    "| optimizer, recomputation | no distributed optimizer, no recomputation |\n"
    "| vocabulary | 32,000, tied: the paper does not state it, but its sizes of 14.6 and 28.3 "
    "billion "
    "parameters leave 24,000 to 32,400 for these layers and widths, and its script has a "
    "SentencePiece tokenizer (`tokenizer.model`) |\n"
    "| schedule | `zb-h1` for ZB-1p and `zb-h2` for ZB-2p; the paper's schedules come from a "
    "search "
    "within one and two times the memory of 1F1B |\n"
    "| unit | Megatron-LM's `report_memory` divides by 1024·1024 and prints MB, so the paper's "
    "figures may be GiB: the last column has the error in that case |\n"
    "\n";

static const char memory_zero_bubble_parts[] = "\n"
                                               "The parts of the peak, in GB:\n"
                                               "\n";

/* With flash attention, from and to; the larger models as GB, as GiB without ZB-2p and ZB-2p as
 * GiB, each from and to; 1.5B without ZB-2p from and to, and ZB-2p; what ZB-2p lacks and bytes of a
 * microbatch, of 1.5B and of 6.2B. */
static const char memory_zero_bubble_differences[] =
    "\n"
    "| difference | reason |\n"
    "|---|---|\n"
    "| with `flash` | %.0f to %.0f %% too low: softmax, dropout and its mask have 5 bytes a score, "
    "more "
    "than half of the saved activations. The runs had no flash attention. |\n"
    "| 6.2B to 28.3B | Errors are %+.1f to %+.1f %% as GB. As GiB they are %+.1f to %+.1f %%, for "
    "ZB-2p %+.1f to %+.1f %%. |\n"
    "| 1.5B | Errors are %+.1f to %+.1f %% as GB, for ZB-2p %+.1f %%. |\n"
    "| ZB-2p | 1.5B measured %.1f GB more, 6.2B %.1f GB more. The search may hold 2p microbatches "
    "where `zb-h2` holds 2p - 1; one microbatch of 1.5B is %.1f GB, of 6.2B %.1f GB. |\n"
    "| fragmentation | It is neither counted nor measured: the figures are allocated bytes, not "
    "reserved bytes. |\n";

static const char memory_fits_head[] =
    "\n"
    "## Published runs that podsim refuses\n"
    "\n"
    "A published run fitted its memory, so podsim should not refuse it. About 200 published steps "
    "on "
    "GPUs state\n"
    "layout, batch and recomputation as far as a scenario needs them. The table has the steps "
    "that need\n"
    "more than 80 GB with podsim's defaults: `main_gradients` in fp32 and, in a pipeline, whole "
    "gradients.\n"
    "A GPU has more than the 80 GB of the data sheet: the driver leaves 84.9 GB of an H100\n"
    "([profiles](machine.md#profiles)). Where the table says `as assumed`, podsim refuses the "
    "run with its\n"
    "defaults; with the settings of the publication it refuses none. Nemotron-4 340B has two "
    "sources. Three kinds of runs are not among "
    "the 200:\n"
    "\n"
    "- runs on TPUs;\n"
    "- runs without microbatch, stages or recomputation in their tables (as the first row's);\n"
    "- runs that recompute some ops of a layer, or some layers.\n"
    "\n";

static const char memory_tail[] =
    "\n"
    "The shipped scenario of DeepSeek-V3 on 2,048 H800 fits too\n"
    "([parts](moe.md#deepseek-v3-compared-with-deepseeks-figures)). LLaMA 3 405B on 8,192 H100 "
    "needs too much\n"
    "([rows](pipeline.md#llama-3-405b-compared-with-metas-figures)).\n"
    "\n"
    "## What is not counted\n"
    "\n"
    "- bytes that the allocator reserves but does not hand out, which `nvidia-smi` shows\n"
    "- buffers of NCCL's trees, NVLS and point-to-point channels; buffers that users register\n"
    "- FP8 copies of weights and scales of blocks; temporary arrays of single kernels\n"
    "- statistics of norms: one or two fp32 a row\n"
    "- recomputation of some ops or of some layers, as in FSDP's selective checkpointing\n";

/* Rows of docs/limits.md. Errors of the book, from and to; of the framework up to 32,768 tokens, of
 * longer sequences and of GPTs, each from and to. */
static const char memory_summary[] =
    "With `\"memory\": \"book\"` podsim is %.0f to %.0f %%\n"
    "too low. The table has the errors with `\"memory\": \"framework\"`; no number was fitted to "
    "the peaks:\n"
    "\n"
    "| peaks | error |\n"
    "|---|---|\n"
    "| Megatron-LM on eight B200, up to 32,768 tokens, 16 layouts | %+.1f to %+.1f %% |\n"
    "| the same, 131,072 tokens | %+.1f to %+.1f %% |\n"
    "| Zero Bubble's GPTs on 8 to 32 A100 | %+.0f to %+.0f %% |\n";

#endif
