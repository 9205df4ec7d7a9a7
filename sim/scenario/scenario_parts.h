/*
 * scenario_parts.h: what the files of sim/scenario share.
 */
#ifndef SIM_SCENARIO_SCENARIO_PARTS_H
#define SIM_SCENARIO_SCENARIO_PARTS_H

#include "sim/base/key.h"
#include "sim/scenario/scenario.h"

extern const struct key scenario_keys[];
extern const struct key program_keys[]; /* Keys of a scenario that a program's text begins with. */
extern const struct key machine_keys[]; /* Keys of struct machine_plan. */
extern const struct key network_keys[]; /* Keys of struct machine_network_plan. */
extern const struct key mesh_keys[];
/* By enum workload_kind; of struct scenario, as the rows of the run. */
extern const struct key workload_kinds[];
extern const struct key workload_train_step_keys[];
/* The choices of `kind` in the keys of a kind: its own word alone. By enum workload_kind. */
extern const char *const scenario_kind_choice[][2];
/* What several kinds have: a model; what routers do. */
extern const struct key_kind scenario_model_kind;
/* A name, a path, relative to `base_folder`, or a model itself. */
enum status scenario_model_read(struct arena *arena, struct json *json, const char *base_folder,
                                struct model *ret_model, struct error *reterr);
/* A policy of remat, or an object with lists of arrays. */
extern const struct key_kind scenario_remat_kind;
extern const struct key scenario_remat_keys[];
enum status scenario_routing_settle(const struct key_reader *reader, struct json *member,
                                    struct error *reterr);
bool scenario_has_experts(const struct key_source *source);
bool scenario_shows_context(const struct key_source *source);
bool scenario_shows_context_order(const struct key_source *source);
extern const char *const scenario_format_names[];
extern const char *const scenario_attention_names[], *const scenario_context_names[],
                                                         *const scenario_context_order_names[];

/* Rows that several kinds have. */
#define WORKLOAD_ROW(text, of, field, ...)                                                         \
    KEY_ROW(struct scenario, text, of, workload.field, __VA_ARGS__)
#define FORMAT(text, field, ...)                                                                   \
    WORKLOAD_ROW(text, key_choice, field, .choices = scenario_format_names, __VA_ARGS__)
#define FORMAT_LIKE(text, field, other, ...)                                                       \
    FORMAT(text, field, .like_at = offsetof(struct scenario, workload.other), __VA_ARGS__)
#define FORMATS_OF_ARRAYS                                                                          \
    FORMAT("weights", formats.weights,                                                             \
           .help = "number format of the weights, with [scales](inference.md#formats) where "      \
                   "blocks share them. The vector unit widens narrower ones than `matmuls`"),      \
        FORMAT("activations", formats.activations,                                                 \
               .help = "number format of activations, and of attention's products")
#define FORMATS_OF_WORK                                                                            \
    FORMAT_LIKE("matmuls", formats.matmuls, formats.activations,                                   \
                .help = "number format of the products of linear layers"),                         \
        FORMAT_LIKE("dispatch", formats.dispatch, formats.activations,                             \
                    .help = "number format of tokens on their way to experts")
#define ROUTING_SKEW                                                                               \
    WORKLOAD_ROW("routing_skew", key_share, routing.skew_ppm, .most = PPM_ONE,                     \
                 .settle = scenario_routing_settle, .shown = scenario_has_experts,                 \
                 .when = "with experts",                                                           \
                 .help = "skew of [the choice](moe.md#uneven-routing): 0 even, 1 Zipf's law")

extern const char *const scenario_copies_names[];

#define TOKEN_COPIES                                                                               \
    WORKLOAD_ROW("token_copies", key_choice, routing.token_copies,                                 \
                 .choices = scenario_copies_names, .shown = scenario_has_experts,                  \
                 .when = "with experts",                                                           \
                 .help = "a token goes once to each `rank` that has experts for it, and once to "  \
                         "a node; or once for each `expert`, straight to its GPU "                 \
                         "([inference](inference.md#tokens-to-experts), "                          \
                         "[training](moe.md#copies-of-tokens))")

/* Of steps of inference: as many lengths as sequences, drawn where they are, which needs the seed.
 */
enum status scenario_lengths_build(struct arena *arena, struct scenario *scenario,
                                   struct error *reterr);
extern const struct key run_keys[];
extern const struct key overlap_keys[];

/* The key `dp_overlap`, which `overlap` replaced: refused, with the name of the new key; and, in
 * the document of a program, which an earlier version may have written, moved there. */
enum status scenario_overlap_refuse(struct json *document, struct error *reterr);
enum status scenario_overlap_move(struct json *document, struct error *reterr);

/* The whole mesh, whose axes are in the order of the file. */
extern const struct key_kind mesh_kind;

static inline struct scenario *scenario_of(const struct key_reader *reader)
{
    return reader->whole;
}

static inline const struct scenario *shown_of(const struct key_source *source)
{
    return source->whole;
}

/* The scenario with defaults that chip, machine or schedule give. If one of these is refused, the
 * scenario stays as it is. Errors: STATUS_NO_MEMORY. */
enum status scenario_shown(struct arena *arena, const struct scenario *scenario,
                           struct scenario *ret_shown, struct error *reterr);

/* The schema of text, or of an object in its place. */
void scenario_text_or_schema(struct json_writer *writer, const char *const *definitions);

/* `base_folder` is where the file lies that names the chip, or NULL. */
enum status scenario_machine_read(struct arena *arena, struct json *object, const char *base_folder,
                                  struct machine_plan *ret_plan, struct error *reterr);

/* How many coordinates a chip of this machine has; 0 if that cannot be said, because the chip or
 * the shape is not known (machine_build() will say so). Errors: STATUS_NO_MEMORY. */
enum status scenario_axis_count(struct arena *arena, const struct machine_plan *plan,
                                uint32_t *ret_count, struct error *reterr);

#endif
