#include "sim/collective/algorithm.h"

#include <stdio.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/name.h"
#include "sim/base/units.h"

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

/* --- Names --- */

/* In the order of enum algorithm_means. */
static const char *const words[] = {"auto", "hierarchical", "scatter-gather", NULL};

/* What the first letters of a text say, which have no "+" among them. */
static struct algorithm_level level_read(const char *text, size_t length)
{
    char name[ALGORITHM_TEXT_BYTES];
    struct algorithm_level level = {.means = ALGORITHM_OTHER, .asked = text};
    if (length >= sizeof name) return level;
    memcpy(name, text, length);
    name[length] = '\0';
    uint32_t const word = name_find(name, words);
    enum primitive_family const family = (enum primitive_family)name_find(name, families);
    if (words[word] != NULL) return (struct algorithm_level){(enum algorithm_means)word, 0, NULL};
    if (families[family] != NULL) return (struct algorithm_level){ALGORITHM_FAMILY, family, NULL};
    return level;
}

/* "ring+direct", as far as there can be levels. */
static struct algorithm levels_read(const char *name)
{
    struct algorithm algorithm = {.means = ALGORITHM_LEVELS};
    for (const char *at = name; at != NULL;) {
        if (algorithm.level_count == ALGORITHM_LEVELS_MAX) return algorithm_called(name);
        size_t const length = strcspn(at, "+");
        algorithm.level[algorithm.level_count++] = level_read(at, length);
        at = at[length] == '+' ? at + length + 1 : NULL;
    }
    return algorithm;
}

struct algorithm algorithm_read(const char *name)
{
    if (name == NULL) return (struct algorithm){.means = ALGORITHM_AUTO};
    const char *const base = name_after(name, "flat-");
    const char *const single = base != NULL ? base : name;
    if (single[strcspn(single, "+")] == '+')
        return base != NULL ? algorithm_called(name) : levels_read(name);
    struct algorithm_level const level = level_read(single, strlen(single));
    bool const is_family = level.means == ALGORITHM_FAMILY;
    if (level.means == ALGORITHM_OTHER || (base != NULL && !is_family))
        return algorithm_called(name);
    return (struct algorithm){.means = level.means, .family = level.family, .flat = base != NULL};
}

struct algorithm algorithm_by(enum primitive_family family)
{
    if (family == PRIMITIVE_FAMILY_COUNT) return (struct algorithm){.means = ALGORITHM_AUTO};
    return (struct algorithm){.means = ALGORITHM_FAMILY, .family = family};
}

struct algorithm algorithm_called(const char *name)
{
    bool const flat = name_after(name, "flat-") != NULL;
    return (struct algorithm){.means = ALGORITHM_OTHER, .flat = flat, .asked = name};
}

struct algorithm algorithm_by_pairs(const struct group *group)
{
    struct algorithm algorithm = algorithm_by(PRIMITIVE_DIRECT);
    algorithm.flat = group->dimension_count > 1;
    return algorithm;
}

struct algorithm algorithm_by_rounds(const struct group_dimension *dimension)
{
    return algorithm_by(dimension->switched ? PRIMITIVE_RING
                        : dimension->ring   ? PRIMITIVE_RING_ONE_WAY
                                            : PRIMITIVE_LINE);
}

static bool level_equal(const struct algorithm_level *a, const struct algorithm_level *b)
{
    return a->means == b->means && a->family == b->family && name_same(a->asked, b->asked);
}

bool algorithm_equal(const struct algorithm *a, const struct algorithm *b)
{
    if (a->means != b->means || a->family != b->family || a->flat != b->flat ||
        a->level_count != b->level_count || !name_same(a->asked, b->asked))
        return false;
    for (uint32_t i = 0; i < a->level_count; i++)
        if (!level_equal(&a->level[i], &b->level[i])) return false;
    return true;
}

struct algorithm_text algorithm_level_text(const struct algorithm_level *level)
{
    struct algorithm_text text;
    const char *const known = level->means == ALGORITHM_FAMILY  ? families[level->family]
                              : level->means < ALGORITHM_FAMILY ? words[level->means]
                                                                : level->asked;
    (void)snprintf(text.text, sizeof text.text, "%.*s", (int)strcspn(known, "+"), known);
    return text;
}

struct algorithm_text algorithm_text(const struct algorithm *algorithm)
{
    struct algorithm_text text = {.text = ""};
    size_t used = 0;
    if (algorithm->means == ALGORITHM_OTHER) {
        (void)snprintf(text.text, sizeof text.text, "%s", algorithm->asked);
        return text;
    }
    struct algorithm_level const whole = {algorithm->means, algorithm->family, NULL};
    bool const has_levels = algorithm->means == ALGORITHM_LEVELS;
    uint32_t const count = has_levels ? algorithm->level_count : 1;
    const struct algorithm_level *const level = has_levels ? algorithm->level : &whole;
    for (uint32_t i = 0; i < count && used < sizeof text.text; i++)
        used += (size_t)snprintf(text.text + used, sizeof text.text - used, "%s%s",
                                 i > 0             ? "+"
                                 : algorithm->flat ? "flat-"
                                                   : "",
                                 algorithm_level_text(&level[i]).text);
    return text;
}

const char *algorithm_name(struct arena *arena, const struct algorithm *algorithm)
{
    if (algorithm->means == ALGORITHM_OTHER) return algorithm->asked;
    if (algorithm->means < ALGORITHM_FAMILY) return words[algorithm->means];
    if (algorithm->means == ALGORITHM_FAMILY && !algorithm->flat)
        return families[algorithm->family];
    return arena_text(arena, algorithm_text(algorithm).text);
}
