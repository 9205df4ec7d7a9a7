#include "tools/podsim/formula.h"

#include <stddef.h>

#include "sim/base/json.h"

int64_t formula_measured(const struct schedule_formula *formula,
                         const struct schedule_played *played)
{
    return formula->measure == SCHEDULE_PER_RANK ? played->bubble_per_rank
                                                 : played->bubble_makespan;
}

static void put_text(struct json_writer *json, const char *key, const char *text)
{
    if (text == NULL)
        json_put_null(json, key);
    else
        json_put_string(json, key, text);
}

void formula_put(struct json_writer *json, const struct schedule_formula *formula, double bubble)
{
    static const char *const measures[] = {[SCHEDULE_NO_FORMULA] = NULL,
                                           [SCHEDULE_MAKESPAN] = "bubble_makespan",
                                           [SCHEDULE_PER_RANK] = "bubble_per_stage"};
    put_text(json, "formula_text", formula->text);
    put_text(json, "formula_holds", formula->holds);
    put_text(json, "formula_of", measures[formula->measure]);
    if (formula->measure == SCHEDULE_NO_FORMULA)
        json_put_null(json, "formula");
    else
        json_put_real(json, "formula", bubble);
}
