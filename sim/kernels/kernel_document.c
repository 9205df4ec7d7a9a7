/* The document of a stack: its tables, its clocks, the kernels between matmuls, and factors of
 * collectives. */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/kernels/kernel_read.h"

enum { FUSIONS_MAX = 16 };

bool kernel_tables_alike(const struct kernel_table *one, const struct kernel_table *other)
{
    return one->family == other->family && one->format == other->format &&
           one->layout == other->layout && one->stored == other->stored &&
           one->result == other->result && one->cast == other->cast;
}

static bool has_kind(const struct kernel_stack *stack, const struct kernel_table *table)
{
    for (uint32_t i = 0; i < stack->table_count; i++)
        if (kernel_tables_alike(&stack->table[i], table)) return true;
    return false;
}

static enum status tables_read(struct kernel_reading *reading, struct json *list,
                               enum kernel_family family, struct kernel_stack *stack,
                               struct error *reterr)
{
    uint32_t const count = json_kind(list) == JSON_ARRAY ? json_count(list) : 0;
    if (count == 0 || count > KERNEL_TABLES_MAX - stack->table_count)
        return error_set(reterr, STATUS_INVALID, json_where(list),
                         "must be a list of tables, and a stack has %d of them at most",
                         KERNEL_TABLES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct json *object = json_at(list, i);
        struct kernel_table *table = &stack->table[stack->table_count];
        if (reading->only_own && json_kind(object) == JSON_OBJECT &&
            json_take(object, "of") != NULL)
            continue;
        *table = (struct kernel_table){.family = family};
        STATUS_TRY(kernel_table_read(reading, object, table, reterr));
        if (has_kind(stack, table))
            return error_set(reterr, STATUS_INVALID, json_where(object),
                             "a table of %s in %s like this one is there already",
                             kernel_family_name(family), format_name(table->format));
        stack->table_count++;
    }
    return STATUS_OK;
}

/* A share of HBM's rate for each kind of kernel. Casts, routers and permutations reach as much as
 * the rest where a file says nothing of them. */
static enum status shares_read(struct json *object, struct kernel_between *between,
                               struct error *reterr)
{
    const char *keys[WORK_FUNCTION_COUNT + 1] = {NULL};
    STATUS_TRY(json_as_object(object, reterr));
    for (uint32_t i = 0; i < WORK_FUNCTION_COUNT; i++) {
        struct json *value = NULL;
        int64_t ppm = 0;
        keys[i] = work_function_name((enum work_function)i);
        between->share_ppm[i] = between->share_ppm[WORK_FUNCTION_REST];
        if (i >= WORK_FUNCTION_CAST && (value = json_take(object, keys[i])) == NULL) continue;
        if (value == NULL) STATUS_TRY(json_need(object, keys[i], &value, reterr));
        STATUS_TRY(json_as_integer(value, 1, PPM_ONE, &ppm, reterr));
        between->share_ppm[i] = (uint32_t)ppm;
    }
    return json_end(object, keys, reterr);
}

/* Reads the members of "clock", and of "fp8" in it. */
static enum status share_read(struct json *object, uint32_t *ret_ppm, const char **ret_source,
                              struct error *reterr)
{
    struct json *value = NULL;
    int64_t ppm = 0;
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(json_need(object, "ppm", &value, reterr));
    STATUS_TRY(json_as_integer(value, KERNEL_CLOCK_LEAST_PPM, PPM_ONE, &ppm, reterr));
    *ret_ppm = (uint32_t)ppm;
    return kernel_text_read(object, "source", ret_source, reterr);
}

static enum status clock_read(struct json *object, struct kernel_stack *stack, struct error *reterr)
{
    static const char *const keys[] = {"ppm", "source", "fp8", NULL};
    static const char *const fp8_keys[] = {"ppm", "source", NULL};
    STATUS_TRY(share_read(object, &stack->clock_ppm, &stack->clock_source, reterr));
    struct json *fp8 = json_take(object, "fp8");
    if (fp8 != NULL) {
        STATUS_TRY(share_read(fp8, &stack->clock_fp8_ppm, &stack->clock_fp8_source, reterr));
        STATUS_TRY(json_end(fp8, fp8_keys, reterr));
    }
    return json_end(object, keys, reterr);
}

/* A factor that a file may leave out. */
static enum status factor_read(struct json *object, const char *key, uint32_t *ret_ppm,
                               struct error *reterr)
{
    struct json *value = json_take(object, key);
    int64_t ppm = 0;
    if (value == NULL) return STATUS_OK;
    STATUS_TRY(
        json_as_integer(value, KERNEL_FACTOR_LEAST_PPM, KERNEL_FACTOR_MOST_PPM, &ppm, reterr));
    *ret_ppm = (uint32_t)ppm;
    return STATUS_OK;
}

static enum status collectives_read(struct json *object, struct kernel_collectives *collectives,
                                    struct error *reterr)
{
    static const char *const keys[] = {"source", "latency_ppm", "byte_ppm", "nvls_ppm", NULL};
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(kernel_text_read(object, "source", &collectives->source, reterr));
    STATUS_TRY(factor_read(object, "latency_ppm", &collectives->latency_ppm, reterr));
    STATUS_TRY(factor_read(object, "byte_ppm", &collectives->byte_ppm, reterr));
    STATUS_TRY(factor_read(object, "nvls_ppm", &collectives->nvls_ppm, reterr));
    return json_end(object, keys, reterr);
}

static enum status between_read(struct json *object, struct kernel_between *between,
                                struct error *reterr)
{
    static const char *const keys[] = {"fusion", "source", "launch", "share_ppm", NULL};
    const char *names[FUSIONS_MAX + 1] = {NULL};
    struct json *value = NULL;
    uint32_t index = 0;
    uint64_t launch_ps = 0;
    for (uint32_t i = 0; i < FUSIONS_MAX && fusion_at(i) != NULL; i++)
        names[i] = fusion_at(i)->name;
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(json_need(object, "fusion", &value, reterr));
    STATUS_TRY(json_choice(value, names, &index, reterr));
    between->fusion = fusion_at(index);
    STATUS_TRY(kernel_text_read(object, "source", &between->source, reterr));
    STATUS_TRY(json_need(object, "launch", &value, reterr));
    STATUS_TRY(json_as_quantity(value, QUANTITY_DURATION, &launch_ps, reterr));
    between->launch_ps = (int64_t)launch_ps;
    STATUS_TRY(json_need(object, "share_ppm", &value, reterr));
    STATUS_TRY(shares_read(value, between, reterr));
    return json_end(object, keys, reterr);
}

/* Products for each expert are a software's own: it runs them one by one, in streams or as one.
 * Kernels between matmuls say which software it is, whatever a file calls its stack. */
static bool is_of_other_software(const struct kernel_table *table, const struct kernel_stack *from,
                                 const struct kernel_stack *stack)
{
    return table->family == KERNEL_GROUPED && from->between.fusion != stack->between.fusion;
}

/* The tables of another stack of which it has none of its own. On another chip their shares are
 * taken for its shares. */
static enum status others_take(struct kernel_reading *reading, struct json *value,
                               struct kernel_stack *stack, struct error *reterr)
{
    const char *name = NULL;
    const struct kernel_stack *other = NULL;
    STATUS_TRY(json_as_string(value, &name, reterr));
    STATUS_TRY(reading->find(reading, name, false, json_where(value), &other, reterr));
    bool const is_here = name_same(other->chip, stack->chip);
    if (is_here && stack->clock_ppm == 0) {
        stack->clock_ppm = other->clock_ppm;
        stack->clock_source = other->clock_source;
        stack->clock_fp8_ppm = other->clock_fp8_ppm;
        stack->clock_fp8_source = other->clock_fp8_source;
    }
    for (uint32_t i = 0; i < other->table_count; i++) {
        struct kernel_table *table = &stack->table[stack->table_count];
        if (has_kind(stack, &other->table[i])) continue;
        if (is_of_other_software(&other->table[i], other, stack)) continue;
        if (stack->table_count == KERNEL_TABLES_MAX)
            return error_set(reterr, STATUS_INVALID, json_where(value),
                             "a stack has %d tables at most", KERNEL_TABLES_MAX);
        *table = other->table[i];
        if (table->of == NULL) table->of = name;
        table->is_carried_over = reading->is_own_file;
        if (!is_here && table->derived == NULL) table->derived = "shares of another chip";
        stack->table_count++;
    }
    return STATUS_OK;
}

static enum status families_read(struct kernel_reading *reading, struct json *document,
                                 struct kernel_stack *stack, struct error *reterr)
{
    enum { OWN_KEYS = 8 };
    const char *keys[KERNEL_FAMILIES + OWN_KEYS + 1] = {
        "podsim_kernels", "chip", "stack", "title", "tables_of", "clock", "between", "collectives"};
    struct json *collectives = json_take(document, "collectives");
    struct json *between = json_take(document, "between");
    struct json *clock = json_take(document, "clock");
    for (uint32_t f = 0; f < KERNEL_FAMILIES; f++) {
        keys[OWN_KEYS + f] = kernel_family_name((enum kernel_family)f);
        struct json *list = json_take(document, keys[OWN_KEYS + f]);
        if (list != NULL)
            STATUS_TRY(tables_read(reading, list, (enum kernel_family)f, stack, reterr));
    }
    if (clock != NULL) STATUS_TRY(clock_read(clock, stack, reterr));
    if (between != NULL) STATUS_TRY(between_read(between, &stack->between, reterr));
    if (collectives != NULL) STATUS_TRY(collectives_read(collectives, &stack->collectives, reterr));
    struct json *others = json_take(document, "tables_of");
    if (others != NULL && !reading->only_own)
        STATUS_TRY(others_take(reading, others, stack, reterr));
    STATUS_TRY(json_end(document, keys, reterr));
    if (stack->table_count != 0 || collectives != NULL || reading->only_own) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(document),
                     "a stack has a list of tables, such as \"%s\"",
                     kernel_family_name(KERNEL_MATMUL));
}

enum status kernel_document_read(struct kernel_reading *reading, struct json *document,
                                 struct kernel_stack *ret_stack, struct error *reterr)
{
    struct json *value = NULL;
    int64_t version = 0;
    *ret_stack = (struct kernel_stack){.table_count = 0};
    STATUS_TRY(json_need(document, "podsim_kernels", &value, reterr));
    STATUS_TRY(json_as_integer(value, KERNEL_FILE_VERSION, KERNEL_FILE_VERSION, &version, reterr));
    STATUS_TRY(kernel_text_read(document, "chip", &ret_stack->chip, reterr));
    STATUS_TRY(kernel_text_read(document, "stack", &ret_stack->name, reterr));
    STATUS_TRY(kernel_text_read(document, "title", &ret_stack->title, reterr));
    return families_read(reading, document, ret_stack, reterr);
}
