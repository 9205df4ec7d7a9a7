/*
 * Collectives that do not overlap (`run.overlap`): while one of them runs, its rank computes
 * nothing; a step has the same ops and bytes, and is longer; folded or not, and with either engine,
 * the same to the picosecond.
 */
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1600 };

/* `of`: bits of enum stream_of of the streams that wait. */
struct site {
    const char *machine, *mesh, *model, *more, *overlap;
    uint32_t of;
    bool gathers, others; /* Which of their collectives wait; messages to stages do. */
};

static const struct site sites[] = {
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"fsdp\": [\"x\", \"y\"]}", "\"llama-3-8b\"",
     "\"remat\": \"block\"", "{\"fsdp\": false}", STREAM_OF_FSDP, true, true},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"fsdp\": [\"x\", \"y\"]}", "\"llama-3-8b\"",
     "\"gather\": \"tensor\"", "{\"fsdp\": \"reductions\"}", STREAM_OF_FSDP, true, false},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"fsdp\": [\"x\", \"y\"]}", "\"llama-3-8b\"",
     "\"accumulate\": 2", "{\"fsdp\": \"gathers\"}", STREAM_OF_FSDP, false, true},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\", \"slices\": 2",
     "{\"fsdp\": [\"x\", \"y\"], \"dp\": [\"slice\"]}", "\"llama-3-8b\"", "\"remat\": \"block\"",
     "{\"dcn\": \"gathers\"}", STREAM_OF_DP, false, true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"gpu\"], \"dp\": [\"node\"]}",
     "\"llama-3-8b\"", "\"zero\": 2, \"accumulate\": 2, \"activations\": \"tokens\"",
     "{\"dp\": false, \"tp\": false}", STREAM_OF_DP | STREAM_OF_TP, true, true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"dp\": [\"node\"], \"ep\": [\"gpu\"]}",
     "\"deepseek-v2-lite\"", "\"zero\": 1", "{\"ep\": false}", STREAM_OF_EP, true, true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"tp\": [\"gpu\"], \"pp\": [\"node\"]}",
     "\"llama-3-8b\"", "\"accumulate\": 8, \"schedule\": \"interleaved:2\"", "{\"pp\": false}",
     STREAM_OF_NEXT | STREAM_OF_PREVIOUS, true, true},
    /* Stages gather parts of messages. */
    {"\"chip\": \"h100-sxm\", \"nodes\": 4", "{\"tp\": [\"gpu\"], \"pp\": [\"node\"]}",
     "\"llama-3-8b\"",
     "\"accumulate\": 8, \"schedule\": \"interleaved:2\", \"activations\": \"replicated\"",
     "{\"pp\": false}", STREAM_OF_TP | STREAM_OF_NEXT | STREAM_OF_PREVIOUS, true, false},
    /* Ops before which streams of four roles end. */
    {"\"chip\": \"h100-sxm\", \"nodes\": 16",
     "{\"tp\": [\"gpu:2\"], \"ep\": [\"gpu:4\"], \"dp\": [\"node:4\"], \"pp\": [\"node:4\"]}",
     "\"qwen3-30b-a3b\"", "\"zero\": 2, \"accumulate\": 8, \"schedule\": \"1f1b\"",
     "{\"dp\": false, \"tp\": false, \"ep\": false, \"pp\": false}",
     STREAM_OF_DP | STREAM_OF_TP | STREAM_OF_EP | STREAM_OF_NEXT | STREAM_OF_PREVIOUS, true, true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 16",
     "{\"tp\": [\"gpu:2\"], \"ep\": [\"gpu:4\", \"tp\"], \"dp\": [\"node:4\"], \"pp\": "
     "[\"node:4\"]}",
     "\"qwen3-30b-a3b\"",
     "\"zero\": 2, \"accumulate\": 8, \"activations\": \"tokens\", \"schedule\": \"interleaved:2\"",
     "{\"dp\": false, \"tp\": false, \"ep\": false, \"pp\": false}",
     STREAM_OF_DP | STREAM_OF_TP | STREAM_OF_EP | STREAM_OF_NEXT | STREAM_OF_PREVIOUS, true, true},
};
enum { SITES = sizeof sites / sizeof *sites };

static void play(struct play *play_, const struct site *site, const char *overlap,
                 const struct play_options *options)
{
    char text[TEXT_BYTES];
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"ideal\"}, \"mesh\": %s, "
              "\"workload\": {\"kind\": \"train_step\", \"model\": %s, \"batch_tokens\": 131072, "
              "\"sequence_length\": 2048, \"allow_oversubscription\": true, %s}, \"run\": "
              "{\"steps\": 1, \"overlap\": %s}}",
              site->machine, site->mesh, site->model, site->more, overlap);
    play_run(play_, text, options);
}

static bool waits(const struct play *played, const struct site *site,
                  const struct trace_record *record)
{
    const struct program *program = &played->program;
    const struct program_stream *stream = &program->stream[record->stream];
    const struct program_role *role = &program->roles[0];
    const struct program_block *block = program_slot_block(role, record->slot);
    const struct program_op *op = &program->templates[block->template_index].op[record->op];
    if (op->kind != PROGRAM_OP_COLLECTIVE && op->kind != PROGRAM_OP_SEND) return false;
    if (stream->use.of == 0 || (stream->use.of & ~site->of) != 0) return false;
    if (op->kind == PROGRAM_OP_SEND) return true;
    bool const gathers = program->plans[op->index].kind == COLLECTIVE_ALL_GATHER;
    return gathers ? site->gathers : site->others;
}

/* Of the shown rank: the time that collectives of the site run at once with ops of compute, or with
 * each other. */
static int64_t both_ps(const struct play *played, const struct site *site)
{
    const struct trace_record *record = played->trace.records.record;
    uint64_t const count = played->trace.records.count;
    int64_t sum_ps = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (record[i].kind != TRACE_OP || !waits(played, site, &record[i])) continue;
        for (uint64_t k = 0; k < count; k++) {
            if (record[k].kind != TRACE_OP || record[k].chip != record[i].chip || k == i) continue;
            if (record[k].stream != PROGRAM_COMPUTE && !waits(played, site, &record[k])) continue;
            int64_t const begin =
                record[k].begin_ps > record[i].begin_ps ? record[k].begin_ps : record[i].begin_ps;
            int64_t const end =
                record[k].end_ps < record[i].end_ps ? record[k].end_ps : record[i].end_ps;
            if (end > begin) sum_ps += end - begin;
        }
    }
    return sum_ps;
}

static void nothing_is_computed_meanwhile(void **state)
{
    (void)state;
    struct play_options const shown = {.record = true, .every_layer = true, .engine = "fast"};
    struct play_options const full = {.full = true, .engine = "fast"};
    struct play_options const reference = {.engine = "reference"};
    uint32_t walked = 0;
    for (uint32_t i = 0; i < SITES; i++) {
        const struct site *site = &sites[i];
        struct play beside, behind, whole, other;
        if (sampling_skips(&walked)) continue;
        play(&beside, site, "{}", &shown);
        play(&behind, site, site->overlap, &shown);
        play(&whole, site, site->overlap, &full);
        play(&other, site, site->overlap, &reference);
        struct walk_collectives const before = walk_collectives(&beside.program),
                                      after = walk_collectives(&behind.program);
        assert_int_equal(before.count, after.count);
        assert_int_equal(before.bytes, after.bytes);
        assert_true(both_ps(&beside, site) > 0);
        assert_int_equal(both_ps(&behind, site), 0);
        assert_true(behind.trace.step_ps > beside.trace.step_ps);
        assert_int_equal(behind.trace.step_ps, whole.trace.step_ps);
        assert_int_equal(behind.trace.step_ps, other.trace.step_ps);
        play_close(&beside);
        play_close(&behind);
        play_close(&whole);
        play_close(&other);
    }
}

/* Compute ops of a template before the first that reads a gather, or UINT32_MAX: none does. */
static uint32_t computed_before_reader(const struct program_template *template, uint32_t gather)
{
    const struct program_op *of = &template->op[gather];
    for (uint32_t i = 0; i < template->op_count; i++)
        for (uint32_t n = 0; n < template->op[i].need_count; n++) {
            const struct program_need *need = &template->op[i].need[n];
            if (template->op[i].stream == PROGRAM_COMPUTE && need->stream == of->stream &&
                need->slot == 0 && need->part > of->part_first)
                return template->op[i].part_first;
        }
    return UINT32_MAX;
}

/* Not at the begin of their layer, where memory would hold the weights for longer. */
static void gathers_stand_before_their_readers(void **state)
{
    (void)state;
    static const struct site site = {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"",
                                     "{\"fsdp\": [\"x\", \"y\"]}",
                                     "\"llama-3-8b\"",
                                     "\"gather\": \"tensor\"",
                                     NULL,
                                     STREAM_OF_FSDP,
                                     true,
                                     true};
    struct play_options const lower_only = {.lower_only = true};
    struct play played;
    uint32_t behind = 0;
    play(&played, &site, "{\"fsdp\": \"reductions\"}", &lower_only);
    for (uint32_t t = 0; t < played.program.template_count; t++) {
        const struct program_template *template = &played.program.templates[t];
        uint32_t last = 0; /* The place of the gather before. */
        for (uint32_t i = 0; i < template->op_count; i++) {
            const struct program_op *op = &template->op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE ||
                played.program.plans[op->index].kind != COLLECTIVE_ALL_GATHER)
                continue;
            uint32_t const place = computed_before_reader(template, i);
            bool waits = place == last || place == UINT32_MAX;
            for (uint32_t n = 0; n < op->need_count; n++)
                waits = waits || (op->need[n].stream == PROGRAM_COMPUTE && op->need[n].slot == 0 &&
                                  !op->need[n].begun && op->need[n].part == place);
            assert_true(waits);
            behind += place != UINT32_MAX && place > 0;
            last = place;
        }
    }
    assert_true(behind >= 6); /* Of a layer forward and backward. */
    play_close(&played);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_computed_meanwhile),
        cmocka_unit_test(gathers_stand_before_their_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
