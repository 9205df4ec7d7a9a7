#include "sim/report/notes_model.h"

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/base/units.h"
#include "sim/graph/parameters.h"
#include "sim/model/model.h"
#include "sim/step/counts.h"
#include "sim/step/workload.h"

static enum status note_windows(struct arena *arena, const struct report_input *input,
                                struct notes *notes, struct error *reterr)
{
    const struct workload_plan *plan = input->workload;
    const struct model *model = &plan->model;
    uint64_t const windowed = model_window_layers(model, workload_keys(plan));
    struct workload_plan whole = *plan;
    struct workload_counts counts;
    if (windowed == 0) return STATUS_OK;
    whole.model.by_layer.windowed = NULL;
    STATUS_TRY(workload_count(&whole, input->machine, input->mesh, &counts, reterr));
    notes_add(
        arena, notes,
        "%llu of %llu layers attend to %llu keys at most: the dot products are %.1f%% of what "
        "they would be over whole sequences",
        (unsigned long long)windowed, (unsigned long long)model->layers,
        (unsigned long long)model->attends.window,
        notes_percent(input->roofline->counts.useful_attention_flop, counts.useful_attention_flop));
    return STATUS_OK;
}

/* Routers that prefer experts, room that these have, and rows that even shares are rounded up by.
 */
static void note_experts(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct workload_plan *plan = input->workload;
    const struct workload_counts *counts = &input->roofline->counts;
    double const uneven = counts->spare.uneven * (double)input->machine->chip_count;
    double const share = notes_percent(uneven, input->roofline->flop.executed);
    if (plan->routing.capacity_ppm != 0)
        notes_add(arena, notes,
                  "experts have room for %g times their even rows: %.0f of %.0f tokens' "
                  "assignments are dropped (%.2f%%), which MFU does not count; rows that stay "
                  "empty are %.1f%% of the executed FLOP, which HFU counts",
                  (double)plan->routing.capacity_ppm / PPM_ONE, counts->rows.dropped,
                  counts->rows.assigned, notes_percent(counts->rows.dropped, counts->rows.assigned),
                  share);
    else if (uneven > 0 && plan->routing.skew_ppm != 0 && input->mesh->axis[MESH_EP].size > 1)
        notes_add(arena, notes,
                  "routing_skew %g: the combine waits for the most loaded rank of ep, so every "
                  "rank is charged the rows of that rank: %.1f%% of the executed FLOP exceed the "
                  "ranks' own rows, and HFU counts them",
                  (double)plan->routing.skew_ppm / PPM_ONE, share);
    else if (share > 0.05)
        notes_add(arena, notes,
                  "experts compute whole rows: rounding up the even share of each is "
                  "%.1f%% of the executed FLOP, which HFU counts and MFU does not",
                  share);
}

/* What a step trains besides the model. */
static void note_mtp(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct model *model = &input->workload->model;
    struct model_counts const counts = model_count(model);
    uint64_t const modules = workload_mtp(input->workload);
    char text[4][QUANTITY_TEXT_BYTES];
    if (modules == 0) return;
    notes_add(arena, notes,
              "multi-token prediction: %s of %s parameters in addition to the model's %s; MFU "
              "counts both, 6 FLOP a token for %s and %s active ones, the head for each prediction",
              counted(modules, "module").text,
              quantity_text_count(text[0], (double)counts.mtp_modules / (double)modules),
              quantity_text_count(text[1], (double)counts.total),
              quantity_text_count(text[2], (double)counts.active),
              quantity_text_count(text[3], (double)counts.mtp_active));
}

enum status notes_model_build(struct arena *arena, const struct report_input *input,
                              struct notes *notes, struct error *reterr)
{
    STATUS_TRY(note_windows(arena, input, notes, reterr));
    note_experts(arena, input, notes);
    note_mtp(arena, input, notes);
    return STATUS_OK;
}
