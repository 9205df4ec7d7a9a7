#include "sim/step/limits.h"

#include <stdio.h>
#include <string.h>

#include "sim/graph/extent.h"
#include "sim/graph/parameters.h"

enum {
    BITS = 62,             /* Two more would wrap; sums of a few such numbers stay exact. */
    BYTES_OF_ELEMENT = 4,  /* Of the widest format. */
    BITS_OF_ELEMENT = 512, /* The widest format has 32; vector units do as many FLOP at most. */
};

/* The narrowest format that holds as many bits and has a rate; else the widest. */
static enum format nearest(const struct chip *chip, enum format format)
{
    enum format best = FORMAT_COUNT;
    for (uint32_t f = 0; f < FORMAT_COUNT; f++) {
        uint32_t const bits = format_bits((enum format)f), wanted = format_bits(format);
        if (chip->math_flop_per_s[f] == 0) continue;
        uint32_t const held = best == FORMAT_COUNT ? 0 : format_bits(best);
        if (held == 0 || (held < wanted ? bits > held : bits >= wanted && bits < held))
            best = (enum format)f;
    }
    return best;
}

static enum status rate_check(const struct chip *chip, enum format format, const char *where,
                              struct error *reterr)
{
    char names[96] = "";
    if (chip->math_flop_per_s[format] != 0) return STATUS_OK;
    for (uint32_t f = 0; f < FORMAT_COUNT; f++) {
        size_t const used = strlen(names);
        if (chip->math_flop_per_s[f] == 0 || format_math((enum format)f) != f) continue;
        (void)snprintf(names + used, sizeof names - used, "%s%s", used == 0 ? "" : ", ",
                       format_name((enum format)f));
    }
    return error_set(reterr, STATUS_UNSUPPORTED, where,
                     "%s has no rate for matmuls in %s; it has rates for %s, of which %s is the "
                     "nearest",
                     chip->title, format_name(format), names, format_name(nearest(chip, format)));
}

enum status limits_format_check(const struct ranks *ranks, struct error *reterr)
{
    const struct graph_formats *formats = &ranks->plan->formats;
    const struct chip *chip = &ranks->machine->chip;
    STATUS_TRY(rate_check(chip, formats->activations, "/workload/formats/activations", reterr));
    return rate_check(chip, formats->matmuls, "/workload/formats/matmuls", reterr);
}

static enum status below(const struct ranks *ranks, units_wide amount, const char *what,
                         struct error *reterr)
{
    if (amount >> BITS == 0) return STATUS_OK;
    return error_set(reterr, STATUS_LIMIT, "/workload",
                     "%s on one chip would be 2^62 or more, which is not counted; it takes %s or "
                     "a smaller model",
                     what,
                     ranks_serves(ranks) ? "fewer or shorter sequences"
                                         : "fewer batch_tokens, shorter sequences");
}

enum status limits_part_check(const struct ranks *ranks, const struct graph_derived *derived,
                              uint64_t count, units_wide *bytes, struct error *reterr)
{
    units_wide const elements = graph_extent_elements(&derived->sharded);
    STATUS_TRY(below(ranks, BITS_OF_ELEMENT * elements, "the bits of a layer's arrays", reterr));
    /* Each once more where it is repeated. */
    *bytes += 2 * BYTES_OF_ELEMENT * elements * count * workload_microbatches(ranks->plan);
    STATUS_TRY(below(ranks, *bytes, "the bytes that ops take", reterr));
    return below(ranks, graph_extent_flop(&derived->sharded, &derived->backward, &derived->kept),
                 "the FLOP of a layer's matmuls", reterr);
}

enum status limits_sizes_check(const struct ranks *ranks, struct error *reterr)
{
    struct model_counts const counts = model_count(&ranks->plan->model);
    const struct routing *experts = &ranks->experts;
    uint64_t crossing = experts->exchanged;
    for (uint32_t d = 0; d < GROUP_DIMENSIONS_MAX; d++)
        if (experts->crossing[d] > crossing) crossing = experts->crossing[d];
    STATUS_TRY(below(ranks, BITS_OF_ELEMENT * ((units_wide)counts.total + counts.mtp_modules),
                     "the bits of the model's parameters", reterr));
    return below(ranks, BITS_OF_ELEMENT * (units_wide)crossing * ranks_block_columns(ranks),
                 "the bits that experts' ranks exchange", reterr);
}
