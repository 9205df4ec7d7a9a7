/*
 * workload_case.h: a training step to lower, for the tests of sim/step: machine, mesh and plan
 * from a few words, and sums over the program that came out.
 */
#ifndef TESTS_UNIT_WORKLOAD_CASE_H
#define TESTS_UNIT_WORKLOAD_CASE_H

#include <string.h>

#include "sim/base/arena.h"
#include "sim/step/workload.h"
#include "tests/support/refusals.h"

struct workload_case {
    struct arena *arena;
    struct workload_plan plan;
    struct machine machine;
    struct mesh mesh;
    struct program program;
    struct error error;
};

static const struct model case_mlp = {.kind = MODEL_MLP,
                                      .name = "mlp",
                                      .layers = 8,
                                      .width = 8192,
                                      .mlp_width = 32768,
                                      .matrices = 2};

static const struct model case_llama_70b = {.kind = MODEL_DECODER,
                                            .name = "llama-3-70b",
                                            .layers = 80,
                                            .width = 8192,
                                            .mlp_width = 28672,
                                            .matrices = 3,
                                            .heads = 64,
                                            .kv_heads = 8,
                                            .head_width = 128,
                                            .vocabulary = 128256};

/* Parts of mesh axes by role, each "x y" or NULL, on a machine. */
static inline enum status case_build_on(struct workload_case *made, const struct model *model,
                                        const struct machine_plan *machine_plan,
                                        const char *const parts[MESH_ROLE_COUNT])
{
    struct mesh_plan mesh_plan = {0};
    memset(made, 0, sizeof *made);
    made->arena = arena_create(0);
    for (uint32_t r = 0; r < MESH_ROLE_COUNT; r++) {
        if (parts[r] == NULL) continue;
        struct mesh_axis_plan *axis = &mesh_plan.axis[mesh_plan.axis_count++];
        axis->role = (enum mesh_role)r;
        char *text = arena_text(made->arena, parts[r]);
        for (char *rest = NULL, *part = strtok_r(text, " ", &rest); part != NULL;
             part = strtok_r(NULL, " ", &rest)) {
            axis->part[axis->part_count++] = part;
        }
    }
    made->plan = (struct workload_plan){
        .model = *model,
        .batch_tokens = 1 << 20,
        .sequence_length = 4096,
        .remat = GRAPH_REMAT_NONE,
        .accumulate = 1,
        .formats = {.optimizer = FORMAT_FP32, /* All others are bf16. */
                    .main_gradients = FORMAT_FP32},
        .prefetch_layers = 1,
        .algorithm = algorithm_read("auto"),
    };
    STATUS_TRY(machine_build(made->arena, machine_plan, &made->machine, &made->error));
    return mesh_build(&mesh_plan, &made->machine, &made->mesh, &made->error);
}

/* The machine of a shape; parts of mesh axes by role, each "x y" or NULL. */
static inline enum status case_build_roles(struct workload_case *made, const struct model *model,
                                           const char *shape,
                                           const char *const parts[MESH_ROLE_COUNT])
{
    struct machine_plan const machine_plan = {.chip = "tpu-v5p",
                                              .shape = shape,
                                              .profile = "ideal",
                                              .unrealisable = true,
                                              .wrap = {-1, -1, -1}};
    return case_build_on(made, model, &machine_plan, parts);
}

/* Parts in the order dp, fsdp, tp. */
static inline enum status case_build(struct workload_case *made, const struct model *model,
                                     const char *shape, const char *dp, const char *fsdp,
                                     const char *tp)
{
    const char *const parts[MESH_ROLE_COUNT] = {dp, fsdp, tp};
    return case_build_roles(made, model, shape, parts);
}

static inline enum status case_lower(struct workload_case *made)
{
    return workload_lower(made->arena, &made->plan, &made->machine, &made->mesh, &made->program,
                          &made->error);
}

static inline void case_free(struct workload_case *made)
{
    arena_destroy(made->arena);
}

/* Lowers a step that is refused at `where`, with a message that has `words`, and frees it. */
#define case_lower_refused(made, where, words) case_lower_refused_at(made, where, words, __FILE__)
static inline void case_lower_refused_at(struct workload_case *made, const char *where,
                                         const char *words, const char *file)
{
    assert_int_not_equal(case_lower(made), STATUS_OK);
    if (strcmp(made->error.where, where) != 0 || strstr(made->error.message, words) == NULL)
        fail_msg("%s: %s", made->error.where, made->error.message);
    refusals_hold(&made->error, file);
    case_free(made);
}

/* How often the whole step plays a template. */
static inline uint64_t case_repeats(const struct program *program, uint32_t template_index)
{
    return program_role_plays(&program->roles[0], template_index, PROGRAM_ANY_PHASE);
}

struct case_sums {
    uint64_t collectives[COLLECTIVE_KIND_COUNT];
    double bytes[COLLECTIVE_KIND_COUNT];
    double matmul_flop, vector_flop, hbm_bytes, useful_flop;
    int64_t effects[PROGRAM_MEMORY_COUNT];
};

/* Whether a stream is of this, as text; every stream is of "". */
static inline bool case_stream_is(const struct program_stream *stream, const char *group)
{
    char of[STREAM_USE_BYTES];
    return group[0] == '\0' || strcmp(stream_of_text(stream->use.of, of), group) == 0;
}

/* V; of a ragged exchange what ranks have for each other and for themselves. */
static inline double case_plan_bytes(const struct plan *plan)
{
    uint64_t const ranks = group_rank_count(&plan->group);
    uint64_t units = 0;
    if (plan->ragged_units == NULL) return (double)plan->size_bytes;
    for (uint64_t i = 0; i < ranks * ranks; i++) units += plan->ragged_units[i];
    return (double)(units / 2 * plan->ragged.token_bytes);
}

/* Sums over the step; collectives only of the streams of a group. */
static inline struct case_sums case_sum(const struct program *program, const char *group)
{
    struct case_sums sums = {0};
    for (uint32_t t = 0; t < program->template_count; t++) {
        double const times = (double)case_repeats(program, t);
        for (uint32_t i = 0; i < program->templates[t].op_count; i++) {
            const struct program_op *op = &program->templates[t].op[i];
            for (uint32_t e = 0; e < op->effect_count; e++) {
                sums.effects[op->effect[e].memory] += (int64_t)times * op->effect[e].bytes;
            }
            if (op->kind == PROGRAM_OP_COMPUTE) {
                const struct work *work = &program->works[op->index];
                sums.matmul_flop += times * (double)work_matmul_flop(work);
                sums.vector_flop += times * (double)work->vector_flop;
                sums.hbm_bytes += times * (double)(work->hbm_read_bytes + work->hbm_write_bytes);
                sums.useful_flop += times * (double)work->useful_flop;
                continue;
            }
            if (op->kind == PROGRAM_OP_COPY) continue;
            if (!case_stream_is(&program->stream[op->stream], group)) continue;
            const struct plan *plan = &program->plans[op->index];
            sums.collectives[plan->kind] += (uint64_t)times;
            sums.bytes[plan->kind] += times * case_plan_bytes(plan);
        }
    }
    return sums;
}

#endif
