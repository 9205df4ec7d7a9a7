/*
 * Prompts where ranks of tp with the same heads share the cache: without earlier tokens nothing of
 * a prompt travels between them, as each has computed all keys, and the step takes as long as where
 * every rank keeps all rows. Behind earlier tokens, of which each has a part, queries travel.
 */
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = WALK_TEXT_BYTES };

#define H100 "\"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2}, "
#define V5E "\"machine\": {\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"}, "

/* Eight KV heads over 16 ranks; a latent, which all ranks have; ranks of cp with parts of prompts,
 * and two of tp_d with some sequences or parts of each. */
static const struct {
    const char *place, *model;
    const char *shared[2]; /* By sequences and by parts of them; NULL: cp has parts. */
} places[] = {
    {H100 "\"mesh\": {\"tp\": [\"node\", \"gpu\"]}",
     "llama-3-405b",
     {"{\"heads\": 8, \"batch\": 2, \"sequence\": 1}",
      "{\"heads\": 8, \"batch\": 1, \"sequence\": 2}"}},
    {V5E "\"mesh\": {\"tp\": [\"x\", \"y\"]}",
     "llama-3-70b",
     {"{\"heads\": 8, \"batch\": 2, \"sequence\": 1}",
      "{\"heads\": 8, \"batch\": 1, \"sequence\": 2}"}},
    {H100 "\"mesh\": {\"ep\": [\"node\"], \"tp\": [\"gpu\"]}",
     "deepseek-v3",
     {"{\"heads\": 1, \"batch\": 8, \"sequence\": 1}",
      "{\"heads\": 1, \"batch\": 1, \"sequence\": 8}"}},
    {H100 "\"mesh\": {\"cp\": [\"node\"], \"tp\": [\"gpu\"]}",
     "deepseek-v2-lite",
     {NULL, "{\"heads\": 1, \"batch\": 1, \"sequence\": 8}"}},
    {H100 "\"mesh\": {\"tp_d\": [\"node\"], \"tp\": [\"gpu\"]}",
     "deepseek-v2-lite",
     {"{\"heads\": 1, \"batch\": 16, \"sequence\": 1}",
      "{\"heads\": 1, \"batch\": 2, \"sequence\": 8}"}},
};
enum { PLACES = sizeof places / sizeof *places };

/* The step's time and what ranks with the same heads send each other in it. */
struct step {
    double time_s, kv_bytes;
};

static struct step step_of(size_t place, const char *sharding, const char *workload, bool whole)
{
    struct play_options const options = {.lower_only = !whole};
    char text[TEXT_BYTES];
    struct play play;
    case_text(text, sizeof text,
              "{\"podsim\": 1, %s, \"workload\": {\"model\": \"%s\", \"kv_sharding\": %s, %s, "
              "\"allow_oversubscription\": true}}",
              places[place].place, places[place].model, sharding, workload);
    play_run(&play, text, &options);
    struct step step = {.time_s = whole ? units_seconds(play.trace.step_ps) : 0};
    for (uint32_t kind = 0; kind < COLLECTIVE_KIND_COUNT; kind++)
        step.kv_bytes += walk_moved_bytes(&play.program, STREAM_OF_KV, (enum collective_kind)kind);
    play_close(&play);
    return step;
}

#define PREFILL "\"kind\": \"prefill\", \"batch\": 16, \"prompt\": 512"
#define DECODE "\"batch\": 32, \"context\": 512"

static void prompts_without_earlier_tokens_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * (size_t)PLACES; i++) {
        const char *const shared = places[i / 2].shared[i % 2];
        if (shared == NULL) continue;
        struct step const whole = step_of(i / 2, "\"replicated\"", PREFILL, true);
        struct step const prefill = step_of(i / 2, shared, PREFILL, true);
        struct step const behind = step_of(i / 2, shared, PREFILL ", \"cached\": 1", false);
        assert_true(prefill.kv_bytes == 0);
        assert_true(behind.kv_bytes > 0);
        /* Fewer rows are written; but with whole caches ranks of tp_d all do the same. */
        bool const wide = strstr(places[i / 2].place, "tp_d") != NULL;
        if (prefill.time_s > whole.time_s || prefill.time_s < (wide ? 0.9 : 0.98) * whole.time_s)
            fail_msg("place %zu takes %g s, and %g s with whole caches", i, prefill.time_s,
                     whole.time_s);
    }
}

static void with_decodes_theirs_alone_travels(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * (size_t)PLACES; i++) {
        const char *const shared = places[i / 2].shared[i % 2];
        if (shared == NULL) continue;
        struct step const decode = step_of(i / 2, shared, "\"kind\": \"decode\", " DECODE, false);
        struct step const mixed = step_of(
            i / 2, shared, "\"kind\": \"mixed\", \"prompts\": 4, \"prompt\": 300, " DECODE, false);
        assert_true(decode.kv_bytes > 0);
        case_near(mixed.kv_bytes, decode.kv_bytes, 1e-9);
    }
}

/* Of each of two batches in chunks of 128 all passes but the first, as a note counts them. */
static void passes_whose_prompts_travel_are_counted(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    static const struct {
        const char *sharding;
        uint32_t chunk, passes;
    } rows[] = {{"{\"heads\": 1, \"batch\": 1, \"sequence\": 8}", 128, 2 * 3},
                {"{\"heads\": 1, \"batch\": 1, \"sequence\": 8}", 0, 0},
                {"\"replicated\"", 128, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TEXT_BYTES];
        struct play play;
        case_text(text, sizeof text,
                  "{\"podsim\": 1, " H100
                  "\"mesh\": {\"pp\": [\"node\"], \"tp\": [\"gpu\"]}, \"workload\": {\"kind\": "
                  "\"prefill\", \"model\": \"deepseek-v2-lite\", \"batch\": 2, \"prompt\": 512, "
                  "\"chunk\": %u, \"kv_sharding\": %s}}",
                  rows[i].chunk, rows[i].sharding);
        play_run(&play, text, &lower_only);
        assert_int_equal(play.roofline.counts.heads.spread_passes, rows[i].passes);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_without_earlier_tokens_stay),
        cmocka_unit_test(with_decodes_theirs_alone_travels),
        cmocka_unit_test(passes_whose_prompts_travel_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
