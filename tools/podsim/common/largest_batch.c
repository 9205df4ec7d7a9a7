#include "tools/podsim/common/largest_batch.h"

#include <math.h>

enum { GUESSES_MAX = 8 }; /* Behind them halves. */

static bool fits(const struct largest_batch *search, const struct batch_held *held)
{
    return held->bytes <= search->hbm_bytes;
}

/* Where memory ends if it grows from `one` to `other`, and on from there, evenly; 0: it does not
 * grow. */
static uint64_t line_end(const struct largest_batch *search, const struct batch_held *one,
                         const struct batch_held *other)
{
    double const bytes = other->bytes - one->bytes;
    if (one->batch == 0 || bytes <= 0 || isinf(other->bytes)) return 0;
    double const end = (double)one->batch + (search->hbm_bytes - one->bytes) / bytes *
                                                (double)(other->batch - one->batch);
    return end < LARGEST_BATCH_MOST ? (uint64_t)end : LARGEST_BATCH_MOST;
}

/* The batch to look at next, `low` < it < `high`. */
static uint64_t guess(const struct largest_batch *search, uint32_t step)
{
    const struct batch_held *low = &search->low, *high = &search->high;
    bool const bounded = high->batch != 0;
    uint64_t next = 0;
    if (step < GUESSES_MAX)
        next = bounded ? line_end(search, low, high) : line_end(search, &search->before, low);
    if (next == 0) next = bounded ? low->batch + (high->batch - low->batch) / 2 : 2 * low->batch;
    if (bounded && next >= high->batch) next = high->batch - 1;
    return next <= low->batch ? low->batch + 1 : next;
}

/* Until the batch behind `low` is known not to fit. Of `first` the next one is looked at first: it
 * may be right. */
static enum status narrow(struct largest_batch *search, uint64_t first, bool plays,
                          struct error *reterr)
{
    uint64_t next = first;
    for (uint32_t step = 0; search->high.batch != search->low.batch + 1; step++) {
        struct batch_held held = {.batch = next};
        if (next > LARGEST_BATCH_MOST) break;
        STATUS_TRY(search->held_find(search->owner, plays, &held, reterr));
        if (fits(search, &held)) {
            search->before = search->low;
            search->low = held;
        } else {
            search->high = held;
        }
        next = search->low.batch == first ? first + 1 : guess(search, step);
    }
    return STATUS_OK;
}

enum status largest_batch_find(struct largest_batch *search, uint64_t first, bool may_play,
                               struct error *reterr)
{
    struct batch_held const known = search->low;
    bool const is_next =
        first > known.batch && (search->high.batch == 0 || first < search->high.batch);
    STATUS_TRY(narrow(search, is_next ? first : guess(search, 0), false, reterr));
    uint64_t const most = search->low.batch;
    if (search->low.is_peak || !may_play || most == known.batch) return STATUS_OK;
    search->low = known;
    search->high = (struct batch_held){.batch = most + 1, .bytes = INFINITY};
    return narrow(search, most, true, reterr);
}
