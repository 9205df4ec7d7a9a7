/*
 * Pipelines replayed as one until reductions tell them apart: the digest, every instant and every
 * count are those of replaying all of them from the start on, and of the whole machine.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { TEXT_BYTES = 1400, STEPS = 8 };

static uint64_t random_state = 7; /* Of what run.arbitration is. */

/* Without overlap with the microbatches but the last: data parallel reductions come at the end. */
static void scenario_write(char text[TEXT_BYTES], const char *machine, const char *mesh,
                           const char *schedule, const char *more)
{
    const char *arbitration = CASE_PICK(&random_state, "fair", "priority", "fifo");
    bool const gpu = strstr(machine, "h100") != NULL;
    const char *profile =
        gpu ? CASE_PICK(&random_state, "ideal", "measured\", \"stack\": \"te") : "ideal";
    const char *run = strstr(more, "\"run\"") != NULL ? ", " : "}, \"run\": {";
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"early\", \"machine\": {%s, \"profile\": \"%s\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", "
        "\"D\": 4096, \"F\": 16384, \"layers\": 16, \"matrices\": 2}, \"batch_tokens\": 4194304, "
        "\"accumulate\": 8, \"schedule\": \"%s\", \"allow_oversubscription\": true%s%s"
        "\"arbitration\": \"%s\"}}",
        machine, profile, mesh, schedule, more, run, arbitration);
}

static void curves_same(const struct trace_curve *one, const struct trace_curve *other)
{
    assert_int_equal(one->count, other->count);
    assert_true(one->count > 16);
    assert_memory_equal(one->at_ps, other->at_ps, one->count * sizeof *one->at_ps);
    assert_memory_equal(one->bytes, other->bytes, one->count * sizeof *one->bytes);
}

static void same(const struct trace *one, const struct trace *other)
{
    assert_int_equal(one->step_ps, other->step_ps);
    assert_memory_equal(&one->period, &other->period, sizeof one->period);
    assert_true(one->period.steps >= 2);
    assert_int_equal(one->exposed_ps, other->exposed_ps);
    assert_int_equal(one->waiting_ps, other->waiting_ps);
    assert_int_equal(one->reported_chip, other->reported_chip);
    assert_int_equal(one->memory.peak_bytes, other->memory.peak_bytes);
    assert_int_equal(one->memory.peak_at_ps, other->memory.peak_at_ps);
    assert_int_equal(one->role_count, other->role_count);
    for (uint32_t r = 0; r < one->role_count; r++) {
        assert_int_equal(one->roles[r].last_end_ps, other->roles[r].last_end_ps);
        assert_int_equal(one->roles[r].exposed_ps, other->roles[r].exposed_ps);
        assert_int_equal(one->roles[r].waiting_ps, other->roles[r].waiting_ps);
        assert_int_equal(one->roles[r].bubble_ps, other->roles[r].bubble_ps);
        assert_int_equal(one->roles[r].sent_bytes, other->roles[r].sent_bytes);
        assert_int_equal(one->roles[r].pass_count, other->roles[r].pass_count);
        assert_true(one->roles[r].pass_count >= 16);
        assert_memory_equal(one->roles[r].pass_ps, other->roles[r].pass_ps,
                            one->roles[r].pass_count * sizeof *one->roles[r].pass_ps);
        assert_memory_equal(one->roles[r].pass_begin_ps, other->roles[r].pass_begin_ps,
                            one->roles[r].pass_count * sizeof *one->roles[r].pass_ps);
        assert_memory_equal(one->roles[r].pass_end_ps, other->roles[r].pass_end_ps,
                            one->roles[r].pass_count * sizeof *one->roles[r].pass_ps);
    }
}

static struct replay_options options_of(const struct play *play)
{
    return (struct replay_options){.engine = "fast",
                                   .arbitration = play->scenario.run.arbitration,
                                   .curves = true,
                                   .count_waits = true,
                                   .steps_max = STEPS};
}

/* The same with all chips of the fold from the start on. */
static void late_run(struct play *play, struct arena *arena, struct trace *ret_trace)
{
    struct replay_options const options = options_of(play);
    struct fold fold = play->fold;
    fold.prefix = NULL;
    case_ok(
        replay_run(arena, &options, &play->machine, &play->program, &fold, ret_trace, &case_error));
    assert_int_equal(ret_trace->fold.prefix, 0);
}

static void prefix_run(struct play *play, struct arena *arena, struct trace *ret_trace)
{
    struct replay_options const options = options_of(play);
    case_ok(replay_run(arena, &options, &play->machine, &play->program, &play->fold, ret_trace,
                       &case_error));
}

static const char h100_64[] = "\"chip\": \"h100-sxm\", \"nodes\": 64";
static const char hashed[] = "\"chip\": \"h100-sxm\", \"nodes\": 64, \"network\": {\"leaf\": "
                             "{\"oversubscription\": 4, \"policy\": \"hash\"}}";
static const char thin_leaves[] = "\"chip\": \"h100-sxm\", \"nodes\": 64, \"network\": {\"leaf\": "
                                  "{\"oversubscription\": 4}}";
static const char adding[] =
    "\"chip\": \"h100-sxm\", \"nodes\": 64, \"network\": {\"sharp\": \"on\"}";
static const char all_slow[] =
    "\"chip\": \"h100-sxm\", \"nodes\": 64, \"chips\": [{\"at\": [\"*\", \"*\"], "
    "\"math\": 0.5}]";
static const char slices[] = "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\", \"slices\": 4";
static const char in_node[] = "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:16\"]"
                              ", \"order\": [\"tp\", \"pp\", \"dp\"]}";
static const char in_switches[] = "}, \"run\": {\"algorithm\": \"sharp\"";

/* Pipelines of 4 in the same leaf, and between them; over DCN, of ranks in a slice; with
 * gradients that switches add: until then only a digit of a node's number tells ranks apart. */
static const struct {
    const char *machine, *mesh, *schedule, *more;
    uint64_t prefix_chips; /* 0: all are told apart from the start on. */
} rows[] = {
    {h100_64, in_node, "1f1b", ", \"zero\": 1", 4},
    {h100_64, in_node, "interleaved:2", "", 4},
    {h100_64, in_node, "zb-h1", ", \"zero\": 1", 4},
    {all_slow, in_node, "1f1b", ", \"zero\": 1", 4},
    {thin_leaves, in_node, "zb-v", ", \"zero\": 1", 4},
    {hashed, in_node, "gpipe", ", \"zero\": 1", 4},
    {thin_leaves,
     "{\"tp\": [\"gpu:4\"], \"pp\": [\"node:8\"], \"dp\": [\"gpu:2\", \"node:8\"]"
     ", \"order\": [\"tp\", \"pp\", \"dp\"]}",
     "1f1b", ", \"zero\": 1", 8},
    {slices, "{\"tp\": [\"y\", \"z\"], \"pp\": [\"x\"], \"dp\": [\"slice\"]}", "1f1b",
     ", \"zero\": 1", 4},
    {h100_64,
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"fsdp\": [\"node:16\"]"
     ", \"order\": [\"tp\", \"pp\", \"fsdp\"]}",
     "1f1b", "", 0},
    {h100_64,
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:2\"], \"dp\": [\"node:32\"]"
     ", \"order\": [\"tp\", \"pp\", \"dp\"]}",
     "1f1b", ", \"zero\": 1", 2},
    {h100_64, in_node, "dualpipe", ", \"zero\": 1", 4},
    {hashed, in_node, "dualpipe", "", 4},
    {slices, "{\"tp\": [\"y\", \"z\"], \"pp\": [\"x\"], \"dp\": [\"slice\"]}", "dualpipe",
     ", \"zero\": 1", 4},
    {adding, "{\"dp\": [\"gpu\", \"node:16\"], \"pp\": [\"node:4\"]}", "1f1b", in_switches, 4},
};

static void what_goes_on_from_fewer_is_the_same(void **state)
{
    (void)state;
    for (uint32_t i = 0, walked = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_BYTES];
        struct play play;
        struct trace prefix, late;
        if (sampling_skips(&walked)) continue;
        scenario_write(text, rows[i].machine, rows[i].mesh, rows[i].schedule, rows[i].more);
        play_run(&play, text, NULL);
        /* Each reserves for all messages that could be under way. */
        struct arena *first = arena_create(0), *second = arena_create(0);
        prefix_run(&play, first, &prefix);
        late_run(&play, second, &late);
        assert_int_equal(play.trace.digest, prefix.digest);
        assert_int_equal(prefix.fold.prefix, rows[i].prefix_chips);
        assert_int_equal(prefix.digest, late.digest);
        assert_int_equal(prefix.work.events, late.work.events);
        assert_int_equal(prefix.work.transfers, late.work.transfers);
        assert_int_equal(prefix.work.bound_checks, late.work.bound_checks);
        assert_int_equal(prefix.fold.replayed, late.fold.replayed);
        assert_memory_equal(prefix.link, late.link, sizeof prefix.link);
        assert_true(prefix.fold.prefix_ps == 0 || prefix.fold.prefix_ps > prefix.step_ps / 4);
        same(&prefix, &late);
        for (uint32_t r = 0; r < prefix.role_count; r++)
            curves_same(&prefix.roles[r].curve, &late.roles[r].curve);
        arena_destroy(first);
        arena_destroy(second);
        play_close(&play);
    }
}

static void what_goes_on_from_fewer_is_what_the_whole_machine_does(void **state)
{
    (void)state;
    static const struct play_options plain = {.steps_max = STEPS};
    static const struct play_options full = {.full = true, .steps_max = STEPS};
    static const struct play_options reference = {.engine = "reference", .steps_max = STEPS};
    for (uint32_t i = 0, walked = 0; i < sizeof rows / sizeof *rows; i += 3) {
        char text[TEXT_BYTES];
        struct play folded, whole, slow;
        if (sampling_skips(&walked)) continue;
        scenario_write(text, rows[i].machine, rows[i].mesh, rows[i].schedule, rows[i].more);
        play_run(&folded, text, &plain);
        play_run(&whole, text, &full);
        play_run(&slow, text, &reference);
        assert_int_equal(folded.trace.fold.prefix, rows[i].prefix_chips);
        assert_int_equal(whole.trace.fold.prefix, 0);
        assert_int_equal(folded.trace.digest, slow.trace.digest);
        same(&folded.trace, &whole.trace);
        play_close(&folded);
        play_close(&whole);
        play_close(&slow);
    }
}

/* Needs of compute in an op's own slot, as ones that name the slot. */
static uint32_t needs_name_their_slot(struct program *program)
{
    uint32_t named = 0;
    for (uint32_t r = 0; r < program->role_count; r++)
        for (uint32_t b = 0; b < program->roles[r].block_count; b++) {
            struct program_block *block = &program->roles[r].block[b];
            assert_int_equal(block->repeat, 1);
            block->since_slot = block->slot_first;
        }
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            struct program_op *op = &program->templates[t].op[i];
            for (uint32_t n = 0; n < op->need_count; n++) {
                struct program_need *need = &op->need[n];
                if (need->stream != PROGRAM_COMPUTE || need->slot != 0) continue;
                need->slot = PROGRAM_SLOT_SINCE;
                named += op->kind == PROGRAM_OP_COLLECTIVE;
            }
        }
    return named;
}

/* One layer a stage, so that no block has several slots. */
static void how_a_slot_is_named_changes_nothing(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play play;
    struct trace before, after;
    scenario_write(text, h100_64, in_node, "interleaved:4", ", \"zero\": 1");
    play_run(&play, text, NULL);
    prefix_run(&play, play.arena, &before);
    assert_int_equal(before.fold.prefix, 4);
    assert_true(needs_name_their_slot(&play.program) > 0);
    prefix_run(&play, play.arena, &after);
    assert_int_equal(after.fold.prefix, before.fold.prefix);
    assert_int_equal(after.fold.prefix_ps, before.fold.prefix_ps);
    assert_int_equal(after.digest, before.digest);
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_on_from_fewer_is_the_same),
        cmocka_unit_test(what_goes_on_from_fewer_is_what_the_whole_machine_does),
        cmocka_unit_test(how_a_slot_is_named_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
