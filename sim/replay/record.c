#include "sim/replay/record.h"

#include <stdlib.h>

void record_add(struct records *records, const struct trace_record *record)
{
    if (!records->active || records->failed) return;
    if (records->count == records->capacity) {
        uint64_t const capacity = records->capacity ? 2 * records->capacity : 65536;
        struct trace_record *grown = realloc(records->record, capacity * sizeof *grown);
        if (grown == NULL) {
            records->failed = true;
            return;
        }
        records->record = grown;
        records->capacity = capacity;
    }
    records->record[records->count++] = *record;
}
