/* Scenarios: what is read, every default, and text that reads back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/embed.h"
#include "sim/machine/machine.h"
#include "sim/mesh/mesh.h"
#include "tests/support/case.h"
#include "tests/unit/scenario_case.h"

static const char full[] =
    "{\"podsim\": 1, \"title\": \"all\", \"question\": \"Does it?\","
    "\"machine\": {\"chip\": \"tpu-v5e\", \"shape\": \"8x16\", \"profile\": \"measured\","
    "  \"unrealisable\": true, \"wrap\": {\"y\": true, \"x\": false},"
    "  \"links\": [{\"from\": [0, 0], \"to\": [1, 0], \"rate\": \"22.5GB/s\"},"
    "              {\"from\": [1, 0], \"to\": [0, 0], \"latency\": \"1.5us\"}],"
    "  \"chips\": [{\"at\": [3, \"*\"], \"math\": 0.5}, {\"at\": [\"*\", 2], \"hbm\": 0.333333}]},"
    "\"mesh\": {\"tp\": [\"x:4\"], \"dp\": [\"y\"], \"fsdp\": [\"x:2\"]},"
    "\"workload\": {\"kind\": \"train_step\","
    "  \"model\": {\"kind\": \"mlp\", \"D\": 1024, \"F\": 4096, \"layers\": 3, \"matrices\": 3},"
    "  \"batch_tokens\": 65536, \"remat\": \"big_matmuls\", \"tp_inputs\": \"whole\","
    "  \"memory\": \"book\","
    "  \"zero\": 2, \"accumulate\": 4,"
    "  \"attention\": \"causal\", \"formats\": {\"weights\": \"int8\", \"activations\": \"fp8\","
    "  \"gradients\": \"fp32\", \"optimizer\": \"bf16\", \"main_gradients\": \"fp16\"},"
    "  \"gather\": \"tensor\","
    "  \"backward_order\": \"dx_first\", \"activations\": \"tokens\","
    "  \"allow_oversubscription\": true},"
    "\"run\": {\"prefetch_layers\": 2, \"collective_matmul\": true, \"seed\": 7,"
    "  \"algorithm\": \"ring\", \"engine\": \"reference\"}}";

extern const struct embed_file embed_scenarios[];
extern const unsigned embed_scenarios_count;

static void accept(const char *text, const char *setting)
{
    struct scenario_setting const settings[] = {{setting}};
    if (read_with(text, settings, setting != NULL) != STATUS_OK)
        fail_msg("%s: %s: %s", setting == NULL ? "" : setting, error.where, error.message);
}

static void defaults_are_filled(void **state)
{
    (void)state;
    accept(minimal, NULL);
    assert_string_equal(scenario.question, "");
    assert_string_equal(scenario.machine.chip, "tpu-v5p");
    assert_string_equal(scenario.machine.profile, "ideal");
    assert_false(scenario.machine.unrealisable);
    for (int axis = 0; axis < 3; axis++) assert_int_equal(scenario.machine.wrap[axis], -1);
    assert_int_equal(scenario.machine.link_count + scenario.machine.chip_count, 0);
    assert_int_equal(scenario.mesh.axis_count, 2);
    assert_int_equal(scenario.mesh.axis[0].role, MESH_FSDP);
    assert_int_equal(scenario.mesh.axis[0].part_count, 2);
    assert_string_equal(scenario.mesh.axis[0].part[1], "y");
    const struct workload_plan *plan = &scenario.workload;
    assert_int_equal(plan->model.layers, 40);
    assert_int_equal(plan->batch_tokens, 1048576);
    assert_int_equal(plan->remat, GRAPH_REMAT_NONE);
    assert_int_equal(plan->tp_inputs, WORKLOAD_TP_INPUTS_SHARDS);
    assert_int_equal(plan->software.memory, WORKLOAD_MEMORY_DEFAULT);
    assert_int_equal(plan->zero, 0);
    assert_int_equal(plan->accumulate, 1);
    assert_int_equal(plan->attention.mask, WORKLOAD_ATTENTION_FULL);
    assert_int_equal(plan->formats.weights, FORMAT_BF16);
    assert_int_equal(plan->formats.activations, FORMAT_BF16);
    assert_int_equal(plan->formats.gradients, FORMAT_BF16);
    assert_int_equal(plan->formats.optimizer, FORMAT_FP32);
    assert_int_equal(plan->formats.main_gradients, FORMAT_FP32);
    assert_int_equal(plan->gather, WORKLOAD_GATHER_BLOCK);
    assert_int_equal(plan->backward_order, WORKLOAD_BACKWARD_DW_FIRST);
    assert_int_equal(plan->activations, WORKLOAD_ACTIVATIONS_MODEL);
    assert_false(plan->allow_oversubscription);
    assert_int_equal(plan->prefetch_layers, 1);
    assert_false(plan->collective_matmul);
    assert_string_equal(algorithm_text(&plan->algorithm).text, "auto");
    assert_string_equal(scenario.run.engine, "fast");
    assert_int_equal(scenario.run.seed, 0);
}

static void expect_full(void)
{
    const struct machine_plan *machine = &scenario.machine;
    assert_string_equal(scenario.question, "Does it?");
    assert_string_equal(machine->profile, "measured");
    assert_true(machine->unrealisable);
    assert_int_equal(machine->wrap[0], 0);
    assert_int_equal(machine->wrap[1], 1);
    assert_int_equal(machine->wrap[2], -1);
    assert_int_equal(machine->link_count, 2);
    assert_int_equal(machine->links[0].to[0], 1);
    assert_int_equal(machine->links[0].bytes_per_s, UINT64_C(22500000000));
    assert_int_equal(machine->links[0].latency_ps, 0);
    assert_int_equal(machine->links[1].latency_ps, 1500000);
    assert_int_equal(machine->chip_count, 2);
    assert_int_equal(machine->chips[0].at[0], 3);
    assert_int_equal(machine->chips[0].at[1], machine_any);
    assert_int_equal(machine->chips[0].math_ppm, 500000);
    assert_int_equal(machine->chips[0].hbm_ppm, 1000000);
    assert_int_equal(machine->chips[1].hbm_ppm, 333333);
    assert_int_equal(scenario.mesh.axis_count, 3);
    assert_int_equal(scenario.mesh.axis[0].role, MESH_TP); /* In the order of the file. */
    assert_int_equal(scenario.mesh.axis[1].role, MESH_DP);
    const struct workload_plan *plan = &scenario.workload;
    assert_int_equal(plan->model.kind, MODEL_MLP);
    assert_int_equal(plan->model.mlp_width, 4096);
    assert_int_equal(plan->model.matrices, 3);
    assert_int_equal(plan->remat, GRAPH_REMAT_BIG_MATMULS);
    assert_int_equal(plan->tp_inputs, WORKLOAD_TP_INPUTS_WHOLE);
    assert_int_equal(plan->software.memory, WORKLOAD_MEMORY_BOOK);
    assert_int_equal(plan->zero, 2);
    assert_int_equal(plan->accumulate, 4);
    assert_int_equal(plan->attention.mask, WORKLOAD_ATTENTION_CAUSAL);
    assert_int_equal(plan->formats.weights, FORMAT_INT8);
    assert_int_equal(plan->formats.activations, FORMAT_FP8);
    assert_int_equal(plan->formats.gradients, FORMAT_FP32);
    assert_int_equal(plan->formats.optimizer, FORMAT_BF16);
    assert_int_equal(plan->formats.main_gradients, FORMAT_FP16);
    assert_int_equal(plan->gather, WORKLOAD_GATHER_TENSOR);
    assert_int_equal(plan->backward_order, WORKLOAD_BACKWARD_DX_FIRST);
    assert_int_equal(plan->activations, WORKLOAD_ACTIVATIONS_TOKENS);
    assert_true(plan->allow_oversubscription);
    assert_int_equal(plan->prefetch_layers, 2);
    assert_true(plan->collective_matmul);
    assert_string_equal(algorithm_text(&plan->algorithm).text, "ring");
    assert_string_equal(scenario.run.engine, "reference");
    assert_int_equal(scenario.run.seed, 7);
}

static void every_key_reaches_its_field(void **state)
{
    (void)state;
    accept(full, NULL);
    expect_full();
}

static void the_text_shows_all_and_reads_back_to_the_same(void **state)
{
    (void)state;
    static const char *const texts[] = {minimal, full};
    for (size_t i = 0; i < 2; i++) {
        accept(texts[i], NULL);
        const char *first = scenario_text(case_arena, &scenario);
        assert_non_null(first);
        accept(first, NULL);
        assert_string_equal(scenario_text(case_arena, &scenario), first);
    }
    accept(minimal, NULL);
    const char *text = scenario_text(case_arena, &scenario);
    static const char *const visible[] = {"\"profile\": \"ideal\"",
                                          "\"prefetch_layers\": 1",
                                          "\"formats\": {\"weights\": \"bf16\"",
                                          "\"zero\": 0",
                                          "\"gather\": \"block\"",
                                          "\"algorithm\": \"auto\"",
                                          "\"links\": []",
                                          "\"engine\": \"fast\"",
                                          "\"model\": \"llama-2-13b\"",
                                          "\"question\": \"\"",
                                          "\"accumulate\": 1",
                                          "\"unrealisable\": false"};
    for (size_t i = 0; i < sizeof visible / sizeof visible[0]; i++)
        if (strstr(text, visible[i]) == NULL) fail_msg("%s is not in %s", visible[i], text);
}

/* Between slices, where no tier is there but one that is named. */
static void a_tier_with_a_policy_alone_reads_back(void **state)
{
    (void)state;
    accept(minimal,
           "/machine={\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\", \"slices\": 2, \"network\": "
           "{\"leaf\": {\"policy\": \"hash\"}}}");
    const char *first = scenario_text(case_arena, &scenario);
    assert_non_null(strstr(first, "\"leaf\": {\"policy\": \"hash\"}"));
    accept(first, NULL);
    assert_string_equal(scenario_text(case_arena, &scenario), first);
}

static void the_text_keeps_what_full_says(void **state)
{
    (void)state;
    accept(full, NULL);
    accept(scenario_text(case_arena, &scenario), NULL);
    expect_full();
    assert_non_null(strstr(scenario_text(case_arena, &scenario), "\"rate\": \"22500MB/s\""));
}

static void settings_may_replace_and_add_anything_known(void **state)
{
    (void)state;
    accept(minimal, "/run/seed=9");
    assert_int_equal(scenario.run.seed, 9);
    accept(minimal, "/machine/chip=v5e-256");
    accept(minimal, "/workload/model={\"kind\":\"mlp\",\"D\":8,\"F\":8,\"layers\":1}");
    assert_int_equal(scenario.workload.model.matrices, 2);
    accept(full, "/workload/model/F=512");
    assert_int_equal(scenario.workload.model.mlp_width, 512);
    accept(full, "/machine/links/1/latency=3us");
    assert_int_equal(scenario.machine.links[1].latency_ps, 3000000);
    accept(minimal, "/title=4x4x4, smaller");
    assert_string_equal(scenario.title, "4x4x4, smaller");
    accept(minimal, "/mesh={}"); /* Only one chip may have none; the mesh says so. */
    assert_int_equal(scenario.mesh.axis_count, 0);
}

static void a_product_name_says_how_many_coordinates_a_chip_has(void **state)
{
    (void)state;
    static const char text[] =
        "{\"podsim\": 1, \"machine\": {\"chip\": \"%s\", \"chips\": [{\"at\": %s, \"math\": 0.5}]},"
        "\"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": 8, \"F\": "
        "8,"
        "\"layers\": 1}, \"batch_tokens\": 64}}";
    static const struct {
        const char *chip, *at;
        bool good;
    } cases[] = {
        {"v5p-8192", "[1, \"*\", \"*\"]", true}, {"v5p-8192", "[1, \"*\"]", false},
        {"v5e-256", "[1, \"*\"]", true},         {"v5e-256", "[1, \"*\", 0]", false},
        {"tpu-v6e-256", "[1, 1]", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char filled[512];
        (void)snprintf(filled, sizeof filled, text, cases[i].chip, cases[i].at);
        enum status const status = read_with(filled, NULL, 0);
        if ((status == STATUS_OK) != cases[i].good)
            fail_msg("%s %s: %s", cases[i].chip, cases[i].at, error.message);
        if (!cases[i].good) assert_string_equal(error.where, "/machine/chips/0/at");
        if (cases[i].good) accept(scenario_text(case_arena, &scenario), NULL);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void a_model_beside_the_scenario_is_found_and_so_it_is_from_the_text(void **state)
{
    (void)state;
    char folder[] = "podsim-scenario-XXXXXX", path[64], model[64];
    struct scenario_setting const settings[] = {{"/workload/model=mine.json"}};
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s.json", folder);
    (void)snprintf(model, sizeof model, "%s/mine.json", folder);
    write_file(path, minimal);
    write_file(model, "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 256,"
                      "\"intermediate_size\": 512, \"num_attention_heads\": 4,"
                      "\"vocab_size\": 1000}");
    enum status status = scenario_read(case_arena, path, settings, 1, &scenario, &error);
    if (status != STATUS_OK) fail_msg("%s: %s", error.where, error.message);
    assert_int_equal(scenario.workload.model.layers, 2);
    accept(scenario_text(case_arena, &scenario), NULL);
    assert_int_equal(scenario.workload.model.layers, 2);
    assert_int_equal(scenario_read(case_arena, path, NULL, 0, &scenario, &error), STATUS_OK);
    (void)unlink(path);
    (void)unlink(model);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(scenario_read(case_arena, path, NULL, 0, &scenario, &error), STATUS_IO);
    assert_string_equal(error.where, path);
}

static void every_shipped_scenario_asks_a_question_and_lies_on_its_machine(void **state)
{
    (void)state;
    assert_true(embed_scenarios_count >= 12);
    for (unsigned i = 0; i < embed_scenarios_count; i++) {
        struct machine machine;
        struct mesh mesh;
        accept(embed_scenarios[i].bytes, NULL);
        const char *question = scenario.question;
        if (strlen(question) < 20 || question[strlen(question) - 1] != '?')
            fail_msg("%s asks \"%s\"", embed_scenarios[i].name, question);
        if (machine_build(case_arena, &scenario.machine, &machine, &error) != STATUS_OK ||
            mesh_build(&scenario.mesh, &machine, &mesh, &error) != STATUS_OK)
            fail_msg("%s: %s: %s", embed_scenarios[i].name, error.where, error.message);
        const char *text = scenario_text(case_arena, &scenario);
        accept(text, NULL);
        assert_string_equal(scenario_text(case_arena, &scenario), text);
    }
}

static void too_little_memory_is_said_never_a_crash(void **state)
{
    (void)state;
    enum status status = STATUS_NO_MEMORY;
    uint64_t limit = 1;
    for (; status == STATUS_NO_MEMORY && limit < 1000000; limit += 256) {
        struct arena *small = arena_create(limit);
        status = scenario_read_text(small, "s", full, sizeof full - 1, NULL, 0, &scenario, &error);
        if (status == STATUS_OK) {
            const char *text = scenario_text(small, &scenario);
            if (text == NULL) status = STATUS_NO_MEMORY;
        }
        arena_destroy(small);
    }
    assert_int_equal(status, STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled),
        cmocka_unit_test(every_key_reaches_its_field),
        cmocka_unit_test(the_text_shows_all_and_reads_back_to_the_same),
        cmocka_unit_test(a_tier_with_a_policy_alone_reads_back),
        cmocka_unit_test(the_text_keeps_what_full_says),
        cmocka_unit_test(settings_may_replace_and_add_anything_known),
        cmocka_unit_test(a_product_name_says_how_many_coordinates_a_chip_has),
        cmocka_unit_test(a_model_beside_the_scenario_is_found_and_so_it_is_from_the_text),
        cmocka_unit_test(every_shipped_scenario_asks_a_question_and_lies_on_its_machine),
        cmocka_unit_test(too_little_memory_is_said_never_a_crash),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
