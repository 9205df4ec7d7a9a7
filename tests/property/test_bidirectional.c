/*
 * Two copies of a model over the ranks of a pipeline (DualPipe): each rank holds two stages, gives
 * their gradients to the rank that holds the same ones and updates when it has the sums; what
 * travels is announced by the model's sizes, over as many links as the ranks are apart; folded or
 * not, instants are the same.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400, WIDTH = 4096, WIDE = 16384, LAYERS = 24, TOKENS = 4096 };

static const char mlp[] = "{\"kind\": \"mlp\", \"D\": 4096, \"F\": 16384, \"layers\": 24, "
                          "\"matrices\": 2}";

struct place {
    const char *machine, *mesh, *model, *more;
    uint32_t pp, data;
};

static const struct place places[] = {
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"pp\": [\"x\"], \"fsdp\": [\"y\"], \"tp\": [\"z\"]}", "\"llama-3-8b\"", "", 4, 4},
    {/* Two are half a ring apart. */
     "\"chip\": \"tpu-v5p\", \"shape\": \"6x4\", \"unrealisable\": true, \"wrap\": {\"x\": true, "
     "\"y\": true}",
     "{\"pp\": [\"x\"], \"dp\": [\"y\"]}", mlp, ", \"zero\": 1", 6, 4},
    {/* A line, whose middle all cross. */ "\"chip\": \"tpu-v5e\", \"shape\": \"8x4\"",
     "{\"pp\": [\"x\"], \"dp\": [\"y\"]}", mlp, "", 8, 4},
    {/* Pipelines of neighbours, and others beside them. */
     "\"chip\": \"tpu-v5p\", \"shape\": \"8x4x4\"",
     "{\"pp\": [\"x:4\"], \"dp\": [\"x:2\", \"y\"], \"tp\": [\"z\"]"
     ", \"order\": [\"pp\", \"dp\", \"tp\"]}",
     "\"llama-3-8b\"", ", \"zero\": 2", 4, 8},
    {/* Ranks that are two apart. */ "\"chip\": \"tpu-v5p\", \"shape\": \"8x4x4\"",
     "{\"dp\": [\"x:2\", \"y\"], \"tp\": [\"z\"], \"pp\": [\"x:4\"]}", "\"llama-3-8b\"",
     ", \"zero\": 1", 4, 8},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"tp\": [\"gpu\"], \"pp\": [\"node:4\"], \"dp\": [\"node:2\"]"
     ", \"order\": [\"tp\", \"pp\", \"dp\"]}",
     "\"llama-3-8b\"", ", \"zero\": 1", 4, 2},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"tp\": [\"gpu:2\"], \"pp\": [\"gpu:4\"], \"fsdp\": [\"node\"]}", "\"llama-3-8b\"",
     ", \"regather\": \"stage\"", 4, 2},
    {/* No more than two ranks. */ "\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"tp\": [\"gpu:4\"], \"pp\": [\"gpu:2\"], \"dp\": [\"node\"]}", "\"llama-3-8b\"", "", 2, 2},
    {"\"chip\": \"h100-sxm\", \"nodes\": 8, \"network\": {\"leaf\": {\"oversubscription\": 4, "
     "\"policy\": \"hash\"}}",
     "{\"pp\": [\"node:4\"], \"dp\": [\"node:2\"], \"ep\": [\"gpu\"]"
     ", \"order\": [\"pp\", \"dp\", \"ep\"]}",
     "\"mixtral-8x7b\"", ", \"zero\": 1", 4, 16},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x2\", \"slices\": 4",
     "{\"pp\": [\"slice\"], \"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]}", "\"llama-3-8b\"", "", 4,
     4},
    {/* Modules that predict further tokens look up what the other stage does too. */
     "\"chip\": \"h100-sxm\", \"nodes\": 8",
     "{\"pp\": [\"node:4\"], \"dp\": [\"node:2\"], \"ep\": [\"gpu\"]"
     ", \"order\": [\"pp\", \"dp\", \"ep\"]}",
     "\"tests/property/mtp-2.json\"", ", \"zero\": 1, \"layout\": \"Ett|tt|t|tmmL\"", 4, 16},
};
enum { PLACES = sizeof places / sizeof *places };

static void text_write(char text[TEXT_BYTES], const struct place *place, uint32_t microbatches)
{
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"title\": \"copies\", \"machine\": {%s, \"profile\": \"ideal\"}, "
              "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": %s, "
              "\"batch_tokens\": %u, \"sequence_length\": %d, \"accumulate\": %u, \"schedule\": "
              "\"dualpipe\", \"allow_oversubscription\": true%s}}",
              place->machine, place->mesh, place->model, TOKENS * place->data * microbatches,
              TOKENS, microbatches, place->more);
}

static void it_is_the_same_however_it_is_played(void **state)
{
    (void)state;
    static const struct play_options reference = {.engine = "reference"};
    uint32_t walked = 0;
    for (uint32_t p = 0; p < PLACES; p++) {
        char text[TEXT_BYTES];
        struct play folded, slow;
        if (sampling_skips(&walked)) continue;
        text_write(text, &places[p], 2 * places[p].pp);
        play_run(&folded, text, NULL);
        walk_alike(&folded, text, NULL);
        assert_int_equal(folded.trace.role_count, places[p].pp);
        play_run(&slow, text, &reference);
        assert_int_equal(folded.trace.digest, slow.trace.digest);
        play_close(&slow);
        play_close(&folded);
    }
}

/* What a rank did with its copies' gradients, in the order in which it did it. */
enum { UNITS_MAX = 64 };
struct unit {
    int64_t sent_begin_ps, received_end_ps, sum_begin_ps, sum_end_ps;
    uint32_t slot; /* Of what was sent. */
    int32_t layer; /* Of it, and of the sum; -1: of the embedding or the head. */
    int32_t sum_layer;
};
struct side {
    struct unit unit[UNITS_MAX];
    uint32_t sent, received, sums;
    uint32_t lookup_slot; /* The last that adds to the embedding's gradient, */
    uint32_t sent_slot;   /* and that in which this is sent. */
    int64_t update_begin_ps;
};

static bool begins(const char *name, const char *wanted)
{
    return strncmp(name, wanted, strlen(wanted)) == 0;
}

static const struct program_block *block_of(const struct play *play,
                                            const struct trace_record *record, uint32_t role)
{
    return program_slot_block(&play->program.roles[role], record->slot);
}

static int32_t layer_of(const struct program_block *block, uint32_t slot)
{
    if (block->layer_first < 0) return -1;
    return block->layer_first + block->layer_step * (int32_t)(slot - block->slot_first);
}

static struct side side_of(const struct play *play, uint32_t role, uint32_t chip)
{
    struct side side = {.update_begin_ps = INT64_MAX};
    for (uint64_t i = 0; i < play->trace.records.count; i++) {
        const struct trace_record *record = &play->trace.records.record[i];
        if (record->kind != TRACE_OP || record->chip != chip) continue;
        const struct program_block *block = block_of(play, record, role);
        const char *name = play->program.templates[block->template_index].op[record->op].name;
        if (begins(name, "send copy's")) {
            assert_true(side.sent < UNITS_MAX);
            side.unit[side.sent].slot = record->slot;
            side.unit[side.sent].layer = layer_of(block, record->slot);
            side.unit[side.sent++].sent_begin_ps = record->begin_ps;
            if (strcmp(block->name, "embedding") == 0) side.sent_slot = record->slot;
        } else if (strstr(name, "embedding.dW") != NULL && record->slot > side.lookup_slot) {
            side.lookup_slot = record->slot;
        } else if (begins(name, "receive copy's")) {
            side.unit[side.received++].received_end_ps = record->end_ps;
        } else if (begins(name, "copy's gradients.sum")) {
            side.unit[side.sums].sum_layer = layer_of(block, record->slot);
            side.unit[side.sums].sum_begin_ps = record->begin_ps;
            side.unit[side.sums++].sum_end_ps = record->end_ps;
        } else if (begins(name, "update") && record->begin_ps < side.update_begin_ps) {
            side.update_begin_ps = record->begin_ps;
        }
    }
    return side;
}

/* The end of all compute and of all reductions of weights before a slot. */
static int64_t gradients_end(const struct play *play, uint32_t chip, uint32_t slot)
{
    int64_t end_ps = 0;
    for (uint64_t i = 0; i < play->trace.records.count; i++) {
        const struct trace_record *record = &play->trace.records.record[i];
        const char *stream = play->program.stream[record->stream].name;
        if (record->kind != TRACE_OP || record->chip != chip || record->slot >= slot) continue;
        bool const gives = begins(stream, "compute") || begins(stream, "reduce dp") ||
                           begins(stream, "reduce fsdp") || begins(stream, "reduce experts");
        if (gives && record->end_ps > end_ps) end_ps = record->end_ps;
    }
    return end_ps;
}

static void sides_check(const struct play *play, const struct side *one, const struct side *other,
                        uint32_t other_chip)
{
    assert_int_equal(one->sent, one->sums);
    assert_int_equal(one->received, one->sums);
    assert_int_equal(one->sums, other->sums);
    assert_true(one->sent_slot >= one->lookup_slot);
    for (uint32_t u = 0; u < one->sums; u++) {
        const struct unit *unit = &one->unit[u], *from = &other->unit[u];
        assert_int_equal(unit->sum_layer, from->layer);
        assert_true(from->sent_begin_ps >= gradients_end(play, other_chip, from->slot));
        assert_true(unit->received_end_ps > from->sent_begin_ps);
        assert_true(unit->sum_begin_ps >= unit->received_end_ps);
        assert_true(unit->sum_end_ps > unit->sum_begin_ps);
        assert_true(one->update_begin_ps >= unit->sum_end_ps);
    }
}

static void both_ranks_have_the_sums_before_they_update(void **state)
{
    (void)state;
    static const struct play_options all = {.full = true};
    uint32_t walked = 0;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t r = 0; r < places[p].pp / 2; r++) {
            char text[TEXT_BYTES];
            struct play play;
            if (sampling_skips(&walked)) continue;
            text_write(text, &places[p], 2 * places[p].pp);
            play_run(&play, text, &all);
            uint32_t at[MACHINE_AXES_MAX], shown[2];
            uint32_t const roles[] = {r, places[p].pp - 1 - r};
            for (uint32_t i = 0; i < 2; i++) {
                program_role_first(&play.program, roles[i], at);
                shown[i] = machine_chip_at(&play.machine, at);
            }
            play_close(&play);
            struct play_options const options = {
                .record = true, .full = true, .shown = shown, .shown_count = 2};
            play_run(&play, text, &options);
            struct side const one = side_of(&play, roles[0], shown[0]);
            struct side const other = side_of(&play, roles[1], shown[1]);
            assert_true(one.sums > 0);
            sides_check(&play, &one, &other, shown[1]);
            sides_check(&play, &other, &one, shown[0]);
            play_close(&play);
        }
}

static void mlp_write(char text[TEXT_BYTES], uint32_t ranks, bool ring, uint32_t microbatches)
{
    char machine[200];
    (void)snprintf(machine, sizeof machine,
                   "\"chip\": \"tpu-v5p\", \"shape\": \"%u\", \"unrealisable\": true, "
                   "\"wrap\": {\"x\": %s}",
                   ranks, ring ? "true" : "false");
    struct place const place = {machine, "{\"pp\": [\"x\"]}", mlp, "", ranks, 1};
    text_write(text, &place, microbatches);
}

/* Alone on a ring or a line: messages of activations and of their gradients cross a link, those of
 * a stage's weights as many as lie between the ranks. */
static void bytes_cross_the_links_between(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= 12; ranks += 2)
        for (uint32_t ring = 0; ring < 2; ring++)
            for (uint32_t microbatches = 2 * ranks; microbatches <= 2 * ranks + 4;
                 microbatches += 4) {
                char text[TEXT_BYTES];
                struct play play;
                if (LAYERS % ranks != 0 || (ring && ranks == 2)) continue;
                mlp_write(text, ranks, ring, microbatches);
                play_run(&play, text, NULL);
                uint64_t const stage = UINT64_C(2) * WIDTH * WIDE * LAYERS / ranks;
                uint64_t const message = UINT64_C(2) * WIDTH * TOKENS;
                uint64_t crossed = 2 * microbatches * (ranks - 1) * message;
                for (uint32_t r = 0; r < ranks; r++) {
                    uint32_t hops = 2 * r < ranks ? ranks - 1 - 2 * r : 2 * r + 1 - ranks;
                    if (ring && 2 * hops > ranks) hops = ranks - hops;
                    crossed += 2 * stage * 2 * hops;
                    uint64_t const sides = r == 0 || r + 1 == ranks ? 1 : 2;
                    assert_int_equal(play.trace.roles[r].sent_bytes,
                                     2 * sides * (microbatches / 2) * message + 2 * stage * 2);
                    const struct program_role *role = &play.program.roles[r];
                    assert_int_equal(role->resident_bytes[PROGRAM_MEMORY_PARAMETERS],
                                     2 * 2 * stage);
                }
                assert_int_equal(play.trace.link[0].sum_bytes + play.trace.link[1].sum_bytes,
                                 crossed);
                play_close(&play);
            }
}

/* On a ring of four each rank lies beside the one that has the same stages: the last message comes
 * when it has crossed a link, and only the sum and the updates follow. */
static void the_last_gradients_take_their_time(void **state)
{
    (void)state;
    static const uint32_t shown[] = {0, 1, 2, 3};
    static const struct play_options all = {
        .full = true, .record = true, .shown = shown, .shown_count = 4};
    char text[TEXT_BYTES];
    struct play play;
    struct side side[4];
    mlp_write(text, 4, true, 8);
    play_run(&play, text, &all);
    for (uint32_t r = 0; r < 4; r++) side[r] = side_of(&play, r, r);
    int64_t const hop_ps =
        units_duration_ps(UINT64_C(2) * 2 * WIDTH * WIDE, UINT64_C(90000000000)) + TIME_PS_PER_US;
    for (uint32_t r = 0; r < 4; r++) {
        const struct side *own = &side[r], *other = &side[3 - r];
        uint32_t const last = own->sums - 1;
        assert_int_equal(own->sums, 2 * LAYERS / 4);
        assert_int_equal(own->unit[last].received_end_ps, other->unit[last].sent_begin_ps + hop_ps);
        assert_int_equal(own->unit[last].sum_begin_ps, own->unit[last].received_end_ps);
        assert_int_equal(own->update_begin_ps, own->unit[last].sum_end_ps);
    }
    play_close(&play);
}

/* The book's rule for dp weighs what a chip reduces: both stages' gradients, of either copy. */
static void copies_are_reduced_each(void **state)
{
    (void)state;
    static const struct scenario_setting plain = {.text = "/workload/schedule=\"1f1b\""};
    static const struct play_options lower = {.lower_only = true};
    static const struct play_options once = {
        .lower_only = true, .settings = &plain, .setting_count = 1};
    char text[TEXT_BYTES];
    struct play two, one;
    text_write(text, &places[5], 8);
    play_run(&two, text, &lower);
    play_run(&one, text, &once);
    assert_true(one.roofline.rules.dp_critical_tokens > 0);
    case_near(two.roofline.rules.dp_critical_tokens, 2 * one.roofline.rules.dp_critical_tokens,
              1e-12);
    play_close(&two);
    play_close(&one);
}

static void what_two_copies_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t ranks, microbatches;
        const char *words;
    } rows[] = {
        {3, 12, "an even number of ranks; the nearest to 3 are 2 and 4"},
        {4, 6, "at least twice the ranks; the nearest to 6 is 8"},
        {4, 9,
         "an even number of microbatches, at least twice the ranks; the nearest to 9 are 8 and 10"},
    };
    char text[TEXT_BYTES];
    struct play play;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mlp_write(text, rows[i].ranks, true, rows[i].microbatches);
        case_refused(play_try(&play, text, NULL, &case_error), STATUS_INVALID, "/workload/schedule",
                     rows[i].words);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_same_however_it_is_played),
        cmocka_unit_test(both_ranks_have_the_sums_before_they_update),
        cmocka_unit_test(bytes_cross_the_links_between),
        cmocka_unit_test(the_last_gradients_take_their_time),
        cmocka_unit_test(copies_are_reduced_each),
        cmocka_unit_test(what_two_copies_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}
