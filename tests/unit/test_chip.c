/* Chips: the book's tables, the profiles, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/machine/chip.h"
#include "sim/machine/chip_read.h"
#include "tests/support/case.h"

static struct chip chip(const char *name, const char *profile)
{
    struct chip found = {0};
    struct error error = {0};
    enum status const status =
        chip_find(case_arena, name, profile, "/machine/chip", "/machine/profile", &found, &error);
    if (status != STATUS_OK) fail_msg("%s: %s: %s", name, error.where, error.message);
    return found;
}

/* Book, chapter 2, TPU Specs and the interconnect table below it; fn 8 for DCN. */
static void the_numbers_are_the_books(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t hbm_gb, hbm_gb_s, bf16_tera, int8_tera, ici_gb_s, pcie_gb_s, dcn_kb_s;
        uint32_t pod[3], host[3], axes, mxu, mxus, cores;
    } rows[] = {
        {"v3", 32, 900, 140, 140, 100, 16, 6250000, {32, 32, 1}, {4, 2, 1}, 2, 128, 4, 2},
        {"v4p", 32, 1200, 275, 275, 45, 16, 6250000, {16, 16, 16}, {2, 2, 1}, 3, 128, 8, 2},
        {"v5p", 96, 2800, 459, 918, 90, 16, 6250000, {16, 20, 28}, {2, 2, 1}, 3, 128, 8, 2},
        {"v5e", 16, 810, 197, 394, 45, 16, 3125000, {16, 16, 1}, {4, 2, 1}, 2, 128, 4, 1},
        {"v6e", 32, 1600, 920, 1840, 90, 32, 12500000, {16, 16, 1}, {4, 2, 1}, 2, 256, 2, 1},
    };
    uint64_t const giga = 1000000000;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct chip const c = chip(rows[i].name, "ideal");
        assert_int_equal(c.hbm_capacity_bytes, rows[i].hbm_gb * giga);
        assert_int_equal(c.hbm_bytes_per_s, rows[i].hbm_gb_s * giga);
        assert_int_equal(c.vmem_bytes_per_s, 22 * rows[i].hbm_gb_s * giga);
        assert_int_equal(c.math_flop_per_s[FORMAT_BF16], rows[i].bf16_tera * 1000 * giga);
        assert_int_equal(c.math_flop_per_s[FORMAT_INT8], rows[i].int8_tera * 1000 * giga);
        assert_int_equal(c.math_flop_per_s[FORMAT_FP16], 0);
        assert_int_equal(c.ici_bytes_per_s, rows[i].ici_gb_s * giga);
        assert_int_equal(c.pcie_bytes_per_s, rows[i].pcie_gb_s * giga);
        assert_int_equal(c.dcn_bytes_per_s, rows[i].dcn_kb_s * 1000);
        assert_int_equal(c.hop_latency_ps, TIME_PS_PER_US);
        assert_int_equal(c.launch.op_ps + c.launch.message_ps, 0);
        assert_memory_equal(c.pod.shape, rows[i].pod, sizeof c.pod.shape);
        assert_memory_equal(c.pod.host_shape, rows[i].host, sizeof c.pod.host_shape);
        assert_int_equal(c.pod.axis_count, rows[i].axes);
        assert_int_equal(c.mxu.rows, rows[i].mxu);
        assert_int_equal(c.mxu.columns, rows[i].mxu);
        assert_int_equal(c.mxu.count, rows[i].mxus);
        assert_int_equal(c.core.count, rows[i].cores);
    }
    assert_int_equal(chip("v5e", "ideal").vmem_capacity_bytes, 128 << 20);
    assert_int_equal(chip("v5p", "ideal").vector_flop_per_s, 14336 * giga);
}

/* Clock x 2 x 128² x MXUs must give the table's rate (book, chapter 2; v5e 1.5 GHz, v5p 1.75 GHz),
 * which it rounds. */
static void the_peak_follows_from_the_clock(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t clock_hz;
    } rows[] = {{"v5e", 1500000000}, {"v5p", 1750000000}};
    for (size_t i = 0; i < 2; i++) {
        struct chip const c = chip(rows[i].name, "ideal");
        int64_t const bottom_up =
            (int64_t)(rows[i].clock_hz * 2 * c.mxu.rows * c.mxu.columns * c.mxu.count);
        int64_t const table = (int64_t)c.math_peak_flop_per_s[FORMAT_BF16];
        assert_true(llabs(bottom_up - table) < table / 400);
        assert_int_equal(c.vector_flop_per_s, rows[i].clock_hz * 4096 * c.core.count);
    }
}

static void a_profile_scales_rates_but_not_peaks(void **state)
{
    (void)state;
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        struct chip const ideal = chip(chip_name_at(i), "ideal");
        struct chip const measured = chip(chip_name_at(i), "measured");
        assert_string_equal(measured.profile, "measured");
        assert_true(measured.hbm_bytes_per_s < ideal.hbm_bytes_per_s);
        assert_true(measured.launch.op_ps > 0 && ideal.launch.op_ps == 0);
        /* The links of a GPU are the business of a protocol, and no CUDA core was measured alone.
         */
        if (ideal.kind == CHIP_TPU) {
            assert_true(measured.ici_bytes_per_s < ideal.ici_bytes_per_s);
            assert_true(measured.vector_flop_per_s < ideal.vector_flop_per_s);
            assert_true(measured.launch.message_ps > 0);
        }
        assert_int_equal(measured.network.nvlink_peak_bytes_per_s,
                         ideal.network.nvlink_bytes_per_s);
        assert_int_equal(measured.network.nic_peak_bytes_per_s, ideal.network.nic_bytes_per_s);
        /* Of a GPU what the driver leaves, which is not what the data sheet rounds. */
        if (ideal.kind == CHIP_TPU)
            assert_int_equal(measured.hbm_capacity_bytes, ideal.hbm_capacity_bytes);
        else
            assert_in_range(measured.hbm_capacity_bytes, ideal.hbm_capacity_bytes / 100 * 99,
                            ideal.hbm_capacity_bytes / 100 * 108);
        assert_int_equal(measured.ici_peak_bytes_per_s, ideal.ici_bytes_per_s);
        for (uint32_t f = 0; f < FORMAT_COUNT; f++) {
            assert_int_equal(measured.math_peak_flop_per_s[f], ideal.math_flop_per_s[f]);
            assert_true(measured.math_flop_per_s[f] <= ideal.math_flop_per_s[f]);
        }
    }
    assert_int_equal(chip("v5e", "measured").ici_bytes_per_s, 42750000000);
    assert_int_equal(chip("v6e", "measured").hbm_bytes_per_s, 1359600000000);
    assert_int_equal(chip("a100-40gb", "measured").hbm_capacity_bytes, 42298834944);
    assert_int_equal(chip("h200-sxm", "measured").hbm_capacity_bytes, 143221ull << 20);
    assert_int_equal(chip("h20-sxm", "measured").hbm_capacity_bytes, 96000000000);
}

static void a_chip_is_found_by_each_of_its_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"tpu-v5p", "tpu-v5p"}, {"v5p", "tpu-v5p"},       {"v4", "tpu-v4p"},
        {"tpu-v4", "tpu-v4p"},  {"v5litepod", "tpu-v5e"}, {"trillium", "tpu-v6e"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(chip(names[i][0], "ideal").name, names[i][1]);
    assert_string_equal(chip("tpu-v5e", "ideal").short_name, "v5e");
}

static void unknown_names_are_refused_with_the_nearest(void **state)
{
    (void)state;
    struct chip unused;
    case_refused(chip_find(case_arena, "tpu-v5pp", "ideal", "/c", "/p", &unused, &case_error),
                 STATUS_NOT_FOUND, "/c", "\"tpu-v5p\"");
    case_refused(chip_find(case_arena, "", "ideal", "/c", "/p", &unused, &case_error),
                 STATUS_NOT_FOUND, NULL, "");
    case_refused(chip_find(case_arena, "tpu-", "ideal", "/c", "/p", &unused, &case_error),
                 STATUS_NOT_FOUND, NULL, "");
    case_refused(chip_find(case_arena, "v5p", "idael", "/c", "/p", &unused, &case_error),
                 STATUS_NOT_FOUND, "/p", "\"ideal\"");
}

/* Reads v5p's own file with one text in it replaced. */
static enum status read_changed(const char *from, const char *to, struct error *error)
{
    const char *bytes = case_chip_json("tpu-v5p");
    const char *place = strstr(bytes, from);
    struct json *document = NULL;
    struct chip unused;
    assert_non_null(place);
    char *changed =
        arena_format(case_arena, "%.*s%s%s", (int)(place - bytes), bytes, to, place + strlen(from));
    enum status status =
        json_read_text(case_arena, "changed", changed, strlen(changed), &document, error);
    if (status != STATUS_OK) return status;
    status = chip_read(case_arena, document, NULL, "ideal", "/p", &unused, error);
    json_free(document);
    return status;
}

static void a_number_without_its_source_is_refused(void **state)
{
    (void)state;
    static const char whole[] = "{\"value\": \"96GB\", \"source\": \"book ch. 2, TPU Specs\"}";
    case_ok(read_changed(whole, whole, &case_error));
    case_refused(read_changed(whole, "{\"value\": \"96GB\"}", &case_error), STATUS_INVALID, NULL,
                 "");
    assert_non_null(strstr(case_error.where, "hbm_capacity"));
    case_refused(read_changed(whole, "{\"value\": \"96GB\", \"source\": \"\"}", &case_error),
                 STATUS_INVALID, NULL, "no source");
    case_refused(read_changed(whole, "\"96GB\"", &case_error), STATUS_INVALID, NULL, "");
    case_refused(read_changed("459TFLOP/s", "459TB/s", &case_error), STATUS_INVALID, NULL, "");
    case_refused(read_changed("2.8TB/s", "2.8", &case_error), STATUS_INVALID, NULL, "");
    case_refused(read_changed("\"hbm_rate\"", "\"hbm_rait\"", &case_error), STATUS_INVALID, NULL,
                 "");
    case_refused(read_changed("\"16x20x28\"", "\"16x20\"", &case_error), STATUS_INVALID, NULL, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_the_books),
        cmocka_unit_test(the_peak_follows_from_the_clock),
        cmocka_unit_test(a_profile_scales_rates_but_not_peaks),
        cmocka_unit_test(a_chip_is_found_by_each_of_its_names),
        cmocka_unit_test(unknown_names_are_refused_with_the_nearest),
        cmocka_unit_test(a_number_without_its_source_is_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
