#include "tools/podsim/bench/bench.h"

#include <time.h>

#include "sim/base/json.h"
#include "sim/base/text.h"

struct bench_row {
    const char *name;
    const char *title;
    const char *unit;
    bench_load_fn *load;
};

static const struct bench_row bench_rows[] = {
    {"hold", "random times, 24,576 pending: take one, post one", "holds", bench_hold_fast},
    {"hold-reference", "the same with the reference queue", "holds", bench_hold_reference},
    {"torus-lockstep", "16x16x16 rings in lockstep, every link", "transfers", bench_torus_lockstep},
    {"torus-routed", "16x16x16, chunks to random chips, 24,576 in flight", "transfers",
     bench_torus_routed},
    {"torus-unequal", "16x16x16 halo exchange, every compute time its own", "transfers",
     bench_torus_unequal},
};

enum { BENCH_ROW_COUNT = sizeof bench_rows / sizeof bench_rows[0] };
_Static_assert((unsigned)BENCH_ROW_COUNT <= (unsigned)BENCH_ROWS_MAX,
               "the result has a place for every row");

double bench_clock_s(void)
{
    struct timespec now;
    SIM_ASSERT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum status bench_run(const struct bench_options *options, struct bench *ret_bench,
                      struct error *reterr)
{
    SIM_ASSERT(options->repeats >= 1 && options->shrink >= 1);
    struct bench bench = {.row_count = BENCH_ROW_COUNT};
    for (uint32_t i = 0; i < BENCH_ROW_COUNT; i++) {
        const struct bench_row *row = &bench_rows[i];
        struct bench_sample best = {0};
        for (uint32_t j = 0; j < options->repeats; j++) {
            struct bench_sample sample = {0};
            STATUS_TRY(row->load(options->shrink, &sample, reterr));
            SIM_ASSERT(j == 0 || sample.digest == best.digest);
            if (j == 0 || sample.wall_s < best.wall_s) best = sample;
        }
        bench.rows[i] = (struct bench_result){row->name, row->title, row->unit, best};
    }
    *ret_bench = bench;
    return STATUS_OK;
}

/* A load too short for the clock has no rate. */
static double per(double amount, double by)
{
    return by > 0 ? amount / by : 0;
}

static double rate_per_s(const struct bench_sample *sample)
{
    return per((double)sample->count, sample->wall_s);
}

static double event_ns(const struct bench_sample *sample)
{
    return per(1e9 * sample->wall_s, (double)sample->event_count);
}

void bench_print(const struct bench *bench, struct text *text)
{
    text_add(text, "load                million/s   ns/event  million events  events/entry  "
                   "reserved B/chip\n");
    for (uint32_t i = 0; i < bench->row_count; i++) {
        const struct bench_result *row = &bench->rows[i];
        const struct bench_sample *best = &row->best;
        text_add(text, "%-18s %10.2f %10.2f %15.2f %13.1f", row->name, 1e-6 * rate_per_s(best),
                 event_ns(best), 1e-6 * (double)best->event_count,
                 per((double)best->event_count, (double)best->entry_count));
        if (best->chip_count > 0)
            text_add(text, " %16.0f", per((double)best->reserved_bytes, (double)best->chip_count));
        text_add(text, "\n");
    }
    text_add(text, "\n");
    for (uint32_t i = 0; i < bench->row_count; i++)
        text_add(text, "%-18s %s; counts %s\n", bench->rows[i].name, bench->rows[i].title,
                 bench->rows[i].unit);
}

void bench_write_json(const struct bench *bench, struct json_writer *writer)
{
    json_write_array(writer);
    for (uint32_t i = 0; i < bench->row_count; i++) {
        const struct bench_result *row = &bench->rows[i];
        json_write_object(writer);
        json_put_string(writer, "name", row->name);
        json_put_string(writer, "title", row->title);
        json_put_string(writer, "unit", row->unit);
        json_put_real(writer, "per_s", rate_per_s(&row->best));
        json_put_real(writer, "event_ns", event_ns(&row->best));
        json_put_real(writer, "wall_s", row->best.wall_s);
        json_put_unsigned(writer, "count", row->best.count);
        json_put_unsigned(writer, "events", row->best.event_count);
        json_put_unsigned(writer, "entries", row->best.entry_count);
        json_put_unsigned(writer, "chips", row->best.chip_count);
        json_put_unsigned(writer, "reserved_bytes", row->best.reserved_bytes);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}
