/* list_kernels.c: measured kernels. */
#include <stdio.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/path.h"
#include "sim/base/strbuf.h"
#include "sim/kernels/kernels.h"
#include "sim/report/table.h"
#include "tools/podsim/list/list_text.h"

enum { NAME_COLUMN = 24, TITLE_COLUMN = 52, CHIP_BYTES = 64 };

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

/* "h100-sxm.trtllm" of the catalogue, or a file. */
static enum status stack_read(struct arena *arena, const char *name, struct kernel_stack *ret_stack,
                              struct error *reterr)
{
    char chip[CHIP_BYTES];
    struct json *document = NULL;
    if (path_is_json(name)) {
        STATUS_TRY(json_read_file(arena, name, &document, reterr));
        enum status const status = kernel_stack_read(arena, document, ret_stack, reterr);
        if (status != STATUS_OK) error_in_file(reterr, name);
        return status;
    }
    const char *dot = strchr(name, '.');
    if (dot == NULL)
        return error_set(reterr, STATUS_INVALID, name,
                         "kernels are named by chip and stack, such as \"%s\"; `podsim list "
                         "kernels` has the names",
                         kernel_stack_name_at(0));
    (void)snprintf(chip, sizeof chip, "%.*s", (int)(dot - name), name);
    return kernel_stack_find(arena, dot + 1, chip, name, ret_stack, reterr);
}

enum status list_kernels(struct arena *arena, struct strbuf *text, struct error *reterr)
{
    for (uint32_t i = 0; kernel_stack_name_at(i) != NULL; i++) {
        struct kernel_stack stack;
        STATUS_TRY(stack_read(arena, kernel_stack_name_at(i), &stack, reterr));
        strbuf_add(text, "  %s", kernel_stack_name_at(i));
        strbuf_pad(text, NAME_COLUMN);
        strbuf_add(text, "%s", stack.title);
        strbuf_pad(text, TITLE_COLUMN);
        strbuf_add(text, "matmuls in");
        for (uint32_t t = 0; t < stack.table_count; t++)
            strbuf_add(text, "%s %s", t == 0 ? "" : ",", format_name(stack.table[t].format));
        strbuf_add(text, "\n");
    }
    return STATUS_OK;
}

static void error_line(const char *what, uint32_t count, uint32_t median_ppm,
                       uint32_t ninetieth_ppm, struct strbuf *text)
{
    strbuf_add(text, "  %s", what);
    strbuf_pad(text, 34);
    strbuf_add(text, "%7s: half are within %.1f%%, nine of ten within %.1f%%\n",
               table_count(count).text, median_ppm / 1e4, ninetieth_ppm / 1e4);
}

static enum status table_add(struct arena *arena, const struct kernel_table *table,
                             struct strbuf *text, struct error *reterr)
{
    static const char *const sides[KERNEL_SIDES] = {"m", "n", "k"};
    struct kernel_error of_edges, of_shapes;
    STATUS_TRY(kernel_error_of_edges(arena, table, &of_edges, reterr));
    STATUS_TRY(kernel_error_of_shapes(arena, table, &of_shapes, reterr));
    strbuf_add(text, "\nmatmul in %s, layout %s: shares of %s and %s\n", format_name(table->format),
               kernel_layout_name(table->layout), table_flop_rate((double)table->flop_per_s).text,
               table_rate((double)table->bytes_per_s).text);
    for (uint32_t s = 0; s < KERNEL_SIDES; s++)
        strbuf_add(text, "%s %u edge%s of %s from %s to %s", s == 0 ? " " : ",",
                   table->edge_count[s], plural(table->edge_count[s]), sides[s],
                   table_count(table->edge[s][0]).text,
                   table_count(table->edge[s][table->edge_count[s] - 1]).text);
    strbuf_add(text, "\n");
    error_line("measurements", table->row_count, table->error_median_ppm,
               table->error_ninetieth_ppm, text);
    error_line("without every second edge", of_edges.point_count, of_edges.median_ppm,
               of_edges.ninetieth_ppm, text);
    error_line("without their n and k", of_shapes.point_count, of_shapes.median_ppm,
               of_shapes.ninetieth_ppm, text);
    strbuf_add(text, "  source: %s\n", table->source);
    return STATUS_OK;
}

/* Kernels of a pass and what they move, where that is more than one kernel's. */
static void chain_add(const struct kernel_between *between, enum chain chain, struct strbuf *text)
{
    strbuf_add(text, "  %s", chain_name(chain));
    strbuf_pad(text, 14);
    strbuf_add(text, "%5.1f%% of HBM", between->share_ppm[chain] / 1e4);
    for (int backward = 0; backward < 2; backward++) {
        struct chain_pass const pass = fusion_pass(between->fusion, chain, backward != 0);
        bool const is_update = chain == CHAIN_UPDATE || chain == CHAIN_LOSS;
        if (backward != 0 && is_update) continue;
        strbuf_add(text, "%s%2u kernel%s", backward != 0 ? ", backward " : "   ", pass.kernels,
                   plural(pass.kernels));
        if (pass.read_bytes + pass.write_bytes > 0)
            strbuf_add(text, " (+%u B read, +%u written)", pass.read_bytes, pass.write_bytes);
    }
    strbuf_add(text, "\n");
}

static void between_add(const struct kernel_between *between, struct strbuf *text)
{
    strbuf_add(text, "\nkernels between matmuls: %s\n", between->fusion->help);
    for (enum chain chain = 0; chain < CHAIN_COUNT; chain++) chain_add(between, chain, text);
    strbuf_add(text, "  each takes %s in addition; bytes are those of an element of 16 bits\n",
               table_duration(between->launch_ps).text);
    strbuf_add(text, "  source: %s\n  source of the kernels: %s\n", between->source,
               between->fusion->source);
}

enum status list_kernel(struct arena *arena, const char *name, struct strbuf *text,
                        struct error *reterr)
{
    struct kernel_stack stack;
    STATUS_TRY(stack_read(arena, name, &stack, reterr));
    strbuf_add(text, "%s on %s\n", stack.title, stack.chip);
    for (uint32_t t = 0; t < stack.table_count; t++)
        STATUS_TRY(table_add(arena, &stack.table[t], text, reterr));
    if (stack.between.fusion != NULL) between_add(&stack.between, text);
    return STATUS_OK;
}
