/*
 * Updated weights of ZeRO-1 and 2, gathered at the end of a step or before their first use in the
 * next: the same ops and bytes in a step, each use behind its gather, a period that is no longer;
 * folded or not, and with either engine, the same to the picosecond.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1600, STEPS = 8 };

/* Gathers beside a forward pass may keep its own messages waiting. */
static const double contention = 0.01;

#define MLP "{\"kind\": \"mlp\", \"D\": 4096, \"F\": 16384, \"layers\": 8, \"matrices\": 2}"

static const struct {
    const char *machine, *mesh, *model, *more;
} sites[] = {
    {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x1\"", "{\"dp\": [\"x\", \"y\"]}", MLP,
     "\"zero\": 1, \"accumulate\": 2"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"gpu\"], \"dp\": [\"node\"]}", MLP,
     "\"zero\": 2"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"gpu\"], \"dp\": [\"node\"]}",
     "\"llama-3-8b\"", "\"zero\": 1, \"accumulate\": 4"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 1", "{\"dp\": [\"gpu\"]}", "\"megatron-1.7b\"",
     "\"zero\": 1"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]}", MLP,
     "\"zero\": 1, \"accumulate\": 8"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]}", "\"llama-3-8b\"",
     "\"zero\": 1, \"accumulate\": 8, \"schedule\": \"interleaved:2\""},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]}", "\"megatron-1.7b\"",
     "\"zero\": 2, \"accumulate\": 8"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]}", "\"llama-3-8b\"",
     "\"zero\": 1, \"accumulate\": 8, \"schedule\": \"dualpipe\""},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"dp\": [\"node\"], \"ep\": [\"gpu\"]}",
     "\"mixtral-8x7b\"", "\"zero\": 1"},
};
enum { SITES = sizeof sites / sizeof *sites };

static void text_write(char text[TEXT_BYTES], uint32_t site, const char *when)
{
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"gathers\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": %s, \"batch_tokens\": "
        "262144, \"sequence_length\": 2048, \"allow_oversubscription\": true, %s}, \"run\": "
        "{\"parameter_gather\": \"%s\"}}",
        sites[site].machine, sites[site].mesh, sites[site].model, sites[site].more, when);
}

struct gathers {
    uint64_t count, bytes;
};

/* Gathers and all other collectives of all roles. */
static struct gathers gathers_of(const struct program *program)
{
    struct gathers gathers = {0};
    struct walk_op walk = {.program = program};
    while (walk_next(&walk)) {
        if (walk.op->kind != PROGRAM_OP_COLLECTIVE) continue;
        gathers.count += walk.times;
        gathers.bytes += walk.times * program->plans[walk.op->index].size_bytes;
    }
    return gathers;
}

static void play(struct play *play_, uint32_t site, const char *when, bool full, const char *engine)
{
    char text[TEXT_BYTES];
    struct play_options const options = {.full = full, .engine = engine, .steps_max = STEPS};
    text_write(text, site, when);
    play_run(play_, text, &options);
}

static void a_period_sends_as_much_and_takes_no_longer(void **state)
{
    (void)state;
    uint32_t walked = 0, faster = 0, checked = 0;
    for (uint32_t site = 0; site < SITES; site++) {
        struct play end, next, full, other;
        if (sampling_skips(&walked)) continue;
        play(&end, site, "end", false, "fast");
        play(&next, site, "next_step", false, "fast");
        play(&full, site, "next_step", true, "fast");
        play(&other, site, "next_step", false, "reference");
        struct gathers const before = gathers_of(&end.program), behind = gathers_of(&next.program);
        assert_int_equal(before.count, behind.count);
        assert_int_equal(before.bytes, behind.bytes);
        assert_memory_equal(&next.trace.period, &full.trace.period, sizeof full.trace.period);
        assert_memory_equal(&next.trace.period, &other.trace.period, sizeof full.trace.period);
        assert_true(next.trace.period.cycle >= 1);
        if ((double)next.trace.period.time > (double)end.trace.period.time * (1 + contention))
            fail_msg("site %u: %lld ps, at the end %lld", site, (long long)next.trace.period.time,
                     (long long)end.trace.period.time);
        faster += next.trace.period.time < end.trace.period.time;
        checked++;
        play_close(&end);
        play_close(&next);
        play_close(&full);
        play_close(&other);
    }
    assert_true(2 * faster > checked);
}

/* Of the bare MLP every op of a layer's forward pass reads its weights. */
static void uses_wait_for_their_gathers(void **state)
{
    (void)state;
    struct play played;
    char text[TEXT_BYTES];
    struct play_options const options = {.record = true};
    uint32_t seen = 0;
    text_write(text, 0, "next_step");
    play_run(&played, text, &options);
    const struct program_role *role = &played.program.roles[0];
    for (uint64_t i = 0; i < played.trace.records.count; i++) {
        const struct trace_record *gather = &played.trace.records.record[i];
        if (gather->kind != TRACE_OP || gather->stream == PROGRAM_COMPUTE) continue;
        const struct program_block *block = program_slot_block(role, gather->slot);
        const struct program_op *op =
            &played.program.templates[block->template_index].op[gather->op];
        if (strncmp(op->name, "AllGather W_", 12) != 0) continue;
        assert_int_equal(block->phase, PROGRAM_PHASE_FORWARD);
        assert_int_equal(block->microbatch, 0);
        seen++;
        for (uint64_t k = 0; k < played.trace.records.count; k++) {
            const struct trace_record *use = &played.trace.records.record[k];
            if (use->kind == TRACE_OP && use->stream == PROGRAM_COMPUTE &&
                use->slot == gather->slot)
                assert_true(use->begin_ps >= gather->end_ps);
        }
    }
    assert_int_equal(seen, 8);
    play_close(&played);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_period_sends_as_much_and_takes_no_longer),
        cmocka_unit_test(uses_wait_for_their_gathers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
