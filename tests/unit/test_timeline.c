/* The timeline, decoded by a reader of its own: slices begin and end and nest, names are known. */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/report/protobuf.h"
#include "sim/report/timeline.h"
#include "tests/support/case.h"
#include "tests/support/perfetto.h"
#include "tests/support/play.h"
#include "tests/support/scene.h"
#include "tests/unit/report_case.h"

static struct report_case report;
static struct strbuf text;

static void play(bool collective_matmul)
{
    memset(&report, 0, sizeof report);
    strbuf_free(&text);
    assert_int_equal(case_build(&report.made, &case_mlp, "4x4x4", NULL, "x y", "z"), STATUS_OK);
    report.made.plan.collective_matmul = collective_matmul;
    report.made.plan.model.layers = 3;
    if (case_lower(&report.made) != STATUS_OK) fail_msg("%s", report.made.error.message);
    report_case_play(&report);
    case_ok(timeline_write(report.made.arena, &report.input, &text, &case_error));
}

static void slices_of_every_track_begin_end_and_nest(void **state)
{
    (void)state;
    for (int chunks = 0; chunks < 2; chunks++) {
        play(chunks == 1);
        perfetto_read(&text);
        uint32_t slices = 0;
        for (uint32_t i = 0; i < PERFETTO_TRACKS; i++) {
            assert_int_equal(perfetto.track[i].depth, 0);
            slices += perfetto.track[i].slices;
        }
        assert_true(slices > 100);
        /* Phases hold layers, ops hold chunks; nothing else is within another. */
        assert_int_equal(perfetto_track(0, "layers and streams")->most_depth, 2);
        assert_int_equal(perfetto_track(0, "compute")->most_depth, chunks == 1 ? 2 : 1);
        assert_int_equal(perfetto_track(0, "gather fsdp")->most_depth, 1);
        assert_int_equal(perfetto_track(0, "ICI z+")->most_depth, 1);
        case_free(&report.made);
    }
}

static void every_shown_chip_is_a_process_with_the_same_tracks(void **state)
{
    (void)state;
    play(true);
    perfetto_read(&text);
    assert_string_equal(perfetto.track[256].name, "chip 0 (0,0,0)");
    assert_string_equal(perfetto.track[512].name, "chip 5 (0,1,1)");
    assert_int_equal(perfetto.track[256].parent, 0);
    assert_true(perfetto.track[256].rank < perfetto.track[512].rank);
    assert_true(perfetto_track(0, "ICI x+")->rank < perfetto_track(0, "ICI z+")->rank);
    static const char *const names[] = {"compute", "gather tp", "ICI x+", "MXU", "total"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (uint64_t chip = 0; chip < 2; chip++) {
            struct perfetto_track *track = perfetto_track(chip, names[i]);
            assert_true(track->slices + track->points > 0);
            assert_true(track->parent / 256 == chip + 1);
        }
    case_free(&report.made);
}

/* Folded, one replayed chip stands for many: each that is asked for keeps its own name. */
static void a_folded_chip_is_shown_by_the_coordinates_that_were_asked_for(void **state)
{
    (void)state;
    play(true);
    report.trace.shown.chip[1] = 7;
    strbuf_free(&text);
    case_ok(timeline_write(report.made.arena, &report.input, &text, &case_error));
    perfetto_read(&text);
    assert_string_equal(perfetto.track[512].name, "chip 7 (0,1,3), replayed as (0,1,1)");
    assert_true(perfetto_track(1, "compute")->slices > 0);
    case_free(&report.made);
}

static void every_op_and_transfer_that_was_recorded_is_a_slice(void **state)
{
    (void)state;
    play(false);
    perfetto_read(&text);
    uint32_t ops = 0, transfers = 0, shown_transfers = 0;
    for (uint64_t i = 0; i < report.trace.records.count; i++) {
        const struct trace_record *record = &report.trace.records.record[i];
        if (record->chip != 0) continue;
        ops += record->kind == TRACE_OP && record->stream == PROGRAM_COMPUTE;
        transfers += record->kind == TRACE_TRANSFER;
    }
    assert_int_equal(perfetto_track(0, "compute")->slices, ops);
    for (uint32_t port = 0; port < 6; port++) {
        char name[16];
        (void)snprintf(name, sizeof name, "ICI %s", machine_port_name(report.input.machine, port));
        for (uint64_t t = 256; t < 512; t++)
            if (perfetto.track[t].described && strcmp(perfetto.track[t].name, name) == 0)
                shown_transfers += perfetto.track[t].slices;
    }
    assert_true(transfers > 10);
    assert_int_equal(shown_transfers, transfers);
    case_free(&report.made);
}

/* What a curve of the first chip shows: how many changes, the highest, the last. */
struct curve {
    uint64_t held, written, most;
    uint32_t points;
};

static void curve_show(struct curve *curve)
{
    if (curve->points > 0 && curve->held == curve->written) return;
    curve->written = curve->held;
    if (curve->held > curve->most) curve->most = curve->held;
    curve->points++;
}

static void assert_curve(const char *name, const struct curve *curve)
{
    const struct perfetto_track *track = perfetto_track(0, name);
    assert_true(track->counter);
    if (track->points != curve->points || track->most_value != curve->most ||
        track->last_value != curve->held)
        fail_msg("%s: %u points up to %llu, not %u up to %llu", name, track->points,
                 (unsigned long long)track->most_value, curve->points,
                 (unsigned long long)curve->most);
}

static bool is_described(const char *name)
{
    for (uint32_t i = 256; i < 512; i++)
        if (perfetto.track[i].described && strcmp(perfetto.track[i].name, name) == 0) return true;
    return false;
}

static bool is_memory(const struct trace_record *record)
{
    return record->chip == 0 && record->kind == TRACE_MEMORY;
}

static int64_t next_change(const struct trace_records *records, int64_t after_ps)
{
    int64_t next_ps = INT64_MAX;
    for (uint64_t i = 0; i < records->count; i++) {
        const struct trace_record *record = &records->record[i];
        if (is_memory(record) && record->begin_ps > after_ps && record->begin_ps < next_ps)
            next_ps = record->begin_ps;
    }
    return next_ps;
}

/* Draws the timeline. Of several changes at one instant a curve has the last. */
static void curves_show_each_change(struct arena *arena, const struct report_input *input,
                                    struct curve ret_part[PROGRAM_MEMORY_COUNT])
{
    static const char *const names[] = {
#define X(name, text) text,
        PROGRAM_MEMORY_TABLE(X)
#undef X
    };
    const struct trace_records *records = &input->trace->records;
    strbuf_free(&text);
    case_ok(timeline_write(arena, input, &text, &case_error));
    perfetto_read(&text);
    struct curve part[PROGRAM_MEMORY_COUNT] = {{0}}, total = {0};
    for (int64_t now_ps = next_change(records, -1); now_ps != INT64_MAX;
         now_ps = next_change(records, now_ps)) {
        for (uint64_t i = 0; i < records->count; i++) {
            const struct trace_record *record = &records->record[i];
            if (is_memory(record) && record->begin_ps == now_ps)
                part[record->lane].held = record->bytes;
        }
        total.held = 0;
        for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
            curve_show(&part[m]);
            total.held += part[m].held;
        }
        curve_show(&total);
    }
    assert_true(total.points > 2);
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
        if (m < PROGRAM_OVERHEAD_FIRST || part[m].most > 0)
            assert_curve(names[m], &part[m]);
        else
            assert_false(is_described(names[m]));
    }
    assert_curve("total", &total);
    memcpy(ret_part, part, sizeof part);
}

static void every_memory_curve_shows_each_change(void **state)
{
    (void)state;
    struct curve part[PROGRAM_MEMORY_COUNT];
    play(false);
    curves_show_each_change(report.made.arena, &report.input, part);
    assert_true(part[PROGRAM_MEMORY_GATHERED].points > 1);
    case_free(&report.made);
}

#define BIT(name) (UINT64_C(1) << PROGRAM_MEMORY_##name)

/* What a step begins with is a change from nothing: of training with a framework the optimizer and
 * what the framework holds, of inference weights and cache. */
static void curves_begin_with_what_a_step_begins_with(void **state)
{
    (void)state;
    static const char on_8[] =
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"gpus\": 8}, \"mesh\": {\"tp\": "
        "[\"gpu:2\"], "
        "\"%s\": [\"gpu:4\"]}, \"workload\": {\"model\": {\"model_type\": \"llama\", "
        "\"hidden_size\": 512, "
        "\"intermediate_size\": 1024, \"num_hidden_layers\": 2, \"num_attention_heads\": 8, "
        "\"num_key_value_heads\": 8, \"head_dim\": 64, \"vocab_size\": 2048}, %s}}";
    static const struct {
        const char *data, *work;
        uint64_t wanted; /* Categories that hold something, as bits. */
    } cases[] = {
        {"fsdp",
         "\"kind\": \"train_step\", \"memory\": \"framework\", \"batch_tokens\": 16384, "
         "\"sequence_length\": 1024, \"accumulate\": 2",
         BIT(PARAMETERS) | BIT(OPTIMIZER) | BIT(MASTER) | BIT(MAIN_GRADIENTS) | BIT(LOSS) |
             BIT(COPIES) | BIT(NCCL) | BIT(CONTEXT)},
        {"dp", "\"kind\": \"decode\", \"batch\": 16, \"context\": 1024",
         BIT(PARAMETERS) | BIT(CACHE)},
    };
    static const struct play_options record = {.record = true};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct curve part[PROGRAM_MEMORY_COUNT];
        struct play step;
        char scenario[1024];
        uint64_t held = 0;
        case_text(scenario, sizeof scenario, on_8, cases[i].data, cases[i].work);
        play_run(&step, scenario, &record);
        struct report_input const input = play_report(&step);
        curves_show_each_change(step.arena, &input, part);
        for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++)
            held |= (uint64_t)(part[m].most > 0) << m;
        assert_int_equal(held & cases[i].wanted, cases[i].wanted);
        play_close(&step);
    }
}

static void overlapping_records_of_one_stream_get_a_track_each(void **state)
{
    (void)state;
    memset(&report, 0, sizeof report);
    assert_int_equal(case_build(&report.made, &case_mlp, "4x4x4", NULL, "x y", "z"), STATUS_OK);
    assert_int_equal(case_lower(&report.made), STATUS_OK);
    report_case_play(&report);
    struct trace_record *first = NULL;
    for (uint64_t i = 0; i < report.trace.records.count; i++) {
        struct trace_record *record = &report.trace.records.record[i];
        if (record->kind != TRACE_TRANSFER || record->chip != 0) continue;
        if (first != NULL && record->port == first->port) {
            record->begin_ps = first->end_ps - 1000; /* Before the first has left, */
            record->slot = first->slot;              /* as messages of one op's lanes do. */
            record->op = first->op;
            break;
        }
        if (first == NULL) first = record;
    }
    strbuf_free(&text);
    case_ok(timeline_write(report.made.arena, &report.input, &text, &case_error));
    perfetto_read(&text);
    char name[32];
    (void)snprintf(name, sizeof name, "ICI %s (2)",
                   machine_port_name(report.input.machine, first->port));
    assert_int_equal(perfetto_track(0, name)->slices, 1);
    for (uint32_t i = 0; i < PERFETTO_TRACKS; i++)
        if (strncmp(perfetto.track[i].name, "ICI ", 4) == 0)
            assert_true(perfetto.track[i].most_depth <= 1);
    case_free(&report.made);
}

/* The slices of all ports; each stands on a track of its own place among its parent's. */
static uint32_t message_slices(void)
{
    uint32_t slices = 0;
    for (uint32_t i = 0; i < PERFETTO_TRACKS; i++) {
        const struct perfetto_track *track = &perfetto.track[i];
        if (strncmp(track->name, "ICI x", 5) != 0) continue;
        assert_int_equal(track->most_depth, 1);
        slices += track->slices;
        for (uint32_t other = 0; other < i; other++)
            if (perfetto.track[other].described && perfetto.track[other].parent == track->parent)
                assert_true(perfetto.track[other].rank < track->rank);
    }
    return slices;
}

static void timeline_of(struct scene *scene, enum arbitration arbitration)
{
    scene->arbitration = arbitration;
    struct trace const trace = scene_run(scene, 1, true, true);
    struct report_input const input = {.title = "turns",
                                       .question = "",
                                       .machine = &scene->machine,
                                       .program = &scene->program,
                                       .trace = &trace};
    strbuf_free(&text);
    case_ok(timeline_write(scene->arena, &input, &text, &case_error));
    perfetto_read(&text);
}

/* Messages of streams that take turns at a link are under way at once, as many as streams, and
 * some of a stream pass the chip on their way. Each track of a chip has a number and a place
 * of its own. */
static void every_message_is_a_slice_however_many_overlap(void **state)
{
    (void)state;
    enum { STREAMS = 12, UPWARDS = 9, HOPS_MOST = 3, CHIPS = 2 };
    static const enum arbitration arbitrations[] = {ARBITRATION_FAIR, ARBITRATION_PRIORITY,
                                                    ARBITRATION_FIFO};
    static const uint32_t shown[CHIPS] = {0, 5};
    struct scene scene;
    uint32_t messages = 0;
    scene_open(&scene, 8, 1, 1, true);
    scene.shown = shown;
    scene.shown_count = CHIPS;
    scene.segment_bytes = 1 << 20;
    for (uint32_t i = 0; i < STREAMS; i++) {
        int32_t const hops = 1 + (int32_t)(i % HOPS_MOST);
        struct plan_request const request = {.kind = COLLECTIVE_PERMUTE,
                                             .group = scene_group(&scene, true, false, false),
                                             .size_bytes = 4 * scene.segment_bytes,
                                             .offset = {i < UPWARDS ? hops : -hops}};
        char name[] = {(char)('a' + i), '\0'};
        uint32_t const stream = scene_stream(&scene, arena_text(scene.arena, name));
        (void)scene_plan(&scene, stream, &request);
        messages += (uint32_t)hops; /* A message of each chip on each of its links. */
    }
    for (uint32_t a = 0; a < sizeof arbitrations / sizeof *arbitrations; a++) {
        timeline_of(&scene, arbitrations[a]);
        assert_int_equal(message_slices(), CHIPS * messages);
        char name[16];
        (void)snprintf(name, sizeof name, "ICI x+ (%u)", UPWARDS);
        bool const takes_turns = arbitrations[a] != ARBITRATION_FIFO; /* All are as urgent. */
        assert_int_equal(is_described(name), takes_turns);
    }
    scene_close(&scene);
}

static void two_writes_are_the_same_bytes(void **state)
{
    (void)state;
    struct strbuf again = {0};
    play(true);
    case_ok(timeline_write(report.made.arena, &report.input, &again, &case_error));
    assert_int_equal(text.size_bytes, again.size_bytes);
    assert_memory_equal(text.bytes, again.bytes, text.size_bytes);
    strbuf_free(&again);
    case_free(&report.made);
}

static void messages_nest_whatever_their_length(void **state)
{
    (void)state;
    struct strbuf message = {0};
    char long_text[40000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    for (uint32_t length = 0; length < sizeof long_text; length = length * 5 / 4 + 1) {
        strbuf_free(&message);
        uint64_t const outer = protobuf_begin(&message, 7);
        uint64_t const inner = protobuf_begin(&message, 3);
        protobuf_string(&message, 2, long_text + sizeof long_text - 1 - length);
        protobuf_unsigned(&message, 5, UINT64_MAX);
        protobuf_end(&message, inner);
        protobuf_double(&message, 4, -2.5);
        protobuf_end(&message, outer);
        const uint8_t *at = (const uint8_t *)message.bytes, *end = at + message.size_bytes;
        struct perfetto_field first, second, field;
        assert_true(perfetto_field_read(&at, end, &first));
        assert_true(at == end && first.number == 7);
        assert_true(perfetto_field_find(&first, 3, &second) &&
                    perfetto_field_find(&second, 2, &field));
        assert_int_equal(field.size_bytes, length);
        assert_true(perfetto_number(&second, 5) == UINT64_MAX);
        assert_true(perfetto_number(&first, 4) == UINT64_C(0xc004000000000000));
    }
    strbuf_free(&message);
}

static int free_text(void **state)
{
    (void)state;
    strbuf_free(&text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_of_every_track_begin_end_and_nest),
        cmocka_unit_test(every_shown_chip_is_a_process_with_the_same_tracks),
        cmocka_unit_test(a_folded_chip_is_shown_by_the_coordinates_that_were_asked_for),
        cmocka_unit_test(every_op_and_transfer_that_was_recorded_is_a_slice),
        cmocka_unit_test(every_memory_curve_shows_each_change),
        cmocka_unit_test(curves_begin_with_what_a_step_begins_with),
        cmocka_unit_test(overlapping_records_of_one_stream_get_a_track_each),
        cmocka_unit_test(every_message_is_a_slice_however_many_overlap),
        cmocka_unit_test(two_writes_are_the_same_bytes),
        cmocka_unit_test(messages_nest_whatever_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, free_text);
}
