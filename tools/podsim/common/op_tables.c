#include "tools/podsim/common/op_tables.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/kernels/kernels.h"

/* Words of tables other than those of products. Before the word stands the format of keys and
 * values, or of the experts' weights. */
static const char *const family_words[KERNEL_FAMILIES] = {[KERNEL_BATCHED] = "batched",
                                                          [KERNEL_ATTENTION] = "prefill",
                                                          [KERNEL_ATTENTION_BACKWARD] = "backward",
                                                          [KERNEL_FULL_ATTENTION] = "full",
                                                          [KERNEL_LATENT_ATTENTION] =
                                                              "latent prefill",
                                                          [KERNEL_DECODE] = "decode",
                                                          [KERNEL_LATENT_DECODE] = "latent decode",
                                                          [KERNEL_EXPERTS] = "experts"};

static void add(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t size, const char *format, ...)
{
    size_t const used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

static const char *function_of(const struct work *work)
{
    return work_function_name((enum work_function)(work->kernel - WORK_KERNEL_FUNCTIONS));
}

/* "matmul bf16 NT into fp32, scales by tensor"; "decode bf16 of fp8" */
static void table_add(const struct kernel_table *table, char text[OP_TABLES_LIST_BYTES])
{
    size_t const size = OP_TABLES_LIST_BYTES;
    add(text, size, "%s %s", kernel_family_name(table->family), format_name(table->format));
    if (kernel_is_of_products(table->family))
        add(text, size, " %s into %s", kernel_layout_name(table->layout),
            format_name(table->result));
    else if (table->stored != table->format)
        add(text, size, " of %s", format_name(table->stored));
    if (kernel_is_of_products(table->family) && table->cast != WORK_CAST_WITHIN)
        add(text, size, ", scales by %s", work_cast_name(table->cast));
}

/* "m 8192, n 1024-1536, k 8192" */
static void row_add(const struct kernel_table *table, const struct work_call *call,
                    char text[OP_TABLES_LIST_BYTES])
{
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        uint32_t low = 0, high = 0;
        kernel_table_edges(table, s, call->side[s], &low, &high);
        add(text, OP_TABLES_LIST_BYTES, "%s%s %u", s == 0 ? "" : ", ",
            kernel_side_name(table->family, s), low);
        if (high != low) add(text, OP_TABLES_LIST_BYTES, "-%u", high);
    }
}

/* "4096 of 8 x 4 x 128" are tokens of heads of keys by queries for each by width; "16 of 128 x 768
 * x 2048" are tokens of experts by columns by the model's; "128 of 32 x 512 x 128" are products of
 * a batch. */
static void sides_add(const struct work_call *call, char *text, size_t size)
{
    const uint64_t *side = call->is_batched ? call->whole : call->side;
    unsigned long long const a = side[0], b = side[1], c = side[2], d = side[3];
    if (call->family == KERNEL_MATMUL && !call->is_batched)
        add(text, size, "%llu x %llu x %llu", a, b, c);
    else
        add(text, size, "%llu of %llu x %llu x %llu", a, b, c, d);
}

static void calls_add(const struct chip *chip, const struct work *work,
                      const struct work_call *calls, struct op_tables *tables)
{
    for (uint32_t i = 0; i < tables->call_count; i++) {
        const struct work_call *call = &calls[i];
        const struct kernel_table *table =
            chip->kernels.stack == NULL || work->kernel == WORK_KERNEL_NONE
                ? NULL
                : kernel_table_of_call(chip->kernels.stack, work->math_format, call);
        const char *const before = i == 0 ? "" : "; ";
        uint64_t const times = call->count * call->chunk_count;
        add(tables->calls, sizeof tables->calls, "%s", before);
        sides_add(call, tables->calls, sizeof tables->calls);
        if (call->family == KERNEL_MATMUL)
            add(tables->calls, sizeof tables->calls, " %s", kernel_layout_name(call->layout));
        if (times > 1)
            add(tables->calls, sizeof tables->calls, ", %llu times", (unsigned long long)times);
        tables->products += times;
        if (tables->kernels.table == NULL || table == NULL) continue;
        add(tables->table, sizeof tables->table, "%s", before);
        table_add(table, tables->table);
        add(tables->row, sizeof tables->row, "%s", before);
        row_add(table, call, tables->row);
    }
}

/* Another layout of a later product is said, too: both gradients of a router are one op. */
static void by_add(const struct chip *chip, const struct work *work, const struct work_call *calls,
                   struct op_tables *tables)
{
    const struct kernel_table *table = tables->kernels.table;
    const char *name = chip->kernels.stack->name;
    enum kernel_layout last = KERNEL_TN;
    if (!kernel_is_of_products(table->family)) {
        add(tables->by, sizeof tables->by, "%s %s %s", name, format_name(table->stored),
            family_words[table->family]);
        return;
    }
    add(tables->by, sizeof tables->by, "%s %s %s", name, format_name(table->format),
        kernel_layout_name(table->layout));
    if (table->result != FORMAT_BF16)
        add(tables->by, sizeof tables->by, " %s", format_name(table->result));
    last = table->layout;
    for (uint32_t i = 1; i < tables->call_count; i++) {
        const struct kernel_table *other =
            kernel_table_of_call(chip->kernels.stack, work->math_format, &calls[i]);
        if (other == NULL || other->layout == last) continue;
        last = other->layout;
        add(tables->by, sizeof tables->by, ", %s", kernel_layout_name(last));
        if (other->result != FORMAT_BF16)
            add(tables->by, sizeof tables->by, " %s", format_name(other->result));
    }
    if (table->family == KERNEL_GROUPED) add(tables->by, sizeof tables->by, " grouped");
}

/* Kernels of functions, which have a share of HBM's rate by their kind. */
static void between_find(const struct chip *chip, const struct work *work, struct op_tables *tables)
{
    const struct kernel_stack *stack = chip->kernels.stack;
    unsigned long long const count = work->kernel_count;
    tables->share_ppm = kernel_between_ppm(stack, work);
    add(tables->by, sizeof tables->by, "%s %s, ", stack->name, function_of(work));
    if (count == 0)
        add(tables->by, sizeof tables->by, "launched with others");
    else
        add(tables->by, sizeof tables->by, "%llu kernel%s", count, count == 1 ? "" : "s");
    add(tables->table, sizeof tables->table, "between, %s", stack->between.fusion->name);
    add(tables->row, sizeof tables->row, "%s", function_of(work));
}

/* The stack whose file has the numbers. */
static void table_of_add(const struct kernel_stack *stack, const char *of, struct op_tables *tables)
{
    if (of != NULL)
        add(tables->table_of, sizeof tables->table_of, "%s", of);
    else
        add(tables->table_of, sizeof tables->table_of, "%s.%s%s", stack->chip, stack->name,
            stack->is_own_file ? ", a file" : "");
}

void op_tables_find(const struct chip *chip, const struct work *work, struct op_tables *ret_tables)
{
    const struct kernel_stack *stack = chip->kernels.stack;
    struct work_call calls[WORK_MATMULS_MAX] = {{0}};
    bool const is_between = kernel_is_between(stack, work);
    *ret_tables = (struct op_tables){
        .kernels = kernel_of_work(stack, chip_cores_apart(chip), work),
        .call_count = work_calls(stack, work, calls),
    };
    ret_tables->call = calls[0];
    const struct kernel_table *table = ret_tables->kernels.table;
    ret_tables->is_of_stack = is_between || kernel_is_within(stack, work) || table != NULL;
    if (table != NULL) ret_tables->share_ppm = ret_tables->kernels.share_ppm;
    if (ret_tables->call_count > 0)
        sides_add(&calls[0], ret_tables->sides, sizeof ret_tables->sides);
    if (ret_tables->call_count > 1 && calls[0].family == KERNEL_MATMUL)
        add(ret_tables->sides, sizeof ret_tables->sides, " +%u", ret_tables->call_count - 1);
    calls_add(chip, work, calls, ret_tables);
    if (is_between) between_find(chip, work, ret_tables);
    if (table != NULL) by_add(chip, work, calls, ret_tables);
    if (kernel_is_within(stack, work))
        add(ret_tables->by, sizeof ret_tables->by, "%s, in %s", stack->name,
            work->kernel == WORK_KERNEL_WITHIN ? "experts" : "attention");
    else if (ret_tables->is_of_stack)
        table_of_add(stack, table == NULL ? NULL : table->of, ret_tables);
    else
        add(ret_tables->by, sizeof ret_tables->by, "%s", stack == NULL ? "tiles" : "profile");
}

void op_tables_share(const struct chip *chip, const struct work *kernel, struct op_tables *tables)
{
    static struct op_tables of; /* Until it is copied. */
    op_tables_find(chip, kernel, &of);
    tables->kernels.is_outside = of.kernels.is_outside;
    memcpy(tables->table, of.table, sizeof of.table);
    memcpy(tables->row, of.row, sizeof of.row);
    memcpy(tables->table_of, of.table_of, sizeof of.table_of);
}
