/*
 * What embedding and head gather where weights are sharded: each use what it reads, and no more. In
 * pipelines the head's weights stay where its backward pass is the rank's next; a tied head gathers
 * no rows by position, which only lookups read, and a lookup no norm.
 */
#include <stdio.h>
#include <string.h>

#include "sim/schedule/schedule.h"
#include "sim/step/workload.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400, RANKS = 4, MICROBATCHES = 8, WEIGHT_BYTES = 2 };

static void text_write(char text[TEXT_BYTES], const char *model, const char *mesh,
                       const char *schedule)
{
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"heads\", \"machine\": {\"chip\": \"h100-sxm\", "
              "\"nodes\": %d, \"profile\": \"ideal\"}, \"mesh\": %s, \"workload\": {\"kind\": "
              "\"train_step\", \"model\": \"%s\", \"batch_tokens\": %d, \"sequence_length\": "
              "2048, \"accumulate\": %d, \"allow_oversubscription\": true%s}}",
              RANKS, mesh, model, 2048 * 32 * MICROBATCHES, MICROBATCHES, schedule);
}

struct gathers {
    uint64_t count, bytes;
};

/* Of the ops of this name, in all that the roles do. */
static struct gathers gathers_of(const struct program *program, const char *name)
{
    struct gathers gathers = {0};
    struct walk_op walk = {.program = program};
    while (walk_next(&walk)) {
        if (strcmp(walk.op->name, name) != 0) continue;
        gathers.count += walk.times;
        gathers.bytes += walk.times * program->plans[walk.op->index].size_bytes;
    }
    return gathers;
}

/* Passes of the last stage that read its head and find it not there: its forward passes, and
 * backward passes that other passes of the rank stand before. */
static uint32_t reads_of(const struct schedule *schedule)
{
    uint32_t reads = 0;
    for (uint32_t r = 0; r < schedule->rank_count; r++) {
        const struct schedule_rank *list = &schedule->rank[r];
        for (uint32_t i = 0; i < list->count; i++) {
            const struct schedule_pass *pass = &list->pass[i];
            if (pass->stage + 1u < schedule->stage_count || pass->kind == SCHEDULE_WEIGHT) continue;
            bool const backward = pass->kind != SCHEDULE_FORWARD;
            bool const there = backward && i > 0 && list->pass[i - 1].stage == pass->stage &&
                               list->pass[i - 1].kind == SCHEDULE_FORWARD &&
                               list->pass[i - 1].microbatch == pass->microbatch;
            reads += !there;
        }
    }
    return reads;
}

static void heads_of_pipelines_gather_what_is_not_there(void **state)
{
    (void)state;
    static const char *const names[] = {"1f1b",     "gpipe",       "eager-1f1b", "interleaved:2",
                                        "zb-h1",    "zb-h2",       "zb-v",       "dualpipev",
                                        "dualpipe", "looped-bfs:2"};
    uint32_t staying = 0;
    for (uint32_t n = 0; n < sizeof names / sizeof *names; n++) {
        char text[TEXT_BYTES], schedule_text[64];
        struct play play;
        struct schedule schedule;
        static const struct play_options lower_only = {.lower_only = true};
        (void)snprintf(schedule_text, sizeof schedule_text, ", \"schedule\": \"%s\"", names[n]);
        text_write(text, "llama-3-8b", "{\"fsdp\": [\"gpu\"], \"pp\": [\"node\"]}", schedule_text);
        play_run(&play, text, &lower_only);
        case_ok(workload_schedule(play.arena, &play.scenario.workload, &play.machine, &play.mesh,
                                  &schedule, &case_error));
        const struct model *model = &play.scenario.workload.model;
        struct gathers const head = gathers_of(&play.program, "AllGather W_head");
        struct gathers const embedding = gathers_of(&play.program, "AllGather W_embedding");
        assert_int_equal(head.count, reads_of(&schedule));
        assert_int_equal(head.bytes,
                         head.count * (model->vocabulary + 1) * model->width * WEIGHT_BYTES);
        assert_int_equal(embedding.count, MICROBATCHES);
        assert_int_equal(embedding.bytes,
                         MICROBATCHES * model->vocabulary * model->width * WEIGHT_BYTES);
        staying += head.count == MICROBATCHES;
        play_close(&play);
    }
    assert_true(staying >= 4);
}

/* Two norms' worth of the final one: it has biases. */
static void tied_heads_gather_no_rows_by_position(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play play;
    static const struct play_options lower_only = {.lower_only = true};
    text_write(text, "megatron-1.7b", "{\"fsdp\": [\"gpu\", \"node\"]}", "");
    play_run(&play, text, &lower_only);
    const struct model *model = &play.scenario.workload.model;
    struct gathers const both = gathers_of(&play.program, "AllGather W_embedding");
    assert_true(model->positions.learned > 0);
    assert_int_equal(both.count, 2 * MICROBATCHES);
    assert_int_equal(both.bytes, MICROBATCHES *
                                     (2 * model->vocabulary + model->positions.learned + 2) *
                                     model->width * WEIGHT_BYTES);
    struct gathers const reduced = gathers_of(&play.program, "ReduceScatter dW_embedding");
    assert_int_equal(reduced.bytes, MICROBATCHES *
                                        (model->vocabulary + model->positions.learned + 2) *
                                        model->width * WEIGHT_BYTES);
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_of_pipelines_gather_what_is_not_there),
        cmocka_unit_test(tied_heads_gather_no_rows_by_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
