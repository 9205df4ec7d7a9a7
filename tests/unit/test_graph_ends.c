/* Graphs of a model's ends and modules, in drawn steps and in pipelines (graph_case.h). */
#include "sim/graph/print.h"
#include "tests/support/play.h"
#include "tests/support/sampling.h"
#include "tests/unit/drawn_case.h"
#include "tests/unit/graph_case.h"

/* Four ranks of stages; the mesh with what follows on it, model, schedule, layout, remat, order. */
#define TEXT                                                                                       \
    "{\"podsim\": 1, \"title\": \"ends\", \"machine\": {\"chip\": \"h100-sxm\", \"nodes\": 4, "    \
    "\"profile\": \"ideal\"}, \"mesh\": {\"pp\": [\"node\"], %s, \"kind\": \"train_step\", "       \
    "\"model\": \"%s\", \"batch_tokens\": 262144, \"sequence_length\": 1024, \"accumulate\": 8, "  \
    "\"schedule\": \"%s\", \"layout\": \"%s\", \"remat\": \"%s\", \"backward_order\": \"%s\"}}"

static void modules_that_predict_hold(void **state)
{
    uint32_t walked = 0;
    (void)state;
    for (size_t p = 0; p < DRAWN_EXPERTS; p++)
        for (uint32_t variant = 0; variant < 72; variant++) {
            struct workload_case made;
            char name[96];
            if ((drawn_experts[p].walks & DRAWN_MODULES) == 0 || sampling_skips(&walked)) continue;
            (void)snprintf(name, sizeof name, "modules %zu, variant %u", p, variant);
            drawn_build_nodes(&made, &drawn_experts[p]);
            drawn_vary_experts(&made, &drawn_experts[p], variant);
            drawn_set_mla(&made.plan.model);
            drawn_set_modules(&made.plan.model, variant);
            graph_step_lower(name, &made);
        }
}

/* A chip has 2^14 rows, 2^13 columns and 32064 words: a product has 2·2^14·2^13·32064 FLOP, and
 * reads and writes arrays of 2^28, 1050673152 (logits) and 525336576 bytes. */
static void ends_are_printed_in_the_notation(void **state)
{
    static const char wanted[] =
        "embedding.lookup        Rows[B_X, D_Y] = lookup(W_embedding[Vocab_Y, D_X])"
        "  ReduceScatter_Y\n"
        "head.Residual (fused)   head.X[B_X, D_Y] = merge(X[B_X, D_Y], Out[B_X, D_Y])\n"
        "head.norm               In[B_X, D_Y] = norm(head.X[B_X, D_Y], w_In[D_Y])\n"
        "head.Logits             Logits[B_X, Vocab_Y] = matmul(In[B_X, D_Y], W_head[Vocab_Y,"
        " D_X])  AllGather_Y\n"
        "head.Loss               dLogits[B_X, Vocab_Y] = loss(Logits[B_X, Vocab_Y])\n"
        "  1  head.Logits: d weights               8.61 TFLOP   1.84 GB\n"
        "       dLogits In* -> dW_head\n"
        "  2  head.Logits: d inputs                8.61 TFLOP   1.84 GB\n"
        "       dLogits W_head -> dIn*\n"
        "  3    ReduceScatter tp                                268 MB\n"
        "       dIn* -> dIn\n"
        "  4  head.norm: d inputs                  302 MFLOP v  268 MB\n"
        "       dIn head.X w_In -> dX dOut dw_In\n";
    static struct ranks ranks;
    static struct graph_cases cases;
    static struct graph_steps steps;
    struct workload_case made;
    struct strbuf text = {0};
    (void)state;
    assert_int_equal(case_build(&made, &case_llama_70b, "4x4x4", NULL, "x y", "z"), STATUS_OK);
    made.plan.batch_tokens = 1 << 18;
    graph_ranks(&made.plan, &made.machine, &made.mesh, &ranks);
    graph_cases_build(&ranks, &cases);
    const struct graph_case *embedding = &cases.part[1], *head = &cases.part[2];
    graph_print(&embedding->sharded, &text);
    graph_print(&head->sharded, &text);
    graph_steps(&head->sharded, &head->backward, &head->kept,
                (struct graph_request){.backward = true}, &steps);
    graph_print_steps(&head->sharded, &steps, &text);
    assert_string_equal(text.bytes, wanted);
    strbuf_free(&text);
    case_free(&made);
}

/* Pipelines, whose passes are halved from the fourth schedule on: of modules, with their head or on
 * a stage before it; of a tied matrix, but where both ends lie on one rank. */
static void ends_in_pipelines_hold(void **state)
{
    static const struct {
        const char *schedule, *layout;
    } rows[] = {
        {"1f1b", "Ett|tt|t|t%sL"},
        {"1f1b", "Ett|ttt|t%s|L"},
        {"interleaved:2", "E|t|t|t|t|t|t|%sL"},
        {"zb-h1", "Et|t|t|ttt%sL"},
        {"zb-v", "E|t|t|t|t|t|t|%sL"},
        {"dualpipev", "E|t|t|t|t|t|t%s|L"},
        {"dualpipe", "Ett|tt|t|t%sL"},
    };
    static const struct {
        const char *model, *modules;
    } models[] = {{"tests/property/mtp.json", "m"},
                  {"tests/property/mtp-2.json", "mm"},
                  {"tests/property/tied.json", ""}};
    static const char *const meshes[] = {
        "\"tp\": [\"gpu:4\"], \"fsdp\": [\"gpu:2\"]}, \"workload\": {\"zero\": 0",
        "\"tp\": [\"gpu:2\"], \"dp\": [\"gpu:4\"]}, \"workload\": {\"zero\": 1, \"activations\": "
        "\"tokens\"",
    };
    static const char *const remats[] = {"none", "norms", "big_matmuls", "block", "layer"};
    static const struct play_options lower_only = {.lower_only = true};
    static struct ranks ranks;
    uint32_t walked = 0;
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t m = 0; m < sizeof models / sizeof *models; m++)
            for (uint32_t variant = 0; variant < 10; variant++) {
                struct play play;
                char layout[64], text[1024];
                bool const bent = r >= 4, tied = models[m].modules[0] == '\0';
                if ((bent && tied) || sampling_skips(&walked)) continue;
                (void)snprintf(layout, sizeof layout, rows[r].layout, models[m].modules);
                (void)snprintf(text, sizeof text, TEXT, meshes[variant % 2], models[m].model,
                               rows[r].schedule, layout, remats[variant / 2],
                               variant % 3 == 0 ? "dx_first" : "dw_first");
                play_run(&play, text, &lower_only);
                graph_ranks(&play.scenario.workload, &play.machine, &play.mesh, &ranks);
                graph_hold(text, &ranks, &play.program);
                play_close(&play);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_that_predict_hold),
        cmocka_unit_test(ends_in_pipelines_hold),
        cmocka_unit_test(ends_are_printed_in_the_notation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
