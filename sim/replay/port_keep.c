/* What is kept of messages at links, and of promises that do not hold. */
#include "sim/replay/promise.h"

#include "sim/base/digest.h"
#include "sim/replay/route.h"

void port_no_room(struct replay *replay)
{
    if (replay->refusal.status != STATUS_OK) return;
    (void)error_set(&replay->refusal, STATUS_LIMIT, "/run",
                    "more than %u messages share links at once, which is more than a run can hold",
                    replay->ports->entry_capacity);
    engine_pause(replay->engine);
}

uint32_t port_entry_add(struct replay *replay, const struct port_entry *entry)
{
    uint32_t const index = port_entry_take(replay);
    if (index == 0) return 0;
    replay->ports->entries[index] = *entry;
    replay->ports->entries[index].next = 0;
    return index;
}

void port_list_remove(struct ports *ports, struct port_list *list, uint32_t index)
{
    uint32_t const before = ports->entries[index].before, next = ports->entries[index].next;
    *(before == 0 ? &list->first : &ports->entries[before].next) = next;
    *(next == 0 ? &list->last : &ports->entries[next].before) = before;
}

uint64_t port_name(uint64_t key, uint32_t chip)
{
    return digest_record(0, key << (64 - KEY_KIND_SHIFT), chip);
}

void port_name_add(struct ports *ports, uint32_t index)
{
    const struct port_entry *entry = &ports->entries[index];
    hashed_add(&ports->named, port_name(entry->key, entry->chip), index);
}

void port_flow_append(struct ports *ports, struct port_flow *flow, uint32_t index)
{
    port_list_append(ports, &flow->list, index);
    port_name_add(ports, index);
}

void port_flow_take_over(const struct ports *from, struct replay *replay, struct port_flow *flow)
{
    struct ports *ports = replay->ports;
    port_lanes_copy(from, ports, flow);
    for (uint32_t e = flow->list.first; e != 0; e = ports->entries[e].next) port_name_add(ports, e);
    if (ports->lanes_lacked) port_no_room(replay);
}

void port_flow_remove(struct ports *ports, struct port_flow *flow, uint32_t index,
                      int64_t segment_ps)
{
    const struct port_entry *entry = &ports->entries[index];
    port_ticket_fix(ports, flow, index, segment_ps);
    hashed_remove(&ports->named, port_name(entry->key, entry->chip), index);
    port_list_remove(ports, &flow->list, index);
    port_entry_give(ports, index);
}

void promise_append(struct replay *replay, struct port_list *list, const struct port_entry *entry)
{
    port_list_append(replay->ports, list, port_entry_add(replay, entry));
}

void port_list_sort_in(struct ports *ports, struct port_list *list, uint32_t index)
{
    struct port_entry *entry = &ports->entries[index];
    uint32_t before = 0;
    if (index == 0) return;
    for (uint32_t i = list->first; i != 0 && ports->entries[i].end_ps <= entry->end_ps;
         i = ports->entries[i].next)
        before = i;
    uint32_t const next = before == 0 ? list->first : ports->entries[before].next;
    entry->before = before;
    entry->next = next;
    *(before == 0 ? &list->first : &ports->entries[before].next) = index;
    *(next == 0 ? &list->last : &ports->entries[next].before) = index;
}

/* The void event of these words; 0: there is none. */
static uint32_t void_find(const struct ports *ports, uint64_t hash, uint64_t key, uint32_t chip,
                          int64_t stamp)
{
    uint32_t index = hashed_first(&ports->void_named, hash);
    for (; index != 0; index = hashed_next(&ports->void_named, index)) {
        const struct port_void *at = &ports->voids[index];
        if (at->key == key && at->chip == chip && at->stamp == stamp) break;
    }
    return index;
}

void promise_void_add(struct replay *replay, uint64_t key, uint32_t chip, int64_t stamp)
{
    struct ports *ports = replay->ports;
    uint64_t const hash = digest_record(stamp, key, chip);
    uint32_t index = void_find(ports, hash, key, chip, stamp);
    ports->void_left++;
    ++*port_void_slot(ports, key, stamp);
    if (index != 0) {
        ports->voids[index].count++;
        return;
    }
    index = ports->void_free;
    if (index != 0) {
        ports->void_free = ports->voids[index].next;
    } else if (ports->voids_used < ports->void_capacity) {
        index = ++ports->voids_used;
    } else {
        port_no_room(replay);
        return;
    }
    ports->voids[index] = (struct port_void){.key = key, .stamp = stamp, .chip = chip, .count = 1};
    hashed_add(&ports->void_named, hash, index);
}

bool promise_void_take(struct replay *replay, uint64_t key, uint32_t chip, int64_t stamp)
{
    struct ports *ports = replay->ports;
    uint64_t const hash = digest_record(stamp, key, chip);
    uint32_t const index = void_find(ports, hash, key, chip, stamp);
    if (index == 0) return false;
    ports->void_left--;
    --*port_void_slot(ports, key, stamp);
    if (--ports->voids[index].count > 0) return true;
    hashed_remove(&ports->void_named, hash, index);
    ports->voids[index].next = ports->void_free;
    ports->void_free = index;
    return true;
}

void promise_void_rename(struct ports *ports, uint32_t index, uint64_t key, int64_t stamp)
{
    struct port_void *at = &ports->voids[index];
    hashed_remove(&ports->void_named, digest_record(at->stamp, at->key, at->chip), index);
    *port_void_slot(ports, at->key, at->stamp) -= at->count;
    at->key = key;
    at->stamp = stamp;
    *port_void_slot(ports, at->key, at->stamp) += at->count;
    hashed_add(&ports->void_named, digest_record(at->stamp, at->key, at->chip), index);
}

/* When the last message leaves that a list has of a lane on a chip. */
static int64_t list_leaves_ps(const struct ports *ports, const struct port_list *list,
                              const struct port_entry *of)
{
    int64_t last_ps = 0;
    for (uint32_t e = list->first; e != 0 && last_ps != lane_held_ps; e = ports->entries[e].next) {
        const struct port_entry *entry = &ports->entries[e];
        if (!entry->own || entry->lane != of->lane || entry->chip != of->chip) continue;
        if (entry->withheld)
            last_ps = lane_held_ps;
        else if (entry->end_ps > last_ps)
            last_ps = entry->end_ps;
    }
    return last_ps;
}

int64_t port_lane_leaves_ps(const struct replay *replay, const struct port_entry *of,
                            int64_t depart_ps)
{
    const struct ports *ports = replay->ports;
    const struct routes *routes = replay->routes;
    int64_t last_ps = depart_ps;
    for (uint32_t index = 0; index < routes->level_count && of->lane->abreast; index++) {
        const struct tier_links *tier = &routes->level[index].tier[0];
        uint32_t const unit = tier->unit[of->chip];
        for (uint32_t cable = 0; cable < tier->cable_count; cable++) {
            uint32_t const queue = tier->links[0][unit * tier->cable_count + cable].queue;
            if (queue == 0) continue;
            const struct port_list *lists[] = {&ports->kept[queue],
                                               &ports->queues[queue].flow[of->lane->stream].list};
            for (uint32_t i = 0; i < 2; i++) {
                int64_t const list_ps = list_leaves_ps(ports, lists[i], of);
                last_ps = list_ps > last_ps ? list_ps : last_ps;
            }
        }
    }
    return last_ps;
}
