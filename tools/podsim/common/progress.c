#include "tools/podsim/common/progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* From here on the rest of a run is reckoned: its begin says little about it. */
static const double least_share = 0.02, least_s = 2;

uint64_t progress_events_add(struct progress_events *events, uint64_t run)
{
    if (run < events->run) {
        events->ended += events->run;
        events->replaced++;
    }
    events->run = run;
    return events->ended + run;
}

double progress_run_s(struct progress_run *run, double share, uint64_t replaced, double elapsed_s)
{
    if (replaced != run->replaced || share < run->share) run->begin_s = run->seen_s;
    run->share = share;
    run->replaced = replaced;
    run->seen_s = elapsed_s;
    return elapsed_s - run->begin_s;
}

void progress_line(char line[PROGRESS_LINE_BYTES], struct progress_words words, double share,
                   uint64_t events, double elapsed_s, double run_s)
{
    /* Further steps than one are as many as the period takes, which nobody knows before. */
    bool const is_further = share > 1 && words.further != NULL;
    double const rate = (double)events / elapsed_s * 1e-6;
    if (is_further) {
        (void)snprintf(line, PROGRESS_LINE_BYTES, "%5.1f %s, %.1f M events/s, %.0f s so far", share,
                       words.further, rate, elapsed_s);
        return;
    }
    if (share > 1) share = 1;
    int const length = snprintf(line, PROGRESS_LINE_BYTES, "%5.1f %% of the %s, %.1f M events/s, ",
                                share * 100, words.whole, rate);
    if (share >= least_share && run_s >= least_s)
        (void)snprintf(line + length, PROGRESS_LINE_BYTES - (size_t)length, "%.0f s left",
                       run_s * (1 - share) / share);
    else
        (void)snprintf(line + length, PROGRESS_LINE_BYTES - (size_t)length, "%.0f s so far",
                       elapsed_s);
}
