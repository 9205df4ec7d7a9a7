#include "sim/measure/measure_op.h"

#include <stddef.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/plan.h"

static const struct {
    const char *name;
    enum collective_kind kind;
    bool adds, rooted;
} operations[MEASURE_COUNT] = {
#define X(name, text, kind, adds, rooted) [MEASURE_##name] = {text, kind, adds, rooted},
    MEASURE_TABLE(X)
#undef X
};

const char *measure_op_name(enum measure_op operation)
{
    SIM_ASSERT(operation < MEASURE_COUNT);
    return operations[operation].name;
}

enum collective_kind measure_op_kind(enum measure_op operation)
{
    SIM_ASSERT(operation < MEASURE_COUNT);
    return operations[operation].kind;
}

bool measure_op_is_copy(enum measure_op operation)
{
    return operation == MEASURE_HOST_STORE || operation == MEASURE_HOST_LOAD;
}

bool measure_op_adds(enum measure_op operation)
{
    SIM_ASSERT(operation < MEASURE_COUNT);
    return operations[operation].adds;
}

bool measure_op_is_rooted(enum measure_op operation)
{
    SIM_ASSERT(operation < MEASURE_COUNT);
    return operations[operation].rooted;
}

enum status measure_op_find(const char *name, const char *where, enum measure_op *ret_operation,
                            struct error *reterr)
{
    const char *names[MEASURE_COUNT + 1] = {NULL};
    for (uint32_t i = 0; i < MEASURE_COUNT; i++) names[i] = operations[i].name;
    *ret_operation = (enum measure_op)name_find(name, names);
    if (*ret_operation < MEASURE_COUNT) return STATUS_OK;
    return error_set(
        reterr, STATUS_NOT_FOUND, where,
        "no collective \"%.40s\"%s (all_gather, reduce_scatter, "
        "all_reduce, all_to_all, broadcast, reduce, gather, scatter, sendrecv, host_store, "
        "host_load)",
        name, name_offer(name, names, "; the nearest is ", "", "").text);
}

/* Whether the size is the array that all ranks have together, each an equal part. */
static bool is_of_all_ranks(enum measure_op operation)
{
    return operation == MEASURE_ALL_GATHER || operation == MEASURE_REDUCE_SCATTER ||
           operation == MEASURE_GATHER || operation == MEASURE_SCATTER;
}

enum status measure_op_array_bytes(enum measure_op operation, uint64_t ranks, uint64_t size_bytes,
                                   const char *where, uint64_t *ret_bytes, struct error *reterr)
{
    bool const copied = measure_op_is_copy(operation);
    uint64_t const copies = copied ? ranks : collective_sizes(measure_op_kind(operation), ranks);
    bool const each = copied || operation == MEASURE_ALL_TO_ALL;
    if (size_bytes > plan_size_bytes_max && !each)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%llu bytes (%s) are more than 2^56, the largest that is simulated; the "
                         "greatest size is %lluT",
                         (unsigned long long)size_bytes, measure_op_size_text(operation),
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

uint64_t measure_op_count(enum measure_op operation, uint64_t ranks, uint64_t size_bytes,
                          enum format format)
{
    bool const parts = is_of_all_ranks(operation) || operation == MEASURE_ALL_TO_ALL;
    uint64_t const bytes = parts ? units_ceil_divide(size_bytes, ranks) : size_bytes;
    units_wide const bits = (units_wide)bytes * 8;
    uint32_t const each = format_bits(format);
    return (uint64_t)((bits + each - 1) / each);
}

const char *measure_op_size_text(enum measure_op operation)
{
    if (operation == MEASURE_ALL_GATHER || operation == MEASURE_GATHER)
        return "the whole gathered array";
    if (operation == MEASURE_REDUCE_SCATTER) return "the whole array that each rank hands in";
    if (operation == MEASURE_SCATTER) return "the whole scattered array";
    if (operation == MEASURE_SENDRECV) return "one message";
    return "one rank's buffer";
}
