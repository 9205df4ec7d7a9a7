/* The options of `podsim pipeline`. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_csv.h"
#include "tools/podsim/common/counts.h"
#include "tools/podsim/common/input.h"
#include "tools/podsim/pipeline/lists.h"
#include "tools/podsim/pipeline/schedules.h"

const struct option schedules_options[] = {
    {"--stages", "N", "ranks of the pipeline, without FILE", false},
    {"--microbatches", "LIST", "such as 8,16 or 8:64:x2 (4 a rank; of FILE, its own)", false},
    {"--times", "LIST", "without FILE: F=1,I=1,W=1,hop=0[,O=F+I+W], a rank's whole share", false},
    {"--schedules", "LIST", "names, or all: all but none (all, and FILE's own)", false},
    {"--schedule-csv", "FILE", "a schedule in PyTorch's CSV, with them or alone; - is stdin", true},
    {"--weight-memory", "SHARE", "without FILE: of a pass's activations until W (0.5)", false},
    {"--memory", "N", "auto: microbatches a rank may hold", false},
    {"--sort", "KEY", "period, step, bubble, memory or name (as in the catalogue)", false},
    {"--svg", "FILE", "draw them", false},
    {"--trace", "FILE", "of one row, a timeline for https://ui.perfetto.dev; NAME.gz: compressed",
     false},
    {"--trace-chips", "LIST", "of FILE, chips in it, or all (the first of each rank)", false},
    {"--csv-out", "FOLDER", "write each as PyTorch's CSV", false},
    {"--dialect", "NAME", "of those: compute_only or compute_comms (compute_only)", false},
    {"--json", "FILE", "write the rows as JSON; - is standard output", false},
    {"--csv", "FILE", "write the rows as CSV; - is standard output", false},
    POOL_OPTION,
    {"--set", "/POINTER=VALUE", "change a key of FILE; may be repeated", true},
    {"--full", NULL, "of FILE every chip and every hop: no folding", false},
    {0},
};

/* A decimal, in parts of a unit; ends at `end`. */
static enum status decimal_read(const char *text, const char *end, const char *where,
                                int64_t *ret_parts, struct error *reterr)
{
    int64_t const most = INT64_C(1000000) * SCHEDULES_UNIT;
    int64_t parts = 0, place = SCHEDULES_UNIT;
    bool point = false, digits = false, good = true;
    for (const char *c = text; c < end && good; c++) {
        if (*c == '.' && !point) {
            point = true;
            continue;
        }
        good = *c >= '0' && *c <= '9' && (!point || place > 1) && parts <= most;
        digits = true;
        if (!good) break;
        if (point)
            parts += (int64_t)(*c - '0') * (place /= 10);
        else
            parts = parts * 10 + (int64_t)(*c - '0') * SCHEDULES_UNIT;
    }
    if (!good || !digits || parts > most)
        return error_set(reterr, STATUS_INVALID, where,
                         "\"%.*s\" is no number from 0 to 1000000 with at most nine decimals",
                         (int)(end - text < 40 ? end - text : 40), text);
    *ret_parts = parts;
    return STATUS_OK;
}

/* "F=1,I=1.3,W=0.7,hop=0.1" */
static enum status times_read(struct schedules *schedules, struct error *reterr)
{
    const struct {
        const char *name;
        int64_t *value;
    } known[] = {{"F", &schedules->forward},
                 {"I", &schedules->input},
                 {"W", &schedules->weight},
                 {"hop", &schedules->hop},
                 {"O", &schedules->pair}};
    const char *at = options_value(schedules->of->options, "--times");
    uint32_t given = 0;
    schedules->forward = schedules->input = schedules->weight = SCHEDULES_UNIT;
    for (; at != NULL; at++) {
        const char *end = lists_part_end(at);
        const char *equals = memchr(at, '=', (size_t)(end - at));
        uint32_t found = 0;
        size_t const length = equals == NULL ? 0 : (size_t)(equals - at);
        while (found < 5 &&
               (strlen(known[found].name) != length || strncmp(known[found].name, at, length) != 0))
            found++;
        if (found == 5)
            return error_set(reterr, STATUS_INVALID, "--times",
                             "\"%.*s\" is none of F=, I=, W=, hop= and O=",
                             (int)(end - at < 40 ? end - at : 40), at);
        if ((given >> found & 1) != 0)
            return error_set(reterr, STATUS_INVALID, "--times", "%s is given twice",
                             known[found].name);
        given |= 1u << found;
        STATUS_TRY(decimal_read(equals + 1, end, "--times", known[found].value, reterr));
        if (*end == '\0') break;
        at = end;
    }
    if ((given >> 4 & 1) != 0 && schedules->pair == 0)
        return error_set(reterr, STATUS_INVALID, "--times",
                         "O=0: a forward and a backward pass together take some time; left out, it "
                         "is F+I+W");
    int64_t const backward = schedules->input + schedules->weight;
    int64_t const longer = schedules->forward > backward ? schedules->forward : backward;
    if (schedules->pair != 0 && schedules->pair < longer)
        return error_set(reterr, STATUS_INVALID, "--times",
                         "O: two passes side by side take at least what the longer takes alone, F "
                         "or I+W: the nearest is O=%.12g",
                         (double)longer / SCHEDULES_UNIT);
    if (schedules->forward == 0 || backward == 0)
        return error_set(reterr, STATUS_INVALID, "--times", "a pass that takes no time: F and I+W");
    return STATUS_OK;
}

/* What only a scenario looks at. */
static enum status needless_check(const struct comparison *comparison, struct error *reterr)
{
    static const char *const of_files[] = {"--set", "--full", "--trace-chips"};
    for (uint32_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
        if (options_has(comparison->options, of_files[i]))
            return error_set(reterr, STATUS_INVALID, of_files[i],
                             "it is for a scenario: podsim pipeline FILE");
    return STATUS_OK;
}

enum status schedules_read(struct comparison *comparison, struct error *reterr)
{
    const struct options *options = comparison->options;
    const char *stages = options_value(options, "--stages");
    const char *kept = options_value(options, "--weight-memory");
    int64_t parts = SCHEDULES_UNIT / 2;
    bool const only_files =
        options_has(options, "--schedule-csv") && !options_has(options, "--schedules");
    void *memory = NULL;
    STATUS_TRY(arena_try(comparison->arena, 1, sizeof(struct schedules), &memory, reterr));
    struct schedules *schedules = comparison->owner = memory;
    schedules->of = comparison;
    if (stages == NULL && !only_files)
        return error_set(reterr, STATUS_INVALID, "--stages", "say how many ranks: --stages 8");
    if (stages != NULL)
        STATUS_TRY(
            counts_one(stages, "--stages", SCHEDULE_RANKS_MAX, &comparison->rank_count, reterr));
    if (only_files && (stages != NULL || options_has(options, "--microbatches")))
        return error_set(reterr, STATUS_INVALID, stages != NULL ? "--stages" : "--microbatches",
                         "a file says so itself; leave it out, or add --schedules");
    if (kept != NULL)
        STATUS_TRY(decimal_read(kept, kept + strlen(kept), "--weight-memory", &parts, reterr));
    if (parts > SCHEDULES_UNIT)
        return error_set(reterr, STATUS_INVALID, "--weight-memory", "%s is more than all (1)",
                         kept);
    if (parts % (SCHEDULES_UNIT / PPM_ONE) != 0)
        return error_set(reterr, STATUS_INVALID, "--weight-memory", "%s has more than six decimals",
                         kept);
    schedules->kept_ppm = (uint32_t)(parts / (SCHEDULES_UNIT / PPM_ONE));
    STATUS_TRY(times_read(schedules, reterr));
    STATUS_TRY(comparison_read_rows(comparison, 4 * comparison->rank_count, reterr));
    STATUS_TRY(comparison_read_memory(comparison, &schedules->held_max, reterr));
    STATUS_TRY(comparison_check_sort(comparison, reterr));
    return needless_check(comparison, reterr);
}
