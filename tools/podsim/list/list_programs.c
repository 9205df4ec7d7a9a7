/*
 * list_programs.c: models and the scenarios that were built in.
 */
#include <stdio.h>

#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/graph/parameters.h"
#include "sim/model/model.h"
#include "sim/model/model_read.h"
#include "sim/report/column_table.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/common/scenarios.h"
#include "tools/podsim/list/list_text.h"

#define MODELS(X)                                                                                  \
    X(MODEL, NULL, WORDS(name), SHOWN(NULL, "model", -16, column_words))                           \
    X(TOTAL, NULL, REAL(counts.total), SHOWN(NULL, "parameters", -12, column_scaled))              \
    X(ACTIVE, NULL, WHERE(sparse, REAL(counts.active)), SHOWN(NULL, "active", -8, column_scaled),  \
      .none = "all")                                                                               \
    X(LAYERS, NULL, WHOLE(model.layers), SHOWN(NULL, "L", -5, column_plain))                       \
    X(WIDTH, NULL, WHOLE(model.width), SHOWN(NULL, "D", -7, column_plain))                         \
    X(MLP_WIDTH, NULL, WHOLE(sparse ? model.experts.width : model.mlp_width),                      \
      SHOWN(NULL, "F", -8, column_plain))                                                          \
    X(HEADS, NULL, WHOLE(model.heads), SHOWN(NULL, "N", -5, column_plain))                         \
    X(KV_HEADS, NULL, WHOLE(model.kv_heads), SHOWN(NULL, "K", -5, column_plain))                   \
    X(HEAD_WIDTH, NULL, WHOLE(model.head_width), SHOWN(NULL, "H", -5, column_plain))               \
    X(VOCABULARY, NULL, WHOLE(model.vocabulary), SHOWN(NULL, "V", -8, column_plain))               \
    X(EXPERTS, NULL, WHERE(sparse, WORDS(experts)), SHOWN(NULL, "experts", -8, column_words))

enum { MODELS(COLUMN_NAME) MODELS_TOTAL };

static const struct column models[] = {MODELS(COLUMN_ENTRY)};
static const struct column_line models_line = COLUMN_ALL(models);

static enum status model_find(struct arena *arena, const char *name, struct model *ret_model,
                              struct error *reterr)
{
    return model_read_name_or_path(arena, name, NULL, name, ret_model, reterr);
}

enum status list_models(struct arena *arena, struct strbuf *text, struct error *reterr)
{
    uint64_t const table = table_open(text);
    const char *name = NULL;
    column_add_heading_line(&models_line, text);
    for (uint32_t i = 0; (name = model_name_at(i)) != NULL; i++) {
        struct model model;
        struct column_value ret_values[MODELS_TOTAL];
        char experts[48];
        STATUS_TRY(model_find(arena, name, &model, reterr));
        struct model_counts const counts = model_count(&model);
        bool const sparse = model_has_experts(&model);
        (void)snprintf(experts, sizeof experts, "%llu of %llu",
                       (unsigned long long)model.experts.top_k,
                       (unsigned long long)model.experts.count);
        MODELS(COLUMN_FIND)
        column_add_figure_line(&models_line, ret_values, text);
    }
    table_close(text, table, 17);
    strbuf_add(text, "\nA path to a Hugging Face config.json works as well.\n");
    return STATUS_OK;
}

static struct table_figure times_of(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "x %llu", (unsigned long long)value.whole);
    return figure;
}

/* Parameters of the parts of a model, without headings. */
#define PARTS(X)                                                                                   \
    X(PART, NULL, WORDS(name), SHOWN(NULL, NULL, -22, column_words))                               \
    X(EACH, NULL, WHOLE(each), SHOWN(NULL, NULL, 16, column_plain))                                \
    X(TIMES, NULL, WHERE(times != 1, WHOLE(times)), SHOWN(NULL, NULL, -8, times_of))

enum { PARTS(COLUMN_NAME) PARTS_TOTAL };

static const struct column parts[] = {PARTS(COLUMN_ENTRY)};
static const struct column_line parts_line = COLUMN_ALL(parts);

static void count_row(struct strbuf *text, const char *name, uint64_t each, uint64_t times)
{
    struct column_value ret_values[PARTS_TOTAL];
    if (each == 0) return;
    PARTS(COLUMN_FIND)
    column_add_figure_line(&parts_line, ret_values, text);
}

enum status list_model(struct arena *arena, const char *name, struct strbuf *text,
                       struct error *reterr)
{
    struct model model;
    STATUS_TRY(model_find(arena, name, &model, reterr));
    struct model_counts const counts = model_count(&model);
    strbuf_add(text, "%s: parameters\n\n", model.name);
    count_row(text, "embedding", counts.embedding, 1);
    count_row(text, "positions", counts.positions, 1);
    count_row(text, "norm of the embedding", counts.norm_embedding, 1);
    count_row(text, "attention", counts.attention_layer, model.layers - counts.borrowers);
    if (counts.borrowers != 0)
        count_row(text, "attention without K, V", counts.attention_borrower, counts.borrowers);
    if (counts.mlp_layers != 0) count_row(text, "MLP", counts.mlp_layer, counts.mlp_layers);
    count_row(text, "router", counts.router_layer, counts.expert_layers);
    count_row(text, "experts", counts.experts_layer, counts.expert_layers);
    count_row(text, "shared experts", counts.shared_layer, counts.expert_layers);
    count_row(text, "norms", counts.norm_layer, model.layers);
    count_row(text, "final norm", counts.norm_final, 1);
    count_row(text, "head", counts.head, 1);
    count_row(text, "total", counts.total, 1);
    if (model_has_experts(&model)) count_row(text, "active for a token", counts.active, 1);
    count_row(text, "multi-token prediction", counts.mtp_modules, 1);
    count_row(text, "active, with the head", counts.mtp_active, 1);
    if (counts.mtp_modules != 0)
        strbuf_add(text,
                   "\nThe module that predicts a further token is not in the total; it uses the "
                   "model's own\nembedding and head, which a published checkpoint has once "
                   "more.\n");
    uint64_t const windowed = model_window_layers(&model, UINT64_MAX);
    if (windowed != 0)
        strbuf_add(text, "\n%llu of %llu layers attend to a window of %llu keys.\n",
                   (unsigned long long)windowed, (unsigned long long)model.layers,
                   (unsigned long long)model.attends.window);
    if (counts.borrowers != 0)
        strbuf_add(text, "\n%llu of %llu layers attend to the cache of a layer before.\n",
                   (unsigned long long)counts.borrowers, (unsigned long long)model.layers);
    if (model.tied) strbuf_add(text, "\nEmbedding and head are one matrix.\n");
    uint32_t size_bytes = 0;
    const char *const json = model_json(name, &size_bytes);
    if (json != NULL) {
        strbuf_add(text, "\n");
        strbuf_add_bytes(text, json, size_bytes);
    }
    return STATUS_OK;
}

static enum status scenario_member(struct arena *arena, const struct embed_file *file,
                                   const char *key, const char **ret_text, struct error *reterr)
{
    struct json *document = NULL;
    STATUS_TRY(json_read_text(arena, file->name, file->bytes, file->size_bytes, &document, reterr));
    struct json *member = json_take(document, key);
    *ret_text = "";
    return member == NULL ? STATUS_OK : json_as_string(member, ret_text, reterr);
}

enum status list_scenarios(struct arena *arena, struct strbuf *text, struct error *reterr)
{
    for (uint32_t i = 0; i < embed_scenarios_count; i++) {
        const char *question = NULL;
        STATUS_TRY(scenario_member(arena, &embed_scenarios[i], "question", &question, reterr));
        strbuf_add(text, "%s\n    %s\n", embed_scenarios[i].name, question);
    }
    return STATUS_OK;
}

static bool scenario_entry(uint32_t index, struct list_entry *ret_entry)
{
    if (index >= embed_scenarios_count) return false;
    *ret_entry = (struct list_entry){.name = embed_scenarios[index].name};
    return true;
}

enum status list_scenario(struct arena *arena, const char *name, struct strbuf *text,
                          struct error *reterr)
{
    static const struct list_entries scenarios = {.noun = "scenario", .at = scenario_entry};
    uint32_t index = 0;
    (void)arena;
    STATUS_TRY(list_entry_find(&scenarios, name, &index, reterr));
    text->columns = 0; /* JSON, in whose strings no line may end. */
    strbuf_add_bytes(text, embed_scenarios[index].bytes, embed_scenarios[index].size_bytes);
    return STATUS_OK;
}
