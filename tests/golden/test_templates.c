/* Every template of every shipped scenario, and of one in each schedule of a pipeline, does what it
 * did: tests/golden/templates/scenarios.expect.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/embed.h"
#include "sim/measure/choices.h"
#include "sim/mesh/mesh.h"
#include "sim/scenario/scenario.h"
#include "sim/step/workload.h"
#include "tests/support/case.h"
#include "tests/support/templates.h"

extern const struct embed_file embed_scenarios[];
extern const uint32_t embed_scenarios_count;

static void hold(const struct embed_file *file, const char *name,
                 const struct scenario_setting *settings, uint32_t count)
{
    struct arena *arena = arena_create(0);
    struct scenario scenario;
    struct machine machine;
    struct mesh mesh;
    struct program program;
    case_ok(scenario_read_text(arena, file->name, file->bytes, file->size_bytes, settings, count,
                               &scenario, &case_error));
    case_ok(machine_build(arena, &scenario.machine, &machine, &case_error));
    case_ok(mesh_build(&scenario.mesh, &machine, &mesh, &case_error));
    inference_stages_set(&scenario.workload, mesh.axis[MESH_PP].size);
    struct choices_args const choices = {.machine = &machine};
    case_ok(choices_create(arena, &choices, &scenario.workload.inference.chooser, &case_error));
    case_ok(workload_lower(arena, &scenario.workload, &machine, &mesh, &program, &case_error));
    templates_hold(name, &program, &machine);
    arena_destroy(arena);
}

static void templates_of_scenarios_stand(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < embed_scenarios_count; i++)
        hold(&embed_scenarios[i], embed_scenarios[i].name, NULL, 0);
}

/* With two passes in one template, and halves of backward passes. */
static void templates_of_schedules_stand(void **state)
{
    static const char *const schedules[] = {
        "auto", "dualpipe", "dualpipev", "eager-1f1b", "gpipe", "interleaved:2", "looped-bfs:2",
        "none", "1f1b",     "v-half",    "v-min",      "zb-h1", "zb-h2",         "zb-v"};
    const struct embed_file *file = embed_scenarios;
    (void)state;
    while (strcmp(file->name, "llama3-8b-pp4-h100-32") != 0) file++;
    for (uint32_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        char name[64], schedule[64];
        struct scenario_setting const settings[] = {{schedule}, {"/workload/accumulate=8"}};
        (void)snprintf(name, sizeof name, "%s, %s", file->name, schedules[i]);
        (void)snprintf(schedule, sizeof schedule, "/workload/schedule=%s", schedules[i]);
        hold(file, name, settings, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_of_scenarios_stand),
        cmocka_unit_test(templates_of_schedules_stand),
    };
    return templates_run("scenarios", tests);
}
