/* The options of `podsim pareto`. */
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/counted.h"
#include "sim/base/json.h"
#include "sim/base/parse_uint.h"
#include "sim/base/svg.h"
#include "sim/base/units.h"
#include "sim/machine/shape.h"
#include "tools/podsim/common/counts.h"
#include "tools/podsim/pareto/pareto.h"

enum { LENGTH_MOST = 1 << 24, POINT_SETTINGS_MAX = 1 + 3 * PARETO_SETTINGS_MAX };

static const uint64_t price_most_ppm = UINT64_C(1000000) * PPM_ONE;

const struct option pareto_options[] = {
    {"--batch", "LIST", "sequences, such as 1,8,32 or 1:512:x2 (1:512:x2)", false},
    {"--context", "LIST", "of a decode: tokens of each sequence in the cache", false},
    {"--prompt", "LIST", "of a prefill: tokens of each prompt", false},
    {"--shape", "LIST", "slices, such as 2x4,4x4; of GPUs how many, such as 4,8,16", false},
    {"--mesh", "OBJECT", "a mesh, as --set /mesh= has it; may be repeated", true},
    {"--book-parameters", "N", "parameters of the formula (the model's)", false},
    {"--svg", "FILE", "draw them", false},
    {"--price", "USD", "of a chip an hour, such as 1.2 or 1.2USD/h (the chip's, if known)", false},
    {"--json", "FILE", "write the points as JSON; - is standard output", false},
    {"--csv", "FILE", "write the points as CSV; - is standard output", false},
    {"--set", "/POINTER=VALUE", "change a key of the scenario; may be repeated", true},
    {0},
};

/* Rising, each once. */
static enum status counts_sorted(struct arena *arena, const char *text, const char *where,
                                 uint32_t most, uint32_t **ret_counts, uint32_t *ret_count,
                                 struct error *reterr)
{
    void *memory = NULL;
    uint32_t count = 0, kept = 0;
    STATUS_TRY(arena_try(arena, PARETO_COUNTS_MAX, sizeof(uint32_t), &memory, reterr));
    uint32_t *counts = memory;
    STATUS_TRY(counts_list(text, where, most, counts, PARETO_COUNTS_MAX, &count, reterr));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t const number = counts[i];
        uint32_t place = kept;
        while (place > 0 && counts[place - 1] >= number) place--;
        if (place < kept && counts[place] == number) continue;
        memmove(&counts[place + 1], &counts[place], (kept - place) * sizeof *counts);
        counts[place] = number;
        kept++;
    }
    *ret_counts = counts;
    *ret_count = kept;
    return STATUS_OK;
}

static enum status values_begin(struct arena *arena, uint32_t most, struct pareto_values *values,
                                struct error *reterr)
{
    void *memory = NULL;
    STATUS_TRY(arena_try(arena, most, sizeof *values->value, &memory, reterr));
    *values = (struct pareto_values){.value = memory};
    return STATUS_OK;
}

static enum status text_of(const char *text, const char **ret_text, struct error *reterr)
{
    if (text == NULL) return error_no_memory(reterr, "");
    *ret_text = text;
    return STATUS_OK;
}

/* The option of the workload's lengths, and no other. */
static enum status lengths_read(struct pareto *pareto, struct error *reterr)
{
    bool const decodes = pareto_part(pareto) == INFERENCE_DECODES;
    const char *const option = decodes ? "--context" : "--prompt";
    const char *const other = decodes ? "--prompt" : "--context";
    const char *const text = options_value(pareto->options, option);
    uint32_t *tokens = NULL, count = 0;
    if (options_has(pareto->options, other))
        return error_set(reterr, STATUS_INVALID, other,
                         "the lengths of a %s are %s, and all else is as the scenario has it",
                         inference_phase(&pareto->base.scenario.workload), option);
    if (text != NULL)
        STATUS_TRY(
            counts_sorted(pareto->arena, text, option, LENGTH_MOST, &tokens, &count, reterr));
    STATUS_TRY(values_begin(pareto->arena, count + 1, &pareto->lengths, reterr));
    for (uint32_t i = 0; i < count; i++) {
        struct pareto_value *value = &pareto->lengths.value[pareto->lengths.count++];
        STATUS_TRY(
            text_of(arena_text(pareto->arena, table_count(tokens[i]).text), &value->word, reterr));
        STATUS_TRY(text_of(arena_format(pareto->arena, "/workload/%s=%u",
                                        decodes ? "context" : "prompt", tokens[i]),
                           &value->setting[0], reterr));
    }
    return STATUS_OK;
}

static enum status value_add(struct pareto_values *values, const char *option, const char *word,
                             struct pareto_value **ret_value, struct error *reterr)
{
    if (values->count == PARETO_VALUES_MAX)
        return error_set(reterr, STATUS_LIMIT, option, "more than %d of them", PARETO_VALUES_MAX);
    *ret_value = &values->value[values->count++];
    (*ret_value)->word = word;
    return STATUS_OK;
}

static bool is_there(const struct pareto_values *values, const char *word)
{
    bool found = false;
    for (uint32_t i = 0; i < values->count; i++)
        found = found || strcmp(values->value[i].word, word) == 0;
    return found;
}

/* A shape once, however often it is named. A product's name, which gives the shape, gives way to
 * the chip's own. */
static enum status slice_add(struct pareto *pareto, const char *word, struct error *reterr)
{
    struct arena *arena = pareto->arena;
    struct pareto_value *value = NULL;
    struct shape shape;
    STATUS_TRY(shape_parse(word, "--shape", &shape, reterr));
    if (is_there(&pareto->shapes, word)) return STATUS_OK;
    STATUS_TRY(value_add(&pareto->shapes, "--shape", word, &value, reterr));
    STATUS_TRY(
        text_of(arena_format(arena, "/machine/shape=\"%s\"", word), &value->setting[0], reterr));
    if (pareto->base.scenario.machine.chip_document != NULL) return STATUS_OK;
    return text_of(arena_format(arena, "/machine/chip=\"%s\"", pareto->chip.name),
                   &value->setting[1], reterr);
}

static enum status slices_read(struct pareto *pareto, const char *text, struct error *reterr)
{
    while (true) {
        size_t const length = strcspn(text, ",");
        const char *word = NULL;
        STATUS_TRY(text_of(arena_format(pareto->arena, "%.*s", (int)length, text), &word, reterr));
        STATUS_TRY(slice_add(pareto, word, reterr));
        text += length;
        if (*text++ == '\0') return STATUS_OK;
    }
}

/* As many GPUs: part of a node, or whole nodes. */
static enum status gpus_read(struct pareto *pareto, const char *text, struct error *reterr)
{
    uint32_t const node = pareto->chip.network.node_chips;
    bool const has_nodes = pareto->base.scenario.machine.nodes != 0;
    struct arena *arena = pareto->arena;
    uint32_t *gpus = NULL, count = 0;
    if (strpbrk(text, "xX") != NULL)
        return error_set(reterr, STATUS_INVALID, "--shape",
                         "\"%.40s\" is a slice of a TPU; of GPUs it is how many, such as %u,%u: a "
                         "part of a node, or whole nodes",
                         text, node, 2 * node);
    STATUS_TRY(counts_sorted(arena, text, "--shape", MACHINE_CHIPS_MAX, &gpus, &count, reterr));
    for (uint32_t i = 0; i < count; i++) {
        struct pareto_value *value = NULL;
        const char *word = NULL;
        if (gpus[i] > node && gpus[i] % node != 0)
            return error_set(reterr, STATUS_INVALID, "--shape",
                             "%u GPUs are neither a part of a node nor whole nodes of %u; the "
                             "nearest are %u and %u",
                             gpus[i], node, gpus[i] / node * node, (gpus[i] / node + 1) * node);
        STATUS_TRY(text_of(arena_format(arena, "%u", gpus[i]), &word, reterr));
        STATUS_TRY(value_add(&pareto->shapes, "--shape", word, &value, reterr));
        STATUS_TRY(text_of(arena_format(arena, "/machine/gpus=%u", gpus[i] < node ? gpus[i] : node),
                           &value->setting[0], reterr));
        if (gpus[i] > node || has_nodes)
            STATUS_TRY(text_of(
                arena_format(arena, "/machine/nodes=%u", gpus[i] > node ? gpus[i] / node : 1),
                &value->setting[1], reterr));
    }
    return STATUS_OK;
}

static enum status shapes_read(struct pareto *pareto, struct error *reterr)
{
    const char *const text = options_value(pareto->options, "--shape");
    STATUS_TRY(values_begin(pareto->arena, PARETO_VALUES_MAX, &pareto->shapes, reterr));
    if (text == NULL) return STATUS_OK;
    return pareto->chip.kind == CHIP_GPU ? gpus_read(pareto, text, reterr)
                                         : slices_read(pareto, text, reterr);
}

/* What is no object is refused at once; what does not go with a machine is so point by point. */
static enum status meshes_read(struct pareto *pareto, struct error *reterr)
{
    const char *text = NULL;
    STATUS_TRY(values_begin(pareto->arena, PARETO_VALUES_MAX, &pareto->meshes, reterr));
    for (uint32_t i = 0; (text = options_value_at(pareto->options, "--mesh", i)) != NULL; i++) {
        struct json *mesh = NULL;
        struct pareto_value *value = NULL;
        STATUS_TRY(json_read_text(pareto->arena, "--mesh", text, strlen(text), &mesh, reterr));
        bool const is_object = json_kind(mesh) == JSON_OBJECT;
        json_free(mesh);
        if (!is_object)
            return error_set(reterr, STATUS_INVALID, "--mesh",
                             "\"%.40s\" is no mesh; {\"tp\": [\"x\", \"y\"]} is one", text);
        STATUS_TRY(value_add(&pareto->meshes, "--mesh", text, &value, reterr));
        STATUS_TRY(
            text_of(arena_format(pareto->arena, "/mesh=%s", text), &value->setting[0], reterr));
    }
    return STATUS_OK;
}

/* Before anything is simulated. */
static enum status picture_check(const struct pareto *pareto, struct error *reterr)
{
    uint32_t const curves = pareto->shapes.count * pareto->meshes.count;
    if (!options_has(pareto->options, "--svg")) return STATUS_OK;
    if (curves <= SVG_SERIES_MAX && pareto->lengths.count <= PARETO_COLUMNS_MAX) return STATUS_OK;
    return error_set(reterr, STATUS_LIMIT, "--svg",
                     "a picture has at most %d curves of a length and %d lengths, and %s of %s are "
                     "asked for",
                     SVG_SERIES_MAX, PARETO_COLUMNS_MAX, counted(curves, "curve").text,
                     counted(pareto->lengths.count, "length").text);
}

/* Without an option there is one value, which sets nothing. */
static void values_end(struct pareto_values *values)
{
    if (values->count == 0) values->count = 1;
}

static enum status book_read(struct pareto *pareto, struct error *reterr)
{
    static const uint64_t most = UINT64_C(1) << 53;
    const char *const text = options_value(pareto->options, "--book-parameters");
    uint64_t count = 0;
    if (text == NULL) return STATUS_OK;
    const char *const end = parse_uint(text, most, &count);
    if (end == text || *end != '\0' || count == 0 || count > most)
        return error_set(reterr, STATUS_INVALID, "--book-parameters",
                         "\"%.40s\" is no whole number from 1 to 2^53, such as 70400000000", text);
    pareto->book_parameters = (double)count;
    return STATUS_OK;
}

/* The chip's own price, which is of a day, or another one. */
static enum status price_read(struct pareto *pareto, struct error *reterr)
{
    const char *const text = options_value(pareto->options, "--price");
    const char *priced = text;
    uint64_t ppm = pareto->chip.price.usd_per_h_ppm;
    pareto->price_source = text == NULL ? pareto->chip.price.source : "as --price says";
    if (text != NULL && text[0] == '-')
        return error_set(reterr, STATUS_INVALID, "--price", "\"%.40s\" is below 0", text);
    if (text != NULL && text[strspn(text, "0123456789.")] == '\0')
        STATUS_TRY(text_of(arena_format(pareto->arena, "%sUSD/h", text), &priced, reterr));
    if (text != NULL) STATUS_TRY(quantity_read(QUANTITY_PRICE, priced, "--price", &ppm, reterr));
    if (text != NULL && (ppm == 0 || ppm > price_most_ppm))
        return error_set(reterr, STATUS_INVALID, "--price",
                         "\"%.40s\" is not above 0 and up to a million dollars an hour", text);
    pareto->usd_per_chip_h = (double)ppm / PPM_ONE;
    return STATUS_OK;
}

static enum status points_take(struct pareto *pareto, struct error *reterr)
{
    uint64_t const curves =
        (uint64_t)pareto->lengths.count * pareto->shapes.count * pareto->meshes.count;
    uint32_t const per_length = pareto->shapes.count * pareto->meshes.count;
    void *memory = NULL;
    if (curves * pareto->batch_count > PARETO_POINTS_MAX)
        return error_set(
            reterr, STATUS_LIMIT, "--batch", "%s, %s, %s and %s are %s; the most are %d",
            counted(pareto->batch_count, "batch").text,
            counted(pareto->lengths.count, "length").text,
            counted(pareto->shapes.count, "shape").text, counted(pareto->meshes.count, "mesh").text,
            counted(curves * pareto->batch_count, "point").text, PARETO_POINTS_MAX);
    STATUS_TRY(arena_try(pareto->arena, curves, sizeof *pareto->curve, &memory, reterr));
    pareto->curve = memory;
    pareto->curve_count = (uint32_t)curves;
    for (uint32_t c = 0; c < pareto->curve_count; c++) {
        struct pareto_curve *curve = &pareto->curve[c];
        curve->length = &pareto->lengths.value[c / per_length];
        curve->shape = &pareto->shapes.value[c % per_length / pareto->meshes.count];
        curve->mesh = &pareto->meshes.value[c % pareto->meshes.count];
        STATUS_TRY(
            arena_try(pareto->arena, pareto->batch_count, sizeof *curve->point, &memory, reterr));
        curve->point = memory;
        for (uint32_t b = 0; b < pareto->batch_count; b++) curve->point[b].batch = pareto->batch[b];
    }
    return STATUS_OK;
}

static enum status kind_check(const struct pareto *pareto, struct error *reterr)
{
    if (pareto->base.scenario.workload.kind == WORKLOAD_GENERATE)
        return error_set(
            reterr, STATUS_UNSUPPORTED, "/workload/kind",
            "a generation has many steps, of which each has another latency; pareto is "
            "for \"decode\", \"prefill\" and \"mixed\" steps");
    if (pareto->base.scenario.workload.kind != WORKLOAD_TRAIN_STEP) return STATUS_OK;
    return error_set(reterr, STATUS_UNSUPPORTED, "/workload/kind",
                     "a training step has no batch of sequences to choose; pareto is for "
                     "\"decode\", \"prefill\" and \"mixed\" steps, and `podsim run FILE --advise` "
                     "tries other meshes of a "
                     "training step");
}

enum status pareto_read(struct pareto *pareto, struct error *reterr)
{
    const char *const batch = options_value(pareto->options, "--batch");
    const char *units = NULL;
    uint32_t *batches = NULL;
    STATUS_TRY(session_build(&pareto->base, &pareto->source, SESSION_SCENARIO, reterr));
    STATUS_TRY(kind_check(pareto, reterr));
    STATUS_TRY(
        machine_chip(pareto->arena, &pareto->base.scenario.machine, &pareto->chip, &units, reterr));
    STATUS_TRY(counts_sorted(pareto->arena, batch == NULL ? "1:512:x2" : batch, "--batch",
                             PARETO_BATCH_MOST, &batches, &pareto->batch_count, reterr));
    pareto->batch = batches;
    STATUS_TRY(lengths_read(pareto, reterr));
    STATUS_TRY(shapes_read(pareto, reterr));
    STATUS_TRY(meshes_read(pareto, reterr));
    STATUS_TRY(book_read(pareto, reterr));
    STATUS_TRY(price_read(pareto, reterr));
    values_end(&pareto->lengths);
    values_end(&pareto->shapes);
    values_end(&pareto->meshes);
    if (pareto->source.setting_count + POINT_SETTINGS_MAX > SESSION_SETTINGS_MAX)
        return error_set(reterr, STATUS_LIMIT, "--set",
                         "more than are possible with those of the points");
    STATUS_TRY(picture_check(pareto, reterr));
    return points_take(pareto, reterr);
}
