/*
 * Steps whose linear layers multiply in another format than the rest, and whose tokens travel to
 * their experts in another: folded, in full and by the reference queue instants are the same, no
 * step is below its roofline, and narrower formats take less time.
 */
#include <stdio.h>

#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024, FORMATS = 5 };

/* A small DeepSeek's shape, with a module that predicts a second token. */
static const char config[] = "tests/property/mtp.json";

static const char *const formats[FORMATS] = {
    "\"activations\": \"bf16\"",
    "\"activations\": \"bf16\", \"dispatch\": \"fp8\"",
    "\"activations\": \"bf16\", \"matmuls\": \"fp8\"",
    "\"activations\": \"bf16\", \"matmuls\": \"fp8\", \"dispatch\": \"fp8\"",
    "\"activations\": \"fp8\"",
};

static const struct {
    const char *machine, *mesh, *more;
} places[] = {
    {"\"nodes\": 2", "{\"ep\": [\"node\", \"gpu\"]}", ""},
    {"\"nodes\": 4", "{\"dp\": [\"node\"], \"ep\": [\"gpu\"]}", ", \"remat\": \"big_matmuls\""},
    {"\"nodes\": 4", "{\"ep\": [\"node\"], \"tp\": [\"gpu\"]}", ", \"remat\": \"block\""},
    {"\"nodes\": 4", "{\"fsdp\": [\"node\"], \"ep\": [\"gpu\"]}", ", \"remat\": \"norms\""},
    {"\"nodes\": 4",
     "{\"pp\": [\"node:2\"], \"dp\": [\"node:2\"], \"ep\": [\"gpu\"]"
     ", \"order\": [\"pp\", \"dp\", \"ep\"]}",
     ", \"accumulate\": 4, \"schedule\": \"zb-h1\", \"remat\": \"big_matmuls\""},
    {"\"nodes\": 2", "{\"pp\": [\"node\"], \"ep\": [\"gpu\"]}",
     ", \"accumulate\": 4, \"schedule\": \"dualpipev\", \"layout\": \"Et|tt|t|ttmL\", \"remat\": "
     "\"norms\""},
};
enum { PLACES = sizeof places / sizeof *places };

static int64_t step_ps(uint32_t place, uint32_t of, bool full, const char *engine)
{
    char text[TEXT_BYTES];
    struct play play;
    struct play_options const options = {.full = full, .engine = engine};
    case_text(
        text, sizeof text,
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h800-sxm\", %s}, \"mesh\": %s, \"workload\": "
        "{\"kind\": \"train_step\", \"model\": \"%s\", \"batch_tokens\": 1048576, "
        "\"sequence_length\": 1024, \"formats\": {%s}%s}}",
        places[place].machine, places[place].mesh, config, formats[of], places[place].more);
    play_run(&play, text, &options);
    int64_t const end_ps = play.trace.step_ps;
    assert_true(play.roofline.lower_s * 1e12 <= (double)end_ps * (1 + 1e-9));
    assert_true(play.roofline.lower_s > 0);
    play_close(&play);
    return end_ps;
}

static void however_it_is_played_a_step_is_the_same(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < PLACES; p++)
        for (uint32_t f = 0; f < FORMATS; f++) {
            int64_t const folded_ps = step_ps(p, f, false, "fast");
            assert_int_equal(step_ps(p, f, false, "reference"), folded_ps);
            if (f % 3 == 0) assert_int_equal(step_ps(p, f, true, "fast"), folded_ps);
        }
}

static void narrower_formats_take_less_time(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < PLACES; p++) {
        int64_t ps[FORMATS];
        for (uint32_t f = 0; f < FORMATS; f++) ps[f] = step_ps(p, f, false, "fast");
        for (uint32_t f = 1; f < FORMATS; f++) assert_true(ps[f] < ps[0]);
        assert_true(ps[3] < ps[1] && ps[3] < ps[2]);
        assert_true(ps[4] < ps[3]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(however_it_is_played_a_step_is_the_same),
        cmocka_unit_test(narrower_formats_take_less_time),
    };
    return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
