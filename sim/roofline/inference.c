#include "sim/roofline/inference.h"

#include <math.h>

double inference_kv_bytes_per_token(uint64_t layers, uint64_t columns, double element_bytes)
{
    return (double)layers * (double)columns * element_bytes;
}

double inference_attention_flop(uint64_t columns, double scores)
{
    return 2 * (double)columns * scores;
}

static double at_least_one(double copies)
{
    return fmax(copies, 1);
}

struct inference_step inference_pass(const struct inference_model *model,
                                     const struct inference_chips *chips, double tokens,
                                     double attention_flop, double cached_tokens)
{
    double const bytes_per_s = chips->count * chips->hbm_bytes_per_s;
    struct inference_step step = {
        .kv_s = cached_tokens * model->kv_bytes_per_token / bytes_per_s,
        .weights_s = at_least_one(chips->copies_read) * model->parameter_bytes / bytes_per_s,
        .math_s = 2 * tokens * model->parameters / (chips->count * chips->flop_per_s),
    };
    if (attention_flop > 0)
        step.math_s += attention_flop / (chips->count * chips->attention_flop_per_s);
    step.step_s = step.kv_s + fmax(step.weights_s, step.math_s);
    return step;
}

uint64_t inference_max_batch(const struct inference_model *model,
                             const struct inference_chips *chips, double context)
{
    double const copies = at_least_one(chips->copies_held);
    double const room = chips->count / copies * chips->hbm_bytes - model->parameter_bytes;
    double const held = model->kv_bytes_per_token - model->kv_shared_bytes_per_token;
    if (room > 0 && held == 0) return INFERENCE_ANY_BATCH;
    return room <= 0 ? 0 : (uint64_t)(copies * floor(room / (context * held)));
}

double inference_critical_tokens(double weight_bytes, double flop_per_s, double hbm_bytes_per_s)
{
    return weight_bytes * flop_per_s / (2 * hbm_bytes_per_s);
}
