/*
 * list_text.h: the catalogues in words, for `podsim list`.
 */
#ifndef TOOLS_PODSIM_LIST_LIST_TEXT_H
#define TOOLS_PODSIM_LIST_LIST_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

struct arena;
struct strbuf;

/* A line an entry. */
typedef enum status list_all_fn(struct arena *arena, struct strbuf *text, struct error *reterr);
/* All about one; an unknown one is refused with the nearest. */
typedef enum status list_one_fn(struct arena *arena, const char *name, struct strbuf *text,
                                struct error *reterr);

list_all_fn list_chips, list_shapes, list_models, list_scenarios, list_algorithms, list_kernels,
    list_presets;
list_one_fn list_chip, list_shape, list_model, list_scenario, list_schedule, list_kernel,
    list_preset;

/* What entries of several catalogues say of themselves. */
struct list_entry {
    const char *name, *help, *source;
    const char *behind; /* What a line adds to the name, ":V"; NULL: nothing. */
};

struct list_entries {
    const char *noun;                                         /* "collective" */
    int name_columns;                                         /* At least. */
    bool (*at)(uint32_t index, struct list_entry *ret_entry); /* false: past the last. */
    /* What else there is to say of one, with list_fact_add(). NULL: nothing. */
    enum status (*facts_add)(struct arena *arena, uint32_t index, struct strbuf *text,
                             struct error *reterr);
};

extern const struct list_entries list_primitives, list_forms, list_ops, list_blocks, list_recipes;

/* A line for each: its name and help. */
void list_entries_add(const struct list_entries *entries, struct strbuf *text);
/* The place of a name in letters of either case; an unknown one is refused with the nearest. */
enum status list_entry_find(const struct list_entries *entries, const char *name,
                            uint32_t *ret_index, struct error *reterr);
/* Name, help, facts and source. */
enum status list_entry_add(struct arena *arena, const struct list_entries *entries,
                           const char *name, struct strbuf *text, struct error *reterr);
void list_fact_add(struct strbuf *text, const char *label, const char *fact);
/* One of several names with commas between, each of whose lines begins at column `at`. */
void list_name_add(const char *name, bool is_first, uint32_t at, struct strbuf *text);

enum { LIST_FACT_COLUMN = 11 };

#endif
