/*
 * kernel_stacks.c: writes measured kernels as a C file. Runs at build time only.
 *
 *     kernel_stacks OUTPUT FILE...
 *
 * gives `kernel_stacks` and `kernel_stacks_count`, as declared in sim/kernels/kernel_stacks.h, of
 * all stacks in the order of the command line. Tables that a file takes of another one are written
 * out, with factors applied. Equal lists of numbers are written once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/embed.h"
#include "sim/kernels/kernel_files.h"

enum { FILES_MAX = 128, LISTS_MAX = 8192, COLUMNS = 16 };

static const uint64_t arena_bytes = UINT64_C(1) << 30;

/* A list that has been written: `numbers_<index>`. */
struct list {
    const uint32_t *number;
    uint64_t count;
};

struct writer {
    FILE *output;
    struct list list[LISTS_MAX];
    uint32_t list_count;
    uint32_t factor_count; /* Factors that have been written: `factor_<index>`. */
};

_Noreturn static void stop(const char *what, const char *why)
{
    (void)fprintf(stderr, "kernel_stacks: %s: %s\n", what, why);
    exit(1);
}

static struct embed_file file_load(struct arena *arena, const char *path)
{
    FILE *input = fopen(path, "rb");
    if (input == NULL || fseek(input, 0, SEEK_END) != 0) stop(path, "not read");
    long const size = ftell(input);
    char *bytes = size < 0 ? NULL : arena_take(arena, (uint64_t)size + 1, 1);
    if (bytes == NULL || fseek(input, 0, SEEK_SET) != 0) stop(path, "not read");
    if (fread(bytes, 1, (size_t)size, input) != (size_t)size) stop(path, "not read");
    (void)fclose(input);
    const char *slash = strrchr(path, '/');
    char *name = arena_text(arena, slash == NULL ? path : slash + 1);
    if (name == NULL) stop(path, "no memory");
    char *suffix = strstr(name, ".json");
    if (suffix != NULL) *suffix = '\0';
    return (struct embed_file){.name = name, .bytes = bytes, .size_bytes = (unsigned)size};
}

/* Writes a list, unless the same has been written. Returns its index. */
static uint32_t list_write(struct writer *writer, const uint32_t *number, uint64_t count)
{
    for (uint32_t i = 0; i < writer->list_count; i++)
        if (writer->list[i].count == count &&
            memcmp(writer->list[i].number, number, count * sizeof *number) == 0)
            return i;
    if (writer->list_count == LISTS_MAX) stop("numbers", "too many lists");
    (void)fprintf(writer->output, "static const uint32_t numbers_%u[] = {", writer->list_count);
    for (uint64_t i = 0; i < count; i++)
        (void)fprintf(writer->output, "%s%u,", i % COLUMNS == 0 ? "\n" : "", number[i]);
    (void)fprintf(writer->output, "\n};\n");
    writer->list[writer->list_count] = (struct list){number, count};
    return writer->list_count++;
}

static void text_write(FILE *output, const char *member, const char *text)
{
    if (text == NULL) return;
    (void)fprintf(output, " .%s = \"", member);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        (void)fprintf(
            output, *c < ' ' || *c == '"' || *c == '?' || *c == '\\' || *c > '~' ? "\\%03o" : "%c",
            *c);
    (void)fprintf(output, "\",\n");
}

/* A table's numbers come before it in the file, and are named in it by their index. */
struct table_lists {
    uint32_t edge[KERNEL_SIDES_MAX], share, factor;
};

static void table_write(FILE *output, const struct kernel_table *table,
                        const struct table_lists *lists)
{
    (void)fprintf(output,
                  "{.family = %d, .format = %d, .layout = %d, .stored = %d, .result = %d,\n",
                  table->family, table->format, table->layout, table->stored, table->result);
    (void)fprintf(output, " .quantises = %d, .appends = %d, .cast = %d, .is_carried_over = %d,\n",
                  table->quantises, table->appends, table->cast, table->is_carried_over);
    if (table->is_part) (void)fprintf(output, " .is_part = true,\n");
    text_write(output, "source", table->source);
    text_write(output, "of", table->of);
    text_write(output, "derived", table->derived);
    (void)fprintf(output, " .flop_per_s = UINT64_C(%llu), .bytes_per_s = UINT64_C(%llu),\n",
                  (unsigned long long)table->flop_per_s, (unsigned long long)table->bytes_per_s);
    (void)fprintf(output, " .row_count = %u, .error_median_ppm = %u, .error_ninetieth_ppm = %u,\n",
                  table->row_count, table->error_median_ppm, table->error_ninetieth_ppm);
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        (void)fprintf(output, " .edge_count[%u] = %u, .edge[%u] = numbers_%u,\n", s,
                      table->edge_count[s], s, lists->edge[s]);
    if (table->factor != NULL) (void)fprintf(output, " .factor = &factor_%u,\n", lists->factor);
    (void)fprintf(output, " .share_ppm = numbers_%u}", lists->share);
}

static struct table_lists lists_write(struct writer *writer, const struct kernel_table *table)
{
    struct table_lists lists = {.factor = 0};
    if (table->factor != NULL) {
        struct table_lists const of = lists_write(writer, table->factor);
        lists.factor = writer->factor_count++;
        (void)fprintf(writer->output, "static const struct kernel_table factor_%u =\n",
                      lists.factor);
        table_write(writer->output, table->factor, &of);
        (void)fprintf(writer->output, ";\n");
    }
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++)
        lists.edge[s] = list_write(writer, table->edge[s], table->edge_count[s]);
    lists.share = list_write(writer, table->share_ppm, kernel_point_count(table));
    return lists;
}

static void between_write(FILE *output, const struct kernel_between *between)
{
    uint32_t fusion = 0;
    if (between->fusion == NULL) return;
    while (fusion_at(fusion) != between->fusion) fusion++;
    (void)fprintf(output, " .between = {.fusion = &fusion_list[%u], .launch_ps = INT64_C(%lld),\n",
                  fusion, (long long)between->launch_ps);
    text_write(output, "source", between->source);
    for (uint32_t f = 0; f < WORK_FUNCTION_COUNT; f++)
        (void)fprintf(output, " .share_ppm[%u] = %u,\n", f, between->share_ppm[f]);
    (void)fprintf(output, "},\n");
}

static void stack_write(struct writer *writer, const struct kernel_stack *stack, unsigned index)
{
    FILE *output = writer->output;
    struct table_lists lists[KERNEL_TABLES_MAX];
    for (uint32_t t = 0; t < stack->table_count; t++)
        lists[t] = lists_write(writer, &stack->table[t]);
    (void)fprintf(output, "static const struct kernel_stack stack_%u = {\n", index);
    text_write(output, "name", stack->name);
    text_write(output, "title", stack->title);
    text_write(output, "chip", stack->chip);
    (void)fprintf(output, " .clock_ppm = %u, .clock_fp8_ppm = %u, .table_count = %u,\n",
                  stack->clock_ppm, stack->clock_fp8_ppm, stack->table_count);
    text_write(output, "clock_source", stack->clock_source);
    text_write(output, "clock_fp8_source", stack->clock_fp8_source);
    between_write(output, &stack->between);
    (void)fprintf(output, " .table = {\n");
    for (uint32_t t = 0; t < stack->table_count; t++) {
        table_write(output, &stack->table[t], &lists[t]);
        (void)fprintf(output, ",\n");
    }
    (void)fprintf(output, "},\n};\n");
}

int main(int argument_count, char **arguments)
{
    static struct embed_file files[FILES_MAX];
    static struct writer writer;
    struct kernel_stack stack;
    struct error error = {.status = STATUS_OK};
    struct arena *arena = arena_create(arena_bytes);
    unsigned const count = argument_count < 2 ? 0 : (unsigned)argument_count - 2;
    if (arena == NULL || count == 0 || count > FILES_MAX) stop("files", "none, or too many");
    for (unsigned i = 0; i < count; i++) files[i] = file_load(arena, arguments[2 + i]);
    writer.output = fopen(arguments[1], "w");
    if (writer.output == NULL) stop(arguments[1], "not written");
    (void)fprintf(writer.output, "#include \"sim/kernels/kernel_stacks.h\"\n\n");
    for (unsigned i = 0; i < count; i++) {
        if (kernel_files_read(arena, files, count, files[i].name, &stack, &error) != STATUS_OK)
            stop(files[i].name, error.message);
        stack_write(&writer, &stack, i);
    }
    (void)fprintf(writer.output, "const struct kernel_shipped kernel_stacks[] = {\n");
    for (unsigned i = 0; i < count; i++)
        (void)fprintf(writer.output, "    {\"%s\", &stack_%u},\n", files[i].name, i);
    (void)fprintf(writer.output, "};\nconst unsigned kernel_stacks_count = %u;\n", count);
    arena_destroy(arena);
    bool const failed = ferror(writer.output) != 0;
    return fclose(writer.output) == 0 && !failed ? 0 : 1;
}
