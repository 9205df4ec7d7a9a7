/*
 * stretch.h: stretches of a chip's step that come again. Internal to sim/replay.
 *
 * In a pipeline whose collectives fly, a chip mostly does what it did in an earlier pass: compute
 * ops end, collectives of its own group begin and end. A chip is quiet when a compute op has just
 * begun and nothing else is under way there. What it does up to the next quiet instant follows from
 * its state, unless somebody else comes. This stretch is recorded once. When the chip is quiet in
 * the same state again, the only event that is posted is the end of the stretch.
 *
 *   settle  the chip is quiet: its state is looked up
 *   record  the state is new: what happens is noted up to the next quiet instant, unless somebody
 *           else touches the chip meanwhile
 *   play    the state is known: the end is posted; all state of the chip stays as it is until then
 *   close   the end comes: all state becomes what it was behind the recorded stretch
 *   break   a message comes to the chip, or to a link that the stretch uses: the chip's handlers
 *           run from the begin up to now, in an engine of their own, and the events that wait go to
 *           the engine of the run
 *
 * Why the result is the same. Handlers compute with differences of instants, of counts of parts,
 * and of what servers have granted and settled. The name of a state (stretch_key.h) mixes all of
 * these that a handler of the chip may ask for in a stretch, and what ops of the slot and of the
 * next one need, to 128 bits. Of n states two have one name, if bits fall as by chance, with a
 * probability of n * n / 2^129, less than 1e-26 for as many as memory has room for. What it leaves
 * out is a sum; or is the past of a server, into which no message of the stretch may look
 * (server_notes); or is looked at each time, as links that have to be free. So a stretch is kept
 * only if what held a link at the begin of one of its collectives was its own (flight_start).
 * Whoever touches a chip breaks its stretch first, as chains are passed (chain.h). Which of its
 * events have been before is told by instants and keys. The end of a stretch has a key behind all
 * others of the chip, so a message of the same instant comes first, and breaks it.
 *
 * The chip is quiet at the end, in a state whose name is known: the next stretch begins there
 * without a look. The search for layers that recur compares stretches that are repeated, as it does
 * collectives that fly. The first chip has none, as the search is asked where it begins ops.
 *
 * A change of these can break exactness: a handler that reads a field of its chip which
 * state_fields.h says it does not; one that touches another chip without chain_clear(); books of a
 * chip that stretch_make.c does not keep. tests/property/test_flights.c holds drawn runs against
 * runs without stretches.
 */
#ifndef SIM_REPLAY_STRETCH_H
#define SIM_REPLAY_STRETCH_H

#include "sim/replay/chain.h"
#include "sim/replay/state.h"

struct flight_log;
struct stretch;
struct stretch_chip;
struct stretch_place;
struct stretch_recorder;
struct stretch_slots;

/* The stretch of a chip. */
struct stretch_run {
    const struct stretch *of; /* NULL: none is repeated. */
    int64_t begin_ps;
    int64_t end_ps; /* Instant of its event, which comes even if the stretch has been broken; 0: it
                       has come. */
};

struct stretches {
    struct stretch_run *runs;    /* [chip] */
    struct stretch_chip *chips;  /* [chip] */
    struct stretch_slots *slots; /* What ops of slots need. */
    struct server_notes *notes;  /* [chip]: what servers note while a stretch is recorded. */
    struct arena *arena;
    struct engine *engine; /* Handles events of a chip whose stretch is broken. */
    uint64_t bytes;        /* Of all that is recorded. */
    uint64_t looks;        /* For states of chips. */
    uint64_t strays;       /* Records that were none, since ops of another slot came into them. */
};

static const uint64_t stretch_key =
    (uint64_t)EVENT_FINISH_OR_PORT << KEY_KIND_SHIFT | (uint64_t)KEY_CHAINED << KEY_PORT_SHIFT;

/* Leaves replay->streams.stretches NULL where there are none. Needs chains. */
enum status stretches_build(struct arena *arena, struct replay *replay, struct error *reterr);

/* An op has begun, and all that its event lets happen on the chip has happened. True: a stretch is
 * repeated; else the op's end is to be posted. */
bool stretch_settle(struct replay *replay, uint32_t chip, int64_t now_ps);
/* The event of a stretch has come. */
void stretch_end(struct replay *replay, uint32_t chip);
void stretch_break(struct replay *replay, uint32_t chip);
void stretches_break_all(struct replay *replay);
/* Breaks the stretch that uses a link. */
void stretches_clear_link(struct replay *replay, const struct link_state *link);
/* The clock has been set forward: breaks all, as slots ahead are others. */
void stretches_jumped(struct replay *replay, int64_t later_ps);

/* What is recorded of a chip is no stretch. */
void stretch_drop(struct replay *replay, uint32_t chip);
/* While a stretch of the chip is recorded: */
void stretch_note_digest(struct replay *replay, uint32_t chip, int64_t now_ps, uint64_t key);
void stretch_note_flight(struct replay *replay, uint32_t stream, uint32_t chip,
                         const struct flight_log *log, int64_t begin_ps);
void stretch_note_effect(struct replay *replay, const struct program_effect *effect,
                         uint32_t stream, uint32_t chip, int64_t now_ps);
void stretch_note_class(struct replay *replay, uint32_t chip, uint32_t class_index, int64_t end_ps);
void stretch_note_pass(struct replay *replay, uint32_t chip, int64_t until_ps, int64_t begin_ps,
                       int64_t end_ps);
void stretch_note_events(struct replay *replay, uint32_t chip, int64_t count);

/* Asked by each op and message: where no stretch is recorded, a count says so. */
static inline bool stretch_is_recorded(const struct replay *replay, uint32_t chip)
{
    return __builtin_expect(replay->streams.recorded != 0, 0) &&
           replay->streams.stretches->notes[chip].is_on;
}

/* Somebody else touches the state of a chip. */
static inline void stretch_clear(struct replay *replay, uint32_t chip)
{
    const struct stretches *stretches = replay->streams.stretches;
    if (replay->streams.stretched == 0) return;
    if (stretches->runs[chip].of != NULL) stretch_break(replay, chip);
    if (stretches->notes[chip].is_on) stretch_drop(replay, chip);
}

#endif
