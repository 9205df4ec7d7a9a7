/*
 * schedule_csv.h: schedules in PyTorch's text form: a line a rank, a cell an action.
 *
 *     action := stage kind [microbatch] | "(" action ";" action ")" "OVERLAP_F_B"
 *     kind   := F | B | I | W | UNSHARD | RESHARD | REDUCE_GRAD | SEND_F | RECV_F | SEND_B | RECV_B
 *
 * B is a whole backward pass. An empty cell is an idle slot. Source: PyTorch 00722e6,
 * torch/distributed/pipelining/schedules.py, _Action and _PipelineScheduleRuntime._load_csv.
 */
#ifndef SIM_SCHEDULE_SCHEDULE_CSV_H
#define SIM_SCHEDULE_SCHEDULE_CSV_H

#include "sim/schedule/schedule.h"

struct strbuf;

enum schedule_dialect {
    SCHEDULE_COMPUTE_ONLY,  /* Passes alone, idle slots as empty cells. */
    SCHEDULE_COMPUTE_COMMS, /* With sends and receives, and the gathers of FSDP. */
};

enum { SCHEDULE_CSV_BYTES_MAX = 256 << 20 };

#define SCHEDULE_CSV_OVERLAP "OVERLAP_F_B"

/* Either dialect; a cell may be in quotation marks. Errors: STATUS_INVALID with line, cell and
 * reason: a stage on two ranks, a pass twice or missing, out of order, letters of older files
 * ("BW"); messages that do not fit the passes (schedule_messages.h); STATUS_STUCK with the circle;
 * STATUS_LIMIT. `name` is kept. */
enum status schedule_csv_read(struct arena *arena, const char *text, uint64_t size_bytes,
                              const char *name, struct schedule *ret_schedule,
                              struct error *reterr);

/* Whether a schedule of `copy_count` copies can be written. Errors: STATUS_UNSUPPORTED for two
 * copies of a model: a stage lies on one rank. */
enum status schedule_csv_check(const char *name, uint32_t copy_count, struct error *reterr);

/* Writes one; gathers and reductions are those of the schedule, or, if it has none, PyTorch's
 * (schedule_gather_ahead()). Errors: as schedule_csv_check(). */
enum status schedule_csv_write(struct arena *arena, const struct schedule *schedule,
                               enum schedule_dialect dialect, struct strbuf *text,
                               struct error *reterr);

#endif
