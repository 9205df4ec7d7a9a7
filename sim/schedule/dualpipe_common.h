/*
 * dualpipe_common.h: the order of passes that DualPipe and DualPipeV share: a rank serves two ways
 * through the model, 0 the one whose beginning is nearer, and overlaps forward passes of one with
 * backward passes of the other.
 *
 * Source: github.com/deepseek-ai/DualPipe, the eight steps of dualpipe.py and dualpipev.py.
 */
#ifndef SIM_SCHEDULE_DUALPIPE_COMMON_H
#define SIM_SCHEDULE_DUALPIPE_COMMON_H

#include "sim/schedule/schedule.h"

struct dualpipe_way {
    uint32_t stage;
    uint32_t microbatch_first;
    uint32_t forward_count, backward_count; /* Listed so far. */
};

struct dualpipe {
    struct schedule_list *list;
    struct dualpipe_way way[2];
    uint32_t weight_first; /* In the list: the oldest input gradient without its weight gradient. */
};

struct dualpipe_counts {
    uint32_t half;   /* Ranks from an end to where the ways turn or meet. */
    uint32_t place;  /* Of the rank, from that end. */
    uint32_t steady; /* Times that both ways overlap. */
    bool at_bottom;  /* The rank where the V turns: its first pair cannot overlap. */
};

void dualpipe_list(struct dualpipe *dual, const struct dualpipe_counts *counts);

/* (ends-1)(O+B-3W), O a pair's time or F+B; exact where F = I = W and 2F <= O <= 3F:
 * a longer pair than its passes in a row delays what follows on other ranks. */
struct schedule_formula dualpipe_formula(const struct schedule_request *request, uint32_t ends,
                                         const char *text);

#endif
