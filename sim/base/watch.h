/*
 * watch.h: whether long work should stop, for what knows of no shell.
 */
#ifndef SIM_BASE_WATCH_H
#define SIM_BASE_WATCH_H

#include <stdbool.h>

#include "sim/base/status.h"

/* Asked between the steps of long work. */
struct watch {
    bool (*stops)(void *owner);
    void *owner;
};

/* STATUS_INTERRUPTED if it should; NULL: never. */
enum status watch_check(const struct watch *watch, struct error *reterr);

#endif
