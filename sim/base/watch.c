#include "sim/base/watch.h"

#include <stddef.h>

enum status watch_check(const struct watch *watch, struct error *reterr)
{
    if (watch == NULL || !watch->stops(watch->owner)) return STATUS_OK;
    return error_set(reterr, STATUS_INTERRUPTED, "", "interrupted");
}
