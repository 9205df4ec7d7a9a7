#include "sim/report/timeline_flows.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/report/timeline_peers.h"

enum { PS_PER_NS = 1000 };

static const uint32_t none = UINT32_MAX;

/* Arrows by number: from SENDs by sender, stream and message; to compute by chip and record. */
static uint64_t send_number(uint32_t shown, uint32_t stream, uint32_t message)
{
    return UINT64_C(1) << 63 | (uint64_t)(shown + 1) << 40 | (uint64_t)stream << 32 | message;
}

static uint64_t wait_number(uint32_t shown, uint32_t record)
{
    return (uint64_t)(shown + 1) << 32 | record;
}

const struct program_op *timeline_op(const struct program *program, const struct program_role *role,
                                     const struct trace_record *record)
{
    uint32_t const index = record->kind == TRACE_TRANSFER
                               ? record->slot
                               : program_slot_block(role, record->slot)->template_index;
    const struct program_template *template = &program->templates[index];
    SIM_ASSERT(record->op < template->op_count);
    return &template->op[record->op];
}

/* The shown chip that sends to another what its record says has come. */
static uint32_t sender_of(const struct report_input *input, const struct trace_record *arrival,
                          uint32_t receiver)
{
    const struct trace *trace = input->trace;
    for (uint32_t i = 0; i < trace->shown.count; i++)
        if (trace->shown.recorded[i] == arrival->from &&
            timeline_lie_alike(input->machine, trace->shown.chip[i], trace->shown.chip[receiver],
                               arrival->from, arrival->at))
            return i;
    return none;
}

/* Messages that came to the chip, or NULL. */
static const struct timeline_track *arrivals_of(const struct timeline_records *records)
{
    if (records->track_count == 0) return NULL;
    const struct timeline_track *last = &records->track[records->track_count - 1];
    return last->kind == TRACE_ARRIVAL ? last : NULL;
}

enum status timeline_p2p_find(struct arena *arena, const struct report_input *input,
                              const struct timeline_sorted *sorted, struct timeline_p2p *ret_p2p,
                              struct error *reterr)
{
    const struct trace *trace = input->trace;
    uint64_t const count = (uint64_t)trace->shown.count * TRACE_STREAMS_MAX + 1;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, count, sizeof *ret_p2p->sends, &memory, reterr));
    ret_p2p->sends = memory;
    STATUS_TRY(arena_try(arena, count, sizeof *ret_p2p->receives, &memory, reterr));
    ret_p2p->receives = memset(memory, 0xff, count * sizeof *ret_p2p->receives);
    for (uint32_t i = 0; i < trace->shown.count; i++) {
        const struct timeline_records *records =
            timeline_records_of(sorted, trace->shown.recorded[i]);
        const struct timeline_track *last = arrivals_of(records);
        bool known[TRACE_STREAMS_MAX] = {false};
        if (last == NULL) continue;
        for (uint32_t a = last->first; a < last->first + last->count; a++) {
            const struct trace_record *arrival = records->record[a];
            if (known[arrival->stream]) continue; /* One chip sends all of a stream. */
            known[arrival->stream] = true;
            uint32_t const sender = sender_of(input, arrival, i);
            ret_p2p->receives[(uint64_t)i * TRACE_STREAMS_MAX + arrival->stream] = sender;
            if (sender != none)
                ret_p2p->sends[(uint64_t)sender * TRACE_STREAMS_MAX + arrival->stream] = true;
        }
    }
    return STATUS_OK;
}

/* The record of a stream that has its `part`-th part, from 0. */
static uint32_t record_with(const struct timeline_flows *flows, const struct timeline_track *track,
                            uint64_t part)
{
    uint32_t low = track->first, high = track->first + track->count;
    while (high - low > 1) {
        uint32_t const middle = low + (high - low) / 2;
        if (flows->parts_before[middle] <= part)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The op that a need was met by, if that let the compute begin: it ended then, or it was under way
 * where only some of its parts are needed. */
static uint32_t met_by(const struct timeline_flows *flows, const struct trace_record *compute,
                       const struct program_need *need, const struct program_block *block,
                       bool *ret_ended)
{
    const struct timeline_track *track = timeline_stream(flows->records, need->stream);
    int64_t const slot = program_need_slot(need, block, compute->slot);
    if (need->begun || need->stream == PROGRAM_COMPUTE || track == NULL || slot < 0) return none;
    uint64_t const wanted =
        program_slot_start(flows->role, flows->input->program, need->stream, slot) + need->part +
        (uint64_t)need->per_part * compute->lane;
    if (wanted == 0) return none;
    uint32_t const index = record_with(flows, track, wanted - 1);
    const struct trace_record *record = flows->records->record[index];
    const struct program_op *op = timeline_op(flows->input->program, flows->role, record);
    uint64_t const behind = (uint64_t)flows->parts_before[index] + op->parts;
    *ret_ended = record->end_ps == compute->begin_ps;
    bool const meets = wanted < behind ? record->end_ps >= compute->begin_ps : *ret_ended;
    bool const visible = record->begin_ps / PS_PER_NS < compute->begin_ps / PS_PER_NS;
    return meets && visible && wanted <= behind ? index : none;
}

/* What compute waited for that did not begin when the compute before it ended. */
static uint32_t awaited_by(const struct timeline_flows *flows, const struct trace_record *compute)
{
    const struct program_op *op = timeline_op(flows->input->program, flows->role, compute);
    const struct program_block *block = program_slot_block(flows->role, compute->slot);
    uint32_t found = none;
    for (uint32_t i = 0; i < op->need_count; i++) {
        bool ended = false;
        uint32_t const index = met_by(flows, compute, &op->need[i], block, &ended);
        if (index != none && (found == none || ended)) found = index;
        if (index != none && ended) break;
    }
    return found;
}

static void parts_count(struct timeline_flows *flows)
{
    const struct timeline_records *records = flows->records;
    for (uint32_t t = 0; t < records->track_count; t++) {
        const struct timeline_track *track = &records->track[t];
        if (track->kind != TRACE_OP || track->number == PROGRAM_COMPUTE) continue;
        uint32_t parts = 0;
        for (uint32_t i = track->first; i < track->first + track->count; i++) {
            flows->parts_before[i] = parts;
            parts += timeline_op(flows->input->program, flows->role, records->record[i])->parts;
        }
    }
}

static void waits_find(struct timeline_flows *flows)
{
    const struct timeline_track *track = timeline_stream(flows->records, PROGRAM_COMPUTE);
    int64_t end_ps = 0;
    for (uint32_t i = 0; track != NULL && i < track->count; i++) {
        uint32_t const index = track->first + i;
        const struct trace_record *record = flows->records->record[index];
        if (record->begin_ps > end_ps) flows->awaited[index] = awaited_by(flows, record);
        if (record->end_ps > end_ps) end_ps = record->end_ps;
    }
    for (uint32_t i = track == NULL ? 0 : track->count; i-- > 0;) { /* So that lists ascend. */
        uint32_t const index = track->first + i, awaited = flows->awaited[index];
        if (awaited == none) continue;
        flows->waiter_next[index] = flows->waiter[awaited];
        flows->waiter[awaited] = index;
    }
}

enum status timeline_flows_find(struct arena *arena, const struct report_input *input,
                                const struct timeline_p2p *p2p,
                                const struct timeline_records *records,
                                const struct program_role *role, uint32_t shown,
                                struct timeline_flows *ret_flows, struct error *reterr)
{
    uint64_t const count = (uint64_t)records->record_count + 1;
    struct timeline_flows flows = {
        .input = input, .p2p = p2p, .records = records, .role = role, .shown = shown};
    uint32_t **const arrays[] = {&flows.parts_before, &flows.waiter, &flows.waiter_next,
                                 &flows.awaited};
    for (uint32_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        void *memory = NULL;
        STATUS_TRY(arena_try(arena, count, sizeof **arrays[i], &memory, reterr));
        *arrays[i] = memset(memory, 0xff, count * sizeof **arrays[i]);
    }
    parts_count(&flows);
    waits_find(&flows);
    *ret_flows = flows;
    return STATUS_OK;
}

void timeline_flows_begin(struct timeline_flows *flows, uint32_t record,
                          struct track_writer *writer)
{
    const struct trace_record *of = flows->records->record[record];
    const struct program *program = flows->input->program;
    if (flows->awaited[record] != none) track_flow_to(writer, wait_number(flows->shown, record));
    for (uint32_t i = flows->waiter[record]; i != none; i = flows->waiter_next[i])
        track_flow_from(writer, wait_number(flows->shown, i));
    if (program->stream[of->stream].kind == PROGRAM_OP_SEND &&
        flows->p2p->sends[(uint64_t)flows->shown * TRACE_STREAMS_MAX + of->stream])
        track_flow_from(writer, send_number(flows->shown, of->stream, flows->parts_before[record]));
}

void timeline_flows_end(struct timeline_flows *flows, uint32_t record, struct track_writer *writer)
{
    const struct timeline_records *records = flows->records;
    const struct trace_record *of = records->record[record];
    const struct timeline_track *last = arrivals_of(records);
    if (flows->input->program->stream[of->stream].kind != PROGRAM_OP_RECEIVE || last == NULL)
        return;
    uint64_t const until = program_slot_block(flows->role, of->slot)->arrivals;
    uint32_t *next = &flows->arrival_next[of->stream];
    for (; *next < last->count; ++*next) {
        const struct trace_record *arrival = records->record[last->first + *next];
        if (arrival->inbox != of->stream) continue;
        if (arrival->came > until) break;
        uint32_t const sender =
            flows->p2p->receives[(uint64_t)flows->shown * TRACE_STREAMS_MAX + arrival->stream];
        if (sender != none)
            track_flow_to(writer, send_number(sender, arrival->stream, arrival->number));
    }
}
