/* What is constant about lanes during a run: costs of messages, routes, and what waits for what. */
#include "sim/replay/lane.h"

#include "sim/base/arena.h"
#include "sim/replay/arrival_cost.h"
#include "sim/replay/lane_send.h"
#include "sim/replay/routed.h"
#include "sim/replay/state.h"

/* Units of the largest message of a primitive: a chunk, or all that one rank has to send on. */
static uint32_t units_max_of(const struct primitive *primitive, uint32_t size)
{
    bool const whole =
        primitive->kind == COLLECTIVE_BROADCAST || primitive->kind == COLLECTIVE_REDUCE;
    return whole || primitive->kind == COLLECTIVE_ALL_TO_ALL ? 2 * size : 2;
}

uint64_t lane_wire_bytes(const struct plan *plan, uint64_t bytes, bool is_far)
{
    const struct plan_protocol *protocol = &plan->protocol;
    uint32_t const ppm = is_far && protocol->far_ppm != 0 ? protocol->far_ppm : protocol->wire_ppm;
    if (ppm == 0) return bytes;
    units_wide const wire = (units_wide)bytes * ppm + PPM_ONE - 1;
    return (uint64_t)(wire / PPM_ONE);
}

struct message_cost lane_message_cost(const struct replay *replay, const struct plan *plan,
                                      const struct primitive *primitive, uint64_t bytes)
{
    const struct chip *chip = &replay->machine->chip;
    bool const adds =
        primitive->network == PRIMITIVE_NETWORK_NONE &&
        (primitive->kind == COLLECTIVE_REDUCE || primitive->kind == COLLECTIVE_ALL_REDUCE);
    struct message_cost cost = {
        .read_ps = units_duration_ps(bytes, chip->hbm_bytes_per_s),
        .bytes = lane_wire_bytes(plan, bytes, false),
    };
    /* Partial sums stay in VMEM: what arrives is added, not written. */
    if (adds || primitive->kind == COLLECTIVE_REDUCE_SCATTER)
        cost.vector_ps = units_duration_ps(plan_elements(plan, bytes), chip->vector_flop_per_s);
    if (primitive->kind != COLLECTIVE_REDUCE_SCATTER) cost.write_ps = cost.read_ps;
    return cost;
}

static enum status costs_build(struct arena *arena, struct replay *replay, const struct plan *plan,
                               const struct plan_item *item, struct lane_table *table,
                               struct error *reterr)
{
    const struct fold *fold = replay->fold;
    void *memory = NULL;
    table->costs.units_max = units_max_of(item->primitive, table->size);
    if (table->costs.units_max >= 1u << KEY_UNITS_BITS) {
        return error_set(reterr, STATUS_LIMIT, "/mesh", "an AllToAll over %u ranks is too large",
                         table->size);
    }
    uint64_t const stride = (uint64_t)table->costs.units_max + 1;
    STATUS_TRY(arena_try(arena, fold->link_class_count * stride, sizeof *table->costs.cost, &memory,
                         reterr));
    table->costs.cost = memory;
    for (uint32_t kind = 0; kind < fold->link_class_count; kind++) {
        for (uint32_t units = 1; units <= table->costs.units_max; units++) {
            struct message_cost *cost = &table->costs.cost[kind * stride + units];
            *cost = lane_message_cost(replay, plan, item->primitive, units * item->unit_bytes);
            cost->link_ps = units_duration_ps(cost->bytes, fold->link_classes[kind].bytes_per_s);
        }
    }
    return STATUS_OK;
}

static enum status positions_build(struct arena *arena, struct replay *replay,
                                   const struct plan *plan, const struct plan_item *item,
                                   struct lane_table *table, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, replay->chip_count, sizeof(uint32_t), &memory, reterr));
    uint32_t *position = memory;
    for (uint32_t chip = 0; chip < replay->chip_count; chip++) {
        uint32_t at[MACHINE_AXES_MAX];
        fold_coordinates(replay->fold, chip, at);
        position[chip] = plan_item_seat(plan, item, at);
    }
    table->position = position;
    return STATUS_OK;
}

/* Steps that are kept of a lane: few enough that a short run does not pay for them. */
static const uint64_t steps_kept_max = 4096;

/* Each chip asks for its next step whenever something arrives. */
static enum status steps_build(struct arena *arena, const struct plan *plan,
                               struct lane_table *table, struct error *reterr)
{
    void *memory = NULL;
    uint64_t count = 0;
    uint32_t const positions = table->ring ? 1 : table->size;
    for (uint32_t position = 0; position < positions; position++)
        count += table->steps.send_count[position];
    if (count > steps_kept_max || positions > steps_kept_max) return STATUS_OK;
    STATUS_TRY(arena_try(arena, positions, sizeof *table->steps.first, &memory, reterr));
    uint32_t *first = memory;
    STATUS_TRY(arena_try(arena, count, sizeof *table->steps.all, &memory, reterr));
    struct primitive_step *steps = memory, *step = steps;
    for (uint32_t position = 0; position < positions; position++) {
        first[position] = (uint32_t)(step - steps);
        for (uint32_t number = 0; number < table->steps.send_count[position]; number++)
            *step++ = plan_step(plan, table->item, table->lane, position, number);
    }
    table->steps.first = first;
    table->steps.all = steps;
    return STATUS_OK;
}

static void range_add(const struct plan *plan, uint32_t item, const uint32_t *wait, uint8_t lead,
                      struct lane_range *ranges, uint8_t *count)
{
    SIM_ASSERT(*count < LANE_RANGES_MAX);
    ranges[(*count)++] =
        (struct lane_range){.lead = lead,
                            .first = plan->item[item].lane_first,
                            .count = (uint8_t)plan->item[item].primitive->lane_count,
                            .portions = (uint16_t)plan_item_portions(&plan->item[item]),
                            .wait = wait};
}

/* Whether an item needs the data of another, directly or by way of others. */
static bool continues(const struct plan *plan, uint32_t item, uint32_t other)
{
    for (uint8_t at = plan->item[item].after; at != PLAN_NO_ITEM; at = plan->item[at].after)
        if (at == other) return true;
    return false;
}

/* What an item waits for, and what waits for it, piece by piece: the items whose data it continues,
 * and the one that goes first on the same dimension. */
static void waits_build(const struct plan *plan, uint32_t index, struct lane_table *table)
{
    const struct plan_item *item = &plan->item[index];
    table->chain.by_step = item->wait != NULL && item->portion_end == NULL;
    /* The nearest item first: its messages come last, so that few others need be asked. */
    for (uint32_t other = plan->item_count; other-- > 0;) {
        if (continues(plan, index, other))
            range_add(plan, other, item->after == other ? item->wait : NULL, 0, table->chain.before,
                      &table->chain.before_count);
        else if (item->turn == other)
            range_add(plan, other, NULL, item->turn_lead, table->chain.before,
                      &table->chain.before_count);
    }
    for (uint32_t other = 0; other < plan->item_count; other++) {
        const struct plan_item *at = &plan->item[other];
        if (continues(plan, other, index) || at->turn == index)
            range_add(plan, other, NULL, 0, table->chain.behind, &table->chain.behind_count);
        if (at->after == index && at->wait != NULL && at->portion_end != NULL)
            table->chain.led_by_message = true;
    }
}

/* How many arrivals of a lane those behind it may wait for: whole portions, or single messages of
 * each piece. */
static enum status awaited_build(struct arena *arena, const struct plan *plan,
                                 struct lane_table *table, struct error *reterr)
{
    uint32_t const each = table->steps.arrival_count[0], count = each * table->piece_count;
    void *memory = NULL;
    STATUS_TRY(
        arena_try(arena, (uint64_t)count + 1, sizeof *table->chain.awaited, &memory, reterr));
    bool *awaited = memory;
    for (uint32_t i = 0; each > 0 && i <= count; i += each) awaited[i] = true;
    for (uint32_t i = 0; table->chain.led_by_message && i < plan->item_count; i++) {
        const struct plan_item *behind = &plan->item[i];
        if (behind->portion_end == NULL || behind->wait == NULL) continue;
        if (&plan->item[behind->after] != table->item) continue;
        for (uint32_t piece = 0; piece < table->piece_count; piece++)
            for (uint32_t k = 0; k < behind->portion_count; k++)
                awaited[piece * each + behind->wait[k]] = true;
    }
    table->chain.awaited = awaited;
    return STATUS_OK;
}

/* A lane to a neighbour, or along a fixed route. */
static enum status lane_route(struct arena *arena, struct replay *replay, const struct plan *plan,
                              uint32_t index, struct lane_table *table, struct error *reterr)
{
    const struct plan_lane *lane = &plan->lane[index];
    const struct primitive *primitive = table->primitive;
    table->route.leg_count = lane->leg_count;
    for (uint32_t leg = 0; leg < lane->leg_count; leg++) {
        table->route.leg[leg] = lane->leg[leg];
        table->route.hop_count = (uint16_t)(table->route.hop_count + lane->leg[leg].hops);
    }
    SIM_ASSERT(table->route.hop_count >= 1 && table->route.hop_count < 1u << KEY_HOP_BITS);
    for (uint32_t step = 0; table->ring && step < lane->send_count[0]; step++)
        table->costs.units_total += primitive->step(table->size, table->lane, 0, step).units;
    return costs_build(arena, replay, plan, &plan->item[lane->item], table, reterr);
}

static enum status lane_build(struct arena *arena, struct replay *replay, const struct plan *plan,
                              uint32_t index, struct lane_table *table, struct error *reterr)
{
    const struct plan_lane *lane = &plan->lane[index];
    const struct plan_item *item = &plan->item[lane->item];
    table->primitive = item->primitive;
    table->item = item;
    table->size = item->size;
    table->lane = lane->lane;
    table->ring = plan_item_is_uniform(plan, item);
    table->waits = true;
    table->reduces = item->primitive->kind == COLLECTIVE_REDUCE_SCATTER;
    table->chain.first = item->after == PLAN_NO_ITEM;
    table->chain.last = item->last;
    table->portions = plan_item_portions(item);
    table->piece_count = item->piece_count * table->portions;
    for (uint8_t at = item->after; table->piece_count == 1 && at != PLAN_NO_ITEM;
         at = plan->item[at].after)
        table->phase++;
    table->takes_turns = table->piece_count == 1 && !item->primitive->routed;
    table->steps.send_count = lane->send_count;
    table->steps.arrival_count = lane->arrival_count;
    if (table->reduces)
        table->costs.shard_ps =
            units_duration_ps(2 * plan_item_unit_bytes(item) / item->piece_count,
                              replay->machine->chip.hbm_bytes_per_s);
    waits_build(plan, lane->item, table);
    if (table->ring && table->chain.behind_count > 0 && item->primitive->routed)
        STATUS_TRY(awaited_build(arena, plan, table, reterr));
    if (!table->ring) STATUS_TRY(positions_build(arena, replay, plan, item, table, reterr));
    STATUS_TRY(steps_build(arena, plan, table, reterr));
    if (item->primitive->routed) return routed_build(arena, replay, plan, table, reterr);
    return lane_route(arena, replay, plan, index, table, reterr);
}

static enum status plan_build_table(struct arena *arena, struct replay *replay, uint32_t index,
                                    const struct program_op *first, struct error *reterr)
{
    const struct plan *plan = &replay->program->plans[first->index];
    struct plan_table *table = &replay->lanes.plans[index];
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, plan->lane_count, sizeof *table->lane, &memory, reterr));
    *table = (struct plan_table){.plan = plan,
                                 .lane = memory,
                                 .lane_count = plan->lane_count,
                                 .index = index,
                                 .stream = first->stream};
    for (uint32_t lane = 0; lane < plan->lane_count; lane++) {
        table->lane[lane].posts = first->kind == PROGRAM_OP_SEND;
        STATUS_TRY(lane_build(arena, replay, plan, lane, &table->lane[lane], reterr));
    }
    return STATUS_OK;
}

/* Plans of a stream share lanes that mean the same: messages of a lane come in the order in which
 * they are sent, so whose they are need not be asked. Other plans have lanes of their own. */
static enum status lanes_number(struct replay *replay, struct error *reterr)
{
    struct lanes *lanes = &replay->lanes;
    for (uint32_t stream = 0; stream < replay->stream_count; stream++)
        for (uint32_t i = 0; i < lanes->plan_count; i++) {
            struct plan_table *table = &lanes->plans[i];
            uint32_t like = 0;
            if (table->stream != stream) continue;
            while (like < i && !(lanes->plans[like].stream == stream &&
                                 plan_lanes_agree(lanes->plans[like].plan, table->plan)))
                like++;
            table->lane_first = like < i ? lanes->plans[like].lane_first : lanes->count;
            if (like == i) lanes->count += table->lane_count;
        }
    if (lanes->count <= REPLAY_LANES_MAX) return STATUS_OK;
    return error_set(reterr, STATUS_LIMIT, "/run/algorithm",
                     "the collectives of the step have %u lanes of messages together; at most %d "
                     "are modelled",
                     lanes->count, REPLAY_LANES_MAX);
}

/* A plan may run on several streams, and has a table for each: lanes belong to a stream. */
enum status lanes_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct program *program = replay->program;
    uint64_t const pairs = (uint64_t)program->plan_count * program->stream_count;
    void *plans = NULL, *index = NULL;
    STATUS_TRY(arena_try(arena, pairs, sizeof *replay->lanes.plans, &plans, reterr));
    STATUS_TRY(arena_try(arena, pairs, sizeof *replay->lanes.plan_index, &index, reterr));
    replay->lanes.plans = plans;
    replay->lanes.plan_index = index;
    for (uint64_t i = 0; i < pairs; i++) replay->lanes.plan_index[i] = RUNNING_NONE;
    for (uint32_t t = 0; t < program->template_count; t++) {
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE && op->kind != PROGRAM_OP_SEND) continue;
            uint16_t *known =
                &replay->lanes.plan_index[op->stream * program->plan_count + op->index];
            if (*known != RUNNING_NONE) continue;
            if (replay->lanes.plan_count + 1 >= 1u << KEY_PLAN_BITS) {
                return error_set(reterr, STATUS_LIMIT, "/workload",
                                 "more than %u different collectives", replay->lanes.plan_count);
            }
            *known = (uint16_t)replay->lanes.plan_count;
            STATUS_TRY(plan_build_table(arena, replay, replay->lanes.plan_count++, op, reterr));
        }
    }
    return lanes_number(replay, reterr);
}

/* What follows for messages from the lane's number and links. */
static void costs_attach(const struct replay *replay, struct lane_table *lane, uint32_t port)
{
    const struct fold *fold = replay->fold;
    uint64_t const key = event_key_make(EVENT_ARRIVE, port, lane->stream, lane->number) |
                         (uint64_t)lane->plan->index << KEY_PLAN_SHIFT;
    struct message_cost *cost = lane->costs.cost;
    for (uint32_t kind = 0; kind < fold->link_class_count; kind++)
        for (uint32_t units = 0; units <= lane->costs.units_max; units++, cost++) {
            cost->latency_ps = lane->route.overhead_ps + fold->link_classes[kind].latency_ps;
            cost->arrive_key = key | units | (uint64_t)kind << KEY_CLASS_SHIFT;
            cost->differs = arrival_cost_differs(&replay->servers, cost);
        }
}

/* The steps of a light lane over all its pieces, if they are not too many. */
static enum status light_build(struct arena *arena, struct lane_table *lane, struct error *reterr)
{
    uint64_t const count = (uint64_t)lane->steps.send_count[0] * lane->piece_count;
    bool const reads_operand = lane->reduces && lane->chain.first;
    void *memory = NULL;
    if (lane->steps.all == NULL || count > steps_kept_max) return STATUS_OK;
    STATUS_TRY(arena_try(arena, count, sizeof *lane->steps.light, &memory, reterr));
    struct light_step *light = memory;
    for (uint32_t sent = 0; sent < count; sent++) {
        uint32_t piece = 0, number = 0;
        const struct primitive_step *step = next_step(lane, 0, sent, &piece, &number);
        light[sent] = (struct light_step){
            .arrivals = step_arrivals(lane, 0, step, piece),
            .wanted = reads_operand ? operand_wanted(lane, piece, step->chunks) : 0,
            .units = (uint16_t)step->units,
            .reads_operand = reads_operand,
            .asks_before = lane->chain.before_count > 0 && (number == 0 || lane->chain.by_step),
        };
    }
    lane->steps.light = light;
    return STATUS_OK;
}

static enum status lane_attach(struct arena *arena, struct replay *replay, struct plan_table *plan,
                               uint32_t index, struct error *reterr)
{
    struct lane_table *lane = &plan->lane[index];
    lane->plan = plan;
    lane->stream = (uint8_t)plan->stream;
    lane->number = (uint8_t)(plan->lane_first + index);
    lane->states = lane_at(replay, lane->number, 0);
    lane->owner.running = running_at(replay, lane->stream, 0);
    lane->owner.states = stream_at(replay, lane->stream, 0);
    lane->chain.counts =
        plan->plan->counts_buckets || (plan->plan->part_count > 1 && lane->chain.last);
    lane->route.overhead_ps =
        replay->machine->chip.launch.message_ps + plan->plan->protocol.message_ps[0];
    if (lane->routed != NULL) return STATUS_OK;
    uint32_t const port = lane->route.leg[0].port;
    lane->route.ports = &replay->grid.ports[(uint64_t)port * replay->chip_count];
    lane->route.neighbours = &replay->grid.neighbour[(uint64_t)port * replay->chip_count];
    lane->route.classes = replay->fold->link_class == NULL ? NULL : &replay->fold->link_class[port];
    lane->route.single = lane->route.hop_count == 1 && !replay->servers.may_exceed;
    costs_attach(replay, lane, port);
    bool const is_light = lane->ring && lane->route.single && !lane->posts &&
                          plan->plan->script == NULL && !replay->records.active &&
                          replay->grid.waits == NULL;
    return is_light ? light_build(arena, lane, reterr) : STATUS_OK;
}

enum status lanes_attach(struct arena *arena, struct replay *replay, struct error *reterr)
{
    for (uint32_t i = 0; i < replay->lanes.plan_count; i++)
        for (uint32_t lane = 0; lane < replay->lanes.plans[i].lane_count; lane++)
            STATUS_TRY(lane_attach(arena, replay, &replay->lanes.plans[i], lane, reterr));
    return STATUS_OK;
}
