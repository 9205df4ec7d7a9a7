#include "tools/podsim/common/op_slots.h"

#include <stdbool.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/program/program.h"

enum { BITS = 64 };

struct search {
    struct arena *arena;
    const struct program *program;
    struct op_slot **of_template; /* [template]: kinds that were found, by the first role. */
    uint64_t *times;              /* [template]: slots of one role. */
};

static uint32_t words_of(const struct program *program)
{
    return (program->role_count + BITS - 1) / BITS;
}

static bool computes(const struct program_template *template)
{
    for (uint32_t i = 0; i < template->op_count; i++)
        if (template->op[i].kind == PROGRAM_OP_COMPUTE) return true;
    return false;
}

/* The next compute op of a template, or its end. */
static uint32_t next_compute(const struct program_template *template, uint32_t op)
{
    while (op < template->op_count && template->op[op].kind != PROGRAM_OP_COMPUTE) op++;
    return op;
}

static bool same_ops(const struct program_template *a, const struct program_template *b)
{
    uint32_t i = next_compute(a, 0), k = next_compute(b, 0);
    if (!name_same(a->name, b->name)) return false;
    while (i < a->op_count && k < b->op_count) {
        if (a->op[i].index != b->op[k].index || !name_same(a->op[i].name, b->op[k].name))
            return false;
        i = next_compute(a, i + 1);
        k = next_compute(b, k + 1);
    }
    return i == a->op_count && k == b->op_count;
}

static enum status slot_add(struct search *search, uint32_t template_index, uint32_t role,
                            struct error *reterr)
{
    struct op_slot **at = &search->of_template[template_index];
    void *memory = NULL;
    while (*at != NULL && (*at)->times != search->times[template_index]) at = &(*at)->next;
    if (*at == NULL) {
        STATUS_TRY(arena_try(search->arena, 1, sizeof **at, &memory, reterr));
        *at = memory;
        (*at)->slot = &search->program->templates[template_index];
        (*at)->times = search->times[template_index];
        STATUS_TRY(
            arena_try(search->arena, words_of(search->program), sizeof(uint64_t), &memory, reterr));
        (*at)->ranks = memory;
    }
    (*at)->ranks[role / BITS] |= UINT64_C(1) << role % BITS;
    return STATUS_OK;
}

static enum status role_add(struct search *search, uint32_t index, struct error *reterr)
{
    const struct program *program = search->program;
    const struct program_role *role = &program->roles[index];
    memset(search->times, 0, program->template_count * sizeof *search->times);
    for (uint32_t b = 0; b < role->block_count; b++)
        search->times[role->block[b].template_index] += role->block[b].repeat;
    for (uint32_t t = 0; t < program->template_count; t++)
        if (search->times[t] > 0 && computes(&program->templates[t]))
            STATUS_TRY(slot_add(search, t, index, reterr));
    return STATUS_OK;
}

/* Whether a kind is that of an earlier one, on other ranks: these are added there. A rank that has
 * both keeps both. */
static bool joins(const struct program *program, struct op_slot *earlier, const struct op_slot *of)
{
    uint32_t const words = words_of(program);
    if (earlier->times != of->times || !same_ops(earlier->slot, of->slot)) return false;
    for (uint32_t w = 0; w < words; w++)
        if ((earlier->ranks[w] & of->ranks[w]) != 0) return false;
    for (uint32_t w = 0; w < words; w++) earlier->ranks[w] |= of->ranks[w];
    return true;
}

/* Adds the kinds of a template to a list whose end is returned. */
static struct op_slot **list_join(const struct program *program, struct op_slot **first,
                                  struct op_slot **end, struct op_slot *of)
{
    while (of != NULL) {
        struct op_slot *earlier = *first, *next = of->next;
        of->next = NULL;
        while (earlier != NULL && !joins(program, earlier, of)) earlier = earlier->next;
        if (earlier == NULL) {
            *end = of;
            end = &of->next;
        }
        of = next;
    }
    return end;
}

static bool has_rank(const struct op_slot *of, uint32_t role)
{
    return (of->ranks[role / BITS] >> role % BITS & 1) != 0;
}

static enum status ranks_write(struct arena *arena, const struct program *program,
                               struct op_slot *of, struct error *reterr)
{
    struct strbuf text = {.bytes = NULL};
    for (uint32_t role = 0, end = 0; role < program->role_count; role = end + 1) {
        end = role;
        if (!has_rank(of, role)) continue;
        while (end + 1 < program->role_count && has_rank(of, end + 1)) end++;
        strbuf_add(&text, text.size_bytes == 0 ? "%u" : ",%u", role);
        if (end > role) strbuf_add(&text, "-%u", end);
    }
    if (!text.failed) of->rank_text = arena_format(arena, "%s", text.bytes);
    strbuf_free(&text);
    if (of->rank_text != NULL) return STATUS_OK;
    return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the ops of a step");
}

enum status op_slots_find(struct arena *arena, const struct program *program,
                          struct op_slot **ret_first, struct error *reterr)
{
    struct search search = {.arena = arena, .program = program};
    void *memory = NULL;
    *ret_first = NULL;
    STATUS_TRY(
        arena_try(arena, program->template_count, sizeof(struct op_slot *), &memory, reterr));
    search.of_template = memory;
    STATUS_TRY(arena_try(arena, program->template_count, sizeof(uint64_t), &memory, reterr));
    search.times = memory;
    for (uint32_t role = 0; role < program->role_count; role++)
        STATUS_TRY(role_add(&search, role, reterr));
    struct op_slot **end = ret_first;
    for (uint32_t t = 0; t < program->template_count; t++)
        end = list_join(program, ret_first, end, search.of_template[t]);
    for (struct op_slot *of = *ret_first; of != NULL && program->role_count > 1; of = of->next)
        STATUS_TRY(ranks_write(arena, program, of, reterr));
    return STATUS_OK;
}
