/*
 * cmd_pareto.c: steps of inference over batches, lengths, slices and meshes: latency against
 * throughput.
 */
#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/pareto/pareto.h"

struct outputs {
    struct output json, csv, svg;
};

static enum status open_outputs(const struct options *options, struct outputs *outputs,
                                struct error *reterr)
{
    const char *const json = options_value(options, "--json");
    const char *const csv = options_value(options, "--csv");
    const char *const svg = options_value(options, "--svg");
    const char *const table = output_is_stdout(json) || output_is_stdout(csv) ? NULL : "-";
    STATUS_TRY(output_picture_check(svg, reterr));
    STATUS_TRY(outputs_distinct(4, (const char *const[]){svg, json, csv, table}, reterr));
    STATUS_TRY(output_open(&outputs->json, json, options, reterr));
    STATUS_TRY(output_open(&outputs->svg, svg, options, reterr));
    return output_open_table(&outputs->csv, csv, &pareto_cells, options, reterr);
}

static enum status write_results(const struct pareto *pareto, struct outputs *outputs,
                                 struct error *reterr)
{
    struct strbuf json = {0}, csv = {0}, svg = {0};
    /* Of no points there is no picture, and a file that is there stays. */
    bool const draws = outputs->svg.path != NULL && pareto_count(pareto, PARETO_PLAYED) > 0;
    bool const to_error =
        output_is_stdout(outputs->json.path) || output_is_stdout(outputs->csv.path);
    struct strbuf text = {.columns = report_columns(to_error ? 2 : 1)};
    pareto_write_text(pareto, &text);
    pareto_write_json(pareto, &json);
    pareto_write_csv(pareto, &csv);
    if (draws) pareto_write_svg(pareto, &svg);
    enum status status = output_write(&outputs->json, &json, reterr);
    if (status == STATUS_OK) status = output_write(&outputs->csv, &csv, reterr);
    if (status == STATUS_OK && draws) status = output_write(&outputs->svg, &svg, reterr);
    if (status == STATUS_OK) status = output_finish(&outputs->json, reterr);
    if (status == STATUS_OK && draws) status = output_finish(&outputs->svg, reterr);
    if (status == STATUS_OK) status = output_finish(&outputs->csv, reterr);
    if (status == STATUS_OK) status = output_print(&text, to_error, reterr);
    strbuf_free(&text);
    strbuf_free(&json);
    strbuf_free(&csv);
    strbuf_free(&svg);
    return status;
}

/* Outputs are opened before the work, and what it reads is spared. */
static enum status run(struct pareto *pareto, struct outputs *outputs, struct error *reterr)
{
    STATUS_TRY(
        session_source_read(pareto->options, pareto->options->operand[0], &pareto->source, reterr));
    STATUS_TRY(pareto_read(pareto, reterr));
    STATUS_TRY(open_outputs(pareto->options, outputs, reterr));
    STATUS_TRY(worker_run(pareto_play, pareto, (struct progress_words){"sweep", NULL}, reterr));
    STATUS_TRY(write_results(pareto, outputs, reterr));
    if (pareto_count(pareto, PARETO_PLAYED) > 0) return STATUS_OK;
    if (pareto_count(pareto, PARETO_REFUSED) < pareto->done_count)
        return error_set(reterr, STATUS_INVALID, "",
                         "no point fits the memory; the table says what each batch needs, and what "
                         "memory holds");
    return error_set(reterr, STATUS_INVALID, "", "no point can be simulated; each says why");
}

static int pareto(const struct options *options)
{
    static struct pareto pareto;
    static struct outputs outputs;
    struct error error = {0};
    enum status status = STATUS_OK;
    pareto.options = options;
    pareto.arena = arena_create(0);
    if (pareto.arena == NULL) status = error_no_memory(&error, "");
    if (status == STATUS_OK) status = run(&pareto, &outputs, &error);
    output_abandon(&outputs.json);
    output_abandon(&outputs.csv);
    output_abandon(&outputs.svg);
    pareto_close(&pareto);
    session_source_close(&pareto.source);
    arena_destroy(pareto.arena);
    if (status == STATUS_OK) return EXIT_DONE;
    return command_fail_scenario(options, options->operand[0], &error);
}

const struct command command_pareto = {
    .name = "pareto",
    .usage =
        "podsim pareto FILE [--batch LIST] [--context LIST] [--shape LIST] [--mesh OBJECT]...\n"
        "           [--svg FILE] [--json FILE|-] [--csv FILE|-] [--set /pointer=value]... ...",
    .summary = "latency and throughput of inference: batches, lengths, slices",
    .help = "Simulates a decode or a prefill for each batch on each curve: a curve is one slice,\n"
            "mesh and length of sequences. For each point it prints the latency, tokens/s for a\n"
            "user and for a chip, the parts of the step's time, and the book's formula. Points\n"
            "that do not fit the memory, or that are refused, are listed with the reason.\n"
            "\n"
            "  podsim pareto llama3-70b-decode-int8-v5e-4x4\n"
            "  podsim pareto llama3-70b-decode-int8-v5e-4x4 --batch 1:512:x2 \\\n"
            "      --context 2048,8192 --shape 2x4,4x4,4x8\n"
            "  podsim pareto llama3-70b-decode-h100-8 --batch 1:64:x4,96 --shape 4,8\n"
            "  podsim pareto llama3-70b-prefill-h100-8 --batch 1,2,4 --prompt 2K,8K\n"
            "\n"
            "Lists have commas and ranges: 1:512:x2 doubles, 64:512:+64 adds; K, M and G are\n"
            "powers of 1024. A mesh is JSON: --mesh '{\"tp\": [\"x\"], \"dp\": [\"y\"]}'.\n"
            "\n"
            "A * is on the frontier: no other point of that length has less latency and no less\n"
            "throughput. The knee of a curve is where throughput over latency is largest.\n",
    .operands_min = 1,
    .operands_max = 1,
    .options = pareto_options,
    .run = pareto,
};
