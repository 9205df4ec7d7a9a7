/* Every default is visible: in the schema, and in what `podsim show scenario` prints. */
#include <stdio.h>
#include <string.h>

#include "sim/base/embed.h"
#include "sim/base/json.h"
#include "sim/machine/machine.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"
#include "tests/support/json_schema.h"

extern const struct embed_file embed_scenarios[];
extern const unsigned embed_scenarios_count;

static struct error error;

static bool names(struct json *list, const char *name)
{
    for (uint32_t i = 0; i < json_count(list); i++) {
        const char *text = NULL;
        case_ok(json_as_string(json_at(list, i), &text, &error));
        if (strcmp(text, name) == 0) return true;
    }
    return false;
}

/* Whether another key asks for this one. */
static bool is_needed_with_another(struct json *rules, const char *key)
{
    struct json *const dependent = json_take(rules, "dependentRequired");
    for (uint32_t i = 0; dependent != NULL && json_key_at(dependent, i) != NULL; i++)
        if (names(json_take(dependent, json_key_at(dependent, i)), key)) return true;
    return false;
}

static bool says_default(struct json *rules)
{
    const char *text = NULL;
    if (json_take(rules, "default") != NULL) return true;
    case_ok(json_as_string(json_take(rules, "description"), &text, &error));
    const char *const rule = strstr(text, "Default: ");
    return rule != NULL && rule[strlen("Default: ")] != '\0';
}

static unsigned walk(struct json *rules, const char *path);

static unsigned walk_members(struct json *members, const char *path)
{
    unsigned seen = 0;
    for (uint32_t i = 0; members != NULL && json_key_at(members, i) != NULL; i++) {
        char inner[256];
        (void)snprintf(inner, sizeof inner, "%s/%s", path, json_key_at(members, i));
        seen += walk(json_take(members, json_key_at(members, i)), inner);
    }
    return seen;
}

/* The value of a key that comes with its source has no default of its own. */
static bool is_sourced(struct json *properties)
{
    return json_count(properties) == 2 && json_take(properties, "value") != NULL &&
           json_take(properties, "source") != NULL;
}

/* Returns how many keys there are. */
static unsigned walk(struct json *rules, const char *path)
{
    struct json *const properties = json_take(rules, "properties");
    struct json *const kinds = json_take(rules, "anyOf"), *const items = json_take(rules, "items");
    unsigned seen = walk_members(json_take(rules, "$defs"), path);
    if (properties != NULL && !is_sourced(properties)) {
        for (uint32_t i = 0; json_key_at(properties, i) != NULL; i++) {
            const char *const key = json_key_at(properties, i);
            if (!names(json_take(rules, "required"), key) && !is_needed_with_another(rules, key) &&
                !says_default(json_take(properties, key)))
                fail_msg("%s/%s is not required and says no default", path, key);
            seen++;
        }
        seen += walk_members(properties, path);
    }
    for (uint32_t i = 0; kinds != NULL && i < json_count(kinds); i++)
        seen += walk(json_at(kinds, i), path);
    return items == NULL ? seen : seen + walk(items, path);
}

static void every_key_is_needed_or_says_its_default(void **state)
{
    (void)state;
    unsigned const seen = walk(json_schema_of_scenarios(), "");
    if (seen < 200) fail_msg("only %u keys", seen);
}

static const char *shown(const char *text, struct scenario *ret_scenario)
{
    case_ok(
        scenario_read_text(case_arena, "text", text, strlen(text), NULL, 0, ret_scenario, &error));
    return scenario_text(case_arena, ret_scenario);
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("%s is not in %s", part, text);
}

/* What the chip, the network and the schedule say; 50 GB/s and 8 NICs of H100 are of DGX H100. */
static void defaults_of_chip_and_schedule_are_shown(void **state)
{
    struct scenario scenario;
    (void)state;
    const char *text = shown(
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 64, \"network\": "
        "{\"policy\": \"hash\", \"leaf\": {\"policy\": \"rail\"}}}, \"mesh\": {\"pp\": [\"gpu\"], "
        "\"fsdp\": [\"node\"]}, \"workload\": {\"kind\": \"train_step\", \"model\": "
        "\"llama-3-405b\", \"batch_tokens\": 1048576, \"sequence_length\": 4096, \"accumulate\": "
        "4}}",
        &scenario);
    has(text, "\"gpus\": 8");
    has(text, "\"cable_latency\": \"150ns\", \"switch_latency\": \"150ns\", \"switch_ports\": 64, "
              "\"nic_rate\": \"50GB/s\", \"node_nics\": 8");
    has(text, "\"latency\": \"300ns\"");
    has(text,
        "\"leaf\": {\"policy\": \"rail\", \"oversubscription\": 1.0}, \"spine\": {\"policy\": "
        "\"hash\", \"oversubscription\": 1.0}");
    has(text, "\"layout\": \"Et*15|(t*16|)*6t*15L\"");
    text = shown("{\"podsim\": 1, \"machine\": {\"chip\": \"v5p-128\"}, \"mesh\": {\"fsdp\": "
                 "[\"x\", \"y\", \"z\"]}, \"workload\": {\"kind\": \"train_step\", \"model\": "
                 "\"llama-3-8b\", \"batch_tokens\": 1048576, \"sequence_length\": 4096}}",
                 &scenario);
    has(text, "\"slices\": 1");
}

static void same_levels(const struct machine *one, const struct machine *other, const char *name)
{
    bool same = one->level_count == other->level_count && one->chip_count == other->chip_count &&
                one->chip.dcn_bytes_per_s == other->chip.dcn_bytes_per_s;
    for (uint32_t l = 0; same && l < one->level_count; l++) {
        same = one->level[l].tier_count == other->level[l].tier_count;
        for (uint32_t t = 0; same && t < one->level[l].tier_count; t++) {
            const struct level_tier *a = &one->level[l].tier[t], *b = &other->level[l].tier[t];
            same = a->policy == b->policy && a->latency_ps == b->latency_ps &&
                   a->switch_count == b->switch_count && a->switch_ports == b->switch_ports &&
                   a->cable_count == b->cable_count &&
                   a->cable_bytes_per_s == b->cable_bytes_per_s &&
                   a->reduce_flop_per_s == b->reduce_flop_per_s;
        }
    }
    if (!same) fail_msg("%s shows another machine", name);
}

/* With every default said, it is the same scenario. */
static void what_is_shown_reads_back_to_the_same(void **state)
{
    (void)state;
    for (unsigned i = 0; i < embed_scenarios_count; i++) {
        struct scenario scenario, again;
        struct machine machine, other;
        const char *const name = embed_scenarios[i].name;
        case_ok(scenario_read_text(case_arena, name, embed_scenarios[i].bytes,
                                   embed_scenarios[i].size_bytes, NULL, 0, &scenario, &error));
        const char *const text = scenario_text(case_arena, &scenario);
        assert_string_equal(shown(text, &again), text);
        case_ok(machine_build(case_arena, &scenario.machine, &machine, &error));
        case_ok(machine_build(case_arena, &again.machine, &other, &error));
        same_levels(&machine, &other, name);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_needed_or_says_its_default),
        cmocka_unit_test(defaults_of_chip_and_schedule_are_shown),
        cmocka_unit_test(what_is_shown_reads_back_to_the_same),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
