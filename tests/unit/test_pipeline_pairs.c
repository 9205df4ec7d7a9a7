/*
 * The order of two passes that overlap. What is found here by gcc 12 at -O2 alone is its own: see
 * meson.build.
 */
#include <string.h>

#include "sim/step/pipeline.h"
#include "tests/support/case.h"

enum { PASSES = 2, STEPS = 3, PASS_OPS = 2 * STEPS, OPS = PASSES * PASS_OPS };

/* In both passes three collectives, and after each a matmul that waits for it. */
static void ops_fill(struct program_op ops[OPS])
{
    memset(ops, 0, OPS * sizeof *ops);
    for (uint32_t i = 0; i < OPS; i++) {
        struct program_op *op = &ops[i];
        bool const computes = i % 2 == 1;
        op->kind = computes ? PROGRAM_OP_COMPUTE : PROGRAM_OP_COLLECTIVE;
        op->stream = computes ? PROGRAM_COMPUTE : (uint8_t)(1 + i / PASS_OPS);
        op->parts = 1;
        op->part_first = computes ? i / 2 : i % PASS_OPS / 2;
        op->operand_op = PROGRAM_NONE;
        if (!computes) continue;
        op->need[0] =
            (struct program_need){.stream = ops[i - 1].stream, .part = ops[i - 1].part_first + 1};
        op->need_count = 1;
    }
}

/* Either pass issues a collective with the matmul before it, and waits for it while the other
 * computes. */
static void one_computes_while_the_other_waits(void **state)
{
    static const struct {
        bool computes;
        uint32_t pass;
    } expected[OPS] = {{false, 0}, {false, 1}, {true, 0}, {false, 0}, {true, 1}, {false, 1},
                       {true, 0},  {false, 0}, {true, 1}, {false, 1}, {true, 0}, {true, 1}};
    struct program_op ops[OPS];
    struct work work = {.matmul = {{.rows = 8, .inner = 8, .columns = 8, .count = 1}},
                        .matmul_count = 1};
    struct program program = {.works = &work};
    struct lower lower = {.build = {.program = &program, .op = ops, .op_count = OPS}};
    (void)state;
    ops_fill(ops);
    for (uint32_t i = 0; i < OPS; i++) ops[i].name = i < PASS_OPS ? "first" : "second";
    pipeline_ops_mix(&lower, 0, PASS_OPS);
    for (uint32_t i = 0; i < OPS; i++) {
        assert_int_equal(ops[i].kind == PROGRAM_OP_COMPUTE, expected[i].computes);
        assert_string_equal(ops[i].name, expected[i].pass == 0 ? "first" : "second");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_computes_while_the_other_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
