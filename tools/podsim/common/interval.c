#include "tools/podsim/common/interval.h"

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/report/run_interval.h"
#include "tools/podsim/common/session.h"

/* Which rows are in a pool. */
struct gathering {
    const struct residuals *residuals;
    const bool *left_out;
    const struct residual_kind *kind;
    const char *without; /* Another publication that is left out; NULL: none is. */
};

/* A row of the work that is not left out. */
static bool is_of_work(const struct gathering *gathering, uint32_t i)
{
    bool const is_left_out = gathering->left_out != NULL && gathering->left_out[i];
    return !is_left_out && gathering->residuals->row[i].kind.work == gathering->kind->work;
}

static bool has(const struct gathering *gathering, uint32_t i)
{
    const struct residual *row = &gathering->residuals->row[i];
    bool const is_without =
        gathering->without != NULL && name_same(row->publication, gathering->without);
    return is_of_work(gathering, i) && !is_without;
}

static bool is_alike(const struct residual_kind *kind, const struct residual_kind *other)
{
    bool const is_same_stack =
        !kind->is_own_stack && !other->is_own_stack && name_same(kind->stack, other->stack);
    return is_same_stack && name_same(kind->chip, other->chip);
}

/* Of the publication of a row. */
struct publication {
    uint32_t rows;
    bool is_first; /* The row is the first of them, of those that are alike or of the others. */
};

static struct publication publication_of(const struct gathering *gathering, uint32_t i)
{
    const struct residual *rows = gathering->residuals->row;
    bool const alike = is_alike(gathering->kind, &rows[i].kind);
    struct publication publication = {.is_first = true};
    for (uint32_t j = 0; j < gathering->residuals->row_count; j++) {
        if (!has(gathering, j) || !name_same(rows[j].publication, rows[i].publication)) continue;
        publication.rows++;
        if (j < i && is_alike(gathering->kind, &rows[j].kind) == alike)
            publication.is_first = false;
    }
    return publication;
}

static void entry_insert(struct interval_pool *pool, struct interval_entry entry)
{
    uint32_t at = pool->count++;
    for (; at > 0 && pool->entry[at - 1].ratio > entry.ratio; at--)
        pool->entry[at] = pool->entry[at - 1];
    pool->entry[at] = entry;
}

/* The least ratio that, with all below, has half of the votes. */
static double median_of(const struct interval_pool *pool)
{
    double sum = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        sum += pool->entry[i].votes;
        if (2 * sum >= pool->votes) return pool->entry[i].ratio;
    }
    return 0;
}

static void row_gather(const struct gathering *gathering, uint32_t i, struct interval_pool *pool)
{
    const struct residual *row = &gathering->residuals->row[i];
    struct publication const publication = publication_of(gathering, i);
    bool const alike = is_alike(gathering->kind, &row->kind);
    struct interval_entry const entry = {.ratio = row->ratio_ppm / 1e6,
                                         .votes = 1.0 / publication.rows};
    entry_insert(pool, entry);
    pool->votes += entry.votes;
    *(alike ? &pool->alike_rows : &pool->other_rows) += 1;
    if (publication.is_first) *(alike ? &pool->alike_publications : &pool->other_publications) += 1;
}

/* `entry` has room for all residuals. */
static struct interval_pool pool_gather(const struct gathering *gathering,
                                        struct interval_entry *entry)
{
    struct interval_pool pool = {.entry = entry};
    for (uint32_t i = 0; i < gathering->residuals->row_count; i++)
        if (has(gathering, i)) row_gather(gathering, i, &pool);
    pool.median = median_of(&pool);
    return pool;
}

enum status interval_pool_build(struct arena *arena, const struct residuals *residuals,
                                const bool *left_out, const struct residual_kind *kind,
                                struct interval_pool *ret_pool, struct error *reterr)
{
    struct gathering const gathering = {residuals, left_out, kind, NULL};
    void *memory = NULL;
    *ret_pool = (struct interval_pool){.count = 0};
    STATUS_TRY(
        arena_try(arena, residuals->row_count, sizeof(struct interval_entry), &memory, reterr));
    *ret_pool = pool_gather(&gathering, memory);
    return STATUS_OK;
}

double interval_distance(double median, double ratio)
{
    return ratio > median ? ratio / median : median / ratio;
}

/* Each row's distance from the median of the other publications, rising. Rows of a publication have
 * the same median. */
static uint32_t distances_find(struct gathering *gathering, struct interval_entry *entry,
                               double *distances)
{
    const struct residuals *residuals = gathering->residuals;
    double median = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < residuals->row_count; i++) {
        const struct residual *row = &residuals->row[i];
        if (!is_of_work(gathering, i)) continue;
        if (gathering->without == NULL || !name_same(gathering->without, row->publication)) {
            gathering->without = row->publication;
            median = pool_gather(gathering, entry).median;
        }
        double const distance = median > 0 ? interval_distance(median, row->ratio_ppm / 1e6)
                                           : RESIDUAL_RATIO_MOST_PPM / 1e6;
        uint32_t at = count++;
        for (; at > 0 && distances[at - 1] > distance; at--) distances[at] = distances[at - 1];
        distances[at] = distance;
    }
    return count;
}

enum status interval_reach(struct arena *arena, const struct residuals *residuals,
                           const bool *left_out, const struct residual_kind *kind,
                           const uint32_t *percent, uint32_t count, double *ret_reach,
                           struct error *reterr)
{
    struct gathering gathering = {residuals, left_out, kind, NULL};
    void *entry = NULL, *distances = NULL;
    STATUS_TRY(
        arena_try(arena, residuals->row_count, sizeof(struct interval_entry), &entry, reterr));
    STATUS_TRY(arena_try(arena, residuals->row_count, sizeof(double), &distances, reterr));
    uint32_t const rows = distances_find(&gathering, entry, distances);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t const held = ((uint64_t)rows * percent[i] + 99) / 100;
        ret_reach[i] = held == 0 ? 1 : ((double *)distances)[held - 1];
    }
    return STATUS_OK;
}

enum status interval_find(const struct session *session, struct report_interval *ret_interval,
                          struct error *reterr)
{
    struct residuals residuals;
    struct residual_kind kind;
    struct interval_pool pool;
    STATUS_TRY(residual_kind_find(session, &kind, reterr));
    STATUS_TRY(residuals_read(session->arena, &residuals, reterr));
    STATUS_TRY(interval_pool_build(session->arena, &residuals, NULL, &kind, &pool, reterr));
    if (pool.count == 0)
        return error_set(reterr, STATUS_UNSUPPORTED, "", "no measured step is one of %s",
                         residual_work_words[kind.work]);
    double const reach = residuals.reach_ppm[kind.work] / 1e6;
    *ret_interval = (struct report_interval){.coverage_percent = RESIDUAL_COVERAGE_PERCENT,
                                             .low = pool.median / reach,
                                             .median = pool.median,
                                             .high = pool.median * reach,
                                             .work = residual_work_words[kind.work],
                                             .chip = kind.chip,
                                             .stack = kind.stack,
                                             .rows = pool.alike_rows,
                                             .publications = pool.alike_publications,
                                             .other_rows = pool.other_rows,
                                             .other_publications = pool.other_publications};
    return STATUS_OK;
}
