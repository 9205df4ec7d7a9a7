/* The table of `podsim collective`, column by column that of nccl-tests. */
#include <stdio.h>
#include <string.h>

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/collective/collective.h"

static const double giga = 1e9;

/* Who sends to whom: "node +1, gpu +1". */
static void write_shift(const struct measure_row_question *question, struct strbuf *text)
{
    struct plan_request request;
    struct error ignored;
    const char *before = ": ";
    if (question->operation != MEASURE_SENDRECV ||
        measure_row_request(question, 1, "", &request, &ignored) != STATUS_OK)
        return;
    strbuf_add(text, "# each rank sends to the one %u further",
               question->shift == 0 ? 1 : question->shift);
    for (uint32_t d = 0; d < question->group.dimension_count; d++) {
        if (request.offset[d] == 0) continue;
        strbuf_add(text, "%s%s +%d", before, question->group.dimension[d].name, request.offset[d]);
        before = ", ";
    }
    struct measure_row_senders const senders = measure_row_senders(question);
    if (senders.line != NULL) {
        char last[24] = "";
        if (senders.silent > 1) (void)snprintf(last, sizeof last, " %u", senders.silent);
        strbuf_add(text, "\n# %s has no wraparound: the last%s of its %u ranks send%s nothing; %s",
                   senders.line->name, last, senders.line->size, senders.silent == 1 ? "s" : "",
                   counted(senders.count, "sender").text);
    }
    strbuf_add(text, "\n");
}

/* What its messages go over: the axes of its groups, or the link to the host. */
static const char *ways_of(const struct measure_row_question *question)
{
    return measure_op_is_copy(question->operation) ? question->machine->host.cable_name
                                                   : question->axes;
}

static void write_head(const struct collective_study *study, struct strbuf *text)
{
    const struct measure_row_question *question = &study->member[0].question;
    uint64_t const ranks = group_rank_count(&question->group);
    uint64_t const groups = study->asked.machine.chip_count / ranks;
    const struct plan_ragged *ragged = &question->ragged;
    strbuf_add(text, "# podsim collective: %s on %s, profile %s\n",
               measure_op_name(question->operation), study->asked.machine_text,
               study->asked.machine.chip.profile);
    uint32_t const sharers = host_sharers(&study->asked.machine);
    if (measure_op_is_copy(question->operation))
        strbuf_add(text, "# every chip copies over %s, %s a link each way: %s\n",
                   study->asked.machine.host.cable_name, counted(sharers, "chip").text,
                   counted(ranks, "rank").text);
    else
        strbuf_add(text, "# axes %s: %s%s", question->axes, counted(ranks, "rank").text,
                   groups > 1 ? "" : "\n");
    if (groups > 1)
        strbuf_add(text, ", in each of %llu groups, all at once\n", (unsigned long long)groups);
    for (uint32_t i = 1; i < study->member_count; i++)
        strbuf_add(text, "# at once: %s over %s\n",
                   measure_op_name(study->member[i].question.operation),
                   ways_of(&study->member[i].question));
    strbuf_add(text, "# size: %s; array: V of all ranks together\n",
               ragged->expert_count > 0 ? "one rank's tokens, each once"
                                        : measure_op_size_text(question->operation));
    write_shift(question, text);
    if (ragged->expert_count > 0)
        strbuf_add(text,
                   "# ragged: %s, %llu a rank; each token of %s goes to %u; seed "
                   "%llu, skew %g\n",
                   counted(ragged->expert_count, "expert").text,
                   (unsigned long long)(ragged->expert_count / ranks),
                   counted(ragged->token_bytes, "byte").text, ragged->top_k,
                   (unsigned long long)ragged->seed, (double)ragged->skew_ppm / PPM_ONE);
    if (study->run_count == 0) return;
    strbuf_add(text, "# %u of %u chips simulated:", study->fold.chip_count,
               study->asked.machine.chip_count);
    for (uint32_t axis = 0; axis < study->asked.machine.axis_count; axis++)
        strbuf_add(text, " %s %u of %u%s", machine_axis_name(&study->asked.machine, axis),
                   study->fold.period[axis], study->asked.machine.shape[axis],
                   axis + 1 < study->asked.machine.axis_count ? "," : "\n");
}

static void write_algorithm(struct strbuf *text, const char *before, const char *algorithm,
                            enum protocol protocol)
{
    strbuf_add(text, "%s%s", before, algorithm);
    if (protocol != PROTOCOL_NONE) strbuf_add(text, "/%s", protocol_name(protocol));
}

/* What "auto" did not take: estimated, and the time if it was played. */
static void write_runners(const struct measure_row *row, struct strbuf *text)
{
    enum { SHOWN_MAX = 2 };
    char figures[QUANTITY_TEXT_BYTES];
    if (row->tuner_line > 0) strbuf_add(text, " (tuner, line %u)", row->tuner_line);
    if (row->runner_count == 0) return;
    strbuf_add(text, " (est. %s", quantity_text_seconds(figures, row->estimate_s));
    for (uint32_t i = 0; i < row->runner_count && i < SHOWN_MAX; i++) {
        const struct measure_row_runner *runner = &row->runner[i];
        write_algorithm(text, i == 0 ? "; then " : ", ", runner->algorithm, runner->protocol);
        strbuf_add(text, " %s", quantity_text_seconds(figures, runner->estimate_s));
        if (runner->time_ps > 0)
            strbuf_add(text, " simulated %s",
                       quantity_text_seconds(figures, units_seconds(runner->time_ps)));
    }
    strbuf_add(text, ")");
}

static void write_row(const struct collective_study *study, const struct measure_row *row,
                      struct strbuf *text)
{
    collective_write_cells(study, row, text);
    write_algorithm(text, "  ", row->algorithm, row->protocol);
    if (study->member_count > 1)
        strbuf_add(text, ", %s %s", measure_op_name(row->question->operation),
                   ways_of(row->question));
    else
        write_runners(row, text);
    strbuf_add(text, "\n");
}

/* What those that went at once did to each other. */
static void write_together(const struct collective_study *study, const struct measure_row_run *run,
                           struct strbuf *text)
{
    char wait[QUANTITY_TEXT_BYTES], longest[QUANTITY_TEXT_BYTES];
    double least = 0, most = 0;
    for (uint32_t i = 0; i < run->row_count; i++) {
        double const slowdown = measure_row_slowdown(&study->rows[run->row_first + i]);
        least = i == 0 || slowdown < least ? slowdown : least;
        most = slowdown > most ? slowdown : most;
    }
    strbuf_add(text, "# %u at once: slower by %.2f to %.2f, fairness %.3f", run->row_count, least,
               most, run->fairness);
    uint32_t const busiest = measure_row_busiest_port(run);
    if (busiest < TRACE_PORTS_MAX) {
        struct measure_row_port const port = measure_row_port(run, busiest);
        strbuf_add(text, "; busiest link %s: %.1f%% busy, %.2f messages wait, for %s, at most %s",
                   machine_port_name(&study->asked.machine, busiest), 100 * port.busy_fraction,
                   port.mean_depth, quantity_text_seconds(wait, port.mean_wait_s),
                   quantity_text_seconds(longest, port.longest_wait_s));
    }
    strbuf_add(text, "\n");
}

/* What it means where rows are below the roofline. */
static void write_beaten(const struct collective_study *study, struct strbuf *text)
{
    const struct measure_row *least = NULL;
    char strict[QUANTITY_TEXT_BYTES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < study->row_count; i++) {
        const struct measure_row *row = &study->rows[i];
        if (!measure_row_beats_roofline(row)) continue;
        count++;
        if (least == NULL ||
            (double)row->time_ps * least->roofline_s < (double)least->time_ps * row->roofline_s)
            least = row;
    }
    if (least == NULL) return;
    strbuf_add(
        text,
        "# below the roofline: %u of %u rows. The roofline is the book's form: each byte crosses a "
        "cut once, and an\n# AllReduce is a ReduceScatter, then an AllGather; sums that are piped "
        "along trees of a grid need not be.\n# Nothing beats %s for the %llu bytes of %s "
        "(strict_s in the JSON)\n",
        count, study->row_count, quantity_text_seconds(strict, least->strict_s),
        (unsigned long long)least->size_bytes, least->algorithm);
}

/* What "auto" did not look at. */
static void write_left_out(const struct collective_study *study, struct strbuf *text)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < study->row_count; i++)
        if (study->rows[i].left_out > most) most = study->rows[i].left_out;
    if (most == 0) return;
    strbuf_add(
        text,
        "# auto passed over up to %u ways of more than 16 million messages, which would take "
        "minutes to simulate;\n# --algorithm NAME simulates one all the same\n",
        most);
}

/* Names that mean what another name was played for. */
static void write_merged(const struct collective_study *study, struct strbuf *text)
{
    if (study->merged_count > 0)
        strbuf_add(text, "# not repeated: %u times a name means the plan of a row above\n",
                   study->merged_count);
}

/* Lines that were taken, but for their channels or their protocol. */
static void write_unheeded(const struct collective_study *study, struct strbuf *text)
{
    const struct tuner *tuner = study->asked.row.tuner;
    for (uint32_t r = 0; tuner != NULL && r < tuner->rule_count; r++) {
        const struct tuner_rule *rule = &tuner->rules[r];
        bool taken = false, otherwise = false;
        for (uint32_t i = 0; i < study->row_count; i++) {
            if (study->rows[i].tuner_line != rule->line) continue;
            taken = true;
            otherwise = otherwise || study->rows[i].protocol != rule->protocol;
        }
        if (taken && rule->channel_count != -1)
            strbuf_add(text,
                       "# tuner: line %u of %s asks for %lld channels; channels are not modelled, "
                       "all cables are used\n",
                       rule->line, tuner->path, (long long)rule->channel_count);
        if (otherwise)
            strbuf_add(
                text,
                "# tuner: line %u of %s asks for %s; none is simulated: NCCL's protocols are of "
                "GPUs in the\n# measured profile, or of what --protocol names\n",
                rule->line, tuner->path, protocol_name(rule->protocol));
    }
}

static bool is_all_named(const struct collective_study *study)
{
    bool named = study->member_count == 1;
    for (uint32_t i = 0; i < study->asked.algorithm_count; i++)
        named = named && strcmp(study->asked.algorithm[i], "auto") != 0;
    return named;
}

/* A tuner of which nothing came. */
static void write_idle_tuner(const struct collective_study *study, struct strbuf *text)
{
    const struct tuner *tuner = study->asked.row.tuner;
    if (tuner == NULL || study->row_count == 0) return;
    if (is_all_named(study)) {
        strbuf_add(text, "# tuner: %s was not asked, as --algorithm names what to simulate\n",
                   tuner->path);
        return;
    }
    for (uint32_t i = 0; i < study->row_count; i++)
        if (study->rows[i].tuner_line > 0) return;
    const struct measure_row_question *question = study->rows[0].question;
    uint64_t nodes, ranks;
    protocol_extent(question->machine, &question->group, &nodes, &ranks);
    strbuf_add(
        text, "# tuner: no line of %s fits %s on %llu nodes and %llu ranks at any of these sizes\n",
        tuner->path, measure_op_name(question->operation), (unsigned long long)nodes,
        (unsigned long long)ranks);
}

void collective_write_table(const struct collective_study *study, struct strbuf *text)
{
    double sum = 0;
    write_head(study, text);
    uint64_t const table = table_open(text);
    collective_write_columns(study, text);
    for (uint32_t r = 0; r < study->run_count; r++) {
        const struct measure_row_run *run = &study->runs[r];
        for (uint32_t i = 0; i < run->row_count; i++) {
            write_row(study, &study->rows[run->row_first + i], text);
            collective_write_ragged(&study->rows[run->row_first + i], text);
            sum += study->rows[run->row_first + i].busbw_bytes_per_s / giga;
        }
        if (run->row_count > 1) write_together(study, run, text);
    }
    table_close(text, table, (uint32_t)collective_count_width(study));
    write_beaten(study, text);
    write_left_out(study, text);
    write_merged(study, text);
    write_unheeded(study, text);
    write_idle_tuner(study, text);
    if (study->run_count < study->run_count_max)
        strbuf_add(text, "# interrupted: %u of %u runs\n", study->run_count, study->run_count_max);
    if (study->row_count == 0) return;
    bool proved = true;
    for (uint32_t i = 0; i < study->row_count; i++) proved = proved && study->rows[i].proved;
    strbuf_add(text, "# Out of bounds values : %s\n",
               proved ? "0 OK" : "N/A (--check proves rows of up to 64 ranks)");
    strbuf_add(text, "# Avg bus bandwidth    : %g\n#\n# Collective test concluded: %s\n#\n",
               sum / study->row_count, measure_op_name(study->member[0].question.operation));
}
