/* The figures of `podsim pareto`, as CSV and as JSON. */
#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "sim/report/frontier.h"
#include "sim/report/table.h"
#include "tools/podsim/pareto/pareto.h"

/* "84%" of 0.843 */
static struct table_figure share(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.0f%%", 100 * value.real);
    return figure;
}

/* Three digits at least: "8.41", "84.1", "841", "1,204" */
static struct table_figure rate(struct column_value value)
{
    struct table_figure figure;
    if (value.real >= 999.5) return table_count((uint64_t)(value.real + 0.5));
    (void)snprintf(figure.text, sizeof figure.text, "%.*f",
                   value.real < 9.995   ? 2
                   : value.real < 99.95 ? 1
                                        : 0,
                   value.real);
    return figure;
}

/* Of a million tokens. */
static double cost_usd(const struct pareto *pareto, double tokens_per_s_per_chip)
{
    enum { SECONDS_PER_HOUR = 3600, MILLION = 1000000 };
    return pareto->usd_per_chip_h / SECONDS_PER_HOUR / tokens_per_s_per_chip * MILLION;
}

static const char *const states[] = {
    [PARETO_PLAYED] = "simulated", [PARETO_UNFIT] = "does not fit", [PARETO_REFUSED] = "refused"};

/* Three digits: "41.4", "0.00312", "1234" */
static struct table_figure dollars(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, value.real < 999.5 ? "%.3g" : "%.0f",
                   value.real);
    return figure;
}

#define PLAYED(value) WHERE(point->state == PARETO_PLAYED, value)
#define BUILT(value) WHERE(point->state != PARETO_REFUSED, value)
#define PRICED(value) WHERE(pareto->usd_per_chip_h > 0, value)
#define PART(part) PLAYED(REAL(point->shares.s[INFERENCE_SHARE_##part]))
#define SHARE(part) PLAYED(REAL(point->shares.s[INFERENCE_SHARE_##part] / point->latency_s))

#define TABLE(X)                                                                                   \
    X(SHAPE, "shape", WORDS(pareto_shape(curve)), HIDDEN)                                          \
    X(CHIPS, "chips", BUILT(WHOLE(curve->chip_count)), HIDDEN)                                     \
    X(MESH, "mesh", WORDS(pareto_mesh(curve)), HIDDEN)                                             \
    X(LENGTH, "context", BUILT(REAL(point->length_tokens)), HIDDEN)                                \
    X(BATCH, "batch", WHOLE(point->batch), SHOWN("", "batch", 6, column_plain))                    \
    X(STATE, "state", WORDS(states[point->state]), HIDDEN)                                         \
    X(WHY, "reason", WHERE(point->why != NULL, WORDS(point->why)), HIDDEN)                         \
    X(FRONTIER, "on_frontier", PLAYED(FLAG(point->is_on_frontier)), HIDDEN)                        \
    X(KNEE, "knee", PLAYED(FLAG(point->is_knee)), HIDDEN)                                          \
    X(LATENCY, "latency_s", PLAYED(REAL(point->latency_s)),                                        \
      SHOWN("", "latency", 9, column_seconds))                                                     \
    X(USER, "tokens_per_s_per_user", PLAYED(REAL(point->tokens_per_s_per_user)),                   \
      SHOWN("tokens/s", "a user", 8, rate))                                                        \
    X(CHIP, "tokens_per_s_per_chip", PLAYED(REAL(point->tokens_per_s_per_chip)),                   \
      SHOWN("", "a chip", 8, rate))                                                                \
    X(COST, "usd_per_million_tokens",                                                              \
      PRICED(PLAYED(REAL(cost_usd(pareto, point->tokens_per_s_per_chip)))),                        \
      SHOWN("USD per", "Mtoken", 8, dollars))                                                      \
    X(WEIGHTS_S, "weights_s", PART(WEIGHTS), HIDDEN)                                               \
    X(KV_S, "kv_s", PART(KV), HIDDEN)                                                              \
    X(MATH_S, "math_s", PART(MATH), HIDDEN)                                                        \
    X(HOPS_S, "hops_s", PART(HOPS), HIDDEN)                                                        \
    X(BYTES_S, "bytes_s", PART(BYTES), HIDDEN)                                                     \
    X(LAUNCHES_S, "launches_s", PART(LAUNCHES), HIDDEN)                                            \
    X(OTHER_S, "other_s", PART(OTHER), HIDDEN)                                                     \
    X(WEIGHTS, NULL, SHARE(WEIGHTS), SHOWN("shares", "weights", 8, share))                         \
    X(KV, NULL, SHARE(KV), SHOWN("", "KV", 5, share))                                              \
    X(MATH, NULL, SHARE(MATH), SHOWN("", "math", 5, share))                                        \
    X(HOPS, NULL, SHARE(HOPS), SHOWN("", "hops", 5, share))                                        \
    X(BYTES, NULL, SHARE(BYTES), SHOWN("", "bytes", 6, share))                                     \
    X(BOOK_COST, "book_usd_per_million_tokens",                                                    \
      PRICED(BUILT(REAL(cost_usd(pareto, point->book_tokens_per_s_per_chip)))), HIDDEN)            \
    X(MEMORY, "memory_bytes", PLAYED(REAL(point->memory_bytes)), HIDDEN)                           \
    X(LEAST, "least_bytes", WHERE(point->state == PARETO_UNFIT, REAL(point->memory_bytes)),        \
      HIDDEN)                                                                                      \
    X(BOOK_KV, "book_kv_s", BUILT(REAL(point->book.kv_s)), HIDDEN)                                 \
    X(BOOK_WEIGHTS, "book_weights_s", BUILT(REAL(point->book.weights_s)), HIDDEN)                  \
    X(BOOK_MATH, "book_math_s", BUILT(REAL(point->book.math_s)), HIDDEN)                           \
    X(BOOK, "book_step_s", BUILT(REAL(point->book.step_s)),                                        \
      SHOWN("", "formula", 9, column_seconds))                                                     \
    X(BOOK_CHIP, "book_tokens_per_s_per_chip", BUILT(REAL(point->book_tokens_per_s_per_chip)),     \
      HIDDEN)

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
_Static_assert((int)COLUMN_TOTAL <= (int)COLUMNS_MAX, "a point's values have room");

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const uint8_t screen[] = {BATCH, LATENCY, USER, CHIP, WEIGHTS, KV, MATH, HOPS, BYTES, BOOK};
static const uint8_t priced[] = {BATCH, LATENCY, USER, CHIP,  COST, WEIGHTS,
                                 KV,    MATH,    HOPS, BYTES, BOOK};

/* All that have a key. */
static const uint8_t csv[] = {SHAPE,     CHIPS,        MESH,      LENGTH,  BATCH,      STATE,
                              FRONTIER,  KNEE,         LATENCY,   USER,    CHIP,       WEIGHTS_S,
                              KV_S,      MATH_S,       HOPS_S,    BYTES_S, LAUNCHES_S, OTHER_S,
                              BOOK_KV,   BOOK_WEIGHTS, BOOK_MATH, BOOK,    BOOK_CHIP,  COST,
                              BOOK_COST, MEMORY,       LEAST,     WHY};
const struct column_line pareto_cells = COLUMN_LINE(columns, csv);

struct pareto_wall pareto_wall(const struct pareto_curve *curve)
{
    struct pareto_wall wall;
    struct table_figure const most = table_count(curve->wall);
    const char *const about = curve->wall_is_estimate ? "about " : "";
    if (curve->refused.batch != 0)
        (void)snprintf(wall.text, sizeof wall.text, "at most %s%s, as %s are refused", about,
                       most.text, table_count(curve->refused.batch).text);
    else
        (void)snprintf(wall.text, sizeof wall.text, "memory holds %s%s",
                       curve->wall == PARETO_BATCH_MOST ? "at least " : about, most.text);
    return wall;
}

enum inference_part pareto_part(const struct pareto *pareto)
{
    return inference_batch_part(&pareto->base.scenario.workload.inference);
}

uint32_t pareto_count(const struct pareto *pareto, enum pareto_state state)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < pareto->curve_count; c++)
        for (uint32_t b = 0; b < pareto->batch_count; b++)
            count += pareto->curve[c].point[b].state == state;
    return count;
}

const char *pareto_shape(const struct pareto_curve *curve)
{
    if (curve->shape_text != NULL) return curve->shape_text;
    return curve->shape->word != NULL ? curve->shape->word : "";
}

const char *pareto_mesh(const struct pareto_curve *curve)
{
    if (curve->mesh_text != NULL) return curve->mesh_text;
    return curve->mesh->word != NULL ? curve->mesh->word : "";
}

void pareto_add_length(const struct pareto *pareto, const struct pareto_curve *curve,
                       struct strbuf *text)
{
    uint64_t const mean = curve->drawn.mean;
    uint64_t const tokens = mean != 0 ? mean : (uint64_t)(curve->length_tokens + 0.5);
    struct counted const noun = counted_noun(tokens, "token");
    strbuf_add(text, "%s ", pareto_part(pareto) == INFERENCE_DECODES ? "context" : "prompts");
    if (curve->chip_count == 0)
        strbuf_add(text, "of %s tokens", curve->length->word);
    else if (mean != 0)
        strbuf_add(text, "drawn (%s, mean %s %s)", lengths_shape_names[curve->drawn.shape],
                   table_count(tokens).text, noun.text);
    else
        strbuf_add(text, "of %s %s", table_count(tokens).text, noun.text);
}

static void find(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct pareto *pareto = owner;
    const struct pareto_curve *curve = &pareto->curve[row / pareto->batch_count];
    const struct pareto_point *point = &curve->point[row % pareto->batch_count];
    TABLE(COLUMN_FIND)
}

const struct column_table pareto_table = {columns, COLUMN_TOTAL, COLUMN_LINE(columns, screen),
                                          find};
const struct column_table pareto_priced_table = {columns, COLUMN_TOTAL,
                                                 COLUMN_LINE(columns, priced), find};

void pareto_write_csv(const struct pareto *pareto, struct strbuf *text)
{
    column_add_keys(&pareto_cells, text);
    strbuf_add(text, "\n");
    for (uint32_t row = 0; row < pareto->curve_count * pareto->batch_count; row++) {
        struct column_value values[COLUMN_TOTAL];
        find(pareto, row, values);
        column_add_cells(&pareto_cells, values, text);
        strbuf_add(text, "\n");
    }
}

#define RAN(value) WHERE(curve->chip_count != 0, value)
#define BOUNDED(batch) WHERE((batch) != INFERENCE_ANY_BATCH, WHOLE(batch))

#define CURVES(X)                                                                                  \
    X(CURVE_SHAPE, "shape", WORDS(pareto_shape(curve)), HIDDEN)                                    \
    X(CURVE_MESH, "mesh", WORDS(pareto_mesh(curve)), HIDDEN)                                       \
    X(CURVE_CHIPS, "chips", RAN(WHOLE(curve->chip_count)), HIDDEN)                                 \
    X(CURVE_LENGTH, "context", RAN(REAL(curve->length_tokens)), HIDDEN)                            \
    X(CURVE_KNEE, "knee_batch",                                                                    \
      RAN(WHERE(curve->knee != frontier_none, WHOLE(curve->point[curve->knee].batch))), HIDDEN)    \
    X(CURVE_CRITICAL, "critical_tokens", RAN(REAL(curve->critical_tokens)), HIDDEN)                \
    X(CURVE_WALL, "max_batch", RAN(WHOLE(curve->wall)), HIDDEN)                                    \
    X(CURVE_ABOUT, "max_batch_is_estimate", RAN(FLAG(curve->wall_is_estimate)), HIDDEN)            \
    X(CURVE_REFUSED, "max_batch_refused",                                                          \
      RAN(WHERE(curve->refused.batch != 0, WORDS(curve->refused.reason))), HIDDEN)                 \
    X(CURVE_BOOK_WALL, "book_max_batch", RAN(BOUNDED(curve->book_wall)), HIDDEN)

#define HEAD(X)                                                                                    \
    X(PODSIM, "podsim", WHOLE(1), HIDDEN)                                                          \
    X(KIND, "kind", WORDS("pareto"), HIDDEN)                                                       \
    X(TITLE, "title", WORDS(pareto->base.title), HIDDEN)                                           \
    X(MODEL, "model", WORDS(plan->model.name), HIDDEN)                                             \
    X(PHASE, "phase", WORDS(inference_phase(plan)), HIDDEN)                                        \
    X(CHIP_NAME, "chip", WORDS(pareto->chip.name), HIDDEN)                                         \
    X(PROFILE, "profile", WORDS(pareto->chip.profile), HIDDEN)                                     \
    X(PRICE, "usd_per_chip_hour", PRICED(REAL(pareto->usd_per_chip_h)), HIDDEN)                    \
    X(PRICE_SOURCE, "price_source", PRICED(WORDS(pareto->price_source)), HIDDEN)

enum { CURVES(COLUMN_NAME) CURVES_TOTAL };
enum { HEAD(COLUMN_NAME) HEAD_TOTAL };

static const struct column curves[] = {CURVES(COLUMN_ENTRY)};
static const struct column head[] = {HEAD(COLUMN_ENTRY)};

static void find_curve(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct pareto_curve *curve = &((const struct pareto *)owner)->curve[row];
    CURVES(COLUMN_FIND)
}

static void find_head(const struct pareto *pareto, struct column_value *ret_values)
{
    const struct workload_plan *plan = &pareto->base.scenario.workload;
    HEAD(COLUMN_FIND)
}

static const struct column_table curves_table = {curves, CURVES_TOTAL, {0}, find_curve};

void pareto_write_json(const struct pareto *pareto, struct strbuf *text)
{
    struct column_value values[HEAD_TOTAL];
    struct json_writer json;
    find_head(pareto, values);
    json_write_start(&json, text);
    json_write_object(&json);
    column_put(head, values, 0, HEAD_TOTAL - 1, &json);
    json_write_key(&json, "curves");
    column_put_rows(&curves_table, pareto, pareto->curve_count, &json);
    json_write_key(&json, "points");
    column_put_rows(&pareto_table, pareto, pareto->curve_count * pareto->batch_count, &json);
    json_write_object_end(&json);
    strbuf_add(text, "\n");
}
