/*
 * pipeline.h: a training step over pipeline stages: each rank of pp plays the passes of its list,
 * and what one stage gives to the next travels as a message. Internal to sim/workload.
 */
#ifndef SIM_WORKLOAD_PIPELINE_H
#define SIM_WORKLOAD_PIPELINE_H

#include "sim/schedule/schedule.h"
#include "sim/workload/lower.h"

/* Fills templates and roles: role r is rank r of pp. Failures go to lower->status. */
void lower_pipeline(struct lower *lower);

/* Parameters, moments and accumulated gradients of so many layers of each kind and, if so, of the
 * embedding and the head: there from the first to the last instant. */
void lower_resident(const struct local *local, const uint64_t layers[LOCAL_KINDS], bool embedding,
                    bool head, uint64_t resident_bytes[PROGRAM_MEMORY_COUNT]);

/* Refused (pipeline_check.c): what no pipeline can have; a schedule that puts both ends of a model
 * that ties them on one rank. */
enum status pipeline_check(const struct local *local, struct error *reterr);
enum status pipeline_schedule_check(const struct local *local, const struct schedule *schedule,
                                    struct error *reterr);

/* A tied matrix on both ends of a pipeline (lower_twins.c): a template in which an end's gradient
 * goes to the other, that one's comes, and they are added up; and the block that plays it before
 * all updates, which is when the other end waits for it, and has got so many messages. */
uint16_t lower_twin(struct lower *lower, const struct schedule *schedule, bool head);
struct program_block lower_twin_block(const struct schedule *schedule, bool head,
                                      uint16_t template_index, uint64_t arrivals);

#endif
