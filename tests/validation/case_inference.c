/*
 * Evaluators of inference: the closed forms of sim/roofline/inference.h and others of the book's
 * chapters 7 and 8, on the catalogue's chips, of a model by the row's letters or by the parameters
 * and bytes of the cache that the row gives.
 */
#include "sim/roofline/inference.h"

#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/graph/parameters.h"
#include "tests/validation/case_parts.h"
#include "tests/validation/case_workload.h"

static struct inference_chips chips_of(const struct case_row *row)
{
    struct chip const chip = row_chip(row);
    enum format const math = row_format(row, "math", FORMAT_BF16);
    return (struct inference_chips){.count = row_number_or(row, "chips", 1),
                                    .flop_per_s = (double)chip.math_flop_per_s[math],
                                    .hbm_bytes_per_s = (double)chip.hbm_bytes_per_s,
                                    .hbm_bytes = (double)chip.hbm_capacity_bytes};
}

/* Of an axis, both ways. */
static double axis_bytes_per_s(const struct case_row *row)
{
    struct chip const chip = row_chip(row);
    return 2 * (double)chip.ici_bytes_per_s;
}

/* Bytes of a number. */
static double width_of(const struct case_row *row, const char *key)
{
    return format_bits(row_format(row, key, FORMAT_BF16)) / 8.0;
}

/* "kv_bytes" of a token, or those of the model. */
static double kv_bytes_per_token(const struct case_row *row)
{
    if (row_has(row, "kv_bytes")) return row_operand_of(row, "kv_bytes");
    struct model const model = row_model(row);
    return inference_kv_bytes_per_token(model.layers, model_count(&model).cache_columns,
                                        width_of(row, "kv"));
}

static struct case_value kv_cache(const struct case_row *row)
{
    double const tokens = row_has(row, "tokens") ? row_operand_of(row, "tokens") : 1;
    return value_number(tokens * kv_bytes_per_token(row));
}

/* Of "sharing" layers one after the other the first alone holds its rows. */
static struct case_value kv_held(const struct case_row *row)
{
    struct model model = row_model(row);
    uint64_t const sharing = row_count_or(row, "sharing", 1);
    double const tokens = row_operand_of(row, "tokens"), width = width_of(row, "kv");
    bool *borrows = arena_take(row->arena, model.layers, sizeof *borrows);
    if (borrows == NULL) row_fail(row, "no memory");
    for (uint64_t i = 0; i < model.layers; i++) borrows[i] = i % sharing != 0;
    model.by_layer.borrows = borrows;
    return value_number(tokens *
                        inference_kv_bytes_per_token(model.layers - model_borrowing_layers(&model),
                                                     model_count(&model).cache_columns, width));
}

static struct inference_model model_of(const struct case_row *row)
{
    double const parameters = row_operand_of(row, "parameters");
    return (struct inference_model){.parameters = parameters,
                                    .parameter_bytes = parameters * width_of(row, "weights"),
                                    .kv_bytes_per_token = kv_bytes_per_token(row)};
}

/* The largest batch of "context" tokens each whose step takes at most "limit" and fits; 0: none.
 * The step grows with the batch: bounded by products from the batch on where these take longer. */
static double batch_within(const struct case_row *row, const struct inference_model *model,
                           const struct inference_chips *chips, double context)
{
    double const limit_s = row_number(row, "limit");
    struct inference_step const one = inference_pass(model, chips, 1, 0, context);
    double const by_weights = (limit_s - one.weights_s) / one.kv_s;
    double const by_math = limit_s / (one.kv_s + one.math_s);
    double const most = (double)inference_max_batch(model, chips, context);
    return fmax(0, floor(fmin(fmin(by_weights, by_math), most)));
}

/* A step of "batch" sequences with "context" tokens each, and the batches that a machine takes. */
static struct case_value decode(const struct case_row *row)
{
    struct inference_chips const chips = chips_of(row);
    struct inference_model const model = model_of(row);
    double const context = row_number_or(row, "context", 0);
    const char *what = row_text(row, "what");
    if (strcmp(what, "max_batch") == 0)
        return value_number((double)inference_max_batch(&model, &chips, context));
    if (strcmp(what, "batch_within") == 0)
        return value_number(batch_within(row, &model, &chips, context));
    double const batch = row_number(row, "batch");
    struct inference_step const step = inference_pass(&model, &chips, batch, 0, batch * context);
    if (strcmp(what, "kv") == 0) return value_number(step.kv_s);
    if (strcmp(what, "weights") == 0) return value_number(step.weights_s);
    if (strcmp(what, "math") == 0) return value_number(step.math_s);
    if (strcmp(what, "step") == 0) return value_number(step.step_s);
    if (strcmp(what, "throughput") == 0) return value_number(batch / step.step_s);
    row_fail(row, "a step of generation has no %s", what);
}

/* 2·P·T / (N·C·mfu), with further FLOP, as of attention (7.1.4). */
static struct case_value prefill(const struct case_row *row)
{
    struct inference_chips const chips = chips_of(row);
    double const attention =
        row_has(row, "attention_flop") ? row_operand_of(row, "attention_flop") : 0;
    double const products = 2 * row_operand_of(row, "parameters") * row_number(row, "tokens");
    return value_number((products + attention) /
                        (chips.count * chips.flop_per_s * row_number_or(row, "mfu", 1)));
}

/* Of large matrices, or of one of "rows" and "columns" with its activations: 2·B·D·F / C =
 * (a·B·D + w·D·F + a·B·F) / W, solved for B. */
static struct case_value critical_tokens(const struct case_row *row)
{
    struct inference_chips const chips = chips_of(row);
    double const large = inference_critical_tokens(width_of(row, "weights"), chips.flop_per_s,
                                                   chips.hbm_bytes_per_s);
    if (!row_has(row, "rows")) return value_number(large);
    double const edges = 1 / row_number(row, "rows") + 1 / row_number(row, "columns");
    return value_number(large /
                        (1 - inference_critical_tokens(width_of(row, "activations"),
                                                       chips.flop_per_s, chips.hbm_bytes_per_s) *
                                 edges));
}

/* The MLP's collectives of a layer, 2-byte activations, an axis' bandwidth both ways W (7.5, Q7):
 * with F alone over the ranks of M axes, 4·B·D / (M·W); with D over X and F over Y·Z as well,
 * 2·B·D / (X·W) + 4·B·F / (YZ·W). "best_x": X of the smallest such sum on N chips,
 * sqrt(N·D / (2·F)); the book prints sqrt(N)/8 for F = 4·D, where sqrt(N/8) is right. "crossover":
 * chips above which 2D beats 1D on three axes, 32·(F/D)·(3/4)^2, 72 for F = 4·D; the book says 81,
 * of a constant that it has rounded before it is squared. "ranks": up to which reading a share of
 * a matrix, 2·D·F / (Y·W_hbm), takes longer than moving its activations over one axis,
 * 2·B·D / W (7.3.2). */
static struct case_value weights_over_chips(const struct case_row *row)
{
    const char *what = row_text(row, "what");
    bool const one = strcmp(what, "1d") == 0, counts = strcmp(what, "crossover") == 0;
    double const d = row_number(row, "D"), f = one ? 0 : row_number(row, "F");
    if (counts) return value_number(32 * f / d * 9 / 16);
    if (strcmp(what, "best_x") == 0)
        return value_number(sqrt(row_number(row, "chips") * d / (2 * f)));
    double const batch = row_number(row, "batch"), rate = axis_bytes_per_s(row);
    if (one) return value_number(4 * batch * d / (row_number_or(row, "axes", 1) * rate));
    if (strcmp(what, "ranks") == 0)
        return value_number(f * rate / (batch * chips_of(row).hbm_bytes_per_s));
    if (strcmp(what, "2d") != 0) row_fail(row, "weights over chips have no %s", what);
    double const x = row_operand_of(row, "x"), yz = row_operand_of(row, "yz");
    return value_number(2 * batch * d / (x * rate) + 4 * batch * f / (yz * rate));
}

/* A loop of speculation (7.6.4) is K steps of the draft model and one of the target's, which is
 * bound by weights. With each draft accepted with probability a it gives (1 - a^(K+1)) / (1 - a)
 * tokens, one of the target's own among them. "best": the K of which most tokens a second come.
 * "overlap": of drafts that are drawn from the probabilities "draft_p", where the target's are
 * "target_p", those accepted, each with min(1, p/q): the sum of min(p, q). */
static double tokens_of_loop(double acceptance, double drafts)
{
    return (1 - pow(acceptance, drafts + 1)) / (1 - acceptance);
}

static double best_drafts(const struct case_row *row)
{
    double const acceptance = row_number(row, "acceptance");
    double const target = row_operand_of(row, "target"), draft = row_operand_of(row, "draft");
    double drafts = 1;
    while (tokens_of_loop(acceptance, drafts + 1) / (target + (drafts + 1) * draft) >
           tokens_of_loop(acceptance, drafts) / (target + drafts * draft))
        drafts++;
    return drafts;
}

static double overlap(const struct case_row *row)
{
    struct json *target = row_find(row, "target_p"), *draft = row_find(row, "draft_p");
    if (target == NULL || draft == NULL || json_count(target) != json_count(draft))
        row_fail(row, "probabilities of as many tokens of each are missing");
    double sum = 0;
    for (uint32_t i = 0; i < json_count(target); i++)
        sum += fmin(row_operand(row, json_at(target, i)), row_operand(row, json_at(draft, i)));
    return sum;
}

static struct case_value speculation(const struct case_row *row)
{
    const char *what = row_text(row, "what");
    if (strcmp(what, "best") == 0) return value_number(best_drafts(row));
    if (strcmp(what, "overlap") == 0) return value_number(overlap(row));
    double const acceptance = row_number(row, "acceptance"), drafts = row_number(row, "drafts");
    if (strcmp(what, "accepted") == 0) return value_number(tokens_of_loop(acceptance, drafts));
    if (strcmp(what, "loop") == 0)
        return value_number(row_operand_of(row, "target") + drafts * row_operand_of(row, "draft"));
    row_fail(row, "speculation has no %s", what);
}

/* FLOP of attention a byte, T queries and S keys, G heads of Q on one of K and V, bytes a of an
 * activation and c of a cached number (7.1.4): 4·G·T·S / (2·a·G·T + 2·c·S). Alike and G = 1:
 * S·T / (S + T) in 2-byte numbers. */
static struct case_value attention_intensity(const struct case_row *row)
{
    double const group = row_number_or(row, "group", 1);
    double const queries = row_number(row, "queries"), keys = row_number(row, "keys");
    return value_number(
        2 * group * queries * keys /
        (width_of(row, "activations") * group * queries + width_of(row, "kv") * keys));
}

/* Servers of prefill that keep one of generation busy (8.1.2): a prompt takes "prefill", and
 * "batch" of them leave each "tokens" steps. */
static struct case_value prefill_servers(const struct case_row *row)
{
    return value_number(row_operand_of(row, "prefill") * row_number(row, "batch") /
                        (row_operand_of(row, "step") * row_number(row, "tokens")));
}

const struct case_evaluator case_inference[] = {
    {"kv_cache", kv_cache},
    {"kv_held", kv_held},
    {"decode", decode},
    {"prefill", prefill},
    {"critical_tokens", critical_tokens},
    {"weights_over_chips", weights_over_chips},
    {"speculation", speculation},
    {"attention_intensity", attention_intensity},
    {"prefill_servers", prefill_servers},
    {NULL, NULL},
};
