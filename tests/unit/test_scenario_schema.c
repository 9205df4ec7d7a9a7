/* The schema of a scenario, by a validator of what it uses, and the tables of the documentation. */
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"

extern const struct embed_file embed_scenarios[];
extern const unsigned embed_scenarios_count;

static const char base[] =
    "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"},"
    "\"mesh\": {\"cp\": [\"x\"], \"fsdp\": [\"y\"], \"pp\": [\"z\"]},"
    "\"workload\": {\"kind\": \"train_step\", \"model\": \"mixtral-8x7b\","
    "\"batch_tokens\": 1048576, \"sequence_length\": 4096}}";

static struct strbuf schema_text;
static struct error error;

static struct json *parsed(const char *text, const char *setting)
{
    struct json *json = NULL;
    case_ok(json_read_text(case_arena, "text", text, strlen(text), &json, &error));
    if (setting != NULL && json_set(json, setting, &error) != STATUS_OK) return NULL;
    return json;
}

static struct json *schema(void)
{
    if (schema_text.bytes == NULL) scenario_schema(&schema_text);
    return parsed(schema_text.bytes, NULL);
}

static const char *text_of(struct json *json)
{
    const char *text = NULL;
    case_ok(json_as_string(json, &text, &error));
    return text;
}

static bool is_of_type(struct json *value, const char *type)
{
    static const struct {
        const char *name;
        enum json_kind kind;
    } types[] = {{"boolean", JSON_BOOLEAN}, {"integer", JSON_INTEGER}, {"number", JSON_INTEGER},
                 {"number", JSON_REAL},     {"string", JSON_STRING},   {"object", JSON_OBJECT},
                 {"array", JSON_ARRAY}};
    bool known = false, is = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, type) != 0) continue;
        known = true;
        is |= json_kind(value) == types[i].kind;
    }
    assert_true(known);
    return is;
}

static bool is_number(struct json *value)
{
    return json_kind(value) == JSON_INTEGER || json_kind(value) == JSON_REAL;
}

static double number_of(struct json *json)
{
    double number = 0;
    case_ok(json_as_real(json, -1e300, 1e300, &number, &error));
    return number;
}

static bool matches(const char *text, const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool const is = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return is;
}

static bool is_among(const char *text, struct json *array)
{
    for (uint32_t i = 0; i < json_count(array); i++)
        if (strcmp(text, text_of(json_at(array, i))) == 0) return true;
    return false;
}

static bool is_valid(struct json *value, struct json *rules);

static bool members_hold(struct json *value, struct json *rules)
{
    struct json *required = json_take(rules, "required");
    struct json *properties = json_take(rules, "properties");
    for (uint32_t i = 0; required != NULL && i < json_count(required); i++)
        if (json_take(value, text_of(json_at(required, i))) == NULL) return false;
    for (uint32_t i = 0; properties != NULL && json_key_at(value, i) != NULL; i++) {
        const char *const key = json_key_at(value, i);
        struct json *rule = json_take(properties, key);
        if (rule == NULL || !is_valid(json_take(value, key), rule)) return false;
    }
    return true;
}

static bool elements_hold(struct json *array, struct json *rules)
{
    double const count = json_count(array);
    if (count < number_of(json_take(rules, "minItems")) ||
        count > number_of(json_take(rules, "maxItems")))
        return false;
    for (uint32_t i = 0; i < json_count(array); i++)
        if (!is_valid(json_at(array, i), json_take(rules, "items"))) return false;
    return true;
}

/* A word of JSON Schema that the validator does not have fails the test. */
static void words_check(struct json *rules)
{
    static const char *const words[] = {
        "$schema", "title",    "description", "default",  "type",       "additionalProperties",
        "enum",    "pattern",  "minimum",     "required", "properties", "maximum",
        "items",   "minItems", "maxItems"};
    for (uint32_t i = 0; json_key_at(rules, i) != NULL; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            known |= strcmp(words[k], json_key_at(rules, i)) == 0;
        if (!known) fail_msg("the validator does not know %s", json_key_at(rules, i));
    }
}

static bool is_typed(struct json *value, struct json *type)
{
    if (type == NULL) return true;
    if (json_kind(type) == JSON_STRING) return is_of_type(value, text_of(type));
    for (uint32_t i = 0; i < json_count(type); i++)
        if (is_of_type(value, text_of(json_at(type, i)))) return true;
    return false;
}

static bool is_valid(struct json *value, struct json *rules)
{
    struct json *member = NULL;
    bool const is_text = json_kind(value) == JSON_STRING;
    words_check(rules);
    if (!is_typed(value, json_take(rules, "type"))) return false;
    if ((member = json_take(rules, "enum")) != NULL &&
        !(is_text && is_among(text_of(value), member)))
        return false;
    if ((member = json_take(rules, "pattern")) != NULL && is_text &&
        !matches(text_of(value), text_of(member)))
        return false;
    if ((member = json_take(rules, "minimum")) != NULL && is_number(value) &&
        number_of(value) < number_of(member))
        return false;
    if ((member = json_take(rules, "maximum")) != NULL && is_number(value) &&
        number_of(value) > number_of(member))
        return false;
    if (json_kind(value) == JSON_ARRAY) return elements_hold(value, rules);
    return json_kind(value) != JSON_OBJECT || members_hold(value, rules);
}

static bool is_read(const char *text, const char *setting, const char **ret_shown)
{
    struct scenario scenario;
    struct scenario_setting const settings[] = {{setting}};
    if (scenario_read_text(case_arena, "text", text, strlen(text), settings, setting != NULL,
                           &scenario, &error) != STATUS_OK)
        return false;
    if (ret_shown != NULL) *ret_shown = scenario_text(case_arena, &scenario);
    return true;
}

static void shipped_scenarios_are_valid(void **state)
{
    (void)state;
    struct json *rules = schema();
    assert_true(embed_scenarios_count > 50);
    for (unsigned i = 0; i < embed_scenarios_count; i++) {
        struct json *json = NULL;
        case_ok(json_read_text(case_arena, embed_scenarios[i].name, embed_scenarios[i].bytes,
                               embed_scenarios[i].size_bytes, &json, &error));
        if (!is_valid(json, rules)) fail_msg("%s is not valid", embed_scenarios[i].name);
    }
}

/* The words of the page without its marks, behind the condition if there is one. */
static void descriptions_are_plain_text(void **state)
{
    (void)state;
    struct json *workload = json_take(json_take(schema(), "properties"), "workload");
    struct json *keys = json_take(workload, "properties");
    assert_string_equal(text_of(json_take(json_take(keys, "context"), "description")),
                        "with cp: how its ranks attend to shared sequences: context");
    assert_string_equal(text_of(json_take(json_take(keys, "memory"), "description")),
                        "the bytes that count: the book's, or also the bytes of Megatron-LM, "
                        "PyTorch, NCCL and CUDA. framework needs GPUs");
}

static void what_is_shown_is_valid(void **state)
{
    (void)state;
    const char *shown = NULL;
    assert_true(is_read(base, NULL, &shown));
    assert_true(is_valid(parsed(shown, NULL), schema()));
}

/* The properties of the object at "machine/network"; "" is the scenario. */
static struct json *properties_at(const char *path)
{
    struct json *at = json_take(schema(), "properties");
    char name[32];
    for (const char *part = path; *part != '\0'; part += strlen(name), part += *part == '/') {
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(part, "/"), part);
        at = json_take(json_take(at, name), "properties");
    }
    return at;
}

static struct json *value_at(struct json *json, const char *path)
{
    char name[32];
    for (const char *part = path; *part != '\0'; part += strlen(name), part += *part == '/') {
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(part, "/"), part);
        json = json_take(json, name);
    }
    return json;
}

static const char *const objects[] = {
    "",   "machine", "machine/network", "machine/network/nvlink", "workload", "workload/formats",
    "run"};

/* Of a scenario that every key applies to but these: what the chip, the product, the machine or
 * the schedule says otherwise; the model has no MTP, only ZeRO-1 and 2 gather updated weights, and
 * a tier has the policy of the network. */
static void every_default_is_shown(void **state)
{
    (void)state;
    static const char *const left_out[] = {
        "memory",         "layout",        "mtp",          "parameter_gather", "nodes",
        "gpus",           "slices",        "switch_ports", "nic_rate",         "node_nics",
        "switch_latency", "cable_latency", "latency"};
    const char *text = NULL;
    unsigned seen = 0;
    assert_true(is_read(base, NULL, &text));
    struct json *shown = parsed(text, NULL);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        struct json *keys = properties_at(objects[i]);
        for (uint32_t k = 0; json_key_at(keys, k) != NULL; k++) {
            const char *const key = json_key_at(keys, k);
            bool missing = false;
            for (size_t j = 0; j < sizeof left_out / sizeof *left_out; j++)
                missing |= strcmp(left_out[j], key) == 0;
            if ((json_take(value_at(shown, objects[i]), key) == NULL) != missing)
                fail_msg("%s/%s is%s shown", objects[i], key, missing ? "" : " not");
            seen++;
        }
    }
    assert_true(seen > 65);
}

static const char *const asked_values[] = {
    "true",
    "0",
    "1",
    "3",
    "4",
    "64",
    "65",
    "-1",
    "0.5",
    "\"1\"",
    "\"4X\"",
    "\"bf16\"",
    "{}",
    "[]",
    "1e99",
    "1024",
    "1025",
    "65536",
    "65537",
    "\"\"",
    "[[]]",
    "[1]",
    "[{\"at\": [0, \"*\", 1], \"hbm\": 2}]",
    "[{\"from\": [0, 0, 0], \"to\": [1, 0, 0], \"rate\": \"1GB/s\"}]",
    "[{\"from\": [0, 0, 0], \"rate\": \"1GB/s\"}]",
    "[\"z:2\"]",
    "\"on\"",
    "\"hash\"",
    "{\"policy\": \"rail\"}",
    "{\"x\": true}"};
static const char *const asked_keys[] = {"workload/kind",
                                         "workload/batch_tokens",
                                         "workload/remat",
                                         "workload/zero",
                                         "workload/accumulate",
                                         "workload/routing_skew",
                                         "workload/formats/weights",
                                         "workload/formats/main_gradients",
                                         "workload/allow_oversubscription",
                                         "workload/mtpp",
                                         "workload/formats",
                                         "workload/formats/weight",
                                         "workload/attention_kernel",
                                         "workload/memory",
                                         "run",
                                         "run/prefetch_layers",
                                         "run/seed",
                                         "run/steps",
                                         "run/engine",
                                         "run/arbitration",
                                         "run/collective_matmul",
                                         "run/sed",
                                         "runs",
                                         "podsim",
                                         "question",
                                         "machine",
                                         "machine/chips",
                                         "machine/clock",
                                         "machine/gpus",
                                         "machine/links",
                                         "machine/network",
                                         "machine/network/leaf/oversubscription",
                                         "machine/network/leaf/policy",
                                         "machine/network/nic_rate",
                                         "machine/network/nvlink/sharp",
                                         "machine/network/nvlinks",
                                         "machine/network/switch_latency",
                                         "machine/nodes",
                                         "machine/profile",
                                         "machine/shapes",
                                         "machine/unrealisable",
                                         "machine/wrap",
                                         "machine/wrap/x",
                                         "mesh",
                                         "mesh/dp",
                                         "mesh/order",
                                         "mesh/xp"};

/* Where one key says it; of counts that are text the schema knows the form, not the range. */
static void schema_and_reader_agree(void **state)
{
    (void)state;
    unsigned accepted = 0, refused = 0;
    for (size_t k = 0; k < sizeof asked_keys / sizeof *asked_keys; k++) {
        for (size_t v = 0; v < sizeof asked_values / sizeof *asked_values; v++) {
            char setting[192];
            (void)snprintf(setting, sizeof setting, "/%s=%s", asked_keys[k], asked_values[v]);
            struct json *json = parsed(base, setting);
            bool const valid = json != NULL && is_valid(json, schema());
            bool const read = is_read(base, setting, NULL);
            if (valid != read)
                fail_msg("%s: schema %d, reader %d: %s", setting, valid, read, error.message);
            accepted += read;
            refused += !read;
        }
    }
    assert_true(accepted > 50 && refused > 200);
}

/* Writes "/section/key=default"; false: the schema has no default. */
static bool default_setting(char setting[256], const char *section, const char *key,
                            struct json *properties)
{
    struct json *preset = json_take(json_take(properties, key), "default");
    struct strbuf text = {0};
    struct json_writer writer;
    if (preset == NULL) return false;
    json_write_start(&writer, &text);
    json_write_object(&writer);
    json_put_value(&writer, key, preset);
    json_write_object_end(&writer);
    char *const value = strchr(text.bytes, ':') + 2;
    value[strcspn(value, "\n}")] = '\0';
    (void)snprintf(setting, 256, "/%s%s%s=%s", section, *section == '\0' ? "" : "/", key, value);
    strbuf_free(&text);
    return true;
}

/* A key with its default is as a key that is left out. */
static void defaults_are_those_of_the_reader(void **state)
{
    (void)state;
    const char *without = NULL, *with = NULL;
    unsigned seen = 0;
    assert_true(is_read(base, NULL, &without));
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        struct json *properties = properties_at(objects[i]);
        for (uint32_t k = 0; json_key_at(properties, k) != NULL; k++) {
            char setting[256];
            const char *const key = json_key_at(properties, k);
            if (!default_setting(setting, objects[i], key, properties)) continue;
            if (!is_read(base, setting, &with)) fail_msg("%s: %s", setting, error.message);
            assert_string_equal(with, without);
            seen++;
        }
    }
    assert_true(seen > 28);
}

static const char *file_text(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t const size = fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_true(size < sizeof text - 1);
    text[size] = '\0';
    return text;
}

static void tables_of_the_page_are_those_of_the_rows(void **state)
{
    (void)state;
    struct strbuf tables = {0};
    scenario_tables(&tables);
    const char *const page = file_text("docs/scenario.md");
    unsigned rows = 0;
    for (char *table = strstr(tables.bytes, "## "), *next = NULL; table != NULL; table = next) {
        next = strstr(table + 1, "\n\n##");
        if (next != NULL) next++;         /* The line that is empty. */
        if (next != NULL) *next++ = '\0'; /* The table keeps its own line ends. */
        const char *const at = strstr(page, table);
        if (at == NULL)
            fail_msg(
                "`podsim show schema --format markdown` prints another table than the page:\n%s",
                table);
        char const after = at[strlen(table)];
        assert_true(after == '\0' || after == '\n');
        for (const char *line = table; (line = strchr(line, '\n')) != NULL; line++) rows++;
    }
    assert_true(rows > 70);
    strbuf_free(&tables);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_scenarios_are_valid),
        cmocka_unit_test(descriptions_are_plain_text),
        cmocka_unit_test(what_is_shown_is_valid),
        cmocka_unit_test(every_default_is_shown),
        cmocka_unit_test(schema_and_reader_agree),
        cmocka_unit_test(defaults_are_those_of_the_reader),
        cmocka_unit_test(tables_of_the_page_are_those_of_the_rows),
    };
    int const failed = cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
    strbuf_free(&schema_text);
    return failed;
}
