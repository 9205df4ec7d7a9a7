/* The listing of a step: what its letters mean, its passes (listing_passes.c), its streams. */
#include "sim/step/listing.h"

#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/step/padding.h"

static unsigned long long wide(uint64_t number)
{
    return number;
}

static void paddings_add(struct strbuf *text, const struct ranks *ranks)
{
    struct paddings paddings;
    padding_list(ranks, &paddings);
    for (uint32_t i = 0; i < paddings.count; i++) {
        const struct padding *of = &paddings.of[i];
        strbuf_add(text, "  padded over %s of %s: %s, %llu to %llu\n",
                   counted(of->ranks, "rank").text, of->role, of->what, wide(of->size),
                   wide(of->padded));
    }
}

/* Letters of the mesh. */
static void axes_add(struct strbuf *text, const struct ranks *ranks)
{
    for (uint32_t a = 0; a < ranks->axes.mesh.axis_count; a++) {
        uint32_t const axis = UINT32_C(1) << a;
        bool const sharded = axis == ranks->axes.x && ranks->mesh->axis[MESH_FSDP].size > 1;
        const char *roles = axis == ranks->axes.y   ? mesh_role_name(MESH_TP)
                            : axis == ranks->axes.w ? mesh_role_name(MESH_TP_D)
                            : sharded               ? mesh_role_name(MESH_FSDP)
                                                    : ranks->replicas.name;
        strbuf_add(text, "  %c = %s of %s\n", ranks->axes.mesh.letter[a],
                   counted(ranks->axes.mesh.size[a], "rank").text, roles);
    }
}

static void experts_add(struct strbuf *text, const struct ranks *ranks)
{
    const struct routing *experts = &ranks->experts;
    const struct model_experts *model = &ranks->plan->model.experts;
    strbuf_add(text, "  E = %llu experts, %llu of each token; L = %llu on one chip, Fe = %llu",
               wide(model->count), wide(model->top_k), wide(experts->count), wide(model->width));
    if (model->shared != 0)
        strbuf_add(text, ", and Fs = %llu of the shared ones", wide(model->shared * model->width));
    strbuf_add(
        text,
        "\n  on one data rank A = %llu tokens come to its experts in W = %llu rows, S = %llu "
        "come back; g is what Gates give a row\n",
        wide(experts->arrivals), wide(experts->all), wide(experts->sent));
    if (!ranks_serves(ranks))
        strbuf_add(text,
                   "  dGates are sums over Fe of dTmp * Tmp / g: one number for each of W rows; "
                   "Route' reads them as [B, E], with 0 for experts that a token does not ask for\n"
                   "  their bytes as rows%s are not counted\n",
                   ranks->mesh->axis[MESH_TP].size > 1 ? " and their sum over Y" : "");
}

/* Ranks that share sequences; scores that lie in HBM. */
static void sequences_add(struct strbuf *text, const struct ranks *ranks)
{
    struct counted const rank_count = counted(ranks->cp, "rank");
    if (ranks_has_ulysses(ranks))
        strbuf_add(text,
                   "  C = %s of cp, which other letters count too; AllToAll_C turns parts of "
                   "sequences into whole ones of some heads, Bc = %llu tokens on a rank\n",
                   rank_count.text, wide(ranks->rows * ranks->cp));
    else if (ranks->cp > 1)
        strbuf_add(text, "  sequences of %llu tokens lie on %s of cp, %llu on each\n",
                   wide(workload_keys(ranks->plan)), rank_count.text,
                   wide(units_ceil_divide(workload_keys(ranks->plan), ranks->cp)));
    if (ranks_is_unfused(ranks))
        strbuf_add(text, "  T = %llu keys\n", wide(ranks->plan->sequence_length));
}

/* Letters of dimensions. Heads are N and K, their columns H and V, as in the book. */
static void letters_add(struct strbuf *text, const struct ranks *ranks)
{
    const struct model *model = &ranks->plan->model;
    struct layer_kind const last = ranks->kinds.kind[ranks_last_kind(ranks)];
    const struct model_mla *mla = &model->mla;
    bool const direct = mla->query_rank == 0;
    strbuf_add(text, "  B = %s a microbatch, %llu on one data rank; D = %llu",
               counted(ranks->rows * ranks->data, "token").text, wide(ranks->rows),
               wide(ranks->plan->model.width));
    if (!last.experts) strbuf_add(text, ", F = %llu", wide(model->mlp_width));
    strbuf_add(text, "\n");
    if (ranks_has_mla(ranks) && !direct)
        strbuf_add(text, "  latents of Cq = %llu columns for Q, ", wide(mla->query_rank));
    if (ranks_has_mla(ranks))
        strbuf_add(text,
                   "%sCkv = %llu%s for K and V; R = %llu rotated ones of K; J = %llu of a head's K "
                   "and V\n",
                   direct ? "  a latent of " : "", wide(mla->kv_rank), direct ? " columns" : "",
                   wide(mla->rope), wide(mla->plain + model_value_width(&ranks->plan->model)));
    if (last.experts) experts_add(text, ranks);
    sequences_add(text, ranks);
    uint64_t const windowed = model_window_layers(model, ranks->kinds.keys);
    if (windowed != 0)
        strbuf_add(text, "  a query has %llu keys at most in %llu of %llu layers, %s the last\n",
                   wide(model->attends.window), wide(windowed), wide(model->layers),
                   last.windowed ? "as in" : "not in");
    uint64_t const borrowing = model_borrowing_layers(model);
    if (borrowing != 0)
        strbuf_add(text,
                   "  %llu of %llu layers attend to the cache of a layer before, %s the last\n",
                   wide(borrowing), wide(model->layers), last.borrows ? "as does" : "not");
}

void listing_heading(struct strbuf *text, const struct ranks *ranks)
{
    char bytes[QUANTITY_TEXT_BYTES];
    const struct workload_plan *plan = ranks->plan;
    const struct ranks_layer *layer = &ranks->layer[ranks_last_kind(ranks)];
    strbuf_add(text, "%s, one layer of %llu, on one chip\n", plan->model.name,
               wide(plan->model.layers));
    axes_add(text, ranks);
    bool const serves = ranks_serves(ranks);
    uint32_t const passes = serves ? inference_batch_passes(&plan->inference) : 1;
    if (serves && inference_batch_count(&plan->inference) > 1)
        strbuf_add(text, "  the last of %s, which are in flight together\n",
                   counted(inference_batch_count(&plan->inference), "batch").text);
    if (serves && plan->inference.generation.output != 0)
        strbuf_add(text,
                   "  the last of %u passes: a generation's last step, after its "
                   "prefill\n",
                   ranks->pass.index + 1);
    else if (passes > 1)
        strbuf_add(text, "  the last of %u passes, each with up to %llu tokens of every prompt\n",
                   passes, wide(plan->inference.prompts.chunk));
    letters_add(text, ranks);
    paddings_add(text, ranks);
    for (uint32_t u = 0; ranks->shards > 1 && u < layer->bucket_count; u++) {
        strbuf_add(text, "  %s travels as one: %s gathered\n", layer->bucket[u].name,
                   quantity_text_bytes(bytes, (double)bucket_bytes(&layer->bucket[u])));
    }
    if (plan->formats.matmuls != plan->formats.activations)
        strbuf_add(text,
                   "  linear layers multiply in %s, which is also what only they read; the rest "
                   "is in %s\n",
                   format_name(plan->formats.matmuls), format_name(plan->formats.activations));
    if (ranks->pp > 1)
        strbuf_add(text,
                   "  layers lie on stages over %s of pp: what a stage begins with comes from the "
                   "one before\n",
                   counted(ranks->pp, "rank").text);
    if (ranks_offloads_optimizer(ranks))
        strbuf_add(text, "  the moments lie in the host's memory: each layer is updated one "
                         "slot after its backward pass\n");
    if (ranks_offloads_activations(ranks))
        strbuf_add(text,
                   "  what a layer saves lies in the host's memory, but for the last layer's\n");
}

enum status workload_listing(const struct workload_plan *plan, const struct machine *machine,
                             const struct mesh *mesh, const struct program *program,
                             struct strbuf *text, struct error *reterr)
{
    struct ranks ranks;
    STATUS_TRY(ranks_make(plan, machine, mesh, &ranks, reterr));
    listing_heading(text, &ranks);
    listing_passes(text, &ranks, program);
    listing_streams(text, program);
    return STATUS_OK;
}
