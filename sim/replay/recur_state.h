/*
 * recur_state.h: what the state of a run at rest consists of, and how each part of it moves where
 * the same happens again. Internal to recur.c.
 *
 * At rest every chip computes, and nothing is on a link. All that is then known of the future lies
 * in the arrays that are named here. Each field is of one kind:
 *   SAME     it is the same again
 *   INSTANT  it is later by the period; or it lies in the past, and nothing has changed it
 *   SUM      it only counts: it has grown, and will grow by as much again
 */
#ifndef SIM_REPLAY_RECUR_STATE_H
#define SIM_REPLAY_RECUR_STATE_H

#include "sim/replay/state.h"

enum recur_kind { RECUR_SAME, RECUR_INSTANT, RECUR_SUM };

/* `count` numbers of `bytes` each, one after the other. */
struct recur_field {
    enum recur_kind kind;
    uint16_t offset, bytes, count;
};

struct recur_array {
    void *items;
    uint64_t count;
    uint32_t item_bytes;
    bool only_sums;
    const struct recur_field *fields; /* Ends with one of 0 bytes. */
    uint64_t image_at;                /* Of its copy in an image, in bytes. */
};

enum { RECUR_ARRAYS_MAX = 24 + 4 * LEVELS_MAX * LEVEL_TIERS_MAX };

struct recur_state {
    struct recur_array array[RECUR_ARRAYS_MAX];
    uint32_t array_count;
    uint64_t image_bytes;
};

/* Names the arrays of a run that has been set up. */
void recur_state_list(struct replay *replay, struct recur_state *ret_state);

void recur_image_take(const struct recur_state *state, char *image);

/* Where the items of an array lie in an image; NULL: it has none of this array. */
const void *recur_image_of(const struct recur_state *state, const char *image, const void *items);

/* Whether the state equals the image, the state of `period_ps` ago, as the kinds of fields say. */
bool recur_state_again(const struct recur_state *state, const char *image, int64_t image_ps,
                       int64_t period_ps);

/* The state after `times` more periods like the one since the image. */
void recur_state_repeat(const struct recur_state *state, const char *image, uint64_t times);

#endif
