#include "sim/collective/proof.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"

enum { ENTRIES_BEGIN = 4096 };

/* Ranks of a box: those at the given digits. */
struct box {
    uint8_t rank[PROOF_RANKS_MAX];
    uint32_t count;
};

/* What a message does with an atom. */
enum effect { EFFECT_COPY, EFFECT_ADD, EFFECT_GIVE };

uint32_t proof_rank(const struct proof *proof, const uint32_t at[MACHINE_AXES_MAX])
{
    uint32_t rank = 0;
    for (uint32_t d = 0; d < proof->plan->group.dimension_count; d++) {
        const struct group_dimension *dimension = &proof->plan->group.dimension[d];
        rank = rank * dimension->size + group_position(dimension, at[dimension->axis]);
    }
    return rank;
}

static uint32_t item_index(const struct proof *proof, const struct proof_message *message)
{
    return (uint32_t)(message->item - proof->plan->item);
}

/* The ranks at a position of the message's item; in those other dimensions that `own` names only
 * where the sender is. */
static void box_fill(const struct proof *proof, const struct proof_message *message,
                     uint32_t position, uint32_t own, struct box *ret_box)
{
    uint32_t const item = item_index(proof, message);
    uint32_t const mask = proof->digits_mask[own & ~proof_covered(proof->plan, message->item) &
                                             (PROOF_HALVINGS_MAX - 1)];
    uint32_t const digits = proof->digits[message->from] & mask;
    ret_box->count = 0;
    for (uint32_t r = 0; r < proof->rank_count; r++)
        if (proof->position[item][r] == position && (proof->digits[r] & mask) == digits)
            ret_box->rank[ret_box->count++] = (uint8_t)r;
}

static uint64_t atom_index(const struct proof *proof, const struct proof_message *message,
                           uint32_t a, uint32_t b, uint32_t halving)
{
    uint32_t const n = proof->rank_count;
    uint64_t const set =
        (uint64_t)message->item->order * message->item->piece_count + message->piece;
    return ((set * n + a) * n + b) * proof->halvings + halving;
}

enum status proof_refuse(struct proof *proof, const struct proof_message *message,
                         const char *format, ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return error_set(proof->reterr, STATUS_INVALID, proof->where,
                     "item %u (%s), piece %u, lane %u, rank %u, step %u: %s",
                     item_index(proof, message), message->item->primitive->name, message->piece,
                     message->lane->lane, message->from, message->step, reason);
}

static bool is_before(const struct plan *plan, uint32_t item, uint32_t other)
{
    for (uint32_t at = plan->item[item].after; at != PLAN_NO_ITEM; at = plan->item[at].after)
        if (at == other) return true;
    return false;
}

/* Nodes are counted as the exchange between them goes (level_overlap.h). */
bool proof_carries(const struct proof *proof, const struct proof_message *message, uint32_t rank)
{
    const struct plan_item *item = message->item;
    if (item->portion_end == NULL) return true;
    uint32_t const dimension = item->portion_dimension;
    uint32_t const nodes = proof->plan->group.dimension[dimension].size;
    uint32_t const own = proof->digit[message->from][dimension];
    uint32_t const other = proof->digit[rank][dimension];
    uint32_t const number = item->primitive->kind == COLLECTIVE_REDUCE_SCATTER
                                ? (other + 2 * nodes - own - 1) % nodes
                                : (own + nodes - other) % nodes;
    uint32_t const end = item->portion_end[message->portion];
    return number < end && number >= end - plan_item_portion_size(item, message->portion);
}

/* Whether what a message of the item before brought is there for sure. */
static bool is_passed_on(const struct proof_message *message, struct proof_tag tag)
{
    const struct plan_item *item = message->item;
    if (item->wait == NULL) return true;
    if (item->portion_end == NULL) return tag.portion < item->wait[message->step];
    return tag.index <= item->wait[message->portion];
}

/* Whether what a message brought is there for sure when the step begins. */
static bool is_waited_for(const struct proof *proof, const struct proof_message *message,
                          struct proof_tag tag)
{
    uint32_t const item = item_index(proof, message);
    if (tag.index == 0) return true;
    if (tag.item == proof->plan->item[item].after) return is_passed_on(message, tag);
    if (tag.item != item) return is_before(proof->plan, item, tag.item);
    return tag.portion == message->portion && tag.index <= message->waited[tag.lane];
}

static struct proof_tag tag_of(const struct proof *proof, const struct proof_message *message)
{
    return (struct proof_tag){(uint8_t)item_index(proof, message), message->lane->lane,
                              (uint8_t)message->portion, (uint16_t)message->index};
}

/* Whose contributions are in an atom: in all, and of those for sure when the step begins. */
static uint64_t atom_who(const struct proof *proof, const struct proof_atom *atom,
                         const struct proof_message *message, uint64_t *ret_sure)
{
    uint64_t who = atom->who, sure = atom->who;
    for (uint32_t e = atom->entry; e != 0; e = proof->entry[e].next) {
        who |= proof->entry[e].who;
        if (message != NULL && is_waited_for(proof, message, proof->entry[e].tag))
            sure |= proof->entry[e].who;
    }
    if (ret_sure != NULL) *ret_sure = sure;
    return who;
}

static enum status atom_add(struct proof *proof, const struct proof_message *message,
                            struct proof_atom *atom, uint64_t who)
{
    if (proof->entry_count == proof->entry_capacity) {
        uint32_t const capacity =
            proof->entry_capacity == 0 ? ENTRIES_BEGIN : 2 * proof->entry_capacity;
        void *memory = NULL;
        STATUS_TRY(arena_try(proof->arena, capacity, sizeof *proof->entry, &memory, proof->reterr));
        if (proof->entry_count > 0)
            memcpy(memory, proof->entry, proof->entry_count * sizeof *proof->entry);
        proof->entry = memory;
        proof->entry_capacity = capacity;
        if (proof->entry_count == 0) proof->entry_count = 1; /* 0 is none. */
    }
    proof->entry[proof->entry_count] =
        (struct proof_entry){who, tag_of(proof, message), atom->entry};
    atom->entry = proof->entry_count++;
    return STATUS_OK;
}

/* A finished value goes to somebody who lacks it. What a scatter sends away counts as gone, so that
 * a gather may bring it back. */
static enum status atom_copy(struct proof *proof, const struct proof_message *message,
                             uint32_t chunk, struct proof_atom *mine, struct proof_atom *theirs)
{
    uint64_t sure = 0;
    (void)atom_who(proof, mine, message, &sure);
    bool const sums =
        proof->plan->kind == COLLECTIVE_ALL_REDUCE || proof->plan->kind == COLLECTIVE_REDUCE;
    if (sure != proof->all && sums && sure != 0)
        return proof_refuse(proof, message, "gathers a sum before it is complete");
    if (sure != proof->all)
        return proof_refuse(proof, message, "sends what rank %u contributes before it has come",
                            chunk);
    if (atom_who(proof, theirs, NULL, NULL) == proof->all)
        return proof_refuse(proof, message, "brings rank %u what it has of rank %u already",
                            message->to, chunk);
    if (message->item->primitive->kind == COLLECTIVE_SCATTER) *mine = (struct proof_atom){0};
    *theirs = (struct proof_atom){0};
    return atom_add(proof, message, theirs, proof->all);
}

/* A partial sum is added to another. Whoever gives it away has it no longer; who keeps it sends
 * what it has waited for, and what comes later is not in it. */
static enum status atom_sum(struct proof *proof, const struct proof_message *message,
                            enum effect effect, uint32_t chunk, struct proof_atom *mine,
                            struct proof_atom *theirs)
{
    uint64_t sure = 0;
    uint64_t const who = atom_who(proof, mine, message, &sure);
    if (who == 0)
        return proof_refuse(proof, message, "would add its part for rank %u a second time", chunk);
    if (sure == 0 || (effect == EFFECT_GIVE && sure != who))
        return proof_refuse(proof, message, "sends a sum for rank %u that it does not wait for",
                            chunk);
    if ((atom_who(proof, theirs, NULL, NULL) & sure) != 0)
        return proof_refuse(proof, message, "adds a part for rank %u that is in the sum already",
                            chunk);
    STATUS_TRY(atom_add(proof, message, theirs, sure));
    if (effect == EFFECT_GIVE) *mine = (struct proof_atom){0};
    return STATUS_OK;
}

static enum status exchange_atom(struct proof *proof, const struct proof_message *message,
                                 uint32_t source, uint32_t destination, uint32_t halving)
{
    struct proof_holder *place =
        &proof->place[atom_index(proof, message, source, destination, halving)];
    if (place->rank != message->from || !is_waited_for(proof, message, place->tag))
        return proof_refuse(proof, message, "sends what rank %u has for rank %u without having it",
                            source, destination);
    *place = (struct proof_holder){message->to, tag_of(proof, message)};
    return STATUS_OK;
}

static enum effect effect_of(const struct plan_item *item, const struct primitive_move *move)
{
    enum collective_kind const kind = item->primitive->kind;
    if (kind == COLLECTIVE_REDUCE_SCATTER || kind == COLLECTIVE_REDUCE) return EFFECT_GIVE;
    if (kind == COLLECTIVE_ALL_REDUCE && move->source == primitive_any) return EFFECT_ADD;
    return EFFECT_COPY;
}

/* Whether a move names what its kind has to, within the dimension. */
static bool is_named(const struct proof_message *message, const struct primitive_move *move)
{
    uint32_t const size = message->item->size;
    bool source = false, destination = true;
    switch (message->item->primitive->kind) {
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_GATHER:
        source = true;
        destination = false;
        break;
    case COLLECTIVE_ALL_TO_ALL:
        source = true;
        break;
    case COLLECTIVE_ALL_REDUCE:
        source = move->source == 0;
        break;
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_PERMUTE:
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_REDUCE:
    case COLLECTIVE_SCATTER:
    case COLLECTIVE_KIND_COUNT:
        break;
    }
    return (source ? move->source < size : move->source == primitive_any) &&
           (destination ? move->destination < size : move->destination == primitive_any) &&
           move->halves >= 1 && move->halves <= PRIMITIVE_HALVES;
}

static bool has_halving(const struct proof *proof, const struct proof_message *message,
                        const struct primitive_move *move, uint32_t halving)
{
    uint32_t const level = proof->level[item_index(proof, message)];
    return (move->halves >> (halving >> level & 1) & 1) != 0;
}

static enum status move_exchange(struct proof *proof, const struct proof_message *message,
                                 const struct primitive_move *move)
{
    uint32_t const done = proof->done[item_index(proof, message)];
    struct box sources, destinations;
    box_fill(proof, message, move->source, ~done, &sources);
    box_fill(proof, message, move->destination, done, &destinations);
    for (uint32_t h = 0; h < proof->halvings; h++) {
        if (!has_halving(proof, message, move, h)) continue;
        for (uint32_t i = 0; i < sources.count; i++)
            for (uint32_t j = 0; j < destinations.count; j++)
                STATUS_TRY(exchange_atom(proof, message, sources.rank[i], destinations.rank[j], h));
    }
    return STATUS_OK;
}

static enum status move_atoms(struct proof *proof, const struct proof_message *message,
                              const struct primitive_move *move)
{
    enum effect const effect = effect_of(message->item, move);
    bool const by_source = move->destination == primitive_any;
    struct box chunk;
    box_fill(proof, message, by_source ? move->source : move->destination,
             proof->scattered[item_index(proof, message)], &chunk);
    for (uint32_t i = 0; i < chunk.count * proof->halvings; i++) {
        uint32_t const rank = chunk.rank[i / proof->halvings], h = i % proof->halvings;
        if (!has_halving(proof, message, move, h) || !proof_carries(proof, message, rank)) continue;
        struct proof_atom *mine = &proof->atom[atom_index(proof, message, message->from, rank, h)];
        struct proof_atom *theirs = &proof->atom[atom_index(proof, message, message->to, rank, h)];
        STATUS_TRY(effect == EFFECT_COPY ? atom_copy(proof, message, rank, mine, theirs)
                                         : atom_sum(proof, message, effect, rank, mine, theirs));
    }
    return STATUS_OK;
}

/* What the tokens that were followed have a sender pass on to a receiver. */
static uint32_t ragged_units_of(const struct proof *proof, const struct proof_message *message)
{
    uint32_t const item = item_index(proof, message);
    uint64_t const row = (uint64_t)message->piece * proof->rank_count + message->from;
    return proof->ragged[item][row * message->item->size + proof->position[item][message->to]];
}

enum status proof_deliver(struct proof *proof, const struct proof_message *message)
{
    const struct plan_item *item = message->item;
    enum collective_kind const kind = item->primitive->kind;
    uint32_t const position = proof->position[item_index(proof, message)][message->from];
    uint32_t units = 0;
    for (uint32_t m = 0; m < message->content.move_count; m++) {
        struct primitive_move const move =
            proof_move(proof->plan, item, message->lane->lane, position, message->step, m);
        units += (uint32_t)(move.halves & 1) + (move.halves >> 1 & 1);
        if (kind == COLLECTIVE_PERMUTE) continue; /* The place where it leads to is all of it. */
        if (!is_named(message, &move))
            return proof_refuse(proof, message, "move %u names no chunk", m);
        STATUS_TRY(kind == COLLECTIVE_ALL_TO_ALL ? move_exchange(proof, message, &move)
                                                 : move_atoms(proof, message, &move));
    }
    if (proof->plan->ragged_units != NULL) units = ragged_units_of(proof, message);
    if (units != message->content.units)
        return proof_refuse(proof, message, "announces %u half chunks and moves %u",
                            message->content.units, units);
    return STATUS_OK;
}

/* One atom of a sum in the switches: all senders' parts, which must not overlap. */
static enum status sum_everywhere(struct proof *proof, const struct proof_message *messages,
                                  uint32_t count, uint32_t chunk, uint32_t halving)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t sure = 0;
        const struct proof_atom *mine =
            &proof->atom[atom_index(proof, &messages[i], messages[i].from, chunk, halving)];
        uint64_t const who = atom_who(proof, mine, &messages[i], &sure);
        if (sure == 0 || sure != who)
            return proof_refuse(proof, &messages[i],
                                "sends a sum for rank %u that it does not wait for", chunk);
        if ((total & sure) != 0)
            return proof_refuse(proof, &messages[i],
                                "adds a part for rank %u that is in the sum already", chunk);
        total |= sure;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct proof_atom *mine =
            &proof->atom[atom_index(proof, &messages[i], messages[i].from, chunk, halving)];
        *mine = (struct proof_atom){0};
        STATUS_TRY(atom_add(proof, &messages[i], mine, total));
    }
    return STATUS_OK;
}

enum status proof_all_reduce(struct proof *proof, const struct proof_message *messages,
                             uint32_t count)
{
    const struct proof_message *first = &messages[0];
    uint32_t units = 0;
    for (uint32_t m = 0; m < first->content.move_count; m++) {
        struct primitive_move const move =
            proof_move(proof->plan, first->item, first->lane->lane, 0, first->step, m);
        struct box chunk;
        if (!is_named(first, &move) || move.source != primitive_any)
            return proof_refuse(proof, first, "move %u names no chunk", m);
        box_fill(proof, first, move.destination, proof->scattered[item_index(proof, first)],
                 &chunk);
        for (uint32_t h = 0; h < proof->halvings; h++)
            for (uint32_t i = 0; has_halving(proof, first, &move, h) && i < chunk.count; i++)
                STATUS_TRY(sum_everywhere(proof, messages, count, chunk.rank[i], h));
        units += (uint32_t)(move.halves & 1) + (move.halves >> 1 & 1);
    }
    for (uint32_t i = 0; i < count; i++)
        if (units != messages[i].content.units)
            return proof_refuse(proof, &messages[i], "announces %u half chunks and moves %u",
                                messages[i].content.units, units);
    return STATUS_OK;
}
