#include "tools/podsim/bench/bench_cases.h"

#include <stddef.h>

#include "sim/base/strbuf.h"
#include "tools/podsim/common/scenarios.h"

#define HEADLINE "llama3-70b-fsdp-tp-v5p-16x16x16"
#define INT8_DECODE "llama3-70b-decode-int8-v5e-4x4"

/* The bare MLP on a slice: dimensions that 8, 16, 20 and 28 chips can share, so that the same
 * program runs on 512, 4,096 and 8,960 chips with 1,024 tokens on each. */
static void write_slice(struct strbuf *text)
{
    strbuf_add(text, "{\"podsim\": 1, \"title\": \"slice\","
                     " \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"8x8x8\"},"
                     " \"mesh\": {\"fsdp\": [\"x\"], \"tp\": [\"y\"], \"dp\": [\"z\"]},"
                     " \"workload\": {\"kind\": \"train_step\", \"batch_tokens\": 524288,"
                     "   \"sequence_length\": 1024, \"allow_oversubscription\": true,"
                     "   \"model\": {\"kind\": \"mlp\", \"D\": 10240, \"F\": 40960, \"layers\": 16,"
                     "     \"matrices\": 2}}}");
}

/* LLaMA-3-70B with fewer layers. */
void bench_case_model(const struct bench_case *step, struct strbuf *text)
{
    strbuf_add(text,
               "{\"model_type\": \"llama\", \"hidden_size\": 8192, \"intermediate_size\": 28672,"
               " \"num_hidden_layers\": %u, \"num_attention_heads\": 64,"
               " \"num_key_value_heads\": 8, \"vocab_size\": 128256,"
               " \"tie_word_embeddings\": false}",
               step->layers);
}

/* The headline up to its model. `overrides`: members of the machine, a comma before each. */
static void write_layers(struct strbuf *text, const char *overrides)
{
    strbuf_add(text,
               "{\"podsim\": 1, \"title\": \"8 layers\","
               " \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"16x16x16\"%s},"
               " \"mesh\": {\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]},"
               " \"run\": {\"collective_matmul\": true},"
               " \"workload\": {\"kind\": \"train_step\", \"batch_tokens\": 4194304,"
               "   \"sequence_length\": 4096",
               overrides);
}

/* 2,048 nodes. Of an algorithm with a message from each node to each other one the events grow with
 * the square of the nodes: `bruck` has log2 of them a node. */
static void write_nodes(struct strbuf *text)
{
    strbuf_add(text, "{\"podsim\": 1, \"title\": \"2,048 nodes\","
                     " \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2048},"
                     " \"mesh\": {\"fsdp\": [\"node\"], \"tp\": [\"gpu\"]},"
                     " \"run\": {\"algorithm\": \"bruck\"},"
                     " \"workload\": {\"kind\": \"train_step\", \"batch_tokens\": 8388608,"
                     "   \"sequence_length\": 4096");
}

static void write_alike(struct strbuf *text)
{
    write_layers(text, "");
}

static void write_slow_chip(struct strbuf *text)
{
    write_layers(text, ", \"chips\": [{\"at\": [3, 5, 7], \"math\": 0.9}]");
}

static void write_slow_link(struct strbuf *text)
{
    write_layers(text, ", \"links\": [{\"from\": [3, 5, 7], \"to\": [4, 5, 7],"
                       " \"rate\": \"45GB/s\"}]");
}

/* Each chip has 0.8976 to 0.9999 of its rate, scattered by the golden section of 2^32. */
static void write_overridden(struct strbuf *text)
{
    struct strbuf chips = {0};
    strbuf_add(&chips, ", \"chips\": [");
    for (uint32_t x = 0; x < 16; x++)
        for (uint32_t y = 0; y < 16; y++)
            for (uint32_t z = 0; z < 16; z++) {
                uint32_t const scattered = (x * 256 + y * 16 + z) * UINT32_C(2654435769);
                strbuf_add(&chips, "%s{\"at\": [%u, %u, %u], \"math\": 0.%04u}",
                           x + y + z == 0 ? "" : ", ", x, y, z, 8976 + (scattered >> 22));
            }
    strbuf_add(&chips, "]");
    text->failed |= chips.failed;
    if (!chips.failed) write_layers(text, chips.bytes);
    strbuf_free(&chips);
}

enum { FOLDED, FULL, EVERY_LAYER };

#define NONE                                                                                       \
    {                                                                                              \
        NULL                                                                                       \
    }
#define FIFO                                                                                       \
    {                                                                                              \
        "/run/arbitration=fifo", NULL                                                              \
    }
#define FIFO_LAYER                                                                                 \
    {                                                                                              \
        "/run/arbitration=fifo", "/workload/remat=layer", NULL                                     \
    }

#define FIFO_ONCE                                                                                  \
    {                                                                                              \
        "/run/arbitration=fifo", "/run/steps=1", NULL                                              \
    }

#define STEP(its_name, its_scenario, its_write, its_layers, how, is_quick, its_early, ...)         \
    {                                                                                              \
        .name = (its_name), .scenario = (its_scenario), .write = (its_write),                      \
        .layers = (its_layers), .early = its_early, .full = (how) != FOLDED,                       \
        .every_layer = (how) == EVERY_LAYER, .quick = (is_quick), .settings = {                    \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

const struct bench_case bench_cases[] = {
    STEP("headline folded", HEADLINE, NULL, 0, FOLDED, true, FIFO_LAYER, NULL),
    STEP("decode, v5e 4x4", INT8_DECODE, NULL, 0, FOLDED, true, NONE, NULL),
    STEP("decode, v5e 4x4, trees", INT8_DECODE, NULL, 0, FOLDED, true, NONE,
         "/workload/activations=replicated"),
    STEP("decode, 8 H100", "llama3-70b-decode-h100-8", NULL, 0, FOLDED, true, NONE, NULL),
    STEP("decode, 320 H800", "deepseek-v3-decode-h800-320", NULL, 0, FOLDED, true, NONE, NULL),
    STEP("headline --full", HEADLINE, NULL, 0, FULL, false, FIFO_LAYER, NULL),
    STEP("headline, every layer", HEADLINE, NULL, 0, EVERY_LAYER, false, FIFO_LAYER, NULL),
    STEP("DeepSeek-V3, 2,048 H800", "deepseek-v3-h800-2048", NULL, 0, FOLDED, false, FIFO_ONCE,
         NULL),
    STEP("8 layers --full", NULL, write_alike, 8, FULL, false, FIFO, NULL),
    STEP("8 layers, slow chip", NULL, write_slow_chip, 8, FULL, false, FIFO, NULL),
    STEP("8 layers, slow link", NULL, write_slow_link, 8, FULL, false, FIFO, NULL),
    STEP("8 layers, all overridden", NULL, write_overridden, 8, FULL, false, FIFO, NULL),
    STEP("2 layers, 16,384 H100", NULL, write_nodes, 2, FULL, false, FIFO, NULL),
    STEP("MLP --full, 512 chips", NULL, write_slice, 0, FULL, true, FIFO, NULL),
    STEP("MLP --full, 4,096 chips", NULL, write_slice, 0, FULL, false, FIFO,
         "/machine/shape=16x16x16", "/workload/batch_tokens=4194304"),
    STEP("MLP --full, 8,960 chips", NULL, write_slice, 0, FULL, false, FIFO,
         "/machine/shape=16x20x28", "/workload/batch_tokens=9175040"),
};
const uint32_t bench_case_count = sizeof bench_cases / sizeof *bench_cases;

enum status bench_case_text(const struct bench_case *step, const char *model, struct strbuf *text,
                            struct error *reterr)
{
    if (step->scenario == NULL) {
        step->write(text);
        if (step->layers == 0) return STATUS_OK;
        strbuf_add(text, ", \"model\": ");
        if (model != NULL)
            strbuf_add(text, "\"%s\"", model);
        else
            bench_case_model(step, text);
        strbuf_add(text, "}}");
        return STATUS_OK;
    }
    const struct embed_file *const file =
        embed_find(embed_scenarios, embed_scenarios_count, step->scenario);
    if (file == NULL) return error_set(reterr, STATUS_NOT_FOUND, step->scenario, "is not built in");
    strbuf_add_bytes(text, file->bytes, file->size_bytes);
    return STATUS_OK;
}
