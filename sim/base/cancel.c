#include "sim/base/cancel.h"

#include <stddef.h>

enum status cancel_check(const struct cancel *cancel, struct error *reterr)
{
    if (cancel == NULL || !cancel->stops(cancel->owner)) return STATUS_OK;
    return error_set(reterr, STATUS_INTERRUPTED, "", "interrupted");
}
