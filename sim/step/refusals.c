/*
 * What a step refuses by a combination of its model, mesh and plan: a row each. A new block's own
 * refusals are rows here, and what such a row speaks of that no other does, a fact.
 */
#include "sim/step/refusals.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/name.h"
#include "sim/schedule/schedule.h"
#include "sim/step/overheads.h"
#include "sim/step/suggest.h"

/* A name may be a path of any length; its beginning tells which it is. */
enum { MTP_MODULES_MAX = 16, SENTENCE_BYTES = 1024, WORD_BYTES_MAX = 200 };

/* A fact, a bit, holds of ranks `l`, their plan `p`, their mesh `m` and their model `o`. */
#define FACTS(X)                                                                                   \
    X(SERVES, ranks_serves(l))                                                                     \
    X(REPLICATES, p->activations == WORKLOAD_ACTIVATIONS_REPLICATED && l->tp > 1)                  \
    X(BARE, o->kind == MODEL_MLP)                                                                  \
    X(LATENT, ranks_has_mla(l))                                                                    \
    X(QUERY_LATENT, o->latent.query_rank != 0)                                                     \
    X(EXPERTS, model_has_experts(o))                                                               \
    X(EXPERT_GROUPS, o->experts.groups != 0)                                                       \
    X(TIED, o->tied)                                                                               \
    X(ONE_LAYER, o->layers < 2)                                                                    \
    X(PREDICTS, workload_mtp(p) != 0)                                                              \
    X(PREDICTS_MANY, workload_mtp(p) > MTP_MODULES_MAX)                                            \
    X(WINDOW, model_window_layers(o, p->sequence_length) != 0)                                     \
    X(HAS_TP, m->present[MESH_TP])                                                                 \
    X(HAS_FSDP, m->present[MESH_FSDP])                                                             \
    X(HAS_EP, m->present[MESH_EP])                                                                 \
    X(HAS_CP, m->present[MESH_CP])                                                                 \
    X(HAS_REPLICAS, m->present[MESH_DP] || m->present[MESH_EP] || m->present[MESH_CP])             \
    X(EP, m->axis[MESH_EP].size > 1)                                                               \
    X(EP_MIXED,                                                                                    \
      has_links(&m->axis[MESH_EP].group, true) && has_links(&m->axis[MESH_EP].group, false))       \
    X(EP_TWISTED, has_links(&m->axis[MESH_EP].group, false) && machine_is_twisted(l->machine))     \
    X(CP, l->cp > 1)                                                                               \
    X(CP_FOLDED, m->axis[MESH_CP].group.dimension_count > 1)                                       \
    X(CP_LINE, is_line(&m->axis[MESH_CP].group.dimension[0]))                                      \
    X(RINGS, ranks_has_ring(l))                                                                    \
    X(TURNS, ranks_has_ulysses(l))                                                                 \
    X(SHARES, l->cp > 1 || l->sequence_parts > 1)                                                  \
    X(PP, l->pp > 1)                                                                               \
    X(PP_FOLDED, m->axis[MESH_PP].group.dimension_count > 1)                                       \
    X(COPIES, l->copies > 1)                                                                       \
    X(PREDICTS_MEETING, workload_mtp(p) != 0 && l->ends_meet && l->pp > 1)                         \
    X(REDUCES_ONCE, l->reduce_once)                                                                \
    X(SHARDED, l->shards > 1)                                                                      \
    X(NO_MICROBATCH, p->accumulate == 0)                                                           \
    X(ONE_MICROBATCH, p->accumulate == 1)                                                          \
    X(NO_TOKENS, p->sequence_length == 0 && !ranks_serves(l))                                      \
    X(CAUSAL, p->attention.mask == WORKLOAD_ATTENTION_CAUSAL)                                      \
    X(UNFUSED, ranks_is_unfused(l))                                                                \
    X(CONTEXT_SAID, p->attention.context != WORKLOAD_CONTEXT_RING)                                 \
    X(ORDER_SAID, p->attention.order != WORKLOAD_CONTEXT_ZIGZAG)                                   \
    X(INPUTS_SAID, p->tp_inputs != WORKLOAD_TP_INPUTS_SHARDS)                                      \
    X(REMAT, p->remat != WORKLOAD_REMAT_NONE)                                                      \
    X(REGATHERS, p->stages.regather != WORKLOAD_REGATHER_MICROBATCH)                               \
    X(SCHEDULED, p->stages.given != NULL || names_schedule(p, m))                                  \
    X(LAID_OUT, p->stages.layout != NULL)                                                          \
    X(ZERO, p->zero != 0)                                                                          \
    X(ZERO_3, p->zero == 3)                                                                        \
    X(ZERO_ABOVE, p->zero > 3)                                                                     \
    X(OFFLOADS, p->offload != WORKLOAD_OFFLOAD_NONE)                                               \
    X(OFFLOADS_ACTIVATIONS, ranks_offloads_activations(l))                                         \
    X(HOST, l->machine->host.bytes_per_s != 0)                                                     \
    X(DISPATCH_SAID, p->formats.dispatch != p->formats.activations)                                \
    X(DRAWN, routing_is_drawn(l))                                                                  \
    X(GPU, l->machine->chip.kind == CHIP_GPU)                                                      \
    X(FRAMEWORKS, overheads_count(l))                                                              \
    X(FSDP2, overheads_of_fsdp(l))                                                                 \
    X(GRADIENTS_SAID, p->formats.main_gradients != FORMAT_FP32)

enum fact {
    NONE,
#define X(name, holds) name,
    FACTS(X)
#undef X
        FACT_COUNT
};

/* Refused: `when` and `also` hold, and `unless` does not. A sentence may have
 *   %m the model   %c the chip        %z the stage of zero      %w keys of the window
 *   %d data ranks  %p those that share a sequence, or of cp     %n machine axes of cp
 *   %a cp's axis   %k modules that predict further tokens       %b what batch_tokens fit */
struct refusal {
    enum fact when, also, unless;
    enum status status;
    const char *where, *sentence;
};

#define INVALID STATUS_INVALID
#define UNSUPPORTED STATUS_UNSUPPORTED
static const char zero_3[] = "zero 3 with ep or cp is not modelled; fsdp with them is";
static const char unshared[] = "the mesh has no cp whose ranks could share a sequence";
static const char offloads[] =
    "nothing is offloaded from layers with experts, nor with multi-token prediction, in this "
    "version";

static const struct refusal table[] = {
    /* Inference. */
    {SERVES, BARE, NONE, UNSUPPORTED, "/workload/model",
     "the bare MLP has no attention and no head, so that it cannot answer; a decoder can"},
    {REPLICATES, EXPERTS, NONE, UNSUPPORTED, "/workload/activations",
     "\"replicated\" with experts over tp is not modelled in this version; \"model\" and "
     "\"tokens\" are"},
    {SERVES, PP, NONE, UNSUPPORTED, "/mesh/pp",
     "inference over pipeline stages is not modelled in this version; tp, dp, ep and fsdp are"},
    {SERVES, CP, NONE, UNSUPPORTED, "/mesh/cp",
     "inference over cp is not modelled in this version; tp with \"kv_sharding\" shares "
     "sequences, and dp, ep and fsdp have whole ones"},
    /* The model. */
    {LATENT, NONE, QUERY_LATENT, UNSUPPORTED, "/workload/model",
     "training %m is not modelled in this version: its latent attention (MLA) has no latent for Q "
     "(\"q_lora_rank\")"},
    {LATENT, CP, NONE, UNSUPPORTED, "/mesh/cp",
     "sequences that ranks share are not modelled with latent attention (MLA); dp, ep, tp and pp "
     "are"},
    {PREDICTS_MANY, NONE, NONE, STATUS_LIMIT, "/workload/mtp",
     "%m has %k modules for multi-token prediction, more than the 16 that are simulated; \"mtp\": "
     "false trains it without"},
    {PREDICTS, TIED, NONE, UNSUPPORTED, "/workload/mtp",
     "multi-token prediction is not modelled where embedding and head are one matrix, as in %m; "
     "\"mtp\": false trains it without"},
    {PREDICTS, CP, NONE, UNSUPPORTED, "/workload/mtp",
     "multi-token prediction is not modelled with cp, whose ranks share sequences; \"mtp\": false "
     "trains %m without"},
    {BARE, CAUSAL, NONE, INVALID, "/workload/attention",
     "the bare MLP has no attention that could be causal"},
    /* What lies with the host. */
    {OFFLOADS, EXPERTS, NONE, UNSUPPORTED, "/workload/offload", offloads},
    {OFFLOADS, PREDICTS, NONE, UNSUPPORTED, "/workload/offload", offloads},
    {OFFLOADS, NONE, HOST, UNSUPPORTED, "/workload/offload",
     "%c has no link to a host whose memory could keep anything"},
    {OFFLOADS_ACTIVATIONS, ONE_LAYER, NONE, INVALID, "/workload/offload",
     "the last layer keeps its activations on the chip, so a model of one layer has none to "
     "offload; \"optimizer\" can be"},
    /* Axes of the mesh that the model has no use for, and policies of axes that are not there. */
    {DISPATCH_SAID, NONE, EP, INVALID, "/workload/formats/dispatch",
     "no tokens travel to experts: the mesh has no ep of two ranks or more"},
    {HAS_EP, NONE, EXPERTS, UNSUPPORTED, "/mesh/ep",
     "%m has no experts that could be split over ep"},
    {HAS_CP, BARE, NONE, UNSUPPORTED, "/mesh/cp",
     "%m has no attention, so no sequences that cp could split; dp splits its tokens"},
    {CONTEXT_SAID, NONE, HAS_CP, INVALID, "/workload/context", unshared},
    {ORDER_SAID, NONE, HAS_CP, INVALID, "/workload/context_order", unshared},
    {INPUTS_SAID, NONE, HAS_TP, INVALID, "/workload/tp_inputs",
     "the mesh has no tp that would gather an input"},
    {INPUTS_SAID, BARE, NONE, INVALID, "/workload/tp_inputs",
     "%m has no norms; it keeps its input whole without the key"},
    {INPUTS_SAID, REMAT, NONE, INVALID, "/workload/tp_inputs",
     "the gathered input is kept with remat \"none\" alone; any other gathers it again"},
    {REGATHERS, NONE, PP, INVALID, "/workload/regather",
     "the mesh has no pp; without stages each microbatch gathers"},
    {SCHEDULED, NONE, PP, INVALID, "/workload/schedule",
     "the mesh has no pp whose stages it could schedule"},
    {LAID_OUT, NONE, PP, INVALID, "/workload/layout",
     "the mesh has no pp whose stages it could lay out"},
    /* Shards. */
    {ZERO_ABOVE, NONE, NONE, INVALID, "/workload/zero", "stage %z is above 3"},
    {ZERO, NONE, HAS_REPLICAS, INVALID, "/workload/zero",
     "zero is a stage of dp, which the mesh does not have (fsdp is stage 3)"},
    {ZERO, HAS_FSDP, NONE, UNSUPPORTED, "/workload/zero",
     "zero %z with fsdp is not modelled: dp replicates the shards of fsdp"},
    {ZERO_3, EP, NONE, UNSUPPORTED, "/workload/zero", zero_3},
    {ZERO_3, CP, NONE, UNSUPPORTED, "/workload/zero", zero_3},
    {REGATHERS, PP, SHARDED, INVALID, "/workload/regather",
     "no weights are gathered: they are not split over fsdp, nor over dp with zero 3"},
    /* What frameworks hold. */
    {GRADIENTS_SAID, NONE, FRAMEWORKS, INVALID, "/workload/formats/main_gradients",
     "\"memory\": \"book\" has no main gradients; its gradients lie in the format of "
     "\"gradients\""},
    {GRADIENTS_SAID, FSDP2, NONE, INVALID, "/workload/formats/main_gradients",
     "FSDP keeps gradients in the format of its shards, which is fp32; what it reduces has the "
     "format of \"gradients\""},
    {FRAMEWORKS, NONE, GPU, UNSUPPORTED, "/workload/memory",
     "\"framework\" counts what Megatron-LM and PyTorch hold on GPUs; for %c there is \"book\""},
    /* Attention. */
    {NO_MICROBATCH, NONE, NONE, INVALID, "/workload/accumulate", "0 microbatches"},
    {NO_TOKENS, NONE, BARE, INVALID, "/workload/sequence_length", "0 tokens"},
    {RINGS, CP_FOLDED, NONE, UNSUPPORTED, "/workload/context",
     "\"ring\" goes round one axis of the machine, and cp lies on %n; \"all_gather\" and "
     "\"ulysses\" go over several"},
    {RINGS, CP_LINE, NONE, UNSUPPORTED, "/workload/context",
     "\"ring\" needs an axis that closes, and the %p ranks of cp along %a are a line; "
     "\"all_gather\" and \"ulysses\" go over lines"},
    {UNFUSED, BARE, NONE, INVALID, "/workload/attention_kernel",
     "the bare MLP has no attention that could be fused or not"},
    {UNFUSED, CAUSAL, NONE, UNSUPPORTED, "/workload/attention",
     "kernels that are not fused compute the whole square and mask half of it: \"full\" is what "
     "they do"},
    {UNFUSED, LATENT, NONE, UNSUPPORTED, "/workload/attention_kernel",
     "latent attention (MLA) is modelled with \"flash\" only"},
    {UNFUSED, SHARES, NONE, UNSUPPORTED, "/workload/attention_kernel",
     "sequences that %p ranks share are modelled with \"flash\" only"},
    {LATENT, SHARES, NONE, UNSUPPORTED, "/workload/batch_tokens",
     "%p of the %d data ranks would share each sequence, which is not modelled with latent "
     "attention (MLA); %b"},
    {WINDOW, UNFUSED, NONE, UNSUPPORTED, "/workload/attention_kernel",
     "layers that attend to a window of %w keys are modelled with \"flash\" only, unless sequences "
     "have as many tokens or fewer"},
    {WINDOW, CP, TURNS, UNSUPPORTED, "/workload/context",
     "layers that attend to a window of %w keys are modelled with cp where each rank attends to "
     "whole sequences (\"ulysses\"), or where sequences have %w tokens or fewer"},
    {WINDOW, SHARES, CP, UNSUPPORTED, "/workload/batch_tokens",
     "%p ranks share each sequence, which is not modelled for layers that attend to a window of %w "
     "keys; %b"},
    /* Pipelines. */
    {PP_FOLDED, COPIES, NONE, UNSUPPORTED, "/mesh/pp",
     "stages over two axes of the machine are not modelled for schedules that lay each stage on "
     "two ranks; name one axis or a part of one"},
    {PP, OFFLOADS, NONE, UNSUPPORTED, "/workload/offload",
     "nothing is offloaded from pipeline stages in this version"},
    {PREDICTS, REDUCES_ONCE, NONE, UNSUPPORTED, "/workload/mtp",
     "multi-token prediction is not modelled where stages keep gathered weights (\"regather\", or "
     "a schedule file that says when); \"mtp\": false trains %m without"},
    {PREDICTS_MEETING, ONE_MICROBATCH, NONE, UNSUPPORTED, "/workload/accumulate",
     "multi-token prediction is not modelled in one microbatch where the first and the last stage "
     "share an embedding on one rank; from 2 on it is"},
    /* Routing that is drawn. */
    {DRAWN, EXPERT_GROUPS, NONE, UNSUPPORTED, "/workload/routing_skew",
     "a skew is not modelled where a token's experts are in few groups of them"},
    {DRAWN, EP_MIXED, NONE, UNSUPPORTED, "/workload/routing_skew",
     "a skew is modelled where switches alone or links of a grid alone join the ranks of ep, and "
     "here both do"},
    {DRAWN, EP_TWISTED, NONE, UNSUPPORTED, "/workload/routing_skew",
     "a skew is modelled on tori that are not twisted"},
};

/* --- Facts --- */

/* Whether the default, which is right for one stage, is named for a mesh that has one. */
static bool names_schedule(const struct workload_plan *plan, const struct mesh *mesh)
{
    if (plan->stages.schedule == NULL) return false;
    return !mesh->present[MESH_PP] || !name_same(plan->stages.schedule, WORKLOAD_SCHEDULE_DEFAULT);
}

/* Whether switches, or links of a grid, serve some dimension of a group. */
static bool has_links(const struct group *group, bool switched)
{
    for (uint32_t d = 0; d < group->dimension_count; d++)
        if (group->dimension[d].switched == switched) return true;
    return false;
}

/* Of two ranks each is next to the other, on a line too. */
static bool is_line(const struct group_dimension *dimension)
{
    return !dimension->ring && !dimension->switched && dimension->size != 2;
}

static void facts_find(const struct ranks *l, bool ret_facts[FACT_COUNT])
{
    const struct workload_plan *p = l->plan;
    const struct mesh *m = l->mesh;
    const struct model *o = &p->model;
#define X(name, holds) ret_facts[name] = holds;
    FACTS(X)
#undef X
}

/* --- Sentences --- */

static const char *word_of(const struct ranks *ranks, char letter, char text[SUGGEST_TEXT_BYTES])
{
    static const char letters[] = "mcab", numerals[] = "zwdpnk";
    const struct model *model = &ranks->plan->model;
    const struct group *cp = &ranks->mesh->axis[MESH_CP].group;
    const char *const words[] = {model->name, ranks->machine->chip.title, cp->dimension[0].name,
                                 letter == 'b' ? suggest_batch(ranks, text) : ""};
    uint64_t const numbers[] = {
        ranks->plan->zero,   model->window,
        ranks->data,         ranks->cp > 1 ? ranks->cp : ranks->sequence_parts,
        cp->dimension_count, model->mtp_modules};
    const char *const word = strchr(letters, letter), *const numeral = strchr(numerals, letter);
    if (word != NULL) return words[word - letters];
    SIM_ASSERT(numeral != NULL);
    (void)snprintf(text, SUGGEST_TEXT_BYTES, "%llu",
                   (unsigned long long)numbers[numeral - numerals]);
    return text;
}

static enum status refuse(const struct ranks *ranks, const struct refusal *row,
                          struct error *reterr)
{
    char sentence[SENTENCE_BYTES], word[SUGGEST_TEXT_BYTES];
    size_t used = 0;
    for (const char *at = row->sentence; *at != '\0'; at++) {
        char const plain[] = {*at, '\0'};
        const char *const next = *at == '%' ? word_of(ranks, *++at, word) : plain;
        used +=
            (size_t)snprintf(sentence + used, sizeof sentence - used, "%.*s", WORD_BYTES_MAX, next);
        SIM_ASSERT(used < sizeof sentence);
    }
    return error_set(reterr, row->status, row->where, "%s", sentence);
}

enum status refusals_check(const struct ranks *ranks, struct error *reterr)
{
    bool facts[FACT_COUNT] = {[NONE] = true};
    facts_find(ranks, facts);
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++)
        if (facts[table[i].when] && facts[table[i].also] &&
            !(table[i].unless != NONE && facts[table[i].unless]))
            return refuse(ranks, &table[i], reterr);
    return STATUS_OK;
}
