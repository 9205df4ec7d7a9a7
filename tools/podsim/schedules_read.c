/* The options of `podsim pipeline`. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_csv.h"
#include "tools/podsim/input.h"
#include "tools/podsim/lists.h"
#include "tools/podsim/schedules.h"

const struct option schedules_options[] = {
    {"--stages", "N", "ranks of the pipeline, without FILE", false},
    {"--microbatches", "LIST", "how many, with commas between (4 a rank; of FILE, its own)", false},
    {"--times", "LIST", "without FILE: F=1,I=1,W=1,hop=0[,O=F+I+W], a rank's whole share", false},
    {"--schedules", "LIST", "names with commas between, or all (all)", false},
    {"--csv", "FILE", "a schedule in PyTorch's CSV, beside them or alone; - is stdin", true},
    {"--weight-memory", "SHARE", "without FILE: of a pass's activations until W (0.5)", false},
    {"--memory", "N", "without FILE, auto: microbatches a rank may hold", false},
    {"--svg", "FILE", "draw them", false},
    {"--csv-out", "FOLDER", "write each as PyTorch's CSV", false},
    {"--dialect", "NAME", "of those: compute_only or compute_comms (compute_only)", false},
    {"--json", "FILE", "write the rows as JSON; - is standard output", false},
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

static enum status microbatches_read(struct schedules *schedules, struct error *reterr)
{
    const char *text = options_value(schedules->options, "--microbatches");
    if (text != NULL)
        return lists_counts(text, "--microbatches", SCHEDULE_MICROBATCHES_MAX,
                            schedules->microbatches, SCHEDULES_COUNTS_MAX, &schedules->count,
                            reterr);
    schedules->microbatches[schedules->count++] = 4 * schedules->stages;
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
    const char *at = options_value(schedules->options, "--times");
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
    if (schedules->forward == 0 || schedules->input + schedules->weight == 0)
        return error_set(reterr, STATUS_INVALID, "--times", "a pass that takes no time: F and I+W");
    return STATUS_OK;
}

static enum status row_add(struct schedules *schedules, struct schedules_row **ret_row,
                           struct error *reterr)
{
    if (schedules->row_count == SCHEDULES_ROWS_MAX)
        return error_set(reterr, STATUS_LIMIT, "--schedules", "more than %d rows",
                         SCHEDULES_ROWS_MAX);
    *ret_row = &schedules->row[schedules->row_count++];
    return STATUS_OK;
}

static enum status form_add(struct schedules *schedules, const struct schedule_form *form,
                            uint32_t chunks, struct error *reterr)
{
    for (uint32_t i = 0; i < schedules->count; i++) {
        struct schedules_row *row = NULL;
        STATUS_TRY(row_add(schedules, &row, reterr));
        row->form = form;
        row->request = (struct schedule_request){
            .rank_count = schedules->stages,
            .microbatch_count = schedules->microbatches[i],
            .chunk_count = chunks,
            .held_max = schedules->held_max,
        };
    }
    return STATUS_OK;
}

static enum status forms_read(struct schedules *schedules, struct error *reterr)
{
    const char *text = options_value(schedules->options, "--schedules");
    struct lists_forms forms;
    if (text == NULL && options_has(schedules->options, "--csv")) return STATUS_OK;
    STATUS_TRY(lists_forms(schedules->arena, text, "--schedules", &forms, reterr));
    for (uint32_t i = 0; i < forms.count; i++)
        STATUS_TRY(form_add(schedules, forms.form[i].form, forms.form[i].chunk_count, reterr));
    return STATUS_OK;
}

/* Files say themselves how many ranks and microbatches there are. */
static enum status files_read(struct schedules *schedules, struct error *reterr)
{
    const char *path = NULL;
    for (uint32_t i = 0; (path = options_value_at(schedules->options, "--csv", i)) != NULL; i++) {
        struct schedules_row *row = NULL;
        char *text = NULL;
        uint64_t size_bytes = 0;
        STATUS_TRY(row_add(schedules, &row, reterr));
        STATUS_TRY(
            input_load(schedules->arena, path, SCHEDULE_CSV_BYTES_MAX, &text, &size_bytes, reterr));
        STATUS_TRY(
            schedule_csv_read(schedules->arena, text, size_bytes, path, &row->schedule, reterr));
        row->request.rank_count = row->schedule.rank_count;
        row->request.microbatch_count = row->schedule.microbatch_count;
        row->request.chunk_count = row->schedule.chunk_count;
    }
    return STATUS_OK;
}

/* What only a scenario, or only one of the schedules, looks at. */
static enum status needless_check(const struct schedules *schedules, struct error *reterr)
{
    static const char *const of_files[] = {"--set", "--full"};
    bool automatic = false;
    for (uint32_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
        if (options_has(schedules->options, of_files[i]))
            return error_set(reterr, STATUS_INVALID, of_files[i],
                             "it is for a scenario: podsim pipeline FILE");
    for (uint32_t i = 0; i < schedules->row_count; i++)
        automatic = automatic || (schedules->row[i].form != NULL &&
                                  strcmp(schedules->row[i].form->name, "auto") == 0);
    if (options_has(schedules->options, "--memory") && !automatic)
        return error_set(reterr, STATUS_INVALID, "--memory",
                         "only auto heeds it; add it to --schedules");
    return STATUS_OK;
}

enum status schedules_read(struct schedules *schedules, struct error *reterr)
{
    const struct options *options = schedules->options;
    const char *stages = options_value(options, "--stages");
    const char *kept = options_value(options, "--weight-memory");
    const char *memory = options_value(options, "--memory");
    int64_t parts = SCHEDULES_UNIT / 2;
    bool const only_files = options_has(options, "--csv") && !options_has(options, "--schedules");
    if (stages == NULL && !only_files)
        return error_set(reterr, STATUS_INVALID, "--stages", "say how many ranks: --stages 8");
    if (stages != NULL)
        STATUS_TRY(lists_count(stages, stages + strlen(stages), "--stages", SCHEDULE_RANKS_MAX,
                               &schedules->stages, reterr));
    if (only_files && (stages != NULL || options_has(options, "--microbatches")))
        return error_set(reterr, STATUS_INVALID, stages != NULL ? "--stages" : "--microbatches",
                         "a file says so itself; leave it out, or add --schedules");
    if (memory != NULL)
        STATUS_TRY(lists_count(memory, memory + strlen(memory), "--memory",
                               SCHEDULE_MICROBATCHES_MAX, &schedules->held_max, reterr));
    if (kept != NULL)
        STATUS_TRY(decimal_read(kept, kept + strlen(kept), "--weight-memory", &parts, reterr));
    if (parts > SCHEDULES_UNIT)
        return error_set(reterr, STATUS_INVALID, "--weight-memory", "%s is more than all (1)",
                         kept);
    schedules->kept_ppm = (uint32_t)(parts / (SCHEDULES_UNIT / PPM_ONE));
    STATUS_TRY(times_read(schedules, reterr));
    if (!only_files) STATUS_TRY(microbatches_read(schedules, reterr));
    STATUS_TRY(forms_read(schedules, reterr));
    STATUS_TRY(needless_check(schedules, reterr));
    return files_read(schedules, reterr);
}
