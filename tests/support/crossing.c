#include "tests/support/crossing.h"
#include "tests/support/case.h"

#include <stdio.h>

#include "sim/base/units.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024 };

static struct crossing_pass phase_of(const struct trace *trace, enum program_phase phase)
{
    const struct trace_phase *at = &trace->phase[phase];
    return (struct crossing_pass){units_seconds(at->end_ps - at->begin_ps),
                                  units_seconds(at->compute_ps)};
}

struct crossing_step crossing_played(const struct crossing_setup *setup, uint64_t tokens,
                                     uint64_t mlp_width, uint32_t layers, bool collective_matmul)
{
    char text[TEXT_BYTES];
    case_text(
        text, sizeof text,
        "{\"podsim\": 1, \"title\": \"crossing\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", "
        "\"D\": %llu, \"F\": %llu, \"layers\": %u, \"matrices\": 2}, \"batch_tokens\": %llu, "
        "\"gather\": \"%s\", \"offload\": \"%s\", \"allow_oversubscription\": true}, "
        "\"run\": {\"collective_matmul\": %s}}",
        setup->machine, setup->mesh, (unsigned long long)setup->width,
        (unsigned long long)mlp_width, layers, (unsigned long long)tokens, setup->gather,
        setup->offload == NULL ? "none" : setup->offload, collective_matmul ? "true" : "false");
    struct play play;
    play_run(&play, text, NULL);
    struct crossing_step step = {
        .forward = phase_of(&play.trace, PROGRAM_PHASE_FORWARD),
        .whole = {units_seconds(play.trace.step_ps), units_seconds(play.trace.compute_ps)},
        .over_math = units_seconds(play.trace.step_ps) / play.roofline.math_s,
    };
    step.backward = (struct crossing_pass){step.whole.time_s - step.forward.time_s,
                                           phase_of(&play.trace, PROGRAM_PHASE_BACKWARD).math_s};
    play_close(&play);
    return step;
}

static struct crossing_pass difference(struct crossing_pass more, struct crossing_pass less)
{
    return (struct crossing_pass){(more.time_s - less.time_s) / CROSSING_LAYERS,
                                  (more.math_s - less.math_s) / CROSSING_LAYERS};
}

struct crossing_step crossing_layer(const struct crossing_setup *setup, uint64_t tokens,
                                    uint64_t mlp_width, bool collective_matmul)
{
    struct crossing_step const less =
        crossing_played(setup, tokens, mlp_width, CROSSING_LAYERS, collective_matmul);
    struct crossing_step const more =
        crossing_played(setup, tokens, mlp_width, 2 * CROSSING_LAYERS, collective_matmul);
    return (struct crossing_step){.forward = difference(more.forward, less.forward),
                                  .backward = difference(more.backward, less.backward),
                                  .whole = difference(more.whole, less.whole)};
}

static const struct crossing_pass *pass_of(const struct crossing_step *step, enum crossing_of of)
{
    return of == CROSSING_FORWARD    ? &step->forward
           : of == CROSSING_BACKWARD ? &step->backward
                                     : &step->whole;
}

static double gap_s(const struct crossing_setup *setup, uint64_t tokens, enum crossing_of of,
                    double communication_s)
{
    struct crossing_step const at =
        crossing_layer(setup, tokens * setup->chips, setup->mlp_width, true);
    return pass_of(&at, of)->math_s - communication_s;
}

double crossing_tokens(const struct crossing_setup *setup, enum crossing_of of)
{
    struct crossing_step const few =
        crossing_layer(setup, (uint64_t)CROSSING_ROWS * setup->chips, setup->mlp_width, true);
    double const communication_s = pass_of(&few, of)->time_s;
    uint64_t low = 1, high = setup->tokens_max / CROSSING_ROWS;
    while (high - low > 1) {
        uint64_t const middle = (low + high) / 2;
        if (gap_s(setup, middle * CROSSING_ROWS, of, communication_s) < 0)
            low = middle;
        else
            high = middle;
    }
    double const below = gap_s(setup, low * CROSSING_ROWS, of, communication_s);
    double const above = gap_s(setup, high * CROSSING_ROWS, of, communication_s);
    if (below >= 0 || above < 0)
        fail_msg("%s: no crossing below %llu tokens", setup->name,
                 (unsigned long long)setup->tokens_max);
    return CROSSING_ROWS * ((double)low + below / (below - above));
}

void crossing_assert_near(const char *what, double wanted, double got, double tolerance)
{
    print_message("    %-44s exact %9.4f  played %9.4f  %+.2f %%\n", what, wanted, got,
                  100 * (got / wanted - 1));
    if (got < wanted * (1 - tolerance) || got > wanted * (1 + tolerance))
        fail_msg("%s: %.4f is not within %.1f %% of %.4f", what, got, 100 * tolerance, wanted);
}
