/* frameworks.c: the frameworks by name. */
#include <stddef.h>

#include "sim/base/name.h"
#include "tools/podsim/import/import.h"

#define FRAMEWORK(name) extern const struct import_framework import_##name;
#include "tools/podsim/import/frameworks.def"
#undef FRAMEWORK

static const struct import_framework *const frameworks[] = {
#define FRAMEWORK(name) &import_##name,
#include "tools/podsim/import/frameworks.def"
#undef FRAMEWORK
};
enum { FRAMEWORK_COUNT = sizeof frameworks / sizeof *frameworks };

const struct import_framework *import_framework_find(const char *name, struct error *reterr)
{
    const char *names[FRAMEWORK_COUNT + 1] = {NULL};
    for (uint32_t i = 0; i < FRAMEWORK_COUNT; i++) names[i] = frameworks[i]->name;
    uint32_t const found = name_find(name, names);
    if (found < FRAMEWORK_COUNT) return frameworks[found];
    (void)error_set(reterr, STATUS_NOT_FOUND, name, "no framework whose files podsim reads%s",
                    name_offer(name, names, "; the nearest is ", "", NULL).text);
    return NULL;
}
