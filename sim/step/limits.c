#include "sim/step/limits.h"

#include <stdio.h>
#include <string.h>

#include "sim/graph/derive.h"
#include "sim/graph/extent.h"
#include "sim/step/graph_terms.h"

enum {
    BITS = 62,             /* Two more would wrap; sums of a few such numbers stay exact. */
    BYTES_OF_ELEMENT = 4,  /* Of the widest format. */
    BITS_OF_ELEMENT = 512, /* The widest format has 32; vector units do as many FLOP at most. */
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

enum status limits_format_check(const struct ranks *ranks, struct error *reterr)
{
    const struct workload_formats *formats = &ranks->plan->formats;
    const struct chip *chip = &ranks->machine->chip;
    STATUS_TRY(rate_check(chip, formats->activations, "/workload/formats/activations", reterr));
    return rate_check(chip, formats->matmuls, "/workload/formats/matmuls", reterr);
}

static enum status below(units_wide amount, const char *what, struct error *reterr)
{
    if (amount >> BITS == 0) return STATUS_OK;
    return error_set(reterr, STATUS_LIMIT, "/workload",
                     "%s on one chip would be 2^62 or more, which is not counted; it takes fewer "
                     "batch_tokens, shorter sequences or a smaller model",
                     what);
}

/* A part of a model, which a rank has `count` times at most. What parts take in all microbatches
 * adds up: an account of memory counts all that is ever taken. */
static enum status part_check(const struct ranks *ranks, const struct graph_terms *terms,
                              enum block_part part, uint64_t layer, uint64_t count,
                              units_wide *bytes, struct error *reterr)
{
    struct graph_derived derived;
    if (count == 0) return STATUS_OK;
    graph_derive(terms, &ranks->plan->model, part, layer, &derived);
    units_wide const elements = graph_extent_elements(&derived.sharded);
    STATUS_TRY(below(BITS_OF_ELEMENT * elements, "the bits of a layer's arrays", reterr));
    /* Each once more where it is repeated. */
    *bytes += 2 * BYTES_OF_ELEMENT * elements * count * ranks->plan->accumulate;
    STATUS_TRY(below(*bytes, "the bytes that ops take", reterr));
    return below(graph_extent_flop(&derived.sharded, &derived.backward, &derived.kept),
                 "the FLOP of a layer's matmuls", reterr);
}

static enum status layers_check(const struct ranks *ranks, units_wide *bytes, struct error *reterr)
{
    const struct model *model = &ranks->plan->model;
    uint64_t const dense = model_dense_layers(model), last = model->layers - 1;
    for (uint32_t experts = 0; experts < 2; experts++) {
        bool const is_last = experts == (dense < model->layers);
        uint64_t const count = experts ? model->layers - dense : dense;
        uint64_t const layer = experts ? last : 0;
        struct graph_terms terms;
        graph_terms_of(ranks, layer, &terms);
        graph_terms_window(ranks, false,
                           &terms); /* Layers without one have more, and a kind may have both. */
        STATUS_TRY(part_check(ranks, &terms, BLOCK_LAYER, layer,
                              count + (is_last ? ranks->mtp_modules : 0), bytes, reterr));
    }
    return STATUS_OK;
}

static enum status ends_check(const struct ranks *ranks, units_wide *bytes, struct error *reterr)
{
    uint64_t const last = ranks->plan->model.layers - 1;
    struct graph_terms terms;
    graph_terms_of_end(ranks, /* used_before= */ true, &terms);
    STATUS_TRY(part_check(ranks, &terms, BLOCK_EMBEDDING, last, 1, bytes, reterr));
    STATUS_TRY(part_check(ranks, &terms, BLOCK_HEAD, last, 1 + ranks->mtp_modules, bytes, reterr));
    return part_check(ranks, &terms, BLOCK_MTP, last, ranks->mtp_modules, bytes, reterr);
}

enum status limits_sizes_check(const struct ranks *ranks, struct error *reterr)
{
    struct model_counts const counts = model_count(&ranks->plan->model);
    const struct routing *experts = &ranks->experts;
    uint64_t crossing = 0;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++)
        if (experts->crossing[d] > crossing) crossing = experts->crossing[d];
    STATUS_TRY(below(BITS_OF_ELEMENT * ((units_wide)counts.total + counts.mtp_modules),
                     "the bits of the model's parameters", reterr));
    STATUS_TRY(below(BITS_OF_ELEMENT * (units_wide)crossing * ranks->width,
                     "the bits that experts' ranks exchange", reterr));
    units_wide bytes = 0;
    STATUS_TRY(layers_check(ranks, &bytes, reterr));
    return ranks_is_decoder(ranks) ? ends_check(ranks, &bytes, reterr) : STATUS_OK;
}
