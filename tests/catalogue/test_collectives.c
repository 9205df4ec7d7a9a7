/* Collectives: every primitive and every plan proved on sets, and canaries that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/base/arena.h"
#include "sim/collective/collective.h"
#include "sim/collective/plan.h"

enum { RANKS_MAX = 64 };

static void every_primitive_is_proved_for_every_size(void **state)
{
    (void)state;
    assert_true(primitive_count >= 9);
    for (uint32_t i = 0; i < primitive_count; i++)
        for (uint32_t size = 2; size <= RANKS_MAX; size++) {
            struct error error = {0};
            enum status const status = primitive_check(primitive_table[i], size, &error);
            if (status != STATUS_OK)
                print_error("%s of %u: %s\n", error.where, size, error.message);
            assert_int_equal(status, STATUS_OK);
        }
}

static void every_primitive_can_be_found_and_says_where_it_comes_from(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < primitive_count; i++) {
        const struct primitive *primitive = primitive_table[i];
        assert_ptr_equal(primitive_find(primitive->kind, primitive->algorithm), primitive);
        assert_true(strlen(primitive->help) > 10);
        assert_true(strlen(primitive->source) > 10);
        assert_true((primitive->chunk_at != NULL) ==
                    (primitive->kind == COLLECTIVE_REDUCE_SCATTER));
    }
    assert_null(primitive_find(COLLECTIVE_ALL_GATHER, "rings"));
}

static const enum collective_kind kinds[] = {COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                             COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_TO_ALL};

static void prove(const struct group *group, enum collective_kind kind, const char *algorithm,
                  uint64_t size_bytes, uint32_t chunk_count)
{
    struct error error = {0};
    struct plan plan;
    struct plan_request const request = {.kind = kind,
                                         .algorithm = algorithm,
                                         .group = *group,
                                         .size_bytes = size_bytes,
                                         .chunk_count = chunk_count};
    struct arena *arena = arena_create(0);
    enum status status = plan_build(arena, &request, "/test", &plan, &error);
    if (status == STATUS_OK) status = plan_check(&plan, &error);
    if (status != STATUS_OK) {
        print_error("%s: %s\n", error.where, error.message);
        for (uint32_t d = 0; d < group->dimension_count; d++)
            print_error("  %u%s\n", group->dimension[d].size,
                        group->dimension[d].ring ? " ring" : "");
    }
    assert_int_equal(status, STATUS_OK);
    arena_destroy(arena);
}

static void every_plan_on_one_axis_is_proved(void **state)
{
    (void)state;
    for (uint32_t size = 2; size <= RANKS_MAX; size++)
        for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            struct group const ring = {{{1, size, 2, true}}, 1};
            struct group const line = {{{2, size, 1, false}}, 1};
            prove(&ring, kinds[k], NULL, 1000003, 0);
            prove(&line, kinds[k], "auto", 1000003, 0);
            prove(&ring, kinds[k], "line", 64, 0);
            if (kinds[k] != COLLECTIVE_ALL_TO_ALL) prove(&ring, kinds[k], "ring-one-way", 999, 0);
        }
}

static void every_plan_on_two_axes_is_proved(void **state)
{
    (void)state;
    for (uint32_t a = 2; a <= RANKS_MAX / 2; a++)
        for (uint32_t b = 2; a * b <= RANKS_MAX; b++)
            for (uint32_t rings = 0; rings < 4; rings++) {
                struct group const group = {
                    {{0, a, 1, (rings & 1) != 0}, {2, b, 1, (rings & 2) != 0}}, 2};
                for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                    prove(&group, kinds[k], NULL, 12000017, 0);
            }
}

static void every_plan_on_three_axes_is_proved(void **state)
{
    (void)state;
    for (uint32_t a = 2; a <= RANKS_MAX / 4; a++)
        for (uint32_t b = 2; a * b <= RANKS_MAX / 2; b++)
            for (uint32_t c = 2; a * b * c <= RANKS_MAX; c++)
                for (uint32_t rings = 0; rings < 8; rings++) {
                    if (rings != 7 && a * b * c > 24) continue; /* It takes long; 2x3x4 is in. */
                    struct group const group = {{{0, a, 1, (rings & 1) != 0},
                                                 {1, b, 1, (rings & 2) != 0},
                                                 {2, c, 1, (rings & 4) != 0}},
                                                3};
                    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                        prove(&group, kinds[k], NULL, 16000057, 0);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_primitive_is_proved_for_every_size),
        cmocka_unit_test(every_primitive_can_be_found_and_says_where_it_comes_from),
        cmocka_unit_test(every_plan_on_one_axis_is_proved),
        cmocka_unit_test(every_plan_on_two_axes_is_proved),
        cmocka_unit_test(every_plan_on_three_axes_is_proved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
