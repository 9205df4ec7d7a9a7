/* list_collectives.c: primitives of collectives, and what --algorithm takes. */
#include <stdio.h>

#include "sim/base/strbuf.h"
#include "sim/collective/plan.h"
#include "sim/measure/measure_op.h"
#include "tools/podsim/list/list_text.h"

enum { NAMES_COLUMN = 18 };

static bool entry_at(uint32_t index, struct list_entry *ret_entry)
{
    if (index >= primitive_count) return false;
    const struct primitive *primitive = primitive_table[index];
    *ret_entry = (struct list_entry){primitive->name, primitive->help, primitive->source, NULL};
    return true;
}

enum status list_algorithms(struct arena *arena, struct strbuf *text, struct error *reterr)
{
    (void)arena;
    (void)reterr;
    strbuf_add(text,
               "\nAllReduce, several axes at once and routes over several links are composed\n"
               "of these. A scenario chooses by \"algorithm\" in its run, a collective by\n"
               "--algorithm, with one of these names; which of them a group can run, `podsim\n"
               "collective` says where it refuses another:\n\n");
    for (uint32_t i = 0; i < MEASURE_COUNT; i++) {
        enum measure_op const of = (enum measure_op)i;
        if (measure_op_is_copy(of)) continue;
        struct plan_algorithms const all = plan_algorithms_of(measure_op_kind(of));
        strbuf_add(text, "  %s", measure_op_name(of));
        for (uint32_t n = 0; n < all.count; n++)
            list_name_add(algorithm_text(&all.of[n]).text, n == 0, NAMES_COLUMN, text);
        strbuf_add(text, "\n");
    }
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

static enum status facts_add(struct arena *arena, uint32_t index, struct strbuf *text,
                             struct error *reterr)
{
    const struct primitive *primitive = primitive_table[index];
    char lanes[16];
    (void)arena;
    (void)reterr;
    (void)snprintf(lanes, sizeof lanes, "%u", primitive->lane_count);
    list_fact_add(text, "achieves", collective_kind_name(primitive->kind));
    list_fact_add(text, "algorithm", primitive_algorithm(primitive));
    list_fact_add(text, "needs", needs_of(primitive));
    list_fact_add(text, "lanes", lanes);
    return STATUS_OK;
}

const struct list_entries list_primitives = {"collective", 30, entry_at, facts_add};
