/* Groups over several axes, where links are shared with interleaved groups or arrays are small. */
#include <stdio.h>

#include "sim/base/units.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024 };

struct setup {
    const char *chip;
    const char *shape;
    const char *mesh;
    uint32_t width;
    uint32_t mlp_width;
    uint32_t tokens;
};

/* The step, and its bounds, in seconds. */
struct step {
    double played_s, lower_s, upper_s;
};

static struct step played(const struct setup *setup, bool collective_matmul)
{
    char text[TEXT_BYTES];
    case_text(
        text, sizeof text,
        "{\"podsim\": 1, \"title\": \"shared\", \"machine\": {\"chip\": \"%s\", \"shape\": \"%s\", "
        "\"profile\": \"ideal\", \"unrealisable\": true}, \"mesh\": %s, \"workload\": {\"kind\": "
        "\"train_step\", \"model\": {\"kind\": \"mlp\", \"D\": %u, \"F\": %u, \"layers\": 2, "
        "\"matrices\": 2}, \"batch_tokens\": %u, \"allow_oversubscription\": true}, \"run\": "
        "{\"collective_matmul\": %s}}",
        setup->chip, setup->shape, setup->mesh, setup->width, setup->mlp_width, setup->tokens,
        collective_matmul ? "true" : "false");
    struct play play;
    play_run(&play, text, NULL);
    struct step const step = {units_seconds(play.trace.step_ps), play.roofline.lower_s,
                              play.roofline.upper_s};
    play_close(&play);
    print_message("    %-40s %9.3f ms (%.3f to %.3f)\n", setup->mesh, 1e3 * step.played_s,
                  1e3 * step.lower_s, 1e3 * step.upper_s);
    return step;
}

/* A strided dimension's links carry its bytes as often as there are groups between its members. */
static void strided_groups_keep_between_the_bounds(void **state)
{
    (void)state;
    static const struct setup setups[] = {
        {"tpu-v5p", "8x8x8", "{\"tp\": [\"z:4\"], \"fsdp\": [\"x\", \"y\", \"z:2\"]}", 8192, 32768,
         131072},
        {"tpu-v5p", "4x8x12",
         "{\"dp\": [\"x\", \"z:6\"], \"tp\": [\"y\", \"z:2\"]"
         ", \"order\": [\"dp\", \"tp\"]}",
         8192, 32768, 98304},
        {"tpu-v5p", "8x8x8",
         "{\"fsdp\": [\"x:4\", \"y\", \"z:2\"], \"tp\": [\"x:2\", \"z:4\"]"
         ", \"order\": [\"fsdp\", \"tp\"]}",
         8192, 32768, 131072},
        {"tpu-v5e", "4x8", "{\"tp\": [\"y:2\"], \"fsdp\": [\"x\", \"y:4\"]}", 4096, 16384, 16384},
    };
    for (uint32_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        struct step const step = played(&setups[i], false);
        assert_true(step.played_s >= step.lower_s && step.played_s <= step.upper_s);
    }
}

/* Chunks pay their hops one after the other, so small arrays are cut into few or none. */
static void collective_matmul_over_several_axes_never_costs_more_than_three_percent(void **state)
{
    (void)state;
    static const struct setup setups[] = {
        {"tpu-v4p", "4x8x8", "{\"tp\": [\"y\", \"x\", \"z\"]}", 256, 1024, 512},
        {"tpu-v5p", "4x8x8", "{\"fsdp\": [\"x\"], \"tp\": [\"y\", \"z\"]}", 2048, 8192, 4096},
        {"tpu-v5p", "4x4x8", "{\"dp\": [\"y\"], \"tp\": [\"x\", \"z\"]}", 256, 4096, 65536},
        {"tpu-v5p", "4x4x4", "{\"tp\": [\"x\", \"y\", \"z\"]}", 2048, 8192, 1024},
        {"tpu-v5p", "4x8x8", "{\"fsdp\": [\"x\"], \"tp\": [\"y\", \"z\"]}", 2048, 8192, 16384},
        {"tpu-v5p", "4x4x4", "{\"fsdp\": [\"x\"], \"tp\": [\"y\", \"z\"]}", 256, 4096, 16384},
    };
    for (uint32_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        double const without_s = played(&setups[i], false).played_s;
        assert_true(played(&setups[i], true).played_s <= 1.03 * without_s);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(strided_groups_keep_between_the_bounds),
        cmocka_unit_test(collective_matmul_over_several_axes_never_costs_more_than_three_percent),
    };
    return cmocka_run_group_tests_name("shared links", tests, NULL, NULL);
}
