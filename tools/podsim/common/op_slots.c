#include "tools/podsim/common/op_slots.h"

#include <stdbool.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/program/program.h"

/* A text may number its layers as it likes; numbers of the first alone are listed. */
enum { BITS = 64, LAYERS_MAX = 1 << 16, PLACES = 1 << 30 };

struct search {
    struct arena *arena;
    const struct program *program;
    uint32_t *alike;              /* [template]: the first one with the same compute ops. */
    struct op_slot **of_template; /* [template]: kinds that were found, by the first role. */
    uint64_t *times;              /* [template]: slots of one role, at the first that is alike. */
    uint32_t layer_end, seen;
};

static uint32_t words_of(uint32_t bits)
{
    return (bits + BITS - 1) / BITS;
}

static void bit_set(uint64_t *words, uint32_t bit)
{
    words[bit / BITS] |= UINT64_C(1) << bit % BITS;
}

static bool bit_is_set(const uint64_t *words, uint32_t bit)
{
    return (words[bit / BITS] >> bit % BITS & 1) != 0;
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

static enum status bits_take(struct search *search, uint32_t bits, uint64_t **ret_words,
                             struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(search->arena, words_of(bits), sizeof **ret_words, &memory, reterr));
    *ret_words = memory;
    return STATUS_OK;
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
        (*at)->place = INT64_MAX;
        (*at)->seen = search->seen++;
        STATUS_TRY(bits_take(search, search->program->role_count, &(*at)->ranks, reterr));
        STATUS_TRY(bits_take(search, search->layer_end, &(*at)->layers, reterr));
    }
    bit_set((*at)->ranks, role);
    return STATUS_OK;
}

/* A layer of the model; modules for multi-token prediction have numbers of their own. */
static bool is_layer(const struct program_block *block)
{
    return block->layer_first >= 0 && block->layer_first < LAYERS_MAX &&
           name_same(block->name, "layer");
}

/* Of a role: the first slot of each phase that is a layer. */
struct layers_first {
    uint32_t block[PROGRAM_PHASE_COUNT];
};

static struct layers_first layers_first_of(const struct program_role *role)
{
    struct layers_first first;
    for (uint32_t i = 0; i < PROGRAM_PHASE_COUNT; i++) first.block[i] = UINT32_MAX;
    for (uint32_t b = role->block_count; b-- > 0;)
        if (is_layer(&role->block[b])) first.block[role->block[b].phase] = b;
    return first;
}

/* What is no layer comes before the layers of its phase where its role has it first, or, in a role
 * without layers, where it is the embedding, with which the backward pass ends. */
static int64_t place_of(const struct program_role *role, uint32_t index,
                        const struct layers_first *layers)
{
    const struct program_block *const block = &role->block[index];
    int64_t const phase = (int64_t)block->phase * 2 * PLACES + PLACES;
    bool const backward =
        block->phase == PROGRAM_PHASE_BACKWARD || block->phase == PROGRAM_PHASE_WEIGHT;
    uint32_t const first = layers->block[block->phase];
    if (is_layer(block) && backward) return phase - block->layer_first - 1;
    if (is_layer(block)) return phase + block->layer_first;
    bool const is_embedding = name_same(block->name, "embedding");
    bool const before = first == UINT32_MAX ? is_embedding != backward : index < first;
    return before ? phase - PLACES : phase + PLACES - 1;
}

/* The kind that this role's slots of a template are of. */
static struct op_slot *kind_of(const struct search *search, uint32_t alike)
{
    struct op_slot *of = search->of_template[alike];
    while (of->times != search->times[alike]) of = of->next;
    return of;
}

static enum status role_add(struct search *search, uint32_t index, struct error *reterr)
{
    const struct program *program = search->program;
    const struct program_role *role = &program->roles[index];
    struct layers_first const layers = layers_first_of(role);
    memset(search->times, 0, program->template_count * sizeof *search->times);
    for (uint32_t b = 0; b < role->block_count; b++)
        search->times[search->alike[role->block[b].template_index]] += role->block[b].repeat;
    for (uint32_t b = 0; b < role->block_count; b++) {
        const struct program_block *const block = &role->block[b];
        uint32_t const alike = search->alike[block->template_index];
        if (block->repeat == 0 || !computes(&program->templates[alike])) continue;
        STATUS_TRY(slot_add(search, alike, index, reterr));
        struct op_slot *const of = kind_of(search, alike);
        int64_t const place = place_of(role, b, &layers);
        if (place < of->place) of->place = place;
        for (uint32_t i = 0; i < block->repeat && is_layer(block); i++) {
            int64_t const layer = block->layer_first + block->layer_step * (int64_t)i;
            if (layer >= 0 && layer < search->layer_end) bit_set(of->layers, (uint32_t)layer);
        }
    }
    return STATUS_OK;
}

static bool comes_before(const struct op_slot *one, const struct op_slot *other)
{
    return one->place != other->place ? one->place < other->place : one->seen < other->seen;
}

/* Adds the kinds of a template to a list that is in the order of the step. */
static void kinds_insert(struct op_slot **first, struct op_slot *of)
{
    while (of != NULL) {
        struct op_slot **at = first, *const next = of->next;
        while (*at != NULL && comes_before(*at, of)) at = &(*at)->next;
        of->next = *at;
        *at = of;
        of = next;
    }
}

/* "0-2,5" */
static enum status bits_write(struct arena *arena, const uint64_t *words, uint32_t bits,
                              const char **ret_text, struct error *reterr)
{
    struct strbuf text = {.bytes = NULL};
    for (uint32_t bit = 0, end = 0; bit < bits; bit = end + 1) {
        end = bit;
        if (!bit_is_set(words, bit)) continue;
        while (end + 1 < bits && bit_is_set(words, end + 1)) end++;
        strbuf_add(&text, text.size_bytes == 0 ? "%u" : ",%u", bit);
        if (end > bit) strbuf_add(&text, "-%u", end);
    }
    if (!text.failed) *ret_text = text.bytes == NULL ? NULL : arena_format(arena, "%s", text.bytes);
    bool const failed = text.failed || (text.bytes != NULL && *ret_text == NULL);
    strbuf_free(&text);
    return failed ? error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the ops of a step")
                  : STATUS_OK;
}

/* Whether another template has slots of the same name, but other ops. */
static bool has_namesake(const struct op_slot *first, const struct op_slot *of)
{
    for (const struct op_slot *other = first; other != NULL; other = other->next)
        if (other->slot != of->slot && name_same(other->slot->name, of->slot->name)) return true;
    return false;
}

static enum status texts_write(const struct search *search, struct op_slot *first,
                               struct error *reterr)
{
    const struct program *program = search->program;
    for (struct op_slot *of = first; of != NULL; of = of->next) {
        if (program->role_count > 1)
            STATUS_TRY(
                bits_write(search->arena, of->ranks, program->role_count, &of->rank_text, reterr));
        if (has_namesake(first, of))
            STATUS_TRY(
                bits_write(search->arena, of->layers, search->layer_end, &of->layer_text, reterr));
    }
    return STATUS_OK;
}

/* One past the last layer. */
static uint32_t layer_end_of(const struct program *program)
{
    int64_t end = 0;
    for (uint32_t r = 0; r < program->role_count; r++)
        for (uint32_t b = 0; b < program->roles[r].block_count; b++) {
            const struct program_block *const block = &program->roles[r].block[b];
            if (!is_layer(block) || block->repeat == 0) continue;
            int64_t const last =
                block->layer_first + (int64_t)block->layer_step * (block->repeat - 1);
            if (block->layer_first >= end) end = block->layer_first + 1;
            if (last >= end) end = last + 1;
        }
    return end < LAYERS_MAX ? (uint32_t)end : LAYERS_MAX;
}

enum status op_slots_find(struct arena *arena, const struct program *program,
                          struct op_slot **ret_first, struct error *reterr)
{
    struct search search = {.arena = arena, .program = program, .layer_end = layer_end_of(program)};
    uint32_t const count = program->template_count;
    void *memory = NULL;
    *ret_first = NULL;
    STATUS_TRY(arena_try(arena, count, sizeof(struct op_slot *), &memory, reterr));
    search.of_template = memory;
    STATUS_TRY(arena_try(arena, count, sizeof *search.times, &memory, reterr));
    search.times = memory;
    STATUS_TRY(arena_try(arena, count, sizeof *search.alike, &memory, reterr));
    search.alike = memory;
    for (uint32_t t = 0; t < count; t++)
        while (!same_ops(&program->templates[search.alike[t]], &program->templates[t]))
            search.alike[t]++;
    for (uint32_t role = 0; role < program->role_count; role++)
        STATUS_TRY(role_add(&search, role, reterr));
    for (uint32_t t = 0; t < count; t++) kinds_insert(ret_first, search.of_template[t]);
    return texts_write(&search, *ret_first, reterr);
}
