/*
 * Layers whose attention and MLP lie side by side, and layers with norms behind both (and before,
 * or not) or inside, or an MLP with xIELU, over fsdp, tp, cp and pp: whatever the schedule and
 * remat, folded or not, instants are the same, no step is shorter than its bound, and what a step
 * is counted for is what its program does. Where tp is not hidden, a layer side by side is faster
 * than the same one in series.
 */
#include <stdio.h>
#include <string.h>

#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400 };

static const struct {
    const char *machine, *mesh, *more;
    bool staged;
} places[] = {
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}",
     "", false},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"fsdp\": [\"x\"], \"cp\": [\"y\"], \"tp\": [\"z\"]}", "", false},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"dp\": [\"node\"], \"tp\": [\"gpu\"]}",
     ", \"zero\": 1, \"activations\": \"tokens\"", false},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x2\"",
     "{\"pp\": [\"x\"], \"fsdp\": [\"y\"], \"tp\": [\"z\"]}", "", true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}", "", true},
};
enum { PLACES = sizeof places / sizeof *places };

static const char *const models[] = {"tests/property/parallel.json",
                                     "tests/property/parallel-norms.json",
                                     "tests/property/norms-behind.json",
                                     "tests/property/norms-behind-alone.json",
                                     "tests/property/norms-embedding.json",
                                     "tests/property/norms-inside.json",
                                     "tests/property/xielu.json"};
static const char *const schedules[] = {"1f1b", "zb-h1", "dualpipev", "interleaved:2"};
static const char *const remats[] = {"none", "norms", "big_matmuls", "block", "layer"};
enum { MODELS = 7, SCHEDULES = 4, REMATS = 5 };

static void text_write(char text[TEXT_BYTES], uint32_t place, const char *model,
                       const char *schedule, const char *remat, bool chunks)
{
    char staged[64] = "";
    if (places[place].staged)
        (void)snprintf(staged, sizeof staged, ", \"schedule\": \"%s\"", schedule);
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"ideal\"}, \"mesh\": %s, \"workload\": "
        "{\"kind\": \"train_step\", \"model\": \"%s\", \"batch_tokens\": 262144, "
        "\"sequence_length\": 1024, \"accumulate\": %u, \"remat\": \"%s\"%s%s}, \"run\": "
        "{\"collective_matmul\": %s}}",
        places[place].machine, places[place].mesh, model, places[place].staged ? 8 : 2, remat,
        staged, places[place].more, chunks ? "true" : "false");
}

static double flop_of(const struct program *program)
{
    double flop = 0;
    struct walk_op walk = {.program = program};
    while (walk_next(&walk))
        if (walk.op->kind == PROGRAM_OP_COMPUTE)
            flop += walk.times * (double)work_matmul_flop(&program->works[walk.op->index]);
    return flop;
}

static void folded_or_not_a_step_is_the_same(void **state)
{
    uint32_t walked = 0;
    (void)state;
    for (uint32_t k = 0; k < PLACES * MODELS * REMATS; k++) {
        uint32_t const place = k % PLACES, model = k / PLACES % MODELS;
        char text[TEXT_BYTES];
        struct play folded;
        if (sampling_skips(&walked)) continue;
        text_write(text, place, models[model], schedules[k % SCHEDULES],
                   remats[k / PLACES / MODELS], k % 3 == 0);
        play_run(&folded, text, NULL);
        walk_alike(&folded, text, "reference");
        play_close(&folded);
    }
}

static bool is_of_layer(const char *name)
{
    static const char *const prefixes[] = {"parallel.", "attention.", "mlp."};
    bool found = false;
    for (uint32_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        found = found || strncmp(name, prefixes[i], strlen(prefixes[i])) == 0;
    return found;
}

/* Collectives that the roofline sets beside products, as often and as large as the program's. */
static void told_check(const struct play *play)
{
    const struct roofline *roofline = &play->roofline;
    uint32_t of_layers = 0;
    for (uint32_t i = 0; i < roofline->overlap_count; i++) {
        const struct roofline_overlap *overlap = &roofline->overlap[i];
        uint64_t count = 0;
        double bytes = 0;
        struct walk_op walk = {.program = &play->program};
        while (walk_next(&walk)) {
            if (walk.op->kind != PROGRAM_OP_COLLECTIVE) continue;
            const struct plan *plan = &play->program.plans[walk.op->index];
            if (plan->kind != overlap->kind ||
                strcmp(strchr(walk.op->name, ' ') + 1, overlap->name) != 0)
                continue;
            count += walk.times;
            bytes += (double)walk.times * (double)plan->size_bytes;
        }
        assert_int_equal(count, overlap->count);
        case_near(bytes, overlap->bytes * (double)overlap->count, 1e-9);
        /* Sums of rows may have no product beside them. */
        assert_true(overlap->width > 0 || overlap->kind == COLLECTIVE_ALL_REDUCE);
        of_layers += is_of_layer(overlap->name);
    }
    assert_int_equal(of_layers, roofline->overlap_count);
    assert_true(of_layers >= 4);
}

static void what_is_counted_is_what_is_done(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    (void)state;
    for (uint32_t k = 0; k < PLACES * MODELS * REMATS; k++) {
        uint32_t const place = k % PLACES;
        char text[TEXT_BYTES];
        struct play play;
        struct workload_counts counts;
        if (places[place].staged) continue;
        text_write(text, place, models[k / PLACES % MODELS], NULL, remats[k / PLACES / MODELS],
                   false);
        play_run(&play, text, &lower_only);
        counts_make(&play.scenario.workload, &play.machine, &play.mesh, &counts);
        case_near(counts.matmul_flop, flop_of(&play.program), 1e-12);
        counts_roofline(&play.scenario.workload, &play.machine, &play.mesh, &play.roofline);
        told_check(&play);
        play_close(&play);
    }
}

/* Two kernels a layer more each way; the rest is alike. */
static void a_step_with_norms_behind_is_slower_than_without(void **state)
{
    char text[2][TEXT_BYTES];
    struct play normed, plain;
    (void)state;
    text_write(text[0], 0, "tests/property/norms-behind.json", NULL, "none", false);
    text_write(text[1], 0, "tests/property/parallel-serial.json", NULL, "none", false);
    play_run(&normed, text[0], NULL);
    play_run(&plain, text[1], NULL);
    assert_true(normed.trace.step_ps > plain.trace.step_ps);
    play_close(&normed);
    play_close(&plain);
}

/* A gather and a reduction less each way. Weights are as many but for a norm. */
static void side_by_side_is_faster_than_in_series_over_tp(void **state)
{
    char text[2][TEXT_BYTES];
    struct play parallel, serial;
    (void)state;
    text_write(text[0], 0, "tests/property/parallel.json", NULL, "none", false);
    text_write(text[1], 0, "tests/property/parallel-serial.json", NULL, "none", false);
    play_run(&parallel, text[0], NULL);
    play_run(&serial, text[1], NULL);
    assert_true(parallel.trace.step_ps < serial.trace.step_ps);
    play_close(&parallel);
    play_close(&serial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_or_not_a_step_is_the_same),
        cmocka_unit_test(what_is_counted_is_what_is_done),
        cmocka_unit_test(a_step_with_norms_behind_is_slower_than_without),
        cmocka_unit_test(side_by_side_is_faster_than_in_series_over_tp),
    };
    return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
