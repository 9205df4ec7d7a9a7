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

/* What waits in the engine and at links, but for the clock: two sums of mixed events. */
struct recur_pending {
    uint64_t count, sums[2];
    int64_t earliest_ps, latest_ps; /* Instants of events. */
    bool turn_ends;                 /* At this instant, as an event says that is still to come. */
};

struct recur_event;

/* What chips of a role have done from the image to now. */
struct recur_role {
    bool found;                           /* Some chip of the role has been compared. */
    uint32_t slots;                       /* Of streams that went on. */
    uint32_t parts[PROGRAM_STREAMS_MAX];  /* Done and begun; 0: the stream waits where it was. */
    uint32_t epochs[PROGRAM_STREAMS_MAX]; /* Collectives begun, modulo RECUR_EPOCHS. */
    uint32_t came[PROGRAM_STREAMS_MAX];   /* Messages of other ranks. */
};

struct recur {
    struct arena *arena;
    struct recur_state state;
    bool routed; /* Messages name their receivers, and epochs. */
    bool has_image;
    struct recur_pending pending, image_pending;
    uint64_t image_waiting;                                 /* Events in the engine then. */
    struct stream_state first_streams[PROGRAM_STREAMS_MAX]; /* [stream] of the first chip, then. */
    int64_t image_ps;
    uint64_t image_events;
    uint64_t image_handled; /* Of these, one by one. */
    uint32_t first;         /* Slot of the first chip when the search began. */
    uint32_t next;          /* Slot from which on the next image is taken. */
    uint32_t rests_until;   /* Slot from which on states are compared. */
    uint32_t barren;        /* Periods in turn that were not worth keeping. */
    int64_t period_ps;      /* While a period is kept; else 0. */
    struct recur_kept kept;
    struct recur_role *roles;   /* [role] */
    struct recur_event *events; /* While the clock is set forward. */
    uint64_t event_count, events_room;
    struct recur_steps *steps; /* recur_steps.h; NULL: there are no further ones. */
    bool watches;              /* For these, epochs that meet are looked for all the time. */
    uint64_t met_count;        /* Epochs that have met. */
    uint64_t look_backs; /* Messages that looked behind the two latest ended runs of a server. */
};

static inline const struct recur_role *recur_role_of(const struct replay *replay, uint32_t chip)
{
    return &replay->recurrence.search->roles[replay->chips[chip].role];
}

/* Events that have been handled one by one: what a run costs. */
static inline uint64_t recur_handled_count(const struct replay *replay)
{
    return engine_event_count(replay->engine) - replay->tally.flown;
}

/* recur_others.c: what waits now. */
struct recur_pending recur_pending_find(struct replay *replay);
/* recur.c: finds what waits. False where no state is compared. */
bool recur_pending_known(struct replay *replay);
/* recur_others.c: whether no message has come before its collective began, or out of order, and
 * switches add nothing. */
bool recur_inboxes_are_empty(const struct replay *replay);
/* recur_others.c: makes room for the events that wait now. False: there is no memory. */
bool recur_events_reserve(struct replay *replay);
/* recur_others.c: what is no array over chips, as it is `times` periods later, when `event_count`
 * more events have been handled. The arrays are so already. */
void recur_others_repeat(struct replay *replay, int64_t period_ps, uint64_t times,
                         uint64_t event_count);
/* recur_ahead.c: how many more periods are like the one since the image, as far as `most`; 0: fewer
 * than `worth`, which is at least 1 and no more than `most`. */
uint64_t recur_periods_ahead(struct replay *replay, uint64_t worth, uint64_t most);

#endif
