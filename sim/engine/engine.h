/*
 * engine.h: the virtual clock, and the one order in which events happen.
 *
 * An event is (instant, key, chip), posted once and never moved or cancelled. The key names the
 * event relative to its chip (phase, kind, port, stream, lane, hop); a smaller key comes first.
 * Events of equal (instant, key) on several chips share one entry of the queue, and the handler
 * is called once with the list of chips. The order among these chips is not defined, so handlers
 * must obey two rules, from which determinism and the exactness of folding follow:
 *   1. a handler touches the state of one chip only, besides read-only data, sums, and what no
 *      other event of the same (instant, key) touches (links that many chips share);
 *   2. it posts to another chip at least 1 ps later (to its own chip: at once is allowed; at a
 *      switch too, if the key is greater than that of the event being handled).
 *
 * The queue behind it can be chosen: `fast` is a timing wheel of several levels; `reference` is a
 * plain binary heap of single events. Both give the same digest.
 *
 * Threads. An engine belongs to one thread. Many engines may run at once; they share nothing.
 */
#ifndef SIM_ENGINE_ENGINE_H
#define SIM_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct engine;

/* The most chips that a handler is called with. */
enum { ENGINE_BATCH_MAX = 62 };

/* Called with `count` chips whose event is due at engine_now_ps(). */
typedef void engine_handler_fn(void *owner, struct engine *engine, int64_t now_ps, uint64_t key,
                               const uint32_t *chips, uint32_t count);

/* Called with events of one key on different chips, each at its instant (windows.h). */
typedef void engine_window_fn(void *owner, uint64_t key, const uint32_t *chips,
                              const int64_t *at_ps, uint32_t count);

/* Called with the events of a list before the list in front of it is handled, to prefetch what some
 * of them will touch. It must change nothing. */
typedef void engine_window_ahead_fn(void *owner, uint64_t key, const uint32_t *chips,
                                    uint32_t count);

/* Called between batches every few thousand events; returning false stops the run cleanly. */
typedef bool engine_watch_fn(void *owner, int64_t now_ps, uint64_t event_count);

/* Called some time before the handler, for events of a single chip, to prefetch the chip's state.
 * It must change nothing. */
typedef void engine_ahead_fn(void *owner, uint64_t key, uint32_t chip);

struct engine_options {
    const char *queue; /* "fast" or "reference" */
    uint32_t chip_count;
    uint32_t channel_count;
    uint64_t pending_max;  /* Bound on events posted and not yet handled. */
    bool pending_is_limit; /* A run that exceeds pending_max ends with STATUS_LIMIT. False: proven.
                            */
    uint64_t event_count_max; /* 0: no limit. */
    engine_handler_fn *handler;
    engine_ahead_fn *ahead; /* May be NULL. */
    void *owner;
    engine_watch_fn *watch; /* May be NULL. */
    void *watch_owner;
};

enum status engine_create(struct arena *arena, const struct engine_options *options,
                          struct engine **ret_engine, struct error *reterr);

/* Of the fast queue, before the first post: no post to another chip lies less than `lookahead_ps`
 * ahead, so events of several instants are handed over together. `ahead` may be NULL. */
enum status engine_take_windows(struct arena *arena, struct engine *engine, int64_t lookahead_ps,
                                engine_window_fn *handler, engine_window_ahead_fn *ahead,
                                struct error *reterr);

/* `at_ps` must not lie in the past. At or after TIME_PS_END the run ends with STATUS_LIMIT. Events
 * of one key are posted by one channel. */
void engine_post(struct engine *engine, int64_t at_ps, uint64_t key, uint32_t channel,
                 uint32_t chip);

/* As engine_post() for one chip after the other. Behind the first, none is the one before it, or
 * the first of those that wait for the instant with this key. */
void engine_post_many(struct engine *engine, int64_t at_ps, uint64_t key, uint32_t channel,
                      const uint32_t *chips, uint32_t count);

/* Runs until no event is left (STATUS_OK), a limit is exceeded (STATUS_LIMIT), or the watcher stops
 * the run (STATUS_INTERRUPTED). */
enum status engine_run(struct engine *engine, struct error *reterr);

/* From a handler: the run returns once this batch is handled, with STATUS_OK and events waiting. */
void engine_pause(struct engine *engine);

/* Hands all pending events in their order to another handler, which must not post to this engine.
 * Clock and counts stay. */
void engine_drain(struct engine *engine, engine_handler_fn *handler, void *owner);

/* Forgets all pending events. Clock and counts stay. */
void engine_forget(struct engine *engine);

/* Continues another engine that has stopped: takes its clock, and its counts times `factor`. */
void engine_continue(struct engine *engine, const struct engine *other, uint64_t factor);

/* Of the fast queue: shows pending events, in no order. Chips of one instant and key may come in
 * several lists. */
typedef void engine_pending_fn(void *owner, int64_t at_ps, uint64_t key, const uint32_t *chips,
                               uint32_t count);
void engine_pending_each(struct engine *engine, engine_pending_fn *each, void *owner);

/* Of the fast queue: sets the clock and all pending events forward, as if `event_count` more had
 * been handled. No event may come to lie after TIME_PS_END. */
void engine_jump(struct engine *engine, int64_t by_ps, uint64_t event_count);

/* Of the reference queue, without pending events: starts anew at an instant, with no event counted.
 */
void engine_restart(struct engine *engine, int64_t now_ps);

/* Of the reference queue: handles the events before (instant, key). */
void engine_run_before(struct engine *engine, int64_t at_ps, uint64_t key);

/* Counts events that were handled elsewhere; below 0: handled here, and not to be counted. */
void engine_count(struct engine *engine, int64_t event_count);

bool engine_is_reference(const struct engine *engine);
uint64_t engine_pending_count(const struct engine *engine);
int64_t engine_now_ps(const struct engine *engine);
uint64_t engine_event_count(const struct engine *engine);
uint64_t engine_entry_count(const struct engine *engine); /* Batches taken from the queue. */

#endif
