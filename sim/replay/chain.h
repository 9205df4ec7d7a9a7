/*
 * chain.h: compute ops of a chip that follow one another while nothing else goes on there. Such a
 * chain has one event, for the end of its last op, in place of one for each op.
 *
 *   begin  an op begins, nobody waits for it or for the next ones, which need nothing, and the chip
 *          sends nothing: the event of the chain is posted
 *   pass   the event comes, or another event of the chip, or a message to it: ops that have ended
 *          by then end, one by one
 *   break  it was another event, or a message: the op that runs gets an event of its own
 *
 * Why the result is the same. Ops of a chain end and begin by the functions of other ops, in the
 * same order and with the same instants. These functions read and write the state of their chip
 * alone, which nobody asks for meanwhile: whoever is about to do so passes the chain first. What
 * they add to sums of the run has no order. The event comes no later than the last op ends, as
 * messages only delay ops. If it comes too early, the op gets an event of its own.
 *
 * What has ended by an event is told by the order that flights have of it (flight.h). The first
 * chip has no chains, as the search for layers that recur is asked where it begins ops; chains are
 * part of the state that the search compares (recur_state.h). There are chains where collectives
 * may fly, in pipelines whose stages have too few chips to go through handlers together (batch.h).
 *
 * A change of these can break exactness: an event that touches another chip than its own without
 * chain_clear(); an end of an op that does more than op_leave() and compute_closed().
 * tests/property/test_flights.c holds drawn runs against runs without chains.
 */
#ifndef SIM_REPLAY_CHAIN_H
#define SIM_REPLAY_CHAIN_H

#include "sim/replay/state.h"

/* The chain of a chip. */
struct chain {
    int64_t end_ps; /* Instant of its event, which comes even if the chain has been broken. */
    uint32_t left;  /* Ops that have not begun. */
    bool runs;
};

struct chains {
    struct chain *of;   /* [chip] */
    uint32_t run_count; /* Chains that run. */
    uint32_t offered;   /* A chip where an op has begun whose end is not posted yet. */
    bool is_offered;
};

static const uint64_t chain_key =
    (uint64_t)EVENT_COMPUTE_END << KEY_KIND_SHIFT | (uint64_t)KEY_CHAINED << KEY_PORT_SHIFT;

/* Leaves replay->streams.chains NULL where there are none. Needs the flights. */
enum status chains_build(struct arena *arena, struct replay *replay, struct error *reterr);

/* An op has begun. Its end is posted when all that its event lets happen on the chip has happened:
 * by chains_settle(), or before another chip is offered. */
void chain_offer(struct replay *replay, uint32_t chip);
/* An event has been handled: what has begun is the first op of a chain, or its end is posted. */
void chain_settle(struct replay *replay, int64_t now_ps);
/* The event of a chain has come. */
void chain_end(struct replay *replay, uint32_t chip, int64_t now_ps);
/* Passes a chain that runs, and breaks it. */
void chain_break(struct replay *replay, uint32_t chip);
void chains_break_all(struct replay *replay);

/* Before an event touches the state of a chip. */
static inline void chain_clear(struct replay *replay, uint32_t chip)
{
    const struct chains *chains = replay->streams.chains;
    if (chains != NULL && chains->run_count > 0 && chains->of[chip].runs) chain_break(replay, chip);
}

static inline void chains_settle(struct replay *replay, int64_t now_ps)
{
    if (replay->streams.chains != NULL && replay->streams.chains->is_offered)
        chain_settle(replay, now_ps);
}

#endif
