/* What NCCL's kernels copy out of their buffers, while they send nothing. */
#include "sim/choose/protocol.h"
#include "tests/support/case.h"

static struct machine machine_of(const char *chip)
{
    struct machine_plan const plan = {.chip = chip, .profile = "ideal", .wrap = {-1, -1, -1}};
    struct machine machine;
    case_ok(machine_build(case_arena, &plan, &machine, &case_error));
    return machine;
}

static struct group group_of(uint32_t ranks)
{
    struct group group = {.dimension_count = 1};
    group.dimension[0] =
        (struct group_dimension){.axis = 0, .size = ranks, .stride = 1, .switched = true};
    return group;
}

static struct plan_protocol made_for(struct protocol_use use, enum protocol protocol)
{
    struct plan_protocol result;
    case_ok(protocol_make(&use, protocol, "/protocol", &result, &case_error));
    return result;
}

/* 450 GB/s over 36 channels are 12.5 GB/s, and a channel copies 38.7: to 7 steps that send comes
 * 0.323 of a step that copies; of an AllReduce to 14. */
static void a_ring_copies_what_came_last(void **state)
{
    (void)state;
    struct machine h100 = machine_of("h100-sxm");
    struct group const group = group_of(8);
    struct protocol_use use = {&h100,    &group, COLLECTIVE_ALL_GATHER, algorithm_read("ring"),
                               1u << 27, false,  PROTOCOL_STANDS_ALONE};
    assert_int_equal(made_for(use, PROTOCOL_SIMPLE).wire_ppm, 1046142);
    use.kind = COLLECTIVE_ALL_REDUCE;
    assert_int_equal(made_for(use, PROTOCOL_SIMPLE).wire_ppm, 1023071);
    use.registered = true;
    assert_int_equal(made_for(use, PROTOCOL_SIMPLE).wire_ppm, 1000000);
    /* Sums are added from the buffers in any case, and LL128 always copies. */
    use.kind = COLLECTIVE_REDUCE_SCATTER;
    assert_int_equal(made_for(use, PROTOCOL_SIMPLE).wire_ppm, 1046142);
    use.kind = COLLECTIVE_ALL_GATHER;
    assert_int_equal(made_for(use, PROTOCOL_LL128).wire_ppm, 1139845);
    use.registered = false;
    h100.chip.launch.by = CHIP_LAUNCHES_GRAPH;
    assert_int_equal(made_for(use, PROTOCOL_SIMPLE).wire_ppm, 1000000);
}

/* The last 512 KiB of a message at 19.35 GB/s; of one of 128 KiB the half on either channel. */
static void a_receiver_copies_the_last_chunk(void **state)
{
    (void)state;
    struct machine const h100 = machine_of("h100-sxm");
    struct group const group = group_of(8);
    struct protocol_use use = {&h100,    &group, COLLECTIVE_ALL_TO_ALL, algorithm_read("direct"),
                               1u << 30, false,  PROTOCOL_STANDS_ALONE};
    int64_t const begin_ps = 8400000 * 123 / 100;
    assert_int_equal(made_for(use, PROTOCOL_SIMPLE).begin_ps, begin_ps + 27094000);
    assert_int_equal(made_for(use, PROTOCOL_LL).begin_ps, 6600000 * 123 / 100);
    use.array_bytes = 1u << 23;
    assert_int_equal(made_for(use, PROTOCOL_SIMPLE).begin_ps, begin_ps + 3386000);
    use.registered = true;
    assert_int_equal(made_for(use, PROTOCOL_SIMPLE).begin_ps, begin_ps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_copies_what_came_last),
        cmocka_unit_test(a_receiver_copies_the_last_chunk),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
