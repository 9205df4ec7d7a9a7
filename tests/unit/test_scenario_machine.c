/* A machine on a command line, and the network of a scenario. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/machine/machine.h"
#include "sim/scenario/scenario.h"
#include "tests/support/case.h"

static enum status parse(const char *text, struct machine_plan *ret_plan, struct error *reterr)
{
    return scenario_machine_parse(case_arena, text, "--machine", ret_plan, reterr);
}

static struct machine_plan plan_of(const char *text)
{
    struct machine_plan plan = {0};
    case_ok(parse(text, &plan, &case_error));
    return plan;
}

static void refused(const char *text, const char *where, const char *words)
{
    struct machine_plan plan;
    case_refused(parse(text, &plan, &case_error), STATUS_OK, where, words);
}

static void a_text_says_chip_shape_and_keys(void **state)
{
    (void)state;
    struct machine_plan plan = plan_of("tpu-v5e:8x16");
    assert_string_equal(plan.chip, "tpu-v5e");
    assert_string_equal(plan.shape, "8x16");
    assert_string_equal(plan.profile, "ideal");
    assert_int_equal(plan.wrap[0], -1);
    plan = plan_of("v5p-8192");
    assert_string_equal(plan.chip, "v5p-8192");
    assert_null(plan.shape);
    plan = plan_of("tpu-v5p:4x4x8,slices=2,profile=measured");
    assert_string_equal(plan.shape, "4x4x8");
    assert_string_equal(plan.profile, "measured");
    assert_int_equal(plan.slices, 2);
    plan = plan_of("tpu-v5p,shape=4x4x4");
    assert_string_equal(plan.shape, "4x4x4");
    assert_true(plan_of("tpu-v5p:4x5x4,unrealisable=true").unrealisable);
    plan = plan_of("gb200-nvl72:nodes=8,policy=hash,sharp=on,leaf.oversubscription=2,gpus=36,"
                   "spine.policy=rail,nvlink.sharp=off,switch_ports=40,switch_latency=1.5us");
    assert_null(plan.shape);
    assert_int_equal(plan.nodes, 8);
    assert_int_equal(plan.gpus, 36);
    assert_int_equal(plan.network.policy, 1 + LEVEL_HASH);
    assert_int_equal(plan.network.sharp, MACHINE_SHARP_ON);
    assert_int_equal(plan.network.nvlink_sharp, MACHINE_SHARP_OFF);
    assert_int_equal(plan.network.switch_ports, 40);
    assert_int_equal(plan.network.switch_latency_ps, 1500000);
    assert_int_equal(plan.network.tier[MACHINE_LEAF].oversubscription_ppm, 2000000);
    assert_int_equal(plan.network.tier[MACHINE_LEAF].policy, 0);
    assert_int_equal(plan.network.tier[MACHINE_SPINE].policy, 1 + LEVEL_RAIL);
    assert_int_equal(plan_of("h100-sxm").nodes, 0);
}

static void what_a_text_does_not_mean_is_refused(void **state)
{
    (void)state;
    refused("", "--machine", "begins with a chip");
    refused(":4x4", "--machine", "begins with a chip");
    refused("h100-sxm:nodse=4", "--machine", "nearest is \"nodes\"");
    /* Of a longer one 63 letters. */
    refused("h100-sxm:abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789a=4",
            "--machine",
            "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789a\" is no key");
    refused("h100-sxm:abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789ab=4",
            "--machine",
            "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789a\" is no key");
    refused("h100-sxm:leaf.oversubscripton=2", "--machine", "\"leaf.oversubscription\"");
    refused("h100-sxm:nodes=4,nodes=5", "--machine", "\"nodes\" is said twice");
    refused("tpu-v5e:8x16,shape=4x4", "--machine", "\"shape\" is said twice");
    refused("h100-sxm:nodes=4,8x8", "--machine", "not \"key=value\"");
    refused("h100-sxm:", "--machine", "not \"key=value\"");
    refused("h100-sxm:nodes=4,", "--machine", "not \"key=value\"");
    refused("h100-sxm:nodes=0", "--machine/nodes", "1");
    refused("h100-sxm:nodes=-1", "--machine/nodes", "1");
    refused("h100-sxm:nodes=many", "--machine/nodes", "");
    refused("h100-sxm:nodes=", "--machine/nodes", "");
    refused("h100-sxm:nodes=2,policy=hsah", "--machine/network/policy", "hash");
    refused("h100-sxm:nodes=2,sharp=maybe", "--machine/network/sharp", "auto");
    refused("h100-sxm:nodes=2,leaf.oversubscription=0.5", "--machine/network/leaf/oversubscription",
            "1");
    refused("h100-sxm:nodes=2,switch_latency=5", "--machine/network/switch_latency", "");
    refused("h100-sxm:nodes=2,switch_latency=0us", "--machine/network/switch_latency",
            "between 1ps and 1s");
    refused("h100\"sxm", "--machine", "no quotes");
    refused("tpu\nv5e", "--machine", "control characters");
    char long_text[2000];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    refused(long_text, "--machine", "letters");
    refused("no-such-file.json", "no-such-file.json", "");
}

static void a_file_holds_a_machine_or_a_scenario(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"chip\": \"h100-sxm\", \"nodes\": 4}",
        "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 4}, \"workload\": {}}",
    };
    for (size_t i = 0; i < 2; i++) {
        char folder[] = "/tmp/podsim-machine-XXXXXX";
        char path[sizeof folder + sizeof "/machine.json"];
        assert_non_null(mkdtemp(folder));
        (void)snprintf(path, sizeof path, "%s/machine.json", folder);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fputs(texts[i], file) >= 0, 1);
        assert_int_equal(fclose(file), 0);
        struct machine_plan const plan = plan_of(path);
        assert_string_equal(plan.chip, "h100-sxm");
        assert_int_equal(plan.nodes, 4);
        unlink(path);
        rmdir(folder);
    }
}

static void read_network(const char *network, struct scenario *ret_scenario, struct error *reterr)
{
    const char *text = arena_format(case_arena,
                                    "{\"podsim\": 1, \"machine\": {\"chip\": \"h100-sxm\", "
                                    "\"nodes\": 128, \"network\": %s}, \"workload\": {\"kind\": "
                                    "\"train_step\", \"model\": \"llama-3-8b\", \"batch_tokens\": "
                                    "4194304, \"sequence_length\": 4096}}",
                                    network);
    (void)scenario_read_text(case_arena, "test", text, strlen(text), NULL, 0, ret_scenario, reterr);
}

static void a_network_is_printed_as_it_is_read(void **state)
{
    (void)state;
    static const char *const networks[] = {
        "{}",
        "{\"policy\": \"hash\", \"sharp\": \"on\", \"cable_latency\": \"125ns\", "
        "\"switch_latency\": \"2us\", \"switch_ports\": 40, \"nvlink\": {\"policy\": \"rail\", "
        "\"sharp\": \"off\", \"latency\": \"1ps\"}, \"leaf\": {\"policy\": \"spray\", "
        "\"oversubscription\": 1.333333}, \"spine\": {\"oversubscription\": 1000}, \"core\": {}}",
    };
    for (size_t i = 0; i < 2; i++) {
        struct scenario first = {0}, again = {0};
        struct error error = {0};
        read_network(networks[i], &first, &error);
        assert_string_equal(error.message, "");
        const char *text = scenario_text(case_arena, &first);
        case_ok(scenario_read_text(case_arena, "printed", text, strlen(text), NULL, 0, &again,
                                   &case_error));
        assert_string_equal(scenario_text(case_arena, &again), text);
        assert_int_equal(again.machine.nodes, 128);
        assert_int_equal(again.machine.network.tier[0].oversubscription_ppm,
                         i == 0 ? 1000000 : 1333333);
        assert_int_equal(again.machine.network.nvlink_latency_ps, i == 0 ? 300000 : 1);
    }
    static const char *const bad[][2] = {
        {"{\"polic\": \"hash\"}", "/machine/network/polic"},
        {"{\"leaf\": {\"policy\": \"hush\"}}", "/machine/network/leaf/policy"},
        {"{\"leaf\": {\"sharp\": \"on\"}}", "/machine/network/leaf/sharp"},
        {"{\"nvlink\": []}", "/machine/network/nvlink"},
        {"[]", "/machine/network"},
        {"{\"core\": {\"oversubscription\": 1001}}", "/machine/network/core/oversubscription"},
        {"{\"switch_ports\": 65537}", "/machine/network/switch_ports"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct scenario scenario;
        struct error error = {0};
        read_network(bad[i][0], &scenario, &error);
        assert_string_equal(error.where, bad[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_says_chip_shape_and_keys),
        cmocka_unit_test(what_a_text_does_not_mean_is_refused),
        cmocka_unit_test(a_file_holds_a_machine_or_a_scenario),
        cmocka_unit_test(a_network_is_printed_as_it_is_read),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
