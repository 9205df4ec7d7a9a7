#include "sim/measure/measure.h"

#include "sim/base/arena.h"

/* What has to be held for a program of so many ops. */
static enum status program_take(struct arena *arena, const struct measure_party *party,
                                struct program **ret_program, struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct program), &memory, reterr));
    struct program *program = memory;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct program_template), &memory, reterr));
    program->templates = memory;
    STATUS_TRY(arena_try(arena, party->request_count + party->copy_count, sizeof(struct program_op),
                         &memory, reterr));
    program->templates[0] = (struct program_template){.name = "collective", .op = memory};
    STATUS_TRY(arena_try(arena, 1, sizeof(struct program_role), &memory, reterr));
    program->roles = memory;
    STATUS_TRY(arena_try(arena, 1, sizeof(struct program_block), &memory, reterr));
    program->roles[0] = (struct program_role){.block = memory, .block_count = 1};
    STATUS_TRY(arena_try(arena, party->request_count, sizeof *program->plans, &memory, reterr));
    program->plans = memory;
    STATUS_TRY(arena_try(arena, party->copy_count, sizeof *program->copies, &memory, reterr));
    program->copies = memory;
    *ret_program = program;
    return STATUS_OK;
}

/* An op on a stream of its own. */
static void op_add(struct program *program, enum program_op_kind kind, const char *name,
                   uint32_t parts, uint32_t index)
{
    struct program_template *template = &program->templates[0];
    template->op[template->op_count++] = (struct program_op){
        .name = name,
        .class_name = name,
        .kind = kind,
        .stream = (uint8_t)program->stream_count,
        .parts = parts,
        .index = (uint16_t)index,
        .operand_op = PROGRAM_NONE,
    };
    program->stream[program->stream_count++] = (struct program_stream){.name = name, .kind = kind};
}

/* A program of one slot: no compute, and a stream with one op for each collective and copy. */
static enum status program_make(struct arena *arena, const struct plan *plans,
                                const struct measure_party *party, struct program **ret_program,
                                struct error *reterr)
{
    struct program *program = NULL;
    STATUS_TRY(program_take(arena, party, &program, reterr));
    program->plan_count = party->request_count;
    program->copy_count = party->copy_count;
    program->stream[PROGRAM_COMPUTE].name = "compute";
    program->stream_count = 1;
    for (uint32_t i = 0; i < party->request_count; i++) {
        program->plans[i] = plans[i];
        op_add(program, PROGRAM_OP_COLLECTIVE, collective_kind_name(plans[i].kind),
               plans[i].part_count, i);
    }
    for (uint32_t i = 0; i < party->copy_count; i++) {
        program->copies[i] = party->copies[i];
        op_add(program, PROGRAM_OP_COPY, party->copies[i].to_host ? "store" : "load", 1, i);
    }
    program->template_count = 1;
    *program->roles[0].block =
        (struct program_block){.name = "collective", .repeat = 1, .layer_first = -1};
    program->role_count = 1;
    program_seal(arena, program);
    *ret_program = program;
    return STATUS_OK;
}

enum status measure_party_run(struct arena *arena, const struct machine *machine,
                              const struct measure_party *party, const char *where,
                              const struct measure_options *options, struct measured *ret_measured,
                              struct error *reterr)
{
    uint32_t const count = party->request_count + party->copy_count;
    SIM_ASSERT(count >= 1 && count <= MEASURE_REQUESTS_MAX);
    void *memory = NULL;
    struct program *program = NULL;
    struct measured measured = {.plans = NULL};
    STATUS_TRY(arena_try(arena, party->request_count, sizeof(struct plan), &memory, reterr));
    struct plan *plans = memory;
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < party->request_count; i++) {
        struct plan_request request = party->requests[i];
        plan_request_links(machine, &request);
        STATUS_TRY(plan_build(arena, &request, where, &plans[i], reterr));
        lanes += plans[i].lane_count;
    }
    if (lanes > REPLAY_LANES_MAX)
        return error_set(reterr, STATUS_LIMIT, where,
                         "%u collectives at once have %u lanes of messages together; at most %d "
                         "are modelled",
                         party->request_count, lanes, REPLAY_LANES_MAX);
    STATUS_TRY(program_make(arena, plans, party, &program, reterr));
    STATUS_TRY(fold_build(arena, machine, program, options->full, &measured.fold, reterr));
    struct replay_options const replay = {
        .engine = options->engine,
        .count_waits = true,
        .shown_chips = options->shown_chips,
        .shown_count = options->shown_count,
        .record = options->shown_count > 0,
        .watch = options->watch,
        .watch_owner = options->watch_owner,
    };
    STATUS_TRY(
        replay_run(arena, &replay, machine, program, &measured.fold, &measured.trace, reterr));
    measured.plans = program->plans;
    measured.program = program;
    const struct program_op *ops = program->templates[0].op;
    for (uint32_t i = 0; i < count; i++)
        measured.time_ps[i] = measured.trace.classes[ops[i].class_index].end_ps;
    *ret_measured = measured;
    return STATUS_OK;
}

enum status measure_run(struct arena *arena, const struct machine *machine,
                        const struct plan_request *requests, uint32_t count, const char *where,
                        const struct measure_options *options, struct measured *ret_measured,
                        struct error *reterr)
{
    struct measure_party const party = {.requests = requests, .request_count = count};
    return measure_party_run(arena, machine, &party, where, options, ret_measured, reterr);
}
