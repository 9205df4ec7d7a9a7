#include "sim/report/report_roofline.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/rows.h"
#include "sim/report/table.h"
#include "sim/report/table_fit.h"
#include "sim/report/words.h"
#include "sim/roofline/level_rate.h"
#include "sim/roofline/rules.h"

enum { BAR_COLUMNS = 34 };

/* Against the lower bound: full is what bounds the step. */
static void write_resource(const struct report_input *input, const char *name, double seconds,
                           bool colour, struct strbuf *text)
{
    double const lower = input->roofline->lower_s;
    strbuf_add(text, "%s", name);
    table_right(text, 42, table_seconds(seconds).text);
    table_right(text, 52, table_percent(seconds, lower).text);
    table_colour(text, colour, seconds >= lower ? TABLE_RED : TABLE_GREEN);
    table_bar(text, seconds, lower, BAR_COLUMNS);
    table_colour(text, colour, TABLE_PLAIN);
    strbuf_add(text, "\n");
}

static void write_resources(const struct report_input *input, bool colour, struct strbuf *text)
{
    const struct roofline *roofline = input->roofline;
    strbuf_add(text, "resource");
    table_right(text, 42, "busy");
    table_right(text, 52, "of lower");
    strbuf_add(text, "\n");
    char math[48];
    (void)snprintf(math, sizeof math, "%s (padded FLOP)", words_resource(input->machine, "mxu"));
    write_resource(input, math, roofline->math_s, colour, text);
    write_resource(input, words_resource(input->machine, "vpu"), roofline->vector_s, colour, text);
    write_resource(input, "HBM (compute, collectives)", roofline->hbm_s, colour, text);
    for (uint32_t i = 0; i < input->machine->axis_count; i++) {
        char name[64];
        if (input->machine->axis_level[i] == LEVEL_NONE)
            (void)snprintf(name, sizeof name, "ICI along %s (%s of %u)",
                           machine_axis_name(input->machine, i),
                           input->machine->wrap[i] ? "ring" : "line", input->machine->shape[i]);
        else
            (void)snprintf(name, sizeof name, "%s along %s (%u)",
                           level_link_name(input->machine, i), machine_axis_name(input->machine, i),
                           input->machine->shape[i]);
        write_resource(input, name, roofline->ici_s[i], colour, text);
    }
    if (roofline->host_s > 0) {
        char name[64];
        (void)snprintf(name, sizeof name, "host over %s, each way",
                       input->machine->host.cable_name);
        write_resource(input, name, roofline->host_s, colour, text);
    }
    strbuf_add(text, "\nlower bound");
    table_right(text, 42, table_seconds(roofline->lower_s).text);
    strbuf_add(text, "  everything overlaps; %s bounds it\n",
               words_resource(input->machine, roofline->bound.by));
    strbuf_add(text, "estimate");
    table_right(text, 42, table_seconds(roofline->critical_s).text);
    strbuf_add(text, "  math, what tp%s exposed, hops\n",
               roofline_group_find(roofline, MESH_EP) == NULL ? " leaves" : " and experts leave");
    strbuf_add(text, "hops on the critical path");
    table_right(text, 42, table_seconds(roofline->latency_s).text);
    strbuf_add(text, "  in addition to the bound\n");
    strbuf_add(text, "upper bound");
    table_right(text, 42, table_seconds(roofline->upper_s).text);
    strbuf_add(text, "  nothing overlaps\n");
    strbuf_add(text, "useful FLOP at peak");
    table_right(text, 42, table_seconds(roofline->ideal_s).text);
    strbuf_add(text, "  MFU at most %s\n",
               table_percent(roofline->ideal_s, roofline->lower_s).text);
}

static void write_groups(const struct roofline *roofline, struct strbuf *text)
{
    if (roofline->group_count == 0) return;
    strbuf_add(text, "\n");
    column_add_table(&rows_groups, roofline, roofline->group_count, 16, text);
}

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
static void write_narrow(const struct roofline *roofline, struct strbuf *text)
{
    char narrow[256] = "";
    for (uint32_t i = 0; i < roofline->overlap_count; i++) {
        const struct roofline_overlap *overlap = &roofline->overlap[i];
        if (overlap->math_s >= overlap->link_s) continue;
        size_t const used = strlen(narrow);
        (void)snprintf(narrow + used, sizeof narrow - used,
                       overlap->width > 0 ? "%s%s %.0f" : "%s%s", used == 0 ? "" : ", ",
                       overlap->name, overlap->width);
    }
    if (roofline->overlap_count == 0) return;
    write_rule(text,
               "tp, one collective and its own matmuls: %s%s; so tp leaves %s of the step "
               "exposed",
               narrow[0] == '\0' ? "all are wide enough" : "too narrow are ", narrow,
               table_seconds(roofline->tp_excess_s).text);
}

static const char *verdict(bool compute_bound)
{
    return compute_bound ? "compute bound" : "communication bound";
}

static void write_widths(const struct report_input *input, struct strbuf *text)
{
    const struct roofline_rules *rules = &input->roofline->rules;
    const struct workload_blocks *parallel = &input->roofline->counts.tp.parallel;
    if (rules->tp_mlp_width > 0)
        write_rule(text, "tp, MLP: F·%g = %.0f against Y·(C/W)/M_Y = %.0f, with (N-1)/N %.0f: %s",
                   (double)input->workload->model.matrices / 2, rules->tp_mlp_width,
                   rules->tp_critical_width, rules->tp_exact_width,
                   verdict(rules->tp_mlp_width >= rules->tp_exact_width));
    if (rules->tp_attention_width > 0)
        write_rule(text,
                   "tp, attention: (N+K)·H + T·N·H/D = %.0f against Y·(C/W)/M_Y = %.0f, with "
                   "(N-1)/N %.0f: %s",
                   rules->tp_attention_width, rules->tp_critical_width, rules->tp_exact_width,
                   verdict(rules->tp_attention_width >= rules->tp_exact_width));
    if (rules->tp_layer_width > 0)
        write_rule(text,
                   "tp, layer: attention and MLP side by side multiply %.0f columns for each of "
                   "%llu collectives, against Y·(C/W)/M_Y = %.0f, with (N-1)/N %.0f: %s",
                   rules->tp_layer_width,
                   (unsigned long long)(parallel->tp_moves / parallel->count),
                   rules->tp_critical_width, rules->tp_exact_width,
                   verdict(rules->tp_layer_width >= rules->tp_exact_width));
}

static void write_rules(const struct report_input *input, struct strbuf *text)
{
    const struct roofline_rules *rules = &input->roofline->rules;
    struct rules_factors const factors = rules_factors(rules, input->mesh);
    char tokens[32]; /* Of a decode a few, or a part of one. */
    (void)snprintf(tokens, sizeof tokens, rules->tokens_per_chip < 10 ? "%.3g" : "%.0f",
                   rules->tokens_per_chip);
    strbuf_add(text, "\nthe book's rules (C/W = %.0f FLOP a byte, %s tokens a chip)\n",
               rules->alpha, tokens);
    if (rules->fsdp_critical_tokens > 0)
        write_rule(text,
                   "fsdp: %s(C/W)/M_X%s%s = %.0f tokens a chip; with (N-1)/N %.0f; with hops and "
                   "this workload's "
                   "FLOP %.0f: %s",
                   factors.times_gathers, rules->tp_critical_width > 0 ? "/Y" : "",
                   factors.over_stages, rules->fsdp_critical_tokens, rules->fsdp_exact_tokens,
                   rules->fsdp_crossing_tokens,
                   verdict(rules->tokens_per_chip >= rules->fsdp_crossing_tokens));
    if (rules->dp_critical_tokens > 0)
        write_rule(text,
                   "dp: (C/W)/M_dp over the ranks that hold a replica%s = %.0f tokens a chip; "
                   "with (N-1)/N %.0f: %s",
                   factors.reductions, rules->dp_critical_tokens, rules->dp_exact_tokens,
                   verdict(rules->tokens_per_chip >= rules->dp_exact_tokens));
    if (rules->experts_critical_tokens > 0)
        write_rule(text,
                   "experts: E/k·(C/W)/M over the ranks that hold all experts%s = %.0f "
                   "tokens a chip; with (N-1)/N %.0f: %s",
                   factors.reductions, rules->experts_critical_tokens, rules->experts_exact_tokens,
                   verdict(rules->tokens_per_chip >= rules->experts_exact_tokens));
    write_widths(input, text);
    write_narrow(input->roofline, text);
    if (rules->ring_tokens > 0)
        write_rule(text,
                   "cp, ring: a block of keys and values is passed on behind attention to the one "
                   "before from %.0f tokens of a sequence on a rank; here %.0f: %s",
                   rules->ring_tokens, rules->ring_rank_tokens,
                   rules->ring_rank_tokens >= rules->ring_tokens ? "hidden" : "exposed");
    if (rules->mixed_best_ranks > 0)
        write_rule(
            text,
            "fsdp and tp together: X_opt = sqrt(B/F·M_X/M_Y·N%s%s) = %.1f data ranks (here %u); "
            "there, at least %s(C/W)^2/(M_X·M_Y·F)%s = %.0f tokens a chip are compute bound: "
            "%s",
            factors.over_stages, factors.over_gathers, rules->mixed_best_ranks,
            input->mesh->axis[MESH_FSDP].size, factors.times_gathers, factors.over_stages,
            rules->mixed_critical_tokens,
            verdict(rules->tokens_per_chip >= rules->mixed_critical_tokens));
    if (rules->offload_optimizer_tokens > 0)
        write_rule(text,
                   "optimizer in the host's memory: hidden behind the backward pass from %.0f "
                   "tokens a chip on: %s",
                   rules->offload_optimizer_tokens,
                   rules->tokens_per_chip >= rules->offload_optimizer_tokens ? "hidden"
                                                                             : "exposed");
    if (rules->offload_activations_share > 0)
        write_rule(text,
                   "activations in the host's memory: a layer's take %.2f of its forward pass, at "
                   "any batch: %s",
                   rules->offload_activations_share,
                   rules->offload_activations_share <= 1 ? "hidden" : "exposed");
    if (rules->fsdp_critical_tokens == 0 && rules->dp_critical_tokens == 0 &&
        rules->tp_critical_width == 0 && rules->ring_tokens == 0)
        write_rule(text, "no rule applies: neither dp, fsdp, tp nor a ring of cp communicates");
}

void report_roofline_write(const struct report_input *input, bool colour, struct strbuf *text)
{
    const struct roofline *roofline = input->roofline;
    table_heading(input, colour, text);
    write_resources(input, colour, text);
    write_groups(roofline, text);
    write_rules(input, text);
    double const capacity = (double)input->machine->chip.hbm_capacity_bytes;
    strbuf_add(text, "\nmemory by formulas %s of %s HBM (%s)\n",
               table_bytes(roofline->memory_bytes).text, table_bytes(capacity).text,
               table_percent(roofline->memory_bytes, capacity).text);
    uint64_t const held_ppm = roofline->counts.memory.held_ppm;
    if (held_ppm != PPM_ONE)
        strbuf_add(text,
                   "- of it activations of %.4g microbatches, as many as a rank of pp holds\n",
                   (double)held_ppm / PPM_ONE);
}
