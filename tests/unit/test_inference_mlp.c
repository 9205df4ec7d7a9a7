/*
 * Tokens through bare MLPs whose weights stay where they lie: what a layer sends is what the book's
 * formulas are made of (chapter 7, question 7), 4·B·D bytes in one dimension, and in two 4·B·D/X
 * along Y and Z with 2·B·F/YZ that are summed along X. Folded or not and by either engine instants
 * are the same.
 */
#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/walk.h"

enum { TEXT_BYTES = 1024, BF16 = 2 };

struct step {
    const char *chip, *shape, *mesh;
    uint64_t data, rows, tp, tp_d; /* Ranks; tokens of a data rank. */
};

/* 256 tokens of 64 prompts: chunks of one token are four passes. */
static const uint64_t D = 2048, F = 8192, layers = 4, prompts = 64, prompt = 4;

static const struct step steps[] = {
    {"tpu-v4p", "4x4x4", "{\"tp\": [\"x\", \"y\", \"z\"]}", 1, 256, 64, 1},
    {"tpu-v4p", "4x4x4", "{\"tp_d\": [\"x\"], \"tp\": [\"y\", \"z\"]}", 1, 256, 16, 4},
    {"tpu-v5e", "4x4", "{\"tp_d\": [\"x\", \"y\"]}", 1, 256, 1, 16},
    {"tpu-v5e", "4x4", "{\"dp\": [\"x\"], \"tp\": [\"y:2\"], \"tp_d\": [\"y:2\"]}", 4, 64, 2, 2},
    {"tpu-v5e", "4x4", "{\"fsdp\": [\"x\"], \"tp\": [\"y\"]}", 4, 64, 4, 1},
    {"tpu-v5e", "4x4", "{\"pp\": [\"x\"], \"tp\": [\"y:2\"], \"tp_d\": [\"y:2\"]}", 1, 256, 2, 2},
};

static void text_of(const struct step *step, uint64_t matrices, uint64_t chunk,
                    char text[TEXT_BYTES])
{
    case_text(
        text, TEXT_BYTES,
        "{\"podsim\": 1, \"machine\": {\"chip\": \"%s\", \"shape\": \"%s\", \"profile\": "
        "\"ideal\"}, \"mesh\": %s, \"workload\": {\"kind\": \"prefill\", \"model\": "
        "{\"kind\": \"mlp\", \"D\": %llu, \"F\": %llu, \"layers\": %llu, \"matrices\": %llu}, "
        "\"batch\": %llu, \"prompt\": %llu, \"chunk\": %llu}}",
        step->chip, step->shape, step->mesh, (unsigned long long)D, (unsigned long long)F,
        (unsigned long long)layers, (unsigned long long)matrices, (unsigned long long)prompts,
        (unsigned long long)prompt, (unsigned long long)chunk);
}

/* Bytes of the collectives of a kind over some ranks, all passes and layers. */
static double moved(const struct play *play, enum stream_of ranks, enum collective_kind kind)
{
    struct walk_op walk = {.program = &play->program};
    double bytes = 0;
    while (walk_next(&walk)) {
        if (walk.op->kind != PROGRAM_OP_COLLECTIVE) continue;
        const struct plan *plan = &play->program.plans[walk.op->index];
        if (plan->kind == kind && play->program.stream[walk.op->stream].use.of == (uint32_t)ranks)
            bytes += (double)walk.times * (double)plan->size_bytes;
    }
    return bytes;
}

static void step_check(const struct play *play, const struct step *step, uint64_t matrices,
                       uint64_t passes)
{
    const struct workload_counts *counts = &play->roofline.counts;
    double const tokens = (double)(prompts * prompt), all = (double)(layers * matrices * D * F);
    double const chips = (double)play->machine.chip_count;
    double const rows = BF16 * (double)(layers * step->rows);
    double const in = step->tp > 1 ? rows * (double)D / (double)step->tp_d : 0;
    double const tmp = step->tp_d > 1 ? rows * (double)(F * (matrices - 1)) / (double)step->tp : 0;
    uint64_t const batches = play->scenario.workload.inference.stages > 1 ? 4 : 1;
    case_near(moved(play, STREAM_OF_TP, COLLECTIVE_ALL_GATHER), in, 1e-12);
    case_near(moved(play, STREAM_OF_TP, COLLECTIVE_REDUCE_SCATTER), in, 1e-12);
    case_near(moved(play, STREAM_OF_TP_D, COLLECTIVE_ALL_REDUCE), tmp, 1e-12);
    case_near(counts->matmul_useful, 2 * tokens * all / chips, 1e-12);
    case_near(counts->inference.weight_bytes,
              BF16 * all * (double)(passes * batches * step->data) / chips, 1e-12);
    assert_true(counts->inference.kv_read_bytes == 0 && counts->memory.cache_bytes == 0);
    assert_true(counts->spare.duplicated == 0 && counts->spare.waiting == 0);
}

static void a_layer_sends_what_the_formulas_count(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        for (uint64_t n = 0; n < 4; n++) {
            uint64_t const matrices = 2 + n % 2, chunk = n / 2;
            char text[TEXT_BYTES];
            struct play play;
            text_of(&steps[i], matrices, chunk, text);
            play_run(&play, text, NULL);
            step_check(&play, &steps[i], matrices, chunk == 0 ? 1 : prompt);
            walk_alike(&play, text, "reference");
            play_close(&play);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_sends_what_the_formulas_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
