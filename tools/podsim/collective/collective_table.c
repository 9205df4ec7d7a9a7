/* The table of `podsim collective`, column by column that of nccl-tests. */
#include <stdio.h>

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/collective/algorithm.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/collective/collective.h"

static const double giga = 1e9;

static void write_row(const struct collective_study *study, const struct measure_row *row,
                      struct strbuf *text)
{
    collective_write_cells(study, row, text);
    strbuf_add(text, "  ");
    collective_write_algorithm(row, text);
    if (study->member_count > 1)
        strbuf_add(text, ", %s %s", measure_op_name(row->args->operation),
                   collective_ways(row->args));
    else
        collective_write_runners(row, text);
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
    strbuf_add(text,
               "# auto passed over up to %s of more than 16 million messages, which would take "
               "minutes to simulate;\n# --algorithm NAME simulates one all the same\n",
               counted(most, "way").text);
}

/* Names that mean what another name was simulated for. */
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
        named = named && !algorithm_is_chosen(&study->asked.algorithm[i]);
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
    const struct measure_row_args *args = study->rows[0].args;
    uint64_t nodes, ranks;
    protocol_extent(args->machine, &args->group, &nodes, &ranks);
    strbuf_add(
        text, "# tuner: no line of %s fits %s on %llu nodes and %llu ranks at any of these sizes\n",
        tuner->path, measure_op_name(args->operation), (unsigned long long)nodes,
        (unsigned long long)ranks);
}

void collective_write_table(const struct collective_study *study, struct strbuf *text)
{
    double sum = 0;
    collective_write_head(study, text);
    uint64_t const table = table_open(text);
    collective_write_columns(study, text);
    for (uint32_t r = 0; r < study->run_count; r++) {
        const struct measure_row_run *run = &study->runs[r];
        for (uint32_t i = 0; i < run->row_count; i++) {
            write_row(study, &study->rows[run->row_first + i], text);
            collective_write_ragged(&study->rows[run->row_first + i], text);
            sum += study->rows[run->row_first + i].busbw_bytes_per_s / giga;
        }
        if (run->row_count > 1) collective_write_run(study, run, text);
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
               sum / study->row_count, measure_op_name(study->member[0].args.operation));
}
