/* What is constant about streams during a run: their ops, roles, durations of ops. */
#include "sim/replay/streams.h"

#include "sim/base/arena.h"
#include "sim/replay/breakdown.h"
#include "sim/replay/state.h"
#include "sim/resource/compute.h"

/* Passes over a layer in a step, all microbatches: 4 bytes each, and minutes to play. */
enum { SLOTS_MAX = 1 << 26 };

/* Of one role; of more the block of each slot is kept. */
enum { BLOCKS_SEARCHED_MAX = 32 };

enum status streams_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct program *program = replay->program;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, (uint64_t)program->template_count * PROGRAM_STREAMS_MAX,
                         sizeof *replay->streams.ops, &memory, reterr));
    replay->streams.ops = memory;
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        for (uint32_t stream = 0; stream < program->stream_count; stream++) {
            STATUS_TRY(arena_try(arena, template->op_count, sizeof(uint16_t), &memory, reterr));
            uint16_t *list = memory;
            uint32_t count = 0;
            for (uint32_t op = 0; op < template->op_count; op++)
                if (template->op[op].stream == stream) list[count++] = (uint16_t)op;
            replay->streams.ops[t * PROGRAM_STREAMS_MAX + stream] =
                (struct stream_ops){.op = list, .op_count = count};
        }
    }
    return STATUS_OK;
}

static enum status role_build(struct arena *arena, const struct replay *replay, uint32_t index,
                              struct error *reterr)
{
    const struct program *program = replay->program;
    const struct program_role *role = &program->roles[index];
    struct role_table *table = &replay->roles[index];
    void *memory = NULL;
    table->role = role;
    table->prefix_end_slot = UINT32_MAX;
    table->pass_chip = UINT32_MAX;
    STATUS_TRY(arena_try(arena, role->slot_count, sizeof *table->slot_template, &memory, reterr));
    table->slot_template = memory;
    if (role->block_count > BLOCKS_SEARCHED_MAX) {
        STATUS_TRY(arena_try(arena, role->slot_count, sizeof *table->slot_block, &memory, reterr));
        table->slot_block = memory;
    }
    STATUS_TRY(arena_try(arena, program->stream_count, sizeof *table->needs, &memory, reterr));
    table->needs = memory;
    uint32_t passes = 0;
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *block = &role->block[b];
        passes = block->pass > passes ? block->pass : passes;
        if (block->arrivals >= UINT32_MAX / 2)
            return error_set(reterr, STATUS_LIMIT, "/workload",
                             "%llu messages are more than a run can count",
                             (unsigned long long)block->arrivals);
        for (uint32_t slot = block->slot_first; slot < block->slot_first + block->repeat; slot++) {
            table->slot_template[slot] = block->template_index;
            if (table->slot_block != NULL) table->slot_block[slot] = b;
        }
    }
    for (uint32_t stream = 0; stream < program->stream_count; stream++)
        if (role->stream_total[stream] >= UINT32_MAX / 2)
            return error_set(reterr, STATUS_LIMIT, "/workload",
                             "%llu parts on stream %s are more than a run can count",
                             (unsigned long long)role->stream_total[stream],
                             program->stream[stream].name);
    if (passes > 0) {
        uint32_t const count = passes + 2; /* With [0], and the second of a pair. */
        STATUS_TRY(arena_try(arena, 3u * count, sizeof *table->pass_ps, &memory, reterr));
        table->pass_ps = memory;
        table->pass_begin_ps = table->pass_ps + count;
        table->pass_end_ps = table->pass_begin_ps + count;
        table->pass_count = passes + 1;
    }
    return replay->options->curves ? breakdown_curve_build(arena, replay->program, table, reterr)
                                   : STATUS_OK;
}

/* Ops that the host launches before each block. */
static enum status launches_build(struct arena *arena, const struct replay *replay,
                                  struct role_table *table, struct error *reterr)
{
    const struct program_role *role = table->role;
    uint64_t launches = 0;
    void *memory = NULL;
    if (replay->machine->chip.launch.host_ps == 0) return STATUS_OK;
    STATUS_TRY(arena_try(arena, role->block_count, sizeof *table->block_launches, &memory, reterr));
    table->block_launches = memory;
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *block = &role->block[b];
        table->block_launches[b] = launches;
        launches +=
            (uint64_t)block->repeat * replay->program->templates[block->template_index].op_count;
    }
    return STATUS_OK;
}

enum status roles_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct program *program = replay->program;
    void *memory = NULL;
    uint64_t slots = 0;
    for (uint32_t role = 0; role < program->role_count; role++)
        slots += program->roles[role].slot_count;
    if (slots > SLOTS_MAX)
        return error_set(reterr, STATUS_LIMIT, "/workload",
                         "a step of %llu passes over layers is more than a run can hold (%d)",
                         (unsigned long long)slots, SLOTS_MAX);
    if (program->role_count > UINT16_MAX)
        return error_set(reterr, STATUS_LIMIT, "/mesh", "more than %d different roles", UINT16_MAX);
    STATUS_TRY(arena_try(arena, program->role_count, sizeof *replay->roles, &memory, reterr));
    replay->roles = memory;
    for (uint32_t role = 0; role < program->role_count; role++) {
        STATUS_TRY(role_build(arena, replay, role, reterr));
        STATUS_TRY(launches_build(arena, replay, &replay->roles[role], reterr));
    }
    return STATUS_OK;
}

struct op_table op_table_of(const struct replay *replay, uint32_t kind, const struct program_op *op,
                            uint64_t there_bytes)
{
    const struct work *work = &replay->program->works[op->index];
    const struct fold_chip_class *class = &replay->fold->chip_classes[kind];
    uint64_t const all = there_bytes * op->parts;
    struct compute_time const time = compute_time_of_rest(
        &replay->machine->chip, work, all < work->prefetch_bytes ? all : work->prefetch_bytes,
        class->math_ppm, class->hbm_ppm);
    struct op_table table = {.idle_ps = time.duration_ps / op->parts,
                             .idle_longer = (uint32_t)(time.duration_ps % op->parts),
                             .parts = op->parts,
                             .spares = true};
    for (enum server server = SERVER_HBM; server < SERVER_COUNT; server++) {
        table.server[server] = server_op(&replay->servers, server, &time, op->parts);
        table.spares = table.spares && table.server[server].spares;
    }
    table.cores = cores_op(&replay->servers.cores, op->index, &time, op->parts);
    table.spares = table.spares && !table.cores.matter;
    return table;
}

/* Ops of several templates may have one work, which is looked up once. */
static void op_build(const struct replay *replay, uint32_t kind, const struct program_op *op)
{
    struct op_table *table = op_table_at(replay, op->index, kind);
    SIM_ASSERT(table->parts == 0 || table->parts == op->parts);
    if (table->parts == 0) *table = op_table_of(replay, kind, op, 0);
}

enum status ops_build(struct arena *arena, struct replay *replay, struct error *reterr)
{
    const struct program *program = replay->program;
    uint32_t const class_count = replay->fold->chip_class_count;
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, (uint64_t)class_count * program->work_count,
                         sizeof *replay->streams.works, &memory, reterr));
    replay->streams.works = memory;
    for (uint32_t kind = 0; kind < class_count; kind++) {
        for (uint32_t t = 0; t < program->template_count; t++) {
            const struct program_template *template = &program->templates[t];
            for (uint32_t op = 0; op < template->op_count; op++)
                if (template->op[op].kind == PROGRAM_OP_COMPUTE)
                    op_build(replay, kind, &template->op[op]);
        }
    }
    return STATUS_OK;
}
