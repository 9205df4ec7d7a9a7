/*
 * room.h: how many sequences would fit where a step of inference does not.
 */
#ifndef TOOLS_PODSIM_RUN_ROOM_H
#define TOOLS_PODSIM_RUN_ROOM_H

#include "sim/report/inference_fit.h"
#include "tools/podsim/common/session.h"

struct worker;

/* The largest batch that fits, by the memory of batches that are simulated: what a rank is padded
 * to and buffers of a pass do not grow in proportion. `session` was played and does not fit;
 * `room`: what its own memory lets expect. It becomes one number, if the batch is one key, it can
 * be changed alone, and the steps have a bounded number of events; else it stays.
 * Errors: STATUS_INTERRUPTED if the user stopped it, STATUS_NO_MEMORY. */
enum status room_find(const struct session_source *source, const struct session *session,
                      struct worker *worker, struct inference_room *room, struct error *reterr);

#endif
