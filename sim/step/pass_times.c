/*
 * What passes of a pipeline take, and messages between its ranks: for schedules that fill bubbles
 * by themselves, and so have to know before anything is simulated. Sums over the steps of the parts
 * that a stage has: the FLOP of their matmuls at the chip's rate for each format, and what they
 * gather and reduce over tp. What all else costs, memory, launches, other collectives and messages
 * that meet, comes out when the schedule is run.
 */
#include "sim/step/pass_times.h"

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/graph/derive.h"
#include "sim/graph/op.h"
#include "sim/graph/steps.h"
#include "sim/step/graph_terms.h"
#include "sim/step/ranks.h"
#include "sim/step/stages.h"

enum pass { FORWARD, INPUT, WEIGHT, PASSES };

/* Of one chip and a microbatch, by pass. */
struct effort {
    units_wide flop[PASSES];  /* At the rate of linear layers. */
    units_wide moved[PASSES]; /* Bytes that compute waits for, whole over tp. */
};

static void effort_add(struct effort *sum, const struct effort *one, uint32_t times)
{
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        sum->flop[pass] += one->flop[pass] * times;
        sum->moved[pass] += one->moved[pass] * times;
    }
}

/* Some products multiply in the format of activations, which may be slower. */
static units_wide at_linear_rate(const struct ranks *ranks, const struct work *work)
{
    const uint64_t *rates = ranks->machine->chip.math_flop_per_s;
    uint64_t const own = rates[work->math_format];
    units_wide const flop = work_matmul_flop(work);
    return flop * rates[ranks->plan->formats.matmuls] / (own > 0 ? own : 1);
}

/* With collective matmul products wait for chunks alone; what only gradients of weights read comes
 * while others are computed. */
static bool is_waited_for(const struct ranks *ranks, const struct graph_step *step, enum pass pass)
{
    return step->move.axis == OP_AXIS_TP && pass != WEIGHT && !ranks->plan->collective_matmul;
}

/* Bytes of a collective over tp that compute waits for. */
static units_wide moved_bytes(const struct ranks *ranks, const struct graph_step *step,
                              enum pass pass)
{
    uint32_t const ways = step->move.kind == COLLECTIVE_ALL_REDUCE ? 2 : 1;
    return is_waited_for(ranks, step, pass) ? (units_wide)ways * step->move.bytes : 0;
}

static struct effort part_effort(const struct ranks *ranks, const struct step_part *part)
{
    static const struct {
        enum pass pass;
        struct graph_request request;
    } rows[] = {
        {FORWARD, {.backward = false}},
        {INPUT, {.backward = true, .half = GRAPH_INPUT_HALF}},
        {WEIGHT, {.backward = true, .half = GRAPH_WEIGHT_HALF}},
        {INPUT, {.again = true}}, /* Of groups of layers. */
    };
    struct effort effort = {{0}, {0}};
    struct step_graph room;
    const struct graph_derived *derived = step_graph(ranks, part, &room);
    struct graph_steps steps;
    uint32_t const count = derived->graph.terms->layer.grouped ? PASSES + 1 : PASSES;
    for (uint32_t row = 0; row < count; row++) {
        enum pass const pass = rows[row].pass;
        graph_steps(&derived->sharded, &derived->backward, &derived->kept, rows[row].request,
                    &steps);
        for (uint32_t i = 0; i < steps.count; i++) {
            const struct graph_step *step = &steps.step[i];
            if (step->is_compute)
                effort.flop[pass] += at_linear_rate(ranks, &step->work);
            else
                effort.moved[pass] += moved_bytes(ranks, step, pass);
        }
    }
    return effort;
}

/* How often a stage has a part. The first use of a matrix asks for as much as all others. */
static uint32_t times_of(const struct ranks *ranks, const struct stage *stage,
                         const struct step_part *part)
{
    bool const of_modules = part->kind == ranks_last_kind(ranks);
    uint32_t const with_heads = ranks->mtp.apart ? 0 : stage->mtp_modules;
    uint32_t const count = of_modules ? stage->mtp_modules : 0;
    if (part->part == BLOCK_EMBEDDING) return stage->embedding;
    if (part->part == BLOCK_HEAD)
        return part->used_before ? stage->mtp_heads + with_heads : stage->head;
    if (part->part == BLOCK_MTP) return part->used_before ? 0 : stage->mtp_modules;
    return count + step_layers(ranks, stage->layer_first, stage->layer_count).of[part->kind];
}

/* The share of its rate that the slowest chip of each rank has. */
static void ranks_slow(const struct machine *machine, const struct mesh *mesh, uint32_t *math_ppm)
{
    for (uint32_t r = 0; r < mesh->axis[MESH_PP].size; r++) math_ppm[r] = PPM_ONE;
    if (machine->chip_override_count == 0) return;
    for (uint32_t r = 0; r < mesh->axis[MESH_PP].size; r++) math_ppm[r] = UINT32_MAX;
    for (uint32_t chip = 0; chip < machine->chip_count; chip++) {
        uint32_t const rank = mesh_rank(mesh, machine, MESH_PP, chip);
        uint32_t math = 0, hbm = 0;
        machine_chip_ppm(machine, chip, &math, &hbm);
        math_ppm[rank] = math < math_ppm[rank] ? math : math_ppm[rank];
    }
}

/* What the level of a part has as far as the tier where the part's farthest neighbours meet. */
static struct level_along part_along(const struct machine *machine, const struct mesh_part *part)
{
    return level_along(machine, part->axis, (part->size - 1) * part->stride);
}

/* What a chip can give to the next along a part, one way, where all do. */
static uint64_t rate_of(const struct machine *machine, const struct mesh_part *part)
{
    if (level_of_axis(machine, part->axis) == NULL) return machine->chip.ici_bytes_per_s;
    struct level_along const along = part_along(machine, part);
    uint64_t const share = level_share_bytes_per_s(along.share), pair = along.pair_bytes_per_s;
    uint64_t const slowest = share < pair ? share : pair;
    return slowest > 0 ? slowest : 1;
}

static int64_t latency_ps(const struct machine *machine, const struct mesh_part *part)
{
    if (level_of_axis(machine, part->axis) == NULL)
        return part->stride * machine->chip.hop_latency_ps;
    return part_along(machine, part).way_ps;
}

/* Both ways of rings at once, whose two links of a chip lead to two others. */
static uint64_t tp_bytes_per_s(const struct machine *machine, const struct mesh_axis *axis)
{
    uint64_t rate = 0;
    for (uint32_t i = 0; i < axis->part_count; i++) {
        const struct mesh_part *part = &axis->part[i];
        bool const both = mesh_dimension(machine, part).ring && part->size > 2;
        if (part->size > 1) rate += (both ? 2 : 1) * rate_of(machine, part);
    }
    return rate > 0 ? rate : 1;
}

/* A message of each chip's shard to the chip next to it along pp, the farthest of them. */
static int64_t hop_ps(const struct ranks *ranks)
{
    const struct machine *machine = ranks->machine;
    const struct mesh_axis *axis = &ranks->mesh->axis[MESH_PP];
    uint64_t const bytes =
        format_bytes(ranks->plan->formats.activations, ranks_sent_elements(ranks));
    int64_t longest_ps = 0;
    for (uint32_t i = 0; i < axis->part_count; i++) {
        const struct mesh_part *part = &axis->part[i];
        if (part->size == 1) continue;
        int64_t const way_ps =
            latency_ps(machine, part) + units_duration_ps(bytes, rate_of(machine, part));
        longest_ps = way_ps > longest_ps ? way_ps : longest_ps;
    }
    return longest_ps + machine->chip.launch.message_ps;
}

static struct schedule_times rank_times(const struct ranks *ranks, const struct effort *effort,
                                        uint32_t math_ppm)
{
    const struct mesh_axis *tp = &ranks->mesh->axis[MESH_TP];
    uint64_t const full = ranks->machine->chip.math_flop_per_s[ranks->plan->formats.matmuls];
    uint64_t const slowed = units_scale_ppm(full, math_ppm), rate = slowed > 0 ? slowed : 1;
    uint64_t const tp_rate = tp_bytes_per_s(ranks->machine, tp);
    int64_t pass_ps[PASSES];
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        units_wide const others = effort->moved[pass] / tp->size * (tp->size - 1);
        pass_ps[pass] = units_duration_ps(units_saturated(effort->flop[pass]), rate) +
                        units_duration_ps(units_saturated(others), tp_rate);
    }
    return (struct schedule_times){
        .forward = pass_ps[FORWARD], .input = pass_ps[INPUT], .weight = pass_ps[WEIGHT]};
}

static int64_t longer_ps(int64_t one_ps, int64_t other_ps)
{
    return one_ps > other_ps ? one_ps : other_ps;
}

/* An amount of 0 takes no time, whatever the rate. */
static int64_t demand_ps(uint64_t amount, uint64_t rate)
{
    return amount == 0 || rate == 0 ? 0 : units_duration_ps(amount, rate);
}

static int64_t work_ps(const struct chip *chip, const struct work *work)
{
    uint64_t const flop = work_padded_flop(work, step_units(chip).edges);
    uint64_t const bytes = work->hbm_read_bytes + work->hbm_write_bytes;
    uint32_t const busy_ppm = PPM_ONE - (uint32_t)work->idle_core_ppm;
    uint64_t const math = units_scale_ppm(chip->math_flop_per_s[work->math_format], busy_ppm),
                   vector = units_scale_ppm(chip->vector_flop_per_s, busy_ppm);
    int64_t const math_ps = longer_ps(demand_ps(flop, math), demand_ps(work->vector_flop, vector));
    return longer_ps(math_ps, demand_ps(bytes, chip->hbm_bytes_per_s)) + chip->launch.op_ps;
}

int64_t pass_part_ps(const struct ranks *ranks, const struct step_part *part)
{
    static const struct graph_request forward = {.backward = false};
    const struct mesh_axis *tp = &ranks->mesh->axis[MESH_TP];
    struct step_graph room;
    const struct graph_derived *derived = step_graph(ranks, part, &room);
    struct graph_steps steps;
    int64_t sum_ps = 0;
    units_wide moved = 0;
    graph_steps(&derived->sharded, &derived->backward, &derived->kept, forward, &steps);
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct graph_step *step = &steps.step[i];
        if (step->is_compute)
            sum_ps += work_ps(&ranks->machine->chip, &step->work);
        else
            moved += moved_bytes(ranks, step, FORWARD);
    }
    moved = moved / tp->size * (tp->size - 1);
    return sum_ps + demand_ps(units_saturated(moved), tp_bytes_per_s(ranks->machine, tp));
}

enum status pass_times_estimate(struct arena *arena, const struct workload_plan *plan,
                                const struct machine *machine, const struct mesh *mesh,
                                struct schedule_times *ret_times, struct error *reterr)
{
    uint32_t const rank_count = mesh->axis[MESH_PP].size;
    struct ranks *ranks = NULL;
    struct step_part part[STEP_PARTS_MAX];
    struct effort of_part[STEP_PARTS_MAX];
    struct stages stages;
    void *memory = NULL;
    STATUS_TRY(ranks_take(arena, plan, machine, mesh, &ranks, reterr));
    STATUS_TRY(stages_build(arena, plan, rank_count, ranks_room(ranks, MESH_PP), &stages, reterr));
    STATUS_TRY(arena_try(arena, rank_count, sizeof(uint32_t), &memory, reterr));
    uint32_t *math_ppm = memory;
    STATUS_TRY(arena_try(arena, rank_count, sizeof *ret_times, &memory, reterr));
    struct schedule_times *of_rank = memory, most = {0};
    ranks_slow(machine, mesh, math_ppm);
    uint32_t const part_count = step_parts(ranks, part);
    for (uint32_t p = 0; p < part_count; p++) of_part[p] = part_effort(ranks, &part[p]);
    for (uint32_t r = 0; r < rank_count; r++) {
        struct effort effort = {{0}, {0}};
        for (uint32_t p = 0; p < part_count; p++)
            effort_add(&effort, &of_part[p], times_of(ranks, &stages.stage[r], &part[p]));
        of_rank[r] = rank_times(ranks, &effort, math_ppm[r]);
        if (of_rank[r].forward > most.forward) most.forward = of_rank[r].forward;
        if (of_rank[r].input > most.input) most.input = of_rank[r].input;
        if (of_rank[r].weight > most.weight) most.weight = of_rank[r].weight;
    }
    *ret_times = most;
    ret_times->hop = hop_ps(ranks);
    ret_times->of_rank = of_rank;
    return STATUS_OK;
}
