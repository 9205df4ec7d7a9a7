/* Kernels that cast and copy sharded weights around their gather, and what the update then has. */
#include <string.h>

#include "sim/graph/asides.h"
#include "sim/graph/block.h"
#include "sim/graph/op.h"
#include "sim/graph/shard.h"
#include "sim/kernels/kernels.h"
#include "sim/kernels/shards.h"
#include "sim/step/graph_terms.h"
#include "sim/step/update.h"
#include "tests/support/case.h"
#include "tests/unit/graph_case.h"

enum { LAYER = 1, SHARDS = 4, MOMENTS = 8 };

struct sharded {
    struct workload_case made;
    struct kernel_stack stack;
    struct graph_terms terms;
    struct graph graph;
    struct graph_sharded sharded;
    struct ranks ranks;
};

static const struct fusion *fusion_named(const char *name)
{
    uint32_t i = 0;
    while (fusion_at(i) != NULL && strcmp(fusion_at(i)->name, name) != 0) i++;
    assert_non_null(fusion_at(i));
    return fusion_at(i);
}

/* A layer of LLaMA-3-70B on 4 x 4 chips, whose weights four ranks of fsdp share. */
static void sharded_in(const char *fusion, enum shard_kernels kernels, enum format weights,
                       enum workload_gather gather, struct sharded *of)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_FSDP] = "x", [MESH_TP] = "y"};
    *of = (struct sharded){.stack = {.name = "case", .title = "A case"}};
    of->stack.between.fusion = fusion_named(fusion);
    assert_int_equal(case_build_roles(&of->made, &case_llama_70b, "4x4x1", parts), STATUS_OK);
    of->made.machine.chip.kernels.stack = &of->stack;
    of->made.plan.software.shards = kernels;
    of->made.plan.software.clips = 0;
    of->made.plan.formats.gradients = FORMAT_FP32;
    of->made.plan.formats.weights = weights;
    of->made.plan.gather = gather;
    case_ok(ranks_make(&of->made.plan, &of->made.machine, &of->made.mesh, &of->ranks, &case_error));
    graph_layer_terms(&of->ranks, LAYER, &of->terms);
    block_write_part(&of->terms, &of->made.plan.model, BLOCK_LAYER, &of->graph);
    graph_shard(&of->graph, &of->sharded);
}

static void sharded_make(const char *fusion, enum shard_kernels kernels, struct sharded *of)
{
    sharded_in(fusion, kernels, FORMAT_BF16, WORKLOAD_GATHER_TENSOR, of);
}

static const struct graph_op *out_of(const struct sharded *of)
{
    for (uint8_t i = 0; i < of->graph.op_count; i++)
        if (strcmp(of->graph.op[i].name, "Out") == 0) return &of->graph.op[i];
    fail_msg("the layer has no product Out");
    return NULL;
}

static void moves(struct work work, uint64_t read_bytes, uint64_t write_bytes)
{
    assert_int_equal(work.hbm_read_bytes, read_bytes);
    assert_int_equal(work.hbm_write_bytes, write_bytes);
}

static void ways_to_shard_have_names_and_sources(void **state)
{
    (void)state;
    for (enum shard_kernels way = SHARD_KERNELS_NONE; way < SHARD_KERNELS_COUNT; way++) {
        const struct shard_copies *copies = shard_copies_of(way);
        assert_true(shard_kernels_names[way - SHARD_KERNELS_NONE][0] != '\0');
        assert_int_equal(copies->source[0] != '\0', way != SHARD_KERNELS_NONE);
        assert_int_equal(copies->gradients[SHARD_NARROW][SHARD_WIDE].kernels != 0,
                         way != SHARD_KERNELS_NONE);
        assert_int_equal(copies->shard[SHARD_NARROW].kernels != 0, copies->wide);
    }
    assert_null(shard_kernels_names[SHARD_KERNELS_COUNT - SHARD_KERNELS_NONE]);
}

/* Of a shard 4 and 2 bytes; FSDP2 copies it as well, and all weights behind the gather. */
static void each_gather_casts_shards(void **state)
{
    static const struct {
        const char *fusion;
        enum shard_kernels kernels;
        uint64_t read, written, all; /* Bytes of an element of a shard, and of all. */
    } rows[] = {
        {"eager", SHARD_KERNELS_DEFAULT, 4, 2, 0},   {"compiled", SHARD_KERNELS_DEFAULT, 6, 4, 2},
        {"te", SHARD_KERNELS_DEFAULT, 0, 0, 0},      {"te", SHARD_KERNELS_FSDP1, 4, 2, 0},
        {"eager", SHARD_KERNELS_DEEPSPEED, 0, 0, 0}, {"eager", SHARD_KERNELS_NONE, 0, 0, 0}};
    static struct sharded of;
    uint64_t const all = UINT64_C(8192) * (28672 / 4), own = all / SHARDS;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sharded_make(rows[i].fusion, rows[i].kernels, &of);
        for (int backward = 0; backward < 2; backward++)
            moves(graph_aside_work(&of.sharded, out_of(&of), OP_SHARDS, backward != 0),
                  rows[i].read * own + rows[i].all * all,
                  rows[i].written * own + rows[i].all * all);
        case_free(&of.made);
    }
}

/* What is gathered in fp32 is not cast, and copied all the same: FSDP2 to the place that is
 * gathered to, and all weights behind the gather; DeepSpeed these, if several are gathered at once.
 */
static void weights_in_fp32_are_copied_where_they_are_not_cast(void **state)
{
    static const struct {
        enum shard_kernels kernels;
        enum format weights;
        enum workload_gather gather;
        uint64_t own, all;      /* Bytes of an element read, and written, around a gather, */
        uint64_t read, written; /* and of a gradient before a reduction in fp32. */
    } rows[] = {{SHARD_KERNELS_FSDP1, FORMAT_FP32, WORKLOAD_GATHER_LAYER, 0, 0, 8, 8},
                {SHARD_KERNELS_FSDP2, FORMAT_FP32, WORKLOAD_GATHER_LAYER, 4, 4, 4, 4},
                {SHARD_KERNELS_DEEPSPEED, FORMAT_FP32, WORKLOAD_GATHER_LAYER, 0, 4, 8, 8},
                {SHARD_KERNELS_DEEPSPEED, FORMAT_FP32, WORKLOAD_GATHER_TENSOR, 0, 0, 8, 8},
                {SHARD_KERNELS_DEEPSPEED, FORMAT_BF16, WORKLOAD_GATHER_BLOCK, 0, 2, 8, 10},
                {SHARD_KERNELS_NONE, FORMAT_FP32, WORKLOAD_GATHER_LAYER, 0, 0, 0, 0}};
    static struct sharded of;
    uint64_t const all = UINT64_C(8192) * (28672 / 4), own = all / SHARDS;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sharded_in("eager", rows[i].kernels, rows[i].weights, rows[i].gather, &of);
        uint64_t const bytes = rows[i].own * own + rows[i].all * all;
        moves(graph_aside_work(&of.sharded, out_of(&of), OP_SHARDS, /* backward= */ false), bytes,
              bytes);
        moves(graph_aside_work(&of.sharded, out_of(&of), OP_COPIES, /* backward= */ true),
              rows[i].read * all, rows[i].written * all);
        case_free(&of.made);
    }
}

/* Gradients of 4 bytes, two moments, weights of 4: no copy in 16 bits is made. So it is of weights
 * that are in fp32 wherever they lie. */
static void the_update_is_of_shards_in_fp32(void **state)
{
    enum { ELEMENTS = 1000 };
    static struct sharded of;
    (void)state;
    for (int compiled = 0; compiled < 2; compiled++) {
        sharded_make(compiled ? "compiled" : "eager", SHARD_KERNELS_FSDP1, &of);
        of.made.plan.formats.gradients = compiled ? FORMAT_FP32 : FORMAT_BF16;
        moves(update_work(&of.ranks, ELEMENTS, ELEMENTS), (4 + MOMENTS + 4) * ELEMENTS,
              (MOMENTS + 4) * ELEMENTS);
        assert_int_equal(update_work(&of.ranks, ELEMENTS, ELEMENTS).kernel_count, 1);
        case_free(&of.made);
        sharded_in(compiled ? "compiled" : "te", SHARD_KERNELS_NONE, FORMAT_FP32,
                   WORKLOAD_GATHER_LAYER, &of);
        moves(update_work(&of.ranks, ELEMENTS, 0), (4 + MOMENTS + 4) * ELEMENTS,
              (MOMENTS + 4) * ELEMENTS);
        case_free(&of.made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_to_shard_have_names_and_sources),
        cmocka_unit_test(each_gather_casts_shards),
        cmocka_unit_test(weights_in_fp32_are_copied_where_they_are_not_cast),
        cmocka_unit_test(the_update_is_of_shards_in_fp32),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
