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
    KEY_MAYBE,    /* int8_t; -1: nothing is said */
    KEY_COUNT,    /* uint32_t; the value may be text such as "4M" */
    KEY_TOKENS,   /* uint64_t; the same */
    KEY_INTEGER,  /* uint64_t, in digits */
    KEY_SHARE,    /* uint32_t of millionths; the value is a real */
    KEY_CHOICE,   /* An enum: the place among `choices`, counted from `least`. */
    KEY_WORD,     /* const char *, one of `choices` */
    KEY_FIXED,    /* One of `choices`; no field */
    KEY_TEXT,     /* const char * */
    KEY_RATE,     /* uint64_t, bytes a second; the value is text such as "45GB/s" */
    KEY_DURATION, /* int64_t, picoseconds; "2us" */
    KEY_CHIP,     /* uint32_t[MACHINE_AXES_MAX]: coordinates of a chip */
    KEY_CHIPS,    /* The same; "*" is machine_any */
    KEY_OBJECT,   /* A struct: the members' fields lie in it. */
    KEY_LIST,     /* A pointer to an array of such structs; their count lies at `count_at`. */
    KEY_WORDS,    /* An array of words, read by a `settle`, written by `write` */
    KEY_OWN,      /* A word or an object, read by `settle`, written by `write` */
};

struct key_reader {
    struct arena *arena;
    const char *base_folder; /* The folder of the scenario's file, or NULL. */
    struct json *object;     /* NULL: every key has its default. */
    struct scenario *scenario;
    void *base;          /* The struct that the rows' fields lie in. */
    uint32_t axis_count; /* Of a list's elements: coordinates of a chip; 0: that is not known. */
};

/* What is written. */
struct key_source {
    const struct scenario *scenario;
    const void *base;
    uint32_t axis_count;
};

struct key {
    const char *name;
    enum key_kind kind;
    bool needed;
    bool has_table;              /* KEY_OBJECT: docs/scenario.md has a table of its members. */
    bool quiet;                  /* Shown only where it is not the default, which is not known. */
    size_t at;                   /* The field, as an offset in the struct of the rows. */
    int64_t least, most, preset; /* In the unit of the field; `preset` is the default. */
    const char *word;            /* The default of KEY_TEXT; NULL: none. */
    size_t like_at;              /* The field of another key whose value is the default, or 0. */
    const char *const *choices;  /* Ended by NULL. */
    const struct key *members;   /* Of KEY_OBJECT and KEY_LIST; ended by a row without a name. */
    size_t count_at, size_bytes; /* Of KEY_LIST: uint32_t, and of an element. */
    /* Of KEY_LIST: how many coordinates a chip has in its elements. NULL: they have no chips. */
    uint32_t (*axis_count)(const struct key_reader *reader);
    /* Reads or checks what depends on other keys, in the order of the rows, once all are read.
     * `member` is NULL where the key is missing. */
    enum status (*settle)(const struct key_reader *reader, struct json *member,
                          struct error *reterr);
    bool (*shown)(const struct key_source *source); /* NULL: always. */
    /* NULL: the field is written. */
    void (*write)(struct json_writer *writer, const char *name, const struct key_source *source);
    /* For people, in Markdown. NULL: what the row says otherwise. */
    const char *when; /* It applies; NULL: always. */
    const char *values;
    const char *preset_text; /* A default that depends on other keys. */
    const char *help;
};

enum { KEYS_MAX = 32, KEY_AMOUNT_BYTES = 40 };

/* Ended by a row without a name, in the order in which they are shown. */
extern const struct key scenario_keys[];
extern const struct key program_keys[]; /* What a program's text has of them. */
extern const struct key machine_keys[]; /* Of struct machine_plan. */
extern const struct key network_keys[]; /* Of struct machine_network_plan. */
extern const struct key mesh_keys[];
extern const struct key workload_keys[]; /* Of struct scenario, as those of the run. */
extern const struct key run_keys[];

/* Reads an object into the reader's base. Errors: a value of another kind or out of range, a
 * key that no row has, a missing one, what `settle` refuses. */
enum status keys_read(const struct key *rows, const struct key_reader *reader,
                      struct error *reterr);

/* The members of an object that the caller begins and ends. */
void keys_write(struct json_writer *writer, const struct key *rows,
                const struct key_source *source);

/* An exact rate or duration with the largest unit of which it is a whole number. */
const char *key_amount_text(const struct key *row, uint64_t amount, char buffer[KEY_AMOUNT_BYTES]);
/* Refuses what is not an array with the given number of elements. */
enum status key_array(struct json *json, uint32_t least, uint32_t most, struct error *reterr);

#endif
