/* What a schedule that heeds times is told of a step: by hand, from rates and shapes. */
#include "sim/base/units.h"
#include "sim/schedule/schedule.h"
#include "sim/step/pass_times.h"
#include "tests/support/case.h"
#include "tests/unit/workload_case.h"

static struct schedule_times times_of(struct workload_case *made)
{
    struct schedule_times times = {0};
    case_ok(pass_times_estimate(made->arena, &made->plan, &made->machine, &made->mesh, &times,
                                &case_error));
    return times;
}

/* Two matrices of 8192 x 32768 a layer, two layers a rank, 2^20 tokens over 4 microbatches and 16
 * chips; messages over one link of the grid. */
static void test_ranks_of_a_grid(void **state)
{
    (void)state;
    struct workload_case made;
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x", [MESH_FSDP] = "y z"};
    case_ok(case_build_roles(&made, &case_mlp, "4x4x4", parts));
    made.plan.accumulate = 4;
    struct schedule_times const times = times_of(&made);
    const struct chip *chip = &made.machine.chip;
    double const tokens = (double)(1 << 20) / 4 / 16, weights = 2.0 * 2 * 8192 * 32768 * 2;
    double const pass_ps = weights * tokens / (double)chip->math_flop_per_s[FORMAT_BF16] * 1e12;
    double const wire_ps = tokens * 8192 * 2 / (double)chip->ici_bytes_per_s * 1e12;
    case_near((double)times.forward, pass_ps, 1e-9);
    case_near((double)times.input, pass_ps, 1e-9);
    case_near((double)times.weight, pass_ps, 1e-9);
    case_near((double)times.hop, wire_ps + (double)(chip->hop_latency_ps + chip->launch.message_ps),
              1e-9);
    made.plan.remat = GRAPH_REMAT_LAYER;
    case_near((double)times_of(&made).input, 2 * pass_ps, 1e-9);
    made.plan.remat = GRAPH_REMAT_BLOCK; /* One of two equal matmuls. */
    case_near((double)times_of(&made).input, 1.5 * pass_ps, 1e-9);
    case_free(&made);
}

/* The last rank has the head as well, one node is slow, and blocks are gathered over a node: four
 * times a layer each way, once behind the embedding and before the head, and once for the head's
 * gradient. */
static void test_unlike_ranks_over_switches(void **state)
{
    (void)state;
    struct machine_chip_override const slow = {
        .at = {machine_any, 1}, .math_ppm = 500000, .hbm_ppm = PPM_ONE};
    struct machine_plan const machine = {.chip = "h100-sxm",
                                         .profile = "ideal",
                                         .nodes = 4,
                                         .wrap = {-1, -1, -1},
                                         .chips = &slow,
                                         .chip_count = 1};
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "node", [MESH_TP] = "gpu"};
    struct workload_case made;
    case_ok(case_build_on(&made, &case_llama_70b, &machine, parts));
    made.plan.accumulate = 16;
    made.plan.attention.mask = WORKLOAD_ATTENTION_CAUSAL;
    struct schedule_times const times = times_of(&made);
    const struct chip *chip = &made.machine.chip;
    const struct chip_network *network = &chip->network;
    double const rate = (double)chip->math_flop_per_s[FORMAT_BF16] / 1e12;
    double const tokens = (double)(1 << 20) / 16 / 8, head = 2.0 * 8192 * 128256;
    double const layer = 2.0 * 8192 * (3 * 28672 + 2 * 8192 + 2 * 1024);
    double const dots = 2.0 * 64 * 128 * 2048.5; /* One of two products; a mean of the keys. */
    double const nvlink = (double)(network->nvlink_count * network->nvlink_bytes_per_s) / 1e12;
    double const wait_ps = tokens * 8192 * 2 * 7 / nvlink, waits_ps = 20 * 4 * wait_ps;
    for (uint32_t r = 0; r < 4; r++) {
        double const own = rate * (r == 1 ? 0.5 : 1), overlap = r == 3 ? head : 0;
        const struct schedule_times *rank = schedule_times_of(&times, r);
        double const before_ps = r == 0 || r == 3 ? wait_ps : 0, back_ps = r == 3 ? wait_ps : 0;
        case_near((double)rank->forward,
                  tokens * (20 * (layer + 2 * dots) + overlap) / own + waits_ps + before_ps, 1e-6);
        case_near((double)rank->input,
                  tokens * (20 * (layer + 5 * dots) + overlap) / own + waits_ps + back_ps, 1e-6);
        case_near((double)rank->weight, tokens * (20 * layer + overlap) / own, 1e-6);
        assert_true(rank->forward <= times.forward && rank->input <= times.input);
    }
    /* In fp8 only linear layers are twice as fast. */
    made.plan.formats.matmuls = FORMAT_FP8;
    double const fast = (double)chip->math_flop_per_s[FORMAT_FP8] / 1e12;
    struct schedule_times const mixed = times_of(&made);
    const struct schedule_times *last = schedule_times_of(&mixed, 3);
    assert_true(fast > 1.9 * rate);
    case_near((double)last->forward,
              tokens * (20 * (layer / fast + 2 * dots / rate) + head / rate) + waits_ps + wait_ps,
              1e-6);
    case_near((double)last->input,
              tokens * (20 * (layer / fast + 5 * dots / rate) + head / rate) + waits_ps + wait_ps,
              1e-6);
    case_near((double)last->weight, tokens * (20 * layer / fast + head / rate), 1e-6);
    /* Up to the leaf that all four nodes hang on, and down. */
    double const wire_ps = tokens * 8192 * 2 / (double)network->nic_bytes_per_s * 1e12;
    assert_true((double)times.hop > wire_ps && (double)times.hop < wire_ps + 1e7);
    case_free(&made);
}

/* Blocks go both ways round a ring at once. On a line the busiest link has nearly all of them, and
 * on two chips, ring or not, there is one link to give. */
static void test_lines_carry_half_of_what_rings_carry(void **state)
{
    static const char *const shapes[] = {"4x4x4", "4x2x4"};
    const char *const parts[MESH_ROLE_COUNT] = {
        [MESH_PP] = "x", [MESH_TP] = "y", [MESH_FSDP] = "z"};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct workload_case made;
        case_ok(case_build_roles(&made, &case_mlp, shapes[i], parts));
        const struct chip *chip = &made.machine.chip;
        int64_t pass_ps[2];
        for (uint32_t ring = 0; ring < 2; ring++) {
            made.machine.wrap[1] = ring != 0;
            pass_ps[ring] = times_of(&made).forward;
        }
        /* Of tokens of 8192 numbers, in two layers a gather and a reduction each. */
        double const ranks = i == 0 ? 4 : 2, tokens = (double)(1 << 20) / made.plan.accumulate / 4;
        double const wait_ps =
            2 * 2 * tokens * 8192 * 2 * (ranks - 1) / ranks / (double)chip->ici_bytes_per_s * 1e12;
        double const longer_ps = (double)(pass_ps[0] - pass_ps[1]);
        if (i == 0) case_near(longer_ps, wait_ps / 2, 1e-6);
        if (i == 1) assert_true(pass_ps[0] == pass_ps[1] && (double)pass_ps[0] > wait_ps);
        case_free(&made);
    }
}

/* Other numbers of ranks are those that divide the axis of the machine, not its part. */
static void test_uneven_stages_are_offered_numbers_that_the_axis_has(void **state)
{
    struct machine_plan const machine = {
        .chip = "h100-sxm", .profile = "ideal", .nodes = 12, .wrap = {-1, -1, -1}};
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "node:3", [MESH_FSDP] = "node:4 gpu"};
    struct schedule_times times;
    struct workload_case made;
    (void)state;
    case_ok(case_build_on(&made, &case_llama_70b, &machine, parts)); /* Of 80 layers. */
    case_refused(
        pass_times_estimate(made.arena, &made.plan, &made.machine, &made.mesh, &times, &case_error),
        STATUS_INVALID, "/workload/schedule", "the nearest numbers of ranks of pp: 2 and 4");
    case_free(&made);
}

/* A message keeps to its rail, as one whose ends choose a cable keeps to that. */
static void test_a_rail_is_one_cable(void **state)
{
    (void)state;
    struct machine_plan const machine = {
        .chip = "h100-sxm", .profile = "ideal", .nodes = 40, .wrap = {-1, -1, -1}};
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "node", [MESH_TP] = "gpu"};
    struct workload_case made;
    case_ok(case_build_on(&made, &case_llama_70b, &machine, parts));
    struct level *level = &made.machine.level[1];
    assert_true(level->tier_count > 1);
    level->tier[1].cable_count = 2 * level_box_chips(&made.machine, level, 0);
    level->tier[1].cable_bytes_per_s = level->tier[0].cable_bytes_per_s / 4;
    level->tier[1].policy = LEVEL_HASH;
    int64_t const hashed_ps = times_of(&made).hop;
    level->tier[1].policy = LEVEL_SPRAY;
    assert_true(times_of(&made).hop < hashed_ps);
    level->tier[1].policy = LEVEL_RAIL;
    assert_int_equal(times_of(&made).hop, hashed_ps);
    case_free(&made);
}

/* In arrays of [B, D]. An MLP with F = 4 D saves In and Tmp, or In alone where Tmp is computed
 * again. Its input gradient leaves what weight gradients read: In with dTmp, Tmp with dOut, 10 a
 * layer. A decoder's layer with F = 3.5 D saves its input, and its input gradient leaves 20.25: In
 * with dGate and dUp, Gate and Up with dOut, A with dO, In with dQ, dK and dV. The last op of that
 * pass gives the layer's input back. So behind 19 layers with 19.25 each the twentieth rises
 * to 20.25. */
static void test_what_input_gradients_leave_and_rise_to(void **state)
{
    (void)state;
    enum { STAGES = 4 };
    static const struct {
        const struct model *model;
        enum graph_remat remat;
        uint32_t layers;         /* Of a stage. */
        double saved, left, top; /* Of a layer; `top` is beyond what is saved, of the last one. */
    } rows[] = {
        {&case_mlp, GRAPH_REMAT_NONE, 2, 5, 10, 5},
        {&case_mlp, GRAPH_REMAT_BLOCK, 2, 1, 10, 9},
        {&case_llama_70b, GRAPH_REMAT_BLOCK, 20, 1, 20.25, 20.25},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        struct schedule_kept kept[STAGES];
        uint32_t mean_ppm = 0;
        const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x", [MESH_FSDP] = "y z"};
        case_ok(case_build_roles(&made, rows[i].model, "4x4x4", parts));
        made.plan.accumulate = 4;
        made.plan.remat = rows[i].remat;
        case_ok(pass_memory_estimate(&made.plan, &made.machine, &made.mesh, STAGES, kept, &mean_ppm,
                                     &case_error));
        double const left_ppm = rows[i].left / rows[i].saved * PPM_ONE, layers = rows[i].layers;
        double const rise = (layers - 1) * (rows[i].left - rows[i].saved) + rows[i].top;
        case_near((double)mean_ppm, left_ppm, 1e-9);
        for (uint32_t s = 0; s < STAGES; s++) {
            case_near((double)kept[s].kept_ppm, left_ppm, 1e-9);
            case_near((double)kept[s].rise_ppm, rise / layers / rows[i].saved * PPM_ONE, 1e-9);
        }
        case_free(&made);
    }
}

/* What may cancel a step is asked while its schedule is built. */
static bool stop(void *owner)
{
    (*(uint32_t *)owner)++;
    return true;
}

static void the_step_is_cancelled_while_its_schedule_is_built(void **state)
{
    (void)state;
    struct workload_case made;
    uint32_t asked = 0;
    struct cancel const cancel = {.stops = stop, .owner = &asked};
    const char *const parts[MESH_ROLE_COUNT] = {[MESH_PP] = "x", [MESH_FSDP] = "y z"};
    case_ok(case_build_roles(&made, &case_mlp, "4x4x4", parts));
    made.plan.accumulate = 4;
    made.plan.stages.schedule = "auto";
    made.plan.cancel = &cancel;
    assert_int_equal(case_lower(&made), STATUS_INTERRUPTED);
    assert_int_equal(made.error.status, STATUS_INTERRUPTED);
    assert_int_equal(asked, 1);
    case_free(&made);
}

/* All passes one after another must end before the clock does. */
static void test_durations_that_add_up_to_too_much(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct schedule_times times = {0};
        int64_t *const each[] = {&times.forward, &times.input, &times.weight,
                                 &times.pair,    &times.hop,   &times.backward};
        *each[i] = TIME_PS_END;
        case_ok(schedule_times_check(&times, 1, "/times", &case_error));
        *each[(i + 1) % 6] = 1;
        case_refused(schedule_times_check(&times, 1, "/times", &case_error), STATUS_LIMIT, "/times",
                     "the durations of 1 passes are too long");
        *each[i] = TIME_PS_END / 7 - 1;
        case_ok(schedule_times_check(&times, 7, "/times", &case_error));
        *each[i] = TIME_PS_END / 7;
        case_refused(schedule_times_check(&times, 7, "/times", &case_error), STATUS_LIMIT, "/times",
                     "the durations of 7 passes are too long");
        *each[i] = -1;
        case_refused(schedule_times_check(&times, 1, "/times", &case_error), STATUS_INVALID,
                     "/times", "a duration is negative");
        *each[i] = *each[(i + 1) % 6] = 0;
        case_ok(schedule_times_check(&times, UINT64_MAX, "/times", &case_error));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_of_a_grid),
        cmocka_unit_test(test_unlike_ranks_over_switches),
        cmocka_unit_test(test_lines_carry_half_of_what_rings_carry),
        cmocka_unit_test(test_uneven_stages_are_offered_numbers_that_the_axis_has),
        cmocka_unit_test(test_a_rail_is_one_cable),
        cmocka_unit_test(test_what_input_gradients_leave_and_rise_to),
        cmocka_unit_test(the_step_is_cancelled_while_its_schedule_is_built),
        cmocka_unit_test(test_durations_that_add_up_to_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
