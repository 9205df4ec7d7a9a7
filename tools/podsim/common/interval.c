#include "tools/podsim/common/interval.h"

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/report/run_interval.h"
#include "tools/podsim/common/session.h"

/* What a residual counts for each of chip, stack and width of the format that is another. */
static const double OTHER_WEIGHT = 0.3;

/* Which rows are in a pool, and of which publication. */
struct gathering {
    const struct residuals *residuals;
    const bool *left_out;
    const struct residual_kind *kind;
};

static bool has(const struct gathering *gathering, uint32_t i)
{
    const struct residual *row = &gathering->residuals->row[i];
    bool const is_left_out = gathering->left_out != NULL && gathering->left_out[i];
    return !is_left_out && row->kind.work == gathering->kind->work;
}

static bool is_same_stack(const struct residual_kind *kind, const struct residual_kind *other)
{
    return !kind->is_own_stack && !other->is_own_stack && name_same(kind->stack, other->stack);
}

static bool is_alike(const struct residual_kind *kind, const struct residual_kind *other)
{
    return name_same(kind->chip, other->chip) && is_same_stack(kind, other);
}

static double likeness(const struct residual_kind *kind, const struct residual_kind *other)
{
    double weight = 1;
    if (!name_same(kind->chip, other->chip)) weight *= OTHER_WEIGHT;
    if (!is_same_stack(kind, other)) weight *= OTHER_WEIGHT;
    if (kind->eight_bits != other->eight_bits) weight *= OTHER_WEIGHT;
    return weight;
}

/* Of the publication of a row. */
struct publication {
    double sum, most; /* Of the likenesses of its rows. */
    bool is_first;    /* The row is the first of them, of those that are alike or of the others. */
};

static struct publication publication_of(const struct gathering *gathering, uint32_t i)
{
    const struct residual *rows = gathering->residuals->row;
    bool const alike = is_alike(gathering->kind, &rows[i].kind);
    struct publication publication = {.is_first = true};
    for (uint32_t j = 0; j < gathering->residuals->row_count; j++) {
        if (!has(gathering, j) || !name_same(rows[j].publication, rows[i].publication)) continue;
        double const weight = likeness(gathering->kind, &rows[j].kind);
        publication.sum += weight;
        if (weight > publication.most) publication.most = weight;
        if (j < i && is_alike(gathering->kind, &rows[j].kind) == alike)
            publication.is_first = false;
    }
    return publication;
}

/* Rising by `ratio`, or by `distance`. */
static void entry_insert(struct interval_pool *pool, struct interval_entry entry, bool by_distance)
{
    uint32_t at = pool->count++;
    for (; at > 0; at--) {
        const struct interval_entry *before = &pool->entry[at - 1];
        if (by_distance ? before->distance <= entry.distance : before->ratio <= entry.ratio) break;
        pool->entry[at] = *before;
    }
    pool->entry[at] = entry;
}

static double distance_of(const struct interval_pool *pool, double ratio)
{
    return ratio > pool->median ? ratio / pool->median : pool->median / ratio;
}

/* The least ratio that, with all below, has half of the weight. */
static double median_of(const struct interval_pool *pool)
{
    double sum = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        sum += pool->entry[i].weight;
        if (2 * sum >= pool->weight) return pool->entry[i].ratio;
    }
    return 0;
}

static void row_gather(const struct gathering *gathering, uint32_t i, struct interval_pool *pool)
{
    const struct residual *row = &gathering->residuals->row[i];
    struct publication const publication = publication_of(gathering, i);
    double const weight =
        likeness(gathering->kind, &row->kind) * publication.most / publication.sum;
    bool const alike = is_alike(gathering->kind, &row->kind);
    struct interval_entry const entry = {.ratio = row->ratio_ppm / 1e6, .weight = weight};
    entry_insert(pool, entry, false);
    pool->weight += weight;
    if (alike) pool->alike_weight += weight;
    *(alike ? &pool->alike_rows : &pool->other_rows) += 1;
    if (publication.is_first) *(alike ? &pool->alike_publications : &pool->other_publications) += 1;
}

enum status interval_pool_build(struct arena *arena, const struct residuals *residuals,
                                const bool *left_out, const struct residual_kind *kind,
                                struct interval_pool *ret_pool, struct error *reterr)
{
    struct gathering const gathering = {residuals, left_out, kind};
    void *memory = NULL;
    *ret_pool = (struct interval_pool){.count = 0};
    STATUS_TRY(
        arena_try(arena, residuals->row_count, sizeof(struct interval_entry), &memory, reterr));
    ret_pool->entry = memory;
    for (uint32_t i = 0; i < residuals->row_count; i++)
        if (has(&gathering, i)) row_gather(&gathering, i, ret_pool);
    ret_pool->median = median_of(ret_pool);
    uint32_t const count = ret_pool->count;
    ret_pool->count = 0; /* Sorted anew in the same place. */
    for (uint32_t i = 0; i < count; i++) {
        struct interval_entry entry = ret_pool->entry[i];
        entry.distance = distance_of(ret_pool, entry.ratio);
        entry_insert(ret_pool, entry, true);
    }
    return STATUS_OK;
}

double interval_mass(const struct interval_pool *pool, double ratio)
{
    double const distance = distance_of(pool, ratio);
    double sum = 0;
    for (uint32_t i = 0; i < pool->count && pool->entry[i].distance < distance; i++)
        sum += pool->entry[i].weight;
    return sum / pool->weight;
}

void interval_cut(const struct interval_pool *pool, uint32_t mass_percent, double *ret_low,
                  double *ret_high)
{
    double sum = 0, distance = 1;
    for (uint32_t i = 0; i < pool->count && 100 * sum < mass_percent * pool->weight; i++) {
        sum += pool->entry[i].weight;
        distance = pool->entry[i].distance;
    }
    *ret_low = pool->median / distance;
    *ret_high = pool->median * distance;
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
    *ret_interval = (struct report_interval){.coverage_percent = RESIDUAL_COVERAGE_PERCENT,
                                             .median = pool.median,
                                             .work = residual_work_words[kind.work],
                                             .chip = kind.chip,
                                             .stack = kind.stack,
                                             .weight = pool.alike_weight / pool.weight,
                                             .rows = pool.alike_rows,
                                             .publications = pool.alike_publications,
                                             .other_rows = pool.other_rows,
                                             .other_publications = pool.other_publications};
    interval_cut(&pool, residuals.mass_percent, &ret_interval->low, &ret_interval->high);
    return STATUS_OK;
}
