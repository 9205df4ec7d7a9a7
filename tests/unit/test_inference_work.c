/* What single ops of a step of inference ask of a chip, by hand. */
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES };

static void lower_step(struct play *play, const char *mesh, const char *workload, const char *run)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 1, \"gpus\": 8, "
              "\"profile\": \"ideal\"}, \"mesh\": %s, \"workload\": {%s, "
              "\"allow_oversubscription\": true}, \"run\": {%s}}",
              mesh, workload, run);
    play_run(play, text, &lower_only);
}

/* The first op of the last pass with this name. */
static const struct work *work_of(const struct play *play, const char *name)
{
    struct walk_op walk = {.program = &play->program};
    const struct work *found = NULL;
    while (walk_next(&walk))
        if (walk.op->kind == PROGRAM_OP_COMPUTE && strcmp(walk.op->name, name) == 0)
            found = &play->program.works[walk.op->index];
    if (found == NULL) fail_msg("no op is called %s", name);
    return found;
}

/* A row of 6,144 numbers for each token, and one for its position, of which there are 8,192. */
static void positions_are_looked_up_row_by_row(void **state)
{
    static const struct {
        const char *mesh, *workload;
        uint64_t rows; /* Of both tables. */
        uint64_t ranks;
    } steps[] = {
        {"{\"dp\": [\"gpu\"]}", "\"kind\": \"decode\", \"batch\": 8, \"context\": 8", 1 + 1, 1},
        {"{\"tp\": [\"gpu\"]}", "\"kind\": \"decode\", \"batch\": 40, \"context\": 8", 40 + 40, 8},
        {"{\"tp\": [\"gpu\"]}", "\"kind\": \"prefill\", \"batch\": 5, \"prompt\": 1000",
         5000 + 5000, 8},
        {"{\"tp\": [\"gpu\"]}", "\"kind\": \"prefill\", \"batch\": 5, \"prompt\": 2000",
         10000 + 8192, 8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char workload[TEXT_BYTES];
        struct play play;
        case_text(workload, sizeof workload, "\"model\": \"starcoder-15b\", %s", steps[i].workload);
        lower_step(&play, steps[i].mesh, workload, "");
        assert_int_equal(work_of(&play, "embedding.lookup")->hbm_read_bytes,
                         steps[i].rows * 6144 / steps[i].ranks * 2);
        play_close(&play);
    }
}

/* On one of 8 GPUs with 8 heads of keys, and without splits, a sequence has 8 of 132 cores; a
 * prompt of one token is no more than a decode, and of 131,072 keys the others' are none. A prompt
 * of 1,056 tokens has 66 tiles of 64 rows for each of 8 heads. */
static void prompts_fill_cores_if_they_are_long(void **state)
{
    static const struct {
        const char *workload;
        uint64_t busy; /* Cores. */
    } steps[] = {
        {"\"kind\": \"decode\", \"batch\": 8, \"context\": 131072", 8},
        {"\"kind\": \"prefill\", \"batch\": 8, \"cached\": 131071, \"prompt\": 1", 8},
        {"\"kind\": \"mixed\", \"batch\": 8, \"context\": 131072, \"prompts\": 8, \"prompt\": 1",
         8},
        {"\"kind\": \"mixed\", \"batch\": 8, \"context\": 131072, \"prompts\": 8, "
         "\"cached\": 131071, \"prompt\": 1",
         16},
        {"\"kind\": \"prefill\", \"batch\": 8, \"prompt\": 1056", 132},
        {"\"kind\": \"mixed\", \"batch\": 8, \"context\": 131072, \"prompts\": 8, \"prompt\": 1056",
         132},
    };
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char workload[TEXT_BYTES];
        struct play play;
        case_text(workload, sizeof workload, "\"model\": \"llama-3-8b\", %s", steps[i].workload);
        lower_step(&play, "{\"dp\": [\"gpu\"]}", workload, "\"split_attention\": false");
        uint64_t const idle_ppm = work_of(&play, "attention.attention")->idle_core_ppm;
        case_near((double)(PPM_ONE - idle_ppm) * 132 / PPM_ONE, (double)steps[i].busy, 1e-3);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_looked_up_row_by_row),
        cmocka_unit_test(prompts_fill_cores_if_they_are_long),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
