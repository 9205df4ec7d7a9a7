/*
 * Passes that overlap op by op, as DualPipe's pairs do and DualPipeV's: the same work and traffic
 * as one after the other, nothing left in memory, shorter where collectives stand between the ops,
 * and equal however it is played.
 */
#include <stdio.h>
#include <string.h>

#include "sim/schedule/schedule.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1600 };

static const struct {
    const char *machine, *mesh, *model;
    uint32_t ranks; /* Of data. */
    const char *more;
    const char *schedule;
    /* A pair gives both its results at its end: where little is waited for, and microbatches are
     * few, what comes later outweighs what is saved. */
    bool step_is_shorter;
} rows[] = {
    {/* tp in the node */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}", "\"llama-3-8b\"", 1, "", "dualpipev", true},
    {/* tp with fsdp */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"tp\": [\"gpu:4\"], \"fsdp\": [\"gpu:2\"]}", "\"llama-3-8b\"", 2, "",
     "dualpipev", true},
    {/* tp with fsdp, gathered once */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"tp\": [\"gpu:4\"], \"fsdp\": [\"gpu:2\"]}", "\"llama-3-8b\"", 2,
     ", \"regather\": \"step\"", "dualpipev", true},
    {/* tp with dp, block remat */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"tp\": [\"gpu:4\"], \"dp\": [\"gpu:2\"]}", "\"llama-3-8b\"", 2,
     ", \"remat\": \"block\", \"zero\": 1", "dualpipev", true},
    {/* tp on rings */ "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"pp\": [\"x\"], \"tp\": [\"y\"], \"dp\": [\"z\"]}", "\"llama-3-8b\"", 4, "", "dualpipev",
     true},
    {/* a sequence over cp */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"cp\": [\"gpu\"]}", "\"llama-3-8b\"", 1,
     ", \"attention\": \"causal\", \"context\": \"all_gather\"", "dualpipev", true},
    {/* experts over ep */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}", "\"mixtral-8x7b\"", 8, "", "dualpipev", false},
    {/* stages of unlike size */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}", "\"llama-3-8b\"", 1,
     ", \"layout\": \"Et*2|t*5|t*4|t*4|t*6|t*4|t*4|t*3L\"", "dualpipev", true},
    {/* two copies, tp in the node */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}", "\"llama-3-8b\"", 1, "", "dualpipe", true},
    {/* the same with fsdp */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"tp\": [\"gpu:4\"], \"fsdp\": [\"gpu:2\"]}", "\"llama-3-8b\"", 2, "",
     "dualpipe", true},
    {/* the same, gathered once */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"tp\": [\"gpu:4\"], \"fsdp\": [\"gpu:2\"]}", "\"llama-3-8b\"", 2,
     ", \"regather\": \"step\"", "dualpipe", true},
    {/* two copies on rings */ "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"pp\": [\"x\"], \"tp\": [\"y\"], \"dp\": [\"z\"]}", "\"llama-3-8b\"", 4, ", \"zero\": 1",
     "dualpipe", true},
    {/* two copies with experts over ep */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}", "\"mixtral-8x7b\"", 8, "", "dualpipe", false},
    {/* two copies of unlike stages */ "\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}", "\"llama-3-8b\"", 1,
     ", \"layout\": \"Et*6|t*10|t*9|t*7L\"", "dualpipe", true},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void scenario_write(char text[TEXT_BYTES], uint32_t row, uint32_t microbatches)
{
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"pairs\", \"machine\": {%s, \"profile\": \"ideal\"}, "
              "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": %s, "
              "\"batch_tokens\": %u, \"sequence_length\": 2048, \"accumulate\": %u, "
              "\"schedule\": \"%s\", \"allow_oversubscription\": true%s}}",
              rows[row].machine, rows[row].mesh, rows[row].model,
              2048 * rows[row].ranks * microbatches, microbatches, rows[row].schedule,
              rows[row].more);
}

/* The scenario's schedule, where no passes overlap. */
static struct schedule unpaired(struct arena *arena, const char *text)
{
    static const struct play_options only = {.lower_only = true};
    struct play play;
    struct schedule schedule;
    play_run(&play, text, &only);
    case_ok(workload_schedule(arena, &play.scenario.workload, &play.machine, &play.mesh, &schedule,
                              &case_error));
    for (uint32_t r = 0; r < schedule.rank_count; r++)
        for (uint32_t i = 0; i < schedule.rank[r].count; i++)
            schedule.rank[r].pass[i].paired = false;
    play_close(&play);
    return schedule;
}

/* Ops of a role, by kind and by what they do to memory in the end. */
struct sums {
    uint64_t ops[PROGRAM_OP_RECEIVE + 1];
    int64_t left[PROGRAM_MEMORY_COUNT];
    uint64_t pairs, flop;
};

static struct sums sums_of(const struct program *program, uint32_t rank)
{
    struct sums sums = {0};
    for (uint32_t b = 0; b < program->roles[rank].block_count; b++) {
        const struct program_block *block = &program->roles[rank].block[b];
        const struct program_template *template = &program->templates[block->template_index];
        if (block->phase == PROGRAM_PHASE_PAIR) sums.pairs += block->repeat;
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *op = &template->op[i];
            sums.ops[op->kind] += block->repeat;
            if (op->kind == PROGRAM_OP_COMPUTE)
                sums.flop += block->repeat * work_matmul_flop(&program->works[op->index]);
            for (uint32_t e = 0; e < op->effect_count; e++)
                sums.left[op->effect[e].memory] += block->repeat * op->effect[e].bytes;
        }
    }
    return sums;
}

static void pairs_do_the_same_in_less_time(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t microbatches = 8; microbatches <= 16; microbatches += 8) {
            char text[TEXT_BYTES];
            struct play mixed, apart;
            if (sampling_skips(&walked)) continue;
            scenario_write(text, row, microbatches);
            struct arena *arena = arena_create(0);
            struct schedule const given = unpaired(arena, text);
            struct play_options const options = {.schedule = &given};
            play_run(&mixed, text, NULL);
            play_run(&apart, text, &options);
            for (uint32_t r = 0; r < 4; r++) {
                struct sums const one = sums_of(&mixed.program, r);
                struct sums const other = sums_of(&apart.program, r);
                const struct trace_role *role = &mixed.trace.roles[r];
                assert_true(one.pairs > 0);
                assert_int_equal(other.pairs, 0);
                for (uint32_t k = 0; k < PROGRAM_OP_RECEIVE; k++)
                    assert_int_equal(one.ops[k], other.ops[k]);
                /* One waits for both of a sender's messages. */
                assert_true(one.ops[PROGRAM_OP_RECEIVE] < other.ops[PROGRAM_OP_RECEIVE]);
                for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
                    assert_int_equal(one.left[m], 0);
                    assert_int_equal(other.left[m], 0);
                }
                assert_int_equal(one.flop, other.flop);
                assert_int_equal(role->sent_bytes, apart.trace.roles[r].sent_bytes);
                /* A rank has less to do, however late its passes can begin. */
                assert_true(role->exposed_ps < apart.trace.roles[r].exposed_ps);
                assert_true(role->exposed_ps + role->compute_ps <
                            apart.trace.roles[r].exposed_ps + apart.trace.roles[r].compute_ps);
            }
            if (rows[row].step_is_shorter) assert_true(mixed.trace.step_ps < apart.trace.step_ps);
            play_close(&mixed);
            play_close(&apart);
            arena_destroy(arena);
        }
}

static void pairs_are_the_same_however_they_are_played(void **state)
{
    (void)state;
    uint32_t walked = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        char text[TEXT_BYTES];
        struct play folded;
        if (sampling_skips(&walked)) continue;
        scenario_write(text, row, 8);
        play_run(&folded, text, NULL);
        walk_alike(&folded, text, "reference");
        play_close(&folded);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_do_the_same_in_less_time),
        cmocka_unit_test(pairs_are_the_same_however_they_are_played),
    };
    return cmocka_run_group_tests_name("stage pairs", tests, NULL, NULL);
}
