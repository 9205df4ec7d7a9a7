#include "sim/base/cancel.h"

#include <stddef.h>

enum status cancel_check(const struct cancel *watch, struct error *reterr)
{
    if (watch == NULL || !watch->stops(watch->owner)) return STATUS_OK;
    return error_set(reterr, STATUS_INTERRUPTED, "", "interrupted");
}
