/* Refuses lists of `remat` with names that no layer's arrays have, or that do nothing. */
#include <stdio.h>

#include "sim/base/name.h"
#include "sim/graph/named.h"
#include "sim/step/graph_terms.h"

enum { KNOWN_MAX = 2 * LAYER_KINDS_MAX * GRAPH_TENSORS_MAX };

/* Names that a list may have: of each array alone, and with the prefix of its block. */
struct known {
    struct graph_label label[KNOWN_MAX];
    const char *name[KNOWN_MAX + 1];
    uint32_t count;
};

static void known_add(struct known *known, const char *name)
{
    for (uint32_t i = 0; i < known->count; i++)
        if (name_same(known->name[i], name)) return;
    SIM_ASSERT(known->count < KNOWN_MAX);
    (void)snprintf(known->label[known->count].text, sizeof known->label->text, "%s", name);
    known->name[known->count] = known->label[known->count].text;
    known->count++;
}

/* Arrays that a list may have, with names of their own before names with a prefix. */
static void known_find(const struct ranks *ranks, bool repeats, struct known *ret_known)
{
    ret_known->count = 0;
    for (uint32_t i = 0; i < 2 * ranks->kinds.count; i++) {
        struct step_part const part = {.part = BLOCK_LAYER, .kind = i % ranks->kinds.count};
        struct step_graph room;
        const struct graph *graph = &step_graph(ranks, &part, &room)->graph;
        for (uint8_t t = 0; t < graph->tensor_count; t++) {
            struct graph_label const label = graph_listed_name(graph, t);
            if (!graph_is_listed(graph, t)) continue;
            if (graph_named_fit(graph, label.text, repeats) != GRAPH_NAMED_FITS) continue;
            known_add(ret_known, i < ranks->kinds.count ? graph->tensor[t].at.name : label.text);
        }
    }
    ret_known->name[ret_known->count] = NULL;
}

static enum graph_named_fit fit_of(const struct ranks *ranks, const char *name, bool repeats)
{
    enum graph_named_fit found = GRAPH_NAMED_UNKNOWN;
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++) {
        struct step_part const part = {.part = BLOCK_LAYER, .kind = kind};
        struct step_graph room;
        const struct graph *graph = &step_graph(ranks, &part, &room)->graph;
        enum graph_named_fit const fit = graph_named_fit(graph, name, repeats);
        if (fit > found) found = fit;
    }
    return found;
}

/* Whether all that a layer's graphs call so is what the layer is computed from. */
static bool keeps_first(const struct ranks *ranks, const char *name)
{
    return fit_of(ranks, name, /* repeats= */ true) != GRAPH_NAMED_FITS;
}

/* A list by the name of its key. */
struct list {
    const char *key;
    const struct graph_names *names;
};

enum { PLACE_BYTES = 64 };

static const char *place_of(const struct list *list, uint32_t index, char text[PLACE_BYTES])
{
    (void)snprintf(text, PLACE_BYTES, "/workload/remat/%s/%u", list->key, index);
    return text;
}

static bool meet(const struct ranks *ranks, const char *one, const char *other, bool together)
{
    for (uint32_t kind = 0; kind < ranks->kinds.count; kind++) {
        struct step_part const part = {.part = BLOCK_LAYER, .kind = kind};
        struct step_graph room;
        const struct graph *graph = &step_graph(ranks, &part, &room)->graph;
        if (graph_named_meet(graph, one, other, together)) return true;
    }
    return name_same(one, other);
}

/* The place among the first `end` of a list of a name that means the same; `end`: there is none. */
static uint32_t find(const struct ranks *ranks, const struct graph_names *names, uint32_t end,
                     const char *name, bool together)
{
    uint32_t at = 0;
    while (at < end && !meet(ranks, names->name[at], name, together)) at++;
    return at;
}

/* The name in a list of an array that is kept together with those of `name`; NULL: there is none.
 */
static const char *kept_with(const struct ranks *ranks, const struct graph_names *names,
                             const char *name)
{
    uint32_t const at = find(ranks, names, names->count, name, /* together= */ true);
    return at < names->count ? names->name[at] : NULL;
}

/* Apart from the check of names, so that only a refusal has all names on its stack. */
static __attribute__((noinline)) enum status unknown_refuse(const struct ranks *ranks,
                                                            const char *where, const char *name,
                                                            bool repeats, struct error *reterr)
{
    struct known known;
    known_find(ranks, repeats, &known);
    return error_set(reterr, STATUS_INVALID, where,
                     "no array of a layer is called \"%.64s\"%s; `podsim show graph` prints all",
                     name, name_offer(name, known.name, "; the nearest is \"", "\"", NULL).text);
}

static enum status name_check(const struct ranks *ranks, const struct list *list, uint32_t index,
                              struct error *reterr)
{
    bool const repeats = list->names == &ranks->plan->kept.named.repeat;
    const char *const name = list->names->name[index];
    char text[PLACE_BYTES];
    const char *const where = place_of(list, index, text);
    enum graph_named_fit const fit = fit_of(ranks, name, repeats);
    if (fit == GRAPH_NAMED_UNKNOWN) return unknown_refuse(ranks, where, name, repeats, reterr);
    if (fit == GRAPH_NAMED_UNFIT && repeats)
        return error_set(reterr, STATUS_INVALID, where,
                         "the layer is computed from \"%.64s\", which is always kept", name);
    if (fit == GRAPH_NAMED_UNFIT)
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.64s\" is never in memory: the op that reads it computes it on the "
                         "way",
                         name);
    if (ranks->plan->remat == GRAPH_REMAT_LAYER && !keeps_first(ranks, name))
        return error_set(reterr, STATUS_INVALID, where,
                         "\"layer\" computes \"%.64s\" again; only the layer's input can be "
                         "offloaded",
                         name);
    return STATUS_OK;
}

/* A name whose arrays lie in the list `key`, too, or are kept with `other` of that list. */
static enum status both_refuse(const char *where, const char *name, const char *other,
                               const char *key, bool repeats, struct error *reterr)
{
    bool const same = name_same(name, other);
    if (same && repeats)
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.64s\" cannot be both kept and computed again", name);
    if (same)
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.64s\" is in \"save\", too, which keeps it on the chip; it can be in "
                         "one of both",
                         name);
    return error_set(reterr, STATUS_INVALID, where,
                     "\"%.64s\" goes with \"%.64s\" of \"%s\": both are in one list, or neither",
                     name, other, key);
}

/* Names that stand there twice, or in another list. */
static enum status twice_check(const struct ranks *ranks, const struct list *list, uint32_t index,
                               struct error *reterr)
{
    const struct graph_named *named = &ranks->plan->kept.named;
    const char *const name = list->names->name[index];
    char text[PLACE_BYTES];
    const char *const where = place_of(list, index, text);
    uint32_t const first = find(ranks, list->names, index, name, /* together= */ false);
    if (first < index)
        return error_set(reterr, STATUS_INVALID, where, "\"%.64s\" is at place %u of the list, too",
                         name, first);
    if (list->names == &named->save) return STATUS_OK;
    const char *const saved = kept_with(ranks, &named->save, name);
    const char *const offloaded = kept_with(ranks, &named->offload, name);
    bool const repeats = list->names == &named->repeat;
    if (saved != NULL) return both_refuse(where, name, saved, "save", repeats, reterr);
    if (repeats && offloaded != NULL)
        return both_refuse(where, name, offloaded, "offload", repeats, reterr);
    return STATUS_OK;
}

enum status ranks_remat_check(const struct ranks *ranks, struct error *reterr)
{
    const struct graph_named *named = &ranks->plan->kept.named;
    struct list const lists[] = {
        {"repeat", &named->repeat}, {"save", &named->save}, {"offload", &named->offload}};
    if (!graph_named_any(named) || ranks_serves(ranks)) return STATUS_OK;
    if (ranks->plan->remat == GRAPH_REMAT_LAYER && named->save.count + named->repeat.count > 0)
        return error_set(reterr, STATUS_INVALID, "/workload/remat/policy",
                         "\"layer\" computes every array again; lists need \"block\" or less");
    if (ranks_offloads_kept(ranks) && named->offload.count > 0)
        return error_set(reterr, STATUS_INVALID, "/workload/remat/offload",
                         "the host has all that is kept already, by /workload/offload");
    for (uint32_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (uint32_t i = 0; i < lists[l].names->count; i++) {
            STATUS_TRY(twice_check(ranks, &lists[l], i, reterr));
            STATUS_TRY(name_check(ranks, &lists[l], i, reterr));
        }
    return STATUS_OK;
}
