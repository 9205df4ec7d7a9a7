/*
 * recur_search.h: the search for layers that recur. Internal to recur.c, recur_ahead.c and
 * recur_kept.c.
 */
#ifndef SIM_REPLAY_RECUR_SEARCH_H
#define SIM_REPLAY_RECUR_SEARCH_H

#include "sim/replay/event_key.h"
#include "sim/replay/recur_kept.h"
#include "sim/replay/recur_state.h"

enum { RECUR_EPOCHS = 1 << KEY_EPOCH_BITS };

/* What waits in the engine, but for the clock: two sums of mixed events. */
struct recur_pending {
    uint64_t count, sums[2];
    int64_t latest_ps; /* Instant of the last one. */
};

struct recur {
    struct arena *arena;
    struct recur_state state;
    bool only_rest; /* The state is looked at where every chip computes and nothing is on a link. */
    bool has_image;
    struct recur_pending image_pending;
    int64_t image_ps;
    uint64_t image_events;
    uint32_t first;    /* Slot of the first chip when the search began. */
    uint32_t next;     /* Slot from which on the next image is taken. */
    int64_t period_ps; /* While a period is kept; else 0. */
    struct recur_kept kept;
    int64_t latest_ps; /* Of what waits now. */
    /* From the image to now, of each stream: */
    uint32_t slots;                       /* Of those that went on. */
    uint32_t parts[PROGRAM_STREAMS_MAX];  /* Done and begun; 0: it waits where it was. */
    uint32_t epochs[PROGRAM_STREAMS_MAX]; /* Collectives begun, modulo RECUR_EPOCHS. */
};

/* recur_ahead.c: how many more periods are like the one since the image. */
uint64_t recur_periods_ahead(struct replay *replay);

#endif
