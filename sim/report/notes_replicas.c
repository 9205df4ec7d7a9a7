#include "sim/report/notes_replicas.h"

#include "sim/report/table.h"

/* Of the step. */
static const double MINOR_SHARE = 0.005;

/* Collectives of the ranks that hold the same weights. */
struct replicas_total {
    double time_s, exposed_s;
    uint64_t count;
};

/* Along axes of `of`, bits of enum stream_of. Streams of experts name no axes. */
static struct replicas_total replicas_total(const struct analysis *analysis,
                                            const struct mesh *mesh, uint32_t of, bool gathers)
{
    struct replicas_total total = {0};
    for (uint32_t i = 0; i < analysis->class_count; i++) {
        const struct analysis_class *row = &analysis->classes[i];
        bool const is_of_weights = row->verb == STREAM_REDUCE || row->verb == STREAM_GATHER;
        uint32_t const along =
            row->of == STREAM_OF_EXPERTS ? mesh_replica_roles(mesh, true) : row->of;
        if (!row->collective || !is_of_weights || along != of ||
            (row->runs == COLLECTIVE_ALL_GATHER) != gathers)
            continue;
        total.time_s += row->time_s;
        total.exposed_s += row->exposed_s;
        total.count += row->count;
    }
    return total;
}

/* Whether reductions wait for the end of all passes. */
static bool waits_apart(const struct report_input *input)
{
    return input->workload->software.overlap.dp_apart && input->workload->zero <= 1 &&
           input->mesh->axis[MESH_FSDP].size == 1;
}

/* Weights that are sharded are gathered: before each use, behind the update, or a step later. */
static const char *when_gathered(const struct report_input *input)
{
    const struct workload_plan *plan = input->workload;
    if (plan->zero == 3 || workload_serves(plan)) return "before each use";
    if (waits_apart(input)) return "once all are updated";
    return plan->parameter_gather == WORKLOAD_PARAMETERS_NEXT_STEP
               ? "before their first use in the next step"
               : "once they are updated";
}

/* What exposes reductions. One microbatch's are all that can wait for the last layer; more wait in
 * the window that ZeRO-2 has (lower_weights.c), in which gradients of one slot wait. */
static const char *reductions_wait(const struct workload_plan *plan, double exposed_s,
                                   double time_s)
{
    if (exposed_s == 0 || plan->software.overlap.dp_apart) return "";
    if (plan->zero == 2 && exposed_s > time_s / plan->accumulate)
        return ", as gradients of one slot may wait: a layer's backward pass begins when the "
               "reductions of all layers but the previous one are done";
    return ", at the latest the last layer's, which no compute is left to overlap";
}

/* Where experts have replicas of their own there are two groups, and reductions and gathers of
 * each: what is hidden gives way to other notes. */
static bool is_minor(const struct analysis *analysis, bool alone, double exposed_s)
{
    return !alone && exposed_s < MINOR_SHARE * analysis->step_s;
}

static void note_reductions(struct arena *arena, const struct report_input *input,
                            const struct analysis *analysis, const char *name,
                            const struct replicas_total *sums, struct notes *notes)
{
    const struct workload_plan *plan = input->workload;
    uint32_t const times = input->roofline->counts.weights.reductions;
    bool const each = plan->zero >= 2 && plan->accumulate > 1 && times == plan->accumulate;
    notes_add(arena, notes,
              "the %s reductions%s %s the backward pass; %s of their %s is exposed (%s of the "
              "step)%s",
              name, each ? " of each microbatch" : "",
              waits_apart(input)                ? "wait for the end of"
              : plan->software.overlap.dp_apart ? "stop"
                                                : "run behind",
              table_seconds(sums->exposed_s).text, table_seconds(sums->time_s).text,
              table_percent(sums->exposed_s, analysis->step_s).text,
              reductions_wait(plan, sums->exposed_s, sums->time_s));
}

static void note_gathers(struct arena *arena, const struct report_input *input,
                         const struct analysis *analysis, const char *name,
                         const struct replicas_total *gathers, struct notes *notes)
{
    notes_add(arena, notes,
              "the %s gathers bring weights together %s; %s of their %s is exposed (%s of the "
              "step)",
              name, when_gathered(input), table_seconds(gathers->exposed_s).text,
              table_seconds(gathers->time_s).text,
              table_percent(gathers->exposed_s, analysis->step_s).text);
}

void notes_replicas_build(struct arena *arena, const struct report_input *input,
                          const struct analysis *analysis, bool minor, struct notes *notes)
{
    uint32_t const group[2] = {mesh_replica_roles(input->mesh, false),
                               mesh_replica_roles(input->mesh, true)};
    bool const alone = group[0] == group[1];
    for (uint32_t g = 0; g < (alone ? 1 : 2); g++) {
        struct replicas_total const sums = replicas_total(analysis, input->mesh, group[g], false);
        struct replicas_total const gathers = replicas_total(analysis, input->mesh, group[g], true);
        char name[STREAM_USE_BYTES];
        (void)stream_of_text(group[g], name);
        if (sums.count > 0 && is_minor(analysis, alone, sums.exposed_s) == minor)
            note_reductions(arena, input, analysis, name, &sums, notes);
        if (gathers.count > 0 && is_minor(analysis, alone, gathers.exposed_s) == minor)
            note_gathers(arena, input, analysis, name, &gathers, notes);
    }
}
