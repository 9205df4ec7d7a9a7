/* Evaluators of expert parallelism: what tokens cross between nodes beside what experts compute,
 * and which ranks a mesh with ep makes of a machine. */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/resource/compute.h"
#include "sim/roofline/collective_bound.h"
#include "sim/step/routing.h"
#include "tests/validation/case_parts.h"

/* Dispatch and combine between nodes, on a GPU's rail: each token once to each node that has an
 * expert for it, by the bound of the cables. */
static double all_to_all_s(const struct case_row *row, const struct machine *machine)
{
    uint32_t const axis = machine->axis_count - 1;
    uint64_t const nodes = machine->shape[axis];
    struct model_experts const experts = {.count = row_count(row, "experts"),
                                          .top_k = row_count(row, "top_k")};
    uint64_t const copies = routing_hits(&experts, experts.count / nodes, row_count(row, "tokens"));
    struct group const group = {
        .dimension = {{axis, (uint32_t)nodes, 1, false, true, machine_axis_name(machine, axis)}},
        .dimension_count = 1};
    struct collective_query const query = {
        .kind = COLLECTIVE_ALL_TO_ALL,
        .array_bytes = nodes * nodes * copies * format_bytes(FORMAT_BF16, row_count(row, "D")),
    };
    struct collective_bound bound;
    collective_bound(machine, &group, &query, &bound);
    return 2 * bound.bytes_s;
}

/* How much longer the exchange takes than the two matmuls of a token's experts. */
static struct case_value experts_ratio(const struct case_row *row)
{
    struct machine const machine = row_machine(row);
    uint64_t const rows = row_count(row, "tokens") * row_count(row, "top_k");
    struct work const work = {
        .math_format = FORMAT_BF16,
        .matmul = {{rows, row_count(row, "D"), row_count(row, "F"), 2}},
        .matmul_count = 1,
    };
    struct compute_time const time = compute_time(&machine.chip, &work, PPM_ONE, PPM_ONE);
    return value_number(all_to_all_s(row, &machine) * (double)TIME_PS_PER_S / (double)time.mxu_ps);
}

/* Ranks of a role, and of those the units of the outermost axis that they are in. */
static struct case_value layout(const struct case_row *row)
{
    struct machine const machine = row_machine(row);
    struct mesh const mesh = row_mesh(row, &machine);
    const char *what = row_text(row, "what");
    if (strcmp(what, "gpus") == 0) return value_number(mesh.rank_count);
    if (strcmp(what, "ranks") == 0) return value_number(row_role(row, &mesh)->size);
    if (strcmp(what, "nodes") == 0) {
        const struct group *group = &row_role(row, &mesh)->group;
        for (uint32_t d = 0; d < group->dimension_count; d++)
            if (group->dimension[d].axis == machine.axis_count - 1)
                return value_number(group->dimension[d].size);
        return value_number(1);
    }
    row_fail(row, "a mesh has no %s", what);
}

const struct case_evaluator case_experts[] = {
    {"experts_ratio", experts_ratio}, {"layout", layout}, {NULL, NULL}};
