/*
 * scenario_case.h: a scenario with the keys that are needed, and what was read last.
 */
#ifndef TESTS_UNIT_SCENARIO_CASE_H
#define TESTS_UNIT_SCENARIO_CASE_H

#include <string.h>

#include "sim/scenario/scenario.h"
#include "tests/support/case.h"

static const char minimal[] =
    "{\"podsim\": 1, \"title\": \"t\", \"machine\": {\"chip\": \"tpu-v5p\", \"shape\": \"4x4x4\"},"
    "\"mesh\": {\"fsdp\": [\"x\", \"y\"], \"tp\": [\"z\"]},"
    "\"workload\": {\"kind\": \"train_step\", \"model\": \"llama-2-13b\","
    "\"batch_tokens\": 1048576, \"sequence_length\": 4096}}";

static struct error error;
static struct scenario scenario;

static enum status read_with(const char *text, const struct scenario_setting *settings,
                             uint32_t setting_count)
{
    memset(&error, 0, sizeof error);
    memset(&scenario, 0, sizeof scenario);
    return scenario_read_text(case_arena, "s.json", text, strlen(text), settings, setting_count,
                              &scenario, &error);
}

#endif
