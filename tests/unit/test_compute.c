/* Compute: the closed form of an op's pipeline against the pipeline played tile by tile. */
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "sim/resource/compute.h"
#include "tests/support/case.h"

/* The book's table in chapter 2; VMEM at 22 times HBM (chapter 2, "VMEM and arithmetic
 * intensity"). The VPU's rate is any number that is not round. */
static struct chip chip_v5e(void)
{
    struct chip chip = {
        .hbm_bytes_per_s = 810000000000,
        .vmem_capacity_bytes = UINT64_C(128) << 20,
        .vmem_bytes_per_s = 22 * UINT64_C(810000000000),
        .vector_flop_per_s = 6147000000001,
        .mxu.rows = 128,
        .mxu.columns = 128,
    };
    chip.math_flop_per_s[FORMAT_BF16] = 197000000000000;
    return chip;
}

static struct chip chip_v5p(void)
{
    struct chip chip = chip_v5e();
    chip.hbm_bytes_per_s = 2800000000000;
    chip.vmem_bytes_per_s = 22 * UINT64_C(2800000000000);
    chip.math_flop_per_s[FORMAT_BF16] = 459000000000000;
    return chip;
}

static struct work work_matmul(uint64_t rows, uint64_t inner, uint64_t columns)
{
    return (struct work){
        .matmul = {{rows, inner, columns, 1}},
        .matmul_count = 1,
        .math_format = FORMAT_BF16,
        .hbm_read_bytes = 2 * (rows * inner + inner * columns),
        .hbm_write_bytes = 2 * rows * columns,
    };
}

static struct compute_time time_of(const struct chip *chip, const struct work *work)
{
    return compute_time(chip, work, PPM_ONE, PPM_ONE);
}

static int64_t most_of(const struct compute_time *time)
{
    int64_t most = time->mxu_ps;
    if (time->vpu_ps > most) most = time->vpu_ps;
    if (time->hbm_ps > most) most = time->hbm_ps;
    if (time->vmem_ps > most) most = time->vmem_ps;
    return most;
}

/* The same pipeline played tile by tile, in units of 1/n ps of n tiles. */
static int64_t replay_ps(const struct chip *chip, const struct work *work, uint32_t hbm_ppm,
                         const struct compute_time *time)
{
    enum { BUFFERS = 2 };
    uint64_t const rate = units_scale_ppm(chip->hbm_bytes_per_s, hbm_ppm);
    uint64_t const count = time->tile_count;
    int64_t const store =
        work->hbm_write_bytes == 0 ? 0 : units_duration_ps(work->hbm_write_bytes, rate);
    int64_t const load = time->hbm_ps - store;
    int64_t math = time->mxu_ps > time->vpu_ps ? time->mxu_ps : time->vpu_ps;
    if (math < time->vmem_ps) math = time->vmem_ps;
    units_wide hbm_free = 0, math_free = 0, loaded[BUFFERS] = {0};
    for (uint64_t k = 0; k < BUFFERS && k < count; k++) loaded[k] = hbm_free += (uint64_t)load;
    for (uint64_t k = 0; k < count; k++) {
        if (math_free < loaded[k % BUFFERS]) math_free = loaded[k % BUFFERS];
        math_free += (uint64_t)math;
        if (hbm_free < math_free) hbm_free = math_free;
        hbm_free += (uint64_t)store;
        if (k + BUFFERS < count) loaded[k % BUFFERS] = hbm_free += (uint64_t)load;
    }
    units_wide const ps = (hbm_free + count - 1) / count + (uint64_t)chip->launch.op_ps;
    return ps > TIME_PS_NEVER / 4 ? TIME_PS_NEVER / 4 : (int64_t)ps;
}

/* What holds for any op. */
static void check_any(const struct chip *chip, const struct work *work, uint32_t math_ppm,
                      uint32_t hbm_ppm)
{
    struct compute_time const time = compute_time(chip, work, math_ppm, hbm_ppm);
    assert_int_equal(time.duration_ps, replay_ps(chip, work, hbm_ppm, &time));
    int64_t const idle_ps = time.duration_ps - chip->launch.op_ps;
    assert_true(idle_ps >= most_of(&time));
    assert_true(idle_ps <= time.mxu_ps + time.vpu_ps + time.hbm_ps + time.vmem_ps);
    assert_true(time.rest_ps >= chip->launch.op_ps);
    assert_true(time.hbm_ps + time.rest_ps <= time.duration_ps);
    if (time.hbm_ps == most_of(&time))
        assert_int_equal(time.hbm_ps + time.rest_ps, time.duration_ps);
}

/* 0 up to 2^bits, each size equally often. */
static uint64_t random_size(uint64_t *random, uint32_t bits)
{
    uint64_t const size = case_random(random) % (bits + 1);
    return case_random(random) & ((UINT64_C(1) << size) - 1);
}

static void the_closed_form_is_the_replay_to_the_picosecond(void **state)
{
    (void)state;
    uint64_t random = 7;
    struct chip chips[2] = {chip_v5e(), chip_v5p()};
    chips[1].launch.op_ps = 123457;
    for (uint32_t i = 0; i < 20000; i++) {
        struct work work = {.math_format = FORMAT_BF16};
        work.matmul[0].rows = random_size(&random, 14);
        work.matmul[0].inner = random_size(&random, 14);
        work.matmul[0].columns = random_size(&random, 14);
        work.matmul[0].count = 1 + case_random(&random) % 3;
        work.matmul_count = (uint32_t)(case_random(&random) % 2);
        work.vector_flop = random_size(&random, 34);
        work.hbm_read_bytes = random_size(&random, 30);
        work.hbm_write_bytes = random_size(&random, 30);
        work.vmem_read_bytes = random_size(&random, 30);
        check_any(&chips[i % 2], &work, PPM_ONE, PPM_ONE);
        uint32_t const math_ppm = 1 + (uint32_t)(case_random(&random) % PPM_ONE);
        uint32_t const hbm_ppm = 1 + (uint32_t)(case_random(&random) % PPM_ONE);
        check_any(&chips[i % 2], &work, math_ppm, hbm_ppm);
    }
}

/* Where neither HBM nor math is far ahead, every branch of the closed form is near its edge. */
static void the_closed_form_is_the_replay_near_balance(void **state)
{
    (void)state;
    struct chip chip = chip_v5e();
    chip.hbm_bytes_per_s = 1000000000000;
    chip.vector_flop_per_s = 1000000000000;
    chip.vmem_capacity_bytes = 256 * 10;
    for (uint64_t read = 0; read < 70; read += 3)
        for (uint64_t write = 0; write < 70; write += 3)
            for (uint64_t flop = 0; flop < 140; flop++)
                check_any(&chip,
                          &(struct work){.vector_flop = flop,
                                         .hbm_read_bytes = read,
                                         .hbm_write_bytes = write},
                          PPM_ONE, PPM_ONE);
}

static void a_large_op_takes_the_larger_of_math_and_hbm(void **state)
{
    (void)state;
    struct chip const chip = chip_v5p();
    struct work const matmul = work_matmul(40960, 8192, 2048);
    struct compute_time time = time_of(&chip, &matmul);
    assert_int_equal(time.mxu_ps, most_of(&time));
    assert_int_equal(time.mxu_ps,
                     units_duration_ps(2 * UINT64_C(40960) * 8192 * 2048, 459000000000000));
    assert_true(time.duration_ps - time.mxu_ps < time.mxu_ps / 1000);

    struct work const adam = {
        .vector_flop = 1000000000, .hbm_read_bytes = 4000000000, .hbm_write_bytes = 3000000000};
    time = time_of(&chip, &adam);
    assert_int_equal(time.hbm_ps, INT64_C(2500000000));
    assert_true(time.duration_ps - time.hbm_ps < time.hbm_ps / 1000);
}

/* Book, chapter 1: a bf16 matmul on v5e becomes compute bound at 240 tokens. The exact form has
 * the activations' bytes too: B = C/W · (1 + B/D + B/F), 258.6 at D = F = 8192. */
static void matmuls_on_v5e_become_compute_bound_near_240_tokens(void **state)
{
    (void)state;
    struct chip const chip = chip_v5e();
    uint64_t tokens = 8;
    for (; tokens < 1024; tokens += 8) {
        struct work const work = work_matmul(tokens, 8192, 8192);
        struct compute_time const time = time_of(&chip, &work);
        if (time.mxu_ps >= time.hbm_ps) break;
        assert_int_equal(time.hbm_ps, most_of(&time));
    }
    assert_int_equal(tokens, 264);
    struct work const few = work_matmul(120, 8192, 8192);
    struct work const many = work_matmul(480, 8192, 8192);
    struct compute_time const slow = time_of(&chip, &few);
    struct compute_time const fast = time_of(&chip, &many);
    assert_true(slow.duration_ps < slow.hbm_ps + slow.hbm_ps / 100);
    assert_true(fast.duration_ps < fast.mxu_ps + fast.mxu_ps / 100);
}

static void shapes_are_padded_to_the_unit(void **state)
{
    (void)state;
    struct chip chip = chip_v5e();
    struct work work = work_matmul(1, 1, 1);
    assert_int_equal(time_of(&chip, &work).padded_flop, 2 * 8 * 128 * 128);
    work = work_matmul(9, 129, 128);
    assert_int_equal(time_of(&chip, &work).padded_flop, 2 * 16 * 256 * 128);
    chip.mxu.rows = chip.mxu.columns = 256; /* v6e */
    assert_int_equal(time_of(&chip, &work).padded_flop, 2 * 16 * 256 * 256);
    work.matmul[0] = (struct work_matmul){0, 512, 512, 3};
    assert_int_equal(time_of(&chip, &work).padded_flop, 0);
    work.matmul[0] = (struct work_matmul){8, 256, 256, 3};
    work.matmul[1] = (struct work_matmul){16, 256, 256, 1};
    work.matmul_count = 2;
    assert_int_equal(time_of(&chip, &work).padded_flop, 2 * 256 * 256 * (3 * 8 + 16));
}

static void a_tiny_op_pays_its_whole_latency(void **state)
{
    (void)state;
    struct chip chip = chip_v5e();
    chip.launch.op_ps = 2000000;
    struct work const work = work_matmul(8, 128, 128);
    struct compute_time const time = time_of(&chip, &work);
    assert_int_equal(time.tile_count, 1);
    int64_t const math_ps = most_of(&(struct compute_time){
        .mxu_ps = time.mxu_ps, .vpu_ps = time.vpu_ps, .vmem_ps = time.vmem_ps});
    assert_int_equal(time.duration_ps, time.hbm_ps + math_ps + 2000000);
    assert_int_equal(time.rest_ps, math_ps + 2000000);
}

static void what_is_not_asked_for_takes_no_time(void **state)
{
    (void)state;
    struct chip chip = chip_v5e();
    struct work nothing = {.math_format = FORMAT_INT4};
    assert_int_equal(time_of(&chip, &nothing).duration_ps, 0);
    struct work const load = {.hbm_read_bytes = 810000000};
    assert_int_equal(time_of(&chip, &load).hbm_ps, INT64_C(1000000000));
    assert_true(time_of(&chip, &load).duration_ps < INT64_C(1001000000));
    struct work const vector = {.vector_flop = 6147000000001};
    assert_int_equal(time_of(&chip, &vector).duration_ps, TIME_PS_PER_S);
    struct work const resident = {.vmem_read_bytes = 22 * UINT64_C(810000000)};
    assert_int_equal(time_of(&chip, &resident).duration_ps, INT64_C(1000000000));
    assert_int_equal(time_of(&chip, &resident).hbm_ps, 0);
    chip.vector_flop_per_s = 0;
    assert_true(time_of(&chip, &load).duration_ps > 0);
}

/* Chapter 2: operands in VMEM make a matmul compute bound at intensities of 10 to 20. */
static void operands_in_vmem_pay_its_rate(void **state)
{
    (void)state;
    struct chip const chip = chip_v5e();
    struct work work = work_matmul(24, 8192, 4096);
    struct compute_time const from_hbm = time_of(&chip, &work);
    work.vmem_read_bytes = 2 * 8192 * 4096;
    work.hbm_read_bytes -= work.vmem_read_bytes;
    struct compute_time const from_vmem = time_of(&chip, &work);
    assert_int_equal(from_hbm.vmem_ps, from_vmem.vmem_ps);
    assert_true(from_hbm.duration_ps > 9 * from_vmem.duration_ps);
    assert_int_equal(from_vmem.mxu_ps, most_of(&from_vmem));
}

static void asynchronous_collectives_take_their_time_whatever_bounds_an_op(void **state)
{
    (void)state;
    struct chip const chip = chip_v5e();
    const uint64_t rows[] = {8, 240, 4096};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct work work = work_matmul(rows[i], 8192, 8192);
        struct compute_time const alone = time_of(&chip, &work);
        work.async_ps = 2300;
        struct compute_time const time = time_of(&chip, &work);
        assert_int_equal(time.duration_ps, alone.duration_ps + 2300);
        assert_int_equal(alone.async_ps, 0);
        assert_int_equal(time.async_ps, 2300);
        assert_int_equal(time.rest_ps, alone.rest_ps);
        assert_int_equal(time.vpu_rest_ps, alone.vpu_rest_ps);
        assert_int_equal(time.mxu_ps, alone.mxu_ps);
        assert_int_equal(time.hbm_ps, alone.hbm_ps);
    }
}

/* Units of a quarter of the cores: HBM alone is as fast. */
static void idle_cores_slow_all_but_hbm(void **state)
{
    (void)state;
    struct chip const chip = chip_v5e();
    struct work work = work_matmul(4096, 8192, 4096);
    work.vector_flop = 1000000;
    struct compute_time const all = time_of(&chip, &work);
    work.idle_core_ppm = PPM_ONE / 4 * 3;
    struct compute_time const few = time_of(&chip, &work);
    assert_int_equal(few.hbm_ps, all.hbm_ps);
    assert_in_range(few.mxu_ps, 4 * all.mxu_ps - 4, 4 * all.mxu_ps + 4);
    assert_in_range(few.vpu_ps, 4 * all.vpu_ps - 4, 4 * all.vpu_ps + 4);
    assert_in_range(few.vmem_ps, 4 * all.vmem_ps - 4, 4 * all.vmem_ps + 4);
    assert_int_equal(few.padded_flop, all.padded_flop);
}

/* A share of a share of a rate is less than a millionth, and is not cut to whole millionths. */
static void shares_of_shares_are_exact(void **state)
{
    static const uint32_t ppm[] = {1, 3, 7, 123457};
    struct chip const chip = chip_v5e();
    struct work work = work_matmul(4096, 8192, 4096);
    (void)state;
    work.vector_flop = 1000000;
    struct compute_time const all = time_of(&chip, &work);
    work.idle_core_ppm = PPM_ONE / 4 * 3;
    for (uint32_t i = 0; i < sizeof ppm / sizeof *ppm; i++) {
        struct compute_time const few = compute_time(&chip, &work, ppm[i], PPM_ONE);
        double const longer = 4.0 * PPM_ONE / ppm[i];
        case_near((double)few.mxu_ps, longer * (double)all.mxu_ps, 1e-6);
        case_near((double)few.vpu_ps, longer * (double)all.vpu_ps, 1e-6);
    }
}

static void huge_ops_saturate_and_do_not_wrap(void **state)
{
    (void)state;
    struct chip const chip = chip_v5e();
    struct work work = {
        .matmul = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, {UINT64_MAX, 1, 1, 1}},
        .matmul_count = 2,
        .math_format = FORMAT_BF16,
        .vector_flop = UINT64_MAX,
        .hbm_read_bytes = UINT64_MAX,
        .hbm_write_bytes = UINT64_MAX,
        .vmem_read_bytes = UINT64_MAX,
    };
    struct compute_time time = compute_time(&chip, &work, 1, 1);
    assert_int_equal(time.padded_flop, UINT64_MAX);
    assert_int_equal(time.duration_ps, TIME_PS_NEVER / 4);
    assert_true(time.rest_ps >= 0 && time.rest_ps <= TIME_PS_NEVER / 4);
    time = time_of(&chip, &work);
    assert_true(time.duration_ps >= most_of(&time));
}

static void more_of_any_rate_is_never_slower(void **state)
{
    (void)state;
    uint64_t random = 99;
    for (uint32_t i = 0; i < 3000; i++) {
        struct chip const chip = chip_v5e();
        uint64_t const rows = 1 + random_size(&random, 12), inner = 1 + random_size(&random, 12);
        struct work work = work_matmul(rows, inner, 1 + random_size(&random, 12));
        work.vector_flop = random_size(&random, 32);
        work.vmem_read_bytes = random_size(&random, 32);
        int64_t const before_ps = time_of(&chip, &work).duration_ps;
        uint64_t *rates[4];
        for (uint32_t j = 0; j < 4; j++) {
            struct chip faster = chip;
            rates[0] = &faster.hbm_bytes_per_s;
            rates[1] = &faster.vmem_bytes_per_s;
            rates[2] = &faster.vector_flop_per_s;
            rates[3] = &faster.math_flop_per_s[FORMAT_BF16];
            *rates[j] += *rates[j] / (1 + case_random(&random) % 50);
            assert_true(time_of(&faster, &work).duration_ps <= before_ps);
        }
        uint32_t const ppm = 1 + (uint32_t)(case_random(&random) % PPM_ONE);
        assert_true(compute_time(&chip, &work, ppm, PPM_ONE).duration_ps >= before_ps);
        assert_true(compute_time(&chip, &work, PPM_ONE, ppm).duration_ps >= before_ps);
    }
}

/* It has as many tiles: one byte less never makes them longer, as other tiles might be. */
static void what_is_there_already_makes_no_op_slower(void **state)
{
    (void)state;
    uint64_t random = 11;
    struct chip const chip = chip_v5e();
    for (uint32_t i = 0; i < 2000; i++) {
        uint64_t const inner = 1 + random_size(&random, 12);
        struct work work = work_matmul(8, inner, 1 + random_size(&random, 12));
        work.hbm_write_bytes = random_size(&random, 20);
        work.vector_flop = random_size(&random, 30);
        uint64_t const some = random_size(&random, 24) % work.hbm_read_bytes;
        uint64_t const more = some + case_random(&random) % (work.hbm_read_bytes - some);
        struct compute_time const none = time_of(&chip, &work);
        struct compute_time const one = compute_time_of_rest(&chip, &work, some, PPM_ONE, PPM_ONE);
        struct compute_time const two = compute_time_of_rest(&chip, &work, more, PPM_ONE, PPM_ONE);
        assert_true(two.duration_ps <= one.duration_ps && one.duration_ps <= none.duration_ps);
        assert_int_equal(two.tile_count, none.tile_count);
        assert_int_equal(two.vmem_ps, none.vmem_ps);
        assert_true(two.hbm_ps <= one.hbm_ps && one.hbm_ps <= none.hbm_ps);
    }
}

static void a_slower_chip_takes_its_share(void **state)
{
    (void)state;
    struct chip const chip = chip_v5e();
    struct work const work = work_matmul(4096, 8192, 8192);
    struct compute_time const whole = time_of(&chip, &work);
    struct compute_time const half = compute_time(&chip, &work, PPM_ONE / 2, PPM_ONE);
    struct compute_time const quarter = compute_time(&chip, &work, PPM_ONE, PPM_ONE / 4);
    assert_true(half.mxu_ps >= 2 * whole.mxu_ps - 1 && half.mxu_ps <= 2 * whole.mxu_ps);
    assert_int_equal(half.hbm_ps, whole.hbm_ps);
    assert_true(quarter.hbm_ps >= 4 * whole.hbm_ps - 3 && quarter.hbm_ps <= 4 * whole.hbm_ps);
    assert_int_equal(quarter.mxu_ps, whole.mxu_ps);
}

/* The workload layer refuses such a format; here it would be our own mistake. */
static void a_format_that_the_chip_lacks_is_an_assertion(void **state)
{
    (void)state;
    pid_t const child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct chip const chip = chip_v5e();
        struct work work = work_matmul(8, 128, 128);
        work.math_format = FORMAT_FP8;
        (void)close(STDERR_FILENO);
        (void)compute_time(&chip, &work, PPM_ONE, PPM_ONE);
        _exit(0);
    }
    int child_status = 0;
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_true(WIFSIGNALED(child_status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_closed_form_is_the_replay_to_the_picosecond),
        cmocka_unit_test(the_closed_form_is_the_replay_near_balance),
        cmocka_unit_test(a_large_op_takes_the_larger_of_math_and_hbm),
        cmocka_unit_test(matmuls_on_v5e_become_compute_bound_near_240_tokens),
        cmocka_unit_test(shapes_are_padded_to_the_unit),
        cmocka_unit_test(a_tiny_op_pays_its_whole_latency),
        cmocka_unit_test(what_is_not_asked_for_takes_no_time),
        cmocka_unit_test(operands_in_vmem_pay_its_rate),
        cmocka_unit_test(asynchronous_collectives_take_their_time_whatever_bounds_an_op),
        cmocka_unit_test(idle_cores_slow_all_but_hbm),
        cmocka_unit_test(shares_of_shares_are_exact),
        cmocka_unit_test(huge_ops_saturate_and_do_not_wrap),
        cmocka_unit_test(more_of_any_rate_is_never_slower),
        cmocka_unit_test(what_is_there_already_makes_no_op_slower),
        cmocka_unit_test(a_slower_chip_takes_its_share),
        cmocka_unit_test(a_format_that_the_chip_lacks_is_an_assertion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
