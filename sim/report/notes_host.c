#include "sim/report/notes_host.h"

#include "sim/base/quantity.h"
#include "sim/report/table.h"

void notes_host_build(struct arena *arena, const struct report_input *input,
                      const struct analysis *analysis, struct notes *notes)
{
    const struct roofline_rules *rules = &input->roofline->rules;
    double exposed_s = 0;
    for (uint32_t i = 0; i < analysis->class_count; i++)
        if (analysis->classes[i].collective && analysis->classes[i].axis_bits == ANALYSIS_HOST_BIT)
            exposed_s += analysis->classes[i].exposed_s;
    if (input->roofline->host_s <= 0) return;
    notes_add(arena, notes,
              "copies to and from the host keep %s busy for %s each way; %s of the step is exposed "
              "to them (%s)",
              input->machine->host.cable_name, table_seconds(input->roofline->host_s).text,
              table_seconds(exposed_s).text, table_percent(exposed_s, analysis->step_s).text);
    if (rules->offload_optimizer_tokens > 0)
        notes_add(arena, notes,
                  "the backward pass hides the copies of moments from %.0f tokens a "
                  "chip on; there are %.0f",
                  rules->offload_optimizer_tokens, rules->tokens_per_chip);
    if (rules->offload_activations_share > 0)
        notes_add(arena, notes,
                  "what a layer saves takes %.2f times its forward pass's math to store, and as "
                  "long to load: %s, whatever the batch",
                  rules->offload_activations_share,
                  rules->offload_activations_share <= 1 ? "it can be hidden"
                                                        : "the forward pass waits for the link");
}
