#include "sim/roofline/roofline_flop.h"

void roofline_flop(const struct workload_plan *plan, const struct machine *machine,
                   const struct workload_counts *counts, struct roofline *roofline)
{
    double const chips = machine->chip_count;
    /* A part of what is executed, so that MFU is at most HFU: what is looked up or scaled, an
     * embedding or a norm, has parameters and no matmul. */
    roofline->useful_flop = counts->matmul_useful * chips - counts->useful_attention_flop;
    roofline->useful_attention_flop = counts->useful_attention_flop;
    roofline->executed_flop = counts->matmul_flop * chips;
    roofline->padded_flop = counts->padded_flop * chips;
    roofline->duplicated_flop = counts->matmul_copies * chips;
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
