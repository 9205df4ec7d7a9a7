/*
 * Pipelines over two levels of switches: stages on the GPUs of a node, and on in the next node.
 * Drawn steps are the same folded and full, and each message reaches the next rank.
 */
#include <stdio.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1024, DRAWS = 40 };

static const char *const schedules[] = {"1f1b",  "gpipe", "interleaved:2",
                                        "zb-h1", "zb-v",  "looped-bfs:2"};
/* `nodes` nodes hold `pp_nodes` times `pp_gpus` stages. */
static const struct {
    uint32_t nodes, pp_nodes, pp_gpus;
    const char *mesh;
} places[] = {
    {2, 2, 4, "\"tp\": [\"gpu:2\"], \"pp\": [\"node\", \"gpu:4\"]"},
    {4, 2, 4, "\"tp\": [\"gpu:2\"], \"dp\": [\"node:2\"], \"pp\": [\"node:2\", \"gpu:4\"]"},
    {4, 2, 4,
     "\"tp\": [\"gpu:2\"], \"dp\": [\"node:2\"], \"pp\": [\"node:2\", \"gpu:4\"], "
     "\"order\": [\"tp\", \"pp\", \"dp\"]"},
    {2, 2, 2, "\"fsdp\": [\"gpu:4\"], \"pp\": [\"node\", \"gpu:2\"]"},
    {3, 3, 8, "\"pp\": [\"node\", \"gpu\"]"},
    {4, 4, 2, "\"tp\": [\"gpu:2\"], \"fsdp\": [\"gpu:2\"], \"pp\": [\"node\", \"gpu:2\"]"},
};

static void step_write(char text[TEXT_BYTES], uint32_t draw)
{
    size_t const place = draw % (sizeof places / sizeof *places);
    const char *schedule = schedules[draw / 3 % (sizeof schedules / sizeof *schedules)];
    uint32_t const stages = places[place].pp_nodes * places[place].pp_gpus;
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": %u}, \"mesh\": {%s}, "
        "\"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": 1024, "
        "\"F\": %u, \"layers\": %u, \"matrices\": 2}, \"batch_tokens\": %u, "
        "\"accumulate\": %u, \"schedule\": \"%s\"}}",
        places[place].nodes, places[place].mesh, 1024 + 512 * (draw % 5), 2 * stages,
        4096 * 2 * stages, 2 * stages, schedule);
}

static void folded_and_full_are_the_same(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        if (sampling_skips(&walked)) continue;
        char text[TEXT_BYTES];
        struct play folded;
        step_write(text, draw);
        play_run(&folded, text, NULL);
        walk_alike(&folded, text, NULL);
        play_close(&folded);
    }
}

/* Each message goes to the rank before or behind; a plan that names another is refused. */
static void messages_reach_the_next_rank(void **state)
{
    (void)state;
    static const struct play_options lower_only = {.lower_only = true, .engine = "fast"};
    for (uint32_t draw = 0; draw < sizeof places / sizeof *places; draw++) {
        char text[TEXT_BYTES];
        struct play play;
        struct error error;
        uint32_t shifts = 0;
        step_write(text, draw);
        play_run(&play, text, &lower_only);
        for (uint32_t i = 0; i < play.program.plan_count; i++) {
            struct plan plan = play.program.plans[i];
            if (plan.permute.shift == 0) continue;
            shifts++;
            assert_int_equal(plan_check(&plan, &error), STATUS_OK);
            plan.permute.peer = (plan.permute.peer + 1) % plan.item[0].size;
            assert_int_not_equal(plan_check(&plan, &error), STATUS_OK);
        }
        assert_true(shifts >= 2);
        for (uint32_t chip = 0; chip < play.machine.chip_count; chip++) {
            uint32_t at[MACHINE_AXES_MAX];
            machine_coordinates(&play.machine, chip, at);
            assert_int_equal(program_role_at(&play.program, at),
                             mesh_rank(&play.mesh, &play.machine, MESH_PP, chip));
        }
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_and_full_are_the_same),
        cmocka_unit_test(messages_reach_the_next_rank),
    };
    return cmocka_run_group_tests_name("stage levels", tests, NULL, NULL);
}
