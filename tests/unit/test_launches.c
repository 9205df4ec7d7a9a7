/*
 * Launches of ops: in a graph each op takes longer by a constant; eagerly the host launches one
 * after the other, in the order of the program, and no op begins before.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 512 };
static const int64_t graph_ps = 2450000; /* topology/chips/h100-sxm.json */

static void text_of(char text[TEXT_BYTES], const char *machine, const char *mesh, const char *run)
{
    int const length =
        snprintf(text, TEXT_BYTES,
                 "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {\"kind\": "
                 "\"decode\", \"model\": \"llama-3-8b\", \"batch\": 8, \"context\": 1024}, "
                 "\"run\": {%s}}",
                 machine, mesh, run);
    assert_true(length > 0 && length < TEXT_BYTES);
}

static void played(struct play *play, const char *machine, const char *run)
{
    static const struct play_options recorded = {.record = true};
    char text[TEXT_BYTES];
    text_of(text, machine,
            strstr(machine, "gpus") == NULL ? "{\"dp\": [\"gpu\"]}" : "{\"tp\": [\"gpu\"]}", run);
    play_run(play, text, &recorded);
}

/* Of the one role. */
static uint64_t ops_of(const struct program *program, bool computes)
{
    const struct program_role *role = &program->roles[0];
    uint64_t count = 0;
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_template *of = &program->templates[role->block[b].template_index];
        for (uint32_t i = 0; i < of->op_count; i++)
            count += of->op[i].kind == PROGRAM_OP_COMPUTE || !computes ? role->block[b].repeat : 0;
    }
    return count;
}

static int64_t step_of(const char *machine, const char *run)
{
    struct play play;
    played(&play, machine, run);
    int64_t const step_ps = play.trace.step_ps;
    play_close(&play);
    return step_ps;
}

static const char one[] = "\"chip\": \"h100-sxm\", \"gpus\": 1";
static const char eight[] = "\"chip\": \"h100-sxm\", \"gpus\": 8";
static const char measured[] = "\"chip\": \"h100-sxm\", \"gpus\": 1, \"profile\": \"measured\"";

static void a_graph_adds_the_smallest_kernel_to_each_compute(void **state)
{
    struct play play;
    (void)state;
    played(&play, one, "\"launch\": \"graph\"");
    int64_t const computes = (int64_t)ops_of(&play.program, true);
    assert_int_equal(play.trace.step_ps,
                     step_of(one, "\"launch\": \"profile\"") + computes * graph_ps);
    play_close(&play);
    assert_int_equal(step_of(one, ""), step_of(one, "\"launch\": \"profile\""));
    /* The measured profile has more than the launch in its overhead. */
    assert_int_equal(step_of(measured, "\"launch\": \"graph\""), step_of(measured, ""));
}

/* The host is the only one that anything waits for if it is slow, and no one if it is fast. */
static void a_slow_host_is_what_a_step_takes(void **state)
{
    struct play slow, fast;
    (void)state;
    played(&slow, one, "\"launch\": \"eager\", \"launch_host\": \"3ms\"");
    played(&fast, one, "\"launch\": \"eager\", \"launch_host\": \"1ns\"");
    int64_t const ops = (int64_t)ops_of(&slow.program, false);
    const struct program_template *last =
        &slow.program.templates
             [slow.program.roles[0].block[slow.program.roles[0].block_count - 1].template_index];
    assert_int_equal(last->op[last->op_count - 1].kind, PROGRAM_OP_COMPUTE);
    int64_t const longest_ps = slow.trace.step_ps - ops * 3 * INT64_C(1000000000);
    assert_in_range(longest_ps, graph_ps, 10 * graph_ps); /* Of the last op, which samples. */
    /* The first op waits for one launch. */
    assert_int_equal(fast.trace.step_ps, step_of(one, "\"launch\": \"graph\"") + 1000);
    play_close(&slow);
    play_close(&fast);
}

/* Collectives are launched as computes are. */
static void no_op_begins_before_the_host_has_launched_it(void **state)
{
    int64_t const host_ps = 20 * TIME_PS_PER_US;
    uint64_t waited = 0, ops = 0;
    struct play play;
    (void)state;
    played(&play, eight, "\"launch\": \"eager\"");
    const struct program_role *role = &play.program.roles[0];
    for (uint64_t r = 0; r < play.trace.records.count; r++) {
        const struct trace_record *record = &play.trace.records.record[r];
        uint64_t launches = 1 + record->op;
        if (record->kind != TRACE_OP || record->lane != 0) continue;
        for (uint32_t slot = 0; slot < record->slot; slot++)
            launches +=
                play.program.templates[program_slot_block(role, slot)->template_index].op_count;
        assert_true(record->begin_ps >= (int64_t)launches * host_ps);
        waited += record->begin_ps == (int64_t)launches * host_ps;
        ops++;
    }
    assert_int_equal(ops, ops_of(&play.program, false));
    assert_true(waited > ops / 2);
    assert_true(play.trace.step_ps > (int64_t)ops * host_ps);
    play_close(&play);
}

static void what_cannot_be_launched_so_is_refused(void **state)
{
    static const struct {
        const char *machine, *run, *where, *words;
    } rows[] = {
        {"\"chip\": \"tpu-v5e\", \"shape\": \"1x1\"", "\"launch\": \"eager\"", "/run/launch",
         "\"graph\" is what it does"},
        {one, "\"launch\": \"graf\"", "/run/launch", "\"graph\""},
        {one, "\"launch\": \"eager\", \"launch_host\": \"0us\"", "/run/launch_host", ""},
        {one, "\"launch\": \"eager\", \"launch_host\": \"2s\"", "/run/launch_host", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        char text[TEXT_BYTES];
        text_of(text, rows[i].machine, "{}", rows[i].run);
        enum status const status = play_try(&play, text, NULL, &case_error);
        case_refused(status, STATUS_OK, rows[i].where, rows[i].words);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_adds_the_smallest_kernel_to_each_compute),
        cmocka_unit_test(a_slow_host_is_what_a_step_takes),
        cmocka_unit_test(no_op_begins_before_the_host_has_launched_it),
        cmocka_unit_test(what_cannot_be_launched_so_is_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
