/* The schema of a scenario, and the tables of the documentation. */
#include <stdio.h>
#include <string.h>

#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"
#include "tests/support/json_schema.h"

extern const struct embed_file embed_scenarios[];
extern const unsigned embed_scenarios_count;

static const char base[] =
    "{\"podsim\": 1, \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"},"
    "\"mesh\": {\"cp\": [\"x\"], \"fsdp\": [\"y\"], \"pp\": [\"z\"]},"
    "\"workload\": {\"kind\": \"train_step\", \"model\": \"mixtral-8x7b\","
    "\"batch_tokens\": 1048576, \"sequence_length\": 4096}}";

static struct error error;

static struct json *parsed(const char *text, const char *setting)
{
    return json_schema_text(text, setting);
}

static struct json *schema(void)
{
    return json_schema_of_scenarios();
}

static const char *text_of(struct json *json)
{
    const char *text = NULL;
    case_ok(json_as_string(json, &text, &error));
    return text;
}

static bool is_valid(struct json *value, struct json *rules)
{
    return json_schema_holds(value, rules);
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

static void schema_is_valid(void **state)
{
    (void)state;
    json_schema_check(json_schema_of_scenarios());
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
    struct json *training = json_at(json_take(workload, "anyOf"), 0);
    struct json *keys = json_take(training, "properties");
    assert_string_equal(text_of(json_take(json_take(keys, "context"), "description")),
                        "with cp: how its ranks attend to shared sequences");
    assert_string_equal(
        text_of(json_take(json_take(keys, "memory"), "description")),
        "the bytes that count: the book's, or also the bytes of Megatron-LM, "
        "PyTorch, NCCL and CUDA. framework needs GPUs. Default: framework on GPUs in "
        "another profile than ideal, else book");
}

/* An editor shows a description alone: what a page says elsewhere is not pointed at. */
static void descriptions_stand_alone(void **state)
{
    (void)state;
    static const char *const places[] = {"(below)",     ": below",   "(programs)", "(inference",
                                         ": inference", "(kernels)", ": context",  "(protocols)"};
    struct strbuf text = {0};
    scenario_schema(&text);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strstr(text.bytes, places[i]) != NULL) fail_msg("the schema says \"%s\"", places[i]);
    assert_non_null(strstr(text.bytes, "straight to its GPU\""));
    assert_non_null(strstr(text.bytes, "the gathered array. whole is refused"));
    strbuf_free(&text);
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
        at = json_take(at, name);
        struct json *const kinds = json_take(at, "anyOf"); /* The first is a training step. */
        at = json_take(kinds != NULL ? json_at(kinds, 0) : at, "properties");
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

/* Of a scenario that every key applies to but these: no host launches its ops, no decode attends;
 * a TPU's only slice has neither nodes nor NICs nor a limit of power, nor other slices that hosts
 * lead to; the model has no MTP, only ZeRO-1 and 2 gather updated weights,
 * which overlap, products go in no other chunks than ranks, the machine names no stack, and no
 * preset is named. */
static void every_default_is_shown(void **state)
{
    (void)state;
    static const char *const left_out[] = {"mtp",
                                           "parameter_gather",
                                           "loss_fusion",
                                           "gradient_sums",
                                           "autocast",
                                           "persistent_layernorm",
                                           "shard_kernels",
                                           "joined_products",
                                           "nodes",
                                           "gpus",
                                           "power",
                                           "switch_ports",
                                           "nic_rate",
                                           "node_nics",
                                           "switch_latency",
                                           "cable_latency",
                                           "dcn_begin",
                                           "dcn_message",
                                           "dcn_spread",
                                           "latency",
                                           "launch_host",
                                           "matmul_chunks",
                                           "split_attention",
                                           "prefetch_weights",
                                           "preset"};
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

/* What counts as memory depends on chip and profile, and is shown as it will be taken. */
static void what_memory_means_is_shown(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *memory;
    } cases[] = {
        {"/machine={\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"}", "book"},
        {"/machine={\"chip\": \"v5p-128\", \"profile\": \"measured\"}", "book"},
        {"/machine={\"chip\": \"h100-sxm\"}", "book"},
        {"/machine={\"chip\": \"h100-sxm\", \"profile\": \"measured\"}", "framework"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = NULL, *again = NULL;
        assert_true(is_read(base, cases[i].machine, &text));
        assert_string_equal(text_of(value_at(parsed(text, NULL), "workload/memory")),
                            cases[i].memory);
        assert_true(is_read(text, NULL, &again));
        assert_string_equal(again, text);
    }
}

/* Which a step can go by is known where it is lowered; what no collective has, before. */
static void algorithms_are_names_that_a_collective_has(void **state)
{
    (void)state;
    static const char *const known[] = {"auto", "hierarchical", "ring", "flat-bruck",
                                        "ring+direct"};
    static const char *const unknown[] = {"rign", "flat-rign", "ring+rign",      "ring+",
                                          "",     "flat-",     "ring+flat-ring", "scatter-gather"};
    struct scenario scenario = {.version = 1};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        scenario.workload.algorithm = algorithm_read(known[i]);
        case_ok(scenario_algorithm_check(&scenario, &error));
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        scenario.workload.algorithm = algorithm_read(unknown[i]);
        case_refused(scenario_algorithm_check(&scenario, &case_error), STATUS_NOT_FOUND,
                     "/run/algorithm", i == 0 ? "the nearest is \"ring\"" : "no algorithm");
    }
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
    "1.0",
    "64.0",
    "3e0",
    "-0.0",
    "1.5e0",
    "9223372036854775808",
    "18446744073709551616.0",
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
                                         "machine/hbm_gib",
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

static void schema_and_reader_agree_about_models_in_the_scenario(void **state)
{
    (void)state;
    static const struct {
        const char *setting;
        bool good;
    } cases[] = {
        {"/workload/model={\"kind\": \"mlp\", \"D\": 8, \"F\": 8, \"layers\": 4}", true},
        {"/workload/model={\"kind\": \"mlp\", \"D\": 8, \"F\": 8, \"layers\": 0}", false},
        {"/workload/model={\"kind\": \"mlp\", \"D\": 8, \"layers\": 4}", false},
        {"/workload/model={\"kind\": \"mpl\", \"D\": 8, \"F\": 8, \"layers\": 4}", false},
        {"/workload/model={\"kind\": \"mlp\", \"D\": 8, \"F\": 8, \"layers\": 4, \"N\": 2}", false},
        {"/workload/model={\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": "
         "2, "
         "\"n_positions\": 64, \"vocab_size\": 512}",
         true},
        {"/workload/model={\"model_type\": 2}", false},
        {"/workload/model={}", false},
        {"/workload/model=7", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(is_valid(parsed(base, cases[i].setting), schema()), cases[i].good);
        assert_int_equal(is_read(base, cases[i].setting, NULL), cases[i].good);
    }
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
    json_write_key(&writer, key);
    json_write_value(&writer, preset);
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

/* One file after the other, with an empty line between. */
static const char *files_text(const char *const *paths)
{
    static char text[1 << 17];
    size_t size = 0;
    for (; *paths != NULL; paths++) {
        FILE *file = fopen(*paths, "rb");
        assert_non_null(file);
        size += fread(text + size, 1, sizeof text - 2 - size, file);
        text[size++] = '\n';
        assert_int_equal(fclose(file), 0);
    }
    assert_true(size < sizeof text - 2);
    text[size] = '\0';
    return text;
}

static void tables_of_the_pages_are_those_of_the_rows(void **state)
{
    (void)state;
    static const char *const pages[] = {"docs/scenario.md", "docs/machine.md", NULL};
    struct strbuf tables = {0};
    scenario_tables(&tables);
    const char *const page = files_text(pages);
    unsigned rows = 0;
    for (char *table = strstr(tables.bytes, "## "), *next = NULL; table != NULL; table = next) {
        next = strstr(table + 1, "\n\n##");
        if (next != NULL) next++;         /* The line that is empty. */
        if (next != NULL) *next++ = '\0'; /* The table keeps its own line ends. */
        const char *const at = strstr(page, table);
        if (at == NULL)
            fail_msg(
                "`podsim show schema --format markdown` prints another table than the pages:\n%s",
                table);
        char const after = at[strlen(table)];
        assert_true(after == '\0' || after == '\n');
        for (const char *line = table; (line = strchr(line, '\n')) != NULL; line++) rows++;
    }
    assert_true(rows > 150);
    strbuf_free(&tables);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(schema_is_valid),
        cmocka_unit_test(shipped_scenarios_are_valid),
        cmocka_unit_test(descriptions_are_plain_text),
        cmocka_unit_test(descriptions_stand_alone),
        cmocka_unit_test(what_is_shown_is_valid),
        cmocka_unit_test(every_default_is_shown),
        cmocka_unit_test(what_memory_means_is_shown),
        cmocka_unit_test(algorithms_are_names_that_a_collective_has),
        cmocka_unit_test(schema_and_reader_agree),
        cmocka_unit_test(schema_and_reader_agree_about_models_in_the_scenario),
        cmocka_unit_test(defaults_are_those_of_the_reader),
        cmocka_unit_test(tables_of_the_pages_are_those_of_the_rows),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
