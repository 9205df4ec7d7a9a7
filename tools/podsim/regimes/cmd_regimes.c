/*
 * cmd_regimes.c: sizes times ranks times algorithms: who wins where, and what binds.
 */
#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/command.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/pool.h"
#include "tools/podsim/common/report.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/regimes/regimes.h"

static const struct option regimes_options[] = {
    COLLECTIVE_ARGS_OPTIONS,
    {"-b", "SIZE", "least size in bytes; K, M, G are powers of 1024 (1K)", false},
    {"-e", "SIZE", "greatest size (1G)", false},
    {"-f", "FACTOR", "from one size to the next (4)", false},
    {"--algorithm", "NAMES", "with commas between (all that apply if left out)", false},
    {"--xml", "FILE", "also an algorithm in MSCCL's XML; --op follows", false},
    {"--svg", "FILE", "draw the map", false},
    {"--json", "FILE", "write it as JSON; - is standard output", false},
    POOL_OPTION,
    {0},
};

/* One map; the worker's until it has ended. */
struct map {
    const struct options *options;
    struct arena *arena;
    struct collective_args args;
    struct regimes_plan plan;
    struct regimes regimes;
    struct pool pool;
    uint32_t thread_count;
    struct output json, svg;
};

static bool watch(void *owner, uint32_t thread, double share, uint64_t events)
{
    struct map *map = owner;
    return pool_progress(&map->pool, thread, share, events);
}

static enum status work(void *owner, struct worker *worker, struct error *reterr)
{
    struct map *map = owner;
    pool_open(&map->pool, worker, map->thread_count);
    struct parallel const parallel = pool_parallel(&map->pool);
    map->plan.parallel = &parallel;
    return regimes_run(map->arena, &map->plan, &map->regimes, reterr);
}

/* The greatest size, and that of the peak, are those of arrays that can be simulated. */
static enum status end_check(const struct collective_args *args, const struct sizes *sizes,
                             struct error *reterr)
{
    uint64_t const ranks = group_rank_count(&args->row.group);
    struct error ignored;
    uint64_t unused = 0;
    STATUS_TRY(measure_op_array_bytes(args->row.operation, ranks, sizes->end_bytes, "-e", &unused,
                                      reterr));
    if (measure_op_array_bytes(args->row.operation, ranks, regimes_peak_bytes(sizes), "-e", &unused,
                               &ignored) == STATUS_OK)
        return STATUS_OK;
    return error_set(
        reterr, STATUS_LIMIT, "-e",
        "a map also simulates 16 times the greatest size, which would be an array of more "
        "than 2^56 bytes");
}

static enum status plan_read(struct map *map, struct error *reterr)
{
    const struct options *options = map->options;
    const char *const begin = options_value(options, "-b"), *const end =
                                                                options_value(options, "-e");
    const char *const factor = options_value(options, "-f");
    struct collective_args *args = &map->args;
    STATUS_TRY(pool_read(options, &map->thread_count, reterr));
    STATUS_TRY(collective_args_read(options, map->arena, args, reterr));
    if (args->row.tuner != NULL)
        return error_set(
            reterr, STATUS_INVALID, "--tuner",
            "decides what auto takes, and a map simulates every algorithm; leave it out, "
            "or ask podsim collective");
    if (measure_op_is_copy(args->row.operation))
        return error_set(reterr, STATUS_UNSUPPORTED, "--op",
                         "%s is done in one way, by every chip alone, so there is nothing to map; "
                         "podsim collective sweeps its sizes",
                         measure_op_name(args->row.operation));
    STATUS_TRY(sizes_read(begin == NULL ? "1K" : begin, end == NULL ? "1G" : end,
                          factor == NULL ? "4" : factor, NULL, &map->plan.sizes, reterr));
    STATUS_TRY(end_check(args, &map->plan.sizes, reterr));
    map->plan.args = args->row;
    map->plan.algorithms = args->algorithm_count > 0 ? args->algorithm : NULL;
    map->plan.algorithm_count = args->algorithm_count;
    map->plan.run = args->run;
    map->plan.watch = watch;
    map->plan.watch_owner = map;
    return STATUS_OK;
}

static enum status open_outputs(struct map *map, struct error *reterr)
{
    const char *const json = options_value(map->options, "--json");
    const char *const svg = options_value(map->options, "--svg");
    const char *const table = output_is_stdout(json) ? NULL : "-";
    STATUS_TRY(output_picture_check(svg, reterr));
    STATUS_TRY(outputs_distinct(3, (const char *const[]){json, svg, table}, reterr));
    STATUS_TRY(output_open(&map->json, json, map->options, reterr));
    return output_open(&map->svg, svg, map->options, reterr);
}

static enum status write_results(struct map *map, struct error *reterr)
{
    struct strbuf json = {0}, svg = {0};
    bool const to_stdout = output_is_stdout(map->json.path);
    struct strbuf text = {.columns = report_columns(to_stdout ? 2 : 1)};
    regimes_write_text(&map->args, &map->regimes, report_in_colour(to_stdout ? 2 : 1), &text);
    regimes_write_json(&map->args, &map->regimes, &json);
    if (map->svg.path != NULL) regimes_write_svg(&map->args, &map->regimes, &svg);
    enum status status = output_write(&map->json, &json, reterr);
    if (status == STATUS_OK) status = output_write(&map->svg, &svg, reterr);
    if (status == STATUS_OK) status = output_finish(&map->json, reterr);
    if (status == STATUS_OK) status = output_finish(&map->svg, reterr);
    if (status == STATUS_OK) status = output_print(&text, to_stdout, reterr);
    strbuf_free(&text);
    strbuf_free(&json);
    strbuf_free(&svg);
    return status;
}

static enum status map_run(struct map *map, struct error *reterr)
{
    STATUS_TRY(plan_read(map, reterr));
    STATUS_TRY(open_outputs(map, reterr));
    enum status const status = worker_run(work, map, (struct progress_words){"map", NULL}, reterr);
    if (status != STATUS_OK && status != STATUS_INTERRUPTED) return status;
    if (map->regimes.group_count == 0) return status;
    STATUS_TRY(write_results(map, reterr));
    return status;
}

static int regimes(const struct options *options)
{
    static struct map map;
    struct error error = {0};
    enum status status = STATUS_OK;
    map.options = options;
    map.arena = arena_create(0);
    if (map.arena == NULL) status = error_no_memory(&error, "");
    if (status == STATUS_OK) status = map_run(&map, &error);
    output_abandon(&map.json);
    output_abandon(&map.svg);
    int exit_status = EXIT_DONE;
    if (status == STATUS_INTERRUPTED && map.regimes.group_count > 0)
        exit_status = EXIT_INTERRUPTED; /* The text says so. */
    else if (status != STATUS_OK)
        exit_status = command_fail(collective_args_input(&map.args, &error), &error);
    arena_destroy(map.arena);
    return exit_status;
}

const struct command command_regimes = {
    .name = "regimes",
    .usage = "podsim regimes --machine SPEC --op NAME [--axes LIST] [-b SIZE] [-e SIZE] [-f N]\n"
             "           [--algorithm NAMES] [--svg FILE] [--json FILE|-] ...",
    .summary = "which algorithm is fastest at which size and number of ranks",
    .help =
        "Runs every algorithm that applies on growing groups of neighbours, for sizes from the\n"
        "least to the greatest: who wins where, the sizes at which the winner changes (found by\n"
        "bisection), the latency floor, the sizes that reach half and 95 % of the bandwidth, and\n"
        "a line alpha + beta * size through the times of each.\n"
        "\n"
        "  podsim regimes --machine tpu-v5e:16x16 --op all_reduce\n"
        "  podsim regimes --machine tpu-v5p:8x8x8 --op all_gather --axes x --svg map.svg\n"
        "  podsim regimes --machine h100-sxm --algorithm ring,tree --xml mine.xml\n"
        "\n"
        "Ctrl-C keeps the groups that are finished and ends with status 130.\n",
    .operands_min = 0,
    .operands_max = 0,
    .options = regimes_options,
    .run = regimes,
};
