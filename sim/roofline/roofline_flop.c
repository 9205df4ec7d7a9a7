#include "sim/roofline/roofline_flop.h"

void roofline_flop(const struct workload_plan *plan, const struct machine *machine,
                   const struct workload_counts *counts, struct roofline *roofline)
{
    double const chips = machine->chip_count;
    /* A part of what is executed, so that MFU is at most HFU: what is looked up or scaled, an
     * embedding or a norm, has parameters and no matmul. */
    roofline->flop.useful = counts->matmul_useful * chips - counts->useful_attention_flop;
    roofline->flop.useful_attention = counts->useful_attention_flop;
    /* All ranks wait for the one that attends longest, but compute their own scores. */
    double const attended = counts->spare.attended * chips;
    roofline->flop.executed = counts->matmul_flop * chips - attended;
    roofline->flop.padded = counts->padded_flop * chips - attended;
    roofline->flop.duplicated = counts->spare.duplicated * chips;
    roofline->flop.flash = counts->spare.flash * chips;
    double const again = (counts->matmul_flop - counts->matmul_useful) * chips;
    roofline->flop.recomputed =
        workload_keeps_all(plan)
            ? 0
            : again - roofline->flop.duplicated - roofline->flop.flash -
                  (counts->spare.waiting + counts->spare.uneven + counts->spare.padding) * chips;
    if (roofline->flop.recomputed < roofline->flop.executed * 1e-9) roofline->flop.recomputed = 0;
    roofline->ideal_s = roofline->flop.useful / (chips * roofline->rates.peak_flop_per_s);
}
