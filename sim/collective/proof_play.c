/*
 * Plays a plan on sets until nothing moves any more. What may be sent depends only on messages that
 * a step waits for (proof.h checks that), so the order in which ranks are visited here proves all
 * others as well.
 */
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/collective/proof.h"
#include "sim/machine/machine.h"

/* One lane of one rank. */
struct player {
    uint32_t piece, step; /* Of its next message. */
    uint32_t arrived;
};

struct play {
    struct proof proof;
    struct player player[PROOF_RANKS_MAX][PLAN_LANES_MAX];
};

static uint32_t position_of(const struct play *play, uint32_t rank, const struct plan_lane *lane)
{
    return play->proof.position[rank][play->proof.plan->item[lane->item].dimension];
}

/* Whether a piece of an item has fully arrived at a rank. */
static bool is_complete(const struct play *play, uint32_t rank, uint32_t item, uint32_t piece)
{
    const struct plan *plan = play->proof.plan;
    for (uint32_t l = 0; l < plan->item[item].primitive->lane_count; l++) {
        uint32_t const index = plan->item[item].lane_first + l;
        const struct plan_lane *lane = &plan->lane[index];
        uint32_t const arrivals = lane->arrival_count[position_of(play, rank, lane)];
        if (play->player[rank][index].arrived < (piece + 1) * arrivals) return false;
    }
    return true;
}

/* Follows the legs from the sender. False: they leave the machine, or end between members. */
static bool receiver_find(const struct play *play, uint32_t rank, const struct plan_lane *lane,
                          uint32_t *ret_receiver)
{
    const struct plan *plan = play->proof.plan;
    const struct primitive *primitive = plan->item[lane->item].primitive;
    uint32_t at[GROUP_DIMENSIONS_MAX];
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) at[d] = play->proof.position[rank][d];
    for (uint32_t g = 0; g < lane->leg_count; g++) {
        uint32_t d = 0;
        while (d < plan->group.dimension_count &&
               plan->group.dimension[d].axis != lane->leg[g].port / 2u)
            d++;
        if (d == plan->group.dimension_count) return false;
        const struct group_dimension *dimension = &plan->group.dimension[d];
        bool const closes =
            primitive->kind == COLLECTIVE_PERMUTE ? dimension->ring : primitive->ring;
        uint32_t const members = lane->leg[g].hops / dimension->stride;
        bool const backward = lane->leg[g].port % 2 != 0;
        if (lane->leg[g].hops % dimension->stride != 0 || members == 0) return false;
        if (members >= dimension->size) return false;
        uint32_t const to = backward ? at[d] + dimension->size - members : at[d] + members;
        bool const wraps = backward ? to < dimension->size : to >= dimension->size;
        if (wraps && !closes) return false;
        at[d] = to % dimension->size;
    }
    *ret_receiver = proof_rank(&play->proof, at);
    return true;
}

/* A producer that computes chunks in the primitive's order must have this one ready. */
static enum status chunks_check(struct play *play, const struct proof_message *message)
{
    const struct primitive *primitive = message->item->primitive;
    uint32_t const size = play->proof.plan->group.dimension[message->item->dimension].size;
    uint32_t const position = play->proof.position[message->from][message->item->dimension];
    if (primitive->kind != COLLECTIVE_REDUCE_SCATTER) return STATUS_OK;
    if (message->content.chunks > size)
        return proof_refuse(&play->proof, message, "waits for %u chunks of %u",
                            message->content.chunks, size);
    for (uint32_t m = 0; m < message->content.move_count; m++) {
        uint32_t const chunk =
            primitive->move(size, message->lane->lane, position, message->step, m).destination;
        uint32_t index = 0;
        while (index < size && primitive->chunk_at(size, position, index) != chunk) index++;
        if (index >= message->content.chunks)
            return proof_refuse(&play->proof, message,
                                "sends chunk %u, which is computed as number %u, after %u", chunk,
                                index, message->content.chunks);
    }
    return STATUS_OK;
}

/* Sends the next message of a lane, if it may go. */
static enum status player_step(struct play *play, uint32_t rank, uint32_t lane_index,
                               bool *ret_moved)
{
    const struct plan *plan = play->proof.plan;
    const struct plan_lane *lane = &plan->lane[lane_index];
    const struct plan_item *item = &plan->item[lane->item];
    struct player *player = &play->player[rank][lane_index];
    uint32_t const position = position_of(play, rank, lane);
    uint32_t const size = plan->group.dimension[item->dimension].size;
    if (lane->send_count[position] == 0 || player->piece == item->piece_count) return STATUS_OK;
    if (item->after != PLAN_NO_ITEM && !is_complete(play, rank, item->after, player->piece))
        return STATUS_OK;
    if (item->turn != PLAN_NO_ITEM && !is_complete(play, rank, item->turn, player->piece))
        return STATUS_OK;
    struct proof_message message = {
        .item = item,
        .lane = lane,
        .from = rank,
        .piece = player->piece,
        .step = player->step,
        .content = item->primitive->step(size, lane->lane, position, player->step),
    };
    uint32_t const arrivals = lane->arrival_count[position];
    if (player->arrived < player->piece * arrivals + message.content.arrivals) return STATUS_OK;
    if (!receiver_find(play, rank, lane, &message.to))
        return proof_refuse(&play->proof, &message, "there is nobody where it sends");
    struct player *receiver = &play->player[message.to][lane_index];
    uint32_t const expected = lane->arrival_count[position_of(play, message.to, lane)];
    message.index = receiver->arrived + 1 - player->piece * expected;
    if (message.index == 0 || message.index > expected)
        return proof_refuse(&play->proof, &message, "rank %u expects %u messages a piece",
                            message.to, expected);
    STATUS_TRY(chunks_check(play, &message));
    STATUS_TRY(proof_deliver(&play->proof, &message));
    receiver->arrived++;
    if (++player->step == lane->send_count[position]) {
        player->step = 0;
        player->piece++;
    }
    *ret_moved = true;
    return STATUS_OK;
}

/* Nobody is left waiting, and everybody got as many messages as announced. */
static enum status end_check(const struct play *play, struct error *reterr)
{
    const struct plan *plan = play->proof.plan;
    for (uint32_t r = 0; r < play->proof.rank_count; r++)
        for (uint32_t l = 0; l < plan->lane_count; l++) {
            const struct plan_lane *lane = &plan->lane[l];
            const struct plan_item *item = &plan->item[lane->item];
            const struct player *player = &play->player[r][l];
            uint32_t const position = position_of(play, r, lane);
            if (lane->send_count[position] > 0 && player->piece < item->piece_count)
                return error_set(reterr, STATUS_STUCK, play->proof.where,
                                 "item %u (%s), lane %u: rank %u waits for ever to send step %u "
                                 "of piece %u",
                                 lane->item, item->primitive->name, lane->lane, r, player->step,
                                 player->piece);
            if (player->arrived != lane->arrival_count[position] * item->piece_count)
                return error_set(reterr, STATUS_INVALID, play->proof.where,
                                 "item %u (%s), lane %u: rank %u got %u messages and expects %u",
                                 lane->item, item->primitive->name, lane->lane, r, player->arrived,
                                 lane->arrival_count[position] * item->piece_count);
        }
    return STATUS_OK;
}

/* The order in which chunks are computed names each once. */
static enum status orders_check(const struct plan *plan, const char *where, struct error *reterr)
{
    for (uint32_t i = 0; i < plan->item_count; i++) {
        const struct primitive *primitive = plan->item[i].primitive;
        uint32_t const size = plan->group.dimension[plan->item[i].dimension].size;
        if (primitive->kind != COLLECTIVE_REDUCE_SCATTER) continue;
        for (uint32_t at = 0; at < size; at++) {
            uint64_t seen = 0;
            for (uint32_t k = 0; k < size; k++) {
                uint32_t const chunk = primitive->chunk_at(size, at, k);
                if (chunk >= size || (seen >> chunk & 1) != 0)
                    return error_set(reterr, STATUS_INVALID, where,
                                     "%s: position %u computes chunk %u twice or in vain",
                                     primitive->name, at, chunk);
                seen |= UINT64_C(1) << chunk;
            }
        }
    }
    return STATUS_OK;
}

static enum status play_whole(struct arena *arena, const struct plan *plan, const char *where,
                              struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(orders_check(plan, where, reterr));
    STATUS_TRY(arena_try(arena, 1, sizeof(struct play), &memory, reterr));
    struct play *play = memory;
    STATUS_TRY(proof_create(arena, plan, where, &play->proof, reterr));
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t r = 0; r < play->proof.rank_count; r++)
            for (uint32_t l = 0; l < plan->lane_count; l++)
                for (bool again = true; again; moved = moved || again) {
                    again = false;
                    STATUS_TRY(player_step(play, r, l, &again));
                }
    }
    STATUS_TRY(end_check(play, reterr));
    return proof_end(&play->proof);
}

/* Bytes of the array that all pieces of an item carry; the chunk of a gather has grown by the
 * dimensions before it, that of a reduction shrinks by those that follow. */
static units_wide item_share_bytes(const struct plan *plan, const struct plan_item *item,
                                   uint64_t *ret_rest)
{
    units_wide const all = (units_wide)item->unit_bytes * 2 * item->piece_count;
    units_wide const share = all * group_rank_count(&plan->group);
    uint32_t covered = 1u << item->dimension;
    uint64_t grown = 1;
    for (uint32_t at = item->after; at != PLAN_NO_ITEM; at = plan->item[at].after) {
        if (plan->item[at].primitive->kind != item->primitive->kind) continue;
        covered |= 1u << plan->item[at].dimension;
        if (item->primitive->kind == COLLECTIVE_ALL_GATHER)
            grown *= plan->group.dimension[plan->item[at].dimension].size;
    }
    if (item->primitive->kind == COLLECTIVE_REDUCE_SCATTER)
        for (uint32_t d = 0; d < plan->group.dimension_count; d++)
            if ((covered >> d & 1) == 0) grown *= plan->group.dimension[d].size;
    *ret_rest = item->unit_bytes % grown;
    if (item->primitive->kind == COLLECTIVE_ALL_TO_ALL)
        return share * plan->group.dimension[item->dimension].size;
    return share / grown;
}

/* The shares of all orders make up the array, and no more than rounding adds. */
static enum status bytes_check(const struct plan *plan, const char *where, struct error *reterr)
{
    uint64_t const rank_count = group_rank_count(&plan->group);
    for (uint32_t first = 0; first < plan->item_count; first++) {
        units_wide sum = 0, padding = 0;
        for (uint32_t i = 0; i < plan->item_count; i++) {
            const struct plan_item *item = &plan->item[i];
            if (item->dimension != plan->item[first].dimension ||
                item->primitive->kind != plan->item[first].primitive->kind)
                continue;
            uint64_t rest = 0;
            sum += item_share_bytes(plan, item, &rest);
            padding += 2 * rank_count * item->piece_count *
                       (item->primitive->kind == COLLECTIVE_ALL_TO_ALL
                            ? plan->group.dimension[item->dimension].size
                            : 1);
            if (rest != 0 || item->piece_count != plan->item[0].piece_count)
                return error_set(reterr, STATUS_INVALID, where,
                                 "item %u: chunks are not whole multiples of those before", i);
        }
        if (sum < plan->size_bytes || sum >= plan->size_bytes + padding)
            return error_set(reterr, STATUS_INVALID, where,
                             "dimension %u carries %llu bytes of %llu", plan->item[first].dimension,
                             (unsigned long long)sum, (unsigned long long)plan->size_bytes);
    }
    return STATUS_OK;
}

/* A permute is proved by its legs alone: everybody who has a target sends to it, and only they. */
static enum status permute_check(const struct plan *plan, const char *where, struct error *reterr)
{
    const struct plan_lane *lane = &plan->lane[0];
    uint32_t const rank_count = (uint32_t)group_rank_count(&plan->group);
    struct play play = {.proof = {.plan = plan, .rank_count = rank_count}};
    for (uint32_t r = 0; r < rank_count; r++) {
        uint32_t to[GROUP_DIMENSIONS_MAX] = {0}, rest = r;
        bool exists = true;
        for (uint32_t d = plan->group.dimension_count; d-- > 0;) {
            const struct group_dimension *dimension = &plan->group.dimension[d];
            int64_t const size = dimension->size;
            play.proof.position[r][d] = rest % dimension->size;
            rest /= dimension->size;
            int64_t const at = (int64_t)play.proof.position[r][d] + plan->offset[d];
            exists = exists && (dimension->ring || (at >= 0 && at < size));
            to[d] = (uint32_t)((at % size + size) % size);
        }
        if (plan->item_count == 0) continue;
        uint32_t receiver = 0;
        bool const reaches = receiver_find(&play, r, lane, &receiver);
        bool const sends = lane->send_count[position_of(&play, r, lane)] == 1;
        if (sends != exists || reaches != exists ||
            (exists && receiver != proof_rank(&play.proof, to)))
            return error_set(reterr, STATUS_INVALID, where, "rank %u does not send where it should",
                             r);
    }
    return STATUS_OK;
}

enum status plan_check(const struct plan *plan, struct error *reterr)
{
    const char *const where = collective_kind_name(plan->kind);
    uint64_t const rank_count = group_rank_count(&plan->group);
    if (rank_count > PROOF_RANKS_MAX)
        return error_set(reterr, STATUS_LIMIT, where, "%llu ranks are more than the proof's %u",
                         (unsigned long long)rank_count, PROOF_RANKS_MAX);
    if (rank_count == 1) return STATUS_OK;
    if (plan->kind == COLLECTIVE_PERMUTE)
        STATUS_TRY(permute_check(plan, where, reterr));
    else
        STATUS_TRY(bytes_check(plan, where, reterr));
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for the proof");
    enum status const status = play_whole(arena, plan, where, reterr);
    arena_destroy(arena);
    return status;
}

enum status primitive_check(const struct primitive *primitive, uint32_t size, struct error *reterr)
{
    const char *const where = primitive->name;
    if (size < 2 || size > PROOF_RANKS_MAX || primitive->lane_count < 1 ||
        primitive->lane_count > PRIMITIVE_LANES_MAX)
        return error_set(reterr, STATUS_LIMIT, where, "size %u is not between 2 and %u, or no lane",
                         size, PROOF_RANKS_MAX);
    uint32_t counts[PRIMITIVE_LANES_MAX][2][PROOF_RANKS_MAX];
    struct plan plan = {
        .kind = primitive->kind,
        .group = {{{.size = size, .stride = 1, .ring = primitive->ring}}, 1},
        .item = {{.primitive = primitive,
                  .after = PLAN_NO_ITEM,
                  .turn = PLAN_NO_ITEM,
                  .last = true,
                  .piece_count = 1}},
        .item_count = 1,
        .lane_count = primitive->lane_count,
        .order_count = 1,
    };
    for (uint32_t l = 0; l < primitive->lane_count; l++) {
        for (uint32_t at = 0; at < size; at++) {
            counts[l][0][at] = primitive->send_count(size, l, at);
            counts[l][1][at] = primitive->arrival_count(size, l, at);
        }
        plan.lane[l] = (struct plan_lane){
            .lane = (uint8_t)l,
            .leg_count = 1,
            .leg = {{(uint8_t)machine_port(0, l == 1), 1}},
            .send_count = counts[l][0],
            .arrival_count = counts[l][1],
        };
    }
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_set(reterr, STATUS_NO_MEMORY, where, "no memory for the proof");
    enum status const status = play_whole(arena, &plan, where, reterr);
    arena_destroy(arena);
    return status;
}
