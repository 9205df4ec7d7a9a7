#include "tests/validation/case_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const status_names[CASE_STATUS_COUNT] = {"equal", "explained", "not in scope",
                                                            "WRONG"};

static bool same(const char *left, const char *right)
{
    return strcmp(left, right) == 0;
}

static enum case_status of_case(const struct case_outcome *outcome, uint32_t count, uint32_t first,
                                uint32_t *ret_next)
{
    uint32_t seen[CASE_STATUS_COUNT] = {0};
    uint32_t i = first;
    for (; i < count && same(outcome[i].id, outcome[first].id); i++) seen[outcome[i].status]++;
    *ret_next = i;
    if (seen[CASE_WRONG] != 0) return CASE_WRONG;
    if (seen[CASE_EXPLAINED] != 0) return CASE_EXPLAINED;
    return seen[CASE_EQUAL] != 0 ? CASE_EQUAL : CASE_OUT;
}

struct case_counts case_count(const struct case_outcome *outcome, uint32_t count,
                              const char *category)
{
    struct case_counts counts = {0};
    for (uint32_t i = 0; i < count;) {
        uint32_t next = i;
        enum case_status const status = of_case(outcome, count, i, &next);
        bool const counted = category == NULL || same(outcome[i].category, category);
        if (counted) {
            counts.case_count++;
            counts.cases[status]++;
            counts.answer_count += next - i;
        }
        for (; i < next; i++) counts.answers[outcome[i].status] += counted;
    }
    return counts;
}

static const char *value_print(char buffer[CASE_TEXT_BYTES], const struct case_value *value)
{
    if (value->is_text)
        (void)snprintf(buffer, CASE_TEXT_BYTES, "%s", value->text);
    else
        (void)snprintf(buffer, CASE_TEXT_BYTES, "%.6g", value->number);
    return buffer;
}

static const char *difference_print(char buffer[CASE_TEXT_BYTES], const struct case_outcome *row)
{
    if (row->status == CASE_OUT) return "";
    if (row->book.is_text) return same(row->book.text, row->ours.text) ? "0" : "differs";
    if (fabs(row->difference) < 2e-5) return "0";
    (void)snprintf(buffer, CASE_TEXT_BYTES, "%+.2f %%", 100 * row->difference);
    return buffer;
}

void case_print(struct strbuf *text, const struct case_outcome *outcome, uint32_t count)
{
    char book[CASE_TEXT_BYTES], ours[CASE_TEXT_BYTES], difference[CASE_TEXT_BYTES];
    for (uint32_t i = 0; i < count; i++) {
        const struct case_outcome *row = &outcome[i];
        if (i == 0 || !same(row->id, outcome[i - 1].id))
            strbuf_add(text, "%s (%s)\n", row->id, row->chapter);
        strbuf_add(text, "    %s", row->answer);
        strbuf_pad(text, 36);
        strbuf_add(text, "%s %s", value_print(book, &row->book), row->unit);
        strbuf_pad(text, 60);
        strbuf_add(text, "%s", row->status == CASE_OUT ? "-" : value_print(ours, &row->ours));
        strbuf_pad(text, 76);
        strbuf_add(text, "%s", difference_print(difference, row));
        strbuf_pad(text, 88);
        strbuf_add(text, "%s%s%s\n", status_names[row->status], *row->why ? ": " : "", row->why);
    }
}

static void counts_markdown(struct strbuf *text, const struct case_outcome *outcome, uint32_t count)
{
    strbuf_add(text, "| category | cases | equal | explained | not in scope | answers | equal | "
                     "explained | not in scope |\n|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i <= count; i++) {
        const char *category = i == count ? NULL : outcome[i].category;
        if (category != NULL && i > 0 && same(category, outcome[i - 1].category)) continue;
        struct case_counts const counts = case_count(outcome, count, category);
        strbuf_add(text, "| %s | %u | %u | %u | %u | %u | %u | %u | %u |\n",
                   category == NULL ? "all" : category, counts.case_count, counts.cases[CASE_EQUAL],
                   counts.cases[CASE_EXPLAINED], counts.cases[CASE_OUT], counts.answer_count,
                   counts.answers[CASE_EQUAL], counts.answers[CASE_EXPLAINED],
                   counts.answers[CASE_OUT]);
    }
}

void case_markdown(struct strbuf *text, const struct case_outcome *outcome, uint32_t count)
{
    char book[CASE_TEXT_BYTES], ours[CASE_TEXT_BYTES], difference[CASE_TEXT_BYTES];
    counts_markdown(text, outcome, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct case_outcome *row = &outcome[i];
        bool const first = i == 0 || !same(row->id, outcome[i - 1].id);
        if (i == 0 || !same(row->category, outcome[i - 1].category))
            strbuf_add(text,
                       "\n## %s\n\n| case | answer | book | ours | by | difference | why |\n"
                       "|---|---|---|---|---|---|---|\n",
                       row->category);
        strbuf_add(text, "| %s%s%s%s | %s | %s %s | %s | %s | %s | %s |\n", first ? row->id : "",
                   first ? " (" : "", first ? row->chapter : "", first ? ")" : "", row->answer,
                   value_print(book, &row->book), row->unit,
                   row->status == CASE_OUT ? "not in scope" : value_print(ours, &row->ours),
                   row->status == CASE_OUT ? ""
                   : row->simulated        ? "simulated"
                                           : "formula",
                   difference_print(difference, row), row->why);
    }
}
