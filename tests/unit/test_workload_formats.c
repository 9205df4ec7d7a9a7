/* Linear layers in another format than the rest, and tokens to experts in another: what each op
 * reads, writes and multiplies in, and what travels. Sizes are written out here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/workload_case.h"

/* A layer with an MLP and one with experts, after DeepSeek-V3; 16,384 tokens on each of 8 GPUs. */
enum {
    TOKENS = 1 << 14,
    WIDTH = 2048,
    MLP_WIDTH = 4096,
    HEADS = 16,
    Q_RANK = 768,
    KV_RANK = 256,
    PLAIN = 128,
    TURNED = 64,
    VALUES = 128,
    VOCABULARY = 32768,
    EXPERTS = 64,
    TOP = 6,
    EXPERT_WIDTH = 1024,
    RANKS = 8,

    LATENTS = Q_RANK + KV_RANK,
    DOWN = LATENTS + TURNED,
    QKV = HEADS * (2 * (PLAIN + TURNED) + VALUES),
    UP = HEADS * (Q_RANK * (PLAIN + TURNED) + KV_RANK * (PLAIN + VALUES)),
    ATTENDED = HEADS * VALUES,
    ROWS = TOKENS * TOP, /* Of the experts of a rank. */
    HERE = EXPERTS / RANKS,
};

static const struct model small = {
    .kind = MODEL_DECODER,
    .name = "small",
    .layers = 2,
    .width = WIDTH,
    .mlp_width = MLP_WIDTH,
    .matrices = 3,
    .heads = HEADS,
    .kv_heads = HEADS,
    .head_width = PLAIN + TURNED,
    .value_width = VALUES,
    .vocabulary = VOCABULARY,
    .mla = {Q_RANK, KV_RANK, PLAIN, TURNED},
    .experts = {
        .count = EXPERTS, .top_k = TOP, .width = EXPERT_WIDTH, .shared = 1, .dense_layers = 1}};

static void build(struct workload_case *made, const struct model *model, enum mesh_role role)
{
    struct machine_plan const machine = {
        .chip = "h100-sxm", .nodes = 1, .profile = "ideal", .wrap = {-1, -1, -1}};
    const char *parts[MESH_ROLE_COUNT] = {NULL};
    parts[role] = "gpu";
    assert_int_equal(case_build_on(made, model, &machine, parts), STATUS_OK);
    made->plan.batch_tokens = TOKENS * RANKS;
    made->plan.formats.matmuls = FORMAT_FP8;
}

/* The op of that name, of the first template that has it, or NULL. */
static const struct program_op *op_find(const struct program *program, const char *name)
{
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++)
            if (strcmp(program->templates[t].op[i].name, name) == 0)
                return &program->templates[t].op[i];
    return NULL;
}

static const struct program_op *op_named(const struct program *program, const char *name)
{
    const struct program_op *op = op_find(program, name);
    if (op == NULL) fail_msg("no op is called %s", name);
    return op;
}

static const struct work *work_named(const struct program *program, const char *name)
{
    return &program->works[op_named(program, name)->index];
}

struct measure_row {
    const char *name;
    enum format format; /* Of its matmuls; FORMAT_COUNT: it has none. */
    uint64_t read_bytes, write_bytes;
};

static void rows_check(const struct program *program, const struct measure_row *rows,
                       uint32_t row_count)
{
    for (uint32_t i = 0; i < row_count; i++) {
        const struct measure_row *row = &rows[i];
        const struct work *work = work_named(program, row->name);
        bool const same = row->format == FORMAT_COUNT
                              ? work->matmul_count == 0
                              : work->matmul_count != 0 && work->math_format == row->format;
        if (!same) fail_msg("%s multiplies in %s", row->name, format_name(work->math_format));
        if (work->hbm_read_bytes != row->read_bytes || work->hbm_write_bytes != row->write_bytes)
            fail_msg("%s reads %llu bytes and writes %llu, not %llu and %llu", row->name,
                     (unsigned long long)work->hbm_read_bytes,
                     (unsigned long long)work->hbm_write_bytes, (unsigned long long)row->read_bytes,
                     (unsigned long long)row->write_bytes);
    }
}

/* An array of so many columns, of the rank's tokens or of its experts' rows, in bf16 or fp8. */
#define WIDE(columns) (UINT64_C(2) * TOKENS * (columns))
#define NARROW(columns) (UINT64_C(1) * TOKENS * (columns))
#define WIDE_ROWS(columns) (UINT64_C(2) * ROWS * (columns))
#define NARROW_ROWS(columns) (UINT64_C(1) * ROWS * (columns))
/* Weights, and gradients that are not added to others. */
#define WEIGHTS(elements) (UINT64_C(2) * (elements))
#define LOGITS (UINT64_C(4) * TOKENS * EXPERTS)

static const struct measure_row attention_rows[] = {
    {"attention.norm", FORMAT_COUNT, 2 * WIDE(WIDTH), WIDE(WIDTH) + NARROW(WIDTH)},
    {"attention.Down", FORMAT_FP8, NARROW(WIDTH) + WEIGHTS(WIDTH *DOWN), WIDE(DOWN)},
    {"attention.LatentNorm", FORMAT_COUNT, WIDE(LATENTS), NARROW(LATENTS)},
    {"attention.Up", FORMAT_FP8, NARROW(LATENTS) + WIDE(TURNED) + WEIGHTS(UP), WIDE(QKV)},
    {"attention.flash", FORMAT_BF16, WIDE(QKV), WIDE(ATTENDED) + UINT64_C(4) * TOKENS *HEADS},
    {"attention.O", FORMAT_FP8, WIDE(ATTENDED) + WEIGHTS(ATTENDED *WIDTH), WIDE(WIDTH)},
    {"attention.dW_O", FORMAT_FP8, WIDE(ATTENDED) + WIDE(WIDTH), WEIGHTS(ATTENDED *WIDTH)},
    {"attention.dA", FORMAT_FP8, WIDE(WIDTH) + WEIGHTS(ATTENDED *WIDTH), WIDE(ATTENDED)},
    {"attention.dW_up", FORMAT_FP8, NARROW(LATENTS) + WIDE(QKV), WEIGHTS(UP)},
    {"attention.dLatent", FORMAT_FP8, WIDE(QKV) + WEIGHTS(UP), WIDE(DOWN)},
    {"attention.dLatentNorm", FORMAT_COUNT, 2 * WIDE(LATENTS), WIDE(LATENTS)},
    {"attention.dW_down", FORMAT_FP8, NARROW(WIDTH) + WIDE(DOWN), WEIGHTS(WIDTH *DOWN)},
    {"attention.dIn", FORMAT_FP8, WIDE(DOWN) + WEIGHTS(WIDTH *DOWN), WIDE(WIDTH)},
    {"attention.dNorm", FORMAT_COUNT, 3 * WIDE(WIDTH), WIDE(WIDTH)},
};

static const struct measure_row mlp_rows[] = {
    {"mlp.norm", FORMAT_COUNT, 2 * WIDE(WIDTH), WIDE(WIDTH) + NARROW(WIDTH)},
    {"mlp.Gate,Up", FORMAT_FP8, NARROW(WIDTH) + WEIGHTS(2 * WIDTH * MLP_WIDTH),
     NARROW(2 * MLP_WIDTH)},
    {"mlp.Out", FORMAT_FP8, NARROW(2 * MLP_WIDTH) + WEIGHTS(WIDTH *MLP_WIDTH), WIDE(WIDTH)},
    {"mlp.dW_out", FORMAT_FP8, NARROW(2 * MLP_WIDTH) + WIDE(WIDTH), WEIGHTS(WIDTH *MLP_WIDTH)},
    {"mlp.dGate,dUp", FORMAT_FP8, WIDE(WIDTH) + WEIGHTS(WIDTH *MLP_WIDTH) + NARROW(2 * MLP_WIDTH),
     NARROW(2 * MLP_WIDTH)},
    {"mlp.dW_gate,up", FORMAT_FP8, NARROW(WIDTH) + NARROW(2 * MLP_WIDTH),
     WEIGHTS(2 * WIDTH * MLP_WIDTH)},
    {"mlp.dIn", FORMAT_FP8, NARROW(2 * MLP_WIDTH) + WEIGHTS(2 * WIDTH * MLP_WIDTH), WIDE(WIDTH)},
    {"head.norm", FORMAT_COUNT, 2 * WIDE(WIDTH), 2 * WIDE(WIDTH)},
    {"head.Logits", FORMAT_BF16, WIDE(WIDTH) + WEIGHTS(WIDTH *VOCABULARY), WIDE(VOCABULARY)},
};

static const struct measure_row expert_rows[] = {
    {"moe.norm", FORMAT_COUNT, 2 * WIDE(WIDTH), 2 * WIDE(WIDTH)},
    {"moe.Router", FORMAT_BF16, WIDE(WIDTH) + WEIGHTS(WIDTH *EXPERTS), LOGITS},
    {"moe.Cast", FORMAT_COUNT, WIDE(WIDTH), NARROW(WIDTH)},
    {"shared.Gate,Up", FORMAT_FP8, WIDE(WIDTH) + WEIGHTS(2 * WIDTH * EXPERT_WIDTH),
     NARROW(2 * EXPERT_WIDTH)},
    {"shared.Out", FORMAT_FP8, NARROW(2 * EXPERT_WIDTH) + WEIGHTS(WIDTH *EXPERT_WIDTH),
     WIDE(WIDTH)},
    {"experts.Gate,Up", FORMAT_FP8, NARROW_ROWS(WIDTH) + WEIGHTS(2 * HERE * WIDTH * EXPERT_WIDTH),
     NARROW_ROWS(2 * EXPERT_WIDTH)},
    {"experts.Out", FORMAT_FP8, NARROW_ROWS(2 * EXPERT_WIDTH) + WEIGHTS(HERE *WIDTH *EXPERT_WIDTH),
     WIDE_ROWS(WIDTH)},
    {"moe.dCast", FORMAT_COUNT, WIDE(WIDTH), NARROW(WIDTH)},
    {"experts.dW_out", FORMAT_FP8, NARROW_ROWS(WIDTH) + NARROW_ROWS(2 * EXPERT_WIDTH),
     WEIGHTS(HERE *WIDTH *EXPERT_WIDTH)},
    {"experts.dGate,dUp", FORMAT_FP8,
     NARROW_ROWS(WIDTH) + NARROW_ROWS(2 * EXPERT_WIDTH) + WEIGHTS(HERE *WIDTH *EXPERT_WIDTH),
     NARROW_ROWS(2 * EXPERT_WIDTH)},
    {"experts.dW_gate,up", FORMAT_FP8, NARROW_ROWS(WIDTH) + NARROW_ROWS(2 * EXPERT_WIDTH),
     WEIGHTS(2 * HERE * WIDTH * EXPERT_WIDTH)},
    {"experts.dIn", FORMAT_FP8,
     NARROW_ROWS(2 * EXPERT_WIDTH) + WEIGHTS(2 * HERE * WIDTH * EXPERT_WIDTH), WIDE_ROWS(WIDTH)},
    {"shared.dW_out", FORMAT_FP8, NARROW(2 * EXPERT_WIDTH) + WIDE(WIDTH),
     WEIGHTS(WIDTH *EXPERT_WIDTH)},
    {"moe.dRouter", FORMAT_BF16, LOGITS + WIDE(WIDTH) + WEIGHTS(WIDTH *EXPERTS),
     WIDE(WIDTH) + WEIGHTS(WIDTH *EXPERTS)},
};

static void ops_read_write_and_multiply_in_their_formats(void **state)
{
    struct workload_case made;
    (void)state;
    build(&made, &small, MESH_EP);
    made.plan.formats.dispatch = FORMAT_FP8;
    if (case_lower(&made) != STATUS_OK) fail_msg("%s", made.error.message);
    rows_check(&made.program, attention_rows, sizeof attention_rows / sizeof *attention_rows);
    rows_check(&made.program, mlp_rows, sizeof mlp_rows / sizeof *mlp_rows);
    rows_check(&made.program, expert_rows, sizeof expert_rows / sizeof *expert_rows);
    case_free(&made);
}

/* Either way to the experts half of what comes back, and so the sorts that read and write it. */
static void tokens_go_to_experts_in_a_format_of_their_own(void **state)
{
    static const struct {
        enum format matmuls, dispatch;
        uint64_t there_bits, sorted_bits;
    } rows[] = {
        {FORMAT_FP8, FORMAT_FP8, 8, 8},
        {FORMAT_BF16, FORMAT_FP8, 8, 16},
        {FORMAT_FP8, FORMAT_BF16, 16, 8},
        {FORMAT_BF16, FORMAT_INT4, 4, 16},
    };
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct workload_case made;
        build(&made, &small, MESH_EP);
        made.plan.formats.matmuls = rows[i].matmuls;
        made.plan.formats.dispatch = rows[i].dispatch;
        assert_int_equal(case_lower(&made), STATUS_OK);
        const struct program *program = &made.program;
        static const char *const ways[][2] = {{"AllToAll rows", "AllToAll outputs"},
                                              {"AllToAll dOutputs", "AllToAll dRows"}};
        static const char *const sorts[][2] = {{"moe.Sort", "moe.Sum"}, {"moe.dSum", "moe.dSort"}};
        for (uint32_t w = 0; w < 2; w++) {
            const struct plan *there = &program->plans[op_named(program, ways[w][0])->index];
            const struct plan *back = &program->plans[op_named(program, ways[w][1])->index];
            const struct work *sort = work_named(program, sorts[w][0]);
            const struct work *sum = work_named(program, sorts[w][1]);
            assert_int_equal(there->size_bytes * 16, back->size_bytes * rows[i].there_bits);
            assert_int_equal(sort->hbm_read_bytes * 16, sum->hbm_write_bytes * rows[i].there_bits);
            assert_int_equal(sort->hbm_write_bytes * 8,
                             (uint64_t)ROWS * WIDTH * rows[i].sorted_bits);
            assert_int_equal(sum->hbm_read_bytes, WIDE_ROWS(WIDTH));
        }
        case_free(&made);
    }
}

/* Over tp a norm's result travels as it is, and is read as it came; what lies between an MLP's
 * matmuls is theirs. */
static void what_travels_over_tp_stays_as_it_is(void **state)
{
    struct workload_case made;
    struct model plain = small;
    (void)state;
    plain.mla = (struct model_mla){0};
    plain.head_width = 128;
    plain.value_width = 0;
    plain.experts = (struct model_experts){0};
    build(&made, &plain, MESH_TP);
    assert_int_equal(case_lower(&made), STATUS_OK);
    uint64_t const all = UINT64_C(2) * RANKS * TOKENS * WIDTH; /* In bf16. */
    uint64_t const between = UINT64_C(2) * TOKENS * MLP_WIDTH; /* Gate and Up, in fp8. */
    uint64_t const weights = WEIGHTS(2 * WIDTH * MLP_WIDTH / RANKS);
    struct measure_row const rows[] = {
        {"mlp.norm", FORMAT_COUNT, 2 * all / RANKS, 2 * all / RANKS},
        {"mlp.Gate,Up", FORMAT_FP8, all + weights, between},
        {"mlp.Out", FORMAT_FP8, between + weights / 2, all},
    };
    rows_check(&made.program, rows, sizeof rows / sizeof *rows);
    assert_int_equal(
        made.program.plans[op_named(&made.program, "AllGather mlp.In")->index].size_bytes, all);
    case_free(&made);
}

/* As DeepSeek-V3 was trained: norms and projections up come again, and nothing else does. */
static void remat_norms_repeats_norms_and_latents_alone(void **state)
{
    static const char *const repeated[] = {"attention.norm again", "attention.LatentNorm again",
                                           "attention.Up again", "mlp.norm again",
                                           "moe.norm again"};
    struct workload_case made;
    uint32_t again = 0, sent = 0;
    (void)state;
    build(&made, &small, MESH_EP);
    made.plan.remat = GRAPH_REMAT_NORMS;
    made.plan.formats.dispatch = FORMAT_FP8;
    assert_int_equal(case_lower(&made), STATUS_OK);
    for (uint32_t i = 0; i < sizeof repeated / sizeof *repeated; i++)
        assert_non_null(op_find(&made.program, repeated[i]));
    for (uint32_t t = 0; t < made.program.template_count; t++)
        for (uint32_t i = 0; i < made.program.templates[t].op_count; i++) {
            const char *name = made.program.templates[t].op[i].name;
            const char *end = strstr(name, " again");
            sent += strcmp(name, "AllToAll rows") == 0;
            if (end == NULL) continue;
            bool found = false;
            for (uint32_t r = 0; r < sizeof repeated / sizeof *repeated; r++)
                found = found || strcmp(name, repeated[r]) == 0;
            if (!found) fail_msg("%s", name);
            again++;
        }
    assert_int_equal(again, 4 + 4); /* Of the layer with an MLP, and of that with experts. */
    assert_int_equal(sent, 1);
    case_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_read_write_and_multiply_in_their_formats),
        cmocka_unit_test(tokens_go_to_experts_in_a_format_of_their_own),
        cmocka_unit_test(what_travels_over_tp_stays_as_it_is),
        cmocka_unit_test(remat_norms_repeats_norms_and_latents_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
