#include "tools/podsim/pipeline/formula.h"

#include <stddef.h>

int64_t formula_measured(const struct schedule_formula *formula,
                         const struct schedule_played *played)
{
    return formula->measure == SCHEDULE_PER_RANK ? played->bubble_per_rank
                                                 : played->bubble_makespan;
}

const char *formula_of(const struct schedule_formula *formula)
{
    static const char *const measures[] = {[SCHEDULE_NO_FORMULA] = NULL,
                                           [SCHEDULE_MAKESPAN] = "bubble_makespan",
                                           [SCHEDULE_PER_RANK] = "bubble_per_stage"};
    return measures[formula->measure];
}
