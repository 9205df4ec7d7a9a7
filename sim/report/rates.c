#include "sim/report/rates.h"

#include "sim/base/units.h"

static void utilisation(const struct report_input *input, struct analysis *analysis)
{
    const struct roofline *roofline = input->roofline;
    double const chips = (double)input->trace->fold.chips;
    double const peak = chips * roofline->rates.peak_flop_per_s * analysis->step_s;
    analysis->mfu = roofline->flop.useful / peak;
    analysis->mfu_attention = (roofline->flop.useful + roofline->flop.useful_attention) / peak;
    analysis->hfu = roofline->flop.executed / peak;
}

static void period_rates(const struct trace *trace, struct analysis *analysis)
{
    if (trace->period.time <= 0) return;
    analysis->period.time_s = units_seconds(trace->period.time);
    double const sooner = analysis->step_s / analysis->period.time_s;
    analysis->period.tokens_per_s = analysis->tokens_per_s * sooner;
    analysis->period.mfu = analysis->mfu * sooner;
    analysis->period.mfu_attention = analysis->mfu_attention * sooner;
}

void rates_fill(const struct report_input *input, struct analysis *analysis)
{
    analysis->tokens_per_s = (double)input->program->tokens / analysis->step_s;
    if (input->roofline != NULL) utilisation(input, analysis);
    period_rates(input->trace, analysis);
}
