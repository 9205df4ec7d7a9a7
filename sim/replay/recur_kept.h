/*
 * recur_kept.h: the events of a period that are in the digest, and whether epochs meet in it.
 * Internal to recur.c.
 */
#ifndef SIM_REPLAY_RECUR_KEPT_H
#define SIM_REPLAY_RECUR_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct kept_entry;
struct kept_flight;
struct kept_pass;
struct met;
struct replay;

/* Two messages of a stream whose orders differ by their epochs alone, at one instant. */
struct met_pair {
    uint8_t epoch[2];
    uint8_t stream;
    uint16_t role;
    bool is_known; /* Else it is not told whose epochs they are. */
};

enum { RECUR_MEETS = 512 };

struct recur_kept {
    struct kept_entry *entries; /* Each of an instant and a key. */
    uint64_t entry_count;
    /* The chips of all entries, one after another: how much greater each is than the one before, in
     * bytes of 7 bits. */
    unsigned char *chips;
    uint64_t chips_bytes;
    uint32_t chip_last;
    uint64_t room;       /* Events. */
    uint64_t entry_room; /* Entries, flights and passes, each. */
    struct kept_flight *flights;
    uint64_t flight_count;
    struct kept_pass *passes;
    uint64_t pass_count;
    bool failed;         /* There were too many events, or epochs met. */
    uint32_t *met_first; /* [plan]: of its first lane, in `met`. */
    uint32_t met_roles;  /* 1: chips of several roles share links, or the roles are too many. */
    struct met *met;     /* [lane][role][kind of event] */
    uint64_t met_count;
    struct met_pair *meets; /* [number of the meeting % RECUR_MEETS]: the last ones. */
};

enum status recur_kept_build(struct arena *arena, const struct replay *replay,
                             struct recur_kept *ret_kept, struct error *reterr);
/* What another run of the same plans has seen last. False: they are others. */
bool recur_met_share(const struct recur_kept *from, struct recur_kept *to);
/* Makes room for the events of a period, and forgets what was kept. False: they are too many. */
bool recur_kept_begin(struct replay *replay, uint64_t events);
/* The digest takes all that was kept `times` more, each a period later. */
void recur_kept_repeat(struct replay *replay, int64_t period_ps, uint64_t times);
/* Passes take their times of the slots of further periods. */
void recur_passes_repeat(struct replay *replay, int64_t period_ps, uint64_t times);

#endif
