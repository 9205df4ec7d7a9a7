/*
 * Evaluators of models: parameters, and the FLOP of a training step as the accounting counts them
 * (sim/step/counts.h), a chip alone.
 */
#include <string.h>

#include "sim/graph/parameters.h"
#include "sim/model/model_read.h"
#include "sim/step/counts.h"
#include "tests/validation/case_parts.h"
#include "tests/validation/case_workload.h"

/* "model": a name, or the book's letters beside it: D, F, L, matrices (3), and with heads N also
 * K, H and V; with E also k, of experts as wide as the MLP in each layer. */
struct model row_model(const struct case_row *row)
{
    struct model model = {.name = "case"};
    struct error error = {0};
    if (row_has(row, "model")) {
        row_check(row,
                  model_read_name_or_path(row->arena, row_text(row, "model"), NULL, "/model",
                                          &model, &error),
                  &error);
        model.layers = row_count_or(row, "L", model.layers);
        return model;
    }
    model.kind = row_has(row, "N") ? MODEL_DECODER : MODEL_MLP;
    model.layers = row_count_or(row, "L", 1);
    model.width = row_count(row, "D");
    model.mlp_width = row_count(row, "F");
    model.matrices = row_count_or(row, "matrices", model.kind == MODEL_DECODER ? 3 : 2);
    if (model.kind == MODEL_MLP) return model;
    model.heads = row_count(row, "N");
    model.kv_heads = row_count_or(row, "K", model.heads);
    model.head_width = row_count_or(row, "H", 128);
    model.vocabulary = row_count_or(row, "V", 1024);
    model.tied = row_flag_or(row, "tied", false);
    if (row_has(row, "E"))
        model.experts = (struct model_experts){
            .count = row_count(row, "E"), .top_k = row_count(row, "k"), .width = model.mlp_width};
    return model;
}

static struct case_value model(const struct case_row *row)
{
    struct model const model = row_model(row);
    struct model_counts const counts = model_count(&model);
    const char *what = row_text(row, "what");
    double const layers = (double)model.layers;
    if (strcmp(what, "mlp_layer") == 0) return value_number((double)counts.mlp_layer);
    if (strcmp(what, "attention_layer") == 0) return value_number((double)counts.attention_layer);
    if (strcmp(what, "norm_layer") == 0) return value_number((double)counts.norm_layer);
    if (strcmp(what, "mlp") == 0) return value_number(layers * (double)counts.mlp_layer);
    if (strcmp(what, "attention") == 0)
        return value_number(layers * (double)counts.attention_layer);
    if (strcmp(what, "vocabulary") == 0)
        return value_number((double)counts.embedding + (double)counts.head);
    if (strcmp(what, "head") == 0) return value_number((double)counts.head);
    if (strcmp(what, "total") == 0) return value_number((double)counts.total);
    if (strcmp(what, "experts_layer") == 0) return value_number((double)counts.experts_layer);
    if (strcmp(what, "active") == 0) return value_number((double)counts.active);
    if (strcmp(what, "width_ratio") == 0)
        return value_number((double)model.mlp_width / (double)model.width);
    row_fail(row, "a model has no %s", what);
}

const struct case_evaluator case_model[] = {{"model", model}, {NULL, NULL}};
