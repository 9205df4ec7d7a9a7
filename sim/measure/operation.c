#include "sim/measure/operation.h"

#include <stddef.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/plan.h"

static const struct {
    const char *name;
    enum collective_kind kind;
    bool adds, rooted;
} operations[OPERATION_COUNT] = {
#define X(name, text, kind, adds, rooted) [OPERATION_##name] = {text, kind, adds, rooted},
    OPERATION_TABLE(X)
#undef X
};

const char *operation_name(enum operation operation)
{
    SIM_ASSERT(operation < OPERATION_COUNT);
    return operations[operation].name;
}

enum collective_kind operation_kind(enum operation operation)
{
    SIM_ASSERT(operation < OPERATION_COUNT);
    return operations[operation].kind;
}

bool operation_is_copy(enum operation operation)
{
    return operation == OPERATION_HOST_STORE || operation == OPERATION_HOST_LOAD;
}

bool operation_adds(enum operation operation)
{
    SIM_ASSERT(operation < OPERATION_COUNT);
    return operations[operation].adds;
}

bool operation_is_rooted(enum operation operation)
{
    SIM_ASSERT(operation < OPERATION_COUNT);
    return operations[operation].rooted;
}

enum status operation_find(const char *name, const char *where, enum operation *ret_operation,
                           struct error *reterr)
{
    const char *names[OPERATION_COUNT + 1] = {NULL};
    for (uint32_t i = 0; i < OPERATION_COUNT; i++) names[i] = operations[i].name;
    *ret_operation = (enum operation)name_find(name, names);
    if (*ret_operation < OPERATION_COUNT) return STATUS_OK;
    return error_set(
        reterr, STATUS_NOT_FOUND, where,
        "no collective \"%.40s\"%s (all_gather, reduce_scatter, "
        "all_reduce, all_to_all, broadcast, reduce, gather, scatter, sendrecv, host_store, "
        "host_load)",
        name, name_offer(name, names, "; the nearest is ", "", "").text);
}

/* Whether the size is the array that all ranks have together, each an equal part. */
static bool is_of_all_ranks(enum operation operation)
{
    return operation == OPERATION_ALL_GATHER || operation == OPERATION_REDUCE_SCATTER ||
           operation == OPERATION_GATHER || operation == OPERATION_SCATTER;
}

enum status operation_array_bytes(enum operation operation, uint64_t ranks, uint64_t size_bytes,
                                  const char *where, uint64_t *ret_bytes, struct error *reterr)
{
    bool const each = operation == OPERATION_ALL_TO_ALL || operation_is_copy(operation);
    uint64_t const copies = each ? ranks : 1;
    if (size_bytes > plan_size_bytes_max && !each)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%llu bytes (%s) are more than 2^56, the largest that is simulated; the "
                         "greatest size is %lluT",
                         (unsigned long long)size_bytes, operation_size_text(operation),
                         (unsigned long long)(plan_size_bytes_max >> 40));
    if (size_bytes > plan_size_bytes_max / copies)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%llu bytes of each of %llu ranks are an array of more than 2^56 bytes, "
                         "the largest that is simulated; the greatest size is %lluT",
                         (unsigned long long)size_bytes, (unsigned long long)ranks,
                         (unsigned long long)(plan_size_bytes_max / copies >> 40));
    *ret_bytes = size_bytes * copies;
    return STATUS_OK;
}

uint64_t operation_count(enum operation operation, uint64_t ranks, uint64_t size_bytes,
                         enum format format)
{
    bool const parts = is_of_all_ranks(operation) || operation == OPERATION_ALL_TO_ALL;
    uint64_t const bytes = parts ? units_ceil_divide(size_bytes, ranks) : size_bytes;
    units_wide const bits = (units_wide)bytes * 8;
    uint32_t const each = format_bits(format);
    return (uint64_t)((bits + each - 1) / each);
}

struct operation_factor operation_bus_factor(enum operation operation, uint64_t ranks)
{
    if (operation == OPERATION_ALL_REDUCE) return (struct operation_factor){2 * (ranks - 1), ranks};
    if (is_of_all_ranks(operation) || operation == OPERATION_ALL_TO_ALL)
        return (struct operation_factor){ranks - 1, ranks};
    return (struct operation_factor){1, 1};
}

const char *operation_size_text(enum operation operation)
{
    if (operation == OPERATION_ALL_GATHER || operation == OPERATION_GATHER)
        return "the whole gathered array";
    if (operation == OPERATION_REDUCE_SCATTER) return "the whole array that each rank hands in";
    if (operation == OPERATION_SCATTER) return "the whole scattered array";
    if (operation == OPERATION_SENDRECV) return "one message";
    return "one rank's buffer";
}
