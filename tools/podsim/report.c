#include "tools/podsim/report.h"

#include <stdlib.h>

#include <uv.h>

void report_from_pipeline(const struct pipeline *pipeline, struct report_input *ret_input)
{
    bool const replayed = pipeline->trace.chips != 0;
    *ret_input = (struct report_input){
        .title = pipeline->scenario.title,
        .question = pipeline->scenario.question,
        .machine = &pipeline->machine,
        .mesh = &pipeline->mesh,
        .workload = &pipeline->scenario.workload,
        .roofline = &pipeline->roofline,
        .program = replayed ? &pipeline->program : NULL,
        .trace = replayed ? &pipeline->trace : NULL,
    };
    for (uint32_t axis = 0; replayed && axis < pipeline->fold.axis_count; axis++)
        ret_input->fold[axis] = (struct report_fold){
            .period = pipeline->fold.period[axis],
            .reason = pipeline->fold.reason[axis],
        };
}

bool report_in_colour(int descriptor)
{
    const char *const refused = getenv("NO_COLOR");
    return uv_guess_handle(descriptor) == UV_TTY && (refused == NULL || refused[0] == '\0');
}
