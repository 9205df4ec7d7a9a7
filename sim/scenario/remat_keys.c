/*
 * remat_keys.c: `remat` of a training step: a policy, lists of arrays that differ from it, and the
 * layers that it is of.
 */
#include "sim/base/arena.h"
#include "sim/base/json.h"
#include "sim/scenario/scenario_parts.h"

enum { NAMES_MAX = 64, LAYERS_MAX = 30000 };

/* --- A list of names --- */

static enum status names_read(const struct key *row, const struct key_reader *reader,
                              struct json *value, struct error *reterr)
{
    struct graph_names *names = key_field(row, reader);
    void *memory = NULL;
    *names = (struct graph_names){.count = 0};
    if (value == NULL) return STATUS_OK;
    STATUS_TRY(key_array(value, row->least, row->most, reterr));
    STATUS_TRY(arena_try(reader->arena, json_count(value), sizeof *names->name, &memory, reterr));
    const char **name = memory;
    for (uint32_t i = 0; i < json_count(value); i++)
        STATUS_TRY(json_as_string(json_at(value, i), &name[i], reterr));
    *names = (struct graph_names){name, json_count(value)};
    return STATUS_OK;
}

static void names_write(struct json_writer *writer, const struct key *row,
                        const struct key_source *source)
{
    const struct graph_names *names = key_field_of(row, source);
    json_write_array(writer);
    for (uint32_t i = 0; i < names->count; i++) json_write_string(writer, names->name[i]);
    json_write_array_end(writer);
}

static void names_schema(struct json_writer *writer, const struct key *row)
{
    key_array_schema(writer, row->least, row->most);
    key_types_schema(writer, "string", NULL);
    json_write_object_end(writer);
}

static const struct key_kind names_kind = {
    .read = names_read, .write = names_write, .schema = names_schema, .begin = '['};

/* --- Layers --- */

static enum status layers_settle(const struct key_reader *reader, struct json *member,
                                 struct error *reterr)
{
    const struct workload_repeated *repeated = &scenario_of(reader)->workload.kept.repeated;
    uint32_t const fields[] = {repeated->first, repeated->every, repeated->groups_of};
    uint32_t said = 0;
    for (uint32_t i = 0; i < sizeof fields / sizeof *fields; i++) said += fields[i] != 0;
    if (member == NULL || said == 1) return STATUS_OK;
    return error_set(reterr, STATUS_INVALID, json_where(member),
                     "must have one of \"first\", \"every\" and \"groups_of\", such as "
                     "{\"every\": 2}");
}

#define LAYERS(text, field, of)                                                                    \
    KEY_ROW(struct workload_repeated, text, key_count, field, .least = 1, .most = LAYERS_MAX,      \
            .quiet = true, .preset_text = "none", .help = (of))

static const struct key layers_keys[] = {
    LAYERS("first", first, "the first layers of each stage of the pipeline"),
    LAYERS("every", every, "each n-th layer, counted over the layers of a rank of `pp`"),
    LAYERS("groups_of", groups_of,
           "all layers, those of each group of a stage together from the input of its first"),
    {0},
};

/* --- The object --- */

/* Arrays that are saved are an exception to a repetition of the rest, none of them, too; arrays
 * that are repeated are an exception to keeping the rest. */
static enum status policy_settle(const struct key_reader *reader, struct json *member,
                                 struct error *reterr)
{
    struct workload_plan *plan = &scenario_of(reader)->workload;
    const struct graph_named *named = &plan->kept.named;
    bool const layers = workload_repeats_some(plan) && named->repeat.count == 0;
    bool const keeps =
        json_take(reader->object, "save") != NULL || json_take(reader->object, "offload") != NULL;
    (void)reterr;
    if (member != NULL) return STATUS_OK;
    plan->remat = layers || keeps ? GRAPH_REMAT_BLOCK : GRAPH_REMAT_NONE;
    if (plan->kept.repeated.groups_of != 0) plan->remat = GRAPH_REMAT_LAYER;
    return STATUS_OK;
}

#define NAMES(text, field, of)                                                                     \
    WORKLOAD_ROW(text, names_kind, kept.named.field, .most = NAMES_MAX, .quiet = true,             \
                 .preset_text = "none", .values.example = "[\"A\", \"mlp.Out\"]", .help = (of))

const struct key scenario_remat_keys[] = {
    NAMES("save", save, "arrays that are kept for the backward pass, though the policy does not"),
    NAMES("repeat", repeat, "arrays that are computed again, though the policy keeps them"),
    NAMES("offload", offload, "arrays that are kept in the memory of the host"),
    WORKLOAD_ROW("layers", key_object, kept.repeated, .members = layers_keys,
                 .settle = layers_settle, .quiet = true, .preset_text = "all",
                 .help = "the layers that are recomputed; all others keep what is read"),
    WORKLOAD_ROW(
        "policy", key_choice, remat, .choices = graph_remat_names, .least = GRAPH_REMAT_NONE,
        .preset = GRAPH_REMAT_NEVER, .settle = policy_settle, .quiet = true,
        .preset_text = "`layer` with `groups_of`; `block` with `save`, `offload`, or `layers` "
                       "without `repeat`; else `none`",
        .help = "what is kept of all other arrays"),
    {0},
};

/* The row as that of a policy alone. */
static struct key policy_row(const struct key *row)
{
    struct key policy = *row;
    policy.kind = &key_choice;
    policy.members = NULL;
    return policy;
}

static enum status remat_read(const struct key *row, const struct key_reader *reader,
                              struct json *value, struct error *reterr)
{
    struct key_reader inner = *reader;
    struct workload_kept *kept = &scenario_of(reader)->workload.kept;
    kept->named = (struct graph_named){.save.count = 0};
    kept->repeated = (struct workload_repeated){0, 0, 0};
    if (value != NULL && json_kind(value) != JSON_OBJECT && json_kind(value) != JSON_STRING)
        return error_set(reterr, STATUS_INVALID, json_where(value),
                         "must be the name of a policy, or an object with lists of arrays or with "
                         "layers, such as {\"save\": [\"A\"]}");
    if (value == NULL || json_kind(value) == JSON_STRING) {
        struct key const policy = policy_row(row);
        return key_choice.read(&policy, reader, value, reterr);
    }
    inner.object = value;
    inner.variants = NULL;
    return keys_read(row->members, &inner, reterr);
}

static void remat_write(struct json_writer *writer, const struct key *row,
                        const struct key_source *source)
{
    const struct workload_plan *plan = &shown_of(source)->workload;
    if (!graph_named_any(&plan->kept.named) && !workload_repeats_some(plan)) {
        struct key const policy = policy_row(row);
        key_choice.write(writer, &policy, source);
        return;
    }
    json_write_object(writer);
    keys_write(writer, row->members, source);
    json_write_object_end(writer);
}

static void remat_schema(struct json_writer *writer, const struct key *row)
{
    json_put_array(writer, "anyOf");
    json_write_object(writer);
    key_choices_schema(writer, row->choices);
    json_write_object_end(writer);
    json_write_object(writer);
    keys_schema(writer, row->members);
    json_write_object_end(writer);
    json_write_array_end(writer);
}

const struct key_kind scenario_remat_kind = {
    .read = remat_read, .write = remat_write, .schema = remat_schema};
