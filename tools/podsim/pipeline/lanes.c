#include "tools/podsim/pipeline/lanes.h"

#include <stdbool.h>

#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "tools/podsim/common/report.h"

enum { LABEL_COLUMNS = 6, CELLS_MIN = 24, CELLS_MAX = 240, LANES_MAX = 64 };

struct lanes {
    const struct schedule *schedule;
    const struct schedule_played *played;
    bool colour;
    uint32_t cells;
};

/* Both passes of a pair begin and end together: its first pass, or the pass alone, that runs at an
 * instant; the list's count: nothing does. */
static uint32_t pass_at(const struct lanes *lanes, uint32_t rank, int64_t at_ticks, uint32_t *index)
{
    const struct schedule_rank *list = &lanes->schedule->rank[rank];
    const struct schedule_lane *lane = &lanes->played->lane[rank];
    while (*index < list->count && lane->end[*index] <= at_ticks) ++*index;
    return *index < list->count && lane->begin[*index] <= at_ticks ? *index : list->count;
}

/* The middle of a cell. */
static int64_t cell_ticks(const struct lanes *lanes, uint32_t cell)
{
    return (int64_t)((units_wide)(uint64_t)lanes->played->makespan * (2 * cell + 1) /
                     (2 * lanes->cells));
}

static char pass_sign(const struct schedule_pass *pass)
{
    char const digit = (char)(pass->microbatch % 10);
    if (pass->kind == SCHEDULE_WEIGHT) return '#';
    return (char)((pass->kind == SCHEDULE_FORWARD ? '0' : 'a') + digit);
}

static void write_lane(const struct lanes *lanes, uint32_t rank, struct strbuf *text)
{
    static const char *const paints[] = {"\033[44m", "\033[42m", "\033[42m", "\033[43m"};
    const struct schedule_rank *list = &lanes->schedule->rank[rank];
    const struct schedule_lane *lane = &lanes->played->lane[rank];
    uint32_t index = 0, last = list->count, turn = 0; /* The cell of its pass. */
    strbuf_add(text, "%5u ", rank);
    for (uint32_t c = 0; c < lanes->cells; c++) {
        uint32_t const at = pass_at(lanes, rank, cell_ticks(lanes, c), &index);
        turn = at == last ? turn + 1 : 0;
        last = at;
        if (at == list->count) {
            strbuf_add(text, ".");
            continue;
        }
        bool const paired = list->pass[at].paired;
        bool const has_one_cell = turn == 0 && lane->end[at] <= cell_ticks(lanes, c + 1);
        const struct schedule_pass *pass = &list->pass[at + (paired ? turn % 2 : 0)];
        if (lanes->colour) strbuf_add(text, "%s\033[30m", paints[pass->kind]);
        strbuf_add(text, "%c", paired && has_one_cell ? '&' : pass_sign(pass));
        if (lanes->colour) strbuf_add(text, "\033[0m");
    }
    strbuf_add(text, "\n");
}

static bool has_pairs(const struct schedule *schedule)
{
    for (uint32_t r = 0; r < schedule->rank_count; r++)
        for (uint32_t i = 0; i < schedule->rank[r].count; i++)
            if (schedule->rank[r].pass[i].paired) return true;
    return false;
}

void lanes_write(const struct schedule *schedule, const struct schedule_played *played,
                 const struct report_terminal *terminal, struct strbuf *text)
{
    uint32_t const columns = terminal->columns < CELLS_MAX + LABEL_COLUMNS
                                 ? terminal->columns
                                 : CELLS_MAX + LABEL_COLUMNS;
    struct lanes const of = {schedule, played, terminal->colour,
                             columns > CELLS_MIN + LABEL_COLUMNS ? columns - LABEL_COLUMNS
                                                                 : CELLS_MIN};
    uint32_t const ranks = schedule->rank_count;
    strbuf_add(text, "\n rank\n");
    for (uint32_t r = 0; r < ranks && r < LANES_MAX; r++) write_lane(&of, r, text);
    if (ranks > LANES_MAX) strbuf_add(text, "  ... %u more ranks\n", ranks - LANES_MAX);
    strbuf_add(text,
               "digits: forward, letters: backward or input gradient, of microbatch 0 to 9 and "
               "again (a is 0);\n#: weight gradient, .: idle%s\n",
               has_pairs(schedule) ? "; digit and letter in turns: a pair, side by side (&: in one "
                                     "cell)"
                                   : "");
}
