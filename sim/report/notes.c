#include "sim/report/notes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/base/units.h"
#include "sim/report/notes_async.h"
#include "sim/report/notes_chunks.h"
#include "sim/report/notes_host.h"
#include "sim/report/notes_inference.h"
#include "sim/report/notes_kernels.h"
#include "sim/report/notes_layout.h"
#include "sim/report/notes_model.h"
#include "sim/report/notes_overrides.h"
#include "sim/report/notes_parts.h"
#include "sim/report/notes_replicas.h"
#include "sim/report/notes_upper.h"
#include "sim/report/table.h"
#include "sim/report/words.h"
#include "sim/roofline/rules.h"

enum { NOTE_BYTES = 1536, PARTS_NAMED = 3 };

/* A collective that is exposed less than this share of the step is hidden, in words. */
static const double hidden_share = 0.005;

void notes_add(struct arena *arena, struct notes *notes, const char *format, ...)
{
    char text[NOTE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    SIM_ASSERT(notes->count < NOTES_MAX);
    const char *copy = arena_text(arena, text);
    notes->lacks_memory = notes->lacks_memory || copy == NULL;
    if (copy != NULL) notes->text[notes->count++] = copy;
}

double notes_percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* Time and exposed time of the collectives of one mesh axis. */
struct axis_total {
    double time_s, exposed_s;
    uint64_t count;
};

static struct axis_total axis_total(const struct analysis *analysis, uint32_t of)
{
    struct axis_total total = {0};
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *row = &analysis->classes[i];
        if (!row->collective || row->of != of) continue;
        total.time_s += row->time_s;
        total.exposed_s += row->exposed_s;
        total.count += row->count;
    }
    return total;
}

/* What a step has beyond its bound, the largest parts of it. Where the bound's own work runs during
 * that, the parts are more than the difference: then their sum is said, and what is less. */
static void write_parts(const struct notes *notes, char *text, size_t text_bytes)
{
    double more_s = 0;
    uint32_t more = 0; /* Those that are less are last. */
    for (; more < notes->part_count && notes->part[more].seconds > 0; more++)
        more_s += notes->part[more].seconds;
    bool const differs = more > 0 && more < notes->part_count;
    text[0] = '\0';
    if (differs) (void)snprintf(text, text_bytes, "; %s beyond it", table_seconds(more_s).text);
    for (uint32_t i = 0; i < notes->part_count; i++) {
        const struct notes_part *part = &notes->part[i];
        struct table_figure const figure = table_seconds(fabs(part->seconds));
        size_t const used = strlen(text), left = text_bytes - used;
        if (i < more && i < PARTS_NAMED)
            (void)snprintf(text + used, left, "%s%s %s",
                           i > 0     ? ", "
                           : differs ? ", mostly "
                                     : "; mostly ",
                           part->name, figure.text);
        else if (i >= more)
            (void)snprintf(text + used, left, "%s less %s: %s", i > 0 ? "," : ";", figure.text,
                           part->less != NULL ? part->less : part->name);
    }
}

static void note_bound(struct arena *arena, const struct report_input *input,
                       const struct analysis *analysis, struct notes *notes)
{
    const struct roofline *roofline = input->roofline;
    double const above = analysis->step_s - roofline->lower_s;
    bool const links = roofline->bound.axis >= 0;
    char parts[640];
    write_parts(notes, parts, sizeof parts);
    notes_add(
        arena, notes, "the step takes %s, %s (%.1f%%) more than the lower bound of %s (%s%s)%s",
        table_seconds(analysis->step_s).text, table_seconds(above).text,
        notes_percent(above, roofline->lower_s), table_seconds(roofline->lower_s).text,
        links ? "links along " : "",
        links ? roofline->bound.axes : words_resource(input->machine, roofline->bound.by), parts);
}

/* The first note names what is exposed the longest, but for what the bounding links carry: that is
 * no part of what lies above the bound. */
static void note_longest(struct arena *arena, const struct analysis *analysis, struct notes *notes)
{
    const struct analysis_class *longest = NULL;
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *row = &analysis->classes[i];
        if (row->collective && (longest == NULL || row->exposed_s > longest->exposed_s))
            longest = row;
    }
    if (longest == NULL || longest->exposed_s < hidden_share * analysis->step_s) return;
    for (uint32_t i = 0; i < notes->part_count && i < PARTS_NAMED; i++)
        if (notes->part[i].of == longest) return;
    notes_add(arena, notes,
              "the longest exposed collective is %s: %s of its %s (%.1f%% of the "
              "step)",
              longest->name, table_seconds(longest->exposed_s).text,
              table_seconds(longest->time_s).text,
              notes_percent(longest->exposed_s, analysis->step_s));
}

static void note_tp_rule(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct roofline_rules *rules = &input->roofline->rules;
    const struct roofline_group *tp = roofline_group_find(input->roofline, MESH_TP);
    if (tp == NULL) return;
    double const mlp = rules->tp_mlp_width, attention = rules->tp_attention_width;
    double const half_matrices = (double)input->workload->model.matrices / 2;
    double mean = (mlp + attention) / 2;
    char blocks[160];
    if (rules->tp_layer_width > 0) {
        mean = rules->tp_layer_width;
        (void)snprintf(blocks, sizeof blocks, "attention and MLP side by side offer %.0f", mean);
    } else if (model_has_experts(&input->workload->model)) {
        /* An expert meets few of the tokens: the rule is of what meets all. */
        mean = attention;
        (void)snprintf(blocks, sizeof blocks, "attention offers %.0f", attention);
    } else if (attention > 0) {
        (void)snprintf(blocks, sizeof blocks,
                       "the MLP offers F·%g = %.0f, attention %.0f, a layer %.0f on average",
                       half_matrices, mlp, attention, mean);
    } else {
        mean = mlp;
        (void)snprintf(blocks, sizeof blocks, "the MLP offers F·%g = %.0f", half_matrices, mlp);
    }
    bool const bound = mean < rules->tp_exact_width;
    notes_add(arena, notes,
              "tp over %llu is %s in the forward pass at any batch: a block must be wider than "
              "Y·(C/W)/M_Y = %llu·%.0f/%g = %.0f (%.0f with (N-1)/N), and %s",
              (unsigned long long)tp->rank_count, bound ? "communication bound" : "compute bound",
              (unsigned long long)tp->rank_count, rules->alpha, tp->axes, rules->tp_critical_width,
              rules->tp_exact_width, blocks);
}

/* Whether a slow chip or link, which has its own note, is why a group's collectives take long. */
static bool overrides_reach(const struct notes_overrides *overrides,
                            const struct roofline_group *group)
{
    bool reached = overrides->chip;
    for (uint32_t i = 0; i < group->group.dimension_count; i++)
        reached = reached || (overrides->axis_bits >> group->group.dimension[i].axis & 1) != 0;
    return reached;
}

static void note_tp_exposed(struct arena *arena, const struct report_input *input,
                            const struct analysis *analysis,
                            const struct notes_overrides *overrides, struct notes *notes)
{
    struct axis_total const total = axis_total(analysis, STREAM_OF_TP);
    const struct roofline_group *tp = roofline_group_find(input->roofline, MESH_TP);
    if (tp == NULL || total.exposed_s < hidden_share * analysis->step_s) return;
    if (!input->workload->collective_matmul) {
        notes_add(arena, notes,
                  "the tp collectives are on the critical path: the next matmul needs "
                  "all of each, so %s of their %s is exposed (%.1f%% of the step); "
                  "collective_matmul hides them chunk by chunk where their matmuls are "
                  "wide enough",
                  table_seconds(total.exposed_s).text, table_seconds(total.time_s).text,
                  notes_percent(total.exposed_s, analysis->step_s));
        return;
    }
    notes_chunks_add(arena, input, analysis, total.exposed_s, overrides_reach(overrides, tp),
                     notes);
}

static void note_fsdp(struct arena *arena, const struct report_input *input,
                      const struct analysis *analysis, const struct notes_overrides *overrides,
                      struct notes *notes)
{
    const struct roofline_group *fsdp = roofline_group_find(input->roofline, MESH_FSDP);
    if (fsdp == NULL) return;
    const struct roofline_rules *rules = &input->roofline->rules;
    struct rules_factors const factors = rules_factors(rules, input->mesh);
    struct axis_total const total = axis_total(analysis, STREAM_OF_FSDP);
    bool const overridden = overrides_reach(overrides, fsdp);
    bool const hidden = total.exposed_s < 2 * hidden_share * analysis->step_s;
    bool const forward = rules->tokens_per_chip >= rules->fsdp_exact_tokens;
    bool const step = rules->tokens_per_chip >= rules->fsdp_crossing_tokens;
    notes_add(
        arena, notes,
        "fsdp over %llu needs %s(C/W)/M_X%s%s = %.0f tokens a chip (%.0f with (N-1)/N) to hide its "
        "gathers behind the forward pass, and %.0f over the step with this model's FLOP and "
        "hops; there are %.0f: forward %s bound, the step %s bound%s",
        (unsigned long long)fsdp->rank_count, factors.times_gathers,
        input->mesh->axis[MESH_TP].size > 1 ? "/Y" : "", factors.over_stages,
        rules->fsdp_critical_tokens, rules->fsdp_exact_tokens, rules->fsdp_crossing_tokens,
        rules->tokens_per_chip, forward ? "compute" : "communication",
        step ? "compute" : "communication", overridden ? ", but for the slow chip or link" : "");
    if (hidden)
        notes_add(arena, notes,
                  "the fsdp gathers and reductions are hidden: of their %s only %s is "
                  "exposed (%.2f%% of the step), including the first gather and the "
                  "last reduction, which nothing overlaps; prefetching further ahead "
                  "than %s changes almost nothing",
                  table_seconds(total.time_s).text, table_seconds(total.exposed_s).text,
                  notes_percent(total.exposed_s, analysis->step_s),
                  counted(input->workload->prefetch_layers, "layer").text);
    else
        notes_add(
            arena, notes,
            "%s of the fsdp gathers and reductions is exposed (%.1f%% of the step); their links "
            "need %s of the step's %s by formulas%s%s",
            table_seconds(total.exposed_s).text, notes_percent(total.exposed_s, analysis->step_s),
            table_seconds(fsdp->time_s).text, table_seconds(analysis->step_s).text,
            overridden ? ", without the slow chip or link that they wait for" : "",
            input->workload->prefetch_layers == 0
                ? "; with prefetch_layers 0 each gather waits for the layer before it"
                : "");
}

static void note_latency(struct arena *arena, const struct report_input *input,
                         const struct analysis *analysis, struct notes *notes)
{
    double const latency = input->roofline->latency_s;
    if (latency < hidden_share / 5 * analysis->step_s) return;
    int64_t const hop_ps = input->machine->chip.hop_latency_ps;
    struct table_figure const hop = table_duration(hop_ps);
    notes_add(arena, notes,
              "hops of %s on the critical path add up to %s (%.1f%% of the step): no bandwidth "
              "shortens them, larger or fewer collectives do",
              hop_ps > 0 ? hop.text : "links and switches", table_seconds(latency).text,
              notes_percent(latency, analysis->step_s));
}

/* What ranks of tp compute alike. */
static void note_copies(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct roofline *roofline = input->roofline;
    const struct model *model = &input->workload->model;
    double const held = roofline->counts.heads.kv_held, once = roofline->counts.heads.kv_padded;
    double const share = notes_percent(roofline->flop.duplicated, roofline->flop.executed);
    struct counted const ranks = counted(input->mesh->axis[MESH_TP].size, "tp rank");
    if (held > once)
        notes_add(arena, notes,
                  "%s on %s: each is held by %.0f neighbours, and %.2f%% of the executed FLOP "
                  "compute the same keys and values again",
                  counted(model->kv_heads, "KV head").text, ranks.text, held / once, share);
    else
        notes_add(arena, notes,
                  "each of %s computes %s: %.2f%% of the executed FLOP repeat the work "
                  "of another rank",
                  ranks.text,
                  model_has_mla(model) ? "the latents of all tokens of a data rank"
                                       : "products of which none has a part of its own",
                  share);
}

static void note_flop(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct roofline *roofline = input->roofline;
    double const executed = roofline->flop.executed;
    double const padding = roofline->flop.padded - executed;
    if (padding > executed * 0.001)
        notes_add(arena, notes,
                  "padding to %s %u and to 8 token rows adds %.1f%% to the matmuls' time",
                  words_of_chip(&input->machine->chip, WORDS_TILE), input->machine->chip.mxu.rows,
                  notes_percent(padding, executed));
    const struct graph_formats *formats = &input->workload->formats;
    if (formats->matmuls != formats->activations)
        notes_add(arena, notes,
                  "linear layers multiply in %s, and MFU and HFU are relative to its "
                  "peak; %.1f%% of the executed FLOP are attention's products, routers "
                  "and the head, in %s",
                  format_name(formats->matmuls),
                  100 - notes_percent(roofline->counts.linear.flop, roofline->counts.matmul_flop),
                  format_name(formats->activations));
    if (roofline->flop.duplicated > 0) note_copies(arena, input, notes);
    if (roofline->flop.recomputed > executed * 0.0005)
        notes_add(arena, notes,
                  "recomputation for remat is %.1f%% of the executed FLOP, and MFU does not count "
                  "it; without it, and if the activations fitted, the math would take %s instead "
                  "of %s",
                  notes_percent(roofline->flop.recomputed, executed),
                  table_seconds(roofline->math_s * (1 - roofline->flop.recomputed / executed)).text,
                  table_seconds(roofline->math_s).text);
    double const waiting = roofline->counts.spare.waiting * (double)input->machine->chip_count;
    if (waiting > 0)
        notes_add(arena, notes,
                  "contiguous parts of causal sequences: the last rank of cp has %.2f "
                  "times the mean rank's attention. The others wait for it, so all are "
                  "charged its work: %.1f%% of the executed FLOP. With context_order "
                  "zigzag all have the same work",
                  roofline->flop.flash / (roofline->flop.flash - waiting / 6),
                  notes_percent(waiting, executed));
    if (roofline->flop.flash > executed * 0.0005)
        notes_add(arena, notes,
                  "flash attention's backward pass computes the scores again, with any remat: "
                  "%.1f%% of the executed FLOP, which MFU does not count",
                  notes_percent(roofline->flop.flash, executed));
}

static void note_hbm(struct arena *arena, const struct report_input *input,
                     const struct analysis *analysis, struct notes *notes)
{
    double excess = 0;
    const struct analysis_class *most = NULL;
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *row = &analysis->classes[i];
        if (row->collective || row->receives) continue;
        excess += row->hbm_excess_s;
        if (most == NULL || row->hbm_excess_s > most->hbm_excess_s) most = row;
    }
    if (most != NULL && excess > hidden_share / 5 * analysis->step_s)
        notes_add(arena, notes,
                  "compute ops that HBM bounds (most of all %s) take %s longer than their FLOP "
                  "(%.1f%% of the step)",
                  most->name, table_seconds(excess).text, notes_percent(excess, analysis->step_s));
    double const dma = units_seconds(input->trace->dma_ps);
    if (dma > 0.01 * analysis->step_s)
        notes_add(arena, notes,
                  "collectives use HBM for %.1f%% of the step, at the same time as compute ops",
                  notes_percent(dma, analysis->step_s));
}

static void note_update(struct arena *arena, const struct report_input *input,
                        const struct analysis *analysis, struct notes *notes)
{
    for (uint32_t i = 0; i < analysis->phase_count; i++) {
        const struct analysis_phase *phase = &analysis->phase[i];
        double const span = phase->end_s - phase->begin_s;
        if (!phase->is_update || span < hidden_share / 5 * analysis->step_s) continue;
        notes_add(arena, notes,
                  "the update at the end takes %s (%.1f%% of the step; %s bound): it waits for the "
                  "last reductions and nothing overlaps with it",
                  table_seconds(span).text, notes_percent(span, analysis->step_s),
                  words_resource(input->machine, phase->bound_by));
    }
}

static void note_lines(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct roofline *roofline = input->roofline;
    for (uint32_t g = 0; g < roofline->group_count; g++) {
        const struct roofline_group *group = &roofline->group[g];
        if (group->of >= MESH_ROLE_COUNT) continue; /* Neighbours. */
        char lines[96] = "";
        for (uint32_t i = 0; i < group->group.dimension_count; i++) {
            const struct group_dimension *dimension = &group->group.dimension[i];
            if (dimension->ring || dimension->switched || dimension->size == 2)
                continue; /* Two have no ring to miss. */
            size_t const used = strlen(lines);
            (void)snprintf(lines + used, sizeof lines - used, "%s%s (%u chips in a line)",
                           used > 0 ? ", " : "", dimension->name, dimension->size);
        }
        if (lines[0] == '\0') continue;
        notes_add(arena, notes,
                  "%s has no ring along %s: half the bandwidth of a ring for each collective, and "
                  "twice the hops",
                  group->name, lines);
    }
}

static void note_sequence(struct arena *arena, const struct report_input *input,
                          const struct analysis *analysis, struct notes *notes)
{
    const struct roofline_group *sequence = roofline_group_find(input->roofline, ROOFLINE_SEQUENCE);
    struct axis_total const total = axis_total(analysis, STREAM_OF_SEQUENCE);
    if (sequence == NULL) return;
    struct table_figure const alone = table_seconds(sequence->time_s + sequence->hops_total_s);
    unsigned long long const chips = sequence->rank_count;
    if (total.exposed_s > 0)
        notes_add(arena, notes,
                  "each sequence is split over %llu chips, whose attention waits for the others' "
                  "keys and values: %s of these collectives is exposed (%.1f%% of the step); alone "
                  "on their links they would take %s",
                  chips, table_seconds(total.exposed_s).text,
                  notes_percent(total.exposed_s, analysis->step_s), alone.text);
    else
        notes_add(arena, notes,
                  "each sequence is split over %llu chips; the keys and values of the others come "
                  "before attention needs them; alone on their links these collectives would take "
                  "%s",
                  chips, alone.text);
}

static void note_memory(struct arena *arena, const struct report_input *input, struct notes *notes)
{
    const struct trace *trace = input->trace;
    uint64_t const capacity = input->machine->chip.hbm_capacity_bytes;
    char slot[96], name[32], peak[QUANTITY_TEXT_BYTES], room[QUANTITY_TEXT_BYTES];
    uint32_t const role = analysis_role(input, trace->memory.peak_chip);
    program_slot_name(&input->program->roles[role], trace->memory.peak_slot, slot, sizeof slot);
    program_role_name(input->program, role, name, sizeof name);
    (void)quantity_text_bytes(peak, (double)trace->memory.peak_bytes);
    (void)quantity_text_bytes(room, (double)capacity);
    notes_add(arena, notes, "memory peaks at %s of %s (%.0f%%) after %s, in %s%s%s", peak, room,
              notes_percent((double)trace->memory.peak_bytes, (double)capacity),
              table_duration(trace->memory.peak_at_ps).text, slot, name[0] != '\0' ? " of " : "",
              name);
}

static enum status serving_build(struct arena *arena, const struct report_input *input,
                                 const struct analysis *analysis, struct notes *notes,
                                 struct error *reterr)
{
    note_bound(arena, input, analysis, notes);
    notes_kernels_build(arena, input, analysis, notes);
    notes_padding_build(arena, input, notes);
    notes_inference_build(arena, input, analysis, notes);
    notes_unused_build(arena, input, notes);
    note_longest(arena, analysis, notes);
    notes_upper_build(arena, input, analysis, notes);
    notes_replicas_build(arena, input, analysis, /* minor= */ false, notes);
    note_lines(arena, input, notes);
    note_memory(arena, input, notes);
    notes_replicas_build(arena, input, analysis, /* minor= */ true, notes);
    return notes_model_build(arena, input, notes, reterr);
}

static enum status training_build(struct arena *arena, const struct report_input *input,
                                  const struct analysis *analysis, struct notes *notes,
                                  struct error *reterr)
{
    note_bound(arena, input, analysis, notes);
    notes_kernels_build(arena, input, analysis, notes);
    note_longest(arena, analysis, notes);
    notes_layout_build(arena, input, notes);
    notes_unused_build(arena, input, notes);
    notes_upper_build(arena, input, analysis, notes);
    struct notes_overrides const overrides = notes_overrides_build(arena, input, analysis, notes);
    note_tp_rule(arena, input, notes);
    note_tp_exposed(arena, input, analysis, &overrides, notes);
    note_fsdp(arena, input, analysis, &overrides, notes);
    note_sequence(arena, input, analysis, notes);
    notes_replicas_build(arena, input, analysis, /* minor= */ false, notes);
    notes_host_build(arena, input, analysis, notes);
    notes_async_build(arena, input, analysis, notes);
    note_latency(arena, input, analysis, notes);
    note_lines(arena, input, notes);
    note_flop(arena, input, notes);
    STATUS_TRY(notes_model_build(arena, input, notes, reterr));
    note_hbm(arena, input, analysis, notes);
    note_update(arena, input, analysis, notes);
    note_memory(arena, input, notes);
    notes_replicas_build(arena, input, analysis, /* minor= */ true, notes);
    return STATUS_OK;
}

enum status notes_build(struct arena *arena, const struct report_input *input,
                        const struct analysis *analysis, struct notes *ret_notes,
                        struct error *reterr)
{
    memset(ret_notes, 0, sizeof *ret_notes);
    if (input->generation == NULL) notes_parts_build(arena, input, analysis, ret_notes);
    if (input->generation != NULL) {
        notes_preset_build(arena, input, ret_notes);
        notes_clocks_build(arena, input, ret_notes);
        notes_generation_build(arena, input, ret_notes);
    } else if (workload_serves(input->workload)) {
        STATUS_TRY(serving_build(arena, input, analysis, ret_notes, reterr));
    } else {
        STATUS_TRY(training_build(arena, input, analysis, ret_notes, reterr));
    }
    bool lacks = ret_notes->lacks_memory;
    for (uint32_t i = 0; i < ret_notes->part_count; i++)
        lacks = lacks || ret_notes->part[i].name == NULL;
    if (lacks) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the notes");
    return STATUS_OK;
}
