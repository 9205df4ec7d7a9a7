/*
 * Backward passes of pipelines that are split into gradients of inputs and of weights: for each
 * model of the catalogue, both halves have the FLOP of matrix and of vector units and the reduced
 * gradients of the whole, in layers and at both ends of the pipeline.
 */
#include <stdio.h>

#include "sim/model/model_read.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400, LAYOUT_BYTES = 64 };

static const char *const meshes[] = {"\"dp\": [\"gpu\"]", "\"fsdp\": [\"gpu\"]",
                                     "\"tp\": [\"gpu\"]"};
static const char *const remats[] = {"none", "block"};
enum { MESHES = 3, REMATS = 2, ENDS = 3 };

/* Ends of the pipeline that stand with layers; an embedding, then a head, that stands alone. */
static void layout_write(char layout[LAYOUT_BYTES], uint32_t ends, const struct model *model)
{
    unsigned const layers = (unsigned)model->layers, first = layers / 2;
    const char *modules = model->mtp_modules != 0 ? "m" : "";
    if (ends == 0)
        (void)snprintf(layout, LAYOUT_BYTES, "Et*%u|t*%u%sL", first, layers - first, modules);
    else if (ends == 1)
        (void)snprintf(layout, LAYOUT_BYTES, "E|t*%u%sL", layers, modules);
    else
        (void)snprintf(layout, LAYOUT_BYTES, "Et*%u|%sL", layers, modules);
}

struct sums {
    double matmul_flop, vector_flop, reduced_bytes;
};

static struct sums sums_of(const struct program *program)
{
    struct sums sums = {0};
    struct walk_op walk = {.program = program};
    while (walk_next(&walk)) {
        if (walk.op->kind == PROGRAM_OP_COMPUTE) {
            const struct work *work = &program->works[walk.op->index];
            sums.matmul_flop += walk.times * (double)work_matmul_flop(work);
            sums.vector_flop += walk.times * (double)work->vector_flop;
        } else if (walk.op->kind == PROGRAM_OP_COLLECTIVE) {
            const struct plan *plan = &program->plans[walk.op->index];
            if (plan->kind == COLLECTIVE_REDUCE_SCATTER || plan->kind == COLLECTIVE_ALL_REDUCE)
                sums.reduced_bytes += walk.times * (double)plan->size_bytes;
        }
    }
    return sums;
}

static struct sums sums_with(const char *schedule, const char *model, const char *layout,
                             const char *mesh, const char *remat)
{
    static const struct play_options lowered = {.lower_only = true};
    char text[TEXT_BYTES];
    struct play play;
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"halves\", \"machine\": {\"chip\": \"h100-sxm\", "
              "\"nodes\": 2, \"profile\": \"ideal\"}, \"mesh\": {\"pp\": [\"node\"], %s}, "
              "\"workload\": {\"kind\": \"train_step\", \"model\": \"%s\", \"batch_tokens\": "
              "65536, \"sequence_length\": 1024, \"accumulate\": 4, \"schedule\": \"%s\", "
              "\"layout\": \"%s\", \"remat\": \"%s\", \"allow_oversubscription\": true}}",
              mesh, model, schedule, layout, remat);
    play_run(&play, text, &lowered);
    struct sums const sums = sums_of(&play.program);
    play_close(&play);
    return sums;
}

static void both_halves_are_the_whole(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t m = 0; model_name_at(m) != NULL; m++)
        for (uint32_t k = 0; k < MESHES * REMATS * ENDS; k++) {
            const char *name = model_name_at(m), *mesh = meshes[k % MESHES];
            const char *remat = remats[k / MESHES % REMATS];
            char layout[LAYOUT_BYTES];
            struct model model;
            if (sampling_skips(&walked)) continue;
            case_ok(model_read_name_or_path(case_arena, name, NULL, "/model", &model, &case_error));
            layout_write(layout, k / MESHES / REMATS, &model);
            struct sums const whole = sums_with("1f1b", name, layout, mesh, remat);
            struct sums const halves = sums_with("zb-h1", name, layout, mesh, remat);
            if (halves.matmul_flop != whole.matmul_flop ||
                halves.vector_flop != whole.vector_flop ||
                halves.reduced_bytes != whole.reduced_bytes)
                fail_msg("%s, %s, %s, remat %s: %.17g of %.17g FLOP of matmuls, %.17g of %.17g of "
                         "vector units, %.17g of %.17g bytes reduced",
                         name, layout, mesh, remat, halves.matmul_flop, whole.matmul_flop,
                         halves.vector_flop, whole.vector_flop, halves.reduced_bytes,
                         whole.reduced_bytes);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(both_halves_are_the_whole)};
    return cmocka_run_group_tests_name("split passes", tests, case_arena_up, case_arena_down);
}
