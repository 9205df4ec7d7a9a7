#include "sim/roofline/inference.h"

#include <math.h>

double inference_kv_bytes_per_token(const struct model *model, double element_bytes)
{
    bool const latent = model->latent.kv_rank != 0;
    double const elements =
        latent ? (double)(model->latent.kv_rank + model->latent.rope)
               : (double)model->kv_heads * (double)(model->head_width + model_value_width(model));
    return (double)model->layers * elements * element_bytes;
}

struct inference_step inference_decode(const struct inference_model *model,
                                       const struct inference_chips *chips, double sequences,
                                       double cached_tokens)
{
    double const bytes_per_s = chips->count * chips->hbm_bytes_per_s;
    struct inference_step step = {
        .kv_s = cached_tokens * model->kv_bytes_per_token / bytes_per_s,
        .weights_s = model->parameter_bytes / bytes_per_s,
        .math_s = 2 * sequences * model->parameters / (chips->count * chips->flop_per_s),
    };
    step.step_s = step.kv_s + fmax(step.weights_s, step.math_s);
    return step;
}

double inference_prefill_s(const struct inference_model *model, const struct inference_chips *chips,
                           double tokens, double attention_flop, double mfu)
{
    return (2 * model->parameters * tokens + attention_flop) /
           (chips->count * chips->flop_per_s * mfu);
}

uint64_t inference_max_batch(const struct inference_model *model,
                             const struct inference_chips *chips, double context)
{
    double const room = chips->count * chips->hbm_bytes - model->parameter_bytes;
    return room <= 0 ? 0 : (uint64_t)floor(room / (context * model->kv_bytes_per_token));
}

/* The step grows with the batch: bounded by products from the batch on where these take longer. */
uint64_t inference_batch_within(const struct inference_model *model,
                                const struct inference_chips *chips, double context, double limit_s)
{
    struct inference_step const one = inference_decode(model, chips, 1, context);
    double const by_weights = (limit_s - one.weights_s) / one.kv_s;
    double const by_math = limit_s / (one.kv_s + one.math_s);
    double const batch = fmin(by_weights, by_math);
    uint64_t const most = inference_max_batch(model, chips, context);
    if (batch < 1) return 0;
    return batch < (double)most ? (uint64_t)floor(batch) : most;
}

double inference_critical_tokens(double weight_bytes, double flop_per_s, double hbm_bytes_per_s)
{
    return weight_bytes * flop_per_s / (2 * hbm_bytes_per_s);
}

/* 2·B·D·F / C = (a·B·D + w·D·F + a·B·F) / W, solved for B. */
double inference_critical_tokens_of(double weight_bytes, double activation_bytes, double flop_per_s,
                                    double hbm_bytes_per_s, double rows, double columns)
{
    double const intensity = flop_per_s / hbm_bytes_per_s;
    double const of_activations = activation_bytes / 2 * intensity * (1 / rows + 1 / columns);
    if (of_activations >= 1) return 0;
    return weight_bytes / 2 * intensity / (1 - of_activations);
}

double inference_experts_hit(double experts, double top_k, double tokens)
{
    return experts * (1 - pow(1 - top_k / experts, tokens));
}

double inference_1d_s(double batch, double width, double axes, double bytes_per_s)
{
    return 4 * batch * width / (axes * bytes_per_s);
}

double inference_2d_s(double batch, double width, double mlp_width, double x, double yz,
                      double bytes_per_s)
{
    return 2 * batch * width / (x * bytes_per_s) + 4 * batch * mlp_width / (yz * bytes_per_s);
}

double inference_2d_best_x(double chips, double width, double mlp_width)
{
    return sqrt(chips * width / (2 * mlp_width));
}

/* sqrt(32·F/D)·B·D / (sqrt(N)·W), at the best X, against 4·B·D / (3·W). */
double inference_2d_crossover_chips(double width, double mlp_width)
{
    return 32 * mlp_width / width * 9 / 16;
}

double inference_1d_ranks(double batch, double mlp_width, double bytes_per_s,
                          double hbm_bytes_per_s)
{
    return mlp_width * bytes_per_s / (batch * hbm_bytes_per_s);
}

double inference_attention_intensity(double group, double queries, double keys,
                                     double activation_bytes, double kv_bytes)
{
    return 2 * group * queries * keys / (activation_bytes * group * queries + kv_bytes * keys);
}

double inference_accepted_tokens(double acceptance, double drafts)
{
    if (acceptance == 1) return drafts + 1;
    return (1 - pow(acceptance, drafts + 1)) / (1 - acceptance);
}

double inference_speculation_s(double drafts, double target_s, double draft_s)
{
    return target_s + drafts * draft_s;
}

double inference_prefill_servers(double prefill_s, double step_s, double batch, double tokens)
{
    return prefill_s * batch / (step_s * tokens);
}
