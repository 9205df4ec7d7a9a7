/*
 * recur_state.h: the arrays of a run's state, and how each part of them moves where the same
 * happens again (state_fields.h). Internal to recur.c and recur_ahead.c, which have the conditions
 * that span several fields.
 */
#ifndef SIM_REPLAY_RECUR_STATE_H
#define SIM_REPLAY_RECUR_STATE_H

#include "sim/replay/state.h"
#include "sim/replay/state_fields.h"

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
    /* In the image. Chips that are alike lie side by side, so equal items that follow one another
     * are kept once. */
    char *runs;         /* [run]: an item. */
    uint32_t *run_ends; /* [run]: index of the first item behind it. */
    uint32_t run_count;
    uint32_t run_latest; /* The one that was asked for last. */
};

enum { RECUR_ARRAYS_MAX = 32 + 4 * LEVELS_MAX * LEVEL_TIERS_MAX };

/* The arrays, and of each its image: a copy of an earlier instant. */
struct recur_state {
    struct recur_array array[RECUR_ARRAYS_MAX];
    uint32_t array_count;
    uint64_t item_count; /* Of all arrays: what an image and a comparison cost. */
};

/* Names the arrays of a run that has been set up, and makes room for images of any state. */
enum status recur_state_build(struct arena *arena, struct replay *replay,
                              struct recur_state *ret_state, struct error *reterr);

void recur_image_take(struct recur_state *state);

/* An item of an array as it was when its image was taken. */
const void *recur_item_at(struct recur_array *array, uint64_t index);

/* An item as the image has it, of the array whose items of now are named. */
const void *recur_image_of(struct recur_state *state, const void *items, uint64_t index);

/* Whether an item equals that of `period_ps` ago, as the kinds of its fields say; sums may differ.
 */
bool recur_item_again(const struct recur_field *fields, const char *then, const char *now,
                      int64_t image_ps, int64_t period_ps);
/* Whether all items of an array do. `then`: the array with the image. */
bool recur_array_again(const struct recur_array *array, struct recur_array *then, int64_t image_ps,
                       int64_t period_ps);

/* Whether the state equals the image, the state of `period_ps` ago, as the kinds of fields say. */
bool recur_state_again(struct recur_state *state, int64_t image_ps, int64_t period_ps);

/* The state after `times` more periods like the one since the image. */
void recur_state_repeat(struct recur_state *state, uint64_t times);

#endif
