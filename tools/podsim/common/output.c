#define _XOPEN_SOURCE 700 /* realpath() */

#include "tools/podsim/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/files_read.h"
#include "sim/base/strbuf.h"
#include "sim/report/column.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/common/output_guard.h"

enum { PENDING_MAX = 4, TABLE_KEYS = 3 };

/* Temporary names, for a signal's handler to remove. */
static _Atomic(const char *) pending[PENDING_MAX];
static atomic_int running_child; /* 0: none. */
static bool pipe_may_end;        /* A closed pipe behind standard output ends the process. */

static void pending_change(const char *from, const char *to)
{
    for (uint32_t i = 0; i < PENDING_MAX; i++) {
        const char *expected = from;
        if (atomic_compare_exchange_strong(&pending[i], &expected, to)) return;
    }
    SIM_ASSERT(to == NULL); /* No verb has more outputs at once. */
}

void output_child(pid_t child)
{
    atomic_store(&running_child, (int)child);
}

static void remove_leftovers(void)
{
    for (uint32_t i = 0; i < PENDING_MAX; i++) {
        const char *const path = atomic_load(&pending[i]);
        if (path != NULL) (void)unlink(path);
    }
}

static void on_fatal_signal(int number)
{
    int const child = atomic_load(&running_child);
    if (child > 0) (void)kill(child, SIGKILL);
    remove_leftovers();
    (void)raise(number); /* Its own handling is back (SA_RESETHAND), and ends the process. */
}

static void remove_leftovers_on_signals(void)
{
    static const int numbers[] = {SIGABRT, SIGBUS,  SIGFPE,  SIGHUP,  SIGILL,
                                  SIGINT,  SIGQUIT, SIGSEGV, SIGTERM, SIGXCPU};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before;
        struct sigaction const action = {.sa_handler = on_fatal_signal,
                                         .sa_flags = (int)SA_RESETHAND};
        /* What is ignored (nohup) or taken (by a sanitizer) stays so. */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &action, NULL);
    }
}

/* Standard output where there was none: a pipe's end that can only be read. What is written there
 * fails, by whatever name (/dev/stdout too), as it would not with /dev/null. */
static void stand_in_for_stdout(void)
{
    int end[2];
    if (pipe(end) == 0) (void)close(end[1]);
}

static bool is_closed(int descriptor)
{
    return fcntl(descriptor, F_GETFD) == -1 && errno == EBADF;
}

void output_prepare(void)
{
    /* A file that is opened takes the lowest free number, so these are 0, 1 and 2. */
    if (is_closed(STDIN_FILENO)) (void)open("/dev/null", O_RDONLY);
    if (is_closed(STDOUT_FILENO)) stand_in_for_stdout();
    if (is_closed(STDERR_FILENO)) (void)open("/dev/null", O_WRONLY);
    /* A closed pipe and a file beyond its limit are errors of a write. */
    pipe_may_end = signal(SIGPIPE, SIG_IGN) == SIG_DFL;
    (void)signal(SIGXFSZ, SIG_IGN);
    remove_leftovers_on_signals();
}

/* Who reads has seen enough (`| head`): no error of the user's. */
static void end_by_closed_pipe(void)
{
    remove_leftovers();
    (void)signal(SIGPIPE, SIG_DFL);
    (void)raise(SIGPIPE);
}

static enum status fail(const char *path, int cause, struct error *reterr)
{
    if (strcmp(path, "-") == 0 && cause == EPIPE && pipe_may_end) end_by_closed_pipe();
    const char *const shown = strcmp(path, "-") == 0 ? "standard output" : path;
    return error_set(reterr, STATUS_IO, shown, "cannot be written: %s",
                     cause == EBADF ? "it is closed" : strerror(cause));
}

static bool same_file(const struct stat *left, const struct stat *right)
{
    return left->st_dev == right->st_dev && left->st_ino == right->st_ino;
}

static bool is_stdout(const struct stat *status)
{
    struct stat taken;
    return fstat(STDOUT_FILENO, &taken) == 0 && !S_ISCHR(taken.st_mode) &&
           same_file(status, &taken);
}

/* What stands for a file before it exists: its folder, and the name in it. */
static bool folder_status(const char *path, const char **ret_name, struct stat *ret_status)
{
    char folder[OUTPUT_PATH_BYTES];
    const char *const slash = strrchr(path, '/');
    size_t const length = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    *ret_name = path + length;
    if (length >= sizeof folder) return false;
    memcpy(folder, path, length);
    folder[length] = '\0';
    return stat(length == 0 ? "." : folder, ret_status) == 0;
}

static bool status_of(const char *path, struct stat *ret_status)
{
    int const code =
        strcmp(path, "-") == 0 ? fstat(STDOUT_FILENO, ret_status) : stat(path, ret_status);
    return code == 0;
}

enum status output_distinct(const char *path, const char *other, struct error *reterr)
{
    if (path == NULL || other == NULL) return STATUS_OK;
    struct stat left, right;
    const char *left_name = NULL, *right_name = NULL;
    bool const left_exists = status_of(path, &left), right_exists = status_of(other, &right);
    bool same = strcmp(path, other) == 0;
    if (left_exists && right_exists) /* A terminal or /dev/null takes several. */
        same = same || (same_file(&left, &right) && !S_ISCHR(left.st_mode));
    else if (!same && !left_exists && !right_exists) {
        static char target[2][OUTPUT_PATH_BYTES];
        same = output_guard_target(path, target[0], sizeof target[0]) &&
               output_guard_target(other, target[1], sizeof target[1]) &&
               folder_status(target[0], &left_name, &left) &&
               folder_status(target[1], &right_name, &right) && same_file(&left, &right) &&
               strcmp(left_name, right_name) == 0;
    }
    if (!same) return STATUS_OK;
    if (strcmp(other, "-") == 0)
        return error_set(reterr, STATUS_IO, path,
                         "is standard output, where something else is printed");
    return error_set(reterr, STATUS_IO, path, "is given for two outputs");
}

enum status outputs_distinct(uint32_t count, const char *const *paths, struct error *reterr)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = i + 1; k < count; k++)
            STATUS_TRY(output_distinct(paths[i], paths[k], reterr));
    return STATUS_OK;
}

bool output_is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

enum status output_picture_check(const char *path, struct error *reterr)
{
    if (!output_is_stdout(path)) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, "--svg", "a picture needs a file of its own");
}

/* A name beside the target; a short one if the target's own is about as long as names may be. */
static enum status open_temporary(struct output *output, struct error *reterr)
{
    static uint32_t count;
    size_t const size = sizeof output->temporary;
    const char *const slash = strrchr(output->target, '/');
    int const folder = slash == NULL ? 0 : (int)(slash - output->target) + 1;
    long const process = (long)getpid();
    int length = snprintf(output->temporary, size, "%s.tmp-%ld", output->target, process);
    errno = ENAMETOOLONG;
    if (length > 0 && (size_t)length < size) output->file = fopen(output->temporary, "wbx");
    bool const too_long = output->file == NULL && errno == ENAMETOOLONG;
    if (too_long && strlen(output->target + folder) <= NAME_MAX) {
        length = snprintf(output->temporary, size, "%.*s.podsim-%ld-%u", folder, output->target,
                          process, count++);
        if (length > 0 && (size_t)length < size) output->file = fopen(output->temporary, "wbx");
    }
    if (output->file == NULL) {
        output->temporary[0] = '\0';
        return fail(output->path, errno, reterr);
    }
    pending_change(NULL, output->temporary);
    return STATUS_OK;
}

/* `replaced`: the file that stands there, whose permissions the new one takes; NULL: none. */
static enum status open_beside(struct output *output, const struct stat *replaced,
                               struct error *reterr)
{
    char *found = replaced != NULL ? realpath(output->path, NULL) : NULL;
    if (replaced != NULL && found == NULL) return fail(output->path, errno, reterr);
    const char *const target = replaced != NULL ? found : output->path;
    bool const fits = output_guard_target(target, output->target, sizeof output->target);
    free(found);
    if (!fits) return fail(output->path, errno, reterr);
    STATUS_TRY(open_temporary(output, reterr));
    /* Some file systems have no permissions to set. */
    if (replaced != NULL) (void)fchmod(fileno(output->file), replaced->st_mode & 0777);
    return STATUS_OK;
}

static bool names_file(const char *path, const struct stat *file)
{
    struct stat other;
    return stat(path, &other) == 0 && same_file(file, &other);
}

/* What a scenario names is read too; `shown` is how the user wrote it. */
static enum status spares_read(const char *path, const char *shown, struct error *reterr)
{
    struct stat file;
    if (stat(path, &file) != 0 || !files_read_has(&file)) return STATUS_OK;
    return error_set(reterr, STATUS_IO, shown,
                     "is a file that this command reads, which no result replaces; name another "
                     "file");
}

static bool holds_scenario(const char *path)
{
    const char *const kind = output_guard_kind(path);
    return kind != NULL && strcmp(kind, "a scenario") == 0;
}

enum status output_spares(const char *path, const struct options *options, struct error *reterr)
{
    struct stat file;
    if (options == NULL || stat(path, &file) != 0 || !S_ISREG(file.st_mode)) return STATUS_OK;
    bool program = false;
    for (uint32_t i = 0; i < options->given_count; i++)
        program = program || strcmp(options->given[i].option->name, "--program") == 0;
    for (uint32_t i = 0; i < options->operand_count; i++)
        if (names_file(options->operand[i], &file))
            return error_set(reterr, STATUS_IO, path,
                             program                ? "is the program itself"
                             : holds_scenario(path) ? "is the scenario itself"
                                                    : "is the file that this command reads");
    for (uint32_t i = 0; i < options->given_count; i++) {
        const struct option *option = options->given[i].option;
        const char *const value = options->given[i].value;
        bool const reads =
            value != path && option->value != NULL &&
            (strcmp(option->value, "FILE") == 0 || strcmp(option->value, "SPEC") == 0);
        if (reads && names_file(value, &file))
            return error_set(reterr, STATUS_IO, path, "is what %s names", option->name);
    }
    return spares_read(path, path, reterr);
}

enum status output_open(struct output *output, const char *path, const struct options *options,
                        struct error *reterr)
{
    *output = (struct output){.path = path};
    if (path == NULL) return STATUS_OK;
    if (strcmp(path, "-") == 0) {
        output->file = stdout;
        return STATUS_OK;
    }
    struct stat status;
    bool const exists = stat(path, &status) == 0;
    STATUS_TRY(output_spares(path, options, reterr));
    if (exists && S_ISDIR(status.st_mode)) return fail(path, EISDIR, reterr);
    if (exists && is_stdout(&status)) { /* /dev/stdout: who redirected it keeps the file open. */
        output->path = "-";
        output->file = stdout;
        return STATUS_OK;
    }
    if (exists && S_ISREG(status.st_mode) && access(path, W_OK) != 0)
        return fail(path, errno, reterr);
    const char *const kind = exists && S_ISREG(status.st_mode) ? output_guard_kind(path) : NULL;
    if (kind != NULL)
        return error_set(reterr, STATUS_IO, path,
                         "is there and holds %s, which no result replaces; name another file",
                         kind);
    /* A device or a pipe is not replaced. */
    if (exists && !S_ISREG(status.st_mode))
        output->file = fopen(path, "wb");
    else
        return open_beside(output, exists ? &status : NULL, reterr);
    return output->file == NULL ? fail(path, errno, reterr) : STATUS_OK;
}

/* Whether it begins with the keys of the first columns, which tell a table from other CSV. */
static bool is_table(FILE *file, const struct column_line *columns)
{
    struct column_line first = *columns;
    struct strbuf keys = {0};
    char begin[128] = "";
    if (first.count > TABLE_KEYS) first.count = TABLE_KEYS;
    column_add_keys(&first, &keys);
    size_t const length = keys.failed ? sizeof begin : (size_t)keys.size_bytes;
    bool const is = length < sizeof begin && fread(begin, 1, length, file) == length &&
                    memcmp(begin, keys.bytes, length) == 0;
    strbuf_free(&keys);
    return is;
}

static bool knows(const struct options *options, const char *name)
{
    const struct option *known = options == NULL ? NULL : options->known;
    while (known != NULL && known->name != NULL && strcmp(known->name, name) != 0) known++;
    return known != NULL && known->name != NULL;
}

enum status output_open_table(struct output *output, const char *path,
                              const struct column_line *columns, const struct options *options,
                              struct error *reterr)
{
    struct stat found;
    bool const is_file = path != NULL && strcmp(path, "-") != 0 && stat(path, &found) == 0 &&
                         S_ISREG(found.st_mode) && found.st_size > 0;
    STATUS_TRY(output_spares(path == NULL ? "" : path, options, reterr));
    FILE *file = is_file ? fopen(path, "rb") : NULL;
    bool const keeps = is_file && (file == NULL || !is_table(file, columns));
    if (file != NULL) (void)fclose(file);
    if (keeps)
        return error_set(reterr, STATUS_IO, path,
                         "is there and holds something else than a table of this verb%s; name "
                         "another file",
                         knows(options, "--schedule-csv")
                             ? ": --csv writes the rows, --schedule-csv reads a schedule"
                             : "");
    return output_open(output, path, options, reterr);
}

enum status output_write(struct output *output, const struct strbuf *text, struct error *reterr)
{
    if (output->path == NULL) return STATUS_OK;
    if (text->failed)
        return error_set(reterr, STATUS_NO_MEMORY, output->path,
                         "there is not enough memory to prepare it");
    /* What the work has read since the output was opened. */
    if (output->temporary[0] != '\0') STATUS_TRY(spares_read(output->target, output->path, reterr));
    size_t const size = (size_t)text->size_bytes;
    errno = 0;
    bool const written = fwrite(text->bytes, 1, size, output->file) == size;
    int cause = errno;
    if (output->file == stdout) return written ? output_flush(reterr) : fail("-", cause, reterr);
    bool const closed = fclose(output->file) == 0;
    output->file = NULL;
    if (written && closed) return STATUS_OK;
    if (written) cause = errno;
    enum status const status = fail(output->path, cause, reterr);
    output_abandon(output);
    return status;
}

enum status output_finish(struct output *output, struct error *reterr)
{
    if (output->path == NULL || output->temporary[0] == '\0') return STATUS_OK;
    if (rename(output->temporary, output->target) != 0) {
        enum status const status = fail(output->path, errno, reterr);
        output_abandon(output);
        return status;
    }
    pending_change(output->temporary, NULL);
    output->path = NULL;
    return STATUS_OK;
}

void output_abandon(struct output *output)
{
    if (output->path == NULL || output->file == stdout) return;
    if (output->file != NULL) (void)fclose(output->file);
    if (output->temporary[0] != '\0') {
        (void)unlink(output->temporary);
        pending_change(output->temporary, NULL);
    }
    *output = (struct output){0};
}

enum status output_flush(struct error *reterr)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return STATUS_OK;
    return fail("-", errno == 0 ? EIO : errno, reterr);
}

enum status output_print(struct strbuf *text, bool to_error, struct error *reterr)
{
    table_break(text);
    if (text->failed)
        return error_set(reterr, STATUS_NO_MEMORY, "", "there is not enough memory to print");
    if (text->size_bytes == 0) return STATUS_OK;
    size_t const size = (size_t)text->size_bytes;
    errno = 0;
    bool const written = fwrite(text->bytes, 1, size, to_error ? stderr : stdout) == size;
    if (to_error) return STATUS_OK;
    return written ? output_flush(reterr) : fail("-", errno, reterr);
}
