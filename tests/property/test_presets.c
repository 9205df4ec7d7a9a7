/*
 * What a scenario with a preset shows is what it runs: read again, where the preset fills in what
 * the text leaves out, it is the same text and runs to the same digest. Meshes, stacks, presets and
 * values of one or two of the preset's keys are drawn from a seed that is printed (or given as the
 * first argument).
 */
#include <string.h>

#include "sim/base/random.h"
#include "sim/scenario/preset.h"
#include "sim/scenario/scenario_parts.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { DRAWS = 1500, TEXT_BYTES = 1024, VALUES_MAX = 32 };

#define PICK(state, ...)                                                                           \
    (((const char *const[]){__VA_ARGS__})[random_below(                                            \
        state, sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *))])

/* A value that the key has, or one that it refuses. */
static const char *value_drawn(uint64_t *state, const struct preset *preset,
                               const struct preset_key *key)
{
    struct scenario const scenario = {.workload.kind =
                                          preset->trains ? WORKLOAD_TRAIN_STEP : WORKLOAD_DECODE};
    struct key_source const source = {.whole = &scenario, .base = &scenario};
    const struct key *const row = key_at(scenario_keys, key->pointer, &source);
    const char *values[VALUES_MAX] = {"true", "false", "0", "1", "2", "none", "layer", "gathers"};
    uint32_t count = 8;
    assert_non_null(row);
    if (row->choices != NULL)
        for (count = 0; row->choices[count] != NULL; count++) values[count] = row->choices[count];
    values[count++] = key->value;
    return values[random_below(state, count)];
}

static void scenario_drawn(uint64_t *state, const struct preset *preset, char text[TEXT_BYTES])
{
    const char *const stack = PICK(state, "", "", ", \"stack\": \"none\"", ", \"stack\": \"te\"",
                                   ", \"stack\": \"torch-eager\"");
    const char *const profile = PICK(state, "measured", "measured", "ideal");
    const char *const mesh =
        PICK(state, "\"dp\": [\"node\"], \"tp\": [\"gpu\"]", "\"fsdp\": [\"node\", \"gpu\"]",
             "\"pp\": [\"node\"], \"tp\": [\"gpu:2\"], \"dp\": [\"gpu:2\"]",
             "\"dp\": [\"node\", \"gpu\"]", "\"fsdp\": [\"node\"], \"tp\": [\"gpu\"]",
             "\"ep\": [\"gpu\"], \"dp\": [\"node\"]");
    const char *const model = strstr(mesh, "ep") == NULL ? "small" : "experts";
    const char *const served = PICK(state, "\"tp\": [\"gpu\"]", "\"dp\": [\"gpu\"]");
    if (preset->trains)
        case_text(text, TEXT_BYTES,
                  "{\"podsim\": 1, \"preset\": \"%s\", \"machine\": {\"chip\": \"h100-sxm\", "
                  "\"nodes\": 2, \"gpus\": 4, \"profile\": \"%s\"%s}, \"mesh\": {%s}, "
                  "\"workload\": {\"kind\": \"train_step\", \"model\": "
                  "\"tests/property/%s.json\", \"batch_tokens\": 32768, \"sequence_length\": 512, "
                  "\"accumulate\": 4, \"allow_oversubscription\": true}}",
                  preset->name, profile, strcmp(profile, "ideal") == 0 ? "" : stack, mesh, model);
    else
        case_text(text, TEXT_BYTES,
                  "{\"podsim\": 1, \"preset\": \"%s\", \"machine\": {\"chip\": \"h100-sxm\", "
                  "\"gpus\": 4, \"profile\": \"%s\"}, \"mesh\": {%s}, \"workload\": "
                  "{\"kind\": \"decode\", \"model\": \"tests/property/small.json\", "
                  "\"batch\": 8, \"context\": 64}}",
                  preset->name, profile, served);
}

/* False: the draw is refused. */
static bool shown_runs_alike(uint64_t *state, const struct preset *preset)
{
    char text[TEXT_BYTES], set[2][TEXT_BYTES];
    struct scenario_setting const settings[] = {{set[0]}, {set[1]}};
    struct play_options const options = {.settings = settings,
                                         .setting_count = 1 + (uint32_t)random_below(state, 2)};
    struct play play, again;
    scenario_drawn(state, preset, text);
    for (uint32_t i = 0; i < 2; i++) {
        const struct preset_key *const key = &preset->key[random_below(state, preset->key_count)];
        case_text(set[i], TEXT_BYTES, "%s=%s", key->pointer, value_drawn(state, preset, key));
    }
    bool const runs = play_try(&play, text, &options, &case_error) == STATUS_OK;
    if (runs) {
        const char *const shown = scenario_text(play.arena, &play.scenario);
        if (play_try(&again, shown, NULL, &case_error) != STATUS_OK)
            fail_msg("%s, %s, %s: %s: %s", text, set[0], options.setting_count == 1 ? "" : set[1],
                     case_error.where, case_error.message);
        if (again.trace.digest != play.trace.digest ||
            strcmp(scenario_text(again.arena, &again.scenario), shown) != 0)
            fail_msg("%s, %s, %s: is another step where it is read again:\n%s", text, set[0],
                     options.setting_count == 1 ? "" : set[1], shown);
        play_close(&again);
    }
    play_close(&play);
    return runs;
}

static void what_is_shown_runs_to_the_same_digest(void **state)
{
    uint32_t presets = 0, walked = 0, drawn = 0, run = 0;
    (void)state;
    while (preset_name_at(presets) != NULL) presets++;
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint64_t chance = walk_draw(i);
        struct preset preset;
        if (sampling_skips(&walked)) continue;
        case_ok(preset_find(case_arena, preset_name_at((uint32_t)random_below(&chance, presets)),
                            "", &preset, &case_error));
        drawn++;
        run += shown_runs_alike(&chance, &preset);
    }
    assert_true(run * 4 > drawn);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shown_runs_to_the_same_digest),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
