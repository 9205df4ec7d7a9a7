/*
 * overlap_keys.c: the rows of `run.overlap`: which collectives run while the chip computes.
 */
#include "sim/base/json.h"
#include "sim/base/name.h"
#include "sim/base/strbuf.h"
#include "sim/scenario/scenario_parts.h"

/* --- true, false, or a kind of collective --- */

/* In the order of enum workload_overlap. */
static const char *const overlap_names[] = {"true",       "false",    "gathers",
                                            "reductions", "products", NULL};
/* The words of the keys of weights and of slices, and of `tp`. */
static const char *const kind_names[] = {"gathers", "reductions", NULL};
static const char *const product_names[] = {"products", NULL};

static enum status overlap_refuse(const struct key *row, struct json *value, struct error *reterr)
{
    const char *near = "", *word = NULL;
    struct name_offer offer;
    if (json_kind(value) == JSON_STRING) {
        STATUS_TRY(json_as_string(value, &word, reterr));
        offer = name_offer(word, row->choices, "; the nearest is \"", "\"", "");
        near = offer.text;
    }
    return error_set(reterr, STATUS_INVALID, json_where(value), "there are true, false%s%s",
                     row->choices == product_names ? " and \"products\""
                                                   : ", \"gathers\" and \"reductions\"",
                     near);
}

static enum status overlap_parse(const struct key *row, struct json *value, int64_t *ret_number,
                                 struct error *reterr)
{
    uint32_t chosen = 0;
    bool is = false;
    if (json_kind(value) == JSON_STRING) {
        bool const products = row->choices == product_names;
        enum status const status = json_choice(value, row->choices, &chosen, reterr);
        if (status == STATUS_INVALID) return overlap_refuse(row, value, reterr);
        *ret_number =
            products ? WORKLOAD_OVERLAP_PRODUCTS : WORKLOAD_OVERLAP_GATHERS + (int64_t)chosen;
        return status;
    }
    if (json_kind(value) != JSON_BOOLEAN) return overlap_refuse(row, value, reterr);
    STATUS_TRY(json_as_boolean(value, &is, reterr));
    *ret_number = is ? WORKLOAD_OVERLAP_ALL : WORKLOAD_OVERLAP_NONE;
    return STATUS_OK;
}

static void overlap_put(struct json_writer *writer, const struct key *row, int64_t number)
{
    (void)row;
    if (number <= WORKLOAD_OVERLAP_NONE)
        json_write_boolean(writer, number == WORKLOAD_OVERLAP_ALL);
    else
        json_write_string(writer, overlap_names[number]);
}

static void overlap_say(struct strbuf *text, const struct key *row, int64_t number)
{
    (void)row;
    strbuf_add(text, "`%s`", overlap_names[number]);
}

static void overlap_schema(struct json_writer *writer, const struct key *row)
{
    json_put_array(writer, "anyOf");
    json_write_object(writer);
    key_types_schema(writer, "boolean", NULL);
    json_write_object_end(writer);
    json_write_object(writer);
    key_choices_schema(writer, row->choices);
    json_write_object_end(writer);
    json_write_array_end(writer);
}

/* The row says which words may stand in place of a boolean. */
#define KEY_OVERLAP(words)                                                                         \
    {                                                                                              \
        .parse = overlap_parse, .put = overlap_put, .say = overlap_say, .read = key_number_read,   \
        .write = key_number_write, .schema = overlap_schema, .values = "`true`, `false`, " words,  \
    }
static const struct key_kind key_overlap = KEY_OVERLAP("`gathers`, `reductions`");
static const struct key_kind key_overlap_products = KEY_OVERLAP("`products`");

/* --- Rows --- */

static bool has_replicas(const struct scenario *scenario)
{
    return mesh_plan_has(&scenario->mesh, MESH_DP) || mesh_plan_has(&scenario->mesh, MESH_EP) ||
           mesh_plan_has(&scenario->mesh, MESH_CP);
}

static const struct workload_overlaps *overlap_of(const struct scenario *scenario)
{
    return &scenario->workload.software.overlap;
}

/* A program has no batch: it shows what it was lowered with, where that is not the default. */
static bool is_step(const struct scenario *scenario)
{
    return workload_serves(&scenario->workload) || scenario->workload.batch_tokens != 0;
}

static bool shows_dp(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    bool const trains = !workload_serves(&scenario->workload);
    return overlap_of(scenario)->dp_apart ||
           (trains && is_step(scenario) && has_replicas(scenario));
}

static bool shows_fsdp(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return overlap_of(scenario)->fsdp != WORKLOAD_OVERLAP_ALL ||
           (is_step(scenario) && mesh_plan_has(&scenario->mesh, MESH_FSDP));
}

static bool shows_tp(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return overlap_of(scenario)->tp != WORKLOAD_OVERLAP_ALL ||
           (is_step(scenario) && mesh_plan_has(&scenario->mesh, MESH_TP));
}

static bool shows_ep(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return overlap_of(scenario)->ep_apart ||
           (is_step(scenario) && mesh_plan_has(&scenario->mesh, MESH_EP));
}

static bool shows_pp(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return overlap_of(scenario)->pp_apart ||
           (is_step(scenario) && mesh_plan_has(&scenario->mesh, MESH_PP));
}

static bool shows_tied(const struct key_source *source)
{
    return overlap_of(shown_of(source))->tied;
}

static bool shows_norm(const struct key_source *source)
{
    return overlap_of(shown_of(source))->norm;
}

static bool shows_dcn(const struct key_source *source)
{
    const struct scenario *scenario = shown_of(source);
    return overlap_of(scenario)->dcn != WORKLOAD_OVERLAP_ALL ||
           (is_step(scenario) && scenario->machine.slices > 1);
}

static enum status dp_settle(const struct key_reader *reader, struct json *member,
                             struct error *reterr)
{
    const struct workload_plan *plan = &scenario_of(reader)->workload;
    if (!plan->software.overlap.dp_apart) return STATUS_OK;
    if (workload_serves(plan))
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "a step of inference has no gradients; leave it out");
    if (is_step(scenario_of(reader)) && !has_replicas(scenario_of(reader)))
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "the mesh has no replicas, whose gradients would be reduced; leave it "
                         "out");
    if (!is_step(scenario_of(reader))) return STATUS_OK; /* A program's text does not say `zero`. */
    if (plan->parameter_gather != WORKLOAD_PARAMETERS_NEXT_STEP || plan->zero > 1) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "\"parameter_gather\": \"next_step\" gathers during the forward pass; "
                     "\"end\" is for false");
}

/* What waits on an axis that the mesh does not have. */
static enum status axis_check(const struct key_reader *reader, struct json *member, bool waits,
                              enum mesh_role role, struct error *reterr)
{
    const struct scenario *scenario = scenario_of(reader);
    if (!waits || !is_step(scenario) || mesh_plan_has(&scenario->mesh, role)) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "the mesh has no \"%s\", whose collectives compute could wait for; leave it "
                     "out",
                     mesh_role_name(role));
}

static enum status fsdp_settle(const struct key_reader *reader, struct json *member,
                               struct error *reterr)
{
    bool const waits = overlap_of(scenario_of(reader))->fsdp != WORKLOAD_OVERLAP_ALL;
    return axis_check(reader, member, waits, MESH_FSDP, reterr);
}

static enum status tp_settle(const struct key_reader *reader, struct json *member,
                             struct error *reterr)
{
    const struct scenario *scenario = scenario_of(reader);
    bool const waits = overlap_of(scenario)->tp != WORKLOAD_OVERLAP_ALL;
    bool const products = overlap_of(scenario)->tp == WORKLOAD_OVERLAP_PRODUCTS;
    if (products && workload_serves(&scenario->workload))
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "a step of inference has no gradients that \"products\" could be of; "
                         "there are true and false");
    if (products && is_step(scenario) &&
        scenario->workload.backward_order == WORKLOAD_BACKWARD_DW_FIRST)
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "\"products\" is of the order \"dx_first\", and \"backward_order\" is "
                         "\"dw_first\": a gather is waited for before anything is computed, and "
                         "nothing is computed behind a sum, as with false; \"tp\" has to be false, "
                         "or \"backward_order\" \"dx_first\"");
    if (waits && scenario->workload.collective_matmul)
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "with \"collective_matmul\" collectives of \"tp\" run chunk by chunk "
                         "with their matmuls; \"tp\" has to be true, or \"collective_matmul\" "
                         "false");
    return axis_check(reader, member, waits, MESH_TP, reterr);
}

static enum status ep_settle(const struct key_reader *reader, struct json *member,
                             struct error *reterr)
{
    return axis_check(reader, member, overlap_of(scenario_of(reader))->ep_apart, MESH_EP, reterr);
}

static enum status pp_settle(const struct key_reader *reader, struct json *member,
                             struct error *reterr)
{
    return axis_check(reader, member, overlap_of(scenario_of(reader))->pp_apart, MESH_PP, reterr);
}

/* Gradients of a pipeline's stages. `what`: what stages would do with them. */
static enum status gradients_check(const struct scenario *scenario, struct json *member,
                                   const char *what, struct error *reterr)
{
    if (workload_serves(&scenario->workload))
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "a step of inference has no gradients; leave it out");
    if (!is_step(scenario) || mesh_plan_has(&scenario->mesh, MESH_PP)) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "the mesh has no \"pp\", whose stages would %s; leave it out", what);
}

static enum status tied_settle(const struct key_reader *reader, struct json *member,
                               struct error *reterr)
{
    const struct scenario *scenario = scenario_of(reader);
    if (!overlap_of(scenario)->tied) return STATUS_OK;
    return gradients_check(scenario, member, "add up gradients of a tied matrix", reterr);
}

static enum status norm_settle(const struct key_reader *reader, struct json *member,
                               struct error *reterr)
{
    const struct scenario *scenario = scenario_of(reader);
    if (!overlap_of(scenario)->norm) return STATUS_OK;
    STATUS_TRY(gradients_check(scenario, member, "add up a norm", reterr));
    if (!is_step(scenario) || scenario->workload.software.clips != 0) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "\"clip_gradients\" is false, and no norm is added up; leave it out");
}

static enum status dcn_settle(const struct key_reader *reader, struct json *member,
                              struct error *reterr)
{
    const struct scenario *scenario = scenario_of(reader);
    bool const waits = overlap_of(scenario)->dcn != WORKLOAD_OVERLAP_ALL;
    if (!waits || scenario->machine.slices > 1) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "there is one slice, and nothing goes over DCN; leave it out");
}

#define OVERLAP(text, kind, field, ...)                                                            \
    KEY_ROW(struct scenario, text, kind, workload.software.overlap.field, __VA_ARGS__)

const struct key overlap_keys[] = {
    OVERLAP("dp", key_flag, dp_apart, .negated = true, .preset = 1, .shown = shows_dp,
            .settle = dp_settle, .when = "of training, `false` with `dp`, `ep` or `cp`",
            .help = "reductions of gradients between replicas, and gathers of updated weights. "
                    "`false` with `zero` 0 or 1: gradients are reduced once all passes have ended, "
                    "and updated weights gathered once all are updated, as Megatron does without "
                    "`--overlap-grad-reduce`; not with an offloaded optimizer, MTP or two copies "
                    "of a model. `false` with `fsdp` or `zero` 2 or 3: the backward pass waits "
                    "for each, as DeepSpeed's does without `overlap_comm`"),
    OVERLAP("fsdp", key_overlap, fsdp, .choices = kind_names, .shown = shows_fsdp,
            .settle = fsdp_settle, .when = "with `fsdp`",
            .help = "gathers of weights, and reductions of their gradients. A gather that does not "
                    "overlap begins where its weights are read first"),
    OVERLAP("tp", key_overlap_products, tp, .choices = product_names, .shown = shows_tp,
            .settle = tp_settle,
            .when = "`false` and `products` with `tp`, without `collective_matmul`",
            .help = "collectives of activations and their gradients, also over `tp_d` and between "
                    "ranks with the same heads. `products`, of training: two of a linear layer's "
                    "gradients alone overlap, each with one product, as in Megatron-LM. The "
                    "input that is gathered again for the gradient of weights does with the "
                    "gradient of the input, and the sum of the latter with the former. It needs "
                    "`backward_order` `dx_first`"),
    OVERLAP("ep", key_flag, ep_apart, .negated = true, .preset = 1, .shown = shows_ep,
            .settle = ep_settle, .when = "may be `false` with `ep`",
            .help = "tokens to experts and back. `false`: shared experts wait for them, too"),
    OVERLAP("pp", key_flag, pp_apart, .negated = true, .preset = 1, .shown = shows_pp,
            .settle = pp_settle, .when = "may be `false` with `pp`",
            .help = "messages between stages. `false`: a rank computes once its message has left, "
                    "as Megatron's does without `--overlap-p2p-communication`"),
    OVERLAP("tied", key_flag, tied, .shown = shows_tied, .settle = tied_settle, .quiet = true,
            .when =
                "may be `true` with `pp`, a tied model and a schedule that ends ranks' lists with "
                "weight gradients",
            .help = "gradients of an embedding that is tied to the head. `true`: weight gradients "
                    "at the end of a rank's list begin with those of the matrix, which travel "
                    "during the others ([pipelines](pipeline.md#optimizers-without-a-barrier))"),
    OVERLAP("norm", key_flag, norm, .shown = shows_norm, .settle = norm_settle, .quiet = true,
            .when = "may be `true` with `pp` and clipped gradients",
            .help = "the sum of the norm of gradients over stages. `true`: updates do not wait for "
                    "it, as with zero bubble's `--enable-optimizer-post-validation` "
                    "([pipelines](pipeline.md#optimizers-without-a-barrier))"),
    OVERLAP("dcn", key_overlap, dcn, .choices = kind_names, .shown = shows_dcn,
            .settle = dcn_settle, .when = "with `slices`",
            .help = "every collective between slices, whatever its axis of the mesh. "
                    "`gathers`: AllGathers alone overlap; `reductions`: ReduceScatters and "
                    "AllReduces alone, which has the effect of `true` where only gradients go "
                    "between slices"),
    {0},
};

/* --- The former key --- */

static struct json *former_of(struct json *document)
{
    if (json_kind(document) != JSON_OBJECT) return NULL;
    struct json *run = json_take(document, "run");
    return run == NULL || json_kind(run) != JSON_OBJECT ? NULL : json_take(run, "dp_overlap");
}

enum status scenario_overlap_refuse(struct json *document, struct error *reterr)
{
    struct json *former = former_of(document);
    if (former == NULL) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(former),
                     "is \"dp\" of \"overlap\" now: \"overlap\": {\"dp\": false}");
}

enum status scenario_overlap_move(struct json *document, struct error *reterr)
{
    struct json *former = former_of(document);
    bool overlaps = true;
    if (former == NULL) return STATUS_OK;
    STATUS_TRY(json_as_boolean(former, &overlaps, reterr));
    STATUS_TRY(
        json_set(document, overlaps ? "/run/overlap/dp=true" : "/run/overlap/dp=false", reterr));
    return json_set(document, "/run/dp_overlap=null", reterr);
}
