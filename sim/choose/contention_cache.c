/* What is known of items, and what has to be simulated. */
#include <string.h>

#include "sim/base/lock.h"
#include "sim/choose/contention.h"
#include "sim/choose/ecmp_collisions.h"

static bool is_simulated(const struct plan *plan, const struct plan_item *item)
{
    return item->primitive->routed && item->primitive->network == PRIMITIVE_NETWORK_NONE &&
           plan->ragged_units == NULL && plan->script == NULL &&
           item->primitive->kind != COLLECTIVE_PERMUTE;
}

static bool is_same(const struct contention_entry *entry, const struct contention_entry *key)
{
    return entry->primitive == key->primitive && entry->flat == key->flat &&
           entry->dimension == key->dimension && entry->root == key->root &&
           entry->at_root == key->at_root && entry->off_root == key->off_root &&
           group_equal(&entry->group, &key->group) &&
           memcmp(entry->message_ps, key->message_ps, sizeof key->message_ps) == 0;
}

/* The last entry of this key, of those from `first` on: with the times of a next piece, where any
 * has them. NULL: there is none. */
static const struct contention_entry *find(const struct contention_cache *known, uint32_t first,
                                           const struct contention_entry *key)
{
    uint32_t const count = atomic_load_explicit(&known->count, memory_order_acquire);
    for (uint32_t i = count; i > first; i--)
        if (is_same(&known->entry[i - 1], key)) return &known->entry[i - 1];
    return NULL;
}

/* None of the first `asked` entries says as much. */
static void keep(struct contention_cache *known, uint32_t asked,
                 const struct contention_entry *entry)
{
    lock_take(&known->lock);
    uint32_t const count = atomic_load_explicit(&known->count, memory_order_relaxed);
    const struct contention_entry *other = find(known, asked, entry);
    if (count < CONTENTION_ENTRIES_MAX &&
        (other == NULL || (entry->has_next && !other->has_next))) {
        known->entry[count] = *entry;
        atomic_store_explicit(&known->count, count + 1, memory_order_release);
    }
    lock_give(&known->lock);
}

/* The times of messages by the ways that an item's messages may go; zero of other ways. */
static void ways_find(const struct machine *machine, const struct plan *plan,
                      const struct plan_item *item, int64_t ret_message_ps[1 + LEVELS_MAX])
{
    uint32_t axes = 0;
    for (uint32_t d = 0; d < plan->group.dimension_count; d++)
        if (item->flat || item->dimension == d) axes |= 1u << plan->group.dimension[d].axis;
    if ((axes & ((1u << machine->grid_axis_count) - 1)) != 0)
        ret_message_ps[0] = plan->protocol.message_ps[0];
    for (uint32_t index = 0; index < machine->level_count; index++) {
        const struct level *level = &machine->level[index];
        const uint32_t *box = level->tier[level->tier_count - 1].box;
        bool joins = false, joins_all = true;
        for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
            if ((axes >> axis & 1) == 0) continue;
            joins = joins || box[axis] > 1;
            joins_all = joins_all && box[axis] >= machine->shape[axis];
        }
        if (joins) ret_message_ps[1 + index] = plan->protocol.message_ps[1 + index];
        if (joins_all) return;
    }
}

/* Where each chain of items has one piece, nobody asks how much later the next one is. */
static bool has_next_piece(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->item_count; i++)
        if (plan_item_pieces(&plan->item[i]) > 1) return true;
    return false;
}

bool contention_find(const struct machine *machine, const struct plan *plan,
                     const struct plan_item *item, struct contention_cache *known,
                     struct contention_times *ret)
{
    struct contention_entry key = {.group = plan->group,
                                   .primitive = item->primitive,
                                   .root = plan->rooted.root,
                                   .dimension = item->dimension,
                                   .flat = item->flat};
    if (machine->link_override_count > 0) { /* Then it matters where who takes part stands. */
        key.at_root = item->at_root;
        key.off_root = item->off_root;
    }
    *ret = (struct contention_times){.latency_s = 0};
    if (!is_simulated(plan, item)) return false;
    ways_find(machine, plan, item, key.message_ps);
    key.has_next = has_next_piece(plan);
    uint32_t const asked =
        known == NULL ? 0 : atomic_load_explicit(&known->count, memory_order_acquire);
    const struct contention_entry *entry = known == NULL ? NULL : find(known, 0, &key);
    if (entry != NULL && (entry->has_next || !key.has_next || !entry->simulated)) {
        *ret = entry->times;
        return entry->simulated;
    }
    if (entry != NULL) {
        key.times = entry->times;
        key.once_s = entry->once_s;
    }
    key.simulated = contention_simulate(machine, plan, item, entry != NULL,
                                        known == NULL ? NULL : known->kept, &key);
    if (!key.simulated) (void)ecmp_count(machine, plan, item, &key.times);
    *ret = key.times;
    if (known != NULL) keep(known, asked, &key);
    return key.simulated;
}
