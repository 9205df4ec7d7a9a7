#include "tests/support/json_schema.h"

#include <math.h>
#include <regex.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"

struct json *json_schema_text(const char *text, const char *setting)
{
    struct json *json = NULL;
    case_ok(json_read_text(case_arena, "text", text, strlen(text), &json, &case_error));
    if (setting != NULL && json_set(json, setting, &case_error) != STATUS_OK) return NULL;
    return json;
}

struct json *json_schema_of_scenarios(void)
{
    static struct json *rules;
    struct strbuf text = {0};
    if (rules != NULL) return rules;
    scenario_schema(&text);
    rules = json_schema_text(text.bytes, NULL);
    strbuf_free(&text);
    return rules;
}

static const char *text_of(struct json *json)
{
    const char *text = NULL;
    case_ok(json_as_string(json, &text, &case_error));
    return text;
}

static double number_of(struct json *json)
{
    double number = 0;
    case_ok(json_as_real(json, -1e300, 1e300, &number, &case_error));
    return number;
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
    /* "Any number with a zero fractional part" (JSON Schema validation 2020-12, 6.1.1). */
    if (strcmp(type, "integer") == 0 && json_kind(value) == JSON_REAL)
        is = number_of(value) == floor(number_of(value));
    assert_true(known);
    return is;
}

static bool is_number(struct json *value)
{
    return json_kind(value) == JSON_INTEGER || json_kind(value) == JSON_REAL;
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

static bool all_are_there(struct json *value, struct json *names)
{
    for (uint32_t i = 0; names != NULL && i < json_count(names); i++)
        if (json_take(value, text_of(json_at(names, i))) == NULL) return false;
    return true;
}

static bool members_hold(struct json *value, struct json *rules)
{
    struct json *properties = json_take(rules, "properties");
    struct json *others = json_take(rules, "additionalProperties");
    struct json *dependents = json_take(rules, "dependentRequired");
    if (!all_are_there(value, json_take(rules, "required"))) return false;
    for (uint32_t i = 0; json_key_at(value, i) != NULL; i++) {
        const char *const key = json_key_at(value, i);
        struct json *rule = properties == NULL ? NULL : json_take(properties, key);
        bool any = false;
        if (rule == NULL && json_kind(others) == JSON_OBJECT) rule = others;
        if (rule == NULL && json_kind(others) == JSON_BOOLEAN)
            case_ok(json_as_boolean(others, &any, &case_error));
        if (any) continue;
        if (rule == NULL || !json_schema_holds(json_take(value, key), rule)) return false;
        if (dependents != NULL && !all_are_there(value, json_take(dependents, key))) return false;
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
        if (!json_schema_holds(json_at(array, i), json_take(rules, "items"))) return false;
    return true;
}

/* A word of JSON Schema that the validator does not have fails the test. */
static void words_check(struct json *rules)
{
    static const char *const words[] = {
        "$schema", "title",    "description", "default",  "type",       "additionalProperties",
        "enum",    "pattern",  "minimum",     "required", "properties", "dependentRequired",
        "items",   "minItems", "maxItems",    "maximum",  "minLength",  "anyOf",
        "$ref",    "$defs"};
    for (uint32_t i = 0; json_key_at(rules, i) != NULL; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            known |= strcmp(words[k], json_key_at(rules, i)) == 0;
        if (!known) fail_msg("the validator does not know %s", json_key_at(rules, i));
    }
}

/* Lists of strings; others are of numbers or rules. */
static void unique_check(struct json *names)
{
    for (uint32_t i = 0; names != NULL && i < json_count(names); i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(text_of(json_at(names, i)), text_of(json_at(names, k))) == 0)
                fail_msg("%s is listed twice", text_of(json_at(names, i)));
}

static void within_check(struct json *rules)
{
    static const char *const named[] = {"properties", "$defs"};
    static const char *const single[] = {"items", "additionalProperties"};
    struct json *choices = json_take(rules, "anyOf");
    for (size_t n = 0; n < sizeof named / sizeof *named; n++) {
        struct json *members = json_take(rules, named[n]);
        for (uint32_t i = 0; members != NULL && json_key_at(members, i) != NULL; i++)
            json_schema_check(json_take(members, json_key_at(members, i)));
    }
    for (size_t n = 0; n < sizeof single / sizeof *single; n++) {
        struct json *member = json_take(rules, single[n]);
        if (member != NULL && json_kind(member) == JSON_OBJECT) json_schema_check(member);
    }
    for (uint32_t i = 0; choices != NULL && i < json_count(choices); i++)
        json_schema_check(json_at(choices, i));
}

void json_schema_check(struct json *rules)
{
    struct json *dependents = json_take(rules, "dependentRequired");
    struct json *type = json_take(rules, "type");
    words_check(rules);
    unique_check(json_take(rules, "required"));
    unique_check(json_take(rules, "enum"));
    if (type != NULL && json_kind(type) == JSON_ARRAY) unique_check(type);
    for (uint32_t i = 0; dependents != NULL && json_key_at(dependents, i) != NULL; i++)
        unique_check(json_take(dependents, json_key_at(dependents, i)));
    within_check(rules);
}

static bool is_typed(struct json *value, struct json *type)
{
    if (type == NULL) return true;
    if (json_kind(type) == JSON_STRING) return is_of_type(value, text_of(type));
    for (uint32_t i = 0; i < json_count(type); i++)
        if (is_of_type(value, text_of(json_at(type, i)))) return true;
    return false;
}

/* "#/$defs/tpu" */
static struct json *referred(struct json *reference)
{
    static const char before[] = "#/$defs/";
    const char *const text = text_of(reference);
    assert_memory_equal(text, before, sizeof before - 1);
    struct json *rules =
        json_take(json_take(json_schema_of_scenarios(), "$defs"), text + sizeof before - 1);
    assert_non_null(rules);
    return rules;
}

static bool is_any_of(struct json *value, struct json *choices)
{
    for (uint32_t i = 0; i < json_count(choices); i++)
        if (json_schema_holds(value, json_at(choices, i))) return true;
    return false;
}

bool json_schema_holds(struct json *value, struct json *rules)
{
    struct json *member = NULL;
    bool const is_text = json_kind(value) == JSON_STRING;
    words_check(rules);
    if ((member = json_take(rules, "$ref")) != NULL)
        return json_schema_holds(value, referred(member));
    if ((member = json_take(rules, "anyOf")) != NULL) return is_any_of(value, member);
    if ((member = json_take(rules, "minLength")) != NULL && is_text &&
        (double)strlen(text_of(value)) < number_of(member))
        return false;
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
