/*
 * What passes of a pipeline take, and messages between its ranks: for schedules that fill bubbles
 * by themselves, and so have to know before anything is played. Closed forms: the FLOP of matmuls
 * at the chip's rate for their format, and a message that meets no other. What collectives, memory
 * and launches cost comes out when the schedule is played.
 */
#include "sim/workload/schedule_times.h"
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/workload/stages.h"

/* Of a stage and one token, in FLOP at the rate of linear layers. */
struct effort {
    units_wide weights; /* Of every weight that is multiplied, in one direction. */
    units_wide dots;    /* Of one of attention's two products. */
    units_wide again;   /* What the backward pass computes once more. */
};

/* Keys that a query of a layer has, a mean. */
static uint64_t keys_of(const struct workload_plan *plan, uint64_t layer)
{
    const struct model *model = &plan->model;
    bool const causal = plan->attention == WORKLOAD_ATTENTION_CAUSAL;
    if (model_layer_is_windowed(model, layer) && model->window < plan->sequence_length)
        return model->window;
    return plan->sequence_length / (causal ? 2 : 1);
}

/* Attention's products and heads multiply in the format of activations, which may be slower. */
static units_wide at_linear_rate(const struct workload_plan *plan, const struct machine *machine,
                                 units_wide flop)
{
    uint64_t const own = machine->chip.math_flop_per_s[plan->formats.activations];
    return flop * machine->chip.math_flop_per_s[plan->formats.matmuls] / (own > 0 ? own : 1);
}

static void layer_add(const struct workload_plan *plan, const struct machine *machine,
                      uint64_t layer, struct effort *effort)
{
    const struct model *model = &plan->model;
    const struct model_experts *experts = &model->experts;
    units_wide const attention =
        model->latent.kv_rank != 0
            ? model_count(model).attention_layer
            : (units_wide)(2 * model->width) * (model->heads + model->kv_heads) * model->head_width;
    uint64_t const mlp_width = layer >= model_dense_layers(model)
                                   ? (experts->top_k + experts->shared) * experts->width
                                   : model->mlp_width;
    units_wide const weights =
        2 * ((units_wide)(model->matrices * model->width) * mlp_width + attention);
    units_wide const dots =
        at_linear_rate(plan, machine,
                       (units_wide)(model->heads * (model->head_width + model_value_width(model))) *
                           keys_of(plan, layer));
    effort->weights += weights;
    effort->dots += dots;
    if (!workload_remat_repeats(plan->remat)) return;
    units_wide const out = 2 * (units_wide)model->width * mlp_width;
    effort->again += weights + 2 * dots - (plan->remat == WORKLOAD_REMAT_LAYER ? 0 : out);
}

static struct effort stage_effort(const struct workload_plan *plan, const struct machine *machine,
                                  const struct stage *stage)
{
    const struct model *model = &plan->model;
    struct effort effort = {0};
    uint32_t const with_heads = stages_predictors_apart(plan->layout) ? 0 : stage->predictors;
    for (uint32_t i = 0; i < stage->layer_count; i++)
        layer_add(plan, machine, stage->layer_first + i, &effort);
    for (uint32_t i = 0; i < stage->predictors; i++) {
        layer_add(plan, machine, model->layers - 1, &effort);
        effort.weights += (units_wide)4 * model->width * model->width;
    }
    uint32_t const heads = (stage->head ? 1 : 0) + stage->predictor_heads + with_heads;
    effort.weights +=
        at_linear_rate(plan, machine, (units_wide)2 * model->width * model->vocabulary * heads);
    return effort;
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

/* Of `tokens`, on one of the chips. */
static uint64_t amount_of(units_wide of_token, units_wide tokens, units_wide chips)
{
    units_wide const amount = of_token * tokens / chips;
    return amount > UINT64_MAX ? UINT64_MAX : (uint64_t)amount;
}

/* The farthest tier where neighbours of a part meet. */
static uint32_t top_tier(const struct machine *machine, const struct mesh_part *part)
{
    const struct level *level = &machine->level[machine->axis_level[part->axis]];
    uint32_t top = 0;
    for (uint32_t r = 0; r + 1 < part->size; r++) {
        uint32_t a[MACHINE_AXES_MAX] = {0}, b[MACHINE_AXES_MAX] = {0};
        a[part->axis] = r * part->stride;
        b[part->axis] = (r + 1) * part->stride;
        uint32_t const tier = level_meeting_tier(level, a, b);
        SIM_ASSERT(tier < level->tier_count);
        top = tier > top ? tier : top;
    }
    return top;
}

/* What a chip can give to the next along a part, one way, where all do: of a level, its share of
 * the narrowest cables on the way. */
static uint64_t rate_of(const struct machine *machine, const struct mesh_part *part)
{
    if (machine->axis_level[part->axis] == LEVEL_NONE) return machine->chip.ici_bytes_per_s;
    const struct level *level = &machine->level[machine->axis_level[part->axis]];
    uint32_t const top = top_tier(machine, part);
    uint64_t slowest = UINT64_MAX;
    for (uint32_t t = 0; t <= top; t++) {
        const struct level_tier *tier = &level->tier[t];
        uint64_t const share =
            level_bundle_bytes_per_s(tier) / level_box_chips(machine, level, (int32_t)t - 1);
        uint64_t const cable = tier->cable_bytes_per_s;
        bool const one = tier->policy == LEVEL_HASH || tier->policy == LEVEL_PAIR;
        uint64_t const rate = one && cable < share ? cable : share;
        slowest = rate < slowest ? rate : slowest;
    }
    return slowest > 0 ? slowest : 1;
}

static int64_t latency_ps(const struct machine *machine, const struct mesh_part *part)
{
    uint8_t const level = machine->axis_level[part->axis];
    if (level == LEVEL_NONE) return part->stride * machine->chip.hop_latency_ps;
    return level_way_ps(&machine->level[level], top_tier(machine, part));
}

static uint64_t bytes_of(const struct workload_plan *plan, uint64_t chips)
{
    uint64_t const elements =
        amount_of(plan->model.width, plan->batch_tokens, (units_wide)chips * plan->accumulate);
    return units_ceil_divide(elements, 8) * format_bits(plan->formats.activations);
}

/* Collectives of a layer over tp in each direction, and those that block remat repeats: all but the
 * last. */
enum { COLLECTIVES = 4, COLLECTIVES_AGAIN = 3 };

/* What a layer's compute waits for in each direction: the block gathered and scattered over tp for
 * attention and for the MLP, both ways of a ring at once. */
static int64_t layer_waits_ps(const struct workload_plan *plan, const struct machine *machine,
                              const struct mesh *mesh, uint64_t chips)
{
    const struct mesh_axis *axis = &mesh->axis[MESH_TP];
    uint64_t rate = 0;
    if (axis->size == 1 || plan->collective_matmul) return 0;
    for (uint32_t i = 0; i < axis->part_count; i++) {
        const struct mesh_part *part = &axis->part[i];
        bool const both = machine->axis_level[part->axis] == LEVEL_NONE && part->size > 2;
        if (part->size > 1) rate += (both ? 2 : 1) * rate_of(machine, part);
    }
    uint64_t const shard_bytes = bytes_of(plan, chips);
    return COLLECTIVES * units_duration_ps(shard_bytes * (axis->size - 1), rate > 0 ? rate : 1);
}

/* A message of each chip's shard to the chip next to it along pp, the farthest of them. */
static int64_t hop_ps(const struct workload_plan *plan, const struct machine *machine,
                      const struct mesh *mesh, uint64_t chips)
{
    const struct mesh_axis *axis = &mesh->axis[MESH_PP];
    uint64_t const bytes = bytes_of(plan, chips);
    int64_t longest_ps = 0;
    for (uint32_t i = 0; i < axis->part_count; i++) {
        const struct mesh_part *part = &axis->part[i];
        if (part->size == 1) continue;
        int64_t const way_ps =
            latency_ps(machine, part) + units_duration_ps(bytes, rate_of(machine, part));
        longest_ps = way_ps > longest_ps ? way_ps : longest_ps;
    }
    return longest_ps + machine->chip.message_overhead_ps;
}

enum status schedule_times_estimate(struct arena *arena, const struct workload_plan *plan,
                                    const struct machine *machine, const struct mesh *mesh,
                                    struct schedule_times *ret_times, struct error *reterr)
{
    uint32_t const ranks = mesh->axis[MESH_PP].size;
    uint64_t const chips = mesh->rank_count / ranks;
    uint64_t const full = machine->chip.math_flop_per_s[plan->formats.matmuls];
    struct stages stages;
    void *memory = NULL;
    STATUS_TRY(stages_build(arena, plan, ranks, ranks, &stages, reterr));
    STATUS_TRY(arena_try(arena, ranks, sizeof(uint32_t), &memory, reterr));
    uint32_t *math_ppm = memory;
    STATUS_TRY(arena_try(arena, ranks, sizeof *ret_times, &memory, reterr));
    struct schedule_times *of_rank = memory, most = {0};
    ranks_slow(machine, mesh, math_ppm);
    int64_t const waits_ps = layer_waits_ps(plan, machine, mesh, chips);
    units_wide const parts = (units_wide)chips * plan->accumulate;
    for (uint32_t r = 0; r < ranks; r++) {
        const struct stage *stage = &stages.stage[r];
        struct effort const effort = stage_effort(plan, machine, stage);
        uint64_t const slowed = units_scale_ppm(full, math_ppm[r]), rate = slowed > 0 ? slowed : 1;
        units_wide const tokens = plan->batch_tokens, input = effort.weights + 5 * effort.dots;
        int64_t const stage_ps = waits_ps * (stage->layer_count + stage->predictors);
        int64_t const again_ps = plan->remat == WORKLOAD_REMAT_LAYER ? stage_ps
                                 : plan->remat == WORKLOAD_REMAT_BLOCK
                                     ? stage_ps / COLLECTIVES * COLLECTIVES_AGAIN
                                     : 0;
        struct schedule_times *times = &of_rank[r];
        times->forward =
            stage_ps +
            units_duration_ps(amount_of(effort.weights + 2 * effort.dots, tokens, parts), rate);
        times->input = stage_ps + again_ps +
                       units_duration_ps(amount_of(input + effort.again, tokens, parts), rate);
        times->weight = units_duration_ps(amount_of(effort.weights, tokens, parts), rate);
        if (times->forward > most.forward) most.forward = times->forward;
        if (times->input > most.input) most.input = times->input;
        if (times->weight > most.weight) most.weight = times->weight;
    }
    *ret_times = most;
    ret_times->hop = hop_ps(plan, machine, mesh, chips);
    ret_times->of_rank = of_rank;
    return STATUS_OK;
}
