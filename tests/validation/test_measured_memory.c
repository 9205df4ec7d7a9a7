/*
 * Peaks of memory as the measured profile has them, beside what was measured.
 *
 *   test_measured_memory [--markdown FILE | --check FILE | --summary FILE]
 *
 * --markdown writes docs/measured-memory.md; --check fails if that file is not what it would write,
 * --summary if docs/limits.md does not have the errors.
 * Errors are stated, not judged: no number is set from these rows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "tests/support/play.h"
#include "tests/validation/document.h"
#include "tests/validation/measured_memory_rows.h"
#include "tests/validation/measured_memory_text.h"

/* What docs/measured-memory.md says of each kind of memory that frameworks hold on top of the bytes
 * that the book counts (sim/step/overheads.c). */
struct overhead {
    enum program_memory memory;
    const char *what;   /* What is held, and for how long. */
    const char *source; /* The framework's code that says so. */
    bool outside;       /* PyTorch's allocator does not see it, so its statistics lack it. */
};

/* In the order of PROGRAM_OVERHEAD_TABLE. */
static const struct overhead overheads[] = {
    {PROGRAM_MEMORY_MASTER,
     "4 bytes of each weight whose optimizer state lies here, with weights in a narrower format; "
     "FSDP keeps one copy: 4 bytes less the bytes of the format, of each weight of the shard; "
     "DeepSpeed, and FSDP of other stacks, keeps both",
     "Megatron-LM docs/source/api-guide/dist_optimizer.md at 50b073cc (6 + 12/d bytes); PyTorch "
     "torch/distributed/fsdp/_fully_shard/_fsdp_param.py (the sharded parameter keeps its "
     "format, param_dtype is the format of the gather)",
     false},
    {PROGRAM_MEMORY_MAIN_GRADIENTS,
     "4 bytes of each weight whose gradient is kept here, in place of the book's gradients, or 2 "
     "where `main_gradients` is bf16 or fp16; in Megatron-LM one buffer from the first step on, "
     "in FSDP always fp32, from the reduction to the update",
     "Megatron-LM docs/source/api-guide/dist_optimizer.md at 50b073cc; "
     "megatron/core/distributed/distributed_data_parallel.py (grad_reduce_in_fp32: fp32, "
     "otherwise the parameter's format); PyTorch "
     "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py (foreach_reduce ends in "
     "orig_dtype)",
     false},
    {PROGRAM_MEMORY_ACTIVATED,
     "the output of SwiGLU or GELU, which the next matmul keeps in addition to the function's "
     "input; with remat, `norms` too, only until the matmul has read it",
     "Megatron-LM megatron/core/fusions/fused_bias_swiglu.py at 00caa53a (the function saves its "
     "input alone, and the next linear layer saves its own input); Korthikanti et al., arXiv "
     "2205.05198, 4.1; DeepSeek-V3, arXiv 2412.19437, 3.3.3 (`norms`)",
     false},
    {PROGRAM_MEMORY_MASKS,
     "1 byte an element of the outputs of attention and MLP, where `attention_kernel` drops out",
     "Korthikanti et al., arXiv 2205.05198, 4.1", false},
    {PROGRAM_MEMORY_LOSS,
     "from the loss to the start of the backward pass, with the logits: 4 bytes a logit, which "
     "become the softmax in place (PyTorch's own cross entropy, neither fused nor compiled, "
     "keeps a second array); with `loss_fusion` `te` none, with `flash_attn` 2 bytes, the gradient",
     "Megatron-LM megatron/core/tensor_parallel/cross_entropy.py at 00611e6e; "
     "[kernels of the loss](kernels.md#the-loss)",
     false},
    {PROGRAM_MEMORY_AUTOGRAD,
     "Megatron-LM: one gradient for each shape of a layer's matrices, in the weights' format, "
     "which autograd allocates although matmuls add to the main gradients; also of embedding and "
     "head while their gradients are computed",
     "TransformerEngine transformer_engine/pytorch/module/base.py (get_dummy_wgrad); Megatron-LM "
     "megatron/core/tensor_parallel/layers.py (grad_added_to_main_grad)",
     false},
    {PROGRAM_MEMORY_COPIES,
     "while weights are gathered: the output of the gather, before the copy to the parameters; "
     "while gradients are reduced: the input of the reduction, in the format of `gradients` "
     "(reduce_dtype). With a stack or `shard_kernels` [those of the framework](program.md#memory)",
     "PyTorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py "
     "(foreach_all_gather_copy_out, foreach_reduce)",
     false},
    {PROGRAM_MEMORY_NCCL,
     "one communicator for each axis of the mesh and each group that reduces gradients: 9.19 MiB "
     "a channel (LL 0.5, LL128 4.69, Simple 4), 24 channels in a node and 16 across nodes; rings "
     "only",
     "NVIDIA/nccl src/init.cc (DEFAULT_BUFFSIZE, DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE), "
     "src/include/device.h; \"coll channels\" in its logs on nodes of 8 A100 and H100",
     true},
    {PROGRAM_MEMORY_CUBLAS,
     "PyTorch's, 32 MiB from Hopper on and 8.125 before, 128 on MI300X, and Transformer "
     "Engine's, 32 MiB and 4",
     "PyTorch aten/src/ATen/cuda/CublasHandlePool.cpp (parseChosenWorkspaceSize); "
     "TransformerEngine transformer_engine/pytorch/module/base.py "
     "(get_cublas_workspace_size_bytes)",
     false},
    {PROGRAM_MEMORY_CONTEXT,
     "0.47 GiB: the memory that PyTorch 2.1 takes on an A100 for a first tensor, with kernels "
     "loaded when they are used",
     "stas00/ml-engineering training/performance/README.md (Preloaded CUDA kernels memory usage)",
     true},
};
_Static_assert(sizeof overheads / sizeof *overheads ==
                   PROGRAM_MEMORY_CACHE - PROGRAM_OVERHEAD_FIRST,
               "each kind has its row");

enum { SCENARIO_BYTES = 1024, ROWS_MAX = 32 };
static const double GIB = 1073741824.0, GB = 1e9;

/* Of the role that holds most. */
struct peak {
    uint64_t bytes[PROGRAM_MEMORY_COUNT];
    double all, allocated; /* Without what PyTorch's allocator does not see. */
    double capacity;
};

static _Noreturn void stop(const char *title, const struct error *error)
{
    (void)fprintf(stderr, "%s: %s: %s\n", title, error->where, error->message);
    exit(1);
}

/* GPT as Megatron-LM has it, of the sizes of the paper. */
static void gpt_set(const struct memory_row *row, struct model *model)
{
    static const struct {
        uint64_t layers, width, heads;
    } sizes[] = {{22, 2304, 24}, {30, 4096, 32}, {46, 5120, 40}, {62, 6144, 48}};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].layers != row->layers) continue;
        model->width = sizes[i].width;
        model->heads = model->kv_heads = sizes[i].heads;
        model->head_width = model->width / model->heads;
    }
    model->mlp_width = 4 * model->width;
    model->vocabulary = 32000;
}

static void model_set(const struct memory_row *row, struct model *model)
{
    model->layers = row->layers;
    if (model->experts.count != 0) model->experts.dense_layers = row->dense_layers;
    if (strcmp(row->model, "llama-3-405b") == 0) model->kv_heads = 16; /* As it was measured. */
    if (strcmp(row->model, "megatron-1.7b") == 0) gpt_set(row, model);
}

static void fit_set(const struct memory_fit *fit, struct model *model)
{
    if (fit->layers == 0) return;
    model->layers = fit->layers;
    model->width = fit->width;
    model->mlp_width = 4 * fit->width;
    model->heads = fit->heads;
    model->kv_heads = fit->kv_heads;
    model->head_width = fit->width / fit->heads;
    model->vocabulary = fit->vocabulary;
    model->tied = false;
}

/* Rows of which some members of the scenario are the same. `either`: what is printed as GB may be
 * GiB. */
struct table {
    const char *machine, *workload;
    const struct memory_row *row;
    bool either;
    uint32_t count;
    struct peak book[ROWS_MAX], framework[ROWS_MAX];
};

/* A scenario's text; its model changed to a row's, or a fit's, or NULL. */
static struct peak simulate(const char *title, const char *text, int length,
                            const struct memory_row *row, const struct memory_fit *fit)
{
    struct play play = {.arena = arena_create(0)};
    struct error error = {0};
    struct play_options const options = {.steps_max = 1};
    if (scenario_read_text(play.arena, title, text, (uint64_t)length, NULL, 0, &play.scenario,
                           &error) != STATUS_OK)
        stop(title, &error);
    if (row != NULL) model_set(row, &play.scenario.workload.model);
    if (fit != NULL) fit_set(fit, &play.scenario.workload.model);
    if (play_stages(&play, &options, &error) != STATUS_OK) stop(title, &error);
    const struct trace *trace = &play.trace;
    struct peak peak = {.all = (double)trace->memory.peak_bytes,
                        .capacity = (double)play.machine.chip.hbm_capacity_bytes};
    peak.allocated = peak.all;
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
        bool const is_overhead = m >= PROGRAM_OVERHEAD_FIRST && m < PROGRAM_MEMORY_CACHE;
        peak.bytes[m] = trace->memory.at_peak_bytes[m];
        if (is_overhead && overheads[m - PROGRAM_OVERHEAD_FIRST].outside)
            peak.allocated -= (double)peak.bytes[m];
    }
    play_close(&play);
    return peak;
}

static struct peak peak_of(const struct memory_row *row, const struct table *table,
                           const char *memory)
{
    char text[SCENARIO_BYTES], stages[128] = "", layout[64] = "";
    const char *nodes = strstr(row->mesh, "node:");
    bool const shards = strstr(row->mesh, "dp") != NULL || strstr(row->mesh, "ep") != NULL ||
                        strstr(row->mesh, "cp") != NULL;
    if (row->layout != NULL)
        (void)snprintf(layout, sizeof layout, ",\"layout\":\"%s\"", row->layout);
    if (row->schedule != NULL)
        (void)snprintf(stages, sizeof stages, ",\"schedule\":\"%s\"%s", row->schedule, layout);
    int const length = snprintf(
        text, sizeof text,
        "{\"podsim\":1,\"machine\":{%s,\"profile\":\"measured\",\"nodes\":%c},\"mesh\":{%s},"
        "\"workload\":{\"kind\":\"train_step\",\"model\":\"%s\",\"batch_tokens\":%llu,"
        "\"sequence_length\":%u,\"accumulate\":%u,\"zero\":%d,\"memory\":\"%s\","
        "\"allow_oversubscription\":true%s%s%s%s}}",
        table->machine, nodes == NULL ? '1' : nodes[5], row->mesh, row->model,
        (unsigned long long)row->data * row->length * row->microbatches, row->length,
        row->microbatches, shards, memory, table->workload, stages,
        strstr(row->mesh, "cp") != NULL ? ",\"context\":\"ulysses\"" : "",
        strstr(row->model, "deepseek-v3") != NULL ? ",\"mtp\":false" : "");
    return simulate(row->title, text, length, row, NULL);
}

static double part(const struct peak *peak, enum program_memory memory, double unit)
{
    return (double)peak->bytes[memory] / unit;
}

static double percent(double got, double wanted)
{
    return 100 * (got / wanted - 1);
}

static double unit_of(const struct table *table)
{
    return table->either ? GB : GIB;
}

static void table_simulate(struct table *table)
{
    SIM_ASSERT(table->count <= ROWS_MAX);
    for (uint32_t i = 0; i < table->count; i++) {
        table->book[i] = peak_of(&table->row[i], table, "book");
        table->framework[i] = peak_of(&table->row[i], table, "framework");
    }
}

static double book_error(const struct table *table, uint32_t i)
{
    return percent(table->book[i].all / unit_of(table), table->row[i].measured);
}

/* Of a row's bytes in this unit. */
static double error_in(const struct table *table, uint32_t i, double unit)
{
    return percent(table->framework[i].allocated / unit, table->row[i].measured);
}

static double error_of(const struct table *table, uint32_t i)
{
    return error_in(table, i, unit_of(table));
}

/* What was measured and podsim lacks. */
static double left_of(const struct table *table, uint32_t i)
{
    return table->row[i].measured - table->framework[i].allocated / unit_of(table);
}

static void add_rows(struct strbuf *text, const struct table *table)
{
    strbuf_add(text, "| step | measured, %s | book | error | framework | error |%s\n",
               table->either ? "GB" : "GiB", table->either ? " error if these are GiB |" : "");
    strbuf_add(text, "|---|---|---|---|---|---|%s\n", table->either ? "---|" : "");
    for (uint32_t i = 0; i < table->count; i++) {
        strbuf_add(text, "| %s | %.4g | %.1f | %+.0f %% | %.1f | %+.1f %% |", table->row[i].title,
                   table->row[i].measured, table->book[i].all / unit_of(table),
                   book_error(table, i), table->framework[i].allocated / unit_of(table),
                   error_of(table, i));
        if (table->either) strbuf_add(text, " %+.1f %% |", error_in(table, i, GIB));
        strbuf_add(text, "\n");
    }
}

static void add_parts(struct strbuf *text, const struct table *table)
{
    double const unit_bytes = unit_of(table);
    strbuf_add(
        text,
        "| step | parameters | main gradients | optimizer, master weights | saved activations "
        "| activation outputs | masks | buffers | logits in fp32 | autograd gradients | "
        "workspaces | sum | measured, %s | left |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        table->either ? "GB" : "GiB");
    for (uint32_t i = 0; i < table->count; i++) {
        const struct peak *peak = &table->framework[i];
        strbuf_add(text, "| %s |", table->row[i].title);
        strbuf_add(text, " %.1f | %.1f | %.1f |", part(peak, PROGRAM_MEMORY_PARAMETERS, unit_bytes),
                   part(peak, PROGRAM_MEMORY_MAIN_GRADIENTS, unit_bytes),
                   part(peak, PROGRAM_MEMORY_OPTIMIZER, unit_bytes) +
                       part(peak, PROGRAM_MEMORY_MASTER, unit_bytes));
        static const enum program_memory others[] = {
            PROGRAM_MEMORY_ACTIVATIONS, PROGRAM_MEMORY_ACTIVATED, PROGRAM_MEMORY_MASKS,
            PROGRAM_MEMORY_BUFFERS,     PROGRAM_MEMORY_LOSS,      PROGRAM_MEMORY_AUTOGRAD,
            PROGRAM_MEMORY_CUBLAS};
        for (uint32_t p = 0; p < sizeof others / sizeof *others; p++)
            strbuf_add(text, " %.1f |", part(peak, others[p], unit_bytes));
        strbuf_add(text, " %.1f | %.4g | %+.1f |\n", peak->allocated / unit_bytes,
                   table->row[i].measured, left_of(table, i));
    }
}

/* The least and the most of figures. */
struct spread {
    double least, most;
};

static const struct spread nothing = {INFINITY, -INFINITY};

static void spread_add(struct spread *spread, double figure)
{
    spread->least = fmin(spread->least, figure);
    spread->most = fmax(spread->most, figure);
}

static bool is_long(const struct memory_row *row)
{
    return row->length > 32768;
}

static void add_b200_differences(struct strbuf *text, const struct table *b200)
{
    struct table whole = *b200;
    struct spread left = nothing;
    double fused = 0, unfused = 0;
    whole.workload = ",\"attention\":\"causal\"";
    for (uint32_t i = 0; i < b200->count; i++) {
        if (strstr(b200->row[i].model, "deepseek") != NULL) spread_add(&left, left_of(b200, i));
        if (fused != 0 || !is_long(&b200->row[i])) continue;
        fused = b200->framework[i].allocated;
        unfused = peak_of(&b200->row[i], &whole, "framework").allocated;
    }
    strbuf_add(text, memory_b200_differences, (unfused - fused) / GIB, left.least, left.most);
}

/* Bytes that each microbatch keeps where `zb-h2` holds all but one of two for each stage. */
static double microbatch_bytes(const struct peak *peak, uint32_t stages)
{
    return (double)(peak->bytes[PROGRAM_MEMORY_ACTIVATIONS] +
                    peak->bytes[PROGRAM_MEMORY_ACTIVATED] + peak->bytes[PROGRAM_MEMORY_MASKS]) /
           (2 * stages - 1);
}

/* GPTs of 1.5B and of 6.2B have eight stages. */
static void add_zero_bubble_differences(struct strbuf *text, const struct table *gpts)
{
    enum { LAYERS_1_5B = 22, LAYERS_6_2B = 30, STAGES = 8 };
    struct table flash = *gpts;
    struct spread with_flash = nothing, small = nothing, large = nothing, gib = nothing,
                  gib_zb_2p = nothing;
    double small_zb_2p = 0, left[2] = {0}, each[2] = {0};
    flash.workload = ",\"attention_kernel\":\"flash\"";
    for (uint32_t i = 0; i < gpts->count; i++) {
        const struct memory_row *row = &gpts->row[i];
        bool const is_zb_2p = strcmp(row->schedule, "zb-h2") == 0;
        bool const is_small = row->layers == LAYERS_1_5B;
        flash.framework[i] = peak_of(row, &flash, "framework");
        spread_add(&with_flash, -error_of(&flash, i));
        if (is_zb_2p && (is_small || row->layers == LAYERS_6_2B)) {
            left[!is_small] = left_of(gpts, i);
            each[!is_small] = microbatch_bytes(&gpts->framework[i], STAGES) / GB;
        }
        if (is_small && is_zb_2p) small_zb_2p = error_of(gpts, i);
        if (is_small && !is_zb_2p) spread_add(&small, error_of(gpts, i));
        if (is_small) continue;
        spread_add(&large, error_of(gpts, i));
        spread_add(is_zb_2p ? &gib_zb_2p : &gib, error_in(gpts, i, GIB));
    }
    strbuf_add(text, memory_zero_bubble_differences, with_flash.least, with_flash.most, large.least,
               large.most, gib.least, gib.most, gib_zb_2p.least, gib_zb_2p.most, small.least,
               small.most, small_zb_2p, left[0], left[1], each[0], each[1]);
}

static void add_summary(struct strbuf *text, const struct table *b200, const struct table *gpts)
{
    struct spread book = nothing, shorter = nothing, longer = nothing, gpt = nothing;
    for (uint32_t i = 0; i < b200->count; i++) {
        spread_add(&book, -book_error(b200, i));
        spread_add(is_long(&b200->row[i]) ? &longer : &shorter, error_of(b200, i));
    }
    for (uint32_t i = 0; i < gpts->count; i++) {
        spread_add(&book, -book_error(gpts, i));
        spread_add(&gpt, error_of(gpts, i));
    }
    strbuf_add(text, memory_summary, book.least, book.most, shorter.least, shorter.most,
               longer.least, longer.most, gpt.least, gpt.most);
}

static void add_overheads(struct strbuf *text)
{
#define X(name, text) text,
    static const char *const names[] = {PROGRAM_OVERHEAD_TABLE(X)};
#undef X
    strbuf_add(text, "| row | what is held | source |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof overheads / sizeof *overheads; i++) {
        SIM_ASSERT(overheads[i].memory == PROGRAM_OVERHEAD_FIRST + i);
        strbuf_add(text, "| %s%s | %s | %s |\n", names[i], overheads[i].outside ? " *" : "",
                   overheads[i].what, overheads[i].source);
    }
}

static struct peak fit_play(const struct memory_fit *fit, bool published)
{
    char text[SCENARIO_BYTES];
    int const length =
        snprintf(text, sizeof text,
                 "{\"podsim\":1,\"machine\":{%s,\"profile\":\"measured\"},\"mesh\":{%s},"
                 "\"workload\":{\"kind\":\"train_step\",%s,\"attention\":\"causal\",%s,"
                 "\"allow_oversubscription\":true}}",
                 fit->machine, fit->mesh, fit->workload, published ? fit->published : fit->counted);
    return simulate(fit->title, text, length, NULL, fit);
}

static void add_fits(struct strbuf *text)
{
    strbuf_add(
        text,
        "| run | as assumed, GB | as published, GB | a GPU has, GB | refused | reason | source |\n"
        "|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < memory_fit_count; i++) {
        const struct memory_fit *fit = &memory_fits[i];
        struct peak const assumed = fit_play(fit, false), published = fit_play(fit, true);
        const char *const refused = published.all > published.capacity ? "both"
                                    : assumed.all > assumed.capacity   ? "as assumed"
                                                                       : "neither";
        strbuf_add(text, "| %s | %.1f | %.1f | %.1f | %s | %s | %s |\n", fit->title,
                   assumed.all / GB, published.all / GB, published.capacity / GB, refused,
                   fit->reason, fit->source);
    }
}

static void add_document(struct strbuf *text, const struct table *b200, const struct table *gpts)
{
    strbuf_add_bytes(text, memory_head, sizeof memory_head - 1);
    add_overheads(text);
    strbuf_add_bytes(text, memory_b200_head, sizeof memory_b200_head - 1);
    add_rows(text, b200);
    strbuf_add_bytes(text, memory_b200_parts, sizeof memory_b200_parts - 1);
    add_parts(text, b200);
    add_b200_differences(text, b200);
    strbuf_add_bytes(text, memory_zero_bubble_head, sizeof memory_zero_bubble_head - 1);
    add_rows(text, gpts);
    strbuf_add_bytes(text, memory_zero_bubble_parts, sizeof memory_zero_bubble_parts - 1);
    add_parts(text, gpts);
    add_zero_bubble_differences(text, gpts);
    strbuf_add_bytes(text, memory_fits_head, sizeof memory_fits_head - 1);
    add_fits(text);
    strbuf_add_bytes(text, memory_tail, sizeof memory_tail - 1);
}

int main(int argc, char **argv)
{
    static struct table b200 = {.machine = "\"chip\":\"b200\"",
                                .workload = ",\"attention\":\"causal\",\"loss_fusion\":\"te\"",
                                .row = memory_b200};
    static struct table gpts = {.machine = "\"chip\":\"a100-sxm\"",
                                .workload = ",\"attention_kernel\":\"unfused_dropout\"",
                                .row = memory_zero_bubble,
                                .either = true};
    struct strbuf text = {0};
    if (argc != 1 && argc != 3) {
        (void)fprintf(stderr,
                      "test_measured_memory [--markdown FILE | --check FILE | --summary FILE]\n");
        return 2;
    }
    bool const is_summary = argc == 3 && strcmp(argv[1], "--summary") == 0;
    b200.count = memory_b200_count;
    gpts.count = memory_zero_bubble_count;
    table_simulate(&b200);
    table_simulate(&gpts);
    if (is_summary)
        add_summary(&text, &b200, &gpts);
    else
        add_document(&text, &b200, &gpts);
    const char *mode = argc == 3 ? argv[1] : NULL;
    return document_end(&text, is_summary ? "--contains" : mode, argc == 3 ? argv[2] : NULL);
}
