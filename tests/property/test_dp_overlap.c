/*
 * Gradients of replicas that are reduced once all passes have ended: the ops and bytes of a step
 * where they are reduced beside the backward pass, each reduction behind the last gradient and
 * before the first update, each gather of updated weights behind the last update; a step that is no
 * shorter; folded or not, and with either engine, the same to the picosecond.
 */
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1600 };

static const struct {
    const char *machine, *mesh, *model, *more;
} sites[] = {
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"gpu\"], \"dp\": [\"node\"]}",
     "\"llama-3-8b\"", "\"zero\": 1, \"accumulate\": 4"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 1", "{\"dp\": [\"gpu\"]}", "\"megatron-1.7b\"",
     "\"zero\": 0"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x1\"", "{\"dp\": [\"x\", \"y\"]}", "\"megatron-1.7b\"",
     "\"zero\": 1, \"accumulate\": 2"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]}", "\"llama-3-8b\"",
     "\"zero\": 1, \"accumulate\": 8, \"schedule\": \"interleaved:2\""},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"dp\": [\"node\"], \"ep\": [\"gpu\"]}",
     "\"mixtral-8x7b\"", "\"zero\": 1, \"accumulate\": 2"},
};
enum { SITES = sizeof sites / sizeof *sites };

static void play(struct play *play_, uint32_t site, bool overlaps,
                 const struct play_options *options)
{
    char text[TEXT_BYTES];
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"reductions\", \"machine\": {%s, \"profile\": "
              "\"ideal\"}, \"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": %s, "
              "\"batch_tokens\": 262144, \"sequence_length\": 2048, \"allow_oversubscription\": "
              "true, %s}, \"run\": {\"steps\": 1, \"overlap\": {\"dp\": %s}}}",
              sites[site].machine, sites[site].mesh, sites[site].model, sites[site].more,
              overlaps ? "true" : "false");
    play_run(play_, text, options);
}

static void a_step_sends_as_much_and_is_no_shorter(void **state)
{
    (void)state;
    struct play_options const fast = {.engine = "fast"};
    struct play_options const full = {.full = true, .engine = "fast"};
    struct play_options const reference = {.engine = "reference"};
    uint32_t walked = 0;
    for (uint32_t site = 0; site < SITES; site++) {
        struct play beside, behind, whole, other;
        if (sampling_skips(&walked)) continue;
        play(&beside, site, true, &fast);
        play(&behind, site, false, &fast);
        play(&whole, site, false, &full);
        play(&other, site, false, &reference);
        struct walk_collectives const before = walk_collectives(&beside.program),
                                      after = walk_collectives(&behind.program);
        assert_int_equal(before.count, after.count);
        assert_int_equal(before.bytes, after.bytes);
        assert_true(behind.trace.step_ps >= beside.trace.step_ps);
        assert_int_equal(behind.trace.step_ps, whole.trace.step_ps);
        assert_int_equal(behind.trace.step_ps, other.trace.step_ps);
        play_close(&beside);
        play_close(&behind);
        play_close(&whole);
        play_close(&other);
    }
}

/* What a record of a rank is, by its template: nothing else in the last template's slots moves. */
enum kind { PASS, REDUCTION, UPDATE, GATHER, OTHER };

static enum kind kind_of(const struct program *program, const struct program_role *role,
                         const struct trace_record *record)
{
    const struct program_block *block = program_slot_block(role, record->slot);
    const struct program_template *template = &program->templates[block->template_index];
    bool const computes = record->stream == PROGRAM_COMPUTE;
    if (strncmp(template->name, "reduce ", 7) == 0) return REDUCTION;
    if (strncmp(template->name, "gather ", 7) == 0) return GATHER;
    if (strncmp(template->name, "update ", 7) == 0) return computes ? UPDATE : OTHER;
    return computes ? PASS : OTHER;
}

static void reductions_and_gathers_wait(void **state)
{
    (void)state;
    struct play_options const options = {.record = true};
    struct play played;
    int64_t first[OTHER + 1], last[OTHER + 1] = {0};
    for (uint32_t k = 0; k <= OTHER; k++) first[k] = INT64_MAX;
    play(&played, 0, false, &options);
    const struct program_role *role = &played.program.roles[0];
    for (uint64_t i = 0; i < played.trace.records.count; i++) {
        const struct trace_record *record = &played.trace.records.record[i];
        if (record->kind != TRACE_OP) continue;
        enum kind const kind = kind_of(&played.program, role, record);
        if (record->begin_ps < first[kind]) first[kind] = record->begin_ps;
        if (record->end_ps > last[kind]) last[kind] = record->end_ps;
    }
    assert_true(last[PASS] > 0 && first[GATHER] < INT64_MAX);
    assert_true(first[REDUCTION] >= last[PASS]);
    assert_true(first[UPDATE] >= last[REDUCTION]);
    assert_true(first[GATHER] >= last[UPDATE]);
    play_close(&played);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_sends_as_much_and_is_no_shorter),
        cmocka_unit_test(reductions_and_gathers_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
