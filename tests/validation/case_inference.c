/*
 * Evaluators of inference: the closed forms of sim/roofline/inference.h, on the catalogue's chips,
 * of a model by the row's letters or by the parameters and bytes of the cache that the row gives.
 */
#include "sim/roofline/inference.h"

#include <string.h>

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
    return inference_kv_bytes_per_token(&model, width_of(row, "kv"));
}

static struct case_value kv_cache(const struct case_row *row)
{
    double const tokens = row_has(row, "tokens") ? row_operand_of(row, "tokens") : 1;
    return value_number(tokens * kv_bytes_per_token(row));
}

static struct inference_model model_of(const struct case_row *row)
{
    double const parameters = row_operand_of(row, "parameters");
    return (struct inference_model){.parameters = parameters,
                                    .parameter_bytes = parameters * width_of(row, "weights"),
                                    .kv_bytes_per_token = kv_bytes_per_token(row)};
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
        return value_number(
            (double)inference_batch_within(&model, &chips, context, row_number(row, "limit")));
    double const batch = row_number(row, "batch");
    struct inference_step const step = inference_decode(&model, &chips, batch, batch * context);
    if (strcmp(what, "kv") == 0) return value_number(step.kv_s);
    if (strcmp(what, "weights") == 0) return value_number(step.weights_s);
    if (strcmp(what, "math") == 0) return value_number(step.math_s);
    if (strcmp(what, "step") == 0) return value_number(step.step_s);
    if (strcmp(what, "throughput") == 0) return value_number(batch / step.step_s);
    row_fail(row, "a step of generation has no %s", what);
}

static struct case_value prefill(const struct case_row *row)
{
    struct inference_chips const chips = chips_of(row);
    struct inference_model const model = {.parameters = row_operand_of(row, "parameters")};
    double const attention =
        row_has(row, "attention_flop") ? row_operand_of(row, "attention_flop") : 0;
    return value_number(inference_prefill_s(&model, &chips, row_number(row, "tokens"), attention,
                                            row_number_or(row, "mfu", 1)));
}

/* Of large matrices, or of one of "rows" and "columns". */
static struct case_value critical_tokens(const struct case_row *row)
{
    struct inference_chips const chips = chips_of(row);
    double const weight_bytes = width_of(row, "weights");
    if (!row_has(row, "rows"))
        return value_number(
            inference_critical_tokens(weight_bytes, chips.flop_per_s, chips.hbm_bytes_per_s));
    return value_number(inference_critical_tokens_of(
        weight_bytes, width_of(row, "activations"), chips.flop_per_s, chips.hbm_bytes_per_s,
        row_number(row, "rows"), row_number(row, "columns")));
}

/* The MLP's matrices over chips in one dimension and in two. */
static struct case_value weights_over_chips(const struct case_row *row)
{
    const char *what = row_text(row, "what");
    double const width = row_number(row, "D");
    if (strcmp(what, "1d") == 0)
        return value_number(inference_1d_s(row_number(row, "batch"), width,
                                           row_number_or(row, "axes", 1), axis_bytes_per_s(row)));
    double const mlp_width = row_number(row, "F");
    if (strcmp(what, "crossover") == 0)
        return value_number(inference_2d_crossover_chips(width, mlp_width));
    if (strcmp(what, "best_x") == 0)
        return value_number(inference_2d_best_x(row_number(row, "chips"), width, mlp_width));
    if (strcmp(what, "ranks") == 0) {
        struct inference_chips const chips = chips_of(row);
        return value_number(inference_1d_ranks(row_number(row, "batch"), mlp_width,
                                               axis_bytes_per_s(row), chips.hbm_bytes_per_s));
    }
    if (strcmp(what, "2d") != 0) row_fail(row, "weights over chips have no %s", what);
    double const x = row_operand_of(row, "x"), yz = row_operand_of(row, "yz");
    return value_number(
        inference_2d_s(row_number(row, "batch"), width, mlp_width, x, yz, axis_bytes_per_s(row)));
}

static struct case_value speculation(const struct case_row *row)
{
    double const acceptance = row_number(row, "acceptance"), drafts = row_number(row, "drafts");
    const char *what = row_text(row, "what");
    if (strcmp(what, "accepted") == 0)
        return value_number(inference_accepted_tokens(acceptance, drafts));
    if (strcmp(what, "loop") == 0)
        return value_number(inference_speculation_s(drafts, row_operand_of(row, "target"),
                                                    row_operand_of(row, "draft")));
    row_fail(row, "speculation has no %s", what);
}

static struct case_value attention_intensity(const struct case_row *row)
{
    return value_number(inference_attention_intensity(
        row_number_or(row, "group", 1), row_number(row, "queries"), row_number(row, "keys"),
        width_of(row, "activations"), width_of(row, "kv")));
}

/* Servers of prefill for one of generation. */
static struct case_value prefill_servers(const struct case_row *row)
{
    return value_number(
        inference_prefill_servers(row_operand_of(row, "prefill"), row_operand_of(row, "step"),
                                  row_number(row, "batch"), row_number(row, "tokens")));
}

const struct case_evaluator case_inference[] = {
    {"kv_cache", kv_cache},
    {"decode", decode},
    {"prefill", prefill},
    {"critical_tokens", critical_tokens},
    {"weights_over_chips", weights_over_chips},
    {"speculation", speculation},
    {"attention_intensity", attention_intensity},
    {"prefill_servers", prefill_servers},
    {NULL, NULL},
};
