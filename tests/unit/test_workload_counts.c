/* Counts by closed formulas against the sums over lowered programs: two ways to the same number,
 * for every combination of mesh, remat, gather, ZeRO stage, accumulation and order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "sim/base/units.h"
#include "sim/collective/ragged.h"
#include "sim/resource/compute.h"
#include "sim/workload/counts.h"
#include "tests/unit/workload_case.h"

struct place {
    bool llama;
    const char *shape, *dp, *fsdp, *tp;
    uint64_t batch_tokens;
};

static const struct place places[] = {
    {false, "16", "x", NULL, NULL, 1 << 20},          {false, "16", NULL, "x", NULL, 1 << 20},
    {false, "16", NULL, NULL, "x", 1 << 20},          {false, "4x4x4", NULL, "x y", "z", 1 << 20},
    {false, "4x4x4", "y", "x", "z", 1 << 20},         {true, "16x16x16", NULL, "x y", "z", 1 << 22},
    {true, "16x16x16", NULL, "x y", "z", 1 << 19}, /* A sequence on two ranks or four. */
    {true, "4x4x4", "x y", NULL, "z", 1 << 20},       {true, "4x4x4", "y", "x", "z", 1 << 20},
    {true, "16x16x16", NULL, "x y z", NULL, 1 << 22}, {true, "16", NULL, NULL, "x", 1 << 20},
};

static void near(const char *name, const char *what, double counted, double summed)
{
    double const difference = counted > summed ? counted - summed : summed - counted;
    if (difference > 1e-6 * (counted > 1 ? counted : 1)) {
        fail_msg("%s: %s is %.9g by formula and %.9g in the program", name, what, counted, summed);
    }
}

static double padded_flop(const struct workload_case *made)
{
    double flop = 0;
    for (uint32_t t = 0; t < made->program.template_count; t++) {
        const struct program_template *template = &made->program.templates[t];
        for (uint32_t i = 0; i < template->op_count; i++) {
            if (template->op[i].kind != PROGRAM_OP_COMPUTE) continue;
            const struct work *work = &made->program.works[template->op[i].index];
            flop += (double)case_repeats(&made->program, t) *
                    (double)compute_time(&made->machine.chip, work, PPM_ONE, PPM_ONE).padded_flop;
        }
    }
    return flop;
}

static double compute_ops(const struct workload_case *made)
{
    double count = 0;
    for (uint32_t t = 0; t < made->program.template_count; t++)
        for (uint32_t i = 0; i < made->program.templates[t].op_count; i++)
            if (made->program.templates[t].op[i].kind == PROGRAM_OP_COMPUTE)
                count += (double)case_repeats(&made->program, t);
    return count;
}

static double saved_bytes(const struct program *program)
{
    double bytes = 0;
    for (uint32_t t = 0; t < program->template_count; t++) {
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            for (uint32_t e = 0; e < op->effect_count; e++) {
                bool const taken = op->effect[e].bytes > 0;
                if (!taken || op->effect[e].memory != PROGRAM_MEMORY_ACTIVATIONS) continue;
                bytes += (double)case_repeats(program, t) * (double)op->effect[e].bytes;
            }
        }
    }
    return bytes;
}

static void traffic_near(const char *name, const struct workload_case *made, const char *group,
                         const struct workload_traffic *traffic)
{
    struct case_sums const sums = case_sum(&made->program, group);
    near(name, group, traffic->gather_bytes, sums.bytes[COLLECTIVE_ALL_GATHER]);
    near(name, group, traffic->scatter_bytes, sums.bytes[COLLECTIVE_REDUCE_SCATTER]);
    near(name, group, traffic->all_reduce_bytes, sums.bytes[COLLECTIVE_ALL_REDUCE]);
    assert_int_equal(traffic->gather_count, sums.collectives[COLLECTIVE_ALL_GATHER]);
    assert_int_equal(traffic->scatter_count, sums.collectives[COLLECTIVE_REDUCE_SCATTER]);
    near(name, group, traffic->all_to_all_bytes, sums.bytes[COLLECTIVE_ALL_TO_ALL]);
    near(name, group, traffic->permute_bytes, sums.bytes[COLLECTIVE_PERMUTE]);
    assert_int_equal(traffic->all_reduce_count, sums.collectives[COLLECTIVE_ALL_REDUCE]);
    assert_int_equal(traffic->all_to_all_count, sums.collectives[COLLECTIVE_ALL_TO_ALL]);
    assert_int_equal(traffic->permute_count, sums.collectives[COLLECTIVE_PERMUTE]);
}

/* Gradients go over all ranks that hold the same parameters. */
static const char *replicas(const struct workload_case *made)
{
    static const char *const names[] = {"dp", "dp",    "ep",    "dp,ep",
                                        "cp", "dp,cp", "ep,cp", "dp,ep,cp"};
    const struct mesh_axis *axis = made->mesh.axis;
    return names[(axis[MESH_DP].size > 1) + 2 * (axis[MESH_EP].size > 1) +
                 4 * (axis[MESH_CP].size > 1)];
}

/* Streams are called by the ranks that they join: what tokens do over ep is beside gradients that
 * are reduced over ep alone. */
static void traffics_near(const char *name, const struct workload_case *made,
                          const struct workload_counts *counts)
{
    struct workload_traffic role[MESH_ROLE_COUNT];
    const char *gradients = replicas(made);
    memcpy(role, counts->role, sizeof role);
    if (strcmp(gradients, "ep") == 0) {
        role[MESH_DP].all_to_all_bytes = role[MESH_EP].all_to_all_bytes;
        role[MESH_DP].all_to_all_count = role[MESH_EP].all_to_all_count;
    } else {
        traffic_near(name, made, "ep", &role[MESH_EP]);
    }
    traffic_near(name, made, gradients, &role[MESH_DP]);
    traffic_near(name, made, "experts", &counts->experts);
    traffic_near(name, made, "tp", &role[MESH_TP]);
    traffic_near(name, made, "fsdp", &role[MESH_FSDP]);
}

static void compare(const char *name, struct workload_case *made)
{
    struct workload_counts counts;
    if (case_lower(made) != STATUS_OK) fail_msg("%s: %s", name, made->error.message);
    workload_count(&made->plan, &made->machine, &made->mesh, &counts);
    struct case_sums const sums = case_sum(&made->program, "");
    near(name, "matmul FLOP", counts.matmul_flop, sums.matmul_flop);
    near(name, "useful FLOP", counts.matmul_useful, sums.useful_flop);
    bool const rounded = made->plan.model.experts.count != 0; /* An expert's rows. */
    if (!rounded && made->plan.remat == WORKLOAD_REMAT_NONE && made->mesh.axis[MESH_TP].size <= 8)
        near(name, "scores again", counts.matmul_flash + counts.matmul_waiting,
             sums.matmul_flop - sums.useful_flop);
    near(name, "padded FLOP", counts.padded_flop, padded_flop(made));
    near(name, "vector FLOP", counts.vector_flop, sums.vector_flop);
    near(name, "HBM bytes", counts.hbm_bytes, sums.hbm_bytes);
    near(name, "compute ops", counts.compute_count, compute_ops(made));
    near(name, "saved activations", counts.activation_bytes * made->plan.accumulate,
         saved_bytes(&made->program));
    const uint64_t *resident = made->program.roles[0].resident_bytes;
    near(name, "parameters", counts.parameter_bytes, (double)resident[PROGRAM_MEMORY_PARAMETERS]);
    near(name, "moments", counts.optimizer_bytes, (double)resident[PROGRAM_MEMORY_OPTIMIZER]);
    if (made->plan.accumulate > 1) {
        near(name, "gradients", counts.gradient_bytes, (double)resident[PROGRAM_MEMORY_GRADIENTS]);
    }
    near(name, "6PT", counts.useful_flop, made->program.useful_flop);
    near(name, "attention", counts.useful_attention_flop, made->program.useful_attention_flop);
    traffics_near(name, made, &counts);
    traffic_near(name, made, "kv", &counts.kv);
    traffic_near(name, made, "sequence", &counts.sequence);
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++) {
        if (sums.effects[m] != 0) fail_msg("%s: memory %u is not given back", name, m);
    }
}

/* Five bits choose the rest: all 32 for each place and ZeRO stage would be much the same. */
static void vary(struct workload_case *made, uint32_t variant)
{
    struct workload_plan *plan = &made->plan;
    plan->model.layers = 5;
    plan->remat = (enum workload_remat)(variant % 3);
    plan->gather = (enum workload_gather)(variant / 3 % 3);
    plan->accumulate = 1 + variant % 2;
    plan->collective_matmul = variant / 2 % 2;
    plan->backward_order = (enum workload_backward)(variant / 4 % 2);
    if (variant / 8 % 2 == 0) return;
    plan->activations = WORKLOAD_ACTIVATIONS_TOKENS;
    if (plan->model.kind == MODEL_LLAMA) plan->attention = WORKLOAD_ATTENTION_CAUSAL;
    plan->model.tied = plan->model.kind == MODEL_LLAMA;
    plan->model.matrices = plan->model.kind == MODEL_LLAMA ? 2 : 3;
    if (plan->model.kind != MODEL_LLAMA) return;
    plan->model.positions = 4096; /* As a GPT has it, with biases. */
    plan->model.norm_biases = 1;
    plan->model.attention_vectors = 4 * plan->model.width;
    plan->model.mlp_vectors = plan->model.mlp_width + plan->model.width;
}

/* Context parallelism three ways, beside the other axes; KV heads that Ulysses has to share. */
static void formulas_and_programs_agree_on_shared_sequences(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *dp, *fsdp, *tp;
        uint64_t batch_tokens;
    } rows[] = {
        {"16x4x4", NULL, "y", "z", 1 << 19},   {"16x4x4", "y", NULL, "z", 1 << 19},
        {"4x16x16", "y", NULL, "z", 1 << 19},  {"4x4x4", NULL, "y z", NULL, 1 << 20},
        {"2x4x4", NULL, "y z", NULL, 1 << 20},
    };
    for (size_t p = 0; p < sizeof rows / sizeof *rows; p++)
        for (uint32_t variant = 0; variant < 72; variant++) {
            struct workload_case made;
            char name[96];
            const char *const parts[MESH_ROLE_COUNT] = {[MESH_DP] = rows[p].dp,
                                                        [MESH_FSDP] = rows[p].fsdp,
                                                        [MESH_TP] = rows[p].tp,
                                                        [MESH_CP] = "x"};
            (void)snprintf(name, sizeof name, "shared sequences %zu, variant %u", p, variant);
            assert_int_equal(case_build_roles(&made, &case_llama_70b, rows[p].shape, parts),
                             STATUS_OK);
            made.plan.batch_tokens = rows[p].batch_tokens;
            made.plan.sequence_length = 8192;
            made.plan.zero = rows[p].fsdp == NULL ? variant / 3 % 3 : 0;
            vary(&made, variant);
            made.plan.context = (enum workload_context)(variant / 12 % 3);
            made.plan.context_order = (enum workload_context_order)(variant / 36);
            compare(name, &made);
            case_free(&made);
        }
}

/* What copies of a program move each way, and what its effects take and never give back. */
static void offload_compare(const char *name, struct workload_case *made)
{
    struct workload_counts counts;
    double bytes[2] = {0};
    uint64_t count = 0;
    if (case_lower(made) != STATUS_OK) fail_msg("%s: %s", name, made->error.message);
    workload_count(&made->plan, &made->machine, &made->mesh, &counts);
    const struct program *program = &made->program;
    for (uint32_t t = 0; t < program->template_count; t++)
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            if (op->kind != PROGRAM_OP_COPY) continue;
            const struct program_copy *copy = &program->copies[op->index];
            bytes[copy->to_host] += (double)case_repeats(program, t) * (double)copy->size_bytes;
            count += case_repeats(program, t);
        }
    double const counted = counts.host_moment_bytes + counts.host_activation_bytes;
    near(name, "loads", counted, bytes[0]);
    near(name, "stores", counted, bytes[1]);
    assert_int_equal(counts.host_count, count);
    struct case_sums const sums = case_sum(program, "");
    near(name, "matmul FLOP", counts.matmul_flop, sums.matmul_flop);
    near(name, "HBM bytes", counts.hbm_bytes, sums.hbm_bytes);
    near(name, "compute ops", counts.compute_count, compute_ops(made));
    for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++)
        if (sums.effects[m] != 0) fail_msg("%s: memory %u is not given back", name, m);
}

static void formulas_and_programs_agree(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        const struct place *place = &places[p];
        bool const staged = place->dp != NULL && place->fsdp == NULL;
        for (uint32_t zero = 0; zero <= (staged ? 3u : 0u); zero++) {
            for (uint32_t variant = 0; variant < 36; variant++) {
                struct workload_case made;
                char name[96];
                (void)snprintf(name, sizeof name, "place %zu, zero %u, variant %u", p, zero,
                               variant);
                assert_int_equal(case_build(&made, place->llama ? &case_llama_70b : &case_mlp,
                                            place->shape, place->dp, place->fsdp, place->tp),
                                 STATUS_OK);
                made.plan.batch_tokens = place->batch_tokens;
                made.plan.zero = zero;
                vary(&made, variant);
                compare(name, &made);
                case_free(&made);
            }
        }
    }
}

/* Scores in HBM, with dropout and without: the sums of their kernels, and what they save. */
static void formulas_and_programs_agree_on_unfused_attention(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (uint32_t variant = 0; places[p].llama && variant < 36; variant++) {
            struct workload_case made;
            char name[96];
            (void)snprintf(name, sizeof name, "unfused, place %zu, variant %u", p, variant);
            assert_int_equal(case_build(&made, &case_llama_70b, places[p].shape, places[p].dp,
                                        places[p].fsdp, places[p].tp),
                             STATUS_OK);
            made.plan.batch_tokens = places[p].batch_tokens;
            vary(&made, variant);
            made.plan.sequence_length = 512;
            made.plan.attention = WORKLOAD_ATTENTION_FULL;
            made.plan.attention_kernel =
                variant % 5 < 2 ? WORKLOAD_KERNEL_UNFUSED : WORKLOAD_KERNEL_DROPOUT;
            compare(name, &made);
            struct case_sums const sums = case_sum(&made.program, "");
            for (uint32_t m = 0; m < PROGRAM_MEMORY_COUNT; m++)
                if (sums.effects[m] != 0) fail_msg("%s: memory %u is not given back", name, m);
            case_free(&made);
        }
}

static const struct model small_experts = {.kind = MODEL_LLAMA,
                                           .name = "experts",
                                           .layers = 5,
                                           .width = 2048,
                                           .mlp_width = 8192,
                                           .matrices = 3,
                                           .heads = 16,
                                           .kv_heads = 8,
                                           .head_width = 128,
                                           .vocabulary = 32768,
                                           .experts = {64, 6, 1024, 0, 0, 0, 0, false, false}};

/* What is sent over each dimension where routing is drawn: by the tally and in the plans. */
static void exchanges_near(const char *name, const struct workload_case *made)
{
    struct workload_counts counts;
    workload_count(&made->plan, &made->machine, &made->mesh, &counts);
    const struct workload_traffic *traffic = &counts.role[MESH_EP];
    for (uint32_t p = 0; p < made->program.plan_count; p++) {
        const struct plan *plan = &made->program.plans[p];
        for (uint32_t i = 0; plan->ragged_units != NULL && i < plan->item_count; i++) {
            uint32_t const d = plan->item[i].dimension;
            double const size = plan->group.dimension[d].size;
            double const sent = (double)ragged_item_load(plan, &plan->item[i]).sent_bytes;
            double const counted =
                traffic->crossing_bytes[d] / (double)traffic->all_to_all_count * (size - 1) / size;
            /* As V the sum is rounded down to a token. */
            if (counted > sent + 1 || counted < sent - 1 - (double)plan->ragged.token_bytes)
                fail_msg("%s: %.9g bytes sent along a dimension by formula and %.9g in the plan",
                         name, counted, sent);
        }
    }
}

/* GPU nodes and a torus; ep in a node, across nodes and over both, beside dp, fsdp and tp. */
static void formulas_and_programs_agree_on_experts(void **state)
{
    static const struct {
        uint32_t nodes; /* Of 8 H100; 0: a 4x4 torus. */
        const char *parts[MESH_ROLE_COUNT];
    } rows[] = {
        {1, {[MESH_EP] = "gpu"}},
        {2, {[MESH_EP] = "node gpu"}},
        {4, {[MESH_DP] = "node", [MESH_EP] = "gpu"}},
        {4, {[MESH_FSDP] = "node", [MESH_EP] = "gpu"}},
        {4, {[MESH_EP] = "node", [MESH_TP] = "gpu"}},
        {4, {[MESH_FSDP] = "node", [MESH_TP] = "gpu"}},
        {4, {[MESH_DP] = "node:2", [MESH_EP] = "node:2", [MESH_TP] = "gpu"}},
        {0, {[MESH_EP] = "x y"}},
        {0, {[MESH_FSDP] = "x", [MESH_EP] = "y"}},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (uint32_t variant = 0; variant < 72; variant++) {
            struct workload_case made;
            char name[96];
            bool const gpus = rows[r].nodes != 0;
            struct machine_plan const machine = {.chip = gpus ? "h100-sxm" : "tpu-v5p",
                                                 .nodes = rows[r].nodes,
                                                 .shape = gpus ? NULL : "4x4",
                                                 .profile = "ideal",
                                                 .unrealisable = !gpus,
                                                 .wrap = {-1, -1, -1}};
            (void)snprintf(name, sizeof name, "experts %zu, variant %u", r, variant);
            if (case_build_on(&made, &small_experts, &machine, rows[r].parts) != STATUS_OK)
                fail_msg("%s: %s", name, made.error.message);
            bool const replicated = rows[r].parts[MESH_FSDP] == NULL;
            made.plan.zero = replicated ? variant % 3 : 0;
            vary(&made, variant / 2);
            made.plan.model.experts.shared = variant % 3;
            made.plan.model.experts.dense_layers = variant % 4;
            made.plan.model.experts.biased = made.plan.model.experts.router_biased = variant % 5;
            made.plan.model.attention_vectors = 512;
            made.plan.capacity_ppm = variant % 7 == 0 ? 1100000 : variant % 11 == 0 ? 700000 : 0;
            if (gpus && variant % 5 < 2) {
                made.plan.batch_tokens = 1 << 15; /* Each of them is drawn. */
                made.plan.sequence_length = 512;
                made.plan.routing_skew_ppm = variant % 5 == 0 ? 400000 : 1000000;
                made.plan.seed = variant;
            }
            compare(name, &made);
            exchanges_near(name, &made);
            case_free(&made);
        }
}

/* DeepSeek's layers, smaller: what is split over tp, and what all of its ranks do alike; with as
 * many as three modules that predict further tokens. */
static void formulas_and_programs_agree_on_latent_attention(void **state)
{
    static const struct {
        uint32_t nodes; /* Of 8 H100; 0: a 4x4 torus. */
        const char *parts[MESH_ROLE_COUNT];
    } rows[] = {
        {1, {[MESH_EP] = "gpu"}},
        {1, {[MESH_TP] = "gpu"}},
        {4, {[MESH_DP] = "node", [MESH_EP] = "gpu"}},
        {4, {[MESH_FSDP] = "node", [MESH_EP] = "gpu"}},
        {4, {[MESH_EP] = "node", [MESH_TP] = "gpu"}},
        {4, {[MESH_FSDP] = "node", [MESH_TP] = "gpu"}},
        {4, {[MESH_DP] = "node:2", [MESH_EP] = "node:2", [MESH_TP] = "gpu"}},
        {0, {[MESH_FSDP] = "x", [MESH_TP] = "y"}},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (uint32_t variant = 0; variant < 72; variant++) {
            struct workload_case made;
            char name[96];
            bool const gpus = rows[r].nodes != 0;
            struct machine_plan const machine = {.chip = gpus ? "h100-sxm" : "tpu-v5p",
                                                 .nodes = rows[r].nodes,
                                                 .shape = gpus ? NULL : "4x4",
                                                 .profile = "ideal",
                                                 .unrealisable = !gpus,
                                                 .wrap = {-1, -1, -1}};
            (void)snprintf(name, sizeof name, "latent attention %zu, variant %u", r, variant);
            if (case_build_on(&made, &small_experts, &machine, rows[r].parts) != STATUS_OK)
                fail_msg("%s: %s", name, made.error.message);
            bool const replicated =
                rows[r].parts[MESH_DP] != NULL || rows[r].parts[MESH_EP] != NULL;
            made.plan.zero = replicated && rows[r].parts[MESH_FSDP] == NULL ? variant % 3 : 0;
            vary(&made, variant / 2);
            struct model *model = &made.plan.model;
            model->latent = (struct model_latent){768, 256, 128, 64};
            model->head_width = 192;
            model->value_width = 128;
            model->kv_heads = model->heads;
            model->experts.shared = variant % 2;
            model->experts.dense_layers = variant % 4;
            if (variant % 3 != 0) model->tied = false;
            if (!model->tied) model->predictors = variant % 4;
            if (model->predictors != 0) model->positions = 0;
            compare(name, &made);
            case_free(&made);
        }
}

static void formulas_and_programs_agree_on_what_is_offloaded(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        const struct place *place = &places[p];
        for (uint32_t variant = 0; variant < 36; variant++) {
            struct workload_case made;
            char name[96];
            (void)snprintf(name, sizeof name, "place %zu, variant %u", p, variant);
            assert_int_equal(case_build(&made, place->llama ? &case_llama_70b : &case_mlp,
                                        place->shape, place->dp, place->fsdp, place->tp),
                             STATUS_OK);
            made.plan.batch_tokens = place->batch_tokens;
            made.plan.zero = place->dp != NULL && place->fsdp == NULL ? variant / 6 % 4 : 0;
            vary(&made, variant);
            made.plan.model.layers = 2 + variant % 4;
            made.plan.prefetch_layers = variant % 3;
            made.plan.offload =
                (enum workload_offload)(WORKLOAD_OFFLOAD_OPTIMIZER + (variant + p) % 3);
            offload_compare(name, &made);
            case_free(&made);
        }
    }
}

/* The book, 5.1.1 and 5.1.2: 10 bytes a parameter, over all ranks that hold a part. */
static void memory_is_ten_bytes_a_parameter(void **state)
{
    (void)state;
    struct workload_case made;
    struct workload_counts counts;
    double const parameters = 8 * 2.0 * 8192 * 32768;
    assert_int_equal(case_build(&made, &case_mlp, "16", "x", NULL, NULL), STATUS_OK);
    static const double shares[4] = {10, 2 + 8.0 / 16, 2 + 8.0 / 16, 10.0 / 16};
    static const double gradients[4] = {2, 2, 2.0 / 16, 2.0 / 16};
    for (uint32_t zero = 0; zero <= 3; zero++) {
        made.plan.zero = zero;
        workload_count(&made.plan, &made.machine, &made.mesh, &counts);
        near("zero", "state", counts.parameter_bytes + counts.optimizer_bytes,
             shares[zero] * parameters);
        near("zero", "gradients", counts.gradient_bytes, gradients[zero] * parameters);
    }
    case_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_and_programs_agree),
        cmocka_unit_test(formulas_and_programs_agree_on_shared_sequences),
        cmocka_unit_test(formulas_and_programs_agree_on_unfused_attention),
        cmocka_unit_test(formulas_and_programs_agree_on_experts),
        cmocka_unit_test(formulas_and_programs_agree_on_latent_attention),
        cmocka_unit_test(formulas_and_programs_agree_on_what_is_offloaded),
        cmocka_unit_test(memory_is_ten_bytes_a_parameter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
