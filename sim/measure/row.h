/*
 * row.h: one line of a table of collectives: what was asked, how long it took, what it means.
 */
#ifndef SIM_MEASURE_ROW_H
#define SIM_MEASURE_ROW_H

#include <stdint.h>

#include "sim/measure/measure.h"
#include "sim/measure/operation.h"

/* What every row of a sweep has in common. Texts outlive the rows. */
struct row_question {
    const struct machine *machine;
    enum operation operation;
    struct group group;
    enum format format;
    uint32_t root;
};

struct row {
    uint64_t size_bytes;  /* As nccl-tests means it. */
    uint64_t array_bytes; /* V */
    uint64_t count;
    const char *algorithm; /* That was played. */
    int64_t time_ps;
    double algbw_bytes_per_s;
    double busbw_bytes_per_s;
    double roofline_s;
    const char *bound_by;
};

/* The request of a plan for a size; refused where the array passes 2^63 bytes. */
enum status row_request(const struct row_question *question, uint64_t size_bytes,
                        const char *algorithm, const char *where, struct plan_request *ret_request,
                        struct error *reterr);

/* The row of a collective that took `time_ps`. */
void row_fill(const struct row_question *question, uint64_t size_bytes, const struct plan *plan,
              int64_t time_ps, struct row *ret_row);

#endif
