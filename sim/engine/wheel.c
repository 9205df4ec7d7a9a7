#include "sim/engine/wheel.h"

#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

_Static_assert(61 / WHEEL_DIGIT_BITS < WHEEL_LEVELS, "every instant has its digits");

enum status wheel_create(struct arena *arena, struct wheel_entry *entries, uint32_t entry_max,
                         struct wheel *ret_wheel, struct error *reterr)
{
    struct wheel wheel = {.entries = entries};
    void *memory = NULL;
    STATUS_TRY(arena_try_unset(arena, entry_max, sizeof *wheel.front, &memory, reterr));
    wheel.front = memory;
    STATUS_TRY(arena_try_unset(arena, entry_max, sizeof *wheel.spare, &memory, reterr));
    wheel.spare = memory;
    STATUS_TRY(
        arena_try_unset(arena, (uint64_t)entry_max + 1, sizeof *wheel.next, &memory, reterr));
    wheel.next = memory;
    STATUS_TRY(arena_try(arena, WHEEL_LEVELS, sizeof *wheel.levels, &memory, reterr));
    wheel.levels = memory;
    *ret_wheel = wheel;
    return STATUS_OK;
}

static inline units_wide key_of(const struct wheel *wheel, uint32_t index)
{
    const struct wheel_entry *entry = &wheel->entries[index];
    return (units_wide)entry->at_ps << 64 | entry->key;
}

/* Of entries with equal keys the one hung first comes first: lists of slots begin with the one hung
 * last. */
static void sort_by_insertion(const struct wheel *wheel, uint32_t *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t const item = items[i];
        units_wide const key = key_of(wheel, item);
        uint32_t j = i;
        for (; j > 0 && key <= key_of(wheel, items[j - 1]); j--) items[j] = items[j - 1];
        items[j] = item;
    }
}

static void merge(const struct wheel *wheel, const uint32_t *left, uint32_t left_count,
                  const uint32_t *right, uint32_t right_count, uint32_t *to)
{
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < left_count && j < right_count)
        *to++ = key_of(wheel, right[j]) <= key_of(wheel, left[i]) ? right[j++] : left[i++];
    memcpy(to, &left[i], (left_count - i) * sizeof *to);
    memcpy(to + (left_count - i), &right[j], (right_count - j) * sizeof *to);
}

/* Insertion for the runs, merging above; `front` and `spare` take turns. */
static void sort_front(struct wheel *wheel)
{
    uint32_t const run_count = 16;
    uint32_t const count = wheel->front_count;
    for (uint32_t i = 0; i < count; i += run_count)
        sort_by_insertion(wheel, &wheel->front[i], count - i < run_count ? count - i : run_count);
    for (uint64_t run = run_count; run < count; run *= 2) {
        for (uint64_t i = 0; i < count; i += 2 * run) {
            uint32_t const left = (uint32_t)(count - i < run ? count - i : run);
            uint32_t const rest = (uint32_t)(count - i - left);
            uint32_t const right = rest < run ? rest : (uint32_t)run;
            merge(wheel, &wheel->front[i], left, &wheel->front[i + left], right, &wheel->spare[i]);
        }
        uint32_t *const sorted = wheel->spare;
        wheel->spare = wheel->front;
        wheel->front = sorted;
    }
}

void wheel_front_add(struct wheel *wheel, uint32_t entry)
{
    units_wide const key = key_of(wheel, entry);
    uint32_t *const front = wheel->front;
    uint32_t low = wheel->front_next, high = wheel->front_count;
    while (low < high) {
        uint32_t const middle = low + (high - low) / 2;
        if (key < key_of(wheel, front[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    if (wheel->front_next > 0) { /* There is room where entries were served. */
        uint32_t const first = wheel->front_next;
        memmove(&front[first - 1], &front[first], (low - first) * sizeof *front);
        wheel->front_next--;
        low--;
    } else {
        memmove(&front[low + 1], &front[low], (wheel->front_count - low) * sizeof *front);
        wheel->front_count++;
    }
    front[low] = entry;
}

/* Of slots behind the one being served, if their bits are in its word, what is left of which is
 * `bits`: what the entry of one of them needs, and the entry of one further on. */
static inline void level_prefetch(const struct wheel *wheel, const uint32_t *slots, uint64_t bits)
{
    enum { NEAR = 3, FAR = 3 };
    for (uint32_t i = 1; i < NEAR; i++) bits &= bits - 1;
    if (bits == 0) return;
    const struct wheel_entry *entry = &wheel->entries[slots[__builtin_ctzll(bits)]];
    if (entry->block == 0) wheel->ahead(wheel->ahead_owner, entry->key, entry->chip);
    for (uint32_t i = 0; i < FAR; i++) bits &= bits - 1;
    if (bits != 0) __builtin_prefetch(&wheel->entries[slots[__builtin_ctzll(bits)]]);
}

/* Empties the first slot of a level, which is not empty. Returns its list. */
static inline uint32_t slot_take(const struct wheel *wheel, struct wheel_level *level)
{
    uint32_t const word = (uint32_t)__builtin_ctzll(level->used);
    uint64_t const bits = level->slots_used[word], rest = bits & (bits - 1);
    uint32_t *const slots = &level->slots[word * 64], *slot = &slots[__builtin_ctzll(bits)];
    uint32_t const list = *slot;
    *slot = 0;
    level->slots_used[word] = rest;
    if (rest == 0)
        level->used &= level->used - 1;
    else if (wheel->ahead != NULL)
        level_prefetch(wheel, slots, rest);
    return list;
}

/* Serves the first slot of a level. If its entries are many, or far apart, they are hung at the
 * level below instead, and the front stays empty. */
static inline void level_serve(struct wheel *wheel, uint32_t number)
{
    uint32_t const list = slot_take(wheel, &wheel->levels[number]);
    uint32_t *const front = wheel->front;
    uint32_t count = 1;
    front[0] = list;
    for (uint32_t i = wheel->next[list]; i != 0; i = wheel->next[i]) front[count++] = i;
    if (count > 1 && (number > 1 || (number == 1 && count > WHEEL_SORT_MAX))) {
        struct wheel_level *below = &wheel->levels[number - 1];
        uint32_t const shift = (number - 1) * WHEEL_DIGIT_BITS;
        while (count-- > 0)
            wheel_hang(wheel, below, shift, front[count], wheel->entries[front[count]].at_ps);
        return;
    }
    wheel->front_count = count;
    wheel->now_ps = wheel->entries[list].at_ps;
    if (count == 1) return;
    wheel->now_ps |= (UINT64_C(1) << number * WHEEL_DIGIT_BITS) - 1;
    sort_front(wheel);
}

bool wheel_refill(struct wheel *wheel)
{
    wheel->front_next = 0;
    wheel->front_count = 0;
    while (wheel->front_count == 0) {
        uint32_t number = 0;
        while (number < WHEEL_LEVELS && wheel->levels[number].used == 0) number++;
        if (number == WHEEL_LEVELS) return false;
        level_serve(wheel, number);
    }
    return true;
}

void wheel_later(struct wheel *wheel, uint64_t by_ps)
{
    uint32_t count = 0;
    for (uint32_t number = 0; number < WHEEL_LEVELS; number++)
        while (wheel->levels[number].used != 0)
            for (uint32_t i = slot_take(wheel, &wheel->levels[number]); i != 0; i = wheel->next[i])
                wheel->spare[count++] = i;
    wheel->now_ps += by_ps;
    while (count-- > 0) {
        uint32_t const entry = wheel->spare[count];
        wheel_hang_later(wheel, entry, wheel->entries[entry].at_ps);
    }
}
