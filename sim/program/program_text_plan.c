#include "sim/program/program_text_plan.h"

#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"

enum { FLOP_BITS = 62 };

enum status text_work_check(const struct text_cursor *cursor, const struct work *work)
{
    units_wide total = 0;
    for (uint32_t i = 0; i < work->matmul_count; i++) {
        const struct work_matmul *matmul = &work->matmul[i];
        const uint64_t factors[] = {matmul->rows + work->masked_rows, matmul->inner,
                                    matmul->columns, matmul->count};
        units_wide product = 2;
        for (uint32_t f = 0; f < sizeof factors / sizeof *factors; f++) {
            product *= factors[f];
            if (product >> FLOP_BITS != 0) break;
        }
        total += product;
        if (total >> FLOP_BITS != 0)
            return cursor_refuse(cursor, STATUS_LIMIT, cursor->begin,
                                 "the work before this line has 2^%d FLOP or more", FLOP_BITS);
    }
    const struct chip *chip = &cursor->machine->chip;
    if (total > 0 && chip->math_flop_per_s[work->math_format] == 0)
        return cursor_refuse(cursor, STATUS_UNSUPPORTED, cursor->begin,
                             "the work before this line multiplies in %s, for which %s has no rate",
                             format_name(work->math_format), chip->title);
    if (work->prefetch_bytes > work->hbm_read_bytes)
        return cursor_refuse(cursor, STATUS_INVALID, cursor->begin,
                             "the work before this line prefetches %llu bytes and reads %llu; what "
                             "it prefetches is a part of what it reads",
                             (unsigned long long)work->prefetch_bytes,
                             (unsigned long long)work->hbm_read_bytes);
    return STATUS_OK;
}

static bool spans(uint64_t size, uint64_t stride, uint64_t length)
{
    return size * stride <= length && length % (size * stride) == 0;
}

/* Whether two parts of one axis have no link in common: one steps over all of the other. */
static bool are_apart(const struct group_dimension *a, const struct group_dimension *b)
{
    uint64_t const reach_a = (uint64_t)a->size * a->stride, reach_b = (uint64_t)b->size * b->stride;
    return a->axis != b->axis || a->stride % reach_b == 0 || b->stride % reach_a == 0;
}

enum status text_dimension_add(const struct text_cursor *cursor,
                               const struct text_dimension *dimension, struct plan_request *request)
{
    const struct machine *machine = cursor->machine;
    uint32_t const axis = dimension->axis, length = machine->shape[axis];
    const char *name = machine_axis_name(machine, axis);
    bool const switched = machine->axis_level[axis] != LEVEL_NONE;
    bool const closes =
        machine->wrap[axis] && (uint64_t)dimension->size * dimension->stride == length;
    struct group_dimension const of = {.axis = axis,
                                       .size = dimension->size,
                                       .stride = dimension->stride,
                                       .ring = dimension->links == TEXT_RING,
                                       .switched = switched,
                                       .name = name};
    if (of.size < 2 || of.stride < 1 || !spans(of.size, of.stride, length))
        return cursor_refuse(cursor, STATUS_INVALID, cursor->begin,
                             "%u members, %u apart, do not lie evenly on %s, whose length is %u",
                             of.size, of.stride, name, length);
    if (switched != (dimension->links == TEXT_SWITCHES) || (of.ring && !closes))
        return cursor_refuse(cursor, STATUS_INVALID, cursor->begin,
                             "the links between these members of %s are %s", name,
                             switched ? "switches"
                             : closes ? "ring or line"
                                      : "line");
    for (uint32_t d = 0; d < request->group.dimension_count; d++)
        if (!are_apart(&of, &request->group.dimension[d]))
            return cursor_refuse(cursor, STATUS_INVALID, cursor->begin,
                                 "an earlier dimension of the group has links of %s in common",
                                 name);
    request->offset[request->group.dimension_count] = dimension->offset;
    request->exchange_bytes[request->group.dimension_count] = dimension->exchange_bytes;
    request->group.dimension[request->group.dimension_count++] = of;
    return STATUS_OK;
}

static enum status request_check(const struct text_cursor *cursor,
                                 const struct plan_request *request)
{
    if (request->ragged.expert_count == 0 || request->kind == COLLECTIVE_ALL_TO_ALL)
        return STATUS_OK;
    return cursor_refuse(cursor, STATUS_INVALID, cursor->begin, "only an AllToAll is ragged");
}

enum status text_plan_build(const struct text_cursor *cursor, struct text_plan *plan,
                            struct plan *ret_plan)
{
    struct error error = {0};
    plan->request.algorithm = algorithm_read(plan->algorithm);
    STATUS_TRY(request_check(cursor, &plan->request));
    if (plan->from_machine) plan_request_links(cursor->machine, &plan->request);
    enum status const status = plan_build(cursor->arena, &plan->request, "plan", ret_plan, &error);
    if (status != STATUS_OK)
        return cursor_refuse(cursor, status, cursor->begin, "%s", error.message);
    if (plan->runs == NULL || name_same(plan->runs, ret_plan->algorithm_name)) return STATUS_OK;
    return cursor_refuse(cursor, STATUS_INVALID, cursor->begin,
                         "the text says that \"%.40s\" runs it, and \"%.40s\" does", plan->runs,
                         ret_plan->algorithm_name);
}

/* Whether a dimension steps over digits of the axis that tell roles apart. */
static bool crosses(const struct group_dimension *dimension, uint32_t axis, uint64_t stride,
                    uint64_t count)
{
    return dimension->axis == axis && count > 1 && dimension->stride < stride * count &&
           stride < (uint64_t)dimension->stride * dimension->size;
}

static bool joins_roles(const struct program *program, const struct group *group)
{
    for (uint32_t d = 0; d < group->dimension_count; d++) {
        const struct group_dimension *dimension = &group->dimension[d];
        uint32_t stride;
        uint32_t const count = program_roles_along(program, dimension->axis, &stride);
        if (crosses(dimension, dimension->axis, stride, count)) return true;
    }
    return false;
}

static enum status lie_check(const struct machine *machine, const struct program *program,
                             struct error *reterr)
{
    uint32_t const inner = program->inner_count > 1 ? program->inner_count : 1;
    if (program->role_count % inner != 0)
        return error_set(reterr, STATUS_INVALID, "", "%u roles are no multiple of inner_count, %u",
                         program->role_count, inner);
    uint32_t const outer = program->role_count / inner;
    const char *name = machine_axis_name(machine, program->role_axis);
    if (!spans(outer, program->role_stride, machine->shape[program->role_axis]))
        return error_set(reterr, STATUS_INVALID, "",
                         "%u roles, %u apart, do not lie evenly on %s, whose length is %u", outer,
                         program->role_stride, name, machine->shape[program->role_axis]);
    if (inner == 1) return STATUS_OK;
    name = machine_axis_name(machine, program->inner_axis);
    if (program->inner_stride < 1 || program->inner_axis == program->role_axis ||
        !spans(inner, program->inner_stride, machine->shape[program->inner_axis]))
        return error_set(reterr, STATUS_INVALID, "",
                         "%u roles, %u apart, do not lie evenly on %s, whose length is %u, or it "
                         "is the axis of the others",
                         inner, program->inner_stride, name, machine->shape[program->inner_axis]);
    return STATUS_OK;
}

enum status text_roles_check(const struct machine *machine, const struct program *program,
                             struct program_place *ret_place, struct error *reterr)
{
    memset(ret_place, 0xff, sizeof *ret_place);
    if (program->role_count == 1) return STATUS_OK;
    STATUS_TRY(lie_check(machine, program, reterr));
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind != PROGRAM_OP_COLLECTIVE) continue;
            if (!joins_roles(program, &program->plans[op->index].group)) continue;
            ret_place->template_index = t;
            ret_place->op = i;
            return error_set(reterr, STATUS_UNSUPPORTED, "",
                             "plan %u joins ranks of several roles, which is not modelled; ranks "
                             "of different roles send and receive (a program shown with --set "
                             "/workload/clip_gradients=false has no norm of gradients over them)",
                             op->index);
        }
    return STATUS_OK;
}
