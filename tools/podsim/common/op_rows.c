#include "tools/podsim/common/op_rows.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/base/units.h"
#include "sim/kernels/kernel_of_work.h"
#include "sim/machine/machine.h"
#include "sim/program/program.h"
#include "sim/report/column_table.h"
#include "sim/report/table.h"
#include "sim/resource/compute.h"
#include "tools/podsim/common/op_slots.h"
#include "tools/podsim/common/op_tables.h"

enum { REMARK_BYTES = 80, NAME_COLUMNS = 22 };

struct op_row {
    const struct op_slot *of;
    const struct program_op *op;
};

/* What bounds an op on the chip by itself. */
static const char *bound_text(const struct compute_time *time)
{
    int64_t most_ps = time->mxu_ps;
    const char *bound = "math";
    if (time->hbm_ps > most_ps) bound = "HBM", most_ps = time->hbm_ps;
    if (time->vpu_ps > most_ps) bound = "vector", most_ps = time->vpu_ps;
    if (time->vmem_ps > most_ps) bound = "cache", most_ps = time->vmem_ps;
    return most_ps == 0 ? "launch" : bound;
}

#define OPS(X)                                                                                     \
    X(SLOT, "slot", WORDS(row->of->slot->name), HIDDEN)                                            \
    X(RANKS, "pipeline_ranks", WHERE(row->of->rank_text != NULL, WORDS(row->of->rank_text)),       \
      HIDDEN)                                                                                      \
    X(LAYERS, "layers", WHERE(row->of->layer_text != NULL, WORDS(row->of->layer_text)), HIDDEN)    \
    X(OP, "op", WORDS(row->op->name), SHOWN(NULL, "op", -NAME_COLUMNS, column_words))              \
    X(TIMES, "times", WHOLE(row->of->times), SHOWN(NULL, "times", 6, column_count))                \
    X(BATCH, "batch", WHERE(call.is_batched, WHOLE(call.whole[KERNEL_BATCH])), HIDDEN)             \
    X(M, "m", WHERE(is_product, WHOLE(product[KERNEL_M])), HIDDEN)                                 \
    X(N, "n", WHERE(is_product, WHOLE(product[KERNEL_N])), HIDDEN)                                 \
    X(K, "k", WHERE(is_product, WHOLE(product[KERNEL_K])), HIDDEN)                                 \
    X(TOKENS, "tokens", WHERE(has_tokens, WHOLE(call.side[KERNEL_TOKENS])), HIDDEN)                \
    X(HEADS, "heads", WHERE(attends, WHOLE(call.side[KERNEL_HEADS])), HIDDEN)                      \
    X(GROUP, "group", WHERE(attends, WHOLE(call.side[KERNEL_GROUP])), HIDDEN)                      \
    X(WIDTH, "width", WHERE(attends, WHOLE(call.side[KERNEL_WIDTH])), HIDDEN)                      \
    X(EXPERTS, "experts", WHERE(is_experts, WHOLE(call.side[KERNEL_EXPERT])), HIDDEN)              \
    X(COLUMNS, "columns", WHERE(is_experts, WHOLE(call.side[KERNEL_COLUMNS])), HIDDEN)             \
    X(MODEL, "model", WHERE(is_experts, WHOLE(call.side[KERNEL_MODEL])), HIDDEN)                   \
    X(PRODUCTS, "products", WHERE(is_product, WHOLE(of.products)),                                 \
      SHOWN(NULL, "count", 6, column_count))                                                       \
    X(CALLS, "calls", WHERE(of.call_count > 0, WORDS(of.calls)), HIDDEN)                           \
    X(SIDES, NULL, WHERE(of.call_count > 0, WORDS(of.sides)),                                      \
      SHOWN(NULL, "m x n x k", 22, column_words))                                                  \
    X(TIME, "time_s", SECONDS(time.duration_ps), SHOWN(NULL, "each", 10, column_seconds))          \
    X(ASYNC, "async_s", WHERE(time.async_ps != 0, SECONDS(time.async_ps)), HIDDEN)                 \
    X(BOUND, "bound", WHERE(!is_within, WORDS(bound_text(&time))),                                 \
      SHOWN(NULL, "bound", 7, column_words))                                                       \
    X(SHARE, "share", WHERE(of.share_ppm != 0, REAL(of.share_ppm / (double)PPM_ONE)),              \
      SHOWN(NULL, "share", 7, column_share))                                                       \
    X(SOURCE, "source", WORDS(of.by), SHOWN(NULL, "time by", -16, column_words))                   \
    X(STACK, "stack", WORDS(of.is_of_stack ? chip->kernels.stack->name : NULL), HIDDEN)            \
    X(TABLE, "table", WHERE(of.table[0] != '\0', WORDS(of.table)), HIDDEN)                         \
    X(ROW, "row", WHERE(of.row[0] != '\0', WORDS(of.row)), HIDDEN)                                 \
    X(OUTSIDE, "outside", WHERE(of.table[0] != '\0', FLAG(is_outside)), HIDDEN)                    \
    X(TABLE_OF, "table_of", WHERE(of.table_of[0] != '\0', WORDS(of.table_of)), HIDDEN)             \
    X(DERIVED, "derived",                                                                          \
      WHERE(kernels.table != NULL && kernels.table->derived != NULL,                               \
            WORDS(kernels.table->derived)),                                                        \
      HIDDEN)                                                                                      \
    X(OTHER_LAYOUT, "other_layout",                                                                \
      WHERE(kernels.table != NULL, FLAG(kernels.is_of_other_layout)), HIDDEN)                      \
    X(OTHER_MASK, "other_mask", WHERE(kernels.table != NULL, FLAG(kernels.is_of_other_mask)),      \
      HIDDEN)                                                                                      \
    X(SINGLE_PRODUCTS, "single_products",                                                          \
      WHERE(call.is_batched &&kernels.table != NULL, FLAG(kernels.is_of_single)), HIDDEN)          \
    X(CAST, "cast",                                                                                \
      WHERE(is_product &&call.cast != WORK_CAST_WITHIN, WORDS(work_cast_name(call.cast))), HIDDEN) \
    X(OTHER_SCALES, "other_scales",                                                                \
      WHERE(is_product &&call.cast != WORK_CAST_WITHIN, FLAG(kernels.is_of_other_scales)), HIDDEN) \
    X(REMARK, NULL, WHERE(remark[0] != '\0', WORDS(remark)), SHOWN(NULL, "", -24, column_words))

enum { OPS(COLUMN_NAME) OPS_TOTAL };
static const struct column op_columns[] = {OPS(COLUMN_ENTRY)};
static const uint8_t op_screen[] = {OP, TIMES, PRODUCTS, SIDES, TIME, BOUND, SHARE, SOURCE, REMARK};

static void remark_add(char text[REMARK_BYTES], const char *remark)
{
    size_t const used = strlen(text);
    if (remark[0] == '\0') return;
    (void)snprintf(text + used, REMARK_BYTES - used, "%s%s", used == 0 ? "" : ", ", remark);
}

/* "carried over, outside the grid, derived: other layout": whose the table is, and how the op was
 * looked up in it. */
static void table_remark_add(char text[REMARK_BYTES], const struct work_kernels *kernels)
{
    if (kernels->table == NULL) return;
    const char *how = kernels->is_of_other_layout   ? "derived: other layout"
                      : kernels->is_of_single       ? "derived: single products"
                      : kernels->is_of_other_mask   ? "derived: other mask"
                      : kernels->is_of_other_scales ? "derived: other scales"
                      : kernels->is_derived         ? "derived"
                                                    : "";
    remark_add(text, kernels->table->is_carried_over ? "carried over" : "");
    remark_add(text, kernels->is_outside ? "outside the grid" : "");
    remark_add(text, how);
}

/* "outside the grid, async 2.30 ms": the table, and what start and end of collectives have of the
 * time of the op. */
static void remark_text(char text[REMARK_BYTES], const struct work_kernels *kernels,
                        int64_t async_ps)
{
    char async[REMARK_BYTES] = "";
    if (async_ps != 0)
        (void)snprintf(async, sizeof async, "async %s",
                       table_seconds(units_seconds(async_ps)).text);
    text[0] = '\0';
    table_remark_add(text, kernels);
    remark_add(text, async);
}

/* The work of the kernel that has the time of an op within it; NULL: the slot has none. */
static const struct work *around_find(const struct op_rows *rows, const struct op_row *row,
                                      const struct work *within)
{
    enum work_kernel const kernel =
        within->kernel == WORK_KERNEL_WITHIN ? WORK_KERNEL_EXPERTS_IN : WORK_KERNEL_ATTENTION;
    const struct program_template *slot = row->of->slot;
    for (uint32_t i = 0; i < slot->op_count; i++) {
        if (slot->op[i].kind != PROGRAM_OP_COMPUTE) continue;
        const struct work *work = &rows->program->works[slot->op[i].index];
        if (work->kernel == kernel) return work;
    }
    return NULL;
}

static void op_find(const void *owner, uint32_t index, struct column_value *ret_values)
{
    const struct op_rows *rows = owner;
    const struct op_row *row = &rows->row[index];
    const struct chip *chip = &rows->machine->chip;
    const struct work *work = &rows->program->works[row->op->index];
    static struct op_tables of; /* Until the row is written. */
    static char remark[REMARK_BYTES];
    op_tables_find(chip, work, &of);
    struct work_call const call = of.call;
    struct work_kernels const kernels = of.kernels;
    bool const is_product = of.call_count > 0 && (call.family == KERNEL_MATMUL || call.is_batched);
    const uint64_t *product = call.is_batched ? call.whole + KERNEL_EACH : call.side;
    bool const is_experts = of.call_count > 0 && call.family == KERNEL_EXPERTS;
    bool const is_within = kernel_is_within(chip->kernels.stack, work);
    bool const has_tokens = of.call_count > 0 && !is_product;
    bool const attends = has_tokens && !is_experts;
    struct compute_time const time = compute_time(chip, work, PPM_ONE, PPM_ONE);
    const struct work *around = is_within ? around_find(rows, row, work) : NULL;
    if (around != NULL) op_tables_share(chip, around, &of);
    bool const is_outside = of.kernels.is_outside;
    remark_text(remark, &kernels, time.async_ps);
    OPS(COLUMN_FIND)
}

static const struct column_table op_table = {
    .columns = op_columns,
    .count = OPS_TOTAL,
    .screen = COLUMN_LINE(op_columns, op_screen),
    .find = op_find,
};

enum status op_rows_find(struct arena *arena, struct op_rows *rows, struct error *reterr)
{
    struct op_slot *first = NULL;
    uint64_t most = 0;
    void *memory = NULL;
    STATUS_TRY(op_slots_find(arena, rows->program, &first, reterr));
    for (const struct op_slot *of = first; of != NULL; of = of->next) most += of->slot->op_count;
    STATUS_TRY(arena_try(arena, most, sizeof *rows->row, &memory, reterr));
    rows->row = memory;
    for (const struct op_slot *of = first; of != NULL; of = of->next)
        for (uint32_t i = 0; i < of->slot->op_count; i++)
            if (of->slot->op[i].kind == PROGRAM_OP_COMPUTE)
                rows->row[rows->count++] = (struct op_row){of, &of->slot->op[i]};
    return STATUS_OK;
}

static void numbers_add(const char *what, const char *numbers, struct strbuf *text)
{
    if (numbers == NULL) return;
    strbuf_add(text, ", %s%s %s", what, strpbrk(numbers, "-,") == NULL ? "" : "s", numbers);
}

/* "layer forward, layers 3-60, pipeline ranks 0-3" */
static void title_add(const struct op_slot *of, struct strbuf *text)
{
    strbuf_add(text, "%s", of->slot->name);
    numbers_add("layer", of->layer_text, text);
    numbers_add("pipeline rank", of->rank_text, text);
    strbuf_add(text, "\n");
}

static void table_add(const struct op_rows *rows, struct strbuf *text)
{
    for (uint32_t first = 0, end = 0; first < rows->count; first = end) {
        struct op_rows part = *rows;
        while (end < rows->count && rows->row[end].of == rows->row[first].of) end++;
        part.row += first;
        if (first > 0) strbuf_add(text, "\n");
        title_add(rows->row[first].of, text);
        column_add_table(&op_table, &part, end - first, NAME_COLUMNS, text);
    }
}

void op_rows_put(const struct op_rows *rows, struct json_writer *json)
{
    json_write_key(json, "ops");
    column_put_rows(&op_table, rows, rows->count, json);
}

enum status op_rows_show(struct arena *arena, const struct machine *machine,
                         const struct program *program, bool as_json, struct strbuf *text,
                         struct error *reterr)
{
    struct op_rows rows = {.machine = machine, .program = program};
    struct json_writer json;
    STATUS_TRY(op_rows_find(arena, &rows, reterr));
    if (!as_json) {
        table_add(&rows, text);
        return STATUS_OK;
    }
    json_write_start(&json, text);
    column_put_rows(&op_table, &rows, rows.count, &json);
    return STATUS_OK;
}
