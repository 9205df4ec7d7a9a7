/* What the rows of `podsim pipeline FILE` gather of weights, and what of it is waited for. */
#include "sim/base/arena.h"
#include "tools/podsim/pipeline/pipeline_run.h"

/* Gathered weights are what such an op takes memory for. */
static bool gathers_weights(const struct program_op *op)
{
    for (uint32_t e = 0; e < op->effect_count; e++)
        if (op->effect[e].memory == PROGRAM_MEMORY_GATHERED && !op->effect[e].at_end)
            return op->kind == PROGRAM_OP_COLLECTIVE;
    return false;
}

static uint64_t slot_bytes(const struct program *program, const struct program_template *template)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < template->op_count; i++)
        if (gathers_weights(&template->op[i]))
            bytes += program->plans[template->op[i].index].size_bytes;
    return bytes;
}

/* What the stream is of that weights are gathered on; 0: none are. */
static uint32_t weights_of(const struct program *program)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++)
            if (gathers_weights(&program->templates[t].op[i]))
                return program->stream[program->templates[t].op[i].stream].use.of;
    return 0;
}

enum status pipeline_run_weights_take(struct arena *arena, struct pipeline_run_row *row,
                                      const struct program *program, const struct trace *trace,
                                      struct error *reterr)
{
    void *memory = NULL;
    uint32_t const of = weights_of(program);
    STATUS_TRY(arena_try(arena, program->role_count, sizeof(uint64_t), &memory, reterr));
    row->gathered_bytes = memory;
    for (uint32_t r = 0; r < program->role_count; r++)
        for (uint32_t b = 0; b < program->roles[r].block_count; b++) {
            const struct program_block *block = &program->roles[r].block[b];
            row->gathered_bytes[r] +=
                block->repeat * slot_bytes(program, &program->templates[block->template_index]);
        }
    for (uint32_t c = 0; of != 0 && c < trace->class_count; c++)
        if (program->stream[program->class_streams[c]].use.of == of)
            row->weights_exposed_ps += trace->classes[c].exposed_ps;
    return STATUS_OK;
}

bool pipeline_run_row_gathers(const struct pipeline_run_row *row)
{
    bool gathers = false;
    for (uint32_t r = 0; r < row->of->schedule.rank_count; r++)
        gathers = gathers || row->gathered_bytes[r] > 0;
    return gathers;
}
