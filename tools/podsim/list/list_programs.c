/*
 * list_programs.c: collectives, models and the scenarios that were built in.
 */
#include <string.h>

#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/collective/plan.h"
#include "sim/measure/measure_op.h"
#include "sim/model/model.h"
#include "sim/model/model_read.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/common/scenarios.h"
#include "tools/podsim/list/list_text.h"

enum { NAMES_MAX = 256, HELP_COLUMN = 40, NAMES_COLUMN = 18, NAMES_WIDTH = 90 };

/* What --algorithm takes for an operation. */
static void list_names(enum measure_op operation, struct strbuf *text)
{
    struct plan_algorithms const names = plan_algorithm_names(measure_op_kind(operation));
    uint32_t column = NAMES_WIDTH;
    strbuf_add(text, "  %s", measure_op_name(operation));
    for (uint32_t i = 0; i < names.count; i++) {
        uint32_t const width = (uint32_t)strlen(names.name[i]) + 2;
        bool const breaks = column + width > NAMES_WIDTH;
        if (breaks && i > 0) strbuf_add(text, ",\n");
        if (breaks) strbuf_pad(text, NAMES_COLUMN);
        strbuf_add(text, "%s%s", breaks ? "" : ", ", names.name[i]);
        column = breaks ? NAMES_COLUMN + width : column + width;
    }
    strbuf_add(text, "\n");
}

enum status list_collectives(struct arena *arena, struct strbuf *text, struct error *reterr)
{
    (void)arena;
    (void)reterr;
    for (uint32_t i = 0; i < primitive_count; i++) {
        strbuf_add(text, "%s", primitive_table[i]->name);
        strbuf_pad(text, 30);
        strbuf_add(text, "%s\n", primitive_table[i]->help);
    }
    strbuf_add(text,
               "\nAllReduce, several axes at once and routes over several links are composed\n"
               "of these. A scenario chooses by \"algorithm\" in its run, a collective by\n"
               "--algorithm, with one of these names; which of them a group can run, `podsim\n"
               "collective` says where it refuses another:\n\n");
    for (uint32_t i = 0; i < MEASURE_COUNT; i++)
        if (!measure_op_is_copy((enum measure_op)i)) list_names((enum measure_op)i, text);
    strbuf_add(
        text,
        "\nhierarchical is for groups on several levels, a node's GPUs and the nodes; there\n"
        "A+B names one a level, the inner first: ring+tree, auto+direct. flat-NAME goes over\n"
        "all ranks of several axes at once. auto takes what is estimated to be fastest.\n");
    return STATUS_OK;
}

static const char *needs_of(const struct primitive *primitive)
{
    if (primitive->network == PRIMITIVE_NETWORK_MULTICAST) return "switches that copy";
    if (primitive->network == PRIMITIVE_NETWORK_REDUCE) return "switches that add";
    if (primitive->network == PRIMITIVE_NETWORK_ALL_REDUCE) return "switches that add and copy";
    if (primitive->routed) return "any way from rank to rank";
    return primitive->ring ? "a ring" : "a ring or a line";
}

enum status list_collective(struct arena *arena, const char *name, struct strbuf *text,
                            struct error *reterr)
{
    const char *names[NAMES_MAX + 1] = {0};
    (void)arena;
    for (uint32_t i = 0; i < primitive_count && i < NAMES_MAX; i++) {
        const struct primitive *primitive = primitive_table[i];
        names[i] = primitive->name;
        if (strcmp(name, names[i]) != 0) continue;
        strbuf_add(text,
                   "%s\n\n%s.\n\nachieves   %s\nalgorithm  %s\nneeds      %s\nlanes      %u\n",
                   name, primitive->help, collective_kind_name(primitive->kind),
                   primitive_algorithm(primitive), needs_of(primitive), primitive->lane_count);
        strbuf_add(text, "source     %s\n", primitive->source);
        return STATUS_OK;
    }
    return error_set(reterr, STATUS_NOT_FOUND, name, "no such collective%s",
                     name_offer(name, names, "; the nearest is ", "",
                                "; `podsim list collectives` has the names")
                         .text);
}

static enum status model_find(struct arena *arena, const char *name, struct model *ret_model,
                              struct error *reterr)
{
    return model_read_name_or_path(arena, name, NULL, name, ret_model, reterr);
}

enum status list_models(struct arena *arena, struct strbuf *text, struct error *reterr)
{
    uint64_t const table = table_open(text);
    strbuf_add(text,
               "model            parameters  active  L    D      F      N    K    H    V       "
               "experts\n");
    for (uint32_t i = 0; model_name_at(i) != NULL; i++) {
        struct model model;
        char buffer[QUANTITY_TEXT_BYTES];
        STATUS_TRY(model_find(arena, model_name_at(i), &model, reterr));
        struct model_counts const counts = model_count(&model);
        bool const sparse = model_has_experts(&model);
        strbuf_add(text, "%s", model_name_at(i));
        strbuf_pad(text, 17);
        strbuf_add(text, "%-10s  ", quantity_text_count(buffer, (double)counts.total));
        strbuf_add(text, "%-6s  ",
                   sparse ? quantity_text_count(buffer, (double)counts.active) : "all");
        strbuf_add(text, "%-3llu  %-5llu  %-5llu  %-3llu  %-3llu  %-3llu  %llu",
                   (unsigned long long)model.layers, (unsigned long long)model.width,
                   (unsigned long long)(sparse ? model.experts.width : model.mlp_width),
                   (unsigned long long)model.heads, (unsigned long long)model.kv_heads,
                   (unsigned long long)model.head_width, (unsigned long long)model.vocabulary);
        if (sparse) strbuf_pad(text, 79);
        if (sparse)
            strbuf_add(text, "%llu of %llu", (unsigned long long)model.experts.top_k,
                       (unsigned long long)model.experts.count);
        strbuf_add(text, "\n");
    }
    table_close(text, table, 17);
    strbuf_add(text, "\nA path to a Hugging Face config.json works as well.\n");
    return STATUS_OK;
}

static void count_row(struct strbuf *text, const char *name, uint64_t each, uint64_t times)
{
    if (each == 0) return;
    strbuf_add(text, "%-22s %15llu", name, (unsigned long long)each);
    if (times != 1) strbuf_add(text, " x %llu", (unsigned long long)times);
    strbuf_add(text, "\n");
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
    count_row(text, "attention", counts.attention_layer, model.layers);
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
                   (unsigned long long)model.window);
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

enum status list_scenario(struct arena *arena, const char *name, struct strbuf *text,
                          struct error *reterr)
{
    const char *names[NAMES_MAX + 1] = {0};
    (void)arena;
    for (uint32_t i = 0; i < embed_scenarios_count && i < NAMES_MAX; i++) {
        names[i] = embed_scenarios[i].name;
        if (strcmp(name, names[i]) != 0) continue;
        strbuf_add_bytes(text, embed_scenarios[i].bytes, embed_scenarios[i].size_bytes);
        return STATUS_OK;
    }
    return error_set(
        reterr, STATUS_NOT_FOUND, name, "no such scenario%s",
        name_offer(name, names, "; the nearest is ", "", "; `podsim list scenarios` has the names")
            .text);
}
