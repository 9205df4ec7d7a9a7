/* What `auto` takes for the collectives of a step of inference: the fastest of those that could be
 * named, each alone on its links; found once for each request, and asked for no other step. */
#include <stdio.h>
#include <string.h>

#include "sim/collective/algorithm.h"
#include "sim/measure/choices.h"
#include "sim/measure/measure.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

/* A decode on a machine; `more` are further keys of its workload, and `run` those of its run. */
static void decode(struct play *play, const char *machine, const char *mesh, const char *more,
                   const char *run)
{
    static const struct play_options lower_only = {.lower_only = true};
    char text[1024];
    case_text(text, sizeof text,
              "{\"podsim\": 1, \"machine\": {%s}, \"mesh\": %s, \"workload\": {\"kind\": "
              "\"decode\", \"model\": \"llama-3-8b\", \"batch\": 32, \"context\": 2048%s}, "
              "\"run\": {%s}}",
              machine, mesh, more, run);
    play_run(play, text, &lower_only);
}

static int64_t alone_ps(const struct machine *machine, const struct plan_request *request,
                        const struct algorithm *algorithm)
{
    struct measure_options const options = {.engine = "fast"};
    struct plan_request named = *request;
    struct measured measured;
    struct arena *arena = arena_create(0);
    named.algorithm = *algorithm;
    case_ok(measure_run(arena, machine, &named, 1, "", &options, &measured, &case_error));
    arena_destroy(arena);
    return measured.time_ps[0];
}

/* Of all names that can run, not only those that were tried. */
static void nobody_is_faster(const struct play *play, const char *machine, uint32_t *walked)
{
    for (uint32_t p = 0; p < play->program.plan_count; p++) {
        const struct plan_request *request = &play->program.requests[p];
        struct plan_algorithms const all = plan_algorithms(request);
        if (sampling_skips(walked)) continue;
        assert_false(algorithm_is_chosen(&request->algorithm));
        assert_null(request->protocol.name);
        int64_t const taken_ps = alone_ps(&play->machine, request, &request->algorithm);
        for (uint32_t i = 0; i < all.count; i++)
            if (alone_ps(&play->machine, request, &all.of[i]) < taken_ps)
                fail_msg("%s, %s of %llu: %s is faster than %s", machine,
                         collective_kind_name(request->kind),
                         (unsigned long long)request->size_bytes, algorithm_text(&all.of[i]).text,
                         algorithm_text(&request->algorithm).text);
    }
}

static void what_is_taken_is_the_fastest_alone(void **state)
{
    static const struct {
        const char *machine, *mesh;
    } places[] = {
        {"\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"", "{\"tp\": [\"x\", \"y\"]}"},
        {"\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"", "{\"tp\": [\"x\", \"y\"]}"},
        {"\"chip\": \"tpu-v5p\", \"shape\": \"2x2x4\"",
         "{\"tp\": [\"y\", \"z\"], \"dp\": [\"x\"]}"},
        {"\"chip\": \"h100-sxm\", \"gpus\": 8", "{\"tp\": [\"gpu\"]}"},
        {"\"chip\": \"h100-sxm\", \"gpus\": 8, \"profile\": \"measured\"", "{\"tp\": [\"gpu\"]}"},
        {"\"chip\": \"h100-sxm\", \"nodes\": 2", "{\"tp\": [\"node\", \"gpu\"]}"},
    };
    static const char *const activations[] = {"", ", \"activations\": \"replicated\""};
    uint32_t walked = 0;
    (void)state;
    for (size_t i = 0; i < 2 * sizeof places / sizeof *places; i++) {
        struct play play;
        decode(&play, places[i / 2].machine, places[i / 2].mesh, activations[i % 2], "");
        nobody_is_faster(&play, places[i / 2].machine, &walked);
        play_close(&play);
    }
}

/* Sums of layers by one algorithm and those of the sampled tokens, which are short, by another, all
 * on one stream. */
static void no_name_for_the_whole_step_is_faster(void **state)
{
    static const char *const names[] = {"line", "double-tree", "recursive-doubling",
                                        "flat-recursive-doubling"};
    static const char text[] =
        "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5e\", \"shape\": \"4x4\"}, \"mesh\": "
        "{\"tp\": [\"x\", \"y\"]}, \"workload\": {\"kind\": \"decode\", \"model\": "
        "\"llama-3-70b\", "
        "\"batch\": 32, \"context\": 2048, \"activations\": \"replicated\", \"kv_sharding\": "
        "\"replicated\", \"formats\": {\"weights\": \"int8\"}}}";
    struct play by_itself;
    (void)state;
    play_run(&by_itself, text, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct play named;
        char setting[64];
        case_text(setting, sizeof setting, "/run/algorithm=%s", names[i]);
        struct scenario_setting const settings[] = {{setting}};
        play_run(&named, text, &(struct play_options){.settings = settings, .setting_count = 1});
        if (named.trace.step_ps <= by_itself.trace.step_ps) fail_msg("%s is as fast", names[i]);
        play_close(&named);
    }
    assert_string_equal(algorithm_text(&by_itself.program.requests[0].algorithm).text,
                        "double-tree");
    play_close(&by_itself);
}

/* The same request has the same algorithm; another size may have another. */
static void each_request_is_decided_once(void **state)
{
    (void)state;
    struct machine const machine = case_machine("tpu-v5e:4x4");
    struct plan_chooser chooser;
    struct plan_request sums = {.kind = COLLECTIVE_ALL_REDUCE,
                                .group = case_group(&machine, NULL),
                                .size_bytes = 512 << 10,
                                .algorithm = algorithm_read("auto")};
    struct choices_args const args = {.machine = &machine};
    case_ok(choices_create(case_arena, &args, &chooser, &case_error));
    case_ok(chooser.choose(chooser.owner, &sums, "", &case_error));
    struct algorithm const first = sums.algorithm;
    assert_string_equal(algorithm_text(&first).text, "double-tree");
    sums.size_bytes = 256;
    case_ok(chooser.choose(chooser.owner, &sums, "", &case_error));
    assert_false(algorithm_equal(&sums.algorithm, &first));
    sums.size_bytes = 512 << 10;
    sums.algorithm = (struct algorithm){.means = ALGORITHM_AUTO};
    case_ok(chooser.choose(chooser.owner, &sums, "", &case_error));
    assert_true(algorithm_equal(&sums.algorithm, &first));
}

static enum status refuse(void *owner, struct plan_request *request, const char *where,
                          struct error *reterr)
{
    ++*(uint32_t *)owner;
    return error_set(reterr, STATUS_UNSUPPORTED, where, "nobody asks for the %s",
                     collective_kind_name(request->kind));
}

static enum status lower_refusing(const char *text, uint32_t *ret_asked)
{
    struct scenario scenario;
    struct machine machine;
    struct mesh mesh;
    struct program program;
    *ret_asked = 0;
    case_ok(scenario_read_text(case_arena, "test.json", text, strlen(text), NULL, 0, &scenario,
                               &case_error));
    case_ok(machine_build(case_arena, &scenario.machine, &machine, &case_error));
    case_ok(mesh_build(&scenario.mesh, &machine, &mesh, &case_error));
    scenario.workload.inference.chooser = (struct plan_chooser){refuse, NULL, ret_asked};
    return workload_lower(case_arena, &scenario.workload, &machine, &mesh, &program, &case_error);
}

#define STEP(kind, run)                                                                            \
    "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5e\", \"shape\": \"2x4\"}, \"mesh\": "         \
    "{\"tp\": [\"y\"], \"fsdp\": [\"x\"]}, \"workload\": {\"model\": \"llama-3-8b\", "             \
    "\"allow_oversubscription\": true, \"kind\": " kind "}, \"run\": {" run "}}"
#define DECODE "\"decode\", \"batch\": 32, \"context\": 2048"
#define TRAIN "\"train_step\", \"batch_tokens\": 65536, \"sequence_length\": 4096"

/* Nor is it asked where an algorithm is named; its refusals are the lowering's. */
static void training_goes_by_shape(void **state)
{
    uint32_t asked = 0;
    (void)state;
    case_ok(lower_refusing(STEP(TRAIN, ""), &asked));
    case_ok(lower_refusing(STEP(DECODE, "\"algorithm\": \"line\""), &asked));
    assert_int_equal(asked, 0);
    case_refused(lower_refusing(STEP(DECODE, ""), &asked), STATUS_UNSUPPORTED, "/run/algorithm",
                 "nobody asks for the AllGather");
    assert_int_equal(asked, 1);
}

/* Ranks of one node of eight GPUs that add up an array. */
static struct plan_request node_sum(const struct machine *machine, uint64_t size_bytes)
{
    struct plan_request request = {.kind = COLLECTIVE_ALL_REDUCE,
                                   .size_bytes = size_bytes,
                                   .element_bits = 16,
                                   .algorithm = algorithm_read("ring")};
    request.group.dimension_count = 1;
    request.group.dimension[0] = (struct group_dimension){
        .axis = 0, .stride = 1, .size = machine->shape[0], .switched = true};
    return request;
}

static void node_build(const char *profile, enum all_reduce_kernels kernels,
                       struct machine *ret_machine, struct plan_chooser *ret_chooser)
{
    char text[256];
    struct scenario scenario;
    (void)snprintf(text, sizeof text,
                   "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"gpus\": 8, "
                   "\"profile\": \"%s\"}, \"mesh\": {\"tp\": [\"gpu\"]}, \"workload\": "
                   "{\"model\": \"llama-3-8b\", \"kind\": " TRAIN "}}",
                   profile);
    case_ok(scenario_read_text(case_arena, "test.json", text, strlen(text), NULL, 0, &scenario,
                               &case_error));
    case_ok(machine_build(case_arena, &scenario.machine, ret_machine, &case_error));
    struct choices_args const args = {
        .machine = ret_machine, .protocols = true, .all_reduce = kernels};
    case_ok(choices_create(case_arena, &args, ret_chooser, &case_error));
}

/* LL sends half of what passes and starts soonest, Simple the other way round. */
static void small_arrays_go_by_quick_protocols(void **state)
{
    static const struct {
        uint64_t size_bytes;
        const char *protocol;
    } rows[] = {{UINT64_C(1) << 10, "LL"}, {UINT64_C(1) << 30, "Simple"}};
    struct machine machine;
    struct plan_chooser chooser;
    (void)state;
    node_build("measured", ALL_REDUCE_KERNELS_NCCL, &machine, &chooser);
    assert_non_null(chooser.convey);
    for (uint32_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) { /* Again, from what is known. */
        struct plan_request request = node_sum(&machine, rows[i / 2].size_bytes);
        case_ok(chooser.convey(chooser.owner, &request, "/run", &case_error));
        assert_string_equal(request.protocol.name, rows[i / 2].protocol);
        assert_true(request.protocol.message_ps[1] > 0 || request.protocol.begin_ps > 0);
        assert_string_equal(algorithm_text(&request.algorithm).text, "ring");
    }
    struct plan_request message = node_sum(&machine, UINT64_C(12) << 20);
    message.kind = COLLECTIVE_PERMUTE;
    message.algorithm = (struct algorithm){.means = ALGORITHM_AUTO};
    message.shift = 1;
    case_ok(chooser.convey(chooser.owner, &message, "/run", &case_error));
    assert_string_equal(message.protocol.name, "Simple");
    message.size_bytes = 16384;
    case_ok(chooser.convey(chooser.owner, &message, "/run", &case_error));
    assert_string_equal(message.protocol.name, "LL");
    node_build("ideal", ALL_REDUCE_KERNELS_NCCL, &machine, &chooser);
    assert_null(chooser.convey);
}

/* One shot has one latency and whole arrays, two shots have two latencies and parts. */
static void an_engine_adds_small_arrays_up_by_its_own_kernels(void **state)
{
    static const struct {
        uint64_t size_bytes;
        const char *name, *algorithm;
        int64_t begin_ns;
    } rows[] = {{64 << 10, "one-shot", "direct", 4713 - 1200},
                {(256 << 10) - 1, "one-shot", "direct", 4713 - 1200},
                {256 << 10, "two-shot", "direct", 2 * 4713 - 1200},
                {(8 << 20) - 1, "two-shot", "direct", 2 * 4713 - 1200},
                {8 << 20, "Simple", "sharp", 0},
                {16 << 20, "Simple", "sharp", 0}};
    struct machine machine;
    struct plan_chooser chooser;
    (void)state;
    node_build("measured", ALL_REDUCE_KERNELS_VLLM, &machine, &chooser);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct plan_request request = node_sum(&machine, rows[i].size_bytes);
        case_ok(chooser.choose(chooser.owner, &request, "/run", &case_error));
        case_ok(chooser.convey(chooser.owner, &request, "/run", &case_error));
        assert_string_equal(request.protocol.name, rows[i].name);
        assert_string_equal(algorithm_text(&request.algorithm).text, rows[i].algorithm);
        if (rows[i].begin_ns == 0) continue;
        assert_int_equal(request.protocol.begin_ps, rows[i].begin_ns * 1000);
        /* 8 ranks: 7 arrays for 7 quarters of one, at 291.2 of 370.8 GB/s. */
        assert_int_equal(request.protocol.wire_ppm, rows[i].begin_ns < 4000 ? 5093406 : 1000000);
    }
    struct plan_request gather = node_sum(&machine, 64 << 10);
    gather.kind = COLLECTIVE_ALL_GATHER;
    case_ok(chooser.choose(chooser.owner, &gather, "/run", &case_error));
    case_ok(chooser.convey(chooser.owner, &gather, "/run", &case_error));
    assert_string_equal(gather.protocol.name, "LL");
    struct plan_request three = node_sum(&machine, 64 << 10);
    three.group.dimension[0].size = 3;
    case_ok(chooser.choose(chooser.owner, &three, "/run", &case_error));
    assert_string_equal(algorithm_text(&three.algorithm).text, "ring");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_is_the_fastest_alone),
        cmocka_unit_test(no_name_for_the_whole_step_is_faster),
        cmocka_unit_test(each_request_is_decided_once),
        cmocka_unit_test(training_goes_by_shape),
        cmocka_unit_test(small_arrays_go_by_quick_protocols),
        cmocka_unit_test(an_engine_adds_small_arrays_up_by_its_own_kernels),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
