#include "sim/report/notes_replicas.h"

#include "sim/report/table.h"

/* Collectives of the ranks that hold the same weights. */
struct replicas_total {
    double time_s, exposed_s;
    uint64_t count;
};

/* The mesh axes along which weights are replicated, as bits of enum stream_of; experts are not
 * along ep, which splits them. */
static uint32_t replicas_of(const struct mesh *mesh, bool experts)
{
    uint32_t of = 0;
    if (mesh->axis[MESH_DP].size > 1) of |= STREAM_OF_DP;
    if (mesh->axis[MESH_EP].size > 1 && !experts) of |= STREAM_OF_EP;
    if (mesh->axis[MESH_CP].size > 1) of |= STREAM_OF_CP;
    return of;
}

/* Experts have streams of their own, whose ranks are the same as the others' without ep. */
static struct replicas_total replicas_total(const struct facts *facts, const struct mesh *mesh,
                                            uint32_t of, bool gathers)
{
    struct replicas_total total = {0};
    for (uint32_t i = 0; i < facts->class_count; i++) {
        const struct facts_class *row = &facts->classes[i];
        bool const is_of_weights = row->verb == STREAM_REDUCE || row->verb == STREAM_GATHER;
        uint32_t const along = row->of == STREAM_OF_EXPERTS ? replicas_of(mesh, true) : row->of;
        if (!row->collective || !is_of_weights || along != of || row->gathers != gathers) continue;
        total.time_s += row->time_s;
        total.exposed_s += row->exposed_s;
        total.count += row->count;
    }
    return total;
}

/* Weights that zero has sharded are gathered: before each use, behind the update, or a step later.
 */
static const char *when_gathered(const struct workload_plan *plan)
{
    if (plan->zero == 3) return "before each use";
    return plan->parameter_gather == WORKLOAD_PARAMETERS_NEXT_STEP
               ? "before their first use in the next step"
               : "once they are updated";
}

/* What exposes reductions. One microbatch's are all that can wait for the last layer; more wait in
 * the window that ZeRO-2 has (lower_weights.c), in which gradients of one slot wait. */
static const char *reductions_wait(const struct workload_plan *plan, double exposed_s,
                                   double time_s)
{
    if (exposed_s == 0) return "";
    if (plan->zero == 2 && exposed_s > time_s / plan->accumulate)
        return ", as gradients of one slot may wait: a layer's backward pass begins when the "
               "reductions of all layers but the previous one are done";
    return ", at the latest the last layer's, which no compute is left to overlap";
}

static void note_replicas(struct arena *arena, const struct report_input *input,
                          const struct facts *facts, uint32_t of, struct notes *notes)
{
    struct replicas_total const sums = replicas_total(facts, input->mesh, of, false);
    struct replicas_total const gathers = replicas_total(facts, input->mesh, of, true);
    const struct workload_plan *plan = input->workload;
    uint32_t const times = workload_reductions(plan, input->mesh->axis[MESH_PP].size);
    bool const each = plan->zero >= 2 && plan->accumulate > 1 && times == plan->accumulate;
    char name[STREAM_USE_BYTES];
    (void)stream_of_text(of, name);
    if (sums.count > 0)
        notes_add(arena, notes,
                  "the %s reductions%s run behind the backward pass; %s of their %s is exposed "
                  "(%s of the step)%s",
                  name, each ? " of each microbatch" : "", table_seconds(sums.exposed_s).text,
                  table_seconds(sums.time_s).text,
                  table_percent(sums.exposed_s, facts->step_s).text,
                  reductions_wait(plan, sums.exposed_s, sums.time_s));
    if (gathers.count > 0)
        notes_add(arena, notes,
                  "the %s gathers bring weights together %s; %s of their %s is exposed (%s of the "
                  "step)",
                  name, when_gathered(plan), table_seconds(gathers.exposed_s).text,
                  table_seconds(gathers.time_s).text,
                  table_percent(gathers.exposed_s, facts->step_s).text);
}

void notes_replicas_build(struct arena *arena, const struct report_input *input,
                          const struct facts *facts, struct notes *notes)
{
    uint32_t const all = replicas_of(input->mesh, false), experts = replicas_of(input->mesh, true);
    note_replicas(arena, input, facts, all, notes);
    if (experts != all) note_replicas(arena, input, facts, experts, notes);
}
