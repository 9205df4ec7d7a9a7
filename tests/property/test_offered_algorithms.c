/* An algorithm that a step cannot go by is refused with those that every collective of the step can
 * go by: each of them runs, and no other one name does. */
#include <stdio.h>
#include <string.h>

#include "sim/base/embed.h"
#include "sim/collective/collective.h"
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

extern const struct embed_file embed_scenarios[];
extern const uint32_t embed_scenarios_count;

static const char words[] = "every collective of this step can go by ";

/* Machines of several levels, exchanges that are drawn, what is chunked: not among the shipped. */
static const char *const more[] = {
    "{\"podsim\":1,\"machine\":{\"chip\":\"tpu-v5p\",\"shape\":\"4x4x4\"},\"mesh\":{\"ep\":[\"x\","
    "\"y\"],\"fsdp\":[\"z\"]},\"workload\":{\"kind\":\"train_step\",\"model\":\"qwen3-30b-a3b\","
    "\"batch_tokens\":16384,\"sequence_length\":256,\"routing_skew\":0.5,"
    "\"allow_oversubscription\":true}}",
    "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":2},\"mesh\":{\"ep\":[\"node\","
    "\"gpu\"]},\"workload\":{\"kind\":\"train_step\",\"model\":\"qwen3-30b-a3b\","
    "\"batch_tokens\":16384,\"sequence_length\":256,\"routing_skew\":0.5,"
    "\"allow_oversubscription\":true}}",
    "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":4},\"mesh\":{\"dp\":[\"node\","
    "\"gpu\"]},\"workload\":{\"kind\":\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":"
    "262144,\"sequence_length\":4096,\"allow_oversubscription\":true}}",
    "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":2},\"mesh\":{\"tp\":[\"gpu\"],"
    "\"fsdp\":[\"node\"]},\"workload\":{\"kind\":\"train_step\",\"model\":\"llama-3-8b\","
    "\"batch_tokens\":262144,\"sequence_length\":4096,\"allow_oversubscription\":true},"
    "\"run\":{\"collective_matmul\":true}}",
    "{\"podsim\":1,\"machine\":{\"chip\":\"tpu-v5e\",\"shape\":\"2x4\",\"unrealisable\":true,"
    "\"slices\":4},\"mesh\":{\"cp\":[\"x\"],\"dp\":[\"slice\",\"y\"]},\"workload\":{\"kind\":"
    "\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":262144,\"sequence_length\":4096,"
    "\"allow_oversubscription\":true}}",
};

static enum status try_name(const char *text, const char *name, struct error *ret_error)
{
    char setting[64];
    struct play play;
    (void)snprintf(setting, sizeof setting, "/run/algorithm=%s", name);
    struct scenario_setting const settings[] = {{.text = setting}};
    struct play_options const options = {
        .settings = settings, .setting_count = 1, .lower_only = true};
    *ret_error = (struct error){.status = STATUS_OK};
    enum status const status = play_try(&play, text, &options, ret_error);
    play_close(&play);
    return status;
}

/* Whether ", "-separated names have one. */
static bool lists(const char *list, const char *name)
{
    size_t const length = strlen(name);
    for (const char *at = list; *at != '\0';) {
        size_t const count = strcspn(at, ",");
        if (count == length && memcmp(at, name, length) == 0) return true;
        at += count + strspn(at + count, ", ");
    }
    return false;
}

static uint32_t check_name(const char *title, const char *text, const char *list, const char *name)
{
    struct error error;
    enum status const status = try_name(text, name, &error);
    if ((status == STATUS_OK) != lists(list, name))
        fail_msg("%s: \"%s\" is %s of %s; %s", title, name, status == STATUS_OK ? "none" : "one",
                 list, error.message);
    if (status == STATUS_OK) return 1;
    assert_string_equal(error.where, "/run/algorithm");
    const char *const again = strstr(error.message, words);
    assert_non_null(again);
    assert_string_equal(again + strlen(words), list);
    return 1;
}

static uint32_t check_step(const char *title, const char *text)
{
    struct error error;
    char list[sizeof error.message], flat[64];
    uint32_t tried = 0;
    assert_int_equal(try_name(text, "qqq", &error), STATUS_NOT_FOUND);
    assert_string_equal(error.where, "/run/algorithm");
    const char *const offered = strstr(error.message, words);
    if (offered == NULL) {
        assert_non_null(strstr(error.message, "this step has no collective"));
        return 0;
    }
    assert_null(strstr(error.message, "nearest"));
    (void)snprintf(list, sizeof list, "%s", offered + strlen(words));
    tried += check_name(title, text, list, "auto");
    tried += check_name(title, text, list, "hierarchical");
    for (uint32_t f = 0; f < PRIMITIVE_FAMILY_COUNT; f++) {
        const char *const name = primitive_family_name((enum primitive_family)f);
        tried += check_name(title, text, list, name);
        (void)snprintf(flat, sizeof flat, "flat-%s", name);
        tried += check_name(title, text, list, flat);
    }
    return tried;
}

static void what_is_offered_runs_and_nothing_else(void **state)
{
    uint32_t walked = 0, tried = 0;
    (void)state;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) tried += check_step("more", more[i]);
    for (uint32_t i = 0; i < embed_scenarios_count; i += 4)
        if (!sampling_skips(&walked))
            tried += check_step(embed_scenarios[i].name, embed_scenarios[i].bytes);
    assert_true(tried > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_offered_runs_and_nothing_else),
    };
    return cmocka_run_group_tests_name("offered algorithms", tests, NULL, NULL);
}
