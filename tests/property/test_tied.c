/*
 * A model that ties its embedding to its head, over pipeline stages: both ends hold the matrix,
 * give one another their gradients once these are reduced, and update when the sum is there;
 * parameters and messages are as many as that takes; folded or not, instants are the same.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/step/counts.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum {
    TEXT_BYTES = 1400,
    LAYERS = 24, /* megatron-1.7b */
    WIDTH = 2304,
    VOCABULARY = 51200,
    LENGTH = 2048,
    SEQUENCES = 64,
};

struct place {
    const char *machine, *mesh, *more;
    uint32_t accumulate, tp, pp, data;
    uint32_t state_shards;
};

static const struct place places[] = {
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}", "", 8, 8, 4,
     1, 1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"tp\": [\"gpu:4\"], \"pp\": [\"gpu:2\"], \"dp\": [\"node\"]}", "", 4, 4, 2, 4, 1},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]"
     ", \"order\": [\"tp\", \"pp\", \"dp\"]}",
     ", \"zero\": 1", 8, 8, 4, 2, 2},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"pp\": [\"x\"], \"fsdp\": [\"y\"], \"tp\": [\"z\"]}", "", 8, 4, 4, 4, 4},
    /* Over two levels, where the first and the last rank lie on different nodes. */
    {"\"chip\": \"h100-sxm\", \"nodes\": 4",
     "{\"tp\": [\"gpu:4\"], \"pp\": [\"node:2\", \"gpu:2\"], \"dp\": [\"node:2\"]"
     ", \"order\": [\"tp\", \"pp\", \"dp\"]}",
     ", \"zero\": 1", 8, 4, 4, 2, 2},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"gpu:4\"], \"pp\": [\"node\", \"gpu:2\"]}",
     "", 8, 4, 4, 1, 1},
};
enum { PLACES = sizeof places / sizeof *places };

static const char *const schedules[] = {"1f1b", "interleaved:2", "looped-bfs:2", "zb-h1", "gpipe"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

/* `run`: more keys of the run, or "". */
static void text_write_run(char text[TEXT_BYTES], const struct place *place, const char *model,
                           const char *schedule, const char *run)
{
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"tied\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": \"%s\", "
        "\"batch_tokens\": %d, \"sequence_length\": %d, \"accumulate\": %u, \"schedule\": \"%s\", "
        "\"allow_oversubscription\": true%s}%s}",
        place->machine, place->mesh, model, SEQUENCES * LENGTH, LENGTH, place->accumulate, schedule,
        place->more, run);
}

static void text_write(char text[TEXT_BYTES], const struct place *place, const char *model,
                       const char *schedule)
{
    text_write_run(text, place, model, schedule, "");
}

/* What a rank did: the end of the last of what gives its gradients; the rest by the ops' names. */
struct end {
    int64_t gradients_ps, sent_ps, received_ps, sum_begin_ps, sum_end_ps, update_begin_ps;
    uint32_t sums;
};

static bool is_op(const char *name, const char *wanted)
{
    return strncmp(name, wanted, strlen(wanted)) == 0;
}

static struct end end_of(const struct play *play, uint32_t role, uint32_t chip)
{
    struct end end = {.update_begin_ps = INT64_MAX};
    const struct program_role *of = &play->program.roles[role];
    for (uint64_t i = 0; i < play->trace.records.count; i++) {
        const struct trace_record *record = &play->trace.records.record[i];
        if (record->kind != TRACE_OP || record->chip != chip) continue;
        const struct program_block *block = program_slot_block(of, record->slot);
        const char *name = play->program.templates[block->template_index].op[record->op].name;
        const char *stream = play->program.stream[record->stream].name;
        bool const gives = is_op(stream, "compute") || is_op(stream, "reduce");
        if (is_op(name, "tied gradients.sum")) {
            end.sum_begin_ps = record->begin_ps;
            end.sum_end_ps = record->end_ps;
            end.sums++;
        } else if (is_op(name, "send tied")) {
            end.sent_ps = record->end_ps;
        } else if (is_op(name, "receive tied")) {
            end.received_ps = record->end_ps;
        } else if (is_op(name, "update")) {
            if (record->begin_ps < end.update_begin_ps) end.update_begin_ps = record->begin_ps;
        } else if (gives && block->phase != PROGRAM_PHASE_UPDATE &&
                   record->end_ps > end.gradients_ps) {
            end.gradients_ps = record->end_ps;
        }
    }
    return end;
}

/* Plays a step, and says how the first and the last of its ranks end, whose chips are `shown`. */
static void ends_play(struct play *play, const char *text, uint32_t ranks, const uint32_t shown[2],
                      struct end *ret_first, struct end *ret_last)
{
    struct play_options const options = {
        .record = true, .full = true, .shown = shown, .shown_count = 2};
    play_run(play, text, &options);
    *ret_first = end_of(play, 0, play->trace.shown.recorded[0]);
    *ret_last = end_of(play, ranks - 1, play->trace.shown.recorded[1]);
}

static void both_ends_have_the_sum_before_they_update(void **state)
{
    (void)state;
    static const struct play_options all = {.full = true};
    uint32_t walked = 0;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t s = 0; s < SCHEDULES; s++) {
            char text[TEXT_BYTES];
            struct play play;
            if (sampling_skips(&walked)) continue;
            text_write(text, &places[p], "megatron-1.7b", schedules[s]);
            play_run(&play, text, &all);
            uint32_t const shown[] = {play.trace.roles[0].chip,
                                      play.trace.roles[places[p].pp - 1].chip};
            play_close(&play);
            struct end first, last;
            ends_play(&play, text, places[p].pp, shown, &first, &last);
            const struct end *ends[] = {&first, &last};
            for (uint32_t e = 0; e < 2; e++) {
                const struct end *one = ends[e], *other = ends[1 - e];
                assert_int_equal(one->sums, 1);
                assert_true(one->sent_ps > one->gradients_ps);
                assert_true(one->received_ps > other->gradients_ps);
                assert_true(one->sum_begin_ps >= one->received_ps);
                assert_true(one->update_begin_ps >= one->sum_end_ps);
                assert_true(one->sum_end_ps > one->sum_begin_ps);
            }
            play_close(&play);
        }
}

/* Weight gradients at the end of a list: of the matrix first, then its messages, then the layers.
 */
static void gradients_travel_during_those_of_layers(void **state)
{
    (void)state;
    static const char *const split[] = {"zb-h1", "zb-h2"};
    static const struct play_options all = {.full = true}, folded = {.full = false};
    uint32_t walked = 0;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t s = 0; s < sizeof split / sizeof *split; s++) {
            char text[TEXT_BYTES], waits[TEXT_BYTES];
            struct play play, other;
            if (sampling_skips(&walked)) continue;
            text_write(waits, &places[p], "megatron-1.7b", split[s]);
            text_write_run(text, &places[p], "megatron-1.7b", split[s],
                           ", \"run\": {\"overlap\": {\"tied\": true}}");
            play_run(&play, text, &folded);
            play_run(&other, waits, &folded);
            assert_true(play.trace.step_ps <= other.trace.step_ps);
            play_close(&other);
            play_run(&other, text, &all);
            assert_int_equal(play.trace.step_ps, other.trace.step_ps);
            uint32_t const shown[] = {other.trace.roles[0].chip,
                                      other.trace.roles[places[p].pp - 1].chip};
            play_close(&play);
            play_close(&other);
            struct end first, last;
            ends_play(&play, text, places[p].pp, shown, &first, &last);
            const struct end *ends[] = {&first, &last};
            for (uint32_t e = 0; e < 2; e++) {
                assert_int_equal(ends[e]->sums, 1);
                assert_true(ends[e]->sum_begin_ps >= ends[e]->received_ps);
                assert_true(ends[e]->update_begin_ps >= ends[e]->sum_end_ps);
            }
            assert_true(last.sent_ps < last.gradients_ps);
            play_close(&play);
        }
}

/* The embedding with its positions on the first rank, the head with the last norm on the last. */
static void each_end_holds_and_sends_one_matrix(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < PLACES; p++) {
        const struct place *place = &places[p];
        char text[TEXT_BYTES];
        struct play play;
        text_write(text, place, "megatron-1.7b", "1f1b");
        play_run(&play, text, NULL);
        uint64_t const matrix = (uint64_t)VOCABULARY * WIDTH / place->tp;
        uint64_t const shards = place->state_shards > 1 && *place->more == '\0' ? place->data : 1;
        const struct program *program = &play.program;
        uint64_t held[2] = {0};
        for (uint32_t e = 0; e < 2; e++)
            held[e] = program->roles[e * (place->pp - 1)].resident_bytes[PROGRAM_MEMORY_PARAMETERS];
        uint64_t const layers = (UINT64_C(12) * WIDTH * WIDTH + 13 * WIDTH) / place->tp;
        uint64_t const stage = layers * LAYERS / place->pp / shards * 2;
        assert_int_equal(held[0], stage + 2 * (matrix + LENGTH * WIDTH / place->tp) / shards);
        assert_int_equal(held[1], stage + 2 * (matrix + 2 * WIDTH / place->tp) / shards);
        uint64_t const message =
            UINT64_C(2) * SEQUENCES / place->accumulate / place->data * LENGTH * WIDTH / place->tp;
        for (uint32_t r = 0; r < place->pp; r++) {
            bool const end = r == 0 || r + 1 == place->pp;
            uint64_t const sends = place->accumulate * (end ? 1 : 2);
            uint64_t const tied = end ? 2 * matrix / place->state_shards : 0;
            assert_int_equal(play.trace.roles[r].sent_bytes, sends * message + tied);
        }
        play_close(&play);
    }
}

static void it_is_the_same_however_it_is_played(void **state)
{
    (void)state;
    static const struct play_options reference = {.engine = "reference"};
    uint32_t walked = 0;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t s = 0; s < SCHEDULES; s++) {
            char text[TEXT_BYTES];
            struct play folded, slow;
            if (sampling_skips(&walked)) continue;
            text_write(text, &places[p], "megatron-1.7b", schedules[s]);
            play_run(&folded, text, NULL);
            walk_alike(&folded, text, NULL);
            play_run(&slow, text, &reference);
            assert_int_equal(folded.trace.digest, slow.trace.digest);
            play_close(&slow);
            play_close(&folded);
        }
}

/* All ranks' compute ops against the closed formulas, which are a mean rank's. */
static void the_formulas_count_what_all_ranks_do(void **state)
{
    (void)state;
    static const struct play_options lower = {.lower_only = true};
    for (uint32_t p = 0; p < PLACES; p++) {
        char text[TEXT_BYTES];
        struct play play;
        struct workload_counts counts;
        double ops = 0, vector_flop = 0, hbm_bytes = 0;
        text_write(text, &places[p], "megatron-1.7b", "1f1b");
        play_run(&play, text, &lower);
        counts_make(&play.scenario.workload, &play.machine, &play.mesh, &counts);
        struct walk_op walk = {.program = &play.program};
        while (walk_next(&walk)) {
            if (walk.op->kind != PROGRAM_OP_COMPUTE) continue;
            const struct work *work = &play.program.works[walk.op->index];
            ops += walk.times;
            vector_flop += walk.times * (double)work->vector_flop;
            hbm_bytes += walk.times * (double)(work->hbm_read_bytes + work->hbm_write_bytes);
        }
        case_near(ops / places[p].pp, counts.ops.count, 1e-9);
        case_near(vector_flop / places[p].pp, counts.vector_flop, 1e-6);
        case_near(hbm_bytes / places[p].pp, counts.hbm_bytes, 1e-6);
        play_close(&play);
    }
}

static void both_on_one_rank_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"zb-v", "v-half", "v-min", "dualpipev", "dualpipe"};
    for (uint32_t n = 0; n < sizeof names / sizeof *names; n++) {
        char text[TEXT_BYTES];
        struct play play;
        text_write(text, &places[0], "megatron-1.7b", names[n]);
        case_refused(play_try(&play, text, NULL, &case_error), STATUS_UNSUPPORTED,
                     "/workload/schedule", "first and last rank");
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_have_the_sum_before_they_update),
        cmocka_unit_test(gradients_travel_during_those_of_layers),
        cmocka_unit_test(each_end_holds_and_sends_one_matrix),
        cmocka_unit_test(it_is_the_same_however_it_is_played),
        cmocka_unit_test(the_formulas_count_what_all_ranks_do),
        cmocka_unit_test(both_on_one_rank_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
