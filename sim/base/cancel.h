/*
 * cancel.h: whether long work should stop, for code that knows no worker.
 */
#ifndef SIM_BASE_CANCEL_H
#define SIM_BASE_CANCEL_H

#include <stdbool.h>

#include "sim/base/status.h"

/* Asked between the steps of long work. */
struct cancel {
    bool (*stops)(void *owner);
    void *owner;
};

/* STATUS_INTERRUPTED if it should; NULL: never. */
enum status cancel_check(const struct cancel *cancel, struct error *reterr);

#endif
