/*
 * run_keys.c: the rows of `run`.
 */
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/collective/choice.h"
#include "sim/collective/collective.h"
#include "sim/scenario/key.h"
#include "sim/scenario/scenario.h"

enum { PREFETCH_MAX = 1024, ALGORITHMS_MAX = 64, STEPS_MAX = 64 };

/* In the order of enum workload_parameters. */
static const char *const parameters_names[] = {"end", "next_step", NULL};
static const char *const engine_names[] = {"fast", "reference", NULL};
static const char *const arbitration_names[] = {"fair", "priority", "fifo", NULL};

static bool is_among(const char *text, size_t length, const char *const *names)
{
    char name[PLAN_ALGORITHM_SIZE];
    if (length >= sizeof name) return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return names[name_find(name, names)] != NULL;
}

/* Families, "flat-" before one, and several with "+" between; the plan says what can run. */
static bool is_composed(const char *text, const char *const *names)
{
    const char *base = plan_flat_base(text);
    if (base != NULL) return is_among(base, strlen(base), names);
    for (const char *end = text; end != NULL; text = end + 1) {
        end = strchr(text, '+');
        if (!is_among(text, end == NULL ? strlen(text) : (size_t)(end - text), names)) return false;
        if (end == NULL) break;
    }
    return true;
}

/* "auto", "hierarchical" and the families of the catalogue. */
static enum status algorithm_settle(const struct key_reader *reader, struct json *member,
                                    struct error *reterr)
{
    const char *names[ALGORITHMS_MAX + 1] = {"auto", "hierarchical"};
    const char *const algorithm = reader->scenario->workload.algorithm;
    uint32_t count = 2, chosen = 0;
    _Static_assert(PRIMITIVE_FAMILY_COUNT + 2 <= ALGORITHMS_MAX, "names have room");
    for (uint32_t i = 0; i < PRIMITIVE_FAMILY_COUNT; i++)
        names[count++] = primitive_family_name((enum primitive_family)i);
    if (member == NULL || is_composed(algorithm, names)) return STATUS_OK;
    const char *const synonym = choice_synonym(algorithm);
    if (synonym != NULL)
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "no algorithm \"%.64s\"; did you mean \"%s\"?", algorithm, synonym);
    return json_choice(member, names, &chosen, reterr);
}

static bool updates_parts(const struct scenario *scenario)
{
    return scenario->workload.zero == 1 || scenario->workload.zero == 2;
}

static bool has_updated_parts(const struct key_source *source)
{
    return updates_parts(source->scenario);
}

static enum status parameters_settle(const struct key_reader *reader, struct json *member,
                                     struct error *reterr)
{
    const struct workload_plan *plan = &reader->scenario->workload;
    if (plan->parameter_gather == WORKLOAD_PARAMETERS_END || updates_parts(reader->scenario))
        return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "with \"zero\": %u no updated weights are gathered; \"next_step\" is for 1 "
                     "and 2",
                     plan->zero);
}

static enum status seed_settle(const struct key_reader *reader, struct json *member,
                               struct error *reterr)
{
    (void)member;
    (void)reterr;
    reader->scenario->workload.seed = reader->scenario->run.seed;
    return STATUS_OK;
}

#define AT(member) offsetof(struct scenario, member)

const struct key run_keys[] = {
    {.name = "prefetch_layers",
     .kind = KEY_COUNT,
     .at = AT(workload.prefetch_layers),
     .most = PREFETCH_MAX,
     .preset = 1,
     .help = "how far gathers run ahead: the gather of layer l, and its loads from the host, may "
             "begin when the compute of layer l-n begins"},
    {.name = "parameter_gather",
     .kind = KEY_CHOICE,
     .at = AT(workload.parameter_gather),
     .choices = parameters_names,
     .settle = parameters_settle,
     .shown = has_updated_parts,
     .when = "with `zero` 1 or 2",
     .help = "when updated weights are gathered. `end`: after the update; `next_step`: each layer "
             "before its first use in the next step, `prefetch_layers` ahead (Megatron's "
             "`overlap_param_gather`)"},
    {.name = "collective_matmul",
     .kind = KEY_FLAG,
     .at = AT(workload.collective_matmul),
     .help = "hide TP collectives behind their matmuls, chunk by chunk"},
    {.name = "seed",
     .kind = KEY_INTEGER,
     .at = AT(run.seed),
     .most = INT64_MAX,
     .settle = seed_settle,
     .help = "the seed of drawn tokens: a training step draws where `routing_skew` is above 0"},
    {.name = "algorithm",
     .kind = KEY_TEXT,
     .at = AT(workload.algorithm),
     .word = "auto",
     .settle = algorithm_settle,
     .values = "`auto` or a name of [collectives.md](collectives.md)",
     .help = "the algorithm of every collective; `auto` chooses [by "
             "shape](algorithm-choice.md#in-a-training-step)"},
    {.name = "arbitration",
     .kind = KEY_WORD,
     .at = AT(run.arbitration),
     .choices = arbitration_names,
     .help = "which stream a link serves: by turns of a segment, the more urgent first, or first "
             "come, first served ([when to change it](limits.md#arbitration-of-links))"},
    {.name = "engine",
     .kind = KEY_WORD,
     .at = AT(run.engine),
     .choices = engine_names,
     .help = "the event queue; both give the same digest"},
    /* 0 until the scenario is known, whose mesh gives the default. */
    {.name = "steps",
     .kind = KEY_COUNT,
     .at = AT(run.steps),
     .least = 1,
     .most = STEPS_MAX,
     .preset_text = "8 with `pp` or `next_step`, else 1",
     .help = "the most steps that are simulated, one after another, to find the "
             "[period](pipeline.md#from-step-to-step). 1: a single step"},
    {0},
};
