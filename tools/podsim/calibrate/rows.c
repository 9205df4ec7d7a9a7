#include "tools/podsim/calibrate/rows.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/parse_uint.h"
#include "tools/podsim/calibrate/row_read.h"

/* Words that a line begins with, behind those of rows. */
enum {
    WORD_SCRIPT = ROW_WORDS,
    WORD_DEVICE,
    WORD_DRIVER,
    WORD_LIBRARY,
    WORD_CLOCK,
    WORD_SKIPPED,
    WORD_END,
    WORD_COUNT
};
static const char *const words[] = {"matmul",  "attention", "attention_backward",
                                    "between", "launch",    "collective",
                                    "overlap", "script",    "device",
                                    "driver",  "library",   "clock",
                                    "skipped", "end",       NULL};
static const char first_word[] = "podsim_rows";

/* A line of text. Of a later program the library is added, a device has to be the same, and others
 * are passed over. */
static enum status text_keep(struct arena *arena, struct line *line, uint32_t word,
                             const char **text, struct error *reterr)
{
    uint32_t const bit = 1u << word;
    if (line->rest[0] == '\0')
        return line_refuse(line, STATUS_INVALID, reterr, "\"%s\" lacks its text", line->word);
    if ((line->texts_seen & bit) != 0)
        return line_refuse(line, STATUS_INVALID, reterr,
                           "a second line \"%s\"; a file may have the rows of "
                           "several, each with its first line \"%s %d\"",
                           line->word, first_word, ROWS_VERSION);
    line->texts_seen |= bit;
    bool const is_added = word == WORD_LIBRARY && *text != NULL && !name_same(*text, line->rest);
    if (word == WORD_DEVICE && *text != NULL && !name_same(*text, line->rest))
        return line_refuse(line, STATUS_INVALID, reterr,
                           "rows of %.80s, and rows of %.80s before them", line->rest, *text);
    if (*text != NULL && !is_added) return STATUS_OK;
    *text =
        is_added ? arena_format(arena, "%s; %s", *text, line->rest) : arena_text(arena, line->rest);
    if (*text == NULL) return line_refuse(line, STATUS_NO_MEMORY, reterr, "there is no memory");
    return STATUS_OK;
}

static enum status end_read(const struct line *line, struct rows *rows, struct error *reterr)
{
    uint64_t count = 0;
    const char *end = parse_uint(line->rest, UINT32_MAX, &count);
    if (end == line->rest || *end != '\0')
        return line_refuse(line, STATUS_INVALID, reterr,
                           "\"end\" says how many rows there are, such as \"end %u\"",
                           rows->count - line->rows_before);
    if (count != rows->count - line->rows_before)
        return line_refuse(line, STATUS_INVALID, reterr,
                           "%llu rows were written, and %u are before this line",
                           (unsigned long long)count, rows->count - line->rows_before);
    rows->is_whole = true;
    return STATUS_OK;
}

static enum status skipped_keep(struct arena *arena, struct line *line, struct rows *rows,
                                struct error *reterr)
{
    const char *text = arena_text(arena, line->rest);
    if (line->rest[0] == '\0')
        return line_refuse(line, STATUS_INVALID, reterr, "\"%s\" lacks its text", line->word);
    if (text == NULL) return line_refuse(line, STATUS_NO_MEMORY, reterr, "there is no memory");
    if (rows->skipped_count < ROWS_SKIPPED_MAX) rows->skipped[rows->skipped_count] = text;
    rows->skipped_count++;
    return STATUS_OK;
}

/* A line that is neither the first nor blank. */
static enum status line_read(struct arena *arena, struct line *line, struct row *row,
                             struct rows *rows, struct error *reterr)
{
    const char **const texts[] = {&rows->script, &rows->device, &rows->driver, &rows->libraries,
                                  &rows->clock};
    uint32_t const word = name_find(line->word, words);
    if (rows->is_whole)
        return line_refuse(line, STATUS_INVALID, reterr,
                           "a line behind \"end\"; rows of another program begin with \"%s %d\"",
                           first_word, ROWS_VERSION);
    if (name_same(line->word, first_word))
        return line_refuse(line, STATUS_INVALID, reterr,
                           "the rows from line %u have no line \"end\" before these: their program "
                           "was stopped; write \"end %u\" there to keep them",
                           line->first, rows->count - line->rows_before);
    if (word == WORD_COUNT)
        return line_refuse(line, STATUS_INVALID, reterr, "no line begins with \"%.40s\"%s",
                           line->word,
                           name_offer(line->word, words, "; the nearest is ", "", NULL).text);
    if (word == WORD_END) return end_read(line, rows, reterr);
    if (word == WORD_SKIPPED) return skipped_keep(arena, line, rows, reterr);
    if (word >= WORD_SCRIPT) return text_keep(arena, line, word, texts[word - WORD_SCRIPT], reterr);
    if (rows->count == ROWS_MAX)
        return line_refuse(line, STATUS_LIMIT, reterr, "more than %d rows", ROWS_MAX);
    STATUS_TRY(row_read(line, (enum row_word)word, &row[rows->count], reterr));
    rows->count++;
    return STATUS_OK;
}

/* The first line of a program's rows. */
static enum status first_read(struct line *line, struct rows *rows, struct error *reterr)
{
    uint64_t version = 0;
    rows->is_whole = false;
    line->texts_seen = 0;
    line->rows_before = rows->count;
    line->first = line->number;
    if (!name_same(line->word, first_word))
        return line_refuse(line, STATUS_INVALID, reterr,
                           "rows begin with \"%s %d\"; `podsim calibrate --script pytorch` prints "
                           "a program that writes them",
                           first_word, ROWS_VERSION);
    const char *end = parse_uint(line->rest, UINT32_MAX, &version);
    if (end != line->rest && *end == '\0' && version == ROWS_VERSION) return STATUS_OK;
    return line_refuse(line, STATUS_INVALID, reterr,
                       "version \"%.20s\" of the rows; this podsim reads %d", line->rest,
                       ROWS_VERSION);
}

/* Takes a line's text, without blanks at its ends. */
static enum status line_take(struct line *line, const char *text, uint64_t bytes,
                             struct error *reterr)
{
    while (bytes > 0 && (text[bytes - 1] == ' ' || text[bytes - 1] == '\r')) bytes--;
    for (; bytes > 0 && *text == ' '; text++) bytes--;
    if (bytes > LINE_BYTES_MAX)
        return line_refuse(line, STATUS_INVALID, reterr, "more than %d characters in a line",
                           LINE_BYTES_MAX);
    for (uint64_t i = 0; i < bytes; i++)
        if (text[i] < ' ' || text[i] > '~')
            return line_refuse(line, STATUS_INVALID, reterr,
                               "a character that is not printable ASCII");
    memcpy(line->text, text, (size_t)bytes);
    line->text[bytes] = '\0';
    char *end = line->text + strcspn(line->text, " ");
    line->rest = end + strspn(end, " ");
    if (*end != '\0') *end = '\0';
    line->word = line->text;
    return STATUS_OK;
}

static enum status lines_read(struct arena *arena, struct line *line, const char *text,
                              uint64_t text_bytes, struct rows *rows, struct error *reterr)
{
    struct row *row = NULL;
    void *memory = NULL;
    bool has_first = false;
    uint64_t lines = 1;
    for (uint64_t i = 0; i < text_bytes; i++) lines += text[i] == '\n';
    STATUS_TRY(arena_try(arena, lines < ROWS_MAX ? lines : ROWS_MAX, sizeof *row, &memory, reterr));
    rows->row = row = memory;
    for (uint64_t from = 0; from < text_bytes;) {
        const char *end = memchr(text + from, '\n', (size_t)(text_bytes - from));
        uint64_t const bytes = end == NULL ? text_bytes - from : (uint64_t)(end - text) - from;
        line->number++;
        enum status status = line_take(line, text + from, bytes, reterr);
        from += bytes + 1;
        if (status == STATUS_OK && (line->word[0] == '\0' || line->word[0] == '#')) continue;
        bool const is_first = !has_first || (rows->is_whole && name_same(line->word, first_word));
        if (status == STATUS_OK)
            status = is_first ? first_read(line, rows, reterr)
                              : line_read(arena, line, row, rows, reterr);
        /* A program that was stopped leaves half a line. */
        if (status == STATUS_INVALID && end == NULL && rows->count > 0 && !rows->is_whole) {
            rows->cut_line = line->number;
            return STATUS_OK;
        }
        STATUS_TRY(status);
        has_first = true;
    }
    if (has_first) return STATUS_OK;
    if (line->number == 0) line->number = 1; /* The file ends where it begins. */
    return line_refuse(line, STATUS_INVALID, reterr, "the file has no rows");
}

enum status rows_read(struct arena *arena, const char *path, const char *text, uint64_t text_bytes,
                      struct rows *ret_rows, struct error *reterr)
{
    struct line line = {.path = path};
    *ret_rows = (struct rows){.count = 0};
    STATUS_TRY(lines_read(arena, &line, text, text_bytes, ret_rows, reterr));
    if (ret_rows->count > 0) return STATUS_OK;
    return line_refuse(
        &line, STATUS_INVALID, reterr,
        "the file has no rows: no line begins with \"matmul\", \"attention\", "
        "\"attention_backward\", \"between\", \"launch\", \"collective\" or \"overlap\"");
}
