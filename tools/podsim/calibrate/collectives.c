/*
 * Constants of the model of collectives, from AllReduces of a node's GPUs, as the built-in ones
 * were learned: one of 64 KiB has the latencies, one of 128 MiB the time of a byte. Where switches
 * add in the latter, one of two GPUs, which is a ring, has the time of a byte that chips send. All
 * rows then say how well the model with these constants reproduces them.
 */
#include "sim/base/arena.h"
#include "sim/base/ranked.h"
#include "sim/base/units.h"
#include "sim/choose/choose.h"
#include "sim/choose/protocol.h"
#include "sim/measure/measure.h"
#include "sim/measure/measure_group.h"
#include "sim/measure/measure_row.h"
#include "sim/roofline/collective_bound.h"
#include "tools/podsim/calibrate/calibrate.h"

enum { ROWS_PLAYED_MAX = 2000, RING_RANKS = 2 /* NCCL adds for two GPUs by a ring. */ };

/* Sizes of the AllReduces that constants are learned from; a row may have up to twice as many bytes
 * or half of them. */
static const uint64_t short_bytes = UINT64_C(1) << 16, long_bytes = UINT64_C(1) << 27;

/* A row's machine in a profile. */
static enum status machine_take(struct arena *arena, const struct calibration *calibration,
                                const char *profile, const struct row *row,
                                struct machine *ret_machine, struct error *reterr)
{
    struct machine_plan plan = calibration->machine;
    plan.profile = profile;
    plan.gpus = row->ranks;
    STATUS_TRY(machine_build(arena, &plan, ret_machine, reterr));
    ret_machine->chip.kernels.nccl = calibration->collectives.factors;
    return STATUS_OK;
}

/* The time of a row's collective: of a candidate, or of what is chosen, which is returned. */
static enum status row_play(const struct calibration *calibration, const struct row *row,
                            const struct choose_candidate *candidate, int64_t *ret_ps,
                            struct choose_candidate *ret_candidate, struct error *reterr)
{
    static const char where[] = "/collective";
    struct measure_options const options = {.engine = "fast"};
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_no_memory(reterr, "");
    struct machine machine;
    struct measured measured;
    struct measure_row_args args = {
        .machine = &machine, .operation = row->operation, .format = FORMAT_BF16};
    const struct measure_row_choice *choice = NULL;
    enum status status = machine_take(arena, calibration, "measured", row, &machine, reterr);
    if (status == STATUS_OK) status = measure_group(&machine, NULL, where, &args.group, reterr);
    args.protocols = status == STATUS_OK && choose_by_protocols(&machine);
    if (status == STATUS_OK)
        status = candidate == NULL ? measure_row_choose(arena, &args, row->size_bytes, NULL, where,
                                                        &choice, reterr)
                                   : measure_row_choose_other(arena, &args, row->size_bytes,
                                                              candidate, where, &choice, reterr);
    if (status == STATUS_OK)
        status =
            measure_run(arena, &machine, &choice->request, 1, where, &options, &measured, reterr);
    if (status == STATUS_OK) {
        *ret_ps = measured.time_ps[0];
        *ret_candidate = choice->candidate;
    }
    arena_destroy(arena);
    return status;
}

/* How far a number of bytes is from another, as the larger over the smaller in millionths. */
static uint64_t apart_ppm(uint64_t bytes, uint64_t other)
{
    uint64_t const large = units_larger(bytes, other), small = units_smaller(bytes, other);
    return (uint64_t)((units_wide)large * PPM_ONE / small);
}

/* The AllReduce of a number of GPUs whose size is nearest; NULL: none is within a factor of 2. */
static const struct row *row_near(const struct calibrate_collectives *of, uint32_t ranks,
                                  uint64_t bytes)
{
    const struct row *nearest = NULL;
    uint64_t least = UINT64_C(2) * PPM_ONE + 1;
    for (uint32_t i = 0; i < of->row_count; i++) {
        const struct row *row = of->row[i];
        if (row->operation != MEASURE_ALL_REDUCE || row->ranks != ranks ||
            apart_ppm(row->size_bytes, bytes) >= least)
            continue;
        least = apart_ppm(row->size_bytes, bytes);
        nearest = row;
    }
    return nearest;
}

/* The factor with which the simulated time is the row's. The algorithm and the protocol stay those
 * that are chosen before. Without such a factor the constant stays. */
static enum status factor_learn(struct calibration *calibration, const struct row *row,
                                uint32_t *factor, struct calibrate_factor *ret_learned,
                                struct error *reterr)
{
    struct choose_candidate chosen, same;
    int64_t ps = 0;
    uint32_t low = KERNEL_FACTOR_LEAST_PPM, high = KERNEL_FACTOR_MOST_PPM;
    uint32_t const before = *factor;
    STATUS_TRY(row_play(calibration, row, NULL, &ps, &chosen, reterr));
    *ret_learned = (struct calibrate_factor){.row = row};
    ret_learned->algorithm = chosen.algorithm;
    ret_learned->protocol = chosen.protocol;
    for (uint32_t end = 0; end < 2; end++) {
        *factor = end == 0 ? low : high;
        STATUS_TRY(row_play(calibration, row, &chosen, &ps, &same, reterr));
        ret_learned->is_outside =
            ret_learned->is_outside || (end == 0 ? ps > row->median_ps : ps < row->median_ps);
    }
    *factor = before;
    if (ret_learned->is_outside) return STATUS_OK;
    while (high - low > 1) {
        *factor = low + (high - low) / 2;
        STATUS_TRY(row_play(calibration, row, &chosen, &ps, &same, reterr));
        if (ps <= row->median_ps)
            low = *factor;
        else
            high = *factor;
    }
    *factor = low;
    ret_learned->ppm = low;
    return STATUS_OK;
}

/* Whether switches add in what is chosen for a row. */
static enum status switches_add(const struct calibration *calibration, const struct row *row,
                                bool *ret_adds, struct error *reterr)
{
    struct choose_candidate chosen;
    int64_t ps = 0;
    STATUS_TRY(row_play(calibration, row, NULL, &ps, &chosen, reterr));
    *ret_adds = primitive_family_nccl(algorithm_family(&chosen.algorithm)) == NCCL_NVLS;
    return STATUS_OK;
}

static enum status factors_learn(struct calibration *calibration, struct error *reterr)
{
    struct calibrate_collectives *of = &calibration->collectives;
    uint32_t ranks_most = 0;
    for (uint32_t i = 0; i < of->row_count; i++)
        if (of->row[i]->operation == MEASURE_ALL_REDUCE && of->row[i]->ranks > ranks_most)
            ranks_most = of->row[i]->ranks;
    const struct row *shorter = row_near(of, ranks_most, short_bytes);
    const struct row *longer = row_near(of, ranks_most, long_bytes);
    const struct row *ring = row_near(of, RING_RANKS, long_bytes);
    bool adds = false;
    if (shorter != NULL)
        STATUS_TRY(
            factor_learn(calibration, shorter, &of->factors.latency_ppm, &of->latency, reterr));
    if (longer != NULL) STATUS_TRY(switches_add(calibration, longer, &adds, reterr));
    if (adds)
        STATUS_TRY(factor_learn(calibration, longer, &of->factors.nvls_ppm, &of->nvls, reterr));
    if (!adds) ring = longer;
    if (ring != NULL)
        STATUS_TRY(factor_learn(calibration, ring, &of->factors.byte_ppm, &of->byte, reterr));
    return STATUS_OK;
}

/* By how much the rows are off what is simulated; of one kind, or of all (MEASURE_COUNT). */
static void errors_of(const struct calibrate_collectives *of, const uint64_t *off_ppm,
                      enum measure_op kind, uint64_t *numbers, struct calibrate_error *ret_error)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < of->row_count; i++)
        if (kind == MEASURE_COUNT || of->row[i]->operation == kind) numbers[count++] = off_ppm[i];
    *ret_error = (struct calibrate_error){.count = count};
    if (count == 0) return;
    ret_error->median_ppm = ranked_number(numbers, count, count / 2);
    ret_error->ninetieth_ppm = ranked_number(numbers, count, (uint32_t)((uint64_t)count * 9 / 10));
}

/* Plays all rows. `error` has a place for each kind, and one for all. */
static enum status errors_find(const struct calibration *calibration, uint64_t *off_ppm,
                               uint64_t *numbers, struct calibrate_error *error,
                               struct error *reterr)
{
    const struct calibrate_collectives *of = &calibration->collectives;
    for (uint32_t i = 0; i < of->row_count; i++) {
        const struct row *row = of->row[i];
        struct choose_candidate chosen;
        int64_t ps = 0;
        STATUS_TRY(row_play(calibration, row, NULL, &ps, &chosen, reterr));
        uint64_t const apart =
            (uint64_t)(ps > row->median_ps ? ps - row->median_ps : row->median_ps - ps);
        off_ppm[i] = (uint64_t)((units_wide)apart * PPM_ONE / (uint64_t)row->median_ps);
    }
    for (uint32_t kind = 0; kind <= MEASURE_COUNT; kind++)
        errors_of(of, off_ppm, (enum measure_op)kind, numbers, &error[kind]);
    return STATUS_OK;
}

/* Refuses rows of more GPUs than a node has. */
static enum status ranks_check(struct arena *arena, const char *path,
                               const struct calibration *calibration, struct error *reterr)
{
    uint32_t const most = calibration->chip->network.node_chips;
    for (uint32_t i = 0; i < calibration->rows->count; i++) {
        const struct row *row = &calibration->rows->row[i];
        if (row->what != ROW_COLLECTIVE || row->ranks <= most) continue;
        const char *place = arena_format(arena, "%s:%u", path, row->line);
        return error_set(reterr, STATUS_INVALID, place == NULL ? path : place,
                         "ranks=%u: a node has %u GPUs of %s", row->ranks, most,
                         calibration->chip->title);
    }
    return STATUS_OK;
}

/* The time of a row's bytes at the data sheet's rate of the links, by any algorithm. */
static enum status wire_find(struct arena *arena, const struct calibration *calibration,
                             const struct row *row, double *ret_s, struct error *reterr)
{
    static const char where[] = "/collective";
    struct collective_query query = {.kind = measure_op_kind(row->operation)};
    struct collective_bound bound;
    struct machine machine;
    struct group group;
    STATUS_TRY(machine_take(arena, calibration, "ideal", row, &machine, reterr));
    STATUS_TRY(measure_group(&machine, NULL, where, &group, reterr));
    STATUS_TRY(measure_op_array_bytes(row->operation, row->ranks, row->size_bytes, where,
                                      &query.array_bytes, reterr));
    collective_bound(&machine, &group, &query, &bound);
    *ret_s = bound.bytes_s;
    return STATUS_OK;
}

/* Leaves out rows that are faster than the wire. */
static enum status fast_leave_out(struct arena *arena, struct calibration *calibration,
                                  struct error *reterr)
{
    struct calibrate_collectives *of = &calibration->collectives;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < of->row_count; i++) {
        const struct row *row = of->row[i];
        double const row_s = units_seconds(row->median_ps);
        double wire_s = 0;
        STATUS_TRY(wire_find(arena, calibration, row, &wire_s, reterr));
        if (row_s < wire_s)
            STATUS_TRY(
                calibrate_leave_out(arena, calibration, row->line, reterr,
                                    "%s of %u GPUs, %llu bytes: faster than the wire, %.4g times",
                                    measure_op_name(row->operation), row->ranks,
                                    (unsigned long long)row->size_bytes, wire_s / row_s));
        else
            of->row[kept++] = row;
    }
    of->row_count = kept;
    return STATUS_OK;
}

static enum status all_leave_out(struct arena *arena, struct calibration *calibration,
                                 struct error *reterr)
{
    for (uint32_t i = 0; i < calibration->rows->count; i++)
        if (calibration->rows->row[i].what == ROW_COLLECTIVE)
            STATUS_TRY(calibrate_leave_out(arena, calibration, calibration->rows->row[i].line,
                                           reterr,
                                           "the constants are NCCL's, which TPUs have not"));
    return STATUS_OK;
}

enum status calibrate_collectives(struct arena *arena, const char *path,
                                  struct calibration *calibration, struct error *reterr)
{
    struct calibrate_collectives *of = &calibration->collectives;
    void *taken_memory = NULL, *off_memory = NULL, *numbers_memory = NULL;
    uint64_t const count = calibration->rows->count;
    STATUS_TRY(arena_try(arena, count, sizeof(const struct row *), &taken_memory, reterr));
    of->row = taken_memory;
    for (uint32_t i = 0; i < count; i++)
        if (calibration->rows->row[i].what == ROW_COLLECTIVE)
            of->row[of->row_count++] = &calibration->rows->row[i];
    if (of->row_count == 0) return STATUS_OK;
    if (of->row_count > ROWS_PLAYED_MAX)
        return error_set(reterr, STATUS_LIMIT, path,
                         "%u rows of collectives; each is simulated, and %d are the most",
                         of->row_count, ROWS_PLAYED_MAX);
    if (calibration->chip->kind != CHIP_GPU) {
        of->row_count = 0;
        return all_leave_out(arena, calibration, reterr);
    }
    STATUS_TRY(ranks_check(arena, path, calibration, reterr));
    STATUS_TRY(fast_leave_out(arena, calibration, reterr));
    STATUS_TRY(arena_try(arena, count, sizeof(uint64_t), &off_memory, reterr));
    STATUS_TRY(arena_try(arena, count, sizeof(uint64_t), &numbers_memory, reterr));
    STATUS_TRY(calibrate_spread(arena, of->row, of->row_count, &of->spread, reterr));
    STATUS_TRY(errors_find(calibration, off_memory, numbers_memory, of->before, reterr));
    STATUS_TRY(factors_learn(calibration, reterr));
    return errors_find(calibration, off_memory, numbers_memory, of->error, reterr);
}

const char *calibrate_collectives_refusal(struct arena *arena,
                                          const struct calibration *calibration)
{
    const struct calibrate_collectives *of = &calibration->collectives;
    const struct calibrate_factor *const factor[] = {&of->latency, &of->nvls, &of->byte};
    bool has_sums = false;
    if (of->row_count == 0) return NULL;
    for (uint32_t f = 0; f < sizeof factor / sizeof *factor; f++)
        if (factor[f]->is_outside)
            return arena_format(arena, "line %u: no factor from %g to %g gives its time",
                                factor[f]->row->line, (double)KERNEL_FACTOR_LEAST_PPM / PPM_ONE,
                                (double)KERNEL_FACTOR_MOST_PPM / PPM_ONE);
    for (uint32_t i = 0; i < of->row_count; i++)
        has_sums = has_sums || of->row[i]->operation == MEASURE_ALL_REDUCE;
    return has_sums ? "factors need an AllReduce of about 64 KiB or 128 MiB on the most GPUs"
                    : "factors are learned from AllReduces, and no row is of one";
}
