#include "sim/report/notes_parts.h"

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/report/launches.h"
#include "sim/report/notes_links.h"
#include "sim/report/words.h"

/* Longest first; insertion, since the parts are few and equals keep their order. */
void notes_part_insert(struct notes *notes, struct notes_part part)
{
    if (part.seconds == 0 || part.name == NULL) return;
    SIM_ASSERT(notes->part_count < NOTES_PARTS_MAX);
    uint32_t at = notes->part_count++;
    for (; at > 0 && notes->part[at - 1].seconds < part.seconds; at--)
        notes->part[at] = notes->part[at - 1];
    notes->part[at] = part;
}

void notes_part_add(struct notes *notes, const char *name, double seconds)
{
    notes_part_insert(notes, (struct notes_part){.name = name, .seconds = seconds});
}

void notes_part_less(struct arena *arena, struct notes *notes, const char *what, double seconds)
{
    notes_part_insert(notes, (struct notes_part){.name = arena_format(arena, "less %s", what),
                                                 .less = what,
                                                 .seconds = seconds});
}

static uint32_t bits_count(uint32_t bits)
{
    uint32_t count = 0;
    for (; bits != 0; bits &= bits - 1) count++;
    return count;
}

/* "AllGather K V (sequence) exposed, on 1 of 3 axes": of several axes that are the bound. */
static const char *exposed_text(struct arena *arena, const struct analysis_class *row,
                                uint32_t within_count, uint32_t bound_count)
{
    if (within_count == 0) return arena_format(arena, "%s exposed", row->name);
    return arena_format(arena, "%s exposed, on %u of %u axes", row->name, within_count,
                        bound_count);
}

/* Exposed time of collectives on the bounding axes is within the bound, that of others above it. Of
 * one that uses some of several such axes a share is within: the others are idle meanwhile. What
 * does not get a row of its own is summed in one. */
static double exposed_parts(struct arena *arena, const struct analysis *analysis,
                            uint32_t bound_bits, struct notes *notes)
{
    double within = 0, rest = 0;
    uint32_t rows = 0;
    uint32_t const bound_count = bits_count(bound_bits);
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *row = &analysis->classes[i];
        uint32_t const count = bits_count(row->axis_bits & bound_bits);
        double const within_s = count == 0 ? 0 : row->exposed_s * count / bound_count;
        if (row->exposed_s == 0) continue;
        within += within_s;
        if (count > 0 && count == bound_count) continue;
        if (rows++ < NOTES_PARTS_MAX / 2)
            notes_part_insert(
                notes, (struct notes_part){.name = exposed_text(arena, row, count, bound_count),
                                           .seconds = row->exposed_s - within_s,
                                           .of = row});
        else
            rest += row->exposed_s - within_s;
    }
    notes_part_add(notes, "other collectives exposed", rest);
    return within;
}

/* The bound is a mean rank's. What the reported one computes beyond what they do on average: other
 * layers, the head, slower chips. */
static double unlike_mean_s(const struct trace *trace)
{
    double sum_ps = 0;
    if (trace->role_count < 2) return 0;
    for (uint32_t r = 0; r < trace->role_count; r++) sum_ps += (double)trace->roles[r].compute_ps;
    return ((double)trace->compute_ps - sum_ps / trace->role_count) / (double)TIME_PS_PER_S;
}

/* "HBM", but "the MXU". */
static const char *resource_words(struct arena *arena, const struct machine *machine,
                                  uint32_t resource)
{
    const char *words = words_resource(machine, analysis_resource_names[resource]);
    return resource == ANALYSIS_HBM ? words : arena_format(arena, "the %s", words);
}

/* What compute ops take beyond the resource that is the bound, by the resource that they wait for.
 */
static double resource_parts(struct arena *arena, const struct report_input *input,
                             const struct analysis *analysis, struct notes *notes)
{
    double sum = 0;
    uint32_t const bound = input->roofline->bound.resource;
    for (uint32_t resource = 0; bound < ANALYSIS_RESOURCES && resource < ANALYSIS_RESOURCES;
         resource++) {
        double beyond_s = 0;
        for (uint32_t i = 0; i < analysis->class_count; i++)
            if (!analysis->classes[i].collective)
                beyond_s += analysis->classes[i].beyond_s[bound][resource];
        notes_part_add(notes,
                       arena_format(arena, "compute ops that wait for %s rather than %s",
                                    resource_words(arena, input->machine, resource),
                                    resource_words(arena, input->machine, bound)),
                       beyond_s);
        sum += beyond_s;
    }
    return sum;
}

/* The name of compute beyond the bound. It is that of a mean rank where this rank computes less
 * than a mean rank. */
static const char *beyond_text(struct arena *arena, const struct report_input *input,
                               double unlike_s)
{
    return arena_format(arena, "%s beyond the bound: %s", unlike_s < 0 ? "a mean rank" : "compute",
                        input->machine->chip.kernels.stack != NULL
                            ? "what measured kernels take beyond it, HBM shared"
                            : "fill and drain of tiles, overheads, HBM shared");
}

void notes_parts_build(struct arena *arena, const struct report_input *input,
                       const struct analysis *analysis, struct notes *notes)
{
    const struct roofline *roofline = input->roofline;
    uint32_t const bits = notes_links_bits(&roofline->bound);
    double const within = exposed_parts(arena, analysis, bits, notes);
    if (input->program->role_count > 1) {
        notes_part_add(notes, "bubbles: waiting for what other ranks of the pipeline do",
                       analysis->bubble_s);
        notes_part_add(notes, "waiting for messages of other ranks that are on their way",
                       analysis->waiting_s);
    } else {
        notes_part_add(notes,
                       launches_are_eager(input->machine)
                           ? "waiting for the host, which has launched nothing"
                           : "neither compute nor collectives",
                       analysis->idle_s);
    }
    if (bits != 0) {
        notes_links_build(arena, input, analysis, within, notes);
        return;
    }
    double const excess = resource_parts(arena, input, analysis, notes) + analysis->async_s;
    double const unlike_s = unlike_mean_s(input->trace);
    double const beyond_s = analysis->compute_s - unlike_s - roofline->lower_s - excess;
    /* No unit of the chip is busy meanwhile, so all is beyond the bound. */
    notes_part_add(notes, "start and end of asynchronous collectives", analysis->async_s);
    if (unlike_s < 0)
        notes_part_less(arena, notes,
                        "what a mean rank of the pipeline computes more than this one", unlike_s);
    else
        notes_part_add(notes, "compute of this rank beyond a mean one of the pipeline", unlike_s);
    if (beyond_s < 0)
        notes_part_less(arena, notes, "the bound's work during what is listed here", beyond_s);
    else
        notes_part_add(notes, beyond_text(arena, input, unlike_s), beyond_s);
}
