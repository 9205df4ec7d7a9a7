#include "sim/report/notes_upper.h"

#include <stdio.h>
#include <string.h>

#include "sim/report/table.h"
#include "sim/roofline/gather_form.h"

/* Whether a flow has one of several cables, however busy that is. The closed forms know the links
 * of pairs. */
static bool keeps_cables(const struct machine *machine)
{
    bool any = false;
    for (uint32_t l = 0; l < machine->level_count; l++)
        for (uint32_t t = 0; t < machine->level[l].tier_count; t++)
            any = any || ((machine->level[l].tier[t].policy == LEVEL_HASH ||
                           machine->level[l].tier[t].policy == LEVEL_RAIL) &&
                          machine->level[l].tier[t].cable_count > 1);
    return any;
}

/* Whether the closed forms of the bound are of what all groups go by. */
static bool is_known(const struct report_input *input)
{
    const struct roofline *roofline = input->roofline;
    for (uint32_t i = 0; i < roofline->group_count; i++)
        if (!gather_form_by(input->machine, &roofline->group[i].group, &input->workload->algorithm)
                 .closed)
            return false;
    return true;
}

/* Whether a message has waited for a link. */
static bool has_waited(const struct trace *trace)
{
    bool any = false;
    for (uint32_t port = 0; port < TRACE_PORTS_MAX; port++)
        any = any || trace->link[port].queued_ps > 0;
    return any;
}

static void reason_add(char *text, size_t size, bool holds, const char *reason)
{
    size_t const used = strlen(text);
    if (holds) (void)snprintf(text + used, size - used, "%s%s", used == 0 ? "" : ", ", reason);
}

void notes_upper_build(struct arena *arena, const struct report_input *input,
                       const struct analysis *analysis, struct notes *notes)
{
    const struct workload_plan *plan = input->workload;
    double const upper_s = input->roofline->upper_s;
    bool const stages = input->mesh->axis[MESH_PP].size > 1;
    char reasons[400] = "", form[96] = "";
    if (analysis->step_s <= upper_s * (1 + 1e-9)) return;
    if (!is_known(input))
        (void)snprintf(form, sizeof form, "of \"%.64s\"", algorithm_text(&plan->algorithm).text);
    reason_add(reasons, sizeof reasons, form[0] != '\0', form);
    reason_add(reasons, sizeof reasons, keeps_cables(input->machine),
               "of flows that use one of several cables");
    reason_add(reasons, sizeof reasons,
               plan->routing.skew_ppm != 0 && input->mesh->axis[MESH_EP].size > 1,
               "of ranks that get more tokens than others");
    reason_add(reasons, sizeof reasons, stages && (plan->model.tied || workload_mtp(plan)),
               "of exchanges of stages with copies of a matrix, or with modules "
               "after the layers");
    reason_add(reasons, sizeof reasons, input->machine->chip.kernels.stack != NULL,
               "of measured kernels, which are slower than the data sheet's rates");
    if (reasons[0] == '\0')
        reason_add(reasons, sizeof reasons, true,
                   has_waited(input->trace)
                       ? "of collectives that wait for each other on shared links"
                       : "of something that is no algorithm, no cable, no kernel and no queue");
    notes_add(arena, notes,
              "it is %s (%s) longer than the upper bound of %s, where nothing "
              "overlaps: a sum of closed forms, which take no account %s",
              table_seconds(analysis->step_s - upper_s).text,
              table_percent(analysis->step_s - upper_s, upper_s).text, table_seconds(upper_s).text,
              reasons);
}
