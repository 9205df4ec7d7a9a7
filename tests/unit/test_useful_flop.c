/* What a step is worth is one number, whether programs or formulas say it: over all scenarios. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/scenario/scenario.h"
#include "sim/step/counts.h"
#include "sim/step/workload.h"
#include "tests/support/counts.h"
#include "tools/podsim/common/scenarios.h"

static void near(const char *name, double counted, double built)
{
    double const slack = built * 1e-12;
    if (!(counted >= built - slack && counted <= built + slack))
        fail_msg("%s: %.17g by formula, %.17g in the program", name, counted, built);
}

static void programs_and_formulas_agree(void **state)
{
    (void)state;
    assert_true(embed_scenarios_count > 40);
    for (uint32_t i = 0; i < embed_scenarios_count; i++) {
        const struct embed_file *file = &embed_scenarios[i];
        struct arena *arena = arena_create(0);
        struct scenario of;
        struct machine machine;
        struct mesh mesh;
        struct program program;
        struct workload_counts counts;
        struct error error = {0};
        assert_non_null(arena);
        if (scenario_read_text(arena, file->name, file->bytes, file->size_bytes, NULL, 0, &of,
                               &error) != STATUS_OK ||
            machine_build(arena, &of.machine, &machine, &error) != STATUS_OK ||
            mesh_build(arena, &of.mesh, &machine, &mesh, &error) != STATUS_OK ||
            workload_lower(arena, &of.workload, &machine, &mesh, &program, &error) != STATUS_OK)
            fail_msg("%s: %s: %s", file->name, error.where, error.message);
        counts_make(&of.workload, &machine, &mesh, &counts);
        near(file->name, counts.parameter_flop, program.parameter_flop);
        arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_and_formulas_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
