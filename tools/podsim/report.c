#include "tools/podsim/report.h"

#include <stdlib.h>
#include <string.h>

#include <sys/ioctl.h>

#include <uv.h>

void report_from_chain(const struct chain *chain, struct report_input *ret_input)
{
    bool const replayed = chain->trace.chips != 0;
    *ret_input = (struct report_input){
        .title = chain->scenario.title,
        .question = chain->scenario.question,
        .machine = &chain->machine,
        .mesh = &chain->mesh,
        .workload = &chain->scenario.workload,
        .roofline = &chain->roofline,
        .program = replayed ? &chain->program : NULL,
        .trace = replayed ? &chain->trace : NULL,
    };
    for (uint32_t axis = 0; replayed && axis < chain->fold.axis_count; axis++)
        ret_input->fold[axis] = (struct report_fold){
            .period = chain->fold.period[axis],
            .reason = chain->fold.reason[axis],
        };
}

bool report_in_colour(int descriptor)
{
    const char *const refused = getenv("NO_COLOR"), *const terminal = getenv("TERM");
    if (refused != NULL && refused[0] != '\0') return false;
    if (terminal != NULL && strcmp(terminal, "dumb") == 0) return false;
    return uv_guess_handle(descriptor) == UV_TTY;
}

struct report_terminal report_terminal(int descriptor)
{
    struct report_terminal terminal = {.colour = report_in_colour(descriptor), .columns = 94};
    struct winsize size = {0};
    if (uv_guess_handle(descriptor) == UV_TTY && ioctl(descriptor, TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0)
        terminal = (struct report_terminal){terminal.colour, true, size.ws_col};
    return terminal;
}
