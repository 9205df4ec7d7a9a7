/* The schema of a chip's file and its reader agree. */
#include <stdio.h>

#include "sim/base/json.h"
#include "sim/machine/chip_read.h"
#include "tests/support/case.h"
#include "tests/support/json_schema.h"

static bool is_valid_chip(struct json *chip)
{
    struct json *machine =
        json_take(json_take(json_schema_of_scenarios(), "properties"), "machine");
    return json_schema_holds(chip, json_take(json_take(machine, "properties"), "chip"));
}

static bool is_read_chip(struct json *document)
{
    struct chip chip;
    return chip_read(case_arena, document, NULL, "ideal", "/profile", &chip, &case_error) ==
           STATUS_OK;
}

static void chips_of_the_catalogue_are_valid(void **state)
{
    (void)state;
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++)
        if (!is_valid_chip(json_schema_text(case_chip_json(chip_name_at(i)), NULL)))
            fail_msg("%s is not valid", chip_name_at(i));
    assert_false(is_valid_chip(json_schema_text("{\"kind\": \"tpu\"}", NULL)));
}

/* Where a chip's file says it in one place, or of two keys by their names. */
static void schema_and_reader_agree_about_chips(void **state)
{
    (void)state;
    static const char *const chips[] = {"h100-sxm", "mi300x", "v100-sxm", "tpu-v5p"};
    static const char *const keys[] = {"name",
                                       "kind",
                                       "title",
                                       "aliases",
                                       "hbm_rate",
                                       "hbm_rate/value",
                                       "hbm_rate/source",
                                       "hbm_rate/more",
                                       "maker",
                                       "link_name",
                                       "math/bf16",
                                       "math/bf16/value",
                                       "math/bf61",
                                       "sm_count/value",
                                       "mxu_rows/value",
                                       "switch_latency/value",
                                       "wrap_rule/value",
                                       "slices/value",
                                       "nic_rate",
                                       "gpu_nics",
                                       "switch_reduce_rate",
                                       "nvswitch_count",
                                       "nvswitch_reduce_rate",
                                       "profiles",
                                       "profiles/ideal/hbm_ppm",
                                       "profiles/measured/nic_ppm/value",
                                       "profiles/measured/op_overhead/value",
                                       "extra"};
    static const char *const values[] = {"null",
                                         "0",
                                         "7",
                                         "1.5",
                                         "\"\"",
                                         "\"80GB\"",
                                         "\"2GB/s\"",
                                         "\"2TFLOP/s\"",
                                         "\"2us\"",
                                         "[]",
                                         "[7]",
                                         "[\"4x4x4\"]",
                                         "\"cubes\"",
                                         "true",
                                         "10000000",
                                         "{\"value\": \"2TFLOP/s\", \"source\": \"a plan\"}",
                                         "{\"value\": \"2GB/s\", \"source\": \"a plan\"}",
                                         "{\"value\": 2, \"source\": \"a plan\"}"};
    unsigned accepted = 0, refused = 0;
    for (size_t c = 0; c < sizeof chips / sizeof *chips; c++) {
        const char *const text = case_chip_json(chips[c]);
        for (size_t i = 0; i < sizeof keys * sizeof values / sizeof *keys / sizeof *values; i++) {
            char setting[192];
            (void)snprintf(setting, sizeof setting, "/%s=%s",
                           keys[i / (sizeof values / sizeof *values)],
                           values[i % (sizeof values / sizeof *values)]);
            struct json *json = json_schema_text(text, setting);
            bool const valid = json != NULL && is_valid_chip(json);
            bool const read = json != NULL && is_read_chip(json);
            if (valid != read)
                fail_msg("%s, %s: schema %d, reader %d: %s", chips[c], setting, valid, read,
                         case_error.message);
            accepted += read;
            refused += !read;
        }
    }
    assert_true(accepted > 100 && refused > 1000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(chips_of_the_catalogue_are_valid),
        cmocka_unit_test(schema_and_reader_agree_about_chips),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
