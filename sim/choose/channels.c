#include "sim/choose/channels.h"

#include <stdbool.h>

#include "sim/collective/algorithm.h"

enum { AMPERE = 3, HOPPER = 4, BLACKWELL = 5 }; /* Generations of NVLink. */
enum { SPEEDS = 20 };
enum {
    RINGS_MAX = 32,
    CHANNELS_MAX = 64,
    NETWORK_PEER_CHANNELS = 2,
    CHUNKS_GATHERED_CORES = 1,
    CHUNKS_REDUCED_CORES = 16,
};

/* Bytes of an array for each channel: threads of a channel times bytes of a thread. LL counts them
 * for each rank of a ring. */
enum { SIMPLE_BYTES = 512 * 64, LL128_BYTES = 640 * 8, LL_BYTES = 512 * 8 };
enum { PEER_BYTES = 64 << 10, PEER_BYTES_MAX = 16 << 20, NETWORK_PEER_BYTES = 256 << 10 };

/* Megabytes a second, descending. */
static const uint32_t within[][SPEEDS] = {
    {40000, 30000, 20000, 18000, 15000, 12000, 10000, 9000, 7000, 6000, 5000, 4000, 3000},
    {60000, 50000, 40000, 30000, 24000, 20000, 15000, 12000, 11000, 6000, 3000},
    {90000, 80000, 70000, 60000, 50000, 45000, 40000, 30000, 24000, 20000, 19000, 18000},
};
static const uint32_t between[][SPEEDS] = {
    {48000, 30000, 28000, 24000, 20000, 18000, 15000, 12000, 10000, 9000, 7000, 6000, 5000, 4000,
     3000, 2400, 1200, 240, 120},
    {48000, 45000, 42000, 40000, 30000, 24000, 22000, 20000, 17500, 15000, 12000, 6000, 3000, 2400,
     1200, 240, 120},
    {96000, 86000, 80000, 48000, 45100, 42000, 40000, 30000, 24000, 22000,
     20000, 17500, 15000, 12000, 6000,  3000,  2400,  1200,  240,   120},
};

static const uint32_t doubled_mb_per_s = 25000, doubled_alone_mb_per_s = 50000;
static const uint32_t quick_mb_per_s = 45000;
enum { FEW_RINGS = 4, SOME_CHANNELS = 16 };

/* What a group's rings go over. */
struct ring_links {
    uint64_t mb_per_s; /* Of one GPU's NVLink, or of one NIC. */
    uint64_t count;    /* NICs of a node's ranks; 1: of NVLink. */
    bool is_network;
    uint32_t generation;
};

static struct ring_links ring_links_of(const struct protocol_use *use)
{
    const struct machine *machine = use->machine;
    uint64_t nodes, ranks;
    protocol_extent(machine, use->group, &nodes, &ranks);
    bool const is_network = nodes > 1;
    return (struct ring_links){.mb_per_s = protocol_level_mb_per_s(machine, is_network ? 1 : 0),
                               .count = is_network ? ranks / nodes : 1,
                               .is_network = is_network,
                               .generation = machine->chip.network.nvlink_generation};
}

/* Rings that are found; the rate of each in `ret_mb_per_s`. */
static uint32_t rings_find(const struct ring_links *links, uint32_t *ret_mb_per_s)
{
    uint32_t const row = links->generation <= AMPERE ? 0 : links->generation == HOPPER ? 1 : 2;
    const uint32_t *speed = (links->is_network ? between : within)[row];
    uint64_t best = 0;
    *ret_mb_per_s = 0;
    for (uint32_t s = 0; s < SPEEDS && speed[s] != 0; s++) {
        uint64_t const room = links->mb_per_s / speed[s] * links->count;
        uint64_t const count = room < RINGS_MAX ? room : RINGS_MAX;
        if (best != 0 && (uint64_t)speed[s] * 100 <= (uint64_t)*ret_mb_per_s * 49) break;
        if (count * speed[s] <= best * *ret_mb_per_s) continue;
        best = count;
        *ret_mb_per_s = speed[s];
    }
    return (uint32_t)best;
}

static uint32_t least(uint64_t one, uint64_t other)
{
    return (uint32_t)(one < other ? one : other);
}

static uint32_t channels_built(const struct ring_links *links)
{
    uint32_t mb_per_s = 0;
    uint32_t count = rings_find(links, &mb_per_s);
    bool const stays =
        links->generation > AMPERE && mb_per_s < doubled_alone_mb_per_s && count > FEW_RINGS;
    if (mb_per_s >= doubled_mb_per_s && !stays) {
        uint32_t const twice = least(2 * (uint64_t)count, RINGS_MAX);
        if (twice > count) mb_per_s /= 2;
        count = twice;
    }
    count = least(2 * (uint64_t)count, CHANNELS_MAX);
    if (links->generation > AMPERE && links->is_network && mb_per_s > quick_mb_per_s &&
        count < SOME_CHANNELS)
        count *= 2;
    return count == 0 ? 1 : count;
}

static uint32_t power_2_above(uint32_t count)
{
    uint32_t power = 1;
    while (power < count) power *= 2;
    return power;
}

/* Of an array that has room for so many channels of `each_bytes`, one at least. */
static uint32_t filled(uint64_t bytes, uint64_t each_bytes, uint32_t most)
{
    uint64_t const count = bytes / each_bytes;
    return count == 0 ? 1 : least(count, most);
}

static uint32_t nvls_channels(const struct ring_links *links)
{
    if (links->generation < BLACKWELL) return 16;
    return links->is_network ? 32 : 24;
}

static uint32_t peer_channels(uint64_t message_bytes, uint64_t ranks, uint32_t all)
{
    uint32_t fair = all;
    while (fair > 1 && fair * ranks > all) fair /= 2;
    uint32_t count = least((message_bytes + PEER_BYTES - 1) / PEER_BYTES, fair);
    if (count == 0) count = 1;
    while (count <= all / 2 && message_bytes / count > PEER_BYTES_MAX) count *= 2;
    return count;
}

uint32_t channels_of_peer(const struct protocol_use *use, uint64_t message_bytes)
{
    struct ring_links const links = ring_links_of(use);
    return peer_channels(message_bytes, group_rank_count(use->group),
                         power_2_above(channels_built(&links)));
}

uint32_t channels_of(const struct protocol_use *use, enum protocol protocol)
{
    struct ring_links const links = ring_links_of(use);
    uint32_t const built = channels_built(&links);
    uint64_t const ranks = group_rank_count(use->group);
    if (use->kind == COLLECTIVE_ALL_TO_ALL) {
        uint64_t const each = use->array_bytes / (ranks * ranks);
        uint32_t const all = power_2_above(built);
        uint32_t const peer =
            links.is_network ? NETWORK_PEER_CHANNELS : peer_channels(each, ranks, all);
        return least((ranks - 1) * peer, all);
    }
    if (use->kind == COLLECTIVE_PERMUTE)
        return links.is_network
                   ? filled(use->array_bytes, NETWORK_PEER_BYTES, NETWORK_PEER_CHANNELS)
                   : peer_channels(use->array_bytes, ranks, power_2_above(built));
    if (primitive_family_nccl(algorithm_family(&use->algorithm)) == NCCL_NVLS)
        return nvls_channels(&links);
    if (protocol == PROTOCOL_LL) return filled(use->array_bytes, LL_BYTES * ranks, built);
    return filled(use->array_bytes, protocol == PROTOCOL_LL128 ? LL128_BYTES : SIMPLE_BYTES, built);
}

uint32_t channels_of_chunks(enum collective_kind kind)
{
    return kind == COLLECTIVE_REDUCE_SCATTER ? CHUNKS_REDUCED_CORES : CHUNKS_GATHERED_CORES;
}
