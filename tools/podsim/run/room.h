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
enum status room_find(const struct session *session, struct worker *worker,
                      struct inference_room *room, struct error *reterr);

/* The largest batches of a step that was played and has `least`: by what batches hold, which is
 * known without playing them where their ops follow one another. Else they are played, if the steps
 * have at most a million events; of steps with more, what they have held by then makes an estimate.
 * `expected`: by its own memory. Nothing is found where lengths are
 * given one by one, or routing is drawn.
 * Errors: STATUS_INTERRUPTED if the user stopped it, STATUS_NO_MEMORY. */
enum status room_find_largest(const struct session *session, const struct least_memory *least,
                              const struct report_largest *expected, struct worker *worker,
                              struct report_largest *ret_largest, struct error *reterr);

#endif
