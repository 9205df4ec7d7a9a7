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

static bool computes_fp8(const struct program *program)
{
    for (uint32_t i = 0; i < program->work_count; i++)
        if (program->works[i].math_format == FORMAT_FP8) return true;
    return false;
}

/* A clock of products in fp8 that the scenario chose, and that none of its steps have. What
 * `show scenario` prints, the stack's own clock, was not chosen. */
static void note_clock_fp8(struct arena *arena, const struct report_input *input,
                           struct notes *notes)
{
    const struct machine_plan *plan = input->machine_plan;
    const struct kernel_stack *stack = input->machine->chip.kernels.stack;
    if (plan->clock_fp8_ppm == 0 || input->program == NULL) return;
    if (stack != NULL && plan->clock_fp8_ppm == stack->clock_fp8_ppm) return;
    if (plan->clock_fp8_ppm == machine_clock_ppm(plan, &input->machine->chip)) return;
    if (computes_fp8(input->program)) return;
    notes_add(arena, notes,
              "\"clock_fp8\" of the machine changes nothing: no product of this step is in fp8");
}

/* Engines' tables are of kernels that ran alone. A chip whose library of training knows the clock
 * of a step, in its tables or beside them, has a lower one in a step than such kernels had. What
 * `show scenario` prints, the whole clock, is none either. */
static void note_no_clock(struct arena *arena, const struct report_input *input,
                          struct notes *notes)
{
    static const char trains[] = "te";
    const struct chip *chip = &input->machine->chip;
    const struct kernel_stack *stack = chip->kernels.stack;
    struct kernel_stack other;
    struct error error;
    if (stack == NULL || stack->is_own_file || stack->clock_ppm != 0) return;
    if (machine_clock_ppm(input->machine_plan, chip) != PPM_ONE) return;
    if (workload_serves(input->workload)) return;
    if (kernel_stack_find(trains, stack->chip, "", &other, &error) != STATUS_OK) return;
    if (other.clock_ppm == 0) return;
    notes_add(arena, notes,
              "the stack %s is of an engine for inference and has no clock of a training step: "
              "products run at the clock of kernels that were measured alone, and real steps are "
              "slower; the stack %s has %s, and \"clock\" of the machine below 1 sets one",
              stack->name, other.name,
              other.clock_ppm == PPM_ONE ? "the clock of a step in its tables" : "such a clock");
}

void notes_clocks_build(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    uint32_t const first = notes->count;
    if (input->machine_plan == NULL) return;
    note_clock_fp8(arena, input, notes);
    note_no_clock(arena, input, notes);
    notes_always(notes, first);
}

void notes_kernels_build(struct arena *arena, const struct report_input *input,
                         const struct analysis *analysis, struct notes *notes)
{
    notes_preset_build(arena, input, notes);
    notes_clocks_build(arena, input, notes);
    note_untabled(arena, input, analysis, notes);
}
