#include "tests/validation/measured_memory_rows.h"

#include <stddef.h>

#define TP2 "\"tp\":[\"gpu:2\"],\"dp\":[\"gpu:4\"]"
#define TP4 "\"tp\":[\"gpu:4\"],\"dp\":[\"gpu:2\"]"
#define PP2 "\"pp\":[\"gpu:2\"],\"dp\":[\"gpu:4\"]"
#define EP4 "\"ep\":[\"gpu:4\"],\"pp\":[\"gpu:2\"]"
#define TP2_CP4 "\"tp\":[\"gpu:2\"],\"cp\":[\"gpu:4\"]"
#define TP8 "\"tp\":[\"gpu\"]"
#define EP8 "\"ep\":[\"gpu\"]"
#define CP8 "\"cp\":[\"gpu\"]"

const struct memory_row memory_b200[] = {
    {"70B, 12 layers, PP 2, DP 4", "llama-3-70b", PP2, 12, 0, 4, 4096, 4, "1f1b", NULL, 66.55},
    {"70B, 12 layers, TP 2, DP 4", "llama-3-70b", TP2, 12, 0, 4, 4096, 4, NULL, NULL, 60.68},
    {"70B, 12 layers, TP 4, DP 2", "llama-3-70b", TP4, 12, 0, 2, 4096, 4, NULL, NULL, 39.07},
    {"70B, 12 layers, TP 8", "llama-3-70b", TP8, 12, 0, 1, 4096, 4, NULL, NULL, 28.29},
    {"405B, 4 layers, PP 2, DP 4", "llama-3-405b", PP2, 4, 0, 4, 4096, 4, "1f1b", NULL, 87.08},
    {"405B, 4 layers, TP 2, DP 4", "llama-3-405b", TP2, 4, 0, 4, 4096, 4, NULL, NULL, 81.59},
    {"405B, 4 layers, TP 4, DP 2", "llama-3-405b", TP4, 4, 0, 2, 4096, 4, NULL, NULL, 52.89},
    {"405B, 4 layers, TP 8", "llama-3-405b", TP8, 4, 0, 1, 4096, 4, NULL, NULL, 38.57},
    {"V2, 4 layers, EP 8", "deepseek-v2", EP8, 4, 1, 8, 4096, 4, NULL, NULL, 45.63},
    {"V2, 4 layers, EP 4, PP 2", "deepseek-v2", EP4, 4, 1, 4, 4096, 4, "1f1b", NULL, 44.7},
    {"V3, 4 layers, EP 8", "deepseek-v3", EP8, 4, 1, 8, 4096, 4, NULL, NULL, 104.3},
    {"V3, 4 layers, EP 4, PP 2", "deepseek-v3", EP4, 4, 1, 4, 4096, 4, "1f1b", NULL, 114.0},
    {"70B, 12 layers, TP 2, CP 4, 32k", "llama-3-70b", TP2_CP4, 12, 0, 1, 32768, 4, NULL, NULL,
     68.43},
    {"70B, 12 layers, CP 8, 32k", "llama-3-70b", CP8, 12, 0, 1, 32768, 4, NULL, NULL, 104.51},
    {"405B, 4 layers, TP 2, CP 4, 32k", "llama-3-405b", TP2_CP4, 4, 0, 1, 32768, 4, NULL, NULL,
     87.03},
    {"405B, 4 layers, CP 8, 32k", "llama-3-405b", CP8, 4, 0, 1, 32768, 4, NULL, NULL, 139.22},
    {"70B, 12 layers, TP 2, CP 4, 128k", "llama-3-70b", TP2_CP4, 12, 0, 1, 131072, 4, NULL, NULL,
     112.67},
    {"70B, 12 layers, CP 8, 128k", "llama-3-70b", CP8, 12, 0, 1, 131072, 4, NULL, NULL, 147.99},
    {"405B, 4 layers, TP 2, CP 4, 128k", "llama-3-405b", TP2_CP4, 4, 0, 1, 131072, 4, NULL, NULL,
     118.13},
};
const uint32_t memory_b200_count = sizeof memory_b200 / sizeof *memory_b200;

#define P8 "\"pp\":[\"gpu\"]"
#define P16 "\"pp\":[\"node:2\",\"gpu:8\"]"
#define P32 "\"pp\":[\"node:4\",\"gpu:8\"]"
#define ROW(title, mesh, layers, batch, microbatches, schedule, layout, measured)                  \
    {                                                                                              \
        title, "megatron-1.7b", mesh, layers, 0, batch, 1024, microbatches, schedule, layout,      \
            measured                                                                               \
    }

const struct memory_row memory_zero_bubble[] = {
    ROW("1.5B, ZB-2p", P8, 22, 6, 24, "zb-h2", "Ett|(ttt|)*6ttL", 59),
    ROW("1.5B, ZB-1p", P8, 22, 6, 24, "zb-h1", "Ett|(ttt|)*6ttL", 32),
    ROW("1.5B, 1F1B", P8, 22, 6, 24, "1f1b", "Ett|(ttt|)*6ttL", 30),
    ROW("1.5B, 1F1B-I", P8, 22, 6, 24, "interleaved:3", "E|(t|)*22L", 40),
    ROW("6.2B, ZB-2p", P8, 30, 3, 24, "zb-h2", "Ettt|(tttt|)*6tttL", 70),
    ROW("6.2B, ZB-1p", P8, 30, 3, 24, "zb-h1", "Ettt|(tttt|)*6tttL", 42),
    ROW("6.2B, 1F1B", P8, 30, 3, 24, "1f1b", "Ettt|(tttt|)*6tttL", 39),
    ROW("6.2B, 1F1B-I", P8, 30, 3, 24, "interleaved:4", "E|(t|)*30L", 48),
    ROW("14.6B, ZB-2p", P16, 46, 1, 48, "zb-h2", "Ett|(ttt|)*14ttL", 51),
    ROW("14.6B, ZB-1p", P16, 46, 1, 48, "zb-h1", "Ett|(ttt|)*14ttL", 33),
    ROW("14.6B, 1F1B", P16, 46, 1, 48, "1f1b", "Ett|(ttt|)*14ttL", 32),
    ROW("14.6B, 1F1B-I", P16, 46, 1, 48, "interleaved:3", "E|(t|)*46L", 39),
    ROW("28.3B, ZB-2p", P32, 62, 1, 96, "zb-h2", "Et|(tt|)*30tL", 74),
    ROW("28.3B, ZB-1p", P32, 62, 1, 96, "zb-h1", "Et|(tt|)*30tL", 44),
    ROW("28.3B, 1F1B", P32, 62, 1, 96, "1f1b", "Et|(tt|)*30tL", 43),
    ROW("28.3B, 1F1B-I", P32, 62, 1, 96, "interleaved:2", "E|(t|)*62L", 58),
};
const uint32_t memory_zero_bubble_count = sizeof memory_zero_bubble / sizeof *memory_zero_bubble;

#define FORMATS(gradients, matmuls)                                                                \
    "\"formats\":{\"main_gradients\":\"" gradients "\",\"matmuls\":\"" matmuls "\"}"
#define SENT(gradients) "\"formats\":{\"gradients\":\"" gradients "\"}" /* FSDP */
#define BF16 FORMATS("fp32", "bf16"), FORMATS("bf16", "bf16")
#define FP8 FORMATS("fp32", "fp8"), FORMATS("bf16", "fp8")
#define H100(nodes) "\"chip\":\"h100-sxm\",\"nodes\":" #nodes

const struct memory_fit memory_fits[] = {
    {"LLaMA 3 405B, TP 8, PP 16, DP 128, 16,384 H100, no recomputation",
     "arXiv 2407.21783, 3.3 (its FSDP shards optimizer and gradients; gradients in fp32)",
     H100(2048),
     "\"tp\":[\"gpu\"],\"pp\":[\"node:16\"],\"dp\":[\"node:128\"],\"order\":[\"tp\",\"pp\",\"dp\"]",
     "\"model\":\"llama-3-405b\",\"batch_tokens\":16777216,\"sequence_length\":8192,"
     "\"accumulate\":16,\"schedule\":\"interleaved:8\",\"layout\":\"E|(t|)*126L\"",
     "\"zero\":1,\"formats\":{\"gradients\":\"fp32\"}",
     "\"zero\":2,\"formats\":{\"gradients\":\"fp32\"}", 0, 0, 0, 0, 0,
     "gradients sharded with `zero` 2 and not whole as with 1; gradients of two layers wait for "
     "their reduction"},
    {"LLaMA 3.1 405B, TP 8, CP 2, PP 9, DP 4, 576 H100",
     "NVIDIA/dgxc-benchmarking at 8f5cbb37 (bf16 gradient reduction, no recomputation)", H100(72),
     "\"tp\":[\"gpu\"],\"cp\":[\"node:2\"],\"dp\":[\"node:4\"],\"pp\":[\"node:9\"]",
     "\"model\":\"llama-3-405b\",\"batch_tokens\":2064384,\"sequence_length\":8192,"
     "\"accumulate\":63,\"zero\":1,\"activations\":\"tokens\",\"schedule\":\"interleaved:7\"",
     BF16, 0, 0, 0, 0, 0, "gradients in bf16"},
    {"GPT-3 20B, FP8, TP 2, DP 32, 64 H100",
     "NVIDIA/NeMo v2.0.0, docs/source/performance/performance_summary.md", H100(8),
     "\"tp\":[\"gpu:2\"],\"dp\":[\"gpu:4\",\"node\"]",
     "\"model\":\"megatron-1.7b\",\"batch_tokens\":524288,\"sequence_length\":2048,"
     "\"accumulate\":4,\"zero\":1,\"activations\":\"tokens\"",
     FP8, 44, 6144, 48, 48, 50304, "gradients in bf16"},
    {"Nemotron-4 340B, FP8, TP 8, PP 8, DP 2, 128 H100 (two sources)",
     "NVIDIA/dgxc-benchmarking at 8f5cbb37; NVIDIA/NeMo v2.0.0", H100(16),
     "\"tp\":[\"gpu\"],\"dp\":[\"node:2\"],\"pp\":[\"node:8\"]",
     "\"model\":\"megatron-1.7b\",\"batch_tokens\":131072,\"sequence_length\":4096,"
     "\"accumulate\":16,\"zero\":1,\"activations\":\"tokens\",\"schedule\":\"interleaved:12\"",
     FP8, 96, 18432, 96, 8, 256000,
     "NeMo keeps 2 bytes of a master weight, not 4: the other 16 bits are the bf16 weight "
     "(`store_param_remainders`). 5.8 GB less"},
    {"GPT 530B, FSDP 640, 640 A100, full recomputation", "arXiv 2104.04473, table 2",
     "\"chip\":\"a100-sxm\",\"nodes\":80", "\"fsdp\":[\"gpu\",\"node\"]",
     "\"model\":\"megatron-529.6b\",\"batch_tokens\":5242880,\"sequence_length\":2048,"
     "\"remat\":\"layer\",\"shard_kernels\":\"deepspeed\",\"gather\":\"tensor\"",
     SENT("fp32"), SENT("bf16"), 0, 0, 0, 0, 0,
     "DeepSpeed's ZeRO-3 gathers each parameter to where it lies (`shard_kernels` `deepspeed`, "
     "`gather` `tensor`). By FSDP2's rows, with blocks gathered whole and copied, the step would "
     "take 92.0 and 85.3 GB. The settings of the run are not stated"},
};
const uint32_t memory_fit_count = sizeof memory_fits / sizeof *memory_fits;
