/*
 * Models of which some layers attend to a window of keys, in steps: every query of such a layer
 * meets as many keys as one counts by hand, all ranks together do what the closed formulas count,
 * and however a step is played, instants are the same.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/model/model_read.h"
#include "sim/resource/compute.h"
#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400, RANKS = 4, TOKENS = 262144 };

/* A small gpt-oss, windows of 128 in layers 0, 2, 4 and 6 of 7; and one of 200 keys in layers 0, 1,
 * 3 and 6, of a Qwen3's shape without experts. */
static const char *const models[] = {"tests/property/windows.json",
                                     "tests/property/windows-dense.json"};

struct place {
    const char *machine, *mesh, *more;
    bool experts, staged; /* Four ranks of pp. */
};

static const struct place places[] = {
    {"\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"ep\": [\"gpu:4\"], \"tp\": [\"gpu:2\"]"
     ", \"order\": [\"pp\", \"ep\", \"tp\"]}",
     "", true, true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"pp\": [\"node:4\"], \"fsdp\": [\"node:2\"], \"ep\": [\"gpu\"]"
     ", \"order\": [\"pp\", \"fsdp\", \"ep\"]}",
     "", true, true},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"pp\": [\"x\"], \"dp\": [\"y\"], \"tp\": [\"z\"]}", ", \"zero\": 1", false, true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"dp\": [\"node\"], \"ep\": [\"gpu\"]}",
     ", \"zero\": 2", true, false},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}",
     ", \"activations\": \"tokens\"", false, false},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"fsdp\": [\"node\"], \"cp\": [\"gpu:4\"], "
     "\"tp\": [\"gpu:2\"], \"order\": [\"fsdp\", \"cp\", \"tp\"]}",
     ", \"context\": \"ulysses\"", false, false},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"fsdp\": [\"x\", \"y\", \"z\"]}",
     ", \"offload\": \"both\"", false, false},
};
enum { PLACES = sizeof places / sizeof *places };

/* Stages that are unlike: of one kind, of two or three layers, without any. */
struct schedule_case {
    const char *name, *layout;
};
static const struct schedule_case schedules[] = {
    {"1f1b", "Ett|tt|t|ttL"},
    {"gpipe", "Et|t|ttt|ttL"},
    {"interleaved:2", "E|t|t|tt|t|t|t|L"},
    {"zb-h1", "Etttt|t|t|tL"},
    {"dualpipev", "E|t|t|t|t|tt||tL"},
    {"dualpipe", "Ett|tt|tt|tL"},
};
enum { SCHEDULES = sizeof schedules / sizeof *schedules, HALVES = 3 };

struct step {
    uint32_t place, schedule, sequence_length;
    const char *remat, *attention;
};

static void text_write(char text[TEXT_BYTES], const struct step *step)
{
    const struct place *place = &places[step->place];
    char staged[192] = "";
    if (place->staged)
        (void)snprintf(staged, sizeof staged, ", \"schedule\": \"%s\", \"layout\": \"%s\"",
                       schedules[step->schedule].name, schedules[step->schedule].layout);
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"windows\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": \"%s\", "
        "\"batch_tokens\": %u, \"sequence_length\": %u, \"accumulate\": %u, \"remat\": \"%s\", "
        "\"attention\": \"%s\"%s%s}}",
        place->machine, place->mesh, models[!place->experts], TOKENS, step->sequence_length,
        place->staged ? 8 : 2, step->remat, step->attention, staged, place->more);
}

struct sums {
    double matmul_flop, padded_flop, vector_flop, hbm_bytes, useful_flop, compute_count;
    double attention_flop; /* Useful, of the dot products. */
};

static struct sums sums_of(const struct play *play)
{
    const struct chip *chip = &play->machine.chip;
    struct sums sums = {0};
    struct walk_op walk = {.program = &play->program};
    while (walk_next(&walk)) {
        const struct work *work = &play->program.works[walk.op->index];
        double const times = walk.times;
        if (walk.op->kind != PROGRAM_OP_COMPUTE) continue;
        bool const flash = strstr(walk.op->name, "lash") != NULL;
        sums.compute_count += times;
        sums.matmul_flop += times * (double)work_matmul_flop(work);
        sums.padded_flop += times * (double)compute_time(chip, work, PPM_ONE, PPM_ONE).padded_flop;
        sums.vector_flop += times * (double)work->vector_flop;
        sums.hbm_bytes += times * (double)(work->hbm_read_bytes + work->hbm_write_bytes);
        sums.useful_flop += times * (double)work->useful_flop;
        if (flash) sums.attention_flop += times * (double)work->useful_flop;
    }
    return sums;
}

/* Of all layers of a model, over one sequence: query by query. */
static uint64_t keys_counted(const struct model *model, uint64_t length, bool causal)
{
    uint64_t keys = 0;
    for (uint64_t layer = 0; layer < model->layers; layer++)
        for (uint64_t query = 0; query < length; query++) {
            uint64_t met = causal ? query + 1 : length;
            if (model_layer_kind(model, layer, UINT64_MAX).windowed && met > model->attends.window)
                met = model->attends.window;
            keys += met;
        }
    return keys;
}

static void all_ranks_together_do_what_one_counts(void **state)
{
    (void)state;
    static const char *const remats[] = {"none", "big_matmuls", "block", "layer"};
    static const uint32_t lengths[] = {512, 1024, 2048};
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t k = 0; k < (places[p].staged ? SCHEDULES * 6u : 6u); k++) {
            bool const causal = k % 4 != 3;
            struct step const step = {p, k % SCHEDULES, lengths[k / 2 % 3], remats[k % 4],
                                      causal ? "causal" : "full"};
            char text[TEXT_BYTES];
            struct play play;
            struct workload_counts counts;
            text_write(text, &step);
            play_run(&play, text, &lower_only);
            const struct workload_plan *plan = &play.scenario.workload;
            counts_make(plan, &play.machine, &play.mesh, &counts);
            struct sums const sums = sums_of(&play);
            bool const halves = places[p].staged && step.schedule >= HALVES;
            double const ranks = places[p].staged ? RANKS : 1;
            case_near(counts.matmul_flop * ranks, sums.matmul_flop, 1e-12);
            case_near(counts.padded_flop * ranks, sums.padded_flop, 1e-9);
            case_near(counts.matmul_useful * ranks, sums.useful_flop, 1e-9);
            case_near(counts.vector_flop * ranks, sums.vector_flop, 1e-7);
            case_near(counts.hbm_bytes * ranks, sums.hbm_bytes, halves ? 3e-3 : 1e-7);
            case_near(counts.ops.count * ranks, sums.compute_count, halves ? 0.06 : 1e-12);
            /* Two products of N heads and H columns forward, twice as many backward. */
            double const keys = (double)keys_counted(&plan->model, plan->sequence_length, causal) *
                                ((double)plan->batch_tokens / (double)plan->sequence_length);
            double const flop = keys * 3 * 2 * 2 * 8 * 64;
            case_near(counts.useful_attention_flop, flop, 1e-12);
            case_near(sums.attention_flop * play.machine.chip_count / ranks, flop, 1e-12);
            play_close(&play);
        }
}

/* Of gpt-oss-120b with 4,096 tokens: (128·4096 - 128·127/2)·4·64·64 FLOP forward for each sequence
 * in 18 of 36 layers, 4096·4097/2·4·64·64 in the others; and twice as many backward. */
static void gpt_oss_is_as_by_hand(void **state)
{
    (void)state;
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    struct workload_counts counts;
    struct play play;
    play_run(&play,
             "{\"podsim\": 1, \"title\": \"windows\", \"machine\": {\"chip\": \"tpu-v5p\", "
             "\"shape\": \"4x4x4\", \"profile\": \"ideal\"}, \"mesh\": {\"fsdp\": [\"x\", "
             "\"y\"], \"ep\": [\"z\"]}, \"workload\": {\"kind\": \"train_step\", \"model\": "
             "\"gpt-oss-120b\", \"batch_tokens\": 262144, \"sequence_length\": 4096, "
             "\"attention\": \"causal\"}}",
             &lower_only);
    const struct model *model = &play.scenario.workload.model;
    assert_int_equal(model_window_layers(model, 4096), 18);
    assert_int_equal(model_window_layers(model, 128), 0);
    counts_make(&play.scenario.workload, &play.machine, &play.mesh, &counts);
    double const flop = 64 * 3 * 18 * (8456765440.0 + 137472507904.0);
    case_near(counts.useful_attention_flop, flop, 1e-12);
    play_close(&play);
}

static void it_is_the_same_however_it_is_played(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t s = 0; s < (places[p].staged ? SCHEDULES : 1u); s++) {
            struct step const step = {p, s, 1024, s % 2 == 0 ? "none" : "block", "causal"};
            char text[TEXT_BYTES];
            struct play folded;
            if (sampling_skips(&walked)) continue;
            text_write(text, &step);
            play_run(&folded, text, NULL);
            walk_alike(&folded, text, "reference");
            play_close(&folded);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_together_do_what_one_counts),
        cmocka_unit_test_setup_teardown(gpt_oss_is_as_by_hand, case_arena_up, case_arena_down),
        cmocka_unit_test(it_is_the_same_however_it_is_played),
    };
    return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
