/*
 * timeline.h: the shown chips' step as a Perfetto trace (protobuf, for ui.perfetto.dev): a process
 * a chip, a track a stream and a port, layers and phases as enclosing slices, counters for memory.
 */
#ifndef SIM_REPORT_TIMELINE_H
#define SIM_REPORT_TIMELINE_H

#include "sim/base/status.h"
#include "sim/report/report.h"

struct arena;
struct strbuf;

/* Appends the trace to `text`, which may hold any byte; write it with strbuf_write_file(). */
enum status timeline_write(struct arena *arena, const struct report_input *input,
                           struct strbuf *text, struct error *reterr);

#endif
