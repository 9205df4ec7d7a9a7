/*
 * shell.h: long work next to a loop: the work runs on a thread of its own, the loop shows progress
 * on a terminal and takes Ctrl-C as a wish to stop cleanly.
 */
#ifndef TOOLS_PODSIM_COMMON_SHELL_H
#define TOOLS_PODSIM_COMMON_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct shell;

/* The work. It looks at shell_stopped() between its steps, reports through shell_progress(), and
 * returns STATUS_INTERRUPTED if it stopped for the user. */
typedef enum status shell_work_fn(void *owner, struct shell *shell, struct error *reterr);

/* Runs the work to its end and returns what it returned. `whole` is what the progress is of:
 * "step". */
enum status shell_run(shell_work_fn *work, void *owner, const char *whole, struct error *reterr);

/* For the work: refuses to go on if the user wants it to stop. */
enum status shell_check(struct shell *shell, struct error *reterr);
/* The same for what knows of no shell: a struct watch, whose owner is the shell. */
bool shell_stops(void *shell);
/* For the work: how far it is, for the loop to show. Returns false if it should stop. */
bool shell_progress(struct shell *shell, double share, uint64_t events);

#endif
