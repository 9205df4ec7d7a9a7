#include "sim/collective/collective.h"

#include <stddef.h>
#include <string.h>

#define COLLECTIVE(name) extern const struct primitive primitive_##name;
#include "workloads/collectives.def"
#undef COLLECTIVE

const struct primitive *const primitive_table[] = {
#define COLLECTIVE(name) &primitive_##name,
#include "workloads/collectives.def"
#undef COLLECTIVE
};

const uint32_t primitive_count = sizeof primitive_table / sizeof *primitive_table;

const struct primitive *primitive_find(enum collective_kind kind, const char *algorithm,
                                       bool routed)
{
    for (uint32_t i = 0; i < primitive_count; i++)
        if (primitive_table[i]->kind == kind && primitive_table[i]->routed == routed &&
            strcmp(primitive_algorithm(primitive_table[i]), algorithm) == 0)
            return primitive_table[i];
    return NULL;
}

const char *collective_kind_name(enum collective_kind kind)
{
    static const char *const names[] = {
        [COLLECTIVE_ALL_GATHER] = "AllGather", [COLLECTIVE_REDUCE_SCATTER] = "ReduceScatter",
        [COLLECTIVE_ALL_REDUCE] = "AllReduce", [COLLECTIVE_ALL_TO_ALL] = "AllToAll",
        [COLLECTIVE_PERMUTE] = "Permute",      [COLLECTIVE_BROADCAST] = "Broadcast",
        [COLLECTIVE_REDUCE] = "Reduce",        [COLLECTIVE_GATHER] = "Gather",
        [COLLECTIVE_SCATTER] = "Scatter",
    };
    SIM_ASSERT((uint32_t)kind < sizeof names / sizeof *names);
    return names[kind];
}

const char *primitive_family_name(enum primitive_family family)
{
    static const char *const names[] = {
#define X(name, text) text,
        PRIMITIVE_FAMILY_TABLE(X)
#undef X
    };
    SIM_ASSERT((uint32_t)family < PRIMITIVE_FAMILY_COUNT);
    return names[family];
}

uint32_t primitive_series(const struct primitive *primitive, uint32_t size)
{
    if (primitive == NULL) return 0;
    switch (primitive->family) {
    case PRIMITIVE_RING:
        return primitive->lane_count == 2 ? size / 2 : size - 1;
    case PRIMITIVE_RING_ONE_WAY:
    case PRIMITIVE_RECURSIVE:
    case PRIMITIVE_RECURSIVE_DOUBLING:
    case PRIMITIVE_BRUCK:
        return primitive->send_count(size, 0, 0);
    case PRIMITIVE_LINE:
    case PRIMITIVE_DIRECT:
    case PRIMITIVE_TREE:
    case PRIMITIVE_DOUBLE_TREE:
    case PRIMITIVE_CHAIN:
    case PRIMITIVE_SHARP:
    case PRIMITIVE_SHIFT:
    case PRIMITIVE_FAMILY_COUNT:
        break;
    }
    return 0;
}
