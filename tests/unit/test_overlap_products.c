/* Collectives over tp that overlap with the gradients of their product alone, as in Megatron-LM. */
#include <stdio.h>
#include <string.h>

#include "tests/support/case.h"
#include "tests/support/play.h"

enum { TEXT_BYTES = 1024 };

static struct play play;

/* A GPT on eight A100, whose attention is repeated. `more` are members of the workload, `run` those
 * of the run. */
static void text_make(char *text, const char *more, const char *run)
{
    (void)snprintf(text, TEXT_BYTES,
                   "{\"podsim\":1,\"machine\":{\"chip\":\"a100-sxm\",\"profile\":\"measured\","
                   "\"stack\":\"torch-eager\"},\"mesh\":{\"tp\":[\"gpu\"]},\"workload\":{\"kind\":"
                   "\"train_step\",\"model\":{\"model_type\":\"gpt2\",\"n_embd\":6144,\"n_inner\":"
                   "24576,\"n_layer\":4,\"n_head\":64,\"n_positions\":2048,\"vocab_size\":51200},"
                   "\"batch_tokens\":8192,"
                   "\"sequence_length\":2048,\"attention_kernel\":\"unfused_dropout\","
                   "\"attention\":\"full\",\"backward_order\":\"dx_first\"%s},\"run\":{%s}}",
                   more, run);
}

static const char selective[] =
    ",\"remat\":{\"policy\":\"none\",\"repeat\":[\"S\",\"P\",\"Dropped\"]}";
static const char products[] = "\"overlap\":{\"tp\":\"products\"}";

static int64_t step_ps(const char *more, const char *run)
{
    char text[TEXT_BYTES];
    struct play_options const options = {0};
    text_make(text, more, run);
    play_run(&play, text, &options);
    int64_t const end = play.trace.step_ps;
    play_close(&play);
    return end;
}

static const struct program_template *backward(void)
{
    for (uint32_t t = 0; t < play.program.template_count; t++)
        if (strcmp(play.program.templates[t].name, "layer backward") == 0)
            return &play.program.templates[t];
    fail_msg("no layer has a backward pass");
    return NULL;
}

/* How many parts of the compute stream come before an op. */
static uint32_t computed_before(const struct program_template *of, const char *name)
{
    uint32_t parts = 0;
    for (uint32_t i = 0; i < of->op_count; i++) {
        if (strcmp(of->op[i].name, name) == 0) return parts;
        parts += of->op[i].stream == PROGRAM_COMPUTE;
    }
    fail_msg("there is no op %s", name);
    return 0;
}

static const struct program_op *op_named(const struct program_template *of, const char *name)
{
    for (uint32_t i = 0; i < of->op_count; i++)
        if (strcmp(of->op[i].name, name) == 0) return &of->op[i];
    fail_msg("there is no op %s", name);
    return NULL;
}

/* The parts of a stream of the slot that an op waits for. */
static uint32_t parts_needed(const struct program_op *op, uint8_t stream)
{
    uint32_t parts = 0;
    for (uint32_t n = 0; n < op->need_count; n++)
        if (op->need[n].stream == stream && op->need[n].slot == 0 && op->need[n].part > parts)
            parts = op->need[n].part;
    return parts;
}

/* The input is gathered once all before the gradient of the input is computed, and the gradient of
 * the result once all before the product that reads it is: repeated scores hide nothing. */
static void collectives_are_issued_where_megatron_issues_them(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    struct play_options const options = {.lower_only = true};
    text_make(text, selective, products);
    play_run(&play, text, &options);
    const struct program_template *of = backward();
    static const char *const gathers[][3] = {
        {"AllGather attention.In", "attention.dIn", "attention.dW_QKV"},
        {"AllGather mlp.In", "mlp.dIn", "mlp.dW_in"},
        {"AllGather attention.dOut", "attention.dA", "attention.dA"}};
    for (size_t i = 0; i < sizeof gathers / sizeof *gathers; i++) {
        const struct program_op *gather = op_named(of, gathers[i][0]);
        const struct program_op *beside = op_named(of, gathers[i][1]);
        assert_int_equal(parts_needed(gather, PROGRAM_COMPUTE), computed_before(of, gathers[i][1]));
        assert_true(parts_needed(op_named(of, gathers[i][2]), gather->stream) > 0);
        if (i < 2) assert_int_equal(parts_needed(beside, gather->stream), 0);
    }
    /* The sum of the gradient of the input is waited for by the norm, not by what is between. */
    const struct program_op *sum = op_named(of, "ReduceScatter mlp.dIn");
    assert_int_equal(parts_needed(op_named(of, "mlp.dW_in"), sum->stream), 0);
    assert_true(parts_needed(op_named(of, "mlp.dNorm"), sum->stream) > 0);
    play_close(&play);
}

/* What hides beside products is less than what could, and more than nothing. */
static void steps_lie_between_those_of_all_and_of_none(void **state)
{
    (void)state;
    int64_t const all = step_ps(selective, ""), some = step_ps(selective, products),
                  none = step_ps(selective, "\"overlap\":{\"tp\":false}");
    assert_true(all < some && some < none);
}

/* A step of inference has no gradients. */
static void inference_is_refused(void **state)
{
    (void)state;
    static const char text[] =
        "{\"podsim\":1,\"machine\":{\"chip\":\"h100-sxm\"},\"mesh\":{\"tp\":[\"gpu\"]},"
        "\"workload\":{\"kind\":\"prefill\",\"model\":\"llama-3-8b\",\"batch\":8,"
        "\"prompt\":1024},\"run\":{\"overlap\":{\"tp\":\"products\"}}}";
    struct play_options const options = {.lower_only = true};
    case_refused(play_try(&play, text, &options, &case_error), STATUS_INVALID, "/run/overlap/tp",
                 "has no gradients");
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_are_issued_where_megatron_issues_them),
        cmocka_unit_test(steps_lie_between_those_of_all_and_of_none),
        cmocka_unit_test(inference_is_refused),
    };
    return cmocka_run_group_tests(tests, case_arena_up, case_arena_down);
}
