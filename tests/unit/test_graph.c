/* Graphs of dense layers, over the drawn steps of drawn_case.h and the shipped scenarios
 * (graph_case.h); and by hand. */
#include "sim/graph/print.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

static void drawn_step(size_t p, uint32_t zero, uint32_t variant, uint64_t window)
{
    static bool windowed[5] = {true, false, true, true, false};
    struct workload_case made;
    char name[96];
    (void)snprintf(name, sizeof name, "place %zu, zero %u, variant %u, window %u", p, zero, variant,
                   (unsigned)window);
    drawn_build(&made, &drawn_dense[p]);
    made.plan.zero = zero;
    drawn_vary(&made, variant);
    if (window != 0) {
        made.plan.model.attends.window = window;
        made.plan.model.by_layer.windowed = windowed;
    }
    graph_step_lower(name, &made);
}

static void dense_layers_hold(void **state)
{
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < DRAWN_DENSE; p++)
        for (uint32_t zero = 0; zero <= (drawn_has_zero(drawn_dense[p].parts) ? 3u : 0u); zero++)
            for (uint32_t variant = 0; variant < 60; variant++)
                if (!sampling_skips(&walked)) drawn_step(p, zero, variant, 0);
}

/* Even, odd, and nearly all keys. */
static void layers_with_windows_hold(void **state)
{
    static const uint64_t windows[3] = {1024, 513, 4000};
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < DRAWN_DENSE; p++) {
        bool const shares = drawn_dense[p].batch_tokens == 1 << 19 || p == 9; /* Sequences. */
        if (drawn_dense[p].model == &case_mlp || shares) continue;
        for (uint32_t variant = 0; variant < 60; variant++)
            if (!sampling_skips(&walked)) drawn_step(p, 0, variant, windows[variant % 3]);
    }
}

static void shipped_hold(struct play *play, const char *path)
{
    static struct ranks ranks;
    graph_ranks(&play->scenario.workload, &play->machine, &play->mesh, &ranks);
    graph_hold(path, &ranks, &play->program);
}

static void shipped_scenarios_hold(void **state)
{
    static const char *const inference[] = {"/decode/", "/prefill/", NULL}; /* No gradients. */
    static const struct play_options lower_only = {.lower_only = true};
    (void)state;
    walk_shipped(&lower_only, inference, shipped_hold);
}

static void a_layer_is_printed_in_the_notation(void **state)
{
    static const char wanted[] =
        "mlp.Tmp                 Tmp[B_X, F_Y] = matmul(In[B_X, D_Y], W_in[D_X, F_Y])"
        "  AllGather_Y\n"
        "mlp.Out                 Out[B_X, D_Y] = matmul(Tmp[B_X, F_Y], W_out[F_Y, D_X])"
        "  ReduceScatter_Y\n"
        "kept   In[B_X, D_Y]                                    268 MB\n"
        "kept   Tmp[B_X, F_Y]                                   1.07 GB\n"
        "kept in all                                            1.34 GB\n"
        "  1    AllGather tp                                    1.07 GB\n"
        "       dOut -> dOut*\n"
        "  2  mlp.Out: d weights                   8.80 TFLOP   2.28 GB\n"
        "       dOut* Tmp -> dW_out\n"
        "  3  mlp.Out: d inputs                    8.80 TFLOP   2.28 GB\n"
        "       dOut* W_out -> dTmp\n"
        "  4    AllGather tp                                    1.07 GB\n"
        "       In -> In*\n"
        "  5  mlp.Tmp: d weights                   8.80 TFLOP   2.28 GB\n"
        "       dTmp In* -> dW_in\n"
        "  6  mlp.Tmp: d inputs                    8.80 TFLOP   2.28 GB\n"
        "       dTmp W_in -> dIn*\n"
        "  7    ReduceScatter tp                                1.07 GB\n"
        "       dIn* -> dIn\n"
        "dOut*                   steps 1 to 3                   1.07 GB\n"
        "Tmp                     steps 1 to 2, from before      1.07 GB\n"
        "dTmp                    steps 3 to 6                   1.07 GB\n"
        "In                      steps 1 to 4, from before      268 MB\n"
        "In*                     steps 4 to 5                   1.07 GB\n"
        "dIn*                    steps 6 to 7                   1.07 GB\n"
        "the most, in step 1                                    2.42 GB\n";
    static struct graph_steps steps;
    static struct graph_live live;
    struct workload_case made;
    const struct graph_case *layer = graph_mlp_layer(&made);
    struct strbuf text = {0};
    (void)state;
    graph_print(&layer->sharded, &text);
    graph_print_kept(&layer->sharded, &layer->kept, &text);
    graph_steps(&layer->sharded, &layer->backward, &layer->kept,
                (struct graph_request){.backward = true}, &steps);
    graph_print_steps(&layer->sharded, &steps, &text);
    graph_live(&layer->sharded, &layer->kept, &steps, NULL, &live);
    graph_print_live(&layer->sharded, &live, steps.count, &text);
    assert_string_equal(text.bytes, wanted);
    for (uint32_t i = 0; i < steps.count; i++) {
        const struct graph_step *step = &steps.step[i];
        if (!step->is_compute)
            assert_int_equal(step->move.bytes, UINT64_C(1) << 30);
        else
            assert_int_equal(work_matmul_flop(&step->work), UINT64_C(1) << 43);
    }
    strbuf_free(&text);
    case_free(&made);
}

/* Two ranks hold each KV head, and have a part of its weights' gradients each. */
static void gradients_in_parts_are_printed(void **state)
{
    static struct ranks ranks;
    static struct graph_cases cases;
    struct workload_case made;
    struct strbuf text = {0};
    (void)state;
    assert_int_equal(case_build(&made, &case_llama_70b, "16", NULL, NULL, "x"), STATUS_OK);
    graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    graph_print_backward(&cases.part[0].sharded, &cases.part[0].backward, &text);
    assert_string_equal(text.bytes, "mlp.Out: d weights\n"
                                    "mlp.Out: d inputs\n"
                                    "mlp.Gate,Up: d weights\n"
                                    "mlp.Gate,Up: d inputs\n"
                                    "mlp.norm: d inputs\n"
                                    "attention.O: d weights\n"
                                    "attention.O: d inputs\n"
                                    "attention.flash: d inputs\n"
                                    "attention.QKV: d weights\n"
                                    "attention.QKV: d inputs\n"
                                    "attention.norm: d inputs\n"
                                    "dW_K                      in 2 parts\n"
                                    "dW_V                      in 2 parts\n");
    strbuf_free(&text);
    case_free(&made);
}

/* By hand, in quarters of a GiB: a chip's part of In is one, gathered it is four, as are Tmp and
 * Out before it is reduced. In's part and Tmp stay. */
static void bytes_lie_from_step_to_step(void **state)
{
    static const uint64_t forward[] = {1 + 4, 1 + 4 + 4, 1 + 4 + 4, 1 + 4 + 4 + 1};
    static struct graph_steps steps;
    static struct graph_live live;
    struct workload_case made;
    const struct graph_case *layer = graph_mlp_layer(&made);
    (void)state;
    graph_steps(&layer->sharded, &layer->backward, &layer->kept,
                (struct graph_request){.backward = false}, &steps);
    graph_live(&layer->sharded, &layer->kept, &steps, NULL, &live);
    assert_int_equal(steps.count, 4); /* AllGather, in, out, ReduceScatter. */
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(graph_live_bytes(&live, i), forward[i] * (UINT64_C(1) << 28));
    case_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_layers_hold),
        cmocka_unit_test(layers_with_windows_hold),
        cmocka_unit_test(shipped_scenarios_hold),
        cmocka_unit_test(a_layer_is_printed_in_the_notation),
        cmocka_unit_test(gradients_in_parts_are_printed),
        cmocka_unit_test(bytes_lie_from_step_to_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
