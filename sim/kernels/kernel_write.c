/* The file of a stack, as kernel_read.c and kernels.c read it. */
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/kernels/kernels.h"

enum { FLAT_DEPTH = 4, COLUMNS = 100 };

static void put_quantity(struct json_writer *json, const char *key, uint64_t amount,
                         const char *unit)
{
    struct strbuf text = {.bytes = NULL};
    strbuf_add(&text, "%llu%s", (unsigned long long)amount, unit);
    json->text->failed = json->text->failed || text.failed;
    if (!text.failed) json_put_string(json, key, text.bytes);
    strbuf_free(&text);
}

static void put_numbers(struct json_writer *json, const char *key, const uint32_t *number,
                        uint64_t count)
{
    json_put_array(json, key);
    for (uint64_t i = 0; i < count; i++) json_write_unsigned(json, number[i]);
    json_write_array_end(json);
}

static void put_kind(struct json_writer *json, const struct kernel_table *table)
{
    json_put_string(json, "format", format_name(table->format));
    if (kernel_reads_cache(table->family))
        json_put_string(json, "stored", format_name(table->stored));
    if (kernel_is_of_products(table->family)) {
        json_put_string(json, "layout", kernel_layout_name(table->layout));
        if (table->result != FORMAT_BF16)
            json_put_string(json, "result", format_name(table->result));
        if (table->cast != WORK_CAST_WITHIN)
            json_put_string(json, "cast", work_cast_name(table->cast));
    }
    if (table->appends) json_put_boolean(json, "appends", true);
    if (table->quantises) json_put_boolean(json, "quantises", true);
}

static void put_table(struct json_writer *json, const struct kernel_table *table)
{
    json_write_object(json);
    put_kind(json, table);
    json_put_string(json, "source", table->source);
    put_quantity(json, "flop_rate", table->flop_per_s, "FLOP/s");
    put_quantity(json, "hbm_rate", table->bytes_per_s, "B/s");
    json_put_unsigned(json, "rows", table->row_count);
    json_put_unsigned(json, "error_median_ppm", table->error_median_ppm);
    json_put_unsigned(json, "error_ninetieth_ppm", table->error_ninetieth_ppm);
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        put_numbers(json, kernel_side_name(table->family, s), table->edge[s], table->edge_count[s]);
    put_numbers(json, "share_ppm", table->share_ppm, kernel_point_count(table));
    json_write_object_end(json);
}

static void put_family(struct json_writer *json, const struct kernel_stack *stack,
                       enum kernel_family family)
{
    bool has_one = false;
    for (uint32_t t = 0; t < stack->table_count; t++) {
        if (stack->table[t].family != family) continue;
        if (!has_one) json_put_array(json, kernel_family_name(family));
        has_one = true;
        put_table(json, &stack->table[t]);
    }
    if (has_one) json_write_array_end(json);
}

static void put_between(struct json_writer *json, const struct kernel_between *between)
{
    json_put_object(json, "between");
    json_put_string(json, "fusion", between->fusion->name);
    json_put_string(json, "source", between->source);
    put_quantity(json, "launch", (uint64_t)between->launch_ps, "ps");
    json_put_object(json, "share_ppm");
    for (uint32_t f = 0; f < WORK_FUNCTION_COUNT; f++)
        json_put_unsigned(json, work_function_name((enum work_function)f), between->share_ppm[f]);
    json_write_object_end(json);
    json_write_object_end(json);
}

static void put_share(struct json_writer *json, uint32_t ppm, const char *source)
{
    json_put_unsigned(json, "ppm", ppm);
    json_put_string(json, "source", source);
}

static void put_clock(struct json_writer *json, const struct kernel_stack *stack)
{
    json_put_object(json, "clock");
    put_share(json, stack->clock_ppm, stack->clock_source);
    if (stack->clock_fp8_ppm != 0) {
        json_put_object(json, "fp8");
        put_share(json, stack->clock_fp8_ppm, stack->clock_fp8_source);
        json_write_object_end(json);
    }
    json_write_object_end(json);
}

static void put_collectives(struct json_writer *json, const struct kernel_collectives *collectives)
{
    const struct {
        const char *key;
        uint32_t ppm;
    } factors[] = {{"latency_ppm", collectives->latency_ppm},
                   {"byte_ppm", collectives->byte_ppm},
                   {"nvls_ppm", collectives->nvls_ppm}};
    json_put_object(json, "collectives");
    json_put_string(json, "source", collectives->source);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (factors[i].ppm != 0) json_put_unsigned(json, factors[i].key, factors[i].ppm);
    json_write_object_end(json);
}

void kernel_stack_write(const struct kernel_stack *stack, const char *tables_of,
                        struct strbuf *text)
{
    struct json_writer json;
    struct strbuf flat = {.bytes = NULL};
    json_write_start(&json, &flat);
    json.flat = FLAT_DEPTH;
    json_write_object(&json);
    json_put_unsigned(&json, "podsim_kernels", KERNEL_FILE_VERSION);
    json_put_string(&json, "chip", stack->chip);
    json_put_string(&json, "stack", stack->name);
    json_put_string(&json, "title", stack->title);
    if (tables_of != NULL) json_put_string(&json, "tables_of", tables_of);
    if (stack->clock_ppm != 0) put_clock(&json, stack);
    for (uint32_t f = 0; f < KERNEL_FAMILIES; f++) put_family(&json, stack, (enum kernel_family)f);
    if (stack->between.fusion != NULL) put_between(&json, &stack->between);
    if (stack->collectives.source != NULL) put_collectives(&json, &stack->collectives);
    json_write_object_end(&json);
    json_fold(&flat, COLUMNS, text);
    text->failed = text->failed || flat.failed;
    strbuf_free(&flat);
}
