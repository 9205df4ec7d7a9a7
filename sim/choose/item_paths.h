/*
 * item_paths.h: the links between the chips that an item's messages go between, for contention.h.
 *
 * Paths are those of machine/path.h, over chips that stand for all that do the same: an axis along
 * which a shift maps the item, the levels and the flows' cables onto themselves has the chips of
 * that shift alone. Where single links are overridden all chips are there.
 */
#ifndef SIM_CHOOSE_ITEM_PATHS_H
#define SIM_CHOOSE_ITEM_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/collective/plan.h"
#include "sim/machine/path.h"

struct arena;

struct item_paths_chip {
    uint32_t axis[MACHINE_AXES_MAX];
};

struct item_paths {
    const struct machine *machine;
    const struct plan *plan;
    struct paths machine_paths;
    struct path_balance balance;
    uint32_t period[MACHINE_AXES_MAX];
    uint32_t chip_count;
    struct item_paths_chip *at; /* [chip] */
    uint32_t link_count;
    uint32_t tier_first[LEVELS_MAX][LEVEL_TIERS_MAX]; /* Links up, then links down. */
    uint32_t tier_links[LEVELS_MAX][LEVEL_TIERS_MAX]; /* One way. */
    uint32_t longest;                                 /* Links of any path. */
    bool twisted; /* Messages over several axes use links around twisted ones. */
};

struct item_path_link {
    uint32_t link;
    double bytes_per_s;
    double latency_s; /* To the next link, or to the end. The first link's includes the overhead of
                         a message. */
};

/* False where there are more chips than `chips_max`. */
bool item_paths_build(struct arena *arena, const struct machine *machine, const struct plan *plan,
                      const struct plan_item *item, uint32_t chips_max,
                      struct item_paths *ret_paths);

/* Messages of a whole plan, over the chips that stand for all. */
uint64_t item_paths_message_count(const struct machine *machine, const struct plan *plan);

/* The chip that stands for the one at a place. */
uint32_t item_paths_chip(const struct item_paths *paths, const uint32_t at[MACHINE_AXES_MAX]);

/* The links from one chip to another place; returns how many. */
uint32_t item_paths_find(const struct item_paths *paths, uint32_t from,
                         const uint32_t to[MACHINE_AXES_MAX], struct item_path_link *ret_link);

/* Such links without the overhead of a message, of which `ret_network` has a part. */
uint32_t item_paths_links(const struct item_paths *paths, uint32_t from,
                          const uint32_t to[MACHINE_AXES_MAX], struct item_path_link *ret_link,
                          uint32_t *ret_network);
double item_paths_overhead_s(const struct item_paths *paths, const struct plan_protocol *protocol,
                             uint32_t network);

/* The axis of a link of the grid, or MACHINE_AXES_MAX and the level. */
uint32_t item_paths_wire(const struct item_paths *paths, uint32_t link);

#endif
