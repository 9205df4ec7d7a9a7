/*
 * config_case.h: a model out of the text of a config.json that has to be right.
 */
#ifndef TESTS_UNIT_CONFIG_CASE_H
#define TESTS_UNIT_CONFIG_CASE_H

#include <string.h>

#include "sim/base/json.h"
#include "sim/model/model_read.h"
#include "tests/support/case.h"

static inline struct model config_model(const char *config)
{
    struct json *document = NULL;
    struct model model;
    case_ok(json_read_text(case_arena, "text", config, strlen(config), &document, &case_error));
    case_ok(model_read_config(case_arena, document, "published", &model, &case_error));
    json_free(document);
    return model;
}

#endif
