/* Every chip of the catalogue: each number with its source, and sane against each other. */
#include <string.h>

#include "sim/base/json.h"
#include "sim/machine/chip.h"
#include "sim/machine/shape.h"
#include "tests/support/case.h"

/* Walks any JSON: a value that is a number, or text that begins as one, must lie in the `value` of
 * an object with a source. Returns how many numbers were found; -1 at the first without one. */
static int numbers_with_source(struct json *json, bool sourced)
{
    struct error error = {0};
    const char *text = NULL;
    int count = 0;
    enum json_kind const kind = json_kind(json);
    if (kind == JSON_INTEGER || kind == JSON_REAL) return sourced ? 1 : -1;
    if (kind == JSON_STRING) {
        assert_int_equal(json_as_string(json, &text, &error), STATUS_OK);
        if (strchr("0123456789", text[0]) == NULL) return 0;
        return sourced ? 1 : -1;
    }
    for (uint32_t i = 0; kind == JSON_ARRAY && i < json_count(json); i++) {
        int const inside = numbers_with_source(json_at(json, i), sourced);
        if (inside < 0) return -1;
        count += inside;
    }
    if (kind != JSON_OBJECT) return count;
    struct json *source = json_take(json, "source");
    bool const has =
        source != NULL && json_as_string(source, &text, &error) == STATUS_OK && strlen(text) > 5;
    const char *key = NULL;
    for (uint32_t i = 0; (key = json_key_at(json, i)) != NULL; i++) {
        if (strcmp(key, "source") == 0) continue;
        int const inside =
            numbers_with_source(json_take(json, key), has && strcmp(key, "value") == 0);
        if (inside < 0) return -1;
        count += inside;
    }
    return count;
}

static int walk(const char *name, const char *bytes, uint64_t size_bytes)
{
    struct json *document = NULL;
    case_ok(json_read_text(case_arena, name, bytes, size_bytes, &document, &case_error));
    int const count = numbers_with_source(document, false);
    json_free(document);
    return count;
}

static void no_number_lacks_a_source(void **state)
{
    (void)state;
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        const char *bytes = case_chip_json(chip_name_at(i));
        assert_true(walk(chip_name_at(i), bytes, (uint32_t)strlen(bytes)) > 35);
    }
}

/* The proof above must itself be able to fail. */
static void the_search_for_sources_finds_what_lacks_one(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"hbm\": 5}",
        "{\"hbm\": \"5GB\"}",
        "{\"hbm\": {\"value\": 5}}",
        "{\"hbm\": {\"value\": 5, \"source\": \"\"}}",
        "{\"hbm\": {\"value\": 5, \"more\": 6, \"source\": \"book ch. 2\"}}",
        "{\"list\": {\"a\": {\"value\": [\"2x2\"]}}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(walk("bad", bad[i], strlen(bad[i])), -1);
    static const char good[] = "{\"hbm\": {\"value\": 5, \"source\": \"book ch. 2\"}}";
    assert_int_equal(walk("good", good, strlen(good)), 1);
}

/* What dealers and notes of others say of a chip is told from its maker's own figures. */
static bool is_marked(const char *source)
{
    static const char *const seconds[] = {"willitrunai.com", "zangshuxian.com", "verda.com",
                                          "glennklockwood.com"};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
        if (strstr(source, seconds[i]) != NULL && strstr(source, "(secondary)") == NULL)
            return false;
    return true;
}

static void every_number_is_listed_with_its_source(void **state)
{
    (void)state;
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        const struct chip_fact *facts = NULL;
        uint32_t count = 0;
        bool bandwidth_explained = false;
        case_ok(chip_facts(case_arena, chip_name_at(i), "", &facts, &count, &case_error));
        assert_true(count > 30);
        for (uint32_t k = 0; k < count; k++) {
            assert_true(facts[k].value[0] != '\0' && facts[k].source[0] != '\0');
            if (!is_marked(facts[k].source))
                fail_msg("%s, %s: %s", chip_name_at(i), facts[k].key, facts[k].source);
            for (uint32_t m = 0; m < k; m++) assert_string_not_equal(facts[m].key, facts[k].key);
            /* No data sheet has the bandwidth of on-chip memory. */
            if (strcmp(facts[k].key, "vmem_rate") == 0 || strcmp(facts[k].key, "l2_rate") == 0)
                bandwidth_explained = strstr(facts[k].source, "derived") != NULL ||
                                      strstr(facts[k].source, "measured") != NULL;
        }
        assert_true(bandwidth_explained);
    }
}

static struct chip chip_named(const char *name, const char *profile)
{
    struct chip chip;
    case_ok(chip_find(case_arena, name, profile, "", "", &chip, &case_error));
    return chip;
}

static void every_chip_is_sane(void **state)
{
    (void)state;
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        struct chip const c = chip_named(chip_name_at(i), "measured");
        assert_string_equal(c.name, chip_name_at(i));
        uint64_t const bf16 = c.math_peak_flop_per_s[FORMAT_BF16] != 0
                                  ? c.math_peak_flop_per_s[FORMAT_BF16]
                                  : c.math_peak_flop_per_s[FORMAT_FP16];
        /* FLOP a byte, the ridge; an H20 has the math cut and the HBM whole. */
        assert_in_range(bf16 / c.hbm_bytes_per_s, strcmp(c.name, "h20-sxm") == 0 ? 30 : 100, 1000);
        assert_true(c.math_peak_flop_per_s[FORMAT_FP32] * 6 <= bf16 ||
                    strcmp(c.name, "h20-sxm") == 0);
        assert_true(c.math_peak_flop_per_s[FORMAT_INT4] == 0 ||
                    c.math_peak_flop_per_s[FORMAT_INT4] == 4 * bf16);
        assert_true(c.vector_flop_per_s < bf16);
        assert_true(c.vmem_capacity_bytes < c.hbm_capacity_bytes);
        assert_true(c.pcie_bytes_per_s > c.dcn_bytes_per_s || c.network.c2c_bytes_per_s != 0);
        for (uint32_t s = 0; s < c.pod.slice_count; s++) {
            struct shape shape = {c.pod.axis_count, {1, 1, 1}, false};
            memcpy(shape.length, c.pod.slice[s], sizeof shape.length);
            for (uint32_t axis = 1;
                 axis < c.pod.axis_count && c.pod.wrap_rule == CHIP_WRAP_FULL_AXIS; axis++)
                assert_true(shape.length[axis - 1] <= shape.length[axis]);
            case_ok(shape_check(&c, &shape, "", &case_error));
        }
    }
}

/* To the digits that a table prints. */
static void printed(uint64_t value, double figure, uint32_t digits)
{
    double half = 0.5;
    for (double scale = figure; scale >= 10; scale /= 10) half *= 10;
    for (uint32_t i = 1; i < digits; i++) half /= 10;
    if ((double)value < figure - half || (double)value > figure + half)
        fail_msg("%.6g is not %g to %u digits", (double)value, figure, digits);
}

/* The book, Tables 12.1 to 12.3, to the digits printed there; 0: not printed. */
static void gpus_agree_with_the_book(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t sms;
        double smem_kib, l2_mb, hbm_gb, hbm_rate, bf16, fp8, fp4;
    } rows[] = {
        {"v100-sxm", 80, 96, 6, 32, 9.0e11, 0, 0, 0},
        {"a100-sxm", 108, 192, 40, 80, 2.0e12, 3.1e14, 0, 0},
        {"h100-sxm", 132, 256, 50, 80, 3.4e12, 9.9e14, 2.0e15, 0},
        {"h200-sxm", 132, 256, 50, 141, 4.8e12, 9.9e14, 2.0e15, 0},
        {"gh200-nvl32", 132, 256, 50, 144, 4.9e12, 9.9e14, 2.0e15, 0}, /* An H200 and more HBM. */
        {"b200", 148, 256, 126, 192, 8.0e12, 2.3e15, 4.5e15, 9.0e15},
        {"gb200-nvl72", 148, 256, 126, 0, 8.0e12, 2.3e15, 4.5e15, 9.0e15},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct chip const c = chip_named(rows[i].name, "ideal");
        assert_int_equal(c.kind, CHIP_GPU);
        assert_int_equal(c.core.count, rows[i].sms);
        assert_int_equal(c.core.smem_bytes, rows[i].smem_kib * 1024);
        assert_int_equal(c.core.register_bytes, 256 * 1024);
        assert_int_equal(c.core.tmem_bytes, i < 5 ? 0 : 256 * 1024);
        assert_int_equal(c.vmem_capacity_bytes, rows[i].l2_mb * 1e6);
        if (rows[i].hbm_gb != 0) assert_int_equal(c.hbm_capacity_bytes, rows[i].hbm_gb * 1e9);
        printed(c.hbm_bytes_per_s, rows[i].hbm_rate, 2);
        if (rows[i].bf16 != 0) printed(c.math_peak_flop_per_s[FORMAT_BF16], rows[i].bf16, 2);
        if (rows[i].fp8 != 0) printed(c.math_peak_flop_per_s[FORMAT_FP8], rows[i].fp8, 2);
        printed(c.math_peak_flop_per_s[FORMAT_FP4] + 1, rows[i].fp4 + 1, 2);
    }
}

/* The published figures of chips that the book does not have, in tera and giga; 0: not one. */
static void later_chips_have_their_published_figures(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double hbm_gb, hbm_rate, bf16, fp8, fp4, int8, fp32, nic_gb_s;
    } rows[] = {
        {"a100-40gb", 40, 1.555, 312, 0, 0, 624, 19.5, 25},
        {"h100-pcie", 80, 2.0, 756, 1513, 0, 1513, 51, 50},
        {"h20-sxm", 96, 4.0, 148, 296, 0, 296, 44, 50},
        {"b300", 270, 8.0, 2250, 4500, 13500, 0, 75, 100},
        {"gb300-nvl72", 279, 8.0, 2500, 5000, 15000, 0, 80, 100},
        {"mi300x", 192, 5.3, 1307.4, 2614.9, 0, 2614.9, 163.4, 50},
        {"tpu-7x", 206.158430208, 7.38, 2307, 4614, 0, 0, 384.5, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct chip const c = chip_named(rows[i].name, "ideal");
        assert_int_equal(c.hbm_capacity_bytes, rows[i].hbm_gb * 1e9);
        assert_int_equal(c.hbm_bytes_per_s, rows[i].hbm_rate * 1e12);
        assert_int_equal(c.math_peak_flop_per_s[FORMAT_BF16], rows[i].bf16 * 1e12);
        assert_int_equal(c.math_peak_flop_per_s[FORMAT_FP8], rows[i].fp8 * 1e12);
        assert_int_equal(c.math_peak_flop_per_s[FORMAT_FP4], rows[i].fp4 * 1e12);
        assert_int_equal(c.math_peak_flop_per_s[FORMAT_INT8], rows[i].int8 * 1e12);
        assert_int_equal(c.math_peak_flop_per_s[FORMAT_FP32], rows[i].fp32 * 1e12);
        if (c.kind == CHIP_GPU) assert_int_equal(c.network.nic_bytes_per_s, rows[i].nic_gb_s * 1e9);
    }
}

/* A chip's links, and what a whitepaper's clock gives: ratios of formats, but for Blackwell Ultra's
 * fp4, which is three times fp8. */
static void check_links(const struct chip *c, uint32_t generation, uint32_t links,
                        uint32_t link_gb_s, uint32_t switch_gb_s)
{
    const struct chip_network *network = &c->network;
    bool const ultra = strcmp(c->name, "b300") == 0 || strcmp(c->name, "gb300-nvl72") == 0;
    uint64_t const fp16 = c->math_peak_flop_per_s[FORMAT_FP16];
    assert_int_equal(network->nvlink_generation, generation);
    assert_int_equal(network->nvlink_count, links);
    assert_int_equal(network->nvlink_bytes_per_s, link_gb_s * 1000000000ull);
    assert_int_equal(network->nvswitch_ports * network->nvlink_bytes_per_s,
                     switch_gb_s * 1000000000ull);
    /* The links of a node fit the switches' ports, or lead evenly to all others. */
    if (network->nvswitch_count == 0)
        assert_int_equal(network->nvlink_count % (network->node_chips - 1), 0);
    else
        assert_true(network->node_chips * network->nvlink_count <=
                    network->nvswitch_count * network->nvswitch_ports);
    assert_true(network->nvlink_latency_ps > 0);
    assert_int_equal(network->nvswitch_flop_per_s != 0,
                     network->nvlink_generation >= 4 && network->nvswitch_count != 0);
    for (uint32_t format = 0; format < FORMAT_COUNT; format++) {
        uint64_t const rate = c->math_peak_flop_per_s[format];
        if (rate == 0 || format == FORMAT_FP32 ||
            (ultra && format_math((enum format)format) == FORMAT_FP4))
            continue;
        uint64_t const expected = 16 / format_bits((enum format)format) * fp16;
        assert_in_range(rate * 1000 / expected, 999, 1001);
    }
    if (ultra)
        assert_int_equal(c->math_peak_flop_per_s[FORMAT_FP4],
                         3 * c->math_peak_flop_per_s[FORMAT_FP8]);
    assert_in_range(c->math_peak_flop_per_s[FORMAT_FP32] * 100 / c->vector_flop_per_s, 99, 101);
}

/* The book, Table 12.6 and Appendix B; of later chips their data sheets. */
static void gpus_have_the_links_of_their_generation(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t generation, links, link_gb_s, switch_gb_s;
    } rows[] = {
        {"v100-sxm", 2, 6, 25, 450},      {"a100-sxm", 3, 12, 25, 900},
        {"a100-40gb", 3, 12, 25, 900},    {"h100-sxm", 4, 18, 25, 1600},
        {"h100-pcie", 4, 12, 25, 0},      {"h200-sxm", 4, 18, 25, 1600},
        {"h800-sxm", 4, 12, 25, 1600},    {"h20-sxm", 4, 18, 25, 1600},
        {"gh200-nvl32", 4, 18, 25, 1600}, {"b200", 5, 18, 50, 3600},
        {"gb200-nvl72", 5, 18, 50, 3600}, {"b300", 5, 18, 50, 3600},
        {"gb300-nvl72", 5, 18, 50, 3600}, {"mi300x", 4, 7, 64, 0},
    };
    uint32_t gpus = 0;
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        struct chip const c = chip_named(chip_name_at(i), "ideal");
        if (c.kind != CHIP_GPU) continue;
        assert_string_equal(c.name, rows[gpus].name);
        check_links(&c, rows[gpus].generation, rows[gpus].links, rows[gpus].link_gb_s,
                    rows[gpus].switch_gb_s);
        gpus++;
    }
    assert_int_equal(gpus, sizeof rows / sizeof *rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_number_lacks_a_source),
        cmocka_unit_test(the_search_for_sources_finds_what_lacks_one),
        cmocka_unit_test(every_number_is_listed_with_its_source),
        cmocka_unit_test(every_chip_is_sane),
        cmocka_unit_test(gpus_agree_with_the_book),
        cmocka_unit_test(later_chips_have_their_published_figures),
        cmocka_unit_test(gpus_have_the_links_of_their_generation),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
