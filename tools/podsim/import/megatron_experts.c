/*
 * megatron_experts.c: experts of Megatron-LM's arguments, and the layers that have them.
 *
 * Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (moe_freq_type).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/name.h"
#include "tools/podsim/import/megatron.h"

enum { TOP_K = 2 };

/* "1", or "[0]*3+[1]*58" with spaces anywhere: layers without experts, then layers with them. */
static bool expert_layers_read(const char *text, uint64_t layers, uint64_t *ret_dense)
{
    uint64_t dense = 0, sparse = 0;
    *ret_dense = 0;
    if (name_same(text, "1")) return true;
    while (*text != '\0') {
        char *end = NULL;
        uint64_t times = 1;
        text += strspn(text, " +'\"()");
        if (*text == '\0') break;
        bool const is_sparse = strncmp(text, "[1]", 3) == 0;
        if (!is_sparse && strncmp(text, "[0]", 3) != 0) return false;
        text += 3;
        text += strspn(text, " ");
        if (*text == '*') {
            text += 1 + strspn(text + 1, " ");
            times = strtoull(text, &end, 10);
            if (end == text) return false;
            text = end;
        }
        if (!is_sparse && sparse > 0) return false;
        if (times > UINT32_MAX || dense + sparse > UINT32_MAX) return false;
        *(is_sparse ? &sparse : &dense) += times;
    }
    *ret_dense = dense;
    return sparse > 0 && dense + sparse == layers;
}

/* "([0,1]*24)": the last of each so many layers has experts. */
static bool expert_step_read(const char *text, uint64_t layers, uint64_t *ret_step)
{
    uint64_t step = 0;
    char *end = NULL;
    text += strspn(text, " '\"([");
    for (; strncmp(text, "0,", 2) == 0; text += strspn(text, " ,")) {
        step++;
        text++;
    }
    if (step == 0 || strncmp(text, "1]*", 3) != 0) return false;
    uint64_t const times = strtoull(text + 3, &end, 10);
    *ret_step = step + 1;
    return end != text + 3 && end[strspn(end, " '\")")] == '\0' && layers / *ret_step == times &&
           layers % *ret_step == 0;
}

enum status megatron_experts_find(struct import *import, struct error *reterr)
{
    struct import_facts *facts = &import->facts;
    if (facts->experts.top_k == 0) facts->experts.top_k = TOP_K;
    if (facts->experts.width == 0) facts->experts.width = facts->sizes.mlp_width;
    if (facts->experts.layers != NULL && import->model == NULL &&
        !expert_layers_read(facts->experts.layers, facts->sizes.layers,
                            &facts->experts.dense_layers) &&
        !expert_step_read(facts->experts.layers, facts->sizes.layers, &facts->experts.step))
        return import_refuse(import, &facts->experts.layers, reterr,
                             "\"%.80s\" is not \"1\", or layers without experts before layers with "
                             "them, %" PRIu64
                             " in all, such as \"[0]*3+[1]*58\", or \"([0,1]*24)\"",
                             facts->experts.layers, facts->sizes.layers);
    return import_capacity(import, reterr);
}
