#include "sim/kernels/kernels.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/kernels/kernel_read.h"
#include "sim/kernels/kernel_stacks.h"

enum { STACKS_MAX = 128, NAME_BYTES = 96 };

const char *kernel_stack_name_at(uint32_t index)
{
    return index < kernel_stacks_count ? kernel_stacks[index].name : NULL;
}

/* NULL: none has the name. */
static const struct kernel_stack *stack_named(const char *name)
{
    for (unsigned i = 0; i < kernel_stacks_count; i++)
        if (name_same(kernel_stacks[i].name, name)) return kernel_stacks[i].stack;
    return NULL;
}

static const struct kernel_stack *stack_of(const char *chip, const char *stack)
{
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "%s.%s", chip, stack);
    return stack_named(name);
}

bool kernel_stack_is_shipped(const char *chip, const char *stack)
{
    return stack != NULL && stack_of(chip, stack) != NULL;
}

/* A stack that a document names. */
static enum status shipped_find(struct kernel_reading *reading, const char *name, bool only_own,
                                const char *where, const struct kernel_stack **ret_stack,
                                struct error *reterr)
{
    const char *names[STACKS_MAX + 1] = {NULL};
    const struct kernel_stack *shipped = stack_named(name);
    void *memory = NULL;
    for (uint32_t i = 0; i < STACKS_MAX; i++) names[i] = kernel_stack_name_at(i);
    if (shipped == NULL)
        return error_set(reterr, STATUS_NOT_FOUND, where, "no kernels \"%.80s\" are shipped%s",
                         name, name_offer(name, names, "; the nearest are \"", "\"", NULL).text);
    STATUS_TRY(arena_try(reading->arena, 1, sizeof **ret_stack, &memory, reterr));
    struct kernel_stack *stack = memory;
    *stack = *shipped;
    stack->table_count = 0;
    for (uint32_t t = 0; t < shipped->table_count; t++)
        if (!only_own || shipped->table[t].of == NULL)
            stack->table[stack->table_count++] = shipped->table[t];
    *ret_stack = stack;
    return STATUS_OK;
}

enum status kernel_stack_read(struct arena *arena, struct json *document,
                              struct kernel_stack *ret_stack, struct error *reterr)
{
    struct kernel_reading reading = {.arena = arena, .find = shipped_find, .is_own_file = true};
    STATUS_TRY(kernel_document_read(&reading, document, ret_stack, reterr));
    ret_stack->is_own_file = true;
    return STATUS_OK;
}

enum status kernel_stack_find(const char *name, const char *chip, const char *where,
                              struct kernel_stack *ret_stack, struct error *reterr)
{
    const char *names[STACKS_MAX + 1] = {NULL};
    const struct kernel_stack *const shipped = stack_of(chip, name);
    uint32_t count = 0;
    if (shipped != NULL) {
        *ret_stack = *shipped;
        return STATUS_OK;
    }
    for (unsigned i = 0; i < kernel_stacks_count && count < STACKS_MAX; i++) {
        const char *rest = name_after(kernel_stacks[i].name, chip);
        if (rest == NULL || rest[0] != '.') continue;
        names[count++] = rest + 1;
    }
    if (count == 0)
        return error_set(reterr, STATUS_NOT_FOUND, where,
                         "no kernels of %s are shipped; a file of your own may have some, and "
                         "without a stack the profile has constants",
                         chip);
    return error_set(reterr, STATUS_NOT_FOUND, where, "%s has no stack \"%.40s\"%s", chip, name,
                     name_offer(name, names, "; the nearest is \"", "\"", NULL).text);
}

enum status kernel_stack_find_full(struct arena *arena, const char *name, const char *where,
                                   struct kernel_stack *ret_stack, struct error *reterr)
{
    const char *dot = strchr(name, '.');
    if (dot == NULL)
        return error_set(reterr, STATUS_INVALID, where,
                         "kernels are named by chip and stack, such as \"%s\"; `podsim list "
                         "kernels` has the names",
                         kernel_stack_name_at(0));
    if (dot == name)
        return error_set(reterr, STATUS_INVALID, where,
                         "no chip stands before the dot, and a file ends with .json; `podsim list "
                         "kernels` has names such as \"%s\"",
                         kernel_stack_name_at(0));
    const char *chip = arena_format(arena, "%.*s", (int)(dot - name), name);
    if (chip == NULL) return error_no_memory(reterr, "");
    return kernel_stack_find(dot + 1, chip, where, ret_stack, reterr);
}
