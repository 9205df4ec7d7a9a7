#include "sim/choose/item_links.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sim/base/units.h"

struct use {
    const struct machine *machine;
    const struct plan *plan;
    const struct plan_item *item; /* Or NULL. */
    uint32_t dimension;
};

static uint32_t most_sent(const struct use *use, const struct plan_lane *lane)
{
    uint32_t most = 1;
    for (uint32_t seat = 0; seat < use->item->size; seat++)
        if (lane->send_count[seat] > most) most = lane->send_count[seat];
    return most;
}

/* Between neighbours: what those send that a link is on the way of, of what the busiest does. Only
 * to or from a root that is a matter of counting. */
static double neighbours_share(const struct use *use, const struct machine_link_override *link,
                               bool back)
{
    const struct plan_item *item = use->item;
    const struct group_dimension *at = &use->plan->group.dimension[use->dimension];
    uint32_t const length = use->machine->shape[at->axis];
    uint32_t from[MACHINE_AXES_MAX], sent = 0;
    if (back && item->primitive->lane_count < 2) return 0;
    const struct plan_lane *lane = &use->plan->lane[item->lane_first + back];
    memcpy(from, link->from, sizeof from);
    for (uint32_t before = 0; before < at->stride; before++) {
        uint32_t const seat = plan_item_seat(use->plan, item, from);
        if (seat < item->size && lane->send_count[seat] > sent) sent = lane->send_count[seat];
        from[at->axis] = (from[at->axis] + (back ? 1 : length - 1)) % length;
    }
    if (!collective_is_rooted(item->primitive->kind)) return sent > 0 ? 1 : 0;
    return (double)sent / most_sent(use, lane);
}

/* Of what the busiest link of an item carries; 0: nothing. Of what is routed, a line leaves the
 * link around the axis alone, and what only the root's neighbours take part in, all other lines. */
static double share_of(const struct use *use, const struct machine_link_override *link)
{
    const struct machine *machine = use->machine;
    const struct group_dimension *at = &use->plan->group.dimension[use->dimension];
    if (link->from[at->axis] == link->to[at->axis]) return 0;
    if (use->item == NULL) return 1;
    uint32_t const port = machine_port_between(machine, link->from, link->to);
    bool const back = port == machine_port(at->axis, true);
    if (!use->item->primitive->routed) return neighbours_share(use, link, back);
    uint32_t const lower = back ? link->to[at->axis] : link->from[at->axis];
    if (plan_item_seat(use->plan, use->item, link->from) == use->item->size) return 0;
    return at->ring || lower + 1 < machine->shape[at->axis] ? 1 : 0;
}

double item_links_rate(const struct machine *machine, const struct plan *plan,
                       const struct plan_item *item, uint32_t dimension)
{
    struct use const use = {machine, plan, item, dimension};
    double slowest = (double)machine->chip.ici_bytes_per_s;
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        double const share = link->bytes_per_s == 0 ? 0 : share_of(&use, link);
        if (share > 0) slowest = fmin(slowest, (double)link->bytes_per_s / share);
    }
    return slowest;
}

double item_links_hop_s(const struct machine *machine, const struct plan *plan,
                        const struct plan_item *item, uint32_t dimension)
{
    struct use const use = {machine, plan, item, dimension};
    int64_t longest_ps = machine->chip.hop_latency_ps;
    if (plan->group.dimension[dimension].switched) return 0;
    for (uint32_t i = 0; i < machine->link_override_count; i++) {
        const struct machine_link_override *link = &machine->links[i];
        if (link->latency_ps > longest_ps && share_of(&use, link) > 0)
            longest_ps = link->latency_ps;
    }
    return units_seconds(longest_ps - machine->chip.hop_latency_ps);
}
