/* How many sequences memory has room for, and which slice is the smallest. */
#include "sim/report/inference_fit.h"

#include <math.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "tests/support/case.h"

/* A chip of a machine on which a step holds nothing but buffers. */
struct made {
    struct machine machine;
    struct roofline roofline;
    struct trace trace;
    struct program program;
    struct program_role role;
    struct report_input input;
};

static void made_of(struct made *made, const char *chip, double buffer_bytes)
{
    *made =
        (struct made){.roofline = {.counts = {.held_anyway = {.kept_sequences = 1, .batches = 1}}},
                      .machine = {.chip_count = 1}};
    for (uint32_t a = 0; a < MACHINE_AXES_MAX; a++) made->machine.shape[a] = 1;
    made->program = (struct program){.roles = &made->role, .role_count = 1, .role_stride = 1};
    case_ok(chip_find(case_arena, chip, "ideal", "/chip", "/profile", &made->machine.chip,
                      &case_error));
    made->trace.memory.peak_bytes = (uint64_t)buffer_bytes;
    made->input = (struct report_input){.machine = &made->machine,
                                        .roofline = &made->roofline,
                                        .program = &made->program,
                                        .trace = &made->trace};
}

static double given_bytes(const void *owner, uint64_t chip_count)
{
    (void)chip_count;
    return *(const double *)owner;
}

static struct inference_fit fit_of(const struct made *made, double whole_bytes, uint64_t hbm_bytes)
{
    struct inference_whole const whole = {given_bytes, &whole_bytes};
    return inference_fit_of(&made->input, &whole, hbm_bytes);
}

/* Of three chips each share is a third more. */
static double padded_bytes(const void *owner, uint64_t chip_count)
{
    return *(const double *)owner * (chip_count == 3 ? 4.0 / 3 : 1);
}

/* The book, 8.1 and 8.1.1: LLaMA-3-70B with 32 sequences of 8,192 tokens in int8, and its weights
 * alone in bf16, int8 and int4; then whole pods, cubes, nodes. */
static void the_smallest_slice_is_the_books(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        double whole_bytes, buffer_bytes;
        const char *slice;
        uint64_t chips;
    } rows[] = {
        {"tpu-v5e", 113.34967296e9, 0, "2x4", 8},
        {"tpu-v5e", 140.8e9, 0, "4x4", 16},
        {"tpu-v5e", 70.4e9, 0, "2x4", 8},
        {"tpu-v5e", 35.2e9, 0, "2x2", 4},
        {"tpu-v5e", 16e9, 0, "1x1", 1},
        {"tpu-v5e", 16e9, 1, "2x2", 4},
        {"tpu-v5e", 256 * 16e9, 0, "16x16", 256},
        {"tpu-v5e", 256 * 16e9 + 256, 0, "", 0},
        {"tpu-v5e", 1, 16e9, "", 0},
        {"tpu-v5e", 0, 0, "1x1", 1},
        {"tpu-v5p", 65 * 96e9, 0, "4x4x8", 128},
        {"tpu-v5p", 8960 * 96e9, 0, "16x20x28", 8960},
        {"h100-sxm", 226.6e9, 0, "3", 3},
        {"h100-sxm", 640e9, 0, "8", 8},
        {"h100-sxm", 641e9, 0, "8x2", 16},
        {"h100-sxm", 1e30, 0, "", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made made;
        made_of(&made, rows[i].chip, rows[i].buffer_bytes);
        struct inference_fit const fit =
            fit_of(&made, rows[i].whole_bytes, made.machine.chip.hbm_capacity_bytes);
        assert_int_equal(fit.smallest.chip_count, rows[i].chips);
        assert_string_equal(fit.smallest.slice, rows[i].slice);
    }
}

static void a_slice_has_room_for_the_padding_of_its_shares(void **state)
{
    (void)state;
    struct made made;
    double const bytes = 226.6e9;
    struct inference_whole const whole = {padded_bytes, &bytes};
    made_of(&made, "h100-sxm", 0);
    uint64_t const hbm_bytes = made.machine.chip.hbm_capacity_bytes;
    assert_int_equal(fit_of(&made, bytes, hbm_bytes).smallest.chip_count, 3);
    assert_int_equal(inference_fit_of(&made.input, &whole, hbm_bytes).smallest.chip_count, 4);
}

/* A model of 2 x 1,024 x 4,096 weights in each of 1,000 layers, 8.39e9: in bf16, with gradients in
 * bf16 and moments in fp32, 12 bytes each. */
static void a_training_step_needs_a_slice_for_its_state(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        enum workload_offload offload;
        const char *slice;
    } rows[] = {
        {"h100-sxm", WORKLOAD_OFFLOAD_NONE, "2"},      /* 100.7 of 80 GB. */
        {"h100-sxm", WORKLOAD_OFFLOAD_OPTIMIZER, "1"}, /* 16.8 GB. */
        {"h100-sxm", WORKLOAD_OFFLOAD_ACTIVATIONS, "2"},
        {"tpu-v5e", WORKLOAD_OFFLOAD_NONE, "2x4"}, /* Of 16 GB. */
        {"tpu-v5e", WORKLOAD_OFFLOAD_BOTH, "2x2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct chip chip;
        struct workload_plan const plan = {
            .model = {.kind = MODEL_MLP,
                      .layers = 1000,
                      .width = 1024,
                      .mlp_width = 4096,
                      .matrices = 2},
            .formats = {.weights = FORMAT_BF16, .gradients = FORMAT_BF16, .optimizer = FORMAT_FP32},
            .kept.offload = rows[i].offload};
        case_ok(
            chip_find(case_arena, rows[i].chip, "ideal", "/chip", "/profile", &chip, &case_error));
        struct smallest_slice const found = smallest_slice_of_training(&plan, &chip);
        assert_string_equal(found.slice, rows[i].slice);
        for (uint32_t less = 0; less < 2; less++) { /* It is told where the machine is smaller. */
            struct machine const machine = {.chip = chip,
                                            .chip_count = (uint32_t)found.chip_count - less};
            struct strbuf text = {0};
            smallest_slice_print(&plan, &machine, &text);
            assert_int_equal(text.size_bytes > 0, less);
            if (text.size_bytes > 0) assert_non_null(strstr(text.bytes, rows[i].slice));
            strbuf_free(&text);
        }
    }
}

/* Of each number of chips: a slice that is sold, with as many or more, and none in between. */
static void no_smaller_slice_is_sold(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu-v3", "tpu-v4p", "tpu-v5e", "tpu-v5p", "tpu-v6e"};
    for (size_t c = 0; c < sizeof chips / sizeof *chips; c++) {
        struct chip chip;
        struct shape shape, between;
        uint64_t smallest = 0;
        case_ok(chip_find(case_arena, chips[c], "ideal", "/chip", "/profile", &chip, &case_error));
        for (uint64_t count = 1; shape_smallest(&chip, count, &shape); count++) {
            case_ok(shape_check(&chip, &shape, "/shape", &case_error));
            assert_true(shape_chip_count(&shape) >= count);
            if (count > smallest) smallest = shape_chip_count(&shape);
            assert_int_equal(shape_chip_count(&shape), smallest);
            if (count < smallest) assert_false(shape_standard(&chip, count, &between));
        }
        assert_true(smallest >= 256);
    }
}

/* The book, 8.1.1: 42 sequences behind 140.8 GB of bf16 weights on 16 v5e of 16 GB, 49 of 16 GiB.
 */
static void room_follows_from_the_reading_of_gb(void **state)
{
    (void)state;
    struct made made;
    made_of(&made, "tpu-v5e", 0);
    struct workload_counts *counts = &made.roofline.counts;
    counts->memory.parameter_bytes = 140.8e9 / 16;
    made.role.resident_bytes[PROGRAM_MEMORY_PARAMETERS] = UINT64_C(140800000000) / 16;
    counts->memory.cache_bytes = 8192 * 327680.0 / 16;
    made.trace.memory.peak_bytes =
        (uint64_t)(counts->memory.parameter_bytes + counts->memory.cache_bytes);
    counts->held_anyway.keepers = 1;
    uint64_t const gib_bytes = chip_gib_bytes(made.machine.chip.hbm_capacity_bytes);
    assert_int_equal(gib_bytes, UINT64_C(16) << 30);
    assert_int_equal(chip_gib_bytes(gib_bytes), gib_bytes);
    assert_int_equal(fit_of(&made, 1, UINT64_C(16000000000)).max_batch, 42);
    assert_int_equal(fit_of(&made, 1, gib_bytes).max_batch, 49);
    struct inference_room room =
        inference_room(&made.machine, &made.roofline, (double)made.trace.memory.peak_bytes);
    assert_int_equal(room.least, 42);
    assert_int_equal(room.most, 42);
    /* Of four batches each has as many. */
    counts->held_anyway.batches = 4;
    assert_int_equal(fit_of(&made, 1, UINT64_C(16000000000)).max_batch, 40);
    counts->held_anyway.batches = 1;
    /* On a rank of pp with more layers than a mean one weights leave less room. */
    made.role.resident_bytes[PROGRAM_MEMORY_PARAMETERS] += UINT64_C(1000000000);
    made.trace.memory.peak_bytes += UINT64_C(1000000000);
    assert_int_equal(fit_of(&made, 1, UINT64_C(16000000000)).max_batch, 36);
    /* With buffers of 8 GB the rest holds none; if they shrink, 7.2 of 8.17 GB hold 88 of 100. */
    counts->held_anyway.kept_sequences = 100;
    room =
        inference_room(&made.machine, &made.roofline, (double)made.trace.memory.peak_bytes + 7e9);
    assert_int_equal(room.least, 0);
    assert_int_equal(room.most, 88);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_slice_is_the_books),
        cmocka_unit_test(a_slice_has_room_for_the_padding_of_its_shares),
        cmocka_unit_test(a_training_step_needs_a_slice_for_its_state),
        cmocka_unit_test(no_smaller_slice_is_sold),
        cmocka_unit_test(room_follows_from_the_reading_of_gb),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
