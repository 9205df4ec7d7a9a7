#include "sim/report/timeline.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/analysis.h"
#include "sim/report/timeline_flows.h"
#include "sim/report/timeline_lanes.h"
#include "sim/report/timeline_peers.h"
#include "sim/report/track.h"
#include "sim/report/words.h"

/* Tracks of a chip, by number; the chip's own is 0. Those of the step as a whole come before. */
enum {
    UUID_TRACE = 1,
    UUID_SCENARIO = 2,
    UUID_PROCESS = 0,
    UUID_STEP = 1,
    UUID_PORTS = 2,
    UUID_MEMORY = 3,
    UUID_QUEUES = 4,
    UUID_QUEUE_FIRST = 8,
    UUID_MEMORY_FIRST = 16, /* The last of them is the total. */
    UUID_PORT_FIRST = 36,   /* Those of ports, then of streams: `lanes` tracks each. */
    LANES_LEAST = 4,
    UUID_CHIP = 256, /* Numbers of a chip, where its lanes need no more. */
    NAME_BYTES = TIMELINE_COORDINATES_BYTES,
};

_Static_assert(UUID_PORT_FIRST + LANES_LEAST * (TRACE_PORTS_MAX + TRACE_STREAMS_MAX) <= UUID_CHIP,
               "tracks of a chip have numbers of their own");

struct timeline {
    const struct report_input *input;
    const struct program_role *role;
    struct track_writer writer;
    struct timeline_flows flows;
    struct timeline_lanes lanes;
    uint32_t lanes_apart; /* Numbers from one port's, or stream's, first track to the next one's. */
    uint64_t base;        /* Of the chip that is being written. */
    uint32_t chip;        /* That was asked for. */
    uint32_t recorded;    /* That stands for it in the records: folded chips do the same. */
};

static void describe(struct timeline *timeline, uint64_t uuid, uint32_t parent, const char *name,
                     uint32_t rank, enum track_unit unit)
{
    track_describe(&timeline->writer,
                   &(struct track_description){.uuid = timeline->base + uuid,
                                               .parent_uuid = timeline->base + parent,
                                               .name = name,
                                               .rank = rank,
                                               .unit = unit});
}

static const struct program_op *op_of(const struct timeline *timeline,
                                      const struct trace_record *record)
{
    return timeline_op(timeline->input->program, timeline->role, record);
}

/* The tracks of a stream or a port, one below the other. */
struct lane_tracks {
    uint64_t first_uuid;
    uint32_t parent;
    uint32_t rank;
    uint32_t described;
    const char *name;
};

/* The track of the slice that begins with a record, described if the slice is its first. */
static uint64_t lane_uuid(struct timeline *timeline, struct lane_tracks *tracks, uint32_t record)
{
    uint32_t const lane = timeline->lanes.of[record];
    if (lane == tracks->described) {
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof name, lane == 0 ? "%s" : "%s (%u)", tracks->name, lane + 1);
        describe(timeline, tracks->first_uuid + lane, tracks->parent, name,
                 timeline->lanes_apart * tracks->rank + lane, TRACK_NO_COUNTER);
        tracks->described++;
    }
    return timeline->base + tracks->first_uuid + lane;
}

/* Of the number-th port; streams follow the ports. */
static uint64_t lanes_first_uuid(const struct timeline *timeline, uint32_t number)
{
    return UUID_PORT_FIRST + (uint64_t)timeline->lanes_apart * number;
}

/* What is said of an op that is no compute; returns how many arguments. */
static uint32_t transfer_arguments(const struct timeline *timeline,
                                   const struct trace_record *first, const struct program_op *op,
                                   struct track_argument *arguments)
{
    const struct program *program = timeline->input->program;
    if (op->kind == PROGRAM_OP_RECEIVE) {
        const struct program_block *block = program_slot_block(timeline->role, first->slot);
        arguments[0] =
            (struct track_argument){.name = "messages in all", .number = block->arrivals};
        return 1;
    }
    if (op->kind == PROGRAM_OP_COPY) {
        arguments[0] = (struct track_argument){.name = "bytes",
                                               .number = program->copies[op->index].size_bytes};
        return 1;
    }
    const struct plan *plan = &program->plans[op->index];
    arguments[0] = (struct track_argument){.name = "array bytes", .number = plan->size_bytes};
    arguments[1] =
        (struct track_argument){.name = "ranks", .number = group_rank_count(&plan->group)};
    arguments[2] = (struct track_argument){.name = "algorithm", .string = plan->algorithm_name};
    return 3;
}

static uint32_t compute_arguments(const struct work *work, struct track_argument *arguments)
{
    arguments[0] = (struct track_argument){.name = "matmul FLOP", .number = work_matmul_flop(work)};
    arguments[1] = (struct track_argument){.name = "HBM bytes",
                                           .number = work->hbm_read_bytes + work->hbm_write_bytes};
    arguments[2] = (struct track_argument){.name = "vector FLOP", .number = work->vector_flop};
    return 3;
}

static void op_begin(struct timeline *timeline, uint64_t uuid, const struct trace_record *first)
{
    const struct program_op *op = op_of(timeline, first);
    struct track_argument arguments[TRACK_ARGUMENTS_MAX];
    char layer[NAME_BYTES];
    bool const computes = op->kind == PROGRAM_OP_COMPUTE;
    uint32_t count = computes
                         ? compute_arguments(&timeline->input->program->works[op->index], arguments)
                         : transfer_arguments(timeline, first, op, arguments);
    program_slot_name(timeline->role, first->slot, layer, sizeof layer);
    if (timeline->role->slot_count > 1) /* Else it is a collective by itself. */
        arguments[count++] = (struct track_argument){.name = "layer", .string = layer};
    track_slice_begin(&timeline->writer, uuid, first->begin_ps,
                      computes ? TRACK_COMPUTE : TRACK_COLLECTIVE, op->name, arguments, count);
}

/* An op with its parts inside, where there are several. `first` is its first record. */
static void write_op(struct timeline *timeline, uint64_t uuid, uint32_t first, uint32_t count)
{
    const struct trace_record *const *at = timeline->flows.records->record + first;
    int64_t end_ps = at[0]->begin_ps;
    if (count == 1) timeline_flows_begin(&timeline->flows, first, &timeline->writer);
    op_begin(timeline, uuid, at[0]);
    for (uint32_t i = 0; i < count; i++) {
        bool const apart = at[i]->begin_ps >= end_ps;
        if (at[i]->end_ps > end_ps) end_ps = at[i]->end_ps;
        if (count == 1 || !apart) continue;
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof name, "chunk %u", at[i]->lane + 1u);
        timeline_flows_begin(&timeline->flows, first + i, &timeline->writer);
        track_slice_begin(&timeline->writer, uuid, at[i]->begin_ps, TRACK_COMPUTE, name, NULL, 0);
        track_slice_end(&timeline->writer, uuid, at[i]->end_ps);
    }
    timeline_flows_end(&timeline->flows, first, &timeline->writer);
    track_slice_end(&timeline->writer, uuid, end_ps);
}

static void write_stream(struct timeline *timeline, const struct timeline_track *track)
{
    struct lane_tracks tracks = {.first_uuid =
                                     lanes_first_uuid(timeline, TRACE_PORTS_MAX + track->number),
                                 .parent = UUID_STEP,
                                 .rank = track->number,
                                 .name = timeline->input->program->stream[track->number].name};
    for (uint32_t i = 0, parts; i < track->count; i += parts) {
        parts = timeline_slice_records(timeline->flows.records, track, i);
        write_op(timeline, lane_uuid(timeline, &tracks, track->first + i), track->first + i, parts);
    }
}

/* Phases and, inside, layers, by the ops of the compute stream. A phase begins where the one before
 * it ends, the first with the step: what it waits for at its beginning is its own, as in results.
 */
static void write_layers(struct timeline *timeline, const struct trace_record *const *at,
                         uint32_t count)
{
    static const char *const phases[] = {
#define X(name, text) text,
        PROGRAM_PHASE_TABLE(X)
#undef X
    };
    uint64_t const uuid = timeline->base + UUID_STEP;
    const struct program_block *open = NULL;
    for (uint32_t i = 0; i < count;) {
        uint32_t const slot = at[i]->slot;
        const struct program_block *block = program_slot_block(timeline->role, slot);
        if (open == NULL || open->phase != block->phase) {
            int64_t const before_ps = open != NULL ? at[i - 1]->end_ps : 0;
            if (open != NULL) track_slice_end(&timeline->writer, uuid, before_ps);
            track_slice_begin(&timeline->writer, uuid, before_ps, TRACK_LAYER, phases[block->phase],
                              NULL, 0);
        }
        open = block;
        char name[NAME_BYTES];
        program_slot_name(timeline->role, slot, name, sizeof name);
        struct track_argument const microbatch = {.name = "microbatch",
                                                  .number = block->microbatch};
        track_slice_begin(&timeline->writer, uuid, at[i]->begin_ps, TRACK_LAYER, name, &microbatch,
                          1);
        while (i < count && at[i]->slot == slot) i++;
        track_slice_end(&timeline->writer, uuid, at[i - 1]->end_ps);
    }
    if (open != NULL) track_slice_end(&timeline->writer, uuid, at[count - 1]->end_ps);
}

/* "chip 6 (0,1,2)" */
static const char *peer_name(const struct timeline *timeline, uint32_t chip, bool to_host,
                             char text[2 * NAME_BYTES])
{
    char at[NAME_BYTES];
    if (chip == trace_no_chip)
        (void)snprintf(text, 2 * NAME_BYTES, "%s", to_host ? "the host" : "the switches");
    else
        (void)snprintf(text, 2 * NAME_BYTES, "chip %u %s", chip,
                       timeline_coordinates(timeline->input->machine, chip, at));
    return text;
}

/* A message on a link: of the two ends that which is not the shown chip, or both. */
static void message_begin(struct timeline *timeline, uint64_t uuid,
                          const struct trace_record *record)
{
    const struct program_op *op = op_of(timeline, record);
    struct timeline_ends const ends = timeline_ends_of(timeline->input, record, op, timeline->chip);
    char from[2 * NAME_BYTES], to[2 * NAME_BYTES];
    struct track_argument arguments[TRACK_ARGUMENTS_MAX];
    uint32_t count = 0;
    bool const copies = op->kind == PROGRAM_OP_COPY;
    arguments[count++] = (struct track_argument){.name = "bytes", .number = record->bytes};
    if (ends.from != timeline->chip)
        arguments[count++] = (struct track_argument){
            .name = "from", .string = peer_name(timeline, ends.from, copies, from)};
    if (ends.to != timeline->chip)
        arguments[count++] = (struct track_argument){
            .name = "to", .string = peer_name(timeline, ends.to, copies, to)};
    arguments[count++] =
        (struct track_argument){.name = "chunk", .number = (uint64_t)record->number + 1};
    arguments[count++] = (struct track_argument){.name = "waited for the link, ps",
                                                 .number = (uint64_t)record->wait_ps};
    track_slice_begin(&timeline->writer, uuid, record->begin_ps, TRACK_TRANSFER, op->name,
                      arguments, count);
}

static void write_port(struct timeline *timeline, const struct timeline_track *track)
{
    const struct trace_record *const *at = timeline->flows.records->record + track->first;
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s%s", track->number < MACHINE_GRID_PORTS ? "ICI " : "",
                   machine_port_name(timeline->input->machine, track->number));
    struct lane_tracks tracks = {.first_uuid = lanes_first_uuid(timeline, track->number),
                                 .parent = UUID_PORTS,
                                 .rank = track->number,
                                 .name = name};
    for (uint32_t i = 0; i < track->count; i++) {
        uint64_t const uuid = lane_uuid(timeline, &tracks, track->first + i);
        message_begin(timeline, uuid, at[i]);
        track_slice_end(&timeline->writer, uuid, at[i]->end_ps);
    }
}

/* Curves to draw, as bits. What frameworks hold has one only where they hold something. */
static uint32_t memory_kinds(const struct trace_record *const *at, uint32_t count)
{
    uint32_t kinds = (1u << PROGRAM_OVERHEAD_FIRST) - 1;
    for (uint32_t i = 0; i < count; i++)
        if (at[i]->bytes > 0) kinds |= 1u << at[i]->lane;
    return kinds;
}

/* Changes of one instant are one point of the curves. */
static void write_memory(struct timeline *timeline, const struct trace_record *const *at,
                         uint32_t count)
{
    uint64_t held[PROGRAM_MEMORY_COUNT] = {0}, written[PROGRAM_MEMORY_COUNT];
    uint32_t const kinds = memory_kinds(at, count);
    for (uint32_t i = 0; i < PROGRAM_MEMORY_COUNT; i++) {
        if ((kinds >> i & 1) == 0) continue;
        describe(timeline, UUID_MEMORY_FIRST + i, UUID_MEMORY,
                 words_memory(timeline->input->machine, (enum program_memory)i), i + 1,
                 TRACK_BYTES);
        written[i] = UINT64_MAX; /* The first point is always written. */
    }
    uint32_t const total_uuid = UUID_MEMORY_FIRST + PROGRAM_MEMORY_COUNT;
    describe(timeline, total_uuid, UUID_MEMORY, "total", 0, TRACK_BYTES);
    uint64_t total_written = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        SIM_ASSERT(at[i]->lane < PROGRAM_MEMORY_COUNT);
        held[at[i]->lane] = at[i]->bytes;
        if (i + 1 < count && at[i + 1]->begin_ps == at[i]->begin_ps) continue;
        uint64_t total = 0;
        for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
            total += held[m];
            if ((kinds >> m & 1) == 0 || held[m] == written[m]) continue;
            track_count(&timeline->writer, timeline->base + UUID_MEMORY_FIRST + m, at[i]->begin_ps,
                        (int64_t)held[m]);
            written[m] = held[m];
        }
        if (total != total_written)
            track_count(&timeline->writer, timeline->base + total_uuid, at[i]->begin_ps,
                        (int64_t)total);
        total_written = total;
    }
}

static double share_of(double part, double whole)
{
    if (whole <= 0) return 0;
    return part >= whole ? 100 : 100 * part / whole;
}

/* How much of the MXU, the VPU and HBM each part of a compute op asks for while it runs: its share
 * of the op's FLOP and bytes, at the chip's rates, over the time it took. */
static void write_queues(struct timeline *timeline, const struct trace_record *const *at,
                         uint32_t count)
{
    static const char *const names[] = {"mxu", "vpu", "hbm (compute)"};
    const struct chip *chip = &timeline->input->machine->chip;
    for (uint32_t i = 0; i < 3; i++)
        describe(timeline, UUID_QUEUE_FIRST + i, UUID_QUEUES,
                 words_resource(timeline->input->machine, names[i]), i, TRACK_PERCENT);
    uint64_t const first = timeline->base + UUID_QUEUE_FIRST;
    for (uint32_t i = 0; i < count; i++) {
        const struct program_op *op = op_of(timeline, at[i]);
        const struct work *work = &timeline->input->program->works[op->index];
        double const whole = units_seconds(at[i]->end_ps - at[i]->begin_ps) * op->parts;
        double const math_rate = (double)chip->math_flop_per_s[work->math_format];
        double const math = math_rate > 0 ? (double)work_matmul_flop(work) / math_rate : 0;
        double const vector = (double)work->vector_flop / (double)chip->vector_flop_per_s;
        double const bytes = (double)work->hbm_read_bytes + (double)work->hbm_write_bytes;
        double const hbm = bytes / (double)chip->hbm_bytes_per_s;
        double const shares[] = {share_of(math, whole), share_of(vector, whole),
                                 share_of(hbm, whole)};
        bool const pause = i + 1 == count || at[i + 1]->begin_ps > at[i]->end_ps;
        for (uint32_t q = 0; q < 3; q++) {
            track_share(&timeline->writer, first + q, at[i]->begin_ps, shares[q]);
            if (pause) track_share(&timeline->writer, first + q, at[i]->end_ps, 0);
        }
    }
}

static void describe_chip(struct timeline *timeline, uint32_t index)
{
    const struct machine *machine = timeline->input->machine;
    const struct program *program = timeline->input->program;
    char name[2 * NAME_BYTES], at[NAME_BYTES], role[NAME_BYTES];
    program_role_name(program, analysis_role(timeline->input, timeline->chip), role, sizeof role);
    int const used = snprintf(name, sizeof name, "chip %u %s%s%s", timeline->chip,
                              timeline_coordinates(machine, timeline->chip, at),
                              role[0] != '\0' ? ", " : "", role);
    if (timeline->recorded != timeline->chip)
        (void)snprintf(name + used, sizeof name - (size_t)used, ", replayed as %s",
                       timeline_coordinates(machine, timeline->recorded, at));
    track_describe(
        &timeline->writer,
        &(struct track_description){
            .uuid = timeline->base + UUID_PROCESS, .name = name, .rank = index, .pid = index + 1});
    describe(timeline, UUID_STEP, UUID_PROCESS, "layers and streams", 0, TRACK_NO_COUNTER);
    describe(timeline, UUID_PORTS, UUID_PROCESS,
             machine->chip.kind == CHIP_GPU ? "ports" : "ICI ports", 1, TRACK_NO_COUNTER);
    describe(timeline, UUID_QUEUES, UUID_PROCESS, "queues", 2, TRACK_NO_COUNTER);
    describe(timeline, UUID_MEMORY, UUID_PROCESS, "memory", 3, TRACK_NO_COUNTER);
}

static void write_chip(struct timeline *timeline)
{
    const struct timeline_records *records = timeline->flows.records;
    for (uint32_t i = 0; i < records->track_count; i++) {
        const struct timeline_track *track = &records->track[i];
        const struct trace_record *const *at = records->record + track->first;
        if (track->kind == TRACE_ARRIVAL) continue; /* Arrows say them. */
        if (track->kind == TRACE_MEMORY) {
            write_memory(timeline, at, track->count);
            continue;
        }
        if (track->kind == TRACE_TRANSFER) {
            write_port(timeline, track);
            continue;
        }
        if (track->number == PROGRAM_COMPUTE) {
            write_layers(timeline, at, track->count);
            write_queues(timeline, at, track->count);
        }
        write_stream(timeline, track);
    }
}

/* A slice as long as the step that says what was simulated. */
static void write_scenario(struct timeline *timeline)
{
    const struct report_input *input = timeline->input;
    const char *const title =
        input->title == NULL || input->title[0] == '\0' ? "step" : input->title;
    char name[NAME_BYTES];
    struct track_argument arguments[TRACK_ARGUMENTS_MAX];
    uint32_t count = 0;
    const struct track_argument said[] = {
        {.name = "version", .string = input->version},
        {.name = "scenario", .string = input->scenario},
        {.name = "set", .string = input->settings},
        {.name = "question", .string = input->question},
    };
    (void)snprintf(name, sizeof name, "podsim%s%s", input->version == NULL ? "" : " ",
                   input->version == NULL ? "" : input->version);
    track_describe(
        &timeline->writer,
        &(struct track_description){.uuid = UUID_TRACE, .name = name, .pid = TRACE_SHOWN_MAX + 1});
    track_describe(&timeline->writer, &(struct track_description){.uuid = UUID_SCENARIO,
                                                                  .parent_uuid = UUID_TRACE,
                                                                  .name = "scenario"});
    arguments[count++] = (struct track_argument){.name = "title", .string = title};
    for (uint32_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].string != NULL && said[i].string[0] != '\0') arguments[count++] = said[i];
    arguments[count++] =
        (struct track_argument){.name = "chips", .number = input->trace->fold.chips};
    track_slice_begin(&timeline->writer, UUID_SCENARIO, 0, TRACK_LAYER, title, arguments, count);
    track_slice_end(&timeline->writer, UUID_SCENARIO, input->trace->step_ps);
}

/* Numbers that a chip's tracks take of all. */
static uint64_t chip_uuids(const struct timeline *timeline)
{
    uint64_t const needed = lanes_first_uuid(timeline, TRACE_PORTS_MAX + TRACE_STREAMS_MAX);
    return needed > UUID_CHIP ? needed : UUID_CHIP;
}

static enum status write_chips(struct arena *arena, struct timeline *timeline, struct error *reterr)
{
    const struct report_input *input = timeline->input;
    const struct trace *trace = input->trace;
    struct timeline_sorted sorted;
    struct timeline_p2p p2p;
    STATUS_TRY(timeline_sort(arena, trace, &sorted, reterr));
    STATUS_TRY(timeline_p2p_find(arena, input, &sorted, &p2p, reterr));
    timeline->base = UUID_CHIP;
    for (uint32_t i = 0; i < trace->shown.count; i++) {
        timeline->chip = trace->shown.chip[i];
        timeline->recorded = trace->shown.recorded[i];
        timeline->role = &input->program->roles[analysis_role(input, timeline->chip)];
        const struct timeline_records *records = timeline_records_of(&sorted, timeline->recorded);
        STATUS_TRY(timeline_flows_find(arena, input, &p2p, records, timeline->role, i,
                                       &timeline->flows, reterr));
        STATUS_TRY(timeline_lanes_find(arena, records, &timeline->lanes, reterr));
        timeline->lanes_apart =
            timeline->lanes.most > LANES_LEAST ? timeline->lanes.most : LANES_LEAST;
        describe_chip(timeline, i);
        write_chip(timeline);
        timeline->base += chip_uuids(timeline);
    }
    return STATUS_OK;
}

enum status timeline_write(struct arena *arena, const struct report_input *input,
                           struct strbuf *text, struct error *reterr)
{
    struct timeline timeline = {.input = input};
    STATUS_TRY(track_writer_start(arena, text, &timeline.writer, reterr));
    write_scenario(&timeline);
    enum status status = write_chips(arena, &timeline, reterr);
    if (status == STATUS_OK && (timeline.writer.failed || text->failed))
        status = error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the timeline");
    track_writer_end(&timeline.writer);
    return status;
}
