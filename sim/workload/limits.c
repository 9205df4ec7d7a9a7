#include "sim/workload/limits.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/base/vector.h"

enum {
    BITS = 62,              /* Two more would wrap; sums of a few such numbers stay exact. */
    BITS_OF_ELEMENT = 512,  /* The widest format has 32; an op moves at most 16 such arrays. */
    BYTES_OF_ELEMENT = 4,   /* Of the widest format. */
    BYTES_OF_SCORE = 9,     /* Before dropout, after it, and a mask. */
    PRODUCTS_OF_SCORES = 5, /* In flash attention's backward pass. */
};

static enum status rate_check(const struct chip *chip, enum format format, const char *where,
                              struct error *reterr)
{
    char names[96] = "";
    if (chip->math_flop_per_s[format] != 0) return STATUS_OK;
    for (uint32_t f = 0; f < FORMAT_COUNT; f++) {
        size_t const used = strlen(names);
        if (chip->math_flop_per_s[f] == 0) continue;
        (void)snprintf(names + used, sizeof names - used, "%s%s", used == 0 ? "" : ", ",
                       format_name((enum format)f));
    }
    return error_set(reterr, STATUS_UNSUPPORTED, where,
                     "%s has no rate for matmuls in %s; it has rates for %s", chip->title,
                     format_name(format), names);
}

enum status limits_format_check(const struct local *local, struct error *reterr)
{
    const struct workload_formats *formats = &local->plan->formats;
    const struct chip *chip = &local->machine->chip;
    STATUS_TRY(rate_check(chip, formats->activations, "/workload/formats/activations", reterr));
    STATUS_TRY(rate_check(chip, formats->matmuls, "/workload/formats/matmuls", reterr));
    if (formats->dispatch != formats->activations && local->mesh->axis[MESH_EP].size == 1)
        return error_set(reterr, STATUS_INVALID, "/workload/formats/dispatch",
                         "no tokens travel to experts: the mesh has no ep of two ranks or more");
    return STATUS_OK;
}

/* Whether the product is below 2^62; factors that are left out are 0 and count for nothing. */
static bool fits(const uint64_t *factor, uint32_t count)
{
    units_wide product = 1;
    for (uint32_t i = 0; i < count; i++) {
        if (factor[i] == 0) continue;
        product *= factor[i];
        if (product >> BITS != 0) return false;
    }
    return true;
}

enum status limits_sizes_check(const struct local *local, struct error *reterr)
{
    enum { FACTORS = 5 };
    const struct model *model = &local->plan->model;
    struct model_counts const counts = model_count(model);
    uint64_t const layers = model->layers + local->predictors;
    bool const llama = local_is_llama(local);
    uint64_t const rows = local->rows;
    uint64_t const width = local->width;
    uint64_t const mlp = model->matrices * model->mlp_width;
    uint64_t const latent = local_is_latent(local) ? model_latent_columns(model) : 0;
    uint64_t const heads = (model->heads + 2 * model->kv_heads) * model->head_width;
    uint64_t const qkv = llama ? heads + 2 * latent : 1;
    uint64_t const vocabulary = llama ? model->vocabulary : 1;
    uint64_t const scores = PRODUCTS_OF_SCORES * 2 * model->head_width + VECTOR_SOFTMAX_BACKWARD;
    uint64_t const widest = width + mlp + qkv + vocabulary;
    uint64_t const kept = 4 * width + 2 * qkv + mlp; /* Columns that a layer keeps, at most. */
    const struct local_experts *experts = &local->experts;
    uint64_t crossing = 0;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++)
        if (experts->crossing[d] > crossing) crossing = experts->crossing[d];
    uint64_t const saved = local_is_unfused(local) ? BYTES_OF_SCORE * model->layers : 0;
    const struct {
        const char *what;
        uint64_t factor[FACTORS];
    } table[] = {
        {"the bytes of attention's scores",
         {local->queries, local->keys, local->heads * local->sequences, saved}},
        {"the FLOP of an MLP's matmul", {2, rows, width, mlp}},
        {"the FLOP of attention's projections", {2, rows, width, qkv}},
        {"the FLOP of the head", {2, rows, width, vocabulary}},
        {"the FLOP of attention",
         {local->queries, local->keys, local->heads * local->sequences, scores}},
        {"the bits of the keys and values",
         {BITS_OF_ELEMENT, local->sequences, local->keys, local->kv_heads, local->head_width}},
        {"the bits of an op's operands", {BITS_OF_ELEMENT, rows, widest}},
        {"the bits of the model's parameters", {BITS_OF_ELEMENT, counts.total + counts.predictors}},
        {"the FLOP of a layer's experts",
         {2, experts->all, width, model->matrices * experts->columns}},
        {"the bits of a layer's experts' rows",
         {BITS_OF_ELEMENT, experts->all + experts->arrivals,
          width + model->matrices * experts->columns}},
        {"the bits that experts' ranks exchange", {BITS_OF_ELEMENT, crossing, width}},
        {"the bytes of the activations", {2 * BYTES_OF_ELEMENT, rows, kept, layers}},
    };
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (fits(table[i].factor, FACTORS)) continue;
        return error_set(reterr, STATUS_LIMIT, "/workload",
                         "%s on one chip would be 2^62 or more, which is not counted; it takes "
                         "fewer batch_tokens, shorter sequences or a smaller model",
                         table[i].what);
    }
    return STATUS_OK;
}
