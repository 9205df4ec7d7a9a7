/* Tables of blocks and of kinds of ops: each block is a part of a model that is built in, each kind
 * is an op of such a block, and both say what they are. */
#include <string.h>

#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/unit/graph_case.h"

enum { ROWS_MAX = 64 };

static bool kind_written[ROWS_MAX], block_written[ROWS_MAX];

static void graph_mark(const struct graph *graph)
{
    for (uint8_t i = 0; i < graph->op_count; i++)
        for (uint32_t k = 0; k < op_kind_count; k++)
            kind_written[k] = kind_written[k] || op_kind_table[k] == graph->op[i].kind;
    for (uint8_t i = 0; i < graph->block_count; i++)
        for (uint32_t k = 0; k < block_count; k++)
            block_written[k] = block_written[k] || block_table[k] == graph->block[i].block;
}

/* The first and the last layer; and the ends. */
static void parts_mark(const struct workload_case *made)
{
    static struct graph graph;
    struct ranks ranks;
    struct graph_terms terms;
    case_ok(ranks_make(&made->plan, &made->machine, &made->mesh, &ranks, &case_error));
    const struct model *model = &made->plan.model;
    uint64_t const layers[] = {0, model->layers - 1};
    for (uint32_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        graph_layer_terms(&ranks, layers[i], &terms);
        for (uint32_t part = BLOCK_EMBEDDING; part <= BLOCK_MTP; part++) {
            block_write_part(&terms, model, (enum block_part)part, &graph);
            graph_mark(&graph);
        }
    }
}

static void models_mark(void)
{
    const char *name = NULL;
    for (uint32_t i = 0; (name = model_name_at(i)) != NULL; i++) {
        struct workload_case made;
        struct model const model = catalogue_model(name);
        assert_int_equal(case_build(&made, &model, "16", "x", NULL, NULL), STATUS_OK);
        parts_mark(&made);
        case_free(&made);
    }
}

/* What attention has by the step. */
static void steps_mark(void)
{
    static const struct {
        enum workload_context context;
        enum workload_kernel kernel;
        const char *dp, *cp;
    } rows[] = {
        {WORKLOAD_CONTEXT_RING, WORKLOAD_KERNEL_FLASH, "y z", "x"},
        {WORKLOAD_CONTEXT_ULYSSES, WORKLOAD_KERNEL_FLASH, "y z", "x"},
        {WORKLOAD_CONTEXT_RING, WORKLOAD_KERNEL_DROPOUT, "x y z", NULL},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = rows[i].dp, [MESH_CP] = rows[i].cp};
        struct workload_case made;
        assert_int_equal(case_build_roles(&made, &case_llama_70b, "4x4x4", parts), STATUS_OK);
        made.plan.attention.context = rows[i].context;
        made.plan.attention.kernel = rows[i].kernel;
        parts_mark(&made);
        case_free(&made);
    }
}

/* What inference has: prompts whose last tokens are wanted alone, decodes, and both in one pass, of
 * a model of each kind of attention, whose caches lie apart. */
static void inference_mark(void)
{
    static const uint64_t context[] = {4096};
    static const char *const models[] = {"llama-3-70b", "deepseek-v3"};
    static const enum workload_kind kinds[] = {WORKLOAD_DECODE, WORKLOAD_PREFILL, WORKLOAD_MIXED};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (uint32_t k = 0; k < KINDS * sizeof models / sizeof *models; k++) {
        enum workload_kind const kind = kinds[k % KINDS];
        const char *const parts[MESH_ROLE_COUNT] = {[MESH_TP] = "x y"};
        struct workload_case made;
        struct model const model = catalogue_model(models[k / KINDS]);
        assert_int_equal(case_build_roles(&made, &model, "4x4x1", parts), STATUS_OK);
        made.plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
        made.plan.kind = kind;
        made.plan.inference = (struct inference_plan){
            .decodes = {kind == WORKLOAD_PREFILL ? 0 : 32, lengths_given(context, 1), 1},
            .prompts = {kind == WORKLOAD_DECODE ? 0 : 32, lengths_given(context, 1), 0, 0}};
        parts_mark(&made);
        case_free(&made);
    }
}

/* What has a kernel of its own with some stack of software. */
static void stacks_mark(void)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x y z"};
    for (uint32_t i = 0; fusion_at(i) != NULL; i++) {
        struct kernel_stack const stack = {.between = {.fusion = fusion_at(i)}};
        struct workload_case made;
        assert_int_equal(case_build_roles(&made, &case_llama_70b, "4x4x4", parts), STATUS_OK);
        made.machine.chip.kernels.stack = &stack;
        parts_mark(&made);
        case_free(&made);
    }
}

/* What a stack's library casts to fp8. */
static void casts_mark(void)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "gpu"};
    struct machine_plan const plan = {
        .chip = "h100-sxm", .profile = "measured", .stack = "te", .wrap = {-1, -1, -1}};
    struct workload_case made;
    assert_int_equal(case_build_on(&made, &case_llama_70b, &plan, parts), STATUS_OK);
    made.plan.formats.matmuls = FORMAT_FP8;
    parts_mark(&made);
    case_free(&made);
}

static void each_is_written_for_some_model(void **state)
{
    (void)state;
    assert_true(op_kind_count <= ROWS_MAX && block_count <= ROWS_MAX);
    models_mark();
    steps_mark();
    stacks_mark();
    casts_mark();
    inference_mark();
    for (uint32_t k = 0; k < op_kind_count; k++)
        if (!kind_written[k]) fail_msg("no block writes the op %s", op_kind_table[k]->name);
    for (uint32_t k = 0; k < block_count; k++)
        if (!block_written[k]) fail_msg("no built-in model has the block %s", block_table[k]->name);
}

static void texts_hold(const char *name, const char *about, const char *source)
{
    if (name == NULL || name[0] == '\0') fail_msg("a row has no name");
    if (about == NULL || about[0] == '\0') fail_msg("%s: does not say what it is", name);
    if (source == NULL || source[0] == '\0') fail_msg("%s: has no source", name);
}

static void each_says_what_it_is(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < op_kind_count; k++) {
        texts_hold(op_kind_table[k]->name, op_kind_table[k]->help, op_kind_table[k]->source);
        for (uint32_t other = 0; other < k; other++)
            assert_string_not_equal(op_kind_table[k]->name, op_kind_table[other]->name);
    }
    for (uint32_t k = 0; k < block_count; k++) {
        texts_hold(block_table[k]->name, block_table[k]->help, block_table[k]->source);
        for (uint32_t other = 0; other < k; other++)
            assert_string_not_equal(block_table[k]->name, block_table[other]->name);
    }
}

static bool takes(const struct block *block, enum block_place place)
{
    return block->place == place || (block->mixes_both && place == BLOCK_MIXES_CHANNELS);
}

static void a_block_takes_the_places_of_all_that_it_replaces(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < block_count; k++)
        for (const struct block *const *of = block_table[k]->replaces; *of != NULL; of++)
            if (*of == block_table[k] || !takes(block_table[k], (*of)->place))
                fail_msg("%s replaces %s, which has another place", block_table[k]->name,
                         (*of)->name);
}

/* A model may have what several blocks ask for: each place has the one that no other replaces. */
static void of_blocks_that_apply_one_is_there(void **state)
{
    struct model const plain = {.layers = 1}, mla = {.layers = 1, .mla = {.kv_rank = 6}},
                       parallel = {.layers = 1, .parallel = true},
                       experts = {.layers = 1, .mla = {.kv_rank = 6}, .experts = {.count = 2}};
    const struct {
        const struct model *model;
        const struct block *there[3];
    } rows[] = {{&plain, {&block_attention, &block_mlp}},
                {&mla, {&block_mla, &block_mla_absorbed, &block_mlp}},
                {&parallel, {&block_parallel}},
                {&experts, {&block_mla, &block_mla_absorbed, &block_moe}}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t k = 0; k < block_count; k++) {
            const struct block *block = block_table[k];
            bool there = false;
            for (size_t n = 0; n < 3; n++) there = there || rows[i].there[n] == block;
            if (block->place == BLOCK_MIXES_TOKENS || block->place == BLOCK_MIXES_CHANNELS)
                assert_int_equal(block_is_of(block, rows[i].model), there);
        }
}

/* A row of a latent cache, Key, begins with the letter of KV heads and is none. */
static void ranks_of_tp_d_split_what_a_dimension_says(void **state)
{
    static const char *const of[] = {"B_W", "N_W", "K_W", "Key_W", "D_W"};
    static const struct {
        enum graph_apart apart;
        bool split[sizeof of / sizeof *of];
    } rows[] = {{GRAPH_APART_NOTHING, {false, false, false, false, true}},
                {GRAPH_APART_HEADS, {false, true, true, false, true}},
                {GRAPH_APART_TOKENS, {true, false, false, true, true}}};
    struct model const model = {.width = 8, .heads = 4, .kv_heads = 2, .mla = {.kv_rank = 6}};
    static struct graph graph;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct graph_terms terms = {.mesh = {.axis_count = 1, .letter = {'W'}, .size = {2}},
                                    .axis_w = 1,
                                    .cache.apart = rows[i].apart};
        graph_dimensions_begin(&model, &terms);
        graph.terms = &terms;
        for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
            const char *text = arena_format(case_arena, "A[%s]", of[k]);
            struct sharding const array = graph_sharding(&graph, text, GRAPH_ACTIVATION);
            assert_int_equal(sharding_axes(&array) != 0, rows[i].split[k]);
        }
    }
}

static bool has_dimension(const struct graph_terms *terms, const char *name)
{
    for (const struct graph_dimension *of = terms->dimension; of->name != NULL; of++)
        if (strcmp(of->name, name) == 0) return true;
    return false;
}

/* A dimension that two set would have the size of the last. */
static void no_two_blocks_bring_the_same_dimension(void **state)
{
    static const char *const shared[] = {"B", "D", "N", "K", "H", "V", "Vocab", "F"};
    static struct graph_terms all, own;
    struct model const model = {.width = 8};
    uint32_t brought = 0;
    (void)state;
    graph_dimensions_begin(&model, &all);
    for (uint32_t b = 0; b < block_count; b++) {
        memset(own.dimension, 0, sizeof own.dimension);
        if (block_table[b]->dimensions == NULL) continue;
        block_table[b]->dimensions(&model, &own);
        for (const struct graph_dimension *of = own.dimension; of->name != NULL; of++) {
            assert_true(has_dimension(&all, of->name));
            assert_non_null(of->meaning);
            brought++;
        }
    }
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        assert_true(has_dimension(&all, shared[i]));
    uint32_t there = 0;
    while (all.dimension[there].name != NULL) there++;
    assert_int_equal(there, brought + sizeof shared / sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_written_for_some_model),
        cmocka_unit_test(each_says_what_it_is),
        cmocka_unit_test(a_block_takes_the_places_of_all_that_it_replaces),
        cmocka_unit_test(of_blocks_that_apply_one_is_there),
        cmocka_unit_test(ranks_of_tp_d_split_what_a_dimension_says),
        cmocka_unit_test(no_two_blocks_bring_the_same_dimension),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
