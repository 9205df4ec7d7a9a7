#include "sim/base/key_place.h"

#include <stdio.h>

#include "sim/base/name.h"

/* Names that are gathered for the nearest of them. */
enum { NAMES_MAX = 128 };

struct names {
    const char *name[NAMES_MAX + 1];
    uint32_t count;
};

/* What has members of its own, but for elements of arrays, which have no one place. */
static bool is_object(const struct key *row)
{
    return row->members != NULL && row->kind != &key_list;
}

static bool find_in(const char *name, const struct key *rows, const char *folder,
                    struct key_place *ret_place);

/* Variants are one object, whose pointer has no name of theirs. */
static bool find_inside(const char *name, const struct key *row, const char *folder,
                        struct key_place *ret_place)
{
    char inner[sizeof ret_place->pointer];
    (void)snprintf(inner, sizeof inner, "%s/%s", folder, row->name);
    if (row->kind != &key_variants) return find_in(name, row->members, inner, ret_place);
    for (const struct key *variant = row->members; variant->name != NULL; variant++)
        if (find_in(name, variant->members, inner, ret_place)) return true;
    return false;
}

static bool find_in(const char *name, const struct key *rows, const char *folder,
                    struct key_place *ret_place)
{
    for (const struct key *row = rows; row->name != NULL; row++) {
        if (!name_same(row->name, name)) continue;
        (void)snprintf(ret_place->pointer, sizeof ret_place->pointer, "%s/%s", folder, name);
        return true;
    }
    for (const struct key *row = rows; row->name != NULL; row++)
        if (is_object(row) && find_inside(name, row, folder, ret_place)) return true;
    return false;
}

struct key_place key_place_of(const char *name, const struct key *rows, const char *folder)
{
    struct key_place place = {.pointer = ""};
    if (rows != NULL) (void)find_in(name, rows, folder, &place);
    return place;
}

static void names_add(const struct key *rows, struct names *names)
{
    for (const struct key *row = rows; row->name != NULL; row++) {
        if (names->count < NAMES_MAX) names->name[names->count++] = row->name;
        if (!is_object(row)) continue;
        if (row->kind != &key_variants) names_add(row->members, names);
        for (const struct key *of = row->members; row->kind == &key_variants && of->name != NULL;
             of++)
            names_add(of->members, names);
    }
}

struct key_place key_place_near(const char *name, const struct key *rows, const char *folder)
{
    struct names names = {.count = 0};
    names_add(rows, &names);
    const char *const nearest = name_nearest(name, names.name);
    if (nearest == NULL) return (struct key_place){.pointer = ""};
    return key_place_of(nearest, rows, folder);
}
