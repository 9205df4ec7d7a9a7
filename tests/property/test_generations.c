/*
 * Whole answers, drawn: machines, meshes, models, lengths. Each step of a generation is the decode
 * of its context, and the prefill is that of its prompts, event by event.
 */
#include <string.h>

#include "tests/property/inference_places.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES };

/* Whole text of one step of a generation: the same workload as a step of its own. */
static struct trace played(const char *text, enum inference_played part, uint64_t step)
{
    struct error error = {0};
    struct play play = {.arena = arena_create(0)};
    struct play_options const options = {.engine = "fast"};
    struct inference_generation *generation = &play.scenario.workload.inference.generation;
    case_ok(scenario_read_text(play.arena, "drawn", text, strlen(text), NULL, 0, &play.scenario,
                               &error));
    if (generation->output != 0) *generation = (struct inference_generation){1, 1, part, step};
    if (play_stages(&play, &options, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
    struct trace const trace = play.trace;
    play_close(&play);
    return trace;
}

static void same(const char *text, enum inference_played part, uint64_t step, const char *alone)
{
    struct trace const one = played(text, part, step), other = played(alone, INFERENCE_ENDS, 0);
    case_that(one.digest == other.digest && one.step_ps == other.step_ps, alone);
}

/* Whatever the step, it is the decode of that context, and the prefill is that of its prompts. */
static void steps_of_a_generation_are_decodes(void **state)
{
    enum { CASES = 40 };
    static const char head[] =
        "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"ideal\"}, \"mesh\": "
        "%s, \"workload\": {\"model\": \"%s\", ";
    uint32_t walked = 0;
    (void)state;
    for (uint32_t n = 0; n < CASES; n++) {
        uint64_t random = n + 1;
        uint32_t const more = case_draw(&random, 40), prompt = 1 + case_draw(&random, 2000);
        uint32_t const cached = case_draw(&random, 500), output = 1 + case_draw(&random, 1000);
        uint32_t const chunk = case_draw(&random, 2) * (300 + case_draw(&random, 1000));
        uint32_t const step = 1 + case_draw(&random, output);
        char begin[TEXT_BYTES], whole[TEXT_BYTES], alone[TEXT_BYTES];
        uint32_t const place = case_draw(&random, PLACES), model = case_draw(&random, MODELS);
        uint32_t const batch = more + inference_places[place].pp;
        bool const holds = inference_places[place].tp > inference_models[model].kv_heads;
        if (sampling_skips(&walked)) continue;
        case_text(begin, sizeof begin, head, inference_places[place].machine,
                  inference_places[place].mesh, inference_models[model].name);
        case_text(whole, sizeof whole,
                  "%s\"kind\": \"generate\", \"batch\": %u, \"prompt\": %u, \"cached\": %u, "
                  "\"chunk\": %u, \"output\": %u, \"allow_oversubscription\": true}}",
                  begin, batch, prompt, cached, chunk, output);
        case_text(alone, sizeof alone,
                  "%s\"kind\": \"decode\", \"batch\": %u, \"context\": %u, "
                  "\"allow_oversubscription\": true}}",
                  begin, batch, cached + prompt + step);
        /* The cache lies as prompts that ranks of cp share leave it. */
        if (!holds || inference_places[place].cp == 1) same(whole, INFERENCE_STEP, step, alone);
        if (holds) continue; /* The cache lies otherwise. */
        case_text(alone, sizeof alone,
                  "%s\"kind\": \"prefill\", \"batch\": %u, \"prompt\": %u, \"cached\": %u, "
                  "\"chunk\": %u, \"allow_oversubscription\": true}}",
                  begin, batch, prompt, cached, chunk);
        same(whole, INFERENCE_PREFILL, 0, alone);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_a_generation_are_decodes),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
