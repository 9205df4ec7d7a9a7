#include "tests/support/told_lines.h"

#include <stdlib.h>
#include <string.h>

const char *const section_names[] = {"forward", "backward", "update", "predictors"};

const char *last_word(const char *text)
{
    const char *space = strrchr(text, ' ');
    return space == NULL ? text : space + 1;
}

bool is_weight(const char *array)
{
    return strncmp(array, "W_", 2) == 0 || strncmp(array, "dW_", 3) == 0;
}

void move_add(struct moves *moves, struct move move)
{
    assert_true(moves->count < MOVES_MAX);
    moves->row[moves->count++] = move;
}

static const char *line_group(const char *line)
{
    return strstr(line, "_Y(") != NULL                          ? "tp"
           : strstr(line, "_W(") != NULL                        ? "tp_d"
           : strstr(line, " ranks of ep") != NULL               ? "ep"
           : strstr(line, " ranks with the same heads") != NULL ? "kv"
                                                                : "sequence";
}

/* "[16384, 2048]         67.1 MB", which has three digits. */
static double line_bytes(const char *line)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}};
    for (const char *at = strstr(line, "] "); at != NULL; at = strstr(at + 1, "] ")) {
        char *end = NULL;
        double const count = strtod(at + 1, &end);
        if (end == at + 1 || *end != ' ') continue;
        for (uint32_t i = 0; i < sizeof units / sizeof *units; i++)
            if (strncmp(end + 1, units[i].name, strlen(units[i].name)) == 0)
                return count * units[i].bytes;
    }
    return 0;
}

/* Adds the collective that a line names, if it does; "and is" shared says that there is none, and
 * arrays of one collective have a line each. */
static void line_add(const char *line, struct moves *moves)
{
    struct move move = {.group = line_group(line), .line = line, .line_bytes = line_bytes(line)};
    const char *equals = strstr(line, " = "), *opens = strchr(line, '(');
    if (equals == NULL || opens == NULL || strstr(line, "and is)") != NULL ||
        strstr(line, "(in the same collective)") != NULL)
        return;
    if (is_weight(opens + 1)) move.group = NULL;
    for (uint32_t kind = 0; kind < COLLECTIVE_KIND_COUNT; kind++) {
        const char *name = collective_kind_name((enum collective_kind)kind);
        size_t const length = strlen(name);
        move.kind = (enum collective_kind)kind;
        if (strncmp(equals + 3, name, length) == 0 && strchr("_(", equals[3 + length]) != NULL)
            move_add(moves, move);
    }
}

/* Adds those of lines from one title to another, all or some by number; each line becomes a text of
 * its own. */
static void lines_add(char *begin, const char *end, const bool *numbers, struct moves *moves)
{
    for (char *line = begin, *next = line; line < end; line = next) {
        next = line + strcspn(line, "\n") + 1;
        next[-1] = '\0';
        uint64_t const number = strtoull(line, NULL, 10);
        if (number != 0 && (numbers == NULL || numbers[number % LINES_MAX])) line_add(line, moves);
    }
}

/* The forward pass' lines that a backward pass begins with: "first steps 1 to 21, 23 of". */
static void repeated_find(const char *backward, bool ret_numbers[LINES_MAX])
{
    const char *at = strstr(backward, ": first steps ");
    uint64_t last = 0;
    memset(ret_numbers, 0, LINES_MAX * sizeof *ret_numbers);
    for (at = at == NULL ? "" : at + strlen(": first steps"); *at == ' ' || *at == ',';) {
        char *end = NULL;
        bool const range = strncmp(at, " to ", 4) == 0;
        uint64_t const number = strtoull(at + (range ? 4 : 1), &end, 10);
        if (number == 0) break;
        for (uint64_t i = range ? last + 1 : number; i <= number; i++)
            ret_numbers[i % LINES_MAX] = true;
        last = number;
        at = end;
    }
}

static void activations_add(const struct moves *from, struct moves *to)
{
    for (uint32_t i = 0; i < from->count; i++)
        if (from->row[i].group != NULL) move_add(to, from->row[i]);
}

void listing_moves(char *text, struct moves ret_moves[SECTION_COUNT])
{
    static const char *const titles[] = {"\nForward pass", "\nBackward pass",
                                         "\nUpdate: ", "\nMulti-token", "\nStreams:"};
    char *begin[SECTION_COUNT + 1];
    bool repeated[LINES_MAX];
    struct moves again = {.count = 0};
    for (uint32_t s = SECTION_COUNT + 1; s-- > 0;) {
        begin[s] = strstr(text, titles[s]);
        if (begin[s] == NULL) begin[s] = begin[s + 1];
    }
    repeated_find(begin[BACKWARD], repeated);
    for (uint32_t s = 0; s < SECTION_COUNT; s++) {
        ret_moves[s].count = 0;
        lines_add(begin[s] + 1, begin[s + 1], NULL, &ret_moves[s]);
    }
    lines_add(begin[FORWARD] + 1, begin[BACKWARD], repeated, &again);
    activations_add(&again, &ret_moves[BACKWARD]);
    if (begin[MTP] == begin[MTP + 1]) return;
    activations_add(&ret_moves[FORWARD], &ret_moves[MTP]);
    activations_add(&ret_moves[BACKWARD], &ret_moves[MTP]);
}
