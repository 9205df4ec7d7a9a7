#include "sim/report/rates.h"

#include "sim/base/units.h"

static void utilisation(const struct report_input *input, struct analysis *facts)
{
    const struct roofline *roofline = input->roofline;
    double const chips = (double)input->trace->fold.chips;
    double const peak = chips * roofline->rates.peak_flop_per_s * facts->step_s;
    facts->mfu = roofline->flop.useful / peak;
    facts->mfu_attention = (roofline->flop.useful + roofline->flop.useful_attention) / peak;
    facts->hfu = roofline->flop.executed / peak;
}

static void period_rates(const struct trace *trace, struct analysis *facts)
{
    if (trace->period.time <= 0) return;
    facts->period.time_s = units_seconds(trace->period.time);
    double const sooner = facts->step_s / facts->period.time_s;
    facts->period.tokens_per_s = facts->tokens_per_s * sooner;
    facts->period.mfu = facts->mfu * sooner;
    facts->period.mfu_attention = facts->mfu_attention * sooner;
}

void rates_fill(const struct report_input *input, struct analysis *facts)
{
    facts->tokens_per_s = (double)input->program->tokens / facts->step_s;
    if (input->roofline != NULL) utilisation(input, facts);
    period_rates(input->trace, facts);
}
