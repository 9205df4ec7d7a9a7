#include "sim/collective/algorithm.h"

#include <string.h>

#include "sim/base/name.h"
#include "sim/base/units.h"
#include "sim/collective/plan.h"

static const char *const families[] = {
#define X(name, text) text,
    PRIMITIVE_FAMILY_TABLE(X)
#undef X
        NULL,
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
