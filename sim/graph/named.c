#include "sim/graph/named.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/graph/op.h"

bool graph_is_listed(const struct graph *graph, tensor of)
{
    const struct graph_tensor *at = &graph->tensor[of];
    return at->role == GRAPH_ACTIVATION &&
           (at->made_by != GRAPH_NONE || at->kept == GRAPH_REMAT_LAYER);
}

struct graph_label graph_listed_name(const struct graph *graph, tensor of)
{
    const struct graph_op *maker = graph_maker(graph, of);
    return graph_label(graph, maker != NULL ? maker : &graph->op[0], graph->tensor[of].at.name,
                       /* gradient= */ false);
}

/* "A" is in all blocks, "attention.A" in one, and "attention.*" is all that a block makes. */
static bool is_named(const struct graph *graph, tensor of, const char *name)
{
    struct graph_label const label = graph_listed_name(graph, of);
    char prefix[GRAPH_LABEL_BYTES];
    const char *const dot = strrchr(name, '.');
    if (name_same(name, graph->tensor[of].at.name) || name_same(name, label.text)) return true;
    if (dot == NULL || dot[1] != '*' || dot[2] != '\0') return false;
    (void)snprintf(prefix, sizeof prefix, "%.*s", (int)(dot + 1 - name), name);
    return name_after(label.text, prefix) != NULL;
}

/* What the layer is computed from is always kept. */
static bool is_first(const struct graph *graph, tensor of)
{
    return graph->tensor[of].kept == GRAPH_REMAT_LAYER;
}

/* Whether a kernel writes the array, or a framework has one in addition. */
static bool is_written(const struct graph *graph, tensor of)
{
    return graph->tensor[of].kept != GRAPH_REMAT_NEVER ||
           graph->tensor[of].framework.what == GRAPH_FRAMEWORK_OUTPUT;
}

enum graph_named_fit graph_named_fit(const struct graph *graph, const char *name, bool repeats)
{
    enum graph_named_fit found = GRAPH_NAMED_UNKNOWN;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        if (!graph_is_listed(graph, t) || !is_named(graph, t, name)) continue;
        bool const fits = repeats ? !is_first(graph, t) : is_written(graph, t);
        if (fits) return GRAPH_NAMED_FITS;
        found = GRAPH_NAMED_UNFIT;
    }
    return found;
}

static bool has(const struct graph *graph, const struct graph_names *names, tensor of)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (is_named(graph, of, names->name[i])) return true;
    return false;
}

/* A list keeps an array as the strongest policy that keeps it does. */
static void save(struct graph_tensor *at)
{
    at->saved = at->kept != GRAPH_REMAT_NEVER;
    at->saved_gathered = at->saved_gathered || (at->saved && at->kept_gathered >= at->kept);
    at->framework_saved = at->framework.kept != GRAPH_REMAT_NEVER;
    at->repeated = false;
}

static void repeat(struct graph_tensor *at)
{
    at->saved = at->saved_gathered = at->framework_saved = at->offloaded = false;
    at->repeated = at->role == GRAPH_ACTIVATION;
}

/* Tensors that are kept together, or not at all, each with its representative. */
static void together_find(const struct graph *graph, tensor ret_with[GRAPH_TENSORS_MAX])
{
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        const struct graph_op *maker = graph_maker(graph, t);
        bool const follows = maker != NULL && graph->tensor[t].role == GRAPH_STATISTIC;
        ret_with[t] = follows ? maker->out[0] : graph_lies_in(graph, t);
    }
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_product *product = graph->op[i].as.matmul.product;
        for (uint8_t p = 1; p < graph->op[i].product_count; p++)
            ret_with[product[p].out] = ret_with[product[0].out];
    }
}

bool graph_named_meet(const struct graph *graph, const char *one, const char *other, bool together)
{
    tensor with[GRAPH_TENSORS_MAX];
    if (strchr(one, '*') != NULL || strchr(other, '*') != NULL) return false;
    together_find(graph, with);
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        if (!graph_is_listed(graph, t) || !is_named(graph, t, one)) continue;
        for (uint8_t u = 0; u < graph->tensor_count; u++) {
            bool const meets = together ? with[u] == with[t] : u == t;
            if (meets && graph_is_listed(graph, u) && is_named(graph, u, other)) return true;
        }
    }
    return false;
}

static void names_apply(struct graph *graph, const struct graph_named *named)
{
    tensor with[GRAPH_TENSORS_MAX];
    bool saves[GRAPH_TENSORS_MAX] = {false}, repeats[GRAPH_TENSORS_MAX] = {false},
         offloads[GRAPH_TENSORS_MAX] = {false};
    together_find(graph, with);
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        if (!graph_is_listed(graph, t)) continue;
        offloads[with[t]] = offloads[with[t]] || has(graph, &named->offload, t);
        saves[with[t]] = saves[with[t]] || has(graph, &named->save, t);
        repeats[with[t]] = repeats[with[t]] || has(graph, &named->repeat, t);
    }
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        struct graph_tensor *at = &graph->tensor[t];
        bool const lasts = at->role == GRAPH_ACTIVATION || at->role == GRAPH_STATISTIC;
        if (!lasts || (at->made_by == GRAPH_NONE && !graph_is_listed(graph, t))) continue;
        if (repeats[with[t]] && !is_first(graph, with[t])) repeat(at);
        if (saves[with[t]] || offloads[with[t]]) save(at);
        at->offloaded = offloads[with[t]] && at->saved;
    }
}

/* One collective gathers what attention reads of whole sequences: all is kept so, or none. */
static void wholes_join(struct graph *graph)
{
    for (uint8_t i = 0; i < graph->op_count; i++) {
        const struct graph_op *op = &graph->op[i];
        bool all = true;
        if (!op->kind->shares_sequence || graph->terms->sequence.parts == 1) continue;
        for (uint8_t in = 1; in < op->in_count; in++)
            all = all && graph->tensor[op->in[in]].saved_gathered;
        for (uint8_t in = 1; in < op->in_count; in++)
            graph->tensor[op->in[in]].saved_gathered = all;
    }
}

void graph_saved_set(struct graph *graph)
{
    const struct graph_policy *policy = &graph->terms->policy;
    for (uint8_t t = 0; t < graph->tensor_count; t++) {
        struct graph_tensor *at = &graph->tensor[t];
        at->saved = at->kept >= policy->remat;
        at->saved_gathered = at->kept_gathered >= policy->remat;
        at->framework_saved = at->framework.kept >= policy->remat;
        at->repeated = at->offloaded = false;
    }
    if (policy->named == NULL) return;
    names_apply(graph, policy->named);
    wholes_join(graph);
}
