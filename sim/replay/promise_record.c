/* The timeline's records of messages that take turns. */
#include "sim/replay/promise.h"

uint32_t promise_record_find(const struct replay *replay, const struct port_ticket *place,
                             const struct port_entry *entry)
{
    uint32_t const last =
        entry->lane->route.recorded == NULL ? 0 : entry->lane->route.recorded[place->chip];
    return last != 0 && replay->records.record[last - 1].end_ps == entry->end_ps ? last : 0;
}

void promise_record(struct replay *replay, const struct port_entry *entry, int64_t now_ps)
{
    if (entry->record == 0) return;
    struct trace_record *record = &replay->records.record[entry->record - 1];
    record->wait_ps = entry->end_ps - entry->work_ps - now_ps;
    record->end_ps = entry->end_ps > entry->tail_ps ? entry->end_ps : entry->tail_ps;
}

void promise_record_end(struct replay *replay, const struct port_entry *entry, int64_t now_ps)
{
    if (entry->record == 0) return;
    struct trace_record *record = &replay->records.record[entry->record - 1];
    record->wait_ps += now_ps - entry->end_ps;
    record->end_ps = now_ps > entry->tail_ps ? now_ps : entry->tail_ps;
}

void promise_records_move(struct replay *replay, const struct port_ticket *place,
                          const struct port_queue *queue, int64_t now_ps)
{
    const struct ports *ports = replay->ports;
    int64_t const segment_ps = ports->segment_ps[place->kind];
    for (uint32_t i = 0; replay->records.active && i < queue->count; i++) {
        uint8_t const stream = queue->turn[i];
        for (uint32_t e = queue->flow[stream].list.first; e != 0; e = ports->entries[e].next) {
            const struct port_entry *entry = &ports->entries[e];
            bool const begun = entry->lane_ps < entry->work_ps; /* Before turns were taken. */
            if (entry->record == 0 || entry->done_ps == PORT_DONE_LONG_AGO || begun) continue;
            int64_t const begun_ps =
                port_ticket_begun_ps(ports, &queue->flow[stream], entry, segment_ps);
            int64_t const begin_ps =
                port_done_ps(ports, queue, stream, begun_ps, segment_ps) - (entry->work_ps > 0);
            if (begin_ps >= now_ps) replay->records.record[entry->record - 1].begin_ps = begin_ps;
        }
    }
}
