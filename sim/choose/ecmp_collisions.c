#include "sim/choose/ecmp_collisions.h"

#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/choose/ways.h"
#include "sim/roofline/level_rate.h"

enum { CHIPS_MAX = 1 << 16, MESSAGES_MAX = 1 << 20 };

/* A message of a step: where it goes, and by which links. */
struct crowd_message {
    uint32_t receiver;
    uint32_t hops;
    double units;
};

struct crowd {
    const struct plan *plan;
    const struct plan_item *item;
    const struct ways *ways;
    struct crowd_message *message; /* [chip], of one step; */
    struct way_link *hop;          /* [chip · longest] */
    double *load;                  /* [link]: bytes of the step; */
    double *busy_s;                /* of all steps. */
    double *at_s;                  /* [chip]: when it has sent and got what is so far. */
    double *next_s;
};

static bool is_hashed(const struct machine *machine)
{
    for (uint32_t index = 0; index < machine->level_count; index++)
        for (uint32_t t = 0; t < machine->level[index].tier_count; t++) {
            const struct level_tier *tier = &machine->level[index].tier[t];
            if (tier->policy == LEVEL_HASH && tier->cable_count > 1) return true;
        }
    return false;
}

/* Every rank sends as often: step after step, all at once. */
static bool is_in_step(const struct plan *plan, const struct plan_item *item)
{
    if (collective_is_rooted(item->primitive->kind) || (item->at_root | item->off_root) != 0)
        return false;
    for (uint32_t l = 0; l < item->primitive->lane_count; l++) {
        const uint32_t *sends = plan->lane[item->lane_first + l].send_count;
        for (uint32_t at = 1; at < item->size; at++)
            if (sends[at] != sends[0]) return false;
    }
    return true;
}

static bool crowd_build(struct arena *arena, struct crowd *crowd)
{
    uint32_t const chips = crowd->ways->chip_count, links = crowd->ways->link_count;
    crowd->message = arena_take(arena, chips, sizeof *crowd->message);
    crowd->hop = arena_take(arena, (uint64_t)chips * crowd->ways->longest, sizeof *crowd->hop);
    crowd->load = arena_take(arena, links, sizeof *crowd->load);
    crowd->busy_s = arena_take(arena, links, sizeof *crowd->busy_s);
    crowd->at_s = arena_take(arena, chips, sizeof *crowd->at_s);
    crowd->next_s = arena_take(arena, chips, sizeof *crowd->next_s);
    return crowd->message != NULL && crowd->hop != NULL && crowd->load != NULL &&
           crowd->busy_s != NULL && crowd->at_s != NULL && crowd->next_s != NULL;
}

/* All messages of a step; each takes as long as the fullest link of its way does for all on it. */
static void step_count(struct crowd *crowd, uint32_t lane, uint32_t number)
{
    const struct ways *ways = crowd->ways;
    uint32_t const longest = ways->longest;
    for (uint32_t link = 0; link < ways->link_count; link++) crowd->load[link] = 0;
    for (uint32_t chip = 0; chip < ways->chip_count; chip++) {
        const uint32_t *at = ways->at[chip].axis;
        uint32_t const position = plan_item_position(crowd->plan, crowd->item, at);
        struct primitive_step const step =
            plan_step(crowd->plan, crowd->item, lane, position, number);
        uint32_t to[MACHINE_AXES_MAX];
        plan_item_peer(crowd->plan, crowd->item, at, step.peer, to);
        struct way_link *hop = &crowd->hop[(size_t)chip * longest];
        crowd->message[chip] =
            (struct crowd_message){ways_chip(ways, to), ways_find(ways, chip, to, hop), step.units};
        for (uint32_t h = 0; h < crowd->message[chip].hops; h++)
            crowd->load[hop[h].link] += step.units;
    }
    memcpy(crowd->next_s, crowd->at_s, ways->chip_count * sizeof *crowd->at_s);
    for (uint32_t chip = 0; chip < ways->chip_count; chip++) {
        const struct way_link *hop = &crowd->hop[(size_t)chip * longest];
        double *receiver_s = &crowd->next_s[crowd->message[chip].receiver], way_s = 0;
        for (uint32_t h = 0; h < crowd->message[chip].hops; h++) {
            way_s = fmax(way_s, crowd->load[hop[h].link] / hop[h].bytes_per_s);
            crowd->busy_s[hop[h].link] += crowd->message[chip].units / hop[h].bytes_per_s;
        }
        *receiver_s = fmax(*receiver_s, crowd->at_s[chip] + way_s);
    }
    memcpy(crowd->at_s, crowd->next_s, ways->chip_count * sizeof *crowd->at_s);
}

static void steps_count(struct crowd *crowd, struct rehearsal_times *ret)
{
    const struct ways *ways = crowd->ways;
    for (uint32_t link = 0; link < ways->link_count; link++) crowd->busy_s[link] = 0;
    for (uint32_t chip = 0; chip < ways->chip_count; chip++) crowd->at_s[chip] = 0;
    for (uint32_t l = 0; l < crowd->item->primitive->lane_count; l++) {
        const struct plan_lane *lane = &crowd->plan->lane[crowd->item->lane_first + l];
        for (uint32_t s = 0; s < lane->send_count[0]; s++) step_count(crowd, l, s);
    }
    for (uint32_t link = 0; link < ways->link_count; link++) {
        double *wire = &ret->wire_byte_s[ways_wire(ways, link)];
        *wire = fmax(*wire, crowd->busy_s[link]);
    }
    for (uint32_t chip = 0; chip < ways->chip_count; chip++)
        ret->byte_s = fmax(ret->byte_s, crowd->at_s[chip]);
}

bool ecmp_count(const struct machine *machine, const struct plan *plan,
                const struct plan_item *item, struct rehearsal_times *ret)
{
    uint64_t sends = 0;
    *ret = (struct rehearsal_times){.latency_s = 0};
    if (!is_hashed(machine) || !is_in_step(plan, item)) return false;
    for (uint32_t l = 0; l < item->primitive->lane_count; l++)
        sends += plan->lane[item->lane_first + l].send_count[0];
    struct arena *arena = arena_create(0);
    if (arena == NULL) return false;
    struct ways ways;
    struct crowd crowd = {.plan = plan, .item = item, .ways = &ways};
    bool const done = ways_build(arena, machine, plan, item, CHIPS_MAX, &ways) &&
                      ways.chip_count * sends <= MESSAGES_MAX && crowd_build(arena, &crowd);
    if (done) steps_count(&crowd, ret);
    arena_destroy(arena);
    return done;
}

double ecmp_network_rate(const struct machine *machine, uint32_t axis)
{
    const struct level *level = &machine->level[machine->axis_level[axis]];
    double least = level_rate(machine, axis);
    for (uint32_t tier = 0; tier < level->tier_count; tier++) {
        const struct level_tier *at = &level->tier[tier];
        struct level_share const share = level_tier_share(machine, level, tier);
        if (at->policy == LEVEL_HASH && at->multicasts)
            least = fmin(least, (double)at->cable_bytes_per_s / share.chips);
    }
    return least;
}
