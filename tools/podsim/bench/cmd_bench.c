/*
 * cmd_bench.c: how fast the simulator itself is, on this machine.
 */
#include "sim/base/json.h"
#include "sim/base/quantity.h"
#include "sim/base/strbuf.h"
#include "sim/report/column_table.h"
#include "tools/podsim/bench/bench.h"
#include "tools/podsim/bench/bench_steps.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/report.h"

static const struct option bench_options[] = {
    {"--json", "FILE", "write it as JSON; - is standard output", false},
    {"--quick", NULL, "a few seconds: short loads, no step that takes long", false},
    {0},
};

enum { ENGINE_REPEATS = 3, QUICK_SHRINK = 100, LABEL = 25 };

struct measurements {
    struct bench_step step[BENCH_STEPS_MAX];
    uint32_t step_count;
    struct bench engine;
};

static struct table_figure count(struct column_value value)
{
    struct table_figure figure;
    (void)quantity_text_count(figure.text, value.real);
    return figure;
}

#define TABLE(X)                                                                                   \
    X(NAME, "name", WORDS(step->name), SHOWN("", "step", -LABEL, column_words))                    \
    X(CHIPS, "chips", WHOLE(step->chips), HIDDEN)                                                  \
    X(REPLAYED, "chips_replayed", WHOLE(step->chips_replayed), HIDDEN)                             \
    X(EVENTS, "events", WHOLE(step->events), HIDDEN)                                               \
    X(TRANSFERS, "transfers", WHOLE(step->transfers), HIDDEN)                                      \
    X(WALL, "wall_s", REAL(step->wall_s), SHOWN("", "wall", -9, column_seconds))                   \
    X(REPLAY, "replay_s", REAL(step->replay_s), HIDDEN)                                            \
    X(PEAK, "peak_bytes", WHOLE(step->peak_bytes), SHOWN("", "peak memory", -13, column_bytes))    \
    X(SHOWN_TRANSFERS, NULL, REAL(step->transfers), SHOWN("", "transfers", -15, count))            \
    X(SHOWN_EVENTS, NULL, REAL(step->events), SHOWN("", "events", -11, count))                     \
    X(RATE, NULL, REAL((double)step->transfers / step->replay_s),                                  \
      SHOWN("", "transfers/s", -13, count))                                                        \
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
    json_write_key(&writer, "steps");
    column_put_rows(&table, measured->step, measured->step_count, &writer);
    json_write_key(&writer, "engine");
    bench_write_json(&measured->engine, &writer);
    json_write_object_end(&writer);
    strbuf_add(text, "\n");
}

static int bench(const struct options *options)
{
    static struct measurements measured;
    static struct output json;
    struct strbuf result = {0};
    struct error error = {0};
    const char *const path = options_value(options, "--json");
    bool const quick = options_has(options, "--quick");
    bool const to_stdout = output_is_stdout(path);
    struct strbuf text = {.columns = report_columns(to_stdout ? 2 : 1)};
    enum status status = output_distinct(path, to_stdout ? NULL : "-", &error);
    if (status == STATUS_OK) status = output_open(&json, path, options, &error);
    if (status == STATUS_OK)
        status = bench_steps_run(quick, measured.step, &measured.step_count, &error);
    if (status == STATUS_OK)
        status = bench_run(&(struct bench_options){.repeats = quick ? 1 : ENGINE_REPEATS,
                                                   .shrink = quick ? QUICK_SHRINK : 1},
                           &measured.engine, &error);
    if (status == STATUS_OK) {
        column_add_table(&table, measured.step, measured.step_count, LABEL, &text);
        strbuf_add(&text, "\n");
        bench_print(&measured.engine, &text);
        write_json(&measured, &result);
        status = output_write(&json, &result, &error);
    }
    if (status == STATUS_OK) status = output_finish(&json, &error);
    if (status == STATUS_OK) status = output_print(&text, to_stdout, &error);
    output_abandon(&json);
    strbuf_free(&text);
    strbuf_free(&result);
    return status == STATUS_OK ? EXIT_DONE : command_fail(NULL, &error);
}

const struct command command_bench = {
    .name = "bench",
    .usage = "podsim bench [--quick] [--json FILE|-]",
    .summary = "measures how fast the simulator itself is",
    .help = "Runs the headline folded and with every chip and hop, decode steps, and one program\n"
            "on 512, 4,096 and 8,960 chips: transfers, events, wall time, peak memory. A transfer\n"
            "is one move over one link; an event is one handler call for one chip. Then loads on\n"
            "the engine alone.\n"
            "Takes about a minute.\n",
    .operands_min = 0,
    .operands_max = 0,
    .options = bench_options,
    .run = bench,
};
