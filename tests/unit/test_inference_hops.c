/*
 * The hop floor of a step of inference, counted by hand: a v5e has a microsecond a hop, and its
 * slices have no rings, so that a collective over 4 chips of an axis takes 3.
 */
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024 };

#define US 1e-6

static double floor_of(const char *shape, const char *mesh, const char *workload)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    struct play play;
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5e\", \"shape\": \"%s\", "
              "\"profile\": \"ideal\"}, \"mesh\": %s, \"workload\": {\"kind\": \"decode\", %s, "
              "\"allow_oversubscription\": true}}",
              shape, mesh, workload);
    play_run(&play, text, &lower_only);
    double const latency_s = play.roofline.latency_s;
    play_close(&play);
    return latency_s;
}

#define LLAMA "\"model\": \"llama-3-70b\", \"batch\": 32, \"context\": 8192"

/* Two AllGathers and two ReduceScatters a layer, one each for the ends; sampling is an AllReduce,
 * which goes there and back. Pairs of neighbours have the same heads of keys. */
static void each_collective_has_its_hops(void **state)
{
    static const char tp[] = "{\"tp\": [\"x\", \"y\"]}";
    double const pass = 6 * US, layers = 80;
    double const whole = layers * 4 * pass + 2 * pass + 2 * pass;
    (void)state;
    case_near(floor_of("4x4", tp, LLAMA ", \"kv_sharding\": \"replicated\""), whole, 1e-9);
    /* Queries go to a neighbour and come back. */
    case_near(floor_of("4x4", tp, LLAMA), whole + layers * 2 * US, 1e-9);
    /* As many passes, in half as many AllReduces. */
    case_near(floor_of("4x4", tp, LLAMA ", \"activations\": \"replicated\""),
              layers * 4 * pass + 2 * pass + 2 * pass + layers * 2 * US, 1e-9);
}

/* Weights are gathered ahead, but for the first; nothing is reduced. */
static void gathers_of_weights_show_once(void **state)
{
    (void)state;
    case_near(floor_of("4x4", "{\"fsdp\": [\"x\", \"y\"]}", LLAMA), 6 * US, 1e-9);
}

/* Rows go to experts and come back in each of 48 layers. */
static void experts_are_waited_for(void **state)
{
    (void)state;
    case_near(floor_of("4x4", "{\"ep\": [\"x\"], \"dp\": [\"y\"]}",
                       "\"model\": \"qwen3-30b-a3b\", \"batch\": 32, \"context\": 8192"),
              48 * 2 * 3 * US, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_collective_has_its_hops),
        cmocka_unit_test(gathers_of_weights_show_once),
        cmocka_unit_test(experts_are_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
