/*
 * Collectives that fly (sim/replay/flight.h) at instants that no drawn step comes to
 * (tests/property/test_flights.c): programs by hand, which are those of a run that simulates every
 * message.
 */
#include <stdio.h>
#include <string.h>

#include "sim/fold/fold.h"
#include "sim/replay/replay.h"
#include "sim/scenario/program_file.h"
#include "tests/support/case.h"

/* Two nodes, whose chips have roles of their own; each node gathers over a stream of its own. */
#define TWO_ROLES                                                                                  \
    "podsim program 1\n"                                                                           \
    "{\n"                                                                                          \
    "  \"podsim\": 1,\n"                                                                           \
    "  \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 2, \"gpus\": 2}\n"                         \
    "}\n"                                                                                          \
    "roles along=node stride=1\n"                                                                  \
    "stream 0 \"compute\" kind=compute\n"                                                          \
    "stream 1 \"gather\" kind=collective\n"                                                        \
    "stream 2 \"gather too\" kind=collective\n"                                                    \
    "work 0 vector_flop=1000\n"                                                                    \
    "plan 0 kind=AllGather size_bytes=1048576\n"                                                   \
    "  dimension axis=gpu size=2 stride=1 links=switches\n"                                        \
    "template 0 \"a\"\n"                                                                           \
    "  collective 0 \"AllGather\" stream=1 plan=0\n"                                               \
    "  compute 1 \"add\" stream=0 work=0\n"                                                        \
    "template 1 \"b\"\n"                                                                           \
    "  collective 0 \"AllGather\" stream=2 plan=0\n"                                               \
    "  compute 1 \"add\" stream=0 work=0\n"

static struct trace simulate(const char *text, bool every_message)
{
    struct program_file_rest rest;
    struct scenario scenario;
    struct machine machine;
    struct program program;
    struct fold fold;
    struct trace trace;
    struct replay_options const options = {.engine = "fast",
                                           .arbitration = ARBITRATION_FAIR,
                                           .steps_max = 4,
                                           .every_message = every_message};
    case_ok(program_file_read_scenario(case_arena, "text", text, strlen(text), NULL, 0, &scenario,
                                       &rest, &case_error));
    case_ok(machine_build(case_arena, &scenario.machine, &machine, &case_error));
    case_ok(program_file_read(case_arena, "text", &rest, &machine, &program, &case_error));
    case_ok(fold_build(case_arena, &machine, &program, false, &fold, &case_error));
    case_ok(replay_run(case_arena, &options, &machine, &program, &fold, &trace, &case_error));
    return trace;
}

static struct trace_work check_alike(const char *text)
{
    struct trace const some = simulate(text, false), all = simulate(text, true);
    assert_int_equal(all.work.posted + all.work.recorded + all.work.landed, 0);
    assert_int_equal(some.work.posted + some.work.simulated, all.work.simulated);
    assert_int_equal(some.digest, all.digest);
    assert_int_equal(some.step_ps, all.step_ps);
    assert_int_equal(some.work.events, all.work.events);
    assert_int_equal(some.work.transfers, all.work.transfers);
    assert_memory_equal(&some.period, &all.period, sizeof some.period);
    return some.work;
}

/* Further steps begin with the state at the instant at which a chip has ended the first. There, the
 * collective of the other chip has one event to come, its end: once as that which was posted when
 * it began to fly, once as that of its last message, since it lands in order to be copied. */
static void a_collective_that_lands_at_its_end_ends_once(void **state)
{
    (void)state;
    struct trace_work const work =
        check_alike(TWO_ROLES "role 0\n"
                              "  block template=0 name=\"layer\" repeat=6\n"
                              "role 1\n"
                              "  block template=1 name=\"layer\" repeat=6\n"
                              "end\n");
    assert_int_equal(work.posted, 2 * 5);
    assert_int_equal(work.landed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collective_that_lands_at_its_end_ends_once),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
