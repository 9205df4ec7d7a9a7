/* The collectives of an analysis in the order of a table. */
#include "sim/base/arena.h"
#include "sim/report/analysis.h"

enum status analysis_collectives(struct arena *arena, const struct analysis *analysis,
                                 uint32_t **ret_indexes, uint32_t *ret_count, struct error *reterr)
{
    void *memory;
    STATUS_TRY(arena_try(arena, analysis->class_count, sizeof **ret_indexes, &memory, reterr));
    uint32_t *indexes = memory;
    uint32_t count = 0;
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *row = &analysis->classes[i];
        if (!row->collective || row->count == 0) continue;
        uint32_t at = count++; /* Insertion: rows are few, and equals keep their order. */
        for (; at > 0; at--) {
            const struct analysis_class *other = &analysis->classes[indexes[at - 1]];
            if (other->exposed_s > row->exposed_s) break;
            if (other->exposed_s == row->exposed_s && other->time_s >= row->time_s) break;
            indexes[at] = indexes[at - 1];
        }
        indexes[at] = i;
    }
    *ret_indexes = indexes;
    *ret_count = count;
    return STATUS_OK;
}
