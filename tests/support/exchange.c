#include "tests/support/exchange.h"

#include <stddef.h>

const uint32_t *exchange_target;

static uint32_t others(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    (void)position;
    return size - 1;
}

static struct primitive_step direct_step(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = step + 1, .slot = step};
}

static uint32_t lane_first(uint32_t size, uint32_t lane)
{
    return (uint32_t)((uint64_t)(size - 1) * lane / 4);
}

static uint32_t lane_count(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)position;
    return lane_first(size, lane + 1) - lane_first(size, lane);
}

static struct primitive_step lanes_step(uint32_t size, uint32_t lane, uint32_t position,
                                        uint32_t step)
{
    (void)position;
    return (struct primitive_step){.units = 2,
                                   .move_count = 1,
                                   .peer = 1 + lane_first(size, lane) + step,
                                   .slot = step,
                                   .wait_lane = (uint8_t)lane};
}

static struct primitive_step unlike_step(uint32_t size, uint32_t lane, uint32_t position,
                                         uint32_t step)
{
    (void)lane;
    return (struct primitive_step){
        .units = 2, .move_count = 1, .peer = (position + step + 1) % size, .slot = step};
}

static uint32_t one(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    (void)position;
    return 1;
}

static struct primitive_step permutation_step(uint32_t size, uint32_t lane, uint32_t position,
                                              uint32_t step)
{
    (void)size;
    (void)lane;
    (void)step;
    return (struct primitive_step){
        .units = 2, .move_count = 1, .peer = exchange_target[position], .slot = 0};
}

static uint32_t root_sends(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)lane;
    return position == 0 ? size - 1 : 0;
}

static uint32_t root_arrivals(uint32_t size, uint32_t lane, uint32_t position)
{
    (void)size;
    (void)lane;
    return position == 0 ? 0 : 1;
}

static struct primitive_step root_step(uint32_t size, uint32_t lane, uint32_t position,
                                       uint32_t step)
{
    (void)size;
    (void)lane;
    (void)position;
    return (struct primitive_step){.units = 2, .move_count = 1, .peer = step + 1, .slot = 0};
}

/* What every one of them says. */
#define ROUTED(of_kind, lanes, sends, arrivals, makes_step)                                        \
    .kind = (of_kind), .family = PRIMITIVE_MSCCL, .lane_count = (lanes), .routed = true,           \
    .send_count = (sends), .arrival_count = (arrivals), .step = (makes_step)

const struct primitive exchange_direct = {
    .name = "exchange_direct",
    ROUTED(COLLECTIVE_ALL_TO_ALL, 1, others, others, direct_step),
    .translates = true,
    .digits = true};

const struct primitive exchange_lanes = {
    .name = "exchange_lanes",
    ROUTED(COLLECTIVE_ALL_TO_ALL, 4, lane_count, lane_count, lanes_step),
    .translates = true,
    .digits = true};

const struct primitive exchange_scatter = {
    .name = "exchange_scatter",
    ROUTED(COLLECTIVE_REDUCE_SCATTER, 1, others, others, direct_step),
    .translates = true,
    .digits = true};

const struct primitive exchange_unlike = {
    .name = "exchange_unlike", ROUTED(COLLECTIVE_ALL_TO_ALL, 1, others, others, unlike_step)};

const struct primitive exchange_permutation = {
    .name = "exchange_permutation", ROUTED(COLLECTIVE_ALL_TO_ALL, 1, one, one, permutation_step)};

const struct primitive exchange_root = {
    .name = "exchange_root", ROUTED(COLLECTIVE_BROADCAST, 1, root_sends, root_arrivals, root_step)};
