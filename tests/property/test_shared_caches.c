/*
 * Models whose layers share keys and values, drawn, each beside the same model whose layers do not:
 * a cache takes the room of the layers that hold one, and is read by all. Layers without keys and
 * values of their own have no weights for them, and write no rows. Counts are those of the program,
 * and however a step is played, instants are the same.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { COUNTED = 120, ALIKE = 40, LAYERS = 8, WIDTH = 1024, HEAD_WIDTH = 64 };

static const struct {
    const char *machine, *mesh;
    uint32_t tp, tp_d, pp;
    bool experts;
} places[] = {
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"tp\": [\"gpu\"]}", 8, 1, 1, false},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"dp\": [\"node\"], \"tp\": [\"gpu\"]}", 8, 1, 1,
     false},
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"pp\": [\"gpu:2\"], \"tp\": [\"gpu:4\"]}", 4, 1, 2,
     false},
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"ep\": [\"gpu:4\"], \"tp\": [\"gpu:2\"]}", 2, 1, 1,
     true},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"", "{\"dp\": [\"x\"], \"tp\": [\"y\"]}", 4, 1, 1,
     false},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"tp\": [\"x\"], \"tp_d\": [\"y\"]}", 4, 4, 1,
     false},
};

/* What was drawn. */
static uint32_t place, factor, kv_heads;
static uint64_t weight_bytes;
static uint32_t checked, compared; /* Steps; and of them those whose reads can be compared. */

/* Stages of pp have four layers each, and begin with one that has a cache. */
static void draw(uint64_t *state, char text[WALK_TEXT_BYTES])
{
    static const uint32_t factors[] = {2, 4, 3, 8}, heads[] = {2, 4, 8, 16};
    place = (uint32_t)(case_random(state) % (sizeof places / sizeof *places));
    factor = factors[case_random(state) % (places[place].pp > 1 ? 2 : 4)];
    kv_heads = heads[case_random(state) % 4];
    weight_bytes = 1 + case_random(state) % 2;
    char steps[128];
    uint32_t const batch = 4 + (uint32_t)(case_random(state) % 29);
    uint32_t const tokens = 64 + (uint32_t)(case_random(state) % 3000);
    switch (case_random(state) % 4) {
    case 0:
        case_text(steps, sizeof steps,
                  "\"prefill\", \"batch\": %u, \"prompt\": %u, \"chunk\": 1024", batch, tokens);
        break;
    case 1:
        case_text(steps, sizeof steps,
                  "\"mixed\", \"batch\": %u, \"context\": %u, \"prompts\": 2, \"prompt\": 96",
                  places[place].pp * batch, tokens);
        break;
    default:
        case_text(steps, sizeof steps, "\"decode\", \"batch\": %u, \"context\": %u", batch, tokens);
    }
    const char *const cache = CASE_PICK(state, "bf16", "fp8", "int4");
    case_text(text, WALK_TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {\"kind\": %s, "
              "\"formats\": {\"weights\": \"%s\", \"kv\": \"%s\"}, \"model\": {\"model_type\": "
              "\"hunyuan\", \"hidden_size\": %d, \"intermediate_size\": 2048, "
              "\"num_hidden_layers\": %d, \"num_attention_heads\": 16, \"num_key_value_heads\": "
              "%u, \"vocab_size\": 8192, \"num_experts\": %u, \"moe_topk\": 2, "
              "\"use_mixed_mlp_moe\": true, \"use_qk_norm\": true, \"use_cla\": true, "
              "\"cla_share_factor\": %u}}}",
              places[place].machine, places[place].mesh, steps, weight_bytes == 1 ? "int8" : "bf16",
              cache, WIDTH, LAYERS, kv_heads, places[place].experts ? 8 : 1, factor);
}

/* Layers that have a cache. */
static uint64_t holders(void)
{
    return (LAYERS + factor - 1) / factor;
}

/* Of W_K and W_V on one chip of a layer. Ranks beyond the heads hold one too. */
static uint64_t lacked_bytes(void)
{
    uint64_t const tp = places[place].tp, heads = kv_heads > tp ? kv_heads / tp : 1;
    return 2 * weight_bytes * (WIDTH / places[place].tp_d) * heads * HEAD_WIDTH;
}

/* Ops of all roles with a name that ends so; and what they read. */
struct ops {
    uint64_t count, read_bytes;
};

static struct ops ops_of(const struct play *play, const char *ending)
{
    struct walk_op walk = {.program = &play->program};
    struct ops ops = {0, 0};
    while (walk_next(&walk)) {
        size_t const length = strlen(walk.op->name), end = strlen(ending);
        if (walk.op->kind != PROGRAM_OP_COMPUTE || length < end) continue;
        if (strcmp(walk.op->name + length - end, ending) != 0) continue;
        ops.count += walk.times;
        ops.read_bytes += walk.times * play->program.works[walk.op->index].hbm_read_bytes;
    }
    return ops;
}

static uint64_t resident_bytes(const struct play *play, enum program_memory memory)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < play->program.role_count; r++)
        bytes += play->program.roles[r].resident_bytes[memory];
    return bytes;
}

static void pair_check(struct play *shared, const char *text)
{
    static const struct scenario_setting apart = {"/workload/model/use_cla=false"};
    static const struct play_options options = {.settings = &apart, .setting_count = 1};
    const struct workload_counts *counts = &shared->roofline.counts;
    uint64_t const lacked = (LAYERS - holders()) * lacked_bytes();
    uint64_t const norms = (LAYERS - holders()) * weight_bytes * HEAD_WIDTH; /* Of K. */
    double const ranks = places[place].pp; /* Counts are those of a mean one. */
    struct play plain;
    play_run(&plain, text, &options);
    struct ops const appends = ops_of(&plain, "append"), few = ops_of(shared, "append");
    uint64_t const passes = appends.count / LAYERS;
    uint64_t const cache = resident_bytes(shared, PROGRAM_MEMORY_CACHE);

    case_that(passes > 0 && few.count == passes * holders(), text);
    case_that(cache > 0, text);
    case_that(cache * LAYERS == resident_bytes(&plain, PROGRAM_MEMORY_CACHE) * holders(), text);
    case_that(fabs(ranks * counts->memory.cache_bytes - (double)cache) < 1, text);
    case_that(resident_bytes(&plain, PROGRAM_MEMORY_PARAMETERS) -
                      resident_bytes(shared, PROGRAM_MEMORY_PARAMETERS) ==
                  lacked + norms,
              text);
    double const parameters = plain.roofline.counts.memory.parameter_bytes;
    double const fewer = ranks * (parameters - counts->memory.parameter_bytes);
    case_that(fabs(fewer - (double)(lacked + norms)) < 1, text);

    struct ops const attention = ops_of(shared, "attention");
    struct ops const by_own = ops_of(&plain, "attention");
    double const kv = plain.roofline.counts.inference.kv_read_bytes;
    case_that(attention.count == passes * LAYERS, text);
    /* Where each layer has keys, prompts may stay on their ranks, and read what these computed. */
    bool const stay = by_own.count > attention.count;
    case_that(stay || attention.read_bytes == by_own.read_bytes, text);
    case_that(stay || fabs(counts->inference.kv_read_bytes - kv) <= 1e-9 * kv, text);
    compared += !stay;
    checked++;
    double const less =
        plain.roofline.counts.inference.weight_bytes - counts->inference.weight_bytes;
    double const wanted = (double)(lacked * passes) / ranks;
    case_that(fabs(less - wanted) <= 1e-9 * wanted, text);
    case_that(stay || shared->trace.step_ps < plain.trace.step_ps, text);
    play_close(&plain);
}

static void alike_check(struct play *folded, const char *text)
{
    walk_alike(folded, text, "reference");
}

static void room_is_of_layers_that_hold_and_reads_are_of_all(void **state)
{
    (void)state;
    walk_drawn_all(COUNTED, draw, NULL, pair_check);
    assert_true(compared > checked / 2);
}

static void folded_or_not_a_step_is_the_same(void **state)
{
    (void)state;
    walk_drawn_all(ALIKE, draw, NULL, alike_check);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_of_layers_that_hold_and_reads_are_of_all),
        cmocka_unit_test(folded_or_not_a_step_is_the_same),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
