/* The user's own chip, in place and as a file; the clock and the NICs that a machine gives one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/units.h"
#include "sim/kernels/kernels.h"
#include "sim/machine/chip.h"
#include "sim/machine/totals.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_parts.h"
#include "tests/support/case.h"

/* The first place of one text, filled with another. */
static const char *changed(const char *text, const char *from, const char *to)
{
    const char *place = strstr(text, from);
    assert_non_null(place);
    return arena_format(case_arena, "%.*s%s%s", (int)(place - text), text, to,
                        place + strlen(from));
}

/* A scenario with `chip` as the JSON of its chip, and more keys of its machine. */
static enum status read_with(const char *chip, const char *more, struct scenario *ret_scenario)
{
    const char *text = arena_format(
        case_arena,
        "{\"podsim\": 1, \"machine\": {\"chip\": %s, \"nodes\": 4%s}, \"mesh\": {\"fsdp\": "
        "[\"gpu\", \"node\"]}, \"workload\": {\"kind\": \"train_step\", \"model\": \"llama-3-8b\", "
        "\"batch_tokens\": 4194304, \"sequence_length\": 4096}}",
        chip, more);
    return scenario_read_text(case_arena, "test", text, strlen(text), NULL, 0, ret_scenario,
                              &case_error);
}

/* What links are called says nothing of who makes the GPU. */
static void the_file_says_who_makes_a_gpu(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *from, *to;
        enum chip_maker maker;
    } rows[] = {
        {"mi300x", "\"Infinity Fabric\"", "\"NVLink\"", CHIP_AMD},
        {"mi300x", "\"amd\"", "\"nvidia\"", CHIP_NVIDIA},
        {"h100-sxm", "\"kind\": \"gpu\"", "\"kind\": \"gpu\", \"link_name\": \"bridge\"",
         CHIP_NVIDIA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scenario scenario;
        const char *chip = changed(case_chip_json(rows[i].chip), rows[i].from, rows[i].to);
        case_ok(read_with(chip, "", &scenario));
        struct machine const machine = case_machine_built(&scenario.machine);
        assert_int_equal(machine.chip.network.maker, rows[i].maker);
    }
}

/* Rates of the data sheet make a profile ideal, and its name does not. */
static void a_profile_is_ideal_by_its_rates(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *more;
        bool is_ideal;
    } rows[] = {
        {"\"ideal\"", "\"ideal\"", "", true},
        {"\"ideal\"", "\"sheet\"", ", \"profile\": \"sheet\"", true},
        {"\"hbm_ppm\": {\"value\": 1000000", "\"hbm_ppm\": {\"value\": 900000", "", false},
        {"\"0us\"", "\"1us\"", "", false},
        {"\"ideal\"", "\"ideal\"", ", \"profile\": \"measured\"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scenario scenario;
        const char *chip = changed(case_chip_json("h100-sxm"), rows[i].from, rows[i].to);
        case_ok(read_with(chip, rows[i].more, &scenario));
        assert_int_equal(case_machine_built(&scenario.machine).chip.is_ideal, rows[i].is_ideal);
    }
}

static void a_chip_in_place_is_the_same_as_by_name(void **state)
{
    (void)state;
    struct scenario named, own, again;
    case_ok(read_with("\"h100-sxm\"", "", &named));
    case_ok(read_with(case_chip_json("h100-sxm"), "", &own));
    struct machine const a = case_machine_built(&named.machine);
    struct machine const b = case_machine_built(&own.machine);
    assert_memory_equal(&a.chip.network, &b.chip.network, sizeof a.chip.network);
    assert_memory_equal(a.chip.math_flop_per_s, b.chip.math_flop_per_s,
                        sizeof a.chip.math_flop_per_s);
    assert_int_equal(a.chip.hbm_bytes_per_s, b.chip.hbm_bytes_per_s);
    assert_int_equal(a.level_count, b.level_count);
    const char *text = scenario_text(case_arena, &own);
    case_ok(scenario_read_text(case_arena, "printed", text, strlen(text), NULL, 0, &again,
                               &case_error));
    assert_string_equal(scenario_text(case_arena, &again), text);
}

/* Built from what is read, as `podsim check` does. */
static void refused(const char *chip, const char *more, const char *where, const char *words)
{
    struct scenario scenario;
    struct machine machine;
    enum status status = read_with(chip, more, &scenario);
    if (status == STATUS_OK)
        status = machine_build(case_arena, &scenario.machine, &machine, &case_error);
    case_refused(status, STATUS_OK, where, words);
}

static void what_is_wrong_with_a_chip_is_said_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *where, *words;
    } bad[] = {
        {"3.35TB/s", "3.35TB", "/machine/chip/hbm_rate/value", "\"TB/s\""},
        {"3.35TB/s", "0B/s", "/machine/chip/hbm_rate/value", "between 1MB/s and 1PB/s"},
        {"3.35TB/s", "3.35PB/s", "/machine/chip/hbm_rate/value", "between 1MB/s and 1PB/s"},
        {"\"80GB\"", "80", "/machine/chip/hbm_capacity/value", "with its unit"},
        {"\"80GB\"", "\"80EB\"", "/machine/chip/hbm_capacity/value", "like \"80GiB\""},
        {"\"80GB\"", "\"9000TB\"", "/machine/chip/hbm_capacity/value", "1024TiB"},
        {"\"80GB\"", "\"-80GB\"", "/machine/chip/hbm_capacity/value", ""},
        {"\"80GB\"", "\"nan\"", "/machine/chip/hbm_capacity/value", ""},
        {"\"hbm_rate\"", "\"hbm_rait\"", "/machine/chip/hbm_rait", "\"hbm_rate\""},
        {"\"bf16\"", "\"bf61\"", "/machine/chip/math/bf61", "\"bf16\""},
        {"990TFLOP/s", "990TB/s", "/machine/chip/math/bf16/value", "a rate of FLOP"},
        {"990TFLOP/s", "9900PFLOP/s", "/machine/chip/math/bf16/value", "1000PFLOP/s"},
        {"\"kind\": \"gpu\"", "\"kind\": \"gpus\"", "/machine/chip/kind", "\"gpu\""},
        {"\"kind\": \"gpu\"", "\"kind\": \"gpu\", \"maker\": \"amt\"", "/machine/chip/maker",
         "\"amd\""},
        {"\"value\": 132", "\"value\": 0", "/machine/chip/sm_count/value", "minimum 1"},
        {"\"value\": 132", "\"value\": 1.5", "/machine/chip/sm_count/value",
         "1.5 is not a whole number"},
        {"\"value\": 132", "\"value\": {\"value\": 1}", "/machine/chip/sm_count/value", ""},
        {"\"nvlink_ppm\": {\"value\": 824000", "\"nvlink_ppm\": {\"value\": 0",
         "/machine/chip/profiles/measured/nvlink_ppm/value", "minimum 1"},
        {"\"nic_rate\"", "\"c2c_rate\"", "/machine/chip/gpu_nics", "without \"nic_rate\""},
        {"\"math_ppm\"", "\"math_pm\"", "/machine/chip/profiles/ideal/math_pm", "\"math_ppm\""},
        {"\"ideal\"", "\"idael\"", "/machine/profile", "\"idael\""},
        {"\"80GB\"", "\"160GB\"", "/machine/chip/profiles/measured/hbm_capacity/value",
         "81008MiB is more than 15 % apart from 160GB"},
        {"\"81008MiB\"", "\"67.9GB\"", "/machine/chip/profiles/measured/hbm_capacity/value",
         "67.9GB is more than 15 % apart from 80GB"},
    };
    const char *whole = case_chip_json("h100-sxm");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(changed(whole, bad[i].from, bad[i].to), "", bad[i].where, bad[i].words);
    refused("{\"name\": \"mine\", \"kind\": \"gpu\"}", "", "/machine/chip", "is missing");
    refused("{\"kind\": \"gpu\"}", "", "/machine/chip", "\"name\" is missing");
    refused("{\"name\": 5}", "", "/machine/chip/name", "a string");
    refused("5", "", "/machine/chip", "./my-chip.json");
    refused("[]", "", "/machine/chip", "./my-chip.json");
    refused("\"./missing.json\"", "", "/machine/chip", "no file \"./missing.json\"");
    refused("\"/tmp/\"", "", "/machine/chip", "is a folder");
}

static void a_file_is_found_beside_what_names_it(void **state)
{
    (void)state;
    char folder[] = "/tmp/podsim-chip-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *chip = arena_format(case_arena, "%s/mine.json", folder);
    const char *machine = arena_format(case_arena, "%s/machine.json", folder);
    const char *spec =
        arena_format(case_arena, "%s:nodes=2,nic_rate=25GB/s,node_nics=4,clock=0.5", chip);
    struct machine_plan plan;
    FILE *file = fopen(chip, "w");
    assert_non_null(file);
    assert_true(fputs(case_chip_json("h100-sxm"), file) >= 0);
    assert_int_equal(fclose(file), 0);
    file = fopen(machine, "w");
    assert_non_null(file);
    assert_true(fputs("{\"chip\": \"mine.json\", \"nodes\": 3}", file) >= 0);
    assert_int_equal(fclose(file), 0);
    case_ok(scenario_machine_parse(case_arena, spec, "--machine", &plan, &case_error));
    assert_string_equal(plan.chip_path, chip);
    assert_int_equal(plan.network.nic_bytes_per_s, 25000000000);
    assert_int_equal(case_machine_built(&plan).chip_count, 16);
    case_ok(scenario_machine_parse(case_arena, machine, "--machine", &plan, &case_error));
    assert_int_equal(case_machine_built(&plan).chip_count, 24);
    case_ok(scenario_machine_parse(case_arena, chip, "--machine", &plan, &case_error));
    assert_int_equal(case_machine_built(&plan).chip_count, 8);
    spec = arena_format(case_arena, "%s:nodes=2", machine);
    case_refused(scenario_machine_parse(case_arena, spec, "--machine", &plan, &case_error),
                 STATUS_INVALID, "--machine", "holds a whole machine");
    unlink(chip);
    unlink(machine);
    rmdir(folder);
}

static struct machine machine_of(const char *more)
{
    struct scenario scenario;
    case_ok(read_with("\"h100-sxm\"", more, &scenario));
    return case_machine_built(&scenario.machine);
}

static void a_clock_slows_what_computes_and_nothing_else(void **state)
{
    (void)state;
    struct chip const whole = machine_of("").chip, slow = machine_of(", \"clock\": 0.75").chip;
    assert_int_equal(slow.math_flop_per_s[FORMAT_BF16], whole.math_flop_per_s[FORMAT_BF16] / 4 * 3);
    assert_int_equal(slow.vector_flop_per_s, whole.vector_flop_per_s / 4 * 3);
    assert_int_equal(slow.math_peak_flop_per_s[FORMAT_BF16], whole.math_flop_per_s[FORMAT_BF16]);
    assert_int_equal(slow.hbm_bytes_per_s, whole.hbm_bytes_per_s);
    assert_int_equal(slow.vmem_bytes_per_s, whole.vmem_bytes_per_s);
    assert_memory_equal(&slow.network, &whole.network, sizeof slow.network);
    refused("\"h100-sxm\"", ", \"clock\": 0", "/machine/clock", "minimum");
    refused("\"h100-sxm\"", ", \"clock\": 1.01", "/machine/clock", "maximum 1");
    refused("\"h100-sxm\"", ", \"clock\": \"1GHz\"", "/machine/clock", "a number");
}

static uint64_t rate_of(const struct machine_plan *plan, enum format format)
{
    return case_machine_built(plan).chip.math_flop_per_s[format];
}

/* The keys of a machine before those of a stack, and `clock` for all formats; what is shown makes
 * the same machine again. */
static void products_in_fp8_have_a_clock_of_their_own(void **state)
{
    (void)state;
    static const char te[] = ", \"profile\": \"measured\", \"stack\": \"te\"";
    struct kernel_stack stack;
    case_ok(kernel_stack_find("te", "h100-sxm", "here", &stack, &case_error));
    uint32_t const own = stack.clock_ppm, own_fp8 = stack.clock_fp8_ppm;
    assert_true(own_fp8 != 0 && own_fp8 < own);
    const struct {
        const char *stack, *keys;
        uint32_t ppm, fp8_ppm;
    } rows[] = {
        {"", "", PPM_ONE, PPM_ONE},
        {"", ", \"clock\": 0.75", 750000, 750000},
        {"", ", \"clock_fp8\": 0.5", PPM_ONE, 500000},
        {"", ", \"clock\": 0.75, \"clock_fp8\": 0.5", 750000, 500000},
        {te, "", own, own_fp8},
        {te, ", \"clock\": 0.75", 750000, 750000},
        {te, ", \"clock_fp8\": 0.5", own, 500000},
        {te, ", \"clock_fp8\": 1", own, PPM_ONE},
    };
    struct chip const sheet = machine_of("").chip;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scenario scenario;
        const char *more = arena_format(case_arena, "%s%s", rows[i].stack, rows[i].keys);
        case_ok(read_with("\"h100-sxm\"", more, &scenario));
        struct scenario whole;
        case_ok(scenario_shown(case_arena, &scenario, &whole, &case_error));
        struct machine_plan const shown = whole.machine;
        const struct machine_plan *plans[] = {&scenario.machine, &shown};
        for (uint32_t p = 0; p < 2; p++) {
            assert_int_equal(rate_of(plans[p], FORMAT_BF16),
                             units_scale_ppm(sheet.math_flop_per_s[FORMAT_BF16], rows[i].ppm));
            assert_int_equal(rate_of(plans[p], FORMAT_FP8),
                             units_scale_ppm(sheet.math_flop_per_s[FORMAT_FP8], rows[i].fp8_ppm));
        }
        assert_int_equal(shown.clock_ppm, rows[i].ppm);
        assert_int_equal(shown.clock_fp8_ppm, rows[i].fp8_ppm);
    }
    refused("\"h100-sxm\"", ", \"clock_fp8\": 0", "/machine/clock_fp8", "minimum");
    refused("\"h100-sxm\"", ", \"clock_fp8\": 1.01", "/machine/clock_fp8", "maximum 1");
}

/* Of 700 W of an H100, 64 W do not follow the clock; its cube takes the rest. */
static void a_lower_power_slows_all_that_computes_alike(void **state)
{
    (void)state;
    static const char te[] = ", \"profile\": \"measured\", \"stack\": \"te\"";
    const struct {
        const char *power;
        uint32_t ppm;
    } rows[] = {{"700W", PPM_ONE}, {"0.7kW", PPM_ONE}, {"500W", 881745}, {"65W", 116282}};
    struct chip const sheet = machine_of("").chip, step = machine_of(te).chip;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scenario scenario, whole;
        const char *more = arena_format(case_arena, "%s, \"power\": \"%s\"", te, rows[i].power);
        case_ok(read_with("\"h100-sxm\"", more, &scenario));
        case_ok(scenario_shown(case_arena, &scenario, &whole, &case_error));
        struct chip const chip = case_machine_built(&scenario.machine).chip;
        assert_int_equal(machine_power_ppm(&scenario.machine, &chip), rows[i].ppm);
        assert_int_equal(chip.hbm_bytes_per_s, step.hbm_bytes_per_s);
        assert_memory_equal(&chip.network, &step.network, sizeof chip.network);
        for (enum format format = FORMAT_BF16; format <= FORMAT_FP8; format++) {
            uint64_t const rate = chip.math_flop_per_s[format];
            uint64_t const expected = units_scale_ppm(step.math_flop_per_s[format], rows[i].ppm);
            assert_in_range(rate, expected - expected / 50000, expected);
            assert_int_equal(rate_of(&whole.machine, format), rate);
        }
    }
    assert_int_equal(machine_of(", \"power\": \"700W\"").chip.vector_flop_per_s,
                     sheet.vector_flop_per_s);
    refused("\"h100-sxm\"", ", \"power\": \"701W\"", "/machine/power", "700 W at most");
    refused("\"h100-sxm\"", ", \"power\": \"64W\"", "/machine/power", "64 W without work");
    refused("\"h100-sxm\"", ", \"power\": 500", "/machine/power", "500W");
    refused("\"b200\"", ", \"power\": \"500W\"", "/machine/power", "not known");
}

/* What is shown of a chip without fp8 has the clock of all formats, and is read again. */
static void a_chip_without_fp8_has_no_clock_of_it(void **state)
{
    (void)state;
    struct scenario scenario, whole;
    case_ok(read_with("\"a100-sxm\"", ", \"clock\": 0.75", &scenario));
    case_ok(scenario_shown(case_arena, &scenario, &whole, &case_error));
    assert_int_equal(whole.machine.clock_fp8_ppm, 750000);
    assert_int_equal(rate_of(&whole.machine, FORMAT_BF16), rate_of(&scenario.machine, FORMAT_BF16));
    refused("\"a100-sxm\"", ", \"clock_fp8\": 0.5", "/machine/clock_fp8", "no products in fp8");
    refused("\"a100-sxm\"", ", \"clock\": 0.75, \"clock_fp8\": 1", "/machine/clock_fp8",
            "no products in fp8");
}

/* A node's way out is the sum of its NICs, however they are dealt. */
static void a_node_has_the_nics_it_is_given(void **state)
{
    (void)state;
    static const uint32_t nics[] = {1, 2, 4, 8, 16, 32};
    for (size_t i = 0; i < sizeof nics / sizeof *nics; i++) {
        struct machine_totals totals;
        struct machine const machine = machine_of(arena_format(
            case_arena, ", \"network\": {\"nic_rate\": \"200Gbit/s\", \"node_nics\": %u}",
            nics[i]));
        const struct level *level = &machine.level[1];
        totals_of_machine(&machine, &totals);
        assert_int_equal(totals.unit_egress_bytes_per_s, nics[i] * 25000000000ull);
        assert_int_equal(machine.chip.dcn_bytes_per_s, nics[i] * 25000000000ull / 8);
        assert_string_equal(level->tier[0].name, nics[i] < 8 ? "host" : "leaf");
        for (uint32_t t = nics[i] < 8; t < level->tier_count; t++)
            assert_int_equal(level->tier[t].cable_bytes_per_s, 25000000000);
    }
    struct chip const measured = machine_of(", \"profile\": \"measured\", \"network\": "
                                            "{\"nic_rate\": \"25GB/s\"}")
                                     .chip;
    struct chip const stock = machine_of(", \"profile\": \"measured\"").chip;
    assert_int_equal(measured.network.nic_bytes_per_s, stock.network.nic_bytes_per_s / 2);
    refused("\"h100-sxm\"", ", \"network\": {\"node_nics\": 3}", "/machine/network/node_nics",
            "2 and 4 can");
    refused("\"h100-sxm\"", ", \"network\": {\"node_nics\": 12}", "/machine/network/node_nics",
            "8 and 16 can");
    refused("\"h100-sxm\"", ", \"network\": {\"nic_rate\": \"0B/s\"}", "/machine/network/nic_rate",
            "between 1MB/s");
    refused("\"v100-sxm\"", ", \"network\": {\"nic_rate\": \"25GB/s\"}",
            "/machine/network/nic_rate", "without a NIC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_says_who_makes_a_gpu),
        cmocka_unit_test(a_profile_is_ideal_by_its_rates),
        cmocka_unit_test(a_chip_in_place_is_the_same_as_by_name),
        cmocka_unit_test(what_is_wrong_with_a_chip_is_said_with_its_place),
        cmocka_unit_test(a_file_is_found_beside_what_names_it),
        cmocka_unit_test(a_clock_slows_what_computes_and_nothing_else),
        cmocka_unit_test(products_in_fp8_have_a_clock_of_their_own),
        cmocka_unit_test(a_lower_power_slows_all_that_computes_alike),
        cmocka_unit_test(a_chip_without_fp8_has_no_clock_of_it),
        cmocka_unit_test(a_node_has_the_nics_it_is_given),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
