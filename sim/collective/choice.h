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

/* The family of what is called otherwise elsewhere: of NCCL's names (src/include/nccl_tuner.h)
 * NVLS and CollNet add in the switches, PAT is Bruck's; "rhd" halves and doubles recursively. Not
 * every kind has the family. PRIMITIVE_FAMILY_COUNT: nothing is called so. */
enum primitive_family choice_synonym(const struct algorithm *algorithm);

/* "ring+line", the algorithm of a grid whose axes differ: each goes by what suits it. */
struct algorithm choice_mixed(void);

/* What `auto` takes along a dimension of the group, alone or with others. */
enum primitive_family choice_suited(const struct plan_request *request, enum collective_kind kind,
                                    uint32_t dimension, const struct choice *choice);

/* What an algorithm is on the group; false if nothing that can run. */
bool choice_find(const struct plan_request *request, const struct algorithm *algorithm,
                 struct choice *ret_choice);

/* Why an algorithm cannot run. */
enum { CHOICE_VERDICT_BYTES = 160 };
struct choice_verdict {
    bool known; /* Some primitive is of a family that was asked for. */
    char reason[CHOICE_VERDICT_BYTES];
};
/* As choice_find(), with the reason where nothing can run. */
bool choice_judge(const struct plan_request *request, const struct algorithm *algorithm,
                  struct choice *ret_choice, struct choice_verdict *ret_verdict);

/* choice_names.c: "auto, line, ring": the names without "+" that can run on the group. */
void choice_list(const struct plan_request *request, char *ret_text, size_t size);

/* Why an algorithm cannot run on the group: "AllGather over 8 ranks: ...". */
enum { CHOICE_REASON_BYTES = 320 };
void choice_reason(const struct plan_request *request, char *ret_text, size_t size);
/* Why the request cannot go by a family, where its algorithm is called otherwise
 * (choice_synonym()). False: it can, or there is no family. */
bool choice_synonym_reason(const struct plan_request *request, enum primitive_family synonym,
                           char *ret_text, size_t size);

/* Whether some collective has the algorithm, or that of each level: "auto", "hierarchical", a
 * family of the catalogue, with "flat-" before it or not. */
bool choice_is_known(const struct algorithm *algorithm);

/* Refuses an algorithm that cannot run on the group, with the reason and the algorithms that can.
 */
enum status choice_make(const struct plan_request *request, const char *where,
                        struct choice *ret_choice, struct error *reterr);

#endif
