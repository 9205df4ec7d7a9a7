/* The map of `podsim regimes` as JSON. */
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/regimes/regimes.h"

static void put_curve(struct json_writer *json, const struct regimes *regimes,
                      const struct regimes_group *group, uint32_t algorithm)
{
    const struct regimes_curve *curve = &group->curve[algorithm];
    json_write_object(json);
    column_put_row(&regimes_curve_table, &(struct regimes_curves_of){regimes, group}, algorithm,
                   json);
    json_put_array(json, "time_ps");
    for (uint32_t s = 0; s < regimes->size_count; s++) json_write_integer(json, curve->time_ps[s]);
    json_write_array_end(json);
    json_write_object_end(json);
}

static void put_crossovers(struct json_writer *json, const struct regimes *regimes,
                           const struct regimes_group *group)
{
    json_put_array(json, "crossovers");
    for (uint32_t c = 0; c < group->crossover_count; c++) {
        json_write_object(json);
        json_put_unsigned(json, "size_bytes", group->crossover[c].size_bytes);
        json_put_string(json, "from", regimes->algorithm[group->crossover[c].from]);
        json_put_string(json, "to", regimes->algorithm[group->crossover[c].to]);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_group(struct json_writer *json, const struct regimes *regimes, uint32_t index)
{
    const struct regimes_group *group = &regimes->group[index];
    json_write_object(json);
    column_put_row(&regimes_group_table, regimes, index, json);
    if (group->winner[0] != REGIMES_NONE) {
        json_put_array(json, "winners");
        for (uint32_t s = 0; s < regimes->size_count; s++)
            json_write_string(json, regimes->algorithm[group->winner[s]]);
        json_write_array_end(json);
    }
    put_crossovers(json, regimes, group);
    json_put_array(json, "algorithms");
    for (uint32_t a = 0; a < regimes->algorithm_count; a++)
        if (group->curve[a].applies) put_curve(json, regimes, group, a);
    json_write_array_end(json);
    json_write_object_end(json);
}

void regimes_write_json(const struct collective_args *question, const struct regimes *regimes,
                        struct strbuf *text)
{
    struct json_writer json;
    json_write_start(&json, text);
    json_write_object(&json);
    json_put_unsigned(&json, "podsim", 1);
    json_put_string(&json, "machine", question->machine_text);
    json_put_string(&json, "profile", question->machine.chip.profile);
    json_put_string(&json, "op", measure_op_name(question->row.operation));
    json_put_string(&json, "axes", question->row.axes);
    json_put_boolean(&json, "complete", regimes->group_count == regimes->group_count_max);
    json_put_array(&json, "size_bytes");
    for (uint32_t s = 0; s < regimes->size_count; s++)
        json_write_unsigned(&json, regimes->size_bytes[s]);
    json_write_array_end(&json);
    json_put_array(&json, "groups");
    for (uint32_t g = 0; g < regimes->group_count; g++) put_group(&json, regimes, g);
    json_write_array_end(&json);
    json_write_object_end(&json);
    strbuf_add(text, "\n");
}
