/*
 * Plays a plan on sets until nothing moves any more. What may be sent depends only on messages that
 * a step waits for (proof.h checks that), so the order in which ranks are visited here proves all
 * others as well.
 */
#include <stddef.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/collective/proof.h"
#include "sim/machine/machine.h"

/* One lane of one rank. */
struct player {
    uint32_t portion, step; /* Of its next message: portions of all pieces. */
    uint32_t arrived;       /* How many, */
    uint32_t prefix;        /* and how many of the first, in the order of their slots. */
    uint8_t *slot;          /* [portion · arrivals + slot]: how many parts have come. */
    uint32_t sender;        /* Of the first arrival; */
    uint32_t sent;          /* the number, at the sender, of the last one; */
    bool mixed;             /* several senders, or not in the order of their slots; */
    bool particular;        /* some step waits for neither none nor all of a portion. */
    uint16_t waited[PRIMITIVE_LANES_MAX]; /* By steps of this portion. */
};

struct play {
    struct proof proof;
    struct player player[PROOF_RANKS_MAX][PLAN_LANES_MAX];
};

/* Portions of all pieces, and the number of a message's among them. */
static uint32_t portions_of(const struct plan_item *item)
{
    return item->piece_count * plan_item_portions(item);
}

static uint32_t portion_of(const struct proof_message *message)
{
    return message->piece * plan_item_portions(message->item) + message->portion;
}

/* Of a rank in a lane; beyond its positions for who takes no part. */
static uint32_t position_of(const struct play *play, uint32_t rank, const struct plan_lane *lane)
{
    return play->proof.seat[lane->item][rank];
}

static uint32_t arrivals_of(const struct play *play, uint32_t rank, const struct plan_lane *lane)
{
    return lane->arrival_count[position_of(play, rank, lane)];
}

/* Whether every lane of an item has got all messages of `portions` portions at a rank, and `more`
 * on top. */
static bool has_arrived(const struct play *play, uint32_t rank, uint32_t item, uint32_t portions,
                        uint32_t more)
{
    const struct plan *plan = play->proof.plan;
    for (uint32_t l = 0; l < plan->item[item].primitive->lane_count; l++) {
        uint32_t const index = plan->item[item].lane_first + l;
        uint32_t const each = arrivals_of(play, rank, &plan->lane[index]);
        if (play->player[rank][index].prefix < portions * each + more) return false;
    }
    return true;
}

/* Whether a piece of an item, and of what it continues, has fully arrived at a rank. */
static bool is_complete(const struct play *play, uint32_t rank, uint32_t item, uint32_t piece)
{
    const struct plan *plan = play->proof.plan;
    for (uint32_t at = item; at != PLAN_NO_ITEM; at = plan->item[at].after)
        if (!has_arrived(play, rank, at, (piece + 1) * plan_item_portions(&plan->item[at]), 0))
            return false;
    return true;
}

/* Whether what a message passes on has arrived: all that its item continues, but of the one just
 * before no more than it says. */
static bool has_come(const struct play *play, const struct proof_message *message)
{
    const struct plan_item *item = message->item;
    const struct plan *plan = play->proof.plan;
    if (item->after == PLAN_NO_ITEM) return true;
    uint32_t const rank = message->from, piece = message->piece;
    if (item->wait == NULL) return is_complete(play, rank, item->after, piece);
    const struct plan_item *before = &plan->item[item->after];
    bool const enough =
        item->portion_end != NULL
            ? has_arrived(play, rank, item->after, piece, item->wait[message->portion])
            : has_arrived(play, rank, item->after,
                          piece * plan_item_portions(before) + item->wait[message->step], 0);
    return enough &&
           (before->after == PLAN_NO_ITEM || is_complete(play, rank, before->after, piece));
}

bool proof_legs(const struct proof *proof, uint32_t rank, const struct plan_lane *lane,
                uint32_t *ret_receiver)
{
    const struct plan *plan = proof->plan;
    const struct primitive *primitive = plan->item[lane->item].primitive;
    uint32_t at[MACHINE_AXES_MAX];
    memcpy(at, proof->at[rank], sizeof at);
    for (uint32_t g = 0; g < lane->leg_count; g++) {
        uint32_t d = 0;
        while (d < plan->group.dimension_count &&
               plan->group.dimension[d].axis != lane->leg[g].port / 2u)
            d++;
        if (d == plan->group.dimension_count) return false;
        const struct group_dimension *dimension = &plan->group.dimension[d];
        uint32_t const own = group_position(dimension, at[dimension->axis]);
        bool const closes =
            primitive->kind == COLLECTIVE_PERMUTE ? dimension->ring : primitive->ring;
        uint32_t const members = lane->leg[g].hops / dimension->stride;
        bool const backward = lane->leg[g].port % 2 != 0;
        if (lane->leg[g].hops % dimension->stride != 0 || members == 0) return false;
        if (members >= dimension->size) return false;
        uint32_t const to = backward ? own + dimension->size - members : own + members;
        bool const wraps = backward ? to < dimension->size : to >= dimension->size;
        if (wraps && !closes) return false;
        at[dimension->axis] = to % dimension->size * dimension->stride;
    }
    *ret_receiver = proof_rank(proof, at);
    return true;
}

/* Whom a message is for; false: nobody, or the sender itself. */
static bool receiver_find(const struct play *play, struct proof_message *message)
{
    const struct plan_item *item = message->item;
    if (!item->primitive->routed)
        return proof_legs(&play->proof, message->from, message->lane, &message->to);
    if (message->lane->leg_count != 0 || message->content.peer >= item->size) return false;
    uint32_t at[MACHINE_AXES_MAX];
    plan_item_peer(play->proof.plan, item, play->proof.at[message->from], message->content.peer,
                   at);
    message->to = proof_rank(&play->proof, at);
    return message->to != message->from;
}

/* A producer that computes chunks in the primitive's order must have this one ready. */
static enum status chunks_check(struct play *play, const struct proof_message *message)
{
    const struct plan *plan = play->proof.plan;
    const struct plan_item *item = message->item;
    uint32_t const position = position_of(play, message->from, message->lane);
    if (item->primitive->kind != COLLECTIVE_REDUCE_SCATTER) return STATUS_OK;
    if (message->content.chunks > item->size)
        return proof_refuse(&play->proof, message, "waits for %u chunks of %u",
                            message->content.chunks, item->size);
    for (uint32_t m = 0; m < message->content.move_count; m++) {
        uint32_t const chunk =
            proof_move(plan, item, message->lane->lane, position, message->step, m).destination;
        uint32_t index = 0;
        while (index < item->size && proof_chunk_at(plan, item, position, index) != chunk) index++;
        if (index >= message->content.chunks)
            return proof_refuse(&play->proof, message,
                                "sends chunk %u, which is computed as number %u, after %u", chunk,
                                index, message->content.chunks);
    }
    return STATUS_OK;
}

/* Other members of the message's item: ranks that differ from the sender in no other dimension. */
static bool is_member(const struct play *play, const struct proof_message *message, uint32_t rank)
{
    uint32_t const covered = proof_covered(play->proof.plan, message->item);
    for (uint32_t d = 0; d < play->proof.plan->group.dimension_count; d++)
        if ((covered >> d & 1) == 0 &&
            play->proof.digit[rank][d] != play->proof.digit[message->from][d])
            return false;
    return true;
}

/* Notes an arrival in its slot: the last of `parts` that make it up. */
static enum status slot_fill(struct play *play, struct proof_message *message, uint32_t slot,
                             uint32_t parts)
{
    struct player *receiver = &play->player[message->to][message->lane - play->proof.plan->lane];
    uint32_t const each = arrivals_of(play, message->to, message->lane);
    if (slot >= each)
        return proof_refuse(&play->proof, message, "rank %u expects %u messages a piece",
                            message->to, each);
    uint32_t const portion = portion_of(message);
    uint32_t const number = portion * each + slot;
    if (receiver->slot[number] == parts)
        return proof_refuse(&play->proof, message, "is arrival %u of rank %u, which has come", slot,
                            message->to);
    message->index = slot + 1;
    receiver->slot[number]++;
    if (receiver->slot[number] < parts) return STATUS_OK;
    uint32_t const sent =
        portion * message->lane->send_count[position_of(play, message->from, message->lane)] +
        message->step;
    if (receiver->arrived == 0) receiver->sender = message->from;
    receiver->mixed = receiver->mixed || receiver->sender != message->from ||
                      number != receiver->arrived ||
                      (receiver->arrived > 0 && sent < receiver->sent);
    receiver->sent = sent;
    receiver->arrived++;
    uint32_t const expected = each * portions_of(message->item);
    while (receiver->prefix < expected && receiver->slot[receiver->prefix] == parts)
        receiver->prefix++;
    return STATUS_OK;
}

static enum status deliver_one(struct play *play, struct proof_message *message)
{
    const struct plan *plan = play->proof.plan;
    bool const summed = message->item->primitive->network == PRIMITIVE_NETWORK_REDUCE;
    if (!receiver_find(play, message))
        return proof_refuse(&play->proof, message, "there is nobody where it sends");
    const struct player *receiver = &play->player[message->to][message->lane - plan->lane];
    uint32_t const each = arrivals_of(play, message->to, message->lane);
    uint32_t slot = message->content.slot;
    if (!message->item->primitive->routed) {
        if (each == 0 || receiver->arrived / each != portion_of(message))
            return proof_refuse(&play->proof, message, "rank %u expects %u messages a piece",
                                message->to, each);
        slot = receiver->arrived - portion_of(message) * each;
    }
    STATUS_TRY(slot_fill(play, message, slot, summed ? message->item->size - 1 : 1));
    return proof_deliver(&play->proof, message);
}

static enum status deliver_copies(struct play *play, struct proof_message *message)
{
    const struct plan *plan = play->proof.plan;
    for (uint32_t r = 0; r < play->proof.rank_count; r++) {
        if (r == message->from || !is_member(play, message, r)) continue;
        message->to = r;
        uint32_t const each = arrivals_of(play, r, message->lane);
        uint32_t const before = portion_of(message) * each;
        const struct player *receiver = &play->player[r][message->lane - plan->lane];
        uint32_t slot = 0; /* Copies have no order: the next free one, known only when all came. */
        while (slot < each && receiver->slot[before + slot] != 0) slot++;
        STATUS_TRY(slot_fill(play, message, slot, 1));
        message->index = each;
        STATUS_TRY(proof_deliver(&play->proof, message));
    }
    return STATUS_OK;
}

/* The sum is there when every member has sent its part. */
static enum status deliver_sum(struct play *play, const struct proof_message *message)
{
    const struct plan *plan = play->proof.plan;
    uint32_t const lane = (uint32_t)(message->lane - plan->lane);
    struct proof_message all[PROOF_RANKS_MAX];
    uint32_t count = 0;
    for (uint32_t r = 0; r < play->proof.rank_count; r++) {
        if (!is_member(play, message, r)) continue;
        all[count] = *message;
        all[count].from = all[count].to = r;
        all[count].content = plan_step(plan, message->item, message->lane->lane,
                                       position_of(play, r, message->lane), message->step);
        memcpy(all[count].waited, play->player[r][lane].waited, sizeof all[count].waited);
        STATUS_TRY(slot_fill(play, &all[count++], message->content.slot, message->item->size));
    }
    uint32_t const each = arrivals_of(play, message->from, message->lane);
    uint32_t const number = portion_of(message) * each + message->content.slot;
    bool const last = play->player[message->from][lane].slot[number] == message->item->size;
    return last ? proof_all_reduce(&play->proof, all, count) : STATUS_OK;
}

static enum status deliver(struct play *play, struct proof_message *message)
{
    enum primitive_network const network = message->item->primitive->network;
    bool const to_all =
        network == PRIMITIVE_NETWORK_MULTICAST || network == PRIMITIVE_NETWORK_ALL_REDUCE;
    if (to_all && message->content.peer != primitive_any)
        return proof_refuse(&play->proof, message, "names a receiver where switches send to all");
    if (network == PRIMITIVE_NETWORK_MULTICAST) return deliver_copies(play, message);
    if (network == PRIMITIVE_NETWORK_ALL_REDUCE) return deliver_sum(play, message);
    return deliver_one(play, message);
}

/* Whether all that a step waits for has come; what it waits for stays so for those after it. */
static enum status wait_check(struct play *play, struct proof_message *message, bool *ret_ready)
{
    const struct plan *plan = play->proof.plan;
    const struct primitive *primitive = message->item->primitive;
    uint32_t const own = (uint32_t)(message->lane - plan->lane);
    uint32_t const wait_lane = primitive->routed ? message->content.wait_lane : message->lane->lane;
    uint32_t const wanted = message->content.arrivals;
    *ret_ready = false;
    if (wait_lane >= primitive->lane_count)
        return proof_refuse(&play->proof, message, "waits for lane %u of %u", wait_lane,
                            primitive->lane_count);
    uint32_t const index = message->item->lane_first + wait_lane;
    struct player *waited = &play->player[message->from][index];
    uint32_t const each = arrivals_of(play, message->from, &plan->lane[index]);
    waited->particular = waited->particular || (wanted > 0 && wanted < each);
    if (waited->prefix < portion_of(message) * each + wanted) return STATUS_OK;
    struct player *player = &play->player[message->from][own];
    if (wanted > player->waited[wait_lane]) player->waited[wait_lane] = (uint16_t)wanted;
    memcpy(message->waited, player->waited, sizeof message->waited);
    *ret_ready = true;
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
    if (lane->send_count[position] == 0 || player->portion == portions_of(item)) return STATUS_OK;
    struct proof_message message = {
        .item = item,
        .lane = lane,
        .from = rank,
        .piece = player->portion / plan_item_portions(item),
        .portion = player->portion % plan_item_portions(item),
        .step = player->step,
        .content = plan_step(plan, item, lane->lane, position, player->step),
    };
    message.content.units =
        plan_step_units(plan, item, &message.content, play->proof.at[rank], message.piece);
    if (!has_come(play, &message)) return STATUS_OK;
    if (item->turn != PLAN_NO_ITEM && message.piece >= item->turn_lead &&
        !is_complete(play, rank, item->turn, message.piece - item->turn_lead))
        return STATUS_OK;
    bool ready = false;
    STATUS_TRY(wait_check(play, &message, &ready));
    if (!ready) return STATUS_OK;
    STATUS_TRY(chunks_check(play, &message));
    STATUS_TRY(deliver(play, &message));
    if (++player->step == lane->send_count[position]) {
        player->step = 0;
        player->portion++;
        memset(player->waited, 0, sizeof player->waited);
    }
    *ret_moved = true;
    return STATUS_OK;
}

/* Nobody is left waiting, everybody got as many messages as announced, and where they are only
 * counted, counting them is enough. */
static enum status end_check(const struct play *play, struct error *reterr)
{
    const struct plan *plan = play->proof.plan;
    for (uint32_t r = 0; r < play->proof.rank_count; r++)
        for (uint32_t l = 0; l < plan->lane_count; l++) {
            const struct plan_lane *lane = &plan->lane[l];
            const struct plan_item *item = &plan->item[lane->item];
            const struct player *player = &play->player[r][l];
            uint32_t const expected = arrivals_of(play, r, lane) * portions_of(item);
            if (lane->send_count[position_of(play, r, lane)] > 0 &&
                player->portion < portions_of(item))
                return error_set(reterr, STATUS_STUCK, play->proof.where,
                                 "item %u (%s), lane %u: rank %u waits for ever to send step %u "
                                 "of piece %u",
                                 lane->item, item->primitive->name, lane->lane, r, player->step,
                                 player->portion / plan_item_portions(item));
            if (player->arrived != expected)
                return error_set(reterr, STATUS_INVALID, play->proof.where,
                                 "item %u (%s), lane %u: rank %u got %u messages and expects %u",
                                 lane->item, item->primitive->name, lane->lane, r, player->arrived,
                                 expected);
            if (item->primitive->routed && !item->primitive->ordered && player->particular &&
                player->mixed)
                return error_set(reterr, STATUS_INVALID, play->proof.where,
                                 "item %u (%s), lane %u: rank %u waits for some of what several "
                                 "ranks send, and the primitive does not say that it is ordered",
                                 lane->item, item->primitive->name, lane->lane, r);
        }
    return STATUS_OK;
}

static enum status slots_create(struct arena *arena, struct play *play, struct error *reterr)
{
    const struct plan *plan = play->proof.plan;
    for (uint32_t r = 0; r < play->proof.rank_count; r++)
        for (uint32_t l = 0; l < plan->lane_count; l++) {
            const struct plan_lane *lane = &plan->lane[l];
            uint64_t const count =
                (uint64_t)arrivals_of(play, r, lane) * portions_of(&plan->item[lane->item]);
            void *memory = NULL;
            STATUS_TRY(arena_try(arena, count + 1, 1, &memory, reterr));
            play->player[r][l].slot = memory;
        }
    return STATUS_OK;
}

enum status proof_play(struct arena *arena, const struct plan *plan, const char *where,
                       struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(proof_forms(plan, where, reterr));
    STATUS_TRY(arena_try(arena, 1, sizeof(struct play), &memory, reterr));
    struct play *play = memory;
    STATUS_TRY(proof_create(arena, plan, where, &play->proof, reterr));
    STATUS_TRY(slots_create(arena, play, reterr));
    if (plan->ragged_units != NULL) STATUS_TRY(proof_ragged(arena, &play->proof));
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
