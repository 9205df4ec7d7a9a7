/*
 * cmd_bench.c: how fast the simulator itself is, on this machine.
 */
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/quantity.h"
#include "sim/base/text.h"
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

enum { ENGINE_REPEATS = 3, QUICK_SHRINK = 100 };

struct measurements {
    struct bench_step step[BENCH_STEPS_MAX];
    uint32_t step_count;
    struct bench engine;
};

static void write_steps(const struct bench_step *steps, uint32_t count, struct text *text)
{
    text_add(text, "step                      transfers      events     wall     transfers/s  "
                   "peak memory  a chip\n");
    for (uint32_t i = 0; i < count; i++) {
        const struct bench_step *step = &steps[i];
        char buffer[QUANTITY_TEXT_BYTES];
        text_add(text, "%s", step->name);
        text_pad(text, 26);
        text_add(text, "%s", quantity_text_count(buffer, (double)step->transfers));
        text_pad(text, 41);
        text_add(text, "%s", quantity_text_count(buffer, (double)step->events));
        text_pad(text, 52);
        text_add(text, "%s", quantity_text_seconds(buffer, step->wall_s));
        text_pad(text, 61);
        text_add(text, "%s", quantity_text_count(buffer, (double)step->transfers / step->replay_s));
        text_pad(text, 74);
        text_add(text, "%s", quantity_text_bytes(buffer, (double)step->peak_bytes));
        text_pad(text, 87);
        text_add(
            text, "%s\n",
            quantity_text_bytes(buffer, (double)step->peak_bytes / (double)step->chips_replayed));
    }
}

static void write_step(const struct bench_step *step, struct json_writer *writer)
{
    json_write_object(writer);
    json_put_string(writer, "name", step->name);
    json_put_unsigned(writer, "chips", step->chips);
    json_put_unsigned(writer, "chips_replayed", step->chips_replayed);
    json_put_unsigned(writer, "events", step->events);
    json_put_unsigned(writer, "transfers", step->transfers);
    json_put_real(writer, "wall_s", step->wall_s);
    json_put_real(writer, "replay_s", step->replay_s);
    json_put_unsigned(writer, "peak_bytes", step->peak_bytes);
    json_write_object_end(writer);
}

static void write_json(const struct measurements *measured, struct text *text)
{
    struct json_writer writer;
    json_write_start(&writer, text);
    json_write_object(&writer);
    json_put_integer(&writer, "podsim", 1);
    json_put_array(&writer, "steps");
    for (uint32_t i = 0; i < measured->step_count; i++) write_step(&measured->step[i], &writer);
    json_write_array_end(&writer);
    json_write_key(&writer, "engine");
    bench_write_json(&measured->engine, &writer);
    json_write_object_end(&writer);
    text_add(text, "\n");
}

static int bench(const struct options *options)
{
    static struct measurements measured;
    static struct output json;
    struct text result = {0};
    struct error error = {0};
    const char *const path = options_value(options, "--json");
    bool const quick = options_has(options, "--quick");
    bool const to_stdout = path != NULL && strcmp(path, "-") == 0;
    struct text text = {.columns = report_columns(to_stdout ? 2 : 1)};
    enum status status = output_distinct(path, to_stdout ? NULL : "-", &error);
    if (status == STATUS_OK) status = output_open(&json, path, options, &error);
    if (status == STATUS_OK)
        status = bench_steps_run(quick, measured.step, &measured.step_count, &error);
    if (status == STATUS_OK)
        status = bench_run(&(struct bench_options){.repeats = quick ? 1 : ENGINE_REPEATS,
                                                   .shrink = quick ? QUICK_SHRINK : 1},
                           &measured.engine, &error);
    if (status == STATUS_OK) {
        write_steps(measured.step, measured.step_count, &text);
        text_add(&text, "\n");
        bench_print(&measured.engine, &text);
        write_json(&measured, &result);
        status = output_write(&json, &result, &error);
    }
    if (status == STATUS_OK) status = output_finish(&json, &error);
    if (status == STATUS_OK) status = output_print(&text, to_stdout, &error);
    output_abandon(&json);
    text_free(&text);
    text_free(&result);
    return status == STATUS_OK ? EXIT_DONE : command_fail(NULL, &error);
}

const struct command command_bench = {
    .name = "bench",
    .usage = "podsim bench [--quick] [--json FILE|-]",
    .summary = "measures how fast the simulator itself is",
    .help = "Runs the headline folded and with every chip and hop, and one program on 512, 4,096\n"
            "and 8,960 chips: transfers, events, wall time, peak memory. A transfer is one move\n"
            "over one link; an event is one handler call for one chip. Then loads on the engine "
            "alone.\n"
            "Takes about a minute.\n",
    .operands_min = 0,
    .operands_max = 0,
    .options = bench_options,
    .run = bench,
};
