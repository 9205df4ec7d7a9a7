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

/* The arrival that a step sends back. */
static uint32_t arrival_of(const struct primitive *of, uint32_t size, uint32_t lane,
                           uint32_t position, uint32_t step)
{
    return of->arrival_count(size, lane_of(of, lane), position) - 1 - step;
}

/* Where it came from; between neighbours what leaves the one as its n-th is the other's n-th. */
static struct primitive_origin origin_of(const struct primitive *of, uint32_t size, uint32_t lane,
                                         uint32_t position, uint32_t arrival)
{
    if (of->routed) return of->origin(size, position, arrival);
    uint32_t const back = lane_of(of, lane) == 0 ? size - 1 : 1;
    return (struct primitive_origin){(position + back) % size, arrival};
}

/* Messages of the original that wait for more than `arrival` others; later ones never wait for
 * fewer. */
static uint32_t waiting_count(const struct primitive *of, uint32_t size, uint32_t lane,
                              uint32_t position, uint32_t arrival)
{
    uint32_t const sends = of->send_count(size, lane, position);
    uint32_t low = 0, high = sends;
    while (low < high) {
        uint32_t const middle = low + (high - low) / 2;
        if (of->step(size, lane, position, middle).arrivals > arrival)
            high = middle;
        else
            low = middle + 1;
    }
    return sends - low;
}

struct primitive_step mirror_step(const struct primitive *of, uint32_t size, uint32_t lane,
                                  uint32_t position, uint32_t step)
{
    uint32_t const own = lane_of(of, lane);
    uint32_t const arrival = arrival_of(of, size, lane, position, step);
    struct primitive_origin const from = origin_of(of, size, lane, position, arrival);
    struct primitive_step const sent = of->step(size, own, from.position, from.step);
    struct primitive_step result = {.units = sent.units, .move_count = sent.move_count};
    result.arrivals = waiting_count(of, size, own, position, arrival);
    if (of->routed) {
        result.peer = from.position;
        result.slot = of->send_count(size, own, from.position) - 1 - from.step;
    }
    return result;
}

struct primitive_move mirror_move(const struct primitive *of, uint32_t size, uint32_t lane,
                                  uint32_t position, uint32_t step, uint32_t move)
{
    uint32_t const arrival = arrival_of(of, size, lane, position, step);
    struct primitive_origin const from = origin_of(of, size, lane, position, arrival);
    struct primitive_move result =
        of->move(size, lane_of(of, lane), from.position, from.step, move);
    if (of->kind == COLLECTIVE_SCATTER) {
        result.source = result.destination;
        result.destination = primitive_any;
    }
    return result;
}

/* How a mirror image goes: over a ring both ways, from chip to chip, or added by switches. */
#define MIRROR_RING .ring = true, .lane_count = 2
#define MIRROR_ROUTED .routed = true, .lane_count = 1
#define MIRROR_ADDED .routed = true, .lane_count = 1, .network = PRIMITIVE_NETWORK_REDUCE

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
        .cost = name_##_cost,                                                                      \
    };
#include "workloads/collectives.def"
