/*
 * HBM and the VPU never do more than their rates: no queue is busy for longer than the step, and no
 * step is below its roofline. Drawn are small steps that HBM bounds, on chips of every kind and
 * with overridden ones among them; the same on chips with slow vector units; and steps on pairs of
 * GPUs whose links ask for nearly all that HBM has. The environment variable PODSIM_TEST_HBM says
 * how many are drawn (5000 where there is time), from one seed that is printed (or given as the
 * first argument).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum {
    STEPS = 2000,
    CHIP_BYTES = 8192,
    TEXT_BYTES = CHIP_BYTES + 2048,
    PART_BYTES = 400,
    ALIKE = 40,
    OVERRIDES = 5,
    DENSE = 6
};

static bool slow_vectors;
static bool nearly_full; /* Two GPUs share sequences, and links leave HBM little time. */

#define PICK(...) CASE_PICK(state, __VA_ARGS__)

/* Where chips and links may be overridden, and how meshes lie. */
struct kind {
    const char *machine;
    const char *overrides[OVERRIDES];
    const char *dense[DENSE]; /* Meshes. */
    const char *experts[2];
};

static const struct kind kinds[] = {
    {"\"gpus\":2",
     {"", "{\"at\":[0],\"hbm\":0.5}", "{\"at\":[1],\"hbm\":0.1}", "{\"at\":[\"*\"],\"hbm\":0.3}",
      "{\"at\":[0],\"hbm\":3,\"math\":0.5}"},
     {"\"dp\":[\"gpu\"]", "\"fsdp\":[\"gpu\"]", "\"tp\":[\"gpu\"]", "\"pp\":[\"gpu\"]",
      "\"cp\":[\"gpu\"]", "\"cp\":[\"gpu\"]"},
     {"\"ep\":[\"gpu\"]", "\"dp\":[\"gpu\"]"}},
    {"\"gpus\":8",
     {"", "{\"at\":[3],\"hbm\":0.7}", "{\"at\":[5],\"hbm\":0.05}", "{\"at\":[\"*\"],\"hbm\":0.15}",
      "{\"at\":[\"*\"],\"math\":4},{\"at\":[7],\"hbm\":0.9}"},
     {"\"fsdp\":[\"gpu\"]", "\"dp\":[\"gpu:2\"],\"tp\":[\"gpu:4\"]",
      "\"fsdp\":[\"gpu:4\"],\"tp\":[\"gpu:2\"]", "\"pp\":[\"gpu:2\"],\"fsdp\":[\"gpu:4\"]",
      "\"cp\":[\"gpu\"]", "\"fsdp\":[\"gpu:4\"],\"cp\":[\"gpu:2\"]"},
     {"\"ep\":[\"gpu\"]", "\"ep\":[\"gpu:4\"],\"dp\":[\"gpu:2\"]"}},
    {"\"nodes\":2,\"gpus\":4",
     {"", "{\"at\":[0,1],\"hbm\":0.4}", "{\"at\":[3,\"*\"],\"hbm\":0.2}",
      "{\"at\":[\"*\",0],\"hbm\":0.6}", "{\"at\":[\"*\",\"*\"],\"hbm\":0.08}"},
     {"\"fsdp\":[\"gpu\",\"node\"]", "\"dp\":[\"node\"],\"tp\":[\"gpu\"]",
      "\"dp\":[\"gpu\",\"node\"]", "\"fsdp\":[\"gpu\"],\"pp\":[\"node\"]",
      "\"cp\":[\"gpu\"],\"dp\":[\"node\"]", "\"tp\":[\"gpu\"],\"cp\":[\"node\"]"},
     {"\"ep\":[\"gpu\"],\"dp\":[\"node\"]", "\"ep\":[\"gpu\"],\"fsdp\":[\"node\"]"}},
};

static const struct kind grids[] = {
    {"\"shape\":\"2x2\",\"unrealisable\":true",
     {"", "{\"at\":[0,1],\"hbm\":0.5}", "{\"at\":[\"*\",1],\"hbm\":0.3}",
      "{\"at\":[\"*\",\"*\"],\"hbm\":0.2}", "{\"at\":[1,1],\"hbm\":0.05,\"math\":2}"},
     {"\"dp\":[\"x\",\"y\"]", "\"fsdp\":[\"x\",\"y\"]", "\"dp\":[\"x\"],\"tp\":[\"y\"]",
      "\"tp\":[\"x\"],\"fsdp\":[\"y\"]", "\"cp\":[\"x\",\"y\"]", "\"cp\":[\"x\"],\"dp\":[\"y\"]"},
     {"\"ep\":[\"x\"],\"dp\":[\"y\"]", "\"ep\":[\"x\",\"y\"]"}},
    {"\"shape\":\"4x2\",\"unrealisable\":true",
     {"", "{\"at\":[2,1],\"hbm\":0.6}", "{\"at\":[1,\"*\"],\"hbm\":0.3}",
      "{\"at\":[\"*\",\"*\"],\"hbm\":0.25}", "{\"at\":[0,0],\"hbm\":1.7,\"math\":0.3}"},
     {"\"dp\":[\"x\",\"y\"]", "\"fsdp\":[\"x\",\"y\"]", "\"fsdp\":[\"x\"],\"tp\":[\"y\"]",
      "\"fsdp\":[\"x:2\",\"y\"],\"tp\":[\"x:2\"]", "\"cp\":[\"y\"],\"fsdp\":[\"x\"]",
      "\"cp\":[\"x:2\",\"y\"],\"tp\":[\"x:2\"]"},
     {"\"ep\":[\"x\"],\"dp\":[\"y\"]", "\"ep\":[\"x\"],\"fsdp\":[\"y\"]"}},
    {"\"shape\":\"4x4\",\"unrealisable\":true,\"wrap\":{\"x\":true}",
     {"", "{\"at\":[2,1],\"hbm\":0.6}", "{\"at\":[1,\"*\"],\"hbm\":0.3}",
      "{\"at\":[\"*\",\"*\"],\"hbm\":0.25}", "{\"at\":[0,0],\"hbm\":1.7,\"math\":0.3}"},
     {"\"dp\":[\"x\"],\"fsdp\":[\"y\"]", "\"fsdp\":[\"x\",\"y\"]",
      "\"fsdp\":[\"x\"],\"tp\":[\"y\"]", "\"tp\":[\"x\"],\"dp\":[\"y\"]",
      "\"cp\":[\"x\"],\"fsdp\":[\"y\"]", "\"cp\":[\"x\"],\"tp\":[\"y\"]"},
     {"\"ep\":[\"x\"],\"dp\":[\"y\"]", "\"ep\":[\"x\",\"y:2\"],\"dp\":[\"y:2\"]"}},
};

/* A catalogued chip as an object of the scenario's own, with another rate of its vector units. */
static void slow_chip(const char *name, const char *rate, char text[CHIP_BYTES])
{
    static const char key[] = "\"vector_rate\": {\"value\": \"";
    char path[PART_BYTES], all[CHIP_BYTES];
    (void)snprintf(path, sizeof path, "topology/chips/%s.json", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t const size = fread(all, 1, sizeof all - 1, file);
    (void)fclose(file);
    assert_in_range(size, 1, sizeof all - 2);
    all[size] = '\0';
    char *value = strstr(all, key);
    assert_non_null(value);
    value += strlen(key);
    int const length =
        snprintf(text, CHIP_BYTES, "%.*s%s%s", (int)(value - all), all, rate, strchr(value, '"'));
    assert_in_range(length, 1, CHIP_BYTES - 1);
}

/* Of HBM's rate, so much that reads and writes at the full rate of the links hardly fit. */
static const struct {
    const char *chip, *near;
} gpus[] = {
    {"a100-sxm", "{\"at\":[\"*\"],\"hbm\":0.31}"},
    {"h100-sxm", "{\"at\":[\"*\"],\"hbm\":0.28}"},
    {"h800-sxm", "{\"at\":[\"*\"],\"hbm\":0.13}"},
    {"b200", "{\"at\":[\"*\"],\"hbm\":0.24}"},
};

static void machine_random(uint64_t *state, bool gpu, const struct kind *kind, char *text)
{
    uint64_t const drawn = case_random(state) % (sizeof gpus / sizeof *gpus);
    const char *chip = gpu ? gpus[drawn].chip : PICK("tpu-v5e", "tpu-v6e", "tpu-v3");
    const char *overrides = kind->overrides[case_random(state) % OVERRIDES];
    if (nearly_full) overrides = gpus[drawn].near;
    const char *profile = PICK("ideal", "ideal", "measured");
    const char *rate = slow_vectors ? PICK("1GFLOP/s", "5GFLOP/s", "20GFLOP/s", "100GFLOP/s",
                                           "400GFLOP/s", "2TFLOP/s")
                                    : NULL;
    char own[CHIP_BYTES];
    (void)snprintf(own, sizeof own, "\"%s\"", chip);
    if (rate != NULL) slow_chip(chip, rate, own);
    int const length =
        snprintf(text, CHIP_BYTES + PART_BYTES, "%s,\"profile\":\"%s\"%s%s%s,\"chip\":%s",
                 kind->machine, profile, overrides[0] != '\0' ? ",\"chips\":[" : "", overrides,
                 overrides[0] != '\0' ? "]" : "", own);
    assert_in_range(length, 1, CHIP_BYTES + PART_BYTES - 1);
}

/* `split`: sequences lie on several chips, and matrices are so large that HBM has no time left. */
static void model_random(uint64_t *state, bool experts, bool mlp, bool split, char text[PART_BYTES])
{
    unsigned const d = 256u << case_random(state) % 4, f = 512u << case_random(state) % 4;
    unsigned const layers = 2 + 2 * (unsigned)(case_random(state) % 2);
    if (mlp)
        (void)snprintf(text, PART_BYTES,
                       "{\"kind\":\"mlp\",\"D\":%u,\"F\":%u,\"layers\":%u,\"matrices\":%u}", d, f,
                       layers, 2 + (unsigned)(case_random(state) % 2));
    else if (split)
        (void)snprintf(text, PART_BYTES,
                       "{\"model_type\":\"llama\",\"hidden_size\":%u,\"intermediate_size\":%u,"
                       "\"num_hidden_layers\":%u,\"num_attention_heads\":16,"
                       "\"num_key_value_heads\":8,\"vocab_size\":8192,"
                       "\"tie_word_embeddings\":false}",
                       2 * d, 2 * d + f, layers);
    else
        (void)snprintf(text, PART_BYTES, "\"tests/property/%s.json\"",
                       experts ? "experts" : "small");
}

static void workload_random(uint64_t *state, bool experts, const char *mesh, char *text)
{
    bool const staged = strstr(mesh, "pp") != NULL, split = strstr(mesh, "cp") != NULL;
    bool const mlp = !experts && !staged && !split && case_random(state) % 2 == 0;
    unsigned const sequence = 16u << case_random(state) % 4;
    char model[PART_BYTES];
    model_random(state, experts, mlp, split, model);
    const char *remat = PICK("none", "norms", "block", "big_matmuls");
    const char *gather = PICK("block", "tensor", "layer");
    const char *optimizer = PICK("fp32", "bf16");
    const char *kernel = mlp || split ? "flash" : PICK("flash", "unfused", "unfused_dropout");
    const char *offload = staged ? "none" : PICK("none", "none", "optimizer");
    const char *order = PICK("dw_first", "dx_first");
    unsigned const accumulate = staged ? 2 : 1 + (unsigned)(case_random(state) % 2);
    unsigned const tokens = sequence * (split ? 8u : 32u)
                            << case_random(state) % 3; /* Ranks, two microbatches. */
    const char *context = PICK("ring", "all_gather", "ulysses");
    char length[PART_BYTES / 8] = "", way[PART_BYTES / 8] = "";
    if (!mlp) (void)snprintf(length, sizeof length, ",\"sequence_length\":%u", sequence);
    if (split) (void)snprintf(way, sizeof way, ",\"context\":\"%s\"", context);
    (void)snprintf(text, 3 * PART_BYTES,
                   "\"model\":%s,\"batch_tokens\":%u%s%s,\"remat\":\"%s\",\"gather\":\"%s\","
                   "\"formats\":{\"optimizer\":\"%s\"},\"attention_kernel\":\"%s\","
                   "\"offload\":\"%s\",\"backward_order\":\"%s\",\"accumulate\":%u",
                   model, tokens, length, way, remat, gather, optimizer, kernel, offload, order,
                   accumulate);
}

static void scenario_random(uint64_t *state, char text[TEXT_BYTES])
{
    bool const gpu = nearly_full || case_random(state) % 2 == 0;
    bool const experts = !nearly_full && case_random(state) % 4 == 0;
    const struct kind *kind = gpu ? &kinds[case_random(state) % 3] : &grids[case_random(state) % 3];
    const char *mesh =
        experts ? kind->experts[case_random(state) % 2] : kind->dense[case_random(state) % DENSE];
    if (nearly_full) {
        kind = &kinds[0];
        mesh = "\"cp\":[\"gpu\"]";
    }
    char machine[CHIP_BYTES + PART_BYTES], workload[3 * PART_BYTES];
    machine_random(state, gpu, kind, machine);
    workload_random(state, experts, mesh, workload);
    unsigned const prefetch = (unsigned)(case_random(state) % 3);
    const char *chunks = PICK("true", "false");
    const char *arbitration = PICK("fair", "priority", "fifo");
    case_text(text, TEXT_BYTES,
              "{\"podsim\":1,\"title\":\"drawn\",\"mesh\":{%s},\"workload\":"
              "{\"kind\":\"train_step\",%s,\"allow_oversubscription\":true},"
              "\"run\":{\"prefetch_layers\":%u,\"collective_matmul\":%s,\"arbitration\":\"%s\"},"
              "\"machine\":{%s}}",
              mesh, workload, prefetch, chunks, arbitration, machine);
}

static void check_busy(const struct play *play, const char *text)
{
    const struct trace *trace = &play->trace;
    static const char *const names[] = {"mxu", "vpu", "hbm", "vmem"};
    for (uint32_t q = 0; q < TRACE_QUEUE_COUNT; q++)
        if (trace->queue_busy_ps[q] > trace->step_ps)
            fail_msg("%s is busy %" PRId64 " ps of %" PRId64 ": %s", names[q],
                     trace->queue_busy_ps[q], trace->step_ps, text);
    double const step_s = units_seconds(trace->step_ps), rounding = 1 + 1e-9;
    if (step_s * rounding < play->roofline.lower_s)
        fail_msg("%.12g s is below the roofline's %.12g s (%s): %s", step_s, play->roofline.lower_s,
                 play->roofline.bound.by, text);
}

static void queue_never_does_more_than_its_rate(const char *queue)
{
    const char *const asked = getenv("PODSIM_TEST_HBM");
    uint32_t steps = asked == NULL ? STEPS : (uint32_t)strtoul(asked, NULL, 10);
    if (nearly_full) steps /= 4;
    uint32_t walked = 0, played = 0, tried = 0, bound = 0;
    for (uint32_t i = 0; i < steps; i++) {
        if (sampling_skips(&walked)) continue;
        uint64_t state = walk_draw(i);
        char text[TEXT_BYTES];
        struct play play;
        struct error error = {.status = STATUS_OK};
        scenario_random(&state, text);
        tried++;
        if (play_try(&play, text, NULL, &error) == STATUS_OK) {
            played++;
            bound += strcmp(play.roofline.bound.by, queue) == 0;
            check_busy(&play, text);
            if (i % ALIKE == 0) walk_alike(&play, text, "reference");
        } else if (error.status != STATUS_INVALID && error.status != STATUS_UNSUPPORTED) {
            fail_msg("%s: %s", error.message, text);
        }
        play_close(&play);
    }
    print_message("    %u of %u drawn steps played, of which %s bounds %u\n", played, tried, queue,
                  bound);
    assert_true(played > tried * 9 / 10 && bound > played / 2);
}

static void hbm_never_does_more_than_its_rate(void **state)
{
    (void)state;
    queue_never_does_more_than_its_rate("hbm");
}

static void slow_vector_units_never_do_more_than_their_rate(void **state)
{
    (void)state;
    slow_vectors = true;
    queue_never_does_more_than_its_rate("vpu");
    slow_vectors = false;
}

static void passages_never_take_more_than_breaks_have(void **state)
{
    (void)state;
    nearly_full = true;
    queue_never_does_more_than_its_rate("hbm");
    nearly_full = false;
}

int main(int argc, char **argv)
{
    walk_seed(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hbm_never_does_more_than_its_rate),
        cmocka_unit_test(passages_never_take_more_than_breaks_have),
        cmocka_unit_test(slow_vector_units_never_do_more_than_their_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
