#include "tools/podsim/pipeline/comparison_csv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/common/output.h"

/* With the counts behind it and what a file that is not whole has, within 255 bytes. */
enum { STEM_BYTES_MAX = 200 };

static bool is_safe(char character)
{
    return (character >= '0' && character <= '9') || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') || character == '.' || character == '_' ||
           (unsigned char)character >= 0x80;
}

/* "interleaved:2" and "mine/inter leaved.csv" are written as interleaved-2 and inter-leaved. */
static enum status stem_of(const struct comparison_row *row, char ret_stem[STEM_BYTES_MAX + 1],
                           struct error *reterr)
{
    static const char suffix[] = ".csv";
    size_t const suffix_length = sizeof suffix - 1;
    const char *name = row->name;
    if (row->form == NULL && strcmp(name, "-") == 0) name = "stdin";
    const char *const slash = row->form == NULL ? strrchr(name, '/') : NULL;
    if (slash != NULL) name = slash + 1;
    size_t length = strlen(name);
    if (row->form == NULL && length > suffix_length &&
        strcmp(name + length - suffix_length, suffix) == 0)
        length -= suffix_length;
    if (length > STEM_BYTES_MAX)
        return error_set(reterr, STATUS_LIMIT, "--csv-out",
                         "%s: its name is too long to stand before its counts in another (%d "
                         "bytes); rename it",
                         row->name, STEM_BYTES_MAX);
    for (size_t i = 0; i < length; i++) ret_stem[i] = is_safe(name[i]) ? name[i] : '-';
    ret_stem[length] = '\0';
    return STATUS_OK;
}

static enum status path_of(const struct comparison_row *row, const char *folder,
                           char ret_path[OUTPUT_PATH_BYTES], struct error *reterr)
{
    char stem[STEM_BYTES_MAX + 1];
    STATUS_TRY(stem_of(row, stem, reterr));
    int const size = snprintf(ret_path, OUTPUT_PATH_BYTES, "%s/%s-%ux%u.csv", folder, stem,
                              row->rank_count, row->microbatch_count);
    if (size < 0 || size >= OUTPUT_PATH_BYTES)
        return error_set(reterr, STATUS_LIMIT, "--csv-out", "the name of the folder is too long");
    return STATUS_OK;
}

/* Whether such a file can say it. */
static enum status row_check(const struct comparison_row *row, struct error *reterr)
{
    return row->form == NULL ? STATUS_OK
                             : schedule_csv_check(row->name, row->form->model_replicas, reterr);
}

/* Two files of one name in different folders are two rows. */
static enum status names_check(const struct comparison *comparison, const char *folder,
                               struct error *reterr)
{
    const char *paths[COMPARISON_ROWS_MAX];
    char path[OUTPUT_PATH_BYTES];
    for (uint32_t i = 0; i < comparison->row_count; i++) {
        const struct comparison_row *row = &comparison->row[i];
        STATUS_TRY(path_of(row, folder, path, reterr));
        paths[i] = arena_text(comparison->arena, path);
        if (paths[i] == NULL) return error_no_memory(reterr, "--csv-out");
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(paths[k], path) == 0)
                return error_set(reterr, STATUS_INVALID, "--csv-out",
                                 "%s and %s would both be %s; rename one, or write them to folders "
                                 "of their own",
                                 comparison->row[k].name, row->name, path);
    }
    return STATUS_OK;
}

static enum status target_check(const struct options *options, const char *path,
                                struct error *reterr)
{
    struct stat found;
    STATUS_TRY(output_distinct(options_value(options, "--json"), path, reterr));
    STATUS_TRY(output_distinct(options_value(options, "--csv"), path, reterr));
    STATUS_TRY(output_distinct(options_value(options, "--svg"), path, reterr));
    STATUS_TRY(output_spares(path, options, reterr));
    if (stat(path, &found) != 0) return STATUS_OK;
    int const cause = S_ISDIR(found.st_mode) ? EISDIR : access(path, W_OK) == 0 ? 0 : errno;
    if (cause == 0) return STATUS_OK;
    return error_set(reterr, STATUS_IO, path, "cannot be written: %s", strerror(cause));
}

static enum status targets_check(const struct comparison *comparison, const char *folder,
                                 struct error *reterr)
{
    char path[OUTPUT_PATH_BYTES];
    struct error first = {.status = STATUS_OK};
    uint32_t count = 0;
    for (uint32_t i = 0; i < comparison->row_count; i++) {
        const struct comparison_row *row = &comparison->row[i];
        struct error error;
        if (row_check(row, &error) != STATUS_OK) {
            if (first.status == STATUS_OK) first = error;
            continue;
        }
        count++;
        STATUS_TRY(path_of(row, folder, path, reterr));
        STATUS_TRY(target_check(comparison->options, path, reterr));
    }
    if (count > 0) return STATUS_OK;
    *reterr = first;
    return first.status;
}

static enum status folder_make(struct comparison_csv *csv, struct error *reterr)
{
    struct stat found;
    csv->is_new = mkdir(csv->folder, 0777) == 0;
    if (!csv->is_new && errno != EEXIST)
        return error_set(reterr, STATUS_IO, csv->folder, "cannot be made: %s", strerror(errno));
    if (stat(csv->folder, &found) == 0 && !S_ISDIR(found.st_mode))
        return error_set(reterr, STATUS_IO, csv->folder, "is no folder");
    if (access(csv->folder, W_OK | X_OK) != 0)
        return error_set(reterr, STATUS_IO, csv->folder, "cannot be written to: %s",
                         strerror(errno));
    return STATUS_OK;
}

enum status comparison_csv_open(const struct comparison *comparison, struct comparison_csv *ret_csv,
                                struct error *reterr)
{
    const char *const dialect = options_value(comparison->options, "--dialect");
    bool const has_comms = dialect != NULL && strcmp(dialect, "compute_comms") == 0;
    *ret_csv = (struct comparison_csv){
        .folder = options_value(comparison->options, "--csv-out"),
        .dialect = has_comms ? SCHEDULE_COMPUTE_COMMS : SCHEDULE_COMPUTE_ONLY,
    };
    if (dialect != NULL && !has_comms && strcmp(dialect, "compute_only") != 0)
        return error_set(reterr, STATUS_INVALID, "--dialect",
                         "\"%s\" is neither compute_only nor compute_comms", dialect);
    if (dialect != NULL && ret_csv->folder == NULL)
        return error_set(reterr, STATUS_INVALID, "--dialect", "needs --csv-out FOLDER");
    if (ret_csv->folder == NULL) return STATUS_OK;
    STATUS_TRY(names_check(comparison, ret_csv->folder, reterr));
    STATUS_TRY(folder_make(ret_csv, reterr));
    return targets_check(comparison, ret_csv->folder, reterr);
}

/* Whether a file is not there, is empty, or has this text already; a device takes any text. */
static bool may_hold(const char *path, const struct strbuf *text)
{
    struct stat found;
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size == 0) return true;
    FILE *file = (uint64_t)found.st_size == text->size_bytes ? fopen(path, "rb") : NULL;
    bool same = file != NULL;
    for (uint64_t i = 0; same && i < text->size_bytes; i++)
        same = getc(file) == (unsigned char)text->bytes[i];
    if (file != NULL) (void)fclose(file);
    return same;
}

enum pass { PASS_CHECK, PASS_WRITE };

static enum status row_write(const struct comparison *comparison, const struct comparison_row *row,
                             const struct comparison_csv *csv, enum pass pass, struct error *reterr)
{
    char path[OUTPUT_PATH_BYTES];
    struct strbuf text = {0};
    STATUS_TRY(path_of(row, csv->folder, path, reterr));
    STATUS_TRY(output_spares(path, comparison->options, reterr));
    enum status status =
        schedule_csv_write(comparison->arena, &row->schedule, csv->dialect, &text, reterr);
    if (status == STATUS_OK && !text.failed && !may_hold(path, &text))
        status = error_set(reterr, STATUS_IO, path,
                           "is there and holds something else, maybe a schedule of yours; remove "
                           "it, or name another folder");
    if (status == STATUS_OK && pass == PASS_WRITE) status = strbuf_write_file(&text, path, reterr);
    strbuf_free(&text);
    return status;
}

static bool is_written(const struct comparison_row *row, struct error *reterr)
{
    return row->refused.status == STATUS_OK && row_check(row, reterr) == STATUS_OK;
}

enum status comparison_csv_write(const struct comparison *comparison,
                                 const struct comparison_csv *csv, struct strbuf *notes,
                                 struct error *reterr)
{
    uint32_t const count = csv->folder == NULL ? 0 : comparison->done_count;
    struct error error;
    for (uint32_t i = 0; i < count; i++) /* None is written if one may not be. */
        if (is_written(&comparison->row[i], &error))
            STATUS_TRY(row_write(comparison, &comparison->row[i], csv, PASS_CHECK, reterr));
    for (uint32_t i = 0; i < count; i++) {
        const struct comparison_row *row = &comparison->row[i];
        if (is_written(row, &error))
            STATUS_TRY(row_write(comparison, row, csv, PASS_WRITE, reterr));
        else if (row->refused.status == STATUS_OK)
            strbuf_add(notes, "- no file for %s: %s\n", row->name, error.message);
    }
    return STATUS_OK;
}

void comparison_csv_close(const struct comparison_csv *csv)
{
    if (csv->is_new) (void)rmdir(csv->folder);
}
