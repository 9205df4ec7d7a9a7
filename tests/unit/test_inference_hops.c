/*
 * The hop floor of a step of inference, counted by hand: a TPU has a microsecond a hop. Slices of
 * v5e have no rings, so that a collective over 4 chips of an axis takes 3.
 */
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024 };

#define US 1e-6

static struct roofline roofline_of(const char *machine, const char *mesh, const char *workload)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[TEXT_BYTES];
    struct play play;
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {%s, "
              "\"allow_oversubscription\": true}}",
              machine, mesh, workload);
    play_run(&play, text, &lower_only);
    struct roofline const roofline = play.roofline;
    play_close(&play);
    return roofline;
}

#define V5E "\"chip\": \"tpu-v5e\", \"shape\": \"4x4\", \"profile\": \"ideal\""
#define V5P "\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\", \"profile\": \"ideal\""
#define H100 "\"chip\": \"h100-sxm\", \"nodes\": 2, \"profile\": \"ideal\""
/* Up to a switch and down again: NVSwitch; NIC, cable and half of a leaf switch. */
#define NVLINK (2 * 0.3 * US)
#define NODES (2 * (0.5 + 0.15 + 0.15 / 2) * US)

#define DECODE "\"kind\": \"decode\", \"context\": 8192, \"batch\": 32, "

static double floor_of(const char *mesh, const char *workload)
{
    return roofline_of(V5E, mesh, workload).latency_s;
}

#define LLAMA DECODE "\"model\": \"llama-3-70b\""

/* Two AllGathers and two ReduceScatters a layer, one each for the ends; sampling is an AllReduce,
 * which goes there and back. Pairs of neighbours have the same heads of keys. */
static void each_collective_has_its_hops(void **state)
{
    static const char tp[] = "{\"tp\": [\"x\", \"y\"]}";
    double const pass = 6 * US, layers = 80;
    double const whole = layers * 4 * pass + 2 * pass + 2 * pass;
    (void)state;
    case_near(floor_of(tp, LLAMA ", \"kv_sharding\": \"replicated\""), whole, 1e-9);
    /* Queries go to a neighbour and come back. */
    case_near(floor_of(tp, LLAMA), whole + layers * 2 * US, 1e-9);
    /* As many passes, in half as many AllReduces. */
    case_near(floor_of(tp, LLAMA ", \"activations\": \"replicated\""),
              layers * 4 * pass + 2 * pass + 2 * pass + layers * 2 * US, 1e-9);
}

/* Weights are gathered ahead, but for the first; nothing is reduced. */
static void gathers_of_weights_show_once(void **state)
{
    (void)state;
    case_near(floor_of("{\"fsdp\": [\"x\", \"y\"]}", LLAMA), 6 * US, 1e-9);
}

/* Rows go to experts and come back in each of 48 layers. */
static void experts_are_waited_for(void **state)
{
    (void)state;
    case_near(floor_of("{\"ep\": [\"x\"], \"dp\": [\"y\"]}", DECODE "\"model\": \"qwen3-30b-a3b\""),
              48 * 2 * 3 * US, 1e-9);
}

/* A batch's way through 4 stages is 3 messages; a decoded token goes back from the last to the
 * first: on a line over all of its links, on a ring over one, through switches as any other. */
static void messages_between_stages_have_hops(void **state)
{
    static const char line[] = "{\"pp\": [\"x\"], \"tp\": [\"y\"]}";
    static const char ring[] = "{\"pp\": [\"x\"], \"tp\": [\"y\", \"z\"]}";
    static const char half[] = "{\"pp\": [\"x:2\"], \"tp\": [\"x:2\", \"y\"]}";
    static const char prefill[] = "\"kind\": \"prefill\", \"model\": \"llama-3-70b\", "
                                  "\"prompt\": 512";
    static const char answer[] = "\"kind\": \"generate\", \"model\": \"llama-3-70b\", "
                                 "\"batch\": 4, \"prompt\": 512, \"output\": 8";
    static const char pairs[] = "{\"pp\": [\"node\", \"gpu:2\"], \"tp\": [\"gpu:4\"]}";
    (void)state;
    case_near(roofline_of(V5E, line, prefill).stages.hops_s, 3 * US, 1e-9);
    case_near(roofline_of(V5E, line, LLAMA).stages.hops_s, (3 + 3) * US, 1e-9);
    /* The last step of an answer behind its prefill. */
    case_near(roofline_of(V5E, line, answer).stages.hops_s, (3 + 3 + 3) * US, 1e-9);
    case_near(roofline_of(V5P, ring, LLAMA).stages.hops_s, (3 + 1) * US, 1e-9);
    /* Every other chip: each message passes one that is not of the pipeline. */
    case_near(roofline_of(V5E, half, LLAMA).stages.hops_s, 2 * 2 * US, 1e-9);
    case_near(roofline_of(V5E, "{\"tp\": [\"x\", \"y\"]}", LLAMA).stages.hops_s, 0, 0);
    /* Two stages in each node: between nodes a message goes there, and tokens come back. */
    case_near(roofline_of(H100, pairs, LLAMA).stages.hops_s, 2 * NVLINK + 2 * NODES, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_between_stages_have_hops),
        cmocka_unit_test(each_collective_has_its_hops),
        cmocka_unit_test(gathers_of_weights_show_once),
        cmocka_unit_test(experts_are_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
