/* The streams of a program and what every op waits for, as a table. */
#include "sim/base/counted.h"
#include "sim/step/listing.h"

#include "sim/base/quantity.h"

enum { OP_COLUMN = 20, PARTS_COLUMN = 54, BYTES_COLUMN = 62, NEEDS_COLUMN = 73 };

/* "gather tp 2+2k", "compute[-1] begun 1", "reduce tp[<0]": everything before this slot. */
static void count_add(struct strbuf *text, const struct program *program,
                      const struct program_need *need)
{
    strbuf_add(text, "%s", program->stream[need->stream].name);
    if (need->slot == PROGRAM_SLOT_SINCE) {
        strbuf_add(text, " of all slots before it is asked for");
        return;
    }
    if (need->slot != 0) strbuf_add(text, "[%d]", need->slot);
    if (need->begun) strbuf_add(text, " begun");
    if (need->slot == 0 && need->part == 0 && need->per_part == 0) {
        strbuf_add(text, " of all slots before");
        return;
    }
    strbuf_add(text, " %u", need->part);
    if (need->per_part != 0) strbuf_add(text, "+%uk", need->per_part);
}

/* And why: "gather tp 2+2k (mlp.In)", "compute[-1] begun 1 (window)". */
static void need_add(struct strbuf *text, const struct program *program,
                     const struct program_need *need)
{
    static const char *const reasons[PROGRAM_REASON_COUNT] = {
#define X(name, text) text,
        PROGRAM_REASON_TABLE(X)
#undef X
    };
    count_add(text, program, need);
    strbuf_add(text, " (%s)", need->array != NULL ? need->array : reasons[need->reason]);
}

/* What an op moves, or 0. */
static uint64_t moved_bytes(const struct program *program, const struct program_op *op)
{
    bool const plans = op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_SEND;
    return plans                         ? program->plans[op->index].size_bytes
           : op->kind == PROGRAM_OP_COPY ? program->copies[op->index].size_bytes
                                         : 0;
}

static void op_line_add(struct strbuf *text, const struct program *program,
                        const struct program_template *template, const struct program_op *op)
{
    char bytes[QUANTITY_TEXT_BYTES];
    uint64_t const size_bytes = moved_bytes(program, op);
    strbuf_add(text, "  %s", program->stream[op->stream].name);
    strbuf_pad(text, OP_COLUMN);
    strbuf_add(text, "%s", op->name);
    strbuf_pad(text, PARTS_COLUMN);
    strbuf_add(text, "%u", op->parts);
    if (size_bytes != 0) {
        strbuf_pad(text, BYTES_COLUMN);
        strbuf_add(text, "%s", quantity_text_bytes(bytes, (double)size_bytes));
    }
    if (op->need_count != 0 || op->operand_op != PROGRAM_NONE) strbuf_pad(text, NEEDS_COLUMN);
    for (uint32_t n = 0; n < op->need_count; n++) {
        if (n != 0) strbuf_add(text, ", ");
        need_add(text, program, &op->need[n]);
    }
    if (op->kind == PROGRAM_OP_COLLECTIVE && op->operand_op != PROGRAM_NONE)
        strbuf_add(text, ", chunks of %s", template->op[op->operand_op].name);
    strbuf_add(text, "\n");
}

/* Slots of a template, of all pipeline ranks together. */
static uint64_t slot_count(const struct program *program, uint32_t template_index)
{
    uint64_t slots = 0;
    for (uint32_t r = 0; r < program->role_count; r++)
        slots += program_role_plays(&program->roles[r], template_index, PROGRAM_ANY_PHASE);
    return slots;
}

/* What each rank of a pipeline has. */
static void roles_add(struct strbuf *text, const struct program *program)
{
    if (program->role_count == 1) return;
    strbuf_add(text, "\nPipeline ranks: each has slots of its own; below they are added up.\n");
    for (uint32_t r = 0; r < program->role_count; r++)
        strbuf_add(text, "  rank %u: %s in %s\n", r,
                   counted(program->roles[r].slot_count, "slot").text,
                   counted(program->roles[r].block_count, "block").text);
}

void listing_streams(struct strbuf *text, const struct program *program)
{
    strbuf_add(text,
               "\nStreams: each runs its ops in order. A need is a stream and how many of its\n"
               "parts, in this slot or in slot [n] from here, must be done or begun; k counts\n"
               "the parts of the op that needs them. In parentheses stands why: the array that\n"
               "the op reads; the window of prefetch or memory; or the order of ops that read\n"
               "nothing of each other.\n");
    roles_add(text, program);
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        uint64_t const slots = slot_count(program, t);
        strbuf_add(text, "\n%s, %s", template->name, counted(slots, "slot").text);
        strbuf_pad(text, PARTS_COLUMN);
        strbuf_add(text, "parts");
        strbuf_pad(text, BYTES_COLUMN);
        strbuf_add(text, "V");
        strbuf_pad(text, NEEDS_COLUMN);
        strbuf_add(text, "needs\n");
        for (uint32_t i = 0; i < template->op_count; i++)
            op_line_add(text, program, template, &template->op[i]);
    }
}
