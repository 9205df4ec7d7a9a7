#include "sim/engine/ladder.h"

#include <string.h>

#include "sim/base/arena.h"

enum status ladder_create(struct arena *arena, struct ladder_entry *entries, uint32_t entry_max,
                          struct ladder *ret_ladder, struct error *reterr)
{
    struct ladder ladder = {.entries = entries};
    void *memory = NULL;
    STATUS_TRY(arena_try_unset(arena, entry_max, sizeof *ladder.front, &memory, reterr));
    ladder.front = memory;
    STATUS_TRY(arena_try_unset(arena, entry_max, sizeof *ladder.late, &memory, reterr));
    ladder.late = memory;
    STATUS_TRY(arena_try_unset(arena, entry_max, sizeof *ladder.spare, &memory, reterr));
    ladder.spare = memory;
    STATUS_TRY(arena_try_unset(arena, entry_max, sizeof *ladder.far, &memory, reterr));
    ladder.far = memory;
    STATUS_TRY(arena_try(arena, (uint64_t)LADDER_RUNGS_MAX * LADDER_BUCKETS_MAX,
                         sizeof(struct ladder_bucket), &memory, reterr));
    struct ladder_bucket *buckets = memory; /* Megabytes, of which a short run touches pages. */
    for (uint32_t i = 0; i < LADDER_RUNGS_MAX; i++)
        ladder.rungs[i].buckets = &buckets[i * LADDER_BUCKETS_MAX];
    *ret_ladder = ladder;
    return STATUS_OK;
}

static units_wide item_key(const struct ladder_item *item)
{
    return ladder_key(item->at_ps, item->key);
}

static void sort_by_insertion(struct ladder_item *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct ladder_item const item = items[i];
        units_wide const key = item_key(&item);
        uint32_t j = i;
        for (; j > 0 && key < item_key(&items[j - 1]); j--) items[j] = items[j - 1];
        items[j] = item;
    }
}

/* Each item's rank is counted: no branch depends on the keys. */
static void sort_by_ranks(struct ladder_item *items, uint32_t count)
{
    struct ladder_item copy[LADDER_RANK_MAX];
    uint32_t ranks[LADDER_RANK_MAX] = {0};
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = items[i];
        units_wide const key = item_key(&items[i]);
        uint32_t rank = 0;
        for (uint32_t j = 0; j < i; j++) {
            uint32_t const after = key < item_key(&items[j]);
            ranks[j] += after;
            rank += 1 - after;
        }
        ranks[i] = rank;
    }
    for (uint32_t i = 0; i < count; i++) items[ranks[i]] = copy[i];
}

static void merge(const struct ladder_item *left, uint32_t left_count,
                  const struct ladder_item *right, uint32_t right_count, struct ladder_item *to)
{
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < left_count && j < right_count)
        *to++ = item_key(&right[j]) < item_key(&left[i]) ? right[j++] : left[i++];
    memcpy(to, &left[i], (left_count - i) * sizeof *to);
    memcpy(to + (left_count - i), &right[j], (right_count - j) * sizeof *to);
}

/* Insertion for the runs, merging above; `front` and `spare` take turns. */
static void sort_front(struct ladder *ladder)
{
    uint32_t const run_count = 16;
    uint32_t const count = ladder->front_count;
    if (count <= LADDER_RANK_MAX) {
        sort_by_ranks(ladder->front, count);
        return;
    }
    if (count <= LADDER_INSERT_MAX) {
        sort_by_insertion(ladder->front, count);
        return;
    }
    for (uint32_t i = 0; i < count; i += run_count)
        sort_by_insertion(&ladder->front[i], count - i < run_count ? count - i : run_count);
    for (uint64_t run = run_count; run < count; run *= 2) {
        for (uint64_t i = 0; i < count; i += 2 * run) {
            uint32_t const left = (uint32_t)(count - i < run ? count - i : run);
            uint32_t const rest = (uint32_t)(count - i - left);
            uint32_t const right = rest < run ? rest : (uint32_t)run;
            merge(&ladder->front[i], left, &ladder->front[i + left], right, &ladder->spare[i]);
        }
        struct ladder_item *const sorted = ladder->spare;
        ladder->spare = ladder->front;
        ladder->front = sorted;
    }
}

/* A new nearest rung over [start, end), which is not empty, with buckets for about `count`. */
static struct ladder_rung *rung_add(struct ladder *ladder, uint64_t start_ps, uint64_t end_ps,
                                    uint32_t count)
{
    uint64_t wanted = count / LADDER_BUCKET_ENTRIES;
    wanted = wanted > LADDER_BUCKETS_MAX ? LADDER_BUCKETS_MAX : wanted < 2 ? 2 : wanted;
    struct ladder_rung *rung = &ladder->rungs[ladder->rung_count++];
    uint64_t const last_ps = end_ps - 1 - start_ps;
    rung->start_ps = start_ps;
    rung->end_ps = end_ps;
    rung->shift = 0;
    while (last_ps >> rung->shift >= wanted) rung->shift++;
    rung->bucket_count = (uint32_t)(last_ps >> rung->shift) + 1;
    rung->bucket_next = 0;
    ladder->front_end_ps = start_ps;
    return rung;
}

static void front_add(struct ladder *ladder, uint32_t index)
{
    const struct ladder_entry *entry = &ladder->entries[index];
    ladder->front[ladder->front_count++] = (struct ladder_item){entry->at_ps, entry->key, index};
}

/* A bucket becomes the front, not yet sorted, and is empty then. */
static void front_take(struct ladder *ladder, struct ladder_bucket *bucket)
{
    ladder->front_next = 0;
    ladder->front_count = 0;
    for (uint32_t i = 0; i < bucket->count; i++) front_add(ladder, bucket->slots[i]);
    for (uint32_t i = bucket->list; i != 0; i = ladder->entries[i].next) front_add(ladder, i);
    bucket->count = 0;
    bucket->list = 0;
}

static bool front_differs(const struct ladder *ladder)
{
    for (uint32_t i = 1; i < ladder->front_count; i++)
        if (ladder->front[i].at_ps != ladder->front[0].at_ps) return true;
    return false;
}

/* Of the buckets after the one being served: what the first one's entries need, the second one's
 * entries, and the place of those behind. */
static void rung_prefetch(const struct ladder *ladder, const struct ladder_rung *rung)
{
    if (rung->bucket_next + 1 >= rung->bucket_count) return;
    const struct ladder_bucket *next = &rung->buckets[rung->bucket_next];
    for (uint32_t i = 0; ladder->ahead != NULL && i < next->count; i++)
        ladder->ahead(ladder->ahead_owner, &ladder->entries[next->slots[i]]);
    next++;
    for (uint32_t i = 0; i < next->count; i++) __builtin_prefetch(&ladder->entries[next->slots[i]]);
    __builtin_prefetch(next + 2);
}

/* Serves the next bucket of the nearest rung; false if there is another nearest rung now, since
 * this one is used up or the bucket got its own. */
static bool rung_serve(struct ladder *ladder)
{
    struct ladder_rung *rung = &ladder->rungs[ladder->rung_count - 1];
    while (rung->bucket_next < rung->bucket_count && rung->buckets[rung->bucket_next].count == 0)
        rung->bucket_next++;
    if (rung->bucket_next == rung->bucket_count) {
        ladder->rung_count--;
        return false;
    }
    uint64_t const start_ps = rung->start_ps + ((uint64_t)rung->bucket_next << rung->shift);
    uint64_t const width_ps = UINT64_C(1) << rung->shift;
    uint64_t const end_ps = rung->end_ps - start_ps < width_ps ? rung->end_ps : start_ps + width_ps;
    front_take(ladder, &rung->buckets[rung->bucket_next++]);
    rung_prefetch(ladder, rung);
    if (ladder->front_count > LADDER_SORT_MAX && ladder->rung_count < LADDER_RUNGS_MAX &&
        front_differs(ladder)) {
        struct ladder_rung *child = rung_add(ladder, start_ps, end_ps, ladder->front_count);
        for (uint32_t i = 0; i < ladder->front_count; i++)
            ladder_rung_push(ladder, child, ladder->front[i].at_ps, ladder->front[i].entry);
        ladder->front_count = 0;
        return false;
    }
    sort_front(ladder);
    ladder->front_end_ps = end_ps;
    return true;
}

/* About the median of what lies far, from a few places chosen by a fixed random sequence: a
 * regular stride could meet the regular order in which chips post. A rung of few entries is soon
 * used up, and does not pay for many samples. */
static uint64_t far_median_ps(const struct ladder *ladder)
{
    enum { SAMPLES = 31, FEW = 1024, SAMPLES_OF_FEW = 9 };
    struct ladder_item samples[SAMPLES];
    uint32_t const count = ladder->far_count < FEW ? SAMPLES_OF_FEW : SAMPLES;
    uint32_t random = 1;
    for (uint32_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u; /* Numerical Recipes, 2nd edition, 7.1. */
        uint32_t const index = (uint32_t)((uint64_t)random * ladder->far_count >> 32);
        samples[i] = (struct ladder_item){ladder->far[index].at_ps, 0, 0};
    }
    sort_by_insertion(samples, count);
    return samples[count / 2].at_ps;
}

/* Few entries are sorted at once; of many, those up to twice the median go into a rung. */
static void far_serve(struct ladder *ladder)
{
    uint64_t first_ps = UINT64_MAX;
    uint64_t last_ps = 0;
    for (uint32_t i = 0; i < ladder->far_count; i++) {
        uint64_t const at_ps = ladder->far[i].at_ps;
        first_ps = at_ps < first_ps ? at_ps : first_ps;
        last_ps = at_ps > last_ps ? at_ps : last_ps;
    }
    if (ladder->far_count <= LADDER_SORT_MAX) {
        for (uint32_t i = 0; i < ladder->far_count; i++) {
            uint32_t const entry = ladder->far[i].entry;
            ladder->front[i] =
                (struct ladder_item){ladder->far[i].at_ps, ladder->entries[entry].key, entry};
        }
        ladder->front_next = 0;
        ladder->front_count = ladder->far_count;
        ladder->far_count = 0;
        ladder->front_end_ps = last_ps + 1;
        sort_front(ladder);
        return;
    }
    uint64_t const half_ps = far_median_ps(ladder) - first_ps;
    uint64_t const end_ps = first_ps + 2 * half_ps + 1;
    struct ladder_rung *rung = rung_add(ladder, first_ps, end_ps, ladder->far_count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ladder->far_count; i++) {
        struct ladder_far const far = ladder->far[i];
        if (far.at_ps < end_ps)
            ladder_rung_push(ladder, rung, far.at_ps, far.entry);
        else
            ladder->far[kept++] = far;
    }
    ladder->far_count = kept;
}

bool ladder_refill(struct ladder *ladder)
{
    ladder->front_next = 0;
    ladder->front_count = 0;
    for (;;) {
        while (ladder->rung_count > 0)
            if (rung_serve(ladder)) return true;
        if (ladder->far_count == 0) return false;
        far_serve(ladder);
        if (ladder->front_count > 0) return true;
    }
}

/* Late and the rest of the front go into a rung of their own: they were more than expected. */
static void late_spread(struct ladder *ladder, uint64_t start_ps)
{
    uint32_t const front_rest = ladder->front_count - ladder->front_next;
    struct ladder_rung *rung =
        rung_add(ladder, start_ps, ladder->front_end_ps, front_rest + ladder->late_count);
    for (uint32_t i = ladder->front_next; i < ladder->front_count; i++)
        ladder_rung_push(ladder, rung, ladder->front[i].at_ps, ladder->front[i].entry);
    for (uint32_t i = 0; i < ladder->late_count; i++)
        ladder_rung_push(ladder, rung, ladder->late[i].at_ps, ladder->late[i].entry);
    ladder->front_next = 0;
    ladder->front_count = 0;
    ladder->late_count = 0;
}

void ladder_late_push(struct ladder *ladder, uint32_t entry)
{
    struct ladder_item const item = {ladder->entries[entry].at_ps, ladder->entries[entry].key,
                                     entry};
    units_wide const key = item_key(&item);
    uint32_t i = ladder->late_count++;
    for (uint32_t parent; i > 0; i = parent) {
        parent = (i - 1) / 2;
        if (item_key(&ladder->late[parent]) <= key) break;
        ladder->late[i] = ladder->late[parent];
    }
    ladder->late[i] = item;

    uint32_t const front_rest = ladder->front_count - ladder->front_next;
    if (ladder->late_count <= LADDER_LATE_MIN + front_rest) return;
    if (ladder->rung_count == LADDER_RUNGS_MAX) return;
    uint64_t start_ps = ladder->late[0].at_ps;
    if (front_rest > 0 && ladder->front[ladder->front_next].at_ps < start_ps)
        start_ps = ladder->front[ladder->front_next].at_ps;
    if (ladder->front_end_ps - start_ps > 1) late_spread(ladder, start_ps);
}

static uint32_t late_take(struct ladder *ladder)
{
    uint32_t const entry = ladder->late[0].entry;
    uint32_t const count = --ladder->late_count;
    struct ladder_item const item = ladder->late[count];
    units_wide const key = item_key(&item);
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count &&
            item_key(&ladder->late[child + 1]) < item_key(&ladder->late[child]))
            child++;
        if (key <= item_key(&ladder->late[child])) break;
        ladder->late[i] = ladder->late[child];
    }
    ladder->late[i] = item;
    return entry;
}

/* The smaller of the front's first and the late heap's first; the heap is not empty. */
uint32_t ladder_late_pop(struct ladder *ladder)
{
    if (ladder->front_next < ladder->front_count) {
        const struct ladder_item *first = &ladder->front[ladder->front_next];
        if (item_key(first) < item_key(&ladder->late[0])) {
            ladder->front_next++;
            return first->entry;
        }
    }
    return late_take(ladder);
}

void ladder_later(struct ladder *ladder, uint64_t by_ps)
{
    ladder->front_end_ps += by_ps;
    for (uint32_t i = ladder->front_next; i < ladder->front_count; i++)
        ladder->front[i].at_ps += by_ps;
    for (uint32_t i = 0; i < ladder->late_count; i++) ladder->late[i].at_ps += by_ps;
    for (uint32_t i = 0; i < ladder->far_count; i++) ladder->far[i].at_ps += by_ps;
    for (uint32_t i = 0; i < ladder->rung_count; i++) {
        ladder->rungs[i].start_ps += by_ps;
        ladder->rungs[i].end_ps += by_ps;
    }
}
