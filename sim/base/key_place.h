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

#endif
