#include "sim/report/timeline_lanes.h"

#include "sim/base/arena.h"

uint32_t timeline_slice_records(const struct timeline_records *records,
                                const struct timeline_track *track, uint32_t at)
{
    const struct trace_record *const *record = records->record + track->first + at;
    uint32_t count = 1;
    if (track->kind != TRACE_OP) return count;
    while (at + count < track->count && record[count]->slot == record[0]->slot &&
           record[count]->op == record[0]->op)
        count++;
    return count;
}

/* `free_at_ps` has room for a lane a record. Returns the lanes that the track needs. */
static uint32_t lanes_of_track(const struct timeline_records *records,
                               const struct timeline_track *track, int64_t *free_at_ps,
                               uint32_t *lane_of)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0, parts; i < track->count; i += parts) {
        const struct trace_record *const *at = records->record + track->first + i;
        int64_t end_ps = at[0]->end_ps;
        uint32_t lane = 0;
        parts = timeline_slice_records(records, track, i);
        for (uint32_t part = 1; part < parts; part++)
            if (at[part]->end_ps > end_ps) end_ps = at[part]->end_ps;
        while (lane < lanes && free_at_ps[lane] > at[0]->begin_ps) lane++;
        if (lane == lanes) lanes++;
        free_at_ps[lane] = end_ps;
        lane_of[track->first + i] = lane;
    }
    return lanes;
}

enum status timeline_lanes_find(struct arena *arena, const struct timeline_records *records,
                                struct timeline_lanes *ret_lanes, struct error *reterr)
{
    struct timeline_lanes lanes = {.most = 0};
    void *memory = NULL;
    uint32_t longest = 0;
    for (uint32_t t = 0; t < records->track_count; t++)
        if (records->track[t].count > longest) longest = records->track[t].count;
    STATUS_TRY(
        arena_try(arena, (uint64_t)records->record_count + 1, sizeof *lanes.of, &memory, reterr));
    lanes.of = memory;
    STATUS_TRY(arena_try(arena, (uint64_t)longest + 1, sizeof(int64_t), &memory, reterr));
    for (uint32_t t = 0; t < records->track_count; t++) {
        const struct timeline_track *track = &records->track[t];
        if (track->kind != TRACE_OP && track->kind != TRACE_TRANSFER) continue;
        uint32_t const count = lanes_of_track(records, track, memory, lanes.of);
        if (count > lanes.most) lanes.most = count;
    }
    *ret_lanes = lanes;
    return STATUS_OK;
}
