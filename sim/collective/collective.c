#include "sim/collective/collective.h"

#include <stddef.h>

#include "sim/base/units.h"
#include "sim/collective/algorithm.h"

#define COLLECTIVE(name) extern const struct primitive primitive_##name;
#define MIRROR(name, ...) COLLECTIVE(name)
#include "workloads/collectives.def"
#undef COLLECTIVE

const struct primitive *const primitive_table[] = {
#define COLLECTIVE(name) &primitive_##name,
#include "workloads/collectives.def"
#undef COLLECTIVE
};

const uint32_t primitive_count = sizeof primitive_table / sizeof *primitive_table;

const struct primitive *primitive_find(enum collective_kind kind, enum primitive_family family,
                                       bool routed)
{
    for (uint32_t i = 0; i < primitive_count; i++)
        if (primitive_table[i]->kind == kind && primitive_table[i]->routed == routed &&
            primitive_table[i]->family == family)
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

struct collective_factor collective_bus_factor(enum collective_kind kind, uint64_t ranks)
{
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        return (struct collective_factor){2 * (ranks - 1), ranks};
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_GATHER:
    case COLLECTIVE_SCATTER:
        return (struct collective_factor){ranks - 1, ranks};
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_REDUCE:
    case COLLECTIVE_PERMUTE:
    case COLLECTIVE_KIND_COUNT:
        break;
    }
    return (struct collective_factor){1, 1};
}

uint64_t collective_sizes(enum collective_kind kind, uint64_t ranks)
{
    return kind == COLLECTIVE_ALL_TO_ALL ? ranks : 1;
}
