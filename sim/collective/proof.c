#include "sim/collective/proof.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/base/arena.h"

/* Ranks of a box: those at the given positions, proof_any for all. */
struct box {
    uint8_t rank[PROOF_RANKS_MAX];
    uint32_t count;
};

uint32_t proof_rank(const struct proof *proof, const uint32_t position[GROUP_DIMENSIONS_MAX])
{
    uint32_t rank = 0;
    for (uint32_t d = 0; d < proof->plan->group.dimension_count; d++)
        rank = rank * proof->plan->group.dimension[d].size + position[d];
    return rank;
}

static void box_fill(const struct proof *proof, const uint32_t at[GROUP_DIMENSIONS_MAX],
                     struct box *ret_box)
{
    ret_box->count = 0;
    for (uint32_t r = 0; r < proof->rank_count; r++) {
        bool inside = true;
        for (uint32_t d = 0; d < proof->plan->group.dimension_count; d++)
            inside = inside && (at[d] == proof_any || at[d] == proof->position[r][d]);
        if (inside) ret_box->rank[ret_box->count++] = (uint8_t)r;
    }
}

/* The ranks whose data is one chunk of the message's item, as its sender sees it: position `chunk`
 * in the item's dimension; in those already done everything (or, for `done_own`, only the sender's
 * own position), in the others the opposite. */
static void chunk_fill(const struct proof *proof, const struct proof_message *message,
                       uint32_t chunk, bool done_own, struct box *ret_box)
{
    uint32_t const item = (uint32_t)(message->item - proof->plan->item);
    uint32_t at[GROUP_DIMENSIONS_MAX] = {0};
    for (uint32_t d = 0; d < proof->plan->group.dimension_count; d++) {
        bool const done = (proof->done[item] >> d & 1) != 0;
        at[d] = done == done_own ? proof->position[message->from][d] : proof_any;
    }
    at[message->item->dimension] = chunk;
    box_fill(proof, at, ret_box);
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
                     (unsigned)(message->item - proof->plan->item), message->item->primitive->name,
                     message->piece, message->lane->lane, message->from, message->step, reason);
}

static bool is_before(const struct plan *plan, uint32_t item, uint32_t other)
{
    for (uint32_t at = plan->item[item].after; at != PLAN_NO_ITEM; at = plan->item[at].after)
        if (at == other) return true;
    return false;
}

/* Whether an atom is there for sure when the step begins. */
static bool is_waited_for(const struct proof *proof, const struct proof_message *message,
                          struct proof_tag tag)
{
    uint32_t const item = (uint32_t)(message->item - proof->plan->item);
    if (tag.index == 0) return true;
    if (tag.item != item) return is_before(proof->plan, item, tag.item);
    return tag.lane == message->lane->lane && tag.index <= message->content.arrivals;
}

static struct proof_tag tag_of(const struct proof *proof, const struct proof_message *message)
{
    return (struct proof_tag){(uint8_t)(message->item - proof->plan->item), message->lane->lane,
                              (uint16_t)message->index};
}

/* An AllReduce gathers what has been summed: that must be complete, and waited for. */
static enum status own_check(struct proof *proof, const struct proof_message *message)
{
    uint64_t const all =
        proof->rank_count == 64 ? UINT64_MAX : (UINT64_C(1) << proof->rank_count) - 1;
    for (uint32_t h = 0; h < proof->halvings; h++) {
        const struct proof_atom *sum =
            &proof->sum[atom_index(proof, message, message->from, message->from, h)];
        if (sum->who != all || !is_waited_for(proof, message, sum->tag))
            return proof_refuse(proof, message, "gathers a sum before it is complete");
    }
    return STATUS_OK;
}

static enum status gather_atom(struct proof *proof, const struct proof_message *message,
                               uint32_t source, uint32_t halving)
{
    const struct proof_atom *mine =
        &proof->gather[atom_index(proof, message, message->from, source, halving)];
    struct proof_atom *theirs =
        &proof->gather[atom_index(proof, message, message->to, source, halving)];
    if (mine->who == 0 || !is_waited_for(proof, message, mine->tag))
        return proof_refuse(proof, message, "sends what rank %u contributes before it has come",
                            source);
    if (theirs->who != 0)
        return proof_refuse(proof, message, "brings rank %u what it has of rank %u already",
                            message->to, source);
    if (proof->sum != NULL && mine->tag.index == 0) STATUS_TRY(own_check(proof, message));
    *theirs = (struct proof_atom){1, tag_of(proof, message)};
    return STATUS_OK;
}

static enum status sum_atom(struct proof *proof, const struct proof_message *message,
                            uint32_t destination, uint32_t halving)
{
    struct proof_atom *mine =
        &proof->sum[atom_index(proof, message, message->from, destination, halving)];
    struct proof_atom *theirs =
        &proof->sum[atom_index(proof, message, message->to, destination, halving)];
    if (mine->who == 0)
        return proof_refuse(proof, message, "would add its part for rank %u a second time",
                            destination);
    if (!is_waited_for(proof, message, mine->tag))
        return proof_refuse(proof, message, "sends a sum for rank %u that it does not wait for",
                            destination);
    if ((theirs->who & mine->who) != 0)
        return proof_refuse(proof, message, "adds a part for rank %u that is in the sum already",
                            destination);
    theirs->who |= mine->who;
    theirs->tag = tag_of(proof, message);
    mine->who = 0;
    return STATUS_OK;
}

static enum status exchange_atom(struct proof *proof, const struct proof_message *message,
                                 uint32_t source, uint32_t destination, uint32_t halving)
{
    struct proof_atom *atom =
        &proof->where_is[atom_index(proof, message, source, destination, halving)];
    if (atom->who != message->from || !is_waited_for(proof, message, atom->tag))
        return proof_refuse(proof, message, "sends what rank %u has for rank %u without having it",
                            source, destination);
    *atom = (struct proof_atom){message->to, tag_of(proof, message)};
    return STATUS_OK;
}

static enum status move_halving(struct proof *proof, const struct proof_message *message,
                                const struct box *sources, const struct box *destinations,
                                uint32_t halving)
{
    switch (message->item->primitive->kind) {
    case COLLECTIVE_ALL_GATHER:
        for (uint32_t i = 0; i < sources->count; i++)
            STATUS_TRY(gather_atom(proof, message, sources->rank[i], halving));
        return STATUS_OK;
    case COLLECTIVE_REDUCE_SCATTER:
        for (uint32_t i = 0; i < destinations->count; i++)
            STATUS_TRY(sum_atom(proof, message, destinations->rank[i], halving));
        return STATUS_OK;
    case COLLECTIVE_ALL_TO_ALL:
        for (uint32_t i = 0; i < sources->count; i++)
            for (uint32_t j = 0; j < destinations->count; j++)
                STATUS_TRY(exchange_atom(proof, message, sources->rank[i], destinations->rank[j],
                                         halving));
        return STATUS_OK;
    case COLLECTIVE_PERMUTE: /* The place where the legs lead to is all there is to it. */
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_REDUCE:
    case COLLECTIVE_GATHER:
    case COLLECTIVE_SCATTER:
    case COLLECTIVE_KIND_COUNT:
        break;
    }
    return STATUS_OK;
}

/* Whether a move names what its kind has to, within the dimension. */
static bool is_named(const struct proof *proof, const struct proof_message *message,
                     const struct primitive_move *move)
{
    uint32_t const size = proof->plan->group.dimension[message->item->dimension].size;
    enum collective_kind const kind = message->item->primitive->kind;
    bool const source = kind != COLLECTIVE_REDUCE_SCATTER;
    bool const destination = kind != COLLECTIVE_ALL_GATHER;
    return (source ? move->source < size : move->source == primitive_any) &&
           (destination ? move->destination < size : move->destination == primitive_any) &&
           move->halves >= 1 && move->halves <= PRIMITIVE_HALVES;
}

enum status proof_deliver(struct proof *proof, const struct proof_message *message)
{
    const struct plan_item *item = message->item;
    uint32_t const size = proof->plan->group.dimension[item->dimension].size;
    uint32_t const position = proof->position[message->from][item->dimension];
    uint32_t const level = proof->level[item - proof->plan->item];
    uint32_t units = 0;
    for (uint32_t m = 0; m < message->content.move_count; m++) {
        struct primitive_move const move =
            item->primitive->move(size, message->lane->lane, position, message->step, m);
        if (item->primitive->kind != COLLECTIVE_PERMUTE && !is_named(proof, message, &move))
            return proof_refuse(proof, message, "move %u names no chunk", m);
        struct box sources = {0}, destinations = {0};
        if (item->primitive->kind != COLLECTIVE_REDUCE_SCATTER)
            chunk_fill(proof, message, move.source, false, &sources);
        if (item->primitive->kind != COLLECTIVE_ALL_GATHER)
            chunk_fill(proof, message, move.destination, true, &destinations);
        for (uint32_t h = 0; h < proof->halvings; h++)
            if ((move.halves >> (h >> level & 1) & 1) != 0)
                STATUS_TRY(move_halving(proof, message, &sources, &destinations, h));
        units += (uint32_t)(move.halves & 1) + (move.halves >> 1 & 1);
    }
    if (units != message->content.units)
        return proof_refuse(proof, message, "announces %u half chunks and moves %u",
                            message->content.units, units);
    return STATUS_OK;
}

enum status proof_end(struct proof *proof)
{
    const struct plan *plan = proof->plan;
    uint32_t const n = proof->rank_count;
    uint64_t const all = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    uint64_t const sets =
        plan->item_count == 0 ? 0 : (uint64_t)plan->order_count * plan->item[0].piece_count;
    for (uint64_t i = 0; i < sets * n * n * proof->halvings; i++) {
        uint32_t const b = (uint32_t)(i / proof->halvings % n);
        uint32_t const a = (uint32_t)(i / proof->halvings / n % n);
        if (proof->gather != NULL && proof->gather[i].who == 0)
            return error_set(proof->reterr, STATUS_INVALID, proof->where,
                             "rank %u never gets what rank %u contributes", a, b);
        if (proof->sum != NULL && a == b && proof->sum[i].who != all)
            return error_set(proof->reterr, STATUS_INVALID, proof->where,
                             "the sum of rank %u lacks contributions", a);
        if (proof->where_is != NULL && proof->where_is[i].who != b)
            return error_set(proof->reterr, STATUS_INVALID, proof->where,
                             "rank %u never gets what rank %u has for it", b, a);
    }
    return STATUS_OK;
}

static enum status atoms_create(struct arena *arena, struct proof *proof, uint64_t count,
                                struct proof_atom **ret_atoms)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, count, sizeof(struct proof_atom), &memory, proof->reterr));
    *ret_atoms = memory;
    return STATUS_OK;
}

static void atoms_begin(struct proof *proof, uint64_t count)
{
    uint32_t const n = proof->rank_count;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t const b = (uint32_t)(i / proof->halvings % n);
        uint32_t const a = (uint32_t)(i / proof->halvings / n % n);
        if (proof->sum != NULL) proof->sum[i].who = UINT64_C(1) << a;
        if (proof->gather != NULL) proof->gather[i].who = a == b;
        if (proof->where_is != NULL) proof->where_is[i].who = a;
    }
}

enum status proof_create(struct arena *arena, const struct plan *plan, const char *where,
                         struct proof *ret_proof, struct error *reterr)
{
    struct proof proof = {.plan = plan, .where = where, .reterr = reterr};
    proof.rank_count = (uint32_t)group_rank_count(&plan->group);
    proof.halvings = UINT32_C(1) << plan->group.dimension_count;
    for (uint32_t r = 0; r < proof.rank_count; r++) {
        uint32_t rest = r;
        for (uint32_t d = plan->group.dimension_count; d-- > 0;) {
            proof.position[r][d] = rest % plan->group.dimension[d].size;
            rest /= plan->group.dimension[d].size;
        }
    }
    for (uint32_t i = 0; i < plan->item_count; i++)
        for (uint32_t at = plan->item[i].after; at != PLAN_NO_ITEM; at = plan->item[at].after) {
            if (plan->item[at].primitive->kind != plan->item[i].primitive->kind) continue;
            proof.level[i]++;
            proof.done[i] |= (uint8_t)(1u << plan->item[at].dimension);
        }
    uint64_t count = plan->item_count == 0 ? 0 : plan->item[0].piece_count;
    count *= (uint64_t)plan->order_count * proof.rank_count * proof.rank_count * proof.halvings;
    bool const reduces =
        plan->kind == COLLECTIVE_REDUCE_SCATTER || plan->kind == COLLECTIVE_ALL_REDUCE;
    bool const gathers = plan->kind == COLLECTIVE_ALL_GATHER || plan->kind == COLLECTIVE_ALL_REDUCE;
    if (reduces) STATUS_TRY(atoms_create(arena, &proof, count, &proof.sum));
    if (gathers) STATUS_TRY(atoms_create(arena, &proof, count, &proof.gather));
    if (plan->kind == COLLECTIVE_ALL_TO_ALL)
        STATUS_TRY(atoms_create(arena, &proof, count, &proof.where_is));
    atoms_begin(&proof, count);
    *ret_proof = proof;
    return STATUS_OK;
}
