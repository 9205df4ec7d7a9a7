/*
 * cmd_bench.c: how fast the simulator itself is, on this machine.
 */
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "tools/podsim/bench/bench.h"
#include "tools/podsim/bench/bench_compare.h"
#include "tools/podsim/bench/bench_pairs.h"
#include "tools/podsim/bench/bench_steps.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/counts.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/worker.h"

static const struct option bench_options[] = {
    {"--compare", "PROGRAM", "run the steps with another podsim in turn: CPU ratios", false},
    {"--early", NULL, "of --compare: the other has no run.arbitration; work as it does", false},
    {"--pairs", "N", "of --compare: runs of each step by both (5)", false},
    {"--json", "FILE", "write it as JSON; - is standard output", false},
    {"--quick", NULL, "a few seconds: short loads, no step that takes long", false},
    {0},
};

enum { ENGINE_REPEATS = 3, QUICK_SHRINK = 100, LABEL = 25 };

struct measurements {
    struct bench_step step[BENCH_STEPS_MAX];
    struct bench engine;
    struct bench_comparing comparing; /* `other` NULL: this podsim is measured alone. */
    struct bench_pairs pairs[BENCH_STEPS_MAX];
    uint32_t step_count; /* Of `step` or of `pairs`. */
};

#define TABLE(X)                                                                                   \
    X(NAME, "name", WORDS(step->name), SHOWN("", "step", -LABEL, column_words))                    \
    X(CHIPS, "chips", WHOLE(step->chips), HIDDEN)                                                  \
    X(REPLAYED, "chips_replayed", WHOLE(step->chips_replayed), HIDDEN)                             \
    X(EVENTS, "events", WHOLE(step->events), HIDDEN)                                               \
    X(TRANSFERS, "transfers", WHOLE(step->transfers), HIDDEN)                                      \
    X(WALL, "wall_s", REAL(step->wall_s), SHOWN("", "wall", -9, column_seconds))                   \
    X(REPLAY, "replay_s", REAL(step->replay_s), HIDDEN)                                            \
    X(PEAK, "peak_bytes", WHOLE(step->peak_bytes), SHOWN("", "peak memory", -13, column_bytes))    \
    X(SHOWN_TRANSFERS, NULL, REAL(step->transfers), SHOWN("", "transfers", -15, column_scaled))    \
    X(SHOWN_EVENTS, NULL, REAL(step->events), SHOWN("", "events", -11, column_scaled))             \
    X(RATE, NULL, REAL((double)step->transfers / step->replay_s),                                  \
      SHOWN("", "transfers/s", -13, column_scaled))                                                \
    X(A_CHIP, NULL, REAL((double)step->peak_bytes / (double)step->chips_replayed),                 \
      SHOWN("", "a chip", -7, column_bytes))

enum { TABLE(COLUMN_NAME) COLUMN_TOTAL };

static const struct column columns[] = {TABLE(COLUMN_ENTRY)};
static const uint8_t screen[] = {NAME, SHOWN_TRANSFERS, SHOWN_EVENTS, WALL, RATE, PEAK, A_CHIP};

static void find(const void *owner, uint32_t row, struct column_value *ret_values)
{
    const struct bench_step *step = (const struct bench_step *)owner + row;
    TABLE(COLUMN_FIND)
}

static const struct column_table table = {columns, COLUMN_TOTAL, COLUMN_LINE(columns, screen),
                                          find};

static void write_json(const struct measurements *measured, struct strbuf *text)
{
    struct json_writer writer;
    json_write_start(&writer, text);
    json_write_object(&writer);
    json_put_integer(&writer, "podsim", 1);
    if (measured->comparing.other != NULL) {
        bench_pairs_write_json(measured->pairs, measured->step_count, &writer);
    } else {
        json_write_key(&writer, "steps");
        column_put_rows(&table, measured->step, measured->step_count, &writer);
        json_write_key(&writer, "engine");
        bench_write_json(&measured->engine, &writer);
    }
    json_write_object_end(&writer);
    strbuf_add(text, "\n");
}

static void print(const struct measurements *measured, struct strbuf *text)
{
    if (measured->comparing.other != NULL) {
        bench_pairs_print(&measured->comparing, measured->pairs, measured->step_count, text);
        return;
    }
    column_add_table(&table, measured->step, measured->step_count, LABEL, text);
    strbuf_add(text, "\n");
    bench_print(&measured->engine, text);
}

static enum status measure_alone(bool quick, struct measurements *measured, struct error *reterr)
{
    struct bench_options const engine = {.repeats = quick ? 1 : ENGINE_REPEATS,
                                         .shrink = quick ? QUICK_SHRINK : 1};
    STATUS_TRY(bench_steps_run(quick, measured->step, &measured->step_count, reterr));
    return bench_run(&engine, &measured->engine, reterr);
}

static enum status compare(void *owner, struct worker *worker, struct error *reterr)
{
    struct measurements *measured = owner;
    return bench_compare(&measured->comparing, worker, measured->pairs, &measured->step_count,
                         reterr);
}

static enum status comparing_read(const struct options *options, struct bench_comparing *comparing,
                                  struct error *reterr)
{
    const char *const pairs = options_value(options, "--pairs");
    *comparing = (struct bench_comparing){.other = options_value(options, "--compare"),
                                          .pairs = BENCH_PAIRS,
                                          .quick = options_has(options, "--quick"),
                                          .early = options_has(options, "--early")};
    if (comparing->early && comparing->other == NULL)
        return error_set(reterr, STATUS_INVALID, "--early", "is of --compare PROGRAM");
    if (pairs == NULL) return STATUS_OK;
    if (comparing->other == NULL)
        return error_set(reterr, STATUS_INVALID, "--pairs", "pairs are of --compare PROGRAM");
    return counts_one(pairs, "--pairs", BENCH_PAIRS_MAX, &comparing->pairs, reterr);
}

/* Steps that were compared before an interrupt are printed and written. */
static int bench(const struct options *options)
{
    static struct measurements measured;
    static struct output json;
    struct strbuf result = {0};
    struct error error = {0}, late = {0};
    const char *const path = options_value(options, "--json");
    bool const to_stdout = output_is_stdout(path);
    struct strbuf text = {.columns = report_columns(to_stdout ? 2 : 1)};
    enum status status = output_distinct(path, to_stdout ? NULL : "-", &error);
    if (status == STATUS_OK) status = comparing_read(options, &measured.comparing, &error);
    if (status == STATUS_OK) status = output_open(&json, path, options, &error);
    if (status == STATUS_OK && measured.comparing.other == NULL)
        status = measure_alone(options_has(options, "--quick"), &measured, &error);
    else if (status == STATUS_OK)
        status = worker_run(compare, &measured, (struct progress_words){"steps", NULL}, &error);
    if (status == STATUS_OK || (status == STATUS_INTERRUPTED && measured.step_count > 0)) {
        print(&measured, &text);
        write_json(&measured, &result);
        enum status written = output_write(&json, &result, &late);
        if (written == STATUS_OK) written = output_finish(&json, &late);
        if (written == STATUS_OK) written = output_print(&text, to_stdout, &late);
        if (written != STATUS_OK) error = late;
        if (written != STATUS_OK) status = written;
    }
    output_abandon(&json);
    strbuf_free(&text);
    strbuf_free(&result);
    return status == STATUS_OK ? EXIT_DONE : command_fail(NULL, &error);
}

const struct command command_bench = {
    .name = "bench",
    .usage = "podsim bench [--quick] [--json FILE|-]\n"
             "podsim bench --compare PROGRAM [--early] [--pairs N] [--quick] [--json FILE|-]",
    .summary = "measures how fast the simulator itself is",
    .help = "Runs the headline folded and with every chip and hop, decode steps, and one program\n"
            "on 512, 4,096 and 8,960 chips: transfers, events, wall time, peak memory. A transfer\n"
            "is one move over one link; an event is one handler call for one chip. Then loads on\n"
            "the engine alone. Takes about a minute.\n"
            "\n"
            "--compare runs each step with another podsim in turn, as processes of their own,\n"
            "and gives the ratio of their CPU an event: the median of the pairs, and from the\n"
            "least to the most. Other work on the machine meets both alike. Takes some ten\n"
            "minutes. --early is for versions before run.arbitration (commit 799f0ea): this\n"
            "podsim then runs with fifo, and remat layer, which was called block.\n"
            "\n"
            "  podsim bench --compare ./podsim-before --quick\n"
            "  podsim bench --compare /opt/podsim-0.4/bin/podsim --pairs 9 --json pairs.json\n",
    .operands_min = 0,
    .operands_max = 0,
    .options = bench_options,
    .run = bench,
};
