/* Evaluators of what the catalogue says of chips, and of the slices that are built of them. */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"
#include "sim/machine/shape.h"
#include "sim/resource/compute.h"
#include "tests/validation/case_parts.h"

struct chip row_chip(const struct case_row *row)
{
    struct chip chip;
    struct error error = {0};
    row_check(row,
              chip_find(row->arena, row_text(row, "chip"), row_text_or(row, "profile", "ideal"),
                        "/chip", "/profile", &chip, &error),
              &error);
    return chip;
}

enum format row_format(const struct case_row *row, const char *key, enum format otherwise)
{
    enum format const format = format_find(row_text_or(row, key, format_name(otherwise)));
    if (format == FORMAT_COUNT) row_fail(row, "no format %s", row_text(row, key));
    return format;
}

static uint32_t small_count(const struct case_row *row, const char *key)
{
    return (uint32_t)row_count_or(row, key, 0);
}

/* "wrap": "x z" closes these axes and no others. */
static void read_wrap(const struct case_row *row, struct machine_plan *plan)
{
    struct shape shape;
    struct error error = {0};
    const char *wrapped = row_text(row, "wrap");
    row_check(row, shape_parse(plan->shape, "/shape", &shape, &error), &error);
    for (uint32_t axis = 0; axis < shape.axis_count; axis++)
        plan->wrap[axis] = strchr(wrapped, *shape_axis_name(axis)) != NULL;
    plan->unrealisable = true;
}

struct machine row_machine(const struct case_row *row)
{
    struct machine_plan plan = {.chip = row_text(row, "chip"),
                                .shape = row_text_or(row, "shape", NULL),
                                .profile = row_text_or(row, "profile", "ideal"),
                                .nodes = small_count(row, "nodes"),
                                .gpus = small_count(row, "gpus"),
                                .slices = small_count(row, "slices"),
                                .unrealisable = row_flag_or(row, "unrealisable", false),
                                .wrap = {-1, -1, -1}};
    struct machine machine;
    struct error error = {0};
    if (row_has(row, "sharp"))
        plan.network.sharp =
            row_flag_or(row, "sharp", false) ? MACHINE_SHARP_ON : MACHINE_SHARP_OFF;
    if (row_has(row, "wrap")) read_wrap(row, &plan);
    row_check(row, machine_build(row->arena, &plan, &machine, &error), &error);
    return machine;
}

struct mesh row_mesh(const struct case_row *row, const struct machine *machine)
{
    struct mesh_plan plan = {0};
    struct mesh mesh;
    struct error error = {0};
    char *rest = NULL;
    char *text = arena_text(row->arena, row_text(row, "mesh"));
    for (char *axis = strtok_r(text, " ", &rest); axis != NULL; axis = strtok_r(NULL, " ", &rest)) {
        char *parts = strchr(axis, '='), *others = NULL;
        if (parts == NULL || plan.axis_count == MESH_ROLE_COUNT) row_fail(row, "bad mesh %s", axis);
        *parts++ = '\0';
        struct mesh_axis_plan *made = &plan.axis[plan.axis_count++];
        made->role = (enum mesh_role)name_find(axis, mesh_role_names);
        if (made->role == MESH_ROLE_COUNT) row_fail(row, "%s is no axis of a mesh", axis);
        for (char *part = strtok_r(parts, ",", &others); part != NULL;
             part = strtok_r(NULL, ",", &others))
            made->part[made->part_count++] = part;
    }
    row_check(row, mesh_build(&plan, machine, &mesh, &error), &error);
    return mesh;
}

const struct mesh_axis *row_role(const struct case_row *row, const struct mesh *mesh)
{
    uint32_t const role = name_find(row_text(row, "role"), mesh_role_names);
    if (role == MESH_ROLE_COUNT) row_fail(row, "%s is no axis of a mesh", row_text(row, "role"));
    return &mesh->axis[role];
}

static uint32_t volume(const uint32_t *shape, uint32_t axis_count)
{
    uint32_t cells = 1;
    for (uint32_t axis = 0; axis < axis_count; axis++) cells *= shape[axis];
    return cells;
}

enum { SECONDS_PER_HOUR = 3600 };

static double per_chip(const struct case_row *row, const struct chip *chip, const char *what)
{
    enum format const format = row_format(row, "format", FORMAT_BF16);
    const struct chip_network *network = &chip->network;
    uint32_t const host_chips = volume(chip->pod.host_shape, chip->pod.axis_count);
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"hbm_capacity", (double)chip->hbm_capacity_bytes},
        {"hbm", (double)chip->hbm_bytes_per_s},
        {"vmem_capacity", (double)chip->vmem_capacity_bytes},
        {"vmem", (double)chip->vmem_bytes_per_s},
        {"math", (double)chip->math_flop_per_s[format]},
        {"math_peak", (double)chip->math_peak_flop_per_s[format]},
        {"vector", (double)chip->vector_flop_per_s},
        {"price", (double)chip->price.usd_per_h_ppm / PPM_ONE},
        {"flop_per_usd", (double)chip->math_flop_per_s[format] * SECONDS_PER_HOUR /
                             ((double)chip->price.usd_per_h_ppm / PPM_ONE)},
        {"mxu_count", chip->mxu.count},
        {"mxu_columns", chip->mxu.columns},
        {"mxu_cells", (double)chip->mxu.rows * chip->mxu.columns},
        {"cores", chip->core.count},
        {"ici", (double)chip->ici_bytes_per_s},
        {"hop", units_seconds(chip->hop_latency_ps)},
        {"message_overhead", units_seconds(chip->launch.message_ps)},
        {"pcie", (double)chip->pcie_bytes_per_s},
        {"dcn", (double)chip->dcn_bytes_per_s},
        {"dcn_host", (double)chip->dcn_bytes_per_s * host_chips},
        {"host_chips", host_chips},
        {"host_memory", (double)network->host_bytes},
        {"host_cores", (double)host_chips * chip->core.count},
        {"smem", (double)chip->core.smem_bytes},
        {"tmem", (double)chip->core.tmem_bytes},
        {"registers", (double)chip->core.register_bytes},
        {"nvlink_count", network->nvlink_count},
        {"nvlink", (double)network->nvlink_bytes_per_s},
        {"node_chips", network->node_chips},
        {"nvswitch_ports", network->nvswitch_ports},
        {"nvswitch_reduce", (double)network->nvswitch_flop_per_s},
        {"cpu_chips", network->host_chips},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, what) == 0) return numbers[i].value;
    row_fail(row, "a chip has no %s", what);
}

static struct case_value chip_number(const struct case_row *row)
{
    struct chip const chip = row_chip(row);
    return value_number(per_chip(row, &chip, row_text(row, "what")));
}

/* Extremes of the catalogue's TPUs, for the book's "between ... and ..."; the book ends before
 * TPU7x. */
static struct case_value chips(const struct case_row *row)
{
    const char *extreme = row_text(row, "extreme");
    double best = 0;
    bool first = true;
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        struct chip chip;
        struct error error = {0};
        row_check(
            row,
            chip_find(row->arena, chip_name_at(i), "ideal", "/chip", "/profile", &chip, &error),
            &error);
        if (chip.kind != CHIP_TPU || strcmp(chip.name, "tpu-7x") == 0) continue;
        double const number = per_chip(row, &chip, row_text(row, "what"));
        bool const lower = strcmp(extreme, "least") == 0;
        if (first || (lower ? number < best : number > best)) best = number;
        first = false;
    }
    return value_number(best);
}

static uint32_t links_of(const struct machine *machine, uint32_t chip)
{
    uint32_t count = 0;
    for (uint32_t port = 0; port < 2 * machine->axis_count; port++)
        count += machine_has_link(machine, chip, port);
    return count;
}

static struct case_value wraps_of(const struct machine *machine)
{
    struct case_value text = value_text("%s", machine->wrap[0] ? "true" : "false");
    for (uint32_t axis = 1; axis < machine->axis_count; axis++)
        text = value_text("%s %s", text.text, machine->wrap[axis] ? "true" : "false");
    return text;
}

/* A slice; without a shape the whole pod. */
static struct case_value slice(const struct case_row *row)
{
    struct chip const chip = row_chip(row);
    struct shape pod = {.axis_count = chip.pod.axis_count};
    char buffer[SHAPE_TEXT_BYTES];
    struct machine machine;
    memcpy(pod.length, chip.pod.shape, sizeof pod.length);
    if (row_has(row, "shape")) {
        machine = row_machine(row);
    } else {
        struct machine_plan const plan = {.chip = chip.name,
                                          .shape = shape_text(buffer, &pod),
                                          .profile = "ideal",
                                          .wrap = {-1, -1, -1}};
        struct error error = {0};
        row_check(row, machine_build(row->arena, &plan, &machine, &error), &error);
    }
    const char *what = row_text(row, "what");
    double const count = machine.chip_count;
    uint32_t const middle = machine.chip_count / 2;
    if (strcmp(what, "wrap") == 0) return wraps_of(&machine);
    if (strcmp(what, "chips") == 0) return value_number(count);
    if (strcmp(what, "hosts") == 0)
        return value_number(count / volume(chip.pod.host_shape, chip.pod.axis_count));
    if (strcmp(what, "links") == 0) return value_number(links_of(&machine, middle));
    if (strcmp(what, "egress") == 0)
        return value_number((double)links_of(&machine, middle) * (double)chip.ici_bytes_per_s);
    if (strcmp(what, "axis_both_ways") == 0) { /* What a chip sends over an axis at once. */
        uint64_t rate[2];
        int64_t latency_ps = 0;
        for (uint32_t port = 0; port < 2; port++)
            machine_link(&machine, middle, port, &rate[port], &latency_ps);
        return value_number((double)rate[0] + (double)rate[1]);
    }
    return value_number(count * per_chip(row, &chip, what));
}

/* Useful over executed FLOP of a weight of so many columns, all else filling the MXU. */
static struct case_value padding(const struct case_row *row)
{
    struct chip const chip = row_chip(row);
    struct work const work = {.matmul = {{.rows = 1024,
                                          .inner = row_count_or(row, "inner", chip.mxu.rows),
                                          .columns = row_count(row, "columns"),
                                          .count = 1}},
                              .matmul_count = 1,
                              .math_format = FORMAT_BF16};
    struct compute_time const time = compute_time(&chip, &work, PPM_ONE, PPM_ONE);
    return value_number((double)work_matmul_flop(&work) / (double)time.padded_flop);
}

const struct case_evaluator case_chip[] = {
    {"chip", chip_number}, {"chips", chips}, {"slice", slice}, {"padding", padding}, {NULL, NULL},
};
