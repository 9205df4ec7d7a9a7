/*
 * advise_inference.c: neighbours of a prefill, a decode, a mixed step or a whole answer. The
 * question stays: the model, its formats, the sequences.
 */
#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/step/ranks.h"
#include "tools/podsim/run/advise_mesh.h"
#include "tools/podsim/run/advise_row.h"
#include "tools/podsim/run/advise_search.h"

/* Meshes that cannot be are no neighbours. */
static enum status neighbour_add(struct advise_search *search, struct advise_row row,
                                 struct error *reterr)
{
    struct advise *advise = search->advise;
    uint32_t const count = advise->count;
    STATUS_TRY(advise_row_add(search, row, reterr));
    if (advise->count > count && advise->row[count].state == ADVISE_REFUSED) advise->count = count;
    return STATUS_OK;
}

/* The scenario with ranks of one mesh axis in another. The cache then lies as it does unless
 * somebody says otherwise: what the scenario says is of its own ranks. Activations are split over
 * ranks of tp only where there are some. */
static enum status mesh_try(struct advise_search *search, enum mesh_role from, enum mesh_role to,
                            uint32_t ranks, struct error *reterr)
{
    const struct session *session = search->session;
    struct advise_row row = {.setting_count = 0};
    if (ranks < 2 || ranks > session->mesh.axis[from].size) return STATUS_OK;
    const char *const mesh = advise_mesh_moved(session, from, to, ranks);
    if (mesh == NULL) return STATUS_OK;
    STATUS_TRY(advise_setting_add(session->arena, &row, mesh, reterr));
    if (session->scenario.workload.inference.ways.sharding == INFERENCE_GIVEN)
        STATUS_TRY(advise_setting_add(session->arena, &row, "/workload/kv_sharding=auto", reterr));
    bool const without_tp = from == MESH_TP && ranks == session->mesh.axis[MESH_TP].size;
    if (without_tp && session->scenario.workload.activations != WORKLOAD_ACTIVATIONS_MODEL)
        STATUS_TRY(advise_setting_add(session->arena, &row, "/workload/activations=model", reterr));
    return neighbour_add(search, row, reterr);
}

/* Some ranks of tp elsewhere, some ranks of ep in tp, and all of what is beside tp in it. */
static enum status meshes_play(struct advise_search *search, struct error *reterr)
{
    static const enum mesh_role others[] = {MESH_DP, MESH_PP, MESH_CP, MESH_TP_D};
    static const enum mesh_role unions[] = {MESH_FSDP, MESH_DP, MESH_PP,
                                            MESH_CP,   MESH_EP, MESH_TP_D};
    const struct mesh *mesh = &search->session->mesh;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (uint32_t ranks = 2; ranks <= 8; ranks *= 2)
            STATUS_TRY(mesh_try(search, MESH_TP, others[i], ranks, reterr));
    for (uint32_t ranks = 2; ranks <= 8; ranks *= 2)
        STATUS_TRY(mesh_try(search, MESH_EP, MESH_TP, ranks, reterr));
    for (size_t i = 0; i < sizeof unions / sizeof *unions; i++)
        STATUS_TRY(mesh_try(search, unions[i], MESH_TP, mesh->axis[unions[i]].size, reterr));
    return STATUS_OK;
}

/* The best so far with another value of one key: each of them, ended by NULL. */
static enum status key_play(struct advise_search *search, const char *const *settings,
                            struct error *reterr)
{
    struct advise *advise = search->advise;
    advise_best_find(advise);
    if (advise->best == ADVISE_NONE) return STATUS_OK;
    struct advise_row const best = advise->row[advise->best];
    for (; *settings != NULL; settings++) {
        struct advise_row row = {.setting_count = best.setting_count};
        for (uint32_t i = 0; i < best.setting_count; i++) row.setting[i] = best.setting[i];
        STATUS_TRY(advise_setting_add(search->session->arena, &row, *settings, reterr));
        STATUS_TRY(neighbour_add(search, row, reterr));
    }
    return STATUS_OK;
}

/* Of rows from `first` on those whose step is that of the best before them, instant by instant:
 * they say what "auto" is already. */
static void equal_drop(struct advise *advise, uint32_t first)
{
    const struct advise_row *best = &advise->row[advise->best];
    uint32_t kept = first;
    for (uint32_t i = first; i < advise->count; i++) {
        const struct advise_row *row = &advise->row[i];
        bool const is_equal = row->state == ADVISE_PLAYED && row->digest == best->digest &&
                              row->time_ps == best->time_ps &&
                              row->memory_bytes == best->memory_bytes;
        if (!is_equal) advise->row[kept++] = *row;
    }
    advise->count = kept;
}

/* Where ranks of tp and of tp_d have the same heads of keys: what they keep of the cache. Ranks of
 * tp_d share by heads, by sequences or by parts of these; what a mesh cannot have is refused. */
static enum status cache_play(struct advise_search *search, struct error *reterr)
{
    enum { WAYS_MAX = 5 };
    struct advise *advise = search->advise;
    const struct model *model = &search->session->scenario.workload.model;
    struct arena *arena = search->session->arena;
    const char *settings[WAYS_MAX + 2] = {NULL};
    uint32_t count = 0;
    advise_best_find(advise);
    if (advise->best == ADVISE_NONE) return STATUS_OK;
    uint32_t const tp = advise->row[advise->best].tp_ranks;
    uint32_t const wide = advise->row[advise->best].tp_d_ranks;
    uint32_t const alike = ranks_key_holders(model, tp), heads = tp / alike;
    const struct inference_ways ways[WAYS_MAX] = {
        {.heads = heads, .batch = alike * wide, .sequence = 1},
        {.heads = heads, .batch = 1, .sequence = alike * wide},
        {.heads = heads, .batch = wide, .sequence = alike},
        {.heads = heads * wide, .batch = alike, .sequence = 1},
        {.heads = heads * wide, .batch = 1, .sequence = alike},
    };
    if (alike * wide == 1) return STATUS_OK;
    for (uint32_t w = 0; w < WAYS_MAX; w++) {
        bool is_new = true;
        for (uint32_t k = 0; k < w; k++)
            is_new = is_new && (ways[k].heads != ways[w].heads || ways[k].batch != ways[w].batch);
        if (!is_new) continue;
        settings[count] =
            arena_format(arena, "/workload/kv_sharding={\"heads\":%u,\"batch\":%u,\"sequence\":%u}",
                         ways[w].heads, ways[w].batch, ways[w].sequence);
        if (settings[count++] == NULL) return error_no_memory(reterr, "--advise");
    }
    settings[count] = "/workload/kv_sharding=replicated";
    uint32_t const first = advise->count;
    STATUS_TRY(key_play(search, settings, reterr));
    equal_drop(advise, first);
    return STATUS_OK;
}

static enum status weights_play(struct advise_search *search, struct error *reterr)
{
    bool const gathers = search->session->scenario.workload.inference.weights == INFERENCE_GATHERED;
    const char *const settings[] = {
        gathers ? "/workload/weights=stationary" : "/workload/weights=gathered", NULL};
    advise_best_find(search->advise);
    if (search->advise->best == ADVISE_NONE ||
        search->advise->row[search->advise->best].dp_ranks == 1)
        return STATUS_OK;
    return key_play(search, settings, reterr);
}

static enum status activations_play(struct advise_search *search, struct error *reterr)
{
    static const char *const all[] = {
        [WORKLOAD_ACTIVATIONS_MODEL] = "/workload/activations=model",
        [WORKLOAD_ACTIVATIONS_TOKENS] = "/workload/activations=tokens",
        [WORKLOAD_ACTIVATIONS_REPLICATED] = "/workload/activations=replicated",
    };
    enum { ALL = sizeof all / sizeof *all };
    const char *others[ALL + 1] = {NULL};
    uint32_t count = 0;
    if (!search->session->mesh.present[MESH_TP]) return STATUS_OK;
    for (uint32_t i = 0; i < ALL; i++)
        if (i != search->session->scenario.workload.activations) others[count++] = all[i];
    return key_play(search, others, reterr);
}

/* What hides collectives comes before what they are: with less of them exposed, those that hide
 * well are ahead of those that are short. */
enum status advise_inference(struct advise_search *search, struct error *reterr)
{
    const struct workload_plan *plan = &search->session->scenario.workload;
    bool const ahead = plan->inference.prefetch == INFERENCE_PREFETCH_VMEM;
    const char *const prefetch[] = {
        ahead ? "/run/prefetch_weights=none" : "/run/prefetch_weights=vmem", NULL};
    const char *const matmul[] = {plan->collective_matmul ? "/run/collective_matmul=false"
                                                          : "/run/collective_matmul=true",
                                  NULL};
    static const char *const algorithm[] = {"/run/algorithm=auto", NULL};
    STATUS_TRY(meshes_play(search, reterr));
    STATUS_TRY(cache_play(search, reterr));
    STATUS_TRY(weights_play(search, reterr));
    STATUS_TRY(key_play(search, prefetch, reterr));
    if (plan->activations != WORKLOAD_ACTIVATIONS_REPLICATED)
        STATUS_TRY(key_play(search, matmul, reterr));
    STATUS_TRY(activations_play(search, reterr));
    if (!algorithm_is_chosen(&plan->algorithm)) STATUS_TRY(key_play(search, algorithm, reterr));
    advise_best_find(search->advise);
    return STATUS_OK;
}
