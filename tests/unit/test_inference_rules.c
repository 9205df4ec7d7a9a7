/* The book's rules of a step of inference, with its own tokens: values by hand. */
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/report/report_roofline.h"
#include "tests/support/case.h"
#include "tests/support/play.h"

/* 24 sequences with 2 new tokens are 48 on 16 chips. */
static const char decode[] =
    "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5e\", \"shape\": \"4x4\", \"profile\": "
    "\"ideal\"}, \"mesh\": {\"fsdp\": [\"x\"], \"tp\": [\"y\"]}, \"workload\": {\"kind\": "
    "\"decode\", \"model\": \"llama-3-8b\", \"batch\": 24, \"context\": 1024, \"new_tokens\": 2, "
    "\"allow_oversubscription\": true}}";

/* The book's C/W / M_X / Y (chapter 5): on a line a gather has the 45 GB/s of one direction. */
static void tokens_are_those_of_the_pass(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    double const flop_per_s = 1.97e14, bytes_per_s = 45e9, ranks = 4;
    struct play play;
    (void)state;
    play_run(&play, decode, &lower_only);
    const struct roofline *roofline = &play.roofline;
    const struct roofline_rules *rules = &roofline->rules;
    case_near(rules->tokens_per_chip, 3, 1e-12);
    case_near(rules->fsdp_critical_tokens, flop_per_s / bytes_per_s / ranks, 1e-9);
    /* The tokens at which products take as long as gathers of weights, hops with them. */
    const struct roofline_group *fsdp = roofline_group_find(roofline, MESH_FSDP);
    assert_non_null(fsdp);
    case_near(rules->fsdp_crossing_tokens,
              3 * (fsdp->time_s + fsdp->hops_total_s) / roofline->math_s, 1e-12);
    assert_true(rules->fsdp_crossing_tokens > 100);
    assert_true(rules->offload_optimizer_tokens == 0);
    play_close(&play);
}

static void few_tokens_are_communication_bound(void **state)
{
    static const struct play_options lower_only = {.lower_only = true};
    struct strbuf text = {0};
    struct play play;
    (void)state;
    play_run(&play, decode, &lower_only);
    struct report_input const input = play_report(&play);
    report_roofline_write(&input, false, &text);
    assert_non_null(strstr(text.bytes, "FLOP a byte, 3 tokens a chip)\n"));
    const char *rule = strstr(text.bytes, "\n- fsdp: ");
    assert_non_null(rule);
    const char *verdict = strstr(rule, "communication");
    assert_non_null(verdict);
    assert_true(verdict < strstr(rule + 1, "\n- "));
    strbuf_free(&text);
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_those_of_the_pass),
        cmocka_unit_test(few_tokens_are_communication_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
