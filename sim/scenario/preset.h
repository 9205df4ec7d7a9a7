/*
 * preset.h: what a framework does with a step, as keys of a scenario: what it shards, recomputes
 * and overlaps. A scenario names one by "preset", and its own keys win. workloads/presets has a
 * file for each. No preset holds a rate or a time.
 */
#ifndef SIM_SCENARIO_PRESET_H
#define SIM_SCENARIO_PRESET_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct json;

enum { PRESET_KEYS_MAX = 32, PRESET_WORDS_MAX = 8, PRESET_AXES_MAX = 4, PRESET_UNLESS_MAX = 12 };

/* One key that is set where the scenario leaves it out. */
struct preset_key {
    const char *pointer;               /* "/workload/zero" */
    const char *value;                 /* The value as JSON. */
    const char *source;                /* What of the framework says so. */
    const char *with[PRESET_AXES_MAX]; /* Only on meshes with one of these axes; none: always. */
    uint32_t with_count;
    /* Not for scenarios with one of these keys, "/mesh/fsdp", or with such a value,
     * "/workload/zero=2" or "/workload/schedule=\"interleaved:*\"", on a "tpu", or for a model
     * with "rms_norms" or an "untied" head, where the key would mean nothing and be refused. */
    const char *unless[PRESET_UNLESS_MAX];
    uint32_t unless_count;
};

/* What the framework's own word for recomputation means. */
struct preset_word {
    const char *word; /* "full" */
    struct preset_key key[PRESET_WORDS_MAX];
    uint32_t key_count;
};

struct preset {
    const char *name;
    const char *title;
    bool trains;       /* For steps of training; else for all other workloads. */
    uint32_t year;     /* Of the framework's version, where it is one of the past; 0: it is not. */
    const char *stack; /* The kernels of that software; NULL: nothing says. */
    struct preset_key key[PRESET_KEYS_MAX];
    uint32_t key_count;
    struct preset_word recompute[PRESET_WORDS_MAX];
    uint32_t recompute_count;
};

/* Pointers of keys that a preset has filled in. */
struct preset_filled {
    const char *pointer[PRESET_KEYS_MAX + 1]; /* With one for the stack. */
    const char *value[PRESET_KEYS_MAX + 1];   /* JSON, by index of `pointer`. */
    uint32_t count;
    /* The preset's stack, which has no tables of the chip, where no stack is named. With the
     * profile "ideal", which reads none, any chip lacks it. NULL: nothing is lacking. */
    const char *lacking_stack;
};

/* Names of the catalogue, in its order; NULL past the end. */
const char *preset_name_at(uint32_t index);

/* Errors: STATUS_NOT_FOUND at `where`, with the nearest name. */
enum status preset_find(struct arena *arena, const char *name, const char *where,
                        struct preset *ret_preset, struct error *reterr);

/* Fills in what a parsed scenario leaves out, by the preset that its key "preset" names; nothing
 * without that key. Paths of models are relative to `base_folder`, or NULL. Errors: an unknown
 * name, a workload of another kind. */
enum status preset_apply(struct arena *arena, struct json *document, const char *base_folder,
                         struct preset_filled *ret_filled, struct error *reterr);

#endif
