/*
 * run_keys.c: the rows of `run`.
 */
#include <string.h>

#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/collective/all_reduce_kernels.h"
#include "sim/collective/choice.h"
#include "sim/collective/collective.h"
#include "sim/scenario/scenario_parts.h"

enum { PREFETCH_MAX = 1024, ALGORITHMS_MAX = 64, STEPS_MAX = 64 };

/* In the order of enum workload_parameters. */
static const char *const parameters_names[] = {"end", "next_step", NULL};
/* In the order of enum workload_chunks. */
static const char *const chunks_names[] = {"ranks", "userbuffers", "userbuffers_pairs", NULL};
static const char *const engine_names[] = {"fast", "reference", NULL};
static const char *const prefetch_names[] = {"none", "vmem", NULL};
static const char *const protocols_names[] = {"none", "nccl", NULL};
static const char *const all_reduce_names[] = {
#define X(name, text) text,
    ALL_REDUCE_KERNELS_TABLE(X)
#undef X
        NULL,
};
static const char *const collective_cores_names[] = {"none", "nccl", NULL};
/* In the order of enum arbitration. */
static const char *const arbitration_names[] = {"fair", "priority", "fifo", NULL};

/* Which algorithms a step can go by is known where it is lowered. */
enum status scenario_algorithm_check(const struct scenario *scenario, struct error *reterr)
{
    const char *names[ALGORITHMS_MAX + 1] = {"auto", "hierarchical"};
    const struct algorithm *const algorithm = &scenario->workload.algorithm;
    uint32_t count = 2;
    _Static_assert(PRIMITIVE_FAMILY_COUNT + 2 <= ALGORITHMS_MAX, "names have room");
    for (uint32_t i = 0; i < PRIMITIVE_FAMILY_COUNT; i++)
        names[count++] = primitive_family_name((enum primitive_family)i);
    if (choice_is_known(algorithm)) return STATUS_OK;
    return error_set(
        reterr, STATUS_NOT_FOUND, "/run/algorithm", "no algorithm \"%.64s\"%s",
        algorithm_text(algorithm).text,
        name_offer(algorithm_text(algorithm).text, names, "; the nearest is \"", "\"", NULL).text);
}

static enum status algorithm_take(const struct key *row, const struct key_reader *reader,
                                  struct json *value, struct error *reterr)
{
    const char *name = row->word;
    if (value != NULL) STATUS_TRY(json_as_string(value, &name, reterr));
    *(struct algorithm *)key_field(row, reader) = algorithm_read(name);
    return STATUS_OK;
}

static void algorithm_put(struct json_writer *writer, const struct key *row,
                          const struct key_source *source)
{
    json_write_string(writer, algorithm_text(key_field_of(row, source)).text);
}

static const struct key_kind key_algorithm = {.read = algorithm_take,
                                              .write = algorithm_put,
                                              .type = "string",
                                              .has_length = true,
                                              .begin = '"'};

static bool has_stack(const struct key_source *source)
{
    return shown_of(source)->machine.stack != NULL;
}

static bool has_chunks(const struct key_source *source)
{
    return shown_of(source)->workload.collective_matmul;
}

static bool updates_parts(const struct scenario *scenario)
{
    return scenario->workload.zero == 1 || scenario->workload.zero == 2;
}

static bool has_updated_parts(const struct key_source *source)
{
    return updates_parts(shown_of(source));
}

static enum status parameters_settle(const struct key_reader *reader, struct json *member,
                                     struct error *reterr)
{
    const struct workload_plan *plan = &scenario_of(reader)->workload;
    if (plan->parameter_gather == WORKLOAD_PARAMETERS_END || updates_parts(scenario_of(reader)))
        return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "with \"zero\": %u no updated weights are gathered; \"next_step\" is for 1 "
                     "and 2, \"end\" for any",
                     plan->zero);
}

static bool launches_eagerly(const struct key_source *source)
{
    return shown_of(source)->machine.launches == CHIP_LAUNCHES_EAGER;
}

static enum status launch_host_settle(const struct key_reader *reader, struct json *member,
                                      struct error *reterr)
{
    const struct scenario *scenario = scenario_of(reader);
    int64_t const host_ps = scenario->machine.launch_host_ps;
    if (host_ps == 0 || host_ps == machine_call_ps ||
        scenario->machine.launches == CHIP_LAUNCHES_EAGER)
        return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "the host launches ops with \"launch\": \"eager\" alone; set it, or leave "
                     "this out");
}

static enum status joins_settle(const struct key_reader *reader, struct json *member,
                                struct error *reterr)
{
    const struct scenario *scenario = scenario_of(reader);
    if (scenario->workload.software.joins == PRODUCT_JOINS_DEFAULT ||
        scenario->machine.stack != NULL)
        return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "products are joined by software, and the machine names no \"stack\"; name "
                     "one, or leave this out");
}

static enum status chunks_settle(const struct key_reader *reader, struct json *member,
                                 struct error *reterr)
{
    const struct workload_plan *plan = &scenario_of(reader)->workload;
    if (plan->software.chunks == WORKLOAD_CHUNKS_RANKS || plan->collective_matmul) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "products go chunk by chunk with \"collective_matmul\": true alone; set it, "
                     "or leave this out");
}

static bool serves(const struct key_source *source)
{
    return workload_serves(&shown_of(source)->workload);
}

static enum status split_settle(const struct key_reader *reader, struct json *member,
                                struct error *reterr)
{
    const struct workload_plan *plan = &scenario_of(reader)->workload;
    if (!plan->inference.whole_units || workload_serves(plan)) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "a training step has no cache that decodes attend to; leave it out");
}

static enum status seed_settle(const struct key_reader *reader, struct json *member,
                               struct error *reterr)
{
    (void)member;
    (void)reterr;
    scenario_of(reader)->workload.routing.seed = scenario_of(reader)->run.seed;
    return STATUS_OK;
}

#define ROW(...) KEY_ROW(struct scenario, __VA_ARGS__)

const struct key run_keys[] = {
    ROW("prefetch_layers", key_count, workload.prefetch_layers, .most = PREFETCH_MAX, .preset = 1,
        .help =
            "how far gathers run ahead: the gather of layer l, and its loads from the host, may "
            "begin when the compute of layer l-n begins"),
    ROW("parameter_gather", key_choice, workload.parameter_gather, .choices = parameters_names,
        .settle = parameters_settle, .shown = has_updated_parts, .when = "with `zero` 1 or 2",
        .help =
            "when updated weights are gathered. `end`: after the update; `next_step`: each layer "
            "before its first use in the next step, `prefetch_layers` ahead (Megatron's "
            "`overlap_param_gather`)"),
    KEY("overlap", key_object, .members = overlap_keys, .has_table = true, .quiet = true,
        .values.words = "an [object](#overlap)", .values.example = "{\"fsdp\": \"gathers\"}",
        .preset_text = "its keys'",
        .help =
            "which collectives overlap with compute. Compute waits for the others where they are "
            "issued"),
    ROW("collective_matmul", key_flag, workload.collective_matmul,
        .when = "with `tp`, and other `activations` than `replicated`",
        .help = "hide TP collectives behind their matmuls, chunk by chunk"),
    ROW("matmul_chunks", key_choice, workload.software.chunks, .choices = chunks_names,
        .settle = chunks_settle, .shown = has_chunks, .quiet = true,
        .when = "with `collective_matmul`",
        .help = "which matmuls go chunk by chunk, and in how many kernels. `ranks`: all that can, "
                "a kernel for each rank of `tp`; `userbuffers`: as Transformer Engine's user "
                "buffers; `userbuffers_pairs`: the same with `aggregate` "
                "([kernels](kernels.md#chunks-of-products))"),
    ROW("split_attention", key_flag, workload.inference.whole_units, .negated = true, .preset = 1,
        .shown = serves, .settle = split_settle, .when = "of inference",
        .help =
            "cores of a GPU take parts of a sequence's keys where a decode has fewer sequences "
            "and heads than cores, or sequences of different lengths; `false`: each has one core "
            "([inference](inference.md#cores))"),
    ROW("prefetch_weights", key_choice, workload.inference.prefetch, .choices = prefetch_names,
        .shown = serves, .when = "of inference, on TPUs",
        .help = "`vmem`: while the compute queue waits, weights of the products that follow stream "
                "into VMEM, as far as it holds them; `none`: each product reads its own "
                "([inference](inference.md#weights-ahead))"),
    ROW("launch", key_choice, machine.launches, .choices = chip_launch_names,
        .help =
            "how ops are launched. `profile`: with the overhead of the machine's profile, none in "
            "`ideal`; `graph`: as kernels of one graph, each longer than its work by the smallest "
            "measured kernel; `eager`: by the host, one after the other "
            "([inference](inference.md#launches))"),
    ROW("launch_host", key_duration, machine.launch_host_ps, .quiet = true, .least = 1,
        .most = TIME_PS_PER_S, .preset_text = "the stack's, else 20us",
        .settle = launch_host_settle, .shown = launches_eagerly, .when = "with `launch` `eager`",
        .help = "time of the host for an op"),
    ROW("seed", key_integer, run.seed, .most = INT64_MAX, .settle = seed_settle,
        .help = "the seed of random draws: the experts of tokens with `routing_skew` above 0, "
                "lengths with a distribution"),
    ROW("algorithm", key_algorithm, workload.algorithm, .word = "auto",
        .values.words = "`auto` or a name of [collectives.md](collectives.md)",
        .help = "the algorithm of every collective; `auto` chooses [by "
                "shape](algorithm-choice.md#in-a-training-step), in inference [the algorithm that "
                "is fastest alone](algorithm-choice.md#in-a-step-of-inference)"),
    ROW("protocols", key_choice, workload.software.protocols, .choices = protocols_names,
        .least = WORKLOAD_PROTOCOLS_NONE, .preset = WORKLOAD_PROTOCOLS_DEFAULT, .quiet = true,
        .preset_text = "`nccl` on GPUs with a `stack`, else `none`",
        .help = "NCCL's protocols. `nccl`: each collective takes LL, LL128 or Simple, whichever "
                "has the smallest estimated time, with NCCL's latencies and shares of the wire "
                "([protocols](algorithm-choice.md#protocols)); `none`: latency and rate of the "
                "links alone"),
    ROW("all_reduce", key_choice, workload.software.all_reduce, .choices = all_reduce_names,
        .help =
            "whose kernels add up within a node. `nccl`: NCCL's; `vllm`, `trtllm`, `torch`: the "
            "engine's [one-shot and two-shot kernels](algorithm-choice.md#kernels-of-engines) "
            "for small arrays on 2, 4 or 8 ranks, and NCCL's beyond; `torch` on "
            "2 to 8, `vllm` on 6, too"),
    ROW("collective_cores", key_choice, workload.software.collective_cores,
        .choices = collective_cores_names, .least = WORKLOAD_COLLECTIVE_CORES_NONE,
        .preset = WORKLOAD_COLLECTIVE_CORES_DEFAULT, .quiet = true,
        .preset_text = "`nccl` with a `stack` and `protocols` `nccl`, else `none`",
        .help =
            "cores of a GPU that collectives take from ops that run at the same time. `nccl`: "
            "one for each of NCCL's channels ([kernels](kernels.md#cores-of-collectives)); `none`: "
            "none"),
    ROW("joined_products", key_choice, workload.software.joins, .choices = product_joins_names,
        .least = PRODUCT_JOINS_NONE, .preset = PRODUCT_JOINS_DEFAULT, .quiet = true,
        .settle = joins_settle, .shown = has_stack, .when = "with a `stack`",
        .preset_text = "what the stack does",
        .help = "products of one input that are one product. `qkv`: Q, K and V; `all`: these, and "
                "gate and up ([kernels](kernels.md#products-of-one-input))"),
    ROW("arbitration", key_choice, run.arbitration, .choices = arbitration_names,
        .help =
            "which stream a link serves. `fair`: streams take turns of a segment; `priority`: the "
            "more urgent first; `fifo`: first come, first served ([when to change "
            "it](limits.md#arbitration-of-links))"),
    ROW("engine", key_text, run.engine, .choices = engine_names, .word = "fast",
        .help = "the event queue; both give the same digest"),
    /* 0 until the scenario is known, whose mesh gives the default. */
    ROW("steps", key_count, run.steps, .least = 1, .most = STEPS_MAX,
        .preset_text = "8 with `pp` or `next_step`, else 1",
        .help = "the most steps that are simulated, one after another, to find the "
                "[period](pipeline.md#from-step-to-step). 1: a single step"),
    {0},
};

/* Whether a row, or a member of its object, is a part of the workload. */
static bool is_of_workload(const struct key *row)
{
    size_t const first = offsetof(struct scenario, workload);
    for (const struct key *member = row->members; member != NULL && member->name != NULL; member++)
        if (is_of_workload(member)) return true;
    return row->members == NULL && row->at >= first &&
           row->at < first + sizeof(struct workload_plan);
}

/* The first member of an object whose row holds for `is_fixed`. */
static struct json *fixed_find(struct json *object, const struct key *rows,
                               bool (*is_fixed)(const struct key *row))
{
    for (const struct key *row = rows; object != NULL && row->name != NULL; row++) {
        struct json *const member =
            json_kind(object) == JSON_OBJECT ? json_take(object, row->name) : NULL;
        if (member != NULL && is_fixed(row)) return member;
    }
    return NULL;
}

/* Times of hosts are a part of each plan of a text. */
static bool is_of_hosts(const struct key *row)
{
    return row->at >= offsetof(struct machine_network_plan, dcn_begin_ps) &&
           row->at <= offsetof(struct machine_network_plan, dcn_spread_ps) && row->members == NULL;
}

static struct json *member_of(struct json *object, const char *name)
{
    return object != NULL && json_kind(object) == JSON_OBJECT ? json_take(object, name) : NULL;
}

enum status scenario_shapes_program(struct arena *arena, const char *setting,
                                    const char **ret_place, struct error *reterr)
{
    struct json *document;
    *ret_place = NULL;
    STATUS_TRY(json_read_text(arena, "--set", "{}", 2, &document, reterr));
    STATUS_TRY(json_set(document, setting, reterr));
    struct json *found = member_of(document, "mesh");
    if (found == NULL) found = fixed_find(member_of(document, "run"), run_keys, is_of_workload);
    struct json *const network = member_of(member_of(document, "machine"), "network");
    if (found == NULL) found = fixed_find(network, network_keys, is_of_hosts);
    if (found != NULL) *ret_place = json_where(found);
    return STATUS_OK;
}
