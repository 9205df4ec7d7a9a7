/*
 * json_node.h: the tree behind json.h. Only json*.c may include it.
 *
 * A document is copied from jansson into the arena at once, so nothing of jansson outlives the
 * reading and a value needs no owner but the arena.
 */
#ifndef SIM_BASE_JSON_NODE_H
#define SIM_BASE_JSON_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct json;

struct json_document {
    struct arena *arena;
    const char *name; /* The name of the file. */
};

struct json {
    struct json_document *document;
    struct json *parent;
    const char *key; /* The key of an object's member; else NULL. */
    uint32_t index;  /* The place in an array. */
    uint32_t count;  /* Elements or members. */
    uint8_t kind;    /* enum json_kind, whose names jansson uses too. */
    bool taken;
    bool made; /* The value was made on the way to a setting: an array if the next step is 0. */
    union {
        struct json *first; /* Arrays are contiguous; objects are linked, so that they may grow. */
        const char *text;
        int64_t integer;
        double real;
        bool boolean;
    } value;
    struct json *next; /* The next member of an object. */
    struct json *last; /* The last of an object's members. */
};

/* The kinds, as in json.h, by names that jansson does not use. */
enum { NODE_NULL, NODE_BOOLEAN, NODE_INTEGER, NODE_REAL, NODE_STRING, NODE_ARRAY, NODE_OBJECT };

/* json_parse.c: a value in place of what `node` holds; `any` permits more than arrays and objects
 * at the top. `depth` is how deep the node itself lies. */
enum status json_parse(struct json *node, uint32_t depth, const char *text, uint64_t text_bytes,
                       bool any, struct error *reterr);

/* A member at the end of an object, null at first. */
enum status json_node_add(struct json *object, const char *key, struct json **ret_member,
                          struct error *reterr);

#endif
