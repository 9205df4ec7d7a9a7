#include "sim/report/table_fit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH_MAX = 1024, GAP = 2 };

/* The first byte of a sentence between the rows, until the table is closed. */
static const char sentence_mark = '\x1f';

/* The lines of a table, and which of its columns are blank in all of them. Sentences between the
 * rows have no columns. */
struct grid {
    const char *bytes;
    uint64_t size_bytes;
    uint32_t width;          /* Of the longest line. */
    uint32_t label;          /* Columns that each part repeats. */
    bool used[WIDTH_MAX];    /* [column]: some line has a character there. */
    bool dropped[WIDTH_MAX]; /* [column]: blank, and given up to make the table narrower. */
    bool has_sentences;
};

void table_sentence(struct strbuf *text)
{
    if (text->columns > 0) strbuf_add_bytes(text, &sentence_mark, 1);
}

static bool is_sentence(const char *bytes, uint64_t at, uint64_t end)
{
    return at < end && bytes[at] == sentence_mark;
}

static uint64_t line_end(const char *bytes, uint64_t size_bytes, uint64_t from)
{
    while (from < size_bytes && bytes[from] != '\n') from++;
    return from;
}

/* The bytes of the colour or character that begins here; colours take no column. */
static uint64_t sign_bytes(const char *bytes, uint64_t at, uint64_t end, bool *ret_is_colour)
{
    uint64_t length = 1;
    *ret_is_colour = bytes[at] == 0x1b;
    if (*ret_is_colour)
        while (at + length < end && bytes[at + length - 1] != 'm') length++;
    else
        while (at + length < end && ((unsigned char)bytes[at + length] & 0xc0) == 0x80) length++;
    return length;
}

static uint32_t line_width(const char *bytes, uint64_t at, uint64_t end)
{
    uint32_t width = 0;
    bool is_colour = false;
    for (uint64_t length = 0; at < end; at += length) {
        length = sign_bytes(bytes, at, end, &is_colour);
        width += !is_colour;
    }
    return width;
}

static void grid_read(struct grid *grid)
{
    uint64_t end = 0;
    for (uint64_t at = 0; at < grid->size_bytes; at = end + 1) {
        uint32_t column = 0;
        bool is_colour = false;
        end = line_end(grid->bytes, grid->size_bytes, at);
        if (is_sentence(grid->bytes, at, end)) {
            grid->has_sentences = true;
            continue;
        }
        for (uint64_t i = at, length = 0; i < end; i += length) {
            length = sign_bytes(grid->bytes, i, end, &is_colour);
            if (!is_colour && grid->bytes[i] != ' ' && column < WIDTH_MAX)
                grid->used[column] = true;
            column += !is_colour;
        }
        if (column > grid->width) grid->width = column;
    }
    if (grid->width > WIDTH_MAX) grid->width = WIDTH_MAX;
}

/* Gives up blank columns beyond `least` between two others, the widest gap first, until `columns`
 * are enough. Returns the width that is left. */
static uint32_t grid_squeeze_to(struct grid *grid, uint32_t least, uint32_t columns)
{
    uint32_t left = grid->width;
    memset(grid->dropped, 0, sizeof grid->dropped);
    for (uint32_t keep = 16; keep >= least && left > columns; keep--) {
        uint32_t gap = 0;
        bool any = false; /* What the lines are indented by stays. */
        for (uint32_t column = 0; column < grid->width && left > columns; column++) {
            if (grid->dropped[column]) continue;
            gap = grid->used[column] ? 0 : gap + 1;
            any = any || grid->used[column];
            if (gap > keep && any) {
                grid->dropped[column] = true;
                left--;
            }
        }
    }
    return left;
}

/* Gaps of GAP columns, or of one if the whole table fits then. Returns the width that is left. */
static uint32_t grid_squeeze(struct grid *grid, uint32_t columns)
{
    uint32_t const left = grid_squeeze_to(grid, GAP, columns);
    if (left <= columns) return left;
    uint32_t const tight = grid_squeeze_to(grid, 1, columns);
    return tight <= columns ? tight : grid_squeeze_to(grid, GAP, columns);
}

/* Columns from one up to another of a line, but those given up. What resets a colour belongs to the
 * column before it, what sets one to the column behind it. */
static void slice_add(const struct grid *grid, uint64_t at, uint64_t end, uint32_t from,
                      uint32_t to, struct strbuf *out)
{
    uint32_t column = 0;
    bool is_colour = false;
    for (uint64_t length = 0; at < end; at += length) {
        length = sign_bytes(grid->bytes, at, end, &is_colour);
        bool const resets = is_colour && length == 4 && memcmp(grid->bytes + at, "\x1b[0m", 4) == 0;
        bool const is_in = resets ? column > from && column <= to : column >= from && column < to;
        bool const is_dropped = !is_colour && column < WIDTH_MAX && grid->dropped[column];
        if (is_in && !is_dropped) strbuf_add_bytes(out, grid->bytes + at, length);
        column += !is_colour;
    }
}

/* Whether the column of the table from `from` up to `to` is words: in some lines it goes beyond
 * `at`, a blank of all lines, in others it has ended before, and all begin at one place. Columns of
 * figures with a blank between them end at one place. */
static bool is_words(const struct grid *grid, uint32_t from, uint32_t at, uint32_t to)
{
    uint64_t end = 0;
    uint32_t begun = UINT32_MAX;
    bool any_ended = false, any_goes_on = false;
    for (uint64_t line = 0; line < grid->size_bytes; line = end + 1) {
        uint32_t column = 0, first = UINT32_MAX, last = 0;
        bool is_colour = false;
        end = line_end(grid->bytes, grid->size_bytes, line);
        if (is_sentence(grid->bytes, line, end)) continue;
        for (uint64_t i = line, length = 0; i < end; i += length) {
            length = sign_bytes(grid->bytes, i, end, &is_colour);
            if (!is_colour && grid->bytes[i] != ' ' && column >= from && column < to) {
                if (first == UINT32_MAX) first = column;
                last = column;
            }
            column += !is_colour;
        }
        if (first == UINT32_MAX) continue;
        if (begun != UINT32_MAX && first != begun) return false;
        begun = first;
        any_ended = any_ended || last < at;
        any_goes_on = any_goes_on || last > at;
    }
    return any_ended && any_goes_on;
}

/* Where the column that begins at `from` or behind it ends: at a gap, or with the table. */
static uint32_t column_end(const struct grid *grid, uint32_t from)
{
    bool any = false;
    for (uint32_t column = from; column + 1 < grid->width; column++) {
        any = any || grid->used[column];
        if (any && !grid->used[column] && !grid->used[column + 1]) return column;
    }
    return grid->width;
}

/* Where the part that begins at a column ends: the last gap of GAP columns or more that the
 * terminal has room for. A single blank may be within a figure, and is taken only if the terminal
 * has room for no gap; within words it is not taken, and table_break() wraps their lines. */
static uint32_t part_end(const struct grid *grid, uint32_t from, uint32_t columns)
{
    uint32_t wide = 0, narrow = 0, taken = 0;
    bool any = false;
    for (uint32_t column = 0; column < grid->label; column++) taken += !grid->dropped[column];
    for (uint32_t column = from; column < grid->width; column++) {
        if (any && !grid->used[column] && grid->used[column - 1]) {
            narrow = column;
            if (column + 1 < grid->width && !grid->used[column + 1]) wide = column;
        }
        any = any || grid->used[column];
        taken += !grid->dropped[column];
        if (taken <= columns) continue;
        if (wide > 0) return wide;
        uint32_t const to = column_end(grid, from);
        return narrow > 0 && !is_words(grid, from, narrow, to) ? narrow : to;
    }
    return grid->width;
}

/* Up to where a part repeats a line: to the end of the label, or of a word that goes on behind it,
 * as in a heading between rows, which stands in the first part alone. */
static uint32_t label_end(const struct grid *grid, uint64_t at, uint64_t end, uint32_t from)
{
    uint32_t column = 0;
    bool is_colour = false, was_blank = true;
    if (from == grid->label) return grid->label;
    for (uint64_t length = 0; at < end; at += length) {
        length = sign_bytes(grid->bytes, at, end, &is_colour);
        if (is_colour) continue;
        bool const is_blank = grid->bytes[at] == ' ';
        if (column >= grid->label && (is_blank || was_blank)) break;
        was_blank = is_blank;
        column++;
    }
    return column > grid->label ? column : grid->label;
}

/* Whether a line of a further part, written from `begin` on, says nothing: the heading of columns
 * that stand in another part. A line that is blank in the whole table parts its rows. */
static bool is_idle(const struct strbuf *out, uint64_t begin, uint64_t line_bytes)
{
    uint64_t const size_bytes = out->size_bytes - begin;
    return line_bytes > size_bytes &&
           (size_bytes == 0 || (size_bytes == 1 && out->bytes[begin] == '#'));
}

/* A line of the part of the table from a column up to another. */
static void part_line(const struct grid *grid, uint64_t at, uint64_t end, uint32_t from,
                      uint32_t to, struct strbuf *out)
{
    uint64_t const begin = out->size_bytes;
    slice_add(grid, at, end, 0, label_end(grid, at, end, from), out);
    slice_add(grid, at, end, from, to == grid->width ? UINT32_MAX : to, out);
    while (out->size_bytes > begin && out->bytes[out->size_bytes - 1] == ' ')
        out->bytes[--out->size_bytes] = '\0';
    if (from > grid->label && is_idle(out, begin, end - at))
        out->size_bytes = begin;
    else
        strbuf_add(out, "\n");
}

static void parts_write(const struct grid *grid, uint32_t columns, struct strbuf *out)
{
    for (uint32_t from = grid->label, to = 0; from < grid->width; from = to) {
        uint64_t end = 0;
        to = part_end(grid, from, columns);
        if (from > grid->label) strbuf_add(out, "\n");
        for (uint64_t at = 0; at < grid->size_bytes; at = end + 1) {
            end = line_end(grid->bytes, grid->size_bytes, at);
            if (!is_sentence(grid->bytes, at, end)) {
                part_line(grid, at, end, from, to, out);
            } else if (from == grid->label) {
                strbuf_add_bytes(out, grid->bytes + at + 1, end - at - 1);
                strbuf_add(out, "\n");
            }
        }
    }
}

void table_close(struct strbuf *text, uint64_t begin, uint32_t label_columns)
{
    if (text->columns == 0 || text->failed || begin >= text->size_bytes) return;
    struct grid grid = {.bytes = text->bytes + begin,
                        .size_bytes = text->size_bytes - begin,
                        .label = label_columns};
    struct strbuf out = {0};
    grid_read(&grid);
    if (grid.label >= grid.width) grid.label = 0;
    if (grid.width <= text->columns && !grid.has_sentences) return;
    uint32_t const left = grid_squeeze(&grid, text->columns);
    parts_write(&grid, left <= text->columns ? UINT32_MAX : text->columns, &out);
    text->failed = out.failed;
    if (!out.failed) {
        text->size_bytes = begin;
        strbuf_add_bytes(text, out.bytes, out.size_bytes);
    }
    strbuf_free(&out);
}

/* Where further lines of one begin: below the last column of its left half, or else two columns
 * further than the line. */
static uint32_t hanging(const char *bytes, uint64_t at, uint64_t end, uint32_t columns)
{
    uint32_t column = 0, blanks = 0, indent = 0, found = 0;
    bool is_colour = false, any = false;
    for (uint64_t length = 0; at < end && column <= columns / 2; at += length) {
        length = sign_bytes(bytes, at, end, &is_colour);
        if (is_colour) continue;
        bool const is_blank = bytes[at] == ' ';
        if (!is_blank && !any) indent = column;
        if (!is_blank && any && blanks >= 2) found = column;
        any = any || !is_blank;
        blanks = is_blank ? blanks + 1 : 0;
        column++;
    }
    return found > 0 ? found : indent + 2;
}

/* The longest word of a line, which cannot be broken. */
static uint32_t longest_word(const char *bytes, uint64_t at, uint64_t end)
{
    uint32_t longest = 0, word = 0;
    bool is_colour = false;
    for (uint64_t length = 0; at < end; at += length) {
        length = sign_bytes(bytes, at, end, &is_colour);
        word = bytes[at] == ' ' ? 0 : word + !is_colour;
        if (word > longest) longest = word;
    }
    return longest;
}

/* The blank where a line that begins at `at` breaks: the last one that has room, or the first. One
 * between brackets, as of a shape, is taken only where there is no other. 0: none. */
static uint64_t break_find(const char *bytes, uint64_t at, uint64_t end, uint32_t columns,
                           uint32_t column)
{
    uint64_t blank[2] = {0, 0}; /* Outside brackets, and anywhere. */
    bool is_colour = false, any = false;
    uint32_t depth = 0;
    for (uint64_t i = at, length = 0; i < end; i += length) {
        length = sign_bytes(bytes, i, end, &is_colour);
        if (!is_colour && bytes[i] == '[' && memchr(bytes + i, ']', end - i) != NULL) depth++;
        if (!is_colour && bytes[i] == ']' && depth > 0) depth--;
        for (uint32_t inside = 0; any && bytes[i] == ' ' && inside < 2; inside++)
            if ((inside == 1 || depth == 0) && (blank[inside] == 0 || column <= columns))
                blank[inside] = i;
        if (column > columns && blank[1] != 0) break;
        any = any || (!is_colour && bytes[i] != ' ' && bytes[i] != '#');
        column += !is_colour;
    }
    return blank[0] != 0 ? blank[0] : blank[1];
}

static void line_break(const char *bytes, uint64_t at, uint64_t end, uint32_t columns,
                       struct strbuf *out)
{
    uint32_t const below = hanging(bytes, at, end, columns);
    uint32_t const hang = below + longest_word(bytes, at, end) <= columns ? below : 2;
    char const first = bytes[at] == '#' ? '#' : ' ';
    while (line_width(bytes, at, end) + strbuf_column(out) > columns) {
        uint64_t blank = break_find(bytes, at, end, columns, strbuf_column(out));
        if (blank == 0) break;
        uint64_t next = blank;
        while (blank > at && bytes[blank - 1] == ' ') blank--;
        strbuf_add_bytes(out, bytes + at, blank - at);
        while (next < end && bytes[next] == ' ') next++;
        at = next;
        if (at < end) strbuf_add(out, "\n%c%*s", first, (int)hang - 1, "");
    }
    strbuf_add_bytes(out, bytes + at, end - at);
}

void table_break(struct strbuf *text)
{
    struct strbuf out = {.columns = text->columns};
    uint64_t end = 0;
    if (text->columns == 0 || text->failed) return;
    for (uint64_t at = 0; at < text->size_bytes; at = end + 1) {
        end = line_end(text->bytes, text->size_bytes, at);
        line_break(text->bytes, at, end, text->columns, &out);
        if (end < text->size_bytes) strbuf_add(&out, "\n");
    }
    text->failed = out.failed;
    if (out.failed) {
        strbuf_free(&out);
        return;
    }
    free(text->bytes);
    *text = out;
}
