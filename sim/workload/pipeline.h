/*
 * pipeline.h: a training step over pipeline stages: each rank of pp plays the passes of its list,
 * and what one stage gives to the next travels as a message. Internal to sim/workload.
 */
#ifndef SIM_WORKLOAD_PIPELINE_H
#define SIM_WORKLOAD_PIPELINE_H

#include "sim/workload/lower.h"

/* Fills templates and roles: role r is rank r of pp. Failures go to lower->status. */
void lower_pipeline(struct lower *lower);

/* Parameters, moments and accumulated gradients of so many layers of each kind and, if so, of the
 * embedding and the head: there from the first to the last instant. */
void lower_resident(const struct local *local, const uint64_t layers[LOCAL_KINDS], bool embedding,
                    bool head, uint64_t resident_bytes[PROGRAM_MEMORY_COUNT]);

#endif
