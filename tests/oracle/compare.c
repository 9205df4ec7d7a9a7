/* Field by field, what is counted against the oracle. Both are sums of whole numbers in another
 * order, of which a graph rounds some down to one FLOP an op. */
#include <stddef.h>

#include "tests/oracle/oracle.h"

#define FIELD(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct workload_counts, name)                                              \
    }

static const struct {
    const char *name;
    size_t offset;
} fields[] = {
    FIELD(matmul_flop),
    FIELD(padded_flop),
    FIELD(linear.flop),
    FIELD(linear.padded_flop),
    FIELD(vector_flop),
    FIELD(hbm_bytes),
    FIELD(ops.count),
    FIELD(matmul_useful),
    FIELD(spare.flash),
    FIELD(spare.waiting),
    FIELD(spare.padding),
    FIELD(heads.kv_held),
    FIELD(heads.kv_padded),
    FIELD(spare.uneven),
    FIELD(rows.dropped),
    FIELD(rows.assigned),
    FIELD(useful_attention_flop),
    FIELD(host.moment_bytes),
    FIELD(host.activation_bytes),
    FIELD(memory.parameter_bytes),
    FIELD(memory.optimizer_bytes),
    FIELD(memory.gradient_bytes),
    FIELD(memory.activation_bytes),
    FIELD(memory.master_bytes),
    FIELD(held_anyway.fixed_bytes),
    FIELD(held_anyway.gathered_bytes),
};

static bool differ(double counted, double oracle, double of)
{
    double const difference = counted > oracle ? counted - oracle : oracle - counted;
    return !(difference <= 1e-9 * (of > 1 ? of : 1));
}

/* Kinds of a group, bytes and how many. */
static struct oracle_difference traffic_compare(const char *name,
                                                const struct workload_traffic *counted,
                                                const struct workload_traffic *oracle)
{
    double const pairs[][2] = {
        {counted->gather_bytes, oracle->gather_bytes},
        {counted->scatter_bytes, oracle->scatter_bytes},
        {counted->all_reduce_bytes, oracle->all_reduce_bytes},
        {counted->all_to_all_bytes, oracle->all_to_all_bytes},
        {counted->permute_bytes, oracle->permute_bytes},
        {(double)counted->gather_count, (double)oracle->gather_count},
        {(double)counted->scatter_count, (double)oracle->scatter_count},
        {(double)counted->all_reduce_count, (double)oracle->all_reduce_count},
        {(double)counted->all_to_all_count, (double)oracle->all_to_all_count},
        {(double)counted->permute_count, (double)oracle->permute_count},
        {(double)counted->critical_passes, (double)oracle->critical_passes},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (differ(pairs[i][0], pairs[i][1], pairs[i][1]))
            return (struct oracle_difference){name, pairs[i][0], pairs[i][1]};
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) {
        double const crossing = counted->crossing_bytes[d], wanted = oracle->crossing_bytes[d];
        if (differ(crossing, wanted, wanted))
            return (struct oracle_difference){name, crossing, wanted};
    }
    return (struct oracle_difference){NULL, 0, 0};
}

static double field_of(const struct workload_counts *counts, size_t offset)
{
    return *(const double *)((const char *)counts + offset);
}

struct oracle_difference oracle_compare(const struct workload_counts *counted,
                                        const struct workload_counts *oracle)
{
    struct oracle_difference found = {NULL, 0, 0};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        double const own = field_of(counted, fields[i].offset);
        double const other = field_of(oracle, fields[i].offset);
        bool const flop = fields[i].offset < offsetof(struct workload_counts, inference) &&
                          fields[i].offset != offsetof(struct workload_counts, spare.uneven);
        if (differ(own, other, flop ? oracle->matmul_flop : other))
            return (struct oracle_difference){fields[i].name, own, other};
    }
    for (uint32_t r = 0; r < MESH_ROLE_COUNT && found.field == NULL; r++)
        found =
            traffic_compare(mesh_role_name((enum mesh_role)r), &counted->role[r], &oracle->role[r]);
    if (found.field == NULL)
        found = traffic_compare("experts", &counted->experts, &oracle->experts);
    if (found.field == NULL) found = traffic_compare("kv", &counted->kv, &oracle->kv);
    if (found.field == NULL)
        found = traffic_compare("sequence", &counted->sequence, &oracle->sequence);
    return found;
}
