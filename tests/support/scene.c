#include "tests/support/scene.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"

static const char *const axis_names[MACHINE_AXES_MAX] = {"x", "y", "z", "w"};

void scene_open_axes(struct scene *scene, const uint32_t shape[MACHINE_AXES_MAX],
                     uint32_t grid_axes)
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
                 .mxu.rows = 128,
                 .mxu.columns = 128,
                 .mxu.count = 4,
                 .core.count = 1,
                 .ici_bytes_per_s = UINT64_C(100000000000),
                 .ici_peak_bytes_per_s = UINT64_C(100000000000),
                 .hop_latency_ps = TIME_PS_PER_US,
                 .pod.axis_count = 3},
        .axis_count = MACHINE_AXES_MAX,
        .grid_axis_count = grid_axes,
        .chip_count = 1,
    };
    for (uint32_t axis = 0; axis < MACHINE_AXES_MAX; axis++) {
        scene->machine.axis_name[axis] = axis_names[axis];
        scene->machine.axis_level[axis] = LEVEL_NONE;
        scene->machine.shape[axis] = shape[axis];
        scene->machine.wrap[axis] = axis < grid_axes && shape[axis] > 2;
        scene->machine.chip_count *= shape[axis];
    }
    struct builder_room const room = {.templates = 1,
                                      .ops = SCENE_OPS_MAX,
                                      .works = SCENE_OPS_MAX,
                                      .plans = SCENE_PLANS_MAX,
                                      .copies = SCENE_OPS_MAX};
    builder_begin(&scene->build, scene->arena, &scene->machine, room, &scene->program,
                  &scene->error);
    scene->role = builder_roles(&scene->build, 1, 1);
    SIM_ASSERT(scene->role != NULL);
    builder_block(scene->role, (struct program_block){.name = "scene", .layer_first = -1});
    scene->op = scene->build.op;
    scene->plan = scene->program.plans;
    scene->work = scene->program.works;
    scene->copy = scene->program.copies;
    (void)builder_stream(&scene->build, (struct program_stream){.name = "compute"});
    builder_template_begin(&scene->build, "scene");
}

void scene_open(struct scene *scene, uint32_t x, uint32_t y, uint32_t z, bool wrap)
{
    scene_open_axes(scene, (const uint32_t[]){x, y, z, 1}, 3);
    scene->machine.axis_count = 3;
    for (uint32_t axis = 0; axis < 3; axis++)
        scene->machine.wrap[axis] = wrap && scene->machine.wrap[axis];
}

struct level *scene_level(struct scene *scene, const char *name, uint32_t axis)
{
    struct level *level = &scene->machine.level[scene->machine.level_count];
    *level = (struct level){.name = name};
    scene->machine.axis_level[axis] = (uint8_t)scene->machine.level_count++;
    return level;
}

struct level_tier *scene_tier(struct level *level, const uint32_t box[MACHINE_AXES_MAX],
                              uint32_t cables, uint64_t cable_bytes_per_s, int64_t latency_ps)
{
    struct level_tier *tier = &level->tier[level->tier_count++];
    *tier = (struct level_tier){.name = "switch",
                                .cable_name = "cable",
                                .port_name = {"cable up", "cable down"},
                                .switch_count = 1,
                                .cable_count = cables,
                                .cable_bytes_per_s = cable_bytes_per_s,
                                .cable_peak_bytes_per_s = cable_bytes_per_s,
                                .latency_ps = latency_ps};
    memcpy(tier->box, box, sizeof tier->box);
    return tier;
}

void scene_open_node(struct scene *scene, uint32_t gpus)
{
    scene_open_axes(scene, (const uint32_t[]){gpus, 1, 1, 1}, 0);
    (void)scene_tier(scene_level(scene, "NVLink", 0), scene->machine.shape, 1,
                     UINT64_C(450000000000), TIME_PS_PER_US / 2);
}

void scene_close(struct scene *scene)
{
    arena_destroy(scene->arena);
}

void scene_clear(struct scene *scene)
{
    scene->program.plan_count = 0;
    scene->program.stream_count = 1;
    builder_template_begin(&scene->build, "scene");
}

/* What was built is there: tests give no more than there is room for. */
static uint32_t built(const struct scene *scene, uint32_t index)
{
    if (index == BUILDER_NONE)
        (void)fprintf(stderr, "%s: %s\n", scene->error.where, scene->error.message);
    SIM_ASSERT(index != BUILDER_NONE);
    return index;
}

static uint32_t op_add(struct scene *scene, enum program_op_kind kind, const char *name,
                       uint32_t stream, uint32_t parts, uint32_t index)
{
    return built(scene, builder_op(&scene->build,
                                   (struct program_op){.name = name,
                                                       .kind = kind,
                                                       .stream = (uint8_t)stream,
                                                       .parts = parts,
                                                       .index = (uint16_t)built(scene, index)}));
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

struct group_dimension scene_dimension(const struct scene *scene, uint32_t axis)
{
    return (struct group_dimension){.axis = axis,
                                    .size = scene->machine.shape[axis],
                                    .stride = 1,
                                    .ring = scene->machine.wrap[axis],
                                    .switched = scene->machine.axis_level[axis] != LEVEL_NONE,
                                    .name = scene->machine.axis_name[axis]};
}

uint32_t scene_stream(struct scene *scene, const char *name)
{
    return builder_stream(&scene->build,
                          (struct program_stream){.name = name, .kind = PROGRAM_OP_COLLECTIVE});
}

static uint32_t collective_op(struct scene *scene, uint32_t stream, uint32_t index)
{
    return op_add(scene, PROGRAM_OP_COLLECTIVE, collective_kind_name(scene->plan[index].kind),
                  stream, scene->plan[index].part_count, index);
}

uint32_t scene_collective(struct scene *scene, uint32_t stream, enum collective_kind kind,
                          struct group group, uint64_t size_bytes, const char *algorithm,
                          uint32_t chunk_count)
{
    struct plan_request const request = {.kind = kind,
                                         .algorithm = algorithm_read(algorithm),
                                         .group = group,
                                         .size_bytes = size_bytes,
                                         .chunk_count = chunk_count};
    return scene_plan(scene, stream, &request);
}

uint32_t scene_plan(struct scene *scene, uint32_t stream, const struct plan_request *request)
{
    uint32_t const index = builder_plan_add(&scene->build, request, false, "/test");
    return collective_op(scene, stream, built(scene, index));
}

uint32_t scene_routed(struct scene *scene, uint32_t stream, const struct primitive *primitive,
                      const struct group *group, bool flat, uint64_t unit_bytes,
                      uint32_t piece_count)
{
    uint32_t const index = scene->program.plan_count++;
    struct plan *plan = &scene->plan[index];
    *plan = (struct plan){.kind = primitive->kind,
                          .algorithm = algorithm_read(primitive_algorithm(primitive)),
                          .group = *group,
                          .size_bytes = unit_bytes,
                          .item_count = 1,
                          .order_count = 1,
                          .part_count = 1};
    uint32_t size = group->dimension[0].size;
    for (uint32_t d = 1; flat && d < group->dimension_count; d++) size *= group->dimension[d].size;
    for (uint8_t d = 0; d < GROUP_DIMENSIONS_MAX; d++) plan->flat_dimension[d] = d;
    plan->item[0] =
        (struct plan_item){.primitive = primitive,
                           .after = PLAN_NO_ITEM,
                           .turn = PLAN_NO_ITEM,
                           .last = true,
                           .flat = flat,
                           .cyclic = flat && primitive->translates && !primitive->digits,
                           .size = size,
                           .unit_bytes = unit_bytes,
                           .piece_count = piece_count};
    for (uint32_t lane = 0; lane < primitive->lane_count; lane++) {
        uint32_t *counts = arena_take(scene->arena, size, 2 * sizeof *counts);
        SIM_ASSERT(counts != NULL);
        for (uint32_t at = 0; at < size; at++) {
            counts[at] = primitive->send_count(size, lane, at);
            counts[size + at] = primitive->arrival_count(size, lane, at);
        }
        plan->lane[plan->lane_count++] = (struct plan_lane){
            .lane = (uint8_t)lane, .send_count = counts, .arrival_count = counts + size};
    }
    return collective_op(scene, stream, index);
}

uint32_t scene_compute(struct scene *scene, uint64_t flop, uint32_t parts)
{
    uint64_t const rows = units_round_up(flop / (2 * 128 * 128), 8);
    struct work const work = {.matmul = {{.rows = rows, .inner = 128, .columns = 128, .count = 1}},
                              .matmul_count = 1,
                              .math_format = FORMAT_BF16,
                              .useful_flop = flop};
    return op_add(scene, PROGRAM_OP_COMPUTE, "matmul", PROGRAM_COMPUTE, parts,
                  builder_work_add(&scene->build, &work, parts, "/test"));
}

void scene_host(struct scene *scene, uint64_t bytes_per_s, int64_t latency_ps, uint32_t sharers)
{
    scene->machine.host = (struct machine_host){
        .cable_name = "PCIe",
        .port_name = {"PCIe up", "PCIe down"},
        .bytes_per_s = bytes_per_s,
        .latency_ps = latency_ps,
        .box = {sharers, 1, 1, 1},
        .level = LEVEL_NONE,
    };
}

uint32_t scene_copy(struct scene *scene, uint32_t stream, bool to_host, uint64_t size_bytes)
{
    const char *name = to_host ? "store" : "load";
    if (stream == PROGRAM_STREAMS_MAX)
        stream = builder_stream(&scene->build,
                                (struct program_stream){.name = name, .kind = PROGRAM_OP_COPY});
    return op_add(scene, PROGRAM_OP_COPY, name, stream, 1,
                  builder_copy(&scene->build, to_host, size_bytes));
}

void scene_need(struct scene *scene, uint32_t op, uint32_t other, int16_t slots)
{
    uint32_t part = 0;
    for (uint32_t i = 0; i <= other; i++)
        if (scene->op[i].stream == scene->op[other].stream) part += scene->op[i].parts;
    builder_need(
        &scene->build, op,
        (struct program_need){.stream = scene->op[other].stream, .slot = slots, .part = part});
}

enum status scene_try(struct scene *scene, uint32_t repeat, bool full, bool record,
                      struct trace *ret_trace, struct error *reterr)
{
    struct fold fold;
    static const uint32_t first[] = {0};
    struct replay_options const options = {
        .engine = scene->engine,
        .arbitration = scene->arbitration,
        .segment_bytes = scene->segment_bytes,
        .shown_chips = scene->shown != NULL ? scene->shown : first,
        .shown_count = scene->shown != NULL ? scene->shown_count : 1,
        .record = record,
        .count_waits = true};
    scene->role->block[0].repeat = repeat;
    scene->program.templates[0] = (struct program_template){
        .name = "scene", .op = scene->op, .op_count = scene->build.op_count};
    scene->program.template_count = 1;
    case_ok(program_seal(scene->arena, &scene->program, &case_error));
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

struct trace scene_run_alike(struct scene *scene, uint32_t repeat)
{
    struct trace full[2], folded[2];
    for (uint32_t queue = 0; queue < 2; queue++) {
        scene->engine = queue == 0 ? "reference" : "fast";
        full[queue] = scene_run(scene, repeat, true, false);
        folded[queue] = scene_run(scene, repeat, false, false);
    }
    assert_int_equal(full[0].digest, full[1].digest);
    assert_int_equal(folded[0].digest, folded[1].digest);
    assert_int_equal(folded[1].step_ps, full[1].step_ps);
    assert_int_equal(folded[1].exposed_ps, full[1].exposed_ps);
    return full[1];
}
