#include "sim/report/smallest_slice.h"

#include <math.h>
#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/graph/parameters.h"
#include "sim/report/table.h"

static void gpus_find(const struct chip *chip, uint64_t least, struct smallest_slice *found)
{
    uint32_t const node = chip->network.node_chips;
    uint64_t const nodes = units_ceil_divide(least, node);
    bool const is_network = chip->network.nic_count > 0;
    if (least > MACHINE_CHIPS_MAX - node || (nodes > 1 && !is_network)) return;
    found->chip_count = nodes > 1 ? nodes * node : least;
    if (nodes > 1)
        (void)snprintf(found->slice, sizeof found->slice, "%ux%llu", node,
                       (unsigned long long)nodes);
    else
        (void)snprintf(found->slice, sizeof found->slice, "%llu", (unsigned long long)least);
}

struct smallest_slice smallest_slice_of(const struct chip *chip, uint64_t least)
{
    struct smallest_slice found = {.chip_count = 0};
    struct shape shape;
    if (chip->kind == CHIP_GPU) {
        gpus_find(chip, least, &found);
    } else if (shape_smallest(chip, least, &shape)) {
        found.chip_count = shape_chip_count(&shape);
        (void)shape_text(found.slice, &shape);
    }
    return found;
}

static bool keeps_moments(const struct workload_plan *plan)
{
    return plan->kept.offload == WORKLOAD_OFFLOAD_NONE ||
           plan->kept.offload == WORKLOAD_OFFLOAD_ACTIVATIONS;
}

struct smallest_slice smallest_slice_of_training(const struct workload_plan *plan,
                                                 const struct chip *chip)
{
    const struct graph_formats *formats = &plan->formats;
    double const weight = format_stored_number_bytes(formats->weights);
    double const gradient = format_bits(formats->gradients) / 8.0;
    double const moments = 2 * format_bits(formats->optimizer) / 8.0;
    double const each = weight + (keeps_moments(plan) ? gradient + moments : 0);
    double const least =
        (double)model_count(&plan->model).total * each / (double)chip->hbm_capacity_bytes;
    if (least > MACHINE_CHIPS_MAX) return (struct smallest_slice){.chip_count = 0};
    return smallest_slice_of(chip, (uint64_t)ceil(fmax(least, 1)));
}

void smallest_slice_print(const struct workload_plan *plan, const struct machine *machine,
                          struct strbuf *text)
{
    struct smallest_slice const found = smallest_slice_of_training(plan, &machine->chip);
    bool const is_gpu = machine->chip.kind == CHIP_GPU;
    if (found.chip_count <= machine->chip_count) return;
    table_line(text, "slice");
    strbuf_add(text, "at least %s for %s, evenly divided\n",
               is_gpu ? counted(found.chip_count, "GPU").text : found.slice,
               keeps_moments(plan) ? "weights, gradients and moments" : "weights");
}
