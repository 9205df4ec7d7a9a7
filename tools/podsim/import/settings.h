/*
 * settings.h: a file of any format as a flat list of keys with values and lines.
 */
#ifndef TOOLS_PODSIM_IMPORT_SETTINGS_H
#define TOOLS_PODSIM_IMPORT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;

enum {
    IMPORT_FILE_BYTES_MAX = 1 << 20,
    IMPORT_SETTINGS_MAX = 4096,
    IMPORT_GIVEN_MAX = 64,
    IMPORT_DEPTH_MAX = 32, /* Depth of tables, lists and expansions. */
};

/* What is said of a variable among arguments that neither the file nor `--with` assigns. */
#define IMPORT_OPEN "the file does not assign it; what it adds is given by --with NAME=VALUE"

enum import_form {
    IMPORT_FLAG, /* A key without a value. */
    IMPORT_NULL,
    IMPORT_BOOLEAN, /* "true" or "false" */
    IMPORT_NUMBER,
    IMPORT_TEXT,
    IMPORT_LIST, /* The elements of a list, with a blank between. */
};

enum import_outcome {
    IMPORT_UNKNOWN, /* No row has the key. */
    IMPORT_EXPRESSED,
    IMPORT_WITHOUT_INFLUENCE,
    IMPORT_NOT_EXPRESSED,
};

struct import_setting {
    const char *key;   /* "--seq-length", "training.seq_len" */
    const char *value; /* "" of a flag. */
    uint32_t line;     /* 0: it does not stand in the file. */
    enum import_form form;
    enum import_outcome outcome;
    const char *because; /* What it sets, why it changes nothing, or what it would mean. */
};

/* `--with KEY=VALUE`: as if it stood behind the file's last line. */
struct import_given {
    const char *key, *value;
    bool is_taken; /* The expansion of a variable has taken the value. */
};

struct import_file {
    struct arena *arena;
    const char *path;
    const char *text; /* Ended by a 0. */
    uint64_t text_bytes;
    /* The program that a script runs, "pretrain_gpt.py"; NULL: nothing says it. */
    const char *program;
    uint32_t program_line;
    struct import_setting *setting; /* [IMPORT_SETTINGS_MAX] */
    uint32_t count;
    struct import_given given[IMPORT_GIVEN_MAX];
    uint32_t given_count;
};

/* An empty key is listed as "". Errors: STATUS_LIMIT. */
enum status settings_add(struct import_file *file, const struct import_setting *setting,
                         struct error *reterr);
/* The last setting of a key, or NULL. */
struct import_setting *settings_find(const struct import_file *file, const char *key);

/* An error at "FILE:LINE". Returns `status`. */
enum status settings_fail(const struct import_file *file, uint32_t line, enum status status,
                          struct error *reterr, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Readers. All refuse a character 0, and what is nested deeper than IMPORT_DEPTH_MAX. */

/* Arguments of the command that a script of the shell runs, or a file of arguments alone.
 * Assignments, arrays, continued lines and comments are bash's; conditions are evaluated where
 * they compare known texts and numbers, and are settings that are not expressed elsewhere. */
enum status settings_read_shell(struct import_file *file, struct error *reterr);

/* TOML: "table.key". An array is a list; arrays and tables in it are "table.key.0". */
enum status settings_read_toml(struct import_file *file, struct error *reterr);

/* YAML, one document of keys with values: "map.key". A list is as an array above. */
enum status settings_read_yaml(struct import_file *file, struct error *reterr);
/* JSON: "map.key". It is refused as other JSON is (json.h). */
enum status settings_read_json(struct import_file *file, struct error *reterr);

#endif
