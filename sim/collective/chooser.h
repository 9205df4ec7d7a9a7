/*
 * chooser.h: who names an algorithm where none is asked for, and a protocol. For whoever builds
 * plans without knowing what takes how long (sim/measure/choices.h).
 */
#ifndef SIM_COLLECTIVE_CHOOSER_H
#define SIM_COLLECTIVE_CHOOSER_H

#include "sim/base/status.h"
#include "sim/collective/plan.h"

struct plan_chooser {
    /* Sets `algorithm` of a request of which all else is set; links need not be. The name lives as
     * long as the owner. */
    enum status (*choose)(void *owner, struct plan_request *request, const char *where,
                          struct error *reterr);
    /* Sets `protocol` of a request that has its algorithm. NULL: nobody has protocols. */
    enum status (*convey)(void *owner, struct plan_request *request, const char *where,
                          struct error *reterr);
    void *owner;
};

#endif
