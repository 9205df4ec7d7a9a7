/*
 * Evaluators of sequences before they lie on a machine: what a prefill or a decode of these lengths
 * computes and reads (sim/step/inference.h), as the book's formula counts it.
 */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/graph/parameters.h"
#include "sim/report/inference_analysis.h"
#include "sim/step/workload.h"
#include "tests/validation/case_parts.h"
#include "tests/validation/case_workload.h"

/* "lengths": tokens of each sequence. */
static struct lengths lengths_of(const struct case_row *row)
{
    struct json *of = row_find(row, "lengths");
    if (of == NULL || json_count(of) == 0) row_fail(row, "lengths are missing");
    uint64_t *tokens = arena_take(row->arena, json_count(of), sizeof *tokens);
    if (tokens == NULL) row_fail(row, "no memory");
    for (uint32_t i = 0; i < json_count(of); i++)
        tokens[i] = (uint64_t)row_operand(row, json_at(of, i));
    return lengths_given(tokens, json_count(of));
}

/* "window": of all layers but the last of each "every"; without it no layer has one. */
static void windows_add(const struct case_row *row, struct model *model)
{
    uint64_t const every = row_count_or(row, "every", 1);
    model->attends.window = row_count_or(row, "window", 0);
    if (model->attends.window == 0) return;
    bool *windowed = arena_take(row->arena, model->layers, sizeof *windowed);
    if (windowed == NULL) row_fail(row, "no memory");
    for (uint64_t i = 0; i < model->layers; i++) windowed[i] = i % every != every - 1;
    model->by_layer.windowed = windowed;
}

static struct workload_plan prefill_plan(const struct case_row *row, struct lengths lengths)
{
    struct workload_plan plan = {.kind = WORKLOAD_PREFILL,
                                 .model = row_model(row),
                                 .accumulate = 1,
                                 .algorithm = algorithm_read("auto")};
    plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    plan.inference.prompts =
        (struct inference_prompts){lengths.count, lengths, row_count_or(row, "cached", 0), 0};
    windows_add(row, &plan.model);
    return plan;
}

static struct workload_plan decode_plan(const struct case_row *row, struct lengths lengths)
{
    struct workload_plan plan = {.kind = WORKLOAD_DECODE,
                                 .model = row_model(row),
                                 .accumulate = 1,
                                 .algorithm = algorithm_read("auto")};
    plan.inference.decodes = (struct inference_decodes){lengths.count, lengths, 1};
    plan.formats.weights = plan.inference.head = FORMAT_BF16;
    plan.inference.cache = row_format(row, "kv", FORMAT_BF16);
    windows_add(row, &plan.model);
    return plan;
}

/* A chip that does one FLOP and moves one byte a second: seconds are FLOP, or bytes. */
static const struct inference_chips one_a_second = {
    .count = 1, .flop_per_s = 1, .hbm_bytes_per_s = 1, .attention_flop_per_s = 1};

/* Tokens that a prefill computes, "computed"; or would with all prompts as long as the longest,
 * "padded". */
static struct case_value prompts(const struct case_row *row)
{
    struct workload_plan const plan = prefill_plan(row, lengths_of(row));
    const char *what = row_text(row, "what");
    struct inference_sum const sum = inference_sum_all(&plan);
    if (strcmp(what, "computed") == 0) return value_number((double)sum.tokens);
    if (strcmp(what, "padded") == 0)
        return value_number((double)sum.sequences * (double)inference_keys_most(&plan));
    row_fail(row, "prompts have no %s", what);
}

/* Bytes of the cache that a decode of these lengths reads. */
static struct case_value cache_read(const struct case_row *row)
{
    struct workload_plan const plan = decode_plan(row, lengths_of(row));
    struct inference_model const model = inference_book_model(&plan);
    return value_number(inference_book_step(&plan, &model, &one_a_second).kv_s);
}

/* FLOP of "tokens" that are generated without a cache: for each a prefill of all up to it. "what":
 * of "parameters", or of "attention". */
static struct case_value uncached(const struct case_row *row)
{
    bool const attends = strcmp(row_text(row, "what"), "attention") == 0;
    uint64_t const tokens = row_count(row, "tokens");
    struct model const asked = row_model(row);
    uint64_t const columns = attends ? model_count(&asked).attention_columns : 0;
    double flop = 0;
    for (uint64_t length = 1; length <= tokens; length++) {
        struct workload_plan const plan = prefill_plan(row, lengths_given(&length, 1));
        struct inference_model const model = {.parameters =
                                                  attends ? 0 : row_number(row, "parameters")};
        double const scores = (double)inference_scores(&plan, 0, INFERENCE_PROMPTS);
        flop += inference_pass(&model, &one_a_second, (double)inference_sum_all(&plan).tokens,
                               inference_attention_flop(columns, scores), 0)
                    .math_s;
    }
    return value_number(flop);
}

const struct case_evaluator case_pass[] = {
    {"prompts", prompts}, {"cache_read", cache_read}, {"uncached", uncached}, {NULL, NULL}};
