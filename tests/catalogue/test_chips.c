/* Every chip of the catalogue: each number with its source, and sane against each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/machine/chip.h"
#include "sim/machine/shape.h"

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

static int walk(struct arena *arena, const char *name, const char *bytes, uint64_t size_bytes)
{
    struct json *document = NULL;
    struct error error = {0};
    if (json_read_text(arena, name, bytes, size_bytes, &document, &error) != STATUS_OK)
        fail_msg("%s: %s", error.where, error.message);
    int const count = numbers_with_source(document, false);
    json_free(document);
    return count;
}

static void no_number_lacks_a_source(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        uint32_t size_bytes = 0;
        const char *bytes = chip_json(chip_name_at(i), &size_bytes);
        assert_true(walk(arena, chip_name_at(i), bytes, size_bytes) > 35);
    }
    arena_destroy(arena);
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
    struct arena *arena = arena_create(0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(walk(arena, "bad", bad[i], strlen(bad[i])), -1);
    static const char good[] = "{\"hbm\": {\"value\": 5, \"source\": \"book ch. 2\"}}";
    assert_int_equal(walk(arena, "good", good, strlen(good)), 1);
    arena_destroy(arena);
}

static void every_number_is_listed_with_its_source(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        const struct chip_fact *facts = NULL;
        uint32_t count = 0;
        struct error error = {0};
        bool bandwidth_explained = false;
        assert_int_equal(chip_facts(arena, chip_name_at(i), "", &facts, &count, &error), STATUS_OK);
        assert_true(count > 30);
        for (uint32_t k = 0; k < count; k++) {
            assert_true(facts[k].value[0] != '\0' && facts[k].source[0] != '\0');
            for (uint32_t m = 0; m < k; m++) assert_string_not_equal(facts[m].key, facts[k].key);
            /* No data sheet has the bandwidth of on-chip memory. */
            if (strcmp(facts[k].key, "vmem_rate") == 0 || strcmp(facts[k].key, "l2_rate") == 0)
                bandwidth_explained = strstr(facts[k].source, "derived") != NULL ||
                                      strstr(facts[k].source, "measured") != NULL;
        }
        assert_true(bandwidth_explained);
    }
    arena_destroy(arena);
}

static void every_chip_is_sane(void **state)
{
    (void)state;
    struct arena *arena = arena_create(0);
    for (uint32_t i = 0; chip_name_at(i) != NULL; i++) {
        struct chip c;
        struct error error = {0};
        assert_int_equal(chip_find(arena, chip_name_at(i), "measured", "", "", &c, &error),
                         STATUS_OK);
        assert_string_equal(c.name, chip_name_at(i));
        uint64_t const bf16 = c.math_peak_flop_per_s[FORMAT_BF16] != 0
                                  ? c.math_peak_flop_per_s[FORMAT_BF16]
                                  : c.math_peak_flop_per_s[FORMAT_FP16];
        assert_in_range(bf16 / c.hbm_bytes_per_s, 100, 1000); /* FLOP a byte, the ridge */
        assert_true(c.math_peak_flop_per_s[FORMAT_FP32] * 6 <= bf16);
        assert_true(c.math_peak_flop_per_s[FORMAT_INT4] == 0 ||
                    c.math_peak_flop_per_s[FORMAT_INT4] == 4 * bf16);
        assert_true(c.vector_flop_per_s < bf16);
        assert_true(c.vmem_capacity_bytes < c.hbm_capacity_bytes);
        assert_true(c.pcie_bytes_per_s > c.dcn_bytes_per_s || c.network.c2c_bytes_per_s != 0);
        for (uint32_t s = 0; s < c.slice_count; s++) {
            struct shape shape = {c.axis_count, {1, 1, 1}};
            memcpy(shape.length, c.slice[s], sizeof shape.length);
            for (uint32_t axis = 1; axis < c.axis_count && c.wrap_rule == CHIP_WRAP_FULL_AXIS;
                 axis++)
                assert_true(shape.length[axis - 1] <= shape.length[axis]);
            assert_int_equal(shape_check(&c, &shape, "", &error), STATUS_OK);
        }
    }
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_number_lacks_a_source),
        cmocka_unit_test(the_search_for_sources_finds_what_lacks_one),
        cmocka_unit_test(every_number_is_listed_with_its_source),
        cmocka_unit_test(every_chip_is_sane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
