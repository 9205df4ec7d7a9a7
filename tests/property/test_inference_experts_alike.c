/*
 * Steps of inference with experts and latent attention over all mesh axes, whole answers and drawn
 * routing among them: folded or not and by either engine instants are the same, and no step is
 * faster than its bound.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES, ALIKE = 120 };

static const struct {
    const char *machine, *mesh;
    bool of_gpu, exchanges;
} alike_places[] = {
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"pp\": [\"node\"], \"ep\": [\"gpu:2\"], \"tp\": [\"gpu:2\"], \"tp_d\": [\"gpu:2\"]}", true,
     true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}", true, true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 3", "{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}", true, true},
    {"\"chip\": \"h100-sxm\", \"nodes\": 2",
     "{\"dp\": [\"node\"], \"tp\": [\"gpu:4\"], \"tp_d\": [\"gpu:2\"]}", true, false},
    {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"",
     "{\"pp\": [\"x:2\"], \"tp_d\": [\"x:2\"], \"ep\": [\"y:2\"], \"tp\": [\"y:2\"]}", false, true},
    {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"",
     "{\"fsdp\": [\"z:2\"], \"ep\": [\"z:2\"], \"tp\": [\"x\"], \"tp_d\": [\"y\"]}", false, true},
    {"\"chip\": \"tpu-v6e\", \"shape\": \"2x4\"", "{\"ep\": [\"x\"], \"tp_d\": [\"y\"]}", false,
     true},
};
/* And three stages, which do not divide the models' four layers. */
enum { PLACES = sizeof alike_places / sizeof *alike_places };

/* The second has latents, and a token's experts are in few groups. */
static const char *const alike_models[] = {"tests/property/experts.json",
                                           "tests/property/mla.json"};
static const char *const shardings[] = {"auto", "auto", "replicated"};

static void sequences_write(uint64_t *state, char *text, size_t room)
{
    enum { DECODE, PREFILL, MIXED, GENERATE, KINDS };
    uint32_t const kind = case_draw(state, KINDS), answers = 3 + case_draw(state, 200);
    uint32_t const asking = 3 + case_draw(state, 12), prompt = 1 + case_draw(state, 600);
    uint32_t const cached = case_draw(state, 2) * case_draw(state, 300),
                   context = 1 + case_draw(state, 3000);
    uint32_t const chunk = case_draw(state, 2) * (1 + prompt / (1 + case_draw(state, 3)));
    if (kind == DECODE)
        case_text(text, room, "\"decode\", \"batch\": %u, \"context\": %u", answers, context);
    else if (kind == MIXED)
        case_text(text, room,
                  "\"mixed\", \"batch\": %u, \"context\": %u, \"prompts\": %u, \"prompt\": %u, "
                  "\"cached\": %u",
                  answers, context, asking, prompt, cached);
    else
        case_text(text, room,
                  "\"%s\", \"batch\": %u, \"prompt\": %u, \"cached\": %u, \"chunk\": %u%s",
                  kind == PREFILL ? "prefill" : "generate", asking, prompt, cached, chunk,
                  kind == PREFILL ? "" : ", \"output\": 50");
}

static void draw(uint64_t *state, char text[TEXT_BYTES])
{
    uint32_t const place = case_draw(state, PLACES), model = case_draw(state, 2);
    bool const skews = model == 0 && case_draw(state, 3) == 0;
    bool const copies = alike_places[place].of_gpu && alike_places[place].exchanges && !skews;
    const char *const sharding = shardings[case_draw(state, 3)];
    bool const each = case_draw(state, 2) == 0 && copies;
    uint32_t const seed = case_draw(state, 100);
    char keys[TEXT_BYTES / 2];
    sequences_write(state, keys, sizeof keys);
    case_text(text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {%s, \"profile\": \"ideal\"}, \"mesh\": %s, "
              "\"workload\": {\"kind\": %s, \"model\": \"%s\", \"kv_sharding\": \"%s\", "
              "\"token_copies\": \"%s\", \"routing_skew\": %s}, \"run\": {\"seed\": %u}}",
              alike_places[place].machine, alike_places[place].mesh, keys, alike_models[model],
              sharding, each ? "expert" : "rank", skews ? "0.8" : "0", seed);
}

static void alike_check(struct play *folded, const char *text)
{
    double const step_s = units_seconds(folded->trace.step_ps);
    walk_alike(folded, text, "reference");
    case_that(step_s * (1 + 1e-9) >= folded->roofline.lower_s, text);
}

static void folded_or_not_a_step_is_the_same(void **state)
{
    (void)state;
    walk_drawn_all(ALIKE, draw, NULL, alike_check);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_or_not_a_step_is_the_same),
    };
    walk_seed(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
