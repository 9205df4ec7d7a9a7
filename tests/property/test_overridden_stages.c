/*
 * Pipelines whose stages run on overridden chips: a slow chip is the pace of all of them, a layout
 * that gives it fewer layers wins back as much as its rate says, no step is below its roofline, and
 * folded or not, instants are the same.
 */
#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1400, WIDTH = 8192, WIDE = 32768, ROWS = 8192 };

static const char ring[] = "\"chip\": \"tpu-v5p\", \"shape\": \"4\", \"unrealisable\": true, "
                           "\"wrap\": {\"x\": true}";

static void mlp_write(char text[TEXT_BYTES], const char *machine, const char *mesh,
                      const char *more, uint32_t microbatches)
{
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"title\": \"overridden\", \"machine\": {%s, \"profile\": \"ideal\"}, "
        "\"mesh\": %s, \"workload\": {\"kind\": \"train_step\", \"model\": {\"kind\": \"mlp\", "
        "\"D\": %d, \"F\": %d, \"layers\": 16, \"matrices\": 2}, \"batch_tokens\": %u, "
        "\"accumulate\": %u, \"allow_oversubscription\": true%s}}",
        machine, mesh, WIDTH, WIDE, ROWS * microbatches, microbatches, more);
}

static void step_play(struct play *play, const char *text)
{
    play_run(play, text, NULL);
    assert_true((double)play->trace.step_ps / (double)TIME_PS_PER_S * (1 + 1e-9) >=
                play->roofline.lower_s);
}

/* Stages along a ring. */
static void mlp_play(struct play *play, const char *machine, const char *more,
                     uint32_t microbatches)
{
    char text[TEXT_BYTES];
    mlp_write(text, machine, "{\"pp\": [\"x\"]}", more, microbatches);
    step_play(play, text);
}

/* Four microbatches more: what each of them adds to the step, and takes on a rank. */
struct pace {
    int64_t step_ps, rank_ps[4];
};

static struct pace pace_of(const char *chips, const char *layout)
{
    struct play few, many;
    struct pace pace;
    char machine[TEXT_BYTES], more[TEXT_BYTES];
    (void)snprintf(machine, sizeof machine, "%s%s", ring, chips);
    (void)snprintf(more, sizeof more, ", \"schedule\": \"1f1b\"%s", layout);
    mlp_play(&few, machine, more, 12);
    mlp_play(&many, machine, more, 16);
    pace.step_ps = (many.trace.step_ps - few.trace.step_ps) / 4;
    for (uint32_t r = 0; r < 4; r++)
        pace.rank_ps[r] = (many.trace.roles[r].compute_ps - few.trace.roles[r].compute_ps) / 4;
    play_close(&few);
    play_close(&many);
    return pace;
}

static void the_slow_stage_sets_the_pace(void **state)
{
    (void)state;
    static const char *const at[] = {"0", "1", "2", "3"};
    struct pace const like = pace_of("", "");
    for (uint32_t r = 0; r < 4; r++) {
        char chips[100];
        (void)snprintf(chips, sizeof chips,
                       ", \"chips\": [{\"at\": [%s], \"math\": 0.5, \"hbm\": 0.5}]", at[r]);
        struct pace const slow = pace_of(chips, "");
        assert_int_equal(slow.step_ps, slow.rank_ps[r]);
        for (uint32_t other = 0; other < 4; other++)
            assert_int_equal(slow.rank_ps[other], like.rank_ps[other] * (other == r ? 2 : 1));
    }
    /* HBM alone at a third of its rate: math bounds the matmuls by far more, but for the ends of
     * their tiles. */
    struct pace const loads = pace_of(", \"chips\": [{\"at\": [1], \"hbm\": 0.34}]", "");
    case_near((double)loads.rank_ps[1], (double)like.rank_ps[1], 1e-4);
}

/* 16 layers, one of four chips at half the rate: 4 layers a stage go at the pace of 8, and 5, 4, 2
 * and 5 at that of 5. */
static void fewer_layers_for_the_slow_stage_win_it_back(void **state)
{
    (void)state;
    static const char chips[] = ", \"chips\": [{\"at\": [2], \"math\": 0.5, \"hbm\": 0.5}]";
    struct pace const like = pace_of("", "");
    struct pace const even = pace_of(chips, "");
    struct pace const moved = pace_of(chips, ", \"layout\": \"t*5|t*4|t*2|t*5\"");
    case_near((double)even.step_ps, 2.0 * (double)like.rank_ps[0], 1e-9);
    for (uint32_t r = 0; r < 4; r++) /* One of four layers more, and ends of tiles. */
        assert_true(moved.rank_ps[r] <= like.rank_ps[0] * 5 / 4);
    /* Messages that ranks with equally much to do wait for are 1 % here. */
    case_near((double)moved.step_ps, 1.25 * (double)like.step_ps, 1e-2);
}

static void it_is_the_same_folded_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *mesh, *more;
    } rows[] = {
        {"\"chip\": \"h100-sxm\", \"nodes\": 4, \"chips\": [{\"at\": [\"*\", 2], \"math\": 0.315, "
         "\"hbm\": 0.597}, {\"at\": [\"*\", 3], \"math\": 0.315, \"hbm\": 0.597}]",
         "{\"pp\": [\"node\"], \"tp\": [\"gpu\"]}", ", \"layout\": \"t*6|t*6|t*2|t*2\""},
        {"\"chip\": \"h100-sxm\", \"nodes\": 4, \"chips\": [{\"at\": [\"*\", 1], \"math\": 0.5}]",
         "{\"pp\": [\"node\"], \"fsdp\": [\"gpu\"]}", ", \"schedule\": \"zb-h1\""},
        {"\"chip\": \"h100-sxm\", \"nodes\": 4, \"chips\": [{\"at\": [\"*\", 1], \"math\": 0.5}, "
         "{\"at\": [\"*\", 3], \"math\": 0.5}]",
         "{\"pp\": [\"node:2\"], \"dp\": [\"node:2\"], \"tp\": [\"gpu\"]"
         ", \"order\": [\"pp\", \"dp\", \"tp\"]}",
         ", \"zero\": 1"},
        {"\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\", \"chips\": [{\"at\": [3, \"*\", \"*\"], "
         "\"math\": 0.7, \"hbm\": 0.8}]",
         "{\"pp\": [\"x\"], \"fsdp\": [\"y\"], \"tp\": [\"z\"]}",
         ", \"schedule\": \"interleaved:2\""},
    };
    uint32_t walked = 0;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play folded;
        char text[TEXT_BYTES];
        if (sampling_skips(&walked)) continue;
        mlp_write(text, rows[i].machine, rows[i].mesh, rows[i].more, 8);
        step_play(&folded, text);
        assert_true(folded.trace.fold.replayed < folded.machine.chip_count);
        walk_alike(&folded, text, "reference");
        play_close(&folded);
    }
}

/* All stages on slow chips, the work where the fast ones are: the mean rank's work at the slowest
 * rate would be above the step. */
static void no_step_is_below_its_roofline(void **state)
{
    (void)state;
    static const char *const layouts[] = {"t*13|t|t|t", "t|t*13|t|t", "t*7|t*7|t|t"};
    for (uint32_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        struct play play;
        char more[TEXT_BYTES], machine[TEXT_BYTES];
        (void)snprintf(more, sizeof more, ", \"layout\": \"%s\"", layouts[i]);
        (void)snprintf(machine, sizeof machine,
                       "%s, \"chips\": [{\"at\": [2], \"math\": 0.1, \"hbm\": 0.1}, {\"at\": [3], "
                       "\"math\": 0.1, \"hbm\": 0.1}]",
                       ring);
        mlp_play(&play, machine, more, 64);
        /* 16 layers on two chips and two tenths of one. */
        double const whole_s =
            play.roofline.counts.padded_flop / play.roofline.rates.math_flop_per_s;
        case_near(play.roofline.math_s, whole_s * 4 / 2.2, 1e-6);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slow_stage_sets_the_pace),
        cmocka_unit_test(fewer_layers_for_the_slow_stage_win_it_back),
        cmocka_unit_test(it_is_the_same_folded_or_not),
        cmocka_unit_test(no_step_is_below_its_roofline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
