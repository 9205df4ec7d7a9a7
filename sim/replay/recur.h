/*
 * recur.h: layers and microbatches that are alike, one behind another, of which few are simulated.
 *
 * When. Each time the first chip begins an op, the run stops for a moment. It compares its state
 * with that of an earlier such instant, the image. The state is what state_fields.h names, what
 * waits in the engine, what links keep of messages that leave or take turns, and which events are
 * void. If the state is the same but for the clock, and each stream is as many slots further as
 * the others of its role, the time since the image is a period. One more period is simulated, of
 * which each event in the digest is kept. If the state is then the same once more, the run goes on
 * from where all further periods would have led it, as long as the slots ahead have the same
 * templates.
 *
 * Where the state is looked at. Some state is in no comparison: messages that came before their
 * collective began, collectives of all chips that some have not begun (flight_group.h), sums that
 * switches have begun, and chips that are in different steps. Where
 * there is any, the run goes on to the next op.
 *
 * Why that is exact. No handler asks for the clock as such, but how much later one instant is than
 * another; instants of the past that do not move are found to be past, now and later. Ops ask for
 * templates and needs, of which each is held against that of the period before. What is left of a
 * state are sums that no handler reads. So from a state that is later by a period, and slots that
 * are alike, follows what followed before, later by a period. Some things are not of that form, and
 * are looked at one by one:
 *   - streams that wait for something that does not move: it must not come meanwhile;
 *   - memory: a period that takes memory comes to its peak at the same place each time, and the
 *     peak grows by as much; one that gives memory back stays below the peak of before;
 *   - epochs (routed.h) count from the sender's own, and wrap: if two messages that may meet at a
 *     link, and whose orders differ by epochs only, came to be handled at one instant, which goes
 *     first would change with the number of the period, and nothing is left out;
 *   - the digest names instants and epochs: it takes each kept event once for each period;
 *   - messages between ranks and passes are numbered: their instants are written for each period.
 * What waits, in the engine and at links, is compared by two sums of mixed numbers, of 128 bits in
 * all.
 *
 * Everything is simulated where chips have more speeds than a search is worth, where the queue is
 * `reference`, where a timeline, curves or waits are asked for, and where there are weights that
 * come early, copies to hosts, launches by a host or fixed ways over several links, whose state is
 * not named in state_fields.h.
 */
#ifndef SIM_REPLAY_RECUR_H
#define SIM_REPLAY_RECUR_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct flight_log;
struct recur;
struct replay;

/* Of chips with more speeds the state was never seen to come again. */
enum { RECUR_CHIP_CLASSES_MAX = 16 };

struct recurrence {
    struct recur *search; /* NULL: all layers are simulated. */
    bool asked;           /* The engine was stopped to look at the state. */
    bool keeps;           /* A period's events are kept. */
    bool watches;         /* Epochs that meet are looked for (recur_event()). */
};

/* Leaves the search NULL where everything is simulated, or no memory is left for it. Needs all
 * other parts of the run. */
void recur_build(struct arena *arena, struct replay *replay);

/* Chips begin an op: stops the engine if the first is among them. */
void recur_ask(struct replay *replay, const uint32_t *chips, uint32_t count);
/* The engine has stopped. Whether it was for this, and the run is to go on. */
bool recur_rest(struct replay *replay);

/* While epochs that meet are looked for: an event is about to be handled. */
void recur_event(struct replay *replay, int64_t now_ps, uint64_t key, const uint32_t *chips,
                 uint32_t count);
/* A collective that flew has ended. */
void recur_flight(struct replay *replay, const struct flight_log *log, int64_t begin_ps,
                  uint32_t epoch, uint32_t stream, uint32_t chip);
/* A collective of a stream lands for an event: which of its messages have been before is decided by
 * orders. */
void recur_land(struct replay *replay, uint64_t key, uint32_t stream);
void recur_digest_add(struct replay *replay, int64_t now_ps, uint64_t key, uint32_t chip);
/* While a period is kept: an op has ended on a chip whose passes are counted (breakdown_pass()). */
void recur_pass(struct replay *replay, uint32_t chip, int64_t counted_ps, int64_t begin_ps,
                int64_t end_ps);

#endif
