#include "sim/choose/one_shot.h"

#include "sim/base/units.h"
#include "sim/choose/protocol.h"
#include "sim/collective/algorithm.h"

enum { KIB = 1024, MIB = 1024 * 1024 };
enum { RANKS_MAX = 8, NVLINK_FIRST = 3, GENERATIONS = 3 }; /* Ampere, Hopper, Blackwell. */
enum { FEW, SOME, MANY, EXTENTS };                         /* Up to 2, 4, 8 ranks. */

/* By generation of NVLink. */
struct kernel_times {
    int64_t latency_ns[GENERATIONS];
    uint64_t one_shot_mb_per_s[GENERATIONS]; /* Into one GPU. */
};

static const struct kernel_times vllm = {{5657, 4713, 7424}, {161100, 291200, 473700}};
static const struct kernel_times trtllm = {{4372, 3230, 5040}, {124800, 308400, 704600}};

static const struct engine_kernels {
    uint64_t one_shot_bytes[EXTENTS]; /* At most. */
    uint64_t two_shot_bytes[EXTENTS];
    const struct kernel_times *times;
    uint16_t ranks; /* Bit N: N ranks can use them. */
    uint8_t cores;  /* Blocks of threads. */
} engines[ALL_REDUCE_KERNELS_COUNT] = {
    [ALL_REDUCE_KERNELS_VLLM] = {.one_shot_bytes = {8 * MIB - 1, 512 * KIB - 1, 256 * KIB - 1},
                                 .two_shot_bytes = {8 * MIB - 1, 8 * MIB - 1, 8 * MIB - 1},
                                 .times = &vllm,
                                 .ranks = 1u << 2 | 1u << 4 | 1u << 6 | 1u << 8,
                                 .cores = 36},
    [ALL_REDUCE_KERNELS_TRTLLM] = {.one_shot_bytes = {16000000, 999999, 499999},
                                   .two_shot_bytes = {16000000, 8000000, 8000000},
                                   .times = &trtllm,
                                   .ranks = 1u << 2 | 1u << 4 | 1u << 8,
                                   .cores = 24},
    [ALL_REDUCE_KERNELS_TORCH] = {.one_shot_bytes = {256 * KIB, 256 * KIB, 256 * KIB},
                                  .two_shot_bytes = {10 * MIB, 10 * MIB, 10 * MIB},
                                  .times = &vllm,
                                  .ranks = 0x1fc, /* 2 to 8. */
                                  .cores = 24},
};

static uint32_t generation_of(const struct chip *chip)
{
    uint32_t const nvlink = chip->network.nvlink_generation, last = NVLINK_FIRST + GENERATIONS - 1;
    return (nvlink < NVLINK_FIRST ? NVLINK_FIRST : nvlink > last ? last : nvlink) - NVLINK_FIRST;
}

/* The bytes on the wire for a million of what a ReduceScatter and an AllGather move. */
static uint32_t wire_ppm(const struct machine *machine, uint64_t ranks, bool once, uint64_t rate)
{
    uint64_t const link = protocol_level_mb_per_s(machine, 0);
    if (!once) return PPM_ONE;
    uint64_t const slower = link > rate ? link : rate;
    return (uint32_t)(PPM_ONE * ranks * slower / (2 * rate));
}

bool one_shot_make(enum all_reduce_kernels kernels, const struct machine *machine,
                   const struct plan_request *request, struct algorithm *ret_algorithm,
                   struct plan_protocol *ret_protocol)
{
    const struct engine_kernels *engine = &engines[kernels];
    uint64_t nodes, ranks;
    if (request->kind != COLLECTIVE_ALL_REDUCE || request->chunk_count != 0 ||
        machine->chip.kind != CHIP_GPU)
        return false;
    protocol_extent(machine, &request->group, &nodes, &ranks);
    if (nodes != 1 || ranks > RANKS_MAX || (engine->ranks >> ranks & 1) == 0) return false;
    uint32_t const extent = ranks <= 2 ? FEW : ranks <= 4 ? SOME : MANY;
    uint32_t const generation = generation_of(&machine->chip);
    bool const once = request->size_bytes <= engine->one_shot_bytes[extent];
    if (!once && request->size_bytes > engine->two_shot_bytes[extent]) return false;
    /* Both halves of the exchange have the latency of the machine's own path. */
    int64_t const own_ps = engine->times->latency_ns[generation] * (once ? 1 : 2) * 1000;
    int64_t const path_ps = 2 * level_way_ps(&machine->level[0], 0);
    *ret_algorithm = algorithm_by_pairs(&request->group);
    *ret_protocol = (struct plan_protocol){
        .name = once ? "one-shot" : "two-shot",
        .begin_ps = own_ps > path_ps ? own_ps - path_ps : 0,
        .wire_ppm = wire_ppm(machine, ranks, once, engine->times->one_shot_mb_per_s[generation]),
        .cores = engine->cores,
    };
    return true;
}
