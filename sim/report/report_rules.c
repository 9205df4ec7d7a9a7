#include "sim/report/report_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "sim/roofline/rules.h"

static struct table_figure one_digit(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.1f", value.real);
    return figure;
}

/* Tokens of a decode are a few, or a part of one. */
static struct table_figure few_or_whole(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, value.real < 10 ? "%.3g" : "%.0f", value.real);
    return figure;
}

/* A rule that does not apply is 0, and has no key. */
#define RULE(figure) WHERE((figure) > 0, REAL(figure))

#define OR_ZERO(shown) .look = (shown), .none = "0"

#define TABLE(X)                                                                                   \
    X(RULE_ALPHA, "flop_per_byte", REAL(rules->alpha), OR_ZERO(column_whole))                      \
    X(RULE_TOKENS, "tokens_per_chip", REAL(rules->tokens_per_chip), OR_ZERO(few_or_whole))         \
    X(FSDP_CRITICAL, "fsdp_critical_tokens", RULE(rules->fsdp_critical_tokens),                    \
      OR_ZERO(column_whole))                                                                       \
    X(FSDP_EXACT, "fsdp_exact_tokens", RULE(rules->fsdp_exact_tokens), OR_ZERO(column_whole))      \
    X(FSDP_CROSSING, "fsdp_crossing_tokens", RULE(rules->fsdp_crossing_tokens),                    \
      OR_ZERO(column_whole))                                                                       \
    X(DP_CRITICAL, "dp_critical_tokens", RULE(rules->dp_critical_tokens), OR_ZERO(column_whole))   \
    X(DP_EXACT, "dp_exact_tokens", RULE(rules->dp_exact_tokens), OR_ZERO(column_whole))            \
    X(EXPERTS_CRITICAL, "experts_critical_tokens", RULE(rules->experts_critical_tokens),           \
      OR_ZERO(column_whole))                                                                       \
    X(EXPERTS_EXACT, "experts_exact_tokens", RULE(rules->experts_exact_tokens),                    \
      OR_ZERO(column_whole))                                                                       \
    X(TP_CRITICAL, "tp_critical_width", RULE(rules->tp_critical_width), OR_ZERO(column_whole))     \
    X(TP_EXACT, "tp_exact_width", RULE(rules->tp_exact_width), OR_ZERO(column_whole))              \
    X(TP_MLP, "tp_mlp_width", RULE(rules->tp_mlp_width), OR_ZERO(column_whole))                    \
    X(TP_ATTENTION, "tp_attention_width", RULE(rules->tp_attention_width), OR_ZERO(column_whole))  \
    X(TP_LAYER, "tp_layer_width", RULE(rules->tp_layer_width), OR_ZERO(column_whole))              \
    X(MIXED_BEST, "mixed_best_ranks", RULE(rules->mixed_best_ranks), OR_ZERO(one_digit))           \
    X(MIXED_CRITICAL, "mixed_critical_tokens", RULE(rules->mixed_critical_tokens),                 \
      OR_ZERO(column_whole))                                                                       \
    X(OFFLOAD_OPTIMIZER, "offload_optimizer_tokens", RULE(rules->offload_optimizer_tokens),        \
      OR_ZERO(column_whole))                                                                       \
    X(RING, "ring_tokens", RULE(rules->ring_tokens), OR_ZERO(column_whole))                        \
    X(RING_RANK, "ring_rank_tokens", RULE(rules->ring_rank_tokens), OR_ZERO(column_whole))         \
    X(OFFLOAD_ACTIVATIONS, "offload_activations_share", RULE(rules->offload_activations_share),    \
      OR_ZERO(column_two_digits))

/* A collective over tp, and the matmuls that can hide it. */
#define OVERLAP(X)                                                                                 \
    X(NAME, "name", WORDS(overlap->name), IN_WORDS(column_words))                                  \
    X(KIND, "kind", WORDS(collective_kind_name(overlap->kind)), HIDDEN)                            \
    X(COUNT, "count", WHOLE(overlap->count), HIDDEN)                                               \
    X(ARRAY, "bytes", REAL(overlap->bytes), HIDDEN)                                                \
    X(WIDTH, "width", REAL(overlap->width), IN_WORDS(column_whole))                                \
    X(LINK, "link_s", REAL(overlap->link_s), HIDDEN)                                               \
    X(MATH, "math_s", REAL(overlap->math_s), HIDDEN)

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
enum { OVERLAP(COLUMN_NAME) OVERLAP_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const struct column overlaps[] = {OVERLAP(COLUMN_ENTRY)};

static void find(const struct roofline_rules *rules, struct column_value *ret_values)
{
    TABLE(COLUMN_FIND)
}

static void find_overlap(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct roofline *roofline = owner;
    const struct roofline_overlap *overlap = &roofline->overlap[row];
    OVERLAP(COLUMN_FIND)
}

static const struct column_table overlaps_table = {overlaps, OVERLAP_TOTAL, {0}, find_overlap};

#define FIGURE(name) CELL(columns, values, name)

static void write_rule(struct strbuf *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void write_rule(struct strbuf *text, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    strbuf_add(text, "- ");
    table_wrap(text, 2, sentence);
}

/* "attention.In 12288, mlp.Out 28672": collectives that the matmuls cannot hide. */
static void write_narrow(const struct roofline *roofline, const char *tp_excess,
                         struct strbuf *text)
{
    char narrow[256] = "";
    struct column_value values[OVERLAP_TOTAL];
    for (uint32_t i = 0; i < roofline->overlap_count; i++) {
        const struct roofline_overlap *overlap = &roofline->overlap[i];
        if (overlap->math_s >= overlap->link_s) continue;
        size_t const used = strlen(narrow);
        find_overlap(roofline, i, values);
        (void)snprintf(narrow + used, sizeof narrow - used, overlap->width > 0 ? "%s%s %s" : "%s%s",
                       used == 0 ? "" : ", ", CELL(overlaps, values, NAME),
                       CELL(overlaps, values, WIDTH));
    }
    if (roofline->overlap_count == 0) return;
    write_rule(text,
               "tp, one collective and its own matmuls: %s%s; so tp leaves %s of the step "
               "exposed",
               narrow[0] == '\0' ? "all are wide enough" : "too narrow are ", narrow, tp_excess);
}

static const char *verdict(bool compute_bound)
{
    return compute_bound ? "compute bound" : "communication bound";
}

static void write_widths(const struct report_input *input, const struct column_value *values,
                         struct strbuf *text)
{
    const struct roofline_rules *rules = &input->roofline->rules;
    const struct workload_blocks *parallel = &input->roofline->counts.tp.parallel;
    if (rules->tp_mlp_width > 0)
        write_rule(text, "tp, MLP: F·%g = %s against Y·(C/W)/M_Y = %s, with (N-1)/N %s: %s",
                   (double)input->workload->model.matrices / 2, FIGURE(TP_MLP), FIGURE(TP_CRITICAL),
                   FIGURE(TP_EXACT), verdict(rules->tp_mlp_width >= rules->tp_exact_width));
    if (rules->tp_attention_width > 0)
        write_rule(text,
                   "tp, attention multiplies %s columns for each collective, against "
                   "Y·(C/W)/M_Y = %s, with (N-1)/N %s: %s",
                   FIGURE(TP_ATTENTION), FIGURE(TP_CRITICAL), FIGURE(TP_EXACT),
                   verdict(rules->tp_attention_width >= rules->tp_exact_width));
    if (rules->tp_layer_width > 0)
        write_rule(text,
                   "tp, layer: attention and MLP side by side multiply %s columns for each of "
                   "%llu collectives, against Y·(C/W)/M_Y = %s, with (N-1)/N %s: %s",
                   FIGURE(TP_LAYER), (unsigned long long)(parallel->tp_moves / parallel->count),
                   FIGURE(TP_CRITICAL), FIGURE(TP_EXACT),
                   verdict(rules->tp_layer_width >= rules->tp_exact_width));
}

void report_rules_write(const struct report_input *input, const char *tp_excess,
                        struct strbuf *text)
{
    const struct roofline_rules *rules = &input->roofline->rules;
    struct rules_factors const factors = rules_factors(rules, input->mesh);
    const char *const replicas = input->roofline->counts.weights.holders;
    struct column_value values[COLUMN_TOTAL];
    find(rules, values);
    strbuf_add(text, "\nthe book's rules (C/W = %s FLOP a byte, %s tokens a chip)\n",
               FIGURE(RULE_ALPHA), FIGURE(RULE_TOKENS));
    if (rules->fsdp_critical_tokens > 0)
        write_rule(text,
                   "fsdp: %s(C/W)/M_X%s%s = %s tokens a chip; with (N-1)/N %s; with hops and "
                   "this workload's "
                   "FLOP %s: %s",
                   factors.times_gathers, rules->tp_critical_width > 0 ? "/Y" : "",
                   factors.over_stages, FIGURE(FSDP_CRITICAL), FIGURE(FSDP_EXACT),
                   FIGURE(FSDP_CROSSING),
                   verdict(rules->tokens_per_chip >= rules->fsdp_crossing_tokens));
    if (rules->dp_critical_tokens > 0)
        write_rule(text,
                   "%s: (C/W)/M_%s over the ranks that hold a replica%s = %s tokens a chip; "
                   "with (N-1)/N %s: %s",
                   replicas, replicas, factors.reductions, FIGURE(DP_CRITICAL), FIGURE(DP_EXACT),
                   verdict(rules->tokens_per_chip >= rules->dp_exact_tokens));
    if (rules->experts_critical_tokens > 0)
        write_rule(text,
                   "experts: E/k·(C/W)/M over the ranks that hold all experts%s = %s "
                   "tokens a chip; with (N-1)/N %s: %s",
                   factors.reductions, FIGURE(EXPERTS_CRITICAL), FIGURE(EXPERTS_EXACT),
                   verdict(rules->tokens_per_chip >= rules->experts_exact_tokens));
    write_widths(input, values, text);
    write_narrow(input->roofline, tp_excess, text);
    if (rules->ring_tokens > 0)
        write_rule(text,
                   "cp, ring: attention to a block hides the transfer of the next from "
                   "%s tokens of a sequence on a rank; here %s: %s",
                   FIGURE(RING), FIGURE(RING_RANK),
                   rules->ring_rank_tokens >= rules->ring_tokens ? "hidden" : "exposed");
    if (rules->mixed_best_ranks > 0)
        write_rule(
            text,
            "fsdp and tp together: X_opt = sqrt(B/F·M_X/M_Y·N%s%s) = %s data ranks (here %u); "
            "there, at least %s(C/W)^2/(M_X·M_Y·F)%s = %s tokens a chip are compute bound: "
            "%s",
            factors.over_stages, factors.over_gathers, FIGURE(MIXED_BEST),
            input->mesh->axis[MESH_FSDP].size, factors.times_gathers, factors.over_stages,
            FIGURE(MIXED_CRITICAL),
            verdict(rules->tokens_per_chip >= rules->mixed_critical_tokens));
    if (rules->offload_optimizer_tokens > 0)
        write_rule(text,
                   "optimizer in the host's memory: hidden behind the backward pass from %s "
                   "tokens a chip on: %s",
                   FIGURE(OFFLOAD_OPTIMIZER),
                   rules->tokens_per_chip >= rules->offload_optimizer_tokens ? "hidden"
                                                                             : "exposed");
    if (rules->offload_activations_share > 0)
        write_rule(text,
                   "activations in the host's memory: a layer's take %s of its forward pass, at "
                   "any batch: %s",
                   FIGURE(OFFLOAD_ACTIVATIONS),
                   rules->offload_activations_share <= 1 ? "hidden" : "exposed");
    if (rules->fsdp_critical_tokens == 0 && rules->dp_critical_tokens == 0 &&
        rules->tp_critical_width == 0 && rules->ring_tokens == 0)
        write_rule(text, "no rule applies: neither dp, fsdp, tp nor a ring of cp communicates");
}

void report_rules_put(const struct roofline *roofline, struct json_writer *json)
{
    struct column_value values[COLUMN_TOTAL];
    find(&roofline->rules, values);
    json_write_key(json, "tp_collectives");
    column_put_rows(&overlaps_table, roofline, roofline->overlap_count, json);
    json_put_object(json, "rules");
    column_put(columns, values, 0, COLUMN_TOTAL - 1, json);
    json_write_object_end(json);
}
