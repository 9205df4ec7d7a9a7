/*
 * tables.h: what is constant during a run: durations, lanes, neighbours.
 */
#ifndef SIM_REPLAY_TABLES_H
#define SIM_REPLAY_TABLES_H

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/replay/landing.h"

struct arena;
struct plan;
struct primitive;
struct replay;

enum status tables_build(struct arena *arena, struct replay *replay, struct error *reterr);
/* Bytes on the wire of a payload, by the plan's protocol. */
uint64_t tables_wire_bytes(const struct plan *plan, uint64_t bytes);
/* The cost of a message, without its time on a link. */
struct message_cost tables_cost(const struct replay *replay, const struct plan *plan,
                                const struct primitive *primitive, uint64_t bytes);
/* Sets the lanes' pointers into the arrays of state, which must exist. */
void tables_attach(struct replay *replay);

#endif
