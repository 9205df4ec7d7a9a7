/* list_kernels.c: measured kernels. */
#include "sim/base/json.h"
#include "sim/base/path.h"
#include "sim/base/strbuf.h"
#include "sim/kernels/autocast.h"
#include "sim/kernels/kernels.h"
#include "sim/report/table.h"
#include "tools/podsim/list/list_text.h"

enum { NAME_COLUMN = 28, TITLE_COLUMN = 52, PERCENT_PPM = 10000 };

static const char *const family_words[KERNEL_FAMILIES] = {
    [KERNEL_MATMUL] = "matmuls",
    [KERNEL_GROUPED] = "grouped matmuls",
    [KERNEL_BATCHED] = "batched matmuls",
    [KERNEL_ATTENTION] = "attention",
    [KERNEL_ATTENTION_BACKWARD] = "gradients of attention",
    [KERNEL_FULL_ATTENTION] = "attention without a mask",
    [KERNEL_LATENT_ATTENTION] = "attention of latent prompts",
    [KERNEL_DECODE] = "decodes",
    [KERNEL_LATENT_DECODE] = "decodes of latents",
    [KERNEL_EXPERTS] = "experts"};

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

/* "h100-sxm.trtllm" of the catalogue, or a file. */
static enum status stack_read(struct arena *arena, const char *name, struct kernel_stack *ret_stack,
                              struct error *reterr)
{
    struct json *document = NULL;
    if (path_is_json(name)) {
        STATUS_TRY(json_read_file(arena, name, &document, reterr));
        enum status const status = kernel_stack_read(arena, document, ret_stack, reterr);
        if (status != STATUS_OK) error_in_file(reterr, name);
        return status;
    }
    return kernel_stack_find_full(arena, name, name, ret_stack, reterr);
}

/* "matmuls in bf16, fp8; attention in bf16; decodes in bf16" */
static void families_add(const struct kernel_stack *stack, struct strbuf *text)
{
    const char *before = "";
    for (enum kernel_family family = 0; family < KERNEL_FAMILIES; family++) {
        uint32_t formats = 0;
        for (uint32_t t = 0; t < stack->table_count; t++) {
            const struct kernel_table *table = &stack->table[t];
            if (table->family != family || (formats >> table->stored & 1) != 0) continue;
            if (formats == 0) strbuf_add(text, "%s%s in", before, family_words[family]);
            strbuf_add(text, "%s %s", formats == 0 ? "" : ",", format_name(table->stored));
            formats |= 1u << table->stored;
            before = "; ";
        }
    }
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
        families_add(&stack, text);
        strbuf_add(text, "\n");
    }
    return STATUS_OK;
}

static void error_line(const char *what, uint32_t count, uint32_t median_ppm,
                       uint32_t ninetieth_ppm, struct strbuf *text)
{
    strbuf_add(text, "  %s", what);
    strbuf_pad(text, 34);
    strbuf_add(text, "%7s: half are within %.1f%%, nine of ten within %.1f%%",
               table_count(count).text, median_ppm / 1e4, ninetieth_ppm / 1e4);
}

/* Of points that are left out: behind it the aim, which the listing names. */
static void left_out_line(const char *what, const struct kernel_error *error, struct strbuf *text)
{
    bool const is_met = error->median_ppm <= KERNEL_AIM_MEDIAN_PPM &&
                        error->ninetieth_ppm <= KERNEL_AIM_NINETIETH_PPM;
    error_line(what, error->point_count, error->median_ppm, error->ninetieth_ppm, text);
    strbuf_add(text, " (aim %u%%, %u%%: %s)\n", KERNEL_AIM_MEDIAN_PPM / PERCENT_PPM,
               KERNEL_AIM_NINETIETH_PPM / PERCENT_PPM, is_met ? "met" : "missed");
}

/* What is left out together, by family. */
static const struct {
    const char *text;
    uint32_t sides;
} shapes[KERNEL_FAMILIES][2] = {
    [KERNEL_MATMUL] = {{"without their n and k", 1u << KERNEL_N | 1u << KERNEL_K}},
    [KERNEL_GROUPED] = {{"without their n and k", 1u << KERNEL_N | 1u << KERNEL_K}},
    [KERNEL_BATCHED] = {{"without their batch", 1u << KERNEL_BATCH}},
    [KERNEL_ATTENTION] = {{"without their heads", 1u << KERNEL_HEADS},
                          {"without their width", 1u << KERNEL_WIDTH}},
    [KERNEL_ATTENTION_BACKWARD] = {{"without their heads", 1u << KERNEL_HEADS},
                                   {"without their width", 1u << KERNEL_WIDTH}},
    [KERNEL_FULL_ATTENTION] = {{"without their heads", 1u << KERNEL_HEADS},
                               {"without their width", 1u << KERNEL_WIDTH}},
    [KERNEL_LATENT_ATTENTION] = {{"without their heads", 1u << KERNEL_HEADS}},
    [KERNEL_DECODE] = {{"without their heads", 1u << KERNEL_HEADS},
                       {"without their width", 1u << KERNEL_WIDTH}},
    [KERNEL_LATENT_DECODE] = {{"without their heads", 1u << KERNEL_HEADS},
                              {"without their group", 1u << KERNEL_GROUP}},
    [KERNEL_EXPERTS] = {{"without their columns", 1u << KERNEL_COLUMNS | 1u << KERNEL_MODEL},
                        {"without their experts", 1u << KERNEL_EXPERT}},
};

static void head_add(const struct kernel_table *table, struct strbuf *text)
{
    strbuf_add(text, "\n");
    kernel_table_name_add(table, text);
    strbuf_add(text, ": shares of %s and %s\n", table_flop_rate((double)table->flop_per_s).text,
               table_rate((double)table->bytes_per_s).text);
    for (uint32_t s = 0; s < kernel_side_count(table->family); s++) {
        uint32_t const count = table->edge_count[s];
        strbuf_add(text, "%s %u edge%s of %s", s == 0 ? " " : ",", count, plural(count),
                   kernel_side_name(table->family, s));
        if (count > 1) strbuf_add(text, " from %s to", table_count(table->edge[s][0]).text);
        strbuf_add(text, " %s", table_count(table->edge[s][count - 1]).text);
    }
    strbuf_add(text, "\n");
}

static enum status table_add(struct arena *arena, const struct kernel_table *table,
                             struct strbuf *text, struct error *reterr)
{
    struct kernel_error error;
    head_add(table, text);
    if (table->row_count > 0) {
        error_line("measurements", table->row_count, table->error_median_ppm,
                   table->error_ninetieth_ppm, text);
        strbuf_add(text, "%s\n", table->is_part ? ", of the whole table" : "");
    }
    STATUS_TRY(kernel_error_of_edges(arena, table, &error, reterr));
    if (error.point_count > 0) left_out_line("without every second edge", &error, text);
    for (uint32_t i = 0; i < 2 && shapes[table->family][i].text != NULL; i++) {
        STATUS_TRY(
            kernel_error_of_shapes(arena, table, shapes[table->family][i].sides, &error, reterr));
        if (error.point_count > 0) left_out_line(shapes[table->family][i].text, &error, text);
    }
    if (table->of != NULL) strbuf_add(text, "  of %s\n", table->of);
    if (table->derived != NULL) strbuf_add(text, "  derived: %s\n", table->derived);
    strbuf_add(text, "  source: %s\n", table->source);
    return STATUS_OK;
}

/* Kernels of a pass and what they move, where that is more than one kernel's. */
static void pass_add(const struct function_pass *pass, struct strbuf *text)
{
    strbuf_add(text, "%2u kernel%s", pass->kernels, plural(pass->kernels));
    if (pass->read_bytes + pass->write_bytes > 0)
        strbuf_add(text, " (+%u B read, +%u written)", pass->read_bytes, pass->write_bytes);
}

static void function_add(const struct kernel_between *between, enum work_function function,
                         struct strbuf *text)
{
    strbuf_add(text, "  %s", work_function_name(function));
    strbuf_pad(text, 14);
    strbuf_add(text, "%5.1f%% of HBM", between->share_ppm[function] / 1e4);
    for (int backward = 0; backward < 2; backward++) {
        struct function_pass const pass = fusion_pass(between->fusion, function, backward != 0);
        bool const is_update = function == WORK_FUNCTION_UPDATE || function == WORK_FUNCTION_LOSS;
        if (backward != 0 && is_update) continue;
        strbuf_add(text, "%s", backward != 0 ? ", backward " : "   ");
        pass_add(&pass, text);
    }
    strbuf_add(text, "\n");
}

/* Layernorms, where a stack has other kernels for them than for an RMSNorm. */
static void layernorms_add(const struct fusion *fusion, struct strbuf *text)
{
    struct function_pass const forward = fusion_norm(fusion, /* centred= */ true, false),
                               backward = fusion_norm(fusion, /* centred= */ true, true);
    if (fusion->layernorm.kernels == 0) return;
    strbuf_add(text, "  norm that is a layernorm   ");
    pass_add(&forward, text);
    strbuf_add(text, ", backward ");
    pass_add(&backward, text);
    strbuf_add(text, "\n");
}

/* Kernels of a pass of autocast, forward and backward. */
static void autocast_pass_add(const char *what, const struct function_pass passes[2],
                              struct strbuf *text)
{
    if (passes[0].kernels == 0) return;
    strbuf_add(text, "  autocast: %-28s", what);
    pass_add(&passes[0], text);
    strbuf_add(text, ", backward ");
    pass_add(&passes[1], text);
    strbuf_add(text, "\n");
}

/* A cast, with all bytes of an element. */
static void cast_add(const char *what, struct function_pass forward, struct function_pass backward,
                     struct strbuf *text)
{
    if (forward.kernels == 0) return;
    strbuf_add(text, "  autocast: cast of %-20s %u B read, %u written, backward %u, %u\n", what,
               forward.read_bytes, forward.write_bytes, backward.read_bytes, backward.write_bytes);
}

static void autocasts_add(const struct autocast_kernels *autocast, struct strbuf *text)
{
    if (autocast == NULL) return;
    cast_add("a product's input", autocast->input[0], autocast->input[1], text);
    cast_add("a weight in fp32", autocast->weight, autocast->gradient, text);
    autocast_pass_add("layernorm of 16 bits", autocast->centred_narrow, text);
    autocast_pass_add("layernorm of fp32", autocast->centred, text);
    autocast_pass_add("RMSNorm of fp32", autocast->norm, text);
    autocast_pass_add("turn by angles in fp32", autocast->rotation, text);
    autocast_pass_add("sum of fp32", autocast->sum, text);
    strbuf_add(text, "    source: %s\n", autocast->source);
}

/* What may stand in for the kernels of the loss, where these are several. */
static void losses_add(const struct fusion *fusion, struct strbuf *text)
{
    if (!fusion_splits_loss(fusion)) return;
    for (enum loss_fusion loss = LOSS_FUSION_NATIVE; loss < LOSS_FUSION_COUNT; loss++) {
        const struct loss_kernels *fused = loss_kernels_of(loss);
        strbuf_add(text, "  loss with \"loss_fusion\": \"%s\": ", loss_fusion_names[loss]);
        pass_add(&fused->made, text);
        strbuf_add(text, "\n    source: %s\n", fused->source);
    }
}

static void between_add(const struct kernel_between *between, struct strbuf *text)
{
    strbuf_add(text, "\nkernels between matmuls: %s\n", between->fusion->help);
    for (enum work_function function = 0; function < WORK_FUNCTION_COUNT; function++)
        function_add(between, function, text);
    layernorms_add(between->fusion, text);
    autocasts_add(between->fusion->autocast, text);
    losses_add(between->fusion, text);
    strbuf_add(text, "  each takes %s in addition; bytes are those of an element of 16 bits\n",
               table_duration(between->launch_ps).text);
    strbuf_add(text, "  source: %s\n  source of the kernels: %s\n", between->source,
               between->fusion->source);
}

static void collectives_add(const struct kernel_collectives *collectives, struct strbuf *text)
{
    const struct {
        const char *what;
        uint32_t ppm;
    } factors[] = {{"latencies", collectives->latency_ppm},
                   {"a byte", collectives->byte_ppm},
                   {"a byte by NVLS", collectives->nvls_ppm}};
    const char *before = "";
    strbuf_add(text, "\ncollectives in a node: ");
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        if (factors[i].ppm == 0) continue;
        strbuf_add(text, "%s%s %.3f", before, factors[i].what, factors[i].ppm / 1e6);
        before = ", ";
    }
    strbuf_add(text, "%stimes what NCCL reckons\n  source: %s\n",
               *before == '\0' ? "podsim's own " : " ", collectives->source);
}

enum status list_kernel(struct arena *arena, const char *name, struct strbuf *text,
                        struct error *reterr)
{
    struct kernel_stack stack;
    STATUS_TRY(stack_read(arena, name, &stack, reterr));
    strbuf_add(text, "%s on %s\n", stack.title, stack.chip);
    for (uint32_t t = 0; t < stack.table_count; t++)
        STATUS_TRY(table_add(arena, &stack.table[t], text, reterr));
    if (stack.clock_ppm != 0)
        strbuf_add(text, "\na step has %.3g%% of the chip's clock\n  source: %s\n",
                   stack.clock_ppm / 1e4, stack.clock_source);
    if (stack.clock_fp8_ppm != 0)
        strbuf_add(text, "  products in fp8 have %.3g%% of it\n  source: %s\n",
                   stack.clock_fp8_ppm / 1e4, stack.clock_fp8_source);
    if (stack.between.fusion != NULL) between_add(&stack.between, text);
    if (stack.collectives.source != NULL) collectives_add(&stack.collectives, text);
    return STATUS_OK;
}
