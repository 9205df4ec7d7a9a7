#include "tools/podsim/lanes.h"

#include <stddef.h>

#include "sim/base/text.h"
#include "sim/base/units.h"
#include "tools/podsim/report.h"

enum { LABEL_COLUMNS = 6, CELLS_MIN = 24, CELLS_MAX = 240, LANES_MAX = 64 };

struct lanes {
    const struct schedule *schedule;
    const struct schedule_played *played;
    bool colour;
    uint32_t cells;
};

/* What a rank does at an instant; NULL: nothing. */
static const struct schedule_pass *pass_at(const struct lanes *lanes, uint32_t rank,
                                           int64_t at_ticks, uint32_t *index)
{
    const struct schedule_rank *list = &lanes->schedule->rank[rank];
    const struct schedule_lane *lane = &lanes->played->lane[rank];
    while (*index < list->count && lane->end[*index] <= at_ticks) ++*index;
    return *index < list->count && lane->begin[*index] <= at_ticks ? &list->pass[*index] : NULL;
}

static void write_lane(const struct lanes *lanes, uint32_t rank, struct text *text)
{
    static const char *const paints[] = {"\033[44m", "\033[42m", "\033[42m", "\033[43m"};
    uint32_t index = 0;
    text_add(text, "%5u ", rank);
    for (uint32_t c = 0; c < lanes->cells; c++) {
        int64_t const at = (int64_t)((units_wide)(uint64_t)lanes->played->makespan * (2 * c + 1) /
                                     (2 * lanes->cells));
        const struct schedule_pass *pass = pass_at(lanes, rank, at, &index);
        if (pass == NULL) {
            text_add(text, ".");
            continue;
        }
        char const digit = (char)(pass->microbatch % 10);
        char cell = (char)('0' + digit);
        if (pass->kind == SCHEDULE_BACKWARD || pass->kind == SCHEDULE_INPUT)
            cell = (char)('a' + digit);
        if (pass->kind == SCHEDULE_WEIGHT) cell = '#';
        if (lanes->colour) text_add(text, "%s\033[30m", paints[pass->kind]);
        text_add(text, "%c", cell);
        if (lanes->colour) text_add(text, "\033[0m");
    }
    text_add(text, "\n");
}

void lanes_write(const struct schedule *schedule, const struct schedule_played *played,
                 const struct report_terminal *terminal, struct text *text)
{
    uint32_t const columns = terminal->columns < CELLS_MAX + LABEL_COLUMNS
                                 ? terminal->columns
                                 : CELLS_MAX + LABEL_COLUMNS;
    struct lanes const of = {schedule, played, terminal->colour,
                             columns > CELLS_MIN + LABEL_COLUMNS ? columns - LABEL_COLUMNS
                                                                 : CELLS_MIN};
    uint32_t const ranks = schedule->rank_count;
    text_add(text, "\n rank\n");
    for (uint32_t r = 0; r < ranks && r < LANES_MAX; r++) write_lane(&of, r, text);
    if (ranks > LANES_MAX) text_add(text, "  ... %u more ranks\n", ranks - LANES_MAX);
    text_add(text, "digits: forward, letters: backward or input gradient, of microbatch 0 to 9 and "
                   "again (a is 0);\n#: weight gradient, .: idle\n");
}
