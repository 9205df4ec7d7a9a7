#include "tools/podsim/show/show_text.h"

#include <stdarg.h>
#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/kernels/kernels.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/report/show_levels.h"
#include "sim/report/table.h"
#include "sim/report/words.h"

enum { OVERRIDES_SHOWN_MAX = 16, NAME_BYTES = 32, LINK_BYTES = 64 };

static void row(struct strbuf *text, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void row(struct strbuf *text, const char *name, const char *format, ...)
{
    va_list arguments;
    table_label(text, name);
    va_start(arguments, format);
    strbuf_add_list(text, format, arguments);
    va_end(arguments);
    strbuf_add(text, "\n");
}

static void row_rate(struct strbuf *text, const char *name, uint64_t bytes_per_s)
{
    row(text, name, "%s", table_rate((double)bytes_per_s).text);
}

static void add_lengths(struct strbuf *text, const uint32_t *length, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) strbuf_add(text, "%s%u", i == 0 ? "" : "x", length[i]);
}

static void add_compute(struct strbuf *text, const struct chip *chip)
{
    for (uint32_t format = 0; format < FORMAT_COUNT; format++) {
        char name[NAME_BYTES];
        if (chip->math_flop_per_s[format] == 0 || format_math((enum format)format) != format)
            continue;
        (void)snprintf(name, sizeof name, "%s %s", words_of_chip(chip, WORDS_MATH),
                       format_name((enum format)format));
        row(text, name, "%s", table_flop_rate((double)chip->math_flop_per_s[format]).text);
    }
    row(text, words_of_chip(chip, WORDS_MXUS), "%u of %ux%u", chip->mxu.count, chip->mxu.rows,
        chip->mxu.columns);
    row(text, words_of_chip(chip, WORDS_VPU), "%s",
        table_flop_rate((double)chip->vector_flop_per_s).text);
    row(text, "HBM", "%s", table_bytes((double)chip->hbm_capacity_bytes).text);
    row_rate(text, "HBM bandwidth", chip->hbm_bytes_per_s);
    row(text, words_of_chip(chip, WORDS_VMEM), "%s",
        table_bytes((double)chip->vmem_capacity_bytes).text);
    row_rate(text, words_of_chip(chip, WORDS_VMEM_BANDWIDTH), chip->vmem_bytes_per_s);
}

static void add_gpu(struct strbuf *text, const struct chip *chip)
{
    const struct chip_network *network = &chip->network;
    const struct chip_core *core = &chip->core;
    char link[LINK_BYTES];
    row(text, words_of_chip(chip, WORDS_CORES), "%u, each with %s of %s, %s of registers%s%s%s",
        core->count, table_bytes((double)core->smem_bytes).text, words_of_chip(chip, WORDS_SMEM),
        table_bytes((double)core->register_bytes).text, core->tmem_bytes == 0 ? "" : ", ",
        core->tmem_bytes == 0 ? "" : table_bytes((double)core->tmem_bytes).text,
        core->tmem_bytes == 0 ? "" : " of TMEM");
    (void)snprintf(link, sizeof link, "%s %u", network->link_name, network->nvlink_generation);
    row(text, network->nvswitch_count == 0 ? network->link_name : link, "%s of %s one way",
        counted(network->nvlink_count, "link").text,
        table_rate((double)network->nvlink_bytes_per_s).text);
    row_rate(text, "PCIe, one way", chip->pcie_bytes_per_s);
    if (network->c2c_bytes_per_s != 0)
        row(text, "C2C, one way", "%s to a CPU of %s",
            table_rate((double)network->c2c_bytes_per_s).text,
            counted(network->host_chips, "GPU").text);
    row_rate(text, "NIC, one way", chip->dcn_bytes_per_s);
}

static void add_tpu(struct strbuf *text, const struct chip *chip)
{
    row_rate(text, "ICI link, one way", chip->ici_bytes_per_s);
    row(text, "ICI hop", "%s", table_duration(chip->hop_latency_ps).text);
    row_rate(text, "PCIe, one way", chip->pcie_bytes_per_s);
    row_rate(text, "DCN, one way", chip->dcn_bytes_per_s);
}

static void add_chip(struct strbuf *text, const struct chip *chip)
{
    strbuf_add(text, "\nchip %s, profile %s\n", chip->name, chip->profile);
    if (chip->kernels.stack != NULL)
        row(text, "measured kernels", "%s", chip->kernels.stack->title);
    add_compute(text, chip);
    if (chip->kind == CHIP_GPU)
        add_gpu(text, chip);
    else
        add_tpu(text, chip);
    row(text, "overhead of an op", "%s", table_duration(chip->launch.op_ps).text);
    row(text, "of a message", "%s", table_duration(chip->launch.message_ps).text);
}

static void add_coordinates(struct strbuf *text, const struct machine *machine, const uint32_t *at)
{
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        strbuf_add(text, axis == 0 ? "[" : ", ");
        if (at[axis] == machine_any)
            strbuf_add(text, "*");
        else
            strbuf_add(text, "%u", at[axis]);
    }
    strbuf_add(text, "]");
}

static void add_overrides(struct strbuf *text, const struct machine *machine)
{
    if (machine->link_override_count != 0)
        strbuf_add(text, "\n%u overridden link%s\n", machine->link_override_count,
                   machine->link_override_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < machine->link_override_count && i < OVERRIDES_SHOWN_MAX; i++) {
        const struct machine_link_override *link = &machine->links[i];
        uint32_t const port = machine_port_between(machine, link->from, link->to);
        uint64_t bytes_per_s = 0;
        int64_t latency_ps = 0;
        machine_link(machine, machine_chip_at(machine, link->from), port, &bytes_per_s,
                     &latency_ps);
        strbuf_add(text, "  ");
        add_coordinates(text, machine, link->from);
        strbuf_add(text, " to ");
        add_coordinates(text, machine, link->to);
        strbuf_pad(text, TABLE_LABEL_COLUMNS);
        strbuf_add(text, "%s, %s\n", table_rate((double)bytes_per_s).text,
                   table_duration(latency_ps).text);
    }
    if (machine->chip_override_count != 0) strbuf_add(text, "\noverridden chips\n");
    for (uint32_t i = 0; i < machine->chip_override_count && i < OVERRIDES_SHOWN_MAX; i++) {
        const struct machine_chip_override *chip = &machine->chips[i];
        strbuf_add(text, "  ");
        add_coordinates(text, machine, chip->at);
        strbuf_pad(text, TABLE_LABEL_COLUMNS);
        strbuf_add(text, "math %.4f, HBM %.4f of the rates above\n",
                   (double)chip->math_ppm / PPM_ONE, (double)chip->hbm_ppm / PPM_ONE);
    }
}

void show_machine(const struct machine *machine, struct strbuf *text)
{
    strbuf_add(text, "%s %s as ", counted(machine->chip_count, "chip").text, machine->chip.title);
    add_lengths(text, machine->shape, machine->axis_count);
    for (uint32_t axis = 0; axis < machine->grid_axis_count; axis++)
        if (machine_twists(machine, axis)) {
            strbuf_add(text, ", twisted");
            break;
        }
    if (machine->product != NULL) strbuf_add(text, " (%s)", machine->product);
    if (machine->grid_axis_count != 0)
        strbuf_add(text, ", %s", counted(machine_link_count(machine), "directed link").text);
    strbuf_add(text, "\n\n");
    for (uint32_t axis = 0; axis < machine->axis_count; axis++) {
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof name, "%s of %u", machine_axis_name(machine, axis),
                       machine->shape[axis]);
        row(text, name, "%s", machine->wrap_reason[axis]);
    }
    show_levels(machine, text);
    show_totals(machine, text);
    show_published(machine, text);
    add_chip(text, &machine->chip);
    add_overrides(text, machine);
}

static void add_dimension(struct strbuf *text, const struct machine *machine,
                          const struct group_dimension *dimension)
{
    bool const linked = !dimension->switched;
    if (linked)
        strbuf_add(text, "%s of %u on %s", dimension->ring ? "ring" : "line", dimension->size,
                   dimension->name);
    else if (machine_is_meshed(machine, dimension->axis))
        strbuf_add(text, "%u on %s, each linked to each", dimension->size, dimension->name);
    else
        strbuf_add(text, "%u on %s behind switches", dimension->size, dimension->name);
    if (dimension->stride != 1)
        strbuf_add(text, ", %u%s apart", dimension->stride, linked ? " links" : "");
}

static void add_group(struct strbuf *text, const struct machine *machine, const struct group *group)
{
    if (group->dimension_count == 0) strbuf_add(text, "one rank, nothing to send");
    for (uint32_t i = 0; i < group->dimension_count; i++) {
        strbuf_add(text, "%s", i == 0 ? "" : ", ");
        add_dimension(text, machine, &group->dimension[i]);
    }
    strbuf_add(text, "\n");
}

/* "  the 8 ranks of ep are 2 of tp x 4 of its own" */
static void add_ep_over(struct strbuf *text, const struct mesh *mesh)
{
    const char *between = "";
    strbuf_add(text, "\n  the %u ranks of ep are ", mesh->axis[MESH_EP].size);
    for (uint32_t role = 0; role < MESH_ROLE_COUNT; role++) {
        if (!mesh_ep_over(mesh, (enum mesh_role)role)) continue;
        strbuf_add(text, "%s%u of %s", between, mesh->axis[role].size,
                   mesh_role_name((enum mesh_role)role));
        between = " x ";
    }
    if (mesh->own_ep.size > 1) strbuf_add(text, " x %u of its own", mesh->own_ep.size);
    strbuf_add(text, "\n");
}

void show_mesh(const struct machine *machine, const struct mesh *mesh, struct strbuf *text)
{
    strbuf_add(text, "%s on ", counted(mesh->rank_count, "rank").text);
    add_lengths(text, machine->shape, machine->axis_count);
    strbuf_add(text, ", one a chip\n\n");
    for (uint32_t i = 0; i < mesh->order_count; i++) {
        const struct mesh_axis *axis = &mesh->axis[mesh->named[i]];
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof name, "%s of %u", mesh_role_name(axis->role), axis->size);
        table_label(text, name);
        add_group(text, machine, &axis->group);
    }
    if (mesh->ep_over != 0) add_ep_over(text, mesh);
}
