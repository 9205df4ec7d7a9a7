/*
 * level.h: what joins chips that are not neighbours: trees of switches, as data.
 *
 * A level is one network: NVLink in a node, InfiniBand between nodes, DCN between slices. It is a
 * stack of tiers; a tier is a storey of equal units (a node's NVSwitches, a leaf, the spines of a
 * pod, a host's NIC), and a unit holds a box of chips. From each unit of the tier below (a chip,
 * below the first) `cable_count` cables lead up into the unit that holds it, and as many down. Two
 * chips meet in the lowest unit that holds both: a message climbs to it and comes down again.
 *
 * Cables are queues, one each way. Under LEVEL_SPRAY the cables between two units are one queue of
 * their joint rate; under the other policies each is its own.
 *
 * Where in a tier of several switches a message passes is a matter of its cable: the cables of a
 * unit are dealt evenly to the switches of the unit above, in order.
 *
 * Sources: the book, chapter 12, Networking (NVSwitch, SU, SuperPod); chapter 2, Multi-slice; the
 * numbers stand in topology/chips/, each with its own.
 */
#ifndef SIM_MACHINE_LEVEL_H
#define SIM_MACHINE_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LEVEL_AXES_MAX = 4, /* Equal to MACHINE_AXES_MAX. */
    LEVEL_TIERS_MAX = 4,
    LEVELS_MAX = 2,
    LEVEL_NONE = 0xff,
};

#define LEVEL_POLICY_TABLE(X)                                                                      \
    X(SPRAY, "spray", "adaptive: every message is spread over all cables of a bundle")             \
    X(HASH, "hash", "static: a flow keeps the cable that a hash of its two ends names")            \
    X(RAIL, "rail", "by position: the n-th unit below keeps the n-th cable of its switch")

enum level_policy {
#define X(name, text, help) LEVEL_##name,
    LEVEL_POLICY_TABLE(X)
#undef X
        LEVEL_POLICY_COUNT,
    /* No switch: a link leads from each chip to each other one, and takes what the one sends to
     * the other. Chips have it or not, so no scenario asks for it. */
    LEVEL_PAIR = LEVEL_POLICY_COUNT,
};
/* Names of the policies that a scenario may ask for, ended by NULL. */
extern const char *const level_policy_names[];

struct level_tier {
    const char *name;             /* Of a unit: "NVSwitch", "leaf", "spine", "host", "DCN". */
    const char *cable_name;       /* "NVLink", "NIC", "leaf-spine", "PCIe". */
    const char *port_name[2];     /* "NVLink up", "NVLink down". */
    uint32_t box[LEVEL_AXES_MAX]; /* Chips of one unit along each axis; the last unit of an axis may
                                     hold fewer. */
    uint32_t switch_count; /* Switches that make up one unit: 4 NVSwitches, 1 leaf, 16 spines. */
    uint32_t switch_ports; /* Ports of one switch; 0: not a switch with ports (a host). */
    uint32_t cable_count;  /* Cables from one unit below into this one. The number of cables back is
                              equal. */
    uint64_t cable_bytes_per_s; /* One cable, one way, effective. */
    uint64_t cable_peak_bytes_per_s;
    int64_t latency_ps; /* Up or down: along a cable and through half of the switch at each of its
                           ends, and through the NIC at the end that is a chip or a host. */
    enum level_policy policy;
    bool shares_nic; /* A unit is the chips that have a NIC in common, and no host. */
    bool assumed;    /* No product has this number of chips: one switch for each link of a chip. */
    bool multicasts; /* One copy in, one out of each port: NVLink SHARP, IB SHARP. */
    uint64_t reduce_flop_per_s; /* fp32 additions of one whole unit; 0: it cannot reduce. */
};

struct level {
    const char *name; /* "NVLink", "InfiniBand", "DCN" */
    struct level_tier tier[LEVEL_TIERS_MAX];
    uint32_t tier_count;
};

struct machine;

const char *level_policy_name(enum level_policy policy);

/* The length of a whole unit of a tier along an axis, at most the machine's; tier -1: a chip. */
uint32_t level_box_length(const struct machine *machine, const struct level *level, int32_t tier,
                          uint32_t axis);
/* Chips of a whole unit of a tier. */
uint32_t level_box_chips(const struct machine *machine, const struct level *level, int32_t tier);

/* What all cables from one unit below into a tier carry together, one way. */
static inline uint64_t level_bundle_bytes_per_s(const struct level_tier *tier)
{
    return tier->cable_count * tier->cable_bytes_per_s;
}

/* Queues of a tier's cables, one way: 1 of a bundle, which carries all, or one of each cable. */
uint32_t level_queue_count(const struct level *level, uint32_t tier);
uint64_t level_queue_bytes_per_s(const struct level *level, uint32_t tier);

/* The rate of a level: what a chip has of cables, one way, when all chips use them. It is not
 * always a whole number, so it is kept as what `chips` have together. */
struct level_share {
    uint64_t bytes_per_s;
    uint32_t chips;
};

static inline uint64_t level_share_bytes_per_s(struct level_share share)
{
    return share.bytes_per_s / share.chips;
}

/* Of the cables that lead up to a tier. */
struct level_share level_tier_share(const struct machine *machine, const struct level *level,
                                    uint32_t tier);
/* The least share of all tiers up to one: what a chip can send to others that it meets there. */
struct level_share level_least_share(const struct machine *machine, const struct level *level,
                                     uint32_t tier);

/* From one chip to one that it meets at a tier, both alone. */
uint64_t level_pair_bytes_per_s(const struct level *level, uint32_t tier);

/* Up from a chip to a tier, and down again. */
int64_t level_way_ps(const struct level *level, uint32_t tier);

/* The level that serves an axis of the machine; NULL: the grid serves it. */
const struct level *level_of_axis(const struct machine *machine, uint32_t axis);

/* What a level has for messages along its axis, as far as the tier that joins the axis's first chip
 * with the chip `links` places behind it. */
struct level_along {
    struct level_share share;  /* For a chip, when all chips send. */
    uint64_t pair_bytes_per_s; /* For a chip that sends alone. */
    int64_t way_ps;            /* Up to the tier and down again. */
};
struct level_along level_along(const struct machine *machine, uint32_t axis, uint32_t links);

/* Units of a tier in the whole machine, the incomplete ones included. tier -1: chips. */
uint32_t level_unit_count(const struct machine *machine, const struct level *level, int32_t tier);

/* The unit of a tier that holds a chip; row major over the boxes. tier -1: the chip's number. */
uint32_t level_unit(const struct machine *machine, const struct level *level, int32_t tier,
                    const uint32_t at[LEVEL_AXES_MAX]);

/* The lowest tier whose unit holds both chips; tier_count if the level does not join them. */
uint32_t level_meeting_tier(const struct level *level, const uint32_t a[LEVEL_AXES_MAX],
                            const uint32_t b[LEVEL_AXES_MAX]);

/* Whether a message may have to wait for a cable of this tier although it had all it needed of the
 * tiers below: always on the first tier; above it unless messages are spread over cables that
 * together are at least as fast as all that feed them. A tier that does not queue costs latency
 * only. */
bool level_tier_queues(const struct level *level, uint32_t tier);

/* The cable under LEVEL_PAIR: by how far the receiver is ahead along the axis in which the two
 * differ, so that all chips are alike. */
uint32_t level_pair_cable(const struct machine *machine, const uint32_t from[LEVEL_AXES_MAX],
                          const uint32_t to[LEVEL_AXES_MAX]);

/* The shift along an axis of `length` that keeps to a period and maps boxes onto boxes: the
 * smallest multiple of both that divides the axis, or all of it. */
uint32_t level_shift(uint32_t period, uint32_t box, uint32_t length);

/* The cable of a bundle that a flow keeps under LEVEL_HASH: a hash of its two ends, as chips of the
 * machine, salted by the tier, so that the tiers' choices do not go together. */
uint32_t level_hash_cable(uint64_t source, uint64_t target, uint32_t tier, uint32_t cable_count);

/* The shift along an axis that a translation must be a multiple of so that it maps the units which
 * can be told apart by latency or by queues onto themselves, and the cables of flows onto cables: a
 * hash of a flow's ends knows no symmetry. Divides the axis, or is all of it. No message climbs
 * higher than the lowest `tier_count` tiers. */
uint32_t level_period(const struct machine *machine, const struct level *level, uint32_t tier_count,
                      uint32_t axis);

/* The shift that one tier alone asks for. */
uint32_t level_tier_period(const struct machine *machine, const struct level *level, uint32_t tier,
                           uint32_t axis);

/* A multiple of a period that is one of the level's too, and that no unit overlaps in part. */
uint32_t level_period_join(const struct machine *machine, const struct level *level,
                           uint32_t tier_count, uint32_t axis, uint32_t period);

#endif
