#include "tools/podsim/show/show_text.h"

#include <stddef.h>

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "sim/report/show_levels.h"
#include "sim/report/words.h"

enum { VALUE_COLUMN = 24, OVERRIDES_SHOWN_MAX = 16 };

static void row(struct strbuf *text, const char *name, const char *value)
{
    strbuf_add(text, "  %s", name);
    strbuf_pad(text, VALUE_COLUMN);
    strbuf_add(text, "%s\n", value);
}

static void row_rate(struct strbuf *text, const char *name, uint64_t per_s, const char *unit)
{
    char buffer[QUANTITY_TEXT_BYTES];
    row(text, name, quantity_text_rate(buffer, (double)per_s, unit));
}

static void row_bytes(struct strbuf *text, const char *name, uint64_t bytes)
{
    char buffer[QUANTITY_TEXT_BYTES];
    row(text, name, quantity_text_bytes(buffer, (double)bytes));
}

static void row_duration(struct strbuf *text, const char *name, int64_t duration_ps)
{
    char buffer[QUANTITY_TEXT_BYTES];
    row(text, name, quantity_text_seconds(buffer, units_seconds(duration_ps)));
}

static void add_lengths(struct strbuf *text, const uint32_t *length, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) strbuf_add(text, "%s%u", i == 0 ? "" : "x", length[i]);
}

/* How chips of a kind call their parts. */

static void add_compute(struct strbuf *text, const struct chip *chip)
{
    for (uint32_t format = 0; format < FORMAT_COUNT; format++) {
        if (chip->math_flop_per_s[format] == 0) continue;
        strbuf_add(text, "  %s %s", words_of_chip(chip, "math"), format_name((enum format)format));
        strbuf_pad(text, VALUE_COLUMN);
        char buffer[QUANTITY_TEXT_BYTES];
        strbuf_add(text, "%s\n",
                   quantity_text_rate(buffer, (double)chip->math_flop_per_s[format], "FLOP/s"));
    }
    strbuf_add(text, "  %s", words_of_chip(chip, "mxus"));
    strbuf_pad(text, VALUE_COLUMN);
    strbuf_add(text, "%u of %ux%u\n", chip->mxu.count, chip->mxu.rows, chip->mxu.columns);
    row_rate(text, words_of_chip(chip, "vpu"), chip->vector_flop_per_s, "FLOP/s");
    row_bytes(text, "HBM", chip->hbm_capacity_bytes);
    row_rate(text, "HBM bandwidth", chip->hbm_bytes_per_s, "B/s");
    row_bytes(text, words_of_chip(chip, "cache"), chip->vmem_capacity_bytes);
    row_rate(text, words_of_chip(chip, "cache bandwidth"), chip->vmem_bytes_per_s, "B/s");
}

static void add_gpu(struct strbuf *text, const struct chip *chip)
{
    const struct chip_network *network = &chip->network;
    char buffer[QUANTITY_TEXT_BYTES];
    add_compute(text, chip);
    strbuf_add(text, "  %s", words_of_chip(chip, "cores"));
    strbuf_pad(text, VALUE_COLUMN);
    strbuf_add(text, "%u, each with %s of %s", chip->core.count,
               quantity_text_bytes(buffer, (double)chip->core.smem_bytes),
               words_of_chip(chip, "vmem"));
    strbuf_add(text, ", %s of registers",
               quantity_text_bytes(buffer, (double)chip->core.register_bytes));
    if (chip->core.tmem_bytes != 0)
        strbuf_add(text, ", %s of TMEM",
                   quantity_text_bytes(buffer, (double)chip->core.tmem_bytes));
    if (network->nvswitch_count == 0)
        strbuf_add(text, "\n  %s", network->link_name);
    else
        strbuf_add(text, "\n  NVLink %u", network->nvlink_generation);
    strbuf_pad(text, VALUE_COLUMN);
    strbuf_add(text, "%s of %s one way\n", counted(network->nvlink_count, "link").text,
               quantity_text_rate(buffer, (double)network->nvlink_bytes_per_s, "B/s"));
    row_rate(text, "PCIe, one way", chip->pcie_bytes_per_s, "B/s");
    if (network->c2c_bytes_per_s != 0) {
        strbuf_add(text, "  C2C, one way");
        strbuf_pad(text, VALUE_COLUMN);
        strbuf_add(text, "%s to a CPU of %s\n",
                   quantity_text_rate(buffer, (double)network->c2c_bytes_per_s, "B/s"),
                   counted(network->host_chips, "GPU").text);
    }
    row_rate(text, "NIC, one way", chip->dcn_bytes_per_s, "B/s");
}

static void add_chip(struct strbuf *text, const struct chip *chip)
{
    strbuf_add(text, "\nchip %s, profile %s\n", chip->name, chip->profile);
    if (chip->kind == CHIP_GPU) {
        add_gpu(text, chip);
    } else {
        add_compute(text, chip);
        row_rate(text, "ICI link, one way", chip->ici_bytes_per_s, "B/s");
        row_duration(text, "ICI hop", chip->hop_latency_ps);
        row_rate(text, "PCIe, one way", chip->pcie_bytes_per_s, "B/s");
        row_rate(text, "DCN, one way", chip->dcn_bytes_per_s, "B/s");
    }
    row_duration(text, "overhead of an op", chip->op_overhead_ps);
    row_duration(text, "of a message", chip->message_overhead_ps);
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
        char rate[QUANTITY_TEXT_BYTES], latency[QUANTITY_TEXT_BYTES];
        machine_link(machine, machine_chip_at(machine, link->from), port, &bytes_per_s,
                     &latency_ps);
        strbuf_add(text, "  ");
        add_coordinates(text, machine, link->from);
        strbuf_add(text, " to ");
        add_coordinates(text, machine, link->to);
        strbuf_pad(text, VALUE_COLUMN);
        strbuf_add(text, "%s, %s\n", quantity_text_rate(rate, (double)bytes_per_s, "B/s"),
                   quantity_text_seconds(latency, units_seconds(latency_ps)));
    }
    if (machine->chip_override_count != 0) strbuf_add(text, "\noverridden chips\n");
    for (uint32_t i = 0; i < machine->chip_override_count && i < OVERRIDES_SHOWN_MAX; i++) {
        const struct machine_chip_override *chip = &machine->chips[i];
        strbuf_add(text, "  ");
        add_coordinates(text, machine, chip->at);
        strbuf_pad(text, VALUE_COLUMN);
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
        strbuf_add(text, "  %s of %u", machine_axis_name(machine, axis), machine->shape[axis]);
        strbuf_pad(text, VALUE_COLUMN);
        strbuf_add(text, "%s\n", machine->wrap_reason[axis]);
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

void show_mesh(const struct machine *machine, const struct mesh *mesh, struct strbuf *text)
{
    strbuf_add(text, "%s on ", counted(mesh->rank_count, "rank").text);
    add_lengths(text, machine->shape, machine->axis_count);
    strbuf_add(text, ", one a chip\n\n");
    for (uint32_t i = 0; i < mesh->order_count; i++) {
        const struct mesh_axis *axis = &mesh->axis[mesh->named[i]];
        strbuf_add(text, "  %s of %u", mesh_role_name(axis->role), axis->size);
        strbuf_pad(text, VALUE_COLUMN);
        add_group(text, machine, &axis->group);
    }
}
