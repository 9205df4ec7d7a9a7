/* What a module that predicts a further token has in memory for its projection: both inputs,
 * normed, side by side, in two bytes an element. */
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TOKENS = 262144, WIDTH = 512 };

#define STEP(mesh, more)                                                                           \
    "{\"podsim\": 1, \"title\": \"pairs\", \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 4}, "  \
    "\"mesh\": " mesh ", \"workload\": {\"kind\": \"train_step\", \"model\": "                     \
    "\"tests/property/mtp.json\", \"batch_tokens\": 262144, \"sequence_length\": 1024" more "}}"
#define FLAT "{\"fsdp\": [\"node\", \"gpu:4\"], \"dp\": [\"gpu:2\"]}"
#define SPLIT "{\"fsdp\": [\"node\", \"gpu:4\"], \"tp\": [\"gpu:2\"]}"

/* What the op of a name takes or gives back of a kind of memory. */
static int64_t effect_bytes(const struct program *program, const char *name, bool at_end,
                            enum program_memory memory)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            int64_t bytes = 0;
            if (op->kind != PROGRAM_OP_COMPUTE || strcmp(op->name, name) != 0) continue;
            for (uint32_t e = 0; e < op->effect_count; e++)
                if (op->effect[e].at_end == at_end && op->effect[e].memory == memory)
                    bytes += op->effect[e].bytes;
            return bytes;
        }
    fail_msg("no op is called %s", name);
    return 0;
}

/* A rank keeps the pair, or its part of it, or nothing; what it does not keep whole is in a buffer
 * while a matmul reads it, in both passes. Forward, what the matmul gives is in one, too. A part
 * that was kept is given back once it is gathered. */
static void a_pair_that_is_not_kept_whole_is_in_a_buffer_while_it_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t ranks;     /* Of data. */
        int64_t kept_parts; /* Of the pair, in halves. */
    } rows[] = {
        {STEP(FLAT, ", \"remat\": \"none\""), 32, 2},
        {STEP(FLAT, ", \"remat\": \"block\""), 32, 0},
        {STEP(SPLIT, ", \"remat\": \"none\""), 16, 1},
        {STEP(SPLIT, ", \"remat\": \"none\", \"tp_inputs\": \"whole\""), 16, 2},
        {STEP(SPLIT, ", \"remat\": \"block\""), 16, 0},
    };
    struct play_options const options = {.lower_only = true};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct play play;
        int64_t const whole = INT64_C(2) * 2 * WIDTH * TOKENS / rows[i].ranks;
        int64_t const buffer = rows[i].kept_parts == 2 ? 0 : whole;
        int64_t const given = INT64_C(2) * WIDTH * TOKENS / 32; /* Each of 32 chips has a part. */
        play_run(&play, rows[i].text, &options);
        const struct program *program = &play.program;
        assert_int_equal(effect_bytes(program, "mtp.Project", true, PROGRAM_MEMORY_BUFFERS),
                         -buffer - given);
        assert_int_equal(effect_bytes(program, "mtp.dW", true, PROGRAM_MEMORY_BUFFERS), -buffer);
        assert_int_equal(effect_bytes(program, "mtp.dW", true, PROGRAM_MEMORY_ACTIVATIONS),
                         rows[i].kept_parts == 2 ? -whole : 0);
        assert_int_equal(effect_bytes(program, "mtp.dIn", false, PROGRAM_MEMORY_BUFFERS), whole);
        play_close(&play);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_that_is_not_kept_whole_is_in_a_buffer_while_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
