/*
 * json.h: every JSON in and out. The only user of jansson.
 *
 * Reading is strict: duplicate keys, NaN, trailing text, files over 16 MiB and texts nested deeper
 * than 64 are refused, with file, line and column. A value remembers its place as a JSON pointer;
 * errors about meaning name it. A reader of an object takes the keys that it knows; json_end() then
 * refuses the first it did not take, with the nearest known one. So no key is ever ignored.
 */
#ifndef SIM_BASE_JSON_H
#define SIM_BASE_JSON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/quantity.h"
#include "sim/base/status.h"

struct arena;
struct strbuf;
struct json; /* A value and its place. Lives in the arena of its document. */

enum { JSON_FILE_BYTES_MAX = 16 * 1024 * 1024, JSON_DEPTH_MAX = 64 };

enum json_kind {
    JSON_NULL,
    JSON_BOOLEAN,
    JSON_INTEGER,
    JSON_REAL,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

/* The arena owns the document and all of its texts; json_free() only ends its use. */
enum status json_read_file(struct arena *arena, const char *path, struct json **ret_json,
                           struct error *reterr);
enum status json_read_text(struct arena *arena, const char *name, const char *text,
                           uint64_t text_bytes, struct json **ret_json, struct error *reterr);

void json_free(struct json *document);

/* Applies "/pointer=value": the value is JSON if it parses, else a string; what begins like a JSON
 * object, array or string must be one, and a number must not be too large. Objects on the way are
 * made where they are missing (whether the key is known is found when the document is read), or
 * arrays where the next step is 0; the element behind an array's last is added to it. null takes a
 * member that is there away (RFC 7396); one that is not stays to be refused. */
enum status json_set(struct json *document, const char *setting, struct error *reterr);

/* Applies a setting, as json_set() does, that a format of printf makes of its arguments. */
enum status json_set_list(struct json *document, struct error *reterr, const char *format,
                          va_list arguments) __attribute__((format(printf, 3, 0)));

enum json_kind json_kind(const struct json *json);
const char *json_where(const struct json *json); /* "/machine/shape"; "" is the document. */

/* Refuses a value of another kind than is wanted: "true or false". Never STATUS_OK. */
enum status json_refuse_kind(const struct json *json, const char *wanted, struct error *reterr);

/* The member of an object, marked as taken; NULL if there is none. */
struct json *json_take(struct json *object, const char *key);
/* The member of an object, marked as taken. A missing member is refused. */
enum status json_need(struct json *object, const char *key, struct json **ret_json,
                      struct error *reterr);
/* Refuses what is not an object. */
enum status json_as_object(struct json *json, struct error *reterr);
/* Refuses the first member that was not taken, naming the nearest of `known` (ended by NULL). */
enum status json_end(struct json *object, const char *const *known, struct error *reterr);
/* The first member that was not taken, and its key; NULL if all were. */
struct json *json_rest(struct json *object, const char **ret_key);
/* Keys of an object in the order of the file, NULL past the end; for maps such as the mesh. */
const char *json_key_at(struct json *object, uint32_t index);

uint32_t json_count(const struct json *array); /* Elements or members; 0 for other kinds. */
struct json *json_at(struct json *array, uint32_t index);

/* Typed values; each refuses another kind or a number out of [least, most] with its place. Called
 * json_as_..., because libjansson exports json_string() and the like: ours would take their place
 * inside the library. */
enum status json_as_boolean(struct json *json, bool *ret_value, struct error *reterr);
enum status json_as_integer(struct json *json, int64_t least, int64_t most, int64_t *ret_value,
                            struct error *reterr);
/* A whole number of things: an integer, or text such as "4M" or "1.5M", as in sizes of collectives
 * (scaled.h): "4M" tokens are 4,194,304. */
enum status json_as_count(struct json *json, int64_t least, int64_t most, int64_t *ret_value,
                          struct error *reterr);
enum status json_as_real(struct json *json, double least, double most, double *ret_value,
                         struct error *reterr);
/* One line of text: control characters are refused. */
enum status json_as_string(struct json *json, const char **ret_text, struct error *reterr);
/* A string out of a list ended by NULL; an unknown one is refused with the nearest. */
enum status json_choice(struct json *json, const char *const *choices, uint32_t *ret_index,
                        struct error *reterr);
/* A text such as "90GB/s", "1us", "96GB" (see quantity.h). */
enum status json_as_quantity(struct json *json, enum quantity what, uint64_t *ret_amount,
                             struct error *reterr);

/*
 * Writing. Text is appended in the order of the calls; commas, quotes and indentation are the
 * writer's, and so is the line end after the whole. Reals are printed shortest-round-trip and the
 * same everywhere; a real that is not finite is an assertion.
 */
struct json_writer {
    struct strbuf *text;
    uint32_t depth;
    bool first;
    bool after_key;
    uint32_t flat; /* Depth from which members stay on one line; 0: never. */
};

void json_write_start(struct json_writer *writer, struct strbuf *text);
void json_write_key(struct json_writer *writer, const char *key);
void json_write_object(struct json_writer *writer); /* "{" ... */
void json_write_object_end(struct json_writer *writer);
void json_write_array(struct json_writer *writer);
void json_write_array_end(struct json_writer *writer);
void json_write_string(struct json_writer *writer, const char *text);
void json_write_integer(struct json_writer *writer, int64_t value);
void json_write_unsigned(struct json_writer *writer, uint64_t value);
void json_write_real(struct json_writer *writer, double value);
void json_write_boolean(struct json_writer *writer, bool value);
void json_write_null(struct json_writer *writer);
/* Appends written JSON, folded between members at `columns` bytes a line. A member that is longer
 * stays whole. The rest of a line that a flat array or object made is indented by two columns more.
 */
void json_fold(const struct strbuf *json, uint32_t columns, struct strbuf *text);
/* A value that was read, whole. */
void json_write_value(struct json_writer *writer, struct json *value);

/* A key, and what json_write_... writes: a member of an object, or the beginning of one. */
void json_put_object(struct json_writer *writer, const char *key);
void json_put_array(struct json_writer *writer, const char *key);
void json_put_string(struct json_writer *writer, const char *key, const char *text);
void json_put_integer(struct json_writer *writer, const char *key, int64_t value);
void json_put_unsigned(struct json_writer *writer, const char *key, uint64_t value);
void json_put_real(struct json_writer *writer, const char *key, double value);
void json_put_boolean(struct json_writer *writer, const char *key, bool value);

#endif
