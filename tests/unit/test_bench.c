/* The benchmark's loads, cut short: what they do is checked, not how long it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/base/strbuf.h"
#include "tools/podsim/bench/bench.h"

enum { SHRINK = 100, CHIPS = 4096, PORTS = 6 };

static struct bench_sample sample_of(bench_load_fn *load)
{
    struct bench_sample sample = {0};
    struct error error = {0};
    assert_int_equal(load(SHRINK, &sample, &error), STATUS_OK);
    assert_true(sample.event_count > 0 && sample.entry_count > 0);
    return sample;
}

static void the_hold_load_is_the_same_in_both_queues(void **state)
{
    (void)state;
    struct bench_sample const fast = sample_of(bench_hold_fast);
    struct bench_sample const reference = sample_of(bench_hold_reference);
    assert_int_equal(fast.event_count, reference.event_count);
    assert_int_equal(fast.digest, reference.digest);
}

static void the_lockstep_load_moves_over_every_link_in_every_step(void **state)
{
    (void)state;
    struct bench_sample const sample = sample_of(bench_torus_lockstep);
    assert_true(sample.count >= UINT64_C(16) * CHIPS * PORTS);
    assert_true(sample.entry_count <= 17 * PORTS);
}

static void the_unequal_load_shares_hardly_anything(void **state)
{
    (void)state;
    struct bench_sample const sample = sample_of(bench_torus_unequal);
    assert_int_equal(sample.count, UINT64_C(4) * CHIPS * PORTS);
    assert_int_equal(sample.event_count, UINT64_C(4) * CHIPS * (PORTS + 1));
    assert_true(sample.entry_count > sample.event_count / 10 * 7);
}

static void the_routed_load_takes_every_hop(void **state)
{
    (void)state;
    struct bench_sample const sample = sample_of(bench_torus_routed);
    uint64_t const chunks = UINT64_C(1) * CHIPS * PORTS;
    assert_true(sample.count > 11 * chunks && sample.count < 13 * chunks);
    assert_int_equal(sample.event_count, sample.count + chunks);
}

static void the_report_has_every_row(void **state)
{
    (void)state;
    static struct bench bench;
    struct error error = {0};
    struct strbuf table = {0};
    struct strbuf json = {0};
    struct json_writer writer;
    struct json *document = NULL;
    struct arena *arena = arena_create(0);
    assert_int_equal(
        bench_run(&(struct bench_options){.repeats = 2, .shrink = 400}, &bench, &error), STATUS_OK);
    assert_int_equal(bench.row_count, 5);
    bench_print(&bench, &table);
    json_write_start(&writer, &json);
    bench_write_json(&bench, &writer);
    assert_int_equal(json_read_text(arena, "bench", json.bytes, json.size_bytes, &document, &error),
                     STATUS_OK);
    assert_int_equal(json_count(document), bench.row_count);
    for (uint32_t i = 0; i < bench.row_count; i++)
        assert_non_null(strstr(table.bytes, bench.rows[i].name));
    json_free(document);
    strbuf_free(&table);
    strbuf_free(&json);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hold_load_is_the_same_in_both_queues),
        cmocka_unit_test(the_lockstep_load_moves_over_every_link_in_every_step),
        cmocka_unit_test(the_unequal_load_shares_hardly_anything),
        cmocka_unit_test(the_routed_load_takes_every_hop),
        cmocka_unit_test(the_report_has_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
