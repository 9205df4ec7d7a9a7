/* A script as the item of a plan, and the lanes of its connections. */
#include "sim/collective/msccl.h"

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/collective/msccl_steps.h"

/* Lanes as the colours of a graph's edges: which connection, named by its sending threadblock, has
 * a lane of a GPU. */
struct colours {
    struct msccl_script *script;
    uint32_t *send;    /* [GPU · lanes + lane]: going out, */
    uint32_t *receive; /* and coming in. */
    uint32_t lanes;
};

static uint32_t free_lane(const struct colours *colours, const uint32_t *used, uint32_t gpu)
{
    uint32_t lane = 0;
    while (used[gpu * colours->lanes + lane] != msccl_none) lane++;
    SIM_ASSERT(lane < colours->lanes); /* No GPU has more connections than there are lanes. */
    return lane;
}

static void colour_set(struct colours *colours, uint32_t index, uint32_t lane)
{
    struct msccl_block *block = &colours->script->block[index];
    block->send_lane = lane;
    colours->send[block->gpu * colours->lanes + lane] = index;
    colours->receive[block->to * colours->lanes + lane] = index;
}

/* Makes lane `a` free where `gpu` receives, at the cost of `b`, which is: connections that have a
 * and b in turn, one beginning where the other ends, swap them. Such a path never comes to a GPU
 * that sends nothing in lane a (König's theorem on the edges of bipartite graphs). */
static void path_swap(struct colours *colours, uint32_t gpu, uint32_t a, uint32_t b)
{
    uint32_t path[2 * MSCCL_RANKS_MAX];
    uint32_t count = 0;
    uint32_t const lanes = colours->lanes;
    for (uint32_t at = gpu;;) {
        uint32_t const in = colours->receive[at * lanes + a];
        if (in == msccl_none) break;
        SIM_ASSERT(count + 1 < sizeof path / sizeof *path);
        path[count++] = in;
        uint32_t const out = colours->send[colours->script->block[in].gpu * lanes + b];
        if (out == msccl_none) break;
        path[count++] = out;
        at = colours->script->block[out].to;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct msccl_block *block = &colours->script->block[path[i]];
        colours->send[block->gpu * lanes + block->send_lane] = msccl_none;
        colours->receive[block->to * lanes + block->send_lane] = msccl_none;
    }
    for (uint32_t i = 0; i < count; i++) colour_set(colours, path[i], i % 2 == 0 ? b : a);
}

/* The most connections that a GPU sends over, or receives over. */
static uint32_t connections_most(const struct msccl_script *script)
{
    uint32_t sends[MSCCL_RANKS_MAX] = {0}, receives[MSCCL_RANKS_MAX] = {0};
    uint32_t most = 1;
    for (uint32_t b = 0; b < script->block_count; b++) {
        const struct msccl_block *block = &script->block[b];
        if (block->send_count == 0) continue;
        uint32_t const out = ++sends[block->gpu], in = ++receives[block->to];
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return most;
}

static void lanes_colour(struct colours *colours)
{
    struct msccl_script *script = colours->script;
    for (uint32_t i = 0; i < script->rank_count * colours->lanes; i++)
        colours->send[i] = colours->receive[i] = msccl_none;
    for (uint32_t b = 0; b < script->block_count; b++) {
        struct msccl_block *block = &script->block[b];
        if (block->send_count == 0) continue;
        uint32_t lane = 0;
        while (lane < colours->lanes &&
               (colours->send[block->gpu * colours->lanes + lane] != msccl_none ||
                colours->receive[block->to * colours->lanes + lane] != msccl_none))
            lane++;
        if (lane == colours->lanes) {
            lane = free_lane(colours, colours->send, block->gpu);
            path_swap(colours, block->to, lane, free_lane(colours, colours->receive, block->to));
        }
        colour_set(colours, b, lane);
    }
}

enum status msccl_lanes(struct arena *arena, const char *path, struct msccl_script *script,
                        struct error *reterr)
{
    uint32_t const lanes = connections_most(script);
    if (lanes > MSCCL_LANES_MAX)
        return error_set(reterr, STATUS_LIMIT, path,
                         "a GPU has %u connections one way; %d are modelled side by side", lanes,
                         MSCCL_LANES_MAX);
    uint64_t const size = (uint64_t)lanes * script->rank_count;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 4 * size, sizeof(uint32_t), &memory, reterr));
    struct colours colours = {script, memory, (uint32_t *)memory + size, lanes};
    script->lane_block = colours.send;
    script->lane_sends = colours.receive + size;
    script->lane_arrivals = script->lane_sends + size;
    lanes_colour(&colours);
    for (uint32_t b = 0; b < script->block_count; b++) {
        const struct msccl_block *block = &script->block[b];
        if (block->send_count == 0) continue;
        uint32_t const lane = block->send_lane;
        script->block[block->receiver].receive_lane = lane;
        script->lane_sends[lane * script->rank_count + block->gpu] = block->send_count;
        script->lane_arrivals[lane * script->rank_count + block->to] = block->send_count;
    }
    script->primitive = (struct primitive){
        .name = script->name,
        .help = "out of a file",
        .source = path,
        .kind = script->kind,
        .family = PRIMITIVE_MSCCL,
        .lane_count = lanes,
        .routed = true,
        .ordered = true,
    };
    return STATUS_OK;
}

static const struct msccl_step *message_step(const struct msccl_script *script, uint32_t lane,
                                             uint32_t gpu, uint32_t number)
{
    uint32_t const block = script->lane_block[gpu * script->primitive.lane_count + lane];
    SIM_ASSERT(block != msccl_none && number < script->block[block].send_count);
    return &script->step[script->send[script->block[block].send_first + number]];
}

struct primitive_step msccl_message(const struct msccl_script *script, uint32_t lane, uint32_t gpu,
                                    uint32_t number)
{
    const struct msccl_step *step = message_step(script, lane, gpu, number);
    return (struct primitive_step){
        .units = 2 * step->count,
        .move_count = step->count,
        .peer = script->block[step->block].to,
        .slot = number,
        .wait_lane = (uint8_t)lane,
    };
}

const struct msccl_wait *msccl_waits(const struct msccl_script *script, uint32_t lane, uint32_t gpu,
                                     uint32_t number, uint32_t *ret_count)
{
    const struct msccl_step *step = message_step(script, lane, gpu, number);
    *ret_count = step->wait_count;
    return &script->wait[step->wait_first];
}

/* What a request asks for besides the algorithm, which a script does not have. */
static enum status request_check(const struct msccl_script *script,
                                 const struct plan_request *request, const char *where,
                                 struct error *reterr)
{
    uint64_t const ranks = group_rank_count(&request->group);
    if (request->kind != script->kind)
        return error_set(reterr, STATUS_INVALID, where, "\"%.60s\" is an %s, and not an %s",
                         script->name, collective_kind_name(script->kind),
                         collective_kind_name(request->kind));
    if (ranks != script->rank_count)
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.60s\" is for %u GPUs, and not for %llu", script->name,
                         script->rank_count, (unsigned long long)ranks);
    if (!algorithm_is_chosen(&request->algorithm))
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.60s\" takes the place of an algorithm; \"%.40s\" is one too many",
                         script->name, algorithm_text(&request->algorithm).text);
    if (request->chunk_count > 0 || request->piece_count > 1)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "\"%.60s\" has chunks of its own: it goes neither chunk by chunk with "
                         "another op nor in pieces",
                         script->name);
    if (request->ragged.expert_count > 0)
        return error_set(reterr, STATUS_UNSUPPORTED, where,
                         "\"%.60s\" has chunks of equal size; a ragged exchange has not",
                         script->name);
    return STATUS_OK;
}

enum status msccl_compose(const struct msccl_script *script, const struct plan_request *request,
                          const char *where, struct plan *plan, struct error *reterr)
{
    STATUS_TRY(request_check(script, request, where, reterr));
    uint32_t const ranks = script->rank_count;
    uint64_t units = 2 * (uint64_t)script->chunk_count;
    if (script->kind == COLLECTIVE_ALL_TO_ALL)
        units *= ranks; /* The array is all ranks' buffers. */
    plan->script = script;
    plan->algorithm = algorithm_called(script->name);
    plan->order_count = 1;
    plan->item_count = 1;
    plan->item[0] = (struct plan_item){
        .primitive = &script->primitive,
        .after = PLAN_NO_ITEM,
        .turn = PLAN_NO_ITEM,
        .last = true,
        .flat = true,
        .size = ranks,
        .unit_bytes = (plan->size_bytes + units - 1) / units,
        .piece_count = 1,
    };
    plan->lane_count = script->primitive.lane_count;
    for (uint32_t l = 0; l < plan->lane_count; l++)
        plan->lane[l] = (struct plan_lane){
            .lane = (uint8_t)l,
            .send_count = &script->lane_sends[l * ranks],
            .arrival_count = &script->lane_arrivals[l * ranks],
        };
    return STATUS_OK;
}
