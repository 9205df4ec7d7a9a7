#include "sim/report/notes_chunks.h"

#include <stdio.h>
#include <string.h>

#include "sim/report/table.h"

/* How the chunks of the tp collectives travel. */
struct travel {
    bool together;         /* Each over a link of its own, all at the same time. */
    const char *passed_on; /* The algorithm by which ranks pass chunks on; NULL: none does. */
};

/* A link between any two ranks carries what one of them has for the other, however many ranks there
 * are: no message of such an exchange waits for a port or for another message. */
static bool has_own_links(const struct machine *machine, const struct plan *plan,
                          const struct plan_item *item, const struct primitive_cost *cost)
{
    return cost->reach == PRIMITIVE_REACH_ALL && cost->depth == 1 && !item->flat &&
           machine_is_meshed(machine, plan->group.dimension[item->dimension].axis);
}

static void travel_add(const struct machine *machine, const struct plan *plan,
                       struct travel *travel)
{
    for (uint32_t i = 0; i < plan->item_count; i++) {
        const struct plan_item *item = &plan->item[i];
        struct primitive_cost cost = {.depth =
                                          0}; /* Of an algorithm out of a file none is known. */
        if (item->primitive->cost != NULL) cost = item->primitive->cost(item->size);
        travel->together = travel->together && has_own_links(machine, plan, item, &cost);
        if (cost.depth > 1 && travel->passed_on == NULL)
            travel->passed_on = primitive_algorithm(item->primitive);
    }
}

/* By the plans that were run. */
static struct travel travel_of(const struct report_input *input)
{
    const struct program *program = input->program;
    struct travel travel = {.together = true};
    uint32_t plans = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            const struct program_stream *stream = &program->stream[op->stream];
            if (stream->kind != PROGRAM_OP_COLLECTIVE || stream->use.of != STREAM_OF_TP) continue;
            if (program->plans[op->index].chunk_count == 0) continue;
            travel_add(input->machine, &program->plans[op->index], &travel);
            plans++;
        }
    }
    travel.together = travel.together && plans > 0;
    return travel;
}

/* Which collectives no matmul can hide: the same at any batch. */
static void narrow_collectives(const struct roofline *roofline, char *text, uint32_t text_bytes)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < roofline->overlap_count; i++) {
        const struct roofline_overlap *overlap = &roofline->overlap[i];
        if (overlap->math_s >= overlap->link_s) continue;
        size_t const used = strlen(text);
        (void)snprintf(text + used, text_bytes - used, overlap->width > 0 ? "%s%s %.0f" : "%s%s",
                       used == 0 ? "" : ", ", overlap->name, overlap->width);
    }
}

/* A gather's chunks overlap only the math on the rank's own chunk; the last chunk of a scatter that
 * leaves the rank takes as long as all chunks do, and only the math on the rank's own overlaps. */
static void note_together(struct arena *arena, const struct report_input *input,
                          const struct analysis *analysis, double exposed_s, struct notes *notes)
{
    const struct roofline_group *tp = roofline_group_find(input->roofline, MESH_TP);
    notes_add(arena, notes,
              "tp collectives stay exposed for %s (%.1f%% of the step), though collective matmul "
              "overlaps each with its matmuls: each chunk has a link of its own, where it takes as "
              "long as the whole collective; chunks of a gather arrive together at its end, and "
              "the last of a scatter leaves when its math is done, so about one chunk's math in "
              "%llu overlaps",
              table_seconds(exposed_s).text, notes_percent(exposed_s, analysis->step_s),
              (unsigned long long)tp->rank_count);
}

static void note_ends(struct arena *arena, const struct report_input *input, double rest_s,
                      const struct travel *travel, struct notes *notes)
{
    const struct roofline_group *tp = roofline_group_find(input->roofline, MESH_TP);
    char hops[96] = "";
    if (travel->passed_on != NULL)
        (void)snprintf(hops, sizeof hops, ", and each hop of the %s adds its latency",
                       travel->passed_on);
    notes_add(arena, notes,
              "collective matmul goes in %llu chunks: no math overlaps the first to arrive and "
              "the last to leave%s; that is about %s of each of the %llu tp collectives",
              (unsigned long long)tp->rank_count, hops,
              table_seconds(rest_s / (double)tp->count).text, (unsigned long long)tp->count);
}

void notes_chunks_add(struct arena *arena, const struct report_input *input,
                      const struct analysis *analysis, double exposed_s, bool overridden,
                      struct notes *notes)
{
    const struct roofline *roofline = input->roofline;
    struct travel const travel = travel_of(input);
    if (travel.together && !overridden) {
        note_together(arena, input, analysis, exposed_s, notes);
        return;
    }
    char narrow[256];
    narrow_collectives(roofline, narrow, sizeof narrow);
    char cause[384];
    if (narrow[0] != '\0')
        (void)snprintf(cause, sizeof cause,
                       "narrower than that width: %s; by formulas the links need %s longer "
                       "than that math",
                       narrow, table_seconds(roofline->tp_excess_s).text);
    else
        (void)snprintf(cause, sizeof cause,
                       "all are wide enough for their bytes to hide behind that math by formulas");
    notes_add(arena, notes,
              "tp collectives stay exposed for %s (%.1f%% of the step), though collective matmul "
              "overlaps each with its matmuls: %s%s",
              table_seconds(exposed_s).text, notes_percent(exposed_s, analysis->step_s), cause,
              overridden          ? "; what is exposed waits for the slow chip or link"
              : narrow[0] != '\0' ? ""
                                  : "; what is exposed is the first chunk and the last");
    double const rest_s = exposed_s - roofline->tp_excess_s;
    if (rest_s > 0 && !overridden) note_ends(arena, input, rest_s, &travel, notes);
}
