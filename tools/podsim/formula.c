#include "tools/podsim/formula.h"

#include <stddef.h>

#include "sim/base/json.h"

int64_t formula_measured(const struct schedule_formula *formula,
                         const struct schedule_played *played)
{
    return formula->measure == SCHEDULE_PER_RANK ? played->bubble_per_rank
                                                 : played->bubble_makespan;
}

void formula_put(struct json_writer *json, const struct schedule_formula *formula, double bubble)
{
    if (formula->text != NULL) json_put_string(json, "formula_text", formula->text);
    if (formula->measure == SCHEDULE_NO_FORMULA) {
        json_put_null(json, "formula");
        return;
    }
    json_put_real(json, "formula", bubble);
    if (formula->holds != NULL) json_put_string(json, "formula_holds", formula->holds);
    json_put_string(json, "formula_of",
                    formula->measure == SCHEDULE_PER_RANK ? "bubble_per_stage" : "bubble_makespan");
}
