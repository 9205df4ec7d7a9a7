#include "sim/report/timeline_sort.h"

#include <string.h>

#include "sim/base/arena.h"

static uint32_t track_index(const struct trace_record *record)
{
    if (record->kind == TRACE_MEMORY) return TRACE_STREAMS_MAX + TRACE_PORTS_MAX;
    if (record->kind == TRACE_TRANSFER) {
        SIM_ASSERT(record->port < TRACE_PORTS_MAX);
        return TRACE_STREAMS_MAX + record->port;
    }
    SIM_ASSERT(record->stream < TRACE_STREAMS_MAX);
    return record->stream;
}

/* Merges neighbouring runs of `width`; stable. */
static void merge_pass(const struct trace_record **from, const struct trace_record **to,
                       uint32_t count, uint32_t width)
{
    for (uint64_t low = 0; low < count; low += 2 * (uint64_t)width) {
        uint64_t const middle = low + width < count ? low + width : count;
        uint64_t const high = low + 2 * (uint64_t)width < count ? low + 2 * (uint64_t)width : count;
        uint64_t left = low, right = middle;
        for (uint64_t i = low; i < high; i++) {
            bool const take_left =
                left < middle && (right == high || from[left]->begin_ps <= from[right]->begin_ps);
            to[i] = take_left ? from[left++] : from[right++];
        }
    }
}

static void sort_by_begin(const struct trace_record **records, const struct trace_record **scratch,
                          uint32_t count)
{
    const struct trace_record **from = records, **to = scratch;
    for (uint32_t width = 1; width < count; width *= 2) {
        merge_pass(from, to, count, width);
        const struct trace_record **other = from;
        from = to;
        to = other;
    }
    if (from != records) memcpy(records, from, count * sizeof *records);
}

enum status timeline_sort(struct arena *arena, const struct trace *trace, uint32_t chip,
                          struct timeline_records *ret_records, struct error *reterr)
{
    uint32_t counts[TIMELINE_TRACKS_MAX] = {0}, firsts[TIMELINE_TRACKS_MAX];
    for (uint64_t i = 0; i < trace->record_count; i++)
        if (trace->record[i].chip == chip) counts[track_index(&trace->record[i])]++;
    struct timeline_records records = {0};
    for (uint32_t t = 0; t < TIMELINE_TRACKS_MAX; t++) {
        firsts[t] = records.record_count;
        records.record_count += counts[t];
    }
    void *memory, *scratch;
    STATUS_TRY(arena_try(arena, (uint64_t)records.record_count + 1, sizeof *records.record, &memory,
                         reterr));
    STATUS_TRY(arena_try(arena, (uint64_t)records.record_count + 1, sizeof *records.record,
                         &scratch, reterr));
    records.record = memory;
    uint32_t next[TIMELINE_TRACKS_MAX];
    memcpy(next, firsts, sizeof next);
    for (uint64_t i = 0; i < trace->record_count; i++) {
        const struct trace_record *record = &trace->record[i];
        if (record->chip == chip) records.record[next[track_index(record)]++] = record;
    }
    for (uint32_t t = 0; t < TIMELINE_TRACKS_MAX; t++) {
        if (counts[t] == 0) continue;
        sort_by_begin(records.record + firsts[t], scratch, counts[t]);
        bool const stream = t < TRACE_STREAMS_MAX;
        bool const memory_track = t == TIMELINE_TRACKS_MAX - 1;
        records.track[records.track_count++] = (struct timeline_track){
            .kind = stream ? TRACE_OP : (memory_track ? TRACE_MEMORY : TRACE_TRANSFER),
            .number = stream ? t : t - TRACE_STREAMS_MAX,
            .first = firsts[t],
            .count = counts[t]};
    }
    *ret_records = records;
    return STATUS_OK;
}
