/* Ragged exchanges in `podsim collective`: their options, and what was drawn. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/collective/ragged.h"
#include "sim/report/column_table.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/collective/collective.h"

static const uint64_t token_bytes_unasked = 8192;

/* "0.25", "1": millionths. */
static enum status skew_read(const struct options *options, uint32_t *ret_ppm, struct error *reterr)
{
    const char *text = options_value(options, "--skew");
    uint64_t ppm = 0, worth = PPM_ONE;
    if (text == NULL) return STATUS_OK;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && ppm <= 10 * PPM_ONE; at++)
        ppm = 10 * ppm + (uint64_t)(*at - '0') * PPM_ONE;
    bool const begun = at > text;
    if (begun && *at == '.')
        for (at++; *at >= '0' && *at <= '9' && worth > 1; at++)
            ppm += (uint64_t)(*at - '0') * (worth /= 10);
    if (!begun || *at != '\0' || ppm > PPM_ONE)
        return error_set(reterr, STATUS_INVALID, "--skew",
                         "\"%.40s\" is no number from 0 (experts all alike) to 1 (Zipf's law) with "
                         "at most six decimals",
                         text);
    *ret_ppm = (uint32_t)ppm;
    return STATUS_OK;
}

/* Each part at the option that it comes from: experts, then how many of them, then tokens. */
static enum status parts_check(const struct collective_study *study, struct error *reterr)
{
    struct plan_request request;
    const struct plan_ragged *ragged = &study->asked.row.ragged;
    uint64_t const least = study->sizes.begin_bytes;
    STATUS_TRY(measure_row_request(&study->asked.row, least, "-b", &request, reterr));
    request.ragged.top_k = 1;
    request.ragged.token_bytes = least;
    STATUS_TRY(ragged_check(&request, "--experts", reterr));
    request.ragged.top_k = ragged->top_k;
    STATUS_TRY(ragged_check(&request, "--top-k", reterr));
    request.ragged.token_bytes = ragged->token_bytes;
    STATUS_TRY(ragged_check(&request, "--token-bytes", reterr));
    STATUS_TRY(
        measure_row_request(&study->asked.row, study->sizes.end_bytes, "-e", &request, reterr));
    STATUS_TRY(ragged_check(&request, "-e", reterr));
    uint64_t const ranks = group_rank_count(&request.group);
    uint64_t const each = study->sizes.end_bytes / ragged->token_bytes;
    if (ragged_choices_fit(each, ranks, ragged->top_k)) return STATUS_OK;
    return error_set(
        reterr, STATUS_LIMIT, "-e",
        "%llu tokens on each of %llu ranks choose %u experts each, and all are drawn: "
        "more than 2^26 choices would take minutes; larger tokens or fewer are simulated",
        (unsigned long long)each, (unsigned long long)ranks, ragged->top_k);
}

enum status collective_read_ragged(const struct options *options, struct collective_study *study,
                                   struct error *reterr)
{
    static const char *const depend[] = {"--top-k", "--token-bytes", "--seed", "--skew"};
    struct measure_row_args *row = &study->asked.row;
    uint64_t experts = 0, top_k = 0;
    if (!options_has(options, "--experts")) {
        for (size_t i = 0; i < sizeof depend / sizeof *depend; i++)
            if (options_has(options, depend[i]))
                return error_set(reterr, STATUS_INVALID, depend[i],
                                 "says something of experts: --experts is missing");
        return STATUS_OK;
    }
    if (row->operation != MEASURE_ALL_TO_ALL)
        return error_set(reterr, STATUS_INVALID, "--experts", "%s has no experts; all_to_all may",
                         measure_op_name(row->operation));
    if (row->script != NULL)
        return error_set(reterr, STATUS_UNSUPPORTED, "--experts",
                         "an algorithm out of a file moves equal parts; leave --xml out");
    if (!options_has(options, "--top-k"))
        return error_set(reterr, STATUS_INVALID, "--top-k",
                         "is missing: how many of the experts a token goes to");
    row->ragged.token_bytes = token_bytes_unasked;
    STATUS_TRY(collective_read_count(options, "--experts", UINT32_MAX, &experts, reterr));
    if (experts == 0)
        return error_set(reterr, STATUS_INVALID, "--experts", "the least number is one a rank");
    STATUS_TRY(collective_read_count(options, "--top-k", UINT32_MAX, &top_k, reterr));
    STATUS_TRY(collective_read_count(options, "--seed", UINT64_MAX, &row->ragged.seed, reterr));
    STATUS_TRY(skew_read(options, &row->ragged.skew_ppm, reterr));
    const char *token = options_value(options, "--token-bytes");
    if (token != NULL)
        STATUS_TRY(sizes_parse(token, "--token-bytes", &row->ragged.token_bytes, reterr));
    row->ragged.expert_count = (uint32_t)experts;
    row->ragged.top_k = (uint32_t)top_k;
    return parts_check(study, reterr);
}

static struct table_figure four_digits(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.4f", value.real);
    return figure;
}

#define FARTHEST(value) WHERE(row->farthest_axis != NULL, value)

#define TABLE(X)                                                                                   \
    X(EXPERTS, "experts", WHOLE(ragged->expert_count), HIDDEN)                                     \
    X(TOP_K, "top_k", WHOLE(ragged->top_k), HIDDEN)                                                \
    X(TOKEN, "token_bytes", WHOLE(ragged->token_bytes), HIDDEN)                                    \
    X(TOKENS, "tokens", WHOLE(row->size_bytes / ragged->token_bytes), HIDDEN)                      \
    X(SEED, "seed", WHOLE(ragged->seed), HIDDEN)                                                   \
    X(SKEW, "skew", REAL((double)ragged->skew_ppm / PPM_ONE), HIDDEN)                              \
    X(SENT, "sent_bytes", WHOLE(load->sent_bytes), HIDDEN)                                         \
    X(SENT_LEAST, "sent_least_bytes", WHOLE(load->sent_least_bytes), IN_WORDS(column_plain))       \
    X(SENT_MOST, "sent_most_bytes", WHOLE(load->sent_most_bytes), IN_WORDS(column_plain))          \
    X(CAME_LEAST, "received_least_bytes", WHOLE(load->received_least_bytes),                       \
      IN_WORDS(column_plain))                                                                      \
    X(CAME_MOST, "received_most_bytes", WHOLE(load->received_most_bytes), IN_WORDS(column_plain))  \
    X(FAR_AXIS, "between_axis", FARTHEST(WORDS(row->farthest_axis)), IN_WORDS(column_words))       \
    X(FAR, "between_bytes", FARTHEST(WHOLE(row->farthest_bytes)), IN_WORDS(column_plain))          \
    X(DRAWN, "factor", REAL(factors.drawn), IN_WORDS(four_digits))                                 \
    X(DISTINCT, "factor_distinct", REAL(factors.distinct), IN_WORDS(four_digits))                  \
    X(INDEPENDENT, "factor_independent", REAL(factors.independent), IN_WORDS(four_digits))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};

static void find(const struct measure_row *row, struct column_value *ret_values)
{
    const struct plan_ragged *ragged = &row->args->ragged;
    const struct ragged_load *load = &row->load;
    struct measure_row_factors const factors = measure_row_factors(row);
    TABLE(COLUMN_FIND)
}

#define FIGURE(name) CELL(columns, values, name)

void collective_write_ragged(const struct measure_row *row, struct strbuf *text)
{
    struct column_value values[COLUMN_TOTAL];
    if (row->args->ragged.expert_count == 0) return;
    find(row, values);
    table_sentence(text);
    strbuf_add(text, "# drawn: %s a rank; a rank sends %s to %s bytes, receives %s to %s; ",
               counted(values[TOKENS].whole, "token").text, FIGURE(SENT_LEAST), FIGURE(SENT_MOST),
               FIGURE(CAME_LEAST), FIGURE(CAME_MOST));
    strbuf_add(text, "%s of the dense exchange, by the book %s or %s\n", FIGURE(DRAWN),
               FIGURE(DISTINCT), FIGURE(INDEPENDENT));
    if (row->farthest_axis == NULL) return;
    table_sentence(text);
    strbuf_add(text, "# between %ss: %s bytes of all ranks\n", FIGURE(FAR_AXIS), FIGURE(FAR));
}

void collective_put_ragged(const struct measure_row *row, struct json_writer *json)
{
    struct column_value values[COLUMN_TOTAL];
    if (row->args->ragged.expert_count == 0) return;
    find(row, values);
    json_put_object(json, "ragged");
    column_put(columns, values, 0, COLUMN_TOTAL - 1, json);
    json_write_object_end(json);
}
