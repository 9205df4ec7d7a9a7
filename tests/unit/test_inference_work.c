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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_looked_up_row_by_row),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
