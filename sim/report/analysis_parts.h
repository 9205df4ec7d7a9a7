/*
 * analysis_parts.h: what the files of an analysis share. Internal to sim/report.
 */
#ifndef SIM_REPORT_ANALYSIS_PARTS_H
#define SIM_REPORT_ANALYSIS_PARTS_H

#include "sim/report/analysis.h"

/* Slots of the reported chip that play a template in a phase, or in the whole step:
 * PROGRAM_ANY_PHASE. */
uint64_t analysis_slots(const struct report_input *input, uint32_t template_index, int phase);

/* Seconds that the busiest link that serves a machine axis is busy. */
double analysis_axis_busy_s(const struct report_input *input, uint32_t axis, uint32_t *ret_port);

/* analysis_classes.c */

/* Bytes that a chip sends for one collective, on an ideal fabric; as nccl-tests count them, so that
 * kinds and sizes compare. */
double analysis_moved_bytes(const struct plan *plan);
/* What the ops of each class did together. Sets `classes` and their count. */
enum status analysis_classes_build(struct arena *arena, const struct report_input *input,
                                   struct analysis *analysis, struct error *reterr);

#endif
