/* Evaluators of copies between chips and their hosts, played. */
#include <stddef.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/measure/measure.h"
#include "tests/validation/case_parts.h"

/* Seconds until every chip has loaded `bytes` from its host, or stored them there ("store"). */
static struct case_value copy(const struct case_row *row)
{
    struct arena *arena = arena_create(0);
    if (arena == NULL) row_fail(row, "no memory");
    struct case_row const inner = {.outer = row, .name = row->name, .arena = arena};
    struct machine const machine = row_machine(&inner);
    struct program_copy const copied = {.to_host = row_flag_or(row, "store", false),
                                        .size_bytes = row_count(row, "bytes")};
    struct measure_party const party = {.copies = &copied, .copy_count = 1};
    struct measure_options const options = {.engine = "fast"};
    struct measured measured;
    struct error error = {0};
    row_simulates();
    row_check(row, measure_party_run(arena, &machine, &party, "/copy", &options, &measured, &error),
              &error);
    double const seconds = units_seconds(measured.time_ps[0]);
    arena_destroy(arena);
    return value_number(seconds);
}

const struct case_evaluator case_host[] = {{"copy", copy}, {NULL, NULL}};
