#include "tools/podsim/pipeline/comparison.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/letter.h"
#include "sim/base/strbuf.h"
#include "sim/report/table.h"
#include "sim/schedule/schedule_csv.h"
#include "tools/podsim/common/counts.h"
#include "tools/podsim/common/input.h"
#include "tools/podsim/common/output.h"
#include "tools/podsim/common/timeline_file.h"
#include "tools/podsim/common/worker.h"
#include "tools/podsim/pipeline/lists.h"

/* A row that is not there yet; NULL: it is. */
static enum status row_add(struct comparison *comparison, const char *name, uint32_t microbatches,
                           struct comparison_row **ret_row, struct error *reterr)
{
    *ret_row = NULL;
    for (uint32_t i = 0; i < comparison->row_count; i++) {
        const struct comparison_row *row = &comparison->row[i];
        if (strcmp(row->name, name) == 0 &&
            (row->form == NULL || row->microbatch_count == microbatches))
            return STATUS_OK;
    }
    if (comparison->row_count == COMPARISON_ROWS_MAX)
        return error_set(reterr, STATUS_LIMIT, "--schedules", "more than %d rows",
                         COMPARISON_ROWS_MAX);
    struct comparison_row *row = &comparison->row[comparison->row_count++];
    row->name = name;
    row->microbatch_count = microbatches;
    *ret_row = row;
    return STATUS_OK;
}

static enum status form_read(struct comparison *comparison, const struct lists_form *form,
                             struct error *reterr)
{
    const char *name = form->form->chunks != 0 ? form->form->name
                                               : arena_format(comparison->arena, "%s:%u",
                                                              form->form->name, form->chunk_count);
    if (name == NULL) return error_no_memory(reterr, "--schedules");
    for (uint32_t k = 0; k < comparison->count; k++) {
        struct comparison_row *row = NULL;
        STATUS_TRY(row_add(comparison, name, comparison->microbatches[k], &row, reterr));
        if (row == NULL) continue;
        row->form = form->form;
        row->chunk_count = form->chunk_count;
        row->rank_count = comparison->rank_count;
    }
    return STATUS_OK;
}

/* The scenario's own schedule, whatever "all" has of it. */
static enum status own_read(struct comparison *comparison, struct error *reterr)
{
    struct lists_form own;
    if (comparison->own == NULL) return STATUS_OK;
    STATUS_TRY(schedule_form_parse(comparison->own, "/workload/schedule", &own.form,
                                   &own.chunk_count, reterr));
    return form_read(comparison, &own, reterr);
}

static enum status file_row(struct comparison *comparison, const char *path, struct error *reterr)
{
    char *text = NULL;
    uint64_t size_bytes = 0;
    void *memory = NULL;
    struct comparison_row *row = NULL;
    if (!letters_are_plain(path)) /* Rows are called by their file, on a terminal. */
        return error_set(reterr, STATUS_INVALID, path,
                         "a file whose name has control characters or is not UTF-8; rename it");
    STATUS_TRY(row_add(comparison, path, 0, &row, reterr));
    if (row == NULL) return STATUS_OK;
    STATUS_TRY(
        input_load(comparison->arena, path, SCHEDULE_CSV_BYTES_MAX, &text, &size_bytes, reterr));
    STATUS_TRY(arena_try(comparison->arena, 1, sizeof(struct schedule), &memory, reterr));
    struct schedule *given = memory;
    STATUS_TRY(schedule_csv_read(comparison->arena, text, size_bytes, path, given, reterr));
    row->given = given;
    row->name = given->name;
    row->rank_count = given->rank_count;
    row->chunk_count = given->chunk_count;
    row->microbatch_count = given->microbatch_count;
    return STATUS_OK;
}

/* Whose place is "-" is on standard input. */
static enum status file_read(struct comparison *comparison, const char *path, struct error *reterr)
{
    enum status const status = file_row(comparison, path, reterr);
    if (status != STATUS_OK && strcmp(reterr->where, "-") == 0)
        (void)snprintf(reterr->where, sizeof reterr->where, "standard input");
    return status;
}

enum status comparison_read_rows(struct comparison *comparison, uint32_t microbatches,
                                 struct error *reterr)
{
    const struct options *options = comparison->options;
    const char *counts = options_value(options, "--microbatches");
    const char *names = options_value(options, "--schedules"), *path = NULL;
    bool const only_files = names == NULL && options_has(options, "--schedule-csv");
    struct lists_forms forms;
    if (counts != NULL)
        STATUS_TRY(counts_list(counts, "--microbatches", SCHEDULE_MICROBATCHES_MAX,
                               comparison->microbatches, COMPARISON_COUNTS_MAX, &comparison->count,
                               reterr));
    else
        comparison->microbatches[comparison->count++] = microbatches;
    if (!only_files) {
        STATUS_TRY(lists_forms(comparison->arena, names, "--schedules", &forms, reterr));
        if (forms.all) STATUS_TRY(own_read(comparison, reterr));
        for (uint32_t i = 0; i < forms.count; i++)
            STATUS_TRY(form_read(comparison, &forms.form[i], reterr));
    }
    for (uint32_t i = 0; (path = options_value_at(options, "--schedule-csv", i)) != NULL; i++)
        STATUS_TRY(file_read(comparison, path, reterr));
    return STATUS_OK;
}

enum status comparison_read_memory(const struct comparison *comparison, uint32_t *ret_held_max,
                                   struct error *reterr)
{
    const char *text = options_value(comparison->options, "--memory");
    bool is_heeded = false;
    *ret_held_max = 0;
    if (text == NULL) return STATUS_OK;
    STATUS_TRY(counts_one(text, "--memory", SCHEDULE_MICROBATCHES_MAX, ret_held_max, reterr));
    for (uint32_t i = 0; i < comparison->row_count; i++)
        is_heeded =
            is_heeded || (comparison->row[i].form != NULL && comparison->row[i].form->heeds_times);
    if (!is_heeded)
        return error_set(reterr, STATUS_INVALID, "--memory",
                         "only auto heeds it; add it to --schedules");
    return STATUS_OK;
}

enum status comparison_read_trace(struct comparison *comparison, struct error *reterr)
{
    STATUS_TRY(timeline_file_check(comparison->options, reterr));
    comparison->traces = options_has(comparison->options, "--trace");
    if (!comparison->traces || comparison->row_count == 1) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, "--trace",
                     "a timeline shows one schedule, and these are %u rows; name one, such as "
                     "--schedules 1f1b, with one number of --microbatches",
                     comparison->row_count);
}

/* Of all that are known, those that cannot be. */
static bool may_pass_over(const struct comparison *comparison, const struct comparison_row *row)
{
    const char *asked = options_value(comparison->options, "--schedules");
    bool const all = asked == NULL || strcmp(asked, "all") == 0;
    return all && row->form != NULL &&
           (row->refused.status == STATUS_INVALID || row->refused.status == STATUS_UNSUPPORTED);
}

/* Of a message its reason, without the schedule's name in front: rows say theirs themselves. */
static const char *reason_of(const struct comparison_row *row, const char *message)
{
    size_t const length = row->form == NULL ? 0 : strlen(row->form->name);
    if (length > 0 && strncmp(message, row->form->name, length) == 0 &&
        strncmp(message + length, ": ", 2) == 0)
        return message + length + 2;
    return message;
}

bool comparison_prints_to_error(const struct comparison *comparison)
{
    return output_is_stdout(options_value(comparison->options, "--json")) ||
           output_is_stdout(options_value(comparison->options, "--csv"));
}

/* What the first row that failed says; among several rows, which it is, and of several of which
 * none could be simulated that it is none. */
static enum status failure(const struct comparison *comparison, const struct comparison_row *row,
                           struct error *reterr)
{
    if (comparison->row_count > 1 && comparison_played(comparison) == 0)
        return error_set(reterr, row->refused.status, "--schedules",
                         "none of these %u rows can be simulated; the reasons are on standard %s",
                         comparison->row_count,
                         comparison_prints_to_error(comparison) ? "error, above" : "output");
    if (comparison->row_count > 1 && row->form != NULL)
        return error_set(reterr, row->refused.status, row->refused.where, "%s with %s: %s",
                         row->name, counted(row->microbatch_count, "microbatch").text,
                         reason_of(row, row->refused.message));
    *reterr = row->refused;
    return reterr->status;
}

/* Why a row was refused, behind the key of the scenario that it is of; rows say the schedule. */
static enum status reason_make(struct comparison_row *row, struct error *reterr)
{
    const char *const where = row->refused.where;
    bool const has_key = where[0] == '/' && strcmp(where, "/workload/schedule") != 0;
    row->reason = has_key ? arena_format(row->arena, "%s: %s", where, row->refused.message)
                          : row->refused.message;
    return row->reason != NULL ? STATUS_OK
                               : error_set(reterr, STATUS_NO_MEMORY, "", "there is no memory");
}

static enum status row_play(void *owner, uint32_t index, uint32_t thread, struct error *reterr)
{
    struct comparison *comparison = owner;
    struct comparison_row *row = &comparison->row[index];
    STATUS_TRY(worker_check(comparison->worker, reterr));
    row->arena = arena_create(0);
    if (row->arena == NULL) return error_no_memory(reterr, "");
    enum status const status = comparison->way->play(comparison, index, thread, &row->refused);
    row->done = status != STATUS_INTERRUPTED;
    if (row->done) return reason_make(row, reterr);
    *reterr = row->refused;
    return status;
}

enum status comparison_play(void *owner, struct worker *worker, struct error *reterr)
{
    struct comparison *comparison = owner;
    const struct comparison_row *failed = NULL;
    comparison->worker = worker;
    pool_open(&comparison->pool, worker, comparison->thread_count);
    struct parallel const parallel = pool_parallel(&comparison->pool);
    struct parallel_work const work = {
        .part = row_play, .owner = comparison, .part_count = comparison->row_count, .share_end = 1};
    enum status const status = parallel_run(&parallel, &work, reterr);
    while (comparison->done_count < comparison->row_count &&
           comparison->row[comparison->done_count].done)
        comparison->done_count++;
    if (status != STATUS_OK) return status;
    for (uint32_t i = 0; i < comparison->row_count; i++) {
        const struct comparison_row *row = &comparison->row[i];
        if (row->refused.status == STATUS_OK || may_pass_over(comparison, row)) continue;
        comparison->failed_count++;
        if (failed == NULL) failed = row;
    }
    if (failed == NULL && comparison_played(comparison) == 0) failed = &comparison->row[0];
    return failed == NULL ? STATUS_OK : failure(comparison, failed, reterr);
}

void comparison_close(struct comparison *comparison)
{
    for (uint32_t i = 0; i < comparison->row_count; i++) arena_destroy(comparison->row[i].arena);
}

uint32_t comparison_played(const struct comparison *comparison)
{
    uint32_t played = 0;
    for (uint32_t i = 0; i < comparison->done_count; i++)
        played += comparison->row[i].refused.status == STATUS_OK;
    return played;
}

void comparison_write_interrupted(const struct comparison *comparison, struct strbuf *text)
{
    if (comparison->done_count < comparison->row_count)
        strbuf_add(text, "interrupted: %u of %s\n", comparison->done_count,
                   counted(comparison->row_count, "row").text);
}

static bool have_one_reason(const struct comparison_row *row, const struct comparison_row *other)
{
    return row->refused.status != STATUS_OK && other->refused.status != STATUS_OK &&
           strcmp(reason_of(row, row->reason), reason_of(other, other->reason)) == 0;
}

void comparison_write_names(const struct comparison *comparison, const bool *belongs,
                            struct strbuf *text)
{
    const struct comparison_row *before = NULL;
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct comparison_row *row = &comparison->row[comparison->order[i]];
        if (!belongs[comparison->order[i]]) continue;
        if (before != NULL && before->microbatch_count != row->microbatch_count)
            strbuf_add(text, ", %s; ", counted(before->microbatch_count, "microbatch").text);
        else if (before != NULL)
            strbuf_add(text, ", ");
        strbuf_add(text, "%s", row->name);
        before = row;
    }
    if (before != NULL)
        strbuf_add(text, ", %s", counted(before->microbatch_count, "microbatch").text);
}

void comparison_write_refused(const struct comparison *comparison, struct strbuf *text)
{
    bool belongs[COMPARISON_ROWS_MAX], is_said[COMPARISON_ROWS_MAX] = {false};
    for (uint32_t i = 0; i < comparison->done_count; i++) {
        const struct comparison_row *row = &comparison->row[i];
        struct strbuf sentence = {0};
        if (row->refused.status == STATUS_OK || is_said[i]) continue;
        for (uint32_t k = 0; k < comparison->done_count; k++) {
            belongs[k] = have_one_reason(row, &comparison->row[k]);
            is_said[k] = is_said[k] || belongs[k];
        }
        strbuf_add(&sentence, "- ");
        comparison_write_names(comparison, belongs, &sentence);
        strbuf_add(&sentence, ", not simulated: %s", reason_of(row, row->reason));
        text->failed = text->failed || sentence.failed;
        if (!sentence.failed) table_wrap(text, 2, sentence.bytes);
        strbuf_free(&sentence);
    }
}
