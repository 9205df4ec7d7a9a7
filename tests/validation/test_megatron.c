/*
 * Steps of Megatron-LM as the measured profile plays them, beside what was measured: Narayanan et
 * al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC 2021
 * (arXiv 2104.04473), table 1.
 *
 *   test_megatron [--markdown FILE | --check FILE] SCENARIOS
 *
 * --markdown writes docs/megatron.md; --check fails if that file is not what it would write.
 * SCENARIOS is the folder of the scenarios. Errors are stated, not judged: no parameter is fitted
 * to these rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/validation/document.h"

enum { PATH_BYTES = 512, SETTING_BYTES = 64, CHANGES = 3 };

struct measure_row {
    const char *name; /* Of the scenario and of the model, behind "megatron-". */
    const char *title;
    uint32_t gpus, tp, pp, microbatch;
    double published; /* TFLOP/s a GPU. */
};

/* The columns of table 1; microbatches and chunks are those of examples/sc21/run_table_1.sh
 * (NVIDIA/Megatron-LM at 79a3bb6b), and stand in the scenarios. */
static const struct measure_row rows[] = {
    {"1.7b-a100-32", "1.7B", 32, 1, 1, 16, 137},
    {"3.6b-a100-64", "3.6B", 64, 2, 1, 16, 138},
    {"7.5b-a100-128", "7.5B", 128, 4, 1, 16, 142},
    {"18.4b-a100-256", "18.4B", 256, 8, 1, 8, 135},
    {"39.1b-a100-512", "39.1B", 512, 8, 2, 4, 138},
    {"76.1b-a100-1024", "76.1B", 1024, 8, 4, 2, 140},
    {"145.6b-a100-1536", "145.6B", 1536, 8, 8, 2, 148},
    {"310.1b-a100-1920", "310.1B", 1920, 8, 16, 1, 155},
    {"529.6b-a100-2520", "529.6B", 2520, 8, 35, 1, 163},
    {"1008b-a100-3072", "1008B", 3072, 8, 64, 1, 163},
};
enum { ROWS = sizeof rows / sizeof *rows };

struct played {
    struct model model;
    double step_s, flop, hbm_bytes_per_s;
    uint64_t chips;
    double sequences, length;
    char schedule[24];
};

static _Noreturn void stop(const char *path, const struct error *error)
{
    (void)fprintf(stderr, "%s: %s: %s\n", path, error->where, error->message);
    exit(1);
}

/* The paper's equation 3: the matmuls, with attention over the whole square and the forward pass
 * computed twice. */
static double paper_flop(const struct model *model, double sequences, double length)
{
    double const width = (double)model->width, layers = (double)model->layers;
    return 96 * sequences * length * layers * width * width *
           (1 + length / (6 * width) + (double)model->vocabulary / (16 * layers * width));
}

static struct played played_of(const char *folder, const char *name,
                               const struct scenario_setting *settings, uint32_t setting_count)
{
    struct play play = {.arena = arena_create(0)};
    struct error error = {0};
    struct play_options options = {0};
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/megatron/megatron-%s.json", folder, name);
    if (scenario_read(play.arena, path, settings, setting_count, &play.scenario, &error) !=
        STATUS_OK)
        stop(path, &error);
    options.steps_max = play.scenario.run.steps;
    if (play_stages(&play, &options, &error) != STATUS_OK) stop(path, &error);
    const struct trace *trace = &play.trace;
    const struct workload_plan *plan = &play.scenario.workload;
    struct played played = {
        .model = plan->model,
        .step_s = units_seconds(trace->period.time > 0 ? trace->period.time : trace->step_ps),
        .hbm_bytes_per_s = (double)play.machine.chip.hbm_bytes_per_s,
        .chips = trace->fold.chips,
        .length = (double)plan->sequence_length};
    played.model.name = NULL; /* It lies in the arena. */
    played.sequences = (double)plan->batch_tokens / played.length;
    played.flop = paper_flop(&plan->model, played.sequences, played.length);
    (void)snprintf(played.schedule, sizeof played.schedule, "%s",
                   plan->stages.schedule == NULL ? "" : plan->stages.schedule);
    play_close(&play);
    return played;
}

static double flop_rate(const struct played *played)
{
    return played->flop / played->step_s / (double)played->chips;
}

static void add_rates(struct strbuf *text, const struct played *played, uint32_t count)
{
    strbuf_add(text, "| parameters | GPUs | TP, PP, DP | batch | microbatch | schedule | step | "
                     "podsim, TFLOP/s | published | error |\n"
                     "|---|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < count; i++) {
        const struct measure_row *row = &rows[i];
        double const rate = flop_rate(&played[i]) * 1e-12;
        strbuf_add(text,
                   "| %s | %u | %u, %u, %u | %.0f | %u | %s | %.2f s | %.1f | %.0f | %+.1f %% |\n",
                   row->title, row->gpus, row->tp, row->pp, row->gpus / row->tp / row->pp,
                   played[i].sequences, row->microbatch,
                   *played[i].schedule == '\0' ? "none" : played[i].schedule, played[i].step_s,
                   rate, row->published, 100 * (rate / row->published - 1));
    }
}

/* Bytes that the kernels of 2021 moved and that are not simulated, for each layer, microbatch and
 * GPU: of an element of [s, b, h] between the matmuls. On each rank of tp, forward: two layernorms
 * (8), two sums with bias, dropout and residual (14): 22, twice; backward 12 and 10: 66. Divided
 * over tp: bias and GELU over 4h, 16 forward and again, 24 back, less the 16, 16 and 16 that are
 * simulated for the norms: 8. */
enum { WHOLE_BYTES = 22 + 22 + 22, DIVIDED_BYTES = 8 };

static void add_missing(struct strbuf *text, const struct played *played)
{
    strbuf_add(text, "| parameters | measured | podsim | missing | between matmuls | left | of "
                     "measured |\n|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < ROWS; i++) {
        const struct measure_row *row = &rows[i];
        const struct played *of = &played[i];
        double const measured_s = of->flop / (double)of->chips / (row->published * 1e12);
        double const data = (double)(row->gpus / row->tp / row->pp);
        double const passes = (double)of->model.layers / row->pp * of->sequences / data;
        double const between_s = (WHOLE_BYTES + (double)DIVIDED_BYTES / row->tp) * passes *
                                 of->length * (double)of->model.width / of->hbm_bytes_per_s;
        double const left_s = measured_s - of->step_s - between_s;
        strbuf_add(text, "| %s | %.2f s | %.2f s | %.2f s | %.2f s | %.2f s | %.0f %% |\n",
                   row->title, measured_s, of->step_s, measured_s - of->step_s, between_s, left_s,
                   100 * left_s / measured_s);
    }
}

/* What it would be today. */
static void add_flash(struct strbuf *text, const char *folder, const struct played *played)
{
    static const struct scenario_setting flash = {"/workload/attention_kernel=flash"};
    static const uint32_t some[] = {0, 3, 5};
    strbuf_add(text, "\nWith flash attention (2022)");
    for (uint32_t i = 0; i < sizeof some / sizeof *some; i++) {
        const struct measure_row *row = &rows[some[i]];
        struct played const other = played_of(folder, row->name, &flash, 1);
        strbuf_add(text, "%s %s takes %.2f s instead of %.2f",
                   i == 0   ? ""
                   : i == 1 ? ","
                            : ",\nand",
                   row->title, other.step_s, played[some[i]].step_s);
    }
    strbuf_add(text, ".\nThe share of the scores is larger in a smaller model.\n");
}

static struct played play_batch(const char *folder, uint32_t batch, const char *schedule)
{
    char values[CHANGES][SETTING_BYTES];
    (void)snprintf(values[0], SETTING_BYTES, "/workload/batch_tokens=%u", batch * 2048);
    (void)snprintf(values[1], SETTING_BYTES, "/workload/accumulate=%u", batch);
    (void)snprintf(values[2], SETTING_BYTES, "/workload/schedule=%s", schedule);
    struct scenario_setting const settings[CHANGES] = {{values[0]}, {values[1]}, {values[2]}};
    return played_of(folder, "174.6b-a100-96", settings, CHANGES);
}

static void add_interleaved(struct strbuf *text, const char *folder)
{
    strbuf_add(text, "| batch | 1f1b, TFLOP/s | interleaved:4 | gain |\n|---|---|---|---|\n");
    for (uint32_t batch = 12; batch <= 60; batch += 12) {
        struct played const plain = play_batch(folder, batch, "1f1b");
        struct played const turns = play_batch(folder, batch, "interleaved:4");
        strbuf_add(text, "| %u | %.1f | %.1f | %+.1f %% |\n", batch, flop_rate(&plain) * 1e-12,
                   flop_rate(&turns) * 1e-12, 100 * (plain.step_s / turns.step_s - 1));
    }
}

/* Korthikanti et al. 2022 (arXiv 2205.05198), table 5: one pipeline without replicas, all
 * activations recomputed. */
static const struct {
    const char *title, *name, *nodes, *batch_tokens, *accumulate, *schedule;
    double measured_s;
} alone[] = {
    {"175B, PP 8, 64 sequences", "174.6b-a100-96", "8", "131072", "64", "interleaved:3", 18.13},
    {"530B, PP 35, 280 sequences", "529.6b-a100-2520", "35", "573440", "280", "interleaved:3",
     49.05},
    {"1T, PP 64, 512 sequences", "1008b-a100-3072", "64", "1048576", "512", "1f1b", 94.42},
};

static void add_alone(struct strbuf *text, const char *folder)
{
    static const char *const keys[] = {"machine/nodes", "workload/batch_tokens",
                                       "workload/accumulate", "workload/schedule"};
    enum { KEYS = sizeof keys / sizeof *keys };
    strbuf_add(text, "| one pipeline | schedule | measured | podsim | error | "
                     "TFLOP/s: podsim, measured |\n|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        const char *const of[KEYS] = {alone[i].nodes, alone[i].batch_tokens, alone[i].accumulate,
                                      alone[i].schedule};
        struct scenario_setting settings[KEYS + 1] = {
            [KEYS] = {"/mesh={\"tp\": [\"gpu\"], \"pp\": [\"node\"]}"}};
        char values[KEYS][SETTING_BYTES];
        for (uint32_t k = 0; k < KEYS; k++) {
            (void)snprintf(values[k], SETTING_BYTES, "/%s=%s", keys[k], of[k]);
            settings[k].text = values[k];
        }
        struct played const played = played_of(folder, alone[i].name, settings, KEYS + 1);
        double const measured = played.flop / alone[i].measured_s / (double)played.chips;
        strbuf_add(text, "| %s | %s | %.2f s | %.2f s | %+.1f %% | %.1f, %.1f |\n", alone[i].title,
                   played.schedule, alone[i].measured_s, played.step_s,
                   100 * (played.step_s / alone[i].measured_s - 1), flop_rate(&played) * 1e-12,
                   measured * 1e-12);
    }
}

#include "tests/validation/megatron_text.h"

static void add_document(struct strbuf *text, const char *folder)
{
    static struct played played[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) played[i] = played_of(folder, rows[i].name, NULL, 0);
    strbuf_add_bytes(text, megatron_head, sizeof megatron_head - 1);
    add_rates(text, played, ROWS);
    strbuf_add_bytes(text, megatron_setup, sizeof megatron_setup - 1);
    add_missing(text, played);
    add_flash(text, folder, played);
    strbuf_add_bytes(text, megatron_reasons, sizeof megatron_reasons - 1);
    add_alone(text, folder);
    strbuf_add_bytes(text, megatron_interleaving, sizeof megatron_interleaving - 1);
    add_interleaved(text, folder);
    strbuf_add_bytes(text, megatron_tail, sizeof megatron_tail - 1);
}

/* The first rows: with sanitizers, as all of them take minutes. */
static void add_some(struct strbuf *text, const char *folder)
{
    enum { SOME = 3 };
    static struct played played[SOME];
    for (uint32_t i = 0; i < SOME; i++) played[i] = played_of(folder, rows[i].name, NULL, 0);
    add_rates(text, played, SOME);
}

int main(int argc, char **argv)
{
    struct strbuf text = {0};
    bool const named = argc == 4;
    if (argc != 2 && !named) {
        (void)fprintf(stderr, "test_megatron [--markdown FILE | --check FILE] SCENARIOS\n");
        return 2;
    }
    bool const some = named && strcmp(argv[1], "--check") == 0 && sampling_of() != 1;
    if (some)
        add_some(&text, argv[argc - 1]);
    else
        add_document(&text, argv[argc - 1]);
    const char *mode = named ? argv[1] : NULL;
    return document_end(&text, some ? "--contains" : mode, named ? argv[2] : NULL);
}
