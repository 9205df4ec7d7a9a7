#include "sim/report/notes_kernels.h"

#include "sim/base/strbuf.h"
#include "sim/kernels/kernels.h"
#include "sim/report/table.h"

enum { NAMES_SHOWN = 4 };

/* Ops that take more of the compute time than this, and that no table has, are noted. */
static const double share_noted = 0.05;

void notes_preset_build(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct chip *chip = &input->machine->chip;
    uint32_t const first = notes->count;
    if (input->lacking_stack == NULL || chip->is_ideal || chip->kernels.stack != NULL) return;
    notes_add(arena, notes,
              "the preset %s has the stack %s, which has no tables for %s: compute runs at the "
              "profile's rates, without measured kernels",
              input->preset, input->lacking_stack, chip->name);
    notes_always(notes, first);
}

/* The class of `analysis` after `last` by time without a table, longest first, and the first of
 * those with the same time. At the begin `last` is the number of classes, as the answer is at the
 * end. */
static uint32_t next_find(const struct analysis *analysis, uint32_t last)
{
    const struct analysis_alone *alone = analysis->alone;
    uint32_t const end = analysis->class_count;
    uint32_t next = end;
    for (uint32_t i = 0; i < end; i++) {
        double const of = alone[i].untabled_s;
        if (!(of > 0)) continue;
        bool const is_after = last == end || of < alone[last].untabled_s ||
                              (!(of > alone[last].untabled_s) && i > last);
        if (is_after && (next == end || of > alone[next].untabled_s)) next = i;
    }
    return next;
}

/* "attention.O 1.98 ms, attention.Up 900 us and 3 more" */
static void names_add(const struct analysis *analysis, struct strbuf *text)
{
    uint32_t shown = 0, more = 0;
    for (uint32_t i = next_find(analysis, analysis->class_count); i < analysis->class_count;
         i = next_find(analysis, i)) {
        if (shown < NAMES_SHOWN)
            strbuf_add(text, "%s%s %s", shown++ == 0 ? "" : ", ", analysis->classes[i].name,
                       table_seconds(analysis->alone[i].untabled_s).text);
        else
            more++;
    }
    if (more > 0) strbuf_add(text, " and %u more", more);
}

static void note_untabled(struct arena *arena, const struct report_input *input,
                          const struct analysis *analysis, struct notes *notes)
{
    const struct kernel_stack *stack = input->machine->chip.kernels.stack;
    struct analysis_alone sum = {0, 0};
    struct strbuf names = {0};
    uint32_t const first = notes->count;
    if (stack == NULL) return;
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        sum.time_s += analysis->alone[i].time_s;
        sum.untabled_s += analysis->alone[i].untabled_s;
    }
    if (!(sum.untabled_s > share_noted * sum.time_s)) return;
    names_add(analysis, &names);
    notes->lacks_memory = notes->lacks_memory || names.failed;
    if (!names.failed)
        notes_add(arena, notes,
                  "%.1f%% of the time of compute is of ops that no table of %s has, at the "
                  "profile's rates: %s",
                  notes_percent(sum.untabled_s, sum.time_s), stack->name, names.bytes);
    notes_always(notes, first);
    strbuf_free(&names);
}

void notes_kernels_build(struct arena *arena, const struct report_input *input,
                         const struct analysis *analysis, struct notes *notes)
{
    notes_preset_build(arena, input, notes);
    note_untabled(arena, input, analysis, notes);
}
