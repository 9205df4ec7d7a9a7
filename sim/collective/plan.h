/*
 * plan.h: a collective on a group, composed of primitives on its dimensions.
 *
 * A plan is a list of items. An item runs one primitive over one dimension on a share of the
 * array, after at most one other item. Items that do not depend on each other run side by side:
 * that is how all links of several axes are busy at once. A share may be cut into pieces that
 * follow one another through the chain of items, so that axes of unequal length stay busy.
 *
 * Several dimensions (d1 .. dM): M cyclic orders, each with a share; an order gathers over its
 * dimensions one after the other (ReduceScatter in reverse). The shares are solved so that every
 * dimension carries the same bytes: on 4x4x8 .270/.333/.397 of the array, not thirds.
 *
 * Bytes are equal on every rank: an item's unit is rounded up once, and the padding is counted.
 */
#ifndef SIM_COLLECTIVE_PLAN_H
#define SIM_COLLECTIVE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/cancel.h"
#include "sim/base/status.h"
#include "sim/collective/algorithm.h"
#include "sim/collective/collective.h"
#include "sim/collective/group.h"
#include "sim/machine/path.h"

struct arena;
struct msccl_script; /* An algorithm out of a file: sim/collective/msccl.h. */

enum {
    PLAN_ITEMS_MAX = 2 * GROUP_DIMENSIONS_MAX * GROUP_DIMENSIONS_MAX,
    PLAN_LANES_MAX = PLAN_ITEMS_MAX * PRIMITIVE_LANES_MAX,
    PLAN_NO_ITEM = 0xff,
    PLAN_ROUTE_MAX = GROUP_DIMENSIONS_MAX,
    PLAN_ALGORITHMS_MAX = 48,
    PLAN_ALGORITHM_SIZE = 32,
};

/* The largest array, whose times stay far below the end of time on any link. */
static const uint64_t plan_size_bytes_max = UINT64_C(1) << 56;

/* Consecutive links of one port on the way to the receiver. */
struct plan_leg {
    uint8_t port;  /* machine_port(axis, backward) */
    uint16_t hops; /* At least 1. */
};

struct plan_item {
    const struct primitive *primitive;
    uint8_t dimension;
    uint8_t after;     /* An earlier item of which this one continues the data, or PLAN_NO_ITEM:
                          piece p begins when piece p of `after`, and of what that continues, has
                          arrived on this rank. */
    uint8_t turn;      /* An item on the same dimension that goes first, or PLAN_NO_ITEM: piece p
                          also waits until piece p of `turn` has fully arrived on this rank. Small
                          chunks before large ones: or each would hold up what waits for it. */
    uint8_t turn_lead; /* Pieces that this item may be ahead of the item `turn`: piece p waits for
                          piece p - turn_lead of `turn`, if there is such a piece. */
    uint8_t order;     /* The share of the array that the item belongs to. */
    bool last;     /* The last item of its order: its completion completes a piece of the share. */
    bool flat;     /* Routed: over all dimensions of the group taken together. */
    bool cyclic;   /* Flat: its primitive translates, but not digit by digit: peers are displaced
                      with carries. */
    uint32_t size; /* Positions of the dimension, or of all dimensions if the item is flat. */
    uint64_t unit_bytes; /* Half a chunk; where pieces are cut, half a node's part of a chunk. */
    uint32_t piece_count;
    /* Pieces may be cut into portions (level_overlap.h), which follow one another as pieces do;
     * portion k carries what belongs to nodes portion_end[k-1] to portion_end[k] - 1 of a
     * dimension, and its messages are as many times as long. NULL: they are not cut. */
    const uint32_t *portion_end;
    uint32_t portion_count;
    uint8_t portion_dimension;
    /* What of `after` has to have arrived, within a piece: for portion k, wait[k] messages, in the
     * order of their slots; or, where that item is the one that is cut, for step s the first
     * wait[s] portions. NULL: all. */
    const uint32_t *wait;
    /* What a rank of a ragged exchange sends to a position in a piece, and what it keeps for its
     * own: [(piece · ranks + plan_rank()) · size + position]. NULL: not ragged. */
    const uint32_t *ragged_units;
    /* Bits of dimensions, in a rooted plan over several: all along which the ranks that take part
     * have the root's coordinate, and some along at least one of which they have another. */
    uint8_t at_root;
    uint8_t off_root;
    uint8_t parted; /* Dimensions along which each rank goes on with its own part of the array. */
    uint8_t lane_first; /* The first lane of the item. Its lanes are consecutive, as many as
                           lane_count of the primitive. */
};

struct plan_lane {
    uint8_t item;
    uint8_t lane;      /* The primitive's lane. */
    uint8_t leg_count; /* 0: routed. */
    struct plan_leg leg[PLAN_ROUTE_MAX];
    /* By plan_item_seat(), for ONE piece. */
    const uint32_t *send_count;
    const uint32_t *arrival_count;
};

/* How messages are handed to the wire: NCCL's protocols, or one's own. Bytes and time that a
 * message has beyond its payload and its links, and cores that compute lacks meanwhile. All zero:
 * nothing. */
struct plan_protocol {
    const char *name;                   /* "LL", "LL128", "Simple"; NULL: none. */
    int64_t begin_ps;                   /* Before the first message of the collective. */
    int64_t message_ps[1 + LEVELS_MAX]; /* Each message, by the way it goes: the grid, level 0... */
    uint32_t wire_ppm; /* Bytes on the wire for a million of payload; 0: a million. */
    uint32_t far_ppm;  /* Bytes on wires between nodes for a million; 0: wire_ppm. */
    uint32_t cores;    /* Cores of each rank that drive the collective as long as it runs. */
};

/* A ragged AllToAll: each token goes to top_k of the experts, which lie evenly on the ranks
 * (ragged.h). It is exchanged directly, over all dimensions at once or over one after the other. */
struct plan_ragged {
    uint32_t expert_count; /* 0: not ragged. A multiple of the ranks. */
    uint32_t top_k;
    uint64_t token_bytes;
    uint64_t tokens; /* Tokens of all ranks, where the last ranks have fewer than their buffers hold
                        or none; 0: buffers are full. */
    uint64_t seed;
    uint32_t
        skew_ppm; /* How unequal the experts are: 0 all alike, a million: Zipf with exponent 1. */
    bool returns; /* The way back: each copy from the rank that got it, from the innermost level
                     out, merged where it was spread. */
};

/* Who sends to whom in a permute. */
struct plan_permute {
    int32_t offset[GROUP_DIMENSIONS_MAX]; /* The displacement in members. */
    uint32_t peer;                        /* The displacement through switches, in positions. */
    int32_t shift; /* Instead: the displacement in ranks over several switched dimensions. It
                      carries from one dimension into the next. */
    bool mirrors;  /* Instead, from each member to the one as far from the other end. */
};

/* The root of a broadcast, a reduction, a gather or a scatter. */
struct plan_rooted {
    uint32_t root;                        /* The rank of the root. */
    uint32_t digit[GROUP_DIMENSIONS_MAX]; /* The member numbers of the root. */
};

struct plan {
    enum collective_kind kind;
    struct algorithm algorithm; /* What would build this plan again. */
    const char *algorithm_name; /* For people. */
    struct group group;
    uint64_t
        size_bytes; /* V: the whole gathered (unreduced, exchanged) array; permute: a message. */
    /* Of one kind of plans each, and all zero in others. */
    struct plan_permute permute;
    struct plan_rooted rooted;
    struct plan_ragged ragged;    /* The draw of a ragged AllToAll. */
    const uint32_t *ragged_units; /* Halves of tokens that ranks have for each other, however they
                                     come there: [source · ranks + destination], by plan_rank();
                                     NULL: not ragged. */
    uint32_t element_bits; /* Bits of an element that is added; 0: sixteen. plan_elements() */
    struct plan_protocol protocol;
    const struct msccl_script *script; /* What its one item plays instead of a primitive's steps. */

    uint8_t flat_dimension[GROUP_DIMENSIONS_MAX]; /* The digits of flat items' positions, the
                                                     slowest first: the outermost level's. */
    struct plan_item item[PLAN_ITEMS_MAX];
    uint32_t item_count;
    struct plan_lane lane[PLAN_LANES_MAX];
    uint32_t lane_count;
    uint32_t order_count;

    /* Progress as other ops may wait for it, where the request asked for chunks; else one part.
     *   AllGather, one dimension        counts units as they come, its own chunk at once: 2·size
     *                                   parts, chunk_parts = 2 a chunk
     *   AllGather, several              counts pieces that all orders have completed
     *   ReduceScatter, one dimension    one part; a step waits for `chunks` of its producer
     *   ReduceScatter, several          counts pieces; piece p waits for the producer's part p+1 */
    bool counts_buckets;
    uint32_t part_count;
    uint32_t chunk_parts;
    uint32_t chunk_count; /* How many chunks a consumer or producer may cut its work into; 0:
                             none, whether or not any were wanted. */
};

struct plan_request {
    enum collective_kind kind;
    struct algorithm algorithm; /* `auto`, or what plan_algorithms() gives. */
    struct group group;
    uint64_t size_bytes;
    uint32_t chunk_count; /* 0: no other op goes chunk by chunk with it. Else the number of chunks
                             it wants; over several dimensions as many or fewer, which become
                             the pieces, and none if the array is too small to be cut. */
    int32_t offset[GROUP_DIMENSIONS_MAX]; /* Permute only. */
    int32_t shift; /* Permute only, through switches: the distance in ranks from a sender to its
                      receiver. It carries from one dimension into the next. 0: see offset. */
    bool mirrors;  /* Permute only, along one dimension of an even size; the offset is ignored. */
    uint32_t root; /* Rooted kinds only. */
    uint32_t element_bits; /* Bits of an element that is added: what adders count. 0: sixteen. */
    /* Bytes that a link of each dimension carries while a message crosses one hop of it, and how
     * fast the links are among each other; what pieces and shares are chosen by. 0: 65,536, and
     * all alike. plan_request_links() fills them. */
    uint64_t hop_bytes[GROUP_DIMENSIONS_MAX];
    uint64_t bytes_per_s[GROUP_DIMENSIONS_MAX];
    int64_t next_ps[GROUP_DIMENSIONS_MAX]; /* The way from a member to the next, on average. */
    uint8_t way[GROUP_DIMENSIONS_MAX];     /* The way of a message, in plan_protocol.message_ps. */
    /* What the switches along a dimension can do; filled by plan_request_links() too. */
    bool multicasts[GROUP_DIMENSIONS_MAX];
    bool meshed[GROUP_DIMENSIONS_MAX]; /* A link between any two members, and no switch. */
    bool reduces[GROUP_DIMENSIONS_MAX];
    uint32_t piece_count;   /* 0: by the plan's own rule. */
    uint32_t portion_count; /* Portions of a piece that can be cut; 0: by the plan's own rule; 1:
                               pieces are not cut. */
    struct plan_protocol protocol;
    struct plan_ragged ragged;
    const struct cancel *cancel;       /* While tokens are drawn; NULL: nobody waits. */
    const struct msccl_script *script; /* Replaces `algorithm`. */
    /* AllToAll only, of tokens that go to several ranks but once to each unit of a level on the
     * way: V of each dimension, as many tokens as cross it. `spreads`: from the outermost in, the
     * copies being made where they arrive; else from the innermost out, and they are merged. An
     * exchange at once of all ranks carries `size_bytes`. 0: so does each dimension. */
    uint64_t exchange_bytes[GROUP_DIMENSIONS_MAX];
    bool spreads;
};

/* Whether two ragged exchanges send the same tokens to the same ranks. */
bool plan_ragged_equal(const struct plan_ragged *a, const struct plan_ragged *b);
/* Whether two requests ask for the same, whatever they say of the machine's links. */
bool plan_request_equal(const struct plan_request *a, const struct plan_request *b);

/* Fills what the request says of links and switches from the machine that the group lies on. */
void plan_request_links(const struct machine *machine, struct plan_request *request);

/* Algorithms, each once. */
struct plan_algorithms {
    struct algorithm of[PLAN_ALGORITHMS_MAX];
    uint32_t count;
};

/* The names of algorithms, as name_find() and name_offer() take them. */
struct plan_algorithm_names {
    const char *name[PLAN_ALGORITHMS_MAX + 1]; /* Ended by NULL. */
    struct algorithm_text text[PLAN_ALGORITHMS_MAX];
};
bool plan_algorithms_have(const struct plan_algorithms *algorithms,
                          const struct algorithm *algorithm);
void plan_algorithms_name(const struct plan_algorithms *algorithms,
                          struct plan_algorithm_names *ret_names);

/* Algorithms that can run a request's kind on its group; "auto" is the first. If the group has
 * several levels, "A+B" can be asked for too: one name for each level, the innermost first. */
struct plan_algorithms plan_algorithms(const struct plan_request *request);

/* All but "A+B" that mean something for a kind on some group. */
struct plan_algorithms plan_algorithms_of(enum collective_kind kind);

/* An algorithm that cannot run on this group is refused with the reason; `where` is its place. */
enum status plan_build(struct arena *arena, const struct plan_request *request, const char *where,
                       struct plan *ret_plan, struct error *reterr);

/* Whether each lane means the same in two plans: who sends it to whom, and which way. */
bool plan_lanes_agree(const struct plan *plan, const struct plan *other);

/* How many dimensions an item goes over, and which: the digits of its positions, the slowest first.
 */
static inline uint32_t plan_item_digits(const struct plan *plan, const struct plan_item *item,
                                        const uint8_t **ret_dimension)
{
    *ret_dimension = item->flat ? plan->flat_dimension : &item->dimension;
    return item->flat ? plan->group.dimension_count : 1;
}

/* How many portions a piece of an item has. */
static inline uint32_t plan_item_portions(const struct plan_item *item)
{
    return item->portion_end == NULL ? 1 : item->portion_count;
}

/* How many times an item's units a message of a portion is long. */
static inline uint32_t plan_item_portion_size(const struct plan_item *item, uint32_t portion)
{
    if (item->portion_end == NULL) return 1;
    return item->portion_end[portion] - (portion == 0 ? 0 : item->portion_end[portion - 1]);
}

/* Bytes of a unit in all pieces and portions together. */
static inline uint64_t plan_item_unit_bytes(const struct plan_item *item)
{
    uint64_t const nodes =
        item->portion_end == NULL ? 1 : item->portion_end[item->portion_count - 1];
    return item->unit_bytes * item->piece_count * nodes;
}

/* As how many equal pieces an item counts where levels overlap: nothing hides its shortest
 * portion, which is the first or the last. */
static inline uint64_t plan_item_pieces(const struct plan_item *item)
{
    if (item->portion_end == NULL) return item->piece_count;
    uint32_t const last = item->portion_count - 1;
    uint32_t const begin = plan_item_portion_size(item, 0);
    uint32_t const end = plan_item_portion_size(item, last);
    return (uint64_t)item->piece_count * item->portion_end[last] / (begin < end ? begin : end);
}

/* Where the chip at these coordinates of the machine stands in an item: 0 is the root of the rooted
 * kinds. */
uint32_t plan_item_position(const struct plan *plan, const struct plan_item *item,
                            const uint32_t *at);

/* plan_item_position() of the chip, or the item's size if the chip takes no part in the item. */
uint32_t plan_item_seat(const struct plan *plan, const struct plan_item *item, const uint32_t *at);

/* Coordinates of a chip's peer in an item, by its position, or by its displacement where the
 * primitive translates. */
void plan_item_peer(const struct plan *plan, const struct plan_item *item, const uint32_t *at,
                    uint32_t peer, uint32_t *ret_at);

/* The position that lies by a displacement from another: round the ring, or digit by digit where
 * the item is flat and not cyclic. */
uint32_t plan_item_displaced(const struct plan *plan, const struct plan_item *item,
                             uint32_t position, uint32_t displacement);

/* The least shift of all members along a dimension, in members, that maps what the item does onto
 * itself: 1 where they are alike, the dimension's size where nothing less does. */
uint32_t plan_item_shift(const struct plan *plan, const struct plan_item *item, uint32_t dimension);

/* Which way round the axes of the grid its messages go that have as far either way. */
struct path_balance plan_item_balance(const struct machine *machine, const struct plan *plan,
                                      const struct plan_item *item);

/* A step of an item, whatever plays it: a primitive or a script. What the replay and the proof ask.
 */
struct primitive_step plan_step(const struct plan *plan, const struct plan_item *item,
                                uint32_t lane, uint32_t position, uint32_t step);

/* The number of the chip at these coordinates among all ranks, as flat items count them but from
 * no root: the outermost level's digit is the slowest. */
uint32_t plan_rank(const struct plan *plan, const uint32_t *at);

/* Units of a ragged exchange that the chip at these coordinates sends with a step of a piece. */
uint32_t plan_ragged_units(const struct plan *plan, const struct plan_item *item,
                           const struct primitive_step *step, const uint32_t *at, uint32_t piece);

/* Units that it sends, whether the exchange is ragged or not. */
static inline uint32_t plan_step_units(const struct plan *plan, const struct plan_item *item,
                                       const struct primitive_step *step, const uint32_t *at,
                                       uint32_t piece)
{
    if (item->ragged_units == NULL) return step->units;
    return plan_ragged_units(plan, item, step, at, piece);
}

/* What one addition takes in: adders, of chips and of switches, count elements. */
static inline uint32_t plan_element_bits(const struct plan *plan)
{
    return plan->element_bits == 0 ? 16 : plan->element_bits;
}

/* Elements in `bytes`; an array is far too small for its bits to overflow. */
static inline uint64_t plan_elements(const struct plan *plan, uint64_t bytes)
{
    return bytes * 8 / plan_element_bits(plan);
}

/* The proof on sets over the whole group (at most 64 ranks), through all items, shares and pieces:
 * steps are run in rounds until nothing moves; then each rank must hold what the kind promises,
 * each contribution exactly once, and lanes must send and receive as often as announced. */
enum status plan_check(const struct plan *plan, struct error *reterr);

/* Whether every position of the item's dimension does the same: on rings; not on lines, nor where
 * a line runs on a ring, nor around a root. Such an item may be folded to one chip. */
static inline bool plan_item_is_uniform(const struct plan *plan, const struct plan_item *item)
{
    if (collective_is_rooted(item->primitive->kind) || (item->at_root | item->off_root) != 0)
        return false;
    if (item->primitive->routed) {
        bool closed = item->primitive->translates && !item->cyclic && plan->ragged_units == NULL &&
                      plan->script == NULL;
        for (uint32_t d = 0; d < plan->group.dimension_count; d++)
            if (item->flat || d == item->dimension)
                closed =
                    closed && (plan->group.dimension[d].ring || plan->group.dimension[d].switched);
        return closed;
    }
    return plan->group.dimension[item->dimension].ring &&
           (item->primitive->ring || item->primitive->kind == COLLECTIVE_PERMUTE);
}

#endif
