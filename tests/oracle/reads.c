#include "tests/oracle/reads.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/status.h"

/* Ordered by name, or row_of() does not find it. */
static const struct reads table[] = {
    {"AllGather In", "x X", "X In"},
    {"AllGather K V", "attention.QKV", "attention.KV"},
    {"AllGather Kn V", "attention.QKV attention.QKn", "attention.KV"},
    {"AllGather W", "W", "W"},
    {"AllGather attention.In", "attention.In", "attention.In"},
    {"AllGather attention.dOut", "dx", "attention.dOut"},
    {"AllGather dOut", "dx", "dOut"},
    {"AllGather embedding.dOut", "dx", "embedding.dOut"},
    {"AllGather head.In", "head.In", "head.In"},
    {"AllGather mlp.In", "mlp.In", "mlp.In"},
    {"AllGather mlp.dOut", "dx", "mlp.dOut"},
    {"AllGather moe.In", "moe.In", "moe.InWhole"},
    {"AllGather moe.dOutputs", "dx moe.dCast moe.dOutputs", "moe.dOutputs"},
    {"AllGather moe.rows", "moe.In moe.Cast moe.Gates moe.Rows", "moe.Rows"},
    {"AllGather mtp.In", "mtp.In", "mtp.In"},
    {"AllGather mtp.Out", "x", "x"},
    {"AllGather mtp.dOut", "dx", "mtp.dOut"},
    {"AllGather mtp.embedding.dOut", "mtp.dRows", "embedding.dOut"},
    {"AllGather mtp.head.In", "head.In", "head.In"},
    {"AllGather shared.dOut", "dx", "shared.dOut"},
    {"AllReduce dW", "dW", "dW"},
    {"AllReduce moe.Logits", "moe.Logits", "moe.Logits"},
    {"AllToAll A", "attention.A", "attention.A"},
    {"AllToAll K", "attention.QKV", "attention.Turned"},
    {"AllToAll Kn", "attention.QKn", "attention.Turned"},
    {"AllToAll Q", "attention.QKV", "attention.Turned"},
    {"AllToAll Qn", "attention.QKn", "attention.Turned"},
    {"AllToAll V", "attention.QKV", "attention.Turned"},
    {"AllToAll dA", "attention.dA", "attention.dA"},
    {"AllToAll dK", "attention.dQKV", "attention.dQKV"},
    {"AllToAll dKn", "attention.dQKn", "attention.dQKn"},
    {"AllToAll dOutputs", "dx moe.dCast", "moe.dOutputs"},
    {"AllToAll dQ", "attention.dQKV", "attention.dQKV"},
    {"AllToAll dQn", "attention.dQKn", "attention.dQKn"},
    {"AllToAll dRows", "moe.dRows", "moe.dRows"},
    {"AllToAll dV", "attention.dQKV", "attention.dQKV"},
    {"AllToAll outputs", "moe.Outputs", "moe.Outputs"},
    {"AllToAll rows", "moe.In moe.Cast moe.Gates", "moe.Rows"},
    {"Gate,Up", "x X In W", "X Tmp"},
    {"Out", "Tmp W", "x"},
    {"Permute dK dV", "attention.dQKV", "attention.dQKV"},
    {"Permute dKn dV", "attention.dQKV attention.dQKn", "attention.dQKV attention.dQKn"},
    {"ReduceScatter Out", "x", "x"},
    {"ReduceScatter attention.Out", "attention.Out", "attention.Out"},
    {"ReduceScatter attention.dIn", "attention.dIn", "attention.dIn"},
    {"ReduceScatter dIn", "dx", "dx"},
    {"ReduceScatter dK dV", "attention.dQKV", "attention.dQKV"},
    {"ReduceScatter dKn dV", "attention.dQKV attention.dQKn", "attention.dQKV attention.dQKn"},
    {"ReduceScatter dW", "dW", "dW"},
    {"ReduceScatter embedding.Out", "x", "x"},
    {"ReduceScatter head.dIn", "head.dIn", "head.dIn"},
    {"ReduceScatter mlp.Out", "x", "x"},
    {"ReduceScatter mlp.dIn", "mlp.dIn", "mlp.dIn"},
    {"ReduceScatter moe.dRows", "moe.dRows", "moe.dRows"},
    {"ReduceScatter moe.outputs", "moe.Outputs", "moe.Outputs"},
    {"ReduceScatter mtp.dIn", "mtp.dIn", "mtp.dIn"},
    {"ReduceScatter mtp.embedding.Out", "mtp.Rows", "mtp.Rows"},
    {"ReduceScatter mtp.head.dIn", "head.dIn", "head.dIn"},
    {"ReduceScatter shared.Out", "shared.Out", "shared.Out"},
    {"ReduceScatter shared.dIn", "shared.dIn", "shared.dIn"},
    {"Tmp", "x X In W", "X Tmp"},
    {"attention.A", "attention.P attention.QKV", "attention.A"},
    {"attention.Down", "attention.In W", "attention.Latent"},
    {"attention.LatentNorm", "attention.Latent", "attention.LatentNormed"},
    {"attention.O", "attention.A W", "attention.Out"},
    {"attention.P", "attention.S", "attention.P"},
    {"attention.QKNorm", "attention.QKV", "attention.QKn"},
    {"attention.QKV", "attention.In W", "attention.QKV"},
    {"attention.S", "attention.QKV attention.QKn", "attention.S"},
    {"attention.Up", "attention.Latent attention.LatentNormed W", "attention.QKV"},
    {"attention.dA", "attention.dOut dx W", "attention.dA"},
    {"attention.dDropout", "attention.P attention.dP", "attention.dP"},
    {"attention.dFlash",
     "attention.QKV attention.QKn attention.KV attention.Turned attention.A attention.dA",
     "attention.dQKV attention.dQKn"},
    {"attention.dIn", "attention.dQKV attention.dLatent W", "attention.dIn"},
    {"attention.dK", "attention.QKV attention.dS", "attention.dQKV"},
    {"attention.dKn", "attention.QKn attention.dS", "attention.dQKn"},
    {"attention.dLatent", "attention.dQKV W", "attention.dLatent"},
    {"attention.dLatentNorm", "attention.Latent attention.dLatent", "attention.dLatent"},
    {"attention.dNorm", "attention.dIn attention.X dx", "dx"},
    {"attention.dP", "attention.QKV attention.dA", "attention.dP"},
    {"attention.dQ", "attention.QKV attention.dS", "attention.dQKV"},
    {"attention.dQKNorm", "attention.QKV attention.dQKn", "attention.dQKV"},
    {"attention.dQn", "attention.QKn attention.dS", "attention.dQKn"},
    {"attention.dS", "attention.P attention.dP", "attention.dS"},
    {"attention.dV", "attention.P attention.dA", "attention.dQKV"},
    {"attention.dW_O", "attention.A attention.dOut dx", "dW"},
    {"attention.dW_QKV", "attention.In attention.dQKV", "dW"},
    {"attention.dW_down", "attention.In attention.dLatent", "dW"},
    {"attention.dW_up", "attention.Latent attention.LatentNormed attention.dQKV", "dW"},
    {"attention.dropout", "attention.P", "attention.P"},
    {"attention.flash", "attention.QKV attention.QKn attention.KV attention.Turned", "attention.A"},
    {"attention.norm", "x attention.X", "attention.X attention.In"},
    {"copy's gradients.sum", "dW copy", "dW"},
    {"dGate,dUp", "Tmp dOut dx W", "dTmp"},
    {"dIn", "dTmp W", "dx"},
    {"dTmp", "Tmp dOut dx W", "dTmp"},
    {"dW_gate,up", "X In dTmp", "dW"},
    {"dW_in", "X In dTmp", "dW"},
    {"dW_out", "Tmp dOut dx", "dW"},
    {"embedding.dW", "embedding.dOut dx", "dW"},
    {"embedding.lookup", "W", "x"},
    {"experts.Gate,Up", "experts.In W", "experts.Tmp"},
    {"experts.Out", "experts.Tmp W", "experts.Out"},
    {"experts.dGate,dUp", "experts.Tmp experts.dOut W", "experts.dTmp"},
    {"experts.dIn", "experts.dTmp W", "experts.dIn"},
    {"experts.dW_gate,up", "experts.In experts.dTmp", "dW"},
    {"experts.dW_out", "experts.Tmp experts.dOut", "dW"},
    {"head.Logits", "head.In W", "head.Logits"},
    {"head.Loss", "head.Logits", "head.dLogits"},
    {"head.dIn", "head.dLogits W", "head.dIn"},
    {"head.dNorm", "head.dIn head.X", "dx"},
    {"head.dW", "head.In head.dLogits", "dW"},
    {"head.norm", "x", "head.X head.In"},
    {"load activations", "", "activations"},
    {"load optimizer", "", "moments"},
    {"mlp.Gate,Up", "mlp.In W", "mlp.Tmp"},
    {"mlp.Out", "mlp.Tmp W", "x"},
    {"mlp.Tmp", "mlp.In W", "mlp.Tmp"},
    {"mlp.dGate,dUp", "mlp.Tmp mlp.dOut dx W", "mlp.dTmp"},
    {"mlp.dIn", "mlp.dTmp W", "mlp.dIn"},
    {"mlp.dNorm", "mlp.dIn mlp.X dx", "dx"},
    {"mlp.dTmp", "mlp.Tmp mlp.dOut dx W", "mlp.dTmp"},
    {"mlp.dW_gate,up", "mlp.In mlp.dTmp", "dW"},
    {"mlp.dW_in", "mlp.In mlp.dTmp", "dW"},
    {"mlp.dW_out", "mlp.Tmp mlp.dOut dx", "dW"},
    {"mlp.norm", "attention.Out attention.X", "mlp.X mlp.In"},
    {"moe.Cast", "moe.In", "moe.Cast"},
    {"moe.Merge", "moe.Outputs shared.Out", "x"},
    {"moe.Route", "moe.Logits", "moe.Gates"},
    {"moe.Router", "moe.In W", "moe.Logits"},
    {"moe.Sort", "moe.In moe.Cast moe.Gates moe.Rows", "experts.In"},
    {"moe.Sum", "experts.Out", "moe.Outputs"},
    {"moe.dCast", "dx", "moe.dCast"},
    {"moe.dIn", "moe.dLogits W", "moe.dIn"},
    {"moe.dMerge", "moe.dRows moe.dIn shared.dIn", "moe.dIn"},
    {"moe.dNorm", "moe.dIn moe.X dx", "dx"},
    {"moe.dRoute", "moe.Gates moe.dRows", "moe.dLogits"},
    {"moe.dRouter", "moe.In moe.dLogits W", "dW moe.dIn"},
    {"moe.dSort", "experts.dIn", "moe.dRows"},
    {"moe.dSum", "dx moe.dCast moe.dOutputs", "experts.dOut"},
    {"moe.dW_router", "moe.In moe.dLogits", "dW"},
    {"moe.norm", "attention.Out attention.X", "moe.X moe.In"},
    {"mtp.Project", "mtp.In W", "x"},
    {"mtp.dENorm", "mtp.Rows mtp.dIn", "mtp.dRows"},
    {"mtp.dHNorm", "mtp.X mtp.dIn dx", "dx"},
    {"mtp.dIn", "mtp.dOut dx W", "mtp.dIn"},
    {"mtp.dW", "mtp.In mtp.dOut dx", "dW"},
    {"mtp.embedding.dW", "mtp.dRows embedding.dOut", "dW"},
    {"mtp.embedding.lookup", "W", "mtp.Rows"},
    {"mtp.enorm", "mtp.Rows", "mtp.In"},
    {"mtp.head.Logits", "head.In W", "head.Logits"},
    {"mtp.head.Loss", "head.Logits", "head.dLogits"},
    {"mtp.head.dIn", "head.dLogits W", "head.dIn"},
    {"mtp.head.dNorm", "head.dIn head.X", "dx"},
    {"mtp.head.dW", "head.In head.dLogits", "dW"},
    {"mtp.head.norm", "x", "head.X head.In"},
    {"mtp.hnorm", "x mtp.X", "mtp.X mtp.In"},
    {"receive activations", "", "x"},
    {"receive both", "", "x dx"},
    {"receive copy's gradients", "", "copy"},
    {"receive gradients", "", "dx"},
    {"receive tied gradients", "", "copy"},
    {"send activations", "x", "x"},
    {"send copy's gradients", "dW", "dW"},
    {"send gradients", "dx", "dx"},
    {"send tied gradients", "dW", "dW"},
    {"shared.Gate,Up", "moe.In moe.InWhole W", "shared.Tmp"},
    {"shared.Out", "shared.Tmp W", "shared.Out"},
    {"shared.dGate,dUp", "shared.Tmp shared.dOut dx W", "shared.dTmp"},
    {"shared.dIn", "shared.dTmp W", "shared.dIn"},
    {"shared.dW_gate,up", "moe.In moe.InWhole shared.dTmp", "dW"},
    {"shared.dW_out", "shared.Tmp shared.dOut dx", "dW"},
    {"store activations", "activations", "activations"},
    {"store optimizer", "moments", "moments"},
    {"tied gradients.sum", "dW copy", "dW"},
    {"update", "dW moments", "W moments"},
};

/* Names that go on with those of units: "AllGather W_mlp", "update layer". */
static const char *const beginnings[] = {"AllGather W", "AllReduce dW", "ReduceScatter dW",
                                         "update"};

static int row_compare(const void *name, const void *row)
{
    return strcmp(name, ((const struct reads *)row)->name);
}

static const struct reads *row_of(const char *name)
{
    return bsearch(name, table, sizeof table / sizeof *table, sizeof *table, row_compare);
}

const struct reads *reads_find(const char *op_name)
{
    static const char again[] = " again";
    char name[128];
    size_t length = strlen(op_name);
    size_t const suffix = sizeof again - 1;
    SIM_ASSERT(length < sizeof name);
    if (length > suffix && strcmp(op_name + length - suffix, again) == 0) length -= suffix;
    memcpy(name, op_name, length);
    name[length] = '\0';
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0) return row_of(beginnings[i]);
    return row_of(name);
}

bool reads_have(const char *list, const char *array)
{
    size_t const length = strlen(array);
    for (const char *at = list; *at != '\0';) {
        size_t const own = strcspn(at, " ");
        if (own == length && memcmp(at, array, length) == 0) return true;
        at += own + (at[own] == ' ');
    }
    return false;
}

bool reads_meet(const char *list, const char *other, char ret_array[READS_ARRAY_BYTES])
{
    for (const char *at = list; *at != '\0';) {
        size_t const own = strcspn(at, " ");
        SIM_ASSERT(own < READS_ARRAY_BYTES);
        memcpy(ret_array, at, own);
        ret_array[own] = '\0';
        if (reads_have(other, ret_array)) return true;
        at += own + (at[own] == ' ');
    }
    return false;
}
