/*
 * What must hold of any training step: small scenarios at random, all from one seed that is
 * printed (or given as the first argument).
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

enum { MODEL_TEXT_BYTES = 128, SCENARIOS = 120 };

struct slice {
    const char *machine;
    uint32_t axes;
};

static const struct slice slices[] = {
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", 3},
    {"\"chip\": \"tpu-v4p\", \"shape\": \"2x2x4\"", 3},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", 2},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x8\"", 2},
    {"\"chip\": \"tpu-v6e\", \"shape\": \"2x4\"", 2},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"8\", \"unrealisable\": true, \"wrap\": {\"x\": true}", 1},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x8\", \"unrealisable\": true, "
     "\"wrap\": {\"x\": true, \"y\": true}",
     2},
};

static const char *const meshes_1[] = {
    "{\"fsdp\": [\"x\"]}",
    "{\"tp\": [\"x\"]}",
    "{\"dp\": [\"x\"]}",
    "{\"fsdp\": [\"x:4\"], \"tp\": [\"x:2\"], \"order\": [\"fsdp\", \"tp\"]}",
};
static const char *const meshes_2[] = {
    "{\"fsdp\": [\"x\", \"y\"]}", "{\"fsdp\": [\"x\"], \"tp\": [\"y\"]}",
    "{\"dp\": [\"x\"], \"fsdp\": [\"y\"]}", "{\"dp\": [\"x\"], \"tp\": [\"y\"]}",
    "{\"tp\": [\"x\", \"y\"]}"};
static const char *const meshes_3[] = {"{\"fsdp\": [\"x\", \"y\", \"z\"]}",
                                       "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}",
                                       "{\"dp\": [\"x\"], \"fsdp\": [\"y\"], \"tp\": [\"z\"]}",
                                       "{\"tp\": [\"y\", \"z\"], \"dp\": [\"x\"]}"};

static const char *mesh_of(uint64_t *state, uint32_t axes)
{
    if (axes == 1) return case_pick(state, meshes_1, 4);
    if (axes == 2) return case_pick(state, meshes_2, 5);
    return case_pick(state, meshes_3, 4);
}

/* Heads, widths, vocabulary and shards that no mesh divides, and sequences that ranks share. */
static unsigned model_padded(uint64_t *state, bool llama, char model[MODEL_TEXT_BYTES])
{
    if (llama) {
        (void)snprintf(model, MODEL_TEXT_BYTES,
                       "\"tests/property/padding.json\", \"sequence_length\": %u",
                       512u << case_random(state) % 2);
        return 49152;
    }
    unsigned const d = 32 * (17 + 2 * (unsigned)(case_random(state) % 16));
    unsigned const f = 1001 + 2 * (unsigned)(case_random(state) % 1000);
    (void)snprintf(model, MODEL_TEXT_BYTES,
                   "{\"kind\": \"mlp\", \"D\": %u, \"F\": %u, \"layers\": 3, \"matrices\": 3}", d,
                   f);
    return 4096u << case_random(state) % 8;
}

/* Dimensions that every mesh above divides, but in a quarter of the draws; returns the batch. */
static unsigned model_random(uint64_t *state, char model[MODEL_TEXT_BYTES])
{
    uint64_t const kind = case_random(state) % 8;
    if (kind == 1 || kind == 2) return model_padded(state, kind == 1, model);
    if (kind == 0) {
        unsigned const length = 1024u << case_random(state) % 2;
        (void)snprintf(model, MODEL_TEXT_BYTES, "\"llama-3-8b\", \"sequence_length\": %u", length);
        return 65536u << case_random(state) % 2;
    }
    unsigned const d = 512u << case_random(state) % 4;
    unsigned const f = 1024u << case_random(state) % 4;
    unsigned const layers = 1 + (unsigned)(case_random(state) % 4);
    unsigned const matrices = 2 + (unsigned)(case_random(state) % 2);
    (void)snprintf(model, MODEL_TEXT_BYTES,
                   "{\"kind\": \"mlp\", \"D\": %u, \"F\": %u, \"layers\": %u, \"matrices\": %u}", d,
                   f, layers, matrices);
    return 4096u << case_random(state) % 8;
}

static void scenario_random(uint64_t *state, char text[WALK_TEXT_BYTES])
{
    static const char *const remats[] = {"\"none\"",
                                         "\"norms\"",
                                         "\"big_matmuls\"",
                                         "\"block\"",
                                         "\"layer\"",
                                         "{\"save\": [\"Out\"]}",
                                         "{\"repeat\": [\"Out\"]}"};
    static const char *const gathers[] = {"block", "tensor", "layer"};
    static const char *const orders[] = {"dw_first", "dx_first"};
    static const char *const profiles[] = {"ideal", "ideal", "ideal", "measured"};
    static const char *const truths[] = {"false", "true"};
    static const char *const offloads[] = {"none", "none", "optimizer", "activations", "both"};
    /* Drawn one by one: the order in which a call's arguments are evaluated is the compiler's. */
    const struct slice *slice = &slices[case_random(state) % (sizeof slices / sizeof *slices)];
    const char *mesh = mesh_of(state, slice->axes);
    const char *profile = case_pick(state, profiles, 4);
    const char *remat = case_pick(state, remats, 7);
    const char *gather = case_pick(state, gathers, 3);
    const char *order = case_pick(state, orders, 2);
    const char *chunks = case_pick(state, truths, 2);
    unsigned const accumulate = 1 + (unsigned)(case_random(state) % 2);
    unsigned const prefetch = 1 + (unsigned)(case_random(state) % 3);
    char model[MODEL_TEXT_BYTES];
    unsigned const tokens = model_random(state, model);
    const char *offload = case_pick(state, offloads, 5);
    if (strstr(model, "\"layers\": 1,") != NULL) offload = "optimizer"; /* The least is two. */
    case_text(text, WALK_TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"random\", \"machine\": {%s, \"profile\": \"%s\"}, "
              "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": %s, "
              "\"batch_tokens\": %u, \"remat\": %s, \"gather\": \"%s\", "
              "\"backward_order\": \"%s\", \"accumulate\": %u, "
              "\"offload\": \"%s\", \"allow_oversubscription\": true}, "
              "\"run\": {\"prefetch_layers\": %u, \"collective_matmul\": %s}}",
              slice->machine, profile, mesh, model, tokens, remat, gather, order, accumulate,
              offload, prefetch, chunks);
}

static void drawn_hold(uint32_t n, void (*check)(struct play *play, const char *text))
{
    struct error error;
    if (walk_drawn(n, scenario_random, NULL, check, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
}

/* What a step may take if nothing overlaps. A collective matmul over several axes goes piece by
 * piece, a piece a rank, and each pays the hops again: on small arrays that is most of the time. */
static double most_s(const struct play *play)
{
    const struct roofline_group *tp = roofline_group_find(&play->roofline, MESH_TP);
    double const most = play->roofline.upper_s;
    if (!play->scenario.workload.collective_matmul || tp == NULL) return most;
    if (tp->group.dimension_count < 2) return most;
    return most + tp->hops_total_s * (double)tp->rank_count;
}

static double widest; /* Share of most_s() that a step took. */

static void lies_between_its_bounds(const struct play *play, const char *text)
{
    double const step_s = units_seconds(play->trace.step_ps);
    double const rounding_s = 1e-9;
    case_that(step_s >= play->roofline.lower_s - rounding_s, text);
    case_that(step_s <= most_s(play) + rounding_s, text);
    case_that(play->trace.work.bound_checks > 0, text);
    if (step_s / most_s(play) > widest) widest = step_s / most_s(play);
}

static void parts_add_up(const struct trace *trace, const char *text)
{
    int64_t compute_ps = 0, exposed_ps = 0;
    case_that(trace->compute_ps + trace->exposed_ps + trace->idle_ps == trace->step_ps, text);
    case_that(trace->compute_ps > 0 && trace->exposed_ps >= 0 && trace->idle_ps >= 0, text);
    for (uint32_t p = 0; p < trace->phase_count; p++) {
        compute_ps += trace->phase[p].compute_ps;
        exposed_ps += trace->phase[p].exposed_ps;
    }
    case_that(compute_ps == trace->compute_ps, text);
    case_that(exposed_ps == trace->exposed_ps, text);
    for (uint32_t q = 0; q < TRACE_QUEUE_COUNT; q++)
        case_that(trace->queue_busy_ps[q] <= trace->step_ps, text);
    for (uint32_t port = 0; port < TRACE_PORTS_MAX; port++)
        case_that(trace->link[port].busy_ps <= trace->step_ps, text);
}

static void step_holds(struct play *play, const char *text)
{
    lies_between_its_bounds(play, text);
    parts_add_up(&play->trace, text);
}

static void a_step_adds_up_and_lies_between_its_bounds(void **unused)
{
    (void)unused;
    uint32_t walked = 0;
    for (uint32_t i = 0; i < SCENARIOS; i++)
        if (!sampling_skips(&walked)) drawn_hold(i, step_holds);
    print_message("    at most %.4f of the serial sum\n", widest);
}

/* The reference queue is slow, and tests/determinism shows it whole models. */
static void all_chips_are_alike(struct play *play, const char *text)
{
    walk_alike(play, text, strstr(text, "llama") == NULL ? "reference" : "fast");
}

static void folded_and_full_are_the_same_to_the_picosecond(void **unused)
{
    (void)unused;
    uint32_t walked = 0;
    for (uint32_t i = 0; i < SCENARIOS / 3; i++)
        if (!sampling_skips(&walked)) drawn_hold(i, all_chips_are_alike);
}

/* Rates that give multiples of 8 ps for what the scenarios move and VMEM for a whole op, so that
 * nothing is rounded, whether the rates are these or twice these. HBM is as fast as 8 links. */
static void make_round(struct chip *chip, uint64_t factor)
{
    chip->hbm_bytes_per_s = factor * UINT64_C(31250000000);
    chip->vmem_bytes_per_s = factor * UINT64_C(32000000000000);
    chip->vmem_capacity_bytes = UINT64_C(1) << 50;
    for (uint32_t i = 0; i < FORMAT_COUNT; i++)
        chip->math_flop_per_s[i] = factor * UINT64_C(32000000000000);
    chip->vector_flop_per_s = factor * UINT64_C(31250000000);
    chip->ici_bytes_per_s = factor * UINT64_C(3906250000);
    chip->hop_latency_ps = TIME_PS_PER_US / (int64_t)factor;
    chip->launch.op_ps = 4000 / (int64_t)factor;
    chip->launch.message_ps = 640 / (int64_t)factor;
}

struct round_step {
    int64_t step_ps;
    uint64_t parts; /* Of the compute ops. */
};

static struct round_step round_step(const char *text, uint64_t factor)
{
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    struct play play;
    struct error error = {0};
    struct replay_options const options = {.engine = "fast"};
    play_run(&play, text, &lower_only);
    make_round(&play.machine.chip, factor);
    play.machine.host.bytes_per_s = factor * UINT64_C(1953125000);
    play.machine.host.latency_ps = TIME_PS_PER_US / (int64_t)factor;
    if (fold_build(play.arena, &play.machine, &play.program, false, &play.fold, &error) !=
            STATUS_OK ||
        replay_run(play.arena, &options, &play.machine, &play.program, &play.fold, &play.trace,
                   &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
    struct round_step const step = {
        .step_ps = play.trace.step_ps,
        .parts = play.program.roles[0].stream_total[PROGRAM_COMPUTE],
    };
    play_close(&play);
    return step;
}

/* To the picosecond, if sizes divide. They do not where a collective matmul cuts a matmul into
 * chunks that do not divide its time, nor where DMA takes a share of the HBM that an op needs: the
 * op ends later by that share of the delay, and of that again. Each such part is rounded once a
 * port; the others are exact. */
static void twice_the_rates_and_half_the_latencies_take_half_the_time(void **unused)
{
    (void)unused;
    uint32_t exact = 0, walked = 0, taken = 0;
    for (uint32_t i = 0; i < SCENARIOS; i++) {
        if (sampling_skips(&walked)) continue;
        taken++;
        uint64_t state = walk_draw(i);
        char text[WALK_TEXT_BYTES];
        scenario_random(&state, text);
        struct round_step const slow = round_step(text, 1), fast = round_step(text, 2);
        int64_t const off_ps = slow.step_ps - 2 * fast.step_ps;
        if ((uint64_t)llabs(off_ps) > slow.parts * MACHINE_PORTS_MAX)
            fail_msg("off by %" PRId64 " ps of %" PRId64 "\nin %s", off_ps, slow.step_ps, text);
        exact += off_ps == 0;
    }
    print_message("    %u of %u exactly\n", exact, taken);
    assert_true(exact >= taken * 3 / 4);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_adds_up_and_lies_between_its_bounds),
        cmocka_unit_test(folded_and_full_are_the_same_to_the_picosecond),
        cmocka_unit_test(twice_the_rates_and_half_the_latencies_take_half_the_time),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
