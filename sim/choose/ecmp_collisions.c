#include "sim/choose/ecmp_collisions.h"

#include <math.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/choose/item_paths.h"
#include "sim/roofline/level_rate.h"

enum { CHIPS_MAX = 1 << 16, MESSAGES_MAX = 1 << 20 };

/* A message of a step: where it goes, and by which links. */
struct hashed_message {
    uint32_t receiver;
    uint32_t hops;
    double units;
};

struct collisions {
    const struct plan *plan;
    const struct plan_item *item;
    const struct item_paths *paths;
    struct hashed_message *message; /* [chip], of one step; */
    struct item_path_link *hop;     /* [chip · longest] */
    double *load;                   /* [link]: bytes of the step; */
    double *busy_s;                 /* of all steps. */
    double *at_s;                   /* [chip]: when it has sent and got what is so far. */
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

static bool collisions_build(struct arena *arena, struct collisions *collisions)
{
    uint32_t const chips = collisions->paths->chip_count, links = collisions->paths->link_count;
    collisions->message = arena_take(arena, chips, sizeof *collisions->message);
    collisions->hop =
        arena_take(arena, (uint64_t)chips * collisions->paths->longest, sizeof *collisions->hop);
    collisions->load = arena_take(arena, links, sizeof *collisions->load);
    collisions->busy_s = arena_take(arena, links, sizeof *collisions->busy_s);
    collisions->at_s = arena_take(arena, chips, sizeof *collisions->at_s);
    collisions->next_s = arena_take(arena, chips, sizeof *collisions->next_s);
    return collisions->message != NULL && collisions->hop != NULL && collisions->load != NULL &&
           collisions->busy_s != NULL && collisions->at_s != NULL && collisions->next_s != NULL;
}

/* All messages of a step; each takes as long as the fullest link of its way does for all on it. */
static void step_count(struct collisions *collisions, uint32_t lane, uint32_t number)
{
    const struct item_paths *paths = collisions->paths;
    uint32_t const longest = paths->longest;
    for (uint32_t link = 0; link < paths->link_count; link++) collisions->load[link] = 0;
    for (uint32_t chip = 0; chip < paths->chip_count; chip++) {
        const uint32_t *at = paths->at[chip].axis;
        uint32_t const position = plan_item_position(collisions->plan, collisions->item, at);
        struct primitive_step const step =
            plan_step(collisions->plan, collisions->item, lane, position, number);
        uint32_t to[MACHINE_AXES_MAX];
        plan_item_peer(collisions->plan, collisions->item, at, step.peer, to);
        struct item_path_link *hop = &collisions->hop[(size_t)chip * longest];
        collisions->message[chip] = (struct hashed_message){
            item_paths_chip(paths, to), item_paths_find(paths, chip, to, hop), step.units};
        for (uint32_t h = 0; h < collisions->message[chip].hops; h++)
            collisions->load[hop[h].link] += step.units;
    }
    memcpy(collisions->next_s, collisions->at_s, paths->chip_count * sizeof *collisions->at_s);
    for (uint32_t chip = 0; chip < paths->chip_count; chip++) {
        const struct item_path_link *hop = &collisions->hop[(size_t)chip * longest];
        double *receiver_s = &collisions->next_s[collisions->message[chip].receiver], way_s = 0;
        for (uint32_t h = 0; h < collisions->message[chip].hops; h++) {
            way_s = fmax(way_s, collisions->load[hop[h].link] / hop[h].bytes_per_s);
            collisions->busy_s[hop[h].link] += collisions->message[chip].units / hop[h].bytes_per_s;
        }
        *receiver_s = fmax(*receiver_s, collisions->at_s[chip] + way_s);
    }
    memcpy(collisions->at_s, collisions->next_s, paths->chip_count * sizeof *collisions->at_s);
}

static void steps_count(struct collisions *collisions, struct contention_times *ret)
{
    const struct item_paths *paths = collisions->paths;
    for (uint32_t link = 0; link < paths->link_count; link++) collisions->busy_s[link] = 0;
    for (uint32_t chip = 0; chip < paths->chip_count; chip++) collisions->at_s[chip] = 0;
    for (uint32_t l = 0; l < collisions->item->primitive->lane_count; l++) {
        const struct plan_lane *lane = &collisions->plan->lane[collisions->item->lane_first + l];
        for (uint32_t s = 0; s < lane->send_count[0]; s++) step_count(collisions, l, s);
    }
    for (uint32_t link = 0; link < paths->link_count; link++) {
        double *wire = &ret->wire_byte_s[item_paths_wire(paths, link)];
        *wire = fmax(*wire, collisions->busy_s[link]);
    }
    for (uint32_t chip = 0; chip < paths->chip_count; chip++)
        ret->byte_s = fmax(ret->byte_s, collisions->at_s[chip]);
}

bool ecmp_count(const struct machine *machine, const struct plan *plan,
                const struct plan_item *item, struct contention_times *ret)
{
    uint64_t sends = 0;
    *ret = (struct contention_times){.latency_s = 0};
    if (!is_hashed(machine) || !is_in_step(plan, item)) return false;
    for (uint32_t l = 0; l < item->primitive->lane_count; l++)
        sends += plan->lane[item->lane_first + l].send_count[0];
    struct arena *arena = arena_create(0);
    if (arena == NULL) return false;
    struct item_paths paths;
    struct collisions collisions = {.plan = plan, .item = item, .paths = &paths};
    bool const done = item_paths_build(arena, machine, plan, item, CHIPS_MAX, &paths) &&
                      paths.chip_count * sends <= MESSAGES_MAX &&
                      collisions_build(arena, &collisions);
    if (done) steps_count(&collisions, ret);
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
