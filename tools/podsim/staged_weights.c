/* What the rows of `podsim pipeline FILE` gather of weights, and what of it is waited for. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/text.h"
#include "sim/base/units.h"
#include "sim/report/table.h"
#include "sim/report/table_fit.h"
#include "tools/podsim/staged.h"

enum { COLUMN_MICROBATCHES = 23, COLUMN_GATHERED = 39, COLUMN_HELD = 53, COLUMN_EXPOSED = 65 };

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

enum status staged_weights_take(struct arena *arena, struct staged_row *row,
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

static void write_row(const struct staged_row *row, uint32_t wider, struct text *text)
{
    uint64_t gathered = 0, held = 0;
    for (uint32_t r = 0; r < row->of->schedule.rank_count; r++) {
        uint64_t const of = row->role[r].memory_each_peak_bytes[PROGRAM_MEMORY_GATHERED];
        held = of > held ? of : held;
        gathered = row->gathered_bytes[r] > gathered ? row->gathered_bytes[r] : gathered;
    }
    text_add(text, "%s", comparison_label(row->of).text);
    table_right(text, wider + COLUMN_MICROBATCHES, table_count(row->of->microbatch_count).text);
    table_right(text, wider + COLUMN_GATHERED, table_bytes((double)gathered).text);
    table_right(text, wider + COLUMN_HELD, table_bytes((double)held).text);
    table_right(text, wider + COLUMN_EXPOSED, table_duration(row->weights_exposed_ps).text);
    text_add(text, "\n");
}

static bool row_gathers(const struct staged_row *row)
{
    bool gathers = false;
    for (uint32_t r = 0; r < row->of->schedule.rank_count; r++)
        gathers = gathers || row->gathered_bytes[r] > 0;
    return gathers;
}

void staged_weights_write(const struct staged *staged, uint32_t wider, struct text *text)
{
    bool any = false;
    for (uint32_t i = 0; i < staged->of->done_count; i++) {
        uint32_t const at = staged->of->order[i];
        if (staged->of->row[at].refused.status != STATUS_OK || !row_gathers(&staged->row[at]))
            continue;
        if (!any) {
            text_add(text, "\n  weights");
            table_right(text, wider + COLUMN_MICROBATCHES, "batches");
            table_right(text, wider + COLUMN_GATHERED, "a chip gathers");
            table_right(text, wider + COLUMN_HELD, "held at most");
            table_right(text, wider + COLUMN_EXPOSED, "waited for");
            text_add(text, "\n");
        }
        any = true;
        write_row(&staged->row[at], wider, text);
    }
    if (any)
        table_wrap(text, 2,
                   "of the busiest chip, what it gathers in a step and holds at once; what the "
                   "chip that ends last waits for of its weights' gathers and gradients' "
                   "reductions");
}
