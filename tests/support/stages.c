#include "tests/support/stages.h"

#include <string.h>

#include "sim/base/units.h"
#include "sim/fold/fold.h"
#include "sim/replay/replay.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"

static uint32_t template_add(struct stages *stages, const char *name, struct program_op op)
{
    struct program_op *own = arena_take(stages->arena, 1, sizeof *own);
    assert_non_null(own);
    *own = op;
    own->name = own->class_name = name;
    own->operand_op = PROGRAM_NONE;
    stages->template[stages->program.template_count] =
        (struct program_template){.name = name, .op = own, .op_count = 1};
    return stages->program.template_count++;
}

static uint8_t send_stream(enum stages_way way)
{
    return (uint8_t)(1 + 2 * way);
}

static uint8_t receive_stream(enum stages_way way)
{
    return (uint8_t)(2 + 2 * way);
}

static void ways_open(struct stages *stages, uint64_t message_bytes)
{
    static const char *const names[][2] = {{"send up", "receive up"},
                                           {"send down", "receive down"}};
    for (uint32_t way = 0; way < STAGES_WAYS; way++) {
        uint8_t const send = send_stream(way), receive = receive_stream(way);
        struct plan_request const request = {.kind = COLLECTIVE_PERMUTE,
                                             .group = stages->group,
                                             .size_bytes = message_bytes,
                                             .offset = {way == STAGES_UP ? 1 : -1}};
        case_ok(plan_build(stages->arena, &request, "/test", &stages->plan[way], &case_error));
        stages->program.stream[send] = (struct program_stream){
            .name = names[way][0], .kind = PROGRAM_OP_SEND, .inbox = receive};
        stages->program.stream[receive] =
            (struct program_stream){.name = names[way][1], .kind = PROGRAM_OP_RECEIVE};
        (void)template_add(stages, names[way][0],
                           (struct program_op){.kind = PROGRAM_OP_SEND,
                                               .stream = send,
                                               .parts = 1,
                                               .index = (uint16_t)way,
                                               .need = {{.stream = PROGRAM_COMPUTE}},
                                               .need_count = 1});
        (void)template_add(
            stages, names[way][1],
            (struct program_op){.kind = PROGRAM_OP_RECEIVE, .stream = receive, .parts = 1});
    }
}

void stages_open(struct stages *stages, struct arena *arena, const struct machine *machine,
                 const struct group_dimension *dimension, uint64_t message_bytes, uint32_t capacity)
{
    *stages =
        (struct stages){.arena = arena, .machine = machine, .capacity = capacity, .engine = "fast"};
    stages->group = (struct group){.dimension = {*dimension}, .dimension_count = 1};
    stages->role = arena_take(arena, dimension->size, sizeof *stages->role);
    assert_non_null(stages->role);
    for (uint32_t rank = 0; rank < dimension->size; rank++) {
        stages->role[rank].block = arena_take(arena, capacity, sizeof *stages->role[rank].block);
        assert_non_null(stages->role[rank].block);
    }
    stages->program = (struct program){.stream = {{.name = "compute"}},
                                       .stream_count = 1 + 2 * STAGES_WAYS,
                                       .templates = stages->template,
                                       .roles = stages->role,
                                       .role_count = dimension->size,
                                       .role_axis = (uint8_t)dimension->axis,
                                       .role_stride = dimension->stride,
                                       .works = stages->work,
                                       .plans = stages->plan,
                                       .plan_count = STAGES_WAYS};
    ways_open(stages, message_bytes);
}

uint32_t stages_work(struct stages *stages, uint64_t flop)
{
    uint32_t const work = stages->program.work_count++;
    assert_true(work < STAGES_WORKS_MAX);
    uint64_t const rows = units_round_up(flop / (2 * 128 * 128), 8);
    stages->work[work] =
        (struct work){.matmul = {{.rows = rows, .inner = 128, .columns = 128, .count = 1}},
                      .matmul_count = 1,
                      .math_format = FORMAT_BF16,
                      .useful_flop = flop};
    struct program_op op = {.kind = PROGRAM_OP_COMPUTE, .parts = 1, .index = (uint16_t)work};
    for (uint32_t way = 0; way < STAGES_WAYS; way++)
        op.need[op.need_count++] = (struct program_need){.stream = receive_stream(way)};
    stages->work_template[work] = template_add(stages, "work", op);
    return work;
}

int64_t stages_work_ps(const struct stages *stages, uint32_t work)
{
    return compute_time(&stages->machine->chip, &stages->work[work], PPM_ONE, PPM_ONE).duration_ps;
}

uint32_t stages_gather(struct stages *stages, const struct group *group, uint64_t size_bytes)
{
    struct plan_request const request = {
        .kind = COLLECTIVE_ALL_GATHER, .group = *group, .size_bytes = size_bytes};
    uint32_t const plan = stages->program.plan_count++;
    assert_true(plan < STAGES_WAYS + STAGES_GATHERS_MAX);
    case_ok(plan_build(stages->arena, &request, "/test", &stages->plan[plan], &case_error));
    uint32_t const stream = stages->program.stream_count++;
    stages->program.stream[stream] =
        (struct program_stream){.name = "gather", .kind = PROGRAM_OP_COLLECTIVE};
    return template_add(stages, "gather",
                        (struct program_op){.kind = PROGRAM_OP_COLLECTIVE,
                                            .stream = (uint8_t)stream,
                                            .parts = stages->plan[plan].part_count,
                                            .index = (uint16_t)plan});
}

static struct program_block *block_add(struct stages *stages, uint32_t rank, uint32_t template)
{
    struct program_role *role = &stages->role[rank];
    assert_true(role->block_count < stages->capacity);
    struct program_block *block = &role->block[role->block_count++];
    *block = (struct program_block){.template_index = (uint16_t) template,
                                    .phase = PROGRAM_PHASE_FORWARD,
                                    .name = stages->template[template].name,
                                    .repeat = 1,
                                    .layer_first = -1};
    return block;
}

void stages_compute(struct stages *stages, uint32_t rank, uint32_t work)
{
    (void)block_add(stages, rank, stages->work_template[work]);
}

void stages_send(struct stages *stages, uint32_t rank, enum stages_way way)
{
    (void)block_add(stages, rank, 2 * (uint32_t)way);
}

void stages_receive(struct stages *stages, uint32_t rank, enum stages_way way, uint64_t arrivals)
{
    block_add(stages, rank, 2 * (uint32_t)way + 1)->arrivals = arrivals;
}

void stages_play(struct stages *stages, uint32_t rank, uint32_t template_index)
{
    (void)block_add(stages, rank, template_index);
}

enum status stages_try(struct stages *stages, bool full, struct trace *ret_trace,
                       struct error *reterr)
{
    struct fold fold;
    struct replay_options const options = {.engine = stages->engine,
                                           .shown_chips = stages->shown,
                                           .shown_count = stages->shown_count,
                                           .record = stages->shown_count > 0,
                                           .steps_max = stages->steps_max};
    case_ok(program_seal(stages->arena, &stages->program, &case_error));
    STATUS_TRY(fold_build(stages->arena, stages->machine, &stages->program, full, &fold, reterr));
    return replay_run(stages->arena, &options, stages->machine, &stages->program, &fold, ret_trace,
                      reterr);
}

struct trace stages_run(struct stages *stages, bool full)
{
    struct trace trace = {0};
    case_ok(stages_try(stages, full, &trace, &case_error));
    return trace;
}
