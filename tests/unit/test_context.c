/* Context parallelism: what does not divide is refused with what would, and what the ops of the
 * three ways ask for, by hand. */
#include <stdio.h>

#include "tests/support/case.h"
#include "tests/unit/workload_case.h"

static struct workload_case made;

static void build(const char *shape, const char *cp, const char *fsdp, const char *tp)
{
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_CP] = cp, [MESH_FSDP] = fsdp, [MESH_TP] = tp};
    if (case_build_roles(&made, &case_llama_70b, shape, parts) != STATUS_OK)
        fail_msg("%s: %s", made.error.where, made.error.message);
    made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    made.plan.sequence_length = 16384;
    made.plan.batch_tokens = 1 << 19;
}

static void refused(enum status status, const char *where, const char *part)
{
    case_refused(workload_lower(made.arena, &made.plan, &made.machine, &made.mesh, &made.program,
                                &case_error),
                 status, where, part);
    case_free(&made);
}

static void what_does_not_divide_is_refused_with_what_would(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        uint64_t sequence_length, sequences;
        enum workload_context context;
        enum workload_context_order order;
        const char *where, *words;
    } rows[] = {
        /* 16 divides it, 32 does not. */
        {"16x4x4", 16400, 256, WORKLOAD_CONTEXT_RING, WORKLOAD_CONTEXT_ZIGZAG,
         "/workload/sequence_length",
         "16400 tokens cannot be cut into 32 equal parts, two (zigzag) for each of 16 ranks of cp; "
         "the nearest that can: 16384 and 16416"},
        {"16x4x4", 16392, 256, WORKLOAD_CONTEXT_RING, WORKLOAD_CONTEXT_CONTIGUOUS,
         "/workload/sequence_length",
         "16 equal parts, one for each of 16 ranks of cp; the nearest that can: 16384 and 16400"},
        {"16x4x4", 16384, 24, WORKLOAD_CONTEXT_RING, WORKLOAD_CONTEXT_ZIGZAG,
         "/workload/batch_tokens",
         "24 sequences of 16384 tokens cannot be split evenly over 16 data ranks (dp, fsdp and ep "
         "together), with 16 ranks of cp that share each; the nearest batch_tokens that fit: "
         "262144 and 524288"},
        {"12x4x4", 12288, 16, WORKLOAD_CONTEXT_ULYSSES, WORKLOAD_CONTEXT_ZIGZAG, "/mesh/cp",
         "12 ranks have to divide the 64 attention heads and 8 KV heads of a rank of tp among "
         "them; the nearest number of ranks that can: 4 ("},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        build(rows[i].shape, "x", "y z", NULL);
        made.plan.sequence_length = rows[i].sequence_length;
        made.plan.batch_tokens = rows[i].sequences * rows[i].sequence_length;
        made.plan.attention.context = rows[i].context;
        made.plan.attention.order = rows[i].order;
        refused(STATUS_INVALID, rows[i].where, rows[i].words);
    }
}

static void a_ring_needs_an_axis_that_closes(void **state)
{
    (void)state;
    build("4x4x4", "x y", "z", NULL);
    refused(STATUS_UNSUPPORTED, "/workload/context",
            "goes round one axis of the machine, and cp "
            "lies on 2");
    build("3x2x2", "x", "y z", NULL);
    made.plan.sequence_length = 12288;
    made.plan.batch_tokens = 4 * 12288;
    refused(STATUS_UNSUPPORTED, "/workload/context", "the 3 ranks of cp along x are a line");
    build("2x2x2", "x", "y z", NULL);
    assert_int_equal(case_lower(&made), STATUS_OK);
    case_free(&made);
    build("4x4x4", "x y", "z", NULL);
    made.plan.attention.context = WORKLOAD_CONTEXT_ALL_GATHER;
    assert_int_equal(case_lower(&made), STATUS_OK);
    case_free(&made);
}

static void a_bare_mlp_has_no_sequences(void **state)
{
    (void)state;
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_CP] = "x"};
    assert_int_equal(case_build_roles(&made, &case_mlp, "16", parts), STATUS_OK);
    refused(STATUS_UNSUPPORTED, "/mesh/cp", "dp splits its tokens");
}

static const struct work *work_of(const char *name)
{
    const struct program *program = &made.program;
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (strcmp(op->name, name) == 0) return &program->works[op->index];
        }
    fail_msg("no op is called %s", name);
    return NULL;
}

/* Four FLOP for each pair of a query and a key that it may see, head and element; 16 ranks. */
static void the_last_rank_has_nearly_twice_the_mean(void **state)
{
    (void)state;
    uint64_t const length = 16384, ranks = 16, part = length / ranks;
    uint64_t const sequences = 2, each = 4 * UINT64_C(64) * 128 * sequences;
    for (uint32_t order = 0; order < 2; order++)
        for (uint32_t way = 0; way < 3; way++) {
            build("16x4x4", "x", "y z", NULL);
            made.plan.attention.context = (enum workload_context)way;
            made.plan.attention.order = (enum workload_context_order)order;
            assert_int_equal(case_lower(&made), STATUS_OK);
            uint64_t pairs = 0;
            bool const last =
                order == WORKLOAD_CONTEXT_CONTIGUOUS && way != WORKLOAD_CONTEXT_ULYSSES;
            for (uint64_t query = length - part; last && query < length; query++)
                pairs += query + 1;
            for (uint64_t query = 0; !last && query < length; query++) pairs += query + 1;
            if (!last) pairs /= ranks;
            const struct work *flash = work_of("attention.flash");
            assert_int_equal(work_matmul_flop(flash), each * pairs);
            assert_int_equal(flash->useful_flop, each * (length * (length + 1) / 2 / ranks));
            assert_int_equal(work_matmul_flop(work_of("attention.dFlash")), each * pairs / 2 * 5);
            case_free(&made);
        }
}

static void a_mesh_without_cp_has_no_sequences_to_share(void **state)
{
    (void)state;
    static const char reason[] = "the mesh has no cp whose ranks could share a sequence";
    for (uint32_t way = 1; way < 3; way++) {
        build("16x4x4", NULL, "x y z", NULL);
        made.plan.attention.context = (enum workload_context)way;
        refused(STATUS_INVALID, "/workload/context", reason);
    }
    build("16x4x4", NULL, "x y z", NULL);
    made.plan.attention.order = WORKLOAD_CONTEXT_CONTIGUOUS;
    refused(STATUS_INVALID, "/workload/context_order", reason);
    build("16x4x4", NULL, "x y z", NULL);
    made.plan.batch_tokens = 1 << 22;
    assert_int_equal(case_lower(&made), STATUS_OK);
    case_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_divide_is_refused_with_what_would),
        cmocka_unit_test(a_ring_needs_an_axis_that_closes),
        cmocka_unit_test(a_bare_mlp_has_no_sequences),
        cmocka_unit_test(a_mesh_without_cp_has_no_sequences_to_share),
        cmocka_unit_test(the_last_rank_has_nearly_twice_the_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
