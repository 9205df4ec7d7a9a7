/*
 * worker.h: long work next to a loop: the work runs on a thread of its own, the loop shows progress
 * on a terminal and takes Ctrl-C as a wish to stop cleanly.
 */
#ifndef TOOLS_PODSIM_COMMON_WORKER_H
#define TOOLS_PODSIM_COMMON_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "tools/podsim/common/progress.h"

struct worker;

/* The work. It calls worker_check() between its steps, reports through worker_progress(), and
 * returns STATUS_INTERRUPTED if it stopped for the user. */
typedef enum status worker_work_fn(void *owner, struct worker *worker, struct error *reterr);

/* Runs the work to its end and returns what it returned. `words` say what the progress is of. */
enum status worker_run(worker_work_fn *work, void *owner, struct progress_words words,
                       struct error *reterr);

/* For the work: refuses to go on if the user wants it to stop. */
enum status worker_check(struct worker *worker, struct error *reterr);
/* Whether the user wants the work to stop, for code that knows no worker: of a struct cancel, whose
 * owner is the worker. */
bool worker_stops(void *worker);
/* For the work: how far its current run is, for the loop to show; `events` of this run. Returns
 * false if it should stop. */
bool worker_progress(struct worker *worker, double share, uint64_t events);
/* worker_progress() of work whose runs are parts of one whole, also on several threads (pool.h):
 * `share` of the whole, `events` of all runs. */
bool worker_show(struct worker *worker, double share, uint64_t events);

#endif
