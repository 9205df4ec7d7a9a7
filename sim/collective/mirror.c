#include "sim/collective/mirror.h"

/* The lane of the original: between neighbours the other way round. */
static uint32_t lane_of(const struct primitive *of, uint32_t lane)
{
    return of->lane_count - 1 - lane;
}

uint32_t mirror_send_count(const struct primitive *of, uint32_t size, uint32_t lane,
                           uint32_t position)
{
    return of->arrival_count(size, lane_of(of, lane), position);
}

uint32_t mirror_arrival_count(const struct primitive *of, uint32_t size, uint32_t lane,
                              uint32_t position)
{
    return of->send_count(size, lane_of(of, lane), position);
}

/* Where it came from; between neighbours, partners, and where all do the same, what leaves the one
 * as its n-th is the other's n-th. */
static struct primitive_origin origin_of(const struct primitive *of, uint32_t size, uint32_t lane,
                                         uint32_t position, uint32_t arrival)
{
    uint32_t back = lane_of(of, lane) == 0 ? size - 1 : 1;
    if (of->origin != NULL) return of->origin(size, position, arrival);
    if (of->routed) {
        uint32_t const peer = of->step(size, lane, position, arrival).peer;
        if (of->partners) return (struct primitive_origin){peer, arrival};
        back = size - peer;
    }
    return (struct primitive_origin){(position + back) % size, arrival};
}

/* Messages of the original that wait for more than `arrival` others; later ones never wait for
 * fewer, and most for one more than the message before. */
static uint32_t waiting_count(const struct primitive *of, uint32_t size, uint32_t lane,
                              uint32_t position, uint32_t arrival)
{
    uint32_t const sends = of->send_count(size, lane, position);
    uint32_t low = 0, high = sends, middle = arrival < sends ? arrival : sends / 2;
    while (low < high) {
        if (of->step(size, lane, position, middle).arrivals > arrival)
            high = middle;
        else
            low = middle + 1;
        middle = low == arrival + 1 && low < high ? low : low + (high - low) / 2;
    }
    return sends - low;
}

/* A message of a mirror image, and the one of the original that it is. */
struct image {
    uint32_t lane, arrivals, arrival;
    struct primitive_origin from;
    struct primitive_step sent;
};

static struct image image_of(const struct primitive *of, uint32_t size, uint32_t lane,
                             uint32_t position, uint32_t step)
{
    struct image image = {.lane = lane_of(of, lane)};
    image.arrivals = of->arrival_count(size, image.lane, position);
    image.arrival = image.arrivals - 1 - step;
    image.from = origin_of(of, size, lane, position, image.arrival);
    image.sent = of->step(size, image.lane, image.from.position, image.from.step);
    return image;
}

/* Chunks of its own operand that a rank needs up to a step: a chunk a message, or as many as it has
 * where messages wait for particular ones. The two lanes of a ring take them in turn; where they
 * have one too many, the first is one chunk, half of it in each. */
static uint32_t chunk_count(const struct primitive *of, const struct image *image, uint32_t size,
                            uint32_t lane, uint32_t position, uint32_t step)
{
    uint32_t count = 0;
    if (of->lane_count == 2) {
        uint32_t const before = 2 * step + lane;
        return before + 1 - (2 * image->arrivals == size && before > 0);
    }
    for (uint32_t s = 0; of->ordered && s <= step; s++)
        count += image_of(of, size, lane, position, s).sent.move_count;
    return of->ordered ? count : step + 1;
}

struct primitive_step mirror_step(const struct primitive *of, uint32_t size, uint32_t lane,
                                  uint32_t position, uint32_t step)
{
    struct image const image = image_of(of, size, lane, position, step);
    struct primitive_step result = {.units = image.sent.units, .move_count = image.sent.move_count};
    result.arrivals = waiting_count(of, size, image.lane, position, image.arrival);
    if (of->kind == COLLECTIVE_ALL_GATHER)
        result.chunks = chunk_count(of, &image, size, lane, position, step);
    if (of->routed) {
        uint32_t const to = image.from.position;
        result.peer = of->translates ? (to + size - position) % size : to;
        result.slot = of->send_count(size, image.lane, to) - 1 - image.from.step;
    }
    return result;
}

/* What a message brings to one from the other is a sum for the other, from the one. */
struct primitive_move mirror_move(const struct primitive *of, uint32_t size, uint32_t lane,
                                  uint32_t position, uint32_t step, uint32_t move)
{
    struct image const image = image_of(of, size, lane, position, step);
    struct primitive_move result =
        of->move(size, image.lane, image.from.position, image.from.step, move);
    if (of->kind == COLLECTIVE_SCATTER || of->kind == COLLECTIVE_ALL_GATHER) {
        uint32_t const source = result.source;
        result.source = result.destination;
        result.destination = source;
    }
    return result;
}

/* The first chunk that no message before has sent; a rank's own comes last. */
uint32_t mirror_chunk_at(const struct primitive *of, uint32_t size, uint32_t position,
                         uint32_t index)
{
    for (uint32_t lane = 0; lane < of->lane_count; lane++)
        for (uint32_t step = 0; step < mirror_send_count(of, size, lane, position); step++) {
            struct image const image = image_of(of, size, lane, position, step);
            uint32_t const count = chunk_count(of, &image, size, lane, position, step);
            uint32_t const moves = image.sent.move_count;
            if (index < count && index + moves >= count)
                return mirror_move(of, size, lane, position, step, index + moves - count)
                    .destination;
        }
    return position;
}

/* How a mirror image goes: over a ring both ways, from chip to chip, or added by switches; all
 * positions alike, in any order or in one, or partners. */
#define MIRROR_RING .ring = true, .lane_count = 2
#define MIRROR_ROUTED .routed = true, .lane_count = 1
#define MIRROR_ADDED MIRROR_ROUTED, .network = PRIMITIVE_NETWORK_REDUCE
#define MIRROR_ALIKE MIRROR_ROUTED, .translates = true, .digits = true
#define MIRROR_ALIKE_ADDED MIRROR_ALIKE, .network = PRIMITIVE_NETWORK_REDUCE
#define MIRROR_ALIKE_ORDERED MIRROR_ROUTED, .translates = true, .ordered = true
#define MIRROR_PARTNERS MIRROR_ROUTED, .partners = true, .ordered = true

#define COLLECTIVE(name)
#define MIRROR(name_, of, kind_, family_, way, help_, source_)                                     \
    extern const struct primitive primitive_##of;                                                  \
    static uint32_t name_##_send_count(uint32_t size, uint32_t lane, uint32_t position)            \
    {                                                                                              \
        return mirror_send_count(&primitive_##of, size, lane, position);                           \
    }                                                                                              \
    static uint32_t name_##_arrival_count(uint32_t size, uint32_t lane, uint32_t position)         \
    {                                                                                              \
        return mirror_arrival_count(&primitive_##of, size, lane, position);                        \
    }                                                                                              \
    static struct primitive_step name_##_step(uint32_t size, uint32_t lane, uint32_t position,     \
                                              uint32_t step)                                       \
    {                                                                                              \
        return mirror_step(&primitive_##of, size, lane, position, step);                           \
    }                                                                                              \
    static struct primitive_move name_##_move(uint32_t size, uint32_t lane, uint32_t position,     \
                                              uint32_t step, uint32_t move)                        \
    {                                                                                              \
        return mirror_move(&primitive_##of, size, lane, position, step, move);                     \
    }                                                                                              \
    static uint32_t name_##_chunk_at(uint32_t size, uint32_t position, uint32_t index)             \
    {                                                                                              \
        return mirror_chunk_at(&primitive_##of, size, position, index);                            \
    }                                                                                              \
    static const char *name_##_refuses(uint32_t size)                                              \
    {                                                                                              \
        return primitive_##of.refuses == NULL ? NULL : primitive_##of.refuses(size);               \
    }                                                                                              \
    static struct primitive_cost name_##_cost(uint32_t size)                                       \
    {                                                                                              \
        return primitive_##of.cost(size);                                                          \
    }                                                                                              \
    extern const struct primitive primitive_##name_;                                               \
    const struct primitive primitive_##name_ = {                                                   \
        .name = #name_,                                                                            \
        .help = help_,                                                                             \
        .source = source_,                                                                         \
        .kind = COLLECTIVE_##kind_,                                                                \
        .family = PRIMITIVE_##family_,                                                             \
        MIRROR_##way,                                                                              \
        .send_count = name_##_send_count,                                                          \
        .arrival_count = name_##_arrival_count,                                                    \
        .step = name_##_step,                                                                      \
        .move = name_##_move,                                                                      \
        .chunk_at = COLLECTIVE_##kind_ == COLLECTIVE_REDUCE_SCATTER ? name_##_chunk_at : NULL,     \
        .refuses = name_##_refuses,                                                                \
        .cost = name_##_cost,                                                                      \
    };
#include "workloads/collectives.def"
