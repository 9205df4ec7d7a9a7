/* The ops of a template as steps: modules that predict further tokens, whose templates have a layer
 * among their ops, are written from the program itself, in its order. */
#include "sim/step/listing.h"

#include <string.h>

#include "sim/base/counted.h"

struct notation {
    const char *op; /* Without " again". */
    const char *what;
    const char *remark;
};

static const struct notation notations[] = {
    {"attention.norm", "In = Norm(X)", "with the last residual"},
    {"attention.QKV", "Q, K, V = In *_D W_Q, W_K, W_V", ""},
    {"attention.Down", "C = In *_D W_DQ, W_DKV", "all columns on each rank of tp"},
    {"attention.LatentNorm", "Latents = Norm(C)", ""},
    {"attention.Up", "Q, K, V = Latents *_C W_UQ, W_UKV", "the turned columns of K for each head"},
    {"attention.flash", "A = Attention(Q, K, V)", "flash: no T x S array in HBM"},
    {"attention.O", "Out = A *_NH W_O", ""},
    {"attention.dW_O", "dW_O = A *_B dOut", ""},
    {"attention.dA", "dA = dOut *_D W_O", ""},
    {"attention.dFlash", "dQ, dK, dV = Attention'(dA)", "computes the scores again"},
    {"attention.dW_up", "dW_UQ, dW_UKV = Latents *_B dQ, dK, dV", "of this chip's heads"},
    {"attention.dLatent", "dLatents of Q, K, V", "of this chip's heads"},
    {"attention.dLatentNorm", "dC = Norm'(dLatents)", ""},
    {"attention.dW_QKV", "dW_Q, dW_K, dW_V = In *_B dQ, dK, dV", ""},
    {"attention.dW_down", "dW_DQ, dW_DKV = In *_B dC", "of this chip's heads"},
    {"attention.dIn", "dIn of the projections that read In", ""},
    {"attention.dNorm", "dX += Norm'(dIn)", ""},
    {"mlp.norm", "In = Norm(X)", "with attention's residual"},
    {"mlp.Gate,Up", "Gate, Up = In *_D W_gate, W_up", ""},
    {"mlp.Tmp", "Tmp = In *_D W_in", ""},
    {"mlp.Out", "Out = Tmp *_F W_out", "the activation is computed as it is read"},
    {"mlp.dW_out", "dW_out = Tmp *_B dOut", ""},
    {"mlp.dGate,dUp", "dGate, dUp of dOut *_D W_out", ""},
    {"mlp.dTmp", "dTmp = dOut *_D W_out", ""},
    {"mlp.dW_gate,up", "dW_gate, dW_up = In *_B dGate, dUp", ""},
    {"mlp.dW_in", "dW_in = In *_B dTmp", ""},
    {"mlp.dIn", "dIn of the projections that read In", ""},
    {"mlp.dNorm", "dX += Norm'(dIn)", ""},
    {"moe.norm", "In = Norm(X)", "with attention's residual"},
    {"moe.Router", "Logits = In *_D W_router", ""},
    {"moe.Route", "Gates = the best experts of each token", ""},
    {"moe.Cast", "rows = In", "in the format that travels"},
    {"moe.Sort", "Sorted = rows by expert", ""},
    {"moe.Sum", "outputs = sums of Outputs", "of a token's experts on this chip"},
    {"moe.Merge", "Out = sums of what came back", ""}, /* With shared experts: below. */
    {"shared.Gate,Up", "Gate, Up = In *_D W_shared_gate, W_shared_up", "while tokens travel"},
    {"shared.Out", "shared.Out = Tmp *_F W_shared_out", ""},
    {"experts.Gate,Up", "Gate, Up = Sorted *_D W_gate, W_up", "each expert by itself"},
    {"experts.Out", "Outputs = Tmp *_F W_out", "with the gate of each row"},
    {"moe.dCast", "dOutputs = dX", "in the format that travels"},
    {"moe.dSum", "dOutputs = dX by expert", ""},
    {"shared.dW_out", "dW_shared_out = Tmp *_B shared.dOut", "while gradients travel"},
    {"shared.dGate,dUp", "dGate, dUp of shared.dOut *_D W_shared_out", ""},
    {"shared.dW_gate,up", "dW_shared_gate, dW_shared_up = In *_B dGate, dUp", ""},
    {"shared.dIn", "shared.dIn of dGate, dUp", ""},
    {"experts.dW_out", "dW_out = Tmp *_B dOutputs", "each expert by itself"},
    {"experts.dGate,dUp", "dGate, dUp of dOutputs *_D W_out", "and the gates' gradients"},
    {"experts.dW_gate,up", "dW_gate, dW_up = Sorted *_B dGate, dUp", ""},
    {"experts.dIn", "dSorted of Gate, Up", ""},
    {"moe.dSort", "dRows = sums of dSorted", "of a token's experts on this chip"},
    {"moe.dRoute", "dLogits of the gates' gradients", ""},
    {"moe.dRouter", "dW_router, dIn of Logits", ""},
    {"moe.dIn", "dIn of Logits", ""},
    {"moe.dW_router", "dW_router = In *_B dLogits", ""},
    {"moe.dMerge", "dIn = sums of all that read In", ""},
    {"moe.dNorm", "dX += Norm'(dIn)", ""},
    {"mtp.embedding.lookup", "E = rows of W_embedding", "of the token one place further on"},
    {"mtp.hnorm", "In = Norm(X)", ""},
    {"mtp.enorm", "In = In, Norm(E)", "2 D columns"},
    {"mtp.Project", "X = In *_2D W_mtp", ""},
    {"mtp.head.norm", "In = Norm(X)", ""},
    {"mtp.head.Logits", "Logits = In *_D W_head", "the model's own matrix"},
    {"mtp.head.Loss", "Loss += Loss of Logits", ""},
    {"mtp.head.dW", "dW_head += In *_B dLogits", "added to the head's own"},
    {"mtp.head.dIn", "dIn = dLogits *_V W_head", ""},
    {"mtp.head.dNorm", "dX = Norm'(dIn)", ""},
    {"mtp.dW", "dW_mtp = In *_B dX", ""},
    {"mtp.dIn", "dIn = dX *_D W_mtp", ""},
    {"mtp.dENorm", "dE = Norm'(dIn)", ""},
    {"mtp.dHNorm", "dX = Norm'(dIn)", "added to what the model's own head gives"},
    {"mtp.embedding.dW", "dW_embedding += rows dE", ""},
};

/* What stands behind an op of the model at hand. */
static const char *remark_of(const struct listing *listing, const struct notation *row)
{
    bool const merges = strcmp(row->op, "moe.Merge") == 0;
    return merges && listing->ranks->plan->model.experts.shared > 0
               ? "with the shared experts' result"
               : row->remark;
}

/* "Q, K, V = ..."; an op that has no row stands under its own name. */
static void compute_add(struct listing *listing, const char *name)
{
    static const char again[] = " again";
    size_t length = strlen(name);
    size_t const tail = sizeof again - 1;
    bool const repeated = length > tail && strcmp(name + length - tail, again) == 0;
    if (repeated) length -= tail;
    for (size_t i = 0; i < sizeof notations / sizeof *notations; i++) {
        const struct notation *row = &notations[i];
        if (strlen(row->op) != length || memcmp(row->op, name, length) != 0) continue;
        listing_step(listing, repeated ? "for the backward pass" : remark_of(listing, row), "%s%s",
                     row->what, repeated ? ", again" : "");
        return;
    }
    listing_step(listing, "", "%s", name);
}

/* "gather fsdp" works for the mesh axis "fsdp". */
static const char *group_of(const struct program *program, const struct program_op *op)
{
    const char *name = program->stream[op->stream].name;
    const char *space = strrchr(name, ' ');
    return space == NULL ? name : space + 1;
}

/* "In = AllGather_Y(In)"; ranks that have no letter of their own are named. */
static void collective_add(struct listing *listing, const struct program *program,
                           const struct program_op *op)
{
    const struct plan *plan = &program->plans[op->index];
    const struct ranks *ranks = listing->ranks;
    const char *kind = collective_kind_name(plan->kind), *group = group_of(program, op);
    bool const tp = strcmp(group, "tp") == 0;
    const char *array = op->name + strlen(kind) + 1;
    if (strrchr(array, '.') != NULL && strncmp(array, "shared.", 7) != 0)
        array = strrchr(array, '.') + 1;
    bool const shards = ranks->shards > 1 && strcmp(group, mesh_role_name(ranks->shard_role)) == 0;
    bool const chunked = op->parts > 1 || op->operand_op != PROGRAM_NONE;
    const char *remark = "on critical path";
    if (array[0] == 'W') remark = "can be done ahead of time";
    if (strncmp(array, "dW", 2) == 0) remark = "not on critical path, can be done async";
    if (chunked) remark = "chunk by chunk, while the compute that reads or feeds it runs";
    if (tp || shards)
        listing_step(listing, remark, "%s = %s_%s(%s)", array, kind, tp ? "Y" : "X", array);
    else
        listing_step(listing, remark, "%s = %s(%s) over the %s of %s", array, kind, array,
                     counted(group_rank_count(&plan->group), "rank").text, group);
    listing_tell(listing, plan->kind, group, plan->size_bytes);
}

static uint32_t rank_of(const struct program_template *template, bool experts)
{
    uint32_t rank = 1;
    for (uint32_t i = 0; i < template->op_count; i++) {
        const char *name = template->op[i].name;
        rank += template->op[i].kind == PROGRAM_OP_COLLECTIVE;
        if (experts && (strncmp(name, "moe.", 4) == 0 || strstr(name, "W_experts") != NULL))
            rank += UINT16_MAX;
    }
    return rank;
}

/* Of the templates of that name the one of a layer of the kind at the top that has the most
 * collectives: passes of a pipeline and microbatches differ in them. */
static const struct program_template *template_find(const struct listing *listing,
                                                    const struct program *program, const char *name)
{
    bool const experts = ranks_last_kind(listing->ranks) == LAYER_MOE;
    const struct program_template *best = NULL;
    for (uint32_t t = 0; t < program->template_count; t++) {
        const struct program_template *template = &program->templates[t];
        if (strcmp(template->name, name) != 0) continue;
        if (best == NULL || rank_of(template, experts) > rank_of(best, experts)) best = template;
    }
    return best;
}

bool listing_template(struct listing *listing, const struct program *program, const char *name)
{
    const struct program_template *template = template_find(listing, program, name);
    if (template == NULL) return false;
    for (uint32_t i = 0; i < template->op_count; i++) {
        const struct program_op *op = &template->op[i];
        switch (op->kind) {
        case PROGRAM_OP_COMPUTE:
            compute_add(listing, op->name);
            break;
        case PROGRAM_OP_COLLECTIVE:
            collective_add(listing, program, op);
            break;
        case PROGRAM_OP_COPY:
            listing_step(listing, "over the link to the host", "%s", op->name);
            break;
        case PROGRAM_OP_SEND:
        case PROGRAM_OP_RECEIVE:
            listing_step(listing, "over pp", "%s", op->name);
            break;
        }
    }
    return true;
}
