/* Ragged exchanges in `podsim collective`: their options, and what was drawn. */
#include <stddef.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/collective/ragged.h"
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
    struct measure_row_question *row = &study->asked.row;
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

void collective_write_ragged(const struct measure_row *row, struct strbuf *text)
{
    const struct plan_ragged *ragged = &row->question->ragged;
    const struct ragged_load *load = &row->load;
    if (ragged->expert_count == 0) return;
    struct measure_row_factors const factors = measure_row_factors(row);
    strbuf_add(text, "# drawn: %s a rank; a rank sends %llu to %llu bytes",
               counted(row->size_bytes / ragged->token_bytes, "token").text,
               (unsigned long long)load->sent_least_bytes,
               (unsigned long long)load->sent_most_bytes);
    strbuf_add(text,
               ", receives %llu to %llu; %.4f of the dense exchange, by the book %.4f or %.4f\n",
               (unsigned long long)load->received_least_bytes,
               (unsigned long long)load->received_most_bytes, factors.drawn, factors.distinct,
               factors.independent);
    if (row->farthest_axis != NULL)
        strbuf_add(text, "# between %ss: %llu bytes of all ranks\n", row->farthest_axis,
                   (unsigned long long)row->farthest_bytes);
}

void collective_put_ragged(const struct measure_row *row, struct json_writer *json)
{
    const struct plan_ragged *ragged = &row->question->ragged;
    if (ragged->expert_count == 0) return;
    struct measure_row_factors const factors = measure_row_factors(row);
    json_put_object(json, "ragged");
    json_put_unsigned(json, "experts", ragged->expert_count);
    json_put_unsigned(json, "top_k", ragged->top_k);
    json_put_unsigned(json, "token_bytes", ragged->token_bytes);
    json_put_unsigned(json, "tokens", row->size_bytes / ragged->token_bytes);
    json_put_unsigned(json, "seed", ragged->seed);
    json_put_real(json, "skew", (double)ragged->skew_ppm / PPM_ONE);
    json_put_unsigned(json, "sent_bytes", row->load.sent_bytes);
    json_put_unsigned(json, "sent_least_bytes", row->load.sent_least_bytes);
    json_put_unsigned(json, "sent_most_bytes", row->load.sent_most_bytes);
    json_put_unsigned(json, "received_least_bytes", row->load.received_least_bytes);
    json_put_unsigned(json, "received_most_bytes", row->load.received_most_bytes);
    if (row->farthest_axis != NULL) {
        json_put_string(json, "between_axis", row->farthest_axis);
        json_put_unsigned(json, "between_bytes", row->farthest_bytes);
    }
    json_put_real(json, "factor", factors.drawn);
    json_put_real(json, "factor_distinct", factors.distinct);
    json_put_real(json, "factor_independent", factors.independent);
    json_write_object_end(json);
}
