/*
 * key.h: a member of a JSON object is one row. What is read, refused and shown follows from it,
 * and so do the JSON Schema and the tables of the documentation.
 */
#ifndef SIM_BASE_KEY_H
#define SIM_BASE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/quantity.h"
#include "sim/base/status.h"

struct arena;
struct json;
struct json_writer;
struct key;
struct strbuf;

struct key_reader {
    struct arena *arena;
    const char *base_folder;    /* The folder of the file, or NULL. */
    struct json *object;        /* NULL: every key has its default. */
    void *whole;                /* What the document is read into. */
    void *base;                 /* The struct that the rows' fields lie in. */
    uint32_t axis_count;        /* Coordinates of a place that a value names; 0: not known. */
    const struct key *document; /* Rows of the document, in which a misplaced key is looked for;
                                   NULL: in the object alone. */
    const struct key *variants; /* Of which the object is one, or lies in one; NULL: of none. */
    const char *variant;        /* The name of this one. */
};

/* What is written. */
struct key_source {
    const void *whole;
    const void *base;
    uint32_t axis_count;
    /* Rows that are shown at their default, too, ended by NULL. NULL: none. */
    const struct key *const *also;
};

/* What a value is: how it is read, refused, shown and described. One that stands for a number has
 * `parse`, `put` and `say`, with key_number_read() and key_number_write(). */
struct key_kind {
    enum status (*parse)(const struct key *row, struct json *value, int64_t *ret_number,
                         struct error *reterr);
    void (*put)(struct json_writer *writer, const struct key *row, int64_t number);
    /* Says a number for people. */
    void (*say)(struct strbuf *text, const struct key *row, int64_t number);

    /* `value` is NULL where the key is missing: the field has its default then. */
    enum status (*read)(const struct key *row, const struct key_reader *reader, struct json *value,
                        struct error *reterr);
    void (*write)(struct json_writer *writer, const struct key *row,
                  const struct key_source *source);
    bool waits; /* Keys of the kind are read when all others are, in the order of the rows. */

    /* JSON Schema: the members of a value's, or types and a pattern of text. */
    void (*schema)(struct json_writer *writer, const struct key *row);
    const char *type, *type_too; /* The second may be NULL. */
    const char *pattern;         /* NULL: none. */
    bool has_range;              /* The row's range is of JSON's numbers. */
    bool has_length;             /* The row's `least` is of letters. */

    const char *values; /* The values for people. NULL: the row's choices, or its range. */
    char begin; /* The first letter of a value as JSON: '"', '[' or '{', else the value is refused
                   with the row's example. 0: as `read` says. */

    enum quantity quantity;   /* The quantity of an amount with a unit. */
    const char *const *units; /* Units from the smallest, each `step` of the unit before. */
    uint32_t step;
};

extern const struct key_kind key_flag;    /* bool, or an int8_t that is -1 where nothing is said */
extern const struct key_kind key_count;   /* A whole number, or text such as "4M" */
extern const struct key_kind key_integer; /* A whole number in digits */
extern const struct key_kind key_share;   /* Millionths; the value is a real. */
extern const struct key_kind key_choice;  /* The place among `choices`, counted from `least` */
extern const struct key_kind key_bytes;   /* "80GiB" */
extern const struct key_kind key_rate;    /* "45GB/s" */
extern const struct key_kind key_flop_rate; /* "459TFLOP/s" */
extern const struct key_kind key_duration;  /* "2us" */
extern const struct key_kind key_price;     /* "1.2USD/h" */
extern const struct key_kind key_power;     /* "500W" */
extern const struct key_kind key_text;      /* const char *, one of `choices` if the row has some */
extern const struct key_kind key_words;     /* An array of texts, which has no field. */
extern const struct key_kind key_lengths;   /* struct lengths, whose `count` is 0 until drawn */
extern const struct key_kind key_object;    /* A struct, in which the fields of `members` lie. */
/* An object whose first member, a key_choice in each variant, names its rows: `members` are
 * variants, each with a name and members of its own. */
extern const struct key_kind key_variants;
extern const struct key_kind key_list; /* A pointer to an array of such structs */

/* Of key_list. */
struct key_elements {
    size_t count_at;     /* The field of their number, a uint32_t. */
    uint32_t size_bytes; /* Bytes of one element. */
    /* Coordinates of the places in them, 0: not known. NULL: they have none. */
    enum status (*axis_count)(const struct key_reader *reader, uint32_t *ret_count,
                              struct error *reterr);
};

/* For people: the values that a key may have. */
struct key_values {
    const char *words; /* The values in Markdown. NULL: the example alone, or what the kind says. */
    const char *example; /* A value as JSON, in plain text. NULL: none. */
    const char
        *instead; /* Of a choice: what a value that is no text could be meant for, or NULL. */
};

struct key {
    const char *name;
    const struct key_kind *kind;
    bool needed;
    const char *with; /* A key without which this one is not there and not `needed`. NULL: none. */
    bool has_source;  /* The value comes as {"value": ..., "source": "..."}. */
    bool has_table;   /* key_object: the documentation has a table of its members. */
    bool quiet;       /* The key is shown only where it is not the default, which is not known. */
    bool negated;     /* key_flag: the field says the contrary. */
    size_t at;        /* The field, as an offset in the struct of the rows, and its size. */
    uint32_t size_bytes;
    int64_t least, most, preset; /* The range and the default, in numbers of the kind. */
    const char *word;            /* The default of key_text; NULL: none. */
    size_t like_at;              /* The field of another row whose value is the default, or 0. */
    const char *const *choices;  /* The words of a choice, ended by NULL. */
    const struct key *members;   /* The members of key_object and key_list. */
    struct key_elements elements;
    /* Checks what depends on other keys, once all are read. `member` is NULL where it is missing.
     */
    enum status (*settle)(const struct key_reader *reader, struct json *member,
                          struct error *reterr);
    bool (*shown)(const struct key_source *source); /* NULL: always. */
    /* The value. NULL: as the kind does. */
    void (*write)(struct json_writer *writer, const struct key_source *source);
    /* For people, in Markdown. NULL: what the row says otherwise. */
    const char *when; /* When the key applies; NULL: always. */
    struct key_values values;
    const char *preset_text; /* A default that depends on other keys. */
    const char *help;
};

/* A row: its name and kind, what else it says; and the type of its struct with the field. */
#define KEY(text, of, ...)                                                                         \
    {                                                                                              \
        .name = (text), .kind = &(of), __VA_ARGS__                                                 \
    }
#define KEY_ROW(type, text, of, field, ...)                                                        \
    KEY(text, of, .at = offsetof(type, field), .size_bytes = sizeof(((type *)NULL)->field),        \
        __VA_ARGS__)

enum { KEYS_MAX = 48 };

/* Tables end with a row without a name; the order is that in which keys are shown. */

/* Reads an object into the reader's base. Errors: a value of another kind or out of range, a
 * key that no row has, a missing one, what `settle` refuses. */
enum status keys_read(const struct key *rows, const struct key_reader *reader,
                      struct error *reterr);

/* The members of an object that the caller begins and ends. */
void keys_write(struct json_writer *writer, const struct key *rows,
                const struct key_source *source);

/* The row that writes the value at "/run/steps". NULL: none does. */
const struct key *key_at(const struct key *rows, const char *pointer,
                         const struct key_source *source);

/* The members of the JSON Schema (draft 2020-12) of an object. */
void keys_schema(struct json_writer *writer, const struct key *rows);

/* A table of the documentation, in Markdown. An object that has no words for its values comes as
 * its members, "leaf.policy". */
void keys_table(struct strbuf *text, const struct key *rows);

/* For kinds. */
void *key_field(const struct key *row, const struct key_reader *reader);
const void *key_field_of(const struct key *row, const struct key_source *source);
enum status key_number_read(const struct key *row, const struct key_reader *reader,
                            struct json *value, struct error *reterr);
void key_number_write(struct json_writer *writer, const struct key *row,
                      const struct key_source *source);
enum status key_object_read(const struct key *row, const struct key_reader *reader,
                            struct json *value, struct error *reterr);
void key_object_schema(struct json_writer *writer, const struct key *row);
/* The text of a value; row->word itself where the text is the same or there is no value. */
enum status key_text_or_word(const struct key *row, struct json *value, const char **ret_text,
                             struct error *reterr);
/* Refuses what is not an array with the given number of elements. */
enum status key_array(struct json *json, int64_t least, int64_t most, struct error *reterr);
/* What is the same of all arrays; the schema of its elements is open behind it. */
void key_array_schema(struct json_writer *writer, int64_t least, int64_t most);
void key_choices_schema(struct json_writer *writer, const char *const *choices);
void key_types_schema(struct json_writer *writer, const char *type, const char *type_too);

#endif
