/*
 * stretch_key.h: the name of a quiet state of a chip. Internal to stretch*.c.
 */
#ifndef SIM_REPLAY_STRETCH_KEY_H
#define SIM_REPLAY_STRETCH_KEY_H

#include "sim/replay/stretch.h"

/* The name of a quiet state. */
struct stretch_key {
    uint64_t mixed[2];
};

enum status stretch_slots_build(struct arena *arena, struct replay *replay,
                                struct stretch_slots **ret_slots, struct error *reterr);

/* Parts of each stream before the slot of the compute stream. */
void stretch_bases(const struct replay *replay, uint32_t chip, int64_t *ret_bases);

/* No op has needed the server so far, so how long that is says nothing. */
static inline bool stretch_server_rests(const struct server_state *state,
                                        const struct server_past *past)
{
    return state->edge_ps == 0 && past->run_begin_ps == 0 && past->run_count == 0 && !past->needed;
}

/* The latest run of the server had no length, so the break before it goes on. */
static inline bool stretch_run_is_empty(const struct server_state *state,
                                        const struct server_past *past)
{
    return !past->needed && past->run_begin_ps == state->edge_ps;
}

/* Names the state of a chip that is quiet. False: it has no name. */
bool stretch_key_find(struct replay *replay, uint32_t chip, int64_t now_ps,
                      struct stretch_key *ret_key);

/* Whether a chip still has what no stretch may change (NAMED_QUIET, NAMED_FIXED), but instants. */
bool stretch_leaves(const struct chip_state *was, const struct chip_state *is);

#endif
