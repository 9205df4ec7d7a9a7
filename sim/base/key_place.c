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

static const struct key *member_named(const struct key *rows, const char *name)
{
    while (rows->name != NULL && !name_same(rows->name, name)) rows++;
    return rows->name == NULL ? NULL : rows;
}

bool key_variant_has(const struct key *variant, const char *inside, const char *name)
{
    const struct key *object = inside == NULL ? variant : member_named(variant->members, inside);
    return object != NULL && object->members != NULL && member_named(object->members, name) != NULL;
}

uint32_t key_owners(const struct key *variants, const char *inside, const char *name,
                    char ret_text[KEY_OWNERS_BYTES])
{
    uint32_t count = 0, left = 0;
    size_t used = 0;
    for (const struct key *of = variants; of->name != NULL; of++)
        count += key_variant_has(of, inside, name);
    left = count;
    for (const struct key *of = variants; of->name != NULL && used < KEY_OWNERS_BYTES; of++) {
        if (!key_variant_has(of, inside, name)) continue;
        const char *before = used == 0 ? "" : left == 1 ? " and " : ", ";
        used += (size_t)snprintf(ret_text + used, KEY_OWNERS_BYTES - used, "%s\"%s\"", before,
                                 of->name);
        left--;
    }
    return count;
}
