/* Training steps that are refused: by what place, and with what advice. */
#include <stdio.h>

#include "sim/roofline/roofline.h"
#include "sim/step/counts.h"
#include "sim/step/suggest.h"
#include "tests/support/case.h"
#include "tests/support/counts.h"
#include "tests/support/sampling.h"
#include "tests/unit/workload_case.h"

static struct workload_case made;

static void build(const struct model *model, const char *shape, const char *dp, const char *fsdp,
                  const char *tp)
{
    if (case_build(&made, model, shape, dp, fsdp, tp) != STATUS_OK)
        fail_msg("%s: %s", made.error.where, made.error.message);
}

static void refused(enum status status, const char *where, const char *part)
{
    case_refused(workload_lower(made.arena, &made.plan, &made.machine, &made.mesh, &made.program,
                                &case_error),
                 status, where, part);
    case_free(&made);
}

/* Nothing goes to experts where there are none, or all on one rank. */
static void a_format_of_what_does_not_travel_is_refused(void **state)
{
    (void)state;
    build(&case_llama_70b, "16", NULL, "x", NULL);
    made.plan.formats.dispatch = FORMAT_INT8;
    refused(STATUS_INVALID, "/workload/formats/dispatch", "no tokens travel to experts");
}

static void what_does_not_divide_or_is_not_modelled_is_refused(void **state)
{
    (void)state;
    struct model odd = case_llama_70b;
    build(&case_mlp, "16", NULL, "x", NULL);
    made.plan.batch_tokens = 1000;
    refused(STATUS_INVALID, "/workload/batch_tokens",
            "the nearest batch_tokens that fit: 992 and 1008");
    build(&case_mlp, "16", NULL, "x", NULL);
    made.plan.batch_tokens = 0;
    refused(STATUS_INVALID, "/workload/batch_tokens", "the nearest batch_tokens that fit: 16");
    build(&case_mlp, "16", NULL, "x", NULL);
    made.plan.accumulate = 3;
    refused(STATUS_INVALID, "/workload/batch_tokens", "microbatches");
    build(&case_mlp, "16", NULL, "x", NULL);
    made.plan.zero = 1;
    refused(STATUS_INVALID, "/workload/zero", "dp, which the mesh does not have");
    build(&case_mlp, "4x4x4", "y", "x", "z");
    made.plan.zero = 2;
    refused(STATUS_UNSUPPORTED, "/workload/zero", "with fsdp");
    odd = case_llama_70b;
    odd.heads = odd.kv_heads = 8;
    build(&odd, "16", NULL, NULL, "x");
    refused(STATUS_INVALID, "/mesh/tp",
            "more than the model's 8 attention heads: some would have none; the nearest number of "
            "ranks that fits: 8");
    build(&case_llama_70b, "16", NULL, "x", NULL);
    made.plan.sequence_length = 3000;
    refused(STATUS_INVALID, "/workload/sequence_length",
            "not whole sequences of 3000; the nearest batch_tokens that fit: 1044000 and 1050000");
    build(&case_llama_70b, "4x4x4", "y", "x", "z");
    made.plan.batch_tokens = 3 * 4096; /* All 16 data ranks would share each sequence. */
    refused(STATUS_INVALID, "/workload/batch_tokens",
            "3 sequences of 4096 tokens cannot be split evenly over 16 data ranks (dp, fsdp, ep "
            "and cp together): 16 would share each, and only neighbours along fsdp or along dp do; "
            "the nearest batch_tokens that fit: 16384");
    build(&case_mlp, "16", NULL, "x", NULL);
    made.plan.algorithm = algorithm_read("rign");
    /* 16 chips in a line: no ring, so none is offered. */
    refused(STATUS_NOT_FOUND, "/run/algorithm",
            "no algorithm \"rign\"; every collective of this step can go by auto, bruck, direct, "
            "line, recursive");
}

/* What is offered is a batch that a scenario can have, or none is. */
static void no_batch_is_offered_above_the_maximum(void **state)
{
    (void)state;
    build(&case_llama_70b, "16", NULL, "x", NULL);
    made.plan.sequence_length = WORKLOAD_TOKENS_MAX - 1;
    made.plan.accumulate = 65536;
    refused(STATUS_INVALID, "/workload/sequence_length",
            "not whole sequences of 17179869183; no batch_tokens up to 17179869184 fit");
    build(&case_llama_70b, "16", NULL, "x", NULL);
    made.plan.batch_tokens = made.plan.sequence_length = WORKLOAD_TOKENS_MAX - 16;
    made.plan.accumulate = 3;
    refused(STATUS_INVALID, "/workload/sequence_length", "; no batch_tokens up to 17179869184 fit");
    build(&case_llama_70b, "16", NULL, "x", NULL);
    made.plan.batch_tokens = WORKLOAD_TOKENS_MAX - 1;
    refused(STATUS_INVALID, "/workload/batch_tokens",
            "the nearest batch_tokens that fit: 17179865088 and 17179869184");
    build(&case_llama_70b, "16", NULL, "x", NULL);
    made.plan.sequence_length = 3 * UINT64_C(1) << 30;
    made.plan.batch_tokens = WORKLOAD_TOKENS_MAX;
    refused(STATUS_INVALID, "/workload/sequence_length",
            "the nearest batch_tokens that fit: 16106127360");
}

/* Below and above, where there are such: multiples of a number, and divisors of an amount. */
static void the_nearest_numbers_are_on_both_sides(void **state)
{
    (void)state;
    static const struct {
        uint64_t amount, by;
        const char *multiples, *divisors;
    } rows[] = {{10, 4, "8 and 12", "2 and 5"},
                {12, 5, "10 and 15", "4 and 6"},
                {8, 4, "8 and 12", "4 and 4"},
                {3, 4, "4", "3"},
                {12, 13, "13", "12"},
                {7, 3, "6 and 9", "1 and 7"},
                {12, 7, "7 and 14", "6 and 12"},
                {13, 13, "13 and 26", "13 and 13"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[SUGGEST_TEXT_BYTES];
        assert_string_equal(suggest_multiples(rows[i].amount, rows[i].by, text), rows[i].multiples);
        assert_string_equal(suggest_divisors(rows[i].amount, rows[i].by, text), rows[i].divisors);
    }
}

/* The name of a model is the path of its file, and that may be longer than any sentence. */
static void a_refusal_names_a_model_of_any_length(void **state)
{
    (void)state;
    static char name[4096];
    memset(name, 'm', sizeof name - 1);
    build(&case_mlp, "4x4", "y", "x", NULL);
    made.plan.model.name = name;
    made.plan.tp_inputs = WORKLOAD_TP_INPUTS_WHOLE;
    refused(STATUS_INVALID, "/workload/tp_inputs", "mesh has no tp");
    build(&case_mlp, "4x4", NULL, "x", "y");
    made.plan.model.name = name;
    made.plan.tp_inputs = WORKLOAD_TP_INPUTS_WHOLE;
    refused(STATUS_INVALID, "/workload/tp_inputs",
            "mmm has no norms; it keeps its input whole without the key");
}

/* What a rank holds, and how often the head's weights are gathered, is counted from the schedule:
 * without one there is an error, not a figure. */
static void without_a_schedule_nothing_is_counted(void **state)
{
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x"};
    struct workload_lists lists;
    (void)state;
    if (case_build_roles(&made, &case_llama_70b, "4", parts) != STATUS_OK)
        fail_msg("%s", made.error.message);
    made.plan.stages.schedule = "nonesuch";
    assert_int_equal(
        workload_lists_read(&made.plan, &made.machine, &made.mesh, &lists, &made.error),
        STATUS_NOT_FOUND);
    assert_string_equal(made.error.where, "/workload/schedule");
    case_free(&made);
}

static void advice_for_the_batch_is_good_advice(void **state)
{
    (void)state;
    for (uint64_t sequences = 1; sequences < 80; sequences++) {
        build(&case_llama_70b, "4x4x4", "y", "x", "z");
        made.plan.batch_tokens = sequences * 4096 * 2;
        made.plan.accumulate = 2;
        enum status status = case_lower(&made);
        if (status != STATUS_OK) {
            unsigned long long fit[2] = {0};
            const char *advice = strstr(made.error.message, "fit: ");
            assert_non_null(advice);
            int const count = sscanf(advice, "fit: %llu and %llu", &fit[0], &fit[1]);
            assert_true(count >= 1);
            for (int i = 0; i < count; i++) {
                made.plan.batch_tokens = fit[i];
                if (case_lower(&made) != STATUS_OK)
                    fail_msg("%llu: %s", fit[i], made.error.message);
            }
        }
        case_free(&made);
    }
}

/* Every format in every place on every chip: refused with a sentence, or counted and bounded. */
static void a_format_without_a_rate_is_refused_and_no_other(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu-v3", "tpu-v4p", "tpu-v5p", "tpu-v5e", "tpu-v6e"};
    uint32_t refusals = 0;
    enum { PLACES = 5, PLACES_WITH_RATE = 2 };
    static const char *const where[PLACES_WITH_RATE] = {"/workload/formats/activations",
                                                        "/workload/formats/matmuls"};
    for (uint32_t i = 0; i < sizeof chips / sizeof *chips * FORMAT_COUNT * PLACES; i++) {
        enum format const format = (enum format)(i / PLACES % FORMAT_COUNT);
        const char *chip = chips[i / PLACES / FORMAT_COUNT];
        struct machine_plan const own = {.chip = chip,
                                         .shape = "16",
                                         .profile = "ideal",
                                         .unrealisable = true,
                                         .wrap = {-1, -1, -1}};
        build(&case_llama_70b, "16", NULL, "x", NULL);
        assert_int_equal(machine_build(made.arena, &own, &made.machine, &made.error), STATUS_OK);
        enum format *const places[PLACES] = {
            &made.plan.formats.activations, &made.plan.formats.matmuls, &made.plan.formats.weights,
            &made.plan.formats.gradients, &made.plan.formats.optimizer};
        made.plan.formats.dispatch = i % PLACES == 0 ? format : FORMAT_BF16;
        *places[i % PLACES] = format;
        enum status const status = case_lower(&made);
        bool const rate = made.machine.chip.math_flop_per_s[format] != 0;
        assert_int_equal(status,
                         i % PLACES >= PLACES_WITH_RATE || rate ? STATUS_OK : STATUS_UNSUPPORTED);
        if (status != STATUS_OK) {
            refusals++;
            assert_string_equal(made.error.where, where[i % PLACES]);
            assert_non_null(strstr(made.error.message, made.machine.chip.title));
            assert_non_null(strstr(made.error.message, format_name(format)));
            assert_non_null(strstr(made.error.message, "it has rates for bf16, fp32"));
        } else {
            struct workload_counts counts;
            struct roofline roofline;
            counts_make(&made.plan, &made.machine, &made.mesh, &counts);
            roofline_from_counts(&made.plan, &made.machine, &made.mesh, &counts, &roofline);
            assert_true(roofline.lower_s > 0);
        }
        case_free(&made);
    }
    /* fp16 and three kinds of fp4 nowhere, fp8 on v6e, int4 from v5 on. */
    assert_int_equal(refusals, PLACES_WITH_RATE * (5 + 3 * 5 + 4 + 2));
}

static void same(double summed, double counted)
{
    if (summed < counted * 0.999999 || summed > counted * 1.000001)
        fail_msg("%.9g is not %.9g", summed, counted);
}

/* The largest numbers that a scenario may hold, alone and together: counted, or refused. */
static void what_would_wrap_is_refused(void **state)
{
    (void)state;
    struct model const huge = {.kind = MODEL_DECODER,
                               .name = "huge",
                               .layers = 1 << 14,
                               .width = 1 << 20,
                               .mlp_width = 1 << 20,
                               .matrices = 3,
                               .heads = 1 << 14,
                               .kv_heads = 1 << 14,
                               .head_width = 1 << 12,
                               .vocabulary = 1 << 26};
    build(&huge, "16", NULL, NULL, "x");
    made.plan.batch_tokens = UINT64_C(1) << 34;
    refused(STATUS_LIMIT, "/workload", "2^62");
    uint64_t const small[] = {2, 4096, 4096, 3, 32, 32, 128, 32000};
    uint32_t counted = 0, walked = 0, taken = 0;
    for (uint32_t large = 0; large < 1u << 9; large++) {
        struct model mixed = huge;
        if (sampling_skips_watched(&walked)) continue;
        taken++;
        if (large & 1) mixed.layers = small[0];
        if (large & 2) mixed.width = small[1];
        if (large & 4) mixed.mlp_width = small[2];
        if (large & 8) mixed.heads = mixed.kv_heads = small[4];
        if (large & 16) mixed.head_width = small[6];
        if (large & 32) mixed.vocabulary = small[7];
        build(&mixed, "16", NULL, NULL, "x");
        made.plan.batch_tokens = large & 64 ? UINT64_C(1) << 20 : UINT64_C(1) << 34;
        made.plan.accumulate = large & 256 ? 256 : 1;
        made.plan.sequence_length =
            large & 128 ? 4096 : made.plan.batch_tokens / made.plan.accumulate;
        enum status const status = case_lower(&made);
        if (status != STATUS_OK) {
            assert_int_equal(status, STATUS_LIMIT);
            assert_string_equal(made.error.where, "/workload");
        } else {
            /* The integers of the program against the same sums in doubles. */
            struct workload_counts counts;
            counted++;
            counts_make(&made.plan, &made.machine, &made.mesh, &counts);
            struct case_sums const sums = case_sum(&made.program, "");
            same(sums.matmul_flop, counts.matmul_flop);
            same(sums.useful_flop, counts.matmul_useful);
            same(sums.vector_flop, counts.vector_flop);
            same(sums.hbm_bytes, counts.hbm_bytes);
            for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++)
                assert_int_equal(sums.effects[m], 0);
        }
        case_free(&made);
    }
    assert_in_range(counted, taken / 16, taken - taken / 16);
}

/* The program is sealed last, in what memory the lowering has left. */
static void memory_that_ends_with_the_program_is_said_to_be_too_little(void **state)
{
    (void)state;
    enum { STEP_BYTES = 64, STEPS = 256 };
    build(&case_mlp, "2x2x4", NULL, "x y", "z");
    uint64_t const before_bytes = arena_taken_bytes(made.arena);
    case_ok(workload_lower(made.arena, &made.plan, &made.machine, &made.mesh, &made.program,
                           &case_error));
    uint64_t const whole_bytes = arena_taken_bytes(made.arena) - before_bytes;
    for (uint32_t step = 1; step <= STEPS; step++) {
        struct arena *arena = arena_create(whole_bytes - (uint64_t)step * STEP_BYTES);
        assert_int_equal(workload_lower(arena, &made.plan, &made.machine, &made.mesh, &made.program,
                                        &case_error),
                         STATUS_NO_MEMORY);
        arena_destroy(arena);
    }
    arena_destroy(made.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_format_of_what_does_not_travel_is_refused),
        cmocka_unit_test(what_does_not_divide_or_is_not_modelled_is_refused),
        cmocka_unit_test(no_batch_is_offered_above_the_maximum),
        cmocka_unit_test(the_nearest_numbers_are_on_both_sides),
        cmocka_unit_test(a_refusal_names_a_model_of_any_length),
        cmocka_unit_test(without_a_schedule_nothing_is_counted),
        cmocka_unit_test(advice_for_the_batch_is_good_advice),
        cmocka_unit_test(a_format_without_a_rate_is_refused_and_no_other),
        cmocka_unit_test(what_would_wrap_is_refused),
        cmocka_unit_test(memory_that_ends_with_the_program_is_said_to_be_too_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
