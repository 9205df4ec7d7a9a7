#include "sim/base/parallel.h"

#include <stddef.h>

enum status parallel_run(const struct parallel *parallel, const struct parallel_work *work,
                         struct error *reterr)
{
    if (parallel != NULL) return parallel->run(parallel->owner, work, reterr);
    for (uint32_t part = 0; part < work->part_count; part++)
        STATUS_TRY(work->part(work->owner, part, 0, reterr));
    return STATUS_OK;
}
