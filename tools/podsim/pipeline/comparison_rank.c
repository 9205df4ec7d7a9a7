/* Which rows of `podsim pipeline` are best, and in which order they are shown. */
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/report/table.h"
#include "tools/podsim/pipeline/comparison.h"

static const struct {
    const char *word, *other;
} keys[] = {
#define X(name, word, other) {word, other},
    COMPARISON_KEY_TABLE(X)
#undef X
};

/* Where a sort key is none of the figures. */
enum { SORT_CATALOGUE = COMPARISON_KEY_COUNT, SORT_NAME };

/* The key that --sort names; SORT_CATALOGUE if it was not given. Returns false if it is unknown. */
static bool sort_key(const struct comparison *comparison, uint32_t *ret_key)
{
    const char *word = options_value(comparison->options, "--sort");
    *ret_key = SORT_CATALOGUE;
    if (word == NULL) return true;
    *ret_key = SORT_NAME;
    if (strcmp(word, "name") == 0) return true;
    for (*ret_key = 0; *ret_key < COMPARISON_KEY_COUNT; (*ret_key)++)
        if (strcmp(word, keys[*ret_key].word) == 0 || strcmp(word, keys[*ret_key].other) == 0)
            return true;
    return false;
}

enum status comparison_check_sort(const struct comparison *comparison, struct error *reterr)
{
    const char *names[2 * COMPARISON_KEY_COUNT + 2] = {"name"};
    uint32_t key = 0;
    if (sort_key(comparison, &key)) return STATUS_OK;
    const char *word = options_value(comparison->options, "--sort");
    for (uint32_t i = 0; i < COMPARISON_KEY_COUNT; i++) {
        names[1 + 2 * i] = keys[i].word;
        names[2 + 2 * i] = keys[i].other;
    }
    return error_set(reterr, STATUS_NOT_FOUND, "--sort",
                     "rows are not sorted by \"%.40s\"%s (there are name, period, "
                     "step or makespan, bubble, memory or held)",
                     word, name_offer(word, names, "; the nearest is ", "", "").text);
}

static bool is_search(const struct comparison_row *row)
{
    return row->form != NULL && row->form->heeds_times;
}

static bool is_better(const struct comparison_row *row, const struct comparison_row *other)
{
    if (row->figure[COMPARISON_PERIOD] != other->figure[COMPARISON_PERIOD])
        return row->figure[COMPARISON_PERIOD] < other->figure[COMPARISON_PERIOD];
    if (is_search(row) != is_search(other)) return is_search(other);
    return row->figure[COMPARISON_MEMORY] < other->figure[COMPARISON_MEMORY];
}

static void mark_best(struct comparison *comparison)
{
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        struct comparison_row *row = &comparison->row[i];
        row->best = row->refused.status == STATUS_OK && row->fits;
        for (uint32_t k = 0; k < comparison->done_count && row->best; k++) {
            const struct comparison_row *other = &comparison->row[k];
            if (other->refused.status == STATUS_OK && other->fits &&
                comparison->way->are_compared(row, other) && is_better(other, row))
                row->best = false;
        }
    }
}

/* Whether a row is shown before another that comes before it. */
static bool is_before(const struct comparison_row *row, const struct comparison_row *other,
                      uint32_t key)
{
    if (is_search(row) != is_search(other)) return is_search(other);
    if (key == SORT_CATALOGUE) return false;
    if (key == SORT_NAME) return strcmp(row->name, other->name) < 0;
    return row->figure[key] < other->figure[key];
}

void comparison_rank(struct comparison *comparison)
{
    uint32_t key = 0;
    (void)sort_key(comparison, &key); /* A wrong one was refused before anything was simulated. */
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        if (comparison->row[i].refused.status == STATUS_OK) comparison->way->rank(comparison, i);
        uint32_t at = i;
        for (; at > 0; at--) { /* Equal rows keep the order that they were asked for in. */
            uint32_t const before = comparison->order[at - 1];
            if (!is_before(&comparison->row[i], &comparison->row[before], key)) break;
            comparison->order[at] = before;
        }
        comparison->order[at] = i;
    }
    mark_best(comparison);
}

struct comparison_label comparison_label(const struct comparison_row *row)
{
    struct comparison_label label;
    (void)snprintf(label.text, sizeof label.text, "%s%s%s", row->best ? "* " : "  ", row->name,
                   is_search(row) ? " (search)" : "");
    return label;
}

const char *comparison_heading(struct arena *arena, const struct comparison_row *row)
{
    struct comparison_label const label = comparison_label(row);
    return arena_text(arena, label.text + (row->best ? 0 : 2));
}

void comparison_write_signs(const struct comparison *comparison, struct strbuf *text)
{
    bool searches = false, has_too_much = false, any = false;
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct comparison_row *row = &comparison->row[i];
        searches = searches || (is_search(row) && row->refused.status == STATUS_OK);
        has_too_much = has_too_much || (row->refused.status == STATUS_OK && !row->fits);
        any = any || row->best;
    }
    if (any)
        table_wrap(text, 2,
                   has_too_much
                       ? "*: best, the shortest period of the rows that fit; of equal ones the "
                         "least memory"
                       : "*: best, the shortest period; of equal ones the least memory");
    if (searches)
        table_wrap(text, 2,
                   "(search): no published schedule, but an order found for these durations and "
                   "this memory");
}
