/*
 * account.h: the books of a run (account.c): breakdown, memory, records, results.
 */
#ifndef SIM_REPLAY_ACCOUNT_H
#define SIM_REPLAY_ACCOUNT_H

#include "sim/replay/replay_internal.h"

void account_until(struct replay *replay, uint32_t chip, int64_t now_ps);
void account_op_effects(struct replay *replay, const struct program_op *op, bool at_end,
                        uint32_t chip, int64_t now_ps);
void account_class(struct replay *replay, const struct program_op *op, uint32_t chip,
                   int64_t begin_ps, int64_t end_ps);
/* An op of compute before the update ends. */
void account_pass(struct replay *replay, const struct need_cache *needs, uint32_t chip,
                  int64_t begin_ps, int64_t end_ps);
/* Reserves the curve of a role: room for the effects of all ops of the step and for the start.
 * Pages that are never written cost nothing. */
enum status account_curve_build(struct arena *arena, const struct program *program,
                                struct role_table *table, struct error *reterr);
void account_resident(struct replay *replay, uint32_t chip);
void account_record(struct replay *replay, const struct trace_record *record);
enum status account_results(struct arena *arena, struct replay *replay, struct trace *ret_trace,
                            struct error *reterr);

#endif
