/* The closed forms of the book's chapters 7 and 8, and what they are given. */
#include "sim/report/inference_analysis.h"
#include "sim/roofline/inference.h"
#include "tests/support/case.h"
#include "tests/support/catalogue.h"
#include "tests/unit/workload_case.h"

static void made_of(struct workload_case *made, const char *name, const char *shape,
                    const char *const parts[MESH_ROLE_COUNT], struct inference_plan plan)
{
    struct model const model = catalogue_model(name);
    assert_int_equal(case_build_roles(made, &model, shape, parts), STATUS_OK);
    made->plan.kind = plan.decodes.count == 0 ? WORKLOAD_PREFILL : WORKLOAD_DECODE;
    made->plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    made->plan.inference = plan;
}

static void closed_forms_are_the_book_s(void **state)
{
    struct inference_chips const v5e = {.count = 16,
                                        .flop_per_s = 197e12,
                                        .hbm_bytes_per_s = 810e9,
                                        .hbm_bytes = 16e9,
                                        .attention_flop_per_s = 197e12};
    struct inference_model const llama = {
        .parameters = 70.4e9, .parameter_bytes = 140.8e9, .kv_bytes_per_token = 327680};
    struct inference_model const narrow = {
        .parameters = 70.4e9, .parameter_bytes = 70.4e9, .kv_bytes_per_token = 163840};
    (void)state;
    case_near(inference_pass(&llama, &v5e, 32, 0, 32 * 8192).step_s, 17.492233e-3, 1e-6);
    case_near(inference_pass(&narrow, &v5e, 32, 0, 32 * 8192).step_s, 8.746e-3, 1e-4);
    assert_int_equal(inference_max_batch(&narrow, &v5e, 8192), 138);
    assert_int_equal(inference_max_batch(&llama, &v5e, 1e9), 0);
    case_near(inference_critical_tokens(2, 197e12, 810e9), 243.20988, 1e-7);
}

/* 7.1.4 and 8.1.2: 8,192 tokens of LLaMA-3-8B take 2·8,030,261,248·8,192 FLOP for its parameters
 * and 4·32·128·32·8,192·8,193/2 for attention, at 459e12 FLOP/s on one v5p; attention in another
 * format than the other products goes at that format's rate. */
static void the_formula_of_a_prefill_has_attention(void **state)
{
    static const uint64_t prompt[] = {8192};
    static const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = "x"};
    double const products = 2 * 8030261248.0 * 8192, attention = 524288.0 * 8192 * 8193 / 2;
    struct workload_case made;
    (void)state;
    made_of(&made, "llama-3-8b", "1x1x1", parts,
            (struct inference_plan){.prompts = {1, lengths_given(prompt, 1), 0, 0}});
    struct workload_plan *plan = &made.plan;
    struct inference_model const model = inference_book_model(plan);
    struct inference_chips chips = inference_book_chips(plan, &made.machine, &made.mesh);
    case_near(inference_book_step(plan, &model, &chips).math_s, (products + attention) / 459e12,
              1e-9);
    chips.attention_flop_per_s /= 2;
    case_near(inference_book_step(plan, &model, &chips).step_s, (products + 2 * attention) / 459e12,
              1e-9);
    case_free(&made);
}

/* Four copies on 16 chips are four machines of 4 chips, with a quarter of the sequences each;
 * copies that are gathered take the room of one. */
static void copies_are_machines_of_their_own(void **state)
{
    struct inference_chips const four = {.count = 4,
                                         .flop_per_s = 989e12,
                                         .hbm_bytes_per_s = 3.35e12,
                                         .hbm_bytes = 80e9,
                                         .attention_flop_per_s = 989e12};
    struct inference_chips copies = four;
    struct inference_model const model = {
        .parameters = 70.4e9, .parameter_bytes = 140.8e9, .kv_bytes_per_token = 327680};
    (void)state;
    copies.count = 16;
    copies.copies_read = copies.copies_held = 4;
    for (double batch = 4; batch < 4096; batch *= 4) {
        struct inference_step const alone =
            inference_pass(&model, &four, batch, 1e15, batch * 4096);
        struct inference_step const step =
            inference_pass(&model, &copies, 4 * batch, 4e15, 4 * batch * 4096);
        case_near(step.kv_s, alone.kv_s, 1e-12);
        case_near(step.weights_s, alone.weights_s, 1e-12);
        case_near(step.math_s, alone.math_s, 1e-12);
        case_near(step.step_s, alone.step_s, 1e-12);
    }
    assert_int_equal(inference_max_batch(&model, &four, 5000), 109);
    assert_int_equal(inference_max_batch(&model, &copies, 5000), 4 * 109);
    copies.copies_held = 1;
    assert_int_equal(inference_max_batch(&model, &copies, 5000), 695);
}

/* Ranks of dp and cp have all weights each; of fsdp each multiplies with all, and holds a part. */
static void the_formula_has_a_copy_for_each_rank_of_data(void **state)
{
    static const struct {
        const char *parts[MESH_ROLE_COUNT];
        enum inference_weights weights;
        double read, held;
    } meshes[] = {
        {{[MESH_TP] = "x", [MESH_DP] = "y", [MESH_CP] = "z"}, INFERENCE_STATIONARY, 8, 8},
        {{[MESH_TP] = "x", [MESH_DP] = "y", [MESH_FSDP] = "z"}, INFERENCE_STATIONARY, 8, 4},
        {{[MESH_TP] = "x", [MESH_DP] = "y", [MESH_PP] = "z"}, INFERENCE_GATHERED, 4, 1},
        {{[MESH_EP] = "x", [MESH_DP] = "y", [MESH_PP] = "z"}, INFERENCE_STATIONARY, 4, 4},
    };
    static const uint64_t context[] = {100};
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        struct workload_case made;
        made_of(&made, "llama-3-8b", "8x4x2", meshes[i].parts,
                (struct inference_plan){.decodes = {64, lengths_given(context, 1), 1},
                                        .weights = meshes[i].weights});
        struct inference_chips const chips =
            inference_book_chips(&made.plan, &made.machine, &made.mesh);
        assert_int_equal(chips.count, 64);
        case_near(chips.copies_read, meshes[i].read, 0);
        case_near(chips.copies_held, meshes[i].held, 0);
        case_free(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms_are_the_book_s),
        cmocka_unit_test(copies_are_machines_of_their_own),
        cmocka_unit_test(the_formula_has_a_copy_for_each_rank_of_data),
        cmocka_unit_test(the_formula_of_a_prefill_has_attention),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
