/*
 * room.h: how many sequences would fit a step of inference.
 */
#ifndef TOOLS_PODSIM_RUN_ROOM_H
#define TOOLS_PODSIM_RUN_ROOM_H

#include "sim/program/least_memory.h"
#include "sim/report/inference_fit.h"
#include "tools/podsim/common/session.h"

struct worker;

/* The largest batch that fits, by the memory of batches that are simulated: what a rank is padded
 * to and buffers of a pass do not grow in proportion. `session` was played and does not fit;
 * `room`: what its own memory lets expect. It becomes one number, unless lengths are given one by
 * one, routing is drawn, or a step has too many events; else it stays.
 * Errors: STATUS_INTERRUPTED if the user stopped it, STATUS_NO_MEMORY. */
enum status room_find(const struct session_source *source, const struct session *session,
                      struct worker *worker, struct inference_room *room, struct error *reterr);

/* The largest batch of a step that was played and has `least`: by what batches hold, which is known
 * without playing them where their ops follow one another. Else it is looked for by peaks, if the
 * steps have few events. `expected`: by its own memory. Nothing is found where lengths
 * are given one by one, or routing is drawn.
 * Errors: STATUS_INTERRUPTED if the user stopped it, STATUS_NO_MEMORY. */
enum status room_find_largest(const struct session_source *source, const struct session *session,
                              const struct least_memory *least,
                              const struct report_largest *expected, struct worker *worker,
                              struct report_largest *ret_largest, struct error *reterr);

#endif
