#include "sim/report/run_step.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "sim/report/generation.h"
#include "sim/report/result_mesh.h"
#include "sim/report/run_interval.h"
#include "sim/report/run_memory.h"
#include "sim/report/words.h"

enum { DIGEST_BYTES = 17 };

struct step {
    const struct report_input *input;
    const struct analysis *analysis;
    char digest[DIGEST_BYTES];
    int64_t step_ps; /* A generation's is that of all its steps. */
    uint64_t tokens;
};

static struct table_figure millions(struct column_value value)
{
    struct table_figure figure;
    (void)snprintf(figure.text, sizeof figure.text, "%.1f million", value.real / 1e6);
    return figure;
}

#define RESOURCE(key) SAID(key, words_resource(input->machine, key))
#define BY_ROOFLINE(value) WHERE(input->roofline != NULL, value)
#define FOLLOWED(value) WHERE(trace->period.steps > 0, value)
#define PREFIXED(value) WHERE(trace->fold.prefix > 0, value)
#define PIPELINED(value) WHERE(input->program->role_count > 1, value)
#define TIMED(value) WHERE(input->wall_s > 0, value)

/* A period of the axis' length is no folding. */
#define FOLDED_BY(chips)                                                                           \
    COLUMN_VALUE(COLUMN_WHOLE, .whole = (chips),                                                   \
                 .said = (chips) == 1                            ? "folded"                        \
                         : (chips) == input->machine->shape[row] ? "whole"                         \
                                                                 : "in part")

#define TABLE(X)                                                                                   \
    X(PODSIM, "podsim", WHOLE(1), HIDDEN)                                                          \
    X(TITLE, "title", WORDS(input->title), HIDDEN)                                                 \
    X(QUESTION, "question", WHERE(input->question[0] != '\0', WORDS(input->question)), HIDDEN)     \
    X(DIGEST, "digest", WORDS(step->digest), NAMED("digest", column_words))                        \
    X(STEP_PS, "step_time_ps", WHOLE(step->step_ps), HIDDEN)                                       \
    X(STEP, "step_time_s", SECONDS(step->step_ps), NAMED("step", column_instant))                  \
    X(PERIOD_PS, "period_time_ps", FOLLOWED(WHOLE(trace->period.time)), HIDDEN)                    \
    X(PERIOD, "period_time_s", FOLLOWED(REAL(analysis->period.time_s)),                            \
      NAMED("period", column_instant))                                                             \
    X(PERIOD_STEPS, "period_steps", FOLLOWED(WHOLE(trace->period.steps)), IN_WORDS(column_plain))  \
    X(PERIOD_CYCLE, "period_cycle", FOLLOWED(WHOLE(trace->period.cycle)), HIDDEN)                  \
    X(PERIOD_SPREAD, "period_spread_ps", FOLLOWED(WHOLE(trace->period.spread)),                    \
      IN_WORDS(column_duration))                                                                   \
    X(PERIOD_TOKENS, "period_tokens_per_s", FOLLOWED(REAL(analysis->period.tokens_per_s)), HIDDEN) \
    X(PERIOD_MFU, "period_mfu", FOLLOWED(BY_ROOFLINE(REAL(analysis->period.mfu))),                 \
      IN_WORDS(column_share))                                                                      \
    X(PERIOD_MFU_ATTENTION, "period_mfu_attention",                                                \
      FOLLOWED(BY_ROOFLINE(REAL(analysis->period.mfu_attention))), IN_WORDS(column_share))         \
    X(FITS, "fits", FLAG(run_memory_fits(input)), HIDDEN)                                          \
    X(CHIPS, "chips", WHOLE(trace->fold.chips), IN_WORDS(column_count))                            \
    X(REPLAYED, "chips_replayed", WHOLE(trace->fold.replayed), NAMED("replayed", column_count))    \
    X(EARLY, "early_chips", PREFIXED(WHOLE(trace->fold.prefix)), IN_WORDS(column_count))           \
    X(EARLY_UNTIL, "early_until_s", PREFIXED(SECONDS(trace->fold.prefix_ps)),                      \
      IN_WORDS(column_seconds))                                                                    \
    X(EVENTS, "events", WHOLE(trace->work.events), IN_WORDS(column_count))                         \
    X(TRANSFERS, "transfers", WHOLE(trace->work.transfers), IN_WORDS(column_count))                \
    X(BOUND_CHECKS, "bound_checks", WHOLE(trace->work.bound_checks), HIDDEN)                       \
    X(TOKENS, "tokens", WHOLE(step->tokens), HIDDEN)                                               \
    X(TOKENS_PER_S, "tokens_per_s", REAL(analysis->tokens_per_s),                                  \
      NAMED("tokens/s", column_rounded))                                                           \
    X(MFU, "mfu", BY_ROOFLINE(REAL(analysis->mfu)), IN_WORDS(column_share))                        \
    X(MFU_ATTENTION, "mfu_attention", BY_ROOFLINE(REAL(analysis->mfu_attention)),                  \
      IN_WORDS(column_share))                                                                      \
    X(HFU, "hfu", BY_ROOFLINE(REAL(analysis->hfu)), IN_WORDS(column_share))                        \
    X(BOUND, "bound_by", RESOURCE(analysis->bound_by), IN_WORDS(column_words))                     \
    X(BOUND_NAME, "bound_name", WORDS(words_resource(input->machine, analysis->bound_by)), HIDDEN) \
    X(BOUND_AXIS, "bound_axis", WHERE(analysis->bound_axis != NULL, WORDS(analysis->bound_axis)),  \
      IN_WORDS(column_words))                                                                      \
    X(BOUND_SHARE, NULL, REAL(analysis->bound_share), IN_WORDS(column_share))                      \
    X(NEXT, NULL, WHERE(analysis->runner_up != NULL, RESOURCE(analysis->runner_up)),               \
      IN_WORDS(column_words))                                                                      \
    X(NEXT_AXIS, NULL, WHERE(analysis->runner_up_axis != NULL, WORDS(analysis->runner_up_axis)),   \
      IN_WORDS(column_words))                                                                      \
    X(NEXT_SHARE, NULL, REAL(analysis->runner_up_share), IN_WORDS(column_share))                   \
    X(WALL, "wall_s", TIMED(REAL(input->wall_s)), NAMED("simulated in", column_seconds))           \
    X(EVENTS_PER_S, "events_per_s", TIMED(REAL((double)trace->work.events / input->wall_s)),       \
      HIDDEN)                                                                                      \
    X(RECURRED, "events_recurred", TIMED(WHOLE(trace->work.recurred)), HIDDEN)                     \
    X(FORESEEN, "steps_foreseen", TIMED(WHOLE(trace->work.foreseen)), HIDDEN)                      \
    X(RECORDED, "collectives_recorded", TIMED(WHOLE(trace->work.recorded)),                        \
      IN_WORDS(column_plain))                                                                      \
    X(POSTED, "collectives_posted", TIMED(WHOLE(trace->work.posted)), IN_WORDS(column_plain))      \
    X(LANDED, "collectives_landed", TIMED(WHOLE(trace->work.landed)), IN_WORDS(column_plain))      \
    X(SIMULATED, "collectives_simulated", TIMED(WHOLE(trace->work.simulated)),                     \
      IN_WORDS(column_plain))                                                                      \
    X(STRETCHES, "stretches_recorded", TIMED(WHOLE(trace->work.stretches)), HIDDEN)                \
    X(REPEATED, "stretches_repeated", TIMED(WHOLE(trace->work.repeated)), HIDDEN)                  \
    X(BROKEN, "stretches_broken", TIMED(WHOLE(trace->work.broken)), HIDDEN)                        \
    X(TRANSFERS_PER_S, "transfers_per_s",                                                          \
      TIMED(REAL((double)trace->work.transfers / input->wall_s)), IN_WORDS(millions))              \
    X(RANK, "reported_rank", PIPELINED(WHOLE(analysis_role(input, trace->reported_chip))),         \
      IN_WORDS(column_plain))

/* They add up to the step; idle is waiting and bubble, where there are ranks to wait for. */
#define SHARES(X)                                                                                  \
    X(COMPUTE, "compute_s", REAL(analysis->compute_s), NAMED("compute", column_seconds))           \
    X(EXPOSED, "exposed_communication_s", REAL(analysis->exposed_s),                               \
      NAMED("exposed", column_seconds))                                                            \
    X(IDLE, "idle_s", REAL(analysis->idle_s), NAMED("idle", column_seconds))                       \
    X(WAITING, "waiting_s", PIPELINED(REAL(analysis->waiting_s)),                                  \
      NAMED("waiting", column_seconds))                                                            \
    X(BUBBLE, "bubble_s", PIPELINED(REAL(analysis->bubble_s)), NAMED("bubble", column_seconds))

/* Of the whole machine, a step. */
#define EXPERTS(X)                                                                                 \
    X(ASSIGNED, "assignments", REAL(counts->rows.assigned), HIDDEN)                                \
    X(DROPPED, "dropped", REAL(counts->rows.dropped), HIDDEN)                                      \
    X(DROPPED_SHARE, "dropped_fraction", REAL(counts->rows.dropped / counts->rows.assigned),       \
      HIDDEN)                                                                                      \
    X(UNEVEN, "uneven_flop", REAL(counts->spare.uneven * input->machine->chip_count), HIDDEN)

/* An axis of the machine. */
#define FOLDED(X)                                                                                  \
    X(AXIS, "axis", WORDS(machine_axis_name(input->machine, row)), IN_WORDS(column_words))         \
    X(LENGTH, "length", WHOLE(input->machine->shape[row]), HIDDEN)                                 \
    X(FOLD_PERIOD, "period", FOLDED_BY(input->fold[row].period), IN_WORDS(column_plain))           \
    X(REASON, "reason", WORDS(input->fold[row].reason), HIDDEN)

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };
enum { SHARES(COLUMN_NAME) SHARES_TOTAL };
enum { EXPERTS(COLUMN_NAME) EXPERTS_TOTAL };
enum { FOLDED(COLUMN_NAME) FOLDED_TOTAL };
_Static_assert((int)COLUMN_TOTAL <= (int)COLUMNS_MAX, "a step's values have room");

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const struct column shares[] = {SHARES(COLUMN_ENTRY)};
static const struct column experts[] = {EXPERTS(COLUMN_ENTRY)};
static const struct column folded[] = {FOLDED(COLUMN_ENTRY)};

static void find(const struct step *step, struct column_value *ret_values)
{
    const struct report_input *input = step->input;
    const struct analysis *analysis = step->analysis;
    const struct trace *trace = input->trace;
    TABLE(COLUMN_FIND)
}

static void find_shares(const struct report_input *input, const struct analysis *analysis,
                        struct column_value *ret_values)
{
    SHARES(COLUMN_FIND)
}

static void find_experts(const struct report_input *input, struct column_value *ret_values)
{
    const struct workload_counts *counts = &input->roofline->counts;
    EXPERTS(COLUMN_FIND)
}

static void find_folded(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct report_input *input = owner;
    FOLDED(COLUMN_FIND)
}

static const struct column_table folded_table = {folded, FOLDED_TOTAL, {0}, find_folded};

static struct step step_of(const struct report_input *input, const struct analysis *analysis)
{
    const struct generation *generation = input->generation;
    struct step step = {
        .input = input,
        .analysis = analysis,
        .step_ps = generation == NULL ? input->trace->step_ps : generation_total_ps(generation),
        .tokens = generation == NULL ? input->program->tokens : generation_tokens(generation)};
    (void)snprintf(step.digest, sizeof step.digest, "%016" PRIx64, input->trace->digest);
    return step;
}

#define FIGURE(name) CELL(columns, values, name)

/* The name of a line, and its first figure. */
static void line_begin(const struct column_value *values, uint32_t column, struct strbuf *text)
{
    table_line(text, columns[column].heading[1]);
    strbuf_add(text, "%s",
               column_cell(&columns[column], values[column], &(struct table_figure){{0}}));
}

/* What a program that was read may not say: how many tokens its step has. */
static void write_rates(const struct report_input *input, const struct column_value *values,
                        struct strbuf *text)
{
    if (input->program->tokens == 0) return;
    line_begin(values, TOKENS_PER_S, text);
    if (input->roofline != NULL)
        strbuf_add(text, "   MFU %s (%s with attention)   HFU %s", FIGURE(MFU),
                   FIGURE(MFU_ATTENTION), FIGURE(HFU));
    strbuf_add(text, "\n");
}

/* From step to step, where further steps were simulated. */
static void write_period(const struct report_input *input, const struct column_value *values,
                         struct strbuf *text)
{
    const struct period *period = &input->trace->period;
    if (period->steps == 0) return;
    line_begin(values, PERIOD, text);
    strbuf_add(text, "   from step to step");
    if (input->roofline != NULL)
        strbuf_add(text, "; MFU %s (%s with attention)", FIGURE(PERIOD_MFU),
                   FIGURE(PERIOD_MFU_ATTENTION));
    strbuf_add(text, "\n");
    if (period->cycle != 0) return;
    table_line(text, "");
    strbuf_add(text, "a mean: the last of %s steps still differ by up to %s\n",
               FIGURE(PERIOD_STEPS), FIGURE(PERIOD_SPREAD));
}

void run_step_write(const struct report_input *input, const struct analysis *analysis, bool colour,
                    struct strbuf *text)
{
    struct column_value values[COLUMN_TOTAL];
    struct step const step = step_of(input, analysis);
    find(&step, values);
    table_line(text, columns[STEP].heading[1]);
    table_colour(text, colour, TABLE_BOLD);
    strbuf_add(text, "%s", FIGURE(STEP));
    table_colour(text, colour, TABLE_PLAIN);
    strbuf_add(text, "   bound by %s%s%s (%s of the step", FIGURE(BOUND),
               analysis->bound_axis != NULL ? " along " : "", FIGURE(BOUND_AXIS),
               FIGURE(BOUND_SHARE));
    if (analysis->bound_is_idle)
        strbuf_add(text, " of rank %s, %s", FIGURE(RANK),
                   words_last_rank(input->trace->roles_meet));
    if (analysis->runner_up != NULL)
        strbuf_add(text, "; %s%s%s %s", FIGURE(NEXT),
                   analysis->runner_up_axis != NULL ? " along " : "", FIGURE(NEXT_AXIS),
                   FIGURE(NEXT_SHARE));
    strbuf_add(text, ")\n");
    write_rates(input, values, text);
    write_period(input, values, text);
    run_interval_write(input, text);
    strbuf_add(text, "\n");
    if (input->wall_s > 0) {
        line_begin(values, WALL, text);
        strbuf_add(text, " (%s transfers/s)\n", FIGURE(TRANSFERS_PER_S));
        table_line(text, "");
        strbuf_add(text, "collectives: %s recorded, %s posted, %s landed, %s simulated\n\n",
                   FIGURE(RECORDED), FIGURE(POSTED), FIGURE(LANDED), FIGURE(SIMULATED));
    }
}

static void write_share(const struct column_value *values, uint32_t column, double step_s,
                        bool colour, enum table_colour which, struct strbuf *text)
{
    double const seconds = values[column].real;
    table_line(text, shares[column].heading[1]);
    strbuf_add(text, "%s", shares[column].look(values[column]).text);
    table_right(text, 32, table_percent(seconds, step_s).text);
    table_colour(text, colour, which);
    table_bar(text, seconds, step_s, TABLE_BAR_COLUMNS);
    table_colour(text, colour, TABLE_PLAIN);
    strbuf_add(text, "\n");
}

void run_step_write_shares(const struct report_input *input, const struct analysis *analysis,
                           bool colour, struct strbuf *text)
{
    struct column_value values[SHARES_TOTAL];
    find_shares(input, analysis, values);
    write_share(values, COMPUTE, analysis->step_s, colour, TABLE_GREEN, text);
    write_share(values, EXPOSED, analysis->step_s, colour, TABLE_RED, text);
    if (values[WAITING].kind == COLUMN_NONE) {
        write_share(values, IDLE, analysis->step_s, colour, TABLE_YELLOW, text);
        return;
    }
    write_share(values, WAITING, analysis->step_s, colour, TABLE_YELLOW, text);
    write_share(values, BUBBLE, analysis->step_s, colour, TABLE_YELLOW, text);
}

void run_step_write_fold(const struct report_input *input, const struct analysis *analysis,
                         struct strbuf *text)
{
    struct column_value values[COLUMN_TOTAL], axis[FOLDED_TOTAL];
    struct step const step = step_of(input, analysis);
    const struct trace *trace = input->trace;
    find(&step, values);
    strbuf_add(text, "\n");
    line_begin(values, REPLAYED, text);
    strbuf_add(text, " of %s %s", FIGURE(CHIPS), counted_noun(trace->fold.chips, "chip").text);
    for (uint32_t i = 0; i < input->machine->axis_count; i++) {
        find_folded(input, i, axis);
        strbuf_add(text, "%s%s %s", i == 0 ? " (" : ", ", CELL(folded, axis, AXIS),
                   CELL(folded, axis, FOLD_PERIOD));
    }
    strbuf_add(text, "); %s %s, %s %s\n", FIGURE(EVENTS),
               counted_noun(trace->work.events, "event").text, FIGURE(TRANSFERS),
               counted_noun(trace->work.transfers, "transfer").text);
    if (trace->fold.prefix > 0) {
        table_line(text, "");
        strbuf_add(text, "up to %s as %s chips, the pipelines being alike until then\n",
                   FIGURE(EARLY_UNTIL), FIGURE(EARLY));
    }
    line_begin(values, DIGEST, text);
    strbuf_add(text, "\n");
}

static void put_experts(const struct report_input *input, struct json_writer *json)
{
    struct column_value values[EXPERTS_TOTAL];
    if (input->roofline == NULL || input->roofline->counts.rows.assigned == 0) return;
    find_experts(input, values);
    json_put_object(json, "experts");
    column_put(experts, values, 0, EXPERTS_TOTAL - 1, json);
    json_write_object_end(json);
}

void run_step_put(const struct report_input *input, const struct analysis *analysis,
                  struct json_writer *json)
{
    struct column_value values[COLUMN_TOTAL];
    struct step const step = step_of(input, analysis);
    find(&step, values);
    column_put(columns, values, 0, EARLY_UNTIL, json);
    result_mesh_write(json, input->machine, input->mesh);
    if (input->roofline != NULL) result_padding_write(json, &input->roofline->counts.paddings);
    json_write_key(json, "folded_axes");
    column_put_rows(&folded_table, input, input->machine->axis_count, json);
    column_put(columns, values, EVENTS, input->generation == NULL ? NEXT_SHARE : TOKENS, json);
    put_experts(input, json);
    column_put(columns, values, WALL, TRANSFERS_PER_S, json);
}

void run_step_put_shares(const struct report_input *input, const struct analysis *analysis,
                         struct json_writer *json)
{
    struct column_value values[SHARES_TOTAL];
    find_shares(input, analysis, values);
    json_put_object(json, "breakdown");
    column_put(shares, values, 0, SHARES_TOTAL - 1, json);
    json_write_object_end(json);
}

void run_step_put_rank(const struct report_input *input, const struct analysis *analysis,
                       struct json_writer *json)
{
    struct column_value values[COLUMN_TOTAL];
    struct step const step = step_of(input, analysis);
    find(&step, values);
    column_put(columns, values, RANK, RANK, json);
}
