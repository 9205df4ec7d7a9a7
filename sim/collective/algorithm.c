#include "sim/collective/algorithm.h"

#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/plan.h"

static const char *const families[] = {
#define X(name, text, nccl, kinds) text,
    PRIMITIVE_FAMILY_TABLE(X)
#undef X
        NULL,
};

static const struct {
    enum nccl_algorithm like;
    uint32_t runs; /* Kinds as bits. */
} of_nccl[] = {
#define X(name, text, nccl, kinds) {.like = nccl, .runs = kinds},
    PRIMITIVE_FAMILY_TABLE(X)
#undef X
        {.like = NCCL_NONE, .runs = NCCL_KINDS_NONE},
};

const char *primitive_family_name(enum primitive_family family)
{
    SIM_ASSERT((uint32_t)family < PRIMITIVE_FAMILY_COUNT);
    return families[family];
}

enum primitive_family primitive_family_find(const char *name)
{
    return (enum primitive_family)name_find(name, families);
}

enum nccl_algorithm primitive_family_nccl(enum primitive_family family)
{
    return of_nccl[family].like;
}

bool primitive_family_is_of_nccl(enum primitive_family family, enum collective_kind kind)
{
    return (of_nccl[family].runs >> kind & 1) != 0;
}

enum primitive_family primitive_family_of_nccl(enum nccl_algorithm nccl, enum collective_kind kind)
{
    enum primitive_family found = PRIMITIVE_FAMILY_COUNT;
    for (uint32_t i = PRIMITIVE_FAMILY_COUNT; i-- > 0;) {
        enum primitive_family const family = (enum primitive_family)i;
        bool const runs = primitive_family_is_of_nccl(family, kind);
        bool const replaces =
            found == PRIMITIVE_FAMILY_COUNT || runs || !primitive_family_is_of_nccl(found, kind);
        if (of_nccl[family].like == nccl && replaces) found = family;
    }
    return found;
}

const char *plan_flat_base(const char *algorithm)
{
    return name_after(algorithm, "flat-");
}

struct algorithm algorithm_of(const char *name)
{
    static const char *const words[] = {
        [ALGORITHM_AUTO] = "auto",
        [ALGORITHM_HIERARCHICAL] = "hierarchical",
        [ALGORITHM_SCATTER_GATHER] = "scatter-gather",
        NULL,
    };
    struct algorithm algorithm = {.means = ALGORITHM_AUTO, .family = PRIMITIVE_FAMILY_COUNT};
    if (name == NULL) return algorithm;
    algorithm.means = (enum algorithm_means)name_find(name, words);
    if (words[algorithm.means] != NULL) return algorithm;
    const char *base = plan_flat_base(name);
    algorithm.flat = base != NULL;
    algorithm.family = primitive_family_find(base == NULL ? name : base);
    bool const known = algorithm.family != PRIMITIVE_FAMILY_COUNT;
    algorithm.means = known                       ? ALGORITHM_FAMILY
                      : strchr(name, '+') != NULL ? ALGORITHM_LEVELS
                                                  : ALGORITHM_OTHER;
    return algorithm;
}
