/* The timeline, decoded by a reader of its own: slices begin and end and nest, names are known. */
#include <stdio.h>
#include <string.h>

#include "sim/base/text.h"
#include "sim/report/protobuf.h"
#include "sim/report/timeline.h"
#include "tests/support/case.h"
#include "tests/unit/report_case.h"

struct field {
    uint32_t number;
    uint32_t wire;
    uint64_t value;       /* Varint, or the bits of a fixed64. */
    const uint8_t *bytes; /* Length delimited. */
    uint64_t size_bytes;
};

static uint64_t read_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
        assert_true(*at < end);
        uint8_t const byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    fail_msg("a varint of more than ten bytes");
    return 0;
}

static bool read_field(const uint8_t **at, const uint8_t *end, struct field *field)
{
    if (*at == end) return false;
    uint64_t const tag = read_varint(at, end);
    *field = (struct field){.number = (uint32_t)(tag >> 3), .wire = (uint32_t)(tag & 7)};
    if (field->wire == 0) {
        field->value = read_varint(at, end);
    } else if (field->wire == 1) {
        assert_true(end - *at >= 8);
        for (uint32_t i = 0; i < 8; i++) field->value |= (uint64_t)(*at)[i] << 8 * i;
        *at += 8;
    } else {
        assert_int_equal(field->wire, 2);
        field->size_bytes = read_varint(at, end);
        assert_true((uint64_t)(end - *at) >= field->size_bytes);
        field->bytes = *at;
        *at += field->size_bytes;
    }
    return true;
}

/* The first field of that number in a message; false if there is none. */
static bool find_field(const struct field *message, uint32_t number, struct field *ret_field)
{
    const uint8_t *at = message->bytes, *end = message->bytes + message->size_bytes;
    while (read_field(&at, end, ret_field))
        if (ret_field->number == number) return true;
    return false;
}

static uint64_t number_of(const struct field *message, uint32_t number)
{
    struct field field;
    return find_field(message, number, &field) ? field.value : 0;
}

enum { TRACKS = 4096, DEPTH = 4, NAMES = 8192 };

struct track {
    uint64_t parent;
    bool described, counter;
    char name[64];
    uint64_t open_end[DEPTH];
    uint32_t depth, slices, most_depth;
    uint64_t last_ns;
    uint64_t last_value, most_value;
    uint32_t points;
};

struct decoded {
    struct track track[TRACKS];
    bool event_name[NAMES], annotation_name[NAMES];
    char name[NAMES][48];
    uint32_t packets, events, cleared;
};

static struct decoded decoded;

static void copy_text(char *to, size_t room, const struct field *field)
{
    assert_true(field->size_bytes < room);
    memcpy(to, field->bytes, field->size_bytes);
    to[field->size_bytes] = '\0';
}

static void decode_interned(const struct field *interned)
{
    const uint8_t *at = interned->bytes, *end = interned->bytes + interned->size_bytes;
    struct field entry, name;
    while (read_field(&at, end, &entry)) {
        uint64_t const iid = number_of(&entry, 1);
        assert_true(iid > 0 && iid < NAMES && find_field(&entry, 2, &name));
        if (entry.number == 1) continue;
        bool *known = entry.number == 2 ? decoded.event_name : decoded.annotation_name;
        assert_false(known[iid]); /* Written once. */
        known[iid] = true;
        if (entry.number == 2) copy_text(decoded.name[iid], sizeof decoded.name[iid], &name);
    }
}

static void decode_descriptor(const struct field *descriptor)
{
    struct field field;
    uint64_t const uuid = number_of(descriptor, 1);
    assert_true(uuid > 0 && uuid < TRACKS);
    struct track *track = &decoded.track[uuid];
    assert_false(track->described);
    track->described = true;
    track->parent = number_of(descriptor, 5);
    if (track->parent != 0) assert_true(decoded.track[track->parent].described);
    track->counter = find_field(descriptor, 8, &field);
    if (find_field(descriptor, 2, &field)) copy_text(track->name, sizeof track->name, &field);
    if (!find_field(descriptor, 3, &field)) return;
    struct field process = field;
    assert_true(number_of(&process, 1) > 0 && find_field(&process, 6, &field));
    copy_text(track->name, sizeof track->name, &field);
}

static void decode_event(const struct field *event, uint64_t at_ns)
{
    uint64_t const uuid = number_of(event, 11);
    assert_true(uuid > 0 && uuid < TRACKS && decoded.track[uuid].described);
    struct track *track = &decoded.track[uuid];
    assert_true(at_ns >= track->last_ns); /* On a track, events come in order. */
    track->last_ns = at_ns;
    decoded.events++;
    switch (number_of(event, 9)) {
    case 1:
        assert_false(track->counter);
        assert_true(decoded.event_name[number_of(event, 10)]);
        assert_true(number_of(event, 3) >= 1 && number_of(event, 3) <= 4);
        assert_true(track->depth < DEPTH);
        track->depth++;
        track->slices++;
        if (track->depth > track->most_depth) track->most_depth = track->depth;
        const uint8_t *at = event->bytes, *end = event->bytes + event->size_bytes;
        struct field field;
        while (read_field(&at, end, &field))
            if (field.number == 4) assert_true(decoded.annotation_name[number_of(&field, 1)]);
        break;
    case 2:
        assert_true(track->depth > 0);
        track->depth--;
        break;
    case 4:
        assert_true(track->counter);
        track->points++;
        track->last_value = number_of(event, 30);
        if (track->last_value > track->most_value) track->most_value = track->last_value;
        break;
    default:
        fail_msg("event of an unknown type");
    }
}

static void decode(const struct text *text)
{
    memset(&decoded, 0, sizeof decoded);
    const uint8_t *at = (const uint8_t *)text->bytes, *end = at + text->size_bytes;
    struct field packet, field;
    while (read_field(&at, end, &packet)) {
        assert_int_equal(packet.number, 1);
        assert_int_equal(number_of(&packet, 10), 1);
        decoded.packets++;
        if (number_of(&packet, 13) == 1) decoded.cleared++;
        assert_true(decoded.cleared == 1); /* The first packet, and no other. */
        if (find_field(&packet, 12, &field)) decode_interned(&field);
        if (find_field(&packet, 60, &field)) decode_descriptor(&field);
        if (find_field(&packet, 11, &field)) decode_event(&field, number_of(&packet, 8));
    }
}

static struct report_case report;
static struct text text;

static void play(bool collective_matmul)
{
    memset(&report, 0, sizeof report);
    text_free(&text);
    assert_int_equal(case_build(&report.made, &case_mlp, "4x4x4", NULL, "x y", "z"), STATUS_OK);
    report.made.plan.collective_matmul = collective_matmul;
    report.made.plan.model.layers = 3;
    if (case_lower(&report.made) != STATUS_OK) fail_msg("%s", report.made.error.message);
    report_case_play(&report);
    case_ok(timeline_write(report.made.arena, &report.input, &text, &case_error));
}

static struct track *track_find(uint64_t chip, const char *name)
{
    for (uint64_t i = 256 * (chip + 1); i < 256 * (chip + 2); i++)
        if (decoded.track[i].described && strcmp(decoded.track[i].name, name) == 0)
            return &decoded.track[i];
    fail_msg("no track %s of chip %u", name, (unsigned)chip);
    return NULL;
}

static void slices_of_every_track_begin_end_and_nest(void **state)
{
    (void)state;
    for (int chunks = 0; chunks < 2; chunks++) {
        play(chunks == 1);
        decode(&text);
        uint32_t slices = 0;
        for (uint32_t i = 0; i < TRACKS; i++) {
            assert_int_equal(decoded.track[i].depth, 0);
            slices += decoded.track[i].slices;
        }
        assert_true(slices > 100);
        /* Phases hold layers, ops hold chunks; nothing else is within another. */
        assert_int_equal(track_find(0, "layers and streams")->most_depth, 2);
        assert_int_equal(track_find(0, "compute")->most_depth, chunks == 1 ? 2 : 1);
        assert_int_equal(track_find(0, "gather fsdp")->most_depth, 1);
        assert_int_equal(track_find(0, "ICI z+")->most_depth, 1);
        case_free(&report.made);
    }
}

static void every_shown_chip_is_a_process_with_the_same_tracks(void **state)
{
    (void)state;
    play(true);
    decode(&text);
    assert_string_equal(decoded.track[256].name, "chip 0 (0,0,0)");
    assert_string_equal(decoded.track[512].name, "chip 5 (0,1,1)");
    assert_int_equal(decoded.track[256].parent, 0);
    static const char *const names[] = {"compute", "gather tp", "ICI x+", "mxu", "total"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (uint64_t chip = 0; chip < 2; chip++) {
            struct track *track = track_find(chip, names[i]);
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
    report.trace.shown_chip[1] = 7;
    text_free(&text);
    case_ok(timeline_write(report.made.arena, &report.input, &text, &case_error));
    decode(&text);
    assert_string_equal(decoded.track[512].name, "chip 7 (0,1,3), replayed as (0,1,1)");
    assert_true(track_find(1, "compute")->slices > 0);
    case_free(&report.made);
}

static void every_op_and_transfer_that_was_recorded_is_a_slice(void **state)
{
    (void)state;
    play(false);
    decode(&text);
    uint32_t ops = 0, transfers = 0, shown_transfers = 0;
    for (uint64_t i = 0; i < report.trace.record_count; i++) {
        const struct trace_record *record = &report.trace.record[i];
        if (record->chip != 0) continue;
        ops += record->kind == TRACE_OP && record->stream == PROGRAM_COMPUTE;
        transfers += record->kind == TRACE_TRANSFER;
    }
    assert_int_equal(track_find(0, "compute")->slices, ops);
    for (uint32_t port = 0; port < 6; port++) {
        char name[16];
        (void)snprintf(name, sizeof name, "ICI %s", machine_port_name(report.input.machine, port));
        for (uint64_t t = 256; t < 512; t++)
            if (decoded.track[t].described && strcmp(decoded.track[t].name, name) == 0)
                shown_transfers += decoded.track[t].slices;
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
    const struct track *track = track_find(0, name);
    assert_true(track->counter);
    if (track->points != curve->points || track->most_value != curve->most ||
        track->last_value != curve->held)
        fail_msg("%s: %u points up to %llu, not %u up to %llu", name, track->points,
                 (unsigned long long)track->most_value, curve->points,
                 (unsigned long long)curve->most);
}

static bool is_memory(const struct trace_record *record)
{
    return record->chip == 0 && record->kind == TRACE_MEMORY;
}

static int64_t next_change(int64_t after_ps)
{
    int64_t next_ps = INT64_MAX;
    for (uint64_t i = 0; i < report.trace.record_count; i++) {
        const struct trace_record *record = &report.trace.record[i];
        if (is_memory(record) && record->begin_ps > after_ps && record->begin_ps < next_ps)
            next_ps = record->begin_ps;
    }
    return next_ps;
}

/* Of several changes at one instant a curve has the last. */
static void every_memory_curve_shows_each_change(void **state)
{
    (void)state;
    static const char *const names[] = {
#define X(name, text) text,
        PROGRAM_MEMORY_TABLE(X)
#undef X
    };
    play(false);
    decode(&text);
    struct curve part[PROGRAM_MEMORY_COUNT] = {{0}}, total = {0};
    for (int64_t now_ps = next_change(-1); now_ps != INT64_MAX; now_ps = next_change(now_ps)) {
        for (uint64_t i = 0; i < report.trace.record_count; i++) {
            const struct trace_record *record = &report.trace.record[i];
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
    assert_true(part[PROGRAM_MEMORY_GATHERED].points > 1 && total.points > 2);
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) assert_curve(names[m], &part[m]);
    assert_curve("total", &total);
    case_free(&report.made);
}

static void overlapping_records_of_one_stream_get_a_track_each(void **state)
{
    (void)state;
    memset(&report, 0, sizeof report);
    assert_int_equal(case_build(&report.made, &case_mlp, "4x4x4", NULL, "x y", "z"), STATUS_OK);
    assert_int_equal(case_lower(&report.made), STATUS_OK);
    report_case_play(&report);
    struct trace_record *first = NULL;
    for (uint64_t i = 0; i < report.trace.record_count; i++) {
        struct trace_record *record = &report.trace.record[i];
        if (record->kind != TRACE_TRANSFER || record->chip != 0) continue;
        if (first != NULL && record->port == first->port) {
            record->begin_ps = first->end_ps - 1000; /* Before the first has left. */
            break;
        }
        if (first == NULL) first = record;
    }
    text_free(&text);
    case_ok(timeline_write(report.made.arena, &report.input, &text, &case_error));
    decode(&text);
    char name[32];
    (void)snprintf(name, sizeof name, "ICI %s (2)",
                   machine_port_name(report.input.machine, first->port));
    assert_int_equal(track_find(0, name)->slices, 1);
    for (uint32_t i = 0; i < TRACKS; i++)
        if (strncmp(decoded.track[i].name, "ICI ", 4) == 0)
            assert_true(decoded.track[i].most_depth <= 1);
    case_free(&report.made);
}

static void two_writes_are_the_same_bytes(void **state)
{
    (void)state;
    struct text again = {0};
    play(true);
    case_ok(timeline_write(report.made.arena, &report.input, &again, &case_error));
    assert_int_equal(text.size_bytes, again.size_bytes);
    assert_memory_equal(text.bytes, again.bytes, text.size_bytes);
    text_free(&again);
    case_free(&report.made);
}

static void messages_nest_whatever_their_length(void **state)
{
    (void)state;
    struct text message = {0};
    char long_text[40000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    for (uint32_t length = 0; length < sizeof long_text; length = length * 5 / 4 + 1) {
        text_free(&message);
        uint64_t const outer = protobuf_begin(&message, 7);
        uint64_t const inner = protobuf_begin(&message, 3);
        protobuf_string(&message, 2, long_text + sizeof long_text - 1 - length);
        protobuf_unsigned(&message, 5, UINT64_MAX);
        protobuf_end(&message, inner);
        protobuf_double(&message, 4, -2.5);
        protobuf_end(&message, outer);
        const uint8_t *at = (const uint8_t *)message.bytes, *end = at + message.size_bytes;
        struct field first, second, field;
        assert_true(read_field(&at, end, &first));
        assert_true(at == end && first.number == 7);
        assert_true(find_field(&first, 3, &second) && find_field(&second, 2, &field));
        assert_int_equal(field.size_bytes, length);
        assert_true(number_of(&second, 5) == UINT64_MAX);
        assert_true(number_of(&first, 4) == UINT64_C(0xc004000000000000));
    }
    text_free(&message);
}

static int free_text(void **state)
{
    (void)state;
    text_free(&text);
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
        cmocka_unit_test(overlapping_records_of_one_stream_get_a_track_each),
        cmocka_unit_test(two_writes_are_the_same_bytes),
        cmocka_unit_test(messages_nest_whatever_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, free_text);
}
