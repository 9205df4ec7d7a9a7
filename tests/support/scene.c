#include "tests/support/scene.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"

void scene_open(struct scene *scene, uint32_t x, uint32_t y, uint32_t z, bool wrap)
{
    memset(scene, 0, sizeof *scene);
    scene->arena = arena_create(0);
    scene->engine = "fast";
    scene->machine = (struct machine){
        .chip = {.name = "round",
                 .title = "round numbers",
                 .profile = "ideal",
                 .hbm_capacity_bytes = UINT64_C(100000000000),
                 .hbm_bytes_per_s = UINT64_C(10000000000000),
                 .vmem_capacity_bytes = 128u << 20,
                 .vmem_bytes_per_s = UINT64_C(200000000000000),
                 .math_flop_per_s = {[FORMAT_BF16] = UINT64_C(1000000000000000)},
                 .math_peak_flop_per_s = {[FORMAT_BF16] = UINT64_C(1000000000000000)},
                 .vector_flop_per_s = UINT64_C(10000000000000),
                 .mxu_rows = 128,
                 .mxu_columns = 128,
                 .mxu_count = 4,
                 .core_count = 1,
                 .ici_bytes_per_s = UINT64_C(100000000000),
                 .ici_peak_bytes_per_s = UINT64_C(100000000000),
                 .hop_latency_ps = TIME_PS_PER_US,
                 .axis_count = 3},
        .axis_count = 3,
        .grid_axis_count = 3,
        .axis_name = {"x", "y", "z", ""},
        .axis_level = {LEVEL_NONE, LEVEL_NONE, LEVEL_NONE, LEVEL_NONE},
        .shape = {x, y, z, 1},
        .wrap = {wrap && x > 2, wrap && y > 2, wrap && z > 2},
        .chip_count = x * y * z,
    };
    scene->program.stream[PROGRAM_COMPUTE].name = "compute";
    scene->program.stream_count = 1;
    scene->program.templates = &scene->template;
    scene->program.template_count = 1;
    scene->program.roles = &scene->role;
    scene->program.role_count = 1;
    scene->program.works = scene->work;
    scene->program.plans = scene->plan;
    scene->template.name = "scene";
    scene->template.op = scene->op;
    scene->role.block = &scene->block;
    scene->role.block_count = 1;
    scene->block = (struct program_block){.name = "scene", .layer_first = -1};
}

void scene_close(struct scene *scene)
{
    arena_destroy(scene->arena);
}

struct group scene_group(const struct scene *scene, bool x, bool y, bool z)
{
    bool const spans[] = {x, y, z};
    struct group group = {.dimension_count = 0};
    for (uint32_t axis = 0; axis < 3; axis++) {
        if (!spans[axis] || scene->machine.shape[axis] == 1) continue;
        group.dimension[group.dimension_count++] =
            (struct group_dimension){.axis = axis,
                                     .size = scene->machine.shape[axis],
                                     .stride = 1,
                                     .ring = scene->machine.wrap[axis],
                                     .name = scene->machine.axis_name[axis]};
    }
    return group;
}

uint32_t scene_stream(struct scene *scene, const char *name)
{
    scene->program.stream[scene->program.stream_count] =
        (struct program_stream){.name = name, .collective = true};
    return scene->program.stream_count++;
}

uint32_t scene_collective(struct scene *scene, uint32_t stream, enum collective_kind kind,
                          struct group group, uint64_t size_bytes, const char *algorithm,
                          uint32_t chunk_count)
{
    struct error error = {0};
    struct plan_request const request = {.kind = kind,
                                         .algorithm = algorithm,
                                         .group = group,
                                         .size_bytes = size_bytes,
                                         .chunk_count = chunk_count};
    uint32_t const index = scene->program.plan_count++;
    enum status const status =
        plan_build(scene->arena, &request, "/test", &scene->plan[index], &error);
    if (status != STATUS_OK) (void)fprintf(stderr, "%s: %s\n", error.where, error.message);
    SIM_ASSERT(status == STATUS_OK);
    uint32_t const op = scene->template.op_count++;
    scene->op[op] = (struct program_op){.name = collective_kind_name(kind),
                                        .class_name = collective_kind_name(kind),
                                        .kind = PROGRAM_OP_COLLECTIVE,
                                        .stream = (uint8_t)stream,
                                        .parts = scene->plan[index].part_count,
                                        .index = (uint16_t)index,
                                        .operand_op = PROGRAM_NONE};
    return op;
}

uint32_t scene_compute(struct scene *scene, uint64_t flop, uint32_t parts)
{
    uint32_t const index = scene->program.work_count++;
    uint64_t const rows = units_round_up(flop / (2 * 128 * 128), 8);
    scene->work[index] =
        (struct work){.matmul = {{.rows = rows, .inner = 128, .columns = 128, .count = 1}},
                      .matmul_count = 1,
                      .math_format = FORMAT_BF16,
                      .useful_flop = flop};
    uint32_t const op = scene->template.op_count++;
    scene->op[op] = (struct program_op){.name = "matmul",
                                        .class_name = "matmul",
                                        .kind = PROGRAM_OP_COMPUTE,
                                        .stream = PROGRAM_COMPUTE,
                                        .parts = parts,
                                        .index = (uint16_t)index,
                                        .operand_op = PROGRAM_NONE};
    return op;
}

void scene_need(struct scene *scene, uint32_t op, uint32_t other, int16_t slots)
{
    uint32_t part = 0;
    for (uint32_t i = 0; i <= other; i++)
        if (scene->op[i].stream == scene->op[other].stream) part += scene->op[i].parts;
    scene->op[op].need[scene->op[op].need_count++] =
        (struct program_need){.stream = scene->op[other].stream, .slot = slots, .part = part};
}

enum status scene_try(struct scene *scene, uint32_t repeat, bool full, bool record,
                      struct trace *ret_trace, struct error *reterr)
{
    struct fold fold;
    static const uint32_t shown[] = {0};
    struct replay_options const options = {
        .engine = scene->engine, .shown_chips = shown, .shown_count = 1, .record = record};
    scene->block.repeat = repeat;
    program_seal(scene->arena, &scene->program);
    STATUS_TRY(fold_build(scene->arena, &scene->machine, &scene->program, full, &fold, reterr));
    return replay_run(scene->arena, &options, &scene->machine, &scene->program, &fold, ret_trace,
                      reterr);
}

struct trace scene_run(struct scene *scene, uint32_t repeat, bool full, bool record)
{
    struct error error = {0};
    struct trace trace = {0};
    enum status const status = scene_try(scene, repeat, full, record, &trace, &error);
    if (status != STATUS_OK) (void)fprintf(stderr, "%s: %s\n", error.where, error.message);
    SIM_ASSERT(status == STATUS_OK);
    return trace;
}
