#include "tools/podsim/common/largest_batch.h"

#include <math.h>

enum { GUESSES_MAX = 8 }; /* Behind them halves. */

/* What is known for one amount of memory: `low` is the largest batch that fits, or 0, `far` the
 * smallest one, if it is another; `high` is the next one that does not fit, or 0. */
struct bracket {
    double hbm_bytes;
    struct batch_held far, low, high;
};

static bool fits(const struct bracket *at, const struct batch_held *held)
{
    return held->bytes <= at->hbm_bytes;
}

void largest_batch_add(struct largest_batch *search, const struct batch_held *held)
{
    if (search->known_count < LARGEST_BATCH_KNOWN_MAX) search->known[search->known_count++] = *held;
}

static void low_set(struct bracket *at, const struct batch_held *held)
{
    if (at->far.batch == 0) at->far = at->low;
    at->low = *held;
}

/* If `plays`, only batches fit whose peaks are known. */
static struct bracket bracket_of(const struct largest_batch *search, double hbm_bytes, bool plays)
{
    struct bracket at = {.hbm_bytes = hbm_bytes};
    const struct batch_held *const end = search->known + search->known_count;
    for (const struct batch_held *held = search->known; held < end; held++) {
        if (!fits(&at, held) || (plays && !held->is_peak)) continue;
        if (held->batch > at.low.batch)
            low_set(&at, held);
        else if (held->batch < at.low.batch && (at.far.batch == 0 || held->batch < at.far.batch))
            at.far = *held;
    }
    for (const struct batch_held *held = search->known; held < end; held++)
        if (!fits(&at, held) && held->batch > at.low.batch &&
            (at.high.batch == 0 || held->batch < at.high.batch))
            at.high = *held;
    return at;
}

/* The largest batch that holds about as much. */
static uint64_t rounded_up(uint64_t batch, uint64_t step)
{
    return step > 1 ? (batch + step - 1) / step * step : batch;
}

/* Where memory ends if it grows from `one` to `other`, and on from there, evenly; 0: it does not
 * grow. */
static uint64_t line_end(const struct bracket *at, uint64_t step, const struct batch_held *one,
                         const struct batch_held *other)
{
    uint64_t const begin = rounded_up(one->batch, step);
    double const bytes = other->bytes - one->bytes;
    if (one->batch == 0 || other->batch == 0 || bytes <= 0 || isinf(other->bytes)) return 0;
    double const batches = (double)(rounded_up(other->batch, step) - begin);
    double const end = (double)begin + (at->hbm_bytes - one->bytes) / bytes * batches;
    return end < LARGEST_BATCH_MOST ? (uint64_t)end : LARGEST_BATCH_MOST;
}

/* The batch to look at next, `low` < it < `high`, and no more than there can be. */
static uint64_t guess(const struct bracket *at, uint64_t step, uint32_t guesses)
{
    uint64_t const low = at->low.batch, high = at->high.batch;
    uint64_t const most = high == 0 ? LARGEST_BATCH_MOST : high - 1;
    uint64_t next = 0;
    if (guesses < GUESSES_MAX) {
        /* Of a batch that does not fit it may not be known how much it holds in all, and above
         * `low` memory may grow otherwise: both lines are tried. */
        uint64_t const end = line_end(at, step, &at->far, &at->low);
        bool const is_end = end < low + (step > 1 ? step : 1);
        bool const above = end == 0 || (high != 0 && guesses % 2 == 1 && !is_end);
        next = above ? line_end(at, step, &at->low, &at->high) : end;
    }
    if (next == 0) next = high == 0 ? 2 * low : low + (high - low) / 2;
    if (guesses < GUESSES_MAX && step > 1) {
        uint64_t const whole = next / step * step, above = (low / step + 1) * step;
        next = whole > low || low % step == 0 ? whole : above;
    }
    if (next > most) next = most;
    return next <= low ? low + 1 : next;
}

/* Whether what is between a batch that fits and one that does not need not be looked at. */
static bool is_narrow(const struct largest_batch *search, const struct bracket *at)
{
    uint64_t const low = at->low.batch, high = at->high.batch;
    return high != 0 && high - low <= 1 + (search->part == 0 ? 0 : low / search->part);
}

/* Of what the last search has found. */
static void end_note(struct largest_batch *search, const struct batch_held *high)
{
    search->refused = high->batch != 0 && isinf(high->bytes) ? high->batch : 0;
}

/* Until the batch behind `low` is known not to fit. */
static enum status narrow(struct largest_batch *search, struct bracket *at, uint64_t first,
                          bool plays, struct error *reterr)
{
    uint64_t const most = at->high.batch == 0 ? LARGEST_BATCH_MOST : at->high.batch - 1;
    if (first > most) first = most;
    uint64_t next = first > at->low.batch ? first : guess(at, search->step, 0);
    for (uint32_t guesses = 1; at->low.batch < LARGEST_BATCH_MOST && !is_narrow(search, at);
         guesses++) {
        struct batch_held held = {.batch = next};
        STATUS_TRY(search->held_find(search->owner, at->hbm_bytes, plays, &held, reterr));
        largest_batch_add(search, &held);
        if (fits(at, &held))
            low_set(at, &held);
        else
            at->high = held;
        next = guess(at, search->step, guesses);
    }
    return STATUS_OK;
}

enum status largest_batch_find(struct largest_batch *search, double hbm_bytes, uint64_t first,
                               uint64_t *ret_batch, struct error *reterr)
{
    struct bracket least = bracket_of(search, hbm_bytes, false);
    if (!search->peaks_are_higher)
        STATUS_TRY(narrow(search, &least, least.far.batch == 0 ? first : 0, false, reterr));
    struct bracket peaks = bracket_of(search, hbm_bytes, true);
    *ret_batch = peaks.low.batch;
    if (!search->peaks_are_higher) {
        end_note(search, &least.high);
        if (peaks.low.batch == least.low.batch) return STATUS_OK;
        if (peaks.high.batch == 0 || peaks.high.batch > least.low.batch + 1)
            peaks.high = least.high;
        first = least.low.batch;
    }
    STATUS_TRY(narrow(search, &peaks, peaks.far.batch == 0 ? first : 0, true, reterr));
    *ret_batch = peaks.low.batch;
    end_note(search, &peaks.high);
    search->peaks_are_higher |= peaks.low.batch < least.low.batch;
    return STATUS_OK;
}
