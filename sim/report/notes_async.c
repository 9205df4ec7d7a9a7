#include "sim/report/notes_async.h"

#include "sim/base/units.h"
#include "sim/report/table.h"

static const double share_noted = 0.1;

void notes_async_build(struct arena *arena, const struct report_input *input,
                       const struct analysis *analysis, struct notes *notes)
{
    int64_t const most_ps = input->machine->chip.launch.async_ps;
    if (analysis->async_s <= share_noted * analysis->step_s) return;
    notes_add(arena, notes,
              "start and end of asynchronous collectives take %s from compute (%.1f%% of the "
              "step): at most %s each, and no more than a collective takes on its links; the time "
              "of v5e is learned from models of 16B and 64B on 256 chips a slice, whose gathers "
              "take 2.0 to 7.8 ms on their links",
              table_seconds(analysis->async_s).text,
              notes_percent(analysis->async_s, analysis->step_s),
              table_seconds(units_seconds(most_ps)).text);
}
