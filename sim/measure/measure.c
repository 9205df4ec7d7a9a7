#include "sim/measure/measure.h"

#include "sim/base/arena.h"
#include "sim/program/builder.h"

/* An op on a stream of its own. */
static void op_add(struct builder *builder, enum program_op_kind kind, const char *name,
                   uint32_t parts, uint32_t index)
{
    uint8_t const stream =
        builder_stream(builder, (struct program_stream){.name = name, .kind = kind});
    (void)builder_op(builder, (struct program_op){.name = name,
                                                  .kind = kind,
                                                  .stream = stream,
                                                  .parts = parts,
                                                  .index = (uint16_t)index});
}

/* Collectives whose messages the replay can tell apart. */
static enum status lanes_check(const struct program *program, const char *where,
                               struct error *reterr)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < program->plan_count; i++) lanes += program->plans[i].lane_count;
    if (lanes <= REPLAY_LANES_MAX) return STATUS_OK;
    return error_set(reterr, STATUS_LIMIT, where,
                     "%u collectives at once have %u lanes of messages together; at most %d "
                     "are modelled",
                     program->plan_count, lanes, REPLAY_LANES_MAX);
}

/* A program of one slot: no compute, and a stream with one op for each collective and copy. */
static enum status program_make(struct builder *builder, const struct measure_party *party,
                                const char *where, struct error *reterr)
{
    struct program *program = builder->program;
    (void)builder_stream(builder, (struct program_stream){.name = "compute"});
    builder_template_begin(builder, "collective");
    for (uint32_t i = 0; i < party->request_count; i++)
        (void)builder_plan_add(builder, &party->requests[i], /* on_links= */ true, where);
    if (builder->status != STATUS_OK) return builder->status;
    SIM_ASSERT(program->plan_count == party->request_count); /* Groups have two ranks or more. */
    STATUS_TRY(lanes_check(program, where, reterr));
    for (uint32_t i = 0; i < party->request_count; i++)
        op_add(builder, PROGRAM_OP_COLLECTIVE, collective_kind_name(program->plans[i].kind),
               program->plans[i].part_count, i);
    for (uint32_t i = 0; i < party->copy_count; i++) {
        const struct program_copy *copy = &party->copies[i];
        op_add(builder, PROGRAM_OP_COPY, copy->to_host ? "store" : "load", 1,
               builder_copy(builder, copy->to_host, copy->size_bytes));
    }
    uint16_t const template_index = builder_template_end(builder);
    struct program_role *role = builder_roles(builder, 1, 1);
    if (role != NULL)
        builder_block(role, (struct program_block){.template_index = template_index,
                                                   .name = "collective",
                                                   .repeat = 1,
                                                   .layer_first = -1});
    return builder->status;
}

enum status measure_party_run(struct arena *arena, const struct machine *machine,
                              const struct measure_party *party, const char *where,
                              const struct measure_options *options, struct measured *ret_measured,
                              struct error *reterr)
{
    uint32_t const count = party->request_count + party->copy_count;
    SIM_ASSERT(count >= 1 && count <= MEASURE_REQUESTS_MAX);
    void *memory = NULL;
    struct builder builder;
    struct measured measured = {.plans = NULL};
    struct builder_room const room = {
        .templates = 1, .ops = count, .plans = party->request_count, .copies = party->copy_count};
    STATUS_TRY(arena_try(arena, 1, sizeof(struct program), &memory, reterr));
    struct program *program = memory;
    builder_begin(&builder, arena, machine, room, program, reterr);
    STATUS_TRY(program_make(&builder, party, where, reterr));
    STATUS_TRY(program_seal(arena, program, reterr));
    STATUS_TRY(fold_build(arena, machine, program, options->full, &measured.fold, reterr));
    struct replay_options const replay = {
        .engine = options->engine,
        .count_waits = options->count_waits,
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
