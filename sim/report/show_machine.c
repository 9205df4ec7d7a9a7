#include "sim/report/show_machine.h"

#include <stdbool.h>

#include "sim/base/counted.h"
#include "sim/base/strbuf.h"
#include "sim/machine/chip.h"
#include "sim/machine/machine.h"
#include "sim/machine/network.h"
#include "sim/machine/shape.h"

enum { COLUMN_NODES = 22, COLUMN_CHIPS = 14, COLUMN_SHAPE = 28, COLUMN_RINGS = 40 };

static void add_rings(const struct chip *chip, const struct shape *shape, struct strbuf *text)
{
    bool any = false;
    for (uint32_t axis = 0; axis < shape->axis_count; axis++) {
        if (!shape_wraps(chip, shape, axis)) continue;
        strbuf_add(text, "%s%s", any ? ", " : "rings on ", shape_axis_name(axis));
        any = true;
    }
    if (!any) strbuf_add(text, "no rings");
}

/* What a machine of GPUs can be asked for as. */
static void show_nodes(const struct chip *chip, struct strbuf *text)
{
    const struct chip_network *network = &chip->network;
    strbuf_add(text, "%s", chip->name);
    strbuf_pad(text, COLUMN_NODES);
    strbuf_add(text, "%s, %s each, ", counted(network->node_chips, "GPU").text,
               counted(network->nvlink_count, "link").text);
    if (network->nvswitch_count == 0)
        strbuf_add(text, "each to each\n");
    else
        strbuf_add(text, "on %s of %u ports\n",
                   counted(network->nvswitch_count, network_switch_name(network)).text,
                   network->nvswitch_ports);
    if (network->nic_count == 0) return;
    strbuf_add(text, "%s:nodes=N", chip->name);
    strbuf_pad(text, COLUMN_NODES);
    strbuf_add(text, "N of them, by %s a GPU and InfiniBand switches of %u ports\n",
               counted(network->nic_count, "NIC").text, network->switch_ports);
    strbuf_add(text, "%s:gpus=N", chip->name);
    strbuf_pad(text, COLUMN_NODES);
    if (network->nvswitch_count == 0)
        strbuf_add(text, "N GPUs of a node, up to %u\n", network->node_chips);
    else
        strbuf_add(text,
                   "N GPUs in one node, up to %u; more than a switch has ports take two tiers\n",
                   machine_gpus_max);
}

void show_machine_products(const struct chip *chip, struct strbuf *text)
{
    if (chip->kind == CHIP_GPU) {
        show_nodes(chip, text);
        return;
    }
    uint64_t pod_chips = 1;
    for (uint32_t axis = 0; axis < chip->pod.axis_count; axis++) pod_chips *= chip->pod.shape[axis];
    for (uint64_t count = 1; count <= pod_chips; count++) {
        struct shape shape;
        char buffer[SHAPE_TEXT_BYTES];
        if (!shape_standard(chip, count, &shape)) continue;
        strbuf_add(text, "%s-%llu", chip->short_name,
                   (unsigned long long)(count * chip->pod.name_units));
        strbuf_pad(text, COLUMN_CHIPS);
        strbuf_add(text, "%s", counted(count, "chip").text);
        strbuf_pad(text, COLUMN_SHAPE);
        strbuf_add(text, "%s", shape_text(buffer, &shape));
        strbuf_pad(text, COLUMN_RINGS);
        add_rings(chip, &shape, text);
        strbuf_add(text, "\n");
    }
}
