/* Names: the nearest known one. */
#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "tests/support/case.h"

static const char *const names[] = {"fsdp", "tp", "dp", "shape", "chip", NULL};

static void a_misspelt_name_finds_the_one_that_was_meant(void **state)
{
    (void)state;
    assert_string_equal(name_nearest("shap", names), "shape");
    assert_string_equal(name_nearest("shapes", names), "shape");
    assert_string_equal(name_nearest("fspd", names), "fsdp"); /* One swap. */
    assert_string_equal(name_nearest("chpi", names), "chip");
    assert_string_equal(name_nearest("tp", names), "tp");
    assert_string_equal(name_nearest("DP", names), "dp"); /* Cases differ, "tp" is not nearer. */
}

static void who_wrote_the_beginning_meant_the_name(void **state)
{
    (void)state;
    static const char *const keys[] = {"seed", "prefetch_layers", "prefer", NULL};
    assert_string_equal(name_nearest("prefetch", keys), "prefetch_layers");
    assert_string_equal(name_nearest("prefetch_layers_ahead", keys), "prefetch_layers");
    assert_string_equal(name_nearest("se", keys), "seed");
}

static void whole_words_are_meant(void **state)
{
    (void)state;
    static const char *const keys[] = {"nodes", "gpus", "nic_rate", "node_nics", NULL};
    static const char *const plans[] = {"permute", "all_gather_ring", "all_gather_tree", NULL};
    assert_string_equal(name_nearest("gpu_nics", keys), "node_nics");
    assert_string_equal(name_nearest("gpu", keys), "gpus");
    assert_string_equal(name_nearest("ring", plans), "all_gather_ring");
    assert_string_equal(name_nearest("tree", plans), "all_gather_tree");
    assert_true(name_is_near("llama3-8b-fsdp-v5e-16x15", "llama3-8b-fsdp-v5e-16x16"));
    assert_false(name_is_near("mine", "mlp-tp-v5p"));
}

static void a_name_may_leave_out_words_of_another(void **state)
{
    (void)state;
    static const char *const scenarios[] = {"llama2-13b-decode-v5e-2x4",
                                            "llama3-70b-decode-int8-v5e-4x4", NULL};
    assert_string_equal(name_nearest("llama3-70b-decode-v5e-4x4", scenarios), scenarios[1]);
    assert_string_equal(name_nearest("llama2-decode-v5e-2x4", scenarios), scenarios[0]);
    /* Words in another order are no reason: letters decide. */
    assert_string_equal(name_nearest("llama2-13b-v5e-decode-2x4", scenarios), scenarios[0]);
}

static void another_figure_is_nearer_than_one_more(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3-70b", "llama-3-8b", NULL};
    assert_string_equal(name_nearest("llama3-7b", models), "llama-3-8b");
}

static void of_names_as_near_the_nearer_number_wins(void **state)
{
    (void)state;
    static const char *const formats[] = {"bf16", "fp16", "fp32", "fp8", "int8", NULL};
    static const char *const chips[] = {"h100-sxm", "h100", NULL};
    static const char *const long_numbers[] = {"x99999999999999999998", "x99999999999999999997",
                                               NULL};
    assert_string_equal(name_nearest("fp64", formats), "fp32");
    assert_string_equal(name_nearest("fp17", formats), "fp16");
    assert_string_equal(name_nearest("h100-smx", chips), "h100-sxm");
    assert_string_equal(name_nearest("x99999999999999999999", long_numbers), long_numbers[0]);
}

static void the_first_of_equals_wins(void **state)
{
    (void)state;
    static const char *const keys[] = {"xtp", "dtp", NULL};
    assert_string_equal(name_nearest("ytp", keys), "xtp"); /* "dtp" is as near. */
}

static void what_is_far_is_not_offered(void **state)
{
    (void)state;
    static const char *const keys[] = {"chip", "shape", "profile", "network", "regather", NULL};
    static const char *const models[] = {"phi-4", "qwen3-8b", "gpt-oss-20b", NULL};
    assert_null(name_nearest("nic_rate", keys));
    assert_null(name_nearest("microbatches", keys));
    assert_null(name_nearest("nonsense", models));
    assert_null(name_nearest("xp", names)); /* Half of its letters differ. */
    assert_null(name_nearest("", names));
    assert_string_equal(name_nearest("gpt2", models), "gpt-oss-20b"); /* Not "phi-4". */
    assert_string_equal(name_nearest("training", (const char *const[]){"train_step", NULL}),
                        "train_step");
    assert_string_equal(name_nearest("PROFILE", keys), "profile");
    assert_string_equal(name_nearest("lll", (const char *const[]){"none", "LL", NULL}), "LL");
}

static void an_offer_is_the_nearest_or_what_there_is(void **state)
{
    (void)state;
    static const char *const keys[] = {"chip", "shape", "network", NULL}, *const none[] = {NULL};
    assert_string_equal(name_offer("shap", keys, "; is it ", "?", NULL).text, "; is it shape?");
    assert_string_equal(name_offer("nic_rate", keys, "; is it ", "?", NULL).text,
                        "; there are chip, shape and network");
    assert_string_equal(name_offer("nic_rate", keys, "; is it ", "?", "; ask").text, "; ask");
    assert_string_equal(name_offer("nic_rate", none, "; is it ", "?", NULL).text, "");
    /* Those that have no room are counted. */
    static char many[200][16];
    const char *list[201] = {NULL};
    for (int i = 0; i < 200; i++) {
        (void)snprintf(many[i], sizeof many[i], "name%d", i);
        list[i] = many[i];
    }
    struct name_offer const offer = name_offer("zzz", list, "", "", NULL);
    unsigned last = 0, more = 0;
    const char *const end = strstr(offer.text, " and ");
    assert_non_null(end);
    assert_int_equal(sscanf(end, " and %u more", &more), 1);
    for (const char *at = offer.text; (at = strstr(at, "name")) != NULL; at += 4) last++;
    assert_int_equal(last + more, 200);
    assert_true(strlen(offer.text) < sizeof offer.text - 1);
    static char long_name[2000];
    memset(long_name, 'x', sizeof long_name - 1);
    const char *const long_names[] = {long_name, "y", NULL};
    assert_string_equal(name_offer("zzz", long_names, "", "", NULL).text, "; there are 2 more");
}

static void nothing_is_nearest_to_nothing(void **state)
{
    (void)state;
    static const char *const none[] = {NULL};
    assert_null(name_nearest("tp", none));
}

static void a_name_of_megabytes_costs_nothing_and_breaks_nothing(void **state)
{
    (void)state;
    static char name[1 << 20];
    memset(name, 's', sizeof name - 1);
    static const char *const near[] = {"sss", "shape", NULL};
    for (int i = 0; i < 1000; i++) assert_string_equal(name_nearest(name, near), "sss");
}

static void a_name_is_found_at_its_place(void **state)
{
    (void)state;
    static const char *const known[] = {"ring", "line", "LL128", NULL};
    assert_int_equal(name_find("ring", known), 0);
    assert_int_equal(name_find("line", known), 1);
    assert_int_equal(name_find("lines", known), 3);
    assert_int_equal(name_find("Line", known), 3);
    assert_int_equal(name_find(NULL, known), 3);
    assert_int_equal(name_find_any_case("Line", known), 1);
    assert_int_equal(name_find_any_case("ll128", known), 2);
    assert_int_equal(name_find_any_case("ll", known), 3);
    assert_int_equal(name_find_any_case(NULL, known), 3);
}

static void names_are_the_same_or_begin_alike(void **state)
{
    (void)state;
    static const char tree[] = "flat-tree";
    char other[] = "flat-tree";
    assert_true(name_same(tree, other));
    assert_true(name_same(NULL, NULL));
    assert_false(name_same(tree, "flat"));
    assert_false(name_same(tree, NULL));
    assert_false(name_same(NULL, tree));
    assert_string_equal(name_after(tree, "flat-"), "tree");
    assert_string_equal(name_after(tree, tree), "");
    assert_null(name_after("flat", "flat-"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_found_at_its_place),
        cmocka_unit_test(names_are_the_same_or_begin_alike),
        cmocka_unit_test(a_misspelt_name_finds_the_one_that_was_meant),
        cmocka_unit_test(who_wrote_the_beginning_meant_the_name),
        cmocka_unit_test(whole_words_are_meant),
        cmocka_unit_test(a_name_may_leave_out_words_of_another),
        cmocka_unit_test(another_figure_is_nearer_than_one_more),
        cmocka_unit_test(of_names_as_near_the_nearer_number_wins),
        cmocka_unit_test(the_first_of_equals_wins),
        cmocka_unit_test(what_is_far_is_not_offered),
        cmocka_unit_test(an_offer_is_the_nearest_or_what_there_is),
        cmocka_unit_test(nothing_is_nearest_to_nothing),
        cmocka_unit_test(a_name_of_megabytes_costs_nothing_and_breaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
