/*
 * Folds where each pair of GPUs has links of its own, as in a node of MI300X. Ranks of tp that hold
 * the same KV head reduce its gradients in groups smaller than the node, while chunks of matmuls go
 * round all of it: which of a GPU's links such a group uses depends on its place in the group.
 * Folded and full steps agree to the picosecond, with each arbitration; a node whose groups are all
 * of one kind still folds to one GPU.
 */
#include <stdio.h>

#include "tests/support/case.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"

enum { CASES = 120, TEXT_BYTES = 1400 };

struct drawn {
    char text[TEXT_BYTES];
    uint32_t heads_kv, tp;
};

/* Widths are small, so that messages of a step meet on a link. */
static void step_draw(struct drawn *drawn)
{
    static const char *const arbitrations[] = {"fair", "fifo", "priority"};
    static const uint32_t kv[] = {1, 2, 2, 4, 4, 8};
    static const char *const meshes[] = {"{\"tp\": [\"gpu\"]}", "{\"tp\": [\"gpu\"]}",
                                         "{\"tp\": [\"gpu:4\"], \"dp\": [\"gpu:2\"]}",
                                         "{\"tp\": [\"gpu:2\"], \"fsdp\": [\"gpu:4\"]}"};
    static const uint32_t ranks[] = {8, 8, 4, 2};
    uint32_t const mesh = case_below(4), width = 512u << case_below(3);
    drawn->heads_kv = case_among(kv, 6);
    drawn->tp = ranks[mesh];
    uint32_t const tokens = 1024u << case_below(4), layers = 1 + case_below(3);
    const char *arbitration = arbitrations[case_below(3)];
    const char *matmul = case_below(4) > 0 ? "true" : "false";
    case_text(drawn->text, TEXT_BYTES,
              "{\"podsim\": 1, \"machine\": {\"chip\": \"mi300x\", \"gpus\": 8}, \"mesh\": %s, "
              "\"workload\": {\"kind\": \"train_step\", \"model\": {\"model_type\": \"llama\", "
              "\"hidden_size\": %u, \"intermediate_size\": %u, \"num_hidden_layers\": %u, "
              "\"num_attention_heads\": 16, \"num_key_value_heads\": %u, \"vocab_size\": 32000, "
              "\"max_position_embeddings\": 8192}, \"batch_tokens\": %u, \"sequence_length\": 128, "
              "\"allow_oversubscription\": true}, \"run\": {\"collective_matmul\": %s, "
              "\"arbitration\": \"%s\"}}",
              meshes[mesh], width, 4 * width, layers, drawn->heads_kv, tokens, matmul, arbitration);
}

static void folded_and_full_steps_agree(void **state)
{
    (void)state;
    static const struct play_options whole = {.full = true};
    uint32_t shared = 0, count = 0;
    for (uint32_t i = 0; i < CASES; i++) {
        struct drawn drawn;
        struct play folded, full;
        step_draw(&drawn);
        if (sampling_skips(&count)) continue;
        play_run(&folded, drawn.text, NULL);
        play_run(&full, drawn.text, &whole);
        if (folded.trace.step_ps != full.trace.step_ps) fail_msg("%s", drawn.text);
        shared += drawn.heads_kv < drawn.tp;
        play_close(&full);
        play_close(&folded);
    }
    assert_true(shared > 0);
}

static void a_node_of_equal_groups_folds_to_one(void **state)
{
    (void)state;
    struct play play;
    play_run(
        &play,
        "{\"podsim\": 1, \"machine\": {\"chip\": \"mi300x\", \"gpus\": 8}, \"mesh\": {\"fsdp\": "
        "[\"gpu\"]}, \"workload\": {\"kind\": \"train_step\", \"model\": \"llama-3-8b\", "
        "\"batch_tokens\": 65536, \"sequence_length\": 4096}}",
        NULL);
    assert_int_equal(play.fold.chip_count, 1);
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_and_full_steps_agree),
        cmocka_unit_test(a_node_of_equal_groups_folds_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
