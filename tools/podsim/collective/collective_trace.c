/* The one run of `podsim collective` as a timeline. */
#include "sim/base/arena.h"
#include "sim/report/timeline.h"
#include "tools/podsim/collective/collective.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/timeline_file.h"

enum status collective_read_trace(const struct options *options, struct collective_study *study,
                                  struct error *reterr)
{
    STATUS_TRY(timeline_file_check(options, reterr));
    if (!options_has(options, "--trace")) return STATUS_OK;
    if (study->run_count_max > 1)
        return error_set(reterr, STATUS_INVALID, "--trace",
                         "a timeline shows one run, and these are %u; give one size, such as -b 1M "
                         "-e 1M, and one algorithm",
                         study->run_count_max);
    return trace_chips_read(options_value(options, "--trace-chips"), &study->asked.machine,
                            &study->shown, reterr);
}

enum status collective_write_trace(struct arena *arena, struct collective_study *study,
                                   const struct measured *measured, struct error *reterr)
{
    const char *const operation = measure_op_name(study->asked.row.operation);
    struct report_input input = {.question = "",
                                 .machine = &study->asked.machine,
                                 .program = measured->program,
                                 .trace = &measured->trace};
    if (study->shown.count == 0) return STATUS_OK;
    input.title = arena_format(arena, "%s on %s", operation, study->asked.machine_text);
    if (input.title == NULL) return error_no_memory(reterr, "");
    STATUS_TRY(report_name(arena, study->options, study->asked.machine_text, &input, reterr));
    return timeline_write(arena, &input, &study->timeline, reterr);
}
