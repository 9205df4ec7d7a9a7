/*
 * choice.h: which primitives a plan is made of: what an algorithm's name means on a group.
 *
 * A group has levels: what lies on the grid is the innermost, then each dimension that switches
 * serve, in the order of machine axes. A name holds on every level that has such a primitive, and
 * `auto` on the others; "A+B" names one a level, the innermost first; "flat-A" runs one routed
 * primitive over all dimensions at once.
 */
#ifndef SIM_COLLECTIVE_CHOICE_H
#define SIM_COLLECTIVE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/collective/plan.h"

/* Dimensions of a group by level. */
struct levels {
    uint8_t grid[GROUP_DIMENSIONS_MAX]; /* In the order of the group. */
    uint32_t grid_count;
    uint8_t outer[GROUP_DIMENSIONS_MAX]; /* Switched, the outermost first. */
    uint32_t outer_count;
};

struct choice {
    struct levels levels;
    bool flat; /* Everything at index 0, over all dimensions. */
    /* By dimension. An AllReduce is a ReduceScatter and an AllGather; or, where it has one, `whole`
     * on the dimension that its chain comes to last. */
    const struct primitive *once[GROUP_DIMENSIONS_MAX];   /* AllReduce: the ReduceScatter. */
    const struct primitive *gather[GROUP_DIMENSIONS_MAX]; /* AllReduce: the AllGather. */
    const struct primitive *whole[GROUP_DIMENSIONS_MAX];  /* AllReduce only. */
    /* Rooted kinds: dimension by dimension, `once` from or to the root, and for Broadcast and
     * Reduce `gather` what brings together or scatters within boxes that the root is not in. */
    bool by_axis;
    bool named; /* A name was given for each level. */
    /* Over all dimensions: a scatter before `once` gathers (Broadcast), a gather after `once` has
     * scattered sums (Reduce); or NULL. */
    const struct primitive *rooted;
};

struct levels levels_of(const struct group *group);

/* How many levels: the grid is one. */
static inline uint32_t levels_count(const struct levels *levels)
{
    return levels->outer_count + (levels->grid_count > 0);
}

/* What is called otherwise elsewhere: of NCCL's names (src/include/nccl_tuner.h) NVLS and CollNet
 * add in the switches, PAT is Bruck's; "rhd" halves and doubles recursively. podsim's name, which
 * not every kind has; NULL where there is none. */
const char *choice_synonym(const char *name);

extern const char choice_mixed_name[]; /* Of a grid whose axes differ, each played by what it is. */

/* What a name means on the group; false if nothing that can run. */
bool choice_find(const struct plan_request *request, const char *name, struct choice *ret_choice);

/* choice_names.c: "auto, line, ring": the names without "+" that can run on the group. */
void choice_list(const struct plan_request *request, char *ret_text, size_t size);

/* Why an algorithm cannot run on the group: "AllGather over 8 ranks: ...". */
enum { CHOICE_REASON_BYTES = 320 };
void choice_reason(const struct plan_request *request, char *ret_text, size_t size);
/* Of what the request's algorithm is called in podsim (choice_synonym()). False: it can run, or
 * `synonym` is NULL. */
bool choice_synonym_reason(const struct plan_request *request, const char *synonym, char *ret_text,
                           size_t size);

/* Whether a name, or each of those with "+" between, is one that some collective has: "auto",
 * "hierarchical", a family of the catalogue, with "flat-" before it or not. */
bool choice_is_known(const char *name);

/* Refuses an algorithm that cannot run on the group, with the reason and the algorithms that can.
 */
enum status choice_make(const struct plan_request *request, const char *where,
                        struct choice *ret_choice, struct error *reterr);

#endif
