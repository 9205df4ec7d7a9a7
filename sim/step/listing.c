/* The listing of a step: what its letters mean, its passes (listing_passes.c), its streams. */
#include "sim/step/listing.h"

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/quantity.h"
#include "sim/step/padding.h"

void listing_tell(struct listing *listing, enum collective_kind kind, const char *group,
                  uint64_t size_bytes)
{
    struct workload_listing *made = listing->made;
    SIM_ASSERT(made->listed_count < WORKLOAD_LISTED_MAX);
    made->listed[made->listed_count++] =
        (struct workload_listed){listing->section, kind, group, size_bytes};
}

static uint32_t copy_count(const struct program_template *template)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < template->op_count; i++)
        count += template->op[i].kind == PROGRAM_OP_COPY;
    return count;
}

void listing_copies(struct listing *listing, const struct program *program, enum lower_act act)
{
    char bytes[QUANTITY_TEXT_BYTES];
    const struct program_template *most = NULL;
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        if (lower_is(template, MODULE_LAYER, act) &&
            (most == NULL || copy_count(template) >= copy_count(most)))
            most = template;
    }
    for (uint32_t i = 0; most != NULL && i < most->op_count; i++) {
        const struct program_op *op = &most->op[i];
        if (op->kind != PROGRAM_OP_COPY) continue;
        strbuf_add(listing->text, "  in addition: %s, %s (over the link to the host)\n", op->name,
                   quantity_text_bytes(bytes, (double)program->copies[op->index].size_bytes));
    }
}

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
    for (uint32_t a = 0; a < ranks->axes.axis_count; a++) {
        char const letter = ranks->axes.letter[a];
        bool const sharded = letter == 'X' && ranks->mesh->axis[MESH_FSDP].size > 1;
        const char *roles = letter == 'Y' ? mesh_role_name(MESH_TP)
                            : sharded     ? mesh_role_name(MESH_FSDP)
                                          : ranks->replica_name;
        strbuf_add(text, "  %c = %s of %s\n", letter, counted(ranks->axes.size[a], "rank").text,
                   roles);
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
        "come back; g is what the router gives a row\n",
        wide(experts->arrivals), wide(experts->all), wide(experts->sent));
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
                   wide(ranks->keys), rank_count.text, wide(ranks->queries));
    if (ranks_is_unfused(ranks)) strbuf_add(text, "  T = %llu keys\n", wide(ranks->keys));
}

/* Letters of dimensions. Heads are N and K, their columns H and V, as in the book. */
static void letters_add(struct strbuf *text, const struct ranks *ranks,
                        const struct ranks_layer *layer)
{
    const struct model *model = &ranks->plan->model;
    const struct model_mla *latent = &model->latent;
    strbuf_add(text, "  B = %s a microbatch, %llu on one data rank; D = %llu",
               counted(ranks->rows * ranks->data, "token").text, wide(ranks->rows),
               wide(ranks->width));
    if (!layer->experts) strbuf_add(text, ", F = %llu", wide(model->mlp_width));
    strbuf_add(text, "\n");
    if (ranks_has_mla(ranks))
        strbuf_add(text,
                   "  latents of Cq = %llu columns for Q, Ckv = %llu for K and V; R = %llu turned "
                   "ones of K; J = %llu of a head's K and V\n",
                   wide(latent->query_rank), wide(latent->kv_rank), wide(latent->rope),
                   wide(latent->plain + ranks->value_width));
    if (layer->experts) experts_add(text, ranks);
    sequences_add(text, ranks);
    if (ranks->window_layers != 0)
        strbuf_add(text, "  a query has %llu keys at most in %llu of %llu layers, %s the last\n",
                   wide(model->window), wide(ranks->window_layers), wide(model->layers),
                   ranks_layer_is_windowed(ranks, model->layers - 1) ? "as in" : "not in");
}

void listing_heading(struct strbuf *text, const struct ranks *ranks)
{
    char bytes[QUANTITY_TEXT_BYTES];
    const struct workload_plan *plan = ranks->plan;
    const struct ranks_layer *layer = &ranks->layer[ranks_last_kind(ranks)];
    strbuf_add(text, "%s, one layer of %llu, on one chip\n", plan->model.name,
               wide(plan->model.layers));
    axes_add(text, ranks);
    letters_add(text, ranks, layer);
    paddings_add(text, ranks);
    for (uint32_t u = 0; ranks->shards > 1 && u < layer->bucket_count; u++) {
        strbuf_add(text, "  %s travels as one: %s gathered\n", layer->bucket[u].name,
                   quantity_text_bytes(bytes, (double)format_bytes(plan->formats.weights,
                                                                   layer->bucket[u].elements)));
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
        strbuf_add(text, "  the moments lie in the host's memory: each layer is updated one slot "
                         "behind its backward pass\n");
    if (ranks_offloads_activations(ranks))
        strbuf_add(text,
                   "  what a layer saves lies in the host's memory, but for the last layer's\n");
}

enum status workload_listing(struct arena *arena, const struct workload_plan *plan,
                             const struct machine *machine, const struct mesh *mesh,
                             const struct program *program, struct workload_listing *ret_listing,
                             struct error *reterr)
{
    struct ranks ranks;
    struct strbuf text = {0};
    STATUS_TRY(ranks_make(plan, machine, mesh, &ranks, reterr));
    struct listing listing = {.text = &text, .ranks = &ranks, .made = ret_listing};
    *ret_listing = (struct workload_listing){.listed_count = 0};
    listing_heading(&text, &ranks);
    listing_passes(&listing, program);
    listing_streams(&text, program);
    const char *copy = text.failed ? NULL : arena_text(arena, text.bytes);
    strbuf_free(&text);
    if (copy == NULL) return error_set(reterr, STATUS_NO_MEMORY, "", "no memory for the listing");
    ret_listing->text = copy;
    return STATUS_OK;
}
