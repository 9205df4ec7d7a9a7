/*
 * Steps of inference: experts that are read, rows of windows and of chunks, and how a cache lies.
 */
#include <math.h>

#include "sim/graph/parameters.h"
#include "sim/roofline/inference.h"
#include "sim/step/counts.h"
#include "sim/step/ranks.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/unit/workload_case.h"

static void made_of(struct workload_case *made, const char *name, const char *shape,
                    const char *const parts[MESH_ROLE_COUNT], struct inference_plan plan)
{
    struct model const model = catalogue_model(name);
    assert_int_equal(case_build_roles(made, &model, shape, parts), STATUS_OK);
    made->plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
    made->plan.kind = plan.decodes.count == 0   ? WORKLOAD_PREFILL
                      : plan.prompts.count == 0 ? WORKLOAD_DECODE
                                                : WORKLOAD_MIXED;
    made->plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    made->plan.inference = plan;
}

/* E·(1 - (1 - k/E)^B) of all are E/ep of a rank's at most. */
static void experts_that_no_token_asks_for_are_not_read(void **state)
{
    static const uint64_t context[] = {1024};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_EP] = "x"};
    (void)state;
    for (uint64_t batch = 1; batch <= 4096; batch = batch * 5 / 3 + 1) {
        struct workload_case made;
        struct ranks ranks;
        made_of(&made, "qwen3-30b-a3b", "4x1x1", parts,
                (struct inference_plan){.decodes = {batch, lengths_given(context, 1), 1}});
        case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
        double const of_all = 128 * (1 - pow(1 - 8.0 / 128, (double)batch));
        assert_int_equal(ranks.experts.asked, (uint64_t)ceil(of_all / 4 - 1e-9));
        case_free(&made);
    }
}

/* Qwen3-30B-A3B on one chip: products of attention, the router and the head have all tokens, those
 * of experts the tokens' rows on the experts that are asked for, and all rows go in eights. Bytes
 * of experts are those of the mean, which is no whole number. */
static void experts_that_no_token_asks_for_are_not_multiplied(void **state)
{
    static const uint64_t context[] = {1024};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x"};
    double const D = 2048, heads = 32, kv_heads = 4, H = 128, E = 128, Fe = 768, V = 151936;
    (void)state;
    for (uint64_t batch = 1; batch <= 4096; batch = batch * 5 / 3 + 1) {
        struct workload_case made;
        struct workload_counts counts;
        made_of(&made, "qwen3-30b-a3b", "1x1x1", parts,
                (struct inference_plan){.decodes = {batch, lengths_given(context, 1), 1}});
        case_ok(workload_count(&made.plan, &made.machine, &made.mesh, &counts, &case_error));
        double const asked = ceil(E * (1 - pow(1 - 8 / E, (double)batch)) - 1e-9);
        double const rows = ceil((double)batch * 8 / asked);
        double const tokens = ceil((double)batch / 8) * 8, filled = ceil(rows / 8) * 8;
        double const layer =
            tokens * D * ((2 * heads + 2 * kv_heads) * H + E) + asked * filled * 3 * D * Fe;
        case_near(counts.linear.padded_flop, 2 * (48 * layer + tokens * D * V), 1e-12);
        double const read = E * (1 - pow(1 - 8 / E, (double)batch));
        double const weights = D * ((2 * heads + 2 * kv_heads) * H + E) + read * 3 * D * Fe;
        case_near(counts.inference.weight_bytes, 2 * (48 * weights + D * V), 1e-7);
        /* Rows that are rounded up are executed, and none of what the step is for. */
        double const spare = 2 * 48 * (asked * rows - (double)batch * 8) * 3 * D * Fe;
        case_near(counts.spare.waiting, spare, 1e-12);
        case_near(counts.matmul_flop, counts.matmul_useful + spare, 1e-12);
        case_free(&made);
    }
}

static double read_bytes(const char *name, struct inference_plan plan)
{
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x"};
    struct workload_case made;
    struct workload_counts counts;
    made_of(&made, name, "1x1x1", parts, plan);
    case_ok(workload_count(&made.plan, &made.machine, &made.mesh, &counts, &case_error));
    case_free(&made);
    return counts.inference.kv_read_bytes;
}

/* A scale of 16 bits for 128 numbers of int4, one of 8 bits for 32 of mxfp4 and for 16 of nvfp4;
 * the head in a format of its own; K and V of 8 heads of 128 columns. */
static void narrow_weights_and_caches_have_scales(void **state)
{
    static const struct {
        enum format format;
        double bytes;
    } rows[] = {{FORMAT_BF16, 2},         {FORMAT_FP8, 1},          {FORMAT_INT8, 1},
                {FORMAT_INT4, 4.125 / 8}, {FORMAT_FP4, 4.25 / 8},   {FORMAT_MXFP4, 4.25 / 8},
                {FORMAT_NVFP4, 4.5 / 8},  {FORMAT_INT4, 4.125 / 8}, {FORMAT_FP16, 2}};
    static const uint64_t context[] = {1024};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x"};
    double const layer = 4096. * (2 * 32 + 2 * 8) * 128 + 3 * 4096. * 14336;
    double const head = 4096. * 128256, norms = 32 * 2 * 4096.;
    (void)state;
    for (size_t i = 0; i + 2 < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        struct workload_counts counts;
        made_of(&made, "llama-3-8b", "1x1x1", parts,
                (struct inference_plan){.decodes = {4, lengths_given(context, 1), 1},
                                        .cache = rows[i + 1].format,
                                        .head = rows[i + 2].format});
        made.plan.formats.weights = rows[i].format;
        case_ok(workload_count(&made.plan, &made.machine, &made.mesh, &counts, &case_error));
        case_near(counts.inference.weight_bytes,
                  32 * layer * rows[i].bytes + head * rows[i + 2].bytes, 1e-12);
        case_near(counts.inference.kv_read_bytes, 32. * 4 * 1024 * 2 * 8 * 128 * rows[i + 1].bytes,
                  1e-12);
        case_near(counts.memory.parameter_bytes,
                  (32 * layer + head + norms) * rows[i].bytes + (head + 4096) * rows[i + 2].bytes,
                  1e-12);
        case_ok(workload_lower(case_arena, &made.plan, &made.machine, &made.mesh, &made.program,
                               &case_error));
        case_near((double)made.program.roles[0].resident_bytes[PROGRAM_MEMORY_PARAMETERS],
                  counts.memory.parameter_bytes, 1e-6);
        case_free(&made);
    }
    assert_int_equal(format_stored_bytes(FORMAT_NVFP4, 17), 9 + 2);
    assert_int_equal(format_stored_bytes(FORMAT_INT4, 1), 1 + 2);
    assert_int_equal(format_bytes(FORMAT_INT4, 256), 128);
}

/* Half of gpt-oss' 24 layers see 128 keys; 8 heads of 64 columns, K and V, of two bytes. */
static void layers_with_a_window_read_the_window(void **state)
{
    static const uint64_t lengths[] = {100, 128, 4096, 129};
    double const row_bytes = 2 * 8 * 64 * 2;
    (void)state;
    struct inference_plan const decode = {.decodes = {4, lengths_given(lengths, 4), 1}};
    case_near(read_bytes("gpt-oss-20b", decode),
              12 * row_bytes * ((100 + 128 + 4096 + 129) + (100 + 128 + 128 + 128)), 1e-12);
    struct workload_plan plan = {.kind = WORKLOAD_DECODE, .inference = decode};
    plan.model.attends.window = 128;
    assert_int_equal(inference_window_tokens(&plan, INFERENCE_DECODES), 100 + 128 + 128 + 128);
    /* Of a prompt behind cached tokens, those that its first token still sees. */
    struct inference_plan const prefill = {.prompts = {4, lengths_given(lengths, 4), 1000, 0}};
    case_near(read_bytes("gpt-oss-20b", prefill),
              12 * row_bytes * (4 * 1000 + 4 * 127 + 2 * (100 + 128 + 4096 + 129)), 1e-12);
    /* In chunks, those that the first token of a whole one sees, and the chunk. */
    plan.inference = prefill;
    assert_int_equal(inference_window_tokens(&plan, INFERENCE_PROMPTS),
                     4 * 127 + 100 + 128 + 4096 + 129);
    plan.inference.prompts.chunk = 110;
    assert_int_equal(inference_window_tokens(&plan, INFERENCE_PROMPTS), 4 * 127 + 100 + 3 * 110);
}

/* Each layer of the program is of its own kind: sums over all ops are those over the graphs. */
static void programs_read_what_is_counted(void **state)
{
    static const uint64_t lengths[] = {100, 128, 4096, 129};
    static const char *const models[] = {"gpt-oss-20b", "llama-3-8b", "deepseek-v3"};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x"};
    (void)state;
    for (size_t k = 0; k < 4 * sizeof models / sizeof *models; k++) {
        struct workload_case made;
        struct workload_counts counts;
        double bytes = 0, flop = 0;
        struct inference_plan plan = {.ways.sharding = INFERENCE_AUTO};
        if (k % 4 == 0 || k % 4 == 1)
            plan.decodes = (struct inference_decodes){4, lengths_given(lengths, 4), 2};
        if (k % 4 != 0)
            plan.prompts = (struct inference_prompts){4, lengths_given(lengths, 4), 300, 0};
        if (k % 4 == 3) plan.prompts.chunk = 1000;
        made_of(&made, models[k / 4], "1x1x1", parts, plan);
        case_ok(workload_count(&made.plan, &made.machine, &made.mesh, &counts, &case_error));
        case_ok(workload_lower(case_arena, &made.plan, &made.machine, &made.mesh, &made.program,
                               &case_error));
        const struct program_role *role = &made.program.roles[0];
        for (uint32_t b = 0; b < role->block_count; b++) {
            const struct program_template *of =
                &made.program.templates[role->block[b].template_index];
            for (uint32_t i = 0; i < of->op_count; i++) {
                if (of->op[i].kind != PROGRAM_OP_COMPUTE) continue;
                const struct work *work = &made.program.works[of->op[i].index];
                double const times = role->block[b].repeat;
                bytes += times * (double)(work->hbm_read_bytes + work->hbm_write_bytes);
                flop += times * (double)work_matmul_flop(work);
            }
        }
        case_near(bytes, counts.hbm_bytes, 1e-12);
        case_near(flop, counts.matmul_flop, 1e-12);
        case_free(&made);
    }
}

static const struct model tiny = {.kind = MODEL_DECODER,
                                  .name = "tiny",
                                  .layers = 1,
                                  .width = 8,
                                  .mlp_width = 8,
                                  .matrices = 3,
                                  .heads = 1,
                                  .kv_heads = 1,
                                  .head_width = 8,
                                  .vocabulary = 8};

/* A prompt of 2^24 tokens that see one another has 2^48 scores, of two products of 8 columns: 2^53
 * FLOP. So 512 prompts have 2^62 and 2^16 have 2^64 scores. */
static void scores_that_would_wrap_are_refused(void **state)
{
    static const uint64_t length[] = {1 << 24};
    static const uint64_t counts[] = {511, 512, 4096, 65535, 65536};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x"};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct workload_case made;
        struct ranks ranks;
        assert_int_equal(case_build_roles(&made, &tiny, "1x1x1", parts), STATUS_OK);
        made.plan.kind = WORKLOAD_PREFILL;
        made.plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
        made.plan.attention.mask = WORKLOAD_ATTENTION_FULL;
        made.plan.inference =
            (struct inference_plan){.prompts = {counts[i], lengths_given(length, 1), 0, 0}};
        enum status const status =
            ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error);
        if (counts[i] < 512)
            case_ok(status);
        else
            case_refused(status, STATUS_LIMIT, "/workload", "fewer or shorter sequences");
        case_free(&made);
    }
}

static void works_equal(const struct program *one, uint32_t of_one, const struct program *other,
                        uint32_t of_other)
{
    const struct program_template *a = &one->templates[of_one], *b = &other->templates[of_other];
    assert_int_equal(a->op_count, b->op_count);
    for (uint32_t i = 0; i < a->op_count; i++) {
        assert_int_equal(a->op[i].kind, b->op[i].kind);
        if (a->op[i].kind == PROGRAM_OP_COMPUTE)
            assert_memory_equal(&one->works[a->op[i].index], &other->works[b->op[i].index],
                                sizeof(struct work));
        else
            assert_int_equal(one->plans[a->op[i].index].size_bytes,
                             other->plans[b->op[i].index].size_bytes);
    }
}

/* A pass of a prompt in chunks is the prefill of a chunk behind those before it, but that only the
 * last wants logits. */
static void chunks_are_prompts_behind_cached_tokens(void **state)
{
    enum { PROMPT = 2500, CHUNK = 600 };
    static const uint64_t prompt[] = {PROMPT};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_TP] = "x"};
    static const char *const models[] = {"gpt-oss-20b", "llama-3-8b", "deepseek-v3"};
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct workload_case all;
        made_of(&all, models[m], "4x1x1", parts,
                (struct inference_plan){.prompts = {2, lengths_given(prompt, 1), 300, CHUNK}});
        case_ok(workload_lower(case_arena, &all.plan, &all.machine, &all.mesh, &all.program,
                               &case_error));
        const struct program_role *role = &all.program.roles[0];
        uint32_t b = 0;
        for (uint64_t done = 0; done < PROMPT; done += CHUNK) {
            uint64_t const left = PROMPT - done, length[] = {left < CHUNK ? left : CHUNK};
            struct workload_case one;
            made_of(
                &one, models[m], "4x1x1", parts,
                (struct inference_plan){.prompts = {2, lengths_given(length, 1), 300 + done, 0}});
            case_ok(workload_lower(case_arena, &one.plan, &one.machine, &one.mesh, &one.program,
                                   &case_error));
            const struct program_role *alone = &one.program.roles[0];
            uint32_t const blocks = alone->block_count - (left > CHUNK);
            for (uint32_t i = 0; i < blocks; i++, b++) {
                assert_true(b < role->block_count);
                assert_int_equal(role->block[b].microbatch, done / CHUNK);
                assert_int_equal(role->block[b].repeat, alone->block[i].repeat);
                works_equal(&all.program, role->block[b].template_index, &one.program,
                            alone->block[i].template_index);
            }
            case_free(&one);
        }
        assert_int_equal(b, role->block_count);
        case_free(&all);
    }
}

/* Heads of keys as far as they go; then sequences, if each rank has one; then rows. What is given
 * lies so. */
static const uint64_t own_lengths[] = {1000, 3000, 100, 100, 900};
static const char *const apart_parts[MESH_ROLE_COUNT] = {[MESH_TP] = "x", [MESH_TP_D] = "y"};
/* 16 ranks of tp, of which two hold the same head. */
static const char *const holding_parts[MESH_ROLE_COUNT] = {[MESH_TP] = "y z", [MESH_TP_D] = "x"};
enum { ALIKE, HEADS, TOKENS, ROWS }; /* enum graph_apart */
static const struct {
    const char *shape;
    uint64_t batch;
    uint32_t count; /* Of lengths. */
    bool holds, prefills;
    uint32_t heads, batch_given, sequence; /* 0: auto; or, with no heads, 1: replicated. */
    uint32_t apart, batch_ways, sequence_ways;
    uint64_t tokens, read;
} lying[] = {
    {"2x4x1", 8, 1, false, false, 0, 0, 0, HEADS, 1, 1, 8, 8000},
    {"4x4x1", 8, 1, false, false, 0, 0, 0, TOKENS, 1, 1, 8, 2000},
    {"4x4x1", 9, 1, false, false, 0, 0, 0, TOKENS, 1, 1, 12, 3000},
    {"4x4x1", 5, 5, false, false, 0, 0, 0, TOKENS, 1, 1, 8, 4000},
    {"4x4x1", 3, 1, false, false, 0, 0, 0, ROWS, 1, 1, 3, 750},
    {"4x4x1", 5, 5, false, true, 0, 0, 0, ROWS, 1, 1, 5100, 1275},
    {"4x4x1", 5, 1, false, true, 0, 0, 0, TOKENS, 1, 1, 8000, 2000},
    {"4x4x1", 8, 1, false, false, 0, 1, 0, ALIKE, 1, 1, 8, 8000},
    {"4x4x1", 8, 1, false, false, 4, 1, 4, ROWS, 1, 1, 8, 2000},
    {"4x4x1", 8, 1, false, false, 4, 4, 1, TOKENS, 1, 1, 8, 2000},
    {"4x4x4", 8, 1, true, false, 0, 0, 0, TOKENS, 2, 1, 8, 1000},
    {"4x4x4", 4, 1, true, false, 0, 0, 0, TOKENS, 1, 2, 4, 500},
    {"4x4x4", 3, 1, true, false, 0, 0, 0, ROWS, 1, 2, 3, 375},
    {"4x4x4", 8, 1, true, false, 8, 4, 2, TOKENS, 1, 2, 8, 1000},
    {"4x4x4", 8, 1, true, false, 8, 1, 8, ROWS, 1, 2, 8, 1000},
    {"4x4x4", 8, 1, true, true, 0, 0, 0, TOKENS, 1, 1, 8000, 2000},
};

static void ranks_of_tp_d_have_heads_sequences_or_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lying / sizeof *lying; i++) {
        const char *const *parts = lying[i].holds ? holding_parts : apart_parts;
        struct workload_case made;
        struct ranks ranks;
        struct lengths const lengths = lengths_given(own_lengths, lying[i].count);
        struct inference_plan plan = {.ways.sharding = INFERENCE_AUTO};
        plan.ways =
            (struct inference_ways){lying[i].heads != 0         ? INFERENCE_GIVEN
                                    : lying[i].batch_given != 0 ? INFERENCE_REPLICATED
                                                                : INFERENCE_AUTO,
                                    lying[i].heads, lying[i].batch_given, lying[i].sequence};
        if (lying[i].prefills)
            plan.prompts = (struct inference_prompts){lying[i].batch, lengths, 0, 0};
        else
            plan.decodes = (struct inference_decodes){lying[i].batch, lengths, 1};
        made_of(&made, "llama-3-8b", lying[i].shape, parts, plan);
        case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
        const struct inference_ranks *of = &ranks.inference;
        assert_int_equal(of->apart, lying[i].apart);
        assert_int_equal(of->batch_ways, lying[i].batch_ways);
        assert_int_equal(of->sequence_ways, lying[i].sequence_ways);
        assert_int_equal(of->tokens, lying[i].tokens);
        assert_int_equal(of->served[lying[i].prefills][0].read, lying[i].read);
        case_free(&made);
    }
}

/* Of latent attention, whose heads all read the same rows: sequences, or parts of them; heads of
 * queries in a prefill, or where they are given. */
static void latents_are_shared_by_sequences_first(void **state)
{
    static const uint64_t length[] = {1000};
    static const struct {
        uint64_t batch;
        bool prefills;
        uint32_t heads, batch_given, sequence; /* 0: auto. */
        uint32_t apart, batch_ways, sequence_ways;
        uint64_t tokens, read;
        bool begins;
    } rows[] = {
        {16, false, 0, 0, 0, TOKENS, 4, 1, 16, 1000, false},
        {15, false, 0, 0, 0, TOKENS, 4, 1, 16, 1000, false},
        {8, false, 0, 0, 0, TOKENS, 1, 4, 8, 500, false},
        {3, false, 0, 0, 0, ROWS, 1, 4, 3, 188, false},
        {4, true, 0, 0, 0, TOKENS, 1, 1, 4000, 1000, true},
        {3, true, 0, 0, 0, HEADS, 1, 1, 3000, 3000, true},
        {16, false, 4, 4, 1, HEADS, 4, 1, 16, 4000, false},
        {16, false, 4, 1, 4, HEADS, 1, 4, 16, 4000, false},
        {16, false, 1, 16, 1, TOKENS, 4, 1, 16, 1000, false},
        {16, false, 1, 4, 4, TOKENS, 1, 4, 16, 1000, false},
        {16, false, 1, 1, 16, ROWS, 1, 4, 16, 1000, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        struct ranks ranks;
        struct lengths const lengths = lengths_given(length, 1);
        struct inference_plan plan = {
            .ways = {rows[i].heads == 0 ? INFERENCE_AUTO : INFERENCE_GIVEN, rows[i].heads,
                     rows[i].batch_given, rows[i].sequence}};
        if (rows[i].prefills)
            plan.prompts = (struct inference_prompts){rows[i].batch, lengths, 0, 0};
        else
            plan.decodes = (struct inference_decodes){rows[i].batch, lengths, 1};
        made_of(&made, "deepseek-v3", "4x4x1", apart_parts, plan);
        case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
        const struct inference_ranks *of = &ranks.inference;
        assert_int_equal(of->apart, rows[i].apart);
        assert_int_equal(of->batch_ways, rows[i].batch_ways);
        assert_int_equal(of->sequence_ways, rows[i].sequence_ways);
        assert_int_equal(of->tokens, rows[i].tokens);
        assert_int_equal(of->served[rows[i].prefills][0].read, rows[i].read);
        assert_int_equal(of->begins, rows[i].begins);
        case_free(&made);
    }
}

/* Prompts of 3 and 5 tokens behind 2 in the cache: causal queries see 3+4+5 and 3+4+5+6+7 keys, 37,
 * others 3·5 + 5·7 = 50; a window of 4 leaves 3+4+4 and 3+4+4+4+4, 30. In chunks of 2 the passes
 * see 3+4 twice, 5 and 5+6, and 7. Sequences that answer are counted apart. */
static void scores_of_prompts_are_counted_by_hand(void **state)
{
    static const uint64_t prompt[] = {3, 5}, context[] = {100};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x"};
    static bool windowed[32] = {[3] = true, [8] = true};
    struct workload_case made;
    (void)state;
    made_of(&made, "llama-3-8b", "1x1x1", parts,
            (struct inference_plan){.decodes = {4, lengths_given(context, 1), 1},
                                    .prompts = {2, lengths_given(prompt, 2), 2, 0}});
    struct workload_plan *plan = &made.plan;
    assert_int_equal(inference_scores(plan, 0, INFERENCE_PROMPTS), 32 * 37);
    assert_int_equal(inference_scores(plan, 0, INFERENCE_DECODES), 32 * 400);
    plan->attention.mask = WORKLOAD_ATTENTION_FULL;
    assert_int_equal(inference_scores(plan, 0, INFERENCE_PROMPTS), 32 * 50);
    plan->attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    plan->model.by_layer.windowed = windowed;
    plan->model.attends.window = 4;
    assert_int_equal(inference_scores(plan, 0, INFERENCE_PROMPTS), 30 * 37 + 2 * 30);
    plan->model.by_layer.windowed = NULL;
    plan->inference.prompts.chunk = 2;
    assert_int_equal(inference_scores(plan, 0, INFERENCE_PROMPTS), 32 * 14);
    assert_int_equal(inference_scores(plan, 1, INFERENCE_PROMPTS), 32 * 16);
    assert_int_equal(inference_scores(plan, 2, INFERENCE_PROMPTS), 32 * 7);
    /* Of a query and a key 2·32·(128 + 128) FLOP. */
    uint64_t const columns = model_count(&plan->model).attention_columns;
    case_near(inference_attention_flop(columns, 37), 37 * 16384, 1e-12);
    case_free(&made);
}

/* Ops of weights have places in their order. They are `further` ones from the third on, where one
 * more op reads weights that other ops have. */
static void places_are(const struct ranks *ranks, const struct ranks *alone, uint32_t further)
{
    uint32_t const before = (1U << 2) - 1;
    for (uint32_t kind = 0; kind < LAYER_KINDS_MAX; kind++) {
        const struct ranks_layer *one = &ranks->layer[kind], *other = &alone->layer[kind];
        assert_int_equal(one->bucket_count, other->bucket_count);
        for (uint32_t u = 0; u < one->bucket_count; u++) {
            uint32_t const places = other->bucket[u].places, behind = places & ~before;
            uint32_t const own = u == 0 ? further << 2 : 0; /* Of attention. */
            assert_int_equal(one->bucket[u].elements, other->bucket[u].elements);
            assert_int_equal(one->bucket[u].places, (places & before) | behind << further | own);
        }
    }
}

/* Two stages have two batches, of which one has the prompt: there one more op reads the matrices
 * that bring latents up. A chip holds the same weights in both. */
static void places_of_weights_are_those_of_the_pass(void **state)
{
    static const uint64_t context[] = {64};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x", [MESH_FSDP] = "y"};
    struct inference_plan plan = {.decodes = {4, lengths_given(context, 1), 1},
                                  .prompts = {1, lengths_given(context, 1), 0, 0}};
    struct workload_case made, made_alone;
    struct ranks ranks, alone;
    (void)state;
    made_of(&made, "deepseek-v3", "2x2x1", parts, plan);
    plan.prompts.count = 0;
    made_of(&made_alone, "deepseek-v3", "2x2x1", parts, plan);
    inference_stages_set(&made.plan, 2);
    inference_stages_set(&made_alone.plan, 2);
    case_ok(
        ranks_make(&made_alone.plan, &made_alone.machine, &made_alone.mesh, &alone, &case_error));
    case_ok(ranks_make(&made.plan, &made.machine, &made.mesh, &ranks, &case_error));
    places_are(&ranks, &alone, 1);
    case_ok(ranks_pass_set(&ranks, 0, &case_error));
    places_are(&ranks, &alone, 0);
    case_ok(ranks_pass_set(&ranks, 1, &case_error));
    places_are(&ranks, &alone, 1);
    case_free(&made);
    case_free(&made_alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_that_no_token_asks_for_are_not_read),
        cmocka_unit_test(experts_that_no_token_asks_for_are_not_multiplied),
        cmocka_unit_test(narrow_weights_and_caches_have_scales),
        cmocka_unit_test(layers_with_a_window_read_the_window),
        cmocka_unit_test(programs_read_what_is_counted),
        cmocka_unit_test(scores_that_would_wrap_are_refused),
        cmocka_unit_test(chunks_are_prompts_behind_cached_tokens),
        cmocka_unit_test(ranks_of_tp_d_have_heads_sequences_or_rows),
        cmocka_unit_test(latents_are_shared_by_sequences_first),
        cmocka_unit_test(places_of_weights_are_those_of_the_pass),
        cmocka_unit_test(scores_of_prompts_are_counted_by_hand),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
