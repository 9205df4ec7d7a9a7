#include "sim/report/timeline_sort.h"

#include <string.h>

#include "sim/base/arena.h"

enum {
    TRACK_MEMORY = TRACE_STREAMS_MAX + TRACE_PORTS_MAX,
    TRACK_ARRIVALS = TRACK_MEMORY + 1,
};

static uint32_t track_index(const struct trace_record *record)
{
    if (record->kind == TRACE_MEMORY) return TRACK_MEMORY;
    if (record->kind == TRACE_ARRIVAL) return TRACK_ARRIVALS;
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

/* A row for each chip of the records, each chip once. */
static enum status rows_take(struct arena *arena, const struct trace *trace,
                             struct timeline_sorted *sorted, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, trace->shown.count + 1, sizeof(uint32_t), &memory, reterr));
    uint32_t *const chips = memory;
    for (uint32_t i = 0; i < trace->shown.count; i++) {
        uint32_t const chip = trace->shown.recorded[i];
        uint32_t at = sorted->count;
        while (at > 0 && chips[at - 1] > chip) at--;
        if (at > 0 && chips[at - 1] == chip) continue;
        memmove(chips + at + 1, chips + at, (sorted->count++ - at) * sizeof *chips);
        chips[at] = chip;
    }
    STATUS_TRY(arena_try(arena, sorted->count, sizeof *sorted->of, &memory, reterr));
    sorted->of = memory;
    for (uint32_t i = 0; i < sorted->count; i++) sorted->of[i].chip = chips[i];
    return STATUS_OK;
}

static struct timeline_records *find(const struct timeline_sorted *sorted, uint32_t chip)
{
    uint32_t low = 0, high = sorted->count;
    while (low < high) {
        uint32_t const middle = low + (high - low) / 2;
        if (sorted->of[middle].chip == chip) return &sorted->of[middle];
        if (sorted->of[middle].chip < chip)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct timeline_records *timeline_records_of(const struct timeline_sorted *sorted,
                                                   uint32_t chip)
{
    const struct timeline_records *records = find(sorted, chip);
    SIM_ASSERT(records != NULL);
    return records;
}

const struct timeline_track *timeline_stream(const struct timeline_records *records,
                                             uint32_t stream)
{
    for (uint32_t t = 0; t < records->track_count; t++)
        if (records->track[t].kind == TRACE_OP && records->track[t].number == stream)
            return &records->track[t];
    return NULL;
}

static struct timeline_track track_of(uint32_t index)
{
    if (index == TRACK_MEMORY) return (struct timeline_track){.kind = TRACE_MEMORY};
    if (index == TRACK_ARRIVALS) return (struct timeline_track){.kind = TRACE_ARRIVAL};
    if (index < TRACE_STREAMS_MAX)
        return (struct timeline_track){.kind = TRACE_OP, .number = index};
    return (struct timeline_track){.kind = TRACE_TRANSFER, .number = index - TRACE_STREAMS_MAX};
}

/* Records of a chip that stand in the order of the trace, to their tracks. */
static void row_sort(struct timeline_records *records, const struct trace_record **scratch)
{
    uint32_t counts[TIMELINE_TRACKS_MAX] = {0}, next[TIMELINE_TRACKS_MAX], first = 0;
    for (uint32_t i = 0; i < records->record_count; i++) counts[track_index(records->record[i])]++;
    for (uint32_t t = 0; t < TIMELINE_TRACKS_MAX; t++) {
        next[t] = first;
        if (counts[t] > 0) {
            struct timeline_track *track = &records->track[records->track_count++];
            *track = track_of(t);
            track->first = first;
            track->count = counts[t];
        }
        first += counts[t];
    }
    for (uint32_t i = 0; i < records->record_count; i++)
        scratch[next[track_index(records->record[i])]++] = records->record[i];
    memcpy(records->record, scratch, records->record_count * sizeof *scratch);
    for (uint32_t t = 0; t < records->track_count; t++)
        sort_by_begin(records->record + records->track[t].first, scratch, records->track[t].count);
}

enum status timeline_sort(struct arena *arena, const struct trace *trace,
                          struct timeline_sorted *ret_sorted, struct error *reterr)
{
    struct timeline_sorted sorted = {.of = NULL};
    void *memory = NULL;
    uint64_t most = 0;
    STATUS_TRY(rows_take(arena, trace, &sorted, reterr));
    for (uint64_t i = 0; i < trace->records.count; i++) {
        struct timeline_records *row = find(&sorted, trace->records.record[i].chip);
        if (row != NULL) row->record_count++;
    }
    for (uint32_t i = 0; i < sorted.count; i++) {
        struct timeline_records *row = &sorted.of[i];
        STATUS_TRY(arena_try(arena, (uint64_t)row->record_count + 1, sizeof *row->record, &memory,
                             reterr));
        row->record = memory;
        most = row->record_count > most ? row->record_count : most;
        row->record_count = 0;
    }
    for (uint64_t i = 0; i < trace->records.count; i++) {
        struct timeline_records *row = find(&sorted, trace->records.record[i].chip);
        if (row != NULL) row->record[row->record_count++] = &trace->records.record[i];
    }
    STATUS_TRY(arena_try(arena, most + 1, sizeof(struct trace_record *), &memory, reterr));
    for (uint32_t i = 0; i < sorted.count; i++) row_sort(&sorted.of[i], memory);
    *ret_sorted = sorted;
    return STATUS_OK;
}
