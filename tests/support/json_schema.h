/*
 * json_schema.h: a validator of what podsim's JSON Schema uses. A word that it does not have fails
 * the test.
 */
#ifndef TESTS_SUPPORT_JSON_SCHEMA_H
#define TESTS_SUPPORT_JSON_SCHEMA_H

#include <stdbool.h>

struct json;

/* A document, changed by "/pointer=value" where `setting` is not NULL. NULL: it cannot be. */
struct json *json_schema_text(const char *text, const char *setting);

/* What `podsim show schema` prints; it lives as long as the group's arena. */
struct json *json_schema_of_scenarios(void);

/* Fails the test unless rules, and those within them, are as the metaschema of draft 2020-12 has
 * them: known words, and in lists of names each name once. */
void json_schema_check(struct json *rules);

/* Whether a value has the form that the rules ask for. */
bool json_schema_holds(struct json *value, struct json *rules);

#endif
