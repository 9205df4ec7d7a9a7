/* The largest batch that fits on a curve of `podsim pareto`: not only among those of its points. */
#include "tools/podsim/common/worker.h"
#include "tools/podsim/pareto/pareto.h"

enum { GUESSES_MAX = 8 }; /* Behind them halves. */

/* A batch, and what a chip holds of it. */
struct held {
    uint32_t batch;
    double bytes;
    bool is_peak; /* It holds no more at any time. */
};

/* `low` fits, or is 0; `high` does not, or is 0 where none is known that does not. */
struct search {
    struct pareto *pareto;
    struct pareto_curve *curve;
    struct held low, high;
    bool plays; /* Else what a batch holds at least is asked for, which is known without a run. */
};

static bool fits(const struct search *search, double bytes)
{
    return bytes <= (double)search->curve->hbm_bytes;
}

/* Where memory would end if it grew evenly from the one to the other, or, where none is known that
 * does not fit, twice as many. */
static uint32_t guess(const struct search *search, uint32_t step)
{
    const struct held *low = &search->low, *high = &search->high;
    if (high->batch == 0) return 2 * low->batch + (low->batch == 0);
    uint32_t next = low->batch + (high->batch - low->batch) / 2;
    if (step < GUESSES_MAX && low->batch > 0 && high->bytes > low->bytes) {
        double const share =
            ((double)search->curve->hbm_bytes - low->bytes) / (high->bytes - low->bytes);
        next = low->batch + (uint32_t)(share * (double)(high->batch - low->batch));
    }
    if (next >= high->batch) next = high->batch - 1;
    return next <= low->batch ? low->batch + 1 : next;
}

/* Until the batch behind `low` is known not to fit. */
static enum status narrow(struct search *search, uint32_t next, struct error *reterr)
{
    for (uint32_t step = 0; search->high.batch != search->low.batch + 1; step++) {
        struct pareto_point point = {.batch = next};
        if (next > PARETO_BATCH_MOST) break;
        STATUS_TRY(worker_check(search->pareto->worker, reterr));
        STATUS_TRY(pareto_take(search->pareto, search->curve, &point, search->plays, reterr));
        bool const is = point.state != PARETO_REFUSED && fits(search, point.memory_bytes);
        *(is ? &search->low : &search->high) =
            (struct held){next, point.memory_bytes, point.memory_is_peak};
        next = guess(search, step);
    }
    return STATUS_OK;
}

/* First by what batches hold at least, then by their peaks, where these may be higher. */
enum status pareto_find_wall(struct pareto *pareto, struct pareto_curve *curve,
                             struct error *reterr)
{
    struct search search = {.pareto = pareto, .curve = curve};
    for (uint32_t b = 0; b < pareto->batch_count && search.high.batch == 0; b++) {
        const struct pareto_point *point = &curve->point[b];
        struct held const held = {point->batch, point->memory_bytes, point->memory_is_peak};
        if (point->state == PARETO_REFUSED) continue;
        *(fits(&search, point->memory_bytes) ? &search.low : &search.high) = held;
    }
    struct held const known = search.low;
    STATUS_TRY(narrow(&search, guess(&search, 0), reterr));
    uint32_t const most = search.low.batch;
    curve->wall = most;
    if (search.low.is_peak) return STATUS_OK;
    search.low = known;
    search.high.batch = most + 1;
    search.plays = true;
    if (most > known.batch) STATUS_TRY(narrow(&search, most, reterr));
    curve->wall = search.low.batch;
    return STATUS_OK;
}
