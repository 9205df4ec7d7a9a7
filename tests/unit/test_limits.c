/*
 * Limits of what is read are met exactly: the last value is taken, the one behind it is refused at
 * its place. Each row sets one key of a scenario to both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/machine/chip.h"
#include "sim/machine/machine.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"

enum { SETTING_BYTES = 256 };

/* A grid with a bare MLP, and slices of it. */
static const char grid[] =
    "{\"podsim\":1,\"machine\":{\"chip\":\"tpu-v5p\",\"shape\":\"4x4x4\"},\"workload\":"
    "{\"kind\":\"train_step\",\"model\":{\"kind\":\"mlp\",\"D\":64,\"F\":64,\"layers\":2},"
    "\"batch_tokens\":4096}}";
static const char any_shape[] =
    "{\"podsim\":1,\"machine\":{\"chip\":\"tpu-v5p\",\"shape\":\"4x4x4\",\"unrealisable\":true},"
    "\"workload\":{\"kind\":\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":4096,"
    "\"sequence_length\":4096}}";
static const char slices[] =
    "{\"podsim\":1,\"machine\":{\"chip\":\"tpu-v5e\",\"shape\":\"16x16\",\"slices\":2},"
    "\"workload\":{\"kind\":\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":4096,"
    "\"sequence_length\":4096}}";
/* Nodes with experts. */
static const char nodes[] =
    "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":4},\"workload\":{\"kind\":"
    "\"train_step\",\"model\":\"mixtral-8x7b\",\"batch_tokens\":4096,\"sequence_length\":4096}}";
static const char node[] =
    "{\"podsim\":1,\"machine\":{\"chip\":\"gb200-nvl72\"},\"workload\":{\"kind\":"
    "\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":4096,\"sequence_length\":4096}}";
static const char pair[] =
    "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\",\"nodes\":2,\"gpus\":1},\"workload\":{"
    "\"kind\":"
    "\"train_step\",\"model\":\"llama-3-8b\",\"batch_tokens\":4096,\"sequence_length\":4096}}";

struct limit {
    const char *base, *key, *last, *beyond;
    const char *where; /* NULL: the key. */
};

static const struct limit limits[] = {
    {grid, "/podsim", "1", "2", NULL},
    {grid, "/podsim", "1", "0", NULL},
    {grid, "/workload/zero", "3", "4", NULL},
    {grid, "/workload/zero", "0", "-1", NULL},
    {grid, "/workload/accumulate", "65536", "65537", NULL},
    {grid, "/workload/accumulate", "1", "0", NULL},
    {grid, "/workload/batch_tokens", "17179869184", "17179869185", NULL},
    {grid, "/workload/batch_tokens", "1", "0", NULL},
    {grid, "/workload/sequence_length", "17179869184", "17179869185", NULL},
    {grid, "/workload/sequence_length", "1", "0", NULL},
    {grid, "/workload/model/D", "1048576", "1048577", NULL},
    {grid, "/workload/model/D", "1", "0", NULL},
    {grid, "/workload/model/F", "1048576", "1048577", NULL},
    {grid, "/workload/model/layers", "16384", "16385", NULL},
    {grid, "/workload/model/layers", "1", "0", NULL},
    {grid, "/workload/model/matrices", "3", "4", NULL},
    {grid, "/workload/model/matrices", "2", "1", NULL},
    {nodes, "/workload/routing_skew", "1", "1.001", NULL},
    {nodes, "/workload/routing_skew", "0.001", "0.0009", NULL},
    {nodes, "/workload/routing_skew", "0", "-0.001", NULL},
    {nodes, "/workload/capacity_factor", "4000", "4000.5", NULL},
    {nodes, "/workload/capacity_factor", "0.001", "0.0009", NULL},
    {grid, "/run/prefetch_layers", "1024", "1025", NULL},
    {grid, "/run/prefetch_layers", "0", "-1", NULL},
    {grid, "/run/steps", "64", "65", NULL},
    {grid, "/run/steps", "1", "0", NULL},
    {grid, "/run/seed", "0", "-1", NULL},
    {grid, "/run/seed", "9223372036854775807", "9223372036854775808", NULL},
    {grid, "/machine/clock", "1", "1.001", NULL},
    {grid, "/machine/clock", "0.01", "0.0099", NULL},
    {any_shape, "/machine/shape", "\"1048576x1x1\"", "\"1048577x1x1\"", NULL},
    {any_shape, "/machine/shape", "\"1024x1024x1\"", "\"1024x1024x2\"", NULL},
    {any_shape, "/machine/shape", "\"1x1x1\"", "\"1x0x1\"", NULL},
    {any_shape, "/machine/shape", "\"4x4x4\"", "\"4x4x4x1\"", NULL},
    {any_shape, "/machine/wrap", "{\"x\":true}", "{\"w\":true}", "/machine/wrap/w"},
    {grid, "/machine",
     "{\"chip\":\"tpu-v5p\",\"shape\":\"3x4x4\",\"unrealisable\":true,\"wrap\":{\"x\":true}}",
     "{\"chip\":\"tpu-v5p\",\"shape\":\"2x4x4\",\"unrealisable\":true,\"wrap\":{\"x\":true}}",
     "/machine/wrap/x"},
    {slices, "/machine/slices", "4096", "4097", NULL},
    {slices, "/machine/slices", "1", "0", NULL},
    {nodes, "/machine/nodes", "1", "0", NULL},
    {node, "/machine/gpus", "576", "577", NULL},
    {node, "/machine/gpus", "1", "0", NULL},
    {nodes, "/machine/network/switch_ports", "65536", "65537", NULL},
    {pair, "/machine/network/switch_ports", "4", "3", NULL},
    {nodes, "/machine/network/node_nics", "1", "0", NULL},
    {nodes, "/machine/network/nic_rate", "\"1PB/s\"", "\"1.001PB/s\"", NULL},
    {nodes, "/machine/network/nic_rate", "\"1MB/s\"", "\"999999B/s\"", NULL},
    {nodes, "/machine/network/cable_latency", "\"1s\"", "\"1.001s\"", NULL},
    {nodes, "/machine/network/cable_latency", "\"1ps\"", "\"0ps\"", NULL},
    {nodes, "/machine/network/switch_latency", "\"1s\"", "\"1.001s\"", NULL},
    {nodes, "/machine/network/nvlink/latency", "\"1s\"", "\"1.001s\"", NULL},
    {nodes, "/machine/network/leaf/oversubscription", "1", "0.999", NULL},
    {grid, "/machine/links", "[{\"from\":[0,0,0],\"to\":[1,0,0],\"rate\":\"1PB/s\"}]",
     "[{\"from\":[0,0,0],\"to\":[1,0,0],\"rate\":\"1.001PB/s\"}]", "/machine/links/0/rate"},
    {grid, "/machine/links", "[{\"from\":[0,0,0],\"to\":[1,0,0],\"rate\":\"1B/s\"}]",
     "[{\"from\":[0,0,0],\"to\":[1,0,0],\"rate\":\"0B/s\"}]", "/machine/links/0/rate"},
    {grid, "/machine/links", "[{\"from\":[0,0,0],\"to\":[1,0,0],\"latency\":\"1s\"}]",
     "[{\"from\":[0,0,0],\"to\":[1,0,0],\"latency\":\"1.001s\"}]", "/machine/links/0/latency"},
    {grid, "/machine/links", "[{\"from\":[0,0,0],\"to\":[1,0,0],\"latency\":\"1ps\"}]",
     "[{\"from\":[0,0,0],\"to\":[1,0,0],\"latency\":\"0ps\"}]", "/machine/links/0/latency"},
    {grid, "/machine/links", "[{\"from\":[2,0,0],\"to\":[3,0,0],\"latency\":\"1us\"}]",
     "[{\"from\":[3,0,0],\"to\":[4,0,0],\"latency\":\"1us\"}]", "/machine/links/0/to"},
    {grid, "/machine/chips", "[{\"at\":[3,0,0],\"math\":100}]", "[{\"at\":[3,0,0],\"math\":100.1}]",
     "/machine/chips/0/math"},
    {grid, "/machine/chips", "[{\"at\":[0,0,0],\"hbm\":0.000001}]",
     "[{\"at\":[0,0,0],\"hbm\":0.0000009}]", "/machine/chips/0/hbm"},
    {grid, "/machine/chips", "[{\"at\":[0,3,0],\"hbm\":1}]", "[{\"at\":[0,4,0],\"hbm\":1}]",
     "/machine/chips/0/at"},
    {slices, "/mesh/fsdp", "[\"x\",\"y\",\"slice\"]", "[]", NULL},
    {slices, "/mesh", "{\"fsdp\":[\"x:2\",\"x:2\",\"x:2\",\"x:2\"]}",
     "{\"fsdp\":[\"x:2\",\"x:2\",\"x:2\",\"x:2\",\"y\"]}", "/mesh/fsdp"},
};

/* Whose last value does not fit the rest of the machine. */
static const struct limit alone[] = {
    {nodes, "/machine/nodes", "131072", "131073", NULL},
    {nodes, "/machine/network/node_nics", "4096", "4097", NULL},
    {nodes, "/machine/network/leaf/oversubscription", "1000", "1000.5", NULL},
};

/* Through the reader and the machine. */
static enum status build(const char *base, const char *const *settings, uint32_t setting_count,
                         struct error *reterr)
{
    struct scenario scenario;
    struct machine machine;
    struct scenario_setting given[2];
    *reterr = (struct error){.status = STATUS_OK};
    for (uint32_t i = 0; i < setting_count; i++)
        given[i] = (struct scenario_setting){.text = settings[i]};
    STATUS_TRY(scenario_read_text(case_arena, "s.json", base, strlen(base), given, setting_count,
                                  &scenario, reterr));
    return machine_build(case_arena, &scenario.machine, &machine, reterr);
}

static bool is_of_limit(const char *message)
{
    return strstr(message, "below the minimum") != NULL ||
           strstr(message, "above the maximum") != NULL ||
           strstr(message, "more than the limit") != NULL ||
           strstr(message, "must be between") != NULL;
}

/* `fits`: with its last value the scenario is as good as before; else that may not fit the rest,
 * which is said in other words than those of the limit. */
static void check(const char *base, const char *first, bool fits, const struct limit *limit)
{
    const char *where = limit->where == NULL ? limit->key : limit->where;
    for (uint32_t beyond = 0; beyond < 2; beyond++) {
        char text[SETTING_BYTES];
        const char *const settings[] = {first == NULL ? text : first, text};
        struct error error;
        (void)snprintf(text, sizeof text, "%s=%s", limit->key,
                       beyond == 1 ? limit->beyond : limit->last);
        enum status const status = build(base, settings, first == NULL ? 1 : 2, &error);
        bool const there = status != STATUS_OK && strcmp(error.where, where) == 0 &&
                           (fits || is_of_limit(error.message));
        bool const elsewhere = status != STATUS_OK && !there;
        if (there != (beyond == 1) || (fits && elsewhere))
            fail_msg("%s: %s: %s", text, status == STATUS_OK ? "taken" : error.where,
                     status == STATUS_OK ? "" : error.message);
    }
}

static void the_last_value_is_taken_and_no_more(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof limits / sizeof *limits; i++)
        check(limits[i].base, NULL, true, &limits[i]);
    for (uint32_t i = 0; i < sizeof alone / sizeof *alone; i++)
        check(alone[i].base, NULL, false, &alone[i]);
}

/* A chip that the scenario holds: whole numbers, and amounts. */
static void numbers_of_a_chip_have_limits(void **state)
{
    (void)state;
    static const struct limit of_gpus[] = {
        {NULL, "sm_count", "4096", "4097", NULL},
        {NULL, "sm_count", "1", "0", NULL},
        {NULL, "tensor_core_count", "65536", "65537", NULL},
        {NULL, "tile_inner", "4096", "4097", NULL},
        {NULL, "tile_columns", "4096", "4097", NULL},
        {NULL, "host_gpus", "64", "65", NULL},
        {NULL, "gpu_nics", "64", "65", NULL},
        {NULL, "leaf_rails", "64", "65", NULL},
        {NULL, "node_gpus", "576", "577", NULL},
        {NULL, "nvlink_generation", "16", "17", NULL},
        {NULL, "nvlink_links", "256", "257", NULL},
        {NULL, "nvswitch_count", "1024", "1025", NULL},
        {NULL, "nvswitch_ports", "4096", "4097", NULL},
        {NULL, "nvswitch_ports", "2", "1", NULL},
        {NULL, "switch_ports", "65536", "65537", NULL},
        {NULL, "switch_ports", "4", "3", NULL},
        {NULL, "hbm_capacity", "\"1024TiB\"", "\"1025TiB\"", NULL},
        {NULL, "hbm_capacity", "\"1KiB\"", "\"1023B\"", NULL},
        {NULL, "hbm_rate", "\"1PB/s\"", "\"1001TB/s\"", NULL},
        {NULL, "hbm_rate", "\"1MB/s\"", "\"999999B/s\"", NULL},
        {NULL, "vector_rate", "\"1000PFLOP/s\"", "\"1001PFLOP/s\"", NULL},
        {NULL, "vector_rate", "\"1GFLOP/s\"", "\"999MFLOP/s\"", NULL},
        {NULL, "nvlink_latency", "\"1s\"", "\"1.001s\"", NULL},
        {NULL, "nvlink_latency", "\"1ps\"", "\"0ps\"", NULL},
        {NULL, "profiles/ideal/math_ppm", "1000000", "1000001", NULL},
        {NULL, "profiles/ideal/math_ppm", "1", "0", NULL},
    };
    static const struct limit of_tpus[] = {
        {NULL, "mxu_rows", "4096", "4097", NULL},
        {NULL, "mxu_columns", "4096", "4097", NULL},
        {NULL, "mxu_count", "4096", "4097", NULL},
        {NULL, "core_count", "4096", "4097", NULL},
        {NULL, "wrap_length", "4096", "4097", NULL},
        {NULL, "name_units", "16", "17", NULL},
        {NULL, "host_shape", "\"4x4x4\"", "\"4x4x5\"", NULL},
    };
    static const struct {
        const char *base, *chip;
        const struct limit *limit;
        uint32_t count;
    } kinds[] = {
        {node, "h100-sxm", of_gpus, sizeof of_gpus / sizeof *of_gpus},
        {grid, "tpu-v5p", of_tpus, sizeof of_tpus / sizeof *of_tpus},
    };
    for (uint32_t k = 0; k < 2; k++) {
        struct strbuf chip = {0};
        strbuf_add(&chip, "/machine/chip=%s", case_chip_json(kinds[k].chip));
        for (uint32_t i = 0; i < kinds[k].count; i++) {
            struct limit limit = kinds[k].limit[i];
            char key[SETTING_BYTES];
            (void)snprintf(key, sizeof key, "/machine/chip/%s/value", limit.key);
            limit.key = key;
            check(kinds[k].base, chip.bytes, false, &limit);
        }
        strbuf_free(&chip);
    }
}

/* Lists of overridden links and chips, as long as they may be and by one longer. */
static void lists_have_limits(void **state)
{
    (void)state;
    static const struct {
        const char *key, *element;
    } lists[] = {
        {"/machine/links", "{\"from\":[%u,%u,0],\"to\":[%u,%u,1],\"latency\":\"1us\"}"},
        {"/machine/chips", "{\"at\":[%u,%u,0],\"math\":0.5}"},
    };
    for (uint32_t l = 0; l < 2; l++)
        for (uint32_t more = 0; more < 2; more++) {
            struct strbuf text = {0};
            struct error error;
            static const char shape[] = "/machine/shape=\"128x64x4\"";
            strbuf_add(&text, "%s=[", lists[l].key);
            for (uint32_t i = 0; i < MACHINE_OVERRIDES_MAX + more; i++) {
                char element[128];
                (void)snprintf(element, sizeof element, lists[l].element, i % 128, i / 128, i % 128,
                               i / 128);
                strbuf_add(&text, "%s%s", i == 0 ? "" : ",", element);
            }
            strbuf_add(&text, "]");
            const char *const settings[] = {shape, text.bytes};
            enum status const status = build(any_shape, settings, 2, &error);
            if (more == 0 && status != STATUS_OK) fail_msg("%s: %s", error.where, error.message);
            if (more == 1) {
                assert_int_equal(status, STATUS_INVALID);
                assert_string_equal(error.where, lists[l].key);
                assert_string_equal(error.message, "has 4097 elements; the maximum is 4096");
            }
            strbuf_free(&text);
        }
}

/* "--machine" takes texts of up to 1,023 bytes. */
static void a_machine_on_a_command_line_has_a_longest_text(void **state)
{
    (void)state;
    static const char begin[] = "tpu-v5p:4x4x4";
    for (uint32_t bytes = 1023; bytes <= 1024; bytes++) {
        char text[1025];
        struct machine_plan plan;
        memset(text, '0', bytes); /* Of a number of slices. */
        (void)memcpy(text, begin, sizeof begin - 1);
        (void)memcpy(text + sizeof begin - 1, ",slices=", 8);
        text[bytes - 1] = '2';
        text[bytes] = '\0';
        enum status const status =
            scenario_machine_parse(case_arena, text, "--machine", &plan, &case_error);
        if (strstr(status == STATUS_OK ? "" : case_error.message, "1023") != NULL)
            assert_int_equal(bytes, 1024);
        else
            assert_int_equal(bytes, 1023);
        case_error = (struct error){.status = STATUS_OK};
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_value_is_taken_and_no_more),
        cmocka_unit_test(numbers_of_a_chip_have_limits),
        cmocka_unit_test(lists_have_limits),
        cmocka_unit_test(a_machine_on_a_command_line_has_a_longest_text),
    };
    return cmocka_run_group_tests_name("limits", tests, case_arena_up, case_arena_down);
}
