/* What presets set, and where they do not. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/kernels/kernels.h"
#include "sim/scenario/preset.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/refusals.h"
#include "tests/support/sampling.h"

/* A step on all axes that training has, so that every key of a preset applies. */
static const char staged[] =
    "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 16, \"profile\": "
    "\"measured\"}, \"mesh\": {\"tp\": [\"gpu:2\"], \"cp\": [\"gpu:2\"], \"ep\": [\"gpu:2\"], "
    "\"dp\": [\"node:4\"], \"pp\": [\"node:4\"]}, \"workload\": {\"kind\": \"train_step\", "
    "\"model\": \"mixtral-8x7b\", \"batch_tokens\": 1048576, \"sequence_length\": 4096}}";

static const char serving[] =
    "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"profile\": \"measured\"}, \"mesh\": "
    "{\"tp\": [\"gpu\"]}, \"workload\": {\"kind\": \"decode\", \"model\": \"llama-3-8b\", "
    "\"batch\": 1, "
    "\"context\": 64}}";

/* What a preset is for. */
static const char *text_for(const struct preset *preset)
{
    return preset->trains ? staged : serving;
}

static enum status read_with(const char *text, const char *first, const char *second,
                             struct scenario *scenario)
{
    struct scenario_setting const settings[] = {{first}, {second}};
    return scenario_read_text(case_arena, "text", text, strlen(text), settings,
                              second == NULL ? 1 : 2, scenario, &case_error);
}

static void every_preset_is_of_known_keys(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (const char *name = NULL; (name = preset_name_at(count)) != NULL; count++) {
        struct scenario scenario, again;
        struct preset preset;
        case_ok(preset_find(case_arena, name, "", &preset, &case_error));
        case_ok(read_with(text_for(&preset), arena_format(case_arena, "/preset=%s", name), NULL,
                          &scenario));
        assert_string_equal(scenario.preset, name);
        const char *shown = scenario_text(case_arena, &scenario);
        case_ok(scenario_read_text(case_arena, "shown", shown, strlen(shown), NULL, 0, &again,
                                   &case_error));
        assert_string_equal(scenario_text(case_arena, &again), shown);
    }
    assert_true(count >= 14);
}

/* What a word of recomputation sets is a key that a step has. */
static void every_word_is_of_known_keys(void **state)
{
    (void)state;
    for (uint32_t i = 0; preset_name_at(i) != NULL; i++) {
        struct preset preset;
        case_ok(preset_find(case_arena, preset_name_at(i), "", &preset, &case_error));
        assert_int_equal(preset.recompute_count >= 2, text_for(&preset) == staged);
        for (uint32_t w = 0; w < preset.recompute_count; w++)
            for (uint32_t k = 0; k < preset.recompute[w].key_count; k++) {
                const struct preset_key *key = &preset.recompute[w].key[k];
                struct scenario scenario;
                case_ok(read_with(staged,
                                  arena_format(case_arena, "%s=%s", key->pointer, key->value), NULL,
                                  &scenario));
            }
    }
}

static void a_preset_fills_in_what_the_scenario_leaves_out(void **state)
{
    (void)state;
    struct scenario scenario;
    case_ok(read_with(staged, "/preset=nemo", NULL, &scenario));
    assert_int_equal(scenario.workload.zero, 1);
    assert_int_equal(scenario.workload.parameter_gather, WORKLOAD_PARAMETERS_NEXT_STEP);
    assert_true(scenario.workload.collective_matmul);
    case_ok(read_with(staged, "/preset=nemo", "/run/collective_matmul=false", &scenario));
    assert_false(scenario.workload.collective_matmul);
    case_ok(read_with(staged, "/workload/formats={\"gradients\": \"fp32\"}", "/preset=nemo",
                      &scenario));
    assert_int_equal(scenario.workload.formats.gradients, FORMAT_FP32);
    assert_int_equal(scenario.workload.formats.main_gradients, FORMAT_BF16);
}

static void keys_of_axes_need_these_axes(void **state)
{
    (void)state;
    struct scenario scenario;
    case_ok(read_with(staged, "/mesh={\"pp\": [\"node\"], \"fsdp\": [\"gpu\"]}", "/preset=nemo",
                      &scenario));
    assert_int_equal(scenario.workload.zero, 0);
    assert_false(scenario.workload.collective_matmul);
}

/* Keys of the scenario to which those of presets yield, whatever the kernels. */
static void no_preset_stands_in_the_way(void **state)
{
    static const char *const meshes[] = {
        "{\"dp\": [\"node\", \"gpu\"]}",           "{\"dp\": [\"node\"], \"fsdp\": [\"gpu\"]}",
        "{\"fsdp\": [\"node\", \"gpu\"]}",         "{\"pp\": [\"node\"], \"dp\": [\"gpu\"]}",
        "{\"dp\": [\"node\"], \"tp\": [\"gpu\"]}", "{\"dp\": [\"node\"], \"cp\": [\"gpu\"]}"};
    static const char *const own[] = {"",
                                      "\"zero\": 0,",
                                      "\"zero\": \"2\",",
                                      "\"zero\": 3,",
                                      "\"offload\": \"optimizer\",",
                                      "\"offload\": \"both\",",
                                      "\"memory\": \"book\","};
    static const char *const runs[] = {
        "", "\"overlap\": {\"dp\": false}", "\"overlap\": {\"tp\": false, \"pp\": false}",
        "\"parameter_gather\": \"next_step\", \"collective_matmul\": true"};
    static const char *const stacks[] = {"",
                                         ", \"profile\": \"measured\", \"stack\": \"te\"",
                                         ", \"profile\": \"measured\", \"stack\": \"torch-eager\"",
                                         ", \"profile\": \"measured\", \"stack\": \"trtllm\"",
                                         ", \"profile\": \"measured\", \"stack\": \"vllm\"",
                                         ", \"profile\": \"measured\", \"stack\": \"sglang\""};
    static const char *const models[] = {
        "\"llama-3-8b\"",
        "{\"kind\": \"mlp\", \"D\": 512, \"F\": 2048, \"layers\": 4, \"matrices\": 2}"};
    static const struct play_options lowered = {.lower_only = true};
    uint32_t walked = 0, lowered_count = 0;
    (void)state;
    /* Each fifth, which no number of choices divides. */
    for (uint32_t k = 0; k < 6 * 7 * 4 * 6 * 2; k += 5)
        for (uint32_t p = 0; preset_name_at(p) != NULL; p++) {
            struct preset preset;
            struct play play, plain;
            struct error without;
            case_ok(preset_find(case_arena, preset_name_at(p), "", &preset, &case_error));
            if (!preset.trains || sampling_skips(&walked)) continue;
            const char *text =
                arena_format(case_arena,
                             "\"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2%s}, \"mesh\": %s, "
                             "\"workload\": {"
                             "\"kind\": \"train_step\", \"model\": %s, \"batch_tokens\": 65536, %s "
                             "\"allow_oversubscription\": true%s}, \"run\": {%s}}",
                             stacks[k / 168 % 6], meshes[k % 6], models[k / 1008], own[k / 6 % 7],
                             k < 1008 ? ", \"sequence_length\": 4096" : "", runs[k / 42 % 4]);
            enum status const status =
                play_try(&play,
                         arena_format(case_arena, "{\"podsim\": 1, \"preset\": \"%s\", %s",
                                      preset.name, text),
                         &lowered, &case_error);
            play_close(&play);
            lowered_count += status == STATUS_OK;
            if (status == STATUS_OK) continue;
            enum status const alone = play_try(
                &plain, arena_format(case_arena, "{\"podsim\": 1, %s", text), &lowered, &without);
            play_close(&plain);
            if (alone == STATUS_OK)
                fail_msg("%s, %s: %s: %s", preset.name, text, case_error.where, case_error.message);
        }
    assert_true(lowered_count > 0);
}

/* Kernels of an engine come with NCCL's protocols, which a machine without a stack lacks. */
static void an_engine_without_a_stack_has_sums_of_nccl(void **state)
{
    static const struct play_options lowered = {.lower_only = true};
    static const char *const engines[] = {"gpt-fast", "vllm", "trtllm"};
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct play play;
        case_ok(play_try(&play,
                         arena_format(case_arena,
                                      "{\"podsim\": 1, \"preset\": \"%s\", \"machine\": "
                                      "{\"chip\": \"h100-sxm\", \"profile\": \"measured\", "
                                      "\"stack\": \"none\"}, \"mesh\": {\"tp\": [\"gpu\"]}, "
                                      "\"workload\": {\"kind\": \"decode\", \"model\": "
                                      "\"llama-3-8b\", \"batch\": 1, \"context\": 64}}",
                                      engines[i]),
                         &lowered, &case_error));
        play_close(&play);
    }
}

static void what_presets_are_not_for_is_refused(void **state)
{
    (void)state;
    struct scenario scenario;
    assert_int_equal(read_with(serving, "/preset=nemo", NULL, &scenario), STATUS_INVALID);
    assert_string_equal(case_error.where, "/preset");
    assert_non_null(strstr(case_error.message, "for workloads of training"));
    refusals_hold(&case_error, __FILE__);
    assert_int_equal(read_with(staged, "/preset=vllm", NULL, &scenario), STATUS_INVALID);
    assert_non_null(strstr(case_error.message, "for workloads of inference"));
    refusals_hold(&case_error, __FILE__);
    /* What is no kind is of neither, and the key says which there are. */
    assert_int_not_equal(read_with(staged, "/preset=nemo", "/workload/kind=trian_step", &scenario),
                         STATUS_OK);
    assert_string_equal(case_error.where, "/workload/kind");
    assert_int_equal(read_with(staged, "/preset=nemu", NULL, &scenario), STATUS_NOT_FOUND);
    assert_non_null(strstr(case_error.message, "nemo"));
    refusals_hold(&case_error, __FILE__);
    assert_int_equal(read_with(staged, "/preset=7", NULL, &scenario), STATUS_INVALID);
    assert_string_equal(case_error.where, "/preset");
}

static void a_stack_is_taken_where_the_chip_has_it(void **state)
{
    (void)state;
    assert_true(kernel_stack_is_shipped("h100-sxm", "trtllm"));
    assert_false(kernel_stack_is_shipped("h100-sxm", "trt"));
    assert_false(kernel_stack_is_shipped("tpu-v5e", "trtllm"));
    assert_false(kernel_stack_is_shipped("h100-sxm", NULL));
    for (uint32_t i = 0; preset_name_at(i) != NULL; i++) {
        struct scenario scenario;
        struct preset preset;
        case_ok(preset_find(case_arena, preset_name_at(i), "", &preset, &case_error));
        bool const has = kernel_stack_is_shipped("h100-sxm", preset.stack);
        const char *setting = arena_format(case_arena, "/preset=%s", preset.name);
        case_ok(read_with(text_for(&preset), setting, NULL, &scenario));
        const char *shown = scenario_text(case_arena, &scenario);
        const char *stack = arena_format(case_arena, "\"stack\": \"%s\"", preset.stack);
        assert_int_equal(strstr(shown, stack) != NULL, has);
        case_ok(read_with(text_for(&preset), "/machine/chip=h100", setting, &scenario));
        assert_int_equal(strstr(scenario_text(case_arena, &scenario), stack) != NULL, has);
        case_ok(read_with(text_for(&preset), "/machine/profile=ideal", setting, &scenario));
        assert_null(strstr(scenario_text(case_arena, &scenario), stack));
    }
}

/* Only of frameworks whose successors do much of a step another way. */
static void presets_of_the_past_have_a_year(void **state)
{
    (void)state;
    struct preset preset;
    case_ok(preset_find(case_arena, "megatron-2021", "", &preset, &case_error));
    assert_int_equal(preset.year, 2021);
    case_ok(preset_find(case_arena, "zero-bubble", "", &preset, &case_error));
    assert_int_equal(preset.year, 2023);
    case_ok(preset_find(case_arena, "megatron", "", &preset, &case_error));
    assert_int_equal(preset.year, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preset_is_of_known_keys),
        cmocka_unit_test(every_word_is_of_known_keys),
        cmocka_unit_test(a_preset_fills_in_what_the_scenario_leaves_out),
        cmocka_unit_test(keys_of_axes_need_these_axes),
        cmocka_unit_test(no_preset_stands_in_the_way),
        cmocka_unit_test(an_engine_without_a_stack_has_sums_of_nccl),
        cmocka_unit_test(what_presets_are_not_for_is_refused),
        cmocka_unit_test(a_stack_is_taken_where_the_chip_has_it),
        cmocka_unit_test(presets_of_the_past_have_a_year),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
