/*
 * maxtext_remat.c: MaxText's policies of recomputation as lists of arrays.
 *
 * Source: AI-Hypercomputer/maxtext, layers/decoders.py (get_remat_policy), and the names that
 * attentions.py, linears.py and moe.py give (checkpoint_name).
 */
#include "tools/podsim/import/maxtext.h"

#include "sim/base/name.h"
#include "tools/podsim/import/recompute.h"

enum tensor {
    LAYER_INPUT,
    CONTEXT,
    QUERY,
    KEY,
    VALUE,
    QKV,
    OUT,
    MLP_IN,
    MLP_IN_0,
    MLP_IN_1,
    MLP_OUT,
    TENSORS
};

enum {
    QUERIES = 1 << QUERY | 1 << KEY | 1 << VALUE | 1 << QKV,
    INS = 1 << MLP_IN | 1 << MLP_IN_0 | 1 << MLP_IN_1
};

/* A policy by what it keeps, as a set of tensors, in addition to what podsim's keeps. */
static const struct policy {
    const char *word, *remat;
    unsigned saves, offloads;
    bool quantized; /* It keeps what quantizing gives as well. */
} policies[] = {
    {"none", "none", 0, 0, false},
    {"full", "block", 0, 0, false},
    {"minimal", "big_matmuls", 0, 0, false},
    {"minimal_with_quantization", "big_matmuls", 0, 0, true},
    {"minimal_with_context_and_quantization", "big_matmuls", 1 << CONTEXT, 0, true},
    {"minimal_flash", "big_matmuls", 1 << CONTEXT, 0, false},
    {"minimal_with_context", "big_matmuls", 1 << CONTEXT, 0, false},
    {"save_dot_except_mlp", "block", QUERIES | 1 << OUT, 0, false},
    {"save_dot_except_mlpwi", "block", QUERIES | 1 << OUT | 1 << MLP_OUT, 0, false},
    {"save_dot_with_context_except_mlp", "block", QUERIES | 1 << CONTEXT | 1 << OUT, 0, false},
    {"save_qkv_proj", "block", QUERIES, 0, false},
    {"save_out_proj", "block", 1 << OUT, 0, false},
    {"qkv_proj_offloaded", "block", 0, QUERIES, false},
    {"minimal_offloaded", "big_matmuls", 0, QUERIES | INS | 1 << OUT | 1 << MLP_OUT, false},
    {"custom", "block", 0, 0, false},
    {NULL, NULL, 0, 0, false},
};

/* Arrays of podsim by a name of MaxText. Results of a layer's two halves side by side are one
 * array. */
static void tensor_add(const struct import_layers *layers, enum tensor tensor,
                       enum import_list list, struct import_arrays *arrays)
{
    const struct {
        unsigned tensors;
        bool applies;
        const char *name;
    } rows[] = {
        {1 << LAYER_INPUT, !layers->parallel, "attention.X"},
        {1 << CONTEXT, true, "A"},
        {1 << QUERY | 1 << QKV, true, "Q"},
        {1 << KEY | 1 << QKV, !layers->latent, "K"},
        {1 << VALUE | 1 << QKV, !layers->latent, "V"},
        {1 << KEY | 1 << VALUE, layers->latent, "KV"},
        {1 << OUT, !layers->parallel, "attention.Out"},
        {1 << MLP_IN | 1 << MLP_IN_0, layers->gated, "Gate"},
        {1 << MLP_IN | 1 << MLP_IN_1, layers->gated, "Up"},
        {1 << MLP_IN | 1 << MLP_IN_0, !layers->gated, "Tmp"},
        {1 << MLP_IN | 1 << MLP_IN_0, layers->shared, "SharedGate"},
        {1 << MLP_IN | 1 << MLP_IN_1, layers->shared, "SharedUp"},
        {1 << MLP_OUT, layers->dense && !layers->parallel, "mlp.Out"},
        {1 << MLP_OUT, layers->experts, "Outputs"},
        {1 << MLP_OUT, layers->shared, "Shared"},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((rows[i].tensors >> tensor & 1) != 0 && rows[i].applies)
            import_array_add(arrays, list, rows[i].name);
}

/* Tensors of the policy "custom": where each is kept. */
static enum status custom_find(struct import *import, bool counts, struct policy *policy,
                               struct error *reterr)
{
    static const char *const places[] = {"remat", "device", "offload", NULL};
    const struct import_tensors *of = &import->facts.tensors;
    const char *const *const said[TENSORS] = {[LAYER_INPUT] = &of->layer_input,
                                              [CONTEXT] = &of->context,
                                              [QUERY] = &of->query,
                                              [KEY] = &of->key,
                                              [VALUE] = &of->value,
                                              [QKV] = &of->qkv,
                                              [OUT] = &of->out,
                                              [MLP_IN] = &of->mlp_in,
                                              [MLP_IN_0] = &of->mlp_in_0,
                                              [MLP_IN_1] = &of->mlp_in_1,
                                              [MLP_OUT] = &of->mlp_out};
    for (uint32_t i = 0; i < TENSORS; i++) {
        STATUS_TRY(import_choice(import, said[i], places, reterr));
        if (!counts) import_plain(import, said[i], "it counts with remat_policy custom");
        if (!counts || *said[i] == NULL) continue;
        if (name_same(*said[i], "device")) policy->saves |= 1U << i;
        if (name_same(*said[i], "offload")) policy->offloads |= 1U << i;
    }
    return STATUS_OK;
}

static enum status policy_refuse(const struct import *import, const char *word,
                                 struct error *reterr)
{
    const char *words[sizeof policies / sizeof *policies];
    for (uint32_t i = 0; i < sizeof policies / sizeof *policies; i++) words[i] = policies[i].word;
    return import_refuse(import, &import->facts.policy.recompute, reterr,
                         "podsim knows no policy \"%.40s\"%s", word,
                         name_offer(word, words, "; the nearest is ", "", NULL).text);
}

enum status maxtext_remat_set(struct import *import, struct error *reterr)
{
    const char *const *const said = &import->facts.policy.recompute;
    const char *const word = *said == NULL ? "full" : *said;
    struct import_arrays arrays = {.count = {0}};
    struct import_layers layers;
    uint32_t found = 0;
    while (policies[found].word != NULL && !name_same(policies[found].word, word)) found++;
    if (policies[found].word == NULL) return policy_refuse(import, word, reterr);
    struct policy policy = policies[found];
    STATUS_TRY(custom_find(import, name_same(word, "custom"), &policy, reterr));
    STATUS_TRY(import_layers_find(import, &layers, reterr));
    if (policy.quantized && import->facts.formats.converters != NULL &&
        import->facts.formats.converters[0] != '\0')
        import_lacks(import, said,
                     "it keeps quantized operands too; podsim quantizes them again in the backward "
                     "pass");
    if (policy.offloads != 0 && !layers.offloads)
        import_lacks(import, said,
                     "arrays go to the host; podsim keeps them on the chip with stages, "
                     "multi-token prediction, or no link to a host");
    for (enum tensor t = 0; t < TENSORS; t++) {
        if ((policy.saves >> t & 1) != 0) tensor_add(&layers, t, IMPORT_LIST_SAVE, &arrays);
        if ((policy.offloads >> t & 1) != 0)
            tensor_add(&layers, t, layers.offloads ? IMPORT_LIST_OFFLOAD : IMPORT_LIST_SAVE,
                       &arrays);
    }
    if (layers.parallel && ((policy.saves | policy.offloads) >> OUT & 1) != 0)
        import_lacks(import, said, "the result of attention, which is a sum with that of the MLP");
    return import_remat(import, policy.remat, &arrays, reterr);
}
