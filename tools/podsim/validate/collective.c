/* collective.c: a published collective by itself, as `podsim collective` plays it. */
#include "sim/base/arena.h"
#include "sim/base/units.h"
#include "sim/measure/measure_row.h"
#include "tools/podsim/validate/validate.h"

static enum status args_ask(const struct published_row *row, const struct machine *machine,
                            struct measure_row_args *ret_args, struct error *reterr)
{
    *ret_args = (struct measure_row_args){.machine = machine,
                                          .protocols = choose_by_protocols(machine),
                                          .registered = row->collective.registered};
    STATUS_TRY(measure_op_find(row->collective.operation, row->id, &ret_args->operation, reterr));
    return measure_group(machine, NULL, row->id, &ret_args->group, reterr);
}

static enum status play(struct arena *arena, const struct published_row *row,
                        struct validate_result *result, struct error *reterr)
{
    struct machine_plan const plan = {.chip = row->machine.chip,
                                      .gpus = row->machine.gpus,
                                      .profile = "measured",
                                      .wrap = {-1, -1, -1}};
    struct measure_options const options = {.engine = "fast"};
    const struct measure_row_choice *choice = NULL;
    struct algorithm const algorithm = algorithm_read(row->collective.algorithm);
    struct measure_row_args args;
    struct machine machine;
    struct measured measured;
    struct measure_row figures;
    STATUS_TRY(machine_build(arena, &plan, &machine, reterr));
    STATUS_TRY(args_ask(row, &machine, &args, reterr));
    STATUS_TRY(measure_row_choose(arena, &args, row->collective.size_bytes, &algorithm, row->id,
                                  &choice, reterr));
    STATUS_TRY(
        measure_run(arena, &machine, &choice->request, 1, row->id, &options, &measured, reterr));
    measure_row_fill(&args, row->collective.size_bytes, choice, measured.plans, measured.time_ps[0],
                     measured.time_ps[0], &figures);
    result->predicted_s = units_seconds(measured.time_ps[0]);
    result->useful_s = figures.roofline_s;
    result->state = VALIDATE_PLAYED;
    return STATUS_OK;
}

enum status validate_collective(const struct published_row *row, struct validate_result *result,
                                struct error *reterr)
{
    struct arena *arena = arena_create(0);
    if (arena == NULL) return error_no_memory(reterr, "");
    enum status const status = play(arena, row, result, reterr);
    arena_destroy(arena);
    return status;
}
