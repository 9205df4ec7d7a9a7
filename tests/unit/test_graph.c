/* What graphs of dense layers derive is what workload_lower() makes: op by op, in order, over the
 * drawn steps of counts_case.h and the shipped scenarios. */
#include "tests/support/thin.h"
#include "tests/support/walk.h"
#include "tests/unit/counts_case.h"
#include "tests/unit/graph_case.h"

struct place {
    bool llama;
    const char *shape, *dp, *fsdp, *tp;
    uint64_t batch_tokens;
};

static const struct place places[] = {
    {false, "16", "x", NULL, NULL, 1 << 20},          {false, "16", NULL, "x", NULL, 1 << 20},
    {false, "16", NULL, NULL, "x", 1 << 20},          {false, "4x4x4", NULL, "x y", "z", 1 << 20},
    {false, "4x4x4", "y", "x", "z", 1 << 20},         {true, "16x16x16", NULL, "x y", "z", 1 << 22},
    {true, "16x16x16", NULL, "x y", "z", 1 << 19}, /* A sequence on two ranks or four. */
    {true, "4x4x4", "x y", NULL, "z", 1 << 20},       {true, "4x4x4", "y", "x", "z", 1 << 20},
    {true, "16x16x16", NULL, "x y z", NULL, 1 << 22}, {true, "16", NULL, NULL, "x", 1 << 20},
};

static void drawn_step(size_t p, uint32_t zero, uint32_t variant, uint64_t window)
{
    static const bool windowed[5] = {true, false, true, true, false};
    const struct place *place = &places[p];
    struct workload_case made;
    char name[96];
    (void)snprintf(name, sizeof name, "place %zu, zero %u, variant %u, window %u", p, zero, variant,
                   (unsigned)window);
    assert_int_equal(case_build(&made, place->llama ? &case_llama_70b : &case_mlp, place->shape,
                                place->dp, place->fsdp, place->tp),
                     STATUS_OK);
    made.plan.batch_tokens = place->batch_tokens;
    made.plan.zero = zero;
    vary(&made, variant);
    if (window != 0) {
        made.plan.model.window = window;
        made.plan.model.windowed = windowed;
    }
    if (case_lower(&made) != STATUS_OK) fail_msg("%s: %s", name, made.error.message);
    graph_step_hold(name, &made);
    case_free(&made);
}

static void dense_layers_are_derived(void **state)
{
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        bool const staged = places[p].dp != NULL && places[p].fsdp == NULL;
        for (uint32_t zero = 0; zero <= (staged ? 3u : 0u); zero++)
            for (uint32_t variant = 0; variant < 60; variant++)
                if (!thin_skips(&walked)) drawn_step(p, zero, variant, 0);
    }
}

static void layers_with_windows_are_derived(void **state)
{
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        bool const shares = places[p].batch_tokens == 1 << 19 || p == 9; /* Sequences. */
        if (!places[p].llama || shares) continue;
        for (uint32_t variant = 0; variant < 60; variant++)
            if (!thin_skips(&walked)) drawn_step(p, 0, variant, variant % 2 == 0 ? 1024 : 513);
    }
}

static void shipped_hold(struct play *play, const char *path)
{
    static struct local local;
    struct error error;
    enum status const status =
        local_build(&play->scenario.workload, &play->machine, &play->mesh, &local, &error);
    bool const kernels = play->scenario.workload.attention_kernel == WORKLOAD_KERNEL_FLASH;
    assert_int_equal(status, STATUS_OK);
    bool const described = graph_hold(path, &local, &play->program);
    if (described != (kernels && play->mesh.axis[MESH_CP].size == 1))
        fail_msg("%s: %s", path, described ? "described" : "not described");
}

static void shipped_scenarios_are_derived(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    (void)state;
    walk_shipped(&lower_only, NULL, shipped_hold);
    print_message("%u steps, %u templates, %u ops and collectives\n", graph_compared.steps,
                  graph_compared.templates, graph_compared.ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_layers_are_derived),
        cmocka_unit_test(layers_with_windows_are_derived),
        cmocka_unit_test(shipped_scenarios_are_derived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
