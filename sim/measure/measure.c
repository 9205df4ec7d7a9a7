#include "sim/measure/measure.h"

#include <string.h>

#include "sim/base/arena.h"

/* A program of one slot: no compute, and a stream with one op for each collective. */
static enum status program_make(struct arena *arena, const struct plan *plans, uint32_t count,
                                struct program **ret_program, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct program), &memory, reterr));
    struct program *program = memory;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct program_template), &memory, reterr));
    program->templates = memory;
    STATUS_TRY(arena_try(arena, count, sizeof(struct program_op), &memory, reterr));
    struct program_op *ops = memory;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct program_role), &memory, reterr));
    program->roles = memory;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct program_block), &memory, reterr));
    struct program_block *block = memory;
    STATUS_TRY(arena_try(arena, count, sizeof *plans, &memory, reterr));
    program->plans = memory;
    memcpy(program->plans, plans, count * sizeof *plans);
    program->plan_count = count;
    program->stream[PROGRAM_COMPUTE].name = "compute";
    program->stream_count = 1;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = collective_kind_name(plans[i].kind);
        ops[i] = (struct program_op){
            .name = name,
            .class_name = name,
            .kind = PROGRAM_OP_COLLECTIVE,
            .stream = (uint8_t)program->stream_count,
            .parts = plans[i].part_count,
            .index = (uint16_t)i,
            .operand_op = PROGRAM_NONE,
        };
        program->stream[program->stream_count++] =
            (struct program_stream){.name = name, .collective = true};
    }
    program->template_count = 1;
    program->templates[0] =
        (struct program_template){.name = "collective", .op = ops, .op_count = count};
    *block = (struct program_block){.name = "collective", .repeat = 1, .layer_first = -1};
    program->role_count = 1;
    program->roles[0] = (struct program_role){.block = block, .block_count = 1};
    program_seal(arena, program);
    *ret_program = program;
    return STATUS_OK;
}

enum status measure_run(struct arena *arena, const struct machine *machine,
                        const struct plan_request *requests, uint32_t count, const char *where,
                        const struct measure_options *options, struct measured *ret_measured,
                        struct error *reterr)
{
    SIM_ASSERT(count >= 1 && count <= MEASURE_REQUESTS_MAX);
    void *memory = NULL;
    struct program *program = NULL;
    struct measured measured = {.plans = NULL};
    STATUS_TRY(arena_try(arena, count, sizeof(struct plan), &memory, reterr));
    struct plan *plans = memory;
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct plan_request request = requests[i];
        plan_request_links(machine, &request);
        STATUS_TRY(plan_build(arena, &request, where, &plans[i], reterr));
        lanes += plans[i].lane_count;
    }
    if (lanes > REPLAY_LANES_MAX)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%u collectives at once have %u lanes of messages together; at most %d "
                         "are modelled",
                         count, lanes, REPLAY_LANES_MAX);
    STATUS_TRY(program_make(arena, plans, count, &program, reterr));
    STATUS_TRY(fold_build(arena, machine, program, options->full, &measured.fold, reterr));
    struct replay_options const replay = {
        .engine = options->engine,
        .count_waits = true,
        .watch = options->watch,
        .watch_owner = options->watch_owner,
    };
    STATUS_TRY(
        replay_run(arena, &replay, machine, program, &measured.fold, &measured.trace, reterr));
    measured.plans = program->plans;
    const struct program_op *ops = program->templates[0].op;
    for (uint32_t i = 0; i < count; i++)
        measured.time_ps[i] = measured.trace.classes[ops[i].class_index].end_ps;
    *ret_measured = measured;
    return STATUS_OK;
}
