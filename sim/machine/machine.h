/*
 * machine.h: chips, what joins neighbours, and what joins the rest: what is there, without time.
 *
 * A chip is a number, row major over the axes (the last axis is fastest). Grid axes (x, y, z) come
 * first, then those that a level of switches serves: gpu and node, or slice.
 *
 * Each chip has two ports a grid axis, `2·axis` towards higher coordinates and `2·axis + 1` towards
 * lower ones; a link is one direction of a cable and is named by the chip and port it leaves. On an
 * axis without wraparound the outer ports of the end chips have no link. The cables of levels have
 * port numbers behind those: machine_level_port(). The last two are the link to the host.
 *
 * A machine is written once, by machine_build(), and then constant.
 */
#ifndef SIM_MACHINE_MACHINE_H
#define SIM_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/units.h"
#include "sim/machine/chip.h"
#include "sim/machine/host.h"
#include "sim/machine/level.h"

struct arena;
struct json;

enum {
    MACHINE_AXES_MAX = LEVEL_AXES_MAX,
    MACHINE_GRID_PORTS = 2 * CHIP_AXES_MAX,
    MACHINE_HOST_PORT = MACHINE_GRID_PORTS + 2 * LEVELS_MAX * LEVEL_TIERS_MAX,
    MACHINE_PORTS_MAX = MACHINE_HOST_PORT + 2,
    MACHINE_OVERRIDES_MAX = 4096,
    MACHINE_CHIPS_MAX = 1 << 20,
    MACHINE_WAYS_MAX = 27 * 8, /* Around each axis up, down or not; half way round either way. */
};

static const uint32_t machine_any = UINT32_MAX; /* A "*" in a coordinate of an override. */
static const uint32_t machine_gpus_max = 576;   /* NVLink domain: book, chapter 12, GB200. */

/* One directed link with a rate or latency of its own. */
struct machine_link_override {
    uint32_t from[MACHINE_AXES_MAX];
    uint32_t to[MACHINE_AXES_MAX];
    uint64_t bytes_per_s; /* 0: unchanged. */
    int64_t latency_ps;   /* 0: unchanged. Replaces the hop latency; overheads are added. */
};

/* Chips with rates of their own: parts per million of the effective rates. */
struct machine_chip_override {
    uint32_t at[MACHINE_AXES_MAX]; /* machine_any: every coordinate. */
    uint32_t math_ppm;             /* MXU and VPU. */
    uint32_t hbm_ppm;
};

/* Tiers of the network beyond a node or slice that a plan can speak of, and the cables into each.
 */
#define MACHINE_TIER_TABLE(X)                                                                      \
    X(LEAF, "leaf", "NIC")                                                                         \
    X(SPINE, "spine", "leaf-spine")                                                                \
    X(CORE, "core", "spine-core")

enum machine_tier {
#define X(name, text, cable) MACHINE_##name,
    MACHINE_TIER_TABLE(X)
#undef X
        MACHINE_TIER_COUNT,
};
extern const char *const machine_tier_names[]; /* By enum machine_tier, ended by NULL. */

/* Whether switches reduce and multicast (SHARP). */
enum machine_sharp {
    MACHINE_SHARP_AUTO, /* NVLink: what the hardware has. InfiniBand: no. */
    MACHINE_SHARP_ON,
    MACHINE_SHARP_OFF,
};

/* Rates of cables up and down need not be equal: `oversubscription_ppm` is what may come from below
 * for what can go up, from the switches of a leaf or a spine. */
struct machine_tier_plan {
    uint32_t policy;               /* 1 + enum level_policy; 0: the policy of the network. */
    uint32_t oversubscription_ppm; /* 0: 1. */
};

/* Times of hosts between slices that a scenario states, where 0 is a time as any other. */
enum machine_dcn_said {
    MACHINE_DCN_BEGIN = 1,
    MACHINE_DCN_MESSAGE = 2,
    MACHINE_DCN_SPREAD = 4,
};

/* What switches do. Zero everywhere is the hardware's default. */
struct machine_network_plan {
    uint32_t policy; /* Beyond a node or slice. 1 + enum level_policy; 0: spray. */
    uint32_t nvlink_policy;
    enum machine_sharp sharp;        /* All levels. */
    enum machine_sharp nvlink_sharp; /* Auto: as `sharp`. */
    int64_t cable_latency_ps;        /* 0: the chip's. Beyond a node or slice. */
    int64_t switch_latency_ps;
    int64_t nvlink_latency_ps;
    /* TPU, between slices. 0: the profile's, unless it is said. */
    int64_t dcn_begin_ps, dcn_message_ps, dcn_spread_ps;
    uint32_t dcn_said;        /* Bits of enum machine_dcn_said. */
    uint32_t switch_ports;    /* 0: the chip's. */
    uint64_t nic_bytes_per_s; /* One NIC, one way, before the profile. TPU: of a host. 0: the
                                 chip's. */
    uint32_t node_nics;       /* GPU, of a node. 0: the chip's. */
    struct machine_tier_plan tier[MACHINE_TIER_COUNT];
};

/* Whether a time of hosts between slices stands in the place of the profile's. */
static inline bool machine_dcn_says(const struct machine_network_plan *plan, int64_t time_ps,
                                    enum machine_dcn_said which)
{
    return time_ps != 0 || (plan->dcn_said & (uint32_t)which) != 0;
}

/* As a scenario says it; filled by sim/scenario. Numbers are in the chip's units. */
struct machine_plan {
    /* "tpu-v5p"; a product name, "v5p-8192", which gives the shape; or, of the user's own chip, the
     * path of its file or the name in it. */
    const char *chip;
    struct json *chip_document; /* NULL: a chip of the catalogue. */
    const char *chip_path; /* The path of the chip's file; NULL: the chip stands in the scenario. */
    bool hbm_gib;          /* The GB of a data sheet's HBM are GiB. */
    uint32_t clock_ppm;    /* Share of the clock that power leaves to math; 0: the stack's. */
    uint32_t clock_fp8_ppm; /* Share for products in fp8. 0: `clock_ppm`, without it the stack's. */
    uint64_t power_w;       /* Limit of the power of a chip; 0: its own. */
    const char *shape;      /* "16x16x16", or NULL if the chip is a product name or a GPU. */
    const char *profile;    /* "ideal" */
    const char *stack;      /* Of measured kernels: a name, or the path of the file. NULL: none. */
    struct json *stack_document; /* The file's; NULL: a stack of the catalogue. */
    enum chip_launches launches;
    int64_t launch_host_ps; /* EAGER; 0: the stack's. */
    uint32_t nodes;         /* GPU. 0: one, without an axis of its own. */
    uint32_t gpus;          /* GPU, of a node. 0: as the chip's node has. */
    uint32_t slices;        /* TPU. 0 or 1: one, without an axis of its own. */
    struct machine_network_plan network;
    bool unrealisable;          /* Permits shapes the product cannot be sliced into. */
    int8_t wrap[CHIP_AXES_MAX]; /* 1, 0; -1: by the product's rule. Needs `unrealisable`. */
    const struct machine_link_override *links;
    uint32_t link_count;
    const struct machine_chip_override *chips;
    uint32_t chip_count;
};

struct machine {
    struct chip chip;
    const char *product;      /* "v5p-8192" where the scenario names a product, else NULL. */
    uint32_t axis_count;      /* Trailing axes of length 1 are kept if the user wrote them. */
    uint32_t grid_axis_count; /* The first axes: a grid of ICI links. 0: no chip has neighbours. */
    uint32_t shape[MACHINE_AXES_MAX]; /* 1 beyond axis_count. */
    bool wrap[MACHINE_AXES_MAX];      /* Grid axes that close into rings by themselves. */
    /* [axis][other]: a link that goes around `axis` upwards also goes up `other` by so much; such
     * an axis is no ring by itself. All 0 unless the torus is twisted. */
    uint32_t twist[CHIP_AXES_MAX][CHIP_AXES_MAX];
    const char *axis_name[MACHINE_AXES_MAX];
    uint8_t axis_level[MACHINE_AXES_MAX]; /* The level that serves it; LEVEL_NONE: the grid. */
    struct level level[LEVELS_MAX];       /* The nearest first. */
    uint32_t level_count;
    struct machine_host host;
    const char *wrap_reason[MACHINE_AXES_MAX]; /* One sentence each, for `show machine`. */
    uint32_t chip_count;

    const struct machine_link_override *links; /* Checked: neighbours, each at most once. */
    uint32_t link_override_count;
    const struct machine_chip_override *chips;
    uint32_t chip_override_count;
    /* [chip]: 1 + index in `chips` of the last entry that names the chip; 0: no entry does. NULL
     * where `chip_override_count` is 0. */
    const uint32_t *chip_entry;
};

/* The share of the chip's clock that math has: the plan's, else what a step leaves of it according
 * to the stack, whose tables may be of kernels that ran alone; else the whole, 10^6. */
uint32_t machine_clock_ppm(const struct machine_plan *plan, const struct chip *chip);
/* The share of that clock that a lower limit of power leaves, the same in all formats. */
uint32_t machine_power_ppm(const struct machine_plan *plan, const struct chip *chip);
/* Time of the host for an op that it launches: the plan's, else the stack's, else that of a call of
 * a framework: vLLM's AllReduce of 256 bytes takes as long if it is launched by itself. */
static const int64_t machine_call_ps = 20 * TIME_PS_PER_US;
int64_t machine_launch_host_ps(const struct machine_plan *plan, const struct chip *chip);
/* Share of the clock for products in fp8. A plan's `clock_ppm` holds for them, too. */
uint32_t machine_clock_fp8_ppm(const struct machine_plan *plan, const struct chip *chip);

/* The chip that a plan names, or brings along, with the plan's clock and NICs. `ret_units` is what
 * a product name counts, "8192", or NULL. */
enum status machine_chip(struct arena *arena, const struct machine_plan *plan,
                         struct chip *ret_chip, const char **ret_units, struct error *reterr);

enum status machine_build(struct arena *arena, const struct machine_plan *plan,
                          struct machine *ret_machine, struct error *reterr);

uint32_t machine_chip_at(const struct machine *machine, const uint32_t at[MACHINE_AXES_MAX]);
void machine_coordinates(const struct machine *machine, uint32_t chip,
                         uint32_t ret_at[MACHINE_AXES_MAX]);

static inline uint32_t machine_port(uint32_t axis, bool backward)
{
    return 2 * axis + backward;
}

/* Whether a link leaves this chip by this port. */
bool machine_has_link(const struct machine *machine, uint32_t chip, uint32_t port);

/* Whether links go around an axis into the axis' other lines. */
bool machine_twists(const struct machine *machine, uint32_t axis);
bool machine_is_twisted(const struct machine *machine);

/* The chip that the link by a port leads to; the link must be there. */
void machine_neighbour(const struct machine *machine, const uint32_t at[MACHINE_AXES_MAX],
                       uint32_t port, uint32_t ret_at[MACHINE_AXES_MAX]);

/* The fewest hops from one chip to another of its grid: how many along each axis, negative towards
 * lower coordinates, in any order. Of equally short ways the one with the shortest first part, then
 * the one that goes up; so it depends only on how the chips lie to each other. */
void machine_hops(const struct machine *machine, const uint32_t from[MACHINE_AXES_MAX],
                  const uint32_t to[MACHINE_AXES_MAX], int32_t ret_hops[CHIP_AXES_MAX]);

/* All ways that are as short, each once; returns how many. */
uint32_t machine_ways(const struct machine *machine, const uint32_t from[MACHINE_AXES_MAX],
                      const uint32_t to[MACHINE_AXES_MAX],
                      int32_t ret_hops[MACHINE_WAYS_MAX][CHIP_AXES_MAX]);

/* Rate and latency of an overridden link. What the override does not say is as on other links. */
static inline void machine_override_rate(const struct machine *machine,
                                         const struct machine_link_override *link,
                                         uint64_t *ret_bytes_per_s, int64_t *ret_latency_ps)
{
    *ret_bytes_per_s = link->bytes_per_s != 0 ? link->bytes_per_s : machine->chip.ici_bytes_per_s;
    *ret_latency_ps = link->latency_ps != 0 ? link->latency_ps : machine->chip.hop_latency_ps;
}

/* Rate and latency of the link that leaves a chip by a port, overrides applied. */
void machine_link(const struct machine *machine, uint32_t chip, uint32_t port,
                  uint64_t *ret_bytes_per_s, int64_t *ret_latency_ps);

/* A chip's share of the rates; where several overrides name a chip, the last one holds. */
void machine_chip_ppm(const struct machine *machine, uint32_t chip, uint32_t *ret_math_ppm,
                      uint32_t *ret_hbm_ppm);

/* The port of the link from one chip to a neighbour, or MACHINE_PORTS_MAX if there is none. */
uint32_t machine_port_between(const struct machine *machine, const uint32_t from[MACHINE_AXES_MAX],
                              const uint32_t to[MACHINE_AXES_MAX]);

/* "x", "gpu", "slice". */
const char *machine_axis_name(const struct machine *machine, uint32_t axis);
/* "x+", "x-", ...; "NVLink up", "NIC down". */
const char *machine_port_name(const struct machine *machine, uint32_t port);

/* The port number of a tier's cables. */
static inline uint32_t machine_level_port(uint32_t level, uint32_t tier, bool down)
{
    return MACHINE_GRID_PORTS + 2 * (level * LEVEL_TIERS_MAX + tier) + down;
}

/* The port number of the link to the host (down: from it): that of the level whose cable it is, or
 * one of its own. */
static inline uint32_t machine_host_port(const struct machine *machine, bool down)
{
    if (machine->host.level != LEVEL_NONE) return machine_level_port(machine->host.level, 0, down);
    return MACHINE_HOST_PORT + down;
}

/* Whether links lead along an axis from each chip to each other chip. What a chip sends to one
 * other chip then has one link. */
static inline bool machine_is_meshed(const struct machine *machine, uint32_t axis)
{
    uint32_t const level = machine->axis_level[axis];
    return level != LEVEL_NONE && machine->level[level].tier[0].policy == LEVEL_PAIR;
}

/* Whether no switch joins the chips along an axis: their links lead from each to each other one, of
 * which two or fewer have all links between them. Where GPUs share a NIC the first tier is their
 * host, which is no switch, and those above it are. */
static inline bool machine_lacks_switch(const struct machine *machine, uint32_t axis)
{
    uint32_t const index = machine->axis_level[axis];
    if (machine->chip.kind != CHIP_GPU || index == LEVEL_NONE) return false;
    const struct level *level = &machine->level[index];
    return level->tier[level->tier_count - 1].switch_ports == 0;
}

/* The nearest level that joins two chips; LEVEL_NONE where the grid does, or nothing. */
uint32_t machine_level_between(const struct machine *machine, const uint32_t a[MACHINE_AXES_MAX],
                               const uint32_t b[MACHINE_AXES_MAX]);

/* Directed links of the grid in the whole machine. */
uint64_t machine_link_count(const struct machine *machine);

#endif
