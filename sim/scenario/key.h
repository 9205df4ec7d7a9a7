/*
 * key.h: a key of a scenario is one row. What is read, refused and shown follows from
 * it, and so do the JSON Schema and the tables of docs/scenario.md.
 */
#ifndef SIM_SCENARIO_KEY_H
#define SIM_SCENARIO_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct json;
struct json_writer;
struct scenario;

/* What a key's value is, and the type of its field. */
enum key_kind {
    KEY_FLAG,     /* bool */
    KEY_FLAG_NOT, /* bool, true where the value is false */
    KEY_COUNT,    /* uint32_t; the value may be text such as "4M" */
    KEY_TOKENS,   /* uint64_t; the same */
    KEY_INTEGER,  /* uint64_t, in digits */
    KEY_SHARE,    /* uint32_t of millionths; the value is a real */
    KEY_CHOICE,   /* An enum: the place among `choices`, counted from `least`. */
    KEY_WORD,     /* const char *, one of `choices` */
    KEY_FIXED,    /* One of `choices`; no field */
    KEY_TEXT,     /* const char * */
    KEY_OBJECT,   /* Its members' fields. */
    KEY_OWN,      /* Read by `settle`, written by `write`. */
};

struct key_reader {
    struct arena *arena;
    const char *base_folder; /* The folder of the scenario's file, or NULL. */
    struct json *object;     /* NULL: every key has its default. */
    struct scenario *scenario;
};

struct key {
    const char *name;
    enum key_kind kind;
    bool needed;
    size_t at;                   /* The field, as an offset in struct scenario. */
    int64_t least, most, preset; /* In the unit of the field; `preset` is the default. */
    const char *word;            /* The default of KEY_TEXT; NULL: none. */
    size_t like_at;              /* The field of another key whose value is the default, or 0. */
    const char *const *choices;  /* Ended by NULL. */
    const struct key *members;   /* Of KEY_OBJECT; ended by a row without a name. */
    /* Reads or checks what depends on other keys, in the order of the rows, once all are read.
     * `member` is NULL where the key is missing. */
    enum status (*settle)(const struct key_reader *reader, struct json *member,
                          struct error *reterr);
    bool (*shown)(const struct scenario *scenario); /* NULL: always. */
    /* NULL: the field is written. */
    void (*write)(struct json_writer *writer, const char *name, const struct scenario *scenario);
    /* For people, in Markdown. NULL: what the row says otherwise. */
    const char *values;
    const char *preset_text; /* A default that depends on other keys. */
    const char *help;
};

enum { KEYS_MAX = 32 };

/* Sections of a scenario, ended by a row without a name, in the order in which they are shown. */
extern const struct key run_keys[];
extern const struct key workload_keys[];

/* Reads a section into the reader's scenario. Errors: a value of another kind or out of range, a
 * key that no row has, a missing one, what `settle` refuses. */
enum status keys_read(const struct key *rows, const struct key_reader *reader,
                      struct error *reterr);

/* The members of an object that the caller begins and ends. */
void keys_write(struct json_writer *writer, const struct key *rows,
                const struct scenario *scenario);

#endif
