#include "tools/podsim/common/report.h"

#include <stdlib.h>
#include <string.h>

#include <sys/ioctl.h>

#include <uv.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/version.h"

void report_from_session(const struct session *session, struct report_input *ret_input)
{
    bool const replayed = session->trace.fold.chips != 0;
    *ret_input = (struct report_input){
        .title = session->title,
        .question = session->scenario.question,
        .preset = session->scenario.preset,
        .lacking_stack = session->scenario.lacking_stack,
        .machine = &session->machine,
        .machine_plan = &session->scenario.machine,
        .mesh = &session->mesh,
        .workload = &session->scenario.workload,
        .roofline = session->is_program ? NULL : &session->roofline,
        .program = replayed ? &session->program : NULL,
        .trace = replayed ? &session->trace : NULL,
    };
    for (uint32_t axis = 0; replayed && axis < session->fold.axis_count; axis++)
        ret_input->fold[axis] = (struct report_fold){
            .period = session->fold.period[axis],
            .reason = session->fold.reason[axis],
        };
}

const char *report_version(void)
{
    return PODSIM_VERSION;
}

/* "--preset megatron /workload/remat=block". */
static void add_settings(const struct options *options, struct strbuf *text)
{
    const char *setting = options_value(options, "--preset");
    if (setting != NULL) strbuf_add(text, "--preset %s", setting);
    for (uint32_t i = 0; (setting = options_value_at(options, "--set", i)) != NULL; i++)
        strbuf_add(text, "%s%s", text->size_bytes == 0 ? "" : " ", setting);
}

enum status report_name(struct arena *arena, const struct options *options, const char *scenario,
                        struct report_input *input, struct error *reterr)
{
    struct strbuf settings = {0};
    add_settings(options, &settings);
    input->version = report_version();
    input->scenario = scenario;
    input->settings = settings.size_bytes == 0 ? "" : arena_text(arena, settings.bytes);
    bool const failed = settings.failed || input->settings == NULL;
    strbuf_free(&settings);
    if (!failed) return STATUS_OK;
    return error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory for the settings");
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

uint32_t report_columns(int descriptor)
{
    struct report_terminal const terminal = report_terminal(descriptor);
    return terminal.is_one ? terminal.columns : 0;
}
