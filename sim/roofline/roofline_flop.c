#include "sim/roofline/roofline_flop.h"

/* Each KV head lies whole on tp/K chips, and latent attention's projections down on all of tp: what
 * they give is the same, in the forward pass, twice in the backward one, and again where the block
 * is recomputed. */
static double duplicated_flop(const struct workload_plan *plan, const struct mesh *mesh,
                              const struct workload_counts *counts)
{
    const struct model *model = &plan->model;
    double const tp = mesh->axis[MESH_TP].size;
    bool const latent = model->latent.kv_rank != 0;
    double const again = counts->kv_heads_held - counts->kv_heads_padded;
    if (model->kind != MODEL_LLAMA || (!latent && again <= 0)) return 0;
    double const passes = workload_remat_repeats(plan->remat) ? 4 : 3;
    double const columns = latent ? (double)model_latent_columns(model) * (tp - 1)
                                  : 2 * (double)model->head_width * again;
    return passes * 2 * (double)plan->batch_tokens * (double)model->width * columns *
           (double)(model->layers + workload_predictors(plan));
}

void roofline_flop(const struct workload_plan *plan, const struct machine *machine,
                   const struct mesh *mesh, const struct workload_counts *counts,
                   struct roofline *roofline)
{
    double const chips = machine->chip_count;
    /* A part of what is executed, so that MFU is at most HFU: what is looked up or scaled, an
     * embedding or a norm, has parameters and no matmul. */
    roofline->useful_flop = counts->matmul_useful * chips - counts->useful_attention_flop;
    roofline->useful_attention_flop = counts->useful_attention_flop;
    roofline->executed_flop = counts->matmul_flop * chips;
    roofline->padded_flop = counts->padded_flop * chips;
    roofline->duplicated_flop = duplicated_flop(plan, mesh, counts);
    roofline->flash_flop = counts->matmul_flash * chips;
    double const again = (counts->matmul_flop - counts->matmul_useful) * chips;
    roofline->recomputed_flop =
        plan->remat == WORKLOAD_REMAT_NONE
            ? 0
            : again - roofline->duplicated_flop - roofline->flash_flop -
                  (counts->matmul_waiting + counts->matmul_uneven + counts->matmul_padding) * chips;
    if (roofline->recomputed_flop < roofline->executed_flop * 1e-9) roofline->recomputed_flop = 0;
    roofline->ideal_s = roofline->useful_flop / (chips * roofline->peak_flop_per_s);
}
