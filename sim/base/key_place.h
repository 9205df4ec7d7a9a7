/*
 * key_place.h: where a key belongs that stands in an object without such a row. Internal to key.
 */
#ifndef SIM_BASE_KEY_PLACE_H
#define SIM_BASE_KEY_PLACE_H

#include "sim/base/key.h"

struct key_place {
    char pointer[128]; /* "/machine/network/nic_rate"; "": nowhere. */
};

/* In objects of these rows, at any depth but not in arrays; `folder` is the pointer to the object
 * of the rows themselves, "" for the document. The first of several. `rows` may be NULL. */
struct key_place key_place_of(const char *name, const struct key *rows, const char *folder);

/* The name in an object of these rows, at any depth, that is nearest to a misspelt one. */
struct key_place key_place_near(const char *name, const struct key *rows, const char *folder);

/* Whether a variant has a key; in its object `inside`, or in the variant itself where that is NULL.
 */
bool key_variant_has(const struct key *variant, const char *inside, const char *name);

/* "a", "b" and "c": the variants that have a key so. Returns how many. */
enum { KEY_OWNERS_BYTES = 256 };
uint32_t key_owners(const struct key *variants, const char *inside, const char *name,
                    char ret_text[KEY_OWNERS_BYTES]);

#endif
