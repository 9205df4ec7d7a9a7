/*
 * Steps of inference of few tokens, drawn: the hop floor, of collectives without bytes one after
 * the other, is never above the step, though collectives of shared experts run beside others, and
 * chunk by chunk beside products. Products, attention and other ops add up to compute, and the
 * shares of a step to the step.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/analysis.h"
#include "sim/report/inference_analysis.h"
#include "tests/property/experts_places.h"
#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, DRAWN = 200 };

/* With pp, and without anything beside tp. */
static const struct {
    const char *machine, *mesh;
} further_places[] = {
    {"\"chip\": \"tpu-v6e\", \"shape\": \"2x4\"", "{\"tp\": [\"x\", \"y\"]}"},
    {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"tp\": [\"gpu\"]}"},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}"},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"pp\": [\"x\"], \"tp\": [\"y\"]}"},
    {"\"chip\": \"tpu-v6e\", \"shape\": \"2x2\"", "{\"fsdp\": [\"x\", \"y\"]}"},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"", "{\"tp\": [\"x\"], \"tp_d\": [\"y\", \"z\"]}"},
};
enum { FURTHER = sizeof further_places / sizeof *further_places };

static const char *const models[] = {"tests/property/experts.json", "tests/property/mla.json",
                                     "deepseek-v2-lite", "llama-3-8b"};
enum { DENSE = 3 };

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    enum { DECODE, PREFILL, KINDS };
    uint32_t const place = case_draw(state, PLACES + FURTHER), other = place - PLACES;
    bool const further = place >= PLACES;
    bool const exchanges = further ? other == 2 : expert_places[place].ep > 1;
    bool const many = !further && expert_places[place].ep > 16; /* Of the first model's. */
    bool const stages = further && (other == 2 || other == 3);
    uint32_t const first = many ? 1 : 0, end = exchanges ? DENSE : DENSE + 1;
    uint32_t const model = first + case_draw(state, end - first);
    uint32_t const kind = case_draw(state, KINDS), batch = 1 + case_draw(state, 12);
    uint32_t const tokens = 1 + case_draw(state, 400);
    bool const matmul = case_draw(state, 3) == 0;
    const char *const mesh = further ? further_places[other].mesh : expert_places[place].mesh;
    bool const whole =
        !exchanges && !matmul && case_draw(state, 2) == 0 && strstr(mesh, "\"tp\"") != NULL;
    char keys[TEXT_BYTES / 4];
    case_text(keys, sizeof keys,
              kind == DECODE ? "\"decode\", \"batch\": %u, \"context\": %u"
                             : "\"prefill\", \"batch\": %u, \"prompt\": %u",
              stages && batch < 4 ? 4 : batch, tokens);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"ideal\"}, \"mesh\": %s, "
              "\"workload\": {\"kind\": %s, \"model\": \"%s\", \"activations\": \"%s\", "
              "\"allow_oversubscription\": true}, \"run\": {\"collective_matmul\": %s}}",
              further ? further_places[other].machine : expert_places[place].machine, mesh, keys,
              models[model], whole ? "replicated" : "model", matmul ? "true" : "false");
}

static bool is_near(double value, double expected, double within)
{
    return fabs(value - expected) <= within * fabs(expected);
}

static void parts_check(struct play *play, const char *text)
{
    struct report_input const input = play_report(play);
    struct analysis analysis;
    case_ok(analysis_build(play->arena, &input, &analysis, &case_error));
    struct inference_analysis const inference = inference_analysis_of(&input, &analysis);
    if (inference.hop_floor_s > analysis.step_s * (1 + 1e-9))
        fail_msg("a floor of %g s is above the step of %g s\nin %s", inference.hop_floor_s,
                 analysis.step_s, text);
    struct inference_shares const shares = inference_shares_of(&input, &analysis);
    double sum_s = 0;
    for (uint32_t i = 0; i < INFERENCE_SHARE_COUNT; i++) sum_s += shares.s[i];
    if (!is_near(sum_s, analysis.step_s, 1e-9))
        fail_msg("shares are %.12g s of a step of %.12g s\nin %s", sum_s, analysis.step_s, text);
    double const ops_s = inference.linear_s + inference.attention_s + inference.other_s;
    if (!is_near(ops_s, analysis.compute_s, 1e-9))
        fail_msg("ops take %.12g s of %.12g s of compute\nin %s", ops_s, analysis.compute_s, text);
}

static void parts_of_a_step_are_the_step_and_no_more(void **state)
{
    (void)state;
    walk_drawn_all(DRAWN, draw, NULL, parts_check);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_a_step_are_the_step_and_no_more),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
