#include "tests/support/perfetto.h"

#include <string.h>

#include "sim/base/strbuf.h"
#include "tests/support/case.h"

struct perfetto perfetto;

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

bool perfetto_field_read(const uint8_t **at, const uint8_t *end, struct perfetto_field *ret_field)
{
    if (*at == end) return false;
    uint64_t const tag = read_varint(at, end);
    *ret_field =
        (struct perfetto_field){.number = (uint32_t)(tag >> 3), .wire = (uint32_t)(tag & 7)};
    if (ret_field->wire == 0) {
        ret_field->value = read_varint(at, end);
    } else if (ret_field->wire == 1) {
        assert_true(end - *at >= 8);
        for (uint32_t i = 0; i < 8; i++) ret_field->value |= (uint64_t)(*at)[i] << 8 * i;
        *at += 8;
    } else {
        assert_int_equal(ret_field->wire, 2);
        ret_field->size_bytes = read_varint(at, end);
        assert_true((uint64_t)(end - *at) >= ret_field->size_bytes);
        ret_field->bytes = *at;
        *at += ret_field->size_bytes;
    }
    return true;
}

bool perfetto_field_find(const struct perfetto_field *message, uint32_t number,
                         struct perfetto_field *ret_field)
{
    const uint8_t *at = message->bytes, *end = message->bytes + message->size_bytes;
    while (perfetto_field_read(&at, end, ret_field))
        if (ret_field->number == number) return true;
    return false;
}

uint64_t perfetto_number(const struct perfetto_field *message, uint32_t number)
{
    struct perfetto_field field;
    return perfetto_field_find(message, number, &field) ? field.value : 0;
}

static void copy_text(char *to, size_t room, const struct perfetto_field *field)
{
    assert_true(field->size_bytes < room);
    memcpy(to, field->bytes, field->size_bytes);
    to[field->size_bytes] = '\0';
}

static void read_interned(const struct perfetto_field *interned)
{
    const uint8_t *at = interned->bytes, *end = interned->bytes + interned->size_bytes;
    static const char *const categories[] = {"layer", "compute", "collective", "transfer"};
    struct perfetto_field entry, name;
    while (perfetto_field_read(&at, end, &entry)) {
        uint64_t const iid = perfetto_number(&entry, 1);
        assert_true(iid > 0 && iid < PERFETTO_NAMES && perfetto_field_find(&entry, 2, &name));
        if (entry.number == 1) {
            char text[PERFETTO_NAME_BYTES];
            copy_text(text, sizeof text, &name);
            assert_true(iid <= PERFETTO_CATEGORIES);
            assert_string_equal(text, categories[iid - 1]);
            perfetto.category_name[iid] = true;
            continue;
        }
        bool *known = entry.number == 2 ? perfetto.event_name : perfetto.argument_name;
        assert_false(known[iid]); /* Written once; events and arguments share their numbers. */
        known[iid] = true;
        copy_text(perfetto.name[iid], sizeof perfetto.name[iid], &name);
    }
}

static void read_descriptor(const struct perfetto_field *descriptor)
{
    struct perfetto_field field;
    uint64_t const uuid = perfetto_number(descriptor, 1);
    assert_true(uuid > 0 && uuid < PERFETTO_TRACKS);
    struct perfetto_track *track = &perfetto.track[uuid];
    assert_false(track->described);
    track->described = true;
    track->parent = perfetto_number(descriptor, 5);
    track->rank = perfetto_number(descriptor, 12);
    if (track->parent != 0) assert_true(perfetto.track[track->parent].described);
    track->counter = perfetto_field_find(descriptor, 8, &field);
    if (perfetto_field_find(descriptor, 2, &field))
        copy_text(track->name, sizeof track->name, &field);
    if (!perfetto_field_find(descriptor, 3, &field)) return;
    struct perfetto_field process = field;
    assert_true(perfetto_number(&process, 1) > 0 && perfetto_field_find(&process, 6, &field));
    copy_text(track->name, sizeof track->name, &field);
}

/* "name=value; " */
static void read_argument(const struct perfetto_field *argument, struct perfetto_slice *slice)
{
    struct perfetto_field value;
    struct strbuf said = {0};
    uint64_t const iid = perfetto_number(argument, 1);
    size_t const used = strlen(slice->said);
    assert_true(perfetto.argument_name[iid]);
    strbuf_add(&said, "%s=", perfetto.name[iid]);
    if (perfetto_field_find(argument, 6, &value))
        strbuf_add_bytes(&said, value.bytes, value.size_bytes);
    else
        strbuf_add(&said, "%llu", (unsigned long long)perfetto_number(argument, 3));
    strbuf_add(&said, "; ");
    assert_true(!said.failed && used + said.size_bytes < sizeof slice->said);
    memcpy(slice->said + used, said.bytes, said.size_bytes + 1);
    strbuf_free(&said);
}

static void begin_slice(const struct perfetto_field *event, uint32_t uuid, uint64_t at_ns)
{
    struct perfetto_track *track = &perfetto.track[uuid];
    uint64_t const iid = perfetto_number(event, 10);
    assert_false(track->counter);
    assert_true(perfetto.event_name[iid]);
    assert_in_range(perfetto_number(event, 3), 1, PERFETTO_CATEGORIES);
    assert_true(perfetto.category_name[perfetto_number(event, 3)]);
    assert_true(track->depth < PERFETTO_DEPTH && perfetto.slice_count < PERFETTO_SLICES);
    struct perfetto_slice *slice = &perfetto.slice[perfetto.slice_count];
    *slice = (struct perfetto_slice){.track = uuid, .name = perfetto.name[iid], .begin_ns = at_ns};
    track->open[track->depth++] = perfetto.slice_count++;
    track->slices++;
    if (track->depth > track->most_depth) track->most_depth = track->depth;
    const uint8_t *at = event->bytes, *end = event->bytes + event->size_bytes;
    struct perfetto_field field;
    while (perfetto_field_read(&at, end, &field))
        if (field.number == 4) read_argument(&field, slice);
}

/* An end of an arrow: each number leaves one slice and reaches one. */
static void note_flow(uint64_t number, bool leaves, uint32_t slice, uint64_t at_ns)
{
    struct perfetto_flow *flow = perfetto.flow;
    while (flow < perfetto.flow + perfetto.flow_count && flow->number != number) flow++;
    if (flow == perfetto.flow + perfetto.flow_count) {
        assert_true(perfetto.flow_count++ < PERFETTO_FLOWS);
        *flow = (struct perfetto_flow){.number = number, .from = UINT32_MAX, .to = UINT32_MAX};
    }
    uint32_t *end = leaves ? &flow->from : &flow->to;
    assert_int_equal(*end, UINT32_MAX);
    *end = slice;
    *(leaves ? &flow->from_ns : &flow->to_ns) = at_ns;
}

static void read_event(const struct perfetto_field *event, uint64_t at_ns)
{
    uint64_t const uuid = perfetto_number(event, 11);
    assert_true(uuid > 0 && uuid < PERFETTO_TRACKS && perfetto.track[uuid].described);
    struct perfetto_track *track = &perfetto.track[uuid];
    uint32_t slice = 0;
    assert_true(at_ns >= track->last_ns); /* On a track, events come in order. */
    track->last_ns = at_ns;
    perfetto.events++;
    switch (perfetto_number(event, 9)) {
    case 1:
        slice = perfetto.slice_count;
        begin_slice(event, (uint32_t)uuid, at_ns);
        break;
    case 2:
        assert_true(track->depth > 0);
        slice = track->open[--track->depth];
        perfetto.slice[slice].end_ns = at_ns;
        break;
    case 4:
        assert_true(track->counter);
        track->points++;
        track->last_value = perfetto_number(event, 30);
        if (track->last_value > track->most_value) track->most_value = track->last_value;
        return;
    default:
        fail_msg("event of an unknown type");
    }
    const uint8_t *at = event->bytes, *end = event->bytes + event->size_bytes;
    struct perfetto_field field;
    while (perfetto_field_read(&at, end, &field))
        if (field.number == 47 || field.number == 48) {
            assert_int_equal(field.wire, 1);
            note_flow(field.value, field.number == 47, slice, at_ns);
        }
}

void perfetto_read(const struct strbuf *text)
{
    memset(&perfetto, 0, sizeof perfetto);
    const uint8_t *at = (const uint8_t *)text->bytes, *end = at + text->size_bytes;
    struct perfetto_field packet, field;
    while (perfetto_field_read(&at, end, &packet)) {
        assert_int_equal(packet.number, 1);
        assert_int_equal(perfetto_number(&packet, 10), 1);
        perfetto.packets++;
        if (perfetto_number(&packet, 13) == 1) perfetto.cleared++;
        assert_true(perfetto.cleared == 1); /* The first packet, and no other. */
        if (perfetto_field_find(&packet, 12, &field)) read_interned(&field);
        if (perfetto_field_find(&packet, 60, &field)) read_descriptor(&field);
        if (perfetto_field_find(&packet, 11, &field))
            read_event(&field, perfetto_number(&packet, 8));
    }
    for (uint32_t i = 0; i < PERFETTO_TRACKS; i++) assert_int_equal(perfetto.track[i].depth, 0);
    for (uint32_t i = 0; i < perfetto.flow_count; i++) {
        const struct perfetto_flow *flow = &perfetto.flow[i];
        assert_true(flow->from != UINT32_MAX && flow->to != UINT32_MAX);
        assert_true(flow->from_ns < flow->to_ns);
    }
}

struct perfetto_track *perfetto_track(uint64_t chip, const char *name)
{
    for (uint64_t i = 256 * (chip + 1); i < 256 * (chip + 2); i++)
        if (perfetto.track[i].described && strcmp(perfetto.track[i].name, name) == 0)
            return &perfetto.track[i];
    fail_msg("no track %s of chip %u", name, (unsigned)chip);
    return NULL;
}

const struct perfetto_slice *perfetto_next(const struct perfetto_track *track, uint32_t *after)
{
    uint32_t const uuid = (uint32_t)(track - perfetto.track);
    while (*after < perfetto.slice_count)
        if (perfetto.slice[(*after)++].track == uuid) return &perfetto.slice[*after - 1];
    return NULL;
}
