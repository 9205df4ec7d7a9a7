#include "sim/report/track.h"

#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/report/protobuf.h"

enum {
    NAMES_MAX = 1 << 14,
    SEQUENCE = 1,
    PS_PER_NS = 1000,

    TRACE_PACKET = 1,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK_DESCRIPTOR = 60,
    FLAG_STATE_CLEARED = 1,
    FLAG_NEEDS_STATE = 2,

    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_CHILD_ORDERING = 11,
    TRACK_SIBLING_RANK = 12,
    ORDERING_EXPLICIT = 3,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    COUNTER_UNIT = 3,
    COUNTER_UNIT_NAME = 6,
    UNIT_BYTES = 3,

    EVENT_CATEGORY_IID = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_COUNT = 30,
    EVENT_SHARE = 44,
    EVENT_FLOW = 47,
    EVENT_FLOW_ENDS = 48,
    TYPE_BEGIN = 1,
    TYPE_END = 2,
    TYPE_COUNTER = 4,
    ANNOTATION_NAME_IID = 1,
    ANNOTATION_UNSIGNED = 3,
    ANNOTATION_STRING = 6,

    INTERNED_CATEGORY = 1,
    INTERNED_EVENT = 2,
    INTERNED_ANNOTATION = 3,
    INTERNED_IID = 1,
    INTERNED_NAME = 2,
};

/* Open addressing; names are numbered from 1 as they come. Event and annotation names have numbers
 * of their own in the format; one table serves both, `kind` tells them apart. */
struct track_names {
    const char *name[NAMES_MAX];
    uint32_t iid[NAMES_MAX];
    uint8_t kind[NAMES_MAX];
    uint32_t count;
};

static uint32_t name_hash(const char *name, uint32_t kind)
{
    uint32_t hash = 2166136261u + kind; /* FNV-1a */
    for (; *name != '\0'; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* The number of a name; *ret_new: it has to be written with this packet. */
static uint64_t name_number(struct track_writer *writer, const char *name, uint8_t kind,
                            bool *ret_new)
{
    struct track_names *names = writer->names;
    uint32_t at = name_hash(name, kind) % NAMES_MAX;
    *ret_new = false;
    while (names->name[at] != NULL) {
        if (names->kind[at] == kind && name_same(names->name[at], name)) return names->iid[at];
        at = (at + 1) % NAMES_MAX;
    }
    const char *copy = names->count < NAMES_MAX / 2 ? arena_text(writer->arena, name) : NULL;
    if (copy == NULL) {
        writer->failed = true;
        return 1;
    }
    names->name[at] = copy;
    names->kind[at] = kind;
    names->iid[at] = ++names->count;
    *ret_new = true;
    return names->iid[at];
}

static uint64_t packet_begin(struct track_writer *writer, uint64_t flags)
{
    uint64_t const begin = protobuf_begin(writer->text, TRACE_PACKET);
    protobuf_unsigned(writer->text, PACKET_SEQUENCE_ID, SEQUENCE);
    protobuf_unsigned(writer->text, PACKET_SEQUENCE_FLAGS, flags);
    return begin;
}

static void interned_add(struct strbuf *text, uint32_t field, uint64_t iid, const char *name)
{
    uint64_t const begin = protobuf_begin(text, field);
    protobuf_unsigned(text, INTERNED_IID, iid);
    protobuf_string(text, INTERNED_NAME, name);
    protobuf_end(text, begin);
}

enum status track_writer_start(struct arena *arena, struct strbuf *text,
                               struct track_writer *ret_writer, struct error *reterr)
{
    static const char *const categories[] = {"layer", "compute", "collective", "transfer"};
    void *memory;
    STATUS_TRY(arena_try(arena, 1, sizeof *ret_writer->names, &memory, reterr));
    *ret_writer = (struct track_writer){.text = text, .arena = arena, .names = memory};
    uint64_t const packet = packet_begin(ret_writer, FLAG_STATE_CLEARED);
    uint64_t const interned = protobuf_begin(text, PACKET_INTERNED_DATA);
    for (uint32_t i = 0; i < sizeof categories / sizeof *categories; i++)
        interned_add(text, INTERNED_CATEGORY, TRACK_LAYER + i, categories[i]);
    protobuf_end(text, interned);
    protobuf_end(text, packet);
    return STATUS_OK;
}

void track_writer_end(struct track_writer *writer)
{
    strbuf_free(&writer->flows);
}

void track_flow_from(struct track_writer *writer, uint64_t number)
{
    protobuf_fixed(&writer->flows, EVENT_FLOW, number);
}

void track_flow_to(struct track_writer *writer, uint64_t number)
{
    protobuf_fixed(&writer->flows, EVENT_FLOW_ENDS, number);
}

void track_describe(struct track_writer *writer, const struct track_description *track)
{
    struct strbuf *text = writer->text;
    uint64_t const packet = packet_begin(writer, FLAG_NEEDS_STATE);
    uint64_t const descriptor = protobuf_begin(text, PACKET_TRACK_DESCRIPTOR);
    protobuf_unsigned(text, TRACK_UUID, track->uuid);
    if (track->parent_uuid != 0) protobuf_unsigned(text, TRACK_PARENT, track->parent_uuid);
    if (track->pid != 0) {
        uint64_t const process = protobuf_begin(text, TRACK_PROCESS);
        protobuf_unsigned(text, PROCESS_PID, track->pid);
        protobuf_string(text, PROCESS_NAME, track->name);
        protobuf_end(text, process);
    } else {
        protobuf_string(text, TRACK_NAME, track->name);
    }
    if (track->unit != TRACK_NO_COUNTER) {
        uint64_t const counter = protobuf_begin(text, TRACK_COUNTER);
        if (track->unit == TRACK_BYTES) protobuf_unsigned(text, COUNTER_UNIT, UNIT_BYTES);
        if (track->unit == TRACK_PERCENT) protobuf_string(text, COUNTER_UNIT_NAME, "%");
        protobuf_end(text, counter);
    } else {
        protobuf_unsigned(text, TRACK_CHILD_ORDERING, ORDERING_EXPLICIT);
    }
    protobuf_unsigned(text, TRACK_SIBLING_RANK, track->rank);
    protobuf_end(text, descriptor);
    protobuf_end(text, packet);
}

/* A packet with an event of a track, up to the event's own fields. */
struct event {
    uint64_t packet;
    uint64_t event;
};

static struct event event_begin(struct track_writer *writer, uint64_t uuid, int64_t at_ps,
                                uint32_t type)
{
    struct event event = {.packet = packet_begin(writer, FLAG_NEEDS_STATE)};
    protobuf_unsigned(writer->text, PACKET_TIMESTAMP, (uint64_t)(at_ps / PS_PER_NS));
    event.event = protobuf_begin(writer->text, PACKET_TRACK_EVENT);
    protobuf_unsigned(writer->text, EVENT_TYPE, type);
    protobuf_unsigned(writer->text, EVENT_TRACK, uuid);
    writer->failed = writer->failed || writer->flows.failed;
    if (writer->flows.size_bytes > 0)
        strbuf_add_bytes(writer->text, writer->flows.bytes, writer->flows.size_bytes);
    writer->flows.size_bytes = 0;
    return event;
}

void track_slice_begin(struct track_writer *writer, uint64_t uuid, int64_t at_ps,
                       enum track_category category, const char *name,
                       const struct track_argument *arguments, uint32_t argument_count)
{
    struct strbuf *text = writer->text;
    SIM_ASSERT(argument_count <= TRACK_ARGUMENTS_MAX);
    bool name_new, argument_new[TRACK_ARGUMENTS_MAX];
    uint64_t argument_iid[TRACK_ARGUMENTS_MAX];
    uint64_t const name_iid = name_number(writer, name, INTERNED_EVENT, &name_new);
    bool any_new = name_new;
    struct event const event = event_begin(writer, uuid, at_ps, TYPE_BEGIN);
    protobuf_unsigned(text, EVENT_CATEGORY_IID, category);
    protobuf_unsigned(text, EVENT_NAME_IID, name_iid);
    for (uint32_t i = 0; i < argument_count; i++) {
        const struct track_argument *argument = &arguments[i];
        argument_iid[i] =
            name_number(writer, argument->name, INTERNED_ANNOTATION, &argument_new[i]);
        any_new = any_new || argument_new[i];
        uint64_t const annotation = protobuf_begin(text, EVENT_ANNOTATION);
        protobuf_unsigned(text, ANNOTATION_NAME_IID, argument_iid[i]);
        if (argument->string != NULL)
            protobuf_string(text, ANNOTATION_STRING, argument->string);
        else
            protobuf_unsigned(text, ANNOTATION_UNSIGNED, argument->number);
        protobuf_end(text, annotation);
    }
    protobuf_end(text, event.event);
    if (any_new) { /* A packet's interned data is read before its event. */
        uint64_t const interned = protobuf_begin(text, PACKET_INTERNED_DATA);
        if (name_new) interned_add(text, INTERNED_EVENT, name_iid, name);
        for (uint32_t i = 0; i < argument_count; i++)
            if (argument_new[i])
                interned_add(text, INTERNED_ANNOTATION, argument_iid[i], arguments[i].name);
        protobuf_end(text, interned);
    }
    protobuf_end(text, event.packet);
}

static void event_end(struct track_writer *writer, struct event event)
{
    protobuf_end(writer->text, event.event);
    protobuf_end(writer->text, event.packet);
}

void track_slice_end(struct track_writer *writer, uint64_t uuid, int64_t at_ps)
{
    event_end(writer, event_begin(writer, uuid, at_ps, TYPE_END));
}

void track_count(struct track_writer *writer, uint64_t uuid, int64_t at_ps, int64_t value)
{
    struct event const event = event_begin(writer, uuid, at_ps, TYPE_COUNTER);
    protobuf_unsigned(writer->text, EVENT_COUNT, (uint64_t)value);
    event_end(writer, event);
}

void track_share(struct track_writer *writer, uint64_t uuid, int64_t at_ps, double percent)
{
    struct event const event = event_begin(writer, uuid, at_ps, TYPE_COUNTER);
    protobuf_double(writer->text, EVENT_SHARE, percent);
    event_end(writer, event);
}
